//! A random symmetric pattern without structure, positive definite by a dominant diagonal.

use super::spec::{ENTRIES_OF_ROW, ORDER, SEED, from_to};
use super::symmetric::Pairs;
use super::{Recipe, Spec};
use crate::error::Result;
use crate::params::Param;

/// The default number of entries of a row, on average.
const ROW: usize = 16;

pub(super) const PARAMS: &[Param] = &[
    ORDER,
    ENTRIES_OF_ROW,
    Param::new("shift", from_to(1e-6, 1e6), "the least eigenvalue, or less").or("1"),
    SEED,
];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let n = spec.order()?;
    let row = spec.within("row", 1..=n)?.unwrap_or(ROW.min(n));
    let chance = (row - 1) as f64 / (n - 1).max(1) as f64;
    Pairs { n, always: 0, reach: n - 1, chance, seed: spec.whole("seed") }.dominant(spec.real("shift"))
}
