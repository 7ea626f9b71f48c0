//! Edge lists, as the SNAP collection has them: a line `from to` or `from to weight` for every edge, the words apart by
//! blanks, tabs or a comma. Comments begin with `#` or `%`.
//!
//! Nodes are the numbers that stand there, counted from 0, so n is the largest of them plus one, and numbers that no
//! edge names are rows without entries, unless [`Options::close_gaps`] leaves them out. An edge that is listed again is summed: values count edges, or add up their
//! weights; unless duplicates are kept.
//! The file is parsed by several threads at once, and the result is the same for any number of them.

use super::ids::close_gaps;
use super::text::{Fault, Text, check_rows, line_at};
use super::words::{Scan, Words, first_lines, is_number, is_whole, pieces};
use super::{Loaded, Options, metis};
use crate::error::{Error, Result};
use crate::format::Coo;
use crate::parallel::{room, run_all};
use std::ops::Range;

const COMMENTS: &[u8] = b"#%";

/// Edges of a piece of the file, in its order.
#[derive(Default)]
struct Edges {
    from: Vec<u32>,
    to: Vec<u32>,
    /// Empty where there is no third word.
    weights: Vec<f64>,
}

/// How the edges of a file are written.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Whether a third word is there on every line.
    pub weighted: bool,
    /// The number of the first node.
    pub first: u64,
    /// The number after that of the last node that there can be.
    pub end: u64,
}

/// Whether the first line that is no comment consists of two whole numbers, and perhaps a third number.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, COMMENTS, 1);
    lines.first().is_some_and(|line| is_edge(line))
}

fn is_edge(line: &[&[u8]]) -> bool {
    (2..=3).contains(&line.len())
        && line[..2].iter().all(|word| is_whole(word))
        && line.iter().all(|word| is_number(word))
}

/// Reads the graph: the entry (i, j) is the edge from i to j.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    if let Some((vertices, edges)) = metis::announced(text) {
        return Err(refuse_metis(text, vertices, edges));
    }
    let lines = first_lines(text.bytes, COMMENTS, 2);
    let weighted = lines.last().is_some_and(|line| line.len() > 2);
    let sizes_lead = begins_with_sizes(text, &lines);
    let mut start = 0;
    if lines.len() == 2 && lines[0].len() != lines[1].len() {
        let mut words = Words::new(text.bytes, 0);
        words.seek_line(COMMENTS);
        if !sizes_lead {
            words.skip_line();
            words.seek_line(COMMENTS);
            let expected = format!("an edge of {} words, as on the first line", lines[0].len());
            let found = Some(format!("{} words", lines[1].len()));
            return Err(text.error(Fault { at: words.at, expected, found }));
        }
        words.skip_line();
        start = words.at;
    }
    let layout = Layout { weighted, first: 0, end: u64::from(u32::MAX) };
    let mut triplets = parse(text, start, layout)?;
    let stored = triplets.row_indices.len() as u64;
    if sizes_lead && (start > 0 || first_is_largest(&triplets)) {
        return Err(refuse_sizes(text, &lines[0]));
    }
    let ids = if options.close_gaps { close_gaps(&mut triplets)? } else { None };
    let id = |row: usize| ids.as_ref().map_or(row, |ids| ids[row] as usize);
    let largest = triplets.row_indices.iter().chain(&triplets.col_indices).max().copied();
    let nodes = largest.map_or(0, |node| node as usize + 1);
    if check_rows(nodes, stored).is_err() {
        return Err(locate(text, start, layout, largest.unwrap_or(0)));
    }
    (triplets.rows, triplets.cols) = (nodes, nodes);
    let matrix = triplets.into_csr_with(options.duplicates);
    let matrix = matrix.map_err(|error| match error {
        Error::DuplicateOverflow { row, col } => {
            locate_sum(text, start, layout, Error::DuplicateOverflow { row: id(row), col: id(col) })
        }
        other => other,
    })?;
    Ok(Loaded { ids, first_id: Some(0), ..Loaded::new(matrix, stored, false) })
}

/// Parses the edges from `start` on, as a matrix without a size.
pub(super) fn parse(text: Text, start: usize, layout: Layout) -> Result<Coo> {
    text.begin("reading", text.bytes.len() - start);
    let parts = run_all(pieces(text, start), |piece| parse_piece(text, piece, layout));
    let entries = parts.iter().map(|(edges, _)| edges.from.len()).sum();
    let mut all = Coo {
        row_indices: room(entries)?,
        col_indices: room(entries)?,
        values: room(if layout.weighted { entries } else { 0 })?,
        ..Coo::default()
    };
    for (edges, fault) in parts {
        if let Some(fault) = fault {
            return Err(text.error(*fault));
        }
        all.row_indices.extend_from_slice(&edges.from);
        all.col_indices.extend_from_slice(&edges.to);
        all.values.extend_from_slice(&edges.weights);
    }
    Ok(all)
}

fn parse_piece(text: Text, piece: Range<usize>, layout: Layout) -> (Edges, Option<Box<Fault>>) {
    let mut edges = Edges::default();
    let mut words = Words::metered(text, piece);
    let fault = parse_lines(&mut words, layout, &mut edges).err();
    words.tell();
    (edges, fault)
}

fn parse_lines(words: &mut Words, layout: Layout, edges: &mut Edges) -> Scan<()> {
    while words.seek_line(COMMENTS) {
        let from = words.whole("a node", layout.first..layout.end)?;
        words.skip_separator();
        let to = words.whole("a node", layout.first..layout.end)?;
        if layout.weighted {
            words.skip_separator();
            edges.weights.push(words.number("the weight of the edge")?);
        }
        words.finish_line()?;
        edges.from.push((from - layout.first) as u32);
        edges.to.push((to - layout.first) as u32);
    }
    Ok(())
}

/// Whether the first line may hold sizes instead of an edge: its last number is that of the lines below it. Where a
/// comment that begins with `#` comes first, it is an edge.
fn begins_with_sizes(text: Text, lines: &[Vec<&[u8]>]) -> bool {
    let [first, ..] = lines else { return false };
    let announced = first.last().and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
    let mut words = Words::new(text.bytes, 0);
    if !words.seek_line(b"%") || words.peek() == Some(b'#') {
        return false;
    }
    words.skip_line();
    // Every edge takes four bytes, so few files get as far as to have their lines counted. Of two numbers none says
    // that nothing follows.
    let fewest = if first.len() > 2 { 0 } else { 1 };
    let possible = fewest..=text.bytes.len() as u64 / 4 + 1;
    let Some(announced) = announced.filter(|edges| possible.contains(edges)) else { return false };
    let mut below = 0;
    while below <= announced && words.seek_line(COMMENTS) {
        words.skip_line();
        below += 1;
    }
    below == announced
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
fn refuse_sizes(text: Text, first: &[&[u8]]) -> Error {
    let first: Vec<_> = first.iter().map(|word| String::from_utf8_lossy(word)).collect();
    text.unsupported(
        &format!("an edge list whose first line, '{}', looks like its sizes", first.join(" ")),
        "remove that line; where it is an edge, put a line that begins with # above it; where the file is a Matrix \
         Market file without its banner, put the banner back",
    )
}

#[cold]
fn refuse_metis(text: Text, vertices: usize, edges: u64) -> Error {
    text.unsupported(
        &format!(
            "an edge list whose lines look like those of a METIS graph of {vertices} vertices and {edges} edges, cut \
             off or with a wrong number of edges,"
        ),
        "where it is a METIS graph, get it anew or correct its first line; where it is an edge list, put a line that \
         begins with # above it",
    )
}

/// Points at the first edge with the node that is too large.
#[cold]
fn locate(text: Text, start: usize, layout: Layout, node: u32) -> Error {
    let mut words = Words::new(text.bytes, start);
    let mut at = start;
    while words.seek_line(COMMENTS) {
        at = words.at;
        let mut edge = Edges::default();
        let _ = parse_lines(&mut Words::new(&text.bytes[..line_at(text.bytes, at).1], at), layout, &mut edge);
        if edge.from == [node] || edge.to == [node] {
            break;
        }
        words.skip_line();
    }
    let expected =
        "nodes numbered from 0 with few gaps, at most 2^24 and 64 more for each edge; number them anew";
    text.error(Fault { at, expected: expected.to_owned(), found: Some(format!("node {node}")) })
}

/// Points at the edge with which the weights of an edge that is listed again have a sum beyond all numbers.
#[cold]
fn locate_sum(text: Text, start: usize, layout: Layout, error: Error) -> Error {
    let Error::DuplicateOverflow { row, col } = error else { return error };
    let mut words = Words::new(text.bytes, start);
    let (mut at, mut sum) = (start, 0.0_f64);
    while sum.is_finite() && words.seek_line(COMMENTS) {
        at = words.at;
        let mut edge = Edges::default();
        let _ = parse_lines(&mut Words::new(&text.bytes[..line_at(text.bytes, at).1], at), layout, &mut edge);
        if edge.from == [row as u32] && edge.to == [col as u32] {
            sum += edge.weights.iter().sum::<f64>();
        }
        words.skip_line();
    }
    let expected = format!("weights of the edge from {row} to {col} with a finite sum");
    text.error(Fault { at, expected, found: Some(format!("a sum of {sum}")) })
}
