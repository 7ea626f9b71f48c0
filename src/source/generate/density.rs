//! Entries at each position with the same probability, values from 0 to 1: the matrices of
//! papers that state a sparsity.

use super::assemble::{Shape, pattern};
use super::random::Random;
use super::sample::thinned;
use super::spec::{COLUMNS, ORDER, SEED};
use super::uniform::random_values;
use super::{Recipe, Spec};
use crate::error::Result;
use crate::params::{Kind, Param};
use std::ops::Bound;

const BELOW_1: Kind = Kind::Real(Bound::Included(0.0), Bound::Excluded(1.0));

pub(super) const PARAMS: &[Param] = &[
    ORDER,
    Param::new("sparsity", BELOW_1, "the share of positions without an entry").or("0.99"),
    COLUMNS,
    SEED,
];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let rows = spec.order()?;
    let cols = spec.columns(rows)?;
    let chance = 1.0 - spec.real("sparsity");
    let seed = spec.whole("seed");
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
