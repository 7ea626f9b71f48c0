//! The values of rows as kernels read them, in either precision or all ones.

use crate::scalar::Scalar;

/// Values as a kernel reads them: from an array, or all ones.
pub(super) trait RowValues<T>: Copy + Sync {
    fn value(self, j: usize) -> T;
    /// Returns four values from `j` on, in double precision.
    ///
    /// # Safety
    /// There are four values from `j` on, and the processor has AVX2.
    #[cfg(target_arch = "x86_64")]
    unsafe fn four(self, j: usize) -> std::arch::x86_64::__m256d;
    /// Returns the address of value `j`, inside the array or not: for prefetching.
    fn address(self, j: usize) -> *const u8;
}

#[derive(Clone, Copy)]
pub(super) struct Ones;

impl<T: Scalar> RowValues<T> for Ones {
    #[inline(always)]
    fn value(self, _: usize) -> T {
        T::from_f64(1.0)
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, _: usize) -> std::arch::x86_64::__m256d {
        std::arch::x86_64::_mm256_set1_pd(1.0)
    }
    #[inline(always)]
    fn address(self, _: usize) -> *const u8 {
        std::ptr::null()
    }
}

impl<T: Scalar> RowValues<T> for &[f64] {
    #[inline(always)]
    fn value(self, j: usize) -> T {
        debug_assert!(j < self.len());
        // SAFETY: offsets end at the number of values, checked when the matrix was made.
        T::from_f64(unsafe { *self.get_unchecked(j) })
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, j: usize) -> std::arch::x86_64::__m256d {
        // SAFETY: four values from j on, by the caller's promise.
        unsafe { std::arch::x86_64::_mm256_loadu_pd(self.as_ptr().add(j)) }
    }
    #[inline(always)]
    fn address(self, j: usize) -> *const u8 {
        self.as_ptr().wrapping_add(j).cast()
    }
}

impl<T: Scalar> RowValues<T> for &[f32] {
    #[inline(always)]
    fn value(self, j: usize) -> T {
        debug_assert!(j < self.len());
        // SAFETY: as for f64.
        T::from_f32(unsafe { *self.get_unchecked(j) })
    }
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn four(self, j: usize) -> std::arch::x86_64::__m256d {
        use std::arch::x86_64::{_mm_loadu_ps, _mm256_cvtps_pd};
        // SAFETY: four values from j on, by the caller's promise.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(self.as_ptr().add(j))) }
    }
    #[inline(always)]
    fn address(self, j: usize) -> *const u8 {
        self.as_ptr().wrapping_add(j).cast()
    }
}
