//! The packed storage of slices, estimated from a sample of the rows.

use super::super::locality::Lines;
use super::pack::{WINDOW, near, runs, storage_order};
use super::{LANES, ROUNDS, SHORT};
use crate::format::Csr;

/// Windows of rows that are sampled, and slices of each whose columns are read.
const WINDOWS: usize = 12;
const SLICES: usize = 6;
/// Entries of a slice's rows whose columns are compared among lanes.
const DEPTH: usize = 12;

/// The storage of a matrix in slices.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::backend::cuda) struct Sample {
    /// Stored values, padding included.
    pub padded: f64,
    /// Bytes of column words and slice headers.
    pub words: f64,
    /// Rounds of loads of all warps together.
    pub rounds: f64,
    /// The mean number of cache lines of x that an entry of a warp's load needs.
    pub lines: f64,
    /// The bytes of x between the first and the last column of a slice, on average.
    pub reach: f64,
}

/// Returns the rounds of loads for a slice of this width.
pub(in crate::backend::cuda) fn rounds_of(width: usize, mean: usize) -> f64 {
    let [short, long] = ROUNDS.map(|round| (round.unroll as usize, round.rest as usize));
    let (unroll, rest) = if mean <= SHORT { short } else { long };
    (width / unroll + (width % unroll).div_ceil(rest)) as f64
}

/// Samples windows of rows spread over the matrix, for elements of x of `width` bytes. All windows
/// are read if there are few.
pub(in crate::backend::cuda) fn sampled(matrix: &Csr, width: usize) -> Sample {
    let rows = matrix.rows();
    let mean = super::mean_row(matrix);
    let all = rows.div_ceil(WINDOW);
    let count = all.min(WINDOWS);
    let mut sum = Sample::default();
    let (mut sampled_rows, mut inspected, mut column_bytes) = (0, 0.0, 0.0);
    for window in 0..count {
        let first = window * all / count * WINDOW;
        let range = first..(first + WINDOW).min(rows);
        sampled_rows += range.len();
        let order = storage_order(range.clone(), |row| matrix.row_range(row).len());
        let slices = order.len().div_ceil(LANES);
        let step = slices.div_ceil(SLICES).max(1);
        for (number, lanes) in order.chunks(LANES).enumerate() {
            let widest = lanes.iter().map(|&row| matrix.row_range(row).len()).max().unwrap_or(0);
            sum.padded += (widest * LANES) as f64;
            sum.rounds += rounds_of(widest, mean);
            // The header, and the lengths and numbers of rows if they are stored.
            sum.words += 16.0;
            if number % step == 0 && widest > 0 {
                let slice = Slice { matrix, lanes, first: range.start + number * LANES, widest };
                column_bytes += slice.bytes_of_columns() / widest as f64;
                let (lines, reach) = slice.lines(width);
                sum.lines += lines;
                sum.reach += reach;
                inspected += 1.0;
            }
        }
    }
    let scale = rows as f64 / sampled_rows.max(1) as f64;
    let each = if inspected > 0.0 { 1.0 / inspected } else { 0.0 };
    let columns = column_bytes * each * sum.padded / LANES as f64;
    Sample {
        padded: sum.padded * scale,
        words: (sum.words + columns) * scale,
        rounds: sum.rounds * scale,
        lines: sum.lines * each,
        reach: sum.reach * each,
    }
}

/// A slice whose columns are read.
struct Slice<'a> {
    matrix: &'a Csr,
    lanes: &'a [usize],
    first: usize,
    widest: usize,
}

impl Slice<'_> {
    /// Returns the bytes of the words of this slice.
    fn bytes_of_columns(&self) -> f64 {
        let Slice { matrix, lanes, first, widest } = *self;
        let columns: [&[u32]; LANES] =
            std::array::from_fn(|lane| lanes.get(lane).map_or(&[][..], |&row| matrix.row_columns(row)));
        let sorted = lanes.iter().enumerate().any(|(lane, &row)| row != first + lane);
        let ragged = columns.iter().any(|columns| columns.len() != widest);
        let ahead = [sorted, ragged].into_iter().filter(|holds| *holds).count() * LANES;
        let words = match runs(&columns, widest) {
            true => widest,
            false if near(&columns) => widest * LANES / 2,
            false => widest * LANES,
        };
        4.0 * (ahead + words) as f64
    }

    /// Returns the cache lines of x for each entry, and the bytes of x between the first and the last column.
    fn lines(&self, width: usize) -> (f64, f64) {
        let mut lines = Lines::new(width);
        let step = self.widest.div_ceil(DEPTH).max(1);
        for j in (0..self.widest).step_by(step) {
            let columns = self.lanes.iter().filter_map(|&row| self.matrix.row_columns(row).get(j));
            lines.load(columns.copied());
        }
        let ends = |pick: fn(&[u32]) -> Option<&u32>| {
            self.lanes.iter().filter_map(move |&row| pick(self.matrix.row_columns(row)))
        };
        let low = ends(|columns| columns.first()).min().copied().unwrap_or(0);
        let high = ends(|columns| columns.last()).max().copied().unwrap_or(0);
        (lines.for_each_entry(), f64::from(high - low + 1) * width as f64)
    }
}
