//! Matrices whose rows are computed one by one, such as products of sparse matrices.
//!
//! # Method
//! Row i of A B is the sum of the rows of B that the entries of row i of A select. A task keeps, for each
//! column, the place of its entry in the row that it computes, so that an addition takes one access. Entries
//! add up in the order in which they are given, so the bits do not depend on the number of threads. Each row
//! is sorted by column at the end.
//!
//! A task makes its rows in buffers of its own, which are then joined. A [`Workspace`] keeps the buffers for
//! the next matrix, because the system must clear new memory.
//!
//! # Reference
//! F. G. Gustavson, Two fast algorithms for sparse matrices: multiplication and permuted transposition, ACM
//! Trans. Math. Softw. 4, 1978.

use super::pieces::narrow;
use super::{Csr, Offsets, Pattern, Values};
use crate::error::Result;
use crate::parallel::{grow, lock, room, run_all, split_front, tabulate, threads_for, zeros};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The tasks of each thread: rows take different times.
const TASKS: usize = 8;
/// The work of a task at which it ends: its entries are counted in 32 bits.
const MOST_WORK: u64 = 1 << 31;

/// The rows of a matrix with values in double precision.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    matrix: &'a Csr,
    columns: &'a [u32],
    values: &'a [f64],
}

impl<'a> Rows<'a> {
    /// Returns the rows of a matrix, whose values must be in double precision.
    pub(crate) fn of(matrix: &'a Csr) -> Rows<'a> {
        let Values::F64(values) = matrix.values() else { panic!("the values are in double precision") };
        Rows { matrix, columns: matrix.col_indices(), values }
    }

    /// Returns the columns and values of a row.
    #[inline(always)]
    pub(crate) fn row(self, row: usize) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let range = self.matrix.row_range(row);
        let columns = self.columns[range.clone()].iter().map(|column| *column as usize);
        columns.zip(self.values[range].iter().copied())
    }
}

/// A row that is being computed.
pub(crate) struct RowSum<'a> {
    made: &'a mut Buffers,
    /// The entries of the task before this row.
    start: usize,
}

impl RowSum<'_> {
    /// Adds a value to the entry of a column.
    #[inline(always)]
    pub(crate) fn add(&mut self, column: u32, value: f64) {
        let place = self.made.places[column as usize] as usize;
        if place > self.start {
            self.made.values[place - 1] += value;
        } else {
            self.push(column, value);
            self.made.places[column as usize] = self.made.columns.len() as u32;
        }
    }

    /// Adds an entry in a column that the row does not have yet, and to which nothing is added.
    #[inline(always)]
    pub(crate) fn push(&mut self, column: u32, value: f64) {
        self.made.columns.push(column);
        self.made.values.push(value);
    }

    /// Replaces the value of each entry.
    pub(crate) fn each(&mut self, change: impl Fn(f64) -> f64) {
        self.made.values[self.start..].iter_mut().for_each(|value| *value = change(*value));
    }
}

/// The rows of a task, and what a task needs.
#[derive(Default)]
struct Buffers {
    lengths: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// For each column the number of entries of the task after its last entry there; an entry of an earlier
    /// row unless the number is greater than the `start` of the row.
    places: Vec<u32>,
    sorted: Vec<(u32, f64)>,
}

impl Buffers {
    /// Sorts the entries from `start` on by column.
    #[inline(always)]
    fn sort(&mut self, start: usize) {
        /// The most entries that are sorted by insertion.
        const FEW: usize = 24;
        let (columns, values) = (&mut self.columns[start..], &mut self.values[start..]);
        if columns.len() <= FEW {
            for end in 1..columns.len() {
                let (column, value) = (columns[end], values[end]);
                let mut at = end;
                while at > 0 && columns[at - 1] > column {
                    (columns[at], values[at]) = (columns[at - 1], values[at - 1]);
                    at -= 1;
                }
                (columns[at], values[at]) = (column, value);
            }
        } else if !columns.is_sorted() {
            self.sorted.clear();
            self.sorted.extend(columns.iter().copied().zip(values.iter().copied()));
            self.sorted.sort_unstable_by_key(|(column, _)| *column);
            for (at, &(column, value)) in self.sorted.iter().enumerate() {
                (columns[at], values[at]) = (column, value);
            }
        }
    }
}

/// The buffers of tasks, kept from one matrix to the next.
#[derive(Default)]
pub(crate) struct Workspace(Mutex<Vec<Buffers>>);

impl Workspace {
    /// Makes a matrix of `cols` columns. `most` is the most additions to a row, in proportion to which rows
    /// are divided among threads; `fill` adds the entries of a row.
    pub(crate) fn made_by_rows(
        &self,
        (rows, cols): (usize, usize),
        most: impl Fn(usize) -> usize + Sync,
        fill: impl Fn(usize, &mut RowSum<'_>) + Sync,
    ) -> Result<Csr> {
        let work = tabulate(rows, |row| most(row) as u64)?;
        let make = |range: Range<usize>| {
            let mut made = lock(&self.0).pop().unwrap_or_default();
            made.lengths.clear();
            made.columns.clear();
            made.values.clear();
            made.places.clear();
            made.places.resize(cols, 0);
            grow(&mut made.lengths, range.len())?;
            for row in range {
                let start = made.columns.len();
                let most = (work[row] as usize).min(cols);
                grow(&mut made.columns, most)?;
                grow(&mut made.values, most)?;
                fill(row, &mut RowSum { made: &mut made, start });
                made.sort(start);
                let end: u32 = narrow(made.columns.len(), "the entries of a task", "32-bit numbers")?;
                made.lengths.push(end - start as u32);
            }
            Ok(made)
        };
        let made = run_all(divided(&work), make).into_iter().collect::<Result<Vec<Buffers>>>()?;
        let joined = joined((rows, cols), &made)?;
        lock(&self.0).extend(made);
        Ok(joined)
    }

    /// Returns the product of two matrices in double precision, whose sizes must fit.
    pub(crate) fn product(&self, a: &Csr, b: &Csr) -> Result<Csr> {
        assert_eq!(a.cols(), b.rows(), "the columns of the first matrix are the rows of the second");
        let most = |row: usize| a.row_columns(row).iter().map(|&j| b.row_range(j as usize).len()).sum();
        let (a_rows, b_rows) = (Rows::of(a), Rows::of(b));
        self.made_by_rows((a.rows(), b.cols()), most, |row, sum| {
            for (j, a) in a_rows.row(row) {
                b_rows.row(j).for_each(|(column, value)| sum.add(column as u32, a * value));
            }
        })
    }
}

/// Divides rows into ranges of about equal work.
fn divided(work: &[u64]) -> Vec<Range<usize>> {
    let total = work.iter().sum::<u64>() + work.len() as u64;
    let tasks = match threads_for(total as usize) {
        1 => 1,
        threads => TASKS * threads,
    };
    let (each, mut ranges) = (total.div_ceil(tasks as u64).clamp(1, MOST_WORK), Vec::new());
    let (mut start, mut sum) = (0, 0);
    for row in 0..work.len() {
        sum += work[row] + 1;
        if sum >= each || row + 1 == work.len() {
            ranges.push(start..row + 1);
            (start, sum) = (row + 1, 0);
        }
    }
    ranges
}

/// Joins the rows of all tasks.
fn joined((rows, cols): (usize, usize), made: &[Buffers]) -> Result<Csr> {
    let total: usize = made.iter().map(|rows| rows.columns.len()).sum();
    let mut offsets = room(rows + 1)?;
    offsets.push(0_u64);
    let mut end = 0;
    for length in made.iter().flat_map(|rows| &rows.lengths) {
        end += u64::from(*length);
        offsets.push(end);
    }
    let (mut columns, mut values): (Vec<u32>, Vec<f64>) = (zeros(total)?, zeros(total)?);
    let (mut columns_left, mut values_left) = (&mut columns[..], &mut values[..]);
    let parts = made.iter().map(|rows| {
        let n = rows.columns.len();
        (rows, split_front(&mut columns_left, n), split_front(&mut values_left, n))
    });
    run_all(parts.collect(), |(rows, columns, values): (&Buffers, &mut [u32], &mut [f64])| {
        columns.copy_from_slice(&rows.columns);
        values.copy_from_slice(&rows.values);
    });
    let pattern = Pattern::trusted(rows, cols, Offsets::narrowest(offsets), columns, false);
    Csr::with_pattern(Arc::new(pattern), Values::F64(values))
}

/// Returns the matrix with values in double precision.
#[cfg(test)]
pub(crate) fn in_double(matrix: Csr) -> Csr {
    let values = (0..matrix.nnz()).map(|at| matrix.values().get(at)).collect();
    Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(values)).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    /// Returns the product by its definition.
    fn dense(a: &Csr, b: &Csr) -> Vec<f64> {
        let mut c = vec![0.0; a.rows() * b.cols()];
        for i in 0..a.rows() {
            for (j, a) in a.row(i) {
                b.row(j).for_each(|(k, b_jk)| c[i * b.cols() + k] += a * b_jk);
            }
        }
        c
    }

    #[test]
    fn a_product_has_the_sums_of_its_definition_in_rows_that_are_sorted() {
        for name in ["poisson2d:9x7", "hex27:3x3x3,dof=3", "rmat:scale=7,edges=600", "banded:n=60,half=4"] {
            let a = Arc::new(in_double(source::load(name).unwrap().matrix));
            let b = a.transposed().unwrap();
            let c = Workspace::default().product(&a, &b).unwrap();
            // The pattern is checked here.
            let (pattern, values) = c.clone().into_parts();
            let (offsets, columns) = Arc::unwrap_or_clone(pattern).into_arrays();
            assert_eq!(Csr::new(c.rows(), c.cols(), offsets, columns, values).unwrap(), c, "{name}");
            let expected = dense(&a, &b);
            for i in 0..c.rows() {
                for k in 0..c.cols() {
                    let want = expected[i * c.cols() + k];
                    assert_eq!(c.get(i, k).unwrap_or(0.0), want, "{name}: {i}, {k}");
                }
            }
        }
    }

    #[test]
    fn a_task_ends_before_its_entries_exceed_32_bits() {
        assert_eq!(divided(&[MOST_WORK; 3]), [0..1, 1..2, 2..3]);
        assert_eq!(divided(&[5; 3]).len(), 1);
    }

    #[test]
    fn a_product_with_rows_and_columns_that_are_empty_is_empty() {
        let none = Csr::new(3, 0, Offsets::narrowest(vec![0; 4]), vec![], Values::F64(vec![])).unwrap();
        let wide = Csr::new(0, 5, Offsets::narrowest(vec![0]), vec![], Values::F64(vec![])).unwrap();
        let product = Workspace::default().product(&none, &wide).unwrap();
        assert_eq!((product.rows(), product.cols(), product.nnz()), (3, 5, 0));
    }
}
