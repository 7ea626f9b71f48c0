//! Builders of operators that approximate the inverse of a matrix.

mod jacobi;

use crate::backend::Operator;
use crate::device::Device;
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
pub use jacobi::jacobi_dot;

/// A preconditioner by name.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Preconditioner {
    /// No preconditioner.
    #[default]
    None,
    /// The inverse of the diagonal.
    Jacobi,
}

impl Preconditioner {
    /// The word that users type.
    pub fn name(self) -> &'static str {
        match self {
            Preconditioner::None => "none",
            Preconditioner::Jacobi => "jacobi",
        }
    }

    /// Builds the operator; none where there is nothing to apply.
    pub fn build<D: Device, T: Scalar>(self, device: &D, matrix: &Csr) -> Result<Option<Operator<D, T>>> {
        match self {
            Preconditioner::None => Ok(None),
            Preconditioner::Jacobi => jacobi::build(device, matrix).map(Some),
        }
    }
}
