//! Where words and lines end.

use memchr::memchr;

/// Blanks within a line. A carriage return is one of them, so that CRLF line ends are read too.
#[inline(always)]
pub(in crate::source) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

#[inline(always)]
pub(in crate::source) fn ends_word(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}

/// The line that begins at an offset, without its end, and the offset of the next one.
#[inline]
pub(in crate::source) fn line_at(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let rest = &bytes[at..];
    let length = memchr(b'\n', rest).unwrap_or(rest.len());
    let line = &rest[..length];
    (line.strip_suffix(b"\r").unwrap_or(line), (at + length + 1).min(bytes.len()))
}
