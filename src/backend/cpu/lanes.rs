//! AVX2 loads of four numbers in double precision, from arrays in either precision.

use crate::scalar::Scalar;
use std::arch::x86_64::*;

/// Loads the first `N` of four numbers; the other lanes are 0. Three numbers are two loads: a masked load
/// takes an AMD processor (Zen 5) three times as long.
///
/// # Safety
/// `from` points to N numbers, N lies between 1 and 4, and the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load<T: Scalar, const N: usize>(from: *const T) -> __m256d {
    // SAFETY: N numbers are readable at `from`, masked lanes are not touched, and a scalar of 8 bytes
    // is f64, one of 4 is f32.
    unsafe {
        if size_of::<T>() == 8 {
            let from = from.cast::<f64>();
            match N {
                4 => _mm256_loadu_pd(from),
                3 => _mm256_set_m128d(_mm_load_sd(from.add(2)), _mm_loadu_pd(from)),
                2 => _mm256_zextpd128_pd256(_mm_loadu_pd(from)),
                _ => _mm256_zextpd128_pd256(_mm_load_sd(from)),
            }
        } else {
            let from = from.cast::<f32>();
            _mm256_cvtps_pd(match N {
                4 => _mm_loadu_ps(from),
                3 => {
                    let two = _mm_castsi128_ps(_mm_loadl_epi64(from.cast()));
                    _mm_movelh_ps(two, _mm_load_ss(from.add(2)))
                }
                2 => _mm_castsi128_ps(_mm_loadl_epi64(from.cast())),
                _ => _mm_load_ss(from),
            })
        }
    }
}

/// Loads a number into all lanes.
///
/// # Safety
/// `from` points to a number, and the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn broadcast<T: Scalar>(from: *const T) -> __m256d {
    // SAFETY: promised by the caller; a scalar of 8 bytes is f64, one of 4 is f32.
    unsafe {
        match size_of::<T>() {
            8 => _mm256_broadcast_sd(&*from.cast::<f64>()),
            _ => _mm256_cvtps_pd(_mm_broadcast_ss(&*from.cast::<f32>())),
        }
    }
}

/// Loads `N` numbers, at most 8, into two vectors.
///
/// # Safety
/// `from` points to N numbers, and the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn row<T: Scalar, const N: usize>(from: *const T) -> (__m256d, __m256d) {
    // SAFETY: promised by the caller; the second load begins at number 4.
    unsafe {
        let none = _mm256_setzero_pd();
        match N {
            1 => (load::<T, 1>(from), none),
            2 => (load::<T, 2>(from), none),
            3 => (load::<T, 3>(from), none),
            4 => (load::<T, 4>(from), none),
            5 => (load::<T, 4>(from), load::<T, 1>(from.add(4))),
            6 => (load::<T, 4>(from), load::<T, 2>(from.add(4))),
            7 => (load::<T, 4>(from), load::<T, 3>(from.add(4))),
            _ => (load::<T, 4>(from), load::<T, 4>(from.add(4))),
        }
    }
}

/// Loads a row of a block; if that saves a load, it loads one number past the end of the row, and
/// that lane is meaningless.
///
/// # Safety
/// `from` points to N + 1 numbers, and the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn row_over<T: Scalar, const N: usize>(from: *const T) -> (__m256d, __m256d) {
    // SAFETY: promised by the caller.
    unsafe {
        match N {
            3 => row::<T, 4>(from),
            7 => row::<T, 8>(from),
            _ => row::<T, N>(from),
        }
    }
}

/// Gathers four numbers of x at `columns` by four loads; lanes that are masked out give 0. On Zen 5 the
/// processor's own gather takes half as long again, and longer still if x is near: a product of 3 million
/// entries in slices took 0.86 ms with it, and 0.66 with four loads. (Not measured elsewhere.)
///
/// # Safety
/// The columns of lanes that are not masked out lie inside x, x is not empty if any lane is masked out,
/// and the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn gather<T: Scalar>(x: *const T, columns: __m128i, mask: __m128i) -> __m256d {
    // Lanes that are masked out load x[0].
    let columns = _mm_and_si128(columns, mask);
    let (low, high) = (_mm_cvtsi128_si64(columns) as u64, _mm_extract_epi64::<1>(columns) as u64);
    let at = |column: u64| column as u32 as usize;
    let [a, b, c, d] = [at(low), at(low >> 32), at(high), at(high >> 32)];
    // SAFETY: promised by the caller.
    let four = unsafe {
        let pair = |a: usize, b: usize| _mm_set_pd((*x.add(b)).to_f64(), (*x.add(a)).to_f64());
        _mm256_set_m128d(pair(c, d), pair(a, b))
    };
    _mm256_and_pd(four, _mm256_castsi256_pd(_mm256_cvtepi32_epi64(mask)))
}

/// Returns the sum of the first `N` of four lanes if N is below 4, and of all four otherwise.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sum_of<const N: usize>(four: __m256d) -> f64 {
    let keep = |n: i64| if (N as i64) > n { -1 } else { 0 };
    let mask = _mm256_castsi256_pd(_mm256_setr_epi64x(-1, keep(1), keep(2), keep(3)));
    sum(_mm256_and_pd(four, mask))
}

/// Returns the sum of four lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sum(four: __m256d) -> f64 {
    let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}
