//! Products with several columns as launches over the arrays of one format.
//!
//! B and C are vectors of k columns, row-major. How a product is cut into blocks depends on k, so a
//! [`Schedule`] makes the launches for each k when k is first used: it chooses compile-time parameters and
//! grids, and makes the arrays that a launch needs in addition to the matrix. They are kept for the next
//! product with as many columns.
//!
//! If one launch writes all rows of C, its blocks can sum `<x, y>` over their rows while these
//! are in registers; a sweep over these partial sums adds them. Other dot products, and
//! sweeps, take a separate pass.

use crate::backend::cuda::arrays::{Arrays, DeviceArrays, Signature};
use crate::backend::cuda::check_columns;
use crate::backend::cuda::form::{Ending, Format, Kind, Real, Types};
use crate::backend::cuda::new_values::{Places, place};
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::modules::{Kernel, KernelSource};
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::{Cuda, Device, Dot, Op, Operand, Sweep};
use crate::error::Result;
use crate::operator::{Cost, DotInto, LinearOperator, dot_after_product};
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
    /// The rows of partial sums of `<x, y>`, if the kernel can compute them and writes all rows of y.
    pub partials: Option<u32>,
}

impl Launch {
    /// Returns a launch without dynamic shared memory and partial sums.
    pub(crate) fn new(kind: Kind, numbers: Numbers, blocks: u32) -> Launch {
        Launch { kind, numbers, blocks, shared: 0, partials: None }
    }
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
    partials: Option<Partials>,
}

/// The kernel that also computes partial sums of `<x, y>`, and a row of them for each of its blocks.
struct Partials {
    kernel: Kernel,
    sums: Mutex<CudaVector<f64>>,
}

/// The most bytes of partial sums.
const MOST_PARTIALS: usize = 16 << 20;

/// A matrix on the device with the launches that multiply it by several columns.
pub(in crate::backend::cuda) struct SeveralColumns<T, S> {
    shape: (usize, usize),
    matrix: DeviceArrays,
    /// The number of entries, and the places of their values, if both are known.
    places: Option<(usize, Places)>,
    cost: Cost,
    schedule: S,
    ready: Mutex<VecDeque<Arc<Ready>>>,
    vectors: std::marker::PhantomData<fn(T)>,
}

/// Returns the source of a kernel with the parameters of a format, of the arrays of a
/// schedule, and of its numbers.
fn source<T: Scalar>(
    kind: &Kind,
    matrix: Signature,
    extra: Signature,
    numbers: &Numbers,
    ending: Ending<'_>,
) -> KernelSource {
    kind.source::<T>(matrix, numbers, (extra, false), ending)
}

/// Returns the source of a kernel over a format in these types, without a matrix; `extra` makes
/// the arrays of the schedule.
pub(in crate::backend::cuda) fn source_of<F: Format, E: ExtraArrays>(
    kind: &Kind,
    types: Types,
    numbers: &[&'static str],
) -> KernelSource {
    source_ending::<F, E>(kind, types, numbers, Ending::Plain)
}

/// Returns the same source with an ending.
pub(super) fn source_ending<F: Format, E: ExtraArrays>(
    kind: &Kind,
    types: Types,
    numbers: &[&'static str],
    ending: Ending<'_>,
) -> KernelSource {
    fn of<F: Format, E: ExtraArrays, T: Scalar>(
        kind: &Kind,
        types: Types,
        numbers: &Numbers,
        ending: Ending<'_>,
    ) -> KernelSource {
        let matrix = F::empty(types);
        source::<T>(kind, matrix.arrays::<T>().signature(), E::arrays::<T>().signature(), numbers, ending)
    }
    let numbers = numbers.iter().map(|&name| (name, 0)).collect();
    match types.scalar {
        Real::F32 => of::<F, E, f32>(kind, types, &numbers, ending),
        Real::F64 => of::<F, E, f64>(kind, types, &numbers, ending),
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
    pub(crate) fn new<F: Format>(
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
        let product = SeveralColumns { shape, matrix, places: None, cost, schedule, ready, vectors };
        product.ready(device, k)?;
        Ok(product)
    }

    /// Tells where the values of the matrix, which has `entries` entries, are stored.
    pub(crate) fn with_places(mut self, entries: usize, places: Places) -> SeveralColumns<T, S> {
        self.places = Some((entries, places));
        self
    }

    /// Returns the launches for `k` columns; makes them on the first call.
    fn ready(&self, device: &Cuda, k: usize) -> Result<Arc<Ready>> {
        let mut kept = lock(&self.ready);
        if let Some(ready) = kept.iter().find(|ready| ready.k == k) {
            return Ok(Arc::clone(ready));
        }
        let arrays = self.schedule.arrays::<T>(k).upload(device, 0)?;
        let kernel = |launch: &Launch, ending: Ending<'_>| {
            let Launch { kind, numbers, shared, .. } = launch;
            let source = source::<T>(kind, self.matrix.signature(), arrays.signature(), numbers, ending);
            let kernel = device.kernel(&source)?;
            kernel.allow_shared(*shared)?;
            Ok(kernel)
        };
        let launches = match self.shape.0 {
            0 => Vec::new(),
            _ => self.schedule.launches(device, k, size_of::<T>())?,
        };
        let square = self.shape.0 == self.shape.1;
        let partials = match &launches[..] {
            [launch @ Launch { partials: Some(rows), .. }]
                if square && *rows as usize * k * size_of::<f64>() <= MOST_PARTIALS =>
            {
                let sums = Mutex::new(device.vector(*rows as usize, k)?);
                Some(Partials { kernel: kernel(launch, Ending::Partials)?, sums })
            }
            _ => None,
        };
        let with_kernel = |launch: Launch| kernel(&launch, Ending::Plain).map(|kernel| (launch, kernel));
        let launches = launches.into_iter().map(with_kernel).collect::<Result<_>>()?;
        let ready = Arc::new(Ready { k, arrays, launches, partials });
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&ready));
        Ok(ready)
    }

    /// Returns the arguments of a launch without those of its ending after alpha and beta.
    fn arguments<'a>(
        &'a self,
        device: &'a Cuda,
        (ready, launch): (&'a Ready, &Launch),
        (alpha, beta): (f64, f64),
        (x, y): (&'a CudaVector<T>, &'a mut CudaVector<T>),
    ) -> Result<Arguments<'a>> {
        let mut arguments = Arguments::on(device);
        self.matrix.add_to(&mut arguments);
        arguments.read("x", x)?;
        arguments.written("y", y)?;
        ready.arrays.add_to(&mut arguments);
        launch.numbers.iter().for_each(|&(name, number)| arguments.value(name, number));
        arguments.scalar("alpha", T::from_f64(alpha));
        arguments.scalar("beta", T::from_f64(beta));
        Ok(arguments)
    }
}

impl<T: Scalar, S: Schedule> LinearOperator<Cuda, T> for SeveralColumns<T, S> {
    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn prepare(&self, device: &Cuda, k: usize) -> Result<()> {
        self.ready(device, k).map(drop)
    }

    fn set_values(&self, device: &Cuda, values: &CudaVector<T>) -> Result<bool> {
        match &self.places {
            Some((entries, places)) => place(device, &self.matrix, Some(places), (values, *entries)),
            None => Ok(false),
        }
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
            let arguments = self.arguments(device, (&ready, launch), (alpha, beta), (x, y))?;
            arguments.launch_with(kernel, launch.blocks, launch.shared)
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
        let k = check_columns(device, self.shape, x, y)?;
        let ready = self.ready(device, k)?;
        let (Some(Partials { kernel, sums }), [(launch, _)]) = (&ready.partials, &ready.launches[..]) else {
            return dot_after_product(self, device, (x, y), slots, dot, then);
        };
        let mut sums = lock(sums);
        let mut arguments = self.arguments(device, (&ready, launch), (1.0, 0.0), (x, y))?;
        arguments.written("partials", &mut *sums)?;
        arguments.launch_with(kernel, launch.blocks, launch.shared)?;
        let dots = [Dot::product(Operand::Read(0), Operand::Ones, dot[0].out)];
        let all =
            Sweep { name: "partials", writes: 0, reads: 1, updates: &[], dots: &dots, then, numbers: &[] };
        device.sweep(&mut [], &[&sums], slots, &all)
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn storage(&self) -> u64 {
        self.matrix.bytes()
    }
}

/// Returns a number of blocks as a grid has it: at most 2^31 - 1. The kernels of the study stride over more
/// items; no matrix that fits into memory has more for the other kernels.
pub(in crate::backend::cuda) fn grid(blocks: u64) -> u32 {
    blocks.clamp(1, i32::MAX as u64) as u32
}
