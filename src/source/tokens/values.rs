//! Parses complete words.

/// Checks whether a word is a whole number of any size.
pub(in crate::source) fn is_whole(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// Parses a whole number; returns `None` if it does not fit 64 bits.
#[inline]
pub(in crate::source) fn parse_whole(word: &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!word.is_empty()).then_some(number)
}

/// Parses a whole number with an optional plus sign, which Fortran programs write.
pub(in crate::source) fn signed_whole(word: &[u8]) -> Option<u64> {
    parse_whole(word.strip_prefix(b"+").unwrap_or(word))
}

/// Checks whether a word is a number.
pub(in crate::source) fn is_number(word: &[u8]) -> bool {
    fast_float2::parse::<f64, _>(word).is_ok()
}

/// Parses a finite number.
#[inline]
pub(in crate::source) fn finite(word: &[u8]) -> Option<f64> {
    fast_float2::parse(word).ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_digits_that_fit_64_bits() {
        assert_eq!(parse_whole(b"0"), Some(0));
        assert_eq!(parse_whole(b"007"), Some(7));
        assert_eq!(parse_whole(b"18446744073709551615"), Some(u64::MAX));
        for word in ["", "+1", "-1", "1.0", "1e3", " 1", "18446744073709551616"] {
            assert_eq!(parse_whole(word.as_bytes()), None, "{word}");
        }
        assert!(is_whole(b"18446744073709551616"));
        assert_eq!(signed_whole(b"+12"), Some(12));
        assert_eq!([signed_whole(b"++1"), signed_whole(b"+"), signed_whole(b"-1")], [None; 3]);
    }

    #[test]
    fn finite_refuses_infinities_and_nan() {
        assert_eq!(finite(b"-1.5e3"), Some(-1500.0));
        for word in ["inf", "nan", "1e999"] {
            assert!(is_number(word.as_bytes()), "{word}");
            assert_eq!(finite(word.as_bytes()), None, "{word}");
        }
        assert!(!is_number(b"1.5D+3"));
    }
}
