//! Parses digits eight bytes at a time, as a 64-bit number whose bytes are tested at once.

/// Returns the same byte eight times.
pub(in crate::source) const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The powers of ten that fit 64 bits.
pub(in crate::source) const TENS_WHOLE: [u64; 20] = {
    let mut tens = [1; 20];
    let mut power = 1;
    while power < 20 {
        tens[power] = 10 * tens[power - 1];
        power += 1;
    }
    tens
};

/// The same powers in f64, which are exact too.
pub(in crate::source) const TENS: [f64; 20] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19,
];

/// Sets the high bit of the first byte above 9 and clears those of the bytes before it; later
/// bytes are undefined.
#[inline(always)]
pub(in crate::source) fn not_digits(digits: u64) -> u64 {
    (digits.wrapping_add(eight(0x76)) | digits) & eight(0x80)
}

/// Returns the number of eight digits, the first in the lowest byte: combines pairs, then
/// groups of four, then all.
#[inline(always)]
pub(in crate::source) fn of_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10 * 256 + 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 * 65536 + 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul((10_000 << 32) + 1) >> 32
}
