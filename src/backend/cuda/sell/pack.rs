//! The packed storage of slices.
//!
//! Each window of rows is sorted by length, longest first, if that saves padding. 32 consecutive rows of the resulting order make
//! a slice, which four numbers describe:
//!
//! | number | content |
//! |---|---|
//! | 0 | start of the slice's words, in units of 8 |
//! | 1 | start of the slice's values, in units of 32 |
//! | 2 | width, the entries of the longest row; flags in the highest four bits |
//! | 3 | lowest column |
//!
//! The words are, in this order, followed by up to seven zeros:
//!
//! | words | content | when |
//! |---|---|---|
//! | 32 | the row of each lane | `SORTED` |
//! | 32 | the length of each lane's row | `RAGGED` |
//! | width | the column of lane 0; lane l has the l-th one after it | `RUNS` |
//! | 16 width | the offset of each lane's column from the lowest one, 16 bits each | `NEAR` |
//! | 32 width | the column of each lane | otherwise |
//!
//! There are 32 width values, unless all values are implicit ones: the value and the column of entry j of lane l have the index
//! 32 j + l. Padding has the lowest column and the value 0, and no product reads its x. Lanes of the last slice beyond the last
//! row have length 0 and, in a sorted slice, a row index that does not exist.

use super::LANES;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{room, run_all, split_front, zeros};
use bytemuck::Zeroable;
use std::cmp::Reverse;
use std::ops::Range;

// The same as in kernels/sell.cu.
const SORTED: u32 = 1 << 28;
const RAGGED: u32 = 1 << 29;
const RUNS: u32 = 1 << 30;
const NEAR: u32 = 1 << 31;
/// The longest row that a slice can describe.
const MOST_WIDE: usize = (1 << 28) - 1;
/// Alignment of a slice's words.
const UNIT: usize = 8;

/// Rows that are sorted together (sigma).
pub(super) const WINDOW: usize = 4096;
/// Windows that are packed together.
const BAND: usize = 8;

/// Packed slices of a whole matrix.
pub(super) struct Packed {
    /// Rows and columns.
    pub shape: (usize, usize),
    pub slices: Vec<[u32; 4]>,
    pub words: Vec<u32>,
    pub values: Values,
    /// Number of entries, padding included.
    pub padded_entries: usize,
}

impl Packed {
    pub fn of(matrix: &Csr) -> Result<Packed> {
        match matrix.values() {
            Values::Ones => pack(matrix, None::<&[f32]>, |_| Values::Ones),
            Values::F32(values) => pack(matrix, Some(values), Values::F32),
            Values::F64(values) => pack(matrix, Some(values), Values::F64),
        }
    }
}

fn too_large(what: &'static str, value: usize, limit: usize) -> Error {
    Error::TooLarge { what, value: value as u128, limit: limit as u128, container: "backend sell" }
}

fn pack<V: Copy + Zeroable + Send + Sync>(
    matrix: &Csr,
    values: Option<&[V]>,
    wrap: impl Fn(Vec<V>) -> Values,
) -> Result<Packed> {
    let rows = matrix.rows();
    if rows >= u32::MAX as usize {
        return Err(too_large("the number of rows", rows, u32::MAX as usize - 1));
    }
    let band = |first: usize| first..(first + BAND * WINDOW).min(rows);
    let bands: Vec<Range<usize>> = (0..rows).step_by(BAND * WINDOW).map(band).collect();
    let packed = run_all(bands, |band| {
        let (slices, words, packed) = (Vec::new(), Vec::new(), Vec::new());
        let mut packer = Packer { matrix, values, slices, words, packed, padded_entries: 0 };
        let mut windows = band.clone().step_by(WINDOW);
        windows.try_for_each(|first| packer.window(first..(first + WINDOW).min(band.end))).map(|()| packer)
    })
    .into_iter()
    .collect::<Result<Vec<_>>>()?;
    let mut slices = room(rows.div_ceil(LANES))?;
    let mut words = zeros(packed.iter().map(|part| part.words.len()).sum())?;
    let mut all = zeros(packed.iter().map(|part| part.packed.len()).sum())?;
    let (mut words_left, mut values_left) = (&mut words[..], &mut all[..]);
    let (mut before, mut copies) = ((0, 0), Vec::new());
    for part in packed {
        for &[words, values, width, low] in &part.slices {
            let (words, values) = (before.0 / UNIT + words as usize, before.1 / LANES + values as usize);
            let narrow = |what, value: usize| {
                u32::try_from(value).map_err(|_| too_large(what, value, u32::MAX as usize))
            };
            let starts =
                (narrow("the offset of column words", words)?, narrow("the offset of values", values)?);
            slices.push([starts.0, starts.1, width, low]);
        }
        before = (before.0 + part.words.len(), before.1 + part.padded_entries);
        let words = split_front(&mut words_left, part.words.len());
        let values = split_front(&mut values_left, part.packed.len());
        copies.push((part, words, values));
    }
    run_all(copies, |(part, words, values)| {
        words.copy_from_slice(&part.words);
        values.copy_from_slice(&part.packed);
    });
    let shape = (rows, matrix.cols());
    Ok(Packed { shape, slices, words, values: wrap(all), padded_entries: before.1 })
}

/// Returns the entries, padding included, of slices of rows in this order.
fn padded_entries(order: &[usize], length: &impl Fn(usize) -> usize) -> usize {
    let widest = |rows: &[usize]| rows.iter().map(|&row| length(row)).max().unwrap_or(0);
    order.chunks(LANES).map(|rows| LANES * widest(rows)).sum()
}

/// Returns the order in which the rows of a window are stored: by length if that saves padding.
pub(super) fn storage_order(rows: Range<usize>, length: impl Fn(usize) -> usize) -> Vec<usize> {
    /// Rows are sorted only if padding exceeds this fraction (1/32) of the entries.
    const LITTLE: usize = 32;
    let mut order: Vec<usize> = rows.collect();
    let entries: usize = order.iter().map(|&row| length(row)).sum();
    if padded_entries(&order, &length) - entries > entries / LITTLE {
        order.sort_by_key(|&row| Reverse(length(row)));
    }
    order
}

/// Returns whether the columns of each entry of `width` are consecutive from lane to lane; all rows must be that long.
pub(super) fn runs(columns: &[&[u32]; LANES], width: usize) -> bool {
    let long = columns.iter().all(|columns| columns.len() == width);
    let follow = |j: usize| (1..LANES).all(|l| columns[l][j] as usize == columns[0][j] as usize + l);
    long && (0..width).all(follow)
}

/// Returns whether all columns lie within 16 bits of the lowest one. Columns increase within a row.
pub(super) fn near(columns: &[&[u32]; LANES]) -> bool {
    let low = columns.iter().filter_map(|columns| columns.first()).min().copied().unwrap_or(0);
    let high = columns.iter().filter_map(|columns| columns.last()).max().copied().unwrap_or(0);
    high - low < 1 << 16
}

/// Packs neighbouring windows; slice starts are relative to the first window.
struct Packer<'a, V> {
    matrix: &'a Csr,
    values: Option<&'a [V]>,
    slices: Vec<[u32; 4]>,
    words: Vec<u32>,
    packed: Vec<V>,
    padded_entries: usize,
}

impl<V: Copy + Zeroable> Packer<'_, V> {
    fn length(&self, row: usize) -> usize {
        self.matrix.row_range(row).len()
    }

    fn window(&mut self, rows: Range<usize>) -> Result<()> {
        let order = storage_order(rows.clone(), |row| self.length(row));
        let padded_entries = padded_entries(&order, &|row| self.length(row));
        // Checked first, because a failed growth of a vector would abort the process.
        if self.values.is_some() {
            drop(room::<V>(self.packed.len() + padded_entries)?);
            self.packed.reserve(padded_entries);
        }
        drop(room::<u32>(self.words.len() + padded_entries)?);
        let mut slices = order.chunks(LANES).enumerate();
        slices.try_for_each(|(slice, lanes)| self.slice(rows.start + slice * LANES, lanes))
    }

    /// Packs the slice whose first row in sorted order has the index `first`.
    fn slice(&mut self, first: usize, rows: &[usize]) -> Result<()> {
        let matrix = self.matrix;
        let columns: [&[u32]; LANES] =
            std::array::from_fn(|lane| rows.get(lane).map_or(&[][..], |&row| matrix.row_columns(row)));
        let width = columns.iter().map(|columns| columns.len()).max().unwrap_or(0);
        if width > MOST_WIDE {
            return Err(too_large("the length of a row", width, MOST_WIDE));
        }
        // Columns increase within a row.
        let low = columns.iter().filter_map(|columns| columns.first()).min().copied().unwrap_or(0);
        let high = columns.iter().filter_map(|columns| columns.last()).max().copied().unwrap_or(0);
        let sorted = rows.iter().enumerate().any(|(lane, &row)| row != first + lane);
        let ragged = columns.iter().any(|columns| columns.len() != width);
        let runs = !ragged && runs(&columns, width);
        let near = !runs && high - low < 1 << 16;
        let flag = |holds, flag| if holds { flag } else { 0 };
        let flags = flag(sorted, SORTED) | flag(ragged, RAGGED) | flag(runs, RUNS) | flag(near, NEAR);
        // The limit is checked after all bands are combined.
        let starts = (self.words.len() / UNIT, self.padded_entries / LANES);
        self.slices.push([starts.0 as u32, starts.1 as u32, width as u32 | flags, low]);
        if sorted {
            let row = |lane| rows.get(lane).map_or(u32::MAX, |&row| row as u32);
            self.words.extend((0..LANES).map(row));
        }
        if ragged {
            self.words.extend(columns.iter().map(|columns| columns.len() as u32));
        }
        let column = |j: usize, lane: usize| columns[lane].get(j).copied().unwrap_or(low);
        if runs {
            self.words.extend(&columns[0][..width]);
        } else if near {
            let above = |index: usize| column(index / LANES, index % LANES) - low;
            let pairs = (0..width * LANES).step_by(2);
            self.words.extend(pairs.map(|index| above(index) | above(index + 1) << 16));
        } else {
            self.words.extend((0..width * LANES).map(|index| column(index / LANES, index % LANES)));
        }
        self.words.resize(self.words.len().next_multiple_of(UNIT), 0);
        self.padded_entries += width * LANES;
        if let Some(values) = self.values {
            let starts: [usize; LANES] =
                std::array::from_fn(|lane| rows.get(lane).map_or(0, |&row| matrix.row_range(row).start));
            for j in 0..width {
                self.packed.extend((0..LANES).map(|lane| match j < columns[lane].len() {
                    true => values[starts[lane] + j],
                    false => V::zeroed(),
                }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the product as the kernel computes it: each lane goes through its row.
    fn multiply(packed: &Packed, rows: usize, x: &[f64]) -> Vec<f64> {
        let mut y = vec![f64::NAN; rows];
        for (number, &[words, values, width, low]) in packed.slices.iter().enumerate() {
            let (flags, width) = (width, (width & (SORTED - 1)) as usize);
            for lane in 0..LANES {
                let mut words = &packed.words[words as usize * UNIT..];
                let mut row = number * LANES + lane;
                let mut length = width;
                if flags & SORTED != 0 {
                    row = words[lane] as usize;
                    words = &words[LANES..];
                }
                if flags & RAGGED != 0 {
                    length = words[lane] as usize;
                    words = &words[LANES..];
                }
                let column = |j: usize| match flags & (RUNS | NEAR) {
                    RUNS => words[j] + lane as u32,
                    NEAR => {
                        let index = j * LANES + lane;
                        low + (words[index / 2] >> (16 * (index % 2)) & 0xffff)
                    }
                    _ => words[j * LANES + lane],
                };
                let value = |j: usize| packed.values.get((values as usize + j) * LANES + lane);
                if row < rows {
                    assert!(y[row].is_nan(), "row {row} occurs twice");
                    y[row] = (0..length).map(|j| value(j) * x[column(j) as usize]).sum();
                }
            }
        }
        y
    }

    fn check(matrix: &Csr) -> Packed {
        let x: Vec<f64> = (0..matrix.cols()).map(|j| (j * 37 % 101) as f64 - 50.0).collect();
        let packed = Packed::of(matrix).unwrap();
        assert_eq!(packed.slices.len(), matrix.rows().div_ceil(LANES));
        assert_eq!(multiply(&packed, matrix.rows(), &x), matrix.multiply_reference(&x));
        packed
    }

    fn generated(what: &str) -> Csr {
        crate::source::load(what).unwrap().matrix
    }

    #[test]
    fn packed_slices_multiply_like_the_matrix() {
        for what in
            ["poisson2d:211x199", "hex27:9x8x7,dof=3", "uniform:n=70001,row=3", "rmat:scale=12,edges=60000"]
        {
            let matrix = generated(what);
            check(&matrix);
            check(&Csr::with_pattern(matrix.pattern().clone(), Values::Ones).unwrap());
        }
        for (rows, cols) in [(0, 0), (0, 3), (3, 0), (33, 5)] {
            let offsets = crate::format::Offsets::U32(vec![0; rows + 1]);
            check(&Csr::new(rows, cols, offsets, vec![], Values::F64(vec![])).unwrap());
        }
    }

    #[test]
    fn stencils_store_little_more_than_their_values() {
        let matrix = generated("poisson2d:256x256");
        let packed = check(&matrix);
        let words = size_of_val(&packed.words[..]) + size_of_val(&packed.slices[..]);
        assert!(words < matrix.nnz(), "{words} bytes in addition to the values of {} entries", matrix.nnz());
        assert!(packed.padded_entries < matrix.nnz() * 33 / 32);
    }
}
