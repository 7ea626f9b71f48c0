//! Sweeps over vectors of several columns: a few rows of up to 64 columns at a time go through all
//! updates and dot products.
//!
//! The loops run over the columns of a row, which are contiguous, with one coefficient for each column.
//! Columns that are done keep their elements. A column gets the same bits as in a sweep over that column
//! alone: terms are added in the order of [`Operands::chunk`], and products in the same partial sums.

use super::{LANES, Operands, joined, magnitude, marked};
use crate::device::sweep::{Coefficient, Factor, MAX_DOTS, MAX_TERMS, Operand, Summand, Term, Update};
use crate::scalar::Scalar;
use std::ops::Range;

/// Most columns of a tile.
const WIDTH: usize = 64;
/// Most elements of a tile: the tiles of a few vectors fit the first-level cache.
const ELEMENTS: usize = 512;

/// Rows and columns of a tile, and the number of columns of the vectors.
#[derive(Clone)]
struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
    k: usize,
}

/// Partial sums: for each of [`LANES`] one sum per column.
type Sums = [[f64; WIDTH]; LANES];

/// The elements of an operand in a tile, row by row.
#[derive(Clone, Copy)]
enum Source<T> {
    /// Contiguous columns: the address of the first element, and the distance of rows.
    Wide(*const T, usize),
    /// One element for all columns: the address of the first row's.
    Narrow(*const T),
    Ones,
}

impl<T: Scalar> Source<T> {
    /// Returns the columns of a row; a single element stands for all columns.
    ///
    /// # Safety
    /// The row, counted from the first of the tile, exists and has `width` columns, which no
    /// thread writes meanwhile.
    #[inline(always)]
    unsafe fn row(&self, row: usize, width: usize) -> Row<'_, T> {
        // SAFETY: promised by the caller.
        unsafe {
            match self {
                Source::Wide(start, distance) => {
                    Row::Wide(std::slice::from_raw_parts(start.add(row * distance), width))
                }
                Source::Narrow(start) => Row::One(*start.add(row)),
                Source::Ones => Row::One(T::from_f64(1.0)),
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Row<'a, T> {
    Wide(&'a [T]),
    One(T),
}

/// Calls `f` with the index of each column and the elements of two rows there.
#[inline(always)]
fn each<T: Scalar>(a: Row<'_, T>, b: Row<'_, T>, width: usize, mut f: impl FnMut(usize, T, T)) {
    match (a, b) {
        (Row::Wide(a), Row::Wide(b)) => a.iter().zip(b).enumerate().for_each(|(c, (a, b))| f(c, *a, *b)),
        (Row::Wide(a), Row::One(b)) => a.iter().enumerate().for_each(|(c, a)| f(c, *a, b)),
        (Row::One(a), Row::Wide(b)) => b.iter().enumerate().for_each(|(c, b)| f(c, a, *b)),
        (Row::One(a), Row::One(b)) => (0..width).for_each(|c| f(c, a, b)),
    }
}

/// The elements of a tile for each term of an update.
type Buffers<T> = [[T; ELEMENTS]; MAX_TERMS];

/// A term of an update: a coefficient per column and the elements.
#[derive(Clone, Copy)]
struct Wide<T> {
    by: [T; WIDTH],
    source: Source<T>,
}

impl<T: Scalar> Operands<'_, T> {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn chunk_columns_avx2(&self, chunk: usize, rows: Range<usize>) {
        // SAFETY: as promised for `chunk_columns`.
        unsafe { self.chunk_columns(chunk, rows) }
    }

    /// Runs one chunk of vectors of several columns, some of which may be done.
    ///
    /// # Safety
    /// As for [`Operands::chunk`].
    #[inline(always)]
    pub(super) unsafe fn chunk_columns(&self, chunk: usize, rows: Range<usize>) {
        let (k, dots) = (self.state.k, self.sweep.dots.len());
        let mut buffers: Buffers<T> = [[T::default(); ELEMENTS]; MAX_TERMS];
        for first in (0..k).step_by(WIDTH) {
            let columns = first..(first + WIDTH).min(k);
            if self.state.done[columns.clone()].iter().all(|done| *done != 0) {
                continue;
            }
            let mut sums: [Sums; MAX_DOTS] = [[[0.0; WIDTH]; LANES]; MAX_DOTS];
            let height = (ELEMENTS / columns.len()).max(1);
            for start in rows.clone().step_by(height) {
                let tile = Tile { rows: start..(start + height).min(rows.end), columns: columns.clone(), k };
                for update in self.sweep.updates {
                    // SAFETY: the tile lies inside the chunk, which this thread alone has.
                    unsafe { self.update(update, &tile, &mut buffers) };
                }
                for (sums, dot) in sums.iter_mut().zip(self.sweep.dots) {
                    // SAFETY: as above, and the updates of this tile are over.
                    unsafe { self.add(dot.of, &tile, start - rows.start, sums) };
                }
            }
            for (d, sums) in sums[..dots].iter().enumerate() {
                for column in columns.clone() {
                    let sum = joined(std::array::from_fn(|lane| sums[lane][column - first]));
                    // SAFETY: this chunk's element of the chunks x dots x k partial sums.
                    unsafe { *self.partials.add((chunk * dots + d) * k + column) = sum };
                }
            }
        }
    }

    /// Returns where the elements of an operand in a tile are.
    #[inline(always)]
    fn source(&self, operand: Operand, tile: &Tile) -> Source<T> {
        let wide = |start: *const T| {
            Source::Wide(start.wrapping_add(tile.rows.start * tile.k + tile.columns.start), tile.k)
        };
        match operand {
            Operand::Write(i) => wide(self.writes[i as usize].cast_const()),
            Operand::Read(i) if self.widths[i as usize] == tile.k => wide(self.reads[i as usize]),
            Operand::Read(i) => Source::Narrow(self.reads[i as usize].wrapping_add(tile.rows.start)),
            Operand::Ones => Source::Ones,
        }
    }

    /// Returns the coefficients of a term.
    #[inline(always)]
    fn coefficients(&self, by: Coefficient, columns: &Range<usize>) -> [T; WIDTH] {
        let mut all = [T::default(); WIDTH];
        all.iter_mut().zip(columns.clone()).for_each(|(to, column)| *to = self.coefficient(by, column));
        all
    }

    /// Performs an update of a tile. `buffers` are filled by terms whose elements are not contiguous columns,
    /// or are a product or a quotient.
    ///
    /// # Safety
    /// The tile lies inside every operand, and no other thread has it.
    #[inline(always)]
    unsafe fn update(&self, update: &Update<'_>, tile: &Tile, buffers: &mut Buffers<T>) {
        let is_own = |term: &Term| term.v == Operand::Write(update.target) && term.factor.is_none();
        let own = update.terms.iter().find(|term| is_own(term));
        let own = own.map(|term| self.coefficients(term.by, &tile.columns));
        let mut terms = [None; MAX_TERMS];
        let others = update.terms.iter().filter(|term| !is_own(term));
        for ((to, buffer), term) in terms.iter_mut().zip(buffers).zip(others) {
            let source = self.source(term.v, tile);
            let source = match (source, term.factor) {
                (Source::Wide(..), None) => source,
                // SAFETY: the tile lies inside the operands.
                (source, factor) => unsafe { self.fill(buffer, source, factor, tile) },
            };
            *to = Some(Wide { by: self.coefficients(term.by, &tile.columns), source });
        }
        let target = self.writes[update.target as usize];
        // SAFETY: the tile lies inside the target and the sources, and no source is the target: a term of the
        // target is `own`, and products were copied to buffers.
        unsafe {
            match (own, terms) {
                (Some(own), [None, ..]) => self.combine(target, tile, [], |c, y, []| own[c] * y),
                (Some(own), [Some(a), None, _]) => {
                    self.combine(target, tile, [a.source], |c, y, [u]| own[c] * y + a.by[c] * u)
                }
                (Some(own), [Some(a), Some(b), _]) => {
                    self.combine(target, tile, [a.source, b.source], |c, y, [u, v]| {
                        own[c] * y + a.by[c] * u + b.by[c] * v
                    })
                }
                (None, [Some(a), None, _]) => self.combine(target, tile, [a.source], |c, _, [u]| a.by[c] * u),
                (None, [Some(a), Some(b), None]) => {
                    self.combine(target, tile, [a.source, b.source], |c, _, [u, v]| a.by[c] * u + b.by[c] * v)
                }
                (None, [Some(a), Some(b), Some(d)]) => {
                    self.combine(target, tile, [a.source, b.source, d.source], |c, _, [u, v, w]| {
                        a.by[c] * u + b.by[c] * v + d.by[c] * w
                    })
                }
                (None, [None, ..]) => {}
            }
        }
    }

    /// Writes a product, a quotient, or elements that all columns share to the buffer.
    ///
    /// # Safety
    /// The tile lies inside the operands.
    #[inline(always)]
    unsafe fn fill(
        &self,
        buffer: &mut [T; ELEMENTS],
        v: Source<T>,
        factor: Option<Factor>,
        tile: &Tile,
    ) -> Source<T> {
        let width = tile.columns.len();
        let w = factor.map_or(Source::Ones, |factor| self.source(factor.operand(), tile));
        for (row, to) in buffer.chunks_exact_mut(width).take(tile.rows.len()).enumerate() {
            // SAFETY: promised by the caller.
            let (v, w) = unsafe { (v.row(row, width), w.row(row, width)) };
            match factor {
                None => each(v, w, width, |c, v, _| to[c] = v),
                Some(Factor::Times(_)) => each(v, w, width, |c, v, w| to[c] = v * w),
                Some(Factor::Over(_)) => each(v, w, width, |c, v, w| to[c] = v / w),
            }
        }
        Source::Wide(buffer.as_ptr(), width)
    }

    /// Overwrites the elements of a tile with `f` of the column, the element and the elements of the sources,
    /// which are contiguous columns. Elements of columns that are done are kept.
    ///
    /// # Safety
    /// The tile lies inside the target and the sources, which are other vectors, and no other thread has it.
    #[inline(always)]
    unsafe fn combine<const N: usize>(
        &self,
        target: *mut T,
        tile: &Tile,
        sources: [Source<T>; N],
        f: impl Fn(usize, T, [T; N]) -> T,
    ) {
        let width = tile.columns.len();
        let done = &self.state.done[tile.columns.clone()];
        let all = done.iter().all(|done| *done == 0);
        for (index, row) in tile.rows.clone().enumerate() {
            // SAFETY: promised by the caller.
            let (y, sources) = unsafe {
                let start = target.add(row * tile.k + tile.columns.start);
                let row = |source: Source<T>| match source {
                    Source::Wide(start, distance) => {
                        std::slice::from_raw_parts(start.add(index * distance), width)
                    }
                    Source::Narrow(_) | Source::Ones => &[],
                };
                (std::slice::from_raw_parts_mut(start, width), sources.map(row))
            };
            let sources = sources.map(|source| &source[..width]);
            if all {
                for c in 0..width.min(WIDTH) {
                    y[c] = f(c, y[c], sources.map(|source| source[c]));
                }
            } else {
                for c in 0..width.min(WIDTH) {
                    let new = f(c, y[c], sources.map(|source| source[c]));
                    y[c] = if done[c] == 0 { new } else { y[c] };
                }
            }
        }
    }

    /// Adds the products of a tile whose first row is number `from` of its chunk to the partial sums.
    ///
    /// # Safety
    /// The tile lies inside the operands.
    #[inline(always)]
    unsafe fn add(&self, of: Summand, tile: &Tile, from: usize, sums: &mut Sums) {
        let width = tile.columns.len();
        let mut operands = of.operands();
        let (Some(a), Some(b)) = (operands.next(), operands.next()) else { return };
        let (a, b) = (self.source(a, tile), self.source(b, tile));
        for index in 0..tile.rows.len() {
            let sums = &mut sums[(from + index) % LANES];
            // SAFETY: promised by the caller.
            let (a, b) = unsafe { (a.row(index, width), b.row(index, width)) };
            match of {
                Summand::Product(..) => each(a, b, width, |c, a, b| sums[c] += a.to_f64() * b.to_f64()),
                Summand::Magnitude(..) => each(a, b, width, |c, a, b| sums[c] += magnitude(a, b)),
                Summand::Marked(..) => each(a, b, width, |c, a, b| sums[c] += marked(a, b)),
            }
        }
    }
}

/// Computes the dot product of each column of two row-major tiles, with the bits that
/// [`dot_tile`](super::dot_tile) gives for that column alone.
pub(crate) fn dot_columns<T: Scalar>(avx2: bool, a: &[T], b: &[T], to: &mut [f64]) {
    match avx2 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has AVX2.
        true => unsafe { dot_columns_avx2(a, b, to) },
        _ => dot_columns_of(a, b, to),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn dot_columns_avx2<T: Scalar>(a: &[T], b: &[T], to: &mut [f64]) {
    dot_columns_of(a, b, to);
}

#[inline(always)]
fn dot_columns_of<T: Scalar>(a: &[T], b: &[T], to: &mut [f64]) {
    let k = to.len();
    for (group, to) in to.chunks_mut(WIDTH).enumerate() {
        let (first, width) = (group * WIDTH, to.len());
        let mut sums: Sums = [[0.0; WIDTH]; LANES];
        for (row, (a, b)) in a.chunks_exact(k).zip(b.chunks_exact(k)).enumerate() {
            let sums = &mut sums[row % LANES];
            let (a, b) = (&a[first..first + width], &b[first..first + width]);
            each(Row::Wide(a), Row::Wide(b), width, |c, a, b| sums[c] += a.to_f64() * b.to_f64());
        }
        for (column, to) in to.iter_mut().enumerate() {
            *to = joined(std::array::from_fn(|lane| sums[lane][column]));
        }
    }
}
