//! NVRTC, the CUDA run-time compiler: this crate finds, loads and calls the library itself.
//!
//! Kernels are compiled for the GPU at hand when they are first needed, so building this crate takes no CUDA
//! toolkit and running it on a CPU takes no CUDA at all. A missing or broken library is an [`Error`], never a
//! panic. Any release from CUDA 11.2 on is accepted, from any folder (see `Nvrtc::load`).

mod functions;
mod search;

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};

use crate::error::{Error, GpuError, Result};
use functions::{Functions, Output, OutputSize, Raw};

/// The architecture of an H100, H200 or GH200.
const HOPPER: u32 = 90;
/// The library's name in errors.
const LIBRARY: &str = "NVRTC (the CUDA run-time compiler)";

/// A compiled kernel source, as the CUDA driver loads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// Machine code of one architecture: loads without further compiling.
    Cubin(Vec<u8>),
    /// Portable assembly text, without a closing NUL. The driver compiles it for a GPU that
    /// this NVRTC is too old for.
    Ptx(Vec<u8>),
}

#[cfg(test)]
impl Image {
    /// Returns the bytes of either kind.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Image::Cubin(bytes) | Image::Ptx(bytes) => bytes,
        }
    }
}

/// The loaded compiler. It stays in the process once loaded; threads may compile with it at the same time.
#[derive(Debug)]
pub(crate) struct Nvrtc {
    functions: Functions,
    path: PathBuf,
    version: (i32, i32),
    architectures: Vec<u32>,
}

impl Nvrtc {
    /// Binds the functions of a library that was just loaded, and reads its version and architectures. The
    /// error is only the reason: the caller adds the place.
    fn bind(library: libloading::os::unix::Library, path: PathBuf) -> std::result::Result<Nvrtc, String> {
        let functions = Functions::bind(&library);
        // Unloading would run NVRTC's destructors while threads that it started may still run. So the library
        // is never unloaded, and every function pointer taken from it stays valid.
        std::mem::forget(library);
        let functions = functions?;
        let version = functions.version()?;
        let architectures = functions.architectures()?;
        if architectures.is_empty() {
            return Err("it supports no architecture".to_owned());
        }
        Ok(Nvrtc { functions, path, version, architectures })
    }

    /// Returns the major and minor version, such as (12, 9).
    pub(crate) fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Returns the library file that is in use.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the architectures that the library compiles for, ascending: 75, 80, 86, 90 and so on.
    pub(crate) fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    /// Compiles `source` as C++17 for the GPUs of architecture `arch` (90 for `sm_90`), with
    /// the caller's options.
    ///
    /// `name` is the file name in the compiler's messages. The image is a CUBIN. If this NVRTC does not
    /// support the architecture yet, the image is PTX of the newest supported architecture below it.
    pub(crate) fn compile(&self, name: &str, source: &str, options: &[String], arch: u32) -> Result<Image> {
        self.try_compile(name, source, options, arch).map_err(|log| {
            Error::Gpu(GpuError::KernelCompile { kernel: name.to_owned(), arch: format!("sm_{arch}"), log })
        })
    }

    fn try_compile(
        &self,
        name: &str,
        source: &str,
        options: &[String],
        arch: u32,
    ) -> std::result::Result<Image, String> {
        let target = self.target(arch)?;
        let mut all = vec![target.option(self.version), "--std=c++17".to_owned()];
        if self.version >= MINIMAL {
            all.push("-minimal".to_owned());
        }
        all.extend_from_slice(options);
        let program = Program::create(&self.functions, name, source)?;
        program.compile(&all)?;
        let functions = &self.functions;
        match target {
            Target::Machine(_) => {
                Ok(Image::Cubin(program.output("a CUBIN", functions.cubin_size, functions.cubin)?))
            }
            Target::Portable(_) => {
                let mut text = program.output("PTX", functions.ptx_size, functions.ptx)?;
                text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
                Ok(Image::Ptx(text))
            }
        }
    }

    /// Returns a target that a GPU of architecture `arch` can run.
    fn target(&self, arch: u32) -> std::result::Result<Target, String> {
        target(&self.architectures, arch).ok_or_else(|| {
            let (major, minor) = self.version;
            let known: Vec<_> = self.architectures.iter().map(|arch| format!("sm_{arch}")).collect();
            format!(
                "NVRTC {major}.{minor} at {} no longer supports this architecture; it compiles for {}. Install an older NVRTC, \
                 and set SOLVER_NVRTC to its folder",
                self.path.display(),
                known.join(", ")
            )
        })
    }
}

/// From this version on, the compiler leaves out the declarations of textures and of its run-time library. No
/// kernel uses them, and a short kernel compiles in about a fifth less time.
const MINIMAL: (i32, i32) = (13, 0);

/// The target of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Machine code of this architecture.
    Machine(u32),
    /// PTX of this architecture, which every later GPU accepts.
    Portable(u32),
}

impl Target {
    /// Returns the option of a release. From CUDA 12 on, machine code for Hopper may use the instructions
    /// that no later architecture has.
    fn option(self, version: (i32, i32)) -> String {
        match self {
            Target::Machine(HOPPER) if version >= (12, 0) => format!("--gpu-architecture=sm_{HOPPER}a"),
            Target::Machine(arch) => format!("--gpu-architecture=sm_{arch}"),
            Target::Portable(arch) => format!("--gpu-architecture=compute_{arch}"),
        }
    }
}

/// Picks a target from the ascending list `known`; `None` if every known architecture is newer than the GPU.
fn target(known: &[u32], arch: u32) -> Option<Target> {
    match known.binary_search(&arch) {
        Ok(_) => Some(Target::Machine(arch)),
        Err(above) => known[..above].last().map(|&below| Target::Portable(below)),
    }
}

/// One NVRTC program, destroyed on drop. It never leaves the thread that made it.
struct Program<'a> {
    functions: &'a Functions,
    raw: Raw,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from nvrtcCreateProgram, and this is the one place that destroys it.
        let status = unsafe { (self.functions.destroy)(&mut self.raw) };
        if status != 0 {
            log::debug!("nvrtcDestroyProgram: {}", self.functions.message(status));
        }
    }
}

impl<'a> Program<'a> {
    fn create(
        functions: &'a Functions,
        name: &str,
        source: &str,
    ) -> std::result::Result<Program<'a>, String> {
        let name = c_string("the kernel's name", name)?;
        let source = c_string("the kernel's source", source)?;
        let mut raw: Raw = std::ptr::null_mut();
        // SAFETY: both strings end in NUL and outlive the call (NVRTC copies them); with 0 headers the two
        // arrays of headers are not read, so they may be null.
        let status = unsafe {
            (functions.create)(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        functions.check("nvrtcCreateProgram", status)?;
        Ok(Program { functions, raw })
    }

    /// Compiles; the error is the compiler's log.
    fn compile(&self, options: &[String]) -> std::result::Result<(), String> {
        let options: Vec<CString> = options
            .iter()
            .map(|option| c_string("an option", option))
            .collect::<std::result::Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|_| "too many options".to_owned())?;
        // SAFETY: `raw` is alive; `pointers` holds `count` strings that end in NUL and outlive the call.
        let status = unsafe { (self.functions.compile)(self.raw, count, pointers.as_ptr()) };
        let text = self.log();
        match (self.functions.check("nvrtcCompileProgram", status), text.is_empty()) {
            (Ok(()), true) => Ok(()),
            (Ok(()), false) => {
                log::debug!("NVRTC: {text}");
                Ok(())
            }
            (Err(_), false) if status == functions::ERROR_COMPILATION => Err(text),
            (Err(message), true) => Err(message),
            (Err(message), false) => Err(format!("{message}\n{text}")),
        }
    }

    /// Returns the compiler's log, empty if there is none or it cannot be read.
    fn log(&self) -> String {
        match self.output("a log", self.functions.log_size, self.functions.log) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned(),
            Err(_) => String::new(),
        }
    }

    /// Fetches one of the outputs: its size, then that many bytes.
    fn output(&self, what: &str, size_of: OutputSize, copy: Output) -> std::result::Result<Vec<u8>, String> {
        let mut size = 0_usize;
        // SAFETY: `raw` is alive, and `size` may be written.
        let status = unsafe { size_of(self.raw, &mut size) };
        self.functions.check(what, status)?;
        if size == 0 {
            return Err(format!("NVRTC returned no output instead of {what}"));
        }
        let mut bytes = vec![0_u8; size];
        // SAFETY: `raw` is alive, and `bytes` has room for the `size` bytes that NVRTC reported.
        let status = unsafe { copy(self.raw, bytes.as_mut_ptr().cast()) };
        self.functions.check(what, status)?;
        Ok(bytes)
    }
}

/// Converts `text` to a C string, which cannot hold a NUL inside.
fn c_string(what: &str, text: &str) -> std::result::Result<CString, String> {
    CString::new(text).map_err(|error| format!("{what} has a NUL at byte {}", error.nul_position()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_architecture_gets_machine_code_and_a_newer_one_gets_ptx_of_the_last_known_below() {
        let known = [75, 80, 90, 120];
        assert_eq!(target(&known, 75), Some(Target::Machine(75)));
        assert_eq!(target(&known, 120), Some(Target::Machine(120)));
        assert_eq!(target(&known, 130), Some(Target::Portable(120)));
        assert_eq!(target(&known, 103), Some(Target::Portable(90)));
        assert_eq!(target(&known, 70), None);
    }

    #[test]
    fn a_nul_inside_a_string_is_reported_with_its_position() {
        assert_eq!(c_string("an option", "a\0b"), Err("an option has a NUL at byte 1".to_owned()));
    }

    #[test]
    fn the_compiler_may_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Nvrtc>();
    }
}
