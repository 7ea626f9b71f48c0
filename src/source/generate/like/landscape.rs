//! Currents through a landscape, as in models of how animals spread: a grid of cells, each coupled with the four beside
//! it by the mean of their conductances.
//!
//! Pattern and natural order are exactly those of the real matrix. A cell conducts 1 to 10, patches of cells alike;
//! beside the diagonal stands minus the mean of two cells, and on it the sum of the others: multiples of a half, so
//! that every row sums to exactly 0. Positive semi-definite and singular as the real one is: a solve needs a right-hand
//! side that sums to 0.

use super::Wanted;
use crate::error::Result;
use crate::format::Csr;
use crate::source::generate::assemble::{Shape, pattern, valued};
use crate::source::generate::random::Random;

/// Cells along one side of the real grid, and of a patch.
const SIDE: usize = 1000;
const PATCH: usize = 8;

pub(super) fn make(wanted: Wanted) -> Result<Csr> {
    let side = ((SIDE as f64 * wanted.scale.sqrt()).round() as usize).max(2);
    let n = side * side;
    let neighbours = |i: usize| {
        let (x, y) = (i % side, i / side);
        let neighbours = [
            (y > 0).then(|| i - side),
            (x > 0).then(|| i - 1),
            (x + 1 < side).then_some(i + 1),
            (y + 1 < side).then_some(i + side),
        ];
        neighbours.into_iter().flatten()
    };
    // A patch gives 0 to 5, the cell itself 1 to 5.
    let conductance = |i: usize| {
        let patch = (i / side / PATCH) * side + i % side / PATCH;
        let patch = Random::at(wanted.seed, patch as u64).below(6);
        (patch + 1 + Random::at(!wanted.seed, i as u64).below(5)) as f64
    };
    let shape = Shape { rows: n, cols: n, entries: 5 * n as u128 };
    let grid = pattern(
        shape,
        |i| 1 + neighbours(i).count(),
        |i, columns| {
            columns.iter_mut().zip(neighbours(i).chain([i])).for_each(|(slot, j)| *slot = j as u32);
            columns.sort_unstable();
        },
    )?;
    valued(&grid, |i, columns, values| {
        let coupling = |j: u32| (conductance(i) + conductance(j as usize)) / 2.0;
        let others = || columns.iter().copied().filter(|&j| j as usize != i);
        for (value, &j) in values.iter_mut().zip(columns) {
            *value = if j as usize == i { others().map(coupling).sum() } else { -coupling(j) };
        }
    })
}
