//! The pass over rows: each worker accumulates statistics over its rows, and the parts of the
//! workers are combined.

use super::super::{Csr, Values};
use super::blocks::{Counter, Counts, STRIP};
use super::components::Parents;
use super::distinct::{Distinct, MOST_DISTINCT};
use super::{Bandwidth, Diagonal, LengthBin, RowLength, RowSums, ValueStats};
use crate::parallel::{run_all, threads_for};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Fewest entries of a piece of work.
const PIECE: usize = 1 << 16;

/// The longest row; the first of several equally long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Longest {
    pub length: usize,
    pub row: usize,
}

/// The statistics of a part of the rows.
pub(super) struct Part {
    shortest: usize,
    pub longest: Option<Longest>,
    squares: u128,
    /// Rows by the number of binary digits of their length.
    by_digits: [usize; 65],
    pub empty: usize,
    pub first_empty: Option<usize>,
    pub sums: Option<RowSums>,
    values: ValueStats,
    distinct: Distinct,
    pub diagonal: Diagonal,
    pub bandwidth: Bandwidth,
    /// None if blocks were not counted.
    pub blocks: Option<Counts>,
}

/// Computes the statistics of all rows, and unites connected rows in `parents`, which has a node for
/// each row of a square matrix.
pub(super) fn describe(matrix: &Csr, parents: Option<&Parents>) -> Part {
    let (rows, nnz) = (matrix.rows(), matrix.nnz());
    let strips = rows.div_ceil(STRIP);
    let at_once = (PIECE * strips / nnz.max(1)).clamp(1, 64);
    // Together, the counters of the blocks take no more memory than the matrix.
    let most = (matrix.storage_bytes() as usize / Counter::bytes(matrix.cols()).max(1)).max(1);
    let workers = threads_for(4 * nnz + 4 * rows).min(most);
    let counters = (0..workers).map(|_| Counter::new(matrix)).collect();
    let next = AtomicUsize::new(0);
    let work = |mut counter: Option<Counter>| {
        let mut part = Part::none();
        loop {
            let first = next.fetch_add(at_once, Relaxed);
            if first >= strips {
                break;
            }
            for strip in first..(first + at_once).min(strips) {
                let rows = strip * STRIP..((strip + 1) * STRIP).min(rows);
                part.add_rows(matrix, rows.clone(), parents);
                if let Some(counter) = &mut counter {
                    counter.strip(matrix, rows);
                }
            }
        }
        part.blocks = counter.map(|counter| counter.counts);
        part
    };
    run_all(counters, work).into_iter().reduce(Part::join).unwrap_or_else(Part::none)
}

impl Part {
    fn none() -> Part {
        Part {
            shortest: usize::MAX,
            longest: None,
            squares: 0,
            by_digits: [0; 65],
            empty: 0,
            first_empty: None,
            sums: None,
            values: ValueStats { min: f64::INFINITY, max: f64::NEG_INFINITY, ..ValueStats::default() },
            distinct: Distinct::new(),
            diagonal: Diagonal::default(),
            bandwidth: Bandwidth::default(),
            blocks: None,
        }
    }

    fn add_rows(&mut self, matrix: &Csr, rows: Range<usize>, parents: Option<&Parents>) {
        let square = matrix.rows() == matrix.cols();
        for row in rows {
            let range = matrix.row_range(row);
            let columns = &matrix.col_indices()[range.clone()];
            self.add_length(row, columns.len());
            if let Some(parents) = parents {
                // The rows of a square matrix fit 32 bits, as its columns do.
                parents.join(row as u32, columns);
            }
            if square {
                self.add_band(row, columns);
            }
            let diagonal = if square { Some(columns.binary_search(&(row as u32))) } else { None };
            match matrix.values() {
                Values::Ones => self.add_values(row, columns.len(), |_| 1.0, diagonal),
                Values::F32(values) => {
                    let values = &values[range];
                    self.add_values(row, values.len(), |j| f64::from(values[j]), diagonal);
                }
                Values::F64(values) => {
                    let values = &values[range];
                    self.add_values(row, values.len(), |j| values[j], diagonal);
                }
            }
        }
    }

    fn add_length(&mut self, row: usize, length: usize) {
        self.shortest = self.shortest.min(length);
        if length > self.longest.map_or(0, |longest| longest.length) {
            self.longest = Some(Longest { length, row });
        }
        self.squares += (length as u128) * (length as u128);
        self.by_digits[(usize::BITS - length.leading_zeros()) as usize] += 1;
        if length == 0 {
            self.empty += 1;
            self.first_empty = self.first_empty.or(Some(row));
        }
    }

    fn add_band(&mut self, row: usize, columns: &[u32]) {
        if let (Some(&first), Some(&last)) = (columns.first(), columns.last()) {
            let below = row.saturating_sub(first as usize);
            self.bandwidth.lower = self.bandwidth.lower.max(below);
            self.bandwidth.upper = self.bandwidth.upper.max((last as usize).saturating_sub(row));
            self.bandwidth.profile += below as u64;
        }
    }

    /// Adds a row to the statistics of values, row sums and the diagonal. `value(j)` is the value of entry j
    /// of the row. `diagonal` is the result of a binary search for column `row` in the row's columns; none if
    /// the matrix is not square.
    fn add_values(
        &mut self,
        row: usize,
        length: usize,
        value: impl Fn(usize) -> f64,
        diagonal: Option<Result<usize, usize>>,
    ) {
        let (mut sum, mut off_diagonal) = (0.0, 0.0);
        let split = diagonal.unwrap_or(Err(length)).unwrap_or_else(|insertion| insertion);
        let stored = diagonal.and_then(Result::ok).map(&value);
        for j in 0..split {
            sum += self.add_value(value(j));
            off_diagonal += value(j).abs();
        }
        if let Some(stored) = stored {
            sum += self.add_value(stored);
        }
        for j in split + usize::from(stored.is_some())..length {
            sum += self.add_value(value(j));
            off_diagonal += value(j).abs();
        }
        if length > 0 {
            let all = off_diagonal + stored.unwrap_or(0.0).abs();
            let largest_share = if all > 0.0 { sum.abs() / all } else { 0.0 };
            self.add_sums(RowSums { min: sum, max: sum, largest_share });
        }
        if diagonal.is_some() {
            self.add_diagonal(row, stored, off_diagonal);
        }
    }

    #[inline]
    fn add_value(&mut self, value: f64) -> f64 {
        self.distinct.insert(value);
        let v = &mut self.values;
        v.min = v.min.min(value);
        v.max = v.max.max(value);
        v.negative += usize::from(value < 0.0);
        v.zero += usize::from(value == 0.0);
        v.not_finite += usize::from(!value.is_finite());
        v.beyond_f32 += usize::from(f64::from(value as f32) != value);
        value
    }

    fn add_sums(&mut self, row: RowSums) {
        self.sums = Some(self.sums.map_or(row, |sums| RowSums {
            min: sums.min.min(row.min),
            max: sums.max.max(row.max),
            largest_share: sums.largest_share.max(row.largest_share),
        }));
    }

    fn add_diagonal(&mut self, row: usize, stored: Option<f64>, off_diagonal: f64) {
        let d = &mut self.diagonal;
        let value = stored.unwrap_or(0.0);
        d.missing += usize::from(stored.is_none());
        d.zero += usize::from(stored == Some(0.0));
        d.negative += usize::from(value < 0.0);
        d.positive += usize::from(value > 0.0);
        d.dominant_rows += usize::from(value.abs() >= off_diagonal);
        d.strictly_dominant_rows += usize::from(value.abs() > off_diagonal);
        if value <= 0.0 || value.is_nan() {
            d.first_not_positive = earlier(d.first_not_positive, Some(row));
        }
    }

    fn join(mut self, other: Part) -> Part {
        self.shortest = self.shortest.min(other.shortest);
        self.longest = match (self.longest, other.longest) {
            (Some(a), Some(b)) if b.length > a.length || (b.length == a.length && b.row < a.row) => Some(b),
            (a, b) => a.or(b),
        };
        self.squares += other.squares;
        self.by_digits.iter_mut().zip(other.by_digits).for_each(|(a, b)| *a += b);
        self.empty += other.empty;
        self.first_empty = earlier(self.first_empty, other.first_empty);
        if let Some(sums) = other.sums {
            self.add_sums(sums);
        }
        let (v, w) = (&mut self.values, other.values);
        v.min = v.min.min(w.min);
        v.max = v.max.max(w.max);
        v.negative += w.negative;
        v.zero += w.zero;
        v.not_finite += w.not_finite;
        v.beyond_f32 += w.beyond_f32;
        self.distinct = self.distinct.join(other.distinct);
        let (d, e) = (&mut self.diagonal, other.diagonal);
        d.missing += e.missing;
        d.zero += e.zero;
        d.negative += e.negative;
        d.positive += e.positive;
        d.dominant_rows += e.dominant_rows;
        d.strictly_dominant_rows += e.strictly_dominant_rows;
        d.first_not_positive = earlier(d.first_not_positive, e.first_not_positive);
        self.bandwidth.lower = self.bandwidth.lower.max(other.bandwidth.lower);
        self.bandwidth.upper = self.bandwidth.upper.max(other.bandwidth.upper);
        self.bandwidth.profile += other.bandwidth.profile;
        // If one worker lacked the memory to count, the total is unknown.
        self.blocks = self.blocks.zip(other.blocks).map(|(mut blocks, more)| {
            for (a, b) in blocks.iter_mut().flatten().zip(more.iter().flatten()) {
                *a += b;
            }
            blocks
        });
        self
    }

    /// Returns the statistics of the values.
    pub(crate) fn values(&self, nnz: usize) -> ValueStats {
        let distinct = self.distinct.count();
        let all = ValueStats {
            distinct,
            distinct_is_exact: distinct < MOST_DISTINCT,
            // Adding 0 turns -0 into 0; without it, the sign of a zero extreme would depend on
            // the order of the workers.
            min: self.values.min + 0.0,
            max: self.values.max + 0.0,
            ..self.values
        };
        if nnz == 0 { ValueStats { min: 0.0, max: 0.0, ..all } } else { all }
    }

    /// Returns the statistics of the row lengths. The sums are integers, so that only the last
    /// operations round.
    pub(crate) fn row_length(&self, rows: usize, nnz: usize) -> RowLength {
        if rows == 0 {
            return RowLength::default();
        }
        let variance = (rows as u128 * self.squares - nnz as u128 * nnz as u128) as f64;
        RowLength {
            min: self.shortest,
            mean: nnz as f64 / rows as f64,
            max: self.longest.map_or(0, |longest| longest.length),
            deviation: variance.sqrt() / rows as f64,
        }
    }

    /// Returns the histogram of the row lengths by powers of two, up to the longest.
    pub(crate) fn histogram(&self) -> Vec<LengthBin> {
        let bins = self.by_digits.iter().rposition(|&rows| rows > 0).map_or(0, |last| last + 1);
        let bin = |digits: usize| {
            let (from, to) = match digits {
                0 => (0, 0),
                _ => (1 << (digits - 1), (1usize << (digits - 1)) - 1 + (1 << (digits - 1))),
            };
            LengthBin { from, to, rows: self.by_digits[digits] }
        };
        (0..bins).map(bin).collect()
    }
}

fn earlier(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
