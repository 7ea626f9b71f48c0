//! Edges between whole numbers, read from the lines of a file, and the graph that they make.

use super::direction::mirror;
use super::ids::close_gaps;
use super::portions::Portions;
use super::text::{Fault, Text, check_rows};
use super::tokens::{ListTokens, Scan, pieces};
use super::{Loaded, Options};
use crate::error::{Error, Result};
use crate::format::Coo;
use crate::parallel::{grow, run_all};
use memchr::memrchr;
use std::ops::Range;

/// How the lines of comments begin.
pub(super) const COMMENTS: &[u8] = b"#%";

/// Edges of a piece of the file, in its order.
#[derive(Default)]
pub(super) struct Edges {
    pub from: Vec<u32>,
    pub to: Vec<u32>,
    /// Empty where edges have no weights.
    pub weights: Vec<f64>,
}

/// How the lines of a file are read as edges between whole numbers.
pub(super) trait Lines: Copy + Sync + Send {
    /// Whether edges have weights.
    fn weighted(&self) -> bool;

    /// Whether each edge is read in both directions.
    fn both(&self) -> bool;

    /// Reads the lines of a piece and tells the meter; edges before a fault are there.
    fn read(&self, text: Text, piece: Range<usize>, edges: &mut Edges) -> Scan<()>;
}

/// How the edges of a file are written.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Whether a third word is there on every line.
    pub weighted: bool,
    /// Whether each edge is read in both directions.
    pub both: bool,
    /// The number of the first node.
    pub first: u64,
    /// The number after that of the last node that there can be.
    pub end: u64,
}

impl Lines for Layout {
    fn weighted(&self) -> bool {
        self.weighted
    }

    fn both(&self) -> bool {
        self.both
    }

    fn read(&self, text: Text, piece: Range<usize>, edges: &mut Edges) -> Scan<()> {
        let mut words = ListTokens::metered(text, piece);
        let read = parse_lines(&mut words, *self, edges);
        words.tell();
        read
    }
}

/// Makes the graph of all its edges. `sizes` is the first line, and the number of lines that it announces, where it may hold
/// sizes.
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
    Ok(Loaded { ids, first_id: Some(0), ..Loaded::new(matrix, stored, lines.both()) })
}

/// Parses the edges, as a matrix without a size. Where there is a fault, those before it are there.
pub(super) fn parse(portions: Portions, lines: impl Lines, all: &mut Coo) -> Result<()> {
    portions.begin();
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

fn parse_piece(text: Text, piece: Range<usize>, lines: impl Lines) -> (Edges, Option<Box<Fault>>) {
    let mut edges = Edges::default();
    let fault = lines.read(text, piece, &mut edges).err();
    (edges, fault)
}

fn parse_lines(words: &mut ListTokens, layout: Layout, edges: &mut Edges) -> Scan<()> {
    while words.seek_line(COMMENTS) {
        let from = words.whole("a node", layout.first..layout.end)?;
        words.skip_separator();
        let to = words.whole("a node", layout.first..layout.end)?;
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

/// Whether no other edge has a node above both numbers of the first line.
fn first_is_largest(triplets: &Coo) -> bool {
    let (Some(&from), Some(&to)) = (triplets.row_indices.first(), triplets.col_indices.first()) else {
        return false;
    };
    let nodes = if triplets.values.is_empty() { from } else { from.max(to) };
    let others = triplets.row_indices[1..].iter().chain(&triplets.col_indices[1..]);
    others.max().is_none_or(|&largest| largest <= nodes)
}

#[cold]
pub(super) fn refuse_sizes(text: Text, first: &str) -> Error {
    text.unsupported(
        &format!("an edge list whose first line, '{first}', looks like its sizes"),
        "remove that line; where it is an edge, put a line that begins with # above it; where the file is a Matrix \
         Market file without its banner, put the banner back",
    )
}

/// Points at the first edge with the node that is too large.
#[cold]
fn locate(portions: Portions, lines: impl Lines, node: u32, error: Error) -> Error {
    let expected =
        "nodes numbered from 0 with few gaps, at most 2^24 and 64 more for each edge; number them anew";
    let found = find(portions, lines, |edge| {
        (edge.from == [node] || edge.to == [node]).then(|| (expected.to_owned(), format!("node {node}")))
    });
    found.unwrap_or(error)
}

/// Points at the edge with which the weights of an edge that is listed again have a sum beyond all numbers.
#[cold]
fn locate_sum(portions: Portions, lines: impl Lines, row: usize, col: usize) -> Error {
    let mut sum = 0.0_f64;
    let found = find(portions, lines, |edge| {
        if edge.from == [row as u32] && edge.to == [col as u32] {
            sum += edge.weights.iter().sum::<f64>();
        }
        let expected = format!("weights of the edge from {row} to {col} with a finite sum");
        (!sum.is_finite()).then(|| (expected, format!("a sum of {sum}")))
    });
    found.unwrap_or(Error::DuplicateOverflow { row, col })
}

/// Points at the first edge for which `fault` gives what was expected and what was found.
fn find(
    portions: Portions,
    lines: impl Lines,
    mut fault: impl FnMut(&Edges) -> Option<(String, String)> + Send,
) -> Option<Error> {
    let gone_over = portions.unmetered().each(|text, start| {
        let mut words = ListTokens::new(text.bytes, start);
        while words.seek_line(COMMENTS) {
            let at = words.at;
            // A blank before the edge may be an empty column.
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
    gone_over.err()
}
