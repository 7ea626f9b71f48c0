//! The layout of the slices of a chunk: counted, then written.

use super::LANES;
use super::block::Block;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::parallel::split_front;
use bytemuck::Zeroable;
use std::cmp::Reverse;
use std::ops::Range;

// The flags of a slice: the parts that it has, as `pack.rs` describes them.
pub(super) const SORTED: u32 = 1;
pub(super) const RAGGED: u32 = 2;
pub(super) const RUNS: u32 = 4;
pub(super) const NEAR: u32 = 8;
pub(super) const REST: u32 = 16;

/// The size of the slices of a chunk.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub words: usize,
    /// Number of entries, padding included.
    pub padded: usize,
    /// Number of these for which x is gathered.
    pub gathered: usize,
    /// Whether any slice has a rest.
    pub rests: bool,
}

impl Count {
    /// Counts the chunk of these rows. A value takes `value` bytes.
    pub(crate) fn of(matrix: &Csr, rows: Range<usize>, value: f64) -> Result<Count> {
        let mut count = Count::default();
        each_slice(matrix, rows, value, |slice| count = count.plus(slice.count()))?;
        Ok(count)
    }

    pub(crate) fn plus(self, other: Count) -> Count {
        Count {
            words: self.words + other.words,
            padded: self.padded + other.padded,
            gathered: self.gathered + other.gathered,
            rests: self.rests || other.rests,
        }
    }
}

/// Returns the entries, padding included, of slices of rows with these lengths.
fn padded(lengths: impl Iterator<Item = usize>) -> usize {
    let (mut padded, mut widest) = (0, 0);
    for (i, length) in lengths.enumerate() {
        if i % LANES == 0 {
            padded += widest * LANES;
            widest = 0;
        }
        widest = widest.max(length);
    }
    padded + widest * LANES
}

/// Returns the rows of a chunk in the order of the lanes, if sorting by length saves padding; none for
/// the order of the matrix.
fn sorted(matrix: &Csr, rows: &Range<usize>) -> Option<Vec<usize>> {
    /// Rows are sorted only if padding exceeds this fraction (1/32) of the entries.
    const LITTLE: usize = 32;
    let length = |row: usize| matrix.row_range(row).len();
    let entries = matrix.row_offsets().get(rows.end) - matrix.row_offsets().get(rows.start);
    let unsorted = padded(rows.clone().map(length));
    (unsorted - entries > entries / LITTLE).then(|| {
        let mut order: Vec<usize> = rows.clone().collect();
        order.sort_by_key(|&row| Reverse(length(row)));
        order
    })
}

/// Calls `f` with each slice of the chunk of these rows.
fn each_slice(
    matrix: &Csr,
    rows: Range<usize>,
    value: f64,
    mut f: impl FnMut(&SliceLayout<'_>),
) -> Result<()> {
    let chunk = rows.start;
    if let Some(order) = sorted(matrix, &rows) {
        for (slice, lanes) in order.chunks(LANES).enumerate() {
            f(&SliceLayout::Mixed(&Layout::of(matrix, (chunk, slice), lanes, value)?));
        }
        return Ok(());
    }
    for (slice, first) in rows.clone().step_by(LANES).enumerate() {
        let lanes: [usize; LANES] = std::array::from_fn(|lane| first + lane);
        let lanes = &lanes[..LANES.min(rows.end - first)];
        match Runs::of(matrix, lanes) {
            Some(runs) => f(&SliceLayout::Runs(&runs)),
            None => f(&SliceLayout::Mixed(&Layout::of(matrix, (chunk, slice), lanes, value)?)),
        }
    }
    Ok(())
}

/// A slice before it is written.
enum SliceLayout<'a> {
    /// A slice of eight neighbouring rows, the columns of each of which follow those of the row before.
    Runs(&'a Runs<'a>),
    /// Any other slice.
    Mixed(&'a Layout<'a>),
}

impl SliceLayout<'_> {
    fn count(&self) -> Count {
        match self {
            SliceLayout::Runs(runs) => {
                Count { words: 2 + runs.length, padded: runs.columns.len(), gathered: 0, rests: false }
            }
            SliceLayout::Mixed(layout) => {
                let padded = layout.padded();
                let gathered = if layout.runs { 0 } else { padded };
                Count { words: layout.words(), padded, gathered, rests: layout.left > 0 }
            }
        }
    }
}

/// Eight neighbouring rows of equal length, the columns of each of which follow those of the row before. Most
/// slices of a stencil are such, and they are found and written in less time than others.
struct Runs<'a> {
    length: usize,
    /// The first entry.
    first: usize,
    /// The columns of all rows, one row after the other.
    columns: &'a [u32],
}

impl<'a> Runs<'a> {
    /// Returns the slice of these neighbouring rows, if it consists of runs.
    fn of(matrix: &'a Csr, rows: &[usize]) -> Option<Runs<'a>> {
        let (&row, offsets) = (rows.first()?, matrix.row_offsets());
        let (first, length) = (offsets.get(row), matrix.row_range(row).len());
        let equal =
            rows.len() == LANES && (1..=LANES).all(|lane| offsets.get(row + lane) == first + lane * length);
        if !equal || u32::try_from(length).is_err() {
            return None;
        }
        let columns = &matrix.col_indices()[first..first + LANES * length];
        let follow = columns
            .iter()
            .zip(&columns[length..])
            .fold(true, |all, (before, column)| all & (*column == before.wrapping_add(1)));
        follow.then_some(Runs { length, first, columns })
    }

    fn write_words(&self, words: &mut [u32]) {
        (words[0], words[1]) = (self.length as u32, RUNS);
        words[2..].copy_from_slice(&self.columns[..self.length]);
    }

    fn write_values<S: Copy, V: Copy>(&self, values: &[S], convert: impl Fn(S) -> V, packed: &mut [V]) {
        let values = &values[self.first..self.first + LANES * self.length];
        for (j, step) in packed.chunks_exact_mut(LANES).enumerate() {
            for (lane, to) in step.iter_mut().enumerate() {
                *to = convert(values[lane * self.length + j]);
            }
        }
    }
}

/// A slice that may be sorted, padded, and have a rest.
struct Layout<'a> {
    /// The first row of the chunk.
    first: usize,
    /// The rows of the lanes; the last slice of a matrix may have fewer than [`LANES`].
    rows: &'a [usize],
    columns: [&'a [u32]; LANES],
    block: Block,
    sorted: bool,
    runs: bool,
    ragged: bool,
    /// Number of entries in the rest.
    left: usize,
}

impl<'a> Layout<'a> {
    /// Returns the layout of a slice: its number in a chunk that begins at row `first`, and its rows.
    fn of(
        matrix: &'a Csr,
        (first, slice): (usize, usize),
        rows: &'a [usize],
        value: f64,
    ) -> Result<Layout<'a>> {
        let columns: [&[u32]; LANES] =
            std::array::from_fn(|lane| rows.get(lane).map_or(&[][..], |&row| matrix.row_columns(row)));
        let longest = columns.iter().map(|c| c.len()).max().unwrap_or(0);
        u32::try_from(longest).map_err(|_| Error::TooLarge {
            what: "the length of a row",
            value: longest as u128,
            limit: u128::from(u32::MAX),
            container: "backend sell",
        })?;
        let sorted = rows.iter().enumerate().any(|(lane, &row)| row - first != slice * LANES + lane);
        let runs = are_runs(&columns, longest);
        let block = if runs { Block::of_whole_rows(&columns) } else { Block::of(&columns, value) };
        let ragged = block.lanes.iter().any(|lane| lane.len() != block.width);
        let left = columns.iter().map(|c| c.len()).sum::<usize>() - block.entries();
        Ok(Layout { first, rows, columns, block, sorted, runs, ragged, left })
    }

    /// Returns the number of entries, padding included.
    fn padded(&self) -> usize {
        self.block.width * LANES + self.left
    }

    fn words(&self) -> usize {
        let part = |holds: bool, words: usize| if holds { words } else { 0 };
        let width = self.block.width;
        let columns = match (self.runs, self.block.near) {
            (true, _) => width,
            (false, true) => 1 + width * LANES / 2,
            (false, false) => width * LANES,
        };
        let rest = part(self.left > 0, LANES + self.left);
        2 + part(self.sorted, LANES / 2) + part(self.ragged, LANES) + columns + rest
    }

    fn flags(&self) -> u32 {
        let flag = |holds, flag| if holds { flag } else { 0 };
        let form = if self.runs { RUNS } else { flag(self.block.near, NEAR) };
        flag(self.sorted, SORTED) | flag(self.ragged, RAGGED) | form | flag(self.left > 0, REST)
    }

    /// Returns the column at a place of the block.
    fn column(&self, j: usize, lane: usize) -> u32 {
        let at = self.block.lanes[lane].start + j;
        if at < self.block.lanes[lane].end { self.columns[lane][at] } else { self.block.low }
    }

    /// Returns the entries of the rest of a lane.
    fn rest_of<'b, T>(&self, lane: usize, entries: &'b [T]) -> impl Iterator<Item = &'b T> {
        let Range { start, end } = self.block.lanes[lane];
        entries[..start].iter().chain(&entries[end..])
    }

    /// Writes the words.
    fn write_words(&self, mut words: &mut [u32]) {
        let mut put = |count: usize, from: &mut dyn Iterator<Item = u32>| {
            split_front(&mut words, count).iter_mut().zip(from).for_each(|(to, from)| *to = from);
        };
        let Layout { block, .. } = self;
        put(2, &mut [block.width as u32, self.flags()].into_iter());
        if self.sorted {
            let row = |lane: usize| self.rows.get(lane).map_or(0, |&row| (row - self.first) as u32);
            put(LANES / 2, &mut (0..LANES / 2).map(|at| row(2 * at) | row(2 * at + 1) << 16));
        }
        if self.ragged {
            put(LANES, &mut block.lanes.iter().map(|lane| lane.len() as u32));
        }
        if self.runs {
            put(block.width, &mut self.columns[0].iter().copied());
        } else if block.near {
            put(1, &mut std::iter::once(block.low));
            let halves = split_front(&mut words, block.width * LANES / 2);
            for (j, step) in halves.chunks_mut(LANES / 2).enumerate() {
                let above = |lane| self.column(j, lane) - block.low;
                step.iter_mut()
                    .enumerate()
                    .for_each(|(at, to)| *to = above(2 * at) | above(2 * at + 1) << 16);
            }
        } else {
            for (j, step) in split_front(&mut words, block.width * LANES).chunks_mut(LANES).enumerate() {
                step.iter_mut().enumerate().for_each(|(lane, to)| *to = self.column(j, lane));
            }
        }
        if self.left > 0 {
            let count = |lane: usize| (self.columns[lane].len() - block.lanes[lane].len()) as u32;
            let counts = split_front(&mut words, LANES);
            counts.iter_mut().enumerate().for_each(|(lane, to)| *to = count(lane));
            let rest = (0..LANES).flat_map(|lane| self.rest_of(lane, self.columns[lane]));
            words.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        }
    }

    /// Writes the values of the block, then those of the rest.
    fn write_values<S: Copy, V: Copy + Zeroable>(
        &self,
        values: [&[S]; LANES],
        convert: impl Fn(S) -> V,
        packed: &mut [V],
    ) {
        let Layout { block, .. } = self;
        let (of_block, of_rest) = packed.split_at_mut(block.width * LANES);
        let whole = block.lanes.iter().all(|lane| *lane == (0..block.width));
        for (j, step) in of_block.chunks_mut(LANES).enumerate() {
            for (lane, to) in step.iter_mut().enumerate() {
                let at = block.lanes[lane].start + j;
                let inside = whole || at < block.lanes[lane].end;
                *to = if inside { convert(values[lane][at]) } else { V::zeroed() };
            }
        }
        let rest = (0..LANES).flat_map(|lane| self.rest_of(lane, values[lane]));
        of_rest.iter_mut().zip(rest).for_each(|(to, from)| *to = convert(*from));
    }
}

/// Returns whether all rows have this length and each column of a lane follows that of the lane before.
fn are_runs(columns: &[&[u32]; LANES], length: usize) -> bool {
    columns.iter().all(|c| c.len() == length)
        && (0..length).all(|j| (1..LANES).all(|l| columns[l][j] == columns[0][j].wrapping_add(l as u32)))
}

/// Writes chunks to the front of its words and values.
pub(super) struct Writer<'a, S, V, F> {
    pub matrix: &'a Csr,
    pub values: Option<&'a [S]>,
    pub convert: F,
    pub words: &'a mut [u32],
    pub packed: &'a mut [V],
}

impl<S: Copy, V: Copy + Zeroable, F: Fn(S) -> V> Writer<'_, S, V, F> {
    /// Writes the chunk of these rows, whose values were counted with `value` bytes each.
    pub(crate) fn chunk(&mut self, rows: Range<usize>, value: f64) -> Result<()> {
        let Writer { matrix, values, convert, words, packed } = self;
        each_slice(matrix, rows, value, |slice| {
            let count = slice.count();
            let words = split_front(words, count.words);
            match slice {
                SliceLayout::Runs(runs) => runs.write_words(words),
                SliceLayout::Mixed(layout) => layout.write_words(words),
            }
            let Some(values) = *values else { return };
            let packed = split_front(packed, count.padded);
            match slice {
                SliceLayout::Runs(runs) => runs.write_values(values, &*convert, packed),
                SliceLayout::Mixed(layout) => {
                    let row = |lane: usize| layout.rows.get(lane).map(|&row| &values[matrix.row_range(row)]);
                    let of_lane = std::array::from_fn(|lane| row(lane).unwrap_or_default());
                    layout.write_values(of_lane, &*convert, packed);
                }
            }
        })
    }
}
