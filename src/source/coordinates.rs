//! Coordinates of nodes: the array `coord` stored with a matrix, a file next to that of the matrix, or a file
//! alone.

use super::text::in_file;
use super::vector::read_vectors;
use super::{Attached, Content, Loaded, Options};
use crate::error::{Error, Result};
use crate::format::{Coordinates, Dense};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of coordinates among the arrays stored with a matrix.
pub(super) const NAME: &str = "coord";
/// The extensions of a file of coordinates next to that of a matrix.
const EXTENSIONS: [&str; 3] = [".mtx", ".mtx.gz", ".npy"];

impl Coordinates {
    /// Reads a file with a row for each node: numbers as text, `.mtx`, or `.npy`, plain or compressed with
    /// gzip.
    pub fn open(path: impl AsRef<Path>) -> Result<Coordinates> {
        let path = path.as_ref();
        read_vectors(path).and_then(Coordinates::of_points).map_err(in_file(path))
    }
}

impl Loaded {
    /// Adds an array stored with the matrix. The array `coord` becomes the coordinates of the nodes, if its
    /// shape is that of points whose number divides the rows.
    pub(super) fn attach(&mut self, name: String, values: Dense) -> Result<()> {
        let nodes = values.rows();
        let divides = nodes > 0 && self.matrix.rows().is_multiple_of(nodes);
        if name == NAME && divides && (2..=3).contains(&values.cols()) {
            self.coordinates = Some(Arc::new(Coordinates::of_points(values)?));
        } else {
            self.attached.push(Attached { name, values });
        }
        Ok(())
    }

    /// Adds the coordinates in the file next to that of the matrix, if there is such a file:
    /// `NAME_coord.mtx` for `NAME.mtx`. A faulty file is skipped with a warning.
    pub(super) fn with_coordinates_next_to(mut self, path: &Path, options: &Options) -> Loaded {
        let known = self.coordinates.is_some() || self.attached_unread.iter().any(|name| name == NAME);
        let Some(file) = (!known).then(|| sibling(path)).flatten() else { return self };
        if !options.attached {
            self.attached_unread.push(NAME.to_owned());
            return self;
        }
        let read = Coordinates::open(&file).and_then(|coordinates| {
            let (nodes, rows) = (coordinates.nodes(), self.matrix.rows());
            if nodes > 0 && rows.is_multiple_of(nodes) {
                return Ok(coordinates);
            }
            let reason = format!(
                "there are {nodes} nodes, which do not divide the {rows} rows of the matrix; give a row of coordinates for every node"
            );
            Err(Error::BadCoordinates { reason })
        });
        match read {
            Ok(coordinates) => self.coordinates = Some(Arc::new(coordinates)),
            Err(error) => self.skip_attached(&file, vec![NAME.to_owned()], error),
        }
        self
    }
}

impl<'a> Content<'a> {
    /// Returns all arrays to write with the matrix, with their names: the vectors, then the coordinates.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (&'a str, &'a Dense)> + use<'a> {
        let vectors = self.attached.iter().map(|attached| (attached.name.as_str(), &attached.values));
        vectors.chain(self.coordinates.map(|coordinates| (NAME, coordinates.points())))
    }
}

/// Returns the file of coordinates next to the file of a matrix.
fn sibling(matrix: &Path) -> Option<PathBuf> {
    let name = matrix.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let stem = Path::new(name).file_stem()?.to_str()?;
    let files = EXTENSIONS.iter().map(|end| matrix.with_file_name(format!("{stem}_{NAME}{end}")));
    files.into_iter().find(|file| file != matrix && file.is_file())
}
