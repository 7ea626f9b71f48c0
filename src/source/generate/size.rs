//! How large a generator's matrix will be, told before it is made.

use super::Spec;
use super::grid::Grid;
use crate::error::Result;
use crate::source::catalog::{self, Entry};

/// Rows, and entries: exactly for grids, at most or about for others. None where only making it tells.
pub(super) fn size(name: &str, spec: &Spec<'_>) -> Result<Option<(u64, u64)>> {
    let points = |extents, apart| Grid::new(extents, apart).entries();
    let sizes = match name {
        "poisson2d" => {
            let [nx, ny] = spec.extents()?;
            (spec.rows(&[nx, ny])?, points([nx, ny, 1], 1))
        }
        "poisson3d" => {
            let extents = spec.extents()?;
            let apart = if spec.choice("points", &["7", "27"])? == "7" { 1 } else { 3 };
            (spec.rows(&extents)?, points(extents, apart))
        }
        "hex27" => {
            let [nx, ny, nz] = spec.extents()?;
            let dof = spec.integer("dof", 1..=64)?.unwrap_or(1);
            (spec.rows(&[nx, ny, nz, dof])?, points([nx, ny, nz], 3) * (dof * dof) as u64)
        }
        "elasticity3d" => {
            let [nx, ny, nz] = spec.extents()?;
            (spec.rows(&[nx, ny, nz, 3])?, points([nx, ny, nz], 3) * 9)
        }
        _ => return stand_in(name, spec),
    };
    Ok(Some((sizes.0 as u64, sizes.1)))
}

/// The matrix that a stand-in of this name imitates.
pub(super) fn imitated(name: &str) -> Option<&'static Entry> {
    name.strip_suffix("-like").and_then(catalog::find)
}

/// The share of the real matrix.
fn stand_in(name: &str, spec: &Spec<'_>) -> Result<Option<(u64, u64)>> {
    let Some(real) = imitated(name) else { return Ok(None) };
    let scale =
        spec.number("scale", "from 0.001 to 1", |scale| (0.001..=1.0).contains(&scale))?.unwrap_or(1.0);
    let share = |full: u64| (full as f64 * scale).round() as u64;
    Ok(Some((share(real.rows), share(real.entries))))
}
