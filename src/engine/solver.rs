//! Settings of a solve of a symmetric system, from which a prepared solve is built.

use super::answer::Answer;
use super::many::{Answers, RightHandSides};
use super::matrix::Matrix;
use super::prepared::Prepared;
use super::ranks::{Partition, RankMatrix};
use super::rhs::RightHandSide;
use super::run_settings::{DeviceSettings, RunSettings};
use super::running::Run;
use super::settings::{Input, Settings};
use super::stopping::Stopping;
use super::watch::OnIterate;
use crate::error::Result;
use crate::precond::Preconditioner;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::given::Guarded;
use crate::solve::{Method, Product};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Conjugate gradients, for symmetric positive definite matrices.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let a = Matrix::open("data/grid3x3.mtx")?; // a file, a catalog name, a generator
/// let b = vec![1.0; a.rows()];
/// let answer = Cg::new(&a).precond("jacobi").rtol(1e-10).solve(&b)?; // device and backend are chosen automatically
/// assert!(answer.converged());
/// println!("{}", answer.report());
/// # Ok(())
/// # }
/// ```
pub struct Cg;

/// Minimal residuals (MINRES), for symmetric matrices, which may be indefinite or singular.
pub struct Minres;

impl Cg {
    /// Creates the settings of a solve with this matrix. Preparing the solve fails if the
    /// matrix is not symmetric.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(a: &Matrix) -> Solver {
        Solver::new(Method::Cg, a)
    }

    /// Creates the settings for conjugate gradients with one synchronisation per iteration.
    pub fn pipelined(a: &Matrix) -> Solver {
        Solver::new(Method::PipelinedCg, a)
    }

    /// Creates the settings for conjugate gradients that search in one common space for all right-hand sides
    /// of [`solve_many`](Solver::solve_many), 256 at most. They take fewer but longer iterations.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let a = Matrix::open("poisson2d:30x30")?;
    /// let b = a.problems("random:1", 8)?;
    /// let answers = Cg::block(&a).solve_many(&b)?;
    /// assert!(answers.converged() && answers.report().block_rank == Some(8));
    /// # Ok(())
    /// # }
    /// ```
    pub fn block(a: &Matrix) -> Solver {
        Solver::new(Method::BlockCg, a)
    }

    /// Creates the settings of a solve with a matrix given only by its product: `(rows, |x, y| ...)` sets y =
    /// A x. The solve runs on the CPU in double precision. The symmetry of the matrix is not checked. The
    /// final residual is computed with the caller's product, whose rounding is estimated, not bounded.
    ///
    /// A product that cannot be computed ends the solve, with the x of the last finished iteration:
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// use std::ops::ControlFlow;
    /// let fails = |_: &[f64], _: &mut [f64]| ControlFlow::Break(());
    /// let answer = Cg::with_product((2, fails)).solve(&[1.0, 1.0])?;
    /// assert!(answer.reason() == solver::stop::StopReason::Interrupted && answer.x() == [0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_product(product: impl Product + 'static) -> Solver {
        Solver::with_product(Method::Cg, Guarded::new(product))
    }
}

impl Minres {
    /// Creates the settings of a solve with this matrix. Preparing the solve fails if the
    /// matrix is not symmetric.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(a: &Matrix) -> Solver {
        Solver::new(Method::Minres, a)
    }

    /// Creates the settings of a solve with a matrix given only by its product, as for [`Cg::with_product`].
    pub fn with_product(product: impl Product + 'static) -> Solver {
        Solver::with_product(Method::Minres, Guarded::new(product))
    }
}

/// Settings of a solve of a symmetric system. [`solve`](Solver::solve) solves one system;
/// [`prepare`](Solver::prepare) builds a [`Prepared`] solve for many right-hand sides.
pub struct Solver(Settings);

/// Prints the method, the number of rows of the matrix, and the request.
impl fmt::Debug for Solver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} rows, {:?}", self.0.method.name(), self.0.matrix.rows(), self.0.run.request)
    }
}

impl DeviceSettings for Solver {
    fn run_mut(&mut self) -> &mut Run {
        &mut self.0.run
    }
}

impl RunSettings for Solver {}

impl Solver {
    /// Creates the settings of a solve of `a` by a method.
    pub fn new(method: Method, a: &Matrix) -> Solver {
        Solver(Settings::new(method, Input::Stored(a.clone())))
    }

    /// Creates the settings of a solve of the rows of all ranks. Every rank passes its rows of right-hand
    /// sides and starts, and gets its rows of the solution.
    pub fn over_ranks(method: Method, a: &RankMatrix) -> Solver {
        Solver(Settings::new(method, Input::OfRank(a.clone())))
    }

    fn with_product(method: Method, product: Arc<Guarded>) -> Solver {
        Solver(Settings::new(method, Input::Applied(product)))
    }

    /// Sets the preconditioner by name, with parameters: `jacobi`, `block-jacobi:block=3`, `ic0`. Preparing
    /// the solve fails if there is none of this name.
    pub fn precond(mut self, name: &str) -> Solver {
        match name.parse() {
            Ok(precond) => self.preconditioner(precond),
            Err(fault) => {
                self.0.run.precond_fault = Some(fault);
                self
            }
        }
    }

    /// Sets the preconditioner.
    pub fn preconditioner(mut self, precond: Preconditioner) -> Solver {
        (self.0.run.request.precond, self.0.run.precond_fault) = (precond, None);
        self
    }

    /// Sets a preconditioner that the caller implements: `(rows, |r, z| ...)` sets z = M r. M approximates
    /// the inverse of A and must be symmetric positive definite. The solve runs on the CPU in double
    /// precision. `Break` ends it, as in [`Cg::with_product`].
    pub fn custom_precond(mut self, precond: impl Product + 'static) -> Solver {
        self.0.custom_precond = Some(Guarded::new(precond));
        self
    }

    /// Sets how several GPUs divide the rows: ranges of the rows, boxes of a mesh, or parts of the graph of
    /// the matrix. Needs several GPUs; a [`RankMatrix`] has the partition of its [`Purpose`](super::Purpose).
    pub fn partition(mut self, partition: Partition) -> Solver {
        self.0.partition = partition;
        self
    }

    /// Sets the number of right-hand sides that [`Prepared::solve_many`] will solve at once: backend `auto`
    /// then chooses among the backends that multiply several columns, and memory is kept free for the vectors
    /// of all columns. By default 1.
    pub fn columns(mut self, k: usize) -> Solver {
        self.0.run.request.columns = k;
        self
    }

    /// Stops once the norm of the residual is at most `tolerance` times the norm of b. By default 1e-8, and
    /// 1e-5 in single precision.
    pub fn rtol(mut self, tolerance: f64) -> Solver {
        self.0.stopping.rtol = Some(tolerance);
        self
    }

    /// Stops once the norm of the residual is at most `tolerance`.
    pub fn atol(mut self, tolerance: f64) -> Solver {
        self.0.stopping.atol = Some(tolerance);
        self
    }

    /// Stops once the norm of the residual is at most `tolerance` times the norm of the initial residual.
    pub fn rtol_initial(mut self, tolerance: f64) -> Solver {
        self.0.stopping.rtol_initial = Some(tolerance);
        self
    }

    /// Sets the iteration limit. By default 10 per row, at least 1000 and at most 100,000.
    pub fn max_iters(mut self, iterations: usize) -> Solver {
        self.0.stopping.max_iters = Some(iterations);
        self
    }

    /// Sets all tolerances and limits.
    pub fn stopping(mut self, stopping: Stopping) -> Solver {
        self.0.run.watch.limit(&stopping);
        self.0.stopping = stopping;
        self
    }

    /// Skips the symmetry check, for a matrix that is known to be symmetric.
    pub fn assume_symmetric(mut self, assume: bool) -> Solver {
        self.0.assume_symmetric = assume;
        self
    }

    /// Checks symmetry by products when the solve is prepared: that of a matrix or preconditioner of the
    /// caller of which only products are known, and that of a matrix whose symmetry is assumed. This takes
    /// two products with each. By default it is not checked.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let shear = (2, |x: &[f64], y: &mut [f64]| (y[0], y[1]) = (x[0] + x[1], x[1]));
    /// assert!(Minres::with_product(shear).check_products(true).solve(&[1.0, 1.0]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_products(mut self, check: bool) -> Solver {
        self.0.check_products = check;
        self
    }

    /// Saves the state of the solve in a file at this interval and at its end.
    pub fn checkpoint(mut self, file: impl Into<PathBuf>, every: Duration) -> Solver {
        self.0.checkpoints.save = Some((file.into(), every));
        self
    }

    /// Sets where checkpoints are saved, and the checkpoint from which the solve resumes.
    pub fn checkpoints(mut self, checkpoints: Checkpoints) -> Solver {
        self.0.checkpoints = checkpoints;
        self
    }

    /// Resumes from a checkpoint of a solve of the same system.
    pub fn resume(mut self, file: impl Into<PathBuf>) -> Solver {
        self.0.checkpoints.resume = Some(file.into());
        self
    }

    /// Calls `callback` with the number of iterations and x after each iteration, in solves of one right-hand
    /// side; after each second one in MINRES. Each call takes as long as several iterations.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// use std::sync::mpsc;
    /// let (sender, receiver) = mpsc::channel();
    /// let a = Matrix::open("poisson2d:20x20")?;
    /// let answer = Cg::new(&a)
    ///     .on_iterate(move |iteration, x| sender.send((iteration, x.to_vec())).unwrap_or(()))
    ///     .solve(&vec![1.0; a.rows()])?;
    /// let (last, x) = receiver.iter().last().unwrap_or_default();
    /// assert!(last == answer.outcome().iterations && x == answer.x());
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_iterate(mut self, callback: impl FnMut(usize, &[f64]) + Send + 'static) -> Solver {
        self.0.run.watch.observers.push(Box::new(OnIterate(callback)));
        self
    }

    /// Chooses device and backend, and builds matrix and preconditioner on the device for repeated solves.
    pub fn prepare(self) -> Result<Prepared> {
        Prepared::new(self.0)
    }

    /// Solves the systems of several right-hand sides at once; see [`Prepared::solve_many`].
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let a = Matrix::open("poisson2d:30x30")?;
    /// let b = a.problems("random:1", 4)?; // the columns random:1 to random:4
    /// let answers = Cg::new(&a).solve_many(&b)?;
    /// assert!(answers.converged() && answers.count() == 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn solve_many<'a>(self, b: impl Into<RightHandSides<'a>>) -> Result<Answers> {
        let b = b.into();
        self.timed_from_here().columns(b.k).prepare()?.solve_many(b)
    }

    /// Solves one system.
    pub fn solve<'a>(self, b: impl Into<RightHandSide<'a>>) -> Result<Answer> {
        self.timed_from_here().prepare()?.solve(b)
    }
}
