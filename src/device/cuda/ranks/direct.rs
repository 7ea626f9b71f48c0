//! GPUs of one machine that write to each other's memory.
//!
//! The ranks may be threads of one process, which see all memory by the same addresses, or processes, which
//! open each other's memory by handles of the driver. A process frees memory that others have opened only
//! when all of them have closed it.

use crate::device::cuda::driver::{bind, call, identity_of};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::{Cuda, between_captures};
use crate::device::distributed::{Connection, Retired};
use crate::device::{Device, Kept, Ranks};
use crate::error::Result;
use cudarc::driver::{CudaContext, sys};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A number of a message, as `Flagged` of kernels/direct.cuh has it.
#[repr(C)]
pub(crate) struct Place<T>([T; 2]);

/// Allocations that other processes open begin at a multiple of this, so that no two share a
/// block of the driver.
const BLOCK: usize = 2 << 20;

/// The GPUs of all ranks, of which each can write to the memory of each other.
pub(crate) struct Direct {
    device: Cuda,
    /// Whether each rank is in this process.
    here: Vec<bool>,
    /// Set once a rank has failed.
    stop: CudaArray<u32>,
    word: StopWord,
}

/// A word of page-locked memory that kernels read.
struct StopWord {
    host: *mut u32,
    context: Arc<CudaContext>,
}

// SAFETY: the word is written by volatile stores, and only ever set.
unsafe impl Send for StopWord {}
// SAFETY: as above.
unsafe impl Sync for StopWord {}

impl StopWord {
    /// Allocates the word, and returns its address on the device.
    fn new(device: &Cuda) -> Result<(StopWord, u64)> {
        device.enter()?;
        let context = Arc::clone(device.stream().context());
        let (mut host, mut address) = (ptr::null_mut(), 0);
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the calls write a pointer and an address.
        unsafe {
            call("cuMemHostAlloc", sys::cuMemHostAlloc(&mut host, size_of::<u64>(), flags))?;
            let word = StopWord { host: host.cast(), context };
            word.host.write_volatile(0);
            let mapped = sys::cuMemHostGetDevicePointer_v2(&mut address, host, 0);
            call("cuMemHostGetDevicePointer", mapped)?;
            Ok((word, address))
        }
    }

    fn set(&self) {
        // SAFETY: the memory lives as long as `self`.
        unsafe { self.host.write_volatile(1) };
    }
}

impl Drop for StopWord {
    fn drop(&mut self) {
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: allocated in `new`, freed once; no kernel of this rank runs any more.
        let _ = between_captures(|| unsafe { sys::cuMemFreeHost(self.host.cast()) });
    }
}

/// What a rank tells the others about itself.
#[derive(Clone, Copy, Debug)]
struct Identity {
    /// The process: a random number.
    process: u64,
    /// The machine, since it was last started.
    machine: u64,
    gpu: u128,
    /// The address of the context, for threads of the same process.
    context: u64,
}

/// Returns the number of this process, which is random.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

/// Returns a name for a window that no other window of any process is likely to have.
fn next_name() -> u64 {
    static WINDOWS: AtomicU64 = AtomicU64::new(0);
    process().wrapping_add(WINDOWS.fetch_add(1, Ordering::Relaxed))
}

impl Identity {
    fn of(device: &Cuda) -> Result<Identity> {
        let process = process();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let machine = xxhash_rust::xxh3::xxh3_64(boot.as_bytes());
        let context = device.stream().context().cu_ctx() as u64;
        Ok(Identity { process, machine, gpu: device.identity()?, context })
    }

    /// Returns the identities of all ranks.
    fn of_all(self, ranks: &Ranks) -> Vec<Identity> {
        let Identity { process, machine, gpu, context } = self;
        let [process, machine, low, high, context] =
            [process, machine, gpu as u64, (gpu >> 64) as u64, context].map(|word| ranks.all_of(word));
        (0..ranks.size())
            .map(|rank| Identity {
                process: process[rank],
                machine: machine[rank],
                gpu: u128::from(high[rank]) << 64 | u128::from(low[rank]),
                context: context[rank],
            })
            .collect()
    }
}

/// Returns the GPU with an identifier, if this process sees it.
fn visible(gpu: u128) -> Result<Option<sys::CUdevice>> {
    for index in 0..crate::device::cuda::count()? {
        let mut device = 0;
        // SAFETY: the call writes a handle.
        call("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, index as i32) })?;
        if identity_of(device)? == gpu {
            return Ok(Some(device));
        }
    }
    Ok(None)
}

/// Returns why the GPU of this rank cannot write to that of another one, if it cannot.
fn obstacle(device: &Cuda, mine: &Identity, other: &Identity) -> Result<Option<String>> {
    if other.gpu == mine.gpu {
        return Ok(None);
    }
    if other.machine != mine.machine {
        return Ok(Some("the ranks run on several machines".to_owned()));
    }
    let Some(theirs) = visible(other.gpu)? else {
        return Ok(Some("CUDA_VISIBLE_DEVICES hides GPUs of other ranks".to_owned()));
    };
    let mut can = 0;
    let own = device.stream().context().cu_device();
    // SAFETY: the call writes one integer.
    call("cuDeviceCanAccessPeer", unsafe { sys::cuDeviceCanAccessPeer(&mut can, own, theirs) })?;
    Ok((can == 0).then(|| "the GPUs cannot write to each other's memory".to_owned()))
}

impl Direct {
    /// Connects the GPUs of all ranks, which call this together. The inner error says why GPUs cannot write
    /// to each other's memory; it is the same decision on all ranks.
    pub(super) fn connect(device: &Cuda, ranks: &Ranks) -> Result<std::result::Result<Arc<Direct>, String>> {
        let mine = ranks.agreed(Identity::of(device))?;
        let all = mine.of_all(ranks);
        let obstacles = all.iter().map(|other| obstacle(device, &mine, other));
        let found = ranks.agreed(obstacles.collect::<Result<Vec<_>>>())?.into_iter().flatten().next();
        if ranks.any(found.is_some()) {
            return Ok(Err(
                found.unwrap_or_else(|| "GPUs of other ranks have no direct connection".to_owned())
            ));
        }
        let here: Vec<bool> = all.iter().map(|other| other.process == mine.process).collect();
        let contexts = all.iter().zip(&here).filter(|(other, here)| **here && other.gpu != mine.gpu);
        let enabled = { contexts }.try_for_each(|(other, _)| enable(device, other.context));
        if ranks.any(enabled.is_err()) {
            let reason =
                enabled.err().map_or("another rank has failed".to_owned(), |error| error.to_string());
            return Ok(Err(reason));
        }
        let made = StopWord::new(device).and_then(|(word, address)| {
            // SAFETY: the word lives as long as the connection, and nothing frees the array.
            let stop = unsafe { device.lent(address, 1)? };
            Ok(Direct { device: device.clone(), here, stop, word })
        });
        let direct = Arc::new(ranks.agreed(made)?);
        let connection: Arc<dyn Connection> = direct.clone();
        ranks.on_failure(Arc::downgrade(&connection));
        // The driver may refuse to open memory of another process, as in separate containers.
        match Window::new(&direct, ranks, 1) {
            Ok(_) => Ok(Ok(direct)),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Returns whether all ranks are in this process.
    fn is_alone(&self) -> bool {
        self.here.iter().all(|here| *here)
    }

    /// Returns the word that ends the waiting of kernels.
    pub(super) fn stop(&self) -> &CudaArray<u32> {
        &self.stop
    }
}

impl Connection for Direct {
    /// Ends the waiting of kernels.
    fn rank_failed(&self, _: usize) {
        self.word.set();
    }
}

/// Lets the GPU write to the memory of another context of this process.
fn enable(device: &Cuda, context: u64) -> Result<()> {
    device.enter()?;
    // SAFETY: the context belongs to a rank of this process, which waits for this one.
    let status = unsafe { sys::cuCtxEnablePeerAccess(context as sys::CUcontext, 0) };
    match status {
        sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
        status => call("cuCtxEnablePeerAccess", status),
    }
}

/// Memory of each rank that all ranks write to.
pub(super) struct Window {
    held: Arc<Held>,
    own: CudaArray<u64>,
    of_ranks: Vec<u64>,
}

/// The memory of this rank, and that of the other ranks of this process, to which the work of
/// this rank writes.
struct Held {
    own: Arc<Memory>,
    _others: Vec<Arc<Memory>>,
}

impl Held {
    /// Shares the memory with the other ranks of this process. All ranks call this together.
    fn share(own: Memory, ranks: &Ranks) -> Held {
        let own = Arc::new(own);
        let others = || (0..ranks.size()).filter(|rank| *rank != ranks.rank() && own.link.here[*rank]);
        // Each of the others takes a reference of its own.
        others().for_each(|_| _ = Arc::into_raw(Arc::clone(&own)));
        let taken = ranks.all_of(Arc::as_ptr(&own) as u64);
        // SAFETY: that rank has made the pointer, with a reference for this one.
        let others = others().map(|rank| unsafe { Arc::from_raw(taken[rank] as *const Memory) }).collect();
        Held { _others: others, own }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The work of this rank no longer writes to the memory of the others.
        let device = &self.own.link.device;
        let _ = device.enter().and_then(|()| device.synchronize());
    }
}

/// The memory of this rank, and that of other processes that it has opened.
struct Memory {
    link: Arc<Direct>,
    rank: usize,
    /// The name of the window, the same on all ranks.
    name: u64,
    address: u64,
    bytes: usize,
    opened: Vec<u64>,
}

/// Memory that this rank no longer uses, and that other processes may still have opened.
struct Unused {
    device: Cuda,
    address: u64,
}

/// The memory of all windows that have ended on the ranks of this process, but perhaps not on
/// those of others.
static UNUSED: Retired<Unused> = Retired::new();

impl Unused {
    /// Frees the memory, which no process has opened any more.
    fn free(self) {
        if bind(self.device.stream().context()).is_err() {
            return;
        }
        // SAFETY: allocated in `Memory::new`, freed once: its owner has left it to this value.
        between_captures(|| _ = unsafe { sys::cuMemFree_v2(self.address) });
    }
}

impl Memory {
    /// Allocates zeroed memory of a window.
    fn new(link: &Arc<Direct>, (rank, name): (usize, u64), bytes: usize) -> Result<Memory> {
        let device = &link.device;
        let bytes = bytes.max(1).next_multiple_of(if link.is_alone() { 16 } else { BLOCK });
        device.require_memory("messages between GPUs", bytes as u64)?;
        device.enter()?;
        let mut address = 0;
        // SAFETY: the calls write an address, and zeros to the memory at it.
        unsafe {
            call("cuMemAlloc", sys::cuMemAlloc_v2(&mut address, bytes))?;
            let memory = Memory { link: link.clone(), rank, name, address, bytes, opened: Vec::new() };
            let stream = device.stream().cu_stream();
            call("cuMemsetD8Async", sys::cuMemsetD8Async(address, 0, bytes, stream))?;
            device.synchronize()?;
            Ok(memory)
        }
    }

    /// Returns the handle by which other processes open the memory.
    fn handle(&self) -> Result<[u64; 8]> {
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        if !self.link.is_alone() {
            self.link.device.enter()?;
            // SAFETY: the call writes the handle.
            call("cuIpcGetMemHandle", unsafe { sys::cuIpcGetMemHandle(&mut handle, self.address) })?;
        }
        let bytes = handle.reserved.map(|byte| byte as u8);
        Ok(std::array::from_fn(|word| u64::from_ne_bytes(std::array::from_fn(|i| bytes[8 * word + i]))))
    }

    /// Opens memory of another process.
    fn open(&mut self, handle: [u64; 8]) -> Result<u64> {
        self.link.device.enter()?;
        let bytes = handle.map(u64::to_ne_bytes);
        let handle = sys::CUipcMemHandle {
            reserved: std::array::from_fn(|i| bytes[i / 8][i % 8] as std::ffi::c_char),
        };
        let mut address = 0;
        let lazily = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        // SAFETY: the call writes an address.
        call("cuIpcOpenMemHandle", unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, handle, lazily) })?;
        self.opened.push(address);
        Ok(address)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let device = &self.link.device;
        if bind(device.stream().context()).is_err() {
            return;
        }
        between_captures(|| {
            for address in &self.opened {
                // SAFETY: opened in `open`, closed once.
                let _ = unsafe { sys::cuIpcCloseMemHandle(*address) };
            }
        });
        let unused = Unused { device: device.clone(), address: self.address };
        match self.link.is_alone() {
            true => unused.free(),
            // Another process may still have opened it.
            false => UNUSED.push(self.rank, self.name, unused),
        }
    }
}

impl Window {
    /// Allocates `bytes` bytes on this rank, and any number of bytes on the others. All ranks
    /// call this together.
    pub(crate) fn new(link: &Arc<Direct>, ranks: &Ranks, bytes: usize) -> Result<Window> {
        if !link.is_alone() {
            UNUSED.unused(ranks)?.into_iter().for_each(Unused::free);
        }
        let place = (ranks.rank(), ranks.list_of_first(vec![next_name()])?[0]);
        let memory = Memory::new(link, place, bytes).and_then(|memory| Ok((memory.handle()?, memory)));
        let (handle, mut memory) = ranks.agreed(memory)?;
        let addresses = ranks.all_of(memory.address);
        let handles = handle.map(|word| ranks.all_of(word));
        let opened: Result<Vec<u64>> = (0..ranks.size())
            .map(|rank| match link.here[rank] {
                true => Ok(addresses[rank]),
                false => memory.open(std::array::from_fn(|word| handles[word][rank])),
            })
            .collect();
        let of_ranks = ranks.agreed(opened)?;
        // SAFETY: the memory lives as long as the window, which also recordings keep; other ranks write
        // it as its kernels expect.
        let own = unsafe { link.device.lent(memory.address, memory.bytes / size_of::<u64>()) };
        let own = ranks.agreed(own)?;
        Ok(Window { own, held: Arc::new(Held::share(memory, ranks)), of_ranks })
    }

    /// Returns the memory of this rank.
    pub(crate) fn own(&self) -> &CudaArray<u64> {
        &self.own
    }

    /// Returns the addresses of the memory of all ranks.
    pub(crate) fn of_ranks(&self) -> &[u64] {
        &self.of_ranks
    }

    /// Returns the bytes of this rank.
    pub(crate) fn bytes(&self) -> u64 {
        self.held.own.bytes as u64
    }

    /// Returns the memory, for a recording to keep.
    pub(crate) fn kept(&self) -> Kept {
        Arc::clone(&self.held) as Kept
    }
}
