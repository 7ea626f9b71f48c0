//! Builders of operators that approximate the inverse of a matrix.

mod block_jacobi;
mod chebyshev;
mod ic0;
mod jacobi;
mod ssor;
mod triangle;
mod typed;

use crate::backend::{Operator, Pick};
use crate::device::{Dot, Op, Sweep};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::DotInto;
use crate::scalar::Scalar;
use std::sync::Arc;
pub use typed::{ROWS, Row};

/// A preconditioner with its parameters, as users name it: `jacobi`, or `name:parameter=value,...`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Preconditioner {
    /// No preconditioner.
    #[default]
    None,
    /// The inverse of the diagonal.
    Jacobi,
    /// The inverses of square blocks along the diagonal.
    BlockJacobi {
        /// Rows of a block; where none was given, the size is found.
        block: Option<usize>,
    },
    /// A polynomial of the Jacobi-scaled matrix.
    Chebyshev {
        /// Products with the matrix.
        degree: usize,
        /// The largest eigenvalue over the smallest that the polynomial is made for.
        ratio: f64,
    },
    /// Incomplete Cholesky factors on the pattern of the matrix.
    Ic0 {
        /// How much of the diagonal is added to it before; more where the factorisation breaks down.
        shift: f64,
    },
    /// A forward and a backward sweep of successive over-relaxation.
    Ssor {
        /// The relaxation, between 0 and 2.
        omega: f64,
    },
}

/// A last sweep of a preconditioner that takes the dot product and the program of a solver along.
pub type DotSweep = for<'a> fn(&'a [Dot; 1], &'a [Op]) -> Sweep<'a>;

/// All such sweeps, for whoever compiles them ahead.
pub const DOT_SWEEPS: &[DotSweep] = &[jacobi::jacobi_dot, chebyshev::chebyshev_dot];

/// Every other sweep of the preconditioners whose coefficients are not constants of a call, likewise.
pub const SWEEPS: &[Sweep<'static>] = chebyshev::SWEEPS;

/// Every program that follows a dot product of the matrix's operator while a preconditioner is built, likewise.
pub const PROGRAMS: &[(DotInto, &[Op])] = &[chebyshev::AFTER_PQ];

/// Whether numbers of type `T` can hold this one.
fn holds<T: Scalar>(value: f64) -> bool {
    T::from_f64(value).to_f64().is_finite()
}

/// A row, counted from 0, of which a preconditioner would need a number that `T` cannot hold.
fn beyond<T: Scalar>(precond: &'static str, row: usize, value: f64) -> Error {
    let hint = match size_of::<T>() {
        4 => "scale the system, or use precision f64",
        _ => "scale the system",
    };
    let what = format!("leads to {value:e}, beyond the range of {}", T::NAME);
    Error::Breakdown { precond, row: row + 1, what, hint }
}

impl Preconditioner {
    /// The word that users type, without parameters.
    pub fn name(self) -> &'static str {
        match self {
            Preconditioner::None => "none",
            Preconditioner::Jacobi => "jacobi",
            Preconditioner::BlockJacobi { .. } => "block-jacobi",
            Preconditioner::Chebyshev { .. } => "chebyshev",
            Preconditioner::Ic0 { .. } => "ic0",
            Preconditioner::Ssor { .. } => "ssor",
        }
    }

    /// Whether applying it is nothing but sweeps.
    pub fn is_sweeps(self) -> bool {
        matches!(self, Preconditioner::None | Preconditioner::Jacobi)
    }

    /// Whether it multiplies by inverted blocks.
    pub fn is_blocks(self) -> bool {
        matches!(self, Preconditioner::BlockJacobi { .. })
    }

    /// Whether it runs on the CPU only.
    pub fn needs_cpu(self) -> bool {
        matches!(self, Preconditioner::Ic0 { .. } | Preconditioner::Ssor { .. })
    }

    /// Whether it reads one triangle of the matrix, the lower one, and takes the other for its transpose.
    pub fn reads_lower_triangle(self) -> bool {
        match self {
            Preconditioner::None | Preconditioner::Jacobi | Preconditioner::Chebyshev { .. } => false,
            Preconditioner::BlockJacobi { .. } | Preconditioner::Ic0 { .. } | Preconditioner::Ssor { .. } => {
                true
            }
        }
    }

    /// The same with the parameters that the matrix decides filled in, as the preconditioner is built.
    pub fn settle(self, matrix: &Csr) -> Preconditioner {
        match self {
            Preconditioner::BlockJacobi { block: None } => {
                Preconditioner::BlockJacobi { block: Some(block_jacobi::best_size(matrix)) }
            }
            settled => settled,
        }
    }

    /// About how many bytes it keeps for a matrix of so many rows and entries, with numbers of `width` bytes.
    pub fn bytes(self, rows: u64, entries: u64, width: u64) -> u64 {
        let vectors = |count: u64| count * rows * width;
        match self {
            Preconditioner::None => 0,
            Preconditioner::Jacobi => vectors(1),
            // As compressed rows: a backend may keep half of that, or a third more.
            Preconditioner::BlockJacobi { block } => {
                let block = block.unwrap_or(block_jacobi::UNBLOCKED) as u64;
                rows * (block * (4 + width) + 4)
            }
            // D^-1, e and s.
            Preconditioner::Chebyshev { .. } => vectors(3),
            // Each triangle once, with a column and a value for every entry; the pivots, and a vector.
            Preconditioner::Ic0 { .. } | Preconditioner::Ssor { .. } => {
                entries.saturating_sub(rows) * (4 + width) + vectors(2)
            }
        }
    }

    /// The most bytes that building it takes for a time, in addition to those that it keeps.
    pub fn bytes_to_build(self, rows: u64, entries: u64) -> u64 {
        match self {
            Preconditioner::None | Preconditioner::Jacobi => 0,
            // The inverted blocks as compressed rows, and where their rows begin in 64 bits.
            Preconditioner::BlockJacobi { block } => {
                rows * (12 * block.unwrap_or(block_jacobi::UNBLOCKED) as u64 + 12)
            }
            // The vectors by which the largest eigenvalue is estimated.
            Preconditioner::Chebyshev { .. } => 6 * 8 * rows,
            // For each entry below the diagonal the factor with its columns, 12 bytes, the needs of both directions, 8, and its
            // place above the diagonal, 8; for each row the diagonal of the factor, four offsets and a schedule.
            Preconditioner::Ic0 { .. } | Preconditioner::Ssor { .. } => {
                14 * entries.saturating_sub(rows) + (16 + 32 + 10) * rows
            }
        }
    }

    /// Builds the operator; none where there is nothing to apply. `matrix` is exact, `a` the operator that a backend
    /// has made of it. `reserve` bytes of the device's memory stay free.
    pub fn build<D: Pick<T>, T: Scalar>(
        self,
        device: &D,
        matrix: &Arc<Csr>,
        a: &Operator<D, T>,
        reserve: u64,
    ) -> Result<Option<Operator<D, T>>> {
        let made = match self {
            Preconditioner::None => return Ok(None),
            Preconditioner::Jacobi => jacobi::build(device, matrix)?,
            Preconditioner::BlockJacobi { block } => {
                let block = block.unwrap_or_else(|| block_jacobi::best_size(matrix));
                return block_jacobi::build(device, matrix, block, reserve).map(Some);
            }
            Preconditioner::Chebyshev { degree, ratio } => {
                chebyshev::build(device, matrix, a, degree, ratio)?
            }
            Preconditioner::Ic0 { shift } => ic0::build(device, matrix, shift)?,
            Preconditioner::Ssor { omega } => ssor::build(device, matrix, omega)?,
        };
        Ok(Some(Operator::new(device, made)))
    }
}
