//! The settings of a solve of a symmetric system, from which a prepared solve is built.

use super::answer::Answer;
use super::many::{Answers, RightHandSides};
use super::prepared::Prepared;
use super::ranks::Partition;
use super::rhs::RightHandSide;
use super::run_settings::{DeviceSettings, RunSettings};
use super::running::Run;
use super::settings::Settings;
use super::stopping::Stopping;
use super::watch::OnIterate;
use crate::error::Result;
use crate::precond::Preconditioner;
use crate::solve::Product;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::given::Guarded;
use std::path::PathBuf;
use std::time::Duration;

/// The settings of a solve of a symmetric system, as methods of [`Cg`](super::Cg),
/// [`Minres`](super::Minres) and [`Solver`](super::Solver). [`solve`](SystemSettings::solve) solves one
/// system; [`prepare`](SystemSettings::prepare) builds a [`Prepared`] solve for many right-hand sides.
pub trait SystemSettings: Sized {
    /// Returns the settings, which the methods change.
    #[doc(hidden)]
    fn settings_mut(&mut self) -> &mut Settings;

    /// Returns the settings, from which the solve is prepared.
    #[doc(hidden)]
    fn into_settings(self) -> Settings;

    /// Sets the preconditioner by name, with parameters: `jacobi`, `block-jacobi:block=3`, `ic0`. Preparing
    /// the solve fails if there is none of this name.
    fn precond(mut self, name: &str) -> Self {
        match name.parse() {
            Ok(precond) => self.preconditioner(precond),
            Err(fault) => {
                self.settings_mut().run.precond_fault = Some(fault);
                self
            }
        }
    }

    /// Sets the preconditioner.
    fn preconditioner(mut self, precond: Preconditioner) -> Self {
        let run = &mut self.settings_mut().run;
        (run.request.precond, run.precond_fault) = (precond, None);
        self
    }

    /// Sets a preconditioner that the caller implements: `(rows, |r, z| ...)` sets z = M r. M approximates
    /// the inverse of A and must be symmetric positive definite. The solve runs on the CPU in double
    /// precision. `Break` ends it, as in [`Cg::with_product`](super::Cg::with_product).
    fn custom_precond(mut self, precond: impl Product + 'static) -> Self {
        self.settings_mut().custom_precond = Some(Guarded::new(precond));
        self
    }

    /// Sets how several GPUs divide the rows: ranges of the rows, boxes of a mesh, or parts of the graph of
    /// the matrix. Needs several GPUs; a [`RankMatrix`](super::RankMatrix) has the partition of its
    /// [`Purpose`](super::Purpose).
    fn partition(mut self, partition: Partition) -> Self {
        self.settings_mut().partition = partition;
        self
    }

    /// Sets the number of right-hand sides that [`Prepared::solve_many`] will solve at once: backend `auto`
    /// then chooses among the backends that multiply several columns, and memory is kept free for the vectors
    /// of all columns. By default 1.
    fn columns(mut self, k: usize) -> Self {
        self.settings_mut().run.request.columns = k;
        self
    }

    /// Stops once the norm of the residual is at most `tolerance` times the norm of b. By default 1e-8, and
    /// 1e-5 in single precision.
    fn rtol(mut self, tolerance: f64) -> Self {
        self.settings_mut().stopping.rtol = Some(tolerance);
        self
    }

    /// Stops once the norm of the residual is at most `tolerance`.
    fn atol(mut self, tolerance: f64) -> Self {
        self.settings_mut().stopping.atol = Some(tolerance);
        self
    }

    /// Stops once the norm of the residual is at most `tolerance` times the norm of the initial residual.
    fn rtol_initial(mut self, tolerance: f64) -> Self {
        self.settings_mut().stopping.rtol_initial = Some(tolerance);
        self
    }

    /// Sets the iteration limit. By default 10 per row, at least 1000 and at most 100,000.
    fn max_iters(mut self, iterations: usize) -> Self {
        self.settings_mut().stopping.max_iters = Some(iterations);
        self
    }

    /// Sets all tolerances and limits.
    fn stopping(mut self, stopping: Stopping) -> Self {
        let settings = self.settings_mut();
        settings.run.watch.limit(&stopping);
        settings.stopping = stopping;
        self
    }

    /// Skips the symmetry check, for a matrix that is known to be symmetric.
    fn assume_symmetric(mut self, assume: bool) -> Self {
        self.settings_mut().assume_symmetric = assume;
        self
    }

    /// Removes the part of each right-hand side that lies in the null space of a singular matrix, so that the
    /// system has a solution, and the same part of the solution. The near-null vectors of the preconditioner,
    /// the rigid-body modes of known coordinates, or constants are tried in each connected component. If none
    /// of them is in the null space, a note of the report says so.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let a = Matrix::open("poisson2d:30x30,boundary=neumann")?;
    /// let answer = Cg::new(&a).project(true).solve(&vec![1.0; a.rows()])?;
    /// assert!(answer.x().iter().all(|x| x.abs() < 1e-9)); // b was constant
    /// # Ok(())
    /// # }
    /// ```
    fn project(mut self, project: bool) -> Self {
        self.settings_mut().projects = project;
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
    fn check_products(mut self, check: bool) -> Self {
        self.settings_mut().check_products = check;
        self
    }

    /// Saves the state of the solve in a file at this interval and at its end.
    fn checkpoint(mut self, file: impl Into<PathBuf>, every: Duration) -> Self {
        self.settings_mut().checkpoints.save = Some((file.into(), every));
        self
    }

    /// Sets where checkpoints are saved, and the checkpoint from which the solve resumes.
    fn checkpoints(mut self, checkpoints: Checkpoints) -> Self {
        self.settings_mut().checkpoints = checkpoints;
        self
    }

    /// Resumes from a checkpoint of a solve of the same system.
    fn resume(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings_mut().checkpoints.resume = Some(file.into());
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
    fn on_iterate(mut self, callback: impl FnMut(usize, &[f64]) + Send + 'static) -> Self {
        self.settings_mut().run.watch.observers.push(Box::new(OnIterate(callback)));
        self
    }

    /// Chooses device and backend, and builds matrix and preconditioner on the device for repeated solves.
    fn prepare(self) -> Result<Prepared> {
        Prepared::new(self.into_settings())
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
    fn solve_many<'a>(self, b: impl Into<RightHandSides<'a>>) -> Result<Answers> {
        let b = b.into();
        self.timed_from_here().columns(b.k).prepare()?.solve_many(b)
    }

    /// Solves one system.
    fn solve<'a>(self, b: impl Into<RightHandSide<'a>>) -> Result<Answer> {
        self.timed_from_here().prepare()?.solve(b)
    }
}

impl<S: SystemSettings> DeviceSettings for S {
    fn run_mut(&mut self) -> &mut Run {
        &mut self.settings_mut().run
    }
}

impl<S: SystemSettings> RunSettings for S {}
