//! A compiler whose kernels the driver can load.

use super::driver::{can_load, driver_version, require_driver, require_gpu};
use super::nvrtc::Nvrtc;
use crate::error::{Error, GpuError, Result};

/// Checks that the driver, the GPU with that index, and a compiler whose code the driver can
/// load are present.
pub fn usable(index: usize) -> Result<()> {
    require_driver()?;
    // The compiler is loaded while the driver starts. If loading fails, `compiler` returns the reason.
    std::thread::scope(|scope| {
        scope.spawn(|| Nvrtc::get().is_ok());
        require_gpu(index)
    })?;
    compiler().map(|_| ())
}

/// Returns NVRTC, or an error if the driver cannot load its code.
pub(crate) fn compiler() -> Result<&'static Nvrtc> {
    let driver = driver_version()?;
    let compiler = Nvrtc::get()?;
    let version = compiler.version();
    if !can_load(driver, version) {
        let wheel = match driver.0 {
            12 => "nvidia-cuda-nvrtc-cu12".to_owned(),
            major => format!("nvidia-cuda-nvrtc=={major}.*"),
        };
        let reason = format!(
            "it compiles for CUDA {}, but the driver supports CUDA {}.{}; install NVRTC {} (pip install {wheel}) and set \
             SOLVER_NVRTC to its folder, or update the driver",
            version.0, driver.0, driver.1, driver.0
        );
        return Err(Error::Gpu(GpuError::LibraryUnusable {
            library: "NVRTC",
            path: compiler.path().to_owned(),
            reason,
        }));
    }
    Ok(compiler)
}
