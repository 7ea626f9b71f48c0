//! How slices are packed.
//!
//! Each window of rows is sorted by length, longest first, where that spares padding. 32 neighbouring places make a
//! slice, which four numbers describe:
//!
//! | number | what |
//! |---|---|
//! | 0 | where its words begin, in eights |
//! | 1 | where its values begin, in 32s |
//! | 2 | its width, the entries of its longest row; flags in the highest four bits |
//! | 3 | its lowest column |
//!
//! Its words are, in this order, and then up to seven zeros:
//!
//! | words | what | when |
//! |---|---|---|
//! | 32 | the row of each lane | `SORTED` |
//! | 32 | the length of each lane's row | `RAGGED` |
//! | width | the column of lane 0; lane l has the l-th one after it | `RUNS` |
//! | 16 width | how far each lane's column lies above the lowest one, 16 bits each | `NEAR` |
//! | 32 width | the column of each lane | otherwise |
//!
//! and its values 32 width, unless all are implicit ones: entry j of lane l at 32 j + l, as its column. Padding has the lowest
//! column and the value 0, and no product looks at it. Lanes of the last slice beyond the last row have length 0 and,
//! where rows are named, no row that exists.

use super::LANES;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{room, run_all, split_front, zeros};
use bytemuck::Zeroable;
use std::cmp::Reverse;
use std::ops::Range;

// As in kernels/sell.cu.
const SORTED: u32 = 1 << 28;
const RAGGED: u32 = 1 << 29;
const RUNS: u32 = 1 << 30;
const NEAR: u32 = 1 << 31;
/// The longest row that a slice can describe.
const MOST_WIDE: usize = (1 << 28) - 1;
/// Words that begin together.
const UNIT: usize = 8;

/// Rows that are sorted together: sigma.
const WINDOW: usize = 4096;
/// Windows that are packed together.
const BAND: usize = 8;

/// Packed slices of a whole matrix.
pub(super) struct Packed {
    /// Rows and columns.
    pub shape: (usize, usize),
    pub slices: Vec<[u32; 4]>,
    pub words: Vec<u32>,
    pub values: Values,
    /// Places for values, padding among them.
    pub places: usize,
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
    Error::TooLarge { what, value: value as u128, limit: limit as u128, place: "backend sell" }
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
        let mut packer = Packer { matrix, values, slices, words, packed, places: 0 };
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
            let starts = (narrow("where words begin", words)?, narrow("where values begin", values)?);
            slices.push([starts.0, starts.1, width, low]);
        }
        before = (before.0 + part.words.len(), before.1 + part.places);
        let words = split_front(&mut words_left, part.words.len());
        let values = split_front(&mut values_left, part.packed.len());
        copies.push((part, words, values));
    }
    run_all(copies, |(part, words, values)| {
        words.copy_from_slice(&part.words);
        values.copy_from_slice(&part.packed);
    });
    let shape = (rows, matrix.cols());
    Ok(Packed { shape, slices, words, values: wrap(all), places: before.1 })
}

/// Packs neighbouring windows; where slices begin counts from the first of them.
struct Packer<'a, V> {
    matrix: &'a Csr,
    values: Option<&'a [V]>,
    slices: Vec<[u32; 4]>,
    words: Vec<u32>,
    packed: Vec<V>,
    places: usize,
}

impl<V: Copy + Zeroable> Packer<'_, V> {
    fn length(&self, row: usize) -> usize {
        self.matrix.row_range(row).len()
    }

    /// Places of slices of these rows.
    fn places(&self, order: &[usize]) -> usize {
        let widest = |rows: &[usize]| rows.iter().map(|&row| self.length(row)).max().unwrap_or(0);
        order.chunks(LANES).map(|rows| LANES * widest(rows)).sum()
    }

    fn window(&mut self, rows: Range<usize>) -> Result<()> {
        /// Padding, in shares of the entries, that is not worth moving rows for.
        const LITTLE: usize = 32;
        let mut order: Vec<usize> = rows.clone().collect();
        let entries: usize = rows.clone().map(|row| self.length(row)).sum();
        if self.places(&order) - entries > entries / LITTLE {
            order.sort_by_key(|&row| Reverse(self.length(row)));
        }
        let places = self.places(&order);
        // Growth in steps would end the process where memory does.
        if self.values.is_some() {
            drop(room::<V>(self.packed.len() + places)?);
            self.packed.reserve(places);
        }
        drop(room::<u32>(self.words.len() + places)?);
        let mut slices = order.chunks(LANES).enumerate();
        slices.try_for_each(|(slice, lanes)| self.slice(rows.start + slice * LANES, lanes))
    }

    /// Packs the slice whose first place is `first`.
    fn slice(&mut self, first: usize, rows: &[usize]) -> Result<()> {
        let matrix = self.matrix;
        let columns: [&[u32]; LANES] =
            std::array::from_fn(|lane| rows.get(lane).map_or(&[][..], |&row| matrix.row_columns(row)));
        let width = columns.iter().map(|columns| columns.len()).max().unwrap_or(0);
        if width > MOST_WIDE {
            return Err(too_large("the length of a row", width, MOST_WIDE));
        }
        // Columns stand in order in a row.
        let low = columns.iter().filter_map(|columns| columns.first()).min().copied().unwrap_or(0);
        let high = columns.iter().filter_map(|columns| columns.last()).max().copied().unwrap_or(0);
        let sorted = rows.iter().enumerate().any(|(lane, &row)| row != first + lane);
        let ragged = columns.iter().any(|columns| columns.len() != width);
        let follow = |j: usize| (1..LANES).all(|l| columns[l][j] as usize == columns[0][j] as usize + l);
        let runs = !ragged && (0..width).all(follow);
        let near = !runs && high - low < 1 << 16;
        let flag = |holds, flag| if holds { flag } else { 0 };
        let flags = flag(sorted, SORTED) | flag(ragged, RAGGED) | flag(runs, RUNS) | flag(near, NEAR);
        // Checked where all bands come together.
        let starts = (self.words.len() / UNIT, self.places / LANES);
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
            let above = |place: usize| column(place / LANES, place % LANES) - low;
            let places = (0..width * LANES).step_by(2);
            self.words.extend(places.map(|place| above(place) | above(place + 1) << 16));
        } else {
            self.words.extend((0..width * LANES).map(|place| column(place / LANES, place % LANES)));
        }
        self.words.resize(self.words.len().next_multiple_of(UNIT), 0);
        self.places += width * LANES;
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

    /// The product as the kernel computes it: each lane goes through its row.
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
                        let place = j * LANES + lane;
                        low + (words[place / 2] >> (16 * (place % 2)) & 0xffff)
                    }
                    _ => words[j * LANES + lane],
                };
                let value = |j: usize| packed.values.get((values as usize + j) * LANES + lane);
                if row < rows {
                    assert!(y[row].is_nan(), "row {row} comes twice");
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
    fn what_is_packed_is_the_matrix() {
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
    fn stencils_take_little_more_than_their_values() {
        let matrix = generated("poisson2d:256x256");
        let packed = check(&matrix);
        let words = size_of_val(&packed.words[..]) + size_of_val(&packed.slices[..]);
        assert!(words < matrix.nnz(), "{words} bytes beside the values of {} entries", matrix.nnz());
        assert!(packed.places < matrix.nnz() * 33 / 32);
    }
}
