//! Readers of words and line ends of a text.

use super::digits::eight;
use super::ends::{ends_word, is_blank};
use super::window::Window;
use crate::observe::Meter;
use crate::source::text::{Fault, Text};
use memchr::memchr;
use std::ops::Range;

/// The result of scanning, or the fault at which the text violates its format.
pub(in crate::source) type Scan<T> = Result<T, Box<Fault>>;

/// Bytes between two reports of a thread to the meter.
const REPORT: usize = 1 << 20;

/// A position in a text. A comma also ends a word if `COMMA` is true.
pub(in crate::source) struct Tokens<'a, const COMMA: bool> {
    pub(super) bytes: &'a [u8],
    pub at: usize,
    meter: Option<&'a Meter>,
    /// The offset up to which the meter has been advanced.
    reported: usize,
}

/// The tokens of lists of numbers, in which a comma may separate two words.
pub(in crate::source) type ListTokens<'a> = Tokens<'a, true>;
/// The tokens of formats whose words are separated only by blanks.
pub(in crate::source) type BlankTokens<'a> = Tokens<'a, false>;

impl<'a, const COMMA: bool> Tokens<'a, COMMA> {
    /// Starts at an offset in `bytes`.
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Tokens<'a, COMMA> {
        Tokens { bytes, at, meter: None, reported: at }
    }

    /// Starts at the beginning of a part of a text, with the text's meter.
    pub(crate) fn metered(text: Text<'a>, part: Range<usize>) -> Tokens<'a, COMMA> {
        Tokens { bytes: &text.bytes[..part.end], at: part.start, meter: text.meter, reported: part.start }
    }

    /// Advances the meter to the current offset.
    #[cold]
    pub(crate) fn report_progress(&mut self) {
        if let Some(meter) = self.meter {
            meter.add((self.at - self.reported) as u64);
        }
        self.reported = self.at;
    }

    /// Returns the next 64 bytes, unless the end is near.
    #[inline(always)]
    pub(crate) fn window(&self) -> Option<Window<'a>> {
        Window::at(self.bytes, self.at)
    }

    /// Returns the bytes from an offset to the current one.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    pub(crate) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    /// Skips blanks, with at most one comma among them.
    #[inline]
    pub(crate) fn skip_separator(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_blanks();
        }
    }

    /// Skips blanks and checks whether the line ends there.
    #[inline]
    pub(crate) fn line_is_done(&mut self) -> bool {
        self.skip_blanks();
        matches!(self.peek(), None | Some(b'\n'))
    }

    /// Moves past the end of the line.
    #[inline(always)]
    pub(crate) fn skip_line(&mut self) {
        while let Some(word) = self.eight_bytes(self.at) {
            // This test is exact only for the lowest byte that becomes zero, which is the wanted one.
            let zeroed = word ^ eight(b'\n');
            let found = zeroed.wrapping_sub(eight(1)) & !zeroed & eight(0x80);
            if found != 0 {
                self.at += found.trailing_zeros() as usize / 8 + 1;
                return;
            }
            self.at += 8;
        }
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
    }

    /// Skips blanks and line ends. Long runs of them are skipped at memory bandwidth.
    #[inline(always)]
    fn skip_white(&mut self) {
        const FEW: usize = 64;
        let start = self.at;
        while self.peek().is_some_and(ends_word) {
            self.at += 1;
            if self.at - start == FEW {
                let white = |piece: &&[u8; FEW]| piece.iter().fold(true, |all, &byte| all & ends_word(byte));
                self.at += FEW * self.bytes[self.at..].as_chunks::<FEW>().0.iter().take_while(white).count();
            }
        }
    }

    /// Skips blank lines and lines that begin with a comment character; returns false at the end of the text.
    #[inline(always)]
    pub(crate) fn seek_line(&mut self, comments: &[u8]) -> bool {
        loop {
            self.skip_white();
            match self.peek() {
                None => return false,
                Some(byte) if comments.contains(&byte) => self.skip_line(),
                Some(_) => return true,
            }
        }
    }

    /// Skips only comment lines, for formats in which a blank line has a meaning; returns
    /// false at the end of the text.
    pub(crate) fn seek_row(&mut self, comments: &[u8]) -> bool {
        while self.peek().is_some_and(|byte| comments.contains(&byte)) {
            self.skip_line();
        }
        self.peek().is_some()
    }

    /// Moves to the next line; the rest of this one may only be a comment.
    #[inline(always)]
    pub(crate) fn finish_line(&mut self, comments: &[u8]) -> Scan<()> {
        self.skip_blanks();
        match self.peek() {
            None => {}
            Some(b'\n') => self.at += 1,
            Some(byte) if comments.contains(&byte) => self.skip_line(),
            Some(_) => return Err(fault(self.at, "end of line")),
        }
        if self.at - self.reported >= REPORT {
            self.report_progress();
        }
        Ok(())
    }

    /// Returns the next word of the line and its offset; an empty word at the end of the line.
    pub(crate) fn word(&mut self) -> (usize, &'a [u8]) {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.bytes[start..];
        self.at += rest.iter().position(|&byte| Self::ends(byte)).unwrap_or(rest.len());
        (start, self.since(start))
    }

    /// Returns eight bytes, the first one lowest, or `None` if fewer are left.
    #[inline(always)]
    pub(super) fn eight_bytes(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    #[inline(always)]
    pub(super) fn ends(byte: u8) -> bool {
        ends_word(byte) || COMMA && byte == b','
    }
}

#[cold]
pub(in crate::source) fn fault(at: usize, expected: impl Into<String>) -> Box<Fault> {
    Box::new(Fault::new(at, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_ends_a_line_if_the_format_allows_it() {
        let mut tokens = BlankTokens::new(b" \t% c\r\n 5", 0);
        assert!(tokens.finish_line(b"").is_err());
        assert!(tokens.finish_line(b"%").is_ok());
        assert_eq!(tokens.word(), (8, &b"5"[..]));
        assert_eq!(tokens.word(), (9, &b""[..]));
    }
}
