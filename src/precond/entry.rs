//! The description of a preconditioner, and its construction.

use crate::backend::{Both, Choice, Each, Operator, Pick, TableKind};
use crate::device::{Device, Dot, Op, Sweep};
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

/// How a preconditioner is made for a matrix whose rows are distributed over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverRanks {
    /// From the entries of each rank alone; it is that of the whole matrix if no rows that
    /// belong together are separated.
    Same,
    /// From the square block of each rank: an additive Schwarz method without overlap.
    Schwarz,
    /// With products of the whole matrix.
    Products,
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
    /// How it is made for a matrix that is distributed over ranks.
    const OVER_RANKS: OverRanks = OverRanks::Schwarz;

    /// Returns the number of consecutive rows that belong together and must not be separated.
    fn together(_params: &Params) -> usize {
        1
    }

    /// Sets the parameters that depend on the matrix.
    fn settle(_matrix: &Csr, _params: &mut Params) {}

    /// Estimates the bytes that the operator stores, with numbers of `width` bytes.
    fn bytes(params: &Params, size: Size, width: u64) -> u64;

    /// Returns the maximum of bytes used temporarily during construction, in addition to the stored ones.
    fn bytes_to_build(_params: &Params, _size: Size) -> u64 {
        0
    }

    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>>;
}

/// The builders of a preconditioner.
pub(super) struct Builder;

impl TableKind for Builder {
    type Of<D: Device, T: Scalar> = for<'a, 'b> fn(&'a Given<'b, D, T>) -> Result<Operator<D, T>>;
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
    pub(super) is_sweeps: bool,
    pub(super) reads_lower_triangle: bool,
    pub(super) bytes_are_estimated: bool,
    pub(super) dot_sweep: Option<DotSweep>,
    pub(super) sweeps: &'static [Sweep<'static>],
    pub(super) programs: &'static [Program],
    pub(super) over_ranks: OverRanks,
    pub(super) together: fn(&Params) -> usize,
    pub(super) settle: fn(&Csr, &mut Params),
    pub(super) bytes: fn(&Params, Size, u64) -> u64,
    pub(super) bytes_to_build: fn(&Params, Size) -> u64,
    /// `None` if there is no operator to apply.
    pub(super) build: Option<Each<Builder>>,
}

impl Entry {
    /// No preconditioner.
    pub(super) const NONE: Entry = Entry {
        name: "none",
        synonyms: &[],
        summary: "no preconditioner",
        params: &[],
        needs_cpu: false,
        is_sweeps: true,
        reads_lower_triangle: false,
        bytes_are_estimated: false,
        dot_sweep: None,
        sweeps: &[],
        programs: &[],
        over_ranks: OverRanks::Same,
        together: |_| 1,
        settle: |_, _| {},
        bytes: |_, _, _| 0,
        bytes_to_build: |_, _| 0,
        build: None,
    };

    pub(super) const fn of<F: Construction>() -> Entry {
        Entry {
            name: F::NAME,
            synonyms: F::SYNONYMS,
            summary: F::SUMMARY,
            params: F::PARAMS,
            needs_cpu: F::NEEDS_CPU,
            is_sweeps: F::IS_SWEEPS,
            reads_lower_triangle: F::READS_LOWER_TRIANGLE,
            bytes_are_estimated: F::BYTES_ARE_ESTIMATED,
            dot_sweep: F::DOT_SWEEP,
            sweeps: F::SWEEPS,
            programs: F::PROGRAMS,
            over_ranks: F::OVER_RANKS,
            together: F::together,
            settle: F::settle,
            bytes: F::bytes,
            bytes_to_build: F::bytes_to_build,
            build: Some(Each {
                cpu: Both { f32: F::build, f64: F::build },
                cuda: Both { f32: F::build, f64: F::build },
            }),
        }
    }
}
