//! Currents through a landscape, as in models of animal movement: a grid of cells, each coupled with its four
//! neighbours by the mean of their conductances.
//!
//! Pattern and natural order are exactly those of the real matrix. A cell has a conductance of 1 to 10,
//! similar within a patch. An off-diagonal entry is minus the mean conductance of its two cells, and
//! the diagonal is minus the sum of the row's other entries. All are multiples of a half, so every row
//! sums to exactly 0. Positive semi-definite and singular like the real matrix: a solve needs a
//! right-hand side that sums to 0.

use super::Wanted;
use crate::error::Result;
use crate::format::Csr;
use crate::source::generate::assemble::{Shape, pattern, valued};
use crate::source::generate::random::Random;

/// Cells along one side of the real grid, and along one side of a patch.
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
    // The patch contributes 0 to 5, the cell 1 to 5.
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
        let off_diagonal = || columns.iter().copied().filter(|&j| j as usize != i);
        for (value, &j) in values.iter_mut().zip(columns) {
            *value = if j as usize == i { off_diagonal().map(coupling).sum() } else { -coupling(j) };
        }
    })
}
