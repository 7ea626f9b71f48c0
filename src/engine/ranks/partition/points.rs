//! The coordinates of groups of rows.

use super::groups::Groups;
use super::setting::{Partition, SETTING};
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::source::{self, read_vectors};
use crate::text::thousands;
use std::ffi::OsStr;
use std::path::Path;

/// The coordinates of the groups of this rank.
#[derive(Debug)]
pub struct Points {
    /// Coordinates of a point.
    pub axes: usize,
    /// The points, one after the other.
    pub values: Vec<f64>,
}

impl Points {
    /// Returns the points of the generated mesh that a matrix has. The first rank passes its name. A group has the point of its first row.
    pub fn of_mesh(ranks: &Ranks, groups: &Groups, rows: usize, name: &str) -> Result<Points> {
        let name = ranks.text_from_first(name)?;
        let mesh = source::mesh(OsStr::new(&name))?.filter(|mesh| mesh.rows() == rows);
        let Some(mesh) = mesh else {
            return Err(Partition::unknown_coordinates(&if name.is_empty() { "this matrix" } else { &name }));
        };
        let first = groups.starts[ranks.rank()];
        let point = |group: usize| mesh.coordinates((first + group) * groups.together);
        let values = (0..groups.weights.len()).flat_map(point).collect();
        Ok(Points { axes: 3, values })
    }

    /// Reads the points from a file on the first rank, which sends each rank its own.
    pub fn of_file(ranks: &Ranks, groups: &Groups, rows: usize, path: &Path) -> Result<Points> {
        let read = ranks.is_first().then(|| Points::read(groups, (rows, ranks.size()), path));
        let all = ranks.agreed(read.transpose())?;
        let axes =
            ranks.from_first(all.as_ref().map_or_else(Vec::new, |all| vec![all.axes as u64]))?[0] as usize;
        let mine = groups.weights.len() * axes;
        let values = ranks.scatter(all.as_ref().map(|all| &all.values[..]), mine)?;
        Ok(Points { axes, values })
    }

    /// Reads the points of all groups.
    fn read(groups: &Groups, (rows, ranks): (usize, usize), path: &Path) -> Result<Points> {
        let setting = || Partition::CoordinatesIn(path.to_owned());
        let fault = |reason: String| Error::setting(SETTING, setting(), reason);
        setting().check()?;
        let points = read_vectors(path)?;
        let (count, axes) = (points.rows(), points.cols());
        if let Some(place) = points.values().iter().position(|value| !value.is_finite()) {
            let (row, column) = (place / axes + 1, place % axes + 1);
            let value = points.values()[place];
            return Err(fault(format!(
                "row {row}, column {column} (counted from 1) is {value}; coordinates must be finite"
            )));
        }
        if axes == 0 || (rows > 0 && (count == 0 || !rows.is_multiple_of(count))) {
            let [count, axes, rows] = [count, axes, rows].map(|number| thousands(number as u64));
            return Err(fault(format!(
                "it is {count} x {axes}, but the matrix has {rows} rows; it must have a point for each row, or for each node of the \
                 same number of rows"
            )));
        }
        let unknowns = (rows / count.max(1)).max(1);
        let point = |group: usize| points.row(group * groups.together / unknowns).iter().copied();
        Ok(Points { axes, values: (0..groups.starts[ranks]).flat_map(point).collect() })
    }
}
