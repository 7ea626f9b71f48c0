//! What `auto` stands for on the CPU: the strategy that is expected to take the least time on a matrix.
//!
//! A product takes as long as its bytes or as its instructions, whichever is longer. Bytes pass at the speed of the
//! cache level that holds them. Those of CSR are known; those of blocks and of packed slices are estimated from a
//! sample of the rows, for less than the time of a few products. Instructions are counted by row, entry, place or
//! block, at what each costs where all stays in the second-level cache (measured on two cores of a Xeon; see `work`).
//! Where one chunk of rows holds more than its thread's share, rows cannot be balanced, and `merge` is taken.
//! Everything follows from the matrix and the size of that cache, so that the bits of a result depend on no number of
//! threads.

use super::cpu::rows::SHORT_ROW;
use super::cpu::{chunk_height, sell};
use super::{ALL_PRECISIONS, Build, Builder, Choice, Entry};
use crate::error::Result;
use crate::format::narrow::value_bytes;
use crate::format::stats::{Block, Blocks};
use crate::format::{Csr, Values};
use crate::operator::Cost;

/// The row that `auto` stands for before the matrix is known. It is no strategy, so the registry does not list it.
pub static ENTRY: Entry = Entry {
    name: "auto",
    // Of the strategy that it falls back to; a choice is settled before it is built.
    builder: Builder::Cpu(Build::of::<super::cpu::rows::Rows>()),
    family: "auto",
    format: "the chosen one's",
    from: "bytes and instructions of each strategy",
    summary: "chosen when the matrix is known, by the bytes and instructions that each strategy would take",
    params: &[],
    deterministic: true,
    columns: true,
    values: true,
    precisions: ALL_PRECISIONS,
};

/// The backends that it chooses from.
pub const CHOICES: &[&str] = &["rows", "bsr", "sbsr", "sell", "merge", "pull"];

/// Entries below which a product takes a microsecond whatever the strategy, and CSR needs no building.
const SMALL: usize = 2_000;
/// Another strategy than `rows`, or `pull` for graphs without weights, is built for at least this share of the time.
const WORTH: f64 = 0.98;
/// How far beyond its share of the work a thread may go.
const UNEVEN: f64 = 1.15;
/// Threads that the work should be able to share evenly. The choice must not depend on how many there are, as the bits
/// of the result do on the choice.
const THREADS: usize = 4;

/// Columns for which x stays in a second-level cache.
const CACHED_COLUMNS: usize = 1 << 17;

/// Bytes that stay in second-level caches, and bytes a nanosecond from there and from beyond, on two cores.
const CACHED: f64 = 4e6;
const CACHE_SPEED: f64 = 170.0;
const SPEED: f64 = 57.0;
/// The share of a core's own second-level cache that may lie between two rows for values read in the one to be there still in the
/// other, and what a byte from there and from beyond costs beside one that is read in turn: blocks that lie apart are not
/// fetched ahead.
const NEAR: f64 = 0.75;
const NEAR_BYTE: f64 = 0.45;
const FAR_BYTE: f64 = 2.0;

/// Bytes of a core's second-level cache; 1 MB where the system does not tell.
fn second_level() -> f64 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: it only asks.
        let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
        if bytes > 0 {
            return bytes as f64;
        }
    }
    1e6
}

/// What was chosen, and why.
pub struct Decision {
    /// A backend of the registry.
    pub choice: Choice,
    /// The numbers that spoke for it.
    pub why: String,
}

/// Nanoseconds of instructions on two cores, as least squares over small matrices of the SuiteSparse collection: within
/// a tenth for most of them.
mod work {
    use crate::backend::cpu::rows::SHORT_ROW;
    use crate::backend::cpu::sell::Sample;

    /// Calling the threads together.
    pub const PASS: f64 = 400.0;

    /// Short rows cost a wrong guess of their end now and then, long ones a sum of lanes.
    pub fn of_rows(rows: f64, nnz: f64) -> f64 {
        if nnz <= SHORT_ROW as f64 * rows { 0.171 * nnz + 0.59 * rows } else { 0.148 * nnz + 0.33 * rows }
    }

    /// What `pull` takes where x stays in the second-level cache, on Zen 5: within a tenth for graphs of 8,000 to 16,000
    /// vertices.
    pub fn of_pull(rows: f64, nnz: f64) -> f64 {
        0.13 * nnz + 0.3 * rows
    }

    /// Ends of rows that are more than a processor can learn. On a Xeon one graph of 8,298 rows took 27 us in one program and
    /// 46 in another, as it learnt them or not; slices, which have their ends together, took 27 in both. Zen 5 learns that
    /// many: 15.5 us, and 23.9 in slices.
    pub fn of_ends(rows: f64) -> f64 {
        const LEARNT: f64 = 16_384.0;
        if rows <= LEARNT { 0.0 } else { 1.5 * rows }
    }

    pub fn of_slices(rows: f64, sample: Sample) -> f64 {
        0.16 * sample.gathered + 0.024 * (sample.places - sample.gathered) + 0.36 * rows
    }

    /// Each row of a block is one load and one product for each four columns, dearer where fewer are left over and
    /// dearest where a mask keeps three apart from the fourth. Each row ends in a sum of lanes, and each row of blocks
    /// in a wrong guess of its end now and then: the higher its blocks, the fewer of those.
    pub fn of_blocks(rows: f64, blocks: f64, [height, width]: [usize; 2]) -> f64 {
        let rest = match width % 4 {
            0 => 0.0,
            1 => 0.15,
            2 => 0.12,
            _ => 0.23,
        };
        let (row, height) = (0.15 * (width / 4) as f64 + rest, height as f64);
        blocks * (0.21 + row * height) + 0.25 * rows + 0.87 * rows / height
    }
}

/// Nanoseconds of a product that moves `bytes` and computes for `work` nanoseconds at the same time.
fn time(bytes: f64, work: f64) -> f64 {
    let speed = if bytes <= CACHED { CACHE_SPEED } else { SPEED };
    work::PASS + (bytes / speed).max(work)
}

/// What is known of a matrix without looking at its rows.
struct Known<'a> {
    matrix: &'a Csr,
    rows: f64,
    nnz: f64,
    /// Bytes of a value as strategies other than CSR store it.
    value: f64,
    /// Bytes of x and y.
    vectors: f64,
}

/// A strategy with what it is expected to take.
struct Offer {
    typed: String,
    /// The size of its blocks, if it has any.
    block: Option<[usize; 2]>,
    bytes: f64,
    /// Nanoseconds of instructions.
    work: f64,
    time: f64,
}

impl Known<'_> {
    /// Bytes of blocks: the statistics count values in double precision.
    fn bytes_of(&self, block: &Block) -> f64 {
        let [height, width] = block.size;
        block.bytes as f64 - (block.blocks as f64 * (height * width) as f64) * (8.0 - self.value)
    }

    fn blocks(&self, block: &Block) -> Offer {
        let [height, width] = block.size;
        let bytes = self.bytes_of(block) + self.vectors;
        let work = work::of_blocks(self.rows, block.blocks as f64, block.size);
        let typed = format!("bsr:block={height}x{width}");
        Offer { typed, block: Some(block.size), bytes, work, time: time(bytes, work) }
    }

    /// Square blocks of a matrix that a sample finds symmetric.
    fn mirrored_blocks(&self, block: &Block, symmetry: &Symmetry) -> Offer {
        let size = block.size[0];
        let below = (block.blocks as f64 - self.rows / size as f64).max(0.0) / 2.0;
        let values = below * (size * size) as f64 * self.value;
        let bytes = self.bytes_of(block) + self.vectors - values + 4.0 * below;
        let again = values * (symmetry.near * NEAR_BYTE + (1.0 - symmetry.near) * FAR_BYTE);
        let work = work::of_blocks(self.rows, block.blocks as f64, block.size);
        let typed = format!("sbsr:block={size}");
        Offer { typed, block: Some(block.size), bytes, work, time: time(bytes + again, work) }
    }

    /// Blocks of every size, mirrored or not.
    fn all_blocks(&self) -> Vec<Offer> {
        if self.matrix.pattern().has_repeats() {
            return Vec::new();
        }
        let blocks = Blocks::sampled(self.matrix).all;
        let symmetry = symmetry(self.matrix, NEAR * second_level(), self.value);
        let squares = blocks.iter().filter(|block| symmetry.holds && block.size[0] == block.size[1]);
        let mirrored = squares.map(|block| self.mirrored_blocks(block, &symmetry));
        blocks.iter().map(|block| self.blocks(block)).chain(mirrored).collect()
    }

    fn slices(&self) -> Result<Offer> {
        let value = if matches!(self.matrix.values(), Values::Ones) { 0.0 } else { self.value };
        let sample = sell::sampled(self.matrix, value)?;
        let (bytes, work) = (sample.bytes + self.vectors, work::of_slices(self.rows, sample));
        Ok(Offer { typed: "sell".to_owned(), block: None, bytes, work, time: time(bytes, work) })
    }

    /// CSR, whose instructions are counted without the ends of rows that are guessed wrongly.
    fn csr(&self, plain: &str, vector_width: usize) -> Offer {
        let bytes = Cost::of_csr(self.matrix, vector_width).bytes as f64;
        let near = plain == "pull" && self.matrix.cols() <= CACHED_COLUMNS;
        let of_entries = if near { work::of_pull } else { work::of_rows };
        let work = of_entries(self.rows, self.nnz);
        let of_ends = work::of_ends(self.rows * irregular(self.matrix));
        Offer { typed: plain.to_owned(), block: None, bytes, work, time: time(bytes, work + of_ends) }
    }
}

fn fastest(offers: impl IntoIterator<Item = Offer>) -> Option<Offer> {
    offers.into_iter().min_by(|a, b| a.time.total_cmp(&b.time))
}

/// Why an offer is expected to be faster than CSR, as far as the model knows.
fn because(best: &Offer, csr: &Offer) -> String {
    let mut reasons = Vec::new();
    // Only where instructions take CSR longer than its bytes do, fewer of them are a reason.
    if csr.time > time(csr.bytes, 0.0) {
        if best.work < csr.work {
            reasons.push("fewer instructions".to_owned());
        } else if csr.time > time(csr.bytes, csr.work) {
            reasons.push("fewer ends of rows to predict".to_owned());
        }
    }
    let (bytes, of_csr) = (size(best.bytes), size(csr.bytes));
    if best.bytes < csr.bytes && bytes != of_csr {
        reasons.push(format!("about {bytes} instead of {of_csr}"));
    }
    let share = 100.0 * best.time / csr.time;
    let colon = if reasons.is_empty() { "" } else { ": " };
    format!("estimated to take {share:.0} % of the time of CSR{colon}{}", reasons.join(" and "))
}

/// Facts of a matrix that hold for vectors with elements of `vector_width` bytes.
fn known(matrix: &Csr, vector_width: usize) -> Known<'_> {
    let value = value_bytes(matrix);
    let vectors = ((matrix.rows() + matrix.cols()) * vector_width) as f64;
    Known { matrix, rows: matrix.rows() as f64, nnz: matrix.nnz() as f64, value, vectors }
}

/// The blocks that are expected to take the least time: those of the choice, where that has blocks.
pub fn best_block(matrix: &Csr, vector_width: usize) -> Option<[usize; 2]> {
    fastest(known(matrix, vector_width).all_blocks())?.block
}

/// Chooses a backend for vectors with elements of `vector_width` bytes.
pub fn decide(matrix: &Csr, vector_width: usize) -> Result<Decision> {
    let chosen =
        |typed: &str, why: String| Ok(Decision { choice: Choice::resolve("cpu", "rows", typed)?, why });
    let (rows, nnz) = (matrix.rows(), matrix.nnz());
    let plain = plain(matrix);
    if nnz < SMALL {
        return chosen(plain, format!("with {nnz} entries the format hardly matters"));
    }
    let share = largest_share(matrix, THREADS);
    if share > UNEVEN {
        let height = chunk_height(rows);
        let why = format!(
            "some {height} neighbouring rows hold {share:.1} times an even share for {THREADS} threads"
        );
        return chosen("merge", why);
    }
    let known = known(matrix, vector_width);
    let csr = known.csr(plain, vector_width);
    match fastest([known.slices()?].into_iter().chain(known.all_blocks())) {
        Some(best) if best.time < WORTH * csr.time => chosen(&best.typed, because(&best, &csr)),
        _ => {
            let gain = 100.0 * (1.0 - WORTH);
            let graph =
                if plain == "pull" { "a graph without weights, whose values need no bytes; " } else { "" };
            let why =
                format!("{graph}no other format is estimated to save more than {gain:.0} % of the time");
            chosen(plain, why)
        }
    }
}

/// The share of rows that are not as long as the row before, by a sample; none where rows are long, and their ends few.
fn irregular(matrix: &Csr) -> f64 {
    if matrix.nnz() > SHORT_ROW * matrix.rows() {
        return 0.0;
    }
    const ROWS: usize = 4096;
    let length = |row: usize| matrix.row_range(row).len();
    let sample = || (1..matrix.rows()).step_by((matrix.rows() / ROWS) | 1);
    sample().filter(|&row| length(row) != length(row - 1)).count() as f64 / sample().count().max(1) as f64
}

/// What CSR is multiplied by as it stands. `pull` is for graphs without weights: it shares a row among several sums and
/// counts the ends of rows when it shares them among threads, which pays where rows are not quite short, or x is larger than
/// the second-level cache: on Zen 5 rows of 12.5 entries in the mean take 15.4 us by it and 23.6 by `rows`, of 5.5 9.4 and
/// 10.3, of 3.7 10.2 and 9.9.
fn plain(matrix: &Csr) -> &'static str {
    const SHARED_ROW: usize = 4;
    let shared = matrix.nnz() > SHARED_ROW * matrix.rows();
    let pull = matches!(matrix.values(), Values::Ones) && (shared || matrix.cols() > CACHED_COLUMNS);
    if pull { "pull" } else { "rows" }
}

fn size(bytes: f64) -> String {
    if bytes < 1e6 { format!("{:.1} kB", bytes / 1e3) } else { format!("{:.1} MB", bytes / 1e6) }
}

/// The entries and rows of the fullest chunk over those that a thread should have.
fn largest_share(matrix: &Csr, threads: usize) -> f64 {
    let (rows, height) = (matrix.rows(), chunk_height(matrix.rows()));
    let work =
        |from: usize, to: usize| matrix.row_offsets().get(to) - matrix.row_offsets().get(from) + to - from;
    let fullest = (0..rows).step_by(height).map(|row| work(row, (row + height).min(rows))).max().unwrap_or(0);
    fullest as f64 * threads as f64 / work(0, rows).max(1) as f64
}

/// How far a matrix repeats itself across the diagonal, from a sample of its rows.
struct Symmetry {
    /// Whether every entry that was looked at has its mirror image.
    holds: bool,
    /// The share of entries below the diagonal between whose rows at most so many bytes of values are stored.
    near: f64,
}

/// Looks at rows spread over a square matrix. `bytes` is what a second-level cache holds, `value` the bytes of a value.
fn symmetry(matrix: &Csr, bytes: f64, value: f64) -> Symmetry {
    const ROWS: usize = 256;
    let (rows, offsets) = (matrix.rows(), matrix.row_offsets());
    let (mut near, mut below) = (0_usize, 0_usize);
    for row in (0..rows).step_by((rows / ROWS).max(1)) {
        for (column, entry) in matrix.row(row).filter(|&(column, _)| column < row) {
            let image = matrix.get(column, row);
            if image.map(f64::to_bits) != Some(entry.to_bits()) {
                return Symmetry { holds: false, near: 0.0 };
            }
            // Half of the entries between the rows are stored.
            let between = (offsets.get(row) - offsets.get(column)) as f64 / 2.0 * value;
            (near, below) = (near + usize::from(between <= bytes), below + 1);
        }
    }
    Symmetry { holds: below > 0, near: near as f64 / below.max(1) as f64 }
}
