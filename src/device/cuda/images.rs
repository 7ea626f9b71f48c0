//! Compiled kernels of this process, as images that every GPU of their architecture loads.
//!
//! A thread may compile kernels ahead, while others open the GPU and read the matrix. NVRTC runs the
//! compilations of a process one after the other, so more threads would not be faster.

use super::cache::KernelCache;
use super::driver::architecture;
use super::kernel_source::KernelSource;
use super::nvrtc::{Image, Nvrtc};
use crate::error::Result;
use crate::parallel::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// The image of a kernel; none until it is compiled. The lock is held while it is compiled, so that
/// other threads wait for it.
type Place = Arc<Mutex<Option<Image>>>;

/// Kernels with their architectures.
static IMAGES: LazyLock<Mutex<HashMap<(KernelSource, u32), Place>>> = LazyLock::new(Mutex::default);

/// The number of threads that need a kernel now. The thread that compiles ahead lets them go first.
static NEEDING: AtomicUsize = AtomicUsize::new(0);

/// Returns the image of a kernel that this thread needs now.
pub(super) fn image(cache: &KernelCache, source: &KernelSource, arch: u32) -> Result<Image> {
    NEEDING.fetch_add(1, Ordering::Relaxed);
    let found = find(cache, source, arch);
    NEEDING.fetch_sub(1, Ordering::Relaxed);
    found
}

/// Returns the image of a kernel for an architecture: from this process, from the cache on
/// disk, or from the compiler.
fn find(cache: &KernelCache, source: &KernelSource, arch: u32) -> Result<Image> {
    let place = Arc::clone(lock(&IMAGES).entry((source.clone(), arch)).or_default());
    let mut place = lock(&place);
    if let Some(image) = &*place {
        return Ok(image.clone());
    }
    let nvrtc = Nvrtc::get()?;
    let (text, options) = (source.text(), source.options());
    let compile = || nvrtc.compile(&source.name, &text, &options, arch);
    let image = cache.get_or_compile(nvrtc.version(), &source.name, &text, &options, arch, compile)?;
    Ok(place.insert(image).clone())
}

/// Compiles kernels for the GPU with that index, or finds them in the cache on disk, until `stop` is set.
/// The GPU need not be open.
pub(crate) fn compile_ahead(
    index: usize,
    sources: impl IntoIterator<Item = KernelSource>,
    stop: &AtomicBool,
) -> Result<()> {
    let (arch, cache) = (architecture(index)?, KernelCache::open());
    for source in sources {
        while NEEDING.load(Ordering::Relaxed) > 0 && !stop.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(1));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        find(&cache, &source, arch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cuda::kernel_source::BLOCK;

    #[test]
    fn threads_that_need_a_kernel_get_one_image_which_the_process_keeps() {
        if Nvrtc::get().is_err() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::at(folder.path().join("kernels"));
        let (name, body) =
            ("own_kernel".to_owned(), "extern \"C\" __global__ void own_kernel() {}".to_owned());
        let source =
            KernelSource { name, body, parameters: Vec::new(), defines: Vec::new(), k: 1, block: BLOCK };
        let images: Vec<Image> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|_| scope.spawn(|| image(&cache, &source, 90).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(images.iter().all(|image| *image == images[0]));
        assert_eq!(cache.usage().entries, 1);
        // Neither the compiler nor the disk is asked again.
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(image(&cache, &source, 90).unwrap(), images[0]);
        assert_eq!(cache.usage().entries, 0);
    }
}
