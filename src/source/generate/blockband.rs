//! Dense blocks around the diagonal with row sums of 1: the transition matrices that the paper
//! calls block-band.
//!
//! Block row `i` contains its diagonal block, the two adjacent blocks, and random blocks within the band. At
//! the borders the band is shifted inside. With `contiguous`, all blocks are packed around the diagonal. The
//! diagonal block and its two neighbours are always present: the neighbours make the chain irreducible, the
//! diagonal makes it aperiodic. Values S are uniform between 0 and 1; P = D^-1 S with D the row sums. With
//! `shift=d` the matrix is I - d P.
//!
//! With `symmetric`, pattern and values of S are symmetric, P = D^-1/2 S D^-1/2, and the matrix is always I -
//! d P, with d = 0.9 by default. This P is similar to D^-1 S, whose entries are not negative and whose rows
//! sum to 1. So the eigenvalues of P lie between
//! -1 and 1, those of I - d P between 1 - d and 1 + d, whatever pattern, density and block size are. The
//! default is therefore positive definite, with a condition number of at most 19. Rounding of its entries
//! moves eigenvalues by about 1e-16 times the length of a row.

use super::assemble::{Shape, pattern_from, valued, valued_from};
use super::random::Random;
use super::sample::distinct;
use super::spec::{ORDER, SEED, SHARE, flag};
use super::symmetric::{Pairs, within};
use super::{Loaded, Recipe, Spec};
use crate::error::Result;
use crate::format::Csr;
use crate::params::{Kind, Param};
use std::ops::Range;

/// The factor d of a symmetric matrix I - d P.
const SHIFT: f64 = 0.9;

pub(super) const PARAMS: &[Param] = &[
    ORDER,
    Param::new("block", Kind::Whole(1, 64), "rows of a block; left out: 5"),
    Param::new("density", SHARE, "the share of blocks in a block row").or("0.05"),
    Param::new("band", SHARE, "the half-width of the band as a share of the rows; left out: 0.25"),
    flag("contiguous", "the blocks are packed around the diagonal"),
    flag("symmetric", "pattern and values are symmetric"),
    Param::new("shift", SHARE, "d of I - d P; left out: P itself, or 0.9 if symmetric"),
    SEED,
];

/// The described band, measured in blocks.
#[derive(Clone)]
struct Band {
    /// Block rows.
    rows: usize,
    /// Blocks in each block row.
    row: usize,
    /// Half-width of the band; `None` if contiguous.
    half: Option<usize>,
    seed: u64,
}

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let n = spec.order()?;
    let size = spec.within("block", 1..=n.min(64))?.unwrap_or(5);
    let symmetric = spec.has("symmetric");
    let shift = spec.find_real("shift");
    if !n.is_multiple_of(size) {
        return Err(spec.fault(format!("n, {n}, is not a multiple of the block size {size}")));
    }
    let band = Band::of(spec, n / size)?;
    let pairs = if symmetric { Some(band.pairs(spec)?) } else { None };
    if pairs.is_none() {
        band.check_width(spec)?;
    }
    let row = band.row * size;
    let bytes = Shape::square(n, row).bytes();
    let Some(pairs) = pairs else {
        let some = move |rows: Range<usize>| some_rows(rows, n, size, &band, shift);
        let make = some.clone();
        let whole = move || make(0..n).map(|matrix| Loaded::new(matrix, (n * row) as u64, false));
        return Ok(Recipe::new(bytes, whole).by_equal_rows([n, row], some));
    };
    Ok(Recipe::new(bytes, move || make_symmetric(n, size, pairs, shift.unwrap_or(SHIFT))))
}

/// Makes some of the `n` rows of the matrix of blocks of `size` rows.
fn some_rows(rows: Range<usize>, n: usize, size: usize, band: &Band, shift: Option<f64>) -> Result<Csr> {
    let of_blocks = rows.start / size..rows.end.div_ceil(size);
    let blocks = band.blocks(of_blocks.clone())?;
    let entries = filled(rows.clone(), n, size, (&blocks, of_blocks.start))?;
    let raw = |i: usize, j: u32| 1.0 - Random::at(!band.seed, i as u64 * n as u64 + u64::from(j)).unit();
    valued_from(rows.start, &entries, |i, columns, values| {
        let sum = columns.iter().map(|&j| raw(i, j)).sum::<f64>();
        for (&j, value) in columns.iter().zip(values) {
            *value = shifted(raw(i, j) / sum, i == j as usize, shift);
        }
    })
}

/// Makes the symmetric matrix I - d P of blocks of `size` rows, with the blocks of `pairs` and the shift d.
fn make_symmetric(n: usize, size: usize, pairs: Pairs, shift: f64) -> Result<Loaded> {
    let entries = filled(0..n, n, size, (&pairs.pattern()?, 0))?;
    let raw = |i: usize, j: u32| 1.0 - Pairs::random(n, pairs.seed, i, j as usize).unit();
    let sums = entries.map_rows(|i| entries.row_columns(i).iter().map(|&j| raw(i, j)).sum::<f64>());
    let roots: Vec<f64> = sums.iter().map(|sum| sum.sqrt()).collect();
    let matrix = valued(&entries, |i, columns, values| {
        for (&j, value) in columns.iter().zip(values) {
            *value = shifted(raw(i, j) / (roots[i] * roots[j as usize]), i == j as usize, Some(shift));
        }
    })?;
    let stored = matrix.nnz() as u64;
    Ok(Loaded::new(matrix, stored, true))
}

/// Returns some rows of a matrix of ones with the pattern of dense blocks of `size` rows. `blocks` has the
/// pattern of block rows, and its first row is block row `first`.
fn filled(rows: Range<usize>, n: usize, size: usize, (blocks, first): (&Csr, usize)) -> Result<Csr> {
    let of_blocks = |i: usize| blocks.row_columns(i / size - first);
    // The rows of a whole matrix have all entries of their blocks; some rows have about as many.
    let entries = blocks.nnz() as u128 * (size * size) as u128;
    pattern_from(
        rows.start,
        Shape { rows: rows.len(), cols: n, entries },
        |i| of_blocks(i).len() * size,
        |i, columns| {
            for (run, &block) in columns.chunks_exact_mut(size).zip(of_blocks(i)) {
                run.iter_mut().zip(block * size as u32..).for_each(|(slot, j)| *slot = j);
            }
        },
    )
}

/// Returns the entry p of P, or that of I - d P for a shift d.
fn shifted(p: f64, diagonal: bool, shift: Option<f64>) -> f64 {
    shift.map_or(p, |d| f64::from(diagonal) - d * p)
}

impl Band {
    fn of(spec: &Spec<'_>, rows: usize) -> Result<Band> {
        let (density, width) = (spec.real("density"), spec.find_real("band"));
        let contiguous = spec.has("contiguous");
        if contiguous && width.is_some() {
            return Err(spec.fault(
                "band and contiguous exclude each other: contiguous blocks already form the narrowest band",
            ));
        }
        let blocks = |share: f64| (share * rows as f64).round() as usize;
        let half = (!contiguous).then(|| blocks(width.unwrap_or(0.25)).max(1));
        let (row, least) = (blocks(density), rows.min(3));
        if row < least {
            let needed = least as f64 / rows as f64;
            return Err(spec.fault(format!(
                "density {density} is less than the diagonal block and its neighbours need, {needed:.2e}"
            )));
        }
        Ok(Band { rows, row, half, seed: spec.whole("seed") })
    }

    /// Returns the columns that block row `i` may use.
    fn window(&self, i: usize) -> std::ops::Range<usize> {
        let (width, before) = match self.half {
            None => (self.row, self.row / 2),
            Some(half) => ((2 * half + 1).min(self.rows), half),
        };
        let start = i.saturating_sub(before).min(self.rows - width);
        start..start + width
    }

    fn too_dense(&self, spec: &Spec<'_>, most: f64) -> crate::error::Error {
        let density = self.row as f64 / self.rows as f64;
        spec.fault(format!("density {density} is too large: the full band holds {most:.4}; widen band"))
    }

    /// Checks that a row has no more blocks than the band is wide.
    fn check_width(&self, spec: &Spec<'_>) -> Result<()> {
        match self.window(0).len() {
            width if self.row > width => Err(self.too_dense(spec, width as f64 / self.rows as f64)),
            _ => Ok(()),
        }
    }

    /// Makes some block rows of the pattern of blocks, with the same number in each row.
    fn blocks(&self, rows: Range<usize>) -> Result<Csr> {
        pattern_from(
            rows.start,
            Shape::rows_of_square(&rows, self.rows, self.row),
            |_| self.row,
            |i, columns| {
                let window = self.window(i);
                let core = i.saturating_sub(1)..(i + 2).min(self.rows);
                let (sure, drawn) = columns.split_at_mut(core.len());
                sure.iter_mut().zip(core.clone()).for_each(|(slot, j)| *slot = j as u32);
                distinct(&mut Random::at(self.seed, i as u64), window.len() - core.len(), drawn);
                for slot in drawn {
                    let column = window.start + *slot as usize;
                    *slot = if column < core.start { column } else { column + core.len() } as u32;
                }
                columns.sort_unstable();
            },
        )
    }

    /// Returns the distribution of a symmetric pattern of blocks with the wanted density on average.
    fn pairs(&self, spec: &Spec<'_>) -> Result<Pairs> {
        let within = |far| within(self.rows, far);
        let positions = (self.rows * self.rows) as f64;
        let wanted = self.row as f64 * self.rows as f64;
        let always = match self.half {
            Some(_) => 1.min(self.rows - 1),
            None => (0..self.rows - 1).find(|&far| within(far) >= wanted).unwrap_or(self.rows - 1),
        };
        let reach = self.half.map_or(always, |half| half.min(self.rows - 1));
        let free = within(reach) - within(always);
        let missing = (wanted - within(always)).max(0.0);
        if self.half.is_some() && missing > free {
            return Err(self.too_dense(spec, within(reach) / positions));
        }
        let chance = if missing > 0.0 && free > 0.0 { missing / free } else { 0.0 };
        Ok(Pairs { n: self.rows, always, reach, chance, seed: self.seed })
    }
}
