//! The pattern of trilinear hexahedral elements: every node couples with its 27 neighbours, in dense blocks of
//! `dof` x `dof`. Values are a fixed hash of row and column, the diagonal makes every row strictly dominant: positive
//! definite, and in shape like structural matrices (F1: `hex27:48x48x50,dof=3`).

use super::{Loaded, Spec, assemble};
use crate::error::Result;

/// The off-diagonal value at a place: the same across the diagonal.
fn value(row: usize, col: usize) -> f64 {
    let (low, high) = (row.min(col) as u64, row.max(col) as u64);
    let hash = low.wrapping_mul(2_654_435_761).wrapping_add(high * 40_503) % 1000;
    -(hash as f64 / 1000.0 + 0.05)
}

pub(super) fn make(spec: &Spec<'_>) -> Result<Loaded> {
    spec.allow(&["dof"])?;
    let [nx, ny, nz] = spec.extents()?;
    let dof: usize = match spec.get("dof") {
        None => 1,
        Some(text) => text
            .parse()
            .ok()
            .filter(|d| (1..=64).contains(d))
            .ok_or_else(|| spec.fault(format!("dof '{text}' is not a number from 1 to 64")))?,
    };
    let n = spec.rows(&[nx, ny, nz, dof])?;
    assemble(n, |row, emit| {
        let node = row / dof;
        let (x, y, z) = (node % nx, node / nx % ny, node / (nx * ny));
        let around = |c: usize, extent: usize| c.saturating_sub(1)..(c + 2).min(extent);
        let mut neighbours = [0; 27];
        let mut count = 0;
        for z in around(z, nz) {
            for y in around(y, ny) {
                for x in around(x, nx) {
                    neighbours[count] = (z * ny + y) * nx + x;
                    count += 1;
                }
            }
        }
        let columns = || neighbours[..count].iter().flat_map(|&m| m * dof..(m + 1) * dof);
        let degree: f64 = columns().filter(|&c| c != row).map(|c| -value(row, c)).sum();
        for col in columns() {
            emit(col, if col == row { degree * 1.0001 + 1e-3 } else { value(row, col) });
        }
    })
}
