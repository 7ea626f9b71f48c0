//! The description of a preconditioner, and its construction.

use super::NearNull;
use crate::backend::distributed::{RankRows, of_each_rank};
use crate::backend::{Choice, Operator, Pick};
use crate::device::distributed::Local;
use crate::device::{Device, Distributed, Dot, Op, Sweep};
use crate::error::Result;
use crate::format::{Csr, DiagonalBlocks};
use crate::operator::{DotInto, LinearOperator};
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use std::sync::Arc;

/// A last sweep of a preconditioner that includes the dot product and the program of a solver.
pub(crate) type DotSweep = for<'a> fn(&'a [Dot; 1], &'a [Op]) -> Sweep<'a>;

/// A program that follows a dot product of the matrix's operator while a preconditioner is built.
pub(crate) type Program = (DotInto, &'static [Op]);

/// Sizes on which memory depends.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub rows: u64,
    pub entries: u64,
}

/// The inputs of a preconditioner's construction.
pub(super) struct Given<'a, D: Device, T: Scalar> {
    pub device: &'a D,
    /// The matrix in full precision.
    pub matrix: &'a Arc<Csr>,
    /// The operator that a backend has built from the matrix.
    pub a: &'a Operator<D, T>,
    /// The parameters, completed for the matrix.
    pub params: Params,
    /// The near-null vectors, if any are known.
    pub near_null: Option<Arc<NearNull>>,
    /// Bytes of device memory that must stay free.
    pub reserve: u64,
    /// The number of columns of most vectors.
    pub columns: usize,
}

impl<D: Pick<T>, T: Scalar> Given<'_, D, T> {
    /// Wraps a linear map as an operator on the device.
    pub(crate) fn bind(&self, operator: impl LinearOperator<D, T> + 'static) -> Operator<D, T> {
        Operator::new(self.device, Arc::new(operator))
    }

    /// Builds the operator z = L^-T D L^-1 r; see [`Host::triangles`](crate::backend::Host::triangles).
    pub(crate) fn triangles(&self, precond: &'static str, factor: Csr) -> Result<Operator<D, T>> {
        Ok(Operator::new(self.device, self.device.triangles(precond, factor)?))
    }

    /// Builds the operator of symmetric blocks along the diagonal: by code of the device for such blocks if
    /// it has any, else with the backend that `auto` chooses for them.
    pub(crate) fn diagonal_blocks(&self, blocks: DiagonalBlocks) -> Result<Operator<D, T>> {
        if let Some(operator) = self.device.diagonal_blocks(&blocks)? {
            return Ok(Operator::new(self.device, operator));
        }
        let matrix = blocks.into_csr()?;
        let matrix = Arc::new(if size_of::<T>() == size_of::<f32>() { matrix.to_f32() } else { matrix });
        let auto = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, "auto")?;
        // Iterations share a launch only if the method's matrix is the only operator.
        let size = self.device.gpu_size().without_shared_launches();
        let choice = auto.settle_columns(&matrix, size_of::<T>(), &size, self.columns)?;
        choice.build_for(self.device, &matrix, self.reserve, self.columns)
    }
}

/// The inputs of a preconditioner's construction for a matrix whose rows are distributed over ranks.
pub(super) struct OverRanks<'a, D: Local, T: Scalar> {
    /// The rows of this rank.
    pub rows: &'a RankRows,
    /// The operator of the whole matrix.
    pub a: &'a Operator<Distributed<D>, T>,
    /// The square block of the rank's own columns.
    pub own: Given<'a, D, T>,
}

impl<D: Local, T: Scalar> OverRanks<'_, D, T> {
    /// Returns the result if it is good on every rank; errors name rows of the whole matrix. All ranks call
    /// this together.
    pub(crate) fn agreed<R>(&self, own: Result<R>) -> Result<R> {
        let own = own.map_err(|error| error.in_rows(|row| self.rows.numbers().of(row)));
        self.rows.halo().ranks().agreed(own)
    }
}

/// The description and construction of a preconditioner. Omitted items have defaults.
pub(super) trait Construction {
    /// The name that users type.
    const NAME: &'static str;
    /// Names of the same or a similar preconditioner in other programs.
    const SYNONYMS: &'static [&'static str] = &[];
    /// A one-line summary for users.
    const SUMMARY: &'static str;
    const PARAMS: &'static [Param] = &[];
    /// Whether it runs on the CPU only.
    const NEEDS_CPU: bool = false;
    /// Whether it uses near-null vectors.
    const TAKES_NEAR_NULL: bool = false;
    /// Whether applying it consists of sweeps only.
    const IS_SWEEPS: bool = false;
    /// Whether it reads only the lower triangle of the matrix and uses its transpose as the upper one.
    const READS_LOWER_TRIANGLE: bool = false;
    /// Whether `bytes` is an estimate, which must not be used to refuse a solve.
    const BYTES_ARE_ESTIMATED: bool = false;
    /// The last sweep, with the dot product and the program of a solver.
    const DOT_SWEEP: Option<DotSweep> = None;
    /// All other sweeps with coefficients that are not constants of a call.
    const SWEEPS: &'static [Sweep<'static>] = &[];
    const PROGRAMS: &'static [Program] = &[];
    /// Whether it is that of the whole matrix if the rows are distributed over ranks, and none are separated
    /// that belong together.
    const EXACT_OVER_RANKS: bool = false;

    /// Returns the number of consecutive rows that belong together and must not be separated.
    fn together(_params: &Params) -> usize {
        1
    }

    /// Sets the parameters that depend on the number of unknowns of a node.
    fn on_nodes(_unknowns: usize, _params: &mut Params) {}

    /// Sets the parameters that depend on the matrix.
    fn settle(_matrix: &Csr, _params: &mut Params) {}

    /// Estimates the bytes that the operator stores, with numbers of `width` bytes.
    fn bytes(params: &Params, size: Size, width: u64) -> u64;

    /// Returns the maximum of bytes used temporarily during construction, in addition to the stored ones.
    fn bytes_to_build(_params: &Params, _size: Size) -> u64 {
        0
    }

    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>>;

    /// Builds the operator for a matrix that is distributed over ranks, or refuses it. All ranks call this
    /// together. The default applies on each rank the operator of its block: an additive Schwarz method
    /// without overlap, unless it is exact.
    fn build_over_ranks<D: Local + Pick<T>, T: Scalar>(
        given: &OverRanks<'_, D, T>,
    ) -> Result<Operator<Distributed<D>, T>> {
        let own = given.agreed(Self::build(&given.own))?;
        Ok(of_each_rank(given.a.device(), own))
    }
}

/// One row of the table of preconditioners.
pub struct Entry {
    /// The name that users type.
    pub name: &'static str,
    /// Names of the same or a similar preconditioner in other programs.
    pub synonyms: &'static [&'static str],
    /// A one-line summary for users.
    pub summary: &'static str,
    /// Parameters that can follow the name: `chebyshev:degree=8`.
    pub params: &'static [Param],
    pub(super) needs_cpu: bool,
    pub(super) takes_near_null: bool,
    pub(super) is_sweeps: bool,
    pub(super) reads_lower_triangle: bool,
    pub(super) bytes_are_estimated: bool,
    pub(super) dot_sweep: Option<DotSweep>,
    pub(super) sweeps: &'static [Sweep<'static>],
    pub(super) programs: &'static [Program],
    pub(super) exact_over_ranks: bool,
    pub(super) together: fn(&Params) -> usize,
    pub(super) on_nodes: fn(usize, &mut Params),
    pub(super) settle: fn(&Csr, &mut Params),
    pub(super) bytes: fn(&Params, Size, u64) -> u64,
    pub(super) bytes_to_build: fn(&Params, Size) -> u64,
}

impl Entry {
    /// No preconditioner.
    pub(super) const NONE: Entry = Entry {
        name: "none",
        synonyms: &[],
        summary: "no preconditioner",
        params: &[],
        needs_cpu: false,
        takes_near_null: false,
        is_sweeps: true,
        reads_lower_triangle: false,
        bytes_are_estimated: false,
        dot_sweep: None,
        sweeps: &[],
        programs: &[],
        exact_over_ranks: true,
        together: |_| 1,
        on_nodes: |_, _| {},
        settle: |_, _| {},
        bytes: |_, _, _| 0,
        bytes_to_build: |_, _| 0,
    };

    pub(super) const fn of<F: Construction>() -> Entry {
        Entry {
            name: F::NAME,
            synonyms: F::SYNONYMS,
            summary: F::SUMMARY,
            params: F::PARAMS,
            needs_cpu: F::NEEDS_CPU,
            takes_near_null: F::TAKES_NEAR_NULL,
            is_sweeps: F::IS_SWEEPS,
            reads_lower_triangle: F::READS_LOWER_TRIANGLE,
            bytes_are_estimated: F::BYTES_ARE_ESTIMATED,
            dot_sweep: F::DOT_SWEEP,
            sweeps: F::SWEEPS,
            programs: F::PROGRAMS,
            exact_over_ranks: F::EXACT_OVER_RANKS,
            together: F::together,
            on_nodes: F::on_nodes,
            settle: F::settle,
            bytes: F::bytes,
            bytes_to_build: F::bytes_to_build,
        }
    }
}
