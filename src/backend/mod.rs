//! Strategies (backends) for y = A x, each one file and one row of the registry.
//!
//! Tests, `solver backends`, help texts and benchmarks read [`REGISTRY`]: a backend without a row there does
//! not exist, and every row is tested.

pub mod auto;
mod blocks;
pub(crate) mod cpu;
pub mod cuda;
pub(crate) mod decision;
pub mod distributed;
mod for_columns;
mod names;
pub(crate) mod processor;
mod registry;
pub(crate) mod timing;

use crate::device::{Cpu, Cuda, Device, Kept, LentRows};
use crate::error::{Error, GpuError, Result, in_words};
use crate::format::{Csr, DiagonalBlocks, Values};
pub use crate::operator::Operator;
pub(crate) use crate::operator::SharedOperator;
use crate::operator::{Inflow, Residuals};
use crate::params::{Param, Params, split_name};
use crate::scalar::{Precision, Scalar};
use crate::spelling::{did_you_mean, nearest};
pub(crate) use cuda::Taken;
pub use decision::GpuSize;
pub(crate) use decision::{Candidate, Decision};
pub(crate) use for_columns::{ForColumns, MatrixAgain};
pub(crate) use names::{auto_entries, nearest_on_cpu};
pub use names::{backend_names, recommended};
use registry::ALL_PRECISIONS;
pub use registry::REGISTRY;
use std::sync::Arc;

/// Checks at compile time that operators can be sent to threads and shared by them.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<(Operator<Cpu, f32>, Operator<Cpu, f64>)>();
    is_shared::<(Operator<Cuda, f32>, Operator<Cuda, f64>)>();
};

/// A strategy: builds an operator from a matrix.
pub(crate) trait Family<D: Device> {
    /// Whether a product sums repeated entries (several at one row and column) itself. If false, `check` and
    /// `build` get a matrix whose repeated entries are already summed.
    const ADDS_REPEATS: bool = true;

    /// Refuses a matrix that the backend does not support, for vectors whose elements have `width` bytes;
    /// needs no device. It is called before `build`, which may rely on it. `build` may still refuse what only
    /// the stored form shows: more than 2^32 stored values.
    fn check(_matrix: &Csr, _params: &Params, _width: usize) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    /// Builds the operator on the device; fails if the device lacks memory for it and `reserve` bytes more.
    fn build<T: Scalar>(
        device: &D,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<D, T>>;
}

/// The reason that a backend refuses a matrix.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The property of the matrix that the backend does not support.
    pub what: String,
    /// What to do instead.
    pub hint: String,
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { what: what.into(), hint: hint.into() }
    }
}

type CheckFn = fn(&Csr, &Params, usize) -> std::result::Result<(), Refusal>;

type BuildFn<D, T> = fn(&D, &Arc<Csr>, &Params, u64) -> Result<SharedOperator<D, T>>;

/// The builders of a family for both vector precisions, and the check that precedes them.
pub struct Build<D: Device> {
    adds_repeats: bool,
    check: CheckFn,
    f32: BuildFn<D, f32>,
    f64: BuildFn<D, f64>,
}

// The derived implementations would require `D: Clone` and `D: Copy`.
impl<D: Device> Clone for Build<D> {
    fn clone(&self) -> Build<D> {
        *self
    }
}

impl<D: Device> Copy for Build<D> {}

impl<D: Device> Build<D> {
    const fn of<F: Family<D>>() -> Build<D> {
        Build { adds_repeats: F::ADDS_REPEATS, check: F::check, f32: F::build::<f32>, f64: F::build::<f64> }
    }
}

/// The device that a backend runs on, and its builders there.
#[derive(Clone, Copy)]
pub enum Builder {
    /// The CPU.
    Cpu(Build<Cpu>),
    /// An NVIDIA GPU.
    Cuda(Build<Cuda>),
}

/// One row of the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name that users type.
    pub name: &'static str,
    /// Device and constructor.
    pub builder: Builder,
    /// The family of backends that share source code.
    pub family: &'static str,
    /// The storage format.
    pub format: &'static str,
    /// The publication or library that the strategy comes from.
    pub from: &'static str,
    /// One line for users: when to choose the backend.
    pub summary: &'static str,
    /// Parameters that may follow the name: `vector:threads=8`.
    pub params: &'static [Param],
    /// Whether the same input gives the same bits on every run.
    pub deterministic: bool,
    /// Whether it multiplies several columns at once.
    pub columns: bool,
    /// Whether it takes matrices with values, not only graphs without weights.
    pub values: bool,
    /// Precisions that it supports.
    pub precisions: &'static [Precision],
}

/// Prints the name and the device.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.name, self.device())
    }
}

impl Entry {
    /// Returns the kind of device: `cpu` or `cuda`.
    pub fn device(&self) -> &'static str {
        match self.builder {
            Builder::Cpu(_) => "cpu",
            Builder::Cuda(_) => "cuda",
        }
    }

    /// Returns an error if the backend multiplies fewer than `k` columns at once.
    pub(crate) fn check_columns(&self, k: usize) -> Result<()> {
        if k <= 1 || self.columns {
            return Ok(());
        }
        let names: Vec<_> = with_columns(self.device()).map(|entry| entry.name).collect();
        let hint = format!("use backend auto, or one that does: {}", names.join(", "));
        Err(Error::Unsupported {
            backend: self.name,
            device: self.device(),
            what: format!("{k} columns: it multiplies one vector at a time"),
            hint,
        })
    }

    /// Returns an error if the backend does not support the matrix, for vectors whose elements
    /// have `width` bytes.
    pub fn check(&self, matrix: &Csr, params: &Params, width: usize) -> Result<()> {
        let check = match &self.builder {
            Builder::Cpu(build) => build.check,
            Builder::Cuda(build) => build.check,
        };
        check(matrix, params, width).map_err(|Refusal { what, hint }| Error::Unsupported {
            backend: self.name,
            device: self.device(),
            what,
            hint,
        })
    }
}

/// A device that has backends.
pub trait Host: Device {
    /// The kind of device, `cpu` or `cuda`, as in the registry.
    const KIND: &'static str;
    /// The backend that the name `auto` resolves to.
    const DEFAULT_BACKEND: &'static str;
    /// Returns the number of host threads that work on a product.
    fn threads(&self) -> usize {
        1
    }
    /// Returns the size of the GPU, on which the choice of `auto` depends; that of a standard GPU for a CPU.
    fn gpu_size(&self) -> GpuSize {
        GpuSize::default()
    }
    /// Returns the builders of an entry, if it is for this device.
    fn builders(entry: &Entry) -> Option<&Build<Self>>;
    /// Returns what computes residuals of a matrix, whose diagonal begins in column `below`, on the
    /// device; none if the host computes them in less time. Fails if the device lacks memory for it
    /// and `reserve` bytes more.
    fn residuals(
        &self,
        _matrix: &Arc<Csr>,
        _below: usize,
        _reserve: u64,
    ) -> Result<Option<Box<dyn Residuals>>> {
        Ok(None)
    }
    /// Returns whether a matrix that the device has a copy of equals its transpose exactly; none
    /// if the device cannot tell.
    fn is_symmetric(&self, _matrix: &Arc<Csr>) -> Result<Option<bool>> {
        Ok(None)
    }
    /// Returns the transpose of a graph, computed on the device; none if the host transposes it. If
    /// `host_reads` is false, the host may have to compute the columns of the transpose when it reads them,
    /// if the graph has no weights. Calls `meanwhile` at most once, while the device works and the host
    /// waits. Fails if the device lacks memory for it and `reserve` bytes more.
    fn transposed(
        &self,
        _graph: &Arc<Csr>,
        (_reserve, _host_reads): (u64, bool),
        _meanwhile: &mut dyn FnMut(),
    ) -> Result<Option<Transposed>> {
        Ok(None)
    }
    /// Returns what computes the sums of a certificate on the device, for the links of a graph by target;
    /// none if the host does it. Fails if the device lacks memory for it and `reserve` bytes more.
    fn inflow(&self, _incoming: &Arc<Csr>, _reserve: u64) -> Result<Option<Box<dyn Inflow>>> {
        Ok(None)
    }
    /// Takes over a matrix that a caller has in memory of the device; none if the host takes it: an index is
    /// out of range, or the columns of a row do not increase. Fails if the device lacks memory.
    ///
    /// # Safety
    /// The arrays are in memory of the device, and the work on them is ordered with the stream that they
    /// name, a stream of the device.
    unsafe fn taken(&self, _given: &LentRows) -> Result<Option<Taken>> {
        Ok(None)
    }
    /// Builds the operator z = L^-T D L^-1 r of a preconditioner. `factor` holds L below its diagonal and D
    /// on it; L has a unit diagonal, and every row ends with its diagonal entry.
    fn triangles<T: Scalar>(&self, precond: &'static str, factor: Csr) -> Result<SharedOperator<Self, T>>;
    /// Builds the operator of symmetric blocks along the diagonal; none if the device multiplies
    /// them like other matrices.
    fn diagonal_blocks<T: Scalar>(
        &self,
        _blocks: &DiagonalBlocks,
    ) -> Result<Option<SharedOperator<Self, T>>> {
        Ok(None)
    }
}

impl Host for Cpu {
    const KIND: &'static str = "cpu";
    const DEFAULT_BACKEND: &'static str = "auto";
    fn threads(&self) -> usize {
        Cpu::threads(self)
    }
    fn builders(entry: &Entry) -> Option<&Build<Cpu>> {
        match &entry.builder {
            Builder::Cpu(build) => Some(build),
            Builder::Cuda(_) => None,
        }
    }
    fn triangles<T: Scalar>(&self, _precond: &'static str, factor: Csr) -> Result<SharedOperator<Cpu, T>> {
        cpu::triangular::build(self, factor)
    }
    fn diagonal_blocks<T: Scalar>(&self, blocks: &DiagonalBlocks) -> Result<Option<SharedOperator<Cpu, T>>> {
        cpu::diagonal::build(self, blocks).map(Some)
    }
}

impl Host for Cuda {
    const KIND: &'static str = "cuda";
    const DEFAULT_BACKEND: &'static str = "auto";
    fn gpu_size(&self) -> GpuSize {
        let standard = GpuSize::default();
        GpuSize {
            multiprocessors: self.multiprocessors() as usize,
            cache: self.cache_bytes().unwrap_or(standard.cache),
            bandwidth: self.bandwidth().unwrap_or(standard.bandwidth),
            resident_rows: crate::device::cuda::burst::most_rows(self),
        }
    }
    fn builders(entry: &Entry) -> Option<&Build<Cuda>> {
        match &entry.builder {
            Builder::Cuda(build) => Some(build),
            Builder::Cpu(_) => None,
        }
    }
    fn residuals(&self, matrix: &Arc<Csr>, below: usize, reserve: u64) -> Result<Option<Box<dyn Residuals>>> {
        cuda::residuals(self, matrix, below, reserve)
    }
    fn is_symmetric(&self, matrix: &Arc<Csr>) -> Result<Option<bool>> {
        cuda::is_symmetric(self, matrix)
    }
    fn transposed(
        &self,
        graph: &Arc<Csr>,
        (reserve, host_reads): (u64, bool),
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Option<Transposed>> {
        cuda::transposed(self, graph, (reserve, host_reads), meanwhile)
    }
    fn inflow(&self, incoming: &Arc<Csr>, reserve: u64) -> Result<Option<Box<dyn Inflow>>> {
        cuda::inflow(self, incoming, reserve)
    }
    unsafe fn taken(&self, given: &LentRows) -> Result<Option<Taken>> {
        // SAFETY: as the caller promises.
        unsafe { cuda::taken(self, given) }
    }
    fn triangles<T: Scalar>(&self, precond: &'static str, _factor: Csr) -> Result<SharedOperator<Cuda, T>> {
        Err(Error::CpuOnly { precond })
    }
}

/// The transpose of a graph, and what a device counts while it transposes.
pub struct Transposed {
    /// The links by target.
    pub matrix: Arc<Csr>,
    /// The number of links from a vertex to itself.
    pub loops: u64,
    /// Keeps the copy of the matrix on the device, for operators and certificates that use it.
    pub kept: Kept,
}

/// Selects builders by vector precision.
pub trait Pick<T: Scalar>: Host {
    /// Returns the builder for vectors of `T`.
    fn pick(build: &Build<Self>) -> BuildFn<Self, T>;
}

impl<D: Host> Pick<f64> for D {
    fn pick(build: &Build<D>) -> BuildFn<D, f64> {
        build.f64
    }
}

impl<D: Host> Pick<f32> for D {
    fn pick(build: &Build<D>) -> BuildFn<D, f32> {
        build.f32
    }
}

/// A backend that the user named, with its parameters, resolved but not yet built.
#[derive(Clone)]
pub struct Choice {
    /// The registry row.
    pub entry: &'static Entry,
    /// Parameters as typed.
    pub params: Params,
}

/// A backend chosen for a matrix, ready to build the matrix's operator.
#[derive(Clone)]
pub struct SettledChoice {
    choice: Choice,
    because: Option<String>,
    candidates: Arc<[Candidate]>,
}

impl Choice {
    /// Resolves `name` or `name:param=value,...` on a kind of device; `auto` is that device's default.
    pub fn resolve(kind: &'static str, default: &'static str, typed: &str) -> Result<Choice> {
        let (name, rest) = split_name(typed);
        let name = if name == "auto" { default } else { name };
        if name == auto::ENTRY.name {
            let entry = if kind == Cuda::KIND { &cuda::auto::ENTRY } else { &auto::ENTRY };
            return Choice::of(entry, rest);
        }
        let entry = REGISTRY.iter().find(|e| e.device() == kind && e.name == name);
        Choice::of(entry.ok_or_else(|| unknown(kind, name))?, rest)
    }

    fn of(entry: &'static Entry, parameters: Option<&str>) -> Result<Choice> {
        let params = Params::parse(entry.params, parameters);
        let params = params.map_err(|reason| Error::BadParameter { backend: entry.name, reason })?;
        Ok(Choice { entry, params })
    }

    /// Returns the backend to use for a matrix: `auto` chooses one, any other backend is returned as it is.
    /// `size` is the size of the GPU.
    pub fn settle(&self, matrix: &Csr, vector_width: usize, size: &GpuSize) -> Result<SettledChoice> {
        let decision = match self.entry {
            entry if std::ptr::eq(entry, &auto::ENTRY) => auto::decide(matrix, vector_width)?,
            entry if std::ptr::eq(entry, &cuda::auto::ENTRY) => {
                cuda::auto::decide(matrix, vector_width, size)?
            }
            _ => return Ok(self.without_matrix()),
        };
        Ok(SettledChoice::decided(decision))
    }

    /// Returns the backend to use for a matrix and `k` columns at once. `auto` chooses among the backends
    /// that multiply several columns; any other backend is returned as it is.
    pub(crate) fn settle_columns(
        &self,
        matrix: &Csr,
        vector_width: usize,
        size: &GpuSize,
        k: usize,
    ) -> Result<SettledChoice> {
        if k == 1 {
            return self.settle(matrix, vector_width, size);
        }
        if std::ptr::eq(self.entry, &auto::ENTRY) {
            return auto::decide_columns(matrix, vector_width, k).map(SettledChoice::decided);
        }
        if !std::ptr::eq(self.entry, &cuda::auto::ENTRY) {
            self.entry.check_columns(k)?;
            return Ok(self.without_matrix());
        }
        let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, cuda::auto::WITH_COLUMNS)?;
        Ok(choice.because(format!("{k} columns share a product")))
    }

    /// Returns whether the backend depends on the matrix.
    pub(crate) fn is_auto(&self) -> bool {
        std::ptr::eq(self.entry, &auto::ENTRY) || std::ptr::eq(self.entry, &cuda::auto::ENTRY)
    }

    /// Returns this backend as the choice for a matrix, with a reason that is not the model's.
    pub(crate) fn because(self, why: String) -> SettledChoice {
        SettledChoice { choice: self, because: Some(why), candidates: Arc::default() }
    }

    /// Returns the backend to use without a matrix: `auto` gives the strategy that it falls back to.
    pub(crate) fn without_matrix(&self) -> SettledChoice {
        SettledChoice { choice: self.clone(), because: None, candidates: Arc::default() }
    }

    /// Returns the name with its parameters, as the user would type it.
    pub fn label(&self) -> String {
        format!("{}{}", self.entry.name, self.params)
    }

    /// Refuses precisions that the backend does not support.
    pub(crate) fn check_precision(&self, precision: Precision) -> Result<()> {
        if self.entry.precisions.contains(&precision) {
            return Ok(());
        }
        let supported: Vec<_> = self.entry.precisions.iter().map(|p| p.name()).collect();
        Err(Error::Unsupported {
            backend: self.entry.name,
            device: self.entry.device(),
            what: format!("precision {}", precision.name()),
            hint: format!("use precision {}, or another backend", supported.join(" or ")),
        })
    }
}

impl SettledChoice {
    /// Wraps a decision of `auto`.
    pub(crate) fn decided(decision: Decision) -> SettledChoice {
        let Decision { choice, why, candidates } = decision;
        SettledChoice { choice, because: Some(why), candidates: candidates.into() }
    }

    /// Returns the candidates of `auto` with their estimates; none if the user chose.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The registry row.
    pub(crate) fn entry(&self) -> &'static Entry {
        self.choice.entry
    }

    /// Returns the name with its parameters, as the user would type it.
    pub fn label(&self) -> String {
        self.choice.label()
    }

    /// Returns the reason for the choice of `auto`; none if the user chose.
    pub fn because(&self) -> Option<&str> {
        self.because.as_deref()
    }

    /// Builds the operator on a device of the entry's kind, ready for one column. Refuses an operator that
    /// does not fit into the device's memory together with `reserve` bytes, which vectors and
    /// preconditioners take later.
    pub fn build<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        matrix: &Arc<Csr>,
        reserve: u64,
    ) -> Result<Operator<D, T>> {
        self.build_for(device, matrix, reserve, 1)
    }

    /// Builds the same operator, ready for `k` columns.
    pub(crate) fn build_for<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        matrix: &Arc<Csr>,
        reserve: u64,
        k: usize,
    ) -> Result<Operator<D, T>> {
        let Choice { entry, params } = &self.choice;
        let builders = D::builders(entry).ok_or_else(|| Error::UnknownBackend {
            name: entry.name.to_owned(),
            device: D::KIND,
            hint: format!("{} is a backend of {}", entry.name, entry.device()),
        })?;
        let summed = if builders.adds_repeats { None } else { summed::<T>(matrix)? };
        let matrix = summed.as_ref().unwrap_or(matrix);
        entry.check(matrix, params, size_of::<T>())?;
        // Measured before the operator allocates anything.
        let room = device.free_memory()?;
        let build = || {
            let operator = Operator::new(device, D::pick(builders)(device, matrix, params, reserve)?);
            operator.prepare(k)?;
            Ok(operator)
        };
        build().map_err(|e| match e {
            Error::Gpu(GpuError::DeviceMemory { what, needed, reserved, free, hint: None }) => {
                let hint = Some(what_fits(matrix, size_of::<T>(), room, reserve));
                Error::Gpu(GpuError::DeviceMemory { what, needed, reserved, free, hint })
            }
            other => other,
        })
    }
}

/// Returns the backends of a kind of device that multiply several columns at once.
fn with_columns(kind: &str) -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().filter(move |entry| entry.device() == kind && entry.columns)
}

/// Returns the matrix with repeated entries summed; none if there are no repeated entries. Counts of entries
/// without values take the precision of the vectors.
fn summed<T: Scalar>(matrix: &Arc<Csr>) -> Result<Option<Arc<Csr>>> {
    if !matrix.pattern().has_repeats() {
        return Ok(None);
    }
    let summed = matrix.summed()?;
    let counts = matches!(matrix.values(), Values::Ones);
    let narrow = counts && size_of::<T>() == size_of::<f32>();
    Ok(Some(Arc::new(if narrow { summed.to_f32() } else { summed })))
}

/// Returns the error for a name that is no backend of this kind of device, with the devices that have
/// it or the nearest names.
fn unknown(kind: &'static str, name: &str) -> Error {
    let names = |here: bool| REGISTRY.iter().filter(move |e| (e.device() == kind) == here).map(|e| e.name);
    let first = match REGISTRY.iter().find(|e| e.name == name) {
        Some(entry) => format!("it is a backend of {}; ", entry.device()),
        None => did_you_mean(&match nearest(name, names(true).chain([auto::ENTRY.name])) {
            near if near.is_empty() => nearest(name, names(false)),
            near => near,
        }),
    };
    let hint = format!("{first}there are: {}", names(true).collect::<Vec<_>>().join(", "));
    Error::UnknownBackend { name: name.to_owned(), device: kind, hint }
}

/// Returns the hint for an operator that does not fit into `free` bytes with the bytes in reserve: the
/// first alternative that fits.
fn what_fits(matrix: &Csr, width: usize, free: u64, reserve: u64) -> String {
    let rows = cuda::csr::storage(matrix);
    let spared = (matrix.values().width().saturating_sub(size_of::<f32>()) * matrix.nnz()) as u64;
    let narrow = reserve * size_of::<f32>() as u64 / width as u64;
    let mixed = Precision::Mixed.name();
    let ways = [
        (rows + reserve, "backend csr".to_owned()),
        (rows - spared + reserve, format!("backend csr with precision {mixed}")),
        (rows - spared + narrow, format!("backend csr with precision {}", Precision::F32.name())),
    ];
    match ways.iter().find(|(bytes, _)| *bytes <= free) {
        Some((bytes, way)) => format!("{way} needs {} in total", in_words(*bytes)),
        None => {
            let (bytes, way) = &ways[2];
            format!("not even {way} fits, with {} in total; the CPU uses main memory", in_words(*bytes))
        }
    }
}

#[cfg(all(test, feature = "nalgebra", feature = "sprs"))]
mod tests;
