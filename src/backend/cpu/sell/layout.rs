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
    pub fn of(matrix: &Csr, rows: Range<usize>, value: f64) -> Result<Count> {
        let mut count = Count::default();
        each_slice(matrix, rows, value, |layout| {
            let padded = layout.padded();
            let gathered = if layout.runs { 0 } else { padded };
            count = count.plus(Count { words: layout.words(), padded, gathered, rests: layout.left > 0 });
        })?;
        Ok(count)
    }

    pub fn plus(self, other: Count) -> Count {
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

/// Calls `f` with the layout of each slice of the chunk of these rows.
fn each_slice(matrix: &Csr, rows: Range<usize>, value: f64, mut f: impl FnMut(&Layout<'_>)) -> Result<()> {
    /// Rows are sorted only if padding exceeds this fraction (1/32) of the entries.
    const LITTLE: usize = 32;
    let length = |row: usize| matrix.row_range(row).len();
    let mut order: Vec<usize> = rows.clone().collect();
    let entries: usize = rows.clone().map(length).sum();
    let unsorted = padded(rows.clone().map(length));
    if unsorted - entries > entries / LITTLE {
        order.sort_by_key(|&row| Reverse(length(row)));
    }
    for (slice, lanes) in order.chunks(LANES).enumerate() {
        f(&Layout::of(matrix, (rows.start, slice), lanes, value)?);
    }
    Ok(())
}

/// A slice before it is written.
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
    pub fn chunk(&mut self, rows: Range<usize>, value: f64) -> Result<()> {
        let Writer { matrix, values, convert, words, packed } = self;
        each_slice(matrix, rows, value, |layout| {
            layout.write_words(split_front(words, layout.words()));
            if let Some(values) = *values {
                let row = |lane: usize| layout.rows.get(lane).map(|&row| &values[matrix.row_range(row)]);
                let of_lane = std::array::from_fn(|lane| row(lane).unwrap_or_default());
                layout.write_values(of_lane, &*convert, split_front(packed, layout.padded()));
            }
        })
    }
}
