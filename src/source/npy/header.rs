//! The header: a magic, a version, the length of the rest, and a Python dictionary of three keys.

/// The content of a header.
pub(super) struct Header {
    /// The type as NumPy spells it: byte order, kind, bytes.
    pub descr: String,
    /// Whether the numbers are stored column by column.
    pub fortran: bool,
    pub shape: Vec<u64>,
}

/// Formats a shape as Python does, except for a single dimension.
pub(crate) fn in_words(shape: &[u64]) -> String {
    let sizes: Vec<_> = shape.iter().map(u64::to_string).collect();
    format!("({})", sizes.join(", "))
}

/// The expected and the found content.
type Fault = (String, String);

impl Header {
    /// Returns the bytes of one element; 0 if the type has no width here.
    pub(crate) fn width(&self) -> usize {
        let digits = self.descr.trim_start_matches(|c: char| !c.is_ascii_digit());
        let width: usize = digits.parse().unwrap_or(0);
        // Strings count characters, of four bytes each.
        if self.kind() == Some('U') { width.saturating_mul(4) } else { width }
    }

    /// Returns the bytes of all numbers.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.width() as u64, |size, &n| size.checked_mul(n))
    }

    /// Returns the letter of the type.
    pub(crate) fn kind(&self) -> Option<char> {
        self.descr.chars().find(char::is_ascii_alphabetic)
    }

    /// Checks whether the byte order is opposite to this machine's.
    pub(crate) fn is_swapped(&self) -> bool {
        let big = self.descr.starts_with('>');
        let little = self.descr.starts_with('<');
        if cfg!(target_endian = "big") { little } else { big }
    }

    pub(crate) fn shape_in_words(&self) -> String {
        in_words(&self.shape)
    }

    /// Returns the single string in `bytes`.
    pub(crate) fn string(&self, bytes: &[u8]) -> Option<String> {
        let text: String = match self.kind()? {
            'S' => bytes.iter().map(|&byte| char::from(byte)).collect(),
            'U' => {
                bytes.as_chunks::<4>().0.iter().map(|&code| self.character(code)).collect::<Option<_>>()?
            }
            _ => return None,
        };
        Some(text.trim_end_matches('\0').to_owned())
    }

    fn character(&self, code: [u8; 4]) -> Option<char> {
        let code =
            if self.descr.starts_with('>') { u32::from_be_bytes(code) } else { u32::from_le_bytes(code) };
        char::from_u32(code)
    }
}

/// Reads the header; returns it with the offset at which the numbers begin.
pub(super) fn parse(bytes: &[u8]) -> Result<(Header, usize), Fault> {
    let cut = || ("a complete header".to_owned(), "end of file".to_owned());
    let rest = bytes.strip_prefix(super::MAGIC).ok_or_else(|| {
        (
            "the bytes that every NumPy array begins with".to_owned(),
            bytes.iter().take(6).map(|byte| format!("{byte:02x} ")).collect(),
        )
    })?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (length, rest) = match version[0] {
        1 => rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_le_bytes(*length)), rest)),
        2 | 3 => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        other => return Err(("version 1, 2 or 3 of the header".to_owned(), other.to_string())),
    }
    .ok_or_else(cut)?;
    let dictionary = rest.get(..length).ok_or_else(cut)?;
    let text = String::from_utf8_lossy(dictionary);
    let header = read_dictionary(&text).ok_or_else(|| {
        let expected = "a header with 'descr', 'fortran_order' and 'shape' of an array of plain numbers";
        (expected.to_owned(), text.trim_end().escape_debug().take(120).collect())
    })?;
    Ok((header, bytes.len() - rest.len() + length))
}

/// Reads the three values by their keys. No key contains another, and none occurs within a value that
/// describes plain numbers.
fn read_dictionary(text: &str) -> Option<Header> {
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}'"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr = value("descr")?.strip_prefix('\'')?.split_once('\'')?.0.to_owned();
    let order = value("fortran_order")?;
    let fortran = order.starts_with("True");
    if !fortran && !order.starts_with("False") {
        return None;
    }
    let inside = value("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape = sizes.map(|size| size.trim_end_matches('L').parse().ok()).collect::<Option<_>>()?;
    Some(Header { descr, fortran, shape })
}

/// Encodes a header, padded so that the numbers begin at a multiple of 64.
pub(super) fn encode(descr: &str, shape: &[usize]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let sizes = if shape.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let before = super::MAGIC.len() + 4;
    let length = (before + text.len() + 1).next_multiple_of(64) - before;
    let mut bytes = [super::MAGIC, &[1, 0], &(length as u16).to_le_bytes(), text.as_bytes()].concat();
    bytes.resize(before + length - 1, b' ');
    bytes.push(b'\n');
    bytes
}
