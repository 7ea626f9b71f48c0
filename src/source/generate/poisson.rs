//! The 5-point Laplacian on a grid. With Dirichlet boundaries 4 on the diagonal and -1 beside it: positive definite.
//! With Neumann boundaries the diagonal counts the neighbours: singular, constants are in the null space.

use super::{Loaded, Spec, assemble};
use crate::error::Result;

pub(super) fn make(spec: &Spec<'_>) -> Result<Loaded> {
    spec.allow(&["boundary"])?;
    let [nx, ny] = spec.extents()?;
    let neumann = match spec.get("boundary") {
        None | Some("dirichlet") => false,
        Some("neumann") => true,
        Some(other) => {
            return Err(spec.fault(format!("boundary '{other}' is neither dirichlet nor neumann")));
        }
    };
    let n = spec.rows(&[nx, ny])?;
    assemble(n, |i, emit| {
        let (x, y) = (i % nx, i / nx);
        let neighbours = [y > 0, x > 0, x + 1 < nx, y + 1 < ny];
        let [south, west, east, north] = neighbours;
        let diagonal = if neumann { neighbours.iter().filter(|&&there| there).count() as f64 } else { 4.0 };
        if south {
            emit(i - nx, -1.0);
        }
        if west {
            emit(i - 1, -1.0);
        }
        emit(i, diagonal);
        if east {
            emit(i + 1, -1.0);
        }
        if north {
            emit(i + nx, -1.0);
        }
    })
}
