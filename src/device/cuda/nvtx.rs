//! NVTX: named ranges that NVIDIA's profilers show on the time line.
//!
//! A profiler, such as Nsight Systems, sets the environment variable `NVTX_INJECTION64_PATH` to its library.
//! The functions of NVTX are in that library, so this file needs no other one: it implements the client of
//! NVTX version 3, which NVIDIA publishes as C headers only (`nvtxDetail/nvtxInit.h`, `nvtxTypes.h`). The
//! client calls `InitializeInjectionNvtx2` of the library with a function that returns tables of places for
//! function pointers, by module and number. The library writes the functions that it has. Without the
//! variable nothing is loaded, and [`ranges`] returns none.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The environment variable that names the library of the profiler.
const INJECTION: &str =
    if size_of::<usize>() == 8 { "NVTX_INJECTION64_PATH" } else { "NVTX_INJECTION32_PATH" };

/// The number of functions in each module, by the module's number. Number 0 is no function, and module 0 is
/// no module: the others are core, CUDA, OpenCL, CUDA runtime, core 2 and synchronisation.
const SIZES: [usize; 7] = [0, 16, 9, 15, 7, 16, 7];
const MOST: usize = 16;
/// The module with plain ranges, and the numbers of two of its functions.
const CORE: usize = 1;
const RANGE_PUSH: usize = 9;
const RANGE_POP: usize = 11;

/// The numbers of the two tables that the client exports.
const CALLBACKS: u32 = 1;
const VERSION: u32 = 3;

/// A place for a function pointer, null until the library writes one.
type Place = AtomicPtr<c_void>;

/// The places for all functions.
static PLACES: [[Place; MOST]; SIZES.len()] =
    [const { [const { AtomicPtr::new(null_mut()) }; MOST] }; SIZES.len()];

/// The addresses of the places of a module, as the library reads them: null for number 0 and at the end.
struct Addresses([*const Place; MOST + 1]);

// SAFETY: the addresses are those of a static, which any thread may use.
unsafe impl Sync for Addresses {}

static ADDRESSES: [Addresses; SIZES.len()] = {
    let mut all = [const { Addresses([std::ptr::null(); MOST + 1]) }; SIZES.len()];
    let mut module = 0;
    while module < SIZES.len() {
        let mut number = 1;
        while number < SIZES[module] {
            all[module].0[number] = &raw const PLACES[module][number];
            number += 1;
        }
        module += 1;
    }
    all
};

/// The first exported table.
#[repr(C)]
struct Callbacks {
    struct_size: usize,
    get_module_function_table:
        extern "C" fn(module: c_int, table: *mut *const *const Place, size: *mut c_uint) -> c_int,
}

/// The second exported table.
#[repr(C)]
struct VersionInfo {
    struct_size: usize,
    version: u32,
    reserved: u32,
    set_injection_version: extern "C" fn(u32),
}

static EXPORTED_CALLBACKS: Callbacks =
    Callbacks { struct_size: size_of::<Callbacks>(), get_module_function_table };
static EXPORTED_VERSION: VersionInfo =
    VersionInfo { struct_size: size_of::<VersionInfo>(), version: 3, reserved: 0, set_injection_version };

extern "C" fn export_table(number: u32) -> *const c_void {
    match number {
        CALLBACKS => (&raw const EXPORTED_CALLBACKS).cast(),
        VERSION => (&raw const EXPORTED_VERSION).cast(),
        _ => std::ptr::null(),
    }
}

extern "C" fn get_module_function_table(
    module: c_int,
    table: *mut *const *const Place,
    size: *mut c_uint,
) -> c_int {
    let module = usize::try_from(module).ok().filter(|module| (1..SIZES.len()).contains(module));
    let Some(module) = module else { return 0 };
    if !size.is_null() {
        // SAFETY: the library passes null or a place for the size.
        unsafe { *size = SIZES[module] as c_uint };
    }
    if !table.is_null() {
        // SAFETY: the library passes null or a place for the table.
        unsafe { *table = ADDRESSES[module].0.as_ptr() };
    }
    1
}

extern "C" fn set_injection_version(_: u32) {}

/// The function that the library must have; it returns 0 on failure.
type Initialize = unsafe extern "C" fn(extern "C" fn(u32) -> *const c_void) -> c_int;
type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;

/// The functions of a profiler that begin and end ranges. Ranges are nested on each thread.
#[derive(Debug)]
pub(crate) struct Ranges {
    push: Push,
    pop: Pop,
}

impl Ranges {
    /// Begins a range on this thread.
    pub(crate) fn push(&self, name: &CStr) {
        // SAFETY: the name ends in NUL, and the profiler copies it.
        unsafe { (self.push)(name.as_ptr()) };
    }

    /// Ends the innermost range of this thread.
    pub(crate) fn pop(&self) {
        // SAFETY: the function has no arguments.
        unsafe { (self.pop)() };
    }

    /// Loads the library of the profiler. The error is the reason as text.
    fn load(path: &std::ffi::OsStr) -> std::result::Result<Ranges, String> {
        // SAFETY: whoever sets the variable asks for the code of this library to run in this process.
        let library = unsafe { libloading::os::unix::Library::new(path) }.map_err(|e| e.to_string())?;
        // SAFETY: the symbol has this type by the protocol of NVTX.
        let initialize = unsafe { library.get::<Initialize>(b"InitializeInjectionNvtx2\0") };
        let initialize = *initialize.map_err(|e| e.to_string())?;
        // The library is never unloaded, so that its functions stay valid.
        std::mem::forget(library);
        // SAFETY: the exported tables have the layout of the protocol, and live as long as the process.
        if unsafe { initialize(export_table) } == 0 {
            return Err("it could not be initialised".to_owned());
        }
        let written = |number: usize| PLACES[CORE][number].load(Ordering::Acquire);
        let (push, pop) = (written(RANGE_PUSH), written(RANGE_POP));
        if push.is_null() || pop.is_null() {
            return Err("it does not record ranges".to_owned());
        }
        // SAFETY: by the protocol, the library writes functions of these types to these two places.
        Ok(unsafe {
            Ranges {
                push: std::mem::transmute::<*mut c_void, Push>(push),
                pop: std::mem::transmute::<*mut c_void, Pop>(pop),
            }
        })
    }
}

/// Returns the functions of the profiler that has started this process; none without a profiler. The
/// first call loads its library.
pub(crate) fn ranges() -> Option<&'static Ranges> {
    static LOADED: OnceLock<Option<Ranges>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            let path = std::env::var_os(INJECTION).filter(|path| !path.is_empty())?;
            let loaded = Ranges::load(&path);
            loaded.inspect_err(|reason| log::warn!("{INJECTION} names {}, but {reason}", path.display())).ok()
        })
        .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_a_place_for_each_of_its_functions() {
        for (module, &expected) in SIZES.iter().enumerate().skip(1) {
            let (mut table, mut size) = (std::ptr::null(), 0);
            assert_eq!(get_module_function_table(module as c_int, &raw mut table, &raw mut size), 1);
            assert_eq!(size as usize, expected);
            // SAFETY: the table has an address for each number and one at the end.
            let addresses = unsafe { std::slice::from_raw_parts(table, expected + 1) };
            assert!(addresses[0].is_null() && addresses[expected].is_null());
            assert!(addresses[1..expected].iter().all(|place| !place.is_null()));
        }
        assert_eq!(get_module_function_table(7, null_mut(), null_mut()), 0);
        assert_eq!(get_module_function_table(0, null_mut(), null_mut()), 0);
        assert!(export_table(2).is_null());
    }
}
