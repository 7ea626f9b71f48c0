//! NCCL: the exchange of data between GPUs, on their streams. This crate finds and loads the
//! library at run time.
//!
//! Its few functions are bound here by name: their signatures are the same in all releases of NCCL 2.

use crate::device::cuda::driver::bind;
use crate::device::cuda::libraries::{Hint, Wanted};
use crate::device::cuda::{Cuda, between_captures};
use crate::device::distributed::Connection;
use crate::device::{Device, Ranks};
use crate::error::{Error, GpuError, Result};
use crate::parallel::lock;
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

const LIBRARY: Wanted = Wanted {
    name: "NCCL",
    file: "libnccl.so",
    names: &["libnccl.so.2", "libnccl.so"],
    wheel: "nccl",
    needs: &[],
    hint: Hint {
        cuda12: "pip install nvidia-nccl-cu12 brings it; or put the folder of libnccl.so.2 on LD_LIBRARY_PATH, or use one GPU",
        later: "pip install nvidia-nccl-cu13 brings it; or put the folder of libnccl.so.2 on LD_LIBRARY_PATH, or use one GPU",
        either: "pip install nvidia-nccl-cu13 (nvidia-nccl-cu12 for drivers of CUDA 12) brings it; or put the folder of \
                 libnccl.so.2 on LD_LIBRARY_PATH, or use one GPU",
    },
};

/// `ncclFloat32` and `ncclFloat64`.
const SINGLE: c_int = 7;
const DOUBLE: c_int = 8;

type RawCommunicator = *mut c_void;
type Stream = *mut c_void;

/// `ncclUniqueId`: the address at which the first rank waits for the others.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

struct Functions {
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    init: unsafe extern "C" fn(*mut RawCommunicator, c_int, UniqueId, c_int) -> c_int,
    abort: unsafe extern "C" fn(RawCommunicator) -> c_int,
    destroy: unsafe extern "C" fn(RawCommunicator) -> c_int,
    all_gather:
        unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, RawCommunicator, Stream) -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, RawCommunicator, Stream) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, RawCommunicator, Stream) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
}

impl Functions {
    fn bind(library: &Library) -> std::result::Result<Functions, libloading::Error> {
        // SAFETY: these are the signatures of NCCL's documentation.
        unsafe {
            Ok(Functions {
                version: *library.get(b"ncclGetVersion")?,
                error: *library.get(b"ncclGetErrorString")?,
                unique_id: *library.get(b"ncclGetUniqueId")?,
                init: *library.get(b"ncclCommInitRank")?,
                abort: *library.get(b"ncclCommAbort")?,
                destroy: *library.get(b"ncclCommDestroy")?,
                all_gather: *library.get(b"ncclAllGather")?,
                send: *library.get(b"ncclSend")?,
                receive: *library.get(b"ncclRecv")?,
                group_start: *library.get(b"ncclGroupStart")?,
                group_end: *library.get(b"ncclGroupEnd")?,
            })
        }
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a static string for every status.
        let text = unsafe { CStr::from_ptr((self.error)(status)) };
        let message = format!("{} (NCCL {})", text.to_string_lossy(), self.version_text());
        Err(GpuError::Cuda { call, message }.into())
    }

    fn version_text(&self) -> String {
        let mut version = 0;
        // SAFETY: the call writes one integer.
        match unsafe { (self.version)(&mut version) } {
            0 => format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100),
            _ => "of unknown version".to_owned(),
        }
    }
}

/// Loads NCCL once and returns its functions. The error says how to install the library.
fn library() -> Result<&'static Functions> {
    static LOADED: OnceLock<Functions> = OnceLock::new();
    LIBRARY.functions(&LOADED, Functions::bind, &LIBRARY.hint)
}

/// Returns the version of the library.
pub(crate) fn describe_library() -> Result<String> {
    library().map(Functions::version_text)
}

/// An array of GPU memory that is sent to a rank or received from one.
pub(crate) struct Message {
    pub rank: usize,
    pub address: u64,
    pub elements: usize,
}

/// The GPUs of all ranks, connected. Operations are enqueued on a stream beside that of the device, so that
/// kernels and messages overlap.
pub(crate) struct Nccl {
    functions: &'static Functions,
    /// The number of the rank once one has failed.
    raw: Mutex<std::result::Result<Raw, usize>>,
    /// The thread that ends the communicator once a rank has failed.
    aborting: Mutex<Option<JoinHandle<()>>>,
    device: Cuda,
}

/// How long a connection waits for the end of its communicator after a rank has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The handle of a communicator.
struct Raw(RawCommunicator);

// SAFETY: any thread may use a communicator, one at a time; a lock orders them.
unsafe impl Send for Raw {}

impl Nccl {
    /// Connects the GPUs of all ranks, which call this together.
    pub(crate) fn connect(device: &Cuda, ranks: &Ranks) -> Result<Arc<Nccl>> {
        let functions = ranks.agreed(library().and_then(|functions| {
            device.enter()?;
            device.side_stream()?;
            Ok(functions)
        }))?;
        let mut id = UniqueId([0; 128]);
        let made = if ranks.is_first() {
            // SAFETY: the call writes one identifier.
            functions.check("ncclGetUniqueId", unsafe { (functions.unique_id)(&mut id) })
        } else {
            Ok(())
        };
        ranks.agreed(made)?;
        let first = ranks.list_of_first(id.0.to_vec())?;
        id.0.copy_from_slice(&first);
        let mut raw = std::ptr::null_mut();
        let (size, rank) = (ranks.size() as c_int, ranks.rank() as c_int);
        // SAFETY: the call writes one handle; all ranks make it with the same identifier, and
        // the context is current.
        let status = unsafe { (functions.init)(&mut raw, size, id, rank) };
        ranks.agreed(functions.check("ncclCommInitRank", status))?;
        let nccl = Arc::new(Nccl {
            functions,
            raw: Mutex::new(Ok(Raw(raw))),
            aborting: Mutex::default(),
            device: device.clone(),
        });
        let connection: Arc<dyn Connection> = nccl.clone();
        ranks.on_failure(Arc::downgrade(&connection));
        Ok(nccl)
    }

    /// Calls `work` with the handle and the stream beside that of the device.
    fn with<R>(&self, work: impl FnOnce(RawCommunicator, Stream) -> Result<R>) -> Result<R> {
        self.device.enter()?;
        let stream = self.device.side_stream()?.cast();
        match &*lock(&self.raw) {
            Ok(Raw(raw)) => work(*raw, stream),
            Err(rank) => Err(Error::OtherRank { rank: *rank }),
        }
    }

    /// Enqueues the collection of `count` numbers at `from` of every rank, in the order of ranks, at `to`.
    ///
    /// # Safety
    /// There are `count` numbers at `from` on the device of this rank, and `count` for each rank at `to`.
    /// Both live until the work that uses them has ended.
    pub(crate) unsafe fn all_gather(&self, from: u64, to: u64, count: usize) -> Result<()> {
        let (from, to) = (from as *const c_void, to as *mut c_void);
        self.with(|raw, stream| {
            // SAFETY: the caller guarantees the memory; communicator and stream live.
            let status = unsafe { (self.functions.all_gather)(from, to, count, DOUBLE, raw, stream) };
            self.functions.check("ncclAllGather", status)
        })
    }

    /// Enqueues messages: elements of `size` bytes, 4 or 8. Each rank sends what the other one receives.
    ///
    /// # Safety
    /// The messages are memory of this device, and live until the work that uses them has ended.
    pub(crate) unsafe fn exchange(
        &self,
        size: usize,
        sent: impl Iterator<Item = Message>,
        received: impl Iterator<Item = Message>,
    ) -> Result<()> {
        let functions = self.functions;
        let kind = if size == 4 { SINGLE } else { DOUBLE };
        // SAFETY: the functions have these signatures; the caller guarantees the memory; communicator and
        // stream live. A group that has started always ends.
        self.with(|raw, stream| unsafe {
            functions.check("ncclGroupStart", (functions.group_start)())?;
            let enqueue = || {
                for Message { rank, address, elements } in sent {
                    let at = address as *const c_void;
                    let status = (functions.send)(at, elements, kind, rank as c_int, raw, stream);
                    functions.check("ncclSend", status)?;
                }
                for Message { rank, address, elements } in received {
                    let at = address as *mut c_void;
                    let status = (functions.receive)(at, elements, kind, rank as c_int, raw, stream);
                    functions.check("ncclRecv", status)?;
                }
                Ok(())
            };
            let enqueued: Result<()> = enqueue();
            let ended = functions.check("ncclGroupEnd", (functions.group_end)());
            enqueued.and(ended)
        })
    }
}

fn abort(functions: &Functions, device: &Cuda, raw: Raw) {
    if let Err(error) = device.enter() {
        log::warn!("other GPUs may wait for one that has failed: {error}");
        return;
    }
    // SAFETY: made in `connect`, and ended once. Only recorded steps still contain messages of it,
    // and NCCL waits for these.
    let _ = unsafe { (functions.abort)(raw.0) };
}

impl Connection for Nccl {
    /// Ends the work that waits for the rank, in a separate thread: the call returns only after the recorded
    /// steps that contain messages have been freed, and the ranks free those when their solves end.
    fn rank_failed(&self, rank: usize) {
        let Ok(raw) = std::mem::replace(&mut *lock(&self.raw), Err(rank)) else { return };
        let (functions, device) = (self.functions, self.device.clone());
        let abort = move || abort(functions, &device, raw);
        match Builder::new().name("ending NCCL".to_owned()).spawn(abort) {
            Ok(thread) => *lock(&self.aborting) = Some(thread),
            Err(error) => log::warn!("other GPUs may wait for one that has failed: {error}"),
        }
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // The recorded steps of this rank have been freed: they keep the connection. Those of other ranks
        // are freed at the same time.
        if let Some(thread) = lock(&self.aborting).take() {
            let began = Instant::now();
            while !thread.is_finished() && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let raw = std::mem::replace(&mut *lock(&self.raw), Err(0));
        if let (Ok(Raw(raw)), Ok(())) = (raw, bind(self.device.stream().context())) {
            // SAFETY: made in `connect`, destroyed once. Recordings that use the communicator keep it.
            let _ = between_captures(|| unsafe { (self.functions.destroy)(raw) });
        }
    }
}
