//! The driver, its errors, and the GPUs that it lists.

use crate::error::{Error, GpuError, Result};
use cudarc::driver::{CudaContext, DriverError, sys};
use std::sync::OnceLock;

/// The oldest driver that has all functions this program calls, by the CUDA version that it supports.
const OLDEST_DRIVER: (i32, i32) = (12, 4);

const DRIVER: &str = "the CUDA driver";

/// Converts a status of the driver to an error.
pub(super) fn call(call: &'static str, status: sys::CUresult) -> Result<()> {
    status.result().map_err(fault(call))
}

/// Makes a context current on the calling thread, as driver calls without a wrapper need.
pub(super) fn bind(context: &CudaContext) -> Result<()> {
    context.bind_to_thread().map_err(fault("cuCtxSetCurrent"))
}

/// Returns a conversion of driver errors that adds the call that failed.
pub(super) fn fault(call: &'static str) -> impl Fn(DriverError) -> Error {
    move |e| Error::Gpu(GpuError::Cuda { call, message: e.to_string() })
}

/// Fails if the driver is missing, unusable or too old.
pub fn require_driver() -> Result<()> {
    // The loader tries dozens of file names, which takes 1 ms, and a process finds the same each time.
    static PRESENT: OnceLock<bool> = OnceLock::new();
    let look = || {
        // SAFETY: the call only tries to open the library.
        unsafe { sys::is_culib_present() }
    };
    if !*PRESENT.get_or_init(look) {
        return Err(Error::Gpu(GpuError::LibraryMissing {
            library: DRIVER,
            tried: "libcuda.so, libcuda.so.1 through the system's loader".to_owned(),
            hint: "install the NVIDIA driver for your GPU, or use the CPU",
        }));
    }
    require_functions()?;
    let (major, minor) = version()?;
    if (major, minor) < OLDEST_DRIVER {
        return Err(unusable(format!(
            "it supports CUDA {major}.{minor}, but this program needs at least {}.{}; update the driver, or use the CPU",
            OLDEST_DRIVER.0, OLDEST_DRIVER.1
        )));
    }
    Ok(())
}

/// Checks that the loaded libcuda has the first four functions that this program calls: cudarc would panic at
/// a missing one. Call it only after `is_culib_present`.
fn require_functions() -> Result<()> {
    const FIRST: [&str; 4] = ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain"];
    // SAFETY: the library is there; symbols are only looked up.
    let has = |name: &str| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok();
    match FIRST.into_iter().find(|name| !has(name)) {
        None => Ok(()),
        Some(name) => Err(unusable(format!(
            "it has no {name}; reinstall the NVIDIA driver, look for another libcuda.so on LD_LIBRARY_PATH, or \
             use the CPU"
        ))),
    }
}

fn unusable(reason: String) -> Error {
    let path = std::path::PathBuf::from("libcuda.so");
    Error::Gpu(GpuError::LibraryUnusable { library: DRIVER, path, reason })
}

/// Returns the number of GPUs that the driver lists.
pub fn count() -> Result<usize> {
    require_driver()?;
    match CudaContext::device_count() {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(e) if e.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => Ok(0),
        Err(e) if e.0 == sys::CUresult::CUDA_ERROR_STUB_LIBRARY => Err(unusable(
            "it is the stub of a toolkit, which is only for linking; remove its folder from LD_LIBRARY_PATH, or use \
             the CPU"
                .to_owned(),
        )),
        Err(e) => Err(fault("cuInit")(e)),
    }
}

/// Returns the identifier of a GPU, which no other GPU has.
pub(super) fn identity_of(device: sys::CUdevice) -> Result<u128> {
    let mut identifier = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the call writes 16 bytes.
    call("cuDeviceGetUuid", unsafe { sys::cuDeviceGetUuid_v2(&mut identifier, device) })?;
    Ok(u128::from_ne_bytes(identifier.bytes.map(|byte| byte as u8)))
}

/// Returns the newest CUDA version that the driver supports, as (major, minor).
pub(crate) fn driver_version() -> Result<(i32, i32)> {
    require_driver()?;
    version()
}

fn version() -> Result<(i32, i32)> {
    let mut version = 0;
    // SAFETY: the call writes one integer.
    call("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    Ok((version / 1000, version % 1000 / 10))
}

/// Fails if there is no GPU with that index.
pub(super) fn require_gpu(index: usize) -> Result<()> {
    let count = count()?;
    if index < count { Ok(()) } else { Err(Error::Gpu(GpuError::NoSuchGpu { index, count })) }
}

/// Returns the compute capability of a GPU: 90 for 9.0. The GPU need not be open.
pub(super) fn architecture(index: usize) -> Result<u32> {
    require_gpu(index)?;
    let (mut device, mut numbers) = (0, [0; 2]);
    // SAFETY: the calls write a handle and an integer each.
    unsafe {
        call("cuDeviceGet", sys::cuDeviceGet(&mut device, index as i32))?;
        let attributes = [
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        ];
        for (number, attribute) in numbers.iter_mut().zip(attributes) {
            call("cuDeviceGetAttribute", sys::cuDeviceGetAttribute(number, attribute, device))?;
        }
    }
    let [major, minor] = numbers;
    Ok((major * 10 + minor) as u32)
}

/// Returns whether a driver of one version can load the code of a compiler of another version.
pub(super) fn can_load(driver: (i32, i32), compiler: (i32, i32)) -> bool {
    compiler.0 <= driver.0
}
