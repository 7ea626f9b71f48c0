//! Matrices whose rows are computed one by one, such as products of sparse matrices.
//!
//! # Method
//! Row i of A B is the sum of the rows of B that the entries of row i of A select. A task keeps, for each
//! column, the place of its entry in the row that it computes, so that an addition takes one access. Entries
//! add up in the order in which they are given, so the bits do not depend on the number of threads. Each row
//! is sorted by column at the end.
//!
//! A task makes its rows in buffers of its own, which are then joined. In a product of three matrices the
//! product of the last two stays in the buffers. If the columns of the last come in blocks, such as those of
//! several near-null vectors in an aggregate, a block is added as one. A [`Workspace`] keeps the buffers for
//! the next matrix, because the system must clear new memory.
//!
//! # Reference
//! F. G. Gustavson, Two fast algorithms for sparse matrices: multiplication and permuted transposition, ACM
//! Trans. Math. Softw. 4, 1978.

use super::pieces::narrow;
use super::{Csr, Offsets, Pattern, Values};
use crate::error::Result;
use crate::memory::advise_huge_pages;
use crate::parallel::{grow, lock, run_all, split_front, threads_for, zeros};
use bytemuck::Zeroable;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The tasks of each thread: rows take different times.
const TASKS: usize = 8;
/// Rows that a thread checks as one task.
const ROWS: usize = 4096;
/// Rows whose work is summed.
const UNIT: usize = 64;
/// The work of a task at which it ends: its entries are counted in 32 bits.
const MOST_WORK: u64 = 1 << 31;

/// The sizes of blocks of columns, the largest first: 6 and 3 rigid-body modes, and constants of two or three
/// unknowns.
const WIDTHS: [usize; 4] = [6, 3, 2, 1];

/// Returns the size of the largest blocks that make up this number of columns.
pub(crate) fn block_width(columns: usize) -> usize {
    WIDTHS.into_iter().find(|width| columns.is_multiple_of(*width)).unwrap_or(1)
}

/// Evaluates an expression for the constant `W` that equals a size of blocks, one of [`WIDTHS`].
macro_rules! in_blocks {
    ($width:expr, $W:ident => $run:expr) => {
        in_blocks!($width, $W => $run, 6 3 2 1)
    };
    ($width:expr, $W:ident => $run:expr, $($known:literal)+) => {
        match $width {
            $($known => {
                const $W: usize = $known;
                $run
            })+
            other => unreachable!("no blocks have {other} columns"),
        }
    };
}
pub(crate) use in_blocks;

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

/// A row that is being computed, whose entries come in blocks of W neighbouring columns.
pub(crate) struct RowSum<'a, const W: usize = 1> {
    columns: &'a mut [u32],
    values: &'a mut [[f64; W]],
    places: &'a mut [u32],
    length: usize,
}

impl<const W: usize> RowSum<'_, W> {
    /// Adds values to the entries of a block of columns. Whether the row has that block already is hard to
    /// predict, so there is no branch.
    #[inline(always)]
    pub(crate) fn add(&mut self, block: u32, values: [f64; W]) {
        let place = &mut self.places[block as usize];
        let is_new = *place == 0;
        let at = if is_new { self.length } else { *place as usize - 1 };
        *place = at as u32 + 1;
        self.columns[at] = block;
        for (sum, value) in self.values[at].iter_mut().zip(values) {
            // The sum of -0 and any number is that number.
            *sum = if is_new { -0.0 } else { *sum } + value;
        }
        self.length += usize::from(is_new);
    }

    /// Adds a block of columns that the row does not have yet, and to which nothing is added.
    #[inline(always)]
    pub(crate) fn push(&mut self, block: u32, values: [f64; W]) {
        (self.columns[self.length], self.values[self.length]) = (block, values);
        self.length += 1;
    }

    /// Replaces the value of each entry.
    pub(crate) fn each(&mut self, change: impl Fn(f64) -> f64) {
        self.values[..self.length].as_flattened_mut().iter_mut().for_each(|value| *value = change(*value));
    }
}

/// The rows of a task, and what a task needs.
#[derive(Default)]
struct Buffers {
    /// The blocks of each row.
    lengths: Vec<u32>,
    /// The blocks of all rows, and room for more; `filled` blocks are used.
    columns: Vec<u32>,
    values: Vec<f64>,
    filled: usize,
    /// For each block of columns 1 more than its place in the row that is being computed, or 0.
    places: Vec<u32>,
    order: Vec<u64>,
    sorted: Vec<f64>,
}

impl Buffers {
    /// Removes all rows, and makes room for `rows` rows of `blocks` blocks of columns.
    fn clear(&mut self, rows: usize, blocks: usize) -> Result<()> {
        self.lengths.clear();
        self.filled = 0;
        // All elements are 0 between rows.
        if self.places.len() < blocks {
            self.places = zeros(blocks)?;
        }
        grow(&mut self.lengths, rows)
    }

    /// Begins a row of up to `most` blocks of W columns.
    #[inline(always)]
    fn row<const W: usize>(&mut self, most: usize) -> Result<RowSum<'_, W>> {
        let end = self.filled + most;
        if self.columns.len() < end {
            extend(&mut self.columns, end)?;
        }
        if self.values.len() < end * W {
            extend(&mut self.values, end * W)?;
        }
        Ok(RowSum {
            columns: &mut self.columns[self.filled..end],
            values: &mut self.values.as_chunks_mut().0[self.filled..end],
            places: &mut self.places,
            length: 0,
        })
    }

    /// Ends a row of `length` blocks.
    #[inline(always)]
    fn end_row<const W: usize>(&mut self, length: usize, sorts: bool) {
        let range = self.filled..self.filled + length;
        let columns = &mut self.columns[range.clone()];
        columns.iter().for_each(|column| self.places[*column as usize] = 0);
        if sorts && !columns.is_sorted() {
            let values = &mut self.values.as_chunks_mut::<W>().0[range];
            self.order.clear();
            self.order.extend(columns.iter().zip(0..).map(|(column, at)| u64::from(*column) << 32 | at));
            sort(&mut self.order);
            self.sorted.clear();
            for (column, &place) in columns.iter_mut().zip(&self.order) {
                *column = (place >> 32) as u32;
                self.sorted.extend_from_slice(&values[place as u32 as usize]);
            }
            values.as_flattened_mut().copy_from_slice(&self.sorted);
        }
        self.filled += length;
        self.lengths.push(length as u32);
    }

    fn columns(&self) -> &[u32] {
        &self.columns[..self.filled]
    }

    fn values<const W: usize>(&self) -> &[[f64; W]] {
        &self.values.as_chunks().0[..self.filled]
    }
}

/// Extends an array by zeros to at least `length` elements, on huge pages.
#[cold]
fn extend<T: Zeroable>(array: &mut Vec<T>, length: usize) -> Result<()> {
    /// The fewest elements that are added.
    const FEWEST: usize = 1 << 14;
    let length = length.max(array.len() + array.len() / 4 + FEWEST);
    grow(array, length - array.len())?;
    advise_huge_pages(array.spare_capacity_mut());
    array.resize_with(length, T::zeroed);
    Ok(())
}

/// Sorts numbers.
#[inline(always)]
fn sort(numbers: &mut [u64]) {
    /// The most numbers that are sorted by insertion.
    const FEW: usize = 24;
    if numbers.len() > FEW {
        return numbers.sort_unstable();
    }
    for end in 1..numbers.len() {
        let (number, mut at) = (numbers[end], end);
        while at > 0 && numbers[at - 1] > number {
            numbers[at] = numbers[at - 1];
            at -= 1;
        }
        numbers[at] = number;
    }
}

/// The rows of a matrix as the tasks made them, in the order of the rows.
struct Unjoined {
    tasks: Vec<Buffers>,
    /// Of each row its task, the first of its blocks there, and their number.
    rows: Vec<[u32; 3]>,
}

impl Unjoined {
    fn of(tasks: Vec<Buffers>, rows: usize) -> Result<Unjoined> {
        let mut places: Vec<[u32; 3]> = zeros(rows)?;
        let mut left = &mut places[..];
        let parts = tasks
            .iter()
            .zip(0..)
            .map(|(made, task)| (made, task, split_front(&mut left, made.lengths.len())));
        run_all(parts.collect(), |(made, task, places): (&Buffers, u32, &mut [[u32; 3]])| {
            let mut start = 0;
            for (place, &length) in places.iter_mut().zip(&made.lengths) {
                *place = [task, start, length];
                start += length;
            }
        });
        Ok(Unjoined { tasks, rows: places })
    }

    /// Returns the most blocks of a row.
    fn longest(&self) -> usize {
        self.rows.par_iter().with_min_len(ROWS).map(|row| row[2] as usize).max().unwrap_or(0)
    }

    /// Returns the blocks of a row.
    #[inline(always)]
    fn row<const W: usize>(&self, row: usize) -> impl Iterator<Item = (u32, &[f64; W])> {
        let [task, start, length] = self.rows[row];
        let (made, range) = (&self.tasks[task as usize], start as usize..(start + length) as usize);
        made.columns[range.clone()].iter().copied().zip(&made.values.as_chunks::<W>().0[range])
    }
}

/// The buffers of tasks, kept from one matrix to the next.
#[derive(Default)]
pub(crate) struct Workspace(Mutex<Vec<Buffers>>);

impl Workspace {
    /// Makes a matrix of `blocks` blocks of W columns. `most` is the most additions to a row, in proportion
    /// to which rows are divided among threads; `fill` adds the entries of a row.
    pub(crate) fn made_by_rows<const W: usize>(
        &self,
        (rows, blocks): (usize, usize),
        most: impl Fn(usize) -> usize + Sync,
        fill: impl Fn(usize, &mut RowSum<'_, W>) + Sync,
    ) -> Result<Csr> {
        let made = self.tasks((rows, blocks), (&most, &most), fill, true)?;
        let joined = joined::<W>((rows, blocks * W), &made)?;
        lock(&self.0).extend(made);
        Ok(joined)
    }

    /// Makes the rows of a matrix, each sorted by column if `sorts`. Rows are divided among threads by their
    /// `work`, which need not be exact; `most` is at least the number of blocks of each.
    fn tasks<const W: usize>(
        &self,
        (rows, blocks): (usize, usize),
        (work, most): (impl Fn(usize) -> usize + Sync, impl Fn(usize) -> usize + Sync),
        fill: impl Fn(usize, &mut RowSum<'_, W>) + Sync,
        sorts: bool,
    ) -> Result<Vec<Buffers>> {
        let of_unit = |unit: usize| -> u64 {
            (unit * UNIT..((unit + 1) * UNIT).min(rows)).map(|row| work(row) as u64 + 1).sum()
        };
        let work: Vec<u64> = (0..rows.div_ceil(UNIT)).into_par_iter().with_min_len(8).map(of_unit).collect();
        let make = |units: Range<usize>| {
            let mut made = lock(&self.0).pop().unwrap_or_default();
            let range = units.start * UNIT..(units.end * UNIT).min(rows);
            made.clear(range.len(), blocks)?;
            for row in range {
                let mut sum = made.row(most(row).min(blocks))?;
                fill(row, &mut sum);
                let length = sum.length;
                made.end_row::<W>(length, sorts);
            }
            let _: u32 = narrow(made.filled, "the entries of a task", "32-bit numbers")?;
            Ok(made)
        };
        run_all(divided(&work), make).into_iter().collect()
    }

    /// Returns the product of two matrices in double precision, whose sizes must fit.
    #[cfg(test)]
    pub(crate) fn product(&self, a: &Csr, b: &Csr) -> Result<Csr> {
        assert_eq!(a.cols(), b.rows(), "the columns of the first matrix are the rows of the second");
        let longest = longest_row(b);
        let most = |row: usize| a.row_range(row).len() * longest;
        self.made_by_rows::<1>((a.rows(), b.cols()), most, |row, sum| add_product(row, a, b, sum))
    }

    /// Returns the product of three matrices in double precision, whose sizes must fit: A (B C). The entries
    /// of each row of C must come in blocks of `width` neighbouring columns.
    pub(crate) fn product_of_three(&self, a: &Csr, b: &Csr, c: &Csr, width: usize) -> Result<Csr> {
        assert!(a.cols() == b.rows() && b.cols() == c.rows(), "the sizes of the matrices fit");
        in_blocks!(width, W => self.product_in_blocks::<W>(a, b, c))
    }

    fn product_in_blocks<const W: usize>(&self, a: &Csr, b: &Csr, c: &Csr) -> Result<Csr> {
        assert!(has_blocks::<W>(c), "the columns of each row come in blocks");
        let size = (b.rows(), c.cols() / W);
        let fill = |row: usize, sum: &mut RowSum<'_, W>| add_product(row, b, c, sum);
        let work = |row: usize| b.row_range(row).len();
        let longest = longest_row(c).div_ceil(W);
        let later = self.tasks(size, (work, |row| work(row) * longest), fill, false)?;
        let later = Unjoined::of(later, b.rows())?;
        let (rows, longest) = (Rows::of(a), later.longest());
        let most = |row: usize| a.row_range(row).len() * longest;
        let fill = |row: usize, sum: &mut RowSum<'_, W>| {
            for (j, a) in rows.row(row) {
                later.row::<W>(j).for_each(|(block, values)| sum.add(block, values.map(|value| a * value)));
            }
        };
        let made = self.tasks((a.rows(), size.1), (&most, &most), fill, true)?;
        let product = joined::<W>((a.rows(), size.1 * W), &made)?;
        lock(&self.0).extend(made.into_iter().chain(later.tasks));
        Ok(product)
    }
}

/// Returns the entries of the longest row.
fn longest_row(matrix: &Csr) -> usize {
    let length = |row: usize| matrix.row_range(row).len();
    (0..matrix.rows()).into_par_iter().with_min_len(ROWS).map(length).max().unwrap_or(0)
}

/// Adds a row of a product.
#[inline(always)]
fn add_product<const W: usize>(row: usize, a: &Csr, b: &Csr, sum: &mut RowSum<'_, W>) {
    let b = Rows::of(b);
    for (j, a) in Rows::of(a).row(row) {
        let range = b.matrix.row_range(j);
        let (columns, values) = (&b.columns[range.clone()], &b.values[range]);
        for (columns, values) in columns.as_chunks::<W>().0.iter().zip(values.as_chunks::<W>().0) {
            sum.add(columns[0] / W as u32, values.map(|value| a * value));
        }
    }
}

/// Returns whether the entries of each row come in blocks of W neighbouring columns, the first of which is a
/// multiple of W.
fn has_blocks<const W: usize>(matrix: &Csr) -> bool {
    let in_blocks = |row: usize| {
        let (blocks, rest) = matrix.row_columns(row).as_chunks::<W>();
        let follow = |block: &[u32; W]| {
            block[0].is_multiple_of(W as u32) && block.iter().zip(block[0]..).all(|(a, b)| *a == b)
        };
        rest.is_empty() && blocks.iter().all(follow)
    };
    W == 1 || (0..matrix.rows()).into_par_iter().with_min_len(ROWS).all(in_blocks)
}

/// Divides units into ranges of about equal work.
fn divided(work: &[u64]) -> Vec<Range<usize>> {
    let total: u64 = work.iter().sum();
    let tasks = match threads_for(total as usize) {
        1 => 1,
        threads => TASKS * threads,
    };
    let (each, mut ranges) = (total.div_ceil(tasks as u64).clamp(1, MOST_WORK), Vec::new());
    let (mut start, mut sum) = (0, 0);
    for (unit, of_unit) in work.iter().enumerate() {
        sum += of_unit;
        if sum >= each || unit + 1 == work.len() {
            ranges.push(start..unit + 1);
            (start, sum) = (unit + 1, 0);
        }
    }
    ranges
}

/// Joins the rows of all tasks.
fn joined<const W: usize>((rows, cols): (usize, usize), made: &[Buffers]) -> Result<Csr> {
    let total: usize = made.iter().map(|rows| rows.filled * W).sum();
    let (mut columns, mut values): (Vec<u32>, Vec<f64>) = (zeros(total)?, zeros(total)?);
    let (mut columns_left, mut values_left) = (&mut columns[..], &mut values[..]);
    let parts = made.iter().map(|rows| {
        let n = rows.filled * W;
        (rows, split_front(&mut columns_left, n), split_front(&mut values_left, n))
    });
    run_all(parts.collect(), |(rows, columns, values): (&Buffers, &mut [u32], &mut [f64])| {
        for (columns, block) in columns.as_chunks_mut::<W>().0.iter_mut().zip(rows.columns()) {
            *columns = std::array::from_fn(|i| block * W as u32 + i as u32);
        }
        values.copy_from_slice(rows.values::<W>().as_flattened());
    });
    let offsets = match total as u64 > Offsets::MOST_NARROW {
        false => Offsets::U32(offsets::<u32, W>(rows, made, |end| end as u32)?),
        true => Offsets::U64(offsets::<u64, W>(rows, made, |end| end)?),
    };
    let pattern = Pattern::trusted(rows, cols, offsets, columns, false);
    Csr::with_pattern(Arc::new(pattern), Values::F64(values))
}

/// Returns the offsets of the joined rows.
fn offsets<N: Zeroable + Send, const W: usize>(
    rows: usize,
    made: &[Buffers],
    number: impl Fn(u64) -> N + Sync,
) -> Result<Vec<N>> {
    let mut offsets: Vec<N> = zeros(rows + 1)?;
    let (mut left, mut end) = (&mut offsets[1..], 0);
    let parts = made.iter().map(|rows| {
        let first = end;
        end += (rows.filled * W) as u64;
        (rows, first, split_front(&mut left, rows.lengths.len()))
    });
    run_all(parts.collect(), |(rows, mut end, offsets): (&Buffers, u64, &mut [N])| {
        for (offset, &length) in offsets.iter_mut().zip(&rows.lengths) {
            end += u64::from(length) * W as u64;
            *offset = number(end);
        }
    });
    Ok(offsets)
}

/// Returns the matrix with values in double precision.
#[cfg(test)]
pub(crate) fn in_double(matrix: Csr) -> Csr {
    let values = (0..matrix.nnz()).map(|at| matrix.values().get(at)).collect();
    Csr::with_pattern(Arc::clone(matrix.pattern()), Values::F64(values)).unwrap()
}

#[cfg(test)]
mod tests;
