//! Tables of edges between names. Several threads parse a portion into the names of its edges and the hashes
//! of the names, while one thread numbers the names of the previous portion.

use super::{Row, Rows, Shape, each_line, field_fault, logged, notes, vertex_fault};
use crate::error::{Error, Result};
use crate::format::Coo;
use crate::parallel::{grow, run_all};
use crate::source::direction::mirror;
use crate::source::labels::{Interner, checked, hash};
use crate::source::portions::Portions;
use crate::source::text::Text;
use crate::source::tokens::fields::{Field, Fields};
use crate::source::tokens::{Scan, pieces};
use crate::source::{Loaded, Options, kinds};
use std::ops::Range;

/// Distances, in names, at which each step of a lookup is prefetched: the slot, the label's
/// position there, and the label.
const AHEAD: [usize; 3] = [36, 24, 12];

/// The names of the edges of a piece in the order of the text: of each edge the source, then the target.
#[derive(Default)]
struct Names {
    text: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<u32>,
    /// Empty if no column is the weight.
    weights: Vec<f64>,
}

pub(super) fn read(text: Text, shape: &Shape, options: &Options, mixed: Vec<String>) -> Result<Loaded> {
    if let Some(first) = options.first_index {
        let reason = format!("the vertices of {} have names, which are not counted", text.path.display());
        return Err(Error::setting("first-index", first, reason));
    }
    let portions = Portions::of(text, shape.body);
    let rows = Rows::new(shape, 0);
    let mut interner = Interner::default();
    let mut edges = Coo::default();
    let mut before = Vec::new();
    portions.begin("reading");
    portions.each(|text, start| {
        let parse = || run_all(pieces(text.bytes, start), |piece| parse_piece(text, piece, &rows));
        if before.is_empty() {
            before = parse();
            return Ok(());
        }
        let (numbered, parsed) = rayon::join(|| number_all(&mut before, &mut interner, &mut edges), parse);
        before = parsed;
        numbered
    })?;
    number_all(&mut before, &mut interner, &mut edges)?;
    let notes = logged(text, notes(shape, mixed));
    let stored = edges.row_indices.len() as u64;
    let labels = interner.labels;
    (edges.rows, edges.cols) = (labels.len(), labels.len());
    let both = shape.links.both();
    if both {
        mirror(&mut edges)?;
    }
    let matrix = edges.into_csr_with(options.duplicates)?;
    Ok(Loaded { labels: Some(labels), notes, kind: Some(kinds::TABLE), ..Loaded::new(matrix, stored, both) })
}

/// Parses the names of a piece up to the first fault.
fn parse_piece(text: Text, piece: Range<usize>, rows: &Rows) -> (Names, Option<Error>) {
    let mut names = Names::default();
    let length = piece.len();
    let plain = is_plain(&text.bytes[piece.clone()]);
    let visit = |line: &[u8], at: usize| {
        let row = Row::parse(line, at, rows)?;
        let weight = row.weight()?;
        let (source, target) = (row.source.bytes(), row.target.bytes());
        for (field, name) in [(&row.source, &source), (&row.target, &target)] {
            if name.is_empty() {
                return Err(vertex_fault(field, 0));
            }
            if !plain {
                checked(name, field.at)?;
            }
            names.text.extend_from_slice(name);
            names.ends.push(names.text.len());
            names.hashes.push(hash(name));
        }
        names.weights.extend(weight);
        Ok(())
    };
    let fault = each_line(text, piece, visit, |line, at| comment(line, at, rows)).err();
    text.advance(length);
    // If the second name of a line is faulty, the line's first name has no edge.
    (names, fault.map(|fault| text.error(*fault)))
}

/// Checks by the bytes whether every name of a text is a valid label: printable ASCII. No name contains a
/// line end or a blank, except for tabs.
fn is_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

/// Refuses a line that looks like a comment but may be an edge.
fn comment(line: &[u8], at: usize, rows: &Rows) -> Scan<()> {
    if line.get(at + 1).is_none_or(|byte| b" \t#%".contains(byte)) {
        return Ok(());
    }
    let count = rows.columns.count;
    let fields: Vec<Field> = Fields::new(line, at, rows.separator).flatten().take(count + 1).collect();
    if fields.len() != count {
        return Ok(());
    }
    let words: Vec<String> = Fields::new(line, at + 1, rows.separator)
        .filter_map(|field| Some(String::from_utf8_lossy(&field.ok()?.bytes()).into_owned()))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if super::Columns::of_header(&words, |_| false).is_some() {
        return Ok(());
    }
    let expected = "a comment with a blank after its mark, or an edge with its first name in quotes";
    Err(field_fault(&fields[0], expected))
}

/// Numbers the names of a portion, up to its first fault.
fn number_all(
    portion: &mut Vec<(Names, Option<Error>)>,
    interner: &mut Interner,
    edges: &mut Coo,
) -> Result<()> {
    portion.drain(..).try_for_each(|(names, fault)| {
        number_names(&names, interner, edges)?;
        fault.map_or(Ok(()), Err)
    })
}

/// Numbers the names of a piece.
fn number_names(names: &Names, interner: &mut Interner, edges: &mut Coo) -> Result<()> {
    let count = names.ends.len() / 2;
    grow(&mut edges.row_indices, count)?;
    grow(&mut edges.col_indices, count)?;
    grow(&mut edges.values, names.weights.len())?;
    let mut start = 0;
    let mut ends = [0; 2];
    for edge in 0..count {
        for (side, end) in ends.iter_mut().enumerate() {
            let index = 2 * edge + side;
            let hash = names.hashes[index];
            let ahead = AHEAD.map(|ahead| names.hashes.get(index + ahead));
            ahead[0].inspect(|hash| interner.expect(**hash));
            ahead[1].inspect(|hash| interner.expect_slot(**hash));
            ahead[2].inspect(|hash| interner.expect_label(**hash));
            *end = interner.number(&names.text[start..names.ends[index]], hash)?;
            start = names.ends[index];
        }
        edges.row_indices.push(ends[0]);
        edges.col_indices.push(ends[1]);
    }
    edges.values.extend_from_slice(&names.weights);
    Ok(())
}
