//! Builders of operators that approximate the inverse of a matrix.

mod jacobi;
mod typed;

use crate::backend::{Operator, Pick};
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
pub use jacobi::jacobi_dot;
use std::sync::Arc;
pub use typed::{ROWS, Row};

/// A preconditioner with its parameters, as users name it: `jacobi`, or `name:parameter=value,...`.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Preconditioner {
    /// No preconditioner.
    #[default]
    None,
    /// The inverse of the diagonal.
    Jacobi,
}

impl Preconditioner {
    /// The word that users type, without parameters.
    pub fn name(self) -> &'static str {
        match self {
            Preconditioner::None => "none",
            Preconditioner::Jacobi => "jacobi",
        }
    }

    /// Builds the operator; none where there is nothing to apply. `matrix` is exact, `a` the operator that a backend has
    /// made of it.
    pub fn build<D: Pick<T>, T: Scalar>(
        self,
        device: &D,
        matrix: &Arc<Csr>,
        _a: &Operator<D, T>,
    ) -> Result<Option<Operator<D, T>>> {
        match self {
            Preconditioner::None => Ok(None),
            Preconditioner::Jacobi => jacobi::build(device, matrix).map(Some),
        }
    }
}
