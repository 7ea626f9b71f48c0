//! One row that is coupled with a large share of all rows, on a background of random couplings. The shape is
//! that of packet traces: a kernel that assigns a row to a thread or a warp waits for a single one.
//!
//! Symmetric in pattern and values. Row 0 is coupled with `hub` rows drawn at random; repeated draws count
//! once. The number of background couplings is half of the rest of `edges`. Each joins any row and one of the
//! first 200,000, row 0 excluded. Values lie between 0 and 1.

use super::distinct::{self, Positions, distinct};
use super::random::Random;
use super::spec::{ORDER, SEED};
use super::{Loaded, Recipe, Spec, rmat};
use crate::error::Result;
use crate::params::{Kind, Param};

/// Every background coupling has one end below this row.
const BUSY: u64 = 200_000;

pub(super) const PARAMS: &[Param] = &[
    ORDER,
    Param::new("hub", Kind::Whole(1, u64::MAX), "couplings of row 0"),
    Param::new(
        "edges",
        Kind::Whole(0, u64::MAX),
        "all couplings; left out: as in the trace that this imitates",
    ),
    SEED,
];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let n = spec.order()? as u64;
    if n < 2 {
        return Err(spec.fault("a star needs two rows or more"));
    }
    let fault = || spec.fault("'hub', the number of couplings of row 0, is not given");
    let hub = spec.within("hub", 1..=n as usize)?.ok_or_else(fault)? as u64;
    // The default keeps the ratio of couplings to rows of the trace that this imitates.
    let usual = (u128::from(n) * 19_020_160 / 18_571_154) as usize;
    let edges = spec.within("edges", 0..=(n * (n - 1) / 2) as usize)?.unwrap_or(usual) as u64;
    let background = edges.saturating_sub(distinct_among(n - 1, hub)) / 2;
    let seed = spec.whole("seed");
    let draws = hub + background;
    Ok(Recipe::new(distinct::bytes(draws), move || star(n, hub, draws, seed)))
}

fn star(n: u64, hub: u64, draws: u64, seed: u64) -> Result<Loaded> {
    let draw = |k| -> Positions {
        let mut random = Random::at(seed, k);
        let any = 1 + random.below(n - 1) as u32;
        let other = if k < hub { 0 } else { 1 + random.below((n - 1).min(BUSY - 1)) as u32 };
        [Some((any, other)), (any != other).then_some((other, any))]
    };
    let value = |(row, col): (u32, u32)| rmat::weight(seed, (row.min(col), row.max(col)));
    let matrix = distinct(n as usize, draws, draw, Some(&value))?;
    let stored = matrix.nnz() as u64;
    Ok(Loaded::new(matrix, stored, true))
}

/// Returns the expected number of different values among `draws` draws out of `n`.
fn distinct_among(n: u64, draws: u64) -> u64 {
    let missed = (draws as f64 * (-1.0 / n as f64).ln_1p()).exp();
    (n as f64 * (1.0 - missed)).round() as u64
}
