//! Iterative methods. They depend only on operators, a device's vector algebra, stopping rules and observers.
//!
//! Each method for linear systems is a `Recurrence` (`recurrence.rs`) in a separate file. One loop (`run.rs`)
//! iterates for all methods. `linear.rs` judges the results of linear systems, which `answer.rs` holds and
//! measures, and restarts the methods when rounding has misled them; `fixed.rs` does this for fixed points.

mod agree;
mod answer;
pub(crate) mod block;
pub(crate) mod cg;
pub(crate) mod checkpoint;
mod effort;
mod fixed;
mod forward_error;
pub(crate) mod given;
mod linear;
pub(crate) mod markov;
pub(crate) mod minres;
mod norms;
pub(crate) mod null_space;
pub(crate) mod pace;
pub(crate) mod pagerank;
pub(crate) mod part;
pub(crate) mod pipelined;
pub mod problem;
mod recurrence;
pub(crate) mod rounding;
mod run;
pub mod verdict;

use crate::backend::Operator;
use crate::device::{Device, Sweep};
use crate::error::Result;
use crate::observe::Observer;
use crate::operator::Residuals;
use crate::parallel::zeros;
use crate::scalar::Scalar;
use crate::spectrum::Spectrum;
use crate::stop::{StopReason, StoppingRule};
use checkpoint::Checkpoints;
pub(crate) use effort::Effort;
pub(crate) use given::MatrixRef;
pub use given::Product;
use linear::{Linear, Solves, Task};
use recurrence::{Facts, Needs, Operators, Recurrence};
use std::ops::Deref;

/// Generates [`Method`] from a table with one row per method: its doc, its name, and its type.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $recurrence:ty;)+) => {
        /// A method for linear systems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $method,)+
        }

        impl Method {
            /// All methods.
            pub const ALL: [Method; [$(Method::$method),+].len()] = [$(Method::$method),+];

            /// Returns the description of the method.
            fn facts(self) -> &'static Facts {
                match self {
                    $(Method::$method => const { &<$recurrence>::FACTS },)+
                }
            }

            /// Makes a solver that uses these operators.
            fn linear<D: Device, T: Scalar>(self, operators: Operators<D, T>) -> Box<dyn Solves<D, T>> {
                match self {
                    $(Method::$method => Box::new(Linear::<$recurrence, D, T>::new(operators)),)+
                }
            }
        }
    };
}

methods! {
    /// Conjugate gradients, for positive definite matrices.
    Cg = cg::Cg;
    /// Conjugate gradients with one synchronisation per iteration.
    PipelinedCg = pipelined::Pipelined;
    /// Conjugate gradients that search in one common space for all right-hand sides.
    BlockCg = block::Block;
    /// Minimal residuals, for indefinite and singular matrices.
    Minres = minres::Minres;
}

/// A linear system as its source provides it, in double precision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct System<'a> {
    /// The matrix, which must be symmetric if the method needs it.
    pub matrix: MatrixRef<'a>,
    /// The right-hand side; several right-hand sides are n x k, row-major.
    pub b: &'a [f64],
    /// The start, of the size of `b`; x = 0 if it is absent.
    pub x0: Option<&'a [f64]>,
    /// The number of right-hand sides, k.
    pub columns: usize,
}

impl<'a> System<'a> {
    /// Returns the system of one right-hand side that starts at x = 0.
    pub(crate) fn new(matrix: impl Into<MatrixRef<'a>>, b: &'a [f64]) -> System<'a> {
        System { matrix: matrix.into(), b, x0: None, columns: 1 }
    }
}

/// An answer with its [`Outcome`], whose fields can be read directly from this type.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The solution vector. Outside tests only the outcome is of interest.
    #[cfg_attr(not(test), allow(dead_code))]
    pub x: Vec<f64>,
    /// How the solve ended, and how accurate the solution is.
    pub outcome: Outcome,
}

impl Deref for Solution {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

/// How a solve ended, and how accurate its answer is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Why the solve stopped, judged by the true residual.
    pub reason: StopReason,
    /// What the solve has taken; its fields can be read directly from this type.
    pub effort: Effort,
    /// Number of restarts from the true residual.
    pub restarts: usize,
    /// The linearly independent residuals with which [`Method::BlockCg`] iterated in its first
    /// run: the smallest number.
    pub block_rank: Option<usize>,
    /// Norm of the recursive residual divided by that of the right-hand side.
    pub residual: f64,
    /// Norm of b - A x divided by that of the right-hand side (see [`verdict`]). NaN if the caller's product
    /// has ended the solve before it was computed.
    pub residual_true: f64,
    /// An upper bound on the true residual that includes the rounding of its computation. The solve compares
    /// this bound with the goal.
    pub residual_at_most: f64,
    /// The normwise backward error (see [`verdict`]).
    pub backward_error: f64,
    /// An estimate of the largest error of an entry of x divided by the largest entry (`forward_error.rs`).
    /// Present only if the solve converged and all eigenvalues that it found are positive. Infinite if the
    /// matrix is singular to working precision.
    pub error_estimate: Option<f64>,
    /// The residual, relative to the right-hand side, that the rules require.
    pub goal: Option<f64>,
    /// An estimate of the spectrum of the preconditioned matrix, from the first run.
    pub spectrum: Option<Spectrum>,
    /// Seconds of the iterations before the checkpoint from which the solve resumed.
    pub seconds_earlier: f64,
    /// Iterations before that checkpoint; `iterations` includes them.
    pub iterations_earlier: usize,
    /// Why the newest checkpoint was not written, if one was to be written and was not.
    pub checkpoint_fault: Option<String>,
}

impl Deref for Outcome {
    type Target = Effort;

    fn deref(&self) -> &Effort {
        &self.effort
    }
}

impl Method {
    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the number of iterations in one recorded step.
    pub(crate) fn stride(self) -> usize {
        self.facts().stride
    }

    /// Returns what the method needs of its operators.
    pub(crate) fn needs(self) -> &'static Needs {
        &self.facts().needs
    }

    /// Returns whether an iteration is recorded on the device. Otherwise the host takes part
    /// in every iteration.
    #[cfg(test)]
    pub(crate) fn is_recorded(self) -> bool {
        self.facts().dense.is_none()
    }

    /// Returns the number of vectors in the workspace of the method.
    pub(crate) fn vectors(self, preconditioned: bool) -> usize {
        self.facts().vectors[usize::from(preconditioned)].len()
    }

    /// Returns the sweeps of the method, so that they can be compiled before a solve.
    #[cfg(test)]
    pub(crate) fn sweeps(self) -> impl Iterator<Item = Sweep<'static>> {
        let Facts { sweeps, other_sweeps, .. } = self.facts();
        sweeps.iter().copied().flatten().chain(*other_sweeps).map(|formula| formula.sweep)
    }

    /// Returns the sweeps of a solve with or without a preconditioner.
    pub(crate) fn sweeps_of(self, preconditioned: bool) -> impl Iterator<Item = Sweep<'static>> {
        let Facts { sweeps, other_sweeps, .. } = self.facts();
        sweeps[usize::from(preconditioned)].iter().chain(*other_sweeps).map(|formula| formula.sweep)
    }

    /// Returns the programs that follow the dot product of an operator, so that they can be
    /// compiled before a solve.
    #[cfg(test)]
    pub(crate) fn programs(
        self,
    ) -> impl Iterator<Item = (crate::operator::DotInto, &'static [crate::device::Op])> {
        self.facts().products.iter().map(|product| product.program())
    }

    /// Solves the system with operators that a backend has built from its matrix; `m` approximates the
    /// inverse and must be positive definite if the method needs it.
    pub(crate) fn solve<D: Device, T: Scalar>(
        self,
        a: Operator<D, T>,
        m: Option<Operator<D, T>>,
        system: &System<'_>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Solution> {
        self.solve_saved(a, m, system, rule, observers, &Checkpoints::default())
    }

    /// Solves the system as [`solve`](Self::solve) does, and saves checkpoints or resumes from one.
    pub(crate) fn solve_saved<D: Device, T: Scalar>(
        self,
        a: Operator<D, T>,
        m: Option<Operator<D, T>>,
        system: &System<'_>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
        checkpoints: &Checkpoints,
    ) -> Result<Solution> {
        let mut x = zeros(system.b.len())?;
        let mut prepared = self.prepare(a, m);
        prepared.solve(system, rule, checkpoints, &mut x, observers)?;
        Ok(Solution { x, outcome: prepared.outcome(0) })
    }

    /// Prepares the method to solve systems with the matrix of these operators, on their device.
    pub(crate) fn prepare<D: Device, T: Scalar>(
        self,
        a: Operator<D, T>,
        m: Option<Operator<D, T>>,
    ) -> PreparedMethod<D, T> {
        PreparedMethod(self.linear(Operators { a, m }))
    }
}

/// A method prepared to solve systems with one matrix on a device. Vectors and the recorded step are kept
/// from one solve to the next: a solve after the first allocates nothing on the device, and on the CPU
/// nothing at all if it converges.
pub(crate) struct PreparedMethod<D: Device, T: Scalar>(Box<dyn Solves<D, T>>);

impl<D: Device, T: Scalar> PreparedMethod<D, T> {
    /// Lets a device compute the residuals by which answers are judged, with the matrix of the systems
    /// as its source provides it.
    pub(crate) fn with_residuals(mut self, residuals: Box<dyn Residuals>) -> PreparedMethod<D, T> {
        self.0.compute_on_device(residuals);
        self
    }

    /// Solves a system and writes the answer to `x`. The matrix of the system must be that of the operators.
    ///
    /// Several right-hand sides, starts and answers are n x k, row-major. Each column ends separately and has
    /// a separate verdict, and observers receive the batches of each column. On the CPU a column is bitwise
    /// equal to the solve of this column alone if the product of the backend is (`serial`, `rows`). A column
    /// that is NaN, infinite or out of range ends with [`StopReason::NotSolved`], and the other columns are
    /// solved as without it. Fails as a whole if the backend multiplies only one column.
    pub(crate) fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<()> {
        self.0.solve(&Task { system, rule, checkpoints }, x, observers)
    }

    /// Returns how the last solve ended for a column.
    pub(crate) fn outcome(&self, column: usize) -> Outcome {
        self.0.outcome(column)
    }
}

#[cfg(test)]
mod tests;
