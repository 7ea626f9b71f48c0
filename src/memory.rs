//! Large arrays on huge pages, and prefetches.

use bytemuck::Zeroable;
use std::cell::Cell;

/// The fewest bytes for which huge pages pay.
const LARGE: usize = 4 << 20;

thread_local! {
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the caller of the allocation in progress on this thread handles its failure. If not, the
/// allocator of the program ends the process.
pub fn allocation_may_fail() -> bool {
    MAY_FAIL.get()
}

/// Runs a closure and marks its allocations as handled.
fn handled<R>(allocate: impl FnOnce() -> R) -> R {
    let before = MAY_FAIL.replace(true);
    let result = allocate();
    MAY_FAIL.set(before);
    result
}

/// Reserves memory for exactly `more` elements; returns whether that succeeded.
pub(crate) fn try_reserve<T>(vector: &mut Vec<T>, more: usize) -> bool {
    handled(|| vector.try_reserve_exact(more)).is_ok()
}

/// Allocates an array of zeros, if there is enough memory. Large arrays are put on huge pages if the
/// system offers them: sparse products run through memory in several streams and one gather, and would
/// miss in the TLB of small pages.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Option<Vec<T>> {
    // The system provides zeroed pages when they are first touched, so no page is touched yet.
    let array = handled(|| bytemuck::try_zeroed_vec(len)).ok()?;
    advise_huge_pages(&array);
    Some(array)
}

/// Returns an empty array with room for `len` elements, on huge pages as above.
pub(crate) fn reserved<T>(len: usize) -> Vec<T> {
    let mut array = Vec::with_capacity(len);
    advise_huge_pages(array.spare_capacity_mut());
    array
}

/// Prefetches an element that is soon read or written. It may be beyond the end, which affects
/// only the cache.
#[inline(always)]
pub(crate) fn fetch<T>(array: &[T], at: usize) {
    fetch_from(array.as_ptr().wrapping_add(at));
}

/// Prefetches by address.
#[inline(always)]
pub(crate) fn fetch_from<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of this architecture, and the prefetch has no effect on memory that cannot be read.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Puts a large array on huge pages if the system offers them.
#[cfg(target_os = "linux")]
pub(crate) fn advise_huge_pages<T>(array: &[T]) {
    const PAGE: usize = 4096;
    let bytes = size_of_val(array);
    if bytes < LARGE {
        return;
    }
    let start = array.as_ptr().addr().next_multiple_of(PAGE);
    let end = array.as_ptr().addr() + bytes;
    // SAFETY: the range is whole pages inside the array, which we own. The advice changes how the pages are
    // backed, not their contents, and a refusal does no harm.
    unsafe {
        let length = (end - start) / PAGE * PAGE;
        libc::madvise(array.as_ptr().with_addr(start).cast_mut().cast(), length, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge_pages<T>(array: &[T]) {
    let _ = (array, LARGE);
}
