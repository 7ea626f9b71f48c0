//! The exact number of R x C blocks that contain entries, for every R and C from 2 to 8 in one pass.
//!
//! For a width C, each block column stores the last row with an entry in it. An entry of row i begins a new
//! block of height R if that row is above the first row of i's block row, i - i mod R: one lookup serves all
//! heights. Rows are processed in strips of a common multiple of all heights, so that strips share no block
//! and stay in cache for all widths.
//!
//! # Best block
//! The best block moves the fewest bytes in a product: 8-byte values, including zeros that fill blocks, a
//! 4-byte block column per block, and the offsets of block rows. Among equals the smaller block is
//! preferred, and among these the one with fewer rows. The best block may still move more bytes than CSR,
//! which are reported with it.

use super::super::Csr;
use crate::parallel::{run_all, threads_for, zeros};
use std::ops::Range;

/// Heights and widths of the counted blocks.
pub(crate) const SIZES: std::ops::RangeInclusive<usize> = 2..=8;
/// Number of widths.
const WIDTHS: usize = 7;
/// Number of heights, 1 to 8. Height 1 fills the SIMD vector at no cost.
const HEIGHTS: usize = 8;
/// The least common multiple of all heights.
pub(super) const STRIP: usize = 840;

/// The first row of the block row of each row of a strip, by height from 1.
static FIRST: [[i32; HEIGHTS]; STRIP] = {
    let mut first = [[0; HEIGHTS]; STRIP];
    let mut i = 0;
    while i < STRIP * HEIGHTS {
        let (row, height) = (i / HEIGHTS, i % HEIGHTS + 1);
        first[row][height - 1] = (row - row % height) as i32;
        i += 1;
    }
    first
};

/// Bytes that a counter may always take, even for a small matrix.
const SMALL: usize = 1 << 26;

/// The number of blocks by width from 2 and by height from 1.
pub(super) type Counts = [[u64; HEIGHTS]; WIDTHS];

/// Statistics of one block size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Block {
    /// Rows and columns of a block.
    pub size: [usize; 2],
    /// Number of blocks that contain an entry.
    pub blocks: u64,
    /// Entries as a share of the elements of all blocks.
    pub fill: f64,
    /// Bytes of values in double precision, block columns and offsets.
    pub bytes: u128,
}

/// Statistics of all block sizes.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Blocks {
    /// The size that moves the fewest bytes; none if the matrix has no entries or blocks were not counted.
    pub best: Option<Block>,
    /// Bytes of CSR: values in double precision, column indices and offsets.
    pub csr_bytes: u128,
    /// Every size, by height, then by width; empty if blocks were not counted.
    pub all: Vec<Block>,
}

impl Blocks {
    /// Returns the size of the square blocks that move the fewest bytes; none if single entries move fewer.
    pub(crate) fn square(&self) -> Option<usize> {
        let fewer = |b: &&Block| b.size[0] == b.size[1] && b.bytes < self.csr_bytes;
        self.all.iter().filter(fewer).min_by_key(|b| b.bytes).map(|b| b.size[0])
    }

    /// Returns the value for blocks that were not counted.
    pub(super) fn unknown(matrix: &Csr) -> Blocks {
        let none = Blocks::from_counts(matrix, &Counts::default());
        Blocks { best: None, all: Vec::new(), ..none }
    }

    /// Computes the statistics of every size from the counts, and the best size.
    pub(super) fn from_counts(matrix: &Csr, counts: &Counts) -> Blocks {
        let (rows, nnz) = (matrix.rows() as u128, matrix.nnz() as u128);
        let offset = matrix.row_offsets().width() as u128;
        let block = |height: usize, width: usize| {
            let blocks = counts[width - SIZES.start()][height - 1];
            let elements = (height * width) as u128;
            let bytes =
                u128::from(blocks) * (8 * elements + 4) + offset * (rows.div_ceil(height as u128) + 1);
            let fill = nnz as f64 / (u128::from(blocks) * elements).max(1) as f64;
            Block { size: [height, width], blocks, fill, bytes }
        };
        let all: Vec<Block> = SIZES.flat_map(|height| SIZES.map(move |width| block(height, width))).collect();
        let cost = |block: &&Block| (block.bytes, block.size[0] * block.size[1], block.size[0]);
        let best = if nnz > 0 { all.iter().min_by_key(cost).copied() } else { None };
        Blocks { best, csr_bytes: 12 * nnz + offset * (rows + 1), all }
    }

    /// Estimates the statistics from bands of rows spread over the matrix, in a fraction of the time of one
    /// product. Bands with far more entries than the average are not extrapolated, as they may be clusters
    /// that the sample met by chance. The standard error of the sample is added to the estimated number of
    /// blocks. Small matrices are counted in full.
    pub(crate) fn sampled(matrix: &Csr) -> Blocks {
        /// Entries of the sample: at least `ENTRIES`, or a `SHARE`-th of all entries if that is more.
        const ENTRIES: usize = 40_000;
        const SHARE: usize = 64;
        /// Rows of a band: a multiple of all heights except 7.
        const BAND: usize = 120;
        /// Largest number of entries that are counted in full if the matrix has few rows.
        const IN_FULL: usize = 4_000_000;
        /// Fewest bands that give a useful standard error.
        const FEWEST_BANDS: usize = 6;
        const MOST_BANDS: usize = 64;
        const FEW: usize = 16;
        /// Bands with more than this multiple of the average entries are not extrapolated.
        const FAR_MORE: f64 = 8.0;
        let (rows, nnz) = (matrix.rows(), matrix.nnz());
        let few_rows = rows <= 2 * FEWEST_BANDS * BAND && nnz <= IN_FULL;
        let budget = if few_rows { nnz } else { ENTRIES.max(nnz / SHARE) };
        // Bands begin at multiples of every height, or, if the matrix has few such rows, of
        // every height except 7.
        let step = if nnz <= budget || rows / STRIP >= FEW { STRIP } else { BAND };
        let steps = rows.div_ceil(step);
        let (bands, height) = match nnz <= budget {
            true => (steps, STRIP),
            false => {
                ((budget / (BAND * (nnz / rows).max(1))).clamp(FEWEST_BANDS, MOST_BANDS).min(steps), BAND)
            }
        };
        let bands: Vec<Range<usize>> = (0..bands)
            .map(|band| band * steps / bands * step)
            .map(|first| first..(first + height).min(rows))
            .collect();
        let Some(counts) = count_bands(matrix, &bands) else { return Blocks::unknown(matrix) };
        let entries =
            |band: &Range<usize>| matrix.row_offsets().get(band.end) - matrix.row_offsets().get(band.start);
        let sample: Vec<_> = bands.iter().map(|band| entries(band) as f64).zip(counts).collect();
        if nnz <= budget {
            let sum = |w: usize, h: usize| sample.iter().map(|(_, counts)| counts[w][h]).sum();
            let counts = std::array::from_fn(|w| std::array::from_fn(|h| sum(w, h)));
            return Blocks::from_counts(matrix, &counts);
        }
        let limit = FAR_MORE * height as f64 * nnz as f64 / rows as f64;
        let (mut typical, mut dense): (Vec<_>, Vec<_>) = sample.into_iter().partition(|band| band.0 <= limit);
        if typical.iter().all(|band| band.0 == 0.0) {
            typical.append(&mut dense);
        }
        let entries = |bands: &[(f64, Counts)]| bands.iter().map(|(entries, _)| entries).sum::<f64>();
        let (sampled, rest) = (entries(&typical), nnz as f64 - entries(&dense));
        if sampled == 0.0 {
            return Blocks::unknown(matrix);
        }
        // The ratio estimator of sampling theory, and its standard error.
        let expected = |w: usize, h: usize| {
            let blocks = |bands: &[(f64, Counts)]| bands.iter().map(|(_, c)| c[w][h] as f64).sum::<f64>();
            let per_entry = blocks(&typical) / sampled;
            let squared_error =
                |(entries, counts): &(f64, Counts)| (counts[w][h] as f64 - per_entry * entries).powi(2);
            let bands = typical.len() as f64;
            let variance = typical.iter().map(squared_error).sum::<f64>() * bands / (bands - 1.0).max(1.0);
            (blocks(&dense) + rest * (per_entry + variance.sqrt() / sampled).min(1.0)).round() as u64
        };
        let counts = std::array::from_fn(|w| std::array::from_fn(|h| expected(w, h)));
        Blocks::from_counts(matrix, &counts)
    }

    /// Returns the block of this size, if blocks were counted.
    pub(crate) fn of_size(&self, size: [usize; 2]) -> Option<&Block> {
        self.all.iter().find(|block| block.size == size)
    }

    /// Returns the share of CSR's bytes that a block saves; negative if it moves more.
    pub(crate) fn saving(&self, block: &Block) -> f64 {
        1.0 - block.bytes as f64 / self.csr_bytes as f64
    }
}

/// Entries that one thread counts in less time than starting others takes.
const FEW_ENTRIES: usize = 100_000;

/// Counts the blocks of each band. Threads count different widths. Returns none if the counters
/// would take too much memory.
fn count_bands(matrix: &Csr, bands: &[Range<usize>]) -> Option<Vec<Counts>> {
    let offset = |row| matrix.row_offsets().get(row);
    let entries: usize = bands.iter().map(|band| offset(band.end) - offset(band.start)).sum();
    let threads = if entries < FEW_ENTRIES { 1 } else { threads_for(entries * 4).min(WIDTHS) };
    let fits = Counter::bytes(matrix.cols()) * threads <= Counter::most_bytes(matrix);
    let parts = if fits { threads } else { 1 };
    let counted = run_all((0..parts).collect(), |part| {
        let mut counter = Counter::new(matrix)?;
        let count = |band: &Range<usize>| {
            counter.counts = Counts::default();
            counter.strip_of(matrix, band.clone(), |width| width % parts == part);
            counter.counts
        };
        Some(bands.iter().map(count).collect::<Vec<Counts>>())
    });
    let mut counted = counted.into_iter();
    let mut all = counted.next()??;
    for part in counted {
        for (all, part) in all.iter_mut().flatten().flatten().zip(part?.iter().flatten().flatten()) {
            *all += part;
        }
    }
    Some(all)
}

/// The state of one worker that counts blocks.
pub(super) struct Counter {
    /// The stamp of the last row with an entry in each block column.
    last_rows: Vec<i32>,
    /// The stamp of the next strip's first row. Rows of earlier strips and widths have smaller stamps.
    stamp: i32,
    /// The number of blocks counted.
    pub counts: Counts,
}

impl Counter {
    /// Creates a counter for this matrix. Returns none if the counter would take more memory than the matrix,
    /// which then has too few entries per column to form blocks, or if memory does not suffice.
    pub(crate) fn new(matrix: &Csr) -> Option<Counter> {
        let cols = matrix.cols();
        if Counter::bytes(cols) > Counter::most_bytes(matrix) {
            return None;
        }
        let last_rows = zeros(cols.div_ceil(*SIZES.start())).ok()?;
        Some(Counter { last_rows, stamp: 1, counts: [[0; HEIGHTS]; WIDTHS] })
    }

    /// Returns the bytes of a counter.
    pub(crate) fn bytes(cols: usize) -> usize {
        cols.div_ceil(*SIZES.start()) * size_of::<i32>()
    }

    /// Returns the most bytes that counters may take for this matrix.
    fn most_bytes(matrix: &Csr) -> usize {
        SMALL.max(matrix.storage_bytes() as usize)
    }

    /// Counts the blocks of at most [`STRIP`] rows. The first row must be a multiple of every height.
    pub(crate) fn strip(&mut self, matrix: &Csr, rows: Range<usize>) {
        self.strip_of(matrix, rows, |_| true);
    }

    /// Counts the blocks of these rows with the widths that are `wanted`.
    fn strip_of(&mut self, matrix: &Csr, rows: Range<usize>, wanted: impl Fn(usize) -> bool) {
        for width in SIZES.filter(|&width| wanted(width)) {
            let count = match width {
                2 => Counter::width::<2>,
                3 => Counter::width::<3>,
                4 => Counter::width::<4>,
                5 => Counter::width::<5>,
                6 => Counter::width::<6>,
                7 => Counter::width::<7>,
                _ => Counter::width::<8>,
            };
            count(self, matrix, rows.clone());
        }
    }

    fn width<const WIDTH: u32>(&mut self, matrix: &Csr, rows: Range<usize>) {
        if self.stamp > i32::MAX - STRIP as i32 {
            self.last_rows.fill(0);
            self.stamp = 1;
        }
        let counts = &mut self.counts[WIDTH as usize - SIZES.start()];
        for (i, row) in rows.enumerate() {
            let (stamp, first) = (self.stamp + i as i32, &FIRST[i]);
            // A row has fewer than 2^32 entries, as it has fewer than 2^32 columns.
            let mut opened = [0u32; HEIGHTS];
            let mut before = u32::MAX;
            for &col in &matrix.col_indices()[matrix.row_range(row)] {
                let block = col / WIDTH;
                if block == before {
                    continue;
                }
                before = block;
                let last = std::mem::replace(&mut self.last_rows[block as usize], stamp);
                let last = last - self.stamp;
                for (opened, &first) in opened.iter_mut().zip(first) {
                    *opened += u32::from(last < first);
                }
            }
            for (count, opened) in counts.iter_mut().zip(opened) {
                *count += u64::from(opened);
            }
        }
        self.stamp += STRIP as i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn threads_count_the_blocks_that_one_counter_counts() {
        for what in ["rmat:scale=13,edges=200000", "elasticity3d:9x9x9", "poisson2d:1x1"] {
            let matrix = load(what).unwrap().matrix;
            let bands: Vec<Range<usize>> =
                (0..matrix.rows()).step_by(STRIP).map(|row| row..(row + STRIP).min(matrix.rows())).collect();
            let mut counter = Counter::new(&matrix).unwrap();
            let expected: Vec<Counts> = bands
                .iter()
                .map(|band| {
                    counter.counts = Counts::default();
                    counter.strip(&matrix, band.clone());
                    counter.counts
                })
                .collect();
            assert_eq!(count_bands(&matrix, &bands), Some(expected), "{what}");
        }
    }
}
