//! Writing a matrix with what came with it.

use super::matrix::Matrix;
use crate::error::Result;
use crate::observe::Meter;
use crate::source::Content;
use crate::source::save::Destination;
use std::path::{Path, PathBuf};

impl Matrix {
    /// Writes the matrix in the format that the ending names: `.mtx`, `.mtx.gz` (Matrix Market), `.npz` (SciPy) or `.slv` (the
    /// library's own, read at the speed of memory). Vectors that were read with it and labels go into files next to it, where
    /// the format has no place for them. Returns the files.
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

    /// The same, telling a meter how many bytes are written.
    pub fn save_metered(&self, to: &Destination, meter: &Meter) -> Result<Vec<PathBuf>> {
        let about = &*self.about;
        let content = Content {
            matrix: &self.csr,
            stored: about.stored.unwrap_or(self.nnz() as u64),
            symmetric: about.symmetric,
            stand_in: about.stand_in,
            kind: about.kind,
            attached: &about.attached,
            attached_unread: &about.attached_unread,
            labels: about.labels.as_ref(),
        };
        to.write(&content, meter)
    }
}
