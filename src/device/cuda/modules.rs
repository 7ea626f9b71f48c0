//! Kernels of a process: compiled by NVRTC or taken from the disk cache, and loaded once.

use super::cache::KernelCache;
use super::driver::fault;
use super::images::image;
pub(crate) use super::kernel_source::BLOCK;
pub(crate) use super::kernel_source::KernelSource;
use super::nvrtc::Image;
use super::parameters::Parameter;
use crate::error::Result;
use crate::observe::profile::{self, Phase};
use crate::parallel::lock;
use cudarc::driver::{CudaContext, CudaFunction, sys};
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The kernels that this process has loaded into a context.
pub(crate) struct Modules {
    context: Arc<CudaContext>,
    arch: u32,
    cache: KernelCache,
    loaded: Mutex<HashMap<KernelSource, Kernel>>,
}

/// From this architecture on, a kernel may be launched early and waits in its own code for the kernel before
/// it; see `in_order` in common.cuh.
const EARLY_LAUNCH: u32 = 90;

/// A loaded kernel and how many of its blocks a multiprocessor holds at once.
#[derive(Clone)]
pub(crate) struct Kernel {
    pub(super) name: Arc<str>,
    pub(super) parameters: Arc<[Parameter]>,
    pub(super) function: CudaFunction,
    pub(super) blocks_resident: u32,
    registers: u32,
    /// Threads in a block.
    pub(super) block: u32,
    /// Whether the kernel's launch may be prepared before the previous kernel ends.
    pub(super) launches_early: bool,
}

impl Kernel {
    /// Returns the registers of a thread.
    pub(crate) fn registers(&self) -> u32 {
        self.registers
    }

    /// Permits launches with `bytes` bytes of dynamic shared memory for each block. All launches share the
    /// kernel, so the limit never falls.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<()> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let allowed = self.function.get_attribute(attribute).map_err(fault("cuFuncGetAttribute"))?;
        match allowed < bytes as i32 {
            true => self.function.set_attribute(attribute, bytes as i32).map_err(fault("cuFuncSetAttribute")),
            false => Ok(()),
        }
    }
}

impl Modules {
    pub(super) fn new(context: Arc<CudaContext>, arch: u32) -> Modules {
        Modules { context, arch, cache: KernelCache::open(), loaded: Mutex::default() }
    }

    pub(super) fn arch(&self) -> u32 {
        self.arch
    }

    /// Returns the number of loaded kernels.
    #[cfg(test)]
    pub(super) fn loaded(&self) -> usize {
        lock(&self.loaded).len()
    }

    /// Returns the function of a kernel; compiles and loads it on the first call.
    pub(crate) fn get(&self, source: &KernelSource) -> Result<Kernel> {
        if let Some(kernel) = lock(&self.loaded).get(source) {
            return Ok(kernel.clone());
        }
        let _span = profile::begin(Phase::Compile);
        let ptx = match image(&self.cache, source, self.arch)? {
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
        let kernel = Kernel {
            name: source.name.as_str().into(),
            parameters: source.parameters.as_slice().into(),
            function,
            blocks_resident,
            registers,
            block: source.block,
            launches_early,
        };
        lock(&self.loaded).insert(source.clone(), kernel.clone());
        Ok(kernel)
    }
}
