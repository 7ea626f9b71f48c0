//! Plots of matrices and answers.

use super::answer::Answer;
use super::matrix::Matrix;
use crate::error::Result;
use crate::format::stats::Density;
use crate::plot::{CELLS, convergence, spy};
use std::path::Path;

impl Matrix {
    /// Draws the density of the entries, as SVG, PNG or PDF by the extension of the path.
    pub fn spy(&self, path: impl AsRef<Path>) -> Result<()> {
        spy(&Density::of(self.csr(), CELLS), self.name(), self.stand_in(), path.as_ref())
    }
}

impl Answer {
    /// Draws the residual against iterations and against time, as SVG, PNG or PDF by the
    /// extension of the path.
    pub fn plot(&self, path: impl AsRef<Path>) -> Result<()> {
        convergence(&[self.history()], path.as_ref())
    }
}
