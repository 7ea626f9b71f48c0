//! Singular matrices: their null space, and the part of a right-hand side that lies in it.

use super::matrix::Matrix;
use crate::error::Result;
use crate::precond::Preconditioner;
use crate::solve::null_space::NullSpace;
use crate::stop::StopReason;

/// The share of a right-hand side in the null space from which it is more than rounding.
const ROUNDING: f64 = 1e-12;

/// The null space of a matrix, as far as known vectors span it.
#[derive(Debug)]
pub(super) struct KnownNullSpace {
    pub space: NullSpace,
    /// Describes the vectors: `the constant vector`.
    what: String,
}

impl KnownNullSpace {
    /// Finds the null space in the span of the preconditioner's near-null vectors, of the rigid-body modes or
    /// of constants.
    pub(crate) fn of(matrix: &Matrix, precond: &Preconditioner) -> Result<Option<KnownNullSpace>> {
        let near_null = matrix.near_null(precond)?;
        let Some(space) = NullSpace::of(&matrix.csr, near_null.vectors())? else { return Ok(None) };
        let (dimension, components) = (space.dimension(), space.components());
        let what = match components == 1 && dimension == near_null.vectors().cols() {
            true => near_null.to_string(),
            false => format!("{dimension} vectors, which are parts of {near_null}"),
        };
        Ok(Some(KnownNullSpace { space, what }))
    }

    /// Describes a column of a right-hand side.
    pub(crate) fn told(&self, share: f64, removed: bool) -> Singular {
        Singular { what: self.what.clone(), share, removed }
    }
}

/// Facts about a solve of a singular matrix.
#[derive(Clone, Debug)]
pub(super) struct Singular {
    what: String,
    /// The share of the norm of the right-hand side that lies in the null space.
    share: f64,
    /// Whether that part was removed.
    removed: bool,
}

impl Singular {
    /// Returns the note on a solution that is one of many.
    pub(crate) fn note(&self) -> String {
        let Singular { what, share, removed } = self;
        let part = match (*removed, *share > ROUNDING) {
            (true, true) => format!("; {share:.1e} of ||b|| lay in its null space and was removed"),
            (false, true) => format!("; {share:.1e} of ||b|| lies in its null space"),
            _ => String::new(),
        };
        let which =
            if *removed { "x is the shortest of many solutions" } else { "x is one of many solutions" };
        format!("the matrix is singular: it maps {what} to 0, and {which}{part}")
    }

    /// Returns the hint for a system without a solution; none if the right-hand side is in the range.
    /// `project` names the setting that removes the rest.
    pub(crate) fn hint(&self, project: &str) -> Option<String> {
        let Singular { what, share, removed } = self;
        (!removed && *share > ROUNDING).then(|| {
            format!(
                "the matrix is singular: it maps {what} to 0, and {share:.1e} of ||b|| lies in its null space, so no x solves the \
                 system; {project} removes that part of b"
            )
        })
    }
}

/// Returns whether a solve may have ended because its system has no solution.
pub(super) fn may_lack_a_solution(reason: &StopReason) -> bool {
    match reason {
        StopReason::Converged
        | StopReason::IterationLimit { .. }
        | StopReason::TimeLimit { .. }
        | StopReason::NotFinite { .. }
        | StopReason::NotSolved { .. } => false,
        reason => !reason.is_success(),
    }
}
