//! Entries at each position with the same probability, values from 0 to 1: the matrices of papers that state a sparsity.

use super::assemble::{Shape, pattern};
use super::random::Random;
use super::sample::thinned;
use super::uniform::random_values;
use super::{Recipe, Spec};
use crate::error::Result;

/// The default share of positions without an entry.
const SPARSITY: f64 = 0.99;

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    spec.allow(&["n", "sparsity", "cols", "seed"])?;
    let rows = spec.order()?;
    let cols = spec.columns(rows)?;
    let sparsity = spec.number("sparsity", "from 0 to below 1", |s| (0.0..1.0).contains(&s))?;
    let chance = 1.0 - sparsity.unwrap_or(SPARSITY);
    let seed = spec.seed()?;
    let shape = Shape { rows, cols, entries: (rows as f64 * cols as f64 * chance) as u128 };
    let row_columns = move |i: usize| thinned(Random::at(seed, 2 * i as u64), cols, chance);
    Ok(Recipe::new(shape.bytes(), move || {
        let pattern = pattern(
            shape,
            |i| row_columns(i).count(),
            |i, columns| columns.iter_mut().zip(row_columns(i)).for_each(|(slot, j)| *slot = j as u32),
        )?;
        random_values(&pattern, seed)
    }))
}
