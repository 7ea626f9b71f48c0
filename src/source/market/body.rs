//! The entry lines: text to triplets, by several threads at once.

use super::header::{Field, Header, Symmetry};
use crate::error::Result;
use crate::format::Coo;
use crate::parallel::{CHUNKS_PER_THREAD, run_all, split_front, threads_for, zeros};
use crate::source::text::{Fault, Text, ends_word, is_blank};
use memchr::{memchr, memchr_iter};

/// One entry, counted from 0.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub row: u32,
    pub col: u32,
    pub value: f64,
}

/// Whole lines of the file, and how many entries they can hold at most.
struct Chunk {
    start: usize,
    end: usize,
    slots: usize,
}

/// The part of the triplets that a chunk fills.
struct Slots<'a> {
    chunk: &'a Chunk,
    rows: &'a mut [u32],
    cols: &'a mut [u32],
    values: &'a mut [f64],
}

/// What came of a chunk: the entries before the first fault, or all.
struct Parsed {
    entries: usize,
    fault: Option<Box<Fault>>,
}

/// Reads all entries, as many as the header announces.
pub(super) fn read(text: Text, header: &Header) -> Result<Coo> {
    let chunks = cut(text, header.body);
    let room = chunks.iter().map(|chunk| chunk.slots).sum();
    let valued = header.field != Field::Pattern;
    let mut triplets = Coo {
        rows: header.rows,
        cols: header.cols,
        row_indices: zeros(room)?,
        col_indices: zeros(room)?,
        values: zeros(if valued { room } else { 0 })?,
    };
    let parsed = run_all(deal(&chunks, &mut triplets), |slots| {
        if valued { parse::<true>(text, header, slots) } else { parse::<false>(text, header, slots) }
    });
    let written: Vec<usize> = parsed.iter().map(|chunk| chunk.entries).collect();
    check(text, header, &chunks, parsed)?;
    close_gaps(&mut triplets, &chunks, &written);
    Ok(triplets)
}

/// Cuts the text from `body` on into chunks at line ends, and bounds the entries of each by its lines.
fn cut(text: Text, body: usize) -> Vec<Chunk> {
    let length = text.bytes.len() - body;
    let threads = threads_for(length);
    let count = if threads == 1 { 1 } else { threads * CHUNKS_PER_THREAD };
    let mut ends: Vec<usize> = (1..count)
        .map(|part| body + (length as u128 * part as u128 / count as u128) as usize)
        .map(|near| memchr(b'\n', &text.bytes[near..]).map_or(text.bytes.len(), |rest| near + rest + 1))
        .collect();
    ends.push(text.bytes.len());
    let starts = std::iter::once(body).chain(ends.iter().copied());
    let bounds: Vec<(usize, usize)> =
        starts.zip(ends.iter().copied()).filter(|(start, end)| start < end).collect();
    run_all(bounds, |(start, end)| {
        let newlines = memchr_iter(b'\n', &text.bytes[start..end]).count();
        let lines = newlines + usize::from(text.bytes[end - 1] != b'\n');
        // The shortest entry is `1 1` and a newline; this keeps a file of blank lines from asking for much memory.
        Chunk { start, end, slots: lines.min((end - start) / 4 + 1) }
    })
}

/// Gives each chunk its part of the triplets.
fn deal<'a>(chunks: &'a [Chunk], triplets: &'a mut Coo) -> Vec<Slots<'a>> {
    let (mut rows, mut cols) = (&mut triplets.row_indices[..], &mut triplets.col_indices[..]);
    let mut values = &mut triplets.values[..];
    let mut dealt = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        dealt.push(Slots {
            chunk,
            rows: split_front(&mut rows, chunk.slots),
            cols: split_front(&mut cols, chunk.slots),
            values: split_front(&mut values, chunk.slots),
        });
    }
    dealt
}

fn parse<const VALUES: bool>(text: Text, header: &Header, slots: Slots) -> Parsed {
    let mut reader = Reader::new(text, header, slots.chunk.start, slots.chunk.end);
    let mut entries = 0;
    loop {
        match reader.entry::<VALUES>() {
            Ok(Some(entry)) => {
                if entries == slots.rows.len() {
                    let expected = "the file to stay as it is while it is read";
                    return Parsed { entries, fault: Some(Box::new(Fault::new(reader.at, expected))) };
                }
                slots.rows[entries] = entry.row;
                slots.cols[entries] = entry.col;
                if VALUES {
                    slots.values[entries] = entry.value;
                }
                entries += 1;
            }
            Ok(None) => return Parsed { entries, fault: None },
            Err(fault) => return Parsed { entries, fault: Some(fault) },
        }
    }
}

/// Turns the first fault in the order of the file, a wrong number of entries included, into an error.
fn check(text: Text, header: &Header, chunks: &[Chunk], parsed: Vec<Parsed>) -> Result<()> {
    let mut before = 0;
    for (chunk, parsed) in chunks.iter().zip(parsed) {
        let entries = parsed.entries as u64;
        if entries > header.entries - before {
            let mut reader = Reader::new(text, header, chunk.start, chunk.end);
            for _ in before..header.entries {
                if reader.seek() {
                    reader.skip_line();
                }
            }
            reader.seek();
            return Err(wrong_count(text, header, reader.at, ""));
        }
        if let Some(fault) = parsed.fault {
            return Err(text.error(*fault));
        }
        before += entries;
    }
    if before < header.entries {
        return Err(wrong_count(text, header, text.bytes.len(), "end of file after "));
    }
    Ok(())
}

#[cold]
fn wrong_count(text: Text, header: &Header, at: usize, found: &str) -> crate::Error {
    let mut reader = Reader::new(text, header, header.body, text.bytes.len());
    let mut lines = 0;
    while reader.seek() {
        reader.skip_line();
        lines += 1;
    }
    let entries = |n: u64| if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") };
    let expected = format!("{}, as the size line announces", entries(header.entries));
    text.error(Fault { at, expected, found: Some(format!("{found}{}", entries(lines))) })
}

/// Moves the entries together where comments and blank lines left slots unused.
fn close_gaps(triplets: &mut Coo, chunks: &[Chunk], written: &[usize]) {
    fn close<T: Copy>(array: &mut Vec<T>, chunks: &[Chunk], written: &[usize]) {
        let (mut from, mut to) = (0, 0);
        for (chunk, &entries) in chunks.iter().zip(written) {
            if from != to {
                array.copy_within(from..from + entries, to);
            }
            from += chunk.slots;
            to += entries;
        }
        array.truncate(to);
    }
    close(&mut triplets.row_indices, chunks, written);
    close(&mut triplets.col_indices, chunks, written);
    if !triplets.values.is_empty() {
        close(&mut triplets.values, chunks, written);
    }
}

/// Reads entries one after the other, up to the end of a chunk.
pub(super) struct Reader<'a> {
    /// The file up to the end of the chunk, so that places are offsets in the file.
    bytes: &'a [u8],
    at: usize,
    rows: u64,
    cols: u64,
    integers: bool,
    skew: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: Text<'a>, header: &Header, start: usize, end: usize) -> Reader<'a> {
        Reader {
            bytes: &text.bytes[..end],
            at: start,
            rows: header.rows as u64,
            cols: header.cols as u64,
            integers: header.field == Field::Integer,
            skew: header.symmetry == Symmetry::Skew,
        }
    }

    /// The next entry, `None` at the end of the chunk.
    #[inline(always)]
    pub(super) fn entry<const VALUES: bool>(&mut self) -> std::result::Result<Option<Entry>, Box<Fault>> {
        if !self.seek() {
            return Ok(None);
        }
        let row = self.index("row", self.rows)?;
        self.skip_blanks();
        let col = self.index("column", self.cols)?;
        self.skip_blanks();
        let mut value = 1.0;
        if VALUES {
            let at = self.at;
            value = self.value()?;
            if self.skew && row == col && value != 0.0 {
                return Err(fault(at, "0 on the diagonal of a skew-symmetric matrix"));
            }
            self.skip_blanks();
        }
        match self.bytes.get(self.at) {
            None => {}
            Some(b'\n') => self.at += 1,
            Some(_) => return Err(fault(self.at, "end of line")),
        }
        Ok(Some(Entry { row, col, value }))
    }

    /// Moves to the next line with an entry, past blank lines and comments; false at the end of the chunk.
    #[inline(always)]
    pub(super) fn seek(&mut self) -> bool {
        loop {
            self.skip_blanks();
            match self.bytes.get(self.at) {
                None => return false,
                Some(b'\n') => self.at += 1,
                Some(b'%') => self.skip_line(),
                Some(_) => return true,
            }
        }
    }

    /// The offset that is read next.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
    }

    #[inline(always)]
    fn skip_blanks(&mut self) {
        while self.at < self.bytes.len() && is_blank(self.bytes[self.at]) {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn word_ends(&self, at: usize) -> bool {
        at >= self.bytes.len() || ends_word(self.bytes[at])
    }

    /// The digits from `at` on as a number, and where they end. More than 19 digits wrap around.
    #[inline(always)]
    fn digits(&self, mut at: usize) -> (u64, usize) {
        let mut number = 0_u64;
        while at < self.bytes.len() {
            let digit = self.bytes[at].wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        (number, at)
    }

    /// An index from 1 to `limit`, which is below 2^32, counted from 0 thereafter.
    #[inline(always)]
    fn index(&mut self, what: &str, limit: u64) -> std::result::Result<u32, Box<Fault>> {
        let start = self.at;
        let (mut number, end) = self.digits(start);
        if end - start > 19 {
            number = saturating(&self.bytes[start..end]);
        }
        // No digits at all give 0, which wraps around and is out of range too.
        if number.wrapping_sub(1) >= limit || !self.word_ends(end) {
            return Err(index_fault(start, what, limit));
        }
        self.at = end;
        Ok((number - 1) as u32)
    }

    #[inline(always)]
    fn value(&mut self) -> std::result::Result<f64, Box<Fault>> {
        let start = self.at;
        let negative = self.bytes.get(start) == Some(&b'-');
        let first = start + usize::from(negative);
        let (number, end) = self.digits(first);
        // Integers of up to 15 digits are exact, and common enough to deserve a path of their own.
        if (1..=15).contains(&(end - first)) && self.word_ends(end) {
            self.at = end;
            let magnitude = number as f64;
            return Ok(if negative { -magnitude } else { magnitude });
        }
        let (value, length) = match fast_float2::parse_partial::<f64, _>(&self.bytes[start..]) {
            Ok((value, length)) if self.word_ends(start + length) => (value, length),
            _ => self.fortran(start)?,
        };
        if !value.is_finite() {
            return Err(fault(start, "a finite number"));
        }
        if self.integers && value.fract() != 0.0 {
            return Err(fault(start, "an integer, as the banner says"));
        }
        self.at = start + length;
        Ok(value)
    }

    /// A number with the exponent letter of Fortran's double precision, and its length.
    #[cold]
    fn fortran(&self, start: usize) -> std::result::Result<(f64, usize), Box<Fault>> {
        let rest = &self.bytes[start..];
        let word = &rest[..rest.iter().position(|&byte| ends_word(byte)).unwrap_or(rest.len())];
        let usual: Vec<u8> = word.iter().map(|&b| if matches!(b, b'd' | b'D') { b'e' } else { b }).collect();
        let value = fast_float2::parse(&usual).map_err(|_| fault(start, "a number"))?;
        Ok((value, word.len()))
    }
}

#[cold]
fn fault(at: usize, expected: &str) -> Box<Fault> {
    Box::new(Fault::new(at, expected))
}

#[cold]
fn index_fault(at: usize, what: &str, limit: u64) -> Box<Fault> {
    fault(at, &format!("a {what} index from 1 to {limit}"))
}

/// Digits as a number, the largest where they are too many.
#[cold]
fn saturating(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number: u64, byte| {
        number.saturating_mul(10).saturating_add(u64::from(byte.wrapping_sub(b'0')))
    })
}
