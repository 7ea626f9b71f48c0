//! A full or randomly thinned band around the diagonal, symmetric and positive definite, with random values.

use super::spec::{ORDER, SEED, from_to};
use super::symmetric::Pairs;
use super::{Recipe, Spec};
use crate::error::Result;
use crate::params::{Kind, Param};

/// The default half-width.
const HALF: usize = 10;

pub(super) const PARAMS: &[Param] = &[
    ORDER,
    Param::new("half", Kind::Whole(0, u64::MAX), "the half-width of the band; left out: 10"),
    Param::new("fill", from_to(0.0, 1.0), "the share of positions with an entry").or("1"),
    SEED,
];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let n = spec.order()?;
    let reach = spec.within("half", 0..=n - 1)?.unwrap_or(HALF.min(n - 1));
    Pairs { n, always: 0, reach, chance: spec.real("fill"), seed: spec.whole("seed") }.dominant(1.0)
}
