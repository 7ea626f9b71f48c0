//! What `auto` stands for on the CPU: the strategy that is expected to take the least time on a matrix.
//!
//! A product is bound by the bytes that it moves. Those of CSR are known; those of blocks and of packed slices are
//! estimated from a sample of the rows, for less than the time of a few products. Each estimate is multiplied by what a
//! byte of that strategy costs beside a byte of `rows` (estimates, not fits: see the constants), as gathers and short rows cost more
//! than streams. Where one chunk of rows holds more than its thread's share of the work, rows cannot be balanced, and
//! `merge` is taken. Everything follows from the matrix and the number of threads, and each strategy gives the same
//! bits for any number of threads; but another choice for another number of threads may give others.

use super::cpu::{narrow, sell};
use super::{ALL_PRECISIONS, Build, Builder, Choice, Entry};
use crate::error::Result;
use crate::format::stats::Blocks;
use crate::format::{Csr, Values};
use crate::operator::Cost;

/// The row that `auto` stands for before the matrix is known. It is no strategy, so the registry does not list it.
pub static ENTRY: Entry = Entry {
    name: "auto",
    // Of the strategy that it falls back to; a choice is settled before it is built.
    builder: Builder::Cpu(Build::of::<super::cpu::rows::Rows>()),
    family: "auto",
    format: "the chosen one's",
    from: "bytes that each strategy would move",
    summary: "chosen when the matrix is known, by the bytes that each strategy would move",
    params: &[],
    deterministic: true,
    columns: true,
    precisions: ALL_PRECISIONS,
};

/// Entries below which a product takes a microsecond whatever the strategy, and CSR needs no building.
const SMALL: usize = 2_000;
/// What a byte of blocks costs beside one of CSR.
const BLOCK_BYTE: f64 = 0.9;
/// What a byte of packed slices costs beside one of CSR.
const SLICE_BYTE: f64 = 1.0;
/// The same where rows are longer than [`LONG_ROW`] and all bytes stay in a cache of [`CACHED`]: gathers bind there.
const CACHED_SLICE_BYTE: f64 = 1.3;
const LONG_ROW: usize = 16;
const CACHED: f64 = 4e6;
/// Another strategy than `rows` is built for at least this share of the time.
const WORTH: f64 = 0.95;
/// How far beyond its share of the work a thread may go.
const UNEVEN: f64 = 1.15;

/// What was chosen, and why.
pub struct Decision {
    /// A backend of the registry.
    pub choice: Choice,
    /// The numbers that spoke for it.
    pub why: String,
}

/// Threads that the work should be able to share evenly. The choice must not depend on how many there are, as the bits of
/// the result do on the choice.
const THREADS: usize = 4;

/// Chooses for vectors whose elements have so many bytes.
pub fn decide(matrix: &Csr, vector_width: usize) -> Result<Decision> {
    let chosen =
        |typed: &str, why: String| Ok(Decision { choice: Choice::resolve("cpu", "rows", typed)?, why });
    let (rows, nnz) = (matrix.rows(), matrix.nnz());
    if nnz < SMALL {
        return chosen("rows", format!("{nnz} entries are too few to matter"));
    }
    let share = largest_share(matrix, THREADS);
    if share > UNEVEN {
        let why = format!("some 512 rows hold {share:.1} times a thread's share of the entries");
        return chosen("merge", why);
    }
    let csr = Cost::of_csr(matrix, vector_width).bytes as f64;
    let vectors = ((rows + matrix.cols()) * vector_width) as f64;
    let value = match matrix.values() {
        Values::F64(values) if !narrow::sample_fits(values) => 8.0,
        _ => 4.0,
    };
    let mut best =
        ("rows".to_owned(), WORTH * csr, format!("{:.1} MB as CSR, and nothing is much less", csr / 1e6));
    let mut offer = |typed: String, bytes: f64, byte: f64| {
        if bytes * byte < best.1 {
            let why = format!("about {:.1} MB instead of {:.1} MB as CSR", bytes / 1e6, csr / 1e6);
            best = (typed, bytes * byte, why);
        }
    };
    let block = if matrix.pattern().has_repeats() { None } else { Blocks::sampled(matrix).best };
    if let Some(block) = block {
        let [height, width] = block.size;
        // The statistics count values in double precision.
        let fewer = block.blocks as f64 * (height * width) as f64 * (8.0 - value);
        offer(format!("bsr:block={height}x{width}"), block.bytes as f64 - fewer + vectors, BLOCK_BYTE);
    }
    let value = if matches!(matrix.values(), Values::Ones) { 0.0 } else { value };
    let byte = if csr < CACHED && nnz > LONG_ROW * rows { CACHED_SLICE_BYTE } else { SLICE_BYTE };
    offer("sell".to_owned(), sell::sampled_bytes(matrix, value)? + vectors, byte);
    chosen(&best.0.clone(), best.2)
}

/// The entries and rows of the fullest chunk over those that a thread should have.
fn largest_share(matrix: &Csr, threads: usize) -> f64 {
    use crate::device::cpu::CHUNK;
    let rows = matrix.rows();
    let work =
        |from: usize, to: usize| matrix.row_offsets().get(to) - matrix.row_offsets().get(from) + to - from;
    let fullest = (0..rows).step_by(CHUNK).map(|row| work(row, (row + CHUNK).min(rows))).max().unwrap_or(0);
    fullest as f64 * threads as f64 / work(0, rows).max(1) as f64
}
