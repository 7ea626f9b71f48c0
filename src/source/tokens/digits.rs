//! Digits and line ends are found eight bytes at a time, as a 64-bit number of which each byte is tested at once.

/// The same byte eight times.
pub(in crate::source) const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The powers of ten that 64 bits hold.
pub(in crate::source) const TENS_WHOLE: [u64; 20] = {
    let mut tens = [1; 20];
    let mut power = 1;
    while power < 20 {
        tens[power] = 10 * tens[power - 1];
        power += 1;
    }
    tens
};

/// The same in f64, exact too.
pub(in crate::source) const TENS: [f64; 20] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19,
];

/// The high bit of the first byte above 9 set, of those before it not; later ones do not matter.
#[inline(always)]
pub(in crate::source) fn not_digits(digits: u64) -> u64 {
    (digits.wrapping_add(eight(0x76)) | digits) & eight(0x80)
}

/// The number that eight digits make, the first in the lowest byte: pairs, then fours, then all.
#[inline(always)]
pub(in crate::source) fn of_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10 * 256 + 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 * 65536 + 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul((10_000 << 32) + 1) >> 32
}
