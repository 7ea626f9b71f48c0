//! What must hold of a system before it is solved.

use crate::cli::exact;
use crate::cli::flags::bad;
use crate::cli::info::pairs_differ;
use crate::cli::plan::Plan;
use crate::error::{Error, Result};
use crate::format::stats::{Verdict, symmetry_of};
use crate::scalar::Precision;
use crate::source::Loaded;

/// Refuses a matrix that is not square or not symmetric. Returns a note where symmetry holds to rounding only, or was not
/// checked.
pub(super) fn check_matrix(plan: &Plan, loaded: &Loaded) -> Result<Option<String>> {
    let (rows, cols) = (loaded.matrix.rows(), loaded.matrix.cols());
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver: plan.method.name() });
    }
    if loaded.symmetric {
        return Ok(None);
    }
    let lower = match plan.precond.reads_lower_triangle() {
        true => format!(
            "; {} uses the lower triangle, and the residual is of the whole matrix",
            plan.precond.name()
        ),
        false => String::new(),
    };
    if plan.assume_symmetric {
        return Ok(Some(format!("A was not checked for symmetry, as --assume-symmetric asks{lower}")));
    }
    match symmetry_of(&loaded.matrix)? {
        Verdict::Exact => Ok(None),
        Verdict::ToRounding(rounding) => {
            Ok(Some(format!("A is symmetric to rounding: {}{lower}", pairs_differ(&rounding))))
        }
        Verdict::No(a) => Err(Error::NotSymmetric {
            row: a.row + 1,
            col: a.col + 1,
            value: exact(a.value),
            mirrored: a.mirrored.map_or("not stored".to_owned(), exact),
        }),
    }
}

/// Names the file of a start that cannot be used.
pub(super) fn name_start(plan: &Plan, error: Error) -> Error {
    match (&error, &plan.x0) {
        (Error::StartScale { .. }, Some(x0)) => bad("--x0", x0, error.to_string()),
        _ => error,
    }
}

/// Numbers that vanish or overflow in f32 would make another problem of it.
pub(super) fn check_range(precision: Precision, what: &str, values: impl Iterator<Item = f64>) -> Result<()> {
    let lost = |v: &f64| *v != 0.0 && v.is_finite() && (*v as f32 == 0.0 || (*v as f32).is_infinite());
    match values.into_iter().find(lost) {
        None => Ok(()),
        Some(value) => Err(bad(
            "--precision",
            precision.name(),
            format!("{what} holds {value:e}, which f32 cannot; use --precision f64, or scale the system"),
        )),
    }
}
