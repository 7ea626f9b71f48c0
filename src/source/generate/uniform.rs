//! The same number of entries in each row, in independently drawn columns, values from 0 to 1: no locality.

use super::assemble::{Shape, pattern, valued};
use super::random::Random;
use super::sample::distinct;
use super::{Loaded, Recipe, Spec};
use crate::error::Result;

/// The default number of entries of a row.
const ROW: usize = 16;

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    spec.allow(&["n", "row", "cols", "seed"])?;
    let rows = spec.order()?;
    let cols = spec.columns(rows)?;
    let row = spec.integer("row", 1..=cols)?.unwrap_or(ROW.min(cols));
    let seed = spec.seed()?;
    let shape = Shape { rows, cols, entries: rows as u128 * row as u128 };
    Ok(Recipe::new(shape.bytes(), move || {
        let pattern = pattern(
            shape,
            |_| row,
            |i, columns| distinct(&mut Random::at(seed, 2 * i as u64), cols, columns),
        )?;
        random_values(&pattern, seed)
    }))
}

/// Adds values drawn between 0 and 1 to a pattern.
pub(super) fn random_values(pattern: &crate::format::Csr, seed: u64) -> Result<Loaded> {
    let matrix = valued(pattern, |i, _, values| {
        let mut random = Random::at(seed, 2 * i as u64 + 1);
        values.iter_mut().for_each(|value| *value = 1.0 - random.unit());
    })?;
    let stored = matrix.nnz() as u64;
    Ok(Loaded::new(matrix, stored, false))
}
