//! The packed storage of slices.
//!
//! Each window of rows is sorted by length, longest first, if that saves padding. 32 consecutive rows of the
//! resulting order make a slice, which four numbers describe:
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
//! There are 32 width values, unless all values are implicit ones: the value and the column of entry j
//! of lane l have the index 32 j + l. Padding has the lowest column and the value 0, and no product
//! reads its x. Lanes of the last slice beyond the last row have length 0 and, in a sorted slice, a row
//! index that does not exist.

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
    pub(crate) fn of(matrix: &Csr) -> Result<Packed> {
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

/// Refuses more rows than can be counted in 32 bits.
pub(super) fn check_rows(rows: usize) -> Result<()> {
    match rows >= u32::MAX as usize {
        true => Err(too_large("the number of rows", rows, u32::MAX as usize - 1)),
        false => Ok(()),
    }
}

/// Packs a matrix. A first pass over the columns finds the shape of each slice, so that the second
/// pass writes to its place.
fn pack<V: Copy + Zeroable + Send + Sync>(
    matrix: &Csr,
    values: Option<&[V]>,
    wrap: impl Fn(Vec<V>) -> Values,
) -> Result<Packed> {
    let rows = matrix.rows();
    check_rows(rows)?;
    let window = |first: usize| first..(first + WINDOW).min(rows);
    let windows = run_all((0..rows).step_by(WINDOW).map(window).collect(), |rows| Window::of(matrix, rows));
    let windows = windows.into_iter().collect::<Result<Vec<_>>>()?;
    let shapes = windows.iter().flat_map(|window| &window.slices).copied();
    let Layout { slices, words: words_before, entries: entries_before } = Layout::of(shapes, rows)?;
    let mut words = zeros(words_before)?;
    let mut all = zeros(if values.is_some() { entries_before } else { 0 })?;
    let (mut words_left, mut values_left) = (&mut words[..], &mut all[..]);
    let places = windows.iter().map(|window| {
        let words = split_front(&mut words_left, window.slices.iter().map(Shape::words).sum());
        let entries: usize = window.slices.iter().map(|shape| shape.width * LANES).sum();
        (window, words, split_front(&mut values_left, if values.is_some() { entries } else { 0 }))
    });
    run_all(places.collect(), |(window, mut words, mut packed): (&Window, &mut [u32], &mut [V])| {
        for (number, shape) in window.slices.iter().enumerate() {
            let lanes = Lanes::of(matrix, window, number);
            lanes.write_words(shape, split_front(&mut words, shape.words()));
            if let Some(values) = values {
                lanes.write_values(matrix, values, split_front(&mut packed, shape.width * LANES));
            }
        }
    });
    let shape = (rows, matrix.cols());
    Ok(Packed { shape, slices, words, values: wrap(all), padded_entries: entries_before })
}

/// Where the words and values of each slice begin, and how many there are in all.
pub(super) struct Layout {
    /// The four numbers of each slice.
    pub slices: Vec<[u32; 4]>,
    /// Number of words.
    pub words: usize,
    /// Number of entries, padding included.
    pub entries: usize,
}

impl Layout {
    /// Computes the layout of the slices of a matrix with that many rows.
    pub(crate) fn of(shapes: impl Iterator<Item = Shape>, rows: usize) -> Result<Layout> {
        let mut layout = Layout { slices: room(rows.div_ceil(LANES))?, words: 0, entries: 0 };
        for shape in shapes {
            if shape.width > MOST_WIDE {
                return Err(too_large("the length of a row", shape.width, MOST_WIDE));
            }
            let narrow = |what, value: usize| {
                u32::try_from(value).map_err(|_| too_large(what, value, u32::MAX as usize))
            };
            let words = narrow("the offset of column words", layout.words / UNIT)?;
            let values = narrow("the offset of values", layout.entries / LANES)?;
            layout.slices.push([words, values, shape.width as u32 | shape.flags, shape.low]);
            layout.words += shape.words();
            layout.entries += shape.width * LANES;
        }
        Ok(layout)
    }
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

/// Returns whether the columns of each entry of `width` are consecutive from lane to lane; all
/// rows must be that long.
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

/// How a slice is stored.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Entries of the longest row.
    pub width: usize,
    pub flags: u32,
    /// The lowest column.
    pub low: u32,
}

impl Shape {
    /// Returns the number of words.
    fn words(&self) -> usize {
        let if_set = |flag, words| if self.flags & flag != 0 { words } else { 0 };
        let columns = match self.flags & (RUNS | NEAR) {
            RUNS => self.width,
            NEAR => LANES / 2 * self.width,
            _ => LANES * self.width,
        };
        (if_set(SORTED, LANES) + if_set(RAGGED, LANES) + columns).next_multiple_of(UNIT)
    }
}

/// Rows that are sorted together, and their slices.
struct Window {
    rows: Range<usize>,
    /// The rows in the order of their lanes, unless that is their own order.
    order: Option<Vec<usize>>,
    slices: Vec<Shape>,
}

impl Window {
    /// Finds the shapes of the slices of a window.
    fn of(matrix: &Csr, rows: Range<usize>) -> Result<Window> {
        let order = storage_order(rows.clone(), |row| matrix.row_range(row).len());
        let sorted = order.iter().zip(rows.clone()).any(|(&row, place)| row != place);
        let count = rows.len().div_ceil(LANES);
        let mut window = Window { rows, order: sorted.then_some(order), slices: room(count)? };
        for slice in 0..count {
            window.slices.push(Lanes::of(matrix, &window, slice).shape());
        }
        Ok(window)
    }
}

/// The rows of a slice.
struct Lanes<'a> {
    /// The place of the first lane in the order of the matrix.
    first: usize,
    /// The row of each lane; none beyond the last row of the window.
    rows: [Option<usize>; LANES],
    columns: [&'a [u32]; LANES],
}

impl<'a> Lanes<'a> {
    fn of(matrix: &'a Csr, window: &Window, slice: usize) -> Lanes<'a> {
        let first = window.rows.start + slice * LANES;
        let rows = std::array::from_fn(|lane| match &window.order {
            Some(order) => order.get(slice * LANES + lane).copied(),
            None => Some(first + lane).filter(|row| *row < window.rows.end),
        });
        Lanes { first, rows, columns: rows.map(|row| row.map_or(&[][..], |row| matrix.row_columns(row))) }
    }

    fn shape(&self) -> Shape {
        let columns = &self.columns;
        let width = columns.iter().map(|columns| columns.len()).max().unwrap_or(0);
        // Columns increase within a row.
        let low = columns.iter().filter_map(|columns| columns.first()).min().copied().unwrap_or(0);
        let sorted = (self.first..).zip(&self.rows).any(|(place, row)| row.is_some_and(|row| row != place));
        let ragged = columns.iter().any(|columns| columns.len() != width);
        let runs = !ragged && runs(columns, width);
        let near = !runs && near(columns);
        let flag = |holds, flag| if holds { flag } else { 0 };
        let flags = flag(sorted, SORTED) | flag(ragged, RAGGED) | flag(runs, RUNS) | flag(near, NEAR);
        Shape { width, flags, low }
    }

    /// Writes the words of the slice, which are zero before.
    fn write_words(&self, shape: &Shape, mut words: &mut [u32]) {
        let Shape { width, flags, low } = *shape;
        let columns = &self.columns;
        if flags & SORTED != 0 {
            let rows = self.rows.map(|row| row.map_or(u32::MAX, |row| row as u32));
            split_front(&mut words, LANES).copy_from_slice(&rows);
        }
        if flags & RAGGED != 0 {
            split_front(&mut words, LANES).copy_from_slice(&columns.map(|columns| columns.len() as u32));
        }
        let column = |j: usize, lane: usize| columns[lane].get(j).copied().unwrap_or(low);
        match flags & (RUNS | NEAR) {
            RUNS => words[..width].copy_from_slice(columns[0]),
            NEAR => {
                for (j, pairs) in words.chunks_exact_mut(LANES / 2).take(width).enumerate() {
                    let above = |lane| column(j, lane) - low;
                    (0..).step_by(2).zip(pairs).for_each(|(l, pair)| *pair = above(l) | above(l + 1) << 16);
                }
            }
            _ => {
                for (j, all) in words.chunks_exact_mut(LANES).take(width).enumerate() {
                    all.iter_mut().enumerate().for_each(|(lane, word)| *word = column(j, lane));
                }
            }
        }
    }

    /// Writes the values of the slice, which are zero before.
    fn write_values<V: Copy>(&self, matrix: &Csr, values: &[V], packed: &mut [V]) {
        for (lane, row) in self.rows.iter().enumerate() {
            let values = row.map_or(&[][..], |row| &values[matrix.row_range(row)]);
            packed.iter_mut().skip(lane).step_by(LANES).zip(values).for_each(|(to, value)| *to = *value);
        }
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
