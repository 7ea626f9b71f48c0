//! An NVIDIA GPU as a device.
//!
//! All work runs on one dedicated stream (the default stream cannot be captured), without event tracking.
//! Kernels are generated from sweeps or embedded as sources, compiled at run time by NVRTC for this GPU and
//! kept on disk. A recorded step is a CUDA graph, in which scalars are never copied to the host. CUDA is not
//! needed to build or to start this program: every library is searched at run time, and a missing one is an
//! error that says what to do.

mod arrangement;
#[doc(hidden)]
pub mod block;
#[doc(hidden)]
pub(crate) mod burst;
#[doc(hidden)]
pub mod cache;
mod compiler;
mod device;
mod driver;
#[doc(hidden)]
pub(crate) mod generate;
mod graph;
mod images;
mod kernel_source;
#[doc(hidden)]
pub(crate) mod launch;
#[doc(hidden)]
pub(crate) mod libraries;
#[doc(hidden)]
pub mod memory;
#[doc(hidden)]
pub(crate) mod modules;
pub mod nvrtc;
pub(crate) mod nvtx;
#[doc(hidden)]
pub(crate) mod parameters;
#[doc(hidden)]
pub mod ranks;
mod side_stream;
mod slots;
mod staging;
mod steps;

use super::sweep::MAX_DOTS;
use super::{Device, Kept, Sweep, check_length};
use crate::error::{Error, GpuError, Result};
use crate::scalar::Scalar;
use arrangement::Arrangement;
pub(crate) use block::CudaScratch;
use burst::Trace;
pub(crate) use compiler::compiler;
pub use compiler::usable;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys};
pub(crate) use driver::driver_version;
use driver::{bind, call, fault};
pub use driver::{count, require_driver};
pub(crate) use images::compile_ahead;
use memory::{CudaArray, Memory};
use modules::{BLOCK, Kernel, KernelSource, Modules};
use parking_lot::{ReentrantMutex, ReentrantMutexGuard};
use side_stream::SideStream;
use slots::ScalarBuffer;
pub(crate) use slots::{CudaSlots, SlotPointers};
pub(crate) use staging::Pages;
use staging::Staging;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};
pub(crate) use steps::{CudaSteps, between_captures};

/// The environment variable that limits the GPU memory of this program, in bytes: for shared GPUs.
pub const MEMORY_LIMIT: &str = "SOLVER_GPU_MEMORY_LIMIT";

/// The most blocks that a multiprocessor of any GPU holds at once.
const MOST_RESIDENT: u32 = 32;

/// One NVIDIA GPU, its stream and its kernels. Clones are handles of the same device. Threads that share the
/// device take turns, one operation at a time; a recording is one operation.
#[derive(Clone)]
pub struct Cuda(Arc<Gpu>);

/// The data that the handles of a device share.
struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    modules: Modules,
    index: usize,
    name: String,
    multiprocessors: u32,
    /// The limit that the user set, in bytes.
    memory_limit: Option<u64>,
    /// Bytes that were free when the device was opened.
    free_at_first: u64,
    /// The result of [`Cuda::bandwidth`]: the driver takes most of a millisecond to report the clock.
    bandwidth: OnceLock<Option<f64>>,
    /// Marks a position in a stream for another stream to wait for.
    order: CudaEvent,
    state: ReentrantMutex<State>,
}

/// The state that changes while a device is used. The thread that has the lock may take it again:
/// recording a step runs operations.
#[derive(Default)]
struct State {
    /// While set, launches are left out: a step then compiles its kernels and launches none.
    rehearsing: Cell<bool>,
    /// While a step is recorded: the memory and operators that its launches use.
    recording: RefCell<Option<Vec<Kept>>>,
    /// Page-locked buffers for long uploads, from the first one on.
    staging: RefCell<Option<Staging>>,
    /// Whether the driver has refused to lock pages for them.
    without_staging: Cell<bool>,
    /// Page-locked buffers for scalars, kept for the next solve.
    scalar_buffers: RefCell<Vec<ScalarBuffer>>,
    /// The number of times that vectors have been swapped.
    swaps: Cell<usize>,
    /// Whether an operator has been built whose steps may run in one launch.
    expects_bursts: Cell<bool>,
    /// Number of steps recorded in this way.
    bursts: Cell<usize>,
    /// The stream beside that of the device, from its first use on.
    side: RefCell<Option<SideStream>>,
    /// The trace of the step that is being recorded.
    trace: RefCell<Option<Trace>>,
}

/// A vector in GPU memory, n x k, row-major.
pub struct CudaVector<T> {
    n: usize,
    k: usize,
    data: CudaArray<T>,
}

/// Returns the limit that the user set, if any.
fn memory_limit() -> Result<Option<u64>> {
    let Some(value) = std::env::var_os(MEMORY_LIMIT).filter(|v| !v.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    match value.parse() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) => Err(Error::BadSetting {
            setting: MEMORY_LIMIT,
            value,
            reason: "it must be a whole number of bytes".to_owned(),
        }),
    }
}

/// Returns the fused multiplications and additions in single precision that a multiprocessor of an
/// architecture completes in a cycle, by the table of throughputs of the CUDA C++ Programming Guide; none for
/// an unknown architecture.
fn fused_per_cycle(arch: u32) -> Option<u32> {
    match arch {
        60 | 70..=80 => Some(64),
        50..=62 | 86..=129 => Some(128),
        _ => None,
    }
}

impl Cuda {
    /// Opens the GPU with that index, with a context and a dedicated stream.
    pub fn new(index: usize) -> Result<Cuda> {
        driver::require_gpu(index)?;
        let began = std::time::Instant::now();
        let context = CudaContext::new(index).map_err(fault("cuDevicePrimaryCtxRetain"))?;
        let context_ready = began.elapsed();
        compiler()?;
        log::debug!("context ready after {context_ready:.1?}, NVRTC after {:.1?}", began.elapsed());
        // SAFETY: there is no allocation yet, and all work of the device runs on one stream, so that
        // its order needs no events.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(fault("cuStreamCreate"))?;
        let (major, minor) = context.compute_capability().map_err(fault("cuDeviceGetAttribute"))?;
        let arch = (major * 10 + minor) as u32;
        let multiprocessors = context
            .attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
            .map_err(fault("cuDeviceGetAttribute"))? as u32;
        let free_at_first = context.mem_get_info().map_err(fault("cuMemGetInfo"))?.0 as u64;
        Ok(Cuda(Arc::new(Gpu {
            free_at_first,
            bandwidth: OnceLock::new(),
            order: context.new_event(None).map_err(fault("cuEventCreate"))?,
            name: context.name().map_err(fault("cuDeviceGetName"))?,
            modules: Modules::new(Arc::clone(&context), arch),
            context,
            stream,
            index,
            multiprocessors,
            memory_limit: memory_limit()?,
            state: ReentrantMutex::default(),
        })))
    }

    /// Returns whether an error has ended all work on the GPU, such as an access to memory
    /// that does not exist.
    pub(crate) fn has_failed(&self) -> bool {
        let stream = self.0.stream.cu_stream();
        // SAFETY: the stream lives as long as the device.
        let status = self.0.context.bind_to_thread().map(|()| unsafe { sys::cuStreamQuery(stream) });
        !matches!(status, Ok(sys::CUresult::CUDA_SUCCESS | sys::CUresult::CUDA_ERROR_NOT_READY))
    }

    /// Locks the device: waits until no other thread uses it.
    fn turn(&self) -> ReentrantMutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Refuses a vector of another device.
    pub(crate) fn check_vector<T: Scalar>(&self, vector: &CudaVector<T>) -> Result<()> {
        self.check_own(vector.data.memory())
    }

    /// Refuses a copy in a step that is being recorded: it would run once, and not in each replay.
    fn check_not_recording(&self) -> Result<()> {
        match *self.turn().recording.borrow() {
            Some(_) => Err(GpuError::CopiedInStep.into()),
            None => Ok(()),
        }
    }

    /// Refuses a vector or scalars of another device.
    fn check_own(&self, memory: &Memory) -> Result<()> {
        if memory.is_on(self) { Ok(()) } else { Err(GpuError::OtherDevice { device: self.name() }.into()) }
    }

    /// Returns the identifier of the GPU, which no other GPU has.
    pub(super) fn identity(&self) -> Result<u128> {
        driver::identity_of(self.0.context.cu_device())
    }

    /// Returns the stream on which all work runs.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.0.stream
    }

    /// Returns the compute capability: 90 for 9.0.
    pub(crate) fn arch(&self) -> u32 {
        self.0.modules.arch()
    }

    /// Returns the numbers of sums and of tickets that any kernel over vectors of `k` columns needs. A
    /// kernel over one column has at most as many blocks as the GPU holds at once, and no
    /// multiprocessor holds more than 32.
    fn room_for_sums(&self, k: usize) -> (usize, usize) {
        let multiprocessors = self.0.multiprocessors;
        if k == 1 {
            return ((multiprocessors * MOST_RESIDENT) as usize * MAX_DOTS, 1);
        }
        let arrangement = Arrangement::of(k);
        (arrangement.sums(multiprocessors, k), arrangement.tiles as usize)
    }

    /// Returns the bytes of shared memory that a block may have.
    pub(crate) fn shared_memory(&self) -> Result<u64> {
        let most = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        Ok(self.0.context.attribute(most).map_err(fault("cuDeviceGetAttribute"))? as u64)
    }

    /// Returns the bytes of the second-level cache, if the driver reports them.
    pub(crate) fn cache_bytes(&self) -> Option<f64> {
        self.positive(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
    }

    /// Returns the bytes per second of a stream that is only read, if the driver reports the clock and width
    /// of the memory: on an H200 it reaches 90.5 % of their product.
    pub(crate) fn bandwidth(&self) -> Option<f64> {
        *self.0.bandwidth.get_or_init(|| self.reported_bandwidth())
    }

    fn reported_bandwidth(&self) -> Option<f64> {
        const REACHED: f64 = 0.905;
        self.memory_peak().map(|peak| REACHED * peak)
    }

    /// Returns the most bytes per second that the memory can transfer, if the driver reports
    /// its clock and its width.
    pub(crate) fn memory_peak(&self) -> Option<f64> {
        let kilohertz = self.positive(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
        let bits = self.positive(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
        // Memory transfers twice in each cycle.
        Some(2.0 * 1e3 * kilohertz * bits / 8.0)
    }

    /// Returns the most additions and multiplications per second, in single and in double precision, at the
    /// highest clock and without tensor cores; none if the driver does not report the clock, or for an
    /// unknown architecture.
    pub(crate) fn arithmetic_peak(&self) -> Option<[f64; 2]> {
        let kilohertz = self.positive(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
        let ratio = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
        let lanes = f64::from(self.multiprocessors() * fused_per_cycle(self.arch())?);
        let single = 2.0 * lanes * 1e3 * kilohertz;
        Some([single, single / self.positive(ratio)?])
    }

    /// Returns the most threads that a multiprocessor holds, if the driver reports them.
    pub(crate) fn threads_per_multiprocessor(&self) -> Option<f64> {
        self.positive(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
    }

    fn positive(&self, attribute: sys::CUdevice_attribute) -> Option<f64> {
        self.0.context.attribute(attribute).ok().filter(|&value| value > 0).map(f64::from)
    }

    /// Returns the number of multiprocessors of the GPU.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.0.multiprocessors
    }

    /// Returns the number of blocks of a kernel for `threads` threads: no more than the GPU holds at once, so
    /// that no block starts late.
    pub(crate) fn blocks_for(&self, kernel: &Kernel, threads: u64) -> u32 {
        let resident = self.0.multiprocessors * kernel.blocks_resident.clamp(1, MOST_RESIDENT);
        threads.div_ceil(u64::from(kernel.block)).clamp(1, u64::from(resident)) as u32
    }

    /// Returns whether launches are left out (see [`Device::record`]). Every launch must call this first. It
    /// also marks a step that is being traced as unsuitable for one launch, because the step runs a kernel
    /// other than a sweep or a product.
    pub(crate) fn skips_launch(&self) -> bool {
        self.trace_with(|trace| trace.mark_unsuitable("a kernel other than a sweep or a product"));
        self.turn().rehearsing.get()
    }

    /// Enables step tracing from now on. An operator that can add to traces calls this.
    pub(crate) fn enable_step_tracing(&self) {
        self.turn().expects_bursts.set(true);
    }

    /// Returns the number of steps that have been recorded to run many times in one launch.
    #[cfg(test)]
    pub(crate) fn bursts(&self) -> usize {
        self.turn().bursts.get()
    }

    /// Adds to the trace of the step that is being recorded; returns whether there is a trace.
    pub(crate) fn trace_with(&self, add: impl FnOnce(&mut Trace)) -> bool {
        self.turn().trace.borrow_mut().as_mut().map(add).is_some()
    }

    /// Lets later work of one stream wait for the earlier work of another.
    ///
    /// # Safety
    /// Both are streams of this device.
    unsafe fn order(&self, first: sys::CUstream, then: sys::CUstream) -> Result<()> {
        let _turn = self.turn();
        bind(&self.0.context)?;
        let event = self.0.order.cu_event();
        // SAFETY: event and streams are of this device. A wait is for the last record before it, so
        // that one event serves all.
        unsafe {
            call("cuEventRecord", sys::cuEventRecord(event, first))?;
            call("cuStreamWaitEvent", sys::cuStreamWaitEvent(then, event, 0))
        }
    }

    /// Swaps two vectors. A recorded step may swap the same two vectors every time, so that two steps restore
    /// them; its recording then follows the swaps (see `steps`).
    pub(crate) fn swap<T: Scalar>(&self, a: &mut CudaVector<T>, b: &mut CudaVector<T>) {
        std::mem::swap(a, b);
        let turn = self.turn();
        turn.swaps.set(turn.swaps.get() + 1);
    }

    /// Returns the number of kernels that this process has loaded for the device, whether compiled or
    /// found in the cache on disk.
    #[cfg(test)]
    pub(crate) fn kernels_loaded(&self) -> usize {
        self.0.modules.loaded()
    }

    /// Returns the function of a kernel.
    pub(crate) fn kernel(&self, source: &KernelSource) -> Result<Kernel> {
        self.0.modules.get(source)
    }
}

impl<T: Scalar> CudaVector<T> {
    /// Returns the number of rows.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Returns the number of columns.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// Returns the address on the device.
    pub(crate) fn address(&self) -> u64 {
        memory::address(&self.data)
    }
}

/// Rows that a thread of a sweep over vectors of one column takes at once: two keep enough loads in
/// flight (four were no faster).
const UNROLL: u32 = 2;

/// Returns the kernel of a sweep over vectors of `T` in `k` columns.
pub(crate) fn sweep_kernel<T: Scalar>(sweep: &Sweep<'_>, k: usize) -> KernelSource {
    sweep_kernel_with::<T>(sweep, k, 0)
}

/// Returns the same kernel if some vectors that are only read have one column, which is used for every
/// column: those of the bits that are set in `narrow`, counted from the lowest.
pub(crate) fn sweep_kernel_with<T: Scalar>(sweep: &Sweep<'_>, k: usize, narrow: u8) -> KernelSource {
    let (body, arranged, block) = if k == 1 {
        (generate::sweep(sweep), vec![("UNROLL", UNROLL.to_string())], BLOCK)
    } else {
        let arrangement = Arrangement::of(k);
        (generate::columns::sweep(sweep, narrow), arrangement.defines().to_vec(), arrangement.block)
    };
    let mut defines = vec![("SCALAR", T::CUDA_NAME.to_owned())];
    defines.extend(arranged);
    let parameters = generate::parameters::<T>(sweep);
    KernelSource { name: format!("sweep_{}", sweep.name), body, parameters, defines, k, block }
}
