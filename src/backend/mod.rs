//! Strategies for y = A x, each one file and one row of the registry.
//!
//! Tests, `solver backends`, help texts and benchmarks read [`REGISTRY`]: what is missing there does not exist, and
//! what stands there is tested everywhere.

pub mod auto;
pub mod cpu;
pub mod cuda;
mod params;

use crate::device::{Cpu, Cuda, Device};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::LinearOperator;
use crate::scalar::{Precision, Scalar};
pub use params::{Param, Params};
use std::rc::Rc;
use std::sync::Arc;

/// An operator that a backend has built.
pub type Operator<D, T> = Rc<dyn LinearOperator<D, T>>;

/// A strategy: how it makes an operator out of a matrix.
pub trait Family<D: Device> {
    /// Makes the matrix ready on the device.
    fn build<T: Scalar>(device: &D, matrix: &Arc<Csr>, params: &Params) -> Result<Operator<D, T>>;
}

type BuildFn<D, T> = fn(&D, &Arc<Csr>, &Params) -> Result<Operator<D, T>>;

/// The builders of a family for both vector precisions.
pub struct Build<D: Device> {
    f32: BuildFn<D, f32>,
    f64: BuildFn<D, f64>,
}

impl<D: Device> Build<D> {
    const fn of<F: Family<D>>() -> Build<D> {
        Build { f32: F::build::<f32>, f64: F::build::<f64> }
    }
}

/// Which device a backend runs on, and how it is built there.
pub enum Builder {
    /// The CPU.
    Cpu(Build<Cpu>),
    /// An NVIDIA GPU.
    Cuda(Build<Cuda>),
}

/// One row of the registry.
pub struct Entry {
    /// The name that users type.
    pub name: &'static str,
    /// Device and constructor.
    pub builder: Builder,
    /// Backends that share their source.
    pub family: &'static str,
    /// The storage format.
    pub format: &'static str,
    /// Where the strategy was described.
    pub from: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Parameters that may ride on the name: `vector:threads=8`.
    pub params: &'static [Param],
    /// Whether the same input gives the same bits on every run.
    pub deterministic: bool,
    /// Whether it takes several columns at once.
    pub columns: bool,
    /// Whether it takes matrices with values, and not only graphs without weights.
    pub values: bool,
    /// Precisions it serves.
    pub precisions: &'static [Precision],
}

const ALL_PRECISIONS: &[Precision] = &[Precision::F64, Precision::F32, Precision::Mixed];

const TASK_BLOCK: Param = Param {
    name: "block",
    values: cpu::bsr_tasks::SIZES,
    summary: "rows x columns of a block; auto finds the size that moves the fewest bytes",
};
/// Parameters of the strategies that hand out rows of blocks.
const BLOCK_ROWS: &[Param] = &[TASK_BLOCK];
/// Parameters of those that cut work into pieces.
const BLOCK_TASKS: &[Param] = &[
    TASK_BLOCK,
    Param { name: "chunks", values: cpu::bsr_tasks::CHUNKS, summary: "pieces of work for each thread" },
];

/// Every backend there is.
pub static REGISTRY: &[Entry] = &[
    Entry {
        name: "serial",
        builder: Builder::Cpu(Build::of::<cpu::serial::Serial>()),
        family: "serial",
        format: "csr",
        from: "textbook",
        summary: "one thread, one row after the other: the reference for all others",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "rows",
        builder: Builder::Cpu(Build::of::<cpu::rows::Rows>()),
        family: "rows",
        format: "csr",
        from: "textbook",
        summary: "rows shared among the threads by their number of entries; AVX2 gathers where there are any",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr",
        builder: Builder::Cpu(Build::of::<cpu::bsr::BsrFamily>()),
        family: "bsr",
        format: "bsr",
        from: "textbook",
        summary: "dense blocks of 2x2 to 8x8, each size its own AVX2 code; zeros that fill blocks are multiplied",
        params: &[Param {
            name: "block",
            values: cpu::bsr::SIZES,
            summary: "rows x columns of a block; auto finds the size that moves the fewest bytes",
        }],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-serial",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::Serial>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "one thread, block row after block row: where the study of task strategies begins",
        params: BLOCK_ROWS,
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-rows",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::WholeRows>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "block rows, one at a time to whichever thread is free",
        params: BLOCK_ROWS,
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-split-naive",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::SplitNaive>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "all threads share the blocks of each row, and wait for each other in every row",
        params: BLOCK_ROWS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-split",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::Split>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "the same without the wait; threads without work add nothing",
        params: BLOCK_TASKS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-max-tasks",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::MaxTasks>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "rows are cut into tasks of at most so many blocks, which any thread runs",
        params: BLOCK_TASKS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-fixed-tasks",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::FixedTasks>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "tasks of exactly so many blocks across rows, made by one thread",
        params: BLOCK_TASKS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-fixed-tasks-pre",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::FixedTasksPre>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "the same tasks, made once beforehand: the fastest of the study",
        params: BLOCK_TASKS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr-flat",
        builder: Builder::Cpu(Build::of::<cpu::bsr_tasks::Shared<cpu::bsr_tasks::Flat>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary: "the same with one loop over values, as a GPU needs it: rows and columns by division",
        params: BLOCK_TASKS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "sbsr",
        builder: Builder::Cpu(Build::of::<cpu::sbsr::SbsrFamily>()),
        family: "bsr",
        format: "bsr of one triangle",
        from: "textbook",
        summary: "square blocks; of two that mirror each other in a symmetric matrix one is stored, and read twice",
        params: &[Param {
            name: "block",
            values: cpu::sbsr::SIZES,
            summary: "rows and columns of a block; auto finds the size that moves the fewest bytes",
        }],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "sell",
        builder: Builder::Cpu(Build::of::<cpu::sell::SellFamily>()),
        family: "sell",
        format: "sell",
        from: "Kreutzer, Hager, Wellein, Fehske and Bishop 2014",
        summary: "eight rows at a time, sorted in chunks; columns in 16 bits or fewer where they lie near each other",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "merge",
        builder: Builder::Cpu(Build::of::<cpu::merge::Merge>()),
        family: "merge",
        format: "csr",
        from: "Merrill and Garland 2016",
        summary: "equal shares of rows and entries together, however long a row is; parts of rows added in order",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "pull",
        builder: Builder::Cpu(Build::of::<cpu::pull::Pull>()),
        family: "rows",
        format: "csr without values",
        from: "textbook",
        summary: "graphs without weights: 4 bytes an edge, several sums a row; refuses matrices with values",
        params: &[],
        deterministic: true,
        columns: true,
        values: false,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "dense",
        builder: Builder::Cpu(Build::of::<cpu::dense::DenseFamily>()),
        family: "dense",
        format: "dense",
        from: "textbook",
        summary: "every place stored, for matrices of at most 2^24 places; zeros are multiplied",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "sprs",
        builder: Builder::Cpu(Build::of::<cpu::sprs::Sprs>()),
        family: "sprs",
        format: "csr of sprs",
        from: "crate sprs",
        summary: "that crate's product on one thread: a yardstick",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: &[Precision::F64],
    },
    Entry {
        name: "nalgebra",
        builder: Builder::Cpu(Build::of::<cpu::nalgebra::Nalgebra>()),
        family: "nalgebra",
        format: "csr of nalgebra-sparse",
        from: "crate nalgebra-sparse",
        summary: "that crate's product on one thread: a yardstick",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: &[Precision::F64],
    },
    Entry {
        name: "vector",
        builder: Builder::Cuda(Build::of::<cuda::vector::Vector>()),
        family: "vector",
        format: "csr",
        from: "Bell and Garland 2008; four-kernels",
        summary: "1 to 32 threads a row, by the mean row length; dot products fused",
        params: &[Param {
            name: "threads",
            values: &["auto", "1", "2", "4", "8", "16", "32"],
            summary: "threads that share a row",
        }],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "cusparse",
        builder: Builder::Cuda(Build::of::<cuda::cusparse::Cusparse>()),
        family: "cusparse",
        format: "csr",
        from: "NVIDIA cuSPARSE",
        summary: "the vendor's library, preprocessed: the yardstick",
        params: &[Param {
            name: "algorithm",
            values: &["default", "1", "2"],
            summary: "the library's CSR algorithm; 2 gives the same bits on every run",
        }],
        deterministic: false,
        columns: false,
        values: true,
        precisions: &[Precision::F64, Precision::F32],
    },
];

impl Entry {
    /// The kind of device: `cpu` or `cuda`.
    pub fn device(&self) -> &'static str {
        match self.builder {
            Builder::Cpu(_) => "cpu",
            Builder::Cuda(_) => "cuda",
        }
    }
}

/// A device that backends exist for.
pub trait Host: Device {
    /// `cpu` or `cuda`, as in the registry.
    const KIND: &'static str;
    /// The backend that `auto` stands for.
    const DEFAULT_BACKEND: &'static str;
    /// Threads of the host that work on a product.
    fn threads(&self) -> usize {
        1
    }
    /// The builders of an entry, if it is for this device.
    fn builders(entry: &Entry) -> Option<&Build<Self>>;
    /// The operator z = L^-T D L^-1 r of a preconditioner. `factor` holds L below its diagonal, whose own diagonal is
    /// 1, and D on it; every row ends with its diagonal.
    fn triangles<T: Scalar>(&self, precond: &'static str, factor: &Csr) -> Result<Operator<Self, T>>;
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
    fn triangles<T: Scalar>(&self, _precond: &'static str, factor: &Csr) -> Result<Operator<Cpu, T>> {
        cpu::triangular::build(self, factor)
    }
}

impl Host for Cuda {
    const KIND: &'static str = "cuda";
    const DEFAULT_BACKEND: &'static str = "vector";
    fn builders(entry: &Entry) -> Option<&Build<Cuda>> {
        match &entry.builder {
            Builder::Cuda(build) => Some(build),
            Builder::Cpu(_) => None,
        }
    }
    fn triangles<T: Scalar>(&self, precond: &'static str, _factor: &Csr) -> Result<Operator<Cuda, T>> {
        Err(Error::CpuOnly { precond })
    }
}

/// The vector precision picks the builder.
pub trait Pick<T: Scalar>: Host {
    /// The builder for vectors of `T`.
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

/// A backend that the user has named, with its parameters, resolved but not yet built.
#[derive(Clone)]
pub struct Choice {
    /// The registry row.
    pub entry: &'static Entry,
    /// Parameters as typed.
    pub params: Params,
}

impl Choice {
    /// Resolves `name` or `name:param=value,...` on a kind of device; `auto` is that device's default.
    pub fn resolve(kind: &'static str, default: &'static str, typed: &str) -> Result<Choice> {
        let (name, rest) = typed.split_once(':').unwrap_or((typed, ""));
        let name = if name == "auto" { default } else { name };
        if name == auto::ENTRY.name {
            return Ok(Choice { entry: &auto::ENTRY, params: Params::parse(auto::ENTRY.name, &[], rest)? });
        }
        let entry = REGISTRY.iter().find(|e| e.device() == kind && e.name == name).ok_or_else(|| {
            let known: Vec<_> = REGISTRY.iter().filter(|e| e.device() == kind).map(|e| e.name).collect();
            Error::UnknownBackend { name: name.to_owned(), device: kind, known: known.join(", ") }
        })?;
        Ok(Choice { entry, params: Params::parse(entry.name, entry.params, rest)? })
    }

    /// The backend that this one stands for on a matrix, and why: `auto` chooses now, any other is itself.
    pub fn settle(&self, matrix: &Csr, vector_width: usize) -> Result<(Choice, Option<String>)> {
        if !std::ptr::eq(self.entry, &auto::ENTRY) {
            return Ok((self.clone(), None));
        }
        let decision = auto::decide(matrix, vector_width)?;
        Ok((decision.choice, Some(decision.why)))
    }

    /// The name with its parameters, as the user would type it.
    pub fn label(&self) -> String {
        format!("{}{}", self.entry.name, self.params)
    }

    /// Refuses precisions that the backend does not serve.
    pub fn check_precision(&self, precision: Precision) -> Result<()> {
        if self.entry.precisions.contains(&precision) {
            return Ok(());
        }
        let serves: Vec<_> = self.entry.precisions.iter().map(|p| p.name()).collect();
        Err(Error::Unsupported {
            backend: self.entry.name,
            device: self.entry.device(),
            what: format!("--precision {}", precision.name()),
            hint: format!("it serves {}; or choose another backend", serves.join(" and ")),
        })
    }

    /// Builds the operator on a device of the entry's kind.
    pub fn build<D: Pick<T>, T: Scalar>(&self, device: &D, matrix: &Arc<Csr>) -> Result<Operator<D, T>> {
        let (choice, why) = self.settle(matrix, size_of::<T>())?;
        if let Some(why) = why {
            log::info!("backend {}: {why}", choice.label());
        }
        let builders = D::builders(choice.entry).ok_or_else(|| Error::UnknownBackend {
            name: self.entry.name.to_owned(),
            device: D::KIND,
            known: format!("{} is a backend of {}", self.entry.name, self.entry.device()),
        })?;
        D::pick(builders)(device, matrix, &choice.params)
    }
}
