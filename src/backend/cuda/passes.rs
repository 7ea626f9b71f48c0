//! Products over the arrays of CSR as launches of kernels that all take the same arguments (kernels/rows.cuh).
//!
//! A backend says which kernels run, in which form, over which rows; everything else is here. One launch that owns all
//! rows fuses the dot product of `apply_dot`: each block leaves its part of `<x, A x>`, the last one adds them in order
//! and runs the scalar program, so that alpha is ready when the kernel ends. Several launches, and kernels that add by
//! atomics, leave it to a pass of its own.
//!
//! In the same way a sweep may end each row. It sets x anew, which other rows still gather; so the new x is written where y
//! stands, and the two are swapped: y needs no memory then, and x is read once. That saves 4 of the 7 vectors that an
//! iteration of PageRank moves, and a launch, and costs a graph more where a step is recorded (see `Cuda::swap`).

use super::{Columns, DeviceCsr, NEAR_COLUMN, address, check_dot};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, Kernel, KernelSource};
use crate::device::cuda::{CudaSlots, CudaVector, generate};
use crate::device::sweep::dot_sweep;
use crate::device::{Cuda, Device, Op, Sweep};
use crate::error::{Error, Result};
use crate::format::{Csr, Offset, Offsets};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::scalar::Scalar;
use std::collections::HashSet;
use std::ffi::c_void;
use std::sync::Arc;

const ROWS: &str = include_str!("../../../kernels/rows.cuh");

/// A kernel in one of its forms, but for the types.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The function.
    pub name: &'static str,
    /// The file that holds it.
    pub text: &'static str,
    /// What the file wants defined.
    pub defines: Vec<(&'static str, String)>,
    /// Threads in a block.
    pub block: u32,
    /// Whether it owns all rows of y, so that the dot product can be fused.
    pub owns_all_rows: bool,
}

/// Names of types in CUDA C++.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub scalar: &'static str,
    /// Of stored values, where there are any.
    pub value: Option<&'static str>,
    pub offset: &'static str,
    pub column: &'static str,
}

impl Form {
    /// A form of a kernel that owns all rows, in blocks of the usual size.
    pub fn new(name: &'static str, text: &'static str, unroll: u32) -> Form {
        let defines = vec![("UNROLL", unroll.to_string())];
        Form { name, text, defines, block: BLOCK, owns_all_rows: true }
    }

    /// The same with something more defined.
    pub fn with(mut self, name: &'static str, value: u32) -> Form {
        self.defines.push((name, value.to_string()));
        self
    }

    /// The same in blocks of another size.
    pub fn in_blocks_of(self, block: u32) -> Form {
        Form { block, ..self }
    }

    /// The same with registers for so many threads on a multiprocessor at once, or 0 where it does not matter.
    pub fn fitting(self, threads: u32) -> Form {
        /// The most blocks that a multiprocessor holds.
        const MOST: u32 = 32;
        let blocks = (threads / self.block).clamp(1, MOST);
        self.with("MIN_BLOCKS", blocks)
    }

    /// The same, leaving dot products to a pass of their own.
    pub fn without_dots(self) -> Form {
        Form { owns_all_rows: false, ..self }
    }

    /// The kernel for these types; `ending` is empty, or the generated end of a fused dot product.
    pub fn source(&self, types: Types, ending: &str) -> KernelSource {
        let mut defines = vec![("SCALAR", types.scalar.to_owned()), ("OFFSET", types.offset.to_owned())];
        defines.extend(types.value.map(|v| ("VALUE", v.to_owned())));
        if types.column != u32::CUDA_NAME {
            defines.push(("COLUMN", types.column.to_owned()));
        }
        if types.column == NEAR_COLUMN {
            defines.push(("NEAR", 1.to_string()));
        }
        defines.extend(self.defines.iter().cloned());
        let body = format!("{ending}{ROWS}{}", self.text);
        KernelSource { name: self.name.to_owned(), body, defines, k: 1, block: self.block }
    }
}

/// The types of scalars, values and offsets that a kernel may be asked for, in two halves that differ by their offsets. The
/// first two differ in all three.
fn all_types() -> [Vec<Types>; 2] {
    let column = u32::CUDA_NAME;
    let half = |offsets: [&'static str; 2]| {
        let types = [
            ("double", Some("double")),
            ("float", None),
            ("double", Some("float")),
            ("double", None),
            ("float", Some("float")),
        ];
        let types = types.into_iter().zip(offsets.into_iter().cycle());
        types.map(|((scalar, value), offset)| Types { scalar, value, offset, column }).collect()
    };
    [half([u32::CUDA_NAME, u64::CUDA_NAME]), half([u64::CUDA_NAME, u32::CUDA_NAME])]
}

/// The forms, plain and with these fused dot products. The first form of a kernel comes in all combinations of types, of which
/// every other one meets the dot products: these have nothing to do with offsets. What other forms define hardly meets the
/// types, so that two combinations stand for all.
pub(super) fn sources(forms: &[Form], endings: &[(DotInto, &[Op])]) -> Vec<KernelSource> {
    let [types, others] = all_types();
    let (mut all, mut met) = (Vec::new(), HashSet::new());
    for form in forms {
        let first = met.insert(form.name);
        let types = if first { &types[..] } else { &types[..2] };
        let fused =
            endings.iter().filter(|_| form.owns_all_rows).map(|(dot, then)| generate::conclude(dot, then));
        for ending in std::iter::once(String::new()).chain(fused) {
            all.extend(types.iter().map(|types| form.source(*types, &ending)));
        }
        let plain = others.iter().filter(|_| first);
        all.extend(plain.map(|types| form.source(*types, "")));
    }
    all
}

/// How many blocks are launched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grid {
    /// As many as the GPU holds at once, or fewer if so many threads need fewer: the kernel strides.
    Resident(u64),
    /// This many.
    Blocks(u32),
}

impl Grid {
    pub fn blocks(self, device: &Cuda, kernel: &Kernel) -> u32 {
        match self {
            Grid::Resident(threads) => device.blocks_for(kernel, threads),
            Grid::Blocks(blocks) => blocks,
        }
    }
}

/// One launch of a product.
pub(super) struct Pass {
    pub form: Form,
    pub grid: Grid,
    /// What the kernel finds in `list`, and how many there are of what it counts.
    pub list: Option<CudaArray<u32>>,
    pub count: u32,
}

impl Pass {
    /// A launch over all rows, each by so many threads.
    pub fn over_all(form: Form, matrix: &Csr, threads: u32) -> Pass {
        // `Passes::new` has refused matrices with more rows.
        let count = u32::try_from(matrix.rows()).unwrap_or(u32::MAX);
        Pass { form, grid: Grid::Resident(u64::from(count) * u64::from(threads)), list: None, count }
    }

    /// A launch over what a list describes: `count` pieces of work, each for so many threads.
    pub fn over_list(device: &Cuda, form: Form, list: &[u32], count: usize, threads: u32) -> Result<Pass> {
        let list = device.allocate_from("lists of rows", list)?;
        // No more pieces than rows, and `Passes::new` refuses matrices with more.
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let grid = Grid::Resident(u64::from(count) * u64::from(threads));
        Ok(Pass { form, grid, list: Some(list), count })
    }

    /// The same in a grid of at most so many threads, which stride.
    pub fn with_at_most(mut self, most: u64) -> Pass {
        if let Grid::Resident(threads) = &mut self.grid {
            *threads = most.min(*threads);
        }
        self
    }

    /// The same with as many blocks as there is work for, so that no thread strides to a second piece of it. Not for forms
    /// that fuse dot products: there is room for the sums of as many blocks as a GPU holds at once.
    pub fn without_stride(mut self) -> Pass {
        debug_assert!(!self.form.owns_all_rows, "{}", self.form.name);
        if let Grid::Resident(threads) = self.grid {
            let blocks = threads.div_ceil(u64::from(self.form.block));
            self.grid = Grid::Blocks(u32::try_from(blocks).unwrap_or(u32::MAX));
        }
        self
    }
}

/// A matrix in CSR with the launches that multiply it.
pub(super) struct Passes {
    backend: &'static str,
    csr: DeviceCsr,
    passes: Vec<Pass>,
    /// What kernels write for themselves: their first argument, where there is any.
    scratch: Option<CudaArray<f64>>,
    /// Whether sweeps are fused.
    sweeps: bool,
    cost: Cost,
}

/// Refuses what 32-bit numbers of rows and offsets cannot count.
pub(super) fn check_size(matrix: &Csr) -> Result<()> {
    let too_large = |what, value: usize, limit: u64| Error::TooLarge {
        what,
        value: value as u128,
        limit: u128::from(limit),
        place: "the 32-bit numbers of kernels over CSR",
    };
    if matrix.rows() >= u32::MAX as usize {
        return Err(too_large("the number of rows", matrix.rows(), u64::from(u32::MAX - 1)));
    }
    if matrix.cols() >= u32::MAX as usize {
        return Err(too_large("the number of columns", matrix.cols(), u64::from(u32::MAX - 1)));
    }
    if matches!(matrix.row_offsets(), Offsets::U32(_)) && matrix.nnz() as u64 > Offsets::MOST_NARROW {
        return Err(too_large("the number of entries", matrix.nnz(), Offsets::MOST_NARROW));
    }
    Ok(())
}

impl Passes {
    /// Uploads the matrix. Launches over nothing are left out; between them they must emit every row.
    pub fn new<T: Scalar>(
        backend: &'static str,
        device: &Cuda,
        matrix: &Arc<Csr>,
        passes: impl IntoIterator<Item = Pass>,
        reserve: u64,
    ) -> Result<Passes> {
        Passes::with_columns::<T>(backend, device, matrix, passes, Columns::Full, reserve)
    }

    /// The same with columns kept in some way that the matrix allows and every form is ready for.
    pub fn with_columns<T: Scalar>(
        backend: &'static str,
        device: &Cuda,
        matrix: &Arc<Csr>,
        passes: impl IntoIterator<Item = Pass>,
        columns: Columns,
        reserve: u64,
    ) -> Result<Passes> {
        check_size(matrix)?;
        let passes: Vec<Pass> = passes.into_iter().filter(|pass| pass.count > 0).collect();
        let lists = passes.iter().filter_map(|pass| pass.list.as_ref());
        let listed: usize = lists.map(|list| size_of::<u32>() * list.len()).sum();
        let mut cost = Cost::of_csr(matrix, size_of::<T>());
        let csr = DeviceCsr::upload(device, matrix, columns, reserve)?;
        cost.bytes -= matrix.storage_bytes() - csr.bytes;
        cost.bytes += listed as u64;
        Ok(Passes { backend, csr, passes, scratch: None, sweeps: false, cost })
    }

    /// Hands this memory to every kernel, ahead of the other arguments.
    pub fn with_scratch(mut self, scratch: CudaArray<f64>) -> Passes {
        self.cost.bytes += (size_of::<f64>() * scratch.len()) as u64;
        self.scratch = Some(scratch);
        self
    }

    /// Fuses sweeps with the product where one kernel owns all rows.
    pub fn with_sweeps(mut self) -> Passes {
        self.sweeps = true;
        self
    }

    /// The launch that a sweep can end.
    fn sweeping(&self) -> Option<&Pass> {
        match &self.passes[..] {
            [pass] if self.sweeps && pass.form.owns_all_rows && self.csr.rows == self.csr.cols => Some(pass),
            _ => None,
        }
    }

    fn types<T: Scalar>(&self) -> Types {
        Types {
            scalar: T::CUDA_NAME,
            value: self.csr.value_type(),
            offset: self.csr.offset_type(),
            column: self.csr.column_type(),
        }
    }

    /// Enqueues one kernel; `last` are the arguments of its ending.
    fn launch<T: Scalar>(
        &self,
        device: &Cuda,
        pass: &Pass,
        ending: &str,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        last: &[*mut c_void],
    ) -> Result<()> {
        self.csr.check_shapes(self.backend, x, y)?;
        let kernel = device.kernel(&pass.form.source(self.types::<T>(), ending))?;
        let list = pass.list.as_ref().map_or(0, address);
        let mut addresses: Vec<u64> = self.scratch.iter().map(address).collect();
        addresses.extend([
            self.csr.offsets_address(),
            self.csr.columns_address(),
            self.csr.values_address().unwrap_or(0),
            x.address(),
            y.address(),
            list,
        ]);
        let mut count = pass.count;
        let mut arguments: Vec<*mut c_void> =
            addresses.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        arguments.push(std::ptr::from_mut(&mut count).cast());
        arguments.extend_from_slice(last);
        // SAFETY: arguments in the kernel's order and types (scratch, CSR_ARGUMENTS of rows.cuh); x has one entry a column, y one a
        // row, the arrays are a validated matrix's, and the list holds what the backend that made it says.
        unsafe { device.launch(&kernel, pass.grid.blocks(device, &kernel), &mut arguments) }
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for Passes {
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
        self.csr.check_shapes(self.backend, x, y)?;
        let (mut alpha, mut beta) = (T::from_f64(alpha), T::from_f64(beta));
        let last = [std::ptr::from_mut(&mut alpha).cast(), std::ptr::from_mut(&mut beta).cast()];
        self.passes.iter().try_for_each(|pass| self.launch(device, pass, "", x, y, &last))
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
        check_dot((self.csr.rows, self.csr.cols), slots)?;
        match &self.passes[..] {
            [pass] if pass.form.owns_all_rows => {
                let mut pointers = slots.pointers();
                let last = [std::ptr::from_mut(&mut pointers).cast()];
                self.launch(device, pass, &generate::conclude(dot, then), x, y, &last)
            }
            _ => {
                LinearOperator::<Cuda, T>::apply(self, device, 1.0, x, 0.0, y)?;
                device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then))
            }
        }
    }

    fn apply_sweep(
        &self,
        device: &Cuda,
        [y, x]: [&mut CudaVector<T>; 2],
        reads: &[&CudaVector<T>],
        slots: &mut CudaSlots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        let n = self.csr.rows;
        let fits = slots.k() == 1
            && (sweep.writes, sweep.reads as usize) == (2, reads.len())
            && [&*y, &*x].into_iter().chain(reads.iter().copied()).all(|v| (v.n(), v.k()) == (n, 1));
        let (Some(pass), true) = (self.sweeping(), fits) else {
            LinearOperator::<Cuda, T>::apply(self, device, 1.0, x, 0.0, y)?;
            // Where something does not fit, the sweep says so.
            return device.sweep(&mut [y, x], reads, slots, sweep);
        };
        let mut addresses: Vec<u64> = reads.iter().map(|v| v.address()).collect();
        let mut last: Vec<*mut c_void> = addresses.iter_mut().map(|a| std::ptr::from_mut(a).cast()).collect();
        let (mut rows, mut pointers) = (n as u64, slots.pointers());
        last.push(std::ptr::from_mut(&mut rows).cast());
        last.push(std::ptr::from_mut(&mut pointers).cast());
        self.launch(device, pass, &generate::row_sweep(sweep), x, y, &last)?;
        // x has been set anew where y stood, since other rows still gathered the old one.
        device.swap(x, y);
        Ok(())
    }

    fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        let width = size_of::<T>();
        let bytes = self.cost.bytes + sweep.bytes(self.csr.rows, 1, width);
        // y is written by the product, and read and written by the sweep; x is read by both.
        if self.sweeping().is_some() { bytes - 4 * (self.csr.rows * width) as u64 } else { bytes }
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        let lists = self.passes.iter().filter_map(|pass| pass.list.as_ref());
        let scratch = self.scratch.as_ref().map_or(0, |scratch| size_of::<f64>() * scratch.len());
        let listed: usize = lists.map(|list| size_of::<u32>() * list.len()).sum();
        self.csr.bytes + (listed + scratch) as u64
    }
}
