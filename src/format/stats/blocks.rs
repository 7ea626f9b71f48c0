//! How many blocks of R x C places hold all entries, exactly, for every R and C from 2 to 8 in one pass.
//!
//! For a width C, each block column remembers the last row that touched it. An entry of row i opens a new block of
//! height R where that row lies above the first row of i's block row, i - i mod R: one look answers for all heights.
//! Rows are taken in strips of a common multiple of all heights, so that strips share no block and stay in cache while
//! the widths take turns.
//!
//! # Which is best
//! The block that moves the fewest bytes in a product: 8-byte values, zeros that fill up blocks included, a 4-byte
//! block column each, and the offsets of block rows. Of equals the smaller one, and of these the lower one. It may
//! still move more than CSR, whose bytes stand beside it.

use super::super::Csr;
use crate::parallel::zeros;
use std::ops::Range;

/// Heights and widths that are tried.
pub const SIZES: std::ops::RangeInclusive<usize> = 2..=8;
/// Number of widths.
const WIDTHS: usize = 7;
/// Heights from 1, which costs nothing and fills the vector, to 8.
const HEIGHTS: usize = 8;
/// The least common multiple of all heights.
pub(super) const STRIP: usize = 840;

/// For each row of a strip the first row in its block row, by height from 1.
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

/// Bytes that a counter may take however small the matrix is.
const SMALL: usize = 1 << 26;

/// Numbers of blocks by width from 2 and by height from 1.
pub(super) type Counts = [[u64; HEIGHTS]; WIDTHS];

/// One size of blocks.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Block {
    /// Rows and columns of a block.
    pub size: [usize; 2],
    /// Blocks that hold an entry.
    pub blocks: u64,
    /// Share of their places that are entries.
    pub fill: f64,
    /// Bytes of values in double precision, block columns and offsets.
    pub bytes: u128,
}

/// What blocks would do.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Blocks {
    /// The size that moves the fewest bytes; none for a matrix without entries, or where blocks were not counted.
    pub best: Option<Block>,
    /// Bytes of values in double precision, columns and offsets in CSR.
    pub csr_bytes: u128,
    /// Every size, by height, then by width.
    pub all: Vec<Block>,
}

impl Blocks {
    /// Nothing was counted.
    pub(super) fn unknown(matrix: &Csr) -> Blocks {
        let none = Blocks::from_counts(matrix, &Counts::default());
        Blocks { best: None, all: Vec::new(), ..none }
    }

    /// Compares the sizes.
    pub(super) fn from_counts(matrix: &Csr, counts: &Counts) -> Blocks {
        let (rows, nnz) = (matrix.rows() as u128, matrix.nnz() as u128);
        let offset = matrix.row_offsets().width() as u128;
        let block = |height: usize, width: usize| {
            let blocks = counts[width - SIZES.start()][height - 1];
            let places = (height * width) as u128;
            let bytes = u128::from(blocks) * (8 * places + 4) + offset * (rows.div_ceil(height as u128) + 1);
            let fill = nnz as f64 / (u128::from(blocks) * places).max(1) as f64;
            Block { size: [height, width], blocks, fill, bytes }
        };
        let all: Vec<Block> = SIZES.flat_map(|height| SIZES.map(move |width| block(height, width))).collect();
        let cost = |block: &&Block| (block.bytes, block.size[0] * block.size[1], block.size[0]);
        let best = if nnz > 0 { all.iter().min_by_key(cost).copied() } else { None };
        Blocks { best, csr_bytes: 12 * nnz + offset * (rows + 1), all }
    }

    /// The same from bands of rows spread over the matrix, as if the rest were like them: a fraction of the time of one
    /// product. A cluster that the sample meets by chance does not speak for the whole: bands with far more entries than
    /// others count for themselves alone, and where bands differ, so many more blocks are expected as the sample may be
    /// wrong by. Small matrices are counted in full.
    pub fn sampled(matrix: &Csr) -> Blocks {
        /// Entries that are looked at in any case, and the share of all that may be.
        const ENTRIES: usize = 40_000;
        const SHARE: usize = 64;
        /// Rows of a band: a multiple of all heights but 7.
        const BAND: usize = 120;
        /// Entries of few rows that are all looked at.
        const IN_FULL: usize = 4_000_000;
        /// Fewer would not tell how much they differ.
        const FEWEST_BANDS: usize = 6;
        const MOST_BANDS: usize = 64;
        const FEW: usize = 16;
        /// Times the entries of a band of usual rows.
        const FAR_MORE: f64 = 8.0;
        let (rows, nnz) = (matrix.rows(), matrix.nnz());
        let few_rows = rows <= 2 * FEWEST_BANDS * BAND && nnz <= IN_FULL;
        let budget = if few_rows { nnz } else { ENTRIES.max(nnz / SHARE) };
        // Bands begin where block rows of every height do, or, where there are few such places, of all but 7.
        let step = if nnz <= budget || rows / STRIP >= FEW { STRIP } else { BAND };
        let places = rows.div_ceil(step);
        let (bands, height) = match nnz <= budget {
            true => (places, STRIP),
            false => {
                ((budget / (BAND * (nnz / rows).max(1))).clamp(FEWEST_BANDS, MOST_BANDS).min(places), BAND)
            }
        };
        let Some(mut counter) = Counter::new(matrix) else { return Blocks::unknown(matrix) };
        let mut seen = Vec::with_capacity(bands);
        for band in 0..bands {
            let first = band * places / bands * step;
            let band = first..(first + height).min(rows);
            let entries = matrix.row_offsets().get(band.end) - matrix.row_offsets().get(band.start);
            counter.counts = Counts::default();
            counter.strip(matrix, band);
            seen.push((entries as f64, counter.counts));
        }
        if nnz <= budget {
            let sum = |w: usize, h: usize| seen.iter().map(|(_, counts)| counts[w][h]).sum();
            let counts = std::array::from_fn(|w| std::array::from_fn(|h| sum(w, h)));
            return Blocks::from_counts(matrix, &counts);
        }
        let limit = FAR_MORE * height as f64 * nnz as f64 / rows as f64;
        let (mut alike, mut apart): (Vec<_>, Vec<_>) = seen.into_iter().partition(|band| band.0 <= limit);
        if alike.iter().all(|band| band.0 == 0.0) {
            alike.append(&mut apart);
        }
        let entries = |bands: &[(f64, Counts)]| bands.iter().map(|(entries, _)| entries).sum::<f64>();
        let (sampled, rest) = (entries(&alike), nnz as f64 - entries(&apart));
        if sampled == 0.0 {
            return Blocks::unknown(matrix);
        }
        // The ratio estimator of sampling theory, and its standard error.
        let expected = |w: usize, h: usize| {
            let blocks = |bands: &[(f64, Counts)]| bands.iter().map(|(_, c)| c[w][h] as f64).sum::<f64>();
            let each = blocks(&alike) / sampled;
            let off = |(entries, counts): &(f64, Counts)| (counts[w][h] as f64 - each * entries).powi(2);
            let bands = alike.len() as f64;
            let variance = alike.iter().map(off).sum::<f64>() * bands / (bands - 1.0).max(1.0);
            (blocks(&apart) + rest * (each + variance.sqrt() / sampled).min(1.0)).round() as u64
        };
        let counts = std::array::from_fn(|w| std::array::from_fn(|h| expected(w, h)));
        Blocks::from_counts(matrix, &counts)
    }

    /// The block of this size, where blocks were counted.
    pub fn of_size(&self, size: [usize; 2]) -> Option<&Block> {
        self.all.iter().find(|block| block.size == size)
    }

    /// The share of CSR's bytes that a block saves; negative where it moves more.
    pub fn saving(&self, block: &Block) -> f64 {
        1.0 - block.bytes as f64 / self.csr_bytes as f64
    }
}

/// What a worker needs to count.
pub(super) struct Counter {
    /// For each block column the stamp of the last row that touched it.
    seen: Vec<i32>,
    /// The stamp of the next strip's first row; every row of an earlier turn has a smaller one.
    stamp: i32,
    /// Blocks so far.
    pub counts: Counts,
}

impl Counter {
    /// For this matrix. None where columns by far outweigh the entries, which are then no blocks, or memory.
    pub fn new(matrix: &Csr) -> Option<Counter> {
        let cols = matrix.cols();
        if Counter::bytes(cols) > SMALL.max(matrix.storage_bytes() as usize) {
            return None;
        }
        let seen = zeros(cols.div_ceil(*SIZES.start())).ok()?;
        Some(Counter { seen, stamp: 1, counts: [[0; HEIGHTS]; WIDTHS] })
    }

    /// Bytes that a counter takes.
    pub fn bytes(cols: usize) -> usize {
        cols.div_ceil(*SIZES.start()) * size_of::<i32>()
    }

    /// Counts the blocks of at most [`STRIP`] rows, the first of which begins a block row of every height.
    pub fn strip(&mut self, matrix: &Csr, rows: Range<usize>) {
        self.width::<2>(matrix, rows.clone());
        self.width::<3>(matrix, rows.clone());
        self.width::<4>(matrix, rows.clone());
        self.width::<5>(matrix, rows.clone());
        self.width::<6>(matrix, rows.clone());
        self.width::<7>(matrix, rows.clone());
        self.width::<8>(matrix, rows);
    }

    fn width<const WIDTH: u32>(&mut self, matrix: &Csr, rows: Range<usize>) {
        if self.stamp > i32::MAX - STRIP as i32 {
            self.seen.fill(0);
            self.stamp = 1;
        }
        let counts = &mut self.counts[WIDTH as usize - SIZES.start()];
        for (i, row) in rows.enumerate() {
            let (stamp, first) = (self.stamp + i as i32, &FIRST[i]);
            // A row has fewer than 2^32 entries, as it has columns.
            let mut opened = [0u32; HEIGHTS];
            let mut before = u32::MAX;
            for &col in &matrix.col_indices()[matrix.row_range(row)] {
                let block = col / WIDTH;
                if block == before {
                    continue;
                }
                before = block;
                let last = std::mem::replace(&mut self.seen[block as usize], stamp);
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
