//! Singular matrices: their null space, and the part of a right-hand side that lies in it.

use super::matrix::Matrix;
use crate::error::Result;
use crate::precond::{NearNull, Preconditioner};
use crate::solve::null_space::NullSpace;
use crate::stop::StopReason;

/// The share of a right-hand side in the null space from which it is more than rounding.
const ROUNDING: f64 = 1e-12;

/// The null space of a matrix, as far as known vectors are in it.
#[derive(Debug)]
pub(super) struct KnownNullSpace {
    pub space: NullSpace,
    /// Describes the vectors: `the constant vector`.
    what: String,
}

impl KnownNullSpace {
    /// Finds which of the preconditioner's near-null vectors, of the rigid-body modes or of constants the
    /// matrix maps to zero; tries the constant vector if it is none of them.
    pub(crate) fn of(matrix: &Matrix, precond: &Preconditioner) -> Result<Option<KnownNullSpace>> {
        let near_null = matrix.near_null(precond)?;
        match KnownNullSpace::among(matrix, &near_null)? {
            None => KnownNullSpace::among(matrix, &NearNull::constants(matrix.rows(), 1)?),
            found => Ok(found),
        }
    }

    fn among(matrix: &Matrix, near_null: &NearNull) -> Result<Option<KnownNullSpace>> {
        let Some(space) = NullSpace::of(&matrix.csr, near_null.vectors())? else { return Ok(None) };
        let (dimension, components) = (space.dimension(), space.components());
        let what = match components == 1 && dimension == near_null.vectors().cols() {
            true => near_null.to_string(),
            false => format!("{dimension} vectors, which are parts of {near_null}"),
        };
        Ok(Some(KnownNullSpace { space, what }))
    }

    /// Describes `k` right-hand sides of which at most this share lies in the null space.
    pub(crate) fn told(&self, share: f64, k: usize, removed: bool) -> Singular {
        let of_b = if k == 1 {
            format!("{share:.1e} of ||b||")
        } else {
            format!("up to {share:.1e} of a column of b")
        };
        Singular { what: Some(self.what.clone()), share, of_b, removed }
    }
}

/// Facts about a solve of a matrix that may be singular.
#[derive(Clone, Debug)]
pub(super) struct Singular {
    /// The null space; none if no vector of it is known.
    what: Option<String>,
    /// The share of the norm of the right-hand side that lies in the null space.
    share: f64,
    /// The same share in words.
    of_b: String,
    /// Whether that part was to be removed.
    removed: bool,
}

impl Singular {
    /// A null space that was to be removed and is not known.
    pub(crate) const UNKNOWN: Singular =
        Singular { what: None, share: 0.0, of_b: String::new(), removed: true };

    /// Returns the note on what was removed, or on a solution that is one of many.
    pub(crate) fn note(&self, converged: bool) -> Option<String> {
        let Singular { what, share, of_b, removed } = self;
        let Some(what) = what else {
            let note = "none of the constants, rigid-body modes or near-null vectors is in the null space of \
                        the matrix, so no part of b was removed";
            return Some(note.to_owned());
        };
        let text = match (*removed, *share > ROUNDING) {
            (true, true) => format!("{of_b} lay in its null space and was removed"),
            (true, false) => "b has no part in its null space".to_owned(),
            (false, true) if converged => {
                format!("{of_b} lies in its null space, so x solves the system approximately")
            }
            (false, false) if converged => "x is one of many solutions".to_owned(),
            (false, _) => return None,
        };
        Some(format!("the matrix is singular: it maps {what} to 0; {text}"))
    }

    /// Returns the hint for a system without a solution to the tolerance `rtol`; none if the part of b in the
    /// null space is smaller. `project` names the setting that removes it.
    pub(crate) fn hint(&self, rtol: f64, project: &str) -> Option<String> {
        let Singular { what, share, of_b, removed } = self;
        let what = what.as_ref().filter(|_| !removed && *share > rtol.max(ROUNDING))?;
        Some(format!(
            "the matrix is singular: it maps {what} to 0, and {of_b} lies in its null space, so no x solves \
             the system; {project} removes that part of b"
        ))
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
