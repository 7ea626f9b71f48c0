//! What the choice of `auto` knows of the processor.

use std::sync::LazyLock;

/// An AMD processor of the Zen family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zen {
    /// Bytes of the third-level cache that a core uses.
    pub third_level: f64,
}

/// Returns the bytes of a core's second-level cache; 1 MB if the system does not report it.
pub(crate) fn second_level() -> f64 {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: sysconf only returns a number.
        let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
        if bytes > 0 {
            return bytes as f64;
        }
    }
    1e6
}

/// Returns what is known of a processor of AMD; none for other processors, or if the system
/// does not report the cache.
pub(super) fn zen() -> Option<Zen> {
    static FOUND: LazyLock<Option<Zen>> = LazyLock::new(|| {
        // sysconf returns the sum of several caches on some machines.
        let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size").ok()?;
        let kibibytes: f64 = size.trim().strip_suffix('K')?.parse().ok()?;
        is_by_amd().then_some(Zen { third_level: 1024.0 * kibibytes })
    });
    *FOUND
}

#[cfg(target_arch = "x86_64")]
fn is_by_amd() -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD"
}

#[cfg(not(target_arch = "x86_64"))]
fn is_by_amd() -> bool {
    false
}
