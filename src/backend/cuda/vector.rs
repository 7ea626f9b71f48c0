//! Rows of CSR shared by several neighbouring threads, as many as the mean row length asks for.
//!
//! The dot product of `apply_dot` is fused: each block leaves its part of `<x, A x>`, the last one adds them in order
//! and runs the scalar program, so that alpha is ready when the kernel ends.

use super::DeviceCsr;
use crate::backend::{Family, Operator, Params};
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::{CudaSlots, CudaVector, generate};
use crate::device::{Cuda, Op};
use crate::error::{Error, Result};
use crate::format::{Csr, Offset, Offsets};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::scalar::Scalar;
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

const KERNEL: &str = include_str!("../../../kernels/vector.cu");

/// The family of one.
pub struct Vector;

struct VectorOperator {
    csr: DeviceCsr,
    threads: u32,
    cost: Cost,
}

/// Entries that each thread of a row loads at once. On an H200 three were the fastest both for rows of 5 entries and
/// for rows of 81; more cost registers, fewer leave too few loads in flight.
const UNROLL: usize = 3;

/// Threads for a row: as few as cover a row of mean length in one round.
fn threads_for(matrix: &Csr) -> u32 {
    let mean = matrix.nnz().div_ceil(matrix.rows().max(1));
    mean.div_ceil(UNROLL).next_power_of_two().clamp(1, 32) as u32
}

impl Family<Cuda> for Vector {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, params: &Params) -> Result<Operator<Cuda, T>> {
        if matrix.rows() > u32::MAX as usize {
            return Err(Error::TooLarge {
                what: "the number of rows",
                value: matrix.rows() as u128,
                limit: u128::from(u32::MAX),
                place: "the kernel of backend vector",
            });
        }
        if matches!(matrix.row_offsets(), Offsets::U32(_)) && matrix.nnz() as u64 > Offsets::MOST_NARROW {
            return Err(Error::TooLarge {
                what: "the number of entries",
                value: matrix.nnz() as u128,
                limit: u128::from(Offsets::MOST_NARROW),
                place: "32-bit row offsets of backend vector",
            });
        }
        let threads = match params.get("threads").and_then(|v| v.parse().ok()) {
            Some(threads) => threads,
            None => threads_for(matrix),
        };
        let cost = Cost::of_csr(matrix, size_of::<T>());
        Ok(Rc::new(VectorOperator { csr: DeviceCsr::upload(device, matrix)?, threads, cost }))
    }
}

/// The kernel for one combination of types; `ending` is empty, or the generated end of a fused dot product.
fn source(threads: u32, scalar: &str, value: Option<&str>, offset: &str, ending: &str) -> KernelSource {
    let mut defines = vec![
        ("THREADS", threads.to_string()),
        ("SCALAR", scalar.to_owned()),
        ("OFFSET", offset.to_owned()),
        ("UNROLL", UNROLL.to_string()),
    ];
    defines.extend(value.map(|v| ("VALUE", v.to_owned())));
    KernelSource { name: "spmv_csr_vector".to_owned(), body: format!("{ending}{KERNEL}"), defines, k: 1 }
}

pub(super) fn sources(endings: &[(DotInto, &[Op])]) -> Vec<KernelSource> {
    let mut all = Vec::new();
    let fused = endings.iter().map(|(dot, then)| generate::conclude(dot, then));
    for ending in std::iter::once(String::new()).chain(fused) {
        for threads in [1, 2, 4, 8, 16, 32] {
            for (scalar, values) in [("double", &["double", "float"][..]), ("float", &["float"])] {
                for offset in [u32::CUDA_NAME, u64::CUDA_NAME] {
                    let values = values.iter().map(|v| Some(*v)).chain([None]);
                    all.extend(values.map(|value| source(threads, scalar, value, offset, &ending)));
                }
            }
        }
    }
    all
}

impl VectorOperator {
    fn source<T: Scalar>(&self, ending: &str) -> KernelSource {
        source(self.threads, T::CUDA_NAME, self.csr.value_type(), self.csr.offset_type(), ending)
    }

    /// Enqueues the kernel; `last` are the arguments after the number of rows.
    fn launch<T: Scalar>(
        &self,
        device: &Cuda,
        source: &KernelSource,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        last: &[*mut c_void],
    ) -> Result<()> {
        self.csr.check_shapes("vector", x, y)?;
        let kernel = device.kernel(source)?;
        let mut addresses = vec![self.csr.offsets_address(), super::address(&self.csr.col_indices)];
        addresses.extend(self.csr.values_address());
        addresses.extend([x.address(), y.address()]);
        let mut rows = self.csr.rows as u32;
        let mut arguments: Vec<*mut c_void> =
            addresses.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        arguments.push(std::ptr::from_mut(&mut rows).cast());
        arguments.extend_from_slice(last);
        let rows_in_block = u64::from(BLOCK / self.threads);
        let blocks = device.blocks_for(&kernel, u64::from(rows).div_ceil(rows_in_block) * u64::from(BLOCK));
        // SAFETY: arguments in the kernel's order and types; x has one entry a column, y one a row, the arrays are a
        // validated matrix's.
        unsafe { device.launch(&kernel, blocks, &mut arguments) }
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for VectorOperator {
    fn shape(&self) -> (usize, usize) {
        (self.csr.rows, self.csr.cols)
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        let (mut alpha, mut beta) = (T::from_f64(alpha), T::from_f64(beta));
        let last = [std::ptr::from_mut(&mut alpha).cast(), std::ptr::from_mut(&mut beta).cast()];
        self.launch(device, &self.source::<T>(""), x, y, &last)
    }

    fn apply_dot(
        &self,
        device: &Cuda,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        slots: &mut CudaSlots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        if self.csr.rows != self.csr.cols {
            let (expected, got) = (self.csr.rows, self.csr.cols);
            return Err(Error::Dimension { what: "columns of a matrix in a dot product", expected, got });
        }
        if slots.k() != 1 {
            return Err(Error::Dimension { what: "columns of the slots", expected: 1, got: slots.k() });
        }
        let mut pointers = slots.pointers();
        let source = self.source::<T>(&generate::conclude(dot, then));
        self.launch(device, &source, x, y, &[std::ptr::from_mut(&mut pointers).cast()])
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.csr.bytes
    }
}
