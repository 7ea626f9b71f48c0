//! The same number of entries in each row, in independently drawn columns, values from 0 to 1: no locality.

use super::assemble::{Shape, pattern_from, valued, valued_from};
use super::random::Random;
use super::sample::distinct;
use super::spec::{COLUMNS, ENTRIES_OF_ROW, ORDER, SEED};
use super::{Loaded, Recipe, Spec};
use crate::error::Result;
use crate::format::Csr;
use crate::params::Param;
use std::ops::Range;

/// The default number of entries of a row.
const ROW: usize = 16;

pub(super) const PARAMS: &[Param] = &[ORDER, ENTRIES_OF_ROW, COLUMNS, SEED];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let rows = spec.order()?;
    let cols = spec.columns(rows)?;
    let row = spec.within("row", 1..=cols)?.unwrap_or(ROW.min(cols));
    let seed = spec.whole("seed");
    let shape = Shape { rows, cols, entries: rows as u128 * row as u128 };
    let some = move |rows: Range<usize>| some_rows(rows, cols, row, seed);
    let recipe = Recipe::new(shape.bytes(), move || some(0..rows).map(loaded));
    Ok(if rows == cols { recipe.by_equal_rows([rows, row], some) } else { recipe })
}

/// Makes some rows with `row` entries in each.
fn some_rows(rows: Range<usize>, cols: usize, row: usize, seed: u64) -> Result<Csr> {
    let pattern = pattern_from(
        rows.start,
        Shape { rows: rows.len(), cols, entries: rows.len() as u128 * row as u128 },
        |_| row,
        |i, columns| distinct(&mut Random::at(seed, 2 * i as u64), cols, columns),
    )?;
    valued_from(rows.start, &pattern, |i, _, values| random_row(seed, i, values))
}

/// Draws the values of a row between 0 and 1.
fn random_row(seed: u64, i: usize, values: &mut [f64]) {
    let mut random = Random::at(seed, 2 * i as u64 + 1);
    values.iter_mut().for_each(|value| *value = 1.0 - random.unit());
}

/// Adds values drawn between 0 and 1 to a pattern.
pub(super) fn random_values(pattern: &Csr, seed: u64) -> Result<Loaded> {
    valued(pattern, |i, _, values| random_row(seed, i, values)).map(loaded)
}

fn loaded(matrix: Csr) -> Loaded {
    let stored = matrix.nnz() as u64;
    Loaded::new(matrix, stored, false)
}
