//! Matrices of which only the pattern is prepared, because their values change.

use crate::backend::Choice;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::scalar::Precision;
use std::sync::Arc;

/// Returns a matrix whose values are not set yet, of the type of the vectors. They are NaN, so that no
/// backend stores them in fewer bytes.
pub(super) fn without_values(matrix: &Csr, backend: &Choice, precision: Precision) -> Result<Arc<Csr>> {
    if backend.is_auto() {
        return Err(Error::setting("backend", "auto", WITH_CHANGES));
    }
    let values = match precision {
        Precision::F32 => Values::from(vec![f32::NAN; matrix.nnz()]),
        Precision::F64 => Values::from(vec![f64::NAN; matrix.nnz()]),
        other => {
            let reason = "values that change have the precision of the vectors; use f64 or f32";
            return Err(Error::setting("precision", other.name(), reason));
        }
    };
    Csr::with_pattern(Arc::clone(matrix.pattern()), values).map(Arc::new)
}

/// The backends for values that change.
pub(super) const WITH_CHANGES: &str =
    "values that change need the backend csr of a GPU, or spmm:plan=rows for several columns";
