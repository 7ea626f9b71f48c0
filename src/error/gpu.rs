//! Errors of GPUs and their libraries.

use std::path::PathBuf;

/// A GPU or one of its libraries cannot be used as requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// A shared library that CUDA needs is missing.
    #[error("{library} was not found (looked for {tried}); {hint}")]
    LibraryMissing {
        /// The library.
        library: &'static str,
        /// File names and folders tried.
        tried: String,
        /// How to install it.
        hint: &'static str,
    },
    /// A shared library was found but cannot be used.
    #[error("{library} at {path} cannot be used: {reason}", path = path.display())]
    LibraryUnusable {
        /// The library.
        library: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The version of a library lacks a function.
    #[error("this version of {library} has no {function}; {hint}")]
    FunctionMissing {
        /// The library.
        library: &'static str,
        /// The missing function.
        function: &'static str,
        /// An alternative.
        hint: &'static str,
    },
    /// The driver works, but there is no GPU with this index.
    #[error("no GPU {index}: the CUDA driver lists {count}; check nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoSuchGpu {
        /// The requested index.
        index: usize,
        /// Number of GPUs.
        count: usize,
    },
    /// A vector or scalars of one device were passed to another.
    #[error(
        "vectors of another device were passed to {device}; create them on the device that computes with them"
    )]
    OtherDevice {
        /// The device that computes.
        device: String,
    },
    /// Memory was allocated while a step was recorded.
    #[error(
        "{what} cannot be allocated while a step is recorded; allocate it before the recording, in the workspace of the step"
    )]
    AllocatedInStep {
        /// The purpose of the memory.
        what: &'static str,
    },
    /// A copy between host and device, a recording or a replay was started while a step was recorded.
    #[error(
        "a recorded step may contain only sweeps and products: copy and record other steps before or after the recording"
    )]
    CopiedInStep,
    /// A call into CUDA or one of its libraries failed.
    #[error("{call} failed: {message}")]
    Cuda {
        /// The call.
        call: &'static str,
        /// The error of the call.
        message: String,
    },
    /// A kernel failed to compile.
    #[error("kernel {kernel} does not compile for {arch}:\n{log}")]
    KernelCompile {
        /// The kernel's name.
        kernel: String,
        /// The architecture.
        arch: String,
        /// The compiler's log.
        log: String,
    },
    /// There is not enough device memory.
    #[error("{what} needs {needed} of GPU memory{reserved} but {free} are free; {hint}", needed = in_words(*needed),
        reserved = and_reserved(*reserved), free = in_words(*free), hint = hint.as_deref().unwrap_or(USE_CPU))]
    DeviceMemory {
        /// The allocation.
        what: &'static str,
        /// Bytes requested.
        needed: u64,
        /// Bytes that the rest of the solve needs in addition.
        reserved: u64,
        /// Bytes free.
        free: u64,
        /// A specific remedy, if one is known.
        hint: Option<String>,
    },
}

/// The remedy without a specific hint.
const USE_CPU: &str = "the CPU uses main memory";

/// Formats a number of bytes with a decimal unit.
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
