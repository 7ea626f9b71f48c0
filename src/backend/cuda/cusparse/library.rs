//! Loading of cuSPARSE, and its version.

use crate::device::cuda::libraries::{GetProperty, Wanted, describe, hint};
use crate::error::{Error, GpuError, Result};
use cudarc::cusparse::sys;

/// The binding searches for the library by name, which succeeds once the library is loaded from any path.
const LIBRARY: Wanted = Wanted {
    name: "cuSPARSE",
    file: "libcusparse.so",
    names: &["libcusparse.so", "libcusparse.so.12"],
    wheel: "cusparse",
    needs: &[("libnvJitLink.so", "nvjitlink")],
    hint: hint!(
        "pip install ",
        "nvidia-cusparse",
        " brings it; or put the folder of the CUDA toolkit's libcusparse on LD_LIBRARY_PATH, or use backend csr"
    ),
};

/// Fails if the library is missing, and says how to install it.
pub fn require_library() -> Result<()> {
    // SAFETY: the call only tries to open the library.
    let present = || unsafe { sys::is_culib_present() };
    if present() {
        return require_functions();
    }
    let tried = match LIBRARY.load() {
        Ok((library, path)) => {
            std::mem::forget(library);
            if present() {
                log::debug!("cuSPARSE loaded from {}", path.display());
                return require_functions();
            }
            format!("{}, which is not version libcusparse.so.12", path.display())
        }
        Err(tried) => tried,
    };
    Err(LIBRARY.missing(tried))
}

/// Returns the version and file of the library.
pub(crate) fn describe_library() -> Result<String> {
    require_library()?;
    // SAFETY: the library is loaded and stays loaded; the type is the one in its header.
    Ok(unsafe {
        match sys::culib().get::<GetProperty>(b"cusparseGetProperty") {
            Ok(property) => describe(*property),
            Err(_) => "of unknown version".to_owned(),
        }
    })
}

/// Adds the library's version and file to an error of the first call.
pub(super) fn would_not_start(error: Error) -> Error {
    LIBRARY.would_not_start(error, &describe_library().unwrap_or_default())
}

/// Returns the error for a function that the loaded version of the library lacks.
pub(super) fn missing(function: &'static str, hint: &'static str) -> Error {
    GpuError::FunctionMissing { library: LIBRARY.name, function, hint }.into()
}

/// Fails if the library is too old, because the binding panics at the first call of a missing function.
fn require_functions() -> Result<()> {
    const NEWEST: [&str; 3] = ["cusparseSpMV_preprocess", "cusparseCreateConstCsr", "cusparseGetErrorString"];
    match NEWEST.iter().find(|name| !has(name)) {
        None => Ok(()),
        Some(name) => Err(Error::Gpu(GpuError::LibraryUnusable {
            library: LIBRARY.name,
            path: "libcusparse.so".into(),
            reason: format!("it has no {name}; version 12.4 or newer is needed, or use backend csr"),
        })),
    }
}

/// Returns whether the library has a function.
pub(super) fn has(name: &str) -> bool {
    // SAFETY: the library is loaded; the symbol is only looked up.
    unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok()
}
