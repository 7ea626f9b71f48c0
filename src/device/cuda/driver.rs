//! The driver, the GPUs that it lists, and a compiler that it can follow.

use super::{call, fault, nvrtc};
use crate::error::{Error, GpuError, Result};
use cudarc::driver::{CudaContext, sys};

/// The oldest driver, by the CUDA version that it serves, whose functions we name.
const OLDEST_DRIVER: (i32, i32) = (12, 4);

/// Whether the driver's library is there; an error that says how to get it otherwise.
pub fn require_driver() -> Result<()> {
    // SAFETY: only tries to open the library.
    if unsafe { sys::is_culib_present() } {
        return Ok(());
    }
    Err(Error::Gpu(GpuError::LibraryMissing {
        library: "the CUDA driver",
        tried: "libcuda.so, libcuda.so.1 through the system's loader".to_owned(),
        hint: "install the NVIDIA driver for your GPU, or use --device cpu",
    }))
}

/// Number of GPUs that the driver lists.
pub fn count() -> Result<usize> {
    require_driver()?;
    let count = CudaContext::device_count().map_err(fault("cuDeviceGetCount"))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// The newest CUDA version that the driver serves, as (major, minor).
pub fn driver_version() -> Result<(i32, i32)> {
    require_driver()?;
    let mut version = 0;
    // SAFETY: writes one integer.
    call("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    Ok((version / 1000, version % 1000 / 10))
}

/// Whether everything that our kernels need is there: driver, GPU and a compiler that the driver can follow.
pub fn usable() -> Result<()> {
    if count()? == 0 {
        return Err(Error::Gpu(GpuError::NoSuchGpu { index: 0, count: 0 }));
    }
    compiler().map(|_| ())
}

/// NVRTC, if the driver can load what it makes.
pub fn compiler() -> Result<&'static nvrtc::Nvrtc> {
    let driver = driver_version()?;
    if driver < OLDEST_DRIVER {
        let reason = format!(
            "it serves CUDA {}.{}, and {}.{} is the oldest that this program knows; update the driver, or use \
             --device cpu",
            driver.0, driver.1, OLDEST_DRIVER.0, OLDEST_DRIVER.1
        );
        let path = std::path::PathBuf::from("libcuda.so");
        return Err(Error::Gpu(GpuError::LibraryUnusable { library: "the CUDA driver", path, reason }));
    }
    let compiler = nvrtc::Nvrtc::get()?;
    let version = compiler.version();
    if version.0 > driver.0 {
        let reason = format!(
            "it makes code for CUDA {}, but the driver serves CUDA {}.{}; install NVRTC {} (pip install \
             nvidia-cuda-nvrtc-cu{}) and set SOLVER_NVRTC to its folder, or update the driver",
            version.0, driver.0, driver.1, driver.0, driver.0
        );
        return Err(Error::Gpu(GpuError::LibraryUnusable {
            library: "NVRTC",
            path: compiler.path().to_owned(),
            reason,
        }));
    }
    Ok(compiler)
}
