//! What `auto` stands for on a GPU: the strategy that is expected to take the least time on a matrix.
//!
//! Slices are read side by side and packed, so that they move the fewest bytes, but a thread has a whole row to itself: they
//! are taken where there are rows enough to keep a GPU busy, and neighbours are about equally long. Small systems of short
//! rows are iterated in one launch, matrices that consist of blocks go by those, which move fewer bytes still, long uneven
//! rows are for `hybrid`, graphs without weights for `pull`, and everything else, rows of all lengths among it, for `csr`.
//! Everything follows from the matrix, and from how much the GPU can hold.

use super::csr::{CsrFamily, longest_row};
use super::sell;
use crate::backend::auto::Decision;
use crate::backend::{ALL_PRECISIONS, Build, Builder, Choice, Entry};
use crate::error::Result;
use crate::format::blocked::cheapest;
use crate::format::narrow::value_bytes;
use crate::format::stats::Block;
use crate::format::{Csr, Values};

/// The row that `auto` stands for before the matrix is known. It is no strategy, so the registry does not list it.
pub static ENTRY: Entry = Entry {
    name: "auto",
    // Of the strategy that it falls back to; a choice is settled before it is built.
    builder: Builder::Cuda(Build::of::<CsrFamily>()),
    family: "auto",
    format: "the chosen one's",
    from: "rows, and how much their lengths differ",
    summary: "burst for small systems of short rows, bsr where blocks move fewer bytes, sell where many neighbours are about equally long, pull for graphs without weights, hybrid for long uneven rows, csr for all others",
    params: &[],
    deterministic: true,
    columns: false,
    values: true,
    precisions: ALL_PRECISIONS,
};

/// The backends that it chooses from.
pub const CHOICES: &[&str] = &["csr", "pull", "bsr", "sell", "burst", "hybrid"];

/// Rows from which a thread each is enough, where they are long. On an H200 52,800 rows of 147 entries took 32 us in slices
/// and 25 in CSR, 100,000 rows of 100 entries 47 and 89.
const ROWS: usize = 80_000;
/// Entries of a mean row up to which it is short: a thread is as good as several, however few rows there are.
const SHORT: usize = 16;
/// Entries of the longest row up to which iterations share a launch, and places for each entry: a thread takes a row, and all
/// wait for it.
const BURST_ROW: usize = 32;
const BURST_PADDED: f64 = 1.5;
/// Entries of a mean row from which it is long, and how many mean rows the longest has where long rows are uneven: windows of
/// entries then keep an H200 busy with shared memory (52,804 rows of 199 entries, the longest of 2,703, took 50 us so and 42 by
/// `hybrid`), and a row much longer than that would hold up its block.
const LONG: usize = 128;
const UNEVEN: [usize; 2] = [5, 16];
/// Places for each entry up to which slices pay.
const PADDED: f64 = 1.15;
/// Bytes of a column index where slices or narrow columns serve a matrix best, and the share of their bytes below which blocks
/// are taken.
const COLUMN: f64 = 2.0;
const WORTH: f64 = 0.97;

/// The blocks that move the fewest bytes, and these, if they are fewer than any other format's.
fn blocks(matrix: &Csr) -> Option<(Block, f64)> {
    if matrix.pattern().has_repeats() || matrix.rows().max(matrix.cols()) > super::bsr::MOST {
        return None;
    }
    let value = value_bytes(matrix);
    let (block, bytes) = cheapest(matrix, value)?;
    let others = matrix.nnz() as f64 * (value + COLUMN);
    (bytes < WORTH * others).then_some((block, bytes / others))
}

/// Chooses for a matrix.
pub fn decide(matrix: &Csr, resident_rows: usize) -> Result<Decision> {
    let (rows, entries) = (matrix.rows(), matrix.nnz());
    let longest = || longest_row(matrix);
    let uneven = || (UNEVEN[0] * entries..=UNEVEN[1] * entries).contains(&(longest() * rows));
    let (typed, why) = if matches!(matrix.values(), Values::Ones) {
        ("pull", "a graph without weights".to_owned())
    } else if rows == matrix.cols()
        && rows <= resident_rows
        && longest() <= BURST_ROW
        && sell::places_for_each_entry(matrix) <= BURST_PADDED
    {
        ("burst", format!("{rows} rows of at most {} entries: iterations share a launch", longest()))
    } else if let Some((block, share)) = blocks(matrix) {
        let [height, width] = block.size;
        let why = format!(
            "blocks {:.0} % full, about {:.0} % of the bytes of slices",
            100.0 * block.fill,
            100.0 * share
        );
        let choice = Choice::resolve("cuda", "bsr", &format!("bsr:block={height}x{width}"))?;
        return Ok(Decision { choice, why });
    } else if entries > LONG * rows && uneven() {
        let why = format!("rows of {} entries in the mean, of {} at most", entries / rows.max(1), longest());
        ("hybrid", why)
    } else if rows < ROWS && entries > SHORT * rows {
        ("csr", format!("{rows} rows are too few for a thread each, as long as they are"))
    } else {
        let padded = sell::places_for_each_entry(matrix);
        let why = format!("slices of 32 rows would have {padded:.2} places for each of {entries} entries");
        (if padded <= PADDED { "sell" } else { "csr" }, why)
    };
    Ok(Decision { choice: Choice::resolve("cuda", typed, typed)?, why })
}
