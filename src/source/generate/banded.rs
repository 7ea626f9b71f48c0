//! A full or randomly thinned band around the diagonal, symmetric and positive definite, with random values.

use super::symmetric::Pairs;
use super::{Recipe, Spec};
use crate::error::Result;

/// The default half-width.
const HALF: usize = 10;

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    spec.allow(&["n", "half", "fill", "seed"])?;
    let n = spec.order()?;
    let reach = spec.integer("half", 0..=n - 1)?.unwrap_or(HALF.min(n - 1));
    let fill = spec.number("fill", "from 0 to 1", |f| (0.0..=1.0).contains(&f))?;
    Pairs { n, always: 0, reach, chance: fill.unwrap_or(1.0), seed: spec.seed()? }.dominant(1.0)
}
