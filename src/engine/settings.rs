//! The settings of a solve of a symmetric system.

use super::device::{Request, Settled};
use super::matrix::Matrix;
use super::range::check_values;
use super::ranks::{PARTITION, Partition, RankMatrix};
use super::running::Run;
use super::stopping::Stopping;
use crate::error::{Error, Result};
use crate::observe::Phase;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::given::Guarded;
use crate::solve::problem::random;
use crate::solve::{MatrixRef, Method, Product};
use std::fmt;
use std::sync::Arc;

/// The seed of the vector by which products are checked for symmetry.
const SEED: u64 = 1;

/// The matrix of a solve: stored entries, only a product, or the rows of a rank.
#[derive(Clone)]
pub(super) enum Input {
    Stored(Matrix),
    Applied(Arc<Guarded>),
    OfRank(RankMatrix),
}

impl Input {
    /// Returns the rows of this process.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Input::Stored(matrix) => matrix.rows(),
            Input::Applied(product) => product.rows(),
            Input::OfRank(matrix) => matrix.rows().len(),
        }
    }

    /// Returns the rows of all ranks.
    pub(crate) fn total_rows(&self) -> usize {
        self.of_rank().map_or_else(|| self.rows(), RankMatrix::total_rows)
    }

    /// Returns the rows of a rank of a distributed matrix.
    pub(crate) fn of_rank(&self) -> Option<&RankMatrix> {
        match self {
            Input::OfRank(matrix) => Some(matrix),
            Input::Stored(_) | Input::Applied(_) => None,
        }
    }

    pub(crate) fn reference(&self) -> MatrixRef<'_> {
        match self {
            Input::Stored(matrix) => MatrixRef::Stored(&matrix.csr),
            Input::Applied(product) => MatrixRef::Applied(&**product),
            Input::OfRank(matrix) => MatrixRef::OfRank(&matrix.rows),
        }
    }
}

/// The matrix, method, stopping criteria and checkpoints of a solve, and how it runs.
pub struct Settings {
    pub(super) method: Method,
    pub(super) matrix: Input,
    pub(super) run: Run,
    pub(super) custom_precond: Option<Arc<Guarded>>,
    pub(super) assume_symmetric: bool,
    /// Whether the part of right-hand sides in the null space is removed.
    pub(super) projects: bool,
    pub(super) partition: Partition,
    /// The name of the stored matrix, whose mesh the partition `coordinates` takes.
    pub(super) named: String,
    pub(super) check_products: bool,
    pub(super) stopping: Stopping,
    pub(super) checkpoints: Checkpoints,
}

/// Prints the method, the number of rows of the matrix, and the request.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} rows, {:?}", self.method.name(), self.matrix.rows(), self.run.request)
    }
}

impl Settings {
    /// Returns the settings of a solve of a stored matrix.
    pub(super) fn of_matrix(method: Method, a: &Matrix) -> Settings {
        Settings::new(method, Input::Stored(a.clone()))
    }

    /// Returns the settings of a solve with a matrix of any kind.
    pub(super) fn new(method: Method, matrix: Input) -> Settings {
        let named = match &matrix {
            Input::Stored(matrix) => matrix.name().to_owned(),
            _ => String::new(),
        };
        Settings {
            method,
            matrix,
            run: Run::default(),
            custom_precond: None,
            assume_symmetric: false,
            projects: false,
            partition: Partition::default(),
            named,
            check_products: false,
            stopping: Stopping::default(),
            checkpoints: Checkpoints::default(),
        }
    }

    /// Returns the settings for one of several devices that share the solve.
    pub(crate) fn for_seat(&self) -> Settings {
        Settings {
            run: Run { request: self.run.request.clone(), ..Run::default() },
            assume_symmetric: self.assume_symmetric,
            partition: self.partition.clone(),
            named: self.named.clone(),
            ..Settings::new(self.method, self.matrix.clone())
        }
    }

    pub(crate) fn has_custom_operators(&self) -> bool {
        matches!(self.matrix, Input::Applied(_)) || self.custom_precond.is_some()
    }

    /// Checks that the request fits operators of the caller, which run on the CPU in double precision only.
    pub(crate) fn check_own(&mut self) -> Result<()> {
        let applied = matches!(self.matrix, Input::Applied(_));
        if !self.has_custom_operators() {
            return Ok(());
        }
        let why = "products and preconditioners of the caller run on the CPU in double precision only";
        let named = &self.run.request.precond;
        if *named != Preconditioner::NONE && applied {
            let reason = "it is made of entries, and the matrix is given only by its product; pass your own preconditioner";
            return Err(Error::setting("precond", named, reason));
        }
        if *named != Preconditioner::NONE {
            return Err(Error::setting(
                "precond",
                named,
                "the caller has passed a preconditioner already; use one of the two",
            ));
        }
        if self.run.request.precision != Precision::F64 {
            return Err(Error::setting("precision", self.run.request.precision.name(), why));
        }
        if !matches!(self.run.request.device.as_str(), "auto" | "cpu") {
            return Err(Error::setting("device", &self.run.request.device, why));
        }
        let rows = self.matrix.rows();
        if let Some(precond) = self.custom_precond.as_ref().filter(|precond| precond.rows() != rows) {
            let (what, got) = ("rows of the preconditioner", precond.rows());
            return Err(Error::Dimension { what, expected: rows, got });
        }
        self.run.request.device = "cpu".to_owned();
        Ok(())
    }

    /// Refuses a projection without the whole matrix.
    pub(crate) fn check_projection(&self) -> Result<()> {
        match self.matrix {
            Input::Applied(_) if self.projects => {
                let reason = "the null space is found in a stored matrix; remove the part of b yourself";
                Err(Error::setting("project", "", reason))
            }
            Input::OfRank(_) if self.projects => {
                let reason = "over ranks the null space is not found yet; solve in one process";
                Err(Error::setting("project", "", reason))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a partition of a matrix that is not divided, or is divided already.
    pub(crate) fn check_partition(&self, settled: &Settled) -> Result<()> {
        if self.partition.is_in_order() {
            return Ok(());
        }
        if let Input::OfRank(_) = self.matrix {
            let reason = "the matrix is distributed already; set the partition of its purpose";
            return Err(Error::setting(PARTITION, &self.partition, reason));
        }
        self.partition.check_divided(!settled.shares.is_empty())?;
        self.partition.check()
    }

    /// Returns whether [`check_matrix`](Self::check_matrix) must compare the entries of a square matrix.
    pub(crate) fn must_compute_symmetry(&self) -> bool {
        let Input::Stored(matrix) = &self.matrix else { return false };
        let asks = self.method.needs().symmetric && !self.assume_symmetric;
        asks && matrix.csr.is_square() && matrix.symmetry_is_unknown()
    }

    /// Refuses a matrix that the method cannot solve; returns a note on its symmetry.
    pub(crate) fn check_matrix(&mut self) -> Result<Option<String>> {
        let matrix = match &self.matrix {
            Input::Stored(matrix) => matrix,
            Input::Applied(_) => return Ok(None),
            // Checked when it was distributed.
            Input::OfRank(matrix) => return Ok(matrix.facts.note.clone()),
        };
        let _span = self.run.phases.begin(Phase::Analyse, "checking the matrix");
        let Request { ref precond, precision, .. } = self.run.request;
        let note = matrix.require_for(self.method, self.assume_symmetric, precond)?;
        check_values(precision, &matrix.csr)?;
        Ok(note)
    }

    /// Checks by products, if that is asked for, what is not checked by entries and the method needs to be
    /// symmetric: matrices and preconditioners of the caller that are given by products, and a matrix whose
    /// symmetry is assumed.
    pub(crate) fn check_products(&mut self) -> Result<()> {
        if !self.check_products {
            return Ok(());
        }
        let _span = self.run.phases.begin(Phase::Analyse, "checking symmetry by products");
        let unchecked = matches!(self.matrix, Input::Applied(_)) || self.assume_symmetric;
        let needs = self.method.needs();
        let matrix = (needs.symmetric && unchecked).then(|| ("matrix", self.matrix.reference()));
        let precond = self.custom_precond.as_ref().filter(|_| needs.definite_m);
        let precond = precond.map(|m| ("preconditioner", MatrixRef::Applied(&**m)));
        let y = random(self.matrix.rows(), SEED);
        for (what, operator) in matrix.into_iter().chain(precond) {
            if let Some((square, mixed)) = operator.asymmetry(&y) {
                return Err(Error::ProductNotSymmetric { what, square, mixed });
            }
        }
        Ok(())
    }
}
