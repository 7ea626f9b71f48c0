//! Iterative methods. They know operators, a device's vector algebra, stopping rules and observers; nothing else.
//!
//! A method for linear systems is a `Recurrence` (`recurrence.rs`) in a file of its own. One loop (`run.rs`) iterates for
//! all methods; `linear.rs` judges what linear systems have found, by an answer behind a seam (`answer.rs`), and starts them
//! again where rounding has misled them; `fixed.rs` does this for fixed points.

mod answer;
pub mod cg;
pub mod checkpoint;
mod fixed;
mod forward_error;
pub mod given;
mod linear;
pub mod markov;
pub mod minres;
pub mod pace;
pub mod pagerank;
pub mod pipelined;
pub mod problem;
mod recurrence;
pub(crate) mod rounding;
mod run;
pub mod verdict;

use crate::backend::Operator;
use crate::device::{Device, Sweep};
use crate::error::Result;
use crate::observe::Observer;
use crate::operator::DotInto;
use crate::parallel::zeros;
use crate::scalar::Scalar;
use crate::spectrum::Spectrum;
use crate::stop::{StopReason, StoppingRule};
use checkpoint::Checkpoints;
pub use given::{MatrixRef, Product};
use linear::{Linear, Solves, Task};
use recurrence::{Facts, Operators, Recurrence};
use std::ops::Deref;

/// Makes [`Method`] of a table with a row for each method: its doc, its name, and its type.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $of:ty;)+) => {
        /// A method for symmetric systems.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* $method,)+
        }

        impl Method {
            /// Every method.
            pub const ALL: [Method; [$(Method::$method),+].len()] = [$(Method::$method),+];

            /// What is known of it.
            fn facts(self) -> &'static Facts {
                match self {
                    $(Method::$method => const { &<$of>::FACTS },)+
                }
            }

            /// Makes it ready.
            fn linear<D: Device, T: Scalar>(self, operators: Operators<D, T>) -> Box<dyn Solves<D, T>> {
                match self {
                    $(Method::$method => Box::new(Linear::<$of, D, T>::new(operators)),)+
                }
            }
        }
    };
}

methods! {
    /// Conjugate gradients, for positive definite matrices.
    Cg = cg::Cg;
    /// The same with one synchronisation an iteration.
    PipelinedCg = pipelined::Pipelined;
    /// Minimal residuals, for indefinite and singular matrices.
    Minres = minres::Minres;
}

/// A linear system as its source gave it, in double precision.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// The matrix; symmetric.
    pub matrix: MatrixRef<'a>,
    /// The right-hand side; several are n x k, row-major.
    pub b: &'a [f64],
    /// Where to start, as many entries; without it at x = 0.
    pub x0: Option<&'a [f64]>,
}

/// An answer, and the truth about it, whose fields are read as if they were fields of this.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The solution vector.
    pub x: Vec<f64>,
    /// What is known of it.
    pub outcome: Outcome,
}

impl Deref for Solution {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

/// How a solve ended, and the truth about its answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Why the solve stopped, by the true residual.
    pub reason: StopReason,
    /// Iterations done.
    pub iterations: usize,
    /// How often it started again from the true residual.
    pub restarts: usize,
    /// Norm of the recursive residual over that of the right-hand side.
    pub residual: f64,
    /// Norm of b - A x over that of the right-hand side (see [`verdict`]).
    pub residual_true: f64,
    /// A bound on that residual which includes the rounding of its own computation: what is compared with the goal.
    pub residual_at_most: f64,
    /// The normwise backward error (see [`verdict`]).
    pub backward_error: f64,
    /// The largest error of an entry of x over the largest entry, estimated (`forward_error.rs`): where the solve
    /// converged and has seen a positive definite matrix. Infinite where that is singular to working precision.
    pub error_estimate: Option<f64>,
    /// The residual, relative to the right-hand side, that the rules asked for.
    pub goal: Option<f64>,
    /// What the first run has seen of the spectrum of the preconditioned matrix.
    pub spectrum: Option<Spectrum>,
    /// Seconds to make the workspace and to record the step.
    pub seconds_setup: f64,
    /// Seconds from the first iteration to the last, restarts included.
    pub seconds_solve: f64,
    /// Seconds of an iteration; where the solve went on from a checkpoint, of those since then.
    pub seconds_each: f64,
    /// Bytes that an iteration must move for one column.
    pub bytes_per_iteration: u64,
    /// Bytes of the operators' arrays, each passed by once in an iteration.
    pub operator_bytes: u64,
    /// Bytes of the vectors, each touched several times.
    pub vector_bytes: u64,
}

impl Method {
    /// The word for it.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Iterations that it counts at a time.
    pub fn stride(self) -> usize {
        self.facts().stride
    }

    /// Vectors in the workspace of the method.
    pub fn vectors(self, preconditioned: bool) -> usize {
        self.facts().vectors[usize::from(preconditioned)].len()
    }

    /// Whether the method solves for several right-hand sides at once (see [`Prepared::solve_columns`]).
    pub fn takes_columns(self) -> bool {
        self.facts().columns
    }

    /// The sweeps of the method, to compile them before a solve.
    pub fn sweeps(self) -> impl Iterator<Item = Sweep<'static>> {
        let Facts { sweeps, other_sweeps, .. } = self.facts();
        sweeps.iter().copied().flatten().chain(*other_sweeps).map(|formula| formula.sweep)
    }

    /// The programs that follow the dot product of an operator, to compile them before a solve.
    pub fn programs(self) -> impl Iterator<Item = (DotInto, &'static [crate::device::Op])> {
        self.facts().products.iter().map(|product| product.program())
    }

    /// Solves the system with operators that a backend has made of its matrix; `m` approximates the inverse and must be
    /// positive definite.
    pub fn solve<D: Device, T: Scalar>(
        self,
        a: Operator<D, T>,
        m: Option<Operator<D, T>>,
        system: &System<'_>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Solution> {
        self.solve_saved(a, m, system, rule, observers, &Checkpoints::default())
    }

    /// The same, saved on the way or going on from where it was saved.
    pub fn solve_saved<D: Device, T: Scalar>(
        self,
        a: Operator<D, T>,
        m: Option<Operator<D, T>>,
        system: &System<'_>,
        rule: &StoppingRule,
        observers: &mut [&mut dyn Observer],
        checkpoints: &Checkpoints,
    ) -> Result<Solution> {
        let mut x = zeros(system.b.len())?;
        let outcome = self.prepare(a, m).solve(system, rule, checkpoints, &mut x, observers)?;
        Ok(Solution { x, outcome })
    }

    /// Makes a method ready to solve systems with the matrix of these operators, on the device of these.
    pub fn prepare<D: Device, T: Scalar>(
        self,
        a: Operator<D, T>,
        m: Option<Operator<D, T>>,
    ) -> Prepared<D, T> {
        let linear = self.linear(Operators { a, m });
        Prepared { method: self, linear }
    }
}

/// A method ready to solve systems with one matrix on a device. Vectors and the recorded step stay where they are from one
/// solve to the next: a solve after the first allocates nothing on the device, and on the CPU nothing at all where it
/// converges.
pub struct Prepared<D: Device, T: Scalar> {
    method: Method,
    linear: Box<dyn Solves<D, T>>,
}

impl<D: Device, T: Scalar> Prepared<D, T> {
    /// Solves a system, and leaves the answer in `x`. The matrix of the system is the one of the operators.
    pub fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome> {
        let task = Task { name: self.method.name(), system, k: 1, rule, checkpoints };
        self.linear.solve(&task, x, observers)?;
        Ok(self.linear.outcome(0))
    }

    /// Solves a system of k right-hand sides at once, and leaves the answers in `x`; right-hand sides, starts and answers are
    /// n x k, row-major. Each column has its own end and verdict, and observers see the batches of each column. On the CPU a
    /// column has the bits of [`solve`](Self::solve) where the product of the backend has them (`serial`, `rows`). Fails as a
    /// whole where a right-hand side or start is out of range, and where the method, the backend or the preconditioner takes
    /// one column at a time.
    pub fn solve_columns(
        &mut self,
        system: &System<'_>,
        k: usize,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Outcome>> {
        let task = Task { name: self.method.name(), system, k, rule, checkpoints };
        self.linear.solve(&task, x, observers)?;
        Ok((0..k).map(|column| self.linear.outcome(column)).collect())
    }
}
