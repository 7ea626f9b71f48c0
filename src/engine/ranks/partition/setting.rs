//! The setting of a partition by name.

use super::metis;
use crate::error::{Error, Result};
use crate::source;
use crate::spelling::{did_you_mean, nearest};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The name of the setting.
pub(crate) const SETTING: &str = "partition";

/// Why one device needs no partition.
const NOT_DIVIDED: &str = "the solve has one device, which has all rows; a partition needs several processes that mpirun starts, or \
                           several GPUs, such as device cuda:0,1";

const ENTRIES: &str = "entries";
const COORDINATES: &str = "coordinates";
const GRAPH: &str = "graph";

/// How the rows of a matrix are divided among ranks. Rows that belong together have the same rank: the blocks
/// of a preconditioner, and the unknowns of a mesh node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// Ranges of the rows in the order of the matrix, with about equal numbers of entries.
    #[default]
    Entries,
    /// Boxes of the nodes of a mesh, by recursive bisection of their coordinates.
    Coordinates,
    /// The same, with the coordinates of a file: a point for each row, or for each node of the
    /// same number of rows.
    CoordinatesIn(PathBuf),
    /// Parts of the graph of the matrix that need few numbers of each other, by METIS. Needs
    /// the cargo feature `metis`.
    Graph,
}

impl Partition {
    /// Returns whether the ranks have ranges of the rows in the order of the matrix.
    pub(crate) fn is_in_order(&self) -> bool {
        *self == Partition::Entries
    }

    /// Refuses a partition that this build does not have, and a file that does not exist.
    pub fn check(&self) -> Result<()> {
        match self {
            Partition::Graph if !metis::AVAILABLE => Err(Error::setting(SETTING, self, metis::MISSING)),
            Partition::CoordinatesIn(path) if !path.is_file() => {
                Err(Error::setting(SETTING, self, "there is no such file of coordinates"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses the partition of a solve whose rows are not divided.
    pub(crate) fn check_divided(&self, divided: bool) -> Result<()> {
        match divided || self.is_in_order() {
            true => Ok(()),
            false => Err(Error::setting(SETTING, self, NOT_DIVIDED)),
        }
    }

    /// Refuses coordinates of a matrix that is no generated mesh.
    pub(crate) fn check_coordinates(&self, matrix: &OsStr) -> Result<()> {
        match self {
            Partition::Coordinates if source::mesh(matrix)?.is_none() => {
                Err(Partition::unknown_coordinates(&matrix.display()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a matrix that is no generated mesh.
    pub(super) fn unknown_coordinates(matrix: &dyn fmt::Display) -> Error {
        let reason = format!(
            "the coordinates of {matrix} are not known; name a file with them, coordinates:FILE, or use the partition graph"
        );
        Error::setting(SETTING, Partition::Coordinates, reason)
    }

    /// Describes the parts for reports: `by coordinates`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Partition::Entries => "in order".to_owned(),
            Partition::Coordinates => "by coordinates".to_owned(),
            Partition::CoordinatesIn(path) => format!("by coordinates of {}", path.display()),
            Partition::Graph => "by graph".to_owned(),
        }
    }
}

/// Parses `entries`, `coordinates`, `coordinates:FILE` or `graph`. Whether this build has it is
/// checked when it is used.
impl FromStr for Partition {
    type Err = Error;

    fn from_str(typed: &str) -> Result<Partition> {
        let (name, file) = typed.split_once(':').map_or((typed, None), |(name, file)| (name, Some(file)));
        match (name, file) {
            (ENTRIES, None) => Ok(Partition::Entries),
            (COORDINATES, None) => Ok(Partition::Coordinates),
            (COORDINATES, Some(file)) if !file.is_empty() => Ok(Partition::CoordinatesIn(file.into())),
            (GRAPH, None) => Ok(Partition::Graph),
            _ => {
                let near = did_you_mean(&nearest(name, [ENTRIES, COORDINATES, GRAPH].into_iter()));
                let reason =
                    format!("{near}the partitions are entries, coordinates, coordinates:FILE and graph");
                Err(Error::setting(SETTING, typed, reason))
            }
        }
    }
}

/// Prints the name that is parsed.
impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Partition::Entries => f.write_str(ENTRIES),
            Partition::Coordinates => f.write_str(COORDINATES),
            Partition::CoordinatesIn(path) => write!(f, "{COORDINATES}:{}", path.display()),
            Partition::Graph => f.write_str(GRAPH),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_printed() {
        for name in ["entries", "coordinates", "coordinates:points.npy", "graph"] {
            assert_eq!(name.parse::<Partition>().unwrap().to_string(), name);
        }
        for name in ["", "coordinates:", "graph:x", "entries:2", "boxes"] {
            let message = name.parse::<Partition>().unwrap_err().to_string();
            assert!(message.contains("coordinates:FILE and graph"), "{message}");
        }
        assert!("coordinate".parse::<Partition>().unwrap_err().to_string().contains("did you mean"));
        let missing = Partition::CoordinatesIn("no-such-file.npy".into()).check().unwrap_err();
        assert!(missing.to_string().contains("no such file"), "{missing}");
        assert_eq!(Partition::Graph.check().is_ok(), cfg!(feature = "metis"));
    }
}
