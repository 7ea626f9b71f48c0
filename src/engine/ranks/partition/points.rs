//! The coordinates of groups of rows.

use super::groups::Groups;
use super::setting::{Partition, SETTING};
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::parallel::room;
use crate::source::{self, read_vectors};
use crate::text::{COUNTED, Index, thousands};
use std::ffi::OsStr;
use std::path::Path;

/// The most coordinates of a point.
const AXES: usize = 3;

/// The coordinates of the groups of this rank.
#[derive(Debug)]
pub(crate) struct Points {
    /// Coordinates of a point.
    pub axes: usize,
    /// The points, one after the other.
    pub values: Vec<f64>,
}

impl Points {
    /// Returns the points of the generated mesh that a matrix has. The first rank passes its name. A group
    /// has the point of its first row.
    pub(crate) fn of_mesh(ranks: &Ranks, groups: &Groups, rows: usize, name: &str) -> Result<Points> {
        let name = ranks.text_from_first(name)?;
        let unknown = || Partition::unknown_coordinates(&if name.is_empty() { "this matrix" } else { &name });
        // A process may find a file of this name, and the others none.
        let mesh = source::mesh(OsStr::new(&name))
            .and_then(|mesh| mesh.filter(|mesh| mesh.rows() == rows).ok_or_else(unknown));
        let mesh = ranks.agreed(mesh)?;
        let first = groups.starts[ranks.rank()];
        let point = |group: usize| mesh.coordinates((first + group) * groups.together);
        let mut values = ranks.agreed(room(AXES * groups.weights.len()))?;
        (0..groups.weights.len()).for_each(|group| values.extend(point(group)));
        Ok(Points { axes: AXES, values })
    }

    /// Reads the points from a file on the first rank, which sends each rank its own.
    pub(crate) fn of_file(ranks: &Ranks, groups: &Groups, rows: usize, path: &Path) -> Result<Points> {
        let read = ranks.is_first().then(|| Points::read(groups, (rows, ranks.size()), path));
        let all = ranks.agreed(read.transpose())?;
        let axes =
            ranks.list_of_first(all.as_ref().map_or_else(Vec::new, |all| vec![all.axes as u64]))?[0] as usize;
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
        check_shape((count, axes), rows, groups.starts[ranks]).map_err(fault)?;
        if let Some(place) = points.values().iter().position(|value| !value.is_finite()) {
            let (row, column) = (Index(place / axes), Index(place % axes));
            let value = points.values()[place];
            return Err(fault(format!(
                "row {row}, column {column} ({COUNTED}) is {value}; coordinates must be finite"
            )));
        }
        let unknowns = (rows / count.max(1)).max(1);
        let groups_of_all = 0..groups.starts[ranks];
        let mut values = room(axes * groups_of_all.len())?;
        groups_of_all.for_each(|group| {
            values.extend_from_slice(points.row(group * groups.together / unknowns));
        });
        Ok(Points { axes, values })
    }
}

/// Checks the shape of a file of points for a matrix of `rows` rows in `groups` groups.
/// Returns what is wrong.
fn check_shape((count, axes): (usize, usize), rows: usize, groups: usize) -> std::result::Result<(), String> {
    let shape = format!("it is {} x {}", thousands(count as u64), thousands(axes as u64));
    if axes == 0 {
        return Err(format!("{shape}, without coordinates; a point has 1 to {AXES} of them"));
    }
    // Two nodes in space have more coordinates than points.
    if axes > AXES || (axes > count && count > 0 && count != groups && count != 1) {
        return Err(format!(
            "{shape}; is it transposed? It has a row for each point, of 1 to {AXES} coordinates"
        ));
    }
    if rows > 0 && (count == 0 || !rows.is_multiple_of(count)) {
        return Err(format!(
            "{shape}, but the matrix has {} rows; it must have a point for each row, or for each node of the same number of rows",
            thousands(rows as u64)
        ));
    }
    if count == 1 && groups > 1 {
        return Err(format!("{shape}, a single point, which divides no rows; it has a row for each point"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_files_that_are_no_points_are_refused() {
        for (shape, rows, groups) in [((30, 2), 30, 30), ((10, 3), 30, 10), ((2, 3), 6, 2), ((1, 3), 3, 1)] {
            check_shape(shape, rows, groups).unwrap();
        }
        for (shape, rows, groups, told) in [
            ((30, 0), 30, 30, "it is 30 x 0, without coordinates"),
            ((3, 18_000), 18_000, 18_000, "it is 3 x 18,000; is it transposed?"),
            ((2, 3), 30, 30, "is it transposed?"),
            ((7, 2), 30, 30, "the matrix has 30 rows"),
            ((0, 2), 30, 30, "the matrix has 30 rows"),
            ((1, 2), 30, 30, "a single point"),
        ] {
            let reason = check_shape(shape, rows, groups).unwrap_err();
            assert!(reason.contains(told), "{reason}");
        }
    }
}
