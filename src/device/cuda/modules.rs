//! Kernels of a process: compiled by NVRTC or taken from the disk cache, loaded once, launched.

use super::cache::KernelCache;
use super::driver::{bind, call, fault};
use super::nvrtc::{Image, Nvrtc};
use crate::error::Result;
use crate::parallel::lock;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, sys};
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// Threads in a block where a kernel has no reason for another number.
pub const BLOCK: u32 = 256;

const COMMON: &str = include_str!("../../../kernels/common.cuh");

/// A kernel as text: what NVRTC compiles, for this GPU or in a test without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelSource {
    /// The function's name.
    pub name: String,
    /// Everything after the common prelude.
    pub body: String,
    /// `-D` options of the kernel's own, without those of the prelude.
    pub defines: Vec<(&'static str, String)>,
    /// Columns.
    pub k: usize,
    /// Threads in a block, a multiple of 32.
    pub block: u32,
}

impl KernelSource {
    /// The whole text, prelude included.
    pub fn text(&self) -> String {
        format!("{COMMON}\n{}", self.body)
    }

    /// Options for the compiler, apart from architecture and language.
    pub fn options(&self) -> Vec<String> {
        let common = [("BLOCK", self.block as usize), ("K", self.k), ("RING", crate::device::RING)];
        let common = common.iter().map(|(name, value)| format!("-D{name}={value}"));
        common.chain(self.defines.iter().map(|(name, value)| format!("-D{name}={value}"))).collect()
    }
}

/// The kernels that this process has loaded into a context.
pub struct Modules {
    context: Arc<CudaContext>,
    arch: u32,
    cache: KernelCache,
    loaded: Mutex<HashMap<KernelSource, Kernel>>,
}

/// From this architecture on kernels wait for the ones before them by themselves; see `in_order` in common.cuh.
const EARLY_LAUNCH: u32 = 90;

/// A loaded kernel and how many of its blocks a multiprocessor holds at once.
#[derive(Clone)]
pub struct Kernel {
    pub(super) function: CudaFunction,
    pub(super) blocks_resident: u32,
    registers: u32,
    /// Threads in a block.
    pub(super) block: u32,
    /// Whether its launch may be prepared before the kernel ahead of it ends.
    launches_early: bool,
}

impl Kernel {
    /// Registers of a thread.
    pub fn registers(&self) -> u32 {
        self.registers
    }
}

impl Modules {
    pub(super) fn new(context: Arc<CudaContext>, arch: u32) -> Modules {
        Modules { context, arch, cache: KernelCache::open(), loaded: Mutex::default() }
    }

    pub(super) fn cache(&self) -> &KernelCache {
        &self.cache
    }

    pub(super) fn arch(&self) -> u32 {
        self.arch
    }

    /// How many kernels are loaded.
    pub(super) fn loaded(&self) -> usize {
        lock(&self.loaded).len()
    }

    /// The function of a kernel, compiled and loaded if this is the first time.
    pub fn get(&self, source: &KernelSource) -> Result<Kernel> {
        if let Some(kernel) = lock(&self.loaded).get(source) {
            return Ok(kernel.clone());
        }
        let nvrtc = Nvrtc::get()?;
        let (text, options) = (source.text(), source.options());
        let image =
            self.cache.get_or_compile(nvrtc.version(), &source.name, &text, &options, self.arch, || {
                nvrtc.compile(&source.name, &text, &options, self.arch)
            })?;
        let ptx = match image {
            Image::Cubin(bytes) => Ptx::from_binary(bytes),
            Image::Ptx(bytes) => Ptx::from_src(String::from_utf8_lossy(&bytes).trim_end_matches('\0')),
        };
        let module = self.context.load_module(ptx).map_err(fault("cuModuleLoadData"))?;
        let function = module.load_function(&source.name).map_err(fault("cuModuleGetFunction"))?;
        let blocks_resident = function
            .occupancy_max_active_blocks_per_multiprocessor(source.block, 0, None)
            .map_err(fault("cuOccupancyMaxActiveBlocksPerMultiprocessor"))?;
        let registers = function.num_regs().map_err(fault("cuFuncGetAttribute"))? as u32;
        log::debug!("{}: {registers} registers, {blocks_resident} blocks a multiprocessor", source.name);
        let launches_early = self.arch >= EARLY_LAUNCH;
        let kernel = Kernel { function, blocks_resident, registers, block: source.block, launches_early };
        lock(&self.loaded).insert(source.clone(), kernel.clone());
        Ok(kernel)
    }
}

/// Enqueues a kernel.
///
/// # Safety
/// `arguments` are the kernel's, in order and of its types; what they point to lives until the stream has run it.
pub(super) unsafe fn launch(
    stream: &CudaStream,
    kernel: &Kernel,
    blocks: u32,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    let early = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    };
    // SAFETY: promised by the caller.
    unsafe { launch_with(stream, kernel, (blocks, 0), kernel.launches_early.then_some(early), arguments) }
}

/// Enqueues a kernel whose blocks wait for each other, so that all of them must be resident at once; each has so many bytes
/// of shared memory at run time.
///
/// # Safety
/// As for [`launch`].
pub(super) unsafe fn launch_together(
    stream: &CudaStream,
    kernel: &Kernel,
    blocks: u32,
    shared: u32,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    let together = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { cooperative: 1 },
    };
    // SAFETY: promised by the caller.
    unsafe { launch_with(stream, kernel, (blocks, shared), Some(together), arguments) }
}

unsafe fn launch_with(
    stream: &CudaStream,
    kernel: &Kernel,
    (blocks, shared): (u32, u32),
    mut attribute: Option<sys::CUlaunchAttribute>,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    bind(stream.context())?;
    let config = sys::CUlaunchConfig {
        gridDimX: blocks,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: kernel.block,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shared,
        hStream: stream.cu_stream(),
        numAttrs: u32::from(attribute.is_some()),
        attrs: attribute.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut),
    };
    // SAFETY: promised by the caller; the configuration outlives the call, which copies it.
    let status = unsafe {
        sys::cuLaunchKernelEx(
            &config,
            kernel.function.cu_function(),
            arguments.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    };
    call("cuLaunchKernelEx", status)
}
