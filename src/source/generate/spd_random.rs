//! A random symmetric pattern without structure, positive definite by a dominant diagonal.

use super::symmetric::Pairs;
use super::{Recipe, Spec};
use crate::error::Result;

/// The default number of entries of a row, on average.
const ROW: usize = 16;

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    spec.allow(&["n", "row", "shift", "seed"])?;
    let n = spec.order()?;
    let row = spec.integer("row", 1..=n)?.unwrap_or(ROW.min(n));
    let shift = spec.number("shift", "from 1e-6 to 1e6", |s| (1e-6..=1e6).contains(&s))?;
    let chance = (row - 1) as f64 / (n - 1).max(1) as f64;
    Pairs { n, always: 0, reach: n - 1, chance, seed: spec.seed()? }.dominant(shift.unwrap_or(1.0))
}
