//! The choice of device and backend for a request, and handles of open devices.

use super::gpus;
use super::shared::Shared;
use crate::backend::{Choice, Host, REGISTRY, nearest_on_cpu};
use crate::device::cuda::Pages;
use crate::device::{Cpu, Cuda, Ranks, cuda};
use crate::error::{Error, Result};
use crate::observe::profile::{self, Phase};
use crate::parallel::lock;
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

/// Larger thread counts are refused as mistakes.
const MOST_THREADS: usize = 1024;

/// The backend that runs many iterations in one kernel launch.
const BURST: &str = "burst";

/// A device by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The CPU with this number of threads, or with one thread per core.
    Cpu(Option<usize>),
    /// The GPU with this index.
    Cuda(usize),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Cpu(None) => f.write_str("cpu, a thread for each core"),
            DeviceName::Cpu(Some(threads)) => write!(f, "cpu, threads: {threads}"),
            DeviceName::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

/// The requested device, backend, preconditioner and precision, before
/// [`settle`](Request::settle) checks them.
#[derive(Clone, Debug)]
pub struct Request {
    /// `auto`, `cpu`, `cuda` or `cuda:N`; for several GPUs, which share the rows of a system, a ranking or a
    /// chain, `cuda:0,1` or `cuda:all`.
    pub device: String,
    /// A backend by name, with its parameters: `auto`, `vector:threads=8`.
    pub backend: String,
    /// The preconditioner.
    pub precond: Preconditioner,
    /// The precision of matrix and vectors.
    pub precision: Precision,
    /// CPU threads; by default one per core that this process may use.
    pub threads: Option<usize>,
    /// Number of right-hand sides, or of other vectors, that are multiplied at once; 1 by default.
    pub columns: usize,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            device: "auto".to_owned(),
            backend: "auto".to_owned(),
            precond: Preconditioner::NONE,
            precision: Precision::F64,
            threads: None,
            columns: 1,
        }
    }
}

/// Checks that a GPU is usable, which loads its driver.
fn usable(index: usize) -> Result<()> {
    let _span = profile::begin(Phase::Open);
    cuda::usable(index)
}

/// A request that this machine can serve.
#[derive(Clone)]
pub struct Settled {
    /// The device, or the first of several.
    pub device: DeviceName,
    /// The devices that share the rows of the matrix, if there are several; otherwise empty.
    pub shares: Vec<DeviceName>,
    /// The reason for the device, if it was chosen automatically.
    pub device_because: Option<String>,
    /// The backend; `auto` is resolved once the matrix is known.
    pub backend: Choice,
}

/// Checks that the number of threads is between 1 and `MOST_THREADS`.
pub(crate) fn check_threads(threads: Option<usize>) -> Result<()> {
    match threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
        Some(threads) => {
            Err(Error::setting("threads", threads, format!("it must lie between 1 and {MOST_THREADS}")))
        }
        None => Ok(()),
    }
}

/// A method that runs in f64 on the CPU and needs no backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostMethod {
    /// The name of the method.
    pub name: &'static str,
    /// Whether it runs on one thread.
    pub one_thread: bool,
}

impl HostMethod {
    fn place(self) -> &'static str {
        if self.one_thread { "one thread of the CPU" } else { "the CPU" }
    }

    /// Returns the error for a setting that the method does not support.
    pub(super) fn refuse(self, setting: &'static str, value: impl fmt::Display) -> Error {
        let why = format!("{} runs in f64 on {}, and needs no backend", self.name, self.place());
        Error::setting(setting, value, why)
    }
}

impl Request {
    /// Checks the request against the backend registry, and chooses the device. Looks for a GPU only if the
    /// request leaves the choice open.
    pub fn settle(&self) -> Result<Settled> {
        check_threads(self.threads)?;
        let shares: Vec<_> = gpus::listed(&self.device)?.into_iter().map(DeviceName::Cuda).collect();
        let (device, device_because) = match shares.first() {
            Some(first) => (*first, None),
            None => self.choose_device()?,
        };
        let shares = if shares.len() > 1 { shares } else { Vec::new() };
        if matches!(device, DeviceName::Cuda(_)) && self.precond.needs_cpu() {
            return Err(Error::CpuOnly { precond: self.precond.name() });
        }
        Ok(Settled { device, shares, device_because, backend: self.backend_on(device)? })
    }

    /// Checks the request for a method that runs in f64 on the CPU and needs no backend.
    pub(crate) fn settle_on_host(&self, method: HostMethod) -> Result<Settled> {
        check_threads(self.threads)?;
        if !matches!(self.device.as_str(), "auto" | "cpu") {
            return Err(method.refuse("device", &self.device));
        }
        if self.backend != "auto" {
            return Err(method.refuse("backend", &self.backend));
        }
        if self.precision != Precision::F64 {
            return Err(method.refuse("precision", self.precision.name()));
        }
        let device = DeviceName::Cpu(if method.one_thread { Some(1) } else { self.threads });
        let device_because = Some(format!("{} runs on {}", method.name, method.place()));
        Ok(Settled { device, shares: Vec::new(), device_because, backend: self.backend_on(device)? })
    }

    fn backend_on(&self, device: DeviceName) -> Result<Choice> {
        let backend = match device {
            DeviceName::Cpu(_) => Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, &self.backend)?,
            DeviceName::Cuda(_) => Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, &self.backend)?,
        };
        backend.check_precision(self.precision)?;
        if self.columns > 1 && !backend.is_auto() {
            backend.entry.check_columns(self.columns)?;
        }
        // One launch runs many iterations, and its kernel has only sweeps and products with one matrix.
        if backend.entry.name == BURST && !self.precond.is_sweeps() {
            return Err(Error::Unsupported {
                backend: BURST,
                device: backend.entry.device(),
                what: format!("preconditioner {}", self.precond),
                hint: "use preconditioner jacobi, or backend auto".to_owned(),
            });
        }
        Ok(backend)
    }

    /// Returns the requested device, or for `auto` the best device for backend and
    /// preconditioner with the reason.
    fn choose_device(&self) -> Result<(DeviceName, Option<String>)> {
        let cpu = DeviceName::Cpu(self.threads);
        match self.device.as_str() {
            "cpu" => return Ok((cpu, None)),
            "cuda" => return Ok((DeviceName::Cuda(0), None)),
            "auto" => {}
            other => {
                let index = other.strip_prefix("cuda:").and_then(|n| n.parse().ok());
                let index = index.ok_or_else(|| {
                    let devices = "the devices are auto, cpu, cuda and cuda:N, and lists of GPUs such as cuda:0,1 or cuda:all";
                    Error::setting("device", other, devices)
                })?;
                return Ok((DeviceName::Cuda(index), None));
            }
        }
        let name = self.backend.split(':').next().unwrap_or_default();
        let kinds: Vec<_> = REGISTRY.iter().filter(|e| e.name == name).map(|e| e.device()).collect();
        match kinds[..] {
            // A backend of only one kind of device decides the device.
            ["cpu"] => Ok((cpu, Some(format!("{name} is a backend of the cpu")))),
            ["cuda"] => Ok((DeviceName::Cuda(0), Some(format!("{name} is a backend of cuda")))),
            _ if self.precond.needs_cpu() => {
                Ok((cpu, Some(format!("{} runs on the CPU only so far", self.precond.name()))))
            }
            _ => Ok(match usable(0) {
                Ok(()) => (DeviceName::Cuda(0), Some("a GPU and its libraries are usable".to_owned())),
                Err(e) => {
                    if cuda::count().is_ok_and(|count| count > 0) {
                        log::warn!("running on the CPU, as the GPU cannot be used: {e}");
                    }
                    (cpu, Some(format!("no GPU can be used: {e}")))
                }
            }),
        }
    }
}

impl Settled {
    /// Returns all devices: the one, or those that share the rows of the matrix.
    pub fn devices(&self) -> &[DeviceName] {
        if self.shares.is_empty() { std::slice::from_ref(&self.device) } else { &self.shares }
    }

    /// Returns the choice for one of the devices that share the solve.
    pub(super) fn of_share(&self, rank: usize) -> Settled {
        Settled { device: self.shares[rank], shares: Vec::new(), ..self.clone() }
    }

    /// Fails if there are several devices. `what` runs on one.
    pub(crate) fn require_one(&self, what: &str) -> Result<()> {
        if self.shares.is_empty() {
            return Ok(());
        }
        let reason = format!("{what} on one device; name one, such as {}", self.device);
        Err(Error::setting("device", self.names(), reason))
    }

    /// Returns the names of all devices, with commas.
    pub(crate) fn names(&self) -> String {
        self.devices().iter().map(DeviceName::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Checks that the chosen GPUs are usable, before a matrix is read for them. The error names the
    /// most similar CPU backends.
    pub(crate) fn check_device(&self) -> Result<()> {
        self.devices().iter().try_for_each(|device| {
            let DeviceName::Cuda(index) = *device else { return Ok(()) };
            usable(index).map_err(|source| {
                let near: Vec<_> = nearest_on_cpu(self.backend.entry).into_iter().take(2).collect();
                if near.is_empty() { source } else { Error::NoDevice { source: Box::new(source), near } }
            })
        })
    }
}

/// An open device. Clones share the device; one solve at a time runs on it.
///
/// A solve without a handle uses the open shared device of the requested name, if there is one. GPU kernels
/// are then loaded once, and several thread pools do not compete for the cores. A shared GPU stays open until
/// the process ends. A solve waits while another thread solves on the same device; its limits do not end that
/// wait. A solve inside another solve, as in an observer, needs a device from [`open`](DeviceHandle::open).
#[derive(Clone)]
pub struct DeviceHandle(pub(super) Opened);

#[derive(Clone)]
pub(super) enum Opened {
    Cpu(Arc<Shared<Cpu>>),
    Cuda(Arc<Shared<Cuda>>),
}

impl fmt::Debug for DeviceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// The name of a device that may be shared, and whether it is for solves on several GPUs.
type SharedName = (DeviceName, bool);

/// Where a shared device is kept while it is open.
type Place = Arc<Mutex<Option<Kept>>>;

/// The devices that may be shared. The place of each has a lock of its own, so that several
/// GPUs open at the same time.
static OPEN: Mutex<Vec<(SharedName, Place)>> = Mutex::new(Vec::new());

/// A shared device. Threads of a CPU device end with its last user. A GPU stays open until the process ends:
/// to close it and open it again, with kernels and page-locked memory, takes longer than many solves.
enum Kept {
    Cpu(Weak<Shared<Cpu>>),
    Cuda(Arc<Shared<Cuda>>),
}

impl Kept {
    fn of(device: &Opened) -> Kept {
        match device {
            Opened::Cpu(device) => Kept::Cpu(Arc::downgrade(device)),
            Opened::Cuda(device) => Kept::Cuda(Arc::clone(device)),
        }
    }

    /// Returns the device if it can be used. A GPU that has failed must be opened again.
    fn get(&self) -> Option<Opened> {
        match self {
            Kept::Cpu(device) => device.upgrade().map(Opened::Cpu),
            Kept::Cuda(device) => {
                let failed = device.try_acquire().is_some_and(|device| device.has_failed());
                (!failed).then(|| Opened::Cuda(Arc::clone(device)))
            }
        }
    }
}

impl DeviceHandle {
    /// Starts the CPU threads, or opens a GPU, for this handle and its clones only.
    pub fn open(name: DeviceName) -> Result<DeviceHandle> {
        let _span = profile::begin(Phase::Open);
        Ok(DeviceHandle(match name {
            DeviceName::Cpu(threads) => Opened::Cpu(Shared::new(Cpu::new(threads)?)),
            DeviceName::Cuda(index) => Opened::Cuda(Shared::new(Cuda::new(index)?)),
        }))
    }

    /// Returns the shared device of that name, and opens it first if needed. A CPU device with one thread is
    /// never shared, so that solves on different threads run concurrently.
    pub(crate) fn shared(name: DeviceName) -> Result<DeviceHandle> {
        if name == DeviceName::Cpu(Some(1)) {
            return DeviceHandle::open(name);
        }
        DeviceHandle::shared_as((name, false))
    }

    /// Returns the device of a rank of a solve on several devices. Such solves share a GPU among
    /// themselves, as they follow each other, and not with other solves: a rank must not wait for a device
    /// while others wait for the rank.
    pub(super) fn of_rank(name: DeviceName) -> Result<DeviceHandle> {
        match name {
            DeviceName::Cpu(_) => DeviceHandle::open(name),
            DeviceName::Cuda(_) => DeviceHandle::shared_as((name, true)),
        }
    }

    fn shared_as(name: SharedName) -> Result<DeviceHandle> {
        let _span = profile::begin(Phase::Open);
        let place = {
            let mut open = lock(&OPEN);
            let found = open.iter().find(|(other, _)| *other == name).map(|(_, place)| Arc::clone(place));
            found.unwrap_or_else(|| {
                let place = Place::default();
                open.push((name, Arc::clone(&place)));
                place
            })
        };
        // Another thread may be opening it.
        let mut kept = lock(&place);
        if let Some(device) = kept.as_ref().and_then(Kept::get) {
            return Ok(DeviceHandle(device));
        }
        // A GPU that has failed is closed once nothing else has it open; until then it fails again.
        *kept = None;
        let opened = DeviceHandle::open(name.0)?;
        *kept = Some(Kept::of(&opened.0));
        Ok(opened)
    }

    /// Makes the memory of a GPU ready for uploads, with these pages for its buffers.
    pub(super) fn warm_up(&self, pages: Pages) -> Result<()> {
        match &self.0 {
            Opened::Cpu(_) => Ok(()),
            Opened::Cuda(device) => {
                // A solve that has begun meanwhile need not wait.
                let device = device.acquire()?.clone();
                device.warm_up(pages)
            }
        }
    }

    /// Returns the name of this device. Fails if the request names another device.
    pub(super) fn instead_of(&self, requested: &str) -> Result<String> {
        let same = requested == self.name() || (requested == "cuda" && self.name() == "cuda:0");
        if requested != "auto" && !same {
            let reason = format!("the solve has the open device {} already", self.name());
            return Err(Error::setting("device", requested, reason));
        }
        Ok(self.name().to_owned())
    }

    /// Returns the name of the device in requests: `cpu`, `cuda:0`.
    pub fn name(&self) -> &str {
        match &self.0 {
            Opened::Cpu(device) => &device.name,
            Opened::Cuda(device) => &device.name,
        }
    }

    /// Describes the device, or the devices of all ranks, of which this is one.
    pub(super) fn describe_over(&self, ranks: Option<&Ranks>) -> String {
        ranks.map_or_else(|| self.describe().to_owned(), |ranks| self.describe_parts(ranks, ""))
    }

    /// Describes the devices of all ranks: `2 ranks, each a GPU (NVIDIA H200)`. `parts` describes their rows.
    pub(super) fn describe_parts(&self, ranks: &Ranks, parts: &str) -> String {
        let each = match (&self.0, self.describe().split_once(' ')) {
            (Opened::Cuda(_), Some((_, hardware))) => format!("a GPU {hardware}"),
            _ => self.describe().to_owned(),
        };
        format!("{} ranks{parts}, each {each}", ranks.size())
    }

    /// Returns the name with the hardware: `cpu (2 threads)`.
    pub fn describe(&self) -> &str {
        match &self.0 {
            Opened::Cpu(device) => &device.described,
            Opened::Cuda(device) => &device.described,
        }
    }
}

/// Evaluates an expression with the types `$D` of an open device and `$T` of the vector
/// entries of a precision.
macro_rules! on_device {
    ($handle:expr, $precision:expr, |$device:ident, $D:ident, $T:ident| $body:expr) => {
        match (&$handle.0, $precision) {
            ($crate::engine::device::Opened::Cpu($device), $crate::scalar::Precision::F32) => {
                type $D = $crate::device::Cpu;
                type $T = f32;
                $body
            }
            ($crate::engine::device::Opened::Cpu($device), _) => {
                type $D = $crate::device::Cpu;
                type $T = f64;
                $body
            }
            ($crate::engine::device::Opened::Cuda($device), $crate::scalar::Precision::F32) => {
                type $D = $crate::device::Cuda;
                type $T = f32;
                $body
            }
            ($crate::engine::device::Opened::Cuda($device), _) => {
                type $D = $crate::device::Cuda;
                type $T = f64;
                $body
            }
        }
    };
}

pub(super) use on_device;
