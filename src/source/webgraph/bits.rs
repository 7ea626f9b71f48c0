//! Numbers in instantaneous codes, most significant bit first.

/// A code for numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// n zeros and a one.
    Unary,
    /// The length of n + 1 in unary, and its bits after the first (P. Elias, 1975).
    Gamma,
    /// Like gamma, with the length in gamma.
    Delta,
    /// By shrinking factors of k bits (P. Boldi and S. Vigna, 2005), 1 to 16.
    Zeta(u8),
    /// Groups of three bits; the bit before each group marks the last one.
    Nibble,
}

/// A reader of bits, from the first to the last.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The least number of valid bits that `peek` returns at any offset.
const LOOKAHEAD: u32 = 57;

impl<'a> Bits<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0 }
    }

    /// Returns the number of bits read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the next 64 bits, of which at least [`LOOKAHEAD`] are valid; zeros after the end.
    #[inline]
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or(&[]);
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_be_bytes(*word),
            None => {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(word)
            }
        };
        word << (self.at % 8)
    }

    /// Reads the next number; returns `None` if the file ends within it or it takes more than 64 bits.
    #[inline]
    pub(crate) fn read(&mut self, code: Code) -> Option<u64> {
        let number = match code {
            Code::Unary => self.unary()?,
            Code::Gamma => self.gamma()?,
            Code::Delta => {
                let length = u32::try_from(self.gamma()?).ok().filter(|length| *length < 64)?;
                (1 << length | self.fixed(length)) - 1
            }
            Code::Zeta(k) => self.zeta(u32::from(k))?,
            Code::Nibble => self.nibble()?,
        };
        (self.at <= 8 * self.bytes.len()).then_some(number)
    }

    #[inline]
    fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        loop {
            let leading = self.peek().leading_zeros();
            if leading < LOOKAHEAD {
                self.at += leading as usize + 1;
                return Some(zeros + u64::from(leading));
            }
            zeros += u64::from(LOOKAHEAD);
            self.at += LOOKAHEAD as usize;
            if self.at >= 8 * self.bytes.len() {
                return None;
            }
        }
    }

    /// Reads at most 63 bits.
    #[inline]
    fn fixed(&mut self, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        if count > 32 {
            let high = self.fixed(count - 32);
            return high << 32 | self.fixed(32);
        }
        let bits = self.peek() >> (64 - count);
        self.at += count as usize;
        bits
    }

    #[inline]
    fn gamma(&mut self) -> Option<u64> {
        let length = u32::try_from(self.unary()?).ok().filter(|length| *length < 64)?;
        Some((1 << length | self.fixed(length)) - 1)
    }

    #[inline]
    fn zeta(&mut self, k: u32) -> Option<u64> {
        let shrinks = u32::try_from(self.unary()?).ok()?;
        let left = shrinks.checked_mul(k).filter(|bits| bits + k < 64)?;
        let short = self.fixed(left + k - 1);
        let first = 1 << left;
        // Numbers of the lower half of the range omit the last bit.
        Some(if short < first { short + first - 1 } else { (short << 1 | self.fixed(1)) - 1 })
    }

    fn nibble(&mut self) -> Option<u64> {
        let mut number = 0u64;
        loop {
            let group = self.fixed(4);
            if number >> 61 != 0 || self.at > 8 * self.bytes.len() {
                return None;
            }
            number = number << 3 | group & 7;
            if group & 8 != 0 {
                return Some(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a text of zeros and ones to bytes.
    fn bytes(bits: &str) -> Vec<u8> {
        let bits: Vec<u8> = bits.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
        bits.chunks(8).map(|byte| byte.iter().enumerate().map(|(i, bit)| bit << (7 - i)).sum()).collect()
    }

    fn all(code: Code, bits: &str, count: usize) -> Vec<u64> {
        let bytes = bytes(bits);
        let mut bits = Bits::new(&bytes);
        (0..count).map(|_| bits.read(code).unwrap()).collect()
    }

    #[test]
    fn codes_match_their_definitions() {
        assert_eq!(all(Code::Unary, "1 01 001 0001", 4), [0, 1, 2, 3]);
        assert_eq!(
            all(Code::Gamma, "1 010 011 00100 00101 00110 00111 0001000", 8),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        assert_eq!(
            all(Code::Delta, "1 0100 0101 01100 01101 01110 01111 00100000", 8),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        assert_eq!(
            all(Code::Zeta(3), "100 1010 1011 1100 1101 1110 1111 0100000", 8),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        assert_eq!(all(Code::Zeta(1), "1 010 011 00100", 4), [0, 1, 2, 3]);
        assert_eq!(all(Code::Nibble, "1000 1001 1111 00011000", 4), [0, 1, 7, 8]);
    }

    #[test]
    fn long_numbers_and_ends_of_files_are_handled() {
        let long = format!("{}1{}", "0".repeat(62), "1".repeat(62));
        assert_eq!(all(Code::Gamma, &long, 1), [(1 << 63) - 2]);
        for code in [Code::Unary, Code::Gamma, Code::Delta, Code::Zeta(3), Code::Nibble] {
            assert_eq!(Bits::new(&[]).read(code), None, "{code:?}");
            assert_eq!(Bits::new(&[0; 40]).read(code), None, "{code:?}");
            assert_eq!(Bits::new(&bytes("0000001 0")).read(Code::Gamma), None, "{code:?}");
        }
    }
}
