//! Strategies on NVIDIA GPUs, one file each beside the kernel of the same stem, or one for the strategies of a study.

pub mod auto;
pub mod bsr;
pub mod bsr_tasks;
pub mod burst;
pub mod csr;
pub mod cusparse;
pub mod dcsr;
pub mod dense;
pub mod ell;
pub mod four_kernels;
pub mod merge;
mod owner;
mod passes;
mod schedule;
pub mod sell;
pub mod seven_strategies;
pub mod vector;

use super::Params;
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::{Cuda, Op, Sweep};
use crate::error::{Error, Result};
use crate::format::{Csr, Offset, Offsets, Values};
use crate::operator::DotInto;
use crate::scalar::Scalar;
use cudarc::driver::{CudaSlice, DevicePtr};
use passes::{Form, Types};
use rayon::prelude::*;

/// Every embedded kernel in every form that a backend may ask for, for whoever compiles them ahead; `endings` are the
/// fused dot products and programs of the solvers, `sweeps` those that follow a product.
pub fn kernel_sources(endings: &[(DotInto, &[Op])], sweeps: &[Sweep<'_>]) -> Vec<KernelSource> {
    let mut forms: Vec<Form> = named_forms().into_iter().map(|(_, form)| form).collect();
    forms.extend(
        [bsr::forms(), merge::forms(), sell::forms(), ell::forms(), burst::forms(), dcsr::forms()].concat(),
    );
    let mut all = passes::sources(&forms, endings);
    all.extend(csr::sources(endings, sweeps));
    all
}

/// The forms of the kernels of the studies, each with the name of the backend that launches it.
fn named_forms() -> Vec<(&'static str, Form)> {
    let vectors = vector::forms().into_iter().map(|form| ("vector", form));
    let studies = [four_kernels::forms(), seven_strategies::forms(), bsr_tasks::forms()];
    vectors.chain(studies.into_iter().flatten()).collect()
}

/// What each name of the studies runs, for whoever looks whether two of them are the same: in f64, without an ending.
pub fn named_kernels() -> Vec<(&'static str, KernelSource)> {
    let (scalar, offset, column) = (f64::CUDA_NAME, u32::CUDA_NAME, u32::CUDA_NAME);
    let types = Types { scalar, value: Some(f64::CUDA_NAME), offset, column };
    named_forms().into_iter().map(|(name, form)| (name, form.source(types, ""))).collect()
}

/// A parameter whose values are numbers; the first of them where the user set none.
fn number(params: &Params, name: &str, values: &[&'static str]) -> u32 {
    let typed = params.get(name).unwrap_or(values[0]);
    typed.parse().unwrap_or_else(|_| unreachable!("{name} takes numbers"))
}

/// What is copied, for whoever has no memory for it.
const MATRIX: &str = "the matrix";

/// The type of columns in 16 bits in CUDA C++.
const NARROW_COLUMN: &str = "unsigned short";

/// The arrays of a CSR matrix in GPU memory.
struct DeviceCsr {
    rows: usize,
    cols: usize,
    nnz: usize,
    offsets: DeviceOffsets,
    columns: DeviceColumns,
    values: DeviceValues,
    bytes: u64,
}

enum DeviceOffsets {
    U32(CudaSlice<u32>),
    U64(CudaSlice<u64>),
}

enum DeviceColumns {
    U16(CudaSlice<u16>),
    U32(CudaSlice<u32>),
}

enum DeviceValues {
    Ones,
    F32(CudaSlice<f32>),
    F64(CudaSlice<f64>),
}

fn address<T>(slice: &CudaSlice<T>) -> u64 {
    slice.device_ptr(slice.stream()).0
}

impl DeviceCsr {
    /// Columns up to which 16 bits are enough.
    const NARROW: usize = 1 << 16;

    /// The bytes of the arrays; fails where there is no room for them.
    fn require_room(device: &Cuda, matrix: &Csr, narrow: bool) -> Result<u64> {
        let narrow = narrow && matrix.cols() <= Self::NARROW;
        let spared = if narrow { (size_of::<u16>() * matrix.nnz()) as u64 } else { 0 };
        let bytes = matrix.storage_bytes() - spared;
        device.require_room(MATRIX, bytes)?;
        Ok(bytes)
    }

    /// Copies the arrays, after asking whether all of them fit. `narrow` columns are kept in 16 bits where that is enough.
    fn upload(device: &Cuda, matrix: &Csr, narrow: bool) -> Result<DeviceCsr> {
        use crate::device::Device;
        let what = MATRIX;
        let bytes = DeviceCsr::require_room(device, matrix, narrow)?;
        let narrow = narrow && matrix.cols() <= Self::NARROW;
        let in_16_bits =
            || -> Vec<u16> { matrix.col_indices().par_iter().map(|&column| column as u16).collect() };
        let csr = DeviceCsr {
            rows: matrix.rows(),
            cols: matrix.cols(),
            nnz: matrix.nnz(),
            offsets: match matrix.row_offsets() {
                Offsets::U32(o) => DeviceOffsets::U32(device.allocate_from(what, o)?),
                Offsets::U64(o) => DeviceOffsets::U64(device.allocate_from(what, o)?),
            },
            columns: match narrow {
                true => DeviceColumns::U16(device.allocate_from(what, &in_16_bits())?),
                false => DeviceColumns::U32(device.allocate_from(what, matrix.col_indices())?),
            },
            values: match matrix.values() {
                Values::Ones => DeviceValues::Ones,
                Values::F32(v) => DeviceValues::F32(device.allocate_from(what, v)?),
                Values::F64(v) => DeviceValues::F64(device.allocate_from(what, v)?),
            },
            bytes,
        };
        device.synchronize()?;
        Ok(csr)
    }

    fn offsets_address(&self) -> u64 {
        match &self.offsets {
            DeviceOffsets::U32(o) => address(o),
            DeviceOffsets::U64(o) => address(o),
        }
    }

    fn columns_address(&self) -> u64 {
        match &self.columns {
            DeviceColumns::U16(c) => address(c),
            DeviceColumns::U32(c) => address(c),
        }
    }

    fn values_address(&self) -> Option<u64> {
        match &self.values {
            DeviceValues::Ones => None,
            DeviceValues::F32(v) => Some(address(v)),
            DeviceValues::F64(v) => Some(address(v)),
        }
    }

    /// The name of the offsets' type in CUDA C++.
    fn offset_type(&self) -> &'static str {
        match self.offsets {
            DeviceOffsets::U32(_) => u32::CUDA_NAME,
            DeviceOffsets::U64(_) => u64::CUDA_NAME,
        }
    }

    /// The name of the columns' type in CUDA C++.
    fn column_type(&self) -> &'static str {
        match self.columns {
            DeviceColumns::U16(_) => NARROW_COLUMN,
            DeviceColumns::U32(_) => u32::CUDA_NAME,
        }
    }

    /// The name of the values' type in CUDA C++, where there are values.
    fn value_type(&self) -> Option<&'static str> {
        match self.values {
            DeviceValues::Ones => None,
            DeviceValues::F32(_) => Some(f32::CUDA_NAME),
            DeviceValues::F64(_) => Some(f64::CUDA_NAME),
        }
    }

    /// Checks that x and y fit the matrix and have one column.
    fn check_shapes<T: Scalar>(
        &self,
        backend: &'static str,
        x: &CudaVector<T>,
        y: &CudaVector<T>,
    ) -> Result<()> {
        check_shapes((self.rows, self.cols), backend, x, y)
    }
}

/// Checks that a matrix has a product with a dot product fused, and that the slots are of one column.
fn check_dot((expected, got): (usize, usize), slots: &CudaSlots) -> Result<()> {
    if expected != got {
        return Err(Error::Dimension { what: "columns of a matrix in a dot product", expected, got });
    }
    if slots.k() != 1 {
        return Err(Error::Dimension { what: "columns of the slots", expected: 1, got: slots.k() });
    }
    Ok(())
}

/// Checks that x and y fit a matrix and have one column.
fn check_shapes<T: Scalar>(
    (rows, cols): (usize, usize),
    backend: &'static str,
    x: &CudaVector<T>,
    y: &CudaVector<T>,
) -> Result<()> {
    let fits = |what, expected, got| match expected == got {
        true => Ok(()),
        false => Err(Error::Dimension { what, expected, got }),
    };
    fits("rows of x", cols, x.n())?;
    fits("rows of y", rows, y.n())?;
    if x.k() != 1 || y.k() != 1 {
        return Err(Error::Unsupported {
            backend,
            device: "cuda",
            what: format!("{} columns", x.k()),
            hint: "it takes one vector at a time".to_owned(),
        });
    }
    Ok(())
}
