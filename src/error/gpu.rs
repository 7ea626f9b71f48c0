//! What goes wrong with a GPU and the libraries that serve it.

use std::path::PathBuf;

/// A GPU cannot be used, or not so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// A shared library that CUDA needs is not there.
    #[error("{library} was not found (looked for {tried}); {hint}")]
    LibraryMissing {
        /// What it is.
        library: &'static str,
        /// File names and folders tried.
        tried: String,
        /// How to get it.
        hint: &'static str,
    },
    /// A shared library is there but cannot be used.
    #[error("{library} at {path} cannot be used: {reason}", path = path.display())]
    LibraryUnusable {
        /// What it is.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A library is there, but of a version that does not have a function.
    #[error("{library} of this version has no {function}; {hint}")]
    FunctionMissing {
        /// The library.
        library: &'static str,
        /// What it lacks.
        function: &'static str,
        /// What else there is.
        hint: &'static str,
    },
    /// The driver works but there is no such GPU.
    #[error("no GPU {index}: the CUDA driver lists {count}; check nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoSuchGpu {
        /// The index asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A vector or scalars of one device were given to another.
    #[error(
        "vectors of another device were given to {device}; make them on the device that computes with them"
    )]
    OtherDevice {
        /// The device that computes.
        device: String,
    },
    /// A step that is being recorded asked for memory.
    #[error(
        "{what} cannot be allocated while a step is recorded; allocate it before, in the workspace of the step"
    )]
    AllocatedInStep {
        /// What the memory is for.
        what: &'static str,
    },
    /// A step that is being recorded copied between the host and the device, or recorded or replayed another step.
    #[error(
        "a step that is recorded holds sweeps and products alone: copies and other recordings belong before or after it"
    )]
    CopiedInStep,
    /// A call into CUDA or one of its libraries failed.
    #[error("{call} failed: {message}")]
    Cuda {
        /// The call.
        call: &'static str,
        /// What came back.
        message: String,
    },
    /// A kernel did not compile.
    #[error("kernel {kernel} does not compile for {arch}:\n{log}")]
    KernelCompile {
        /// The kernel's name.
        kernel: String,
        /// The architecture.
        arch: String,
        /// The compiler's log.
        log: String,
    },
    /// Not enough device memory.
    #[error("{what} needs {needed} of GPU memory{reserved} but {free} are free; {hint}", needed = in_words(*needed),
        reserved = and_reserved(*reserved), free = in_words(*free), hint = hint.as_deref().unwrap_or(ELSEWHERE))]
    DeviceMemory {
        /// What was to be allocated.
        what: &'static str,
        /// Bytes asked for.
        needed: u64,
        /// Bytes that will be wanted beside it.
        reserved: u64,
        /// Bytes free.
        free: u64,
        /// What to do, where more is known than that main memory is larger.
        hint: Option<String>,
    },
}

const ELSEWHERE: &str = "the CPU uses main memory";

/// Bytes in a unit that suits them.
pub(crate) fn in_words(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes >= 1e9 => format!("{:.2} GB", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes if bytes >= 1e3 => format!("{:.1} kB", bytes / 1e3),
        bytes => format!("{bytes} bytes"),
    }
}

fn and_reserved(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!(", and the rest of the solve {},", in_words(bytes)) }
}
