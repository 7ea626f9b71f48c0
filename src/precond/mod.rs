//! Builders of operators that approximate the inverse of a matrix, each one file and one row of [`ROWS`].
//!
//! Tests, help texts, errors and the sweeps to compile ahead read the table.

mod block_jacobi;
mod chebyshev;
mod entry;
mod ic0;
mod jacobi;
mod params;
mod ssor;
mod triangle;
mod typed;

use crate::backend::{Operator, Pick};
use crate::device::Sweep;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::Scalar;
pub use entry::{DotSweep, Entry, Program};
use entry::{Given, Size};
pub use params::Param;
use params::{Numbers, defaults};
use std::sync::Arc;

/// Every preconditioner there is.
pub static ROWS: &[Entry] = &[
    Entry::NONE,
    Entry::of::<jacobi::Family>(),
    Entry::of::<block_jacobi::Family>(),
    Entry::of::<chebyshev::Family>(),
    Entry::of::<ic0::Family>(),
    Entry::of::<ssor::Family>(),
];

/// A preconditioner with its parameters, as users name it: `jacobi`, or `name:parameter=value,...`.
#[derive(Clone, Copy)]
pub struct Preconditioner {
    entry: &'static Entry,
    values: Numbers,
}

impl Entry {
    /// The preconditioner with the defaults of its parameters.
    pub const fn default(&'static self) -> Preconditioner {
        Preconditioner { entry: self, values: defaults(self.params) }
    }
}

/// The last sweeps of preconditioners that take the dot product and the program of a solver along, for compiling them ahead.
pub fn dot_sweeps() -> impl Iterator<Item = DotSweep> {
    ROWS.iter().filter_map(|row| row.dot_sweep)
}

/// Every other sweep of the preconditioners whose coefficients are not constants of a call, for compiling them ahead.
pub fn sweeps() -> impl Iterator<Item = &'static Sweep<'static>> {
    ROWS.iter().flat_map(|row| row.sweeps)
}

/// Every program that follows a dot product of the matrix's operator while a preconditioner is built, for compiling them ahead.
pub fn programs() -> impl Iterator<Item = &'static Program> {
    ROWS.iter().flat_map(|row| row.programs)
}

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
    /// No preconditioner.
    pub const NONE: Preconditioner = const { &Entry::NONE }.default();
    /// The inverse of the diagonal.
    pub const JACOBI: Preconditioner = const { &Entry::of::<jacobi::Family>() }.default();

    /// Every preconditioner there is, with the defaults of its parameters.
    pub fn all() -> impl Iterator<Item = Preconditioner> {
        ROWS.iter().map(Entry::default)
    }

    /// The word that users type, without parameters.
    pub fn name(self) -> &'static str {
        self.entry.name
    }

    /// Whether applying it is nothing but sweeps.
    pub fn is_sweeps(self) -> bool {
        self.entry.is_sweeps
    }

    /// Whether [`Preconditioner::bytes`] is an estimate, by which nothing is refused.
    pub fn bytes_are_estimated(self) -> bool {
        self.entry.bytes_are_estimated
    }

    /// Whether it runs on the CPU only.
    pub fn needs_cpu(self) -> bool {
        self.entry.needs_cpu
    }

    /// Whether it reads one triangle of the matrix, the lower one, and takes the other for its transpose.
    pub fn reads_lower_triangle(self) -> bool {
        self.entry.reads_lower_triangle
    }

    /// The same with the parameters that the matrix decides filled in, as the preconditioner is built.
    pub fn settle(self, matrix: &Csr) -> Preconditioner {
        Preconditioner { values: (self.entry.settle)(matrix, self.values), ..self }
    }

    /// About how many bytes it keeps for a matrix of so many rows and entries, with numbers of `width` bytes.
    pub fn bytes(self, rows: u64, entries: u64, width: u64) -> u64 {
        (self.entry.bytes)(self.values, Size { rows, entries }, width)
    }

    /// The most bytes that building it takes for a time, in addition to those that it keeps.
    pub fn bytes_to_build(self, rows: u64, entries: u64) -> u64 {
        (self.entry.bytes_to_build)(self.values, Size { rows, entries })
    }

    /// Builds the operator; none where there is nothing to apply. `matrix` is exact, `a` the operator that a backend
    /// has made of it. `reserve` bytes of the device's memory stay free.
    pub fn build<D: Pick<T>, T: Scalar>(
        self,
        matrix: &Arc<Csr>,
        a: &Operator<D, T>,
        reserve: u64,
    ) -> Result<Option<Operator<D, T>>> {
        let Some(each) = &self.entry.build else { return Ok(None) };
        let values = self.settle(matrix).values;
        let device = a.device();
        D::one(D::both(each))(&Given { device, matrix, a, values, reserve }).map(Some)
    }
}
