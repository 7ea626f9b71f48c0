//! WebGraph's compressed graphs in the BV format: a `.graph` file with a bit stream, recognised only by the
//! `.properties` file next to it.
//!
//! The successors of a vertex are encoded in up to three parts: blocks copied from one of a few preceding
//! vertices, intervals of consecutive numbers, and the residuals as gaps. Numbers have instantaneous bit
//! codes (`bits.rs`), so one thread reads the file sequentially.
//!
//! The crate `webgraph` reads these files too. It would add about a hundred crates, one of them in
//! C, and nearly double a cold build, while this reader takes 650 lines; the tests check it
//! against their own encoder.
//!
//! P. Boldi and S. Vigna, The WebGraph framework I: compression techniques, WWW 2004; the codes: The WebGraph
//! framework II: codes for the World-Wide Web, DCC 2004.

mod bits;
mod properties;

use super::text::{Text, check_rows};
use super::{Loaded, Options};
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets, Values};
use crate::parallel::room;
use bits::Bits;
use properties::Properties;
use std::path::Path;

/// Checks whether the file is a graph's properties, or a bit stream with a properties file next to it.
pub(super) fn recognises(text: Text) -> bool {
    if text.bytes.starts_with(b"#") {
        return is_properties(text);
    }
    let is_text =
        text.bytes.iter().take(256).all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    !text.bytes.is_empty() && !is_text && properties::sibling(text.path).is_some()
}

fn is_properties(text: Text) -> bool {
    text.bytes.starts_with(b"#") && properties::recognises(text.bytes)
}

/// Checks whether the path is a `.graph` file whose properties declare this format. The content does not
/// matter: a short bit stream may consist of printable characters.
pub(super) fn is_named(path: &Path) -> bool {
    let bits = || properties::sibling(path).is_some_and(|(_, bytes)| properties::names_bits(&bytes));
    path.extension().is_some_and(|ending| ending == "graph") && bits()
}

/// Reads the graph: the entry (i, j) is the link from i to j. `text` is either the properties
/// file or the bit stream.
pub(super) fn read(text: Text, _: &Options) -> Result<Loaded> {
    if is_properties(text) {
        let path = text.path.with_extension("graph");
        return super::mmap::with(&path, |bytes| {
            decode(Text { path: &path, bytes, meter: text.meter, lines: 0 }, text.bytes, text.path)
        });
    }
    let (path, properties) = properties::sibling(text.path).unwrap_or_default();
    decode(text, &properties, &path)
}

/// The rows of one of several parts of a graph.
pub struct GraphPart {
    /// The first row.
    pub first: usize,
    /// The number of vertices of the whole graph.
    pub vertices: usize,
    /// The rows; their columns are those of the whole graph.
    pub links: Csr,
}

/// Reads one of several parts of the graph, with about the same number of links each; none if the
/// file is of another kind.
pub(super) fn read_part(text: Text, part: (usize, usize)) -> Result<Option<GraphPart>> {
    let decode = |text: Text, properties: &[u8], path: &Path| {
        let properties = Properties::parse(path, properties)?;
        let (first, links) = graph(text, &properties, part)?;
        Ok(Some(GraphPart { first, vertices: properties.nodes, links }))
    };
    if is_properties(text) {
        let path = text.path.with_extension("graph");
        return super::mmap::with(&path, |bytes| {
            decode(Text { path: &path, bytes, ..text }, text.bytes, text.path)
        });
    }
    if !is_named(text.path) && !recognises(text) {
        return Ok(None);
    }
    let (path, properties) = properties::sibling(text.path).unwrap_or_default();
    decode(text, &properties, &path)
}

fn decode(text: Text, properties: &[u8], properties_path: &Path) -> Result<Loaded> {
    let properties = Properties::parse(properties_path, properties)?;
    let (_, matrix) = graph(text, &properties, (0, 1))?;
    let arcs = matrix.nnz() as u64;
    Ok(Loaded { first_id: Some(0), ..Loaded::new(matrix, arcs, false) })
}

/// Vertices between two updates of the meter.
const REPORT_EVERY: usize = 4096;
/// Links from which on those before the window are forgotten, if the part has not begun.
const FORGOTTEN: usize = 1 << 20;

/// Decodes one of several parts of the graph. Returns the first vertex of the part and its links.
fn graph(text: Text, properties: &Properties, (part, parts): (usize, usize)) -> Result<(usize, Csr)> {
    let nodes = properties.nodes;
    // Every vertex takes at least one bit.
    if nodes as u64 > 8 * text.bytes.len() as u64 {
        let expected = format!("{nodes} vertices, as the properties say");
        return Err(malformed(text, 0, expected, format!("{} bytes", text.bytes.len())));
    }
    check_rows(nodes, properties.arcs)?;
    text.begin("reading", text.bytes.len());
    let mut reader = Reader {
        bits: Bits::new(text.bytes),
        properties,
        kept: 0,
        arcs: 0,
        columns: Vec::new(),
        offsets: room(nodes / parts + 1)?,
    };
    // The announced number of links is reserved only as far as the length of the bit stream makes it
    // plausible; the vector grows if there are more.
    let plausible = properties.arcs.min(16 * text.bytes.len() as u64);
    reader.columns = room(plausible as usize / parts)?;
    reader.offsets.push(0);
    let mut scratch = Scratch::default();
    let (mut reported, mut first) = (0, if part == 0 { Some(0) } else { None });
    // A vertex is in the part in which the links before it end.
    let begin = |part: usize| (u128::from(properties.arcs) * part as u128).div_ceil(parts as u128) as u64;
    let (mut end, mut limit) = (nodes, FORGOTTEN);
    for node in 0..nodes {
        if part + 1 < parts && reader.arcs >= begin(part + 1) {
            end = node;
            break;
        }
        if first.is_none() {
            if reader.arcs >= begin(part) {
                first = Some(node);
                reader.forget(node);
            } else if reader.columns.len() > limit {
                reader.forget(node);
                limit = 2 * reader.columns.len() + FORGOTTEN;
            }
        }
        reader.node(node, &mut scratch).map_err(|fault| match fault {
            Fault::Malformed(expected, found) => malformed(text, node, expected, found),
            Fault::Other(error) => error,
        })?;
        if node % REPORT_EVERY == 0 {
            let at = reader.bits.at() / 8;
            text.advance(at - reported);
            reported = at;
        }
    }
    if end == nodes && reader.arcs != properties.arcs {
        let expected = format!("{} links, as the properties say", properties.arcs);
        return Err(malformed(text, nodes, expected, reader.arcs.to_string()));
    }
    let first = first.unwrap_or(end);
    reader.cut(first);
    let Reader { columns, offsets, .. } = reader;
    let offsets = match offsets.last() {
        Some(&end) if end > Offsets::MOST_NARROW => Offsets::U64(offsets),
        _ => Offsets::U32(offsets.into_iter().map(|offset| offset as u32).collect()),
    };
    Ok((first, Csr::new(end - first, nodes, offsets, columns, Values::Ones)?))
}

fn malformed(text: Text, node: usize, expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::Malformed {
        path: text.path.to_owned(),
        part: format!("vertex {node}"),
        expected: expected.into(),
        found: found.into(),
    }
}

enum Fault {
    /// What was expected, and what was found.
    Malformed(String, String),
    Other(Error),
}

impl From<(String, String)> for Fault {
    fn from((expected, found): (String, String)) -> Fault {
        Fault::Malformed(expected, found)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Other(error)
    }
}

type Decoded<T> = std::result::Result<T, Fault>;

/// Makes room for `more` links. The capacity doubles, up to `most`, if memory permits. A few bits can encode
/// any number of links, and a plain `reserve` would succeed for memory that the system does not have.
fn make_room(columns: &mut Vec<u32>, more: usize, most: usize) -> Result<()> {
    let needed = columns.len().saturating_add(more);
    if needed <= columns.capacity() {
        return Ok(());
    }
    let ample = columns.len().saturating_mul(2).min(most).max(needed);
    let mut grown = room(ample).or_else(|_| room(needed))?;
    grown.extend_from_slice(columns);
    *columns = grown;
    Ok(())
}

struct Reader<'a> {
    bits: Bits<'a>,
    properties: &'a Properties,
    /// The first vertex whose links are kept.
    kept: usize,
    /// Number of links read.
    arcs: u64,
    /// The links of the vertices from `kept` on, and the offset of each vertex.
    columns: Vec<u32>,
    offsets: Vec<u64>,
}

/// Buffers for the copied successors and the intervals of a vertex, reused for all vertices.
#[derive(Default)]
struct Scratch {
    copied: Vec<u32>,
    intervals: Vec<(u64, u64)>,
}

impl Reader<'_> {
    fn successors(&self, node: usize) -> std::ops::Range<usize> {
        let at = node - self.kept;
        self.offsets[at] as usize..self.offsets[at + 1] as usize
    }

    /// Forgets the links of the vertices that `node` and later ones cannot copy from.
    fn forget(&mut self, node: usize) {
        let window = usize::try_from(self.properties.window).unwrap_or(usize::MAX);
        self.cut(node.saturating_sub(window).max(self.kept));
    }

    /// Forgets the links of the vertices before `first`.
    fn cut(&mut self, first: usize) {
        let vertices = first - self.kept;
        let links = self.offsets[vertices];
        self.columns.drain(..links as usize);
        self.offsets.drain(..vertices);
        self.offsets.iter_mut().for_each(|offset| *offset -= links);
        self.kept = first;
    }

    /// Reads the successors of the next vertex.
    fn node(&mut self, node: usize, scratch: &mut Scratch) -> Decoded<()> {
        let p = self.properties;
        let nodes = p.nodes as u64;
        let degree = self.number(p.codes.outdegrees, "a number of links", nodes)?;
        self.arcs += degree;
        if self.arcs > p.arcs {
            let found = format!("{} or more", self.arcs);
            return Err((format!("{} links in all, as the properties say", p.arcs), found).into());
        }
        scratch.copied.clear();
        scratch.intervals.clear();
        let mut left = degree;
        if degree > 0 {
            if p.window > 0 {
                let reference = self.number(p.codes.references, "a reference", p.window.min(node as u64))?;
                if reference > 0 {
                    self.copy(node - reference as usize, &mut scratch.copied)?;
                    left = left.checked_sub(scratch.copied.len() as u64).ok_or_else(|| {
                        (format!("at most {degree} copied links"), scratch.copied.len().to_string())
                    })?;
                }
            }
            if left > 0 && p.shortest_interval > 0 {
                left = self.intervals(node as u64, left, &mut scratch.intervals)?;
            }
            self.merge(node as u64, left, degree, scratch)?;
        }
        self.offsets.push(self.columns.len() as u64);
        Ok(())
    }

    /// Reads the successors shared with an earlier vertex: blocks of that vertex's list are
    /// alternately copied and skipped.
    fn copy(&mut self, from: usize, copied: &mut Vec<u32>) -> Decoded<()> {
        let list = self.successors(from);
        let blocks =
            self.number(self.properties.codes.blocks_count, "a number of blocks", list.len() as u64 + 1)?;
        let mut at = list.start;
        for block in 0..blocks {
            let least = u64::from(block > 0);
            let most = (list.end - at) as u64;
            let length = self.number(self.properties.codes.blocks, "the length of a block", most)? + least;
            if length > most {
                return Err((format!("a block of at most {most} links"), length.to_string()).into());
            }
            let end = at + length as usize;
            if block % 2 == 0 {
                copied.extend_from_slice(&self.columns[at..end]);
            }
            at = end;
        }
        // After an even number of blocks the rest is copied too.
        if blocks % 2 == 0 {
            copied.extend_from_slice(&self.columns[at..list.end]);
        }
        Ok(())
    }

    /// Reads the intervals of consecutive successors; returns the number of successors left after them.
    fn intervals(&mut self, node: u64, mut left: u64, intervals: &mut Vec<(u64, u64)>) -> Decoded<u64> {
        let (nodes, shortest) = (self.properties.nodes as u64, self.properties.shortest_interval);
        let count = self.gamma("a number of intervals", left / shortest)?;
        let mut next = 0;
        for interval in 0..count {
            let start = if interval == 0 {
                self.around(node, |reader| reader.gamma("the beginning of an interval", 2 * nodes))?
            } else {
                next + 1 + self.gamma("the gap to an interval", nodes)?
            };
            let length = shortest + self.gamma("the length of an interval", nodes)?;
            next = start + length;
            if next > nodes || length > left {
                return Err((
                    format!("an interval of at most {left} vertices below {nodes}"),
                    format!("{length} from {start} on"),
                )
                    .into());
            }
            left -= length;
            intervals.push((start, next));
        }
        Ok(left)
    }

    /// Reads the `left` residuals and merges all successors in ascending order.
    fn merge(&mut self, node: u64, left: u64, degree: u64, scratch: &Scratch) -> Decoded<()> {
        let begin = self.columns.len();
        make_room(&mut self.columns, degree as usize, self.properties.arcs as usize)?;
        let mut copied = scratch.copied.iter().copied().peekable();
        let mut intervals =
            scratch.intervals.iter().flat_map(|&(start, end)| start as u32..end as u32).peekable();
        let nodes = self.properties.nodes as u64;
        let mut last = 0;
        // Each round emits the copied successors and intervals below the next residual; the last round,
        // without a residual, emits the rest.
        for residual in 0..=left {
            let value = if residual == left {
                None
            } else if residual == 0 {
                last = self.around(node, |reader| {
                    reader.number(reader.properties.codes.residuals, "the first other link", 2 * nodes)
                })?;
                Some(last)
            } else {
                last += 1 + self.number(self.properties.codes.residuals, "the gap to a link", nodes)?;
                Some(last)
            };
            if value.is_some_and(|value| value >= nodes) {
                return Err((format!("a vertex below {nodes}"), last.to_string()).into());
            }
            let before = |successor: &u32| value.is_none_or(|value| u64::from(*successor) < value);
            loop {
                let next = match (copied.peek(), intervals.peek()) {
                    (Some(a), Some(b)) if a <= b => copied.next_if(before),
                    (Some(_), None) => copied.next_if(before),
                    _ => intervals.next_if(before),
                };
                match next {
                    Some(next) => self.columns.push(next),
                    None => break,
                }
            }
            self.columns.extend(value.map(|value| value as u32));
        }
        let row = &self.columns[begin..];
        match row.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(("every link once".to_owned(), format!("one to {} twice", pair[1])).into()),
            None => Ok(()),
        }
    }

    /// Reads a number that is encoded as its signed distance from `node`: codes 0, 1, 2, 3,
    /// ... are 0, -1, 1, -2, ...
    fn around(&mut self, node: u64, read: impl FnOnce(&mut Self) -> Decoded<u64>) -> Decoded<u64> {
        let code = read(self)?;
        let half = code / 2;
        let value = if code % 2 == 0 { node.checked_add(half) } else { node.checked_sub(half + 1) };
        let fault = || ("a vertex".to_owned(), format!("one {} before vertex {node}", half + 1));
        Ok(value.ok_or_else(fault)?)
    }

    fn gamma(&mut self, what: &str, most: u64) -> Decoded<u64> {
        self.number(bits::Code::Gamma, what, most)
    }

    /// Reads a number of at most `most`.
    fn number(&mut self, code: bits::Code, what: &str, most: u64) -> Decoded<u64> {
        match self.bits.read(code) {
            Some(number) if number <= most => Ok(number),
            Some(number) => Err((format!("{what} of at most {most}"), number.to_string()).into()),
            None => Err((what.to_owned(), "the end of the file".to_owned()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn make_room_keeps_the_links_and_reports_missing_memory() {
        let mut columns = vec![7, 8];
        let error = make_room(&mut columns, 1 << 50, 1 << 60);
        assert!(matches!(error, Err(Error::OutOfMemory { .. })), "{error:?}");
        // Three more links fit.
        columns = vec![1; 1 << 10];
        assert!(make_room(&mut columns, 3, usize::MAX).is_ok());
        assert!(columns == [1; 1 << 10] && columns.capacity() >= (1 << 10) + 3);
    }
}
