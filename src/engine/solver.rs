//! The types that begin a solve of a symmetric system.

use super::matrix::Matrix;
use super::ranks::RankMatrix;
use super::settings::{Input, Settings};
use super::system_settings::SystemSettings;
use crate::solve::given::Guarded;
use crate::solve::{Method, Product};
use std::fmt;

/// Conjugate gradients, for symmetric positive definite matrices.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let a = Matrix::open("data/grid3x3.mtx")?; // a file, a catalog name, a generator
/// let b = vec![1.0; a.rows()];
/// // Device and backend are chosen automatically.
/// let answer = Cg::new(&a).precond("jacobi").rtol(1e-10).solve(&b)?;
/// assert!(answer.converged());
/// println!("{}", answer.report());
/// # Ok(())
/// # }
/// ```
pub struct Cg(Settings);

/// Minimal residuals (MINRES), for symmetric matrices, which may be indefinite or singular.
pub struct Minres(Settings);

impl Cg {
    /// Creates the settings of a solve with this matrix. Preparing the solve fails if the
    /// matrix is not symmetric.
    pub fn new(a: &Matrix) -> Cg {
        Cg(Settings::of_matrix(Method::Cg, a))
    }

    /// Creates the settings for conjugate gradients with one synchronisation per iteration.
    pub fn pipelined(a: &Matrix) -> Cg {
        Cg(Settings::of_matrix(Method::PipelinedCg, a))
    }

    /// Creates the settings for conjugate gradients that search in one common space for all right-hand sides
    /// of [`solve_many`](SystemSettings::solve_many), 256 at most. They take fewer but longer iterations.
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
    pub fn block(a: &Matrix) -> Cg {
        Cg(Settings::of_matrix(Method::BlockCg, a))
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
    pub fn with_product(product: impl Product + 'static) -> Cg {
        Cg(Solver::with_product(Method::Cg, product).0)
    }
}

impl Minres {
    /// Creates the settings of a solve with this matrix. Preparing the solve fails if the
    /// matrix is not symmetric.
    pub fn new(a: &Matrix) -> Minres {
        Minres(Settings::of_matrix(Method::Minres, a))
    }

    /// Creates the settings of a solve with a matrix given only by its product, as for [`Cg::with_product`].
    pub fn with_product(product: impl Product + 'static) -> Minres {
        Minres(Solver::with_product(Method::Minres, product).0)
    }
}

/// Settings of a solve by a method that the program chooses, or over ranks.
pub struct Solver(Settings);

impl Solver {
    /// Creates the settings of a solve of `a` by a method.
    pub fn new(method: Method, a: &Matrix) -> Solver {
        Solver(Settings::of_matrix(method, a))
    }

    /// Creates the settings of a solve by a method with a matrix given only by its product, as for
    /// [`Cg::with_product`].
    pub fn with_product(method: Method, product: impl Product + 'static) -> Solver {
        Solver(Settings::new(method, Input::Applied(Guarded::new(product))))
    }

    /// Creates the settings of a solve of the rows of all ranks. Every rank passes its rows of right-hand
    /// sides and starts, and gets its rows of the solution.
    pub fn over_ranks(method: Method, a: &RankMatrix) -> Solver {
        Solver(Settings::new(method, Input::OfRank(a.clone())))
    }
}

macro_rules! has_settings {
    ($($type:ty),+) => {$(
        impl SystemSettings for $type {
            fn settings_mut(&mut self) -> &mut Settings {
                &mut self.0
            }

            fn into_settings(self) -> Settings {
                self.0
            }
        }

        /// Prints the method, the number of rows of the matrix, and the request.
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

has_settings!(Cg, Minres, Solver);
