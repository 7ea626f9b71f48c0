//! The choice of `auto` on a GPU: the strategy with the least expected time on a matrix.
//!
//! - `burst` is for small systems of short rows: many iterations share one launch.
//! - `pull` is for graphs without weights.
//! - `bsr` is for matrices that consist of dense blocks, whose blocks move fewer bytes than any other format.
//! - `hybrid` is for long rows of uneven length.
//! - `sell` (slices) has coalesced loads of packed entries and so moves few bytes, but one thread owns a whole row: it is for
//!   matrices with enough rows to keep a GPU busy and neighbouring rows of about equal length.
//! - `csr` is for all other matrices, including those with rows of all lengths.
//!
//! The choice depends only on the matrix and on how much the GPU can hold.

use super::csr::{CsrFamily, longest_row};
use super::sell;
use crate::backend::auto::Decision;
use crate::backend::{ALL_PRECISIONS, Build, Builder, Choice, Entry};
use crate::error::Result;
use crate::format::blocked::cheapest;
use crate::format::narrow::value_bytes;
use crate::format::stats::Block;
use crate::format::{Csr, Values};

/// The row that describes `auto` before the matrix is known. It is not a strategy, so the registry does not list it.
pub static ENTRY: Entry = Entry {
    name: "auto",
    // The builder of the strategy that `auto` falls back to; a choice is settled before it is built.
    builder: Builder::Cuda(Build::of::<CsrFamily>()),
    family: "auto",
    format: "the format of the chosen backend",
    from: "the lengths of the rows, and how much they differ",
    summary: "the default: burst for small systems of short rows, bsr if blocks move fewer bytes, sell for many rows whose neighbours are about equally long, pull for graphs without weights, hybrid for long uneven rows, csr for all others",
    params: &[],
    deterministic: true,
    columns: false,
    values: true,
    precisions: ALL_PRECISIONS,
};

/// The backends that `auto` chooses from.
pub const CHOICES: &[&str] = &["csr", "pull", "bsr", "sell", "burst", "hybrid"];

/// Rows from which one thread per row is enough if rows are long. On an H200 52,800 rows of 147 entries took 32 us in slices and
/// 25 in CSR, 100,000 rows of 100 entries 47 and 89.
const ROWS: usize = 80_000;
/// Mean row length up to which rows are short: one thread per row is as fast as several, even with few rows.
const SHORT: usize = 16;
/// Length of the longest row up to which iterations share a launch: each row has one thread, and all threads wait for the longest
/// row.
const BURST_ROW: usize = 32;
/// Padding ratio up to which iterations share a launch.
const BURST_PADDED: f64 = 1.5;
/// Mean row length from which rows are long.
const LONG: usize = 128;
/// Long rows are uneven if the longest row has 5 to 16 times the mean length. Windows of entries then keep an H200 busy with
/// shared memory (52,804 rows of 199 entries, the longest of 2,703, took 50 us that way and 42 with `hybrid`). A row of more than
/// 16 times the mean would delay its block in `hybrid`.
const UNEVEN: [usize; 2] = [5, 16];
/// The padding ratio up to which slices are worth it.
const PADDED: f64 = 1.15;
/// Bytes of a column index in slices.
const COLUMN: f64 = 2.0;
/// Blocks are chosen if they take less than this share of the bytes of slices.
const WORTH: f64 = 0.97;

/// Returns the block size for which the matrix takes the fewest bytes, estimated from a sample of the rows, and the ratio of
/// these bytes to those of slices. Returns `None` if the ratio is not below [`WORTH`], or if `bsr` cannot store the matrix.
fn cheapest_blocks(matrix: &Csr) -> Option<(Block, f64)> {
    if matrix.pattern().has_repeats() || matrix.rows().max(matrix.cols()) > super::bsr::MOST {
        return None;
    }
    let value = value_bytes(matrix);
    let (block, bytes) = cheapest(matrix, value)?;
    let sliced = matrix.nnz() as f64 * (value + COLUMN);
    (bytes < WORTH * sliced).then_some((block, bytes / sliced))
}

/// Chooses a backend for a matrix.
pub fn decide(matrix: &Csr, resident_rows: usize) -> Result<Decision> {
    let (rows, entries) = (matrix.rows(), matrix.nnz());
    let longest = || longest_row(matrix);
    let uneven = || (UNEVEN[0] * entries..=UNEVEN[1] * entries).contains(&(longest() * rows));
    let (typed, why) = if matches!(matrix.values(), Values::Ones) {
        ("pull", "a graph without weights".to_owned())
    } else if rows == matrix.cols()
        && rows <= resident_rows
        && longest() <= BURST_ROW
        && sell::padding_ratio(matrix) <= BURST_PADDED
    {
        ("burst", format!("{rows} rows of at most {} entries: many iterations share a launch", longest()))
    } else if let Some((block, share)) = cheapest_blocks(matrix) {
        let [height, width] = block.size;
        let why = format!(
            "blocks are {:.0} % full and take about {:.0} % of the bytes of slices",
            100.0 * block.fill,
            100.0 * share
        );
        let choice = Choice::resolve("cuda", "bsr", &format!("bsr:block={height}x{width}"))?;
        return Ok(Decision { choice, why });
    } else if entries > LONG * rows && uneven() {
        let why = format!("uneven rows: {} entries on average, {} at most", entries / rows.max(1), longest());
        ("hybrid", why)
    } else if rows < ROWS && entries > SHORT * rows {
        ("csr", format!("{rows} long rows are too few for one thread per row"))
    } else {
        let padded = sell::padding_ratio(matrix);
        let why = format!("slices of 32 rows would store {padded:.2} values per entry, padding included");
        (if padded <= PADDED { "sell" } else { "csr" }, why)
    };
    Ok(Decision { choice: Choice::resolve("cuda", typed, typed)?, why })
}
