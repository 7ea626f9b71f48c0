//! How slices are packed.
//!
//! Each chunk of rows is a window of its own: where that spares padding its rows are sorted by length, longest first.
//! Eight neighbouring places make a slice. A slice is a run of words, in this order:
//!
//! | words | what | when |
//! |---|---|---|
//! | 1 | width: entries of its longest row | always |
//! | 1 | flags | always |
//! | 4 | the row of each lane, in its chunk, 16 bits each | `SORTED` |
//! | 8 | the length of each lane's row | `RAGGED` |
//! | width | the column of lane 0; lane l has the l-th one after it | `RUNS` |
//! | 1 + 4 width | the lowest column, and how far above it each lane's column lies, 16 bits each | `NEAR` |
//! | 8 width | the column of each lane | otherwise |
//!
//! and of 8 width values, unless all are implicit ones. Stencils and bands consist of runs; most other matrices that
//! come from meshes are near. Padding has the lowest column and the value 0, and no product looks at it.

use super::LANES;
use crate::backend::cpu::chunked::chunk_height;
use crate::backend::cpu::narrow::AlignedValues;
use crate::device::cpu::CHUNK;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{room, run_all, split_front, zeros};
use std::cmp::Reverse;
use std::ops::Range;

const SORTED: u32 = 1;
const RAGGED: u32 = 2;
const RUNS: u32 = 4;
const NEAR: u32 = 8;

/// Where the columns of a slice stand.
#[derive(Clone, Copy)]
pub(super) enum Columns<'a> {
    Runs(&'a [u32]),
    Near(u32, &'a [u32]),
    Far(&'a [u32]),
}

impl Columns<'_> {
    /// The column of entry `j` of a lane.
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

/// A slice as it is read.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub width: usize,
    order: Option<&'a [u32]>,
    pub lengths: Option<&'a [u32]>,
    pub columns: Columns<'a>,
}

impl<'a> Slice<'a> {
    /// Takes a slice off the words.
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
        Slice { width, order, lengths, columns }
    }

    /// The row of the chunk that stands in a lane of slice number `slice` of its chunk.
    #[inline(always)]
    pub fn row(&self, slice: usize, lane: usize) -> usize {
        match self.order {
            Some(order) => halves(order[lane / 2])[lane % 2] as usize,
            None => slice * LANES + lane,
        }
    }

    /// Entries of a lane's row.
    #[inline(always)]
    pub fn length(&self, lane: usize) -> usize {
        self.lengths.map_or(self.width, |lengths| lengths[lane] as usize)
    }

    /// Whether lanes hold neighbouring rows.
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
}

impl Packed {
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.words[..]) + size_of_val(&self.chunks[..]) + self.values.bytes()) as u64
    }

    /// Number of values.
    pub fn stored(&self) -> usize {
        self.values.stored()
    }

    pub fn of(matrix: &Csr) -> Result<Packed> {
        let (words, chunks, values) = match matrix.values() {
            Values::Ones => pack(matrix, None::<&[f32]>).map(|(w, c, _)| (w, c, Values::Ones)),
            Values::F32(values) => pack(matrix, Some(values)).map(|(w, c, v)| (w, c, Values::F32(v))),
            Values::F64(values) => pack(matrix, Some(values)).map(|(w, c, v)| (w, c, Values::F64(v))),
        }?;
        Ok(Packed { words, values: AlignedValues::of(values), chunks })
    }
}

/// Number of chunks that the rows of a matrix make.
fn chunks(matrix: &Csr) -> usize {
    matrix.rows().div_ceil(chunk_height(matrix.rows()))
}

/// The rows of a chunk.
fn chunk_rows(matrix: &Csr, chunk: usize) -> Range<usize> {
    let height = chunk_height(matrix.rows());
    chunk * height..((chunk + 1) * height).min(matrix.rows())
}

/// Words, the first word and value of each chunk, values.
type Arrays<V> = (Vec<u32>, Vec<(usize, usize)>, Vec<V>);

/// Chunks that are packed together.
const BAND: usize = 64;

fn pack<V: Copy + Default + Send + Sync>(matrix: &Csr, values: Option<&[V]>) -> Result<Arrays<V>> {
    let chunks = chunks(matrix);
    let bands: Vec<Range<usize>> =
        (0..chunks.div_ceil(BAND)).map(|band| band * BAND..((band + 1) * BAND).min(chunks)).collect();
    let packed = run_all(bands, |band| {
        let mut packer =
            Packer { matrix, values, words: Vec::new(), packed: Vec::new(), chunks: Vec::new(), gathered: 0 };
        band.into_iter().try_for_each(|chunk| packer.chunk(chunk).map(drop)).map(|()| packer)
    })
    .into_iter()
    .collect::<Result<Vec<_>>>()?;
    let mut words = zeros(packed.iter().map(|p| p.words.len()).sum())?;
    let mut all = zeros(packed.iter().map(|p| p.packed.len()).sum())?;
    let mut starts = Vec::with_capacity(chunks);
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
    Ok((words, starts, all))
}

/// What packing is expected to make of a matrix.
#[derive(Clone, Copy, Default)]
pub(in crate::backend) struct Sample {
    /// Bytes of words and values.
    pub bytes: f64,
    /// Places for values, padding among them.
    pub places: f64,
    /// Those of them for which x is gathered.
    pub gathered: f64,
}

impl Sample {
    fn plus(self, times: f64, other: Sample) -> Sample {
        Sample {
            bytes: self.bytes + times * other.bytes,
            places: self.places + times * other.places,
            gathered: self.gathered + times * other.gathered,
        }
    }
}

/// What packing is expected to take where a value takes so many, from chunks spread over the matrix. The fullest
/// chunk counts for itself alone: a row that is long beyond all others would be missed, or taken for the rule.
pub(in crate::backend) fn sampled(matrix: &Csr, value: f64) -> Result<Sample> {
    /// Chunks, and the share of the entries, that are looked at.
    const MOST_CHUNKS: usize = 8;
    const SHARE: usize = 64;
    let (chunks, nnz) = (chunks(matrix), matrix.nnz());
    let entries_of = |chunk: usize| {
        let rows = chunk_rows(matrix, chunk);
        matrix.row_offsets().get(rows.end) - matrix.row_offsets().get(rows.start)
    };
    let look_at = |chunk: usize| {
        let mut packer = Packer {
            matrix,
            values: None::<&[f32]>,
            words: Vec::new(),
            packed: Vec::new(),
            chunks: Vec::new(),
            gathered: 0,
        };
        let places = packer.chunk(chunk)? as f64;
        let words = size_of_val(&packer.words[..]) + size_of::<(usize, usize)>();
        Ok::<Sample, Error>(Sample {
            bytes: words as f64 + places * value,
            places,
            gathered: packer.gathered as f64,
        })
    };
    let Some(fullest) = (0..chunks).max_by_key(|&chunk| entries_of(chunk)) else {
        return Ok(Sample::default());
    };
    let of_fullest = look_at(fullest)?;
    let budget = (nnz / SHARE / (nnz / chunks).max(1)).clamp(1, MOST_CHUNKS).min(chunks);
    let (mut entries, mut seen) = (0, Sample::default());
    // The middle of equal parts: the first and the last rows of a mesh are not like the others.
    for chunk in (0..budget).map(|sample| (2 * sample + 1) * chunks / (2 * budget)).filter(|&c| c != fullest)
    {
        entries += entries_of(chunk);
        seen = seen.plus(1.0, look_at(chunk)?);
    }
    let rest = (nnz - entries_of(fullest)) as f64;
    // Nothing but the fullest chunk was looked at.
    let (entries, seen) =
        if entries == 0 { (entries_of(fullest).max(1), of_fullest) } else { (entries, seen) };
    Ok(of_fullest.plus(rest / entries as f64, seen))
}

struct Packer<'a, V> {
    matrix: &'a Csr,
    values: Option<&'a [V]>,
    words: Vec<u32>,
    packed: Vec<V>,
    chunks: Vec<(usize, usize)>,
    /// Places for which x is gathered.
    gathered: usize,
}

/// Places of slices of rows with these lengths.
fn places(lengths: impl Iterator<Item = usize>) -> usize {
    let (mut places, mut widest) = (0, 0);
    for (i, length) in lengths.enumerate() {
        if i % LANES == 0 {
            places += widest * LANES;
            widest = 0;
        }
        widest = widest.max(length);
    }
    places + widest * LANES
}

impl<V: Copy + Default> Packer<'_, V> {
    fn length(&self, row: usize) -> usize {
        self.matrix.row_range(row).len()
    }

    /// Packs a chunk; returns its places.
    fn chunk(&mut self, chunk: usize) -> Result<usize> {
        /// Padding, in shares of the entries, that is not worth moving rows for.
        const LITTLE: usize = 32;
        self.chunks.push((self.words.len(), self.packed.len()));
        let rows = chunk_rows(self.matrix, chunk);
        let mut order: Vec<usize> = rows.clone().collect();
        let entries: usize = rows.clone().map(|row| self.length(row)).sum();
        let unsorted = places(rows.clone().map(|row| self.length(row)));
        if unsorted - entries > entries / LITTLE {
            order.sort_by_key(|&row| Reverse(self.length(row)));
        }
        let places = places(order.iter().map(|&row| self.length(row)));
        if self.values.is_some() {
            // Growth in steps would end the process where memory does.
            drop(room::<V>(self.packed.len() + places)?);
            self.packed.reserve(places);
        }
        drop(room::<u32>(self.words.len() + places)?);
        let mut slices = order.chunks(LANES).enumerate();
        slices.try_for_each(|(slice, lanes)| self.slice(rows.start, slice, lanes)).map(|()| places)
    }

    fn slice(&mut self, first: usize, slice: usize, rows: &[usize]) -> Result<()> {
        let lengths: Vec<usize> =
            (0..LANES).map(|lane| rows.get(lane).map_or(0, |&row| self.length(row))).collect();
        let width = lengths.iter().copied().max().unwrap_or(0);
        let narrow = u32::try_from(width).map_err(|_| Error::TooLarge {
            what: "the length of a row",
            value: width as u128,
            limit: u128::from(u32::MAX),
            place: "backend sell",
        })?;
        let columns: Vec<&[u32]> = (0..LANES)
            .map(|lane| rows.get(lane).map_or(&[][..], |&row| self.matrix.row_columns(row)))
            .collect();
        let (mut low, mut high) = (u32::MAX, 0);
        for columns in &columns {
            low = columns.iter().copied().fold(low, u32::min);
            high = columns.iter().copied().fold(high, u32::max);
        }
        let low = low.min(high);
        let sorted = rows.iter().enumerate().any(|(lane, &row)| row - first != slice * LANES + lane);
        let ragged = lengths.iter().any(|&length| length != width);
        let runs = !ragged
            && (0..width).all(|j| (1..LANES).all(|l| columns[l][j] == columns[0][j].wrapping_add(l as u32)));
        let near = !runs && high - low < 1 << 16;
        let flag = |holds, flag| if holds { flag } else { 0 };
        self.gathered += if runs { 0 } else { width * LANES };
        self.words.push(narrow);
        self.words.push(flag(sorted, SORTED) | flag(ragged, RAGGED) | flag(runs, RUNS) | flag(near, NEAR));
        let pair = |of: &dyn Fn(usize) -> u32, at: usize| of(2 * at) | of(2 * at + 1) << 16;
        if sorted {
            let row = |lane: usize| rows.get(lane).map_or(0, |&row| (row - first) as u32);
            self.words.extend((0..LANES / 2).map(|at| pair(&row, at)));
        }
        if ragged {
            self.words.extend(lengths.iter().map(|&length| length as u32));
        }
        let column = |j: usize, lane: usize| columns[lane].get(j).copied().unwrap_or(low);
        if runs {
            self.words.extend(&columns[0][..width]);
        } else if near {
            self.words.push(low);
            for j in 0..width {
                let above = |lane| column(j, lane) - low;
                self.words.extend((0..LANES / 2).map(|at| pair(&above, at)));
            }
        } else {
            self.words.extend((0..width * LANES).map(|at| column(at / LANES, at % LANES)));
        }
        if let Some(values) = self.values {
            for j in 0..width {
                self.packed.extend((0..LANES).map(|lane| {
                    if j < lengths[lane] {
                        values[self.matrix.row_range(rows[lane]).start + j]
                    } else {
                        V::default()
                    }
                }));
            }
        }
        Ok(())
    }
}

const _: () = assert!(CHUNK <= 1 << 16 && CHUNK.is_multiple_of(LANES));
