//! The packed storage of slices.
//!
//! Each chunk of rows is sorted separately: if that saves padding, its rows are sorted by length,
//! longest first. Eight consecutive rows of the resulting order make a slice. A slice is a sequence of
//! 32-bit words, in this order:
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
//! plus 8 width values and the values of the rest, unless all values are implicit ones. Stencils and bands
//! consist of runs; most other matrices that come from meshes are near. Padding has the base column and the
//! value 0, and no product reads its x.
//!
//! A few long rows would pad all lanes, and a few columns far from the other columns would store all columns
//! in 32 bits, as in web graphs. So a slice may have a rest: the entries outside a 16-bit window around the
//! middle of its longest row, or beyond some width, if that takes clearly fewer bytes.

use super::LANES;
use super::layout::{Count, NEAR, RAGGED, REST, RUNS, SORTED, Writer};
use crate::backend::cpu::aligned::AlignedValues;
use crate::backend::cpu::chunked::chunk_height;
use crate::device::cpu::CHUNK;
use crate::error::{Error, Result};
use crate::format::narrow::narrows;
use crate::format::{Csr, Values};
use crate::parallel::{run_all, split_front, zeros};
use bytemuck::Zeroable;
use std::ops::Range;

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
    pub(crate) fn get(&self, j: usize, lane: usize) -> usize {
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
    pub(crate) fn take(words: &mut &'a [u32]) -> Slice<'a> {
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
    pub(crate) fn row(&self, slice: usize, lane: usize) -> usize {
        match self.order {
            Some(order) => halves(order[lane / 2])[lane % 2] as usize,
            None => slice * LANES + lane,
        }
    }

    /// Returns the number of entries of a lane's row without the rest.
    #[inline(always)]
    pub(crate) fn length(&self, lane: usize) -> usize {
        self.lengths.map_or(self.width, |lengths| lengths[lane] as usize)
    }

    /// Returns whether the lanes hold neighbouring rows in order.
    #[inline(always)]
    pub(crate) fn in_order(&self) -> bool {
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
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&self.words[..]) + size_of_val(&self.chunks[..]) + self.values.bytes()) as u64
    }

    /// Returns the number of values in memory; 0 if all values are an implicit 1.
    pub(crate) fn stored(&self) -> usize {
        self.values.stored()
    }

    /// Packs a matrix; values become single precision if this is exact for all of them.
    pub(crate) fn of(matrix: &Csr) -> Result<Packed> {
        let ((words, chunks, rests), values) = match matrix.values() {
            Values::Ones => pack(matrix, None, |value: f32| value).map(|(packed, _)| (packed, Values::Ones)),
            Values::F32(values) => {
                pack(matrix, Some(values), |value| value).map(|(packed, v)| (packed, Values::F32(v)))
            }
            Values::F64(values) if narrows(matrix) => {
                pack(matrix, Some(values), |value| value as f32).map(|(packed, v)| (packed, Values::F32(v)))
            }
            Values::F64(values) => {
                pack(matrix, Some(values), |value| value).map(|(packed, v)| (packed, Values::F64(v)))
            }
        }?;
        Ok(Packed { words, values: AlignedValues::of(values)?, chunks, rests })
    }
}

/// Returns the number of chunks into which the rows are cut, each of [`chunk_height`] rows; the
/// last chunk may have fewer.
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

/// The chunks that a thread packs as one task.
struct Band<'a, V> {
    chunks: Range<usize>,
    words: &'a mut [u32],
    values: &'a mut [V],
}

/// Packs a matrix, with values as `convert` returns them. A first pass over the rows counts words and values,
/// so that the second pass writes to their places.
fn pack<S: Copy + Sync, V: Copy + Zeroable + Send + Sync>(
    matrix: &Csr,
    values: Option<&[S]>,
    convert: impl Fn(S) -> V + Sync,
) -> Result<Arrays<V>> {
    /// Entries of a band, approximately.
    const BAND: usize = 1 << 18;
    let chunks = chunk_count(matrix);
    let band = (BAND / (matrix.nnz() / chunks.max(1)).max(1)).max(1);
    let bands: Vec<Range<usize>> =
        (0..chunks).step_by(band).map(|first| first..(first + band).min(chunks)).collect();
    let width = if values.is_some() { size_of::<V>() as f64 } else { 0.0 };
    let counted = run_all(bands.clone(), |band| {
        band.map(|chunk| Count::of(matrix, chunk_rows(matrix, chunk), width)).collect::<Result<Vec<_>>>()
    });
    let (mut starts, mut total) = (Vec::with_capacity(chunks), Count::default());
    for count in counted.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten() {
        starts.push((total.words, total.padded));
        total = total.plus(count);
    }
    let mut words: Vec<u32> = zeros(total.words)?;
    let mut packed: Vec<V> = zeros(if values.is_some() { total.padded } else { 0 })?;
    let start = |chunk: usize| starts.get(chunk).copied().unwrap_or((total.words, total.padded));
    let (mut words_left, mut values_left) = (&mut words[..], &mut packed[..]);
    let bands = bands.into_iter().map(|chunks| {
        let (from, to) = (start(chunks.start), start(chunks.end));
        let words = split_front(&mut words_left, to.0 - from.0);
        Band { chunks, words, values: split_front(&mut values_left, to.1 - from.1) }
    });
    run_all(bands.collect(), |band| {
        let mut writer = Writer { matrix, values, convert: &convert, words: band.words, packed: band.values };
        band.chunks.into_iter().try_for_each(|chunk| writer.chunk(chunk_rows(matrix, chunk), width))
    })
    .into_iter()
    .collect::<Result<()>>()?;
    if values.is_none() {
        starts.iter_mut().for_each(|(_, value)| *value = 0);
    }
    Ok(((words, starts, total.rests), packed))
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

/// Estimates the packed size of a matrix for values of `value` bytes, from chunks spread over the matrix. The
/// chunk with the most entries is packed too, but counts only for itself: without this rule a single very
/// long row would be missed, or extrapolated to the whole matrix.
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
        let count = Count::of(matrix, chunk_rows(matrix, chunk), value)?;
        let padded = count.padded as f64;
        let words = count.words * size_of::<u32>() + size_of::<(usize, usize)>();
        Ok::<Sample, Error>(Sample {
            bytes: words as f64 + padded * value,
            padded,
            gathered: count.gathered as f64,
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

const _: () = assert!(CHUNK <= 1 << 16 && CHUNK.is_multiple_of(LANES));
