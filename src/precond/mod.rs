//! Builders of operators that approximate the inverse of a matrix, with one file and one row
//! of [`ROWS`] for each.
//!
//! Tests, help texts, errors and ahead-of-time compilation of sweeps use the table.

mod amg;
mod block_jacobi;
mod chebyshev;
mod entry;
mod ic0;
mod jacobi;
mod near_null;
mod ssor;
mod triangle;
mod typed;

use crate::backend::distributed::RankRows;
use crate::backend::{Operator, Pick};
use crate::device::distributed::Local;
use crate::device::{Distributed, Sweep};
use crate::error::{Error, Result};
use crate::format::{Coordinates, Csr};
use crate::params::{Params, Value};
use crate::scalar::Scalar;
pub use entry::Entry;
use entry::{Construction, Given, OverRanks, Size};
pub(crate) use entry::{DotSweep, Program};
pub use near_null::NearNull;
use std::sync::Arc;

/// Generates [`ROWS`], and the functions that build an operator by the name of its row, from a list of types.
macro_rules! rows {
    ($($row:ty),+ $(,)?) => {
        /// All preconditioners.
        pub static ROWS: &[Entry] = &[Entry::NONE, $(Entry::of::<$row>()),+];

        /// Builds the operator of the row with this name; `None` if there is no operator to apply.
        fn build<D: Pick<T>, T: Scalar>(
            name: &str,
            given: &Given<'_, D, T>,
        ) -> Result<Option<Operator<D, T>>> {
            match name {
                $(<$row as Construction>::NAME => <$row>::build(given).map(Some),)+
                _ => Ok(None),
            }
        }

        /// Builds the operator of the row with this name over ranks; `None` if there is no operator to apply.
        fn build_over_ranks<D: Local + Pick<T>, T: Scalar>(
            name: &str,
            given: &OverRanks<'_, D, T>,
        ) -> Result<Option<Operator<Distributed<D>, T>>> {
            match name {
                $(<$row as Construction>::NAME => <$row>::build_over_ranks(given).map(Some),)+
                _ => Ok(None),
            }
        }
    };
}

rows![jacobi::Row, block_jacobi::Row, chebyshev::Row, ic0::Row, ssor::Row, amg::Row];

/// A preconditioner with its parameters, in the syntax `jacobi` or `name:parameter=value,...`.
#[derive(Clone)]
pub struct Preconditioner {
    entry: &'static Entry,
    /// In their normal form.
    params: Params,
    /// The near-null vectors, if any are known.
    near_null: Option<Arc<NearNull>>,
}

impl Entry {
    /// Returns the preconditioner with the defaults of its parameters.
    pub fn default(&'static self) -> Preconditioner {
        Preconditioner { entry: self, params: Params::of(self.params).normal(), near_null: None }
    }

    /// Returns a preconditioner without parameters.
    const fn plain(&'static self) -> Preconditioner {
        Preconditioner { entry: self, params: Params::of(self.params), near_null: None }
    }
}

/// Returns the last sweeps of preconditioners that include the dot product and the program of a solver, so
/// that they can be compiled ahead.
pub fn dot_sweeps() -> impl Iterator<Item = DotSweep> {
    ROWS.iter().filter_map(|row| row.dot_sweep)
}

/// Returns all other sweeps of the preconditioners with coefficients that are not constants of a call, so
/// that they can be compiled ahead.
pub fn sweeps() -> impl Iterator<Item = &'static Sweep<'static>> {
    ROWS.iter().flat_map(|row| row.sweeps)
}

/// Returns the programs that follow a dot product of the matrix's operator while a preconditioner is built,
/// so that they can be compiled ahead.
pub fn programs() -> impl Iterator<Item = &'static Program> {
    ROWS.iter().flat_map(|row| row.programs)
}

/// Returns whether type `T` can represent this number.
fn holds<T: Scalar>(value: f64) -> bool {
    T::from_f64(value).to_f64().is_finite()
}

/// Makes an error for a row in which a preconditioner needs a number that `T` cannot represent.
fn beyond<T: Scalar>(precond: &'static str, row: usize, value: f64) -> Error {
    let hint = match size_of::<T>() {
        4 => "scale the system, or use precision f64",
        _ => "scale the system",
    };
    let what = format!("leads to {value:e}, beyond the range of {}", T::NAME);
    Error::Breakdown { precond, row, what, hint }
}

impl Preconditioner {
    /// No preconditioner.
    pub const NONE: Preconditioner = const { &Entry::NONE }.plain();
    /// The inverse of the diagonal.
    pub const JACOBI: Preconditioner = const { &Entry::of::<jacobi::Row>() }.plain();

    /// Returns all preconditioners, with the defaults of their parameters.
    pub fn all() -> impl Iterator<Item = Preconditioner> {
        ROWS.iter().map(Entry::default)
    }

    /// Returns the name, without parameters.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Returns whether applying it consists of sweeps only.
    pub(crate) fn is_sweeps(&self) -> bool {
        self.entry.is_sweeps
    }

    /// Returns whether [`Preconditioner::bytes`] is an estimate, which must not be used to refuse a solve.
    pub(crate) fn bytes_are_estimated(&self) -> bool {
        self.entry.bytes_are_estimated
    }

    /// Returns whether it runs on the CPU only.
    pub fn needs_cpu(&self) -> bool {
        self.entry.needs_cpu
    }

    /// Returns whether it reads only the lower triangle of the matrix and uses its transpose
    /// as the upper one.
    pub(crate) fn reads_lower_triangle(&self) -> bool {
        self.entry.reads_lower_triangle
    }

    /// Returns whether it is that of the whole matrix if the rows are distributed over ranks; otherwise it is
    /// an additive Schwarz method.
    pub(crate) fn is_exact_over_ranks(&self) -> bool {
        self.entry.exact_over_ranks
    }

    /// Returns the number of consecutive rows that belong together; 0 if
    /// [`settle`](Preconditioner::settle) chooses it.
    pub(crate) fn together(&self) -> usize {
        (self.entry.together)(&self.params)
    }

    /// Returns whether it uses near-null vectors, and coordinates of nodes.
    pub fn takes_near_null(&self) -> bool {
        self.entry.takes_near_null
    }

    /// Sets the near-null vectors; fails if this preconditioner does not use them.
    pub fn with_near_null(self, near_null: NearNull) -> Result<Preconditioner> {
        if !self.takes_near_null() {
            let reason = "it does not use near-null vectors; use amg, or leave the vectors out";
            return Err(Error::setting("precond", self, reason));
        }
        Ok(Preconditioner { near_null: Some(Arc::new(near_null)), ..self })
    }

    /// Takes the number of unknowns of a node from the coordinates of the nodes of a matrix of `rows` rows,
    /// and the rigid-body modes if there is an unknown for each dimension. What is set stays.
    pub(crate) fn on_nodes(&self, coordinates: &Coordinates, rows: usize) -> Result<Preconditioner> {
        let mut settled = self.clone();
        let unknowns = rows / coordinates.nodes().max(1);
        if !self.takes_near_null() || unknowns * coordinates.nodes() != rows {
            return Ok(settled);
        }
        (self.entry.on_nodes)(unknowns, &mut settled.params);
        if self.near_null.is_none() {
            settled.near_null = NearNull::of_nodes(coordinates, rows)?.map(Arc::new);
        }
        Ok(settled)
    }

    /// Returns the near-null vectors, if any are set.
    pub(crate) fn near_null(&self) -> Option<&Arc<NearNull>> {
        self.near_null.as_ref()
    }

    /// Checks that the near-null vectors belong to a matrix of `rows` rows.
    pub(crate) fn check_rows(&self, rows: usize) -> Result<()> {
        self.near_null.as_ref().map_or(Ok(()), |near_null| near_null.check_rows(rows))
    }

    /// Describes the preconditioner with its near-null vectors.
    pub(crate) fn label(&self) -> String {
        match &self.near_null {
            Some(near_null) => format!("{self} with {near_null}"),
            None => self.to_string(),
        }
    }

    /// Returns a text that differs for preconditioners that are not the same operator.
    pub(crate) fn identity(&self) -> String {
        match &self.near_null {
            Some(near_null) => format!("{}, [{:016x}]", self.label(), near_null.hash()),
            None => self.to_string(),
        }
    }

    /// Sets the parameters that depend on the matrix, as the construction does.
    pub fn settle(&self, matrix: &Csr) -> Preconditioner {
        let mut settled = self.clone();
        (self.entry.settle)(matrix, &mut settled.params);
        settled
    }

    /// Sets the parameters that depend on the matrix and on the method. `linear` is whether the rounding of
    /// the preconditioner adds up in the method.
    pub(crate) fn settle_for(&self, matrix: &Csr, linear: bool) -> Preconditioner {
        let mut settled = self.settle(matrix);
        if linear && settled.params.word("precision") == Some("auto") {
            settled.params.set("precision", Value::Word("f64"));
        }
        settled
    }

    /// Estimates the bytes that it stores for a matrix of `rows` rows and `entries` entries, with
    /// numbers of `width` bytes.
    pub fn bytes(&self, rows: u64, entries: u64, width: u64) -> u64 {
        (self.entry.bytes)(&self.params, Size { rows, entries }, width)
    }

    /// Returns the maximum of bytes used temporarily during construction, in addition to the stored ones.
    pub(crate) fn bytes_to_build(&self, rows: u64, entries: u64) -> u64 {
        (self.entry.bytes_to_build)(&self.params, Size { rows, entries })
    }

    /// Builds the operator; `None` if there is no operator to apply. `matrix` is in full precision, and `a`
    /// is the operator that a backend has built from it. `reserve` bytes of device memory stay free.
    pub fn build<D: Pick<T>, T: Scalar>(
        &self,
        matrix: &Arc<Csr>,
        a: &Operator<D, T>,
        reserve: u64,
    ) -> Result<Option<Operator<D, T>>> {
        self.build_for(matrix, a, reserve, 1)
    }

    /// Builds the same operator with a backend for vectors of `columns` columns, if it needs one.
    pub(crate) fn build_for<D: Pick<T>, T: Scalar>(
        &self,
        matrix: &Arc<Csr>,
        a: &Operator<D, T>,
        reserve: u64,
        columns: usize,
    ) -> Result<Option<Operator<D, T>>> {
        self.check_rows(matrix.rows())?;
        build(self.name(), &self.given((matrix, a), reserve, columns))
    }

    /// Builds the operator for a matrix that is distributed over ranks, from the rows of this rank, the
    /// operator of the whole matrix, and the square block of the rank's own columns with its operator. All
    /// ranks call this together.
    pub(crate) fn build_over_ranks<D: Local + Pick<T>, T: Scalar>(
        &self,
        rows: &RankRows,
        a: &Operator<Distributed<D>, T>,
        own: (&Arc<Csr>, &Operator<D, T>),
        reserve: u64,
        columns: usize,
    ) -> Result<Option<Operator<Distributed<D>, T>>> {
        rows.halo().ranks().agreed(self.check_rows(own.0.rows()))?;
        build_over_ranks(self.name(), &OverRanks { rows, a, own: self.given(own, reserve, columns) })
    }

    /// Collects the inputs of a construction.
    fn given<'a, D: Pick<T>, T: Scalar>(
        &self,
        (matrix, a): (&'a Arc<Csr>, &'a Operator<D, T>),
        reserve: u64,
        columns: usize,
    ) -> Given<'a, D, T> {
        let Preconditioner { params, near_null, .. } = self.settle(matrix);
        Given { device: a.device(), matrix, a, params, near_null, reserve, columns }
    }
}
