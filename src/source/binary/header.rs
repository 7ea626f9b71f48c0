//! The header of a binary matrix file. Its sizes are accepted only if they agree with the length of the file.

use crate::format::{Offsets, Values};
use crate::source::{Content, catalog, kinds};
use xxhash_rust::xxh3::xxh3_64;

/// Built like PNG's magic: a byte that is not text, a name, and line ends that any conversion
/// of text would change.
pub(super) const MAGIC: &[u8; 8] = b"\x93SLV\r\n\x1a\n";
/// Layout version; increment it with every change to the layout.
const VERSION: u32 = 2;
/// Alignment of arrays in the file: a cache line.
pub(super) const ALIGNMENT: usize = 64;
/// Bytes covered by one checksum.
pub(super) const BLOCK: usize = 1 << 20;

/// Identifies the source of a matrix: a fingerprint of the file's content, its length, and the reading
/// options. All zeros for a file that was not made from another file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::source) struct Key {
    pub content: u128,
    pub length: u64,
    pub as_stored: bool,
}

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Ones,
    F32,
    F64,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Ones, Kind::F32, Kind::F64];

    fn width(self) -> usize {
        match self {
            Kind::Ones => 0,
            Kind::F32 => 4,
            Kind::F64 => 8,
        }
    }
}

/// Name and shape of a dense array stored with the matrix.
pub(super) struct AttachedHeader {
    pub name: String,
    pub rows: usize,
    pub cols: usize,
}

/// The byte range of an array in the file.
pub(super) struct Span {
    pub name: String,
    pub start: usize,
    pub length: usize,
}

pub(super) struct Header {
    pub rows: usize,
    pub cols: usize,
    pub entries: usize,
    pub stored: u64,
    pub symmetric: bool,
    pub offset_width: usize,
    pub values: Kind,
    pub key: Key,
    pub stand_in: Option<&'static str>,
    /// The kind of the source file.
    pub kind: Option<&'static str>,
    pub attached: Vec<AttachedHeader>,
    /// Names of the arrays in the source file that are not stored here.
    pub unread: Vec<String>,
    pub checksums: Vec<u64>,
    spans: Vec<Span>,
}

/// Compares two checksums. A fuzzer may pass with any, otherwise it would never get beyond them.
pub(super) fn checksum_matches(expected: u64, got: u64) -> bool {
    expected == got || cfg!(fuzzing)
}

/// Returns the number of blocks of an array of `length` bytes.
pub(super) fn blocks(length: usize) -> usize {
    length.div_ceil(BLOCK)
}

impl Header {
    pub(crate) fn of(content: &Content<'_>, key: &Key, checksums: Vec<u64>) -> Header {
        let matrix = content.matrix;
        let attached = content.arrays().map(|(name, values)| AttachedHeader {
            name: name.to_owned(),
            rows: values.rows(),
            cols: values.cols(),
        });
        Header {
            rows: matrix.rows(),
            cols: matrix.cols(),
            entries: matrix.nnz(),
            stored: content.stored,
            symmetric: content.symmetric,
            offset_width: matrix.row_offsets().width(),
            values: match matrix.values() {
                Values::Ones => Kind::Ones,
                Values::F32(_) => Kind::F32,
                Values::F64(_) => Kind::F64,
            },
            key: key.clone(),
            stand_in: content.stand_in,
            kind: content.kind,
            attached: attached.collect(),
            // Without a source file there is no other place where the unread arrays could be found.
            unread: if *key == Key::default() { Vec::new() } else { content.attached_unread.to_vec() },
            checksums,
            spans: Vec::new(),
        }
    }

    /// Returns the byte ranges of the arrays, in the order of the file.
    pub(crate) fn arrays(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, number: u64| out.extend_from_slice(&number.to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            out.extend_from_slice(&(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        };
        for size in [self.rows, self.cols, self.entries] {
            number(&mut out, size as u64);
        }
        number(&mut out, self.stored);
        let flags = [self.symmetric, self.key.as_stored].map(u8::from);
        out.extend_from_slice(&[flags[0], flags[1], self.offset_width as u8, self.values as u8]);
        out.extend_from_slice(&self.key.content.to_le_bytes());
        number(&mut out, self.key.length);
        text(&mut out, self.stand_in.unwrap_or_default());
        text(&mut out, self.kind.unwrap_or_default());
        number(&mut out, self.unread.len() as u64);
        self.unread.iter().for_each(|name| text(&mut out, name));
        number(&mut out, self.attached.len() as u64);
        for attached in &self.attached {
            text(&mut out, &attached.name);
            number(&mut out, attached.rows as u64);
            number(&mut out, attached.cols as u64);
        }
        for &sum in &self.checksums {
            number(&mut out, sum);
        }
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&VERSION.to_le_bytes());
        number(&mut file, out.len() as u64);
        file.extend_from_slice(&out);
        let sum = xxh3_64(&file);
        number(&mut file, sum);
        file
    }

    /// Reads and checks the header of a complete file; the error message completes a sentence about the file.
    pub(crate) fn decode(file: &[u8]) -> Result<Header, String> {
        let mut reader = Reader { rest: file };
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err("it is not a matrix in the binary format of this program".to_owned());
        }
        let version = u32::from_le_bytes(reader.array()?);
        if version != VERSION {
            return Err(format!(
                "it has version {version} of the binary format, and this program reads {VERSION}"
            ));
        }
        let length = reader.size("the header")?;
        let body = reader.bytes(length)?;
        let checked = &file[..file.len() - reader.rest.len()];
        if !checksum_matches(reader.number()?, xxh3_64(checked)) {
            return Err("it is damaged: the checksum of its header is wrong".to_owned());
        }
        let start = file.len() - reader.rest.len();
        let mut body = Reader { rest: body };
        let mut header = body.header()?;
        let end = header.lay_out(start)?;
        if end != file.len() {
            return Err(format!("it has {} bytes, and should have {end}", file.len()));
        }
        let count = header.spans.iter().map(|span| blocks(span.length)).sum::<usize>();
        if Some(body.rest.len()) != count.checked_mul(8) {
            return Err("its header has checksums for another number of blocks".to_owned());
        }
        header.checksums = body.rest.as_chunks().0.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
        Ok(header)
    }

    /// Computes the byte range of every array, the first after `start` bytes of header; returns
    /// the end of the last one.
    fn lay_out(&mut self, start: usize) -> Result<usize, String> {
        let offsets = self.rows.checked_add(1);
        let mut arrays = vec![
            ("row offsets".to_owned(), offsets, self.offset_width),
            ("column indices".to_owned(), Some(self.entries), 4),
        ];
        if self.values != Kind::Ones {
            arrays.push(("values".to_owned(), Some(self.entries), self.values.width()));
        }
        for attached in &self.attached {
            arrays.push((attached.name.clone(), attached.rows.checked_mul(attached.cols), 8));
        }
        let mut end = start;
        for (name, count, width) in arrays {
            let span = count.and_then(|count| {
                let (start, length) = (end.checked_next_multiple_of(ALIGNMENT)?, count.checked_mul(width)?);
                start.checked_add(length).map(|end| (start, length, end))
            });
            let Some((start, length, next)) = span else {
                return Err(format!("its {name} would be longer than any file"));
            };
            end = next;
            self.spans.push(Span { name, start, length });
        }
        Ok(end)
    }
}

/// Reads numbers and texts from the front of a byte slice.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or("it is truncated")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or("it is truncated")?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn number(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    fn size(&mut self, what: &str) -> Result<usize, String> {
        let size = self.number()?;
        usize::try_from(size).map_err(|_| format!("{size} for {what} is more than this machine can address"))
    }

    fn flag(&mut self, what: &str) -> Result<bool, String> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(format!("{other} for {what} is neither 0 nor 1")),
        }
    }

    fn text(&mut self, what: &str) -> Result<String, String> {
        let length = self.size(what)?;
        let bytes = self.bytes(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("{what} is not valid UTF-8"))
    }

    /// Reads all fields except the checksums, which follow.
    fn header(&mut self) -> Result<Header, String> {
        let (rows, cols) = (self.size("the rows")?, self.size("the columns")?);
        let (entries, stored) = (self.size("the entries")?, self.number()?);
        let symmetric = self.flag("symmetry")?;
        let as_stored = self.flag("reading as stored")?;
        let [offset_width, values] = self.array()?;
        if !matches!(offset_width, 4 | 8) {
            return Err(format!("row offsets of {offset_width} bytes are neither 4 nor 8 wide"));
        }
        if offset_width == 4 && entries as u64 > Offsets::MOST_NARROW {
            return Err(format!("{entries} entries are too many for row offsets of 4 bytes"));
        }
        let values = *Kind::ALL
            .get(usize::from(values))
            .ok_or_else(|| format!("values of kind {values} are unknown"))?;
        let (content, length) = (u128::from_le_bytes(self.array()?), self.number()?);
        let stand_in = match self.text("the name of the real matrix")?.as_str() {
            "" => None,
            real => Some(
                catalog::full_name(real).ok_or_else(|| format!("it imitates {real}, which is unknown"))?,
            ),
        };
        let kind = self.text("the kind of file")?;
        let kind = kinds::kinds().find(|known| *known == kind);
        let mut unread = Vec::new();
        for _ in 0..self.number()? {
            unread.push(self.text("the name of an unread array")?);
        }
        let mut attached = Vec::new();
        for _ in 0..self.number()? {
            let name = self.text("the name of a dense array")?;
            let (rows, cols) = (self.size("its rows")?, self.size("its columns")?);
            attached.push(AttachedHeader { name, rows, cols });
        }
        Ok(Header {
            rows,
            cols,
            entries,
            stored,
            symmetric,
            offset_width: usize::from(offset_width),
            values,
            key: Key { content, length, as_stored },
            stand_in,
            kind,
            attached,
            unread,
            checksums: Vec::new(),
            spans: Vec::new(),
        })
    }
}
