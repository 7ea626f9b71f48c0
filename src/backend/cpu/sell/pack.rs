//! The packed storage of slices.
//!
//! Each chunk of rows is sorted separately: if that saves padding, its rows are sorted by length, longest first. Eight
//! consecutive rows of the resulting order make a slice. A slice is a sequence of 32-bit words, in this order:
//!
//! | words | content | when |
//! |---|---|---|
//! | 1 | width: the most entries of a lane | always |
//! | 1 | flags | always |
//! | 4 | the row of each lane, in its chunk, 16 bits each | `SORTED` |
//! | 8 | the number of entries of each lane's row in the block | `RAGGED` |
//! | width | the column of lane 0; lane l has the l-th one after it | `RUNS` |
//! | 1 + 4 width | a base column (at most the lowest), and the offset of each lane's column from it, 16 bits each | `NEAR` |
//! | 8 width | the column of each lane | otherwise |
//! | 8 | the number of further entries of each lane's row | `REST` |
//! | their sum | their columns, lane after lane | `REST` |
//!
//! plus 8 width values and the values of the rest, unless all values are implicit ones. Stencils and bands consist of runs; most
//! other matrices that come from meshes are near. Padding has the base column and the value 0, and no product reads its x.
//!
//! A few long rows would pad all lanes, and a few columns far from the other columns would store all columns in 32 bits, as in
//! web graphs. So a slice may have a rest: the entries outside a 16-bit window around the middle of its longest row, or beyond
//! some width, if that takes clearly fewer bytes.

use super::LANES;
use super::block::Block;
use crate::backend::cpu::aligned::AlignedValues;
use crate::backend::cpu::chunked::chunk_height;
use crate::device::cpu::CHUNK;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{room, run_all, split_front, zeros};
use bytemuck::Zeroable;
use std::cmp::Reverse;
use std::ops::Range;

const SORTED: u32 = 1;
const RAGGED: u32 = 2;
const RUNS: u32 = 4;
const NEAR: u32 = 8;
const REST: u32 = 16;

/// The stored columns of a slice.
#[derive(Clone, Copy)]
pub(super) enum Columns<'a> {
    Runs(&'a [u32]),
    Near(u32, &'a [u32]),
    Far(&'a [u32]),
}

impl Columns<'_> {
    /// Returns the column of entry `j` of a lane.
    #[inline(always)]
    pub fn get(&self, j: usize, lane: usize) -> usize {
        match *self {
            Columns::Runs(first) => first[j] as usize + lane,
            Columns::Near(base, above) => (base + halves(above[j * 4 + lane / 2])[lane % 2]) as usize,
            Columns::Far(columns) => columns[j * LANES + lane] as usize,
        }
    }
}

#[inline(always)]
fn halves(word: u32) -> [u32; 2] {
    [word & 0xffff, word >> 16]
}

/// A slice as products read it.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub width: usize,
    order: Option<&'a [u32]>,
    pub lengths: Option<&'a [u32]>,
    pub columns: Columns<'a>,
    /// Whether a rest follows: the number of further entries of each lane, and their columns.
    pub rest: bool,
}

impl<'a> Slice<'a> {
    /// Reads a slice, except its rest, and removes it from the front of the words.
    #[inline(always)]
    pub fn take(words: &mut &'a [u32]) -> Slice<'a> {
        let mut take = |count: usize| {
            let (front, rest) = words.split_at(count);
            *words = rest;
            front
        };
        let head = take(2);
        let (width, flags) = (head[0] as usize, head[1]);
        let order = if flags & SORTED != 0 { Some(take(LANES / 2)) } else { None };
        let lengths = if flags & RAGGED != 0 { Some(take(LANES)) } else { None };
        let columns = if flags & RUNS != 0 {
            Columns::Runs(take(width))
        } else if flags & NEAR != 0 {
            Columns::Near(take(1)[0], take(width * LANES / 2))
        } else {
            Columns::Far(take(width * LANES))
        };
        Slice { width, order, lengths, columns, rest: flags & REST != 0 }
    }

    /// Returns the row, within the chunk, of a lane of slice number `slice`.
    #[inline(always)]
    pub fn row(&self, slice: usize, lane: usize) -> usize {
        match self.order {
            Some(order) => halves(order[lane / 2])[lane % 2] as usize,
            None => slice * LANES + lane,
        }
    }

    /// Returns the number of entries of a lane's row without the rest.
    #[inline(always)]
    pub fn length(&self, lane: usize) -> usize {
        self.lengths.map_or(self.width, |lengths| lengths[lane] as usize)
    }

    /// Returns whether the lanes hold neighbouring rows in order.
    #[inline(always)]
    pub fn in_order(&self) -> bool {
        self.order.is_none()
    }
}

/// Packed slices of a whole matrix.
pub(super) struct Packed {
    pub words: Vec<u32>,
    pub values: AlignedValues,
    /// The first word and the first value of each chunk.
    pub chunks: Vec<(usize, usize)>,
    /// Whether any slice has a rest.
    pub rests: bool,
}

impl Packed {
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.words[..]) + size_of_val(&self.chunks[..]) + self.values.bytes()) as u64
    }

    /// Returns the number of values in memory; 0 if all values are an implicit 1.
    pub fn stored(&self) -> usize {
        self.values.stored()
    }

    pub fn of(matrix: &Csr) -> Result<Packed> {
        let ((words, chunks, rests), values) = match matrix.values() {
            Values::Ones => pack(matrix, None::<&[f32]>).map(|(packed, _)| (packed, Values::Ones)),
            Values::F32(values) => pack(matrix, Some(values)).map(|(packed, v)| (packed, Values::F32(v))),
            Values::F64(values) => pack(matrix, Some(values)).map(|(packed, v)| (packed, Values::F64(v))),
        }?;
        Ok(Packed { words, values: AlignedValues::of(values)?, chunks, rests })
    }
}

/// Returns the number of chunks into which the rows are cut, each of [`chunk_height`] rows; the last chunk may have fewer.
fn chunk_count(matrix: &Csr) -> usize {
    matrix.rows().div_ceil(chunk_height(matrix.rows()))
}

/// Returns the rows of a chunk.
fn chunk_rows(matrix: &Csr, chunk: usize) -> Range<usize> {
    let height = chunk_height(matrix.rows());
    chunk * height..((chunk + 1) * height).min(matrix.rows())
}

/// Words, the first word and value of each chunk, and whether any slice has a rest; then the values.
type Arrays<V> = ((Vec<u32>, Vec<(usize, usize)>, bool), Vec<V>);

/// The maximum number of chunks, and the approximate number of entries, that are packed together. Packed bands are copied into
/// one array and freed one by one, so smaller bands duplicate less memory.
const BAND: usize = 64;
const BAND_ENTRIES: usize = 1 << 18;

fn pack<V: Copy + Zeroable + Send + Sync>(matrix: &Csr, values: Option<&[V]>) -> Result<Arrays<V>> {
    let chunks = chunk_count(matrix);
    let band = (BAND_ENTRIES / (matrix.nnz() / chunks.max(1)).max(1)).clamp(1, BAND);
    let bands: Vec<Range<usize>> =
        (0..chunks).step_by(band).map(|first| first..(first + band).min(chunks)).collect();
    let packed = run_all(bands, |band| {
        let width = if values.is_some() { size_of::<V>() } else { 0 };
        let mut packer = Packer::new(matrix, values, width as f64);
        band.into_iter().try_for_each(|chunk| packer.chunk(chunk)).map(|()| packer)
    })
    .into_iter()
    .collect::<Result<Vec<_>>>()?;
    let mut words = zeros(packed.iter().map(|p| p.words.len()).sum())?;
    let mut all = zeros(packed.iter().map(|p| p.packed.len()).sum())?;
    let mut starts = Vec::with_capacity(chunks);
    let rests = packed.iter().any(|p| p.rests);
    let (mut words_left, mut values_left, mut before) = (&mut words[..], &mut all[..], (0, 0));
    let mut copies = Vec::new();
    for part in packed {
        starts.extend(part.chunks.iter().map(|&(word, value)| (before.0 + word, before.1 + value)));
        before = (before.0 + part.words.len(), before.1 + part.packed.len());
        let targets = (
            split_front(&mut words_left, part.words.len()),
            split_front(&mut values_left, part.packed.len()),
        );
        copies.push((part, targets));
    }
    run_all(copies, |(part, (words, values))| {
        words.copy_from_slice(&part.words);
        values.copy_from_slice(&part.packed);
    });
    Ok(((words, starts, rests), all))
}

/// The estimated size of a packed matrix.
#[derive(Clone, Copy, Default)]
pub(in crate::backend) struct Sample {
    /// Bytes of words and values.
    pub bytes: f64,
    /// Number of entries, padding included.
    pub padded: f64,
    /// Those entries and paddings for which x is gathered.
    pub gathered: f64,
}

impl Sample {
    fn plus(self, times: f64, other: Sample) -> Sample {
        Sample {
            bytes: self.bytes + times * other.bytes,
            padded: self.padded + times * other.padded,
            gathered: self.gathered + times * other.gathered,
        }
    }
}

/// Estimates the packed size of a matrix for values of `value` bytes, from chunks spread over the matrix. The chunk with the most
/// entries is packed too, but counts only for itself: without this rule a single very long row would be missed, or extrapolated
/// to the whole matrix.
pub(in crate::backend) fn sampled(matrix: &Csr, value: f64) -> Result<Sample> {
    /// The maximum number of sampled chunks, and the divisor of the entries that limits the sample.
    const MOST_CHUNKS: usize = 8;
    const SHARE: usize = 64;
    let (chunks, nnz) = (chunk_count(matrix), matrix.nnz());
    let entries_of = |chunk: usize| {
        let rows = chunk_rows(matrix, chunk);
        matrix.row_offsets().get(rows.end) - matrix.row_offsets().get(rows.start)
    };
    let sample_chunk = |chunk: usize| {
        let mut packer = Packer::new(matrix, None::<&[f32]>, value);
        packer.chunk(chunk)?;
        let padded = packer.padded as f64;
        let words = size_of_val(&packer.words[..]) + size_of::<(usize, usize)>();
        Ok::<Sample, Error>(Sample {
            bytes: words as f64 + padded * value,
            padded,
            gathered: packer.gathered as f64,
        })
    };
    let Some(fullest) = (0..chunks).max_by_key(|&chunk| entries_of(chunk)) else {
        return Ok(Sample::default());
    };
    let fullest_sample = sample_chunk(fullest)?;
    let budget = (nnz / SHARE / (nnz / chunks).max(1)).clamp(1, MOST_CHUNKS).min(chunks);
    let (mut entries, mut sampled_chunks) = (0, Sample::default());
    // The middles of equal parts: the first and the last rows of a mesh differ from the other rows.
    for chunk in (0..budget).map(|sample| (2 * sample + 1) * chunks / (2 * budget)).filter(|&c| c != fullest)
    {
        entries += entries_of(chunk);
        sampled_chunks = sampled_chunks.plus(1.0, sample_chunk(chunk)?);
    }
    let rest = (nnz - entries_of(fullest)) as f64;
    // Without other sampled chunks, the chunk with the most entries represents them.
    let (entries, sampled_chunks) =
        if entries == 0 { (entries_of(fullest).max(1), fullest_sample) } else { (entries, sampled_chunks) };
    Ok(fullest_sample.plus(rest / entries as f64, sampled_chunks))
}

struct Packer<'a, V> {
    matrix: &'a Csr,
    values: Option<&'a [V]>,
    /// Bytes of a value.
    value: f64,
    words: Vec<u32>,
    packed: Vec<V>,
    chunks: Vec<(usize, usize)>,
    /// Number of entries, padding included.
    padded: usize,
    /// Number of these for which x is gathered.
    gathered: usize,
    /// Whether any slice has a rest.
    rests: bool,
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

impl<'a, V: Copy + Zeroable> Packer<'a, V> {
    fn new(matrix: &'a Csr, values: Option<&'a [V]>, value: f64) -> Packer<'a, V> {
        let (words, packed, chunks) = (Vec::new(), Vec::new(), Vec::new());
        Packer { matrix, values, value, words, packed, chunks, padded: 0, gathered: 0, rests: false }
    }

    fn length(&self, row: usize) -> usize {
        self.matrix.row_range(row).len()
    }

    /// Packs a chunk.
    fn chunk(&mut self, chunk: usize) -> Result<()> {
        /// Rows are sorted only if padding exceeds this fraction (1/32) of the entries.
        const LITTLE: usize = 32;
        self.chunks.push((self.words.len(), self.packed.len()));
        let rows = chunk_rows(self.matrix, chunk);
        let mut order: Vec<usize> = rows.clone().collect();
        let entries: usize = rows.clone().map(|row| self.length(row)).sum();
        let unsorted = padded(rows.clone().map(|row| self.length(row)));
        if unsorted - entries > entries / LITTLE {
            order.sort_by_key(|&row| Reverse(self.length(row)));
        }
        let padded = padded(order.iter().map(|&row| self.length(row)));
        if self.values.is_some() {
            // Checked first, because a failed growth of a vector would abort the process.
            drop(room::<V>(self.packed.len() + padded)?);
            self.packed.reserve(padded);
        }
        drop(room::<u32>(self.words.len() + padded)?);
        let mut slices = order.chunks(LANES).enumerate();
        slices.try_for_each(|(slice, lanes)| self.slice(rows.start, slice, lanes))
    }

    fn slice(&mut self, first: usize, slice: usize, rows: &[usize]) -> Result<()> {
        let columns: [&[u32]; LANES] =
            std::array::from_fn(|lane| rows.get(lane).map_or(&[][..], |&row| self.matrix.row_columns(row)));
        let longest = columns.iter().map(|c| c.len()).max().unwrap_or(0);
        u32::try_from(longest).map_err(|_| Error::TooLarge {
            what: "the length of a row",
            value: longest as u128,
            limit: u128::from(u32::MAX),
            container: "backend sell",
        })?;
        let sorted = rows.iter().enumerate().any(|(lane, &row)| row - first != slice * LANES + lane);
        let runs = columns.iter().all(|c| c.len() == longest)
            && (0..longest)
                .all(|j| (1..LANES).all(|l| columns[l][j] == columns[0][j].wrapping_add(l as u32)));
        let block = if runs { Block::of_whole_rows(&columns) } else { Block::of(&columns, self.value) };
        let ragged = block.lanes.iter().any(|lane| lane.len() != block.width);
        let entries: usize = columns.iter().map(|c| c.len()).sum();
        let left = entries - block.entries();
        let flag = |holds, flag| if holds { flag } else { 0 };
        let padded = block.width * LANES + left;
        self.padded += padded;
        self.gathered += if runs { 0 } else { padded };
        self.words.push(block.width as u32);
        let form = if runs { RUNS } else { flag(block.near, NEAR) };
        self.words.push(flag(sorted, SORTED) | flag(ragged, RAGGED) | form | flag(left > 0, REST));
        if sorted {
            let row = |lane: usize| rows.get(lane).map_or(0, |&row| (row - first) as u32);
            self.words.extend((0..LANES / 2).map(|at| row(2 * at) | row(2 * at + 1) << 16));
        }
        if ragged {
            self.words.extend(block.lanes.iter().map(|lane| lane.len() as u32));
        }
        if runs {
            self.words.extend(columns[0]);
        } else {
            self.columns(&block, &columns);
        }
        self.rests |= left > 0;
        if left > 0 {
            self.words.extend((0..LANES).map(|lane| (columns[lane].len() - block.lanes[lane].len()) as u32));
            self.words.extend((0..LANES).flat_map(|lane| {
                let Range { start, end } = block.lanes[lane];
                columns[lane][..start].iter().chain(&columns[lane][end..])
            }));
        }
        self.values(&block, rows);
        Ok(())
    }

    /// Appends the columns of a block.
    fn columns(&mut self, block: &Block, columns: &[&[u32]; LANES]) {
        let column = |j: usize, lane: usize| {
            let at = block.lanes[lane].start + j;
            if at < block.lanes[lane].end { columns[lane][at] } else { block.low }
        };
        if !block.near {
            self.words.extend((0..block.width * LANES).map(|at| column(at / LANES, at % LANES)));
            return;
        }
        self.words.push(block.low);
        for j in 0..block.width {
            let above = |lane| column(j, lane) - block.low;
            self.words.extend((0..LANES / 2).map(|at| above(2 * at) | above(2 * at + 1) << 16));
        }
    }

    /// Appends the values of a slice: those of the block, then those of the rest.
    fn values(&mut self, block: &Block, rows: &[usize]) {
        let Some(values) = self.values else { return };
        let matrix = self.matrix;
        let of_row = |lane: usize| rows.get(lane).map_or(&[][..], |&row| &values[matrix.row_range(row)]);
        let of_lane: [&[V]; LANES] = std::array::from_fn(of_row);
        for j in 0..block.width {
            self.packed.extend((0..LANES).map(|lane| {
                let at = block.lanes[lane].start + j;
                if at < block.lanes[lane].end { of_lane[lane][at] } else { V::zeroed() }
            }));
        }
        self.packed.extend((0..LANES).flat_map(|lane| {
            let Range { start, end } = block.lanes[lane];
            of_lane[lane][..start].iter().chain(&of_lane[lane][end..])
        }));
    }
}

const _: () = assert!(CHUNK <= 1 << 16 && CHUNK.is_multiple_of(LANES));
