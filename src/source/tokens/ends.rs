//! The ends of words and lines.

use memchr::memchr;

/// Checks for a blank within a line. A carriage return counts as a blank, so CRLF line ends are accepted.
#[inline(always)]
pub(in crate::source) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[inline(always)]
pub(in crate::source) fn ends_word(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}

/// Returns the line that begins at an offset, without its end, and the offset of the next line.
#[inline]
pub(in crate::source) fn line_at(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let rest = &bytes[at..];
    let length = memchr(b'\n', rest).unwrap_or(rest.len());
    let line = &rest[..length];
    (line.strip_suffix(b"\r").unwrap_or(line), (at + length + 1).min(bytes.len()))
}
