//! Edges between numbered nodes, read from the lines of a file, and the assembly of the graph.

use super::direction::mirror;
use super::ids::close_gaps;
use super::portions::Portions;
use super::text::{Fault, Text, check_rows};
use super::tokens::{ListTokens, Scan, pieces};
use super::unsaid::UnsaidIndex;
use super::{Loaded, Options};
use crate::error::{Error, Result};
use crate::format::Coo;
use crate::parallel::{grow, run_all};
use memchr::memrchr;
use std::ops::Range;

/// Characters that begin a comment line.
pub(super) const COMMENTS: &[u8] = b"#%";

/// Edges of a piece of the file, in the order of the file.
#[derive(Default)]
pub(super) struct Edges {
    pub from: Vec<u32>,
    pub to: Vec<u32>,
    /// Empty if edges have no weights.
    pub weights: Vec<f64>,
}

/// A reader of lines as edges between numbered nodes.
pub(super) trait Lines: Copy + Sync + Send {
    /// Returns whether edges have weights.
    fn weighted(&self) -> bool;

    /// Returns whether each edge is read in both directions.
    fn both(&self) -> bool;

    /// Returns the number of the first node in the file: 0 or 1.
    fn first(&self) -> u32;

    /// Appends the edges of a piece and advances the meter. If there is a fault, `edges` holds
    /// the edges before it.
    fn read(&self, text: Text, piece: Range<usize>, edges: &mut Edges) -> Scan<()>;
}

/// The layout of plain lines: `from to` or `from to weight`.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Whether every line has a third word, the weight.
    pub weighted: bool,
    /// Whether each edge is read in both directions.
    pub both: bool,
    /// The smallest valid node number: 0 or 1.
    pub first: u64,
    /// One more than the largest valid node number.
    pub end: u64,
}

impl Lines for Layout {
    fn weighted(&self) -> bool {
        self.weighted
    }

    fn both(&self) -> bool {
        self.both
    }

    fn first(&self) -> u32 {
        self.first as u32
    }

    fn read(&self, text: Text, piece: Range<usize>, edges: &mut Edges) -> Scan<()> {
        let mut words = ListTokens::metered(text, piece);
        let read = parse_lines(&mut words, *self, edges);
        words.report_progress();
        read
    }
}

/// Assembles the graph from its edges. `sizes` is the first line, if it may hold sizes, and the number of
/// edges that it announces.
pub(super) fn assemble(
    portions: Portions,
    lines: impl Lines,
    sizes: Option<(String, u64)>,
    mut edges: Coo,
    options: &Options,
) -> Result<Loaded> {
    let stored = edges.row_indices.len() as u64;
    if let Some((first, below)) = &sizes
        && *below == stored - 1
        && first_is_largest(&edges)
    {
        return Err(refuse_sizes(portions.file, first));
    }
    let unsaid = if options.close_gaps || options.first_index.is_some() {
        None
    } else {
        unsaid(portions.file, &edges)
    };
    let ids = if options.close_gaps { close_gaps(&mut edges)? } else { None };
    let id = |row: usize| ids.as_ref().map_or(row, |ids| ids[row] as usize);
    let largest = edges.row_indices.iter().chain(&edges.col_indices).max().copied();
    let nodes = largest.map_or(0, |node| node as usize + 1);
    if let Err(error) = check_rows(nodes, stored) {
        return Err(locate(portions, lines, largest.unwrap_or(0), error));
    }
    (edges.rows, edges.cols) = (nodes, nodes);
    if lines.both() {
        mirror(&mut edges)?;
    }
    let matrix = edges.into_csr_with(options.duplicates).map_err(|error| match error {
        Error::DuplicateOverflow { row, col } => locate_sum(portions, lines, id(row), id(col)),
        other => other,
    })?;
    let first = lines.first();
    let ids = ids.map(|ids| ids.into_iter().map(|id| id + first).collect());
    let notes: Vec<String> = unsaid.iter().map(ToString::to_string).collect();
    notes.iter().for_each(|note| log::info!("{}: {note}", portions.file.path.display()));
    let unsaid_index = unsaid.map(Box::new);
    Ok(Loaded {
        ids,
        first_id: Some(first),
        notes,
        unsaid_index,
        ..Loaded::new(matrix, stored, lines.both())
    })
}

/// Returns the indices of a list that may be counted from 1, because no line has the index 0.
fn unsaid(file: Text, edges: &Coo) -> Option<UnsaidIndex> {
    let indices = || edges.row_indices.iter().chain(&edges.col_indices);
    let (smallest, largest) = (*indices().min()?, *indices().max()?);
    (smallest > 0).then(|| UnsaidIndex { path: file.path.to_owned(), smallest, largest })
}

/// Parses the edges into `all`, a matrix whose size is not set yet. If there is a fault, `all`
/// holds the edges before it.
pub(super) fn parse(portions: Portions, lines: impl Lines, all: &mut Coo) -> Result<()> {
    portions.begin("reading");
    portions.each(|text, start| {
        let parts = run_all(pieces(text.bytes, start), |piece| parse_piece(text, piece, lines));
        let more = parts.iter().map(|(edges, _)| edges.from.len()).sum();
        grow(&mut all.row_indices, more)?;
        grow(&mut all.col_indices, more)?;
        grow(&mut all.values, if lines.weighted() { more } else { 0 })?;
        for (edges, fault) in parts {
            all.row_indices.extend_from_slice(&edges.from);
            all.col_indices.extend_from_slice(&edges.to);
            all.values.extend_from_slice(&edges.weights);
            if let Some(fault) = fault {
                return Err(text.error(*fault));
            }
        }
        Ok(())
    })?;
    all.row_indices.shrink_to_fit();
    all.col_indices.shrink_to_fit();
    all.values.shrink_to_fit();
    Ok(())
}

/// Parses the edges of a piece up to the first fault.
pub(super) fn parse_piece(text: Text, piece: Range<usize>, lines: impl Lines) -> (Edges, Option<Box<Fault>>) {
    let mut edges = Edges::default();
    let fault = lines.read(text, piece, &mut edges).err();
    (edges, fault)
}

fn parse_lines(words: &mut ListTokens, layout: Layout, edges: &mut Edges) -> Scan<()> {
    while words.seek_line(COMMENTS) {
        let from = words.whole_number("a node", layout.first..layout.end)?;
        words.skip_separator();
        let to = words.whole_number("a node", layout.first..layout.end)?;
        if layout.weighted {
            words.skip_separator();
            edges.weights.push(words.number("the weight of the edge")?);
        }
        words.finish_line(b"")?;
        edges.from.push((from - layout.first) as u32);
        edges.to.push((to - layout.first) as u32);
    }
    Ok(())
}

/// Checks whether no other edge names a node above the number of nodes that the first line may announce.
fn first_is_largest(triplets: &Coo) -> bool {
    let (Some(&from), Some(&to)) = (triplets.row_indices.first(), triplets.col_indices.first()) else {
        return false;
    };
    let nodes = if triplets.values.is_empty() { from } else { from.max(to) };
    let rest = triplets.row_indices[1..].iter().chain(&triplets.col_indices[1..]);
    rest.max().is_none_or(|&largest| largest <= nodes)
}

/// Returns the error for an edge list that begins with a line of sizes.
#[cold]
pub(super) fn refuse_sizes(text: Text, first: &str) -> Error {
    text.unsupported(
        &format!("an edge list whose first line, '{first}', looks like its sizes"),
        "remove that line; if it is an edge, insert a line that begins with # above it; if this is a Matrix Market file \
         without its banner, restore the banner",
    )
}

/// Locates the first edge with the node number that is too large.
#[cold]
fn locate(portions: Portions, lines: impl Lines, node: u32, error: Error) -> Error {
    let expected = format!(
        "nodes numbered from {} with few gaps, at most 2^24 and 64 more for each edge; number them anew",
        lines.first()
    );
    let shown = format!("node {}", u64::from(node) + u64::from(lines.first()));
    let found = find(portions, lines, |edge| {
        (edge.from == [node] || edge.to == [node]).then(|| (expected.clone(), shown.clone()))
    });
    found.unwrap_or(error)
}

/// Locates the line at which the sum of a repeated edge's weights overflows.
#[cold]
pub(super) fn locate_sum(portions: Portions, lines: impl Lines, row: usize, col: usize) -> Error {
    let mut sum = 0.0_f64;
    let found = find(portions, lines, |edge| {
        if edge.from == [row as u32] && edge.to == [col as u32] {
            sum += edge.weights.iter().sum::<f64>();
        }
        let [from, to] = [row, col].map(|index| index + lines.first() as usize);
        let expected = format!("weights of the edge from {from} to {to} with a finite sum");
        (!sum.is_finite()).then(|| (expected, format!("a sum of {sum}")))
    });
    found.unwrap_or(Error::DuplicateOverflow { row, col })
}

/// Locates the first edge for which `fault` returns what was expected and what was found.
fn find(
    portions: Portions,
    lines: impl Lines,
    mut fault: impl FnMut(&Edges) -> Option<(String, String)> + Send,
) -> Option<Error> {
    let searched = portions.unmetered().each(|text, start| {
        let mut words = ListTokens::new(text.bytes, start);
        while words.seek_line(COMMENTS) {
            let at = words.at;
            // The line is read from its beginning, because a blank before the edge may be an empty column.
            let begin = memrchr(b'\n', &text.bytes[start..at]).map_or(start, |newline| start + newline + 1);
            words.skip_line();
            let mut edge = Edges::default();
            let _ = lines.read(text, begin..words.at, &mut edge);
            if let Some((expected, found)) = fault(&edge) {
                return Err(text.error(Fault { at, expected, found: Some(found) }));
            }
        }
        Ok(())
    });
    searched.err()
}
