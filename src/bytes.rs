//! Tests on 64 bytes of text at once. A result has one bit for each byte, the first byte in the lowest bit.

/// Bytes tested at once.
pub(crate) const LANES: usize = 64;

/// Returns the bits of blanks, line ends and other control characters. Some bytes beyond ASCII count too.
#[inline(always)]
pub(crate) fn blanks(bytes: &[u8; LANES]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    return sse2::bits(bytes, sse2::blanks);
    #[cfg(not(target_arch = "x86_64"))]
    return one_by_one(bytes, |byte| byte <= b' ');
}

/// Returns the bits of newlines.
#[inline(always)]
pub(crate) fn newlines(bytes: &[u8; LANES]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    return sse2::bits(bytes, sse2::newlines);
    #[cfg(not(target_arch = "x86_64"))]
    return one_by_one(bytes, |byte| byte == b'\n');
}

#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn one_by_one(bytes: &[u8; LANES], test: impl Fn(u8) -> bool) -> u64 {
    (0..LANES).fold(0, |bits, at| bits | u64::from(test(bytes[at])) << at)
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::LANES;
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
    };

    #[inline(always)]
    pub(crate) fn bits(bytes: &[u8; LANES], test: impl Fn(__m128i) -> __m128i) -> u64 {
        (0..LANES).step_by(16).fold(0, |bits, at| {
            // SAFETY: SSE2 is part of this architecture, and the 16 bytes from `at` on lie in the array.
            let lanes = unsafe { _mm_movemask_epi8(test(_mm_loadu_si128(bytes.as_ptr().add(at).cast()))) };
            bits | u64::from(lanes as u32) << at
        })
    }

    #[inline(always)]
    pub(crate) fn blanks(lanes: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of this architecture.
        unsafe { _mm_cmplt_epi8(lanes, _mm_set1_epi8(b'!' as i8)) }
    }

    #[inline(always)]
    pub(crate) fn newlines(lanes: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of this architecture.
        unsafe { _mm_cmpeq_epi8(lanes, _mm_set1_epi8(b'\n' as i8)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_sets_its_bit_at_every_position() {
        for byte in 0..=255 {
            for at in 0..LANES {
                let mut bytes = [b'7'; LANES];
                bytes[at] = byte;
                assert_eq!(newlines(&bytes), one_by_one(&bytes, |byte| byte == b'\n'));
                if byte.is_ascii() {
                    assert_eq!(blanks(&bytes), one_by_one(&bytes, |byte| byte <= b' '));
                }
                assert_eq!(blanks(&bytes) & !(1 << at), 0);
            }
        }
    }
}
