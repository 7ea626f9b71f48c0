//! Converts decimal numbers in common forms to the nearest f64: `-1.0`, `0.8012345678901234`
//! and `2.8322685185200e+06`.
//!
//! A number is w * 10^p with a whole w below 2^64. If w and 10^|p| are exact in f64, one product or
//! quotient rounds once. Otherwise 10^p = m * 2^k with m from 2^63 to 2^64, truncated to 64 bits, so that
//! w * 10^p lies between w * m and w * (m + 1), times 2^k. The upper 64 bits of the product are those of
//! the number, or one less. They decide the rounding unless they are within one of the midpoint between
//! two neighbours, which happens for about one in 500 numbers. Such numbers, longer numbers and other
//! forms take the slow path.

use super::digits::{TENS, TENS_WHOLE, eight, not_digits, of_digits};
use super::window::Window;

/// The largest |p| for which m is computed in 128 bits.
const MOST: usize = 27;

/// m and k of 10^p for p from -27 to 27.
const POWERS: [(u64, i32); 2 * MOST + 1] = {
    let mut powers = [(0, 0); 2 * MOST + 1];
    let mut five: u128 = 1;
    let mut p = 0;
    while p <= MOST {
        // 5^27 has 63 bits. The first bit is moved to the top, and the exponent compensates
        // for this shift and for 2^p.
        let up = (five as u64).leading_zeros();
        powers[MOST + p] = ((five as u64) << up, p as i32 - up as i32);
        // For 1 / 5^p: 2^(63 + bits) / 5^p is from 2^63 to 2^64, and 2^63 for p = 0.
        let bits = if p == 0 { 0 } else { 64 - up as i32 };
        powers[MOST - p] = (((1_u128 << (63 + bits)) / five) as u64, -(p as i32) - 63 - bits);
        five *= 5;
        p += 1;
    }
    powers
};

/// Converts a number of a common form; returns `None` for other forms.
#[inline(always)]
pub(in crate::source) fn decimal(window: Window, start: usize, end: usize) -> Option<f64> {
    let negative = window.byte(start) == b'-';
    let start = start + usize::from(negative);
    let magnitude = match end - start {
        0 => return None,
        1..=8 => short(window.word(start), end - start)?,
        _ => long(window, start, end)?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Converts a number of at most eight bytes, the first of them lowest.
#[inline(always)]
fn short(word: u64, length: usize) -> Option<f64> {
    // Shifts the bytes after the number out at the top and zeros in below.
    let up = 64 - 8 * length;
    let all = (word ^ eight(b'0')) << up;
    let point = not_digits(all);
    if point == 0 {
        return Some(of_digits(all) as f64);
    }
    // Removes the point: the bytes below it move up by one byte.
    let at = point & point.wrapping_neg();
    let below = (at >> 7) - 1;
    let byte = (at >> 7) * 0xff;
    let rest = !(below | byte);
    if (all & byte) != (at >> 7) * u64::from(b'.' ^ b'0') || length == 1 {
        return None;
    }
    let digits = ((all & below) << 8) | (all & rest);
    let fraction = 7 - (at.trailing_zeros() / 8) as usize;
    (not_digits(digits) == 0).then(|| of_digits(digits) as f64 / TENS[fraction])
}

/// Converts a longer number, with a point among the first eight bytes.
#[inline(always)]
fn long(window: Window, start: usize, mut end: usize) -> Option<f64> {
    let word = window.word(start) ^ eight(b'0');
    let before = (not_digits(word).trailing_zeros() / 8) as usize;
    if before == 8 || window.byte(start + before) != b'.' {
        return None;
    }
    let mut whole = 0;
    if before > 0 {
        whole = of_digits(word << (64 - 8 * before));
    }
    let mut exponent = 0;
    if matches!(window.byte(end - 4), b'e' | b'E') {
        let tens = window.digits(end - 2, 2)? as i32;
        exponent = match window.byte(end - 3) {
            b'+' => tens,
            b'-' => -tens,
            _ => return None,
        };
        end -= 4;
    }
    let first = start + before + 1;
    let length = end.checked_sub(first)?;
    // At most 19 digits in total fit 64 bits.
    if length > 19 - before && !(whole == 0 && length <= 19) {
        return None;
    }
    let fraction = match length {
        1..=8 => window.digits(first, length)?,
        9..=16 => window.digits(first, 8)? * TENS_WHOLE[length - 8] + window.digits(first + 8, length - 8)?,
        17..=19 => {
            let upper = window.digits(first, 8)? * 100_000_000 + window.digits(first + 8, 8)?;
            upper * TENS_WHOLE[length - 16] + window.digits(first + 16, length - 16)?
        }
        _ => return None,
    };
    nearest(whole * TENS_WHOLE[length] + fraction, exponent - length as i32)
}

/// Returns the f64 nearest to w * 10^p, if 64 bits decide the rounding.
#[inline(always)]
fn nearest(w: u64, p: i32) -> Option<f64> {
    if w <= 1 << 53 && p.unsigned_abs() < TENS.len() as u32 {
        let ten = TENS[p.unsigned_abs() as usize];
        return Some(if p < 0 { w as f64 / ten } else { w as f64 * ten });
    }
    let (m, k) = *POWERS.get(usize::try_from(p + MOST as i32).ok()?)?;
    if w == 0 {
        return Some(0.0);
    }
    let up = w.leading_zeros();
    let product = u128::from(w << up) * u128::from(m);
    let upper = (product >> 64) as u64;
    // Keeps 53 of these 64 or 63 bits.
    let cut = 11 - upper.leading_zeros();
    let (middle, rest) = (1 << (cut - 1), upper & ((1 << cut) - 1));
    if rest == middle || rest == middle - 1 {
        return None;
    }
    let mantissa = (upper >> cut) + u64::from(rest > middle);
    // Both factors are exact, and a number with this few digits is not near the ends of the range.
    Some(mantissa as f64 * two_to(k - up as i32 + 64 + cut as i32))
}

/// Returns 2^e for exponents of normal numbers.
#[inline(always)]
fn two_to(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> Option<f64> {
        let text = format!("{word}\n{}", "9".repeat(80));
        decimal(Window::at(text.as_bytes(), 0).expect("long enough"), 0, word.len())
    }

    /// Pseudorandom numbers, the same in every run.
    fn numbers() -> impl Iterator<Item = u64> {
        let mut state = 1_u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        })
    }

    #[test]
    fn parsed_numbers_are_the_nearest_f64() {
        let (mut parsed, mut given) = (0, 0);
        for (bits, other) in numbers().zip(numbers().skip(9)).take(200_000) {
            let sign = ["", "-"][(other % 2) as usize];
            let digits = &format!("{bits:019}")[..1 + (other >> 1) as usize % 19];
            let point = (other >> 8) as usize % (digits.len() + 1);
            let (whole, fraction) = digits.split_at(point);
            let exponent = ["", "", "e+00", "e-07", "E+12", "e-16", "e+27"][(other >> 16) as usize % 7];
            for word in [format!("{sign}{whole}.{fraction}{exponent}"), format!("{sign}{digits}")] {
                given += 1;
                if let Some(value) = read(&word) {
                    parsed += 1;
                    let nearest: f64 = word.parse().expect("a number");
                    assert_eq!(value.to_bits(), nearest.to_bits(), "{word}");
                }
            }
        }
        assert!(parsed > given / 2, "{parsed} of {given}");
    }

    #[test]
    fn numbers_near_the_midpoint_of_two_neighbours_are_declined_or_exact() {
        let mut decided = 0;
        for bits in numbers().take(50_000) {
            let below = f64::from_bits((bits >> 12) | 0x4340_0000_0000_0000);
            let middle = below as u64 + (f64::from_bits(below.to_bits() + 1) as u64 - below as u64) / 2;
            for near in [middle - 1, middle, middle + 1] {
                let text = near.to_string();
                let fractions = [format!("{}.{}", &text[..5], &text[5..]), format!("0.{text}")];
                // The first word is the midpoint or one of its neighbours.
                for word in std::iter::once(format!("{text}.0")).chain(fractions) {
                    if let Some(value) = read(&word) {
                        decided += 1;
                        assert_eq!(value, word.parse::<f64>().expect("a number"), "{word}");
                    }
                }
            }
        }
        assert!(decided > 250_000, "{decided} of 450000");
    }

    #[test]
    fn common_forms_are_parsed() {
        for word in [
            "-1.0",
            "4.0",
            "0",
            "-0.0",
            "7",
            "12345678",
            "5.",
            ".5",
            "-1234.567",
            "0.8012345678901234",
            "-12.345678901234567",
            "0.0012345678901234567",
            "2.8322685185200e+06",
            "-1.2345678901234567e-11",
        ] {
            assert_eq!(read(word).map(f64::to_bits), word.parse().ok().map(f64::to_bits), "{word}");
        }
    }

    #[test]
    fn invalid_numbers_are_declined() {
        for word in [
            "",
            "-",
            ".",
            "-.",
            "--1",
            "1-1",
            "1.2.3",
            "1..2",
            "x",
            "1x",
            "inf",
            "nan",
            "1234567x",
            "0x10",
            "1.23456789x",
            "1.2345678.9",
            "12345678.x12345678",
            "1.23456789e+x1",
            "1.23456789e*01",
            "\u{e9}.0",
        ] {
            assert_eq!(read(word), None, "{word}");
        }
    }
}
