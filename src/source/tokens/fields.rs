//! Splits a line into fields: words separated by blanks, or columns separated by tabs, commas or semicolons.
//! A field may be quoted as in RFC 4180, with `""` for a quotation mark in it; quotes end on their line.
//! Blanks around a field are not part of it.

use super::ends::is_blank;
use memchr::memchr;
use std::borrow::Cow;

/// The separator between two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    Tab,
    Comma,
    Semicolon,
    /// Any number of blanks and tabs.
    Blanks,
}

impl Separator {
    pub(crate) const ALL: [Separator; 4] =
        [Separator::Tab, Separator::Comma, Separator::Semicolon, Separator::Blanks];

    /// Returns the English plural.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Separator::Tab => "tabs",
            Separator::Comma => "commas",
            Separator::Semicolon => "semicolons",
            Separator::Blanks => "blanks",
        }
    }

    #[inline]
    fn is(self, byte: u8) -> bool {
        match self {
            Separator::Tab => byte == b'\t',
            Separator::Comma => byte == b',',
            Separator::Semicolon => byte == b';',
            Separator::Blanks => is_blank(byte),
        }
    }

    /// Checks for a blank that is not a separator.
    #[inline]
    fn pads(self, byte: u8) -> bool {
        is_blank(byte) && (byte != b'\t' || self != Separator::Tab)
    }
}

/// A field of a line.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    /// The field's offset in the text of the line.
    pub at: usize,
    /// The field's bytes, without quotes around them.
    raw: &'a [u8],
    /// Whether quotation marks in the field are doubled.
    escaped: bool,
}

impl<'a> Field<'a> {
    #[inline]
    pub(crate) fn bytes(&self) -> Cow<'a, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// Returns the bytes as they are in the text, which is sufficient for numbers: these
    /// contain no quotation marks.
    #[inline]
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.raw
    }
}

#[cold]
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(quote) = memchr(b'"', rest) {
        plain.extend_from_slice(&rest[..=quote]);
        rest = rest.get(quote + 2..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    plain
}

/// An iterator over the fields of one line; an error is the offset of a quotation mark not
/// closed before a separator.
pub(crate) struct Fields<'a> {
    /// The text up to the end of the line.
    text: &'a [u8],
    at: usize,
    separator: Separator,
    more: bool,
}

impl<'a> Fields<'a> {
    /// Splits the line that begins at an offset; `text` ends before the line's end.
    #[inline]
    pub(crate) fn new(text: &'a [u8], at: usize, separator: Separator) -> Fields<'a> {
        Fields { text, at, separator, more: true }
    }

    #[inline]
    fn skip_padding(&mut self) {
        while self.text.get(self.at).is_some_and(|&byte| self.separator.pads(byte)) {
            self.at += 1;
        }
    }

    /// Reads a field that begins with a quotation mark.
    fn quoted(&mut self) -> Result<Field<'a>, usize> {
        let open = self.at;
        let (mut end, mut escaped) = (open + 1, false);
        loop {
            end += memchr(b'"', &self.text[end..]).ok_or(open)?;
            if self.text.get(end + 1) != Some(&b'"') {
                break;
            }
            (end, escaped) = (end + 2, true);
        }
        self.at = end + 1;
        let ends = |byte: &u8| self.separator.is(*byte) || self.separator.pads(*byte);
        if !self.text.get(self.at).is_none_or(ends) {
            return Err(open);
        }
        Ok(Field { at: open + 1, raw: &self.text[open + 1..end], escaped })
    }

    #[inline]
    fn plain(&mut self) -> Field<'a> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|&byte| !self.separator.is(byte)) {
            self.at += 1;
        }
        let mut end = self.at;
        while end > start && self.separator.pads(self.text[end - 1]) {
            end -= 1;
        }
        Field { at: start, raw: &self.text[start..end], escaped: false }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, usize>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if !self.more {
            return None;
        }
        self.skip_padding();
        if self.separator == Separator::Blanks && self.at == self.text.len() {
            return None;
        }
        let field = if self.text.get(self.at) == Some(&b'"') { self.quoted() } else { Ok(self.plain()) };
        self.skip_padding();
        match self.text.get(self.at) {
            _ if field.is_err() => self.more = false,
            Some(&byte) if self.separator.is(byte) => self.at += 1,
            // After a quoted field, only blanks may come before the separator.
            Some(_) if self.separator != Separator::Blanks => {
                self.more = false;
                return Some(Err(self.at));
            }
            Some(_) => {}
            None => self.more = false,
        }
        Some(field)
    }
}

/// Formats a field for a table with commas as separators, in quotes if necessary.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    let special = |byte: u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    // Blanks at the ends would be lost, and many readers treat a line that begins with # as a comment.
    let edges = text.trim() != text || text.starts_with(['#', '%']) || text.is_empty();
    if edges || text.bytes().any(special) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, separator: Separator) -> Result<Vec<String>, usize> {
        Fields::new(line.as_bytes(), 0, separator)
            .map(|field| field.map(|field| String::from_utf8(field.bytes().into_owned()).unwrap()))
            .collect()
    }

    fn expected(words: &[&str]) -> Result<Vec<String>, usize> {
        Ok(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn fields_are_split_only_at_their_separator() {
        assert_eq!(fields(" a  b\tc \r", Separator::Blanks), expected(&["a", "b", "c"]));
        assert_eq!(fields("a b\t c,d\t", Separator::Tab), expected(&["a b", "c,d", ""]));
        assert_eq!(
            fields("a b , \"c, \"\"d\"\"\" ,e\r", Separator::Comma),
            expected(&["a b", "c, \"d\"", "e"])
        );
        assert_eq!(fields("\"a b\" \"\"", Separator::Blanks), expected(&["a b", ""]));
        assert_eq!(fields("a;;b", Separator::Semicolon), expected(&["a", "", "b"]));
        assert_eq!(fields("", Separator::Blanks), expected(&[]));
        assert_eq!(fields("it\"s,5\"", Separator::Comma), expected(&["it\"s", "5\""]));
    }

    #[test]
    fn quotes_not_closed_before_the_separator_are_faults() {
        for (line, at) in [("a,\"b", 2), ("a,\"b\"c", 2), ("\"a\" b,c", 4), ("a,\"\"\"", 2)] {
            assert_eq!(fields(line, Separator::Comma), Err(at), "{line}");
        }
    }

    #[test]
    fn quoted_fields_are_read_back() {
        for text in ["a", "a,b", "\"", " a ", "", "#a", "say \"a\", b", "ä b"] {
            assert_eq!(fields(&quoted(text), Separator::Comma), expected(&[text]));
        }
    }
}
