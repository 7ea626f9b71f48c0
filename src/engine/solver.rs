//! How a symmetric system is solved: the settings, from which a prepared solve is made.

use super::answer::Answer;
use super::device::{DeviceHandle, Request, Settled};
use super::matrix::Matrix;
use super::prepared::Prepared;
use super::rhs::RightHandSide;
use super::settings::{Input, Settings};
use super::stopping::Stopping;
use super::watch::{Closure, Progress};
use crate::error::Result;
use crate::observe::Observer;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{Method, Product};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Conjugate gradients, for symmetric positive definite matrices.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let a = Matrix::open("data/grid3x3.mtx")?; // a file, a catalog name, a generator
/// let b = vec![1.0; a.rows()];
/// let answer = Cg::new(&a).precond("jacobi")?.rtol(1e-10).solve(&b)?; // the best device and backend by itself
/// assert!(answer.converged());
/// println!("{}", answer.report());
/// # Ok(())
/// # }
/// ```
pub struct Cg;

/// Minimal residuals, for symmetric matrices that are indefinite or singular too.
pub struct Minres;

impl Cg {
    /// Settings of a solve with this matrix. A matrix that is not symmetric is refused when the solve is prepared.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(a: &Matrix) -> Solver {
        Solver::new(Method::Cg, a)
    }

    /// Conjugate gradients with one synchronisation an iteration.
    pub fn pipelined(a: &Matrix) -> Solver {
        Solver::new(Method::PipelinedCg, a)
    }

    /// Settings of a solve with a matrix of which only products are known: `(rows, |x, y| ...)` sets y = A x. It runs on the
    /// CPU in double precision. The symmetry of the matrix is not checked, and the verdict stands on the products of the caller:
    /// their rounding is estimated, not bounded.
    pub fn with_product(product: impl Product + 'static) -> Solver {
        Solver::with_product(Method::Cg, Arc::new(product))
    }
}

impl Minres {
    /// Settings of a solve with this matrix. A matrix that is not symmetric is refused when the solve is prepared.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(a: &Matrix) -> Solver {
        Solver::new(Method::Minres, a)
    }

    /// Settings of a solve with a matrix of which only products are known, as for [`Cg::with_product`].
    pub fn with_product(product: impl Product + 'static) -> Solver {
        Solver::with_product(Method::Minres, Arc::new(product))
    }
}

/// How a symmetric system is solved. Each method changes one setting; [`solve`](Solver::solve) solves one system,
/// [`prepare`](Solver::prepare) makes ready for many.
pub struct Solver(Settings);

/// The method, the rows of the matrix, and what is asked of this machine.
impl fmt::Debug for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} rows, {:?}", self.0.method.name(), self.0.matrix.rows(), self.0.request)
    }
}

impl Solver {
    /// Settings of a solve by a method.
    pub fn new(method: Method, a: &Matrix) -> Solver {
        Solver::of(method, Input::Stored(a.clone()))
    }

    fn with_product(method: Method, product: Arc<dyn Product>) -> Solver {
        Solver::of(method, Input::Applied(product))
    }

    fn of(method: Method, matrix: Input) -> Solver {
        Solver(Settings::new(method, matrix))
    }

    /// The preconditioner by name, with parameters: `jacobi`, `block-jacobi:block=3`, `ic0`.
    pub fn precond(mut self, name: &str) -> Result<Solver> {
        self.0.request.precond = name.parse()?;
        Ok(self)
    }

    /// The preconditioner.
    pub fn preconditioner(mut self, precond: Preconditioner) -> Solver {
        self.0.request.precond = precond;
        self
    }

    /// A preconditioner of the caller's own: `(rows, |r, z| ...)` sets z = M r, where M approximates the inverse of A and is
    /// symmetric positive definite. The solve runs on the CPU in double precision.
    pub fn own_precond(mut self, precond: impl Product + 'static) -> Solver {
        self.0.own_precond = Some(Arc::new(precond));
        self
    }

    /// The device by name: `auto`, `cpu`, `cuda`, `cuda:1`. By default a GPU where there is one.
    pub fn device(mut self, name: &str) -> Solver {
        self.0.request.device = name.to_owned();
        self
    }

    /// A device that is open already, which solves share.
    pub fn on(mut self, device: &DeviceHandle) -> Solver {
        self.0.device = Some(device.clone());
        self
    }

    /// The backend of the products by name, with parameters: `auto`, `sell`, `bsr:block=3x3`.
    pub fn backend(mut self, name: &str) -> Solver {
        self.0.request.backend = name.to_owned();
        self
    }

    /// Threads on the CPU. By default one for each core.
    pub fn threads(mut self, threads: usize) -> Solver {
        self.0.request.threads = Some(threads);
        self
    }

    /// The precision of matrix and vectors. By default double.
    pub fn precision(mut self, precision: Precision) -> Solver {
        self.0.request.precision = precision;
        self
    }

    /// All of device, backend, preconditioner, precision and threads, with the device that they were compared with already.
    pub fn settled(mut self, request: Request, settled: Settled) -> Solver {
        (self.0.request, self.0.settled) = (request, Some(settled));
        self
    }

    /// Stops once the residual is at most this part of the norm of b. By default 1e-8, and 1e-5 in single precision.
    pub fn rtol(mut self, tolerance: f64) -> Solver {
        self.0.stopping.rtol = Some(tolerance);
        self
    }

    /// Stops once the norm of the residual is at most this.
    pub fn atol(mut self, tolerance: f64) -> Solver {
        self.0.stopping.atol = Some(tolerance);
        self
    }

    /// Stops once the residual is at most this part of that of the start.
    pub fn rtol_initial(mut self, tolerance: f64) -> Solver {
        self.0.stopping.rtol_initial = Some(tolerance);
        self
    }

    /// Iteration limit. By default 10 for each row, at least 1000 and at most 100,000.
    pub fn max_iters(mut self, iterations: usize) -> Solver {
        self.0.stopping.max_iters = Some(iterations);
        self
    }

    /// Stops once the iterations have taken this long.
    pub fn time_limit(mut self, time: Duration) -> Solver {
        self.0.stopping.time_limit = Some(time);
        self
    }

    /// Stops once another thread sets this flag, which is looked at between batches of iterations.
    pub fn cancel(mut self, flag: &Arc<AtomicBool>) -> Solver {
        self.0.stopping.cancel = Some(Arc::clone(flag));
        self
    }

    /// All tolerances and limits.
    pub fn stopping(mut self, stopping: Stopping) -> Solver {
        self.0.stopping = stopping;
        self
    }

    /// Takes the matrix for symmetric without a check, as where that is known.
    pub fn assume_symmetric(mut self, assume: bool) -> Solver {
        self.0.assume_symmetric = assume;
        self
    }

    /// Saves the solve in a file at this interval, and where it ends.
    pub fn checkpoint(mut self, file: impl Into<PathBuf>, every: Duration) -> Solver {
        self.0.checkpoints.save = Some((file.into(), every));
        self
    }

    /// Where the solve is saved, and what it goes on from.
    pub fn checkpoints(mut self, checkpoints: Checkpoints) -> Solver {
        self.0.checkpoints = checkpoints;
        self
    }

    /// Goes on from a file in which a solve of the same system was saved.
    pub fn resume(mut self, file: impl Into<PathBuf>) -> Solver {
        self.0.checkpoints.resume = Some(file.into());
        self
    }

    /// Calls `see` after each batch of iterations; the solve goes on as long as it returns true.
    pub fn on_progress(mut self, see: impl FnMut(&Progress) -> bool + Send + 'static) -> Solver {
        let closure = Closure::new(see, Arc::clone(&self.0.ended));
        self.0.observers.push(Box::new(closure));
        self
    }

    /// An observer of all iterations.
    pub fn observer(mut self, observer: impl Observer + Send + 'static) -> Solver {
        self.0.observers.push(Box::new(observer));
        self
    }

    /// Calls `begin` with the name of each phase of the preparation, such as `building backend sell`.
    pub fn on_phase(mut self, begin: impl FnMut(&str) + Send + 'static) -> Solver {
        self.0.phase = Box::new(begin);
        self
    }

    /// Chooses device and backend, builds matrix and preconditioner there, and keeps them for solve after solve.
    pub fn prepare(self) -> Result<Prepared> {
        Prepared::new(self.0)
    }

    /// Solves one system.
    pub fn solve<'a>(self, b: impl Into<RightHandSide<'a>>) -> Result<Answer> {
        self.prepare()?.solve(b)
    }
}
