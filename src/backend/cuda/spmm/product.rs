//! Products with several columns as launches over the arrays of one format.
//!
//! B and C are vectors of k columns, row-major. How a product is cut into blocks depends on k, so a [`Schedule`] makes the
//! launches for each k when k is first used: it chooses compile-time parameters and grids, and makes the arrays that a launch
//! needs in addition to the matrix. They are kept for the next product with as many columns.
//!
//! Dot products and sweeps take a separate pass.

use crate::backend::cuda::arrays::{Arrays, DeviceArrays, Signature};
use crate::backend::cuda::check_columns;
use crate::backend::cuda::form::{Ending, Format, Kind, Real, Types};
use crate::device::Cuda;
use crate::device::cuda::CudaVector;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::modules::{Kernel, KernelSource};
use crate::error::Result;
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Numbers that a kernel takes by name.
pub(in crate::backend::cuda) type Numbers = Vec<(&'static str, u32)>;

/// One launch of a product.
pub(in crate::backend::cuda) struct Launch {
    /// The kernel with its macros.
    pub kind: Kind,
    /// The numbers that the kernel takes after x, y and the arrays of the schedule.
    pub numbers: Numbers,
    /// Blocks of the grid.
    pub blocks: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

/// Makes the launches of products over a format.
pub(in crate::backend::cuda) trait Schedule: Send + Sync {
    /// Returns the launches of a product with `k` columns of elements of `width` bytes, in order.
    fn launches(&self, device: &Cuda, k: usize, width: usize) -> Result<Vec<Launch>>;

    /// Returns the arrays that all these launches take in addition to the matrix.
    fn arrays<T: Scalar>(&self, _k: usize) -> Arrays<'static> {
        Arrays::new()
    }
}

/// The most numbers of columns for which launches are kept.
const KEPT: usize = 4;

/// Launches that are ready for one number of columns.
struct Ready {
    k: usize,
    arrays: DeviceArrays,
    launches: Vec<(Launch, Kernel)>,
}

/// A matrix on the device with the launches that multiply it by several columns.
pub(in crate::backend::cuda) struct SeveralColumns<T, S> {
    shape: (usize, usize),
    matrix: DeviceArrays,
    cost: Cost,
    schedule: S,
    ready: Mutex<VecDeque<Arc<Ready>>>,
    vectors: std::marker::PhantomData<fn(T)>,
}

/// Returns the source of a kernel with the parameters of a format, of the arrays of a schedule, and of its numbers.
fn source<T: Scalar>(kind: &Kind, matrix: Signature, extra: Signature, numbers: &Numbers) -> KernelSource {
    kind.source::<T>(matrix, numbers, (extra, false), Ending::Plain)
}

/// Returns the source of a kernel over a format in these types, without a matrix; `extra` makes the arrays of the schedule.
pub(in crate::backend::cuda) fn source_of<F: Format, E: ExtraArrays>(
    kind: &Kind,
    types: Types,
    numbers: &[&'static str],
) -> KernelSource {
    fn of<F: Format, E: ExtraArrays, T: Scalar>(
        kind: &Kind,
        types: Types,
        numbers: &Numbers,
    ) -> KernelSource {
        let matrix = F::empty(types);
        source::<T>(kind, matrix.arrays::<T>().signature(), E::arrays::<T>().signature(), numbers)
    }
    let numbers = numbers.iter().map(|&name| (name, 0)).collect();
    match types.scalar {
        Real::F32 => of::<F, E, f32>(kind, types, &numbers),
        Real::F64 => of::<F, E, f64>(kind, types, &numbers),
    }
}

/// The arrays of a schedule without their content, for compilation without a matrix.
pub(in crate::backend::cuda) trait ExtraArrays {
    /// Returns the arrays, all empty.
    fn arrays<T: Scalar>() -> Arrays<'static>;
}

/// No arrays besides those of the matrix.
impl ExtraArrays for () {
    fn arrays<T: Scalar>() -> Arrays<'static> {
        Arrays::new()
    }
}

impl<T: Scalar, S: Schedule> SeveralColumns<T, S> {
    /// Uploads the matrix, and prepares products with `k` columns.
    pub fn new<F: Format>(
        device: &Cuda,
        format: &F,
        schedule: S,
        k: usize,
        reserve: u64,
    ) -> Result<SeveralColumns<T, S>> {
        let shape = format.shape();
        let matrix = format.arrays::<T>().upload(device, reserve)?;
        let vectors = ((shape.0 + shape.1) * size_of::<T>()) as u64;
        let cost = Cost { bytes: matrix.bytes() + vectors, flops: 2 * format.padded_entries() as u64 };
        let (ready, vectors) = (Mutex::default(), std::marker::PhantomData);
        let product = SeveralColumns { shape, matrix, cost, schedule, ready, vectors };
        product.ready(device, k)?;
        Ok(product)
    }

    /// Returns the launches for `k` columns; makes them on the first call.
    fn ready(&self, device: &Cuda, k: usize) -> Result<Arc<Ready>> {
        let mut kept = lock(&self.ready);
        if let Some(ready) = kept.iter().find(|ready| ready.k == k) {
            return Ok(Arc::clone(ready));
        }
        let arrays = self.schedule.arrays::<T>(k).upload(device, 0)?;
        let with_kernel = |launch: Launch| {
            let Launch { kind, numbers, shared, .. } = &launch;
            let source = source::<T>(kind, self.matrix.signature(), arrays.signature(), numbers);
            let kernel = device.kernel(&source)?;
            kernel.allow_shared(*shared)?;
            Ok((launch, kernel))
        };
        let launches = match self.shape.0 {
            0 => Vec::new(),
            _ => self.schedule.launches(device, k, size_of::<T>())?,
        };
        let launches = launches.into_iter().map(with_kernel).collect::<Result<_>>()?;
        let ready = Arc::new(Ready { k, arrays, launches });
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&ready));
        Ok(ready)
    }
}

impl<T: Scalar, S: Schedule> LinearOperator<Cuda, T> for SeveralColumns<T, S> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn prepare(&self, device: &Cuda, k: usize) -> Result<()> {
        self.ready(device, k).map(drop)
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        let k = check_columns(device, self.shape, x, y)?;
        let ready = self.ready(device, k)?;
        ready.launches.iter().try_for_each(|(launch, kernel)| {
            let mut arguments = Arguments::on(device);
            self.matrix.add_to(&mut arguments);
            arguments.read("x", x)?;
            arguments.written("y", y)?;
            ready.arrays.add_to(&mut arguments);
            launch.numbers.iter().for_each(|&(name, number)| arguments.value(name, number));
            arguments.scalar("alpha", T::from_f64(alpha));
            arguments.scalar("beta", T::from_f64(beta));
            arguments.launch_with(kernel, launch.blocks, launch.shared)
        })
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.matrix.bytes()
    }
}

/// Returns a number of blocks as a grid has it: at most 2^31 - 1. The kernels of the study stride over more items; no matrix that
/// fits into memory has more for the other kernels.
pub(in crate::backend::cuda) fn grid(blocks: u64) -> u32 {
    blocks.clamp(1, i32::MAX as u64) as u32
}
