//! Writing a matrix with its attached vectors and labels.

use super::matrix::Matrix;
use crate::error::Result;
use crate::observe::Meter;
use crate::source::Content;
use crate::source::save::Destination;
use std::path::{Path, PathBuf};

impl Matrix {
    /// Writes the matrix in the format that the file extension names: `.mtx`, `.mtx.gz` (Matrix Market),
    /// `.npz` (SciPy) or `.slv` (the library's binary format, which is read at memory speed). If the
    /// format cannot hold labels or the vectors read with the matrix, they go into files next to it.
    /// Returns the paths of the files.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// # let folder = std::env::temp_dir();
    /// use solver::prelude::*;
    /// let grid = Matrix::open("poisson2d:20x20")?;
    /// let file = folder.join("grid.mtx.gz");
    /// grid.save(&file)?;
    /// assert_eq!(Matrix::open(&file)?.csr(), grid.csr());
    /// # Ok(())
    /// # }
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        self.save_metered(&Destination::of(path.as_ref())?, &Meter::default())
    }

    /// Writes the matrix as [`save`](Matrix::save) does, and counts the written bytes in `meter`.
    pub(crate) fn save_metered(&self, to: &Destination, meter: &Meter) -> Result<Vec<PathBuf>> {
        let (origin, metadata) = (&*self.origin, &*self.metadata);
        let content = Content {
            matrix: &self.csr,
            stored: origin.stored.unwrap_or(self.nnz() as u64),
            symmetric: metadata.symmetric,
            stand_in: origin.stand_in,
            kind: origin.kind,
            attached: &metadata.attached,
            attached_unread: &metadata.attached_unread,
            labels: origin.labels.as_ref(),
        };
        to.write(&content, meter)
    }
}
