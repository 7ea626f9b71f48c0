//! Words and numbers of a text one after the other, for the readers of graphs, and texts cut into pieces at line ends.

use super::text::{Fault, Text, ends_word, is_blank};
use crate::observe::Meter;
use crate::parallel::{CHUNKS_PER_THREAD, threads_for};
use memchr::memchr;
use std::ops::Range;

/// What scanning gives, or where the text departs from its format.
pub(super) type Scan<T> = std::result::Result<T, Box<Fault>>;

/// Bytes after which the meter is told how far a thread has come.
const REPORT: usize = 1 << 20;

/// A place in a text.
pub(super) struct Words<'a> {
    bytes: &'a [u8],
    pub at: usize,
    meter: Option<&'a Meter>,
    /// The place that the meter knows of.
    told: usize,
}

impl<'a> Words<'a> {
    /// Starts at an offset; places are offsets in `bytes`.
    pub fn new(bytes: &'a [u8], at: usize) -> Words<'a> {
        Words { bytes, at, meter: None, told: at }
    }

    /// The words of a part of a text, with its meter.
    pub fn metered(text: Text<'a>, part: Range<usize>) -> Words<'a> {
        Words { bytes: &text.bytes[..part.end], at: part.start, meter: text.meter, told: part.start }
    }

    /// Tells the meter of what it does not know yet.
    #[cold]
    pub fn tell(&mut self) {
        if let Some(meter) = self.meter {
            meter.add((self.at - self.told) as u64);
        }
        self.told = self.at;
    }

    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    /// Blanks, and a comma among them where there is one.
    #[inline]
    pub fn skip_separator(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_blanks();
        }
    }

    /// Skips blanks; whether nothing else is left of the line.
    #[inline]
    pub fn line_is_done(&mut self) -> bool {
        self.skip_blanks();
        matches!(self.peek(), None | Some(b'\n'))
    }

    pub fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
    }

    /// Skips blanks and line ends, however many: long runs of them at the speed of memory.
    #[inline]
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

    /// Skips lines that are blank or begin with one of the comment characters; false at the end of the text.
    #[inline]
    pub fn seek_line(&mut self, comments: &[u8]) -> bool {
        loop {
            self.skip_white();
            match self.peek() {
                None => return false,
                Some(byte) if comments.contains(&byte) => self.skip_line(),
                Some(_) => return true,
            }
        }
    }

    /// Skips comment lines alone, where a blank line has a meaning; false at the end of the text.
    pub fn seek_row(&mut self, comments: &[u8]) -> bool {
        while self.peek().is_some_and(|byte| comments.contains(&byte)) {
            self.skip_line();
        }
        self.peek().is_some()
    }

    /// Moves to the next line; there must be nothing more on this one.
    #[inline]
    pub fn finish_line(&mut self) -> Scan<()> {
        if !self.line_is_done() {
            return Err(Box::new(Fault::new(self.at, "end of line")));
        }
        self.at = (self.at + 1).min(self.bytes.len());
        if self.at - self.told >= REPORT {
            self.tell();
        }
        Ok(())
    }

    #[inline]
    fn word_ends(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|&byte| ends_word(byte) || byte == b',')
    }

    /// A whole number in the range.
    #[inline]
    pub fn whole(&mut self, what: &str, range: Range<u64>) -> Scan<u64> {
        let start = self.at;
        let (mut number, mut end) = (0_u64, start);
        while let Some(digit) = self.bytes.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|&d| d < 10) {
            number = number.saturating_mul(10).saturating_add(u64::from(digit));
            end += 1;
        }
        if end == start || !self.word_ends(end) || !range.contains(&number) {
            return Err(whole_fault(start, what, range));
        }
        self.at = end;
        Ok(number)
    }

    /// A finite number.
    #[inline]
    pub fn number(&mut self, what: &str) -> Scan<f64> {
        match fast_float2::parse_partial::<f64, _>(&self.bytes[self.at..]) {
            Ok((value, length)) if value.is_finite() && self.word_ends(self.at + length) => {
                self.at += length;
                Ok(value)
            }
            _ => Err(Box::new(Fault::new(self.at, format!("{what}, a finite number")))),
        }
    }
}

#[cold]
fn whole_fault(at: usize, what: &str, range: Range<u64>) -> Box<Fault> {
    let expected = if range.is_empty() {
        "end of line".to_owned()
    } else if range.end == u64::MAX {
        what.to_owned()
    } else {
        format!("{what} from {} to {}", range.start, range.end - 1)
    };
    Box::new(Fault::new(at, expected))
}

/// Words of a line that [`first_lines`] returns at most: a hostile line must not take memory many times its length.
const MOST_WORDS: usize = 1 << 16;

/// The words of the first lines, up to `most` of them, that are neither blank nor comments. Of a longer line than 65,536 words
/// it returns the first ones.
pub(super) fn first_lines<'a>(bytes: &'a [u8], comments: &[u8], most: usize) -> Vec<Vec<&'a [u8]>> {
    let mut words = Words::new(bytes, 0);
    let mut lines = Vec::new();
    while lines.len() < most && words.seek_line(comments) {
        let start = words.at;
        words.skip_line();
        lines.push(split(&bytes[start..words.at]));
    }
    lines
}

/// The words of a line; a comma ends a word too.
fn split(line: &[u8]) -> Vec<&[u8]> {
    let words = line.split(|&byte| ends_word(byte) || byte == b',').filter(|word| !word.is_empty());
    words.take(MOST_WORDS).collect()
}

/// Whether a word is a whole number.
pub(super) fn is_whole(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// Whether a word is a number.
pub(super) fn is_number(word: &[u8]) -> bool {
    fast_float2::parse::<f64, _>(word).is_ok()
}

/// Cuts the text from `start` on at line ends, into pieces for the threads of the current pool.
pub(super) fn pieces(text: Text, start: usize) -> Vec<Range<usize>> {
    let length = text.bytes.len() - start;
    let threads = threads_for(length);
    let count = if threads == 1 { 1 } else { threads * CHUNKS_PER_THREAD };
    let mut pieces = Vec::with_capacity(count);
    let mut from = start;
    for part in 1..=count {
        let near = start + (length as u128 * part as u128 / count as u128) as usize;
        let near = near.max(from);
        let to = memchr(b'\n', &text.bytes[near..]).map_or(text.bytes.len(), |rest| near + rest + 1);
        if from < to {
            pieces.push(from..to);
        }
        from = to;
    }
    pieces
}
