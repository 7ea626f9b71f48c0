//! The functions of NVRTC that this crate calls, bound by name.
//!
//! Result codes are plain integers: a newer library may return a code that is unknown today, which a
//! Rust enum could not hold.

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::os::unix::Library;

/// `nvrtcProgram`.
pub(super) type Raw = *mut c_void;
/// `nvrtcGet...Size`.
pub(super) type OutputSize = unsafe extern "C" fn(Raw, *mut usize) -> c_int;
/// `nvrtcGet...`.
pub(super) type Output = unsafe extern "C" fn(Raw, *mut c_char) -> c_int;

/// `NVRTC_ERROR_COMPILATION`: the source is wrong, and the log says how.
pub(super) const ERROR_COMPILATION: c_int = 6;

type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type ArchitectureCount = unsafe extern "C" fn(*mut c_int) -> c_int;
type Architectures = unsafe extern "C" fn(*mut c_int) -> c_int;
type Create = unsafe extern "C" fn(
    *mut Raw,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Raw, c_int, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Raw) -> c_int;

/// The bound functions. They are valid while the library is loaded, and it is never unloaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Functions {
    version: Version,
    error_string: ErrorString,
    architecture_count: ArchitectureCount,
    architectures: Architectures,
    pub(super) create: Create,
    pub(super) compile: Compile,
    pub(super) destroy: Destroy,
    pub(super) log_size: OutputSize,
    pub(super) log: Output,
    pub(super) cubin_size: OutputSize,
    pub(super) cubin: Output,
    pub(super) ptx_size: OutputSize,
    pub(super) ptx: Output,
}

impl Functions {
    /// Binds every function; the error names the one that is missing. The caller must keep `library` loaded.
    pub(super) fn bind(library: &Library) -> Result<Functions, String> {
        // SAFETY: each field's type is the signature that nvrtc.h gives the function of that name,
        // unchanged since CUDA 11.2.
        unsafe {
            Ok(Functions {
                version: symbol(library, c"nvrtcVersion")?,
                error_string: symbol(library, c"nvrtcGetErrorString")?,
                architecture_count: symbol(library, c"nvrtcGetNumSupportedArchs")?,
                architectures: symbol(library, c"nvrtcGetSupportedArchs")?,
                create: symbol(library, c"nvrtcCreateProgram")?,
                compile: symbol(library, c"nvrtcCompileProgram")?,
                destroy: symbol(library, c"nvrtcDestroyProgram")?,
                log_size: symbol(library, c"nvrtcGetProgramLogSize")?,
                log: symbol(library, c"nvrtcGetProgramLog")?,
                cubin_size: symbol(library, c"nvrtcGetCUBINSize")?,
                cubin: symbol(library, c"nvrtcGetCUBIN")?,
                ptx_size: symbol(library, c"nvrtcGetPTXSize")?,
                ptx: symbol(library, c"nvrtcGetPTX")?,
            })
        }
    }

    /// Returns an address inside the library's code.
    pub(super) fn address(&self) -> usize {
        self.version as usize
    }

    /// Returns NVRTC's name for a result code.
    pub(super) fn message(&self, status: c_int) -> String {
        // SAFETY: the function accepts any code.
        let text = unsafe { (self.error_string)(status) };
        if text.is_null() {
            return format!("error {status}");
        }
        // SAFETY: it is not null, so it is a constant string inside the library, which stays loaded.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} ({status})", text.to_string_lossy())
    }

    /// Converts a result code to an error that names the call.
    pub(super) fn check(&self, what: &str, status: c_int) -> Result<(), String> {
        if status == 0 { Ok(()) } else { Err(format!("{what}: {}", self.message(status))) }
    }

    /// Returns the major and minor version.
    pub(super) fn version(&self) -> Result<(i32, i32), String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both integers may be written.
        let status = unsafe { (self.version)(&mut major, &mut minor) };
        self.check("nvrtcVersion", status)?;
        Ok((major, minor))
    }

    /// Returns the supported architectures, ascending.
    pub(super) fn architectures(&self) -> Result<Vec<u32>, String> {
        let mut count = 0;
        // SAFETY: the integer may be written.
        let status = unsafe { (self.architecture_count)(&mut count) };
        self.check("nvrtcGetNumSupportedArchs", status)?;
        let mut list = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for the `count` integers that NVRTC reported.
        let status = unsafe { (self.architectures)(list.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", status)?;
        let mut list: Vec<u32> = list.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect();
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }
}

/// Looks up one function.
///
/// # Safety
///
/// `T` must be the function's pointer type, and must not be used once the library is unloaded.
unsafe fn symbol<T: Copy>(library: &Library, name: &CStr) -> Result<T, String> {
    // SAFETY: the caller guarantees the type.
    match unsafe { library.get::<T>(name) } {
        Ok(function) => Ok(*function),
        Err(_) => {
            Err(format!("it has no function {} (CUDA 11.2 or later is needed)", name.to_string_lossy()))
        }
    }
}
