//! Products as launches of one or more kernels over the arrays of one format.
//!
//! A backend defines which kernels run, in which form, over which rows; this module does the rest. A single
//! launch that owns all rows fuses the dot product of `apply_dot`: each block stores its part of
//! `<x, A x>`, and the last block to finish adds the parts in order and runs the scalar program, so that
//! alpha is ready when the kernel ends. Several launches, and kernels that add atomically, use a separate
//! pass for the dot product.
//!
//! A sweep can be fused with the end of each row in the same way. It replaces x, which other rows still
//! gather; so the new x is written to the memory of y, and the two are swapped. The product is then never
//! stored, and x is read once. That saves 4 of the 7 vectors that an iteration of PageRank moves, and one
//! launch, and costs one more graph if a step is recorded (see `Cuda::swap`).

use super::arrays::DeviceArrays;
use super::form::{Ending, Form, Format, Grid, Kind, Share};
use super::new_values::place;
use super::{check_dot, check_shapes};
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::modules::Kernel;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::sweep::MAX_NUMBERS;
use crate::device::{Cuda, Device, Op, Sweep};
use crate::error::Result;
use crate::operator::{Cost, DotInto, LinearOperator, Occupancy, dot_after_product};
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// A launch over arrays of the format `F`.
pub(super) struct Pass<F> {
    launch: Launch,
    over: PhantomData<fn(F)>,
}

struct Launch {
    kind: Kind,
    grid: Grid,
    share: DeviceArrays,
    count: Option<u32>,
    /// The kernel without a fused ending.
    plain: OnceLock<Kernel>,
}

impl<F> Pass<F> {
    /// Creates a launch over a share of the rows and copies the share to the device.
    pub(crate) fn new<S: Share>(device: &Cuda, form: Form<F, S>, grid: Grid, share: &S) -> Result<Pass<F>> {
        let (kind, count) = (form.kind, share.count());
        let share = share.arrays().upload(device, 0)?;
        let launch = Launch { kind, grid, share, count, plain: OnceLock::new() };
        Ok(Pass { launch, over: PhantomData })
    }

    /// Creates a launch over a share of the rows, with `threads` threads for each piece of the share.
    pub(crate) fn over<S: Share>(
        device: &Cuda,
        form: Form<F, S>,
        share: &S,
        threads: u32,
    ) -> Result<Pass<F>> {
        let count = u64::from(share.count().unwrap_or(0));
        Pass::new(device, form, Grid::Resident(count * u64::from(threads)), share)
    }

    /// Limits the grid to `most` threads, which stride.
    pub(crate) fn with_at_most(mut self, most: u64) -> Pass<F> {
        if let Grid::Resident(threads) = &mut self.launch.grid {
            *threads = most.min(*threads);
        }
        self
    }

    /// Launches as many blocks as there is work for, so that no thread strides to a second piece.
    /// Not for forms that fuse dot products: their partial sums have room only for the blocks
    /// that a GPU holds at once.
    pub(crate) fn without_stride(mut self) -> Pass<F> {
        let Launch { kind, grid, .. } = &mut self.launch;
        debug_assert!(!kind.owns_all_rows, "{}", kind.name);
        if let Grid::Resident(threads) = grid {
            let blocks = threads.div_ceil(u64::from(kind.block));
            *grid = Grid::Blocks(u32::try_from(blocks).unwrap_or(u32::MAX));
        }
        self
    }
}

/// A matrix in GPU memory in the layout of a format.
pub(super) struct Stored {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Number of entries that a product multiplies, padding included.
    pub padded_entries: usize,
    pub arrays: DeviceArrays,
}

/// A matrix on the device with the launches that multiply it.
pub(super) struct Product<T> {
    backend: &'static str,
    shape: (usize, usize),
    matrix: DeviceArrays,
    numbers: Vec<(&'static str, u32)>,
    launches: Vec<Launch>,
    /// Whether sweeps are fused with the product.
    sweeps: bool,
    /// The number of entries, if their values are stored in their order.
    in_order: Option<usize>,
    cost: Cost,
    vectors: PhantomData<fn(T)>,
}

impl<T: Scalar> Product<T> {
    /// Uploads the matrix. Launches without work are dropped; together the launches must write every row. All
    /// uploaded arrays are read once in a product.
    pub(crate) fn new<F: Format>(
        backend: &'static str,
        device: &Cuda,
        format: &F,
        passes: impl IntoIterator<Item = Pass<F>>,
        reserve: u64,
    ) -> Result<Product<T>> {
        let matrix = format.arrays::<T>().upload(device, reserve)?;
        let stored =
            Stored { shape: format.shape(), padded_entries: format.padded_entries(), arrays: matrix };
        Ok(Product::of(backend, stored, format.numbers(), passes))
    }

    /// Makes the product of a matrix whose arrays are on the device already; otherwise like
    /// [`new`](Self::new).
    pub(crate) fn of<F: Format>(
        backend: &'static str,
        stored: Stored,
        numbers: Vec<(&'static str, u32)>,
        passes: impl IntoIterator<Item = Pass<F>>,
    ) -> Product<T> {
        let Stored { shape, padded_entries, arrays: matrix } = stored;
        let does = |launch: &Launch| shape.0 > 0 && launch.count != Some(0);
        let launches: Vec<Launch> = passes.into_iter().map(|pass| pass.launch).filter(does).collect();
        let width = (shape.0 + shape.1) * size_of::<T>();
        let shares: u64 = launches.iter().map(|launch| launch.share.bytes()).sum();
        let bytes = matrix.bytes() + shares + width as u64;
        let cost = Cost { bytes, flops: 2 * padded_entries as u64 };
        let (sweeps, in_order) = (false, None);
        Product { backend, shape, matrix, numbers, launches, sweeps, in_order, cost, vectors: PhantomData }
    }

    /// Declares that the values of the matrix, which has `entries` entries, are stored in their order.
    pub(crate) fn with_values_in_order(mut self, entries: usize) -> Product<T> {
        self.in_order = Some(entries);
        self
    }

    /// Fuses sweeps with the product if one kernel owns all rows.
    pub(crate) fn with_sweeps(mut self) -> Product<T> {
        self.sweeps = true;
        self
    }

    /// Returns the arrays of the matrix.
    pub(crate) fn matrix(&self) -> &DeviceArrays {
        &self.matrix
    }

    /// Returns the launch that can end with a dot product.
    fn owning(&self) -> Option<&Launch> {
        match &self.launches[..] {
            [launch] if launch.kind.owns_all_rows => Some(launch),
            _ => None,
        }
    }

    /// Returns the launch that can end with a sweep.
    fn sweeping(&self) -> Option<&Launch> {
        self.owning().filter(|_| self.sweeps && self.shape.0 == self.shape.1)
    }

    /// Enqueues one kernel; `add_last` adds the arguments of the kernel's ending.
    fn launch<'a>(
        &'a self,
        device: &'a Cuda,
        launch: &'a Launch,
        ending: Ending<'_>,
        (x, y): (&'a CudaVector<T>, &'a mut CudaVector<T>),
        add_last: impl FnOnce(&mut Arguments<'a>) -> Result<()>,
    ) -> Result<()> {
        check_shapes(device, self.shape, self.backend, x, y)?;
        let kernel = self.kernel(device, launch, ending)?;
        let mut arguments = Arguments::on(device);
        self.matrix.add_to(&mut arguments);
        arguments.read("x", x)?;
        arguments.written("y", y)?;
        launch.share.add_to(&mut arguments);
        self.numbers.iter().for_each(|&(name, number)| arguments.value(name, number));
        launch.count.into_iter().for_each(|count| arguments.value("count", count));
        add_last(&mut arguments)?;
        arguments.launch(&kernel, launch.grid.blocks(device, &kernel))
    }

    fn kernel(&self, device: &Cuda, launch: &Launch, ending: Ending<'_>) -> Result<Kernel> {
        if let (Ending::Plain, Some(kernel)) = (ending, launch.plain.get()) {
            return Ok(kernel.clone());
        }
        let share = (launch.share.signature(), launch.count.is_some());
        let source = launch.kind.source::<T>(self.matrix.signature(), &self.numbers, share, ending);
        let kernel = device.kernel(&source)?;
        if let Ending::Plain = ending {
            return Ok(launch.plain.get_or_init(|| kernel).clone());
        }
        Ok(kernel)
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for Product<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn set_values(&self, device: &Cuda, values: &CudaVector<T>) -> Result<bool> {
        match self.in_order {
            Some(entries) => place(device, &self.matrix, None, (values, entries)),
            None => Ok(false),
        }
    }

    fn occupancy(&self, device: &Cuda) -> Result<Option<Occupancy>> {
        let Some(launch) = self.launches.last() else { return Ok(None) };
        let kernel = self.kernel(device, launch, Ending::Plain)?;
        let resident = device.blocks_for(&kernel, u64::MAX) / device.multiprocessors();
        let threads = f64::from(resident * launch.kind.block);
        Ok(Some(Occupancy {
            registers: kernel.registers(),
            resident,
            blocks: launch.grid.blocks(device, &kernel),
            percent: device.threads_per_multiprocessor().map(|most| 100.0 * threads / most),
        }))
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        check_shapes(device, self.shape, self.backend, x, y)?;
        self.launches.iter().try_for_each(|launch| {
            self.launch(device, launch, Ending::Plain, (x, y), |arguments| {
                arguments.scalar("alpha", T::from_f64(alpha));
                arguments.scalar("beta", T::from_f64(beta));
                Ok(())
            })
        })
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
        check_dot(self.shape, slots, dot, then)?;
        let Some(launch) = self.owning() else {
            return dot_after_product(self, device, (x, y), slots, dot, then);
        };
        self.launch(device, launch, Ending::Dot(dot, then), (x, y), |arguments| {
            arguments.slots("slots", slots)
        })
    }

    fn apply_sweep(
        &self,
        device: &Cuda,
        [y, x]: [&mut CudaVector<T>; 2],
        reads: &[&CudaVector<T>],
        slots: &mut CudaSlots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        let n = self.shape.0;
        let fits = slots.k() == 1
            && (sweep.writes, sweep.reads as usize) == (2, reads.len())
            && [&*y, &*x].into_iter().chain(reads.iter().copied()).all(|v| (v.n(), v.k()) == (n, 1));
        let (Some(launch), true) = (self.sweeping(), fits) else {
            self.apply(device, 1.0, x, 0.0, y)?;
            // If an argument does not fit, the sweep reports the error.
            return device.sweep(&mut [y, x], reads, slots, sweep);
        };
        sweep.validate(slots.len());
        self.launch(device, launch, Ending::Sweep(sweep), (&*x, &mut *y), |arguments| {
            reads.iter().enumerate().try_for_each(|(i, vector)| arguments.read(("q", i), vector))?;
            if !sweep.numbers.is_empty() {
                arguments.numbers(sweep.numbers, MAX_NUMBERS);
            }
            arguments.value("n", n as u64);
            arguments.slots("slots", slots)
        })?;
        // The new x is in the memory of y, because other rows still gathered the old x.
        device.swap(x, y);
        Ok(())
    }

    fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        let width = size_of::<T>();
        let bytes = self.cost.bytes + sweep.bytes(self.shape.0, 1, width);
        // Saved traffic: y is written by the product, and read and written by the sweep; x is read by both.
        if self.sweeping().is_some() { bytes - 4 * (self.shape.0 * width) as u64 } else { bytes }
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.matrix.bytes() + self.launches.iter().map(|launch| launch.share.bytes()).sum::<u64>()
    }
}
