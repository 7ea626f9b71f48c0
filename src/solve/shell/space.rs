//! The memory of the host for a solve, allocated once.

use super::MOST_COEFFICIENTS;
use crate::device::RING;
use crate::error::Result;
use crate::parallel::zeros;
use crate::scalar::Scalar;
use crate::solve::forward_error::Estimator;
use crate::solve::verdict::Judge;
use crate::spectrum::Tridiagonal;

/// Vectors, and what is collected on the way.
#[derive(Default)]
pub(super) struct Space<T> {
    /// Whether x is still zero, as it was made.
    pub fresh: bool,
    /// x and b - A x.
    pub x: Vec<f64>,
    pub r: Vec<f64>,
    /// The x and the residual that a run has found, until they replace those.
    pub next_x: Vec<f64>,
    pub next_r: Vec<f64>,
    /// A vector on its way to the device or from it.
    pub host: Vec<T>,
    pub judge: Judge,
    /// Residuals of a batch.
    pub residuals: Vec<f64>,
    /// The coefficients of the first run, and the projection that they make.
    pub coefficients: Vec<(f64, f64)>,
    pub most_coefficients: usize,
    pub projection: Tridiagonal,
    pub estimator: Estimator,
}

impl<T: Scalar> Space<T> {
    /// Room for a system of n rows, and for the coefficients of the iterations.
    pub fn make_ready(&mut self, n: usize, iterations: Option<usize>) -> Result<()> {
        if self.x.len() != n {
            *self = Space {
                fresh: true,
                x: zeros(n)?,
                r: zeros(n)?,
                next_x: zeros(n)?,
                next_r: zeros(n)?,
                host: zeros(n)?,
                ..Space::default()
            };
        }
        let most = iterations.unwrap_or(MOST_COEFFICIENTS).min(MOST_COEFFICIENTS);
        self.most_coefficients = most;
        self.residuals.clear();
        self.residuals.reserve(RING);
        self.coefficients.clear();
        self.coefficients.reserve(most);
        self.projection.reserve(most);
        Ok(())
    }
}
