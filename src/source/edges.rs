//! Edge lists, as the SNAP collection has them: a line `from to` or `from to weight` for every edge, the words separated
//! by blanks, tabs or a comma. Comments begin with `#` or `%`.
//!
//! Nodes are the numbers in the file, counted from 0, so n is the largest of them plus one, and numbers that no
//! edge names are rows without entries, unless [`Options::close_gaps`] leaves them out. An edge that is listed again is
//! summed: values count edges, or add up their weights; unless duplicates are kept.
//! The file is parsed a portion after the other, each by several threads at once, and the result is the same for any
//! number of them.

use super::direction::{self, is_undirected, mirror};
use super::ids::close_gaps;
use super::portions::Portions;
use super::text::{Fault, Text, check_rows};
use super::words::{Scan, Words, first_lines, is_number, is_whole, pieces};
use super::{Loaded, Options, metis, table};
use crate::error::{Error, Result};
use crate::format::Coo;
use crate::parallel::{grow, run_all};
use memchr::memrchr;
use std::ops::Range;

const COMMENTS: &[u8] = b"#%";
/// Lines of edges by which a list is told from other graphs, where there is more of it than its head.
const SAMPLE: usize = 64;

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
        let mut words = Words::metered(text, piece);
        let read = parse_lines(&mut words, *self, edges);
        words.tell();
        read
    }
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
    let start = Start::new(text, &lines)?;
    if !start.even {
        return Err(refuse_uneven(text, &lines, &start));
    }
    let portions = Portions::of(text, 0);
    let mut edges = Coo::default();
    if let Err(error) = parse(portions, start.layout, &mut edges) {
        drop(edges);
        return table::as_names(text, options, error);
    }
    start.assemble(portions, edges, options)
}

/// Reads the graph in a gzip file whose text begins with `head`. None where it may be a graph of another kind after
/// all, or where the head is no more than comments: then all of the text is needed.
pub(super) fn read_unpacking(file: Text, head: Text, options: &Options) -> Result<Option<Loaded>> {
    let lines = first_lines(head.bytes, COMMENTS, SAMPLE);
    let start = Start::new(head, &lines)?;
    if lines.len() < SAMPLE || !start.even {
        return Ok(None);
    }
    let portions = Portions::unpacking(file);
    let mut edges = Coo::default();
    let parsed = parse(portions, start.layout, &mut edges);
    if metis::may_be(head, &edges, parsed.is_ok()) {
        return Ok(None);
    }
    match parsed {
        Err(error) if table::may_be_name(&error) => Ok(None),
        Err(error) => Err(error),
        Ok(()) => start.assemble(portions, edges, options).map(Some),
    }
}

/// How the lines are read, found from the first ones.
struct Start {
    layout: Layout,
    /// Whether the first two are of one length.
    even: bool,
    /// The first line, and the number of lines that it announces, where it may hold sizes instead of an edge.
    sizes: Option<(String, u64)>,
}

impl Start {
    fn new(head: Text, lines: &[Vec<&[u8]>]) -> Result<Start> {
        let second = lines.get(1).or(lines.first());
        Ok(Start {
            layout: Layout {
                weighted: second.is_some_and(|line| line.len() > 2),
                both: is_undirected(head)?,
                first: 0,
                end: u64::from(u32::MAX),
            },
            even: lines.first().map(Vec::len) == second.map(Vec::len),
            sizes: lines.first().and_then(|first| Some((shown(first), sizes(head, first)?))),
        })
    }

    fn assemble(self, portions: Portions, edges: Coo, options: &Options) -> Result<Loaded> {
        let loaded = assemble(portions, self.layout, self.sizes, edges, options)?;
        let notes: Vec<String> = self.layout.both.then(direction::note).into_iter().collect();
        notes.iter().for_each(|note| log::info!("{}: {note}", portions.file.path.display()));
        Ok(Loaded { notes, ..loaded })
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
        let parts = run_all(pieces(text, start), |piece| parse_piece(text, piece, lines));
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

/// The number of lines below the first one that it announces, where it may hold sizes instead of an edge. Where a comment
/// that begins with `#` comes first, it is an edge.
fn sizes(head: Text, first: &[&[u8]]) -> Option<u64> {
    let mut words = Words::new(head.bytes, 0);
    if !words.seek_line(b"%") || words.peek() == Some(b'#') {
        return None;
    }
    // Of two numbers none says that nothing follows.
    let fewest = if first.len() > 2 { 0 } else { 1 };
    let announced: u64 = std::str::from_utf8(first.last()?).ok()?.parse().ok()?;
    (announced >= fewest).then_some(announced)
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

fn shown(line: &[&[u8]]) -> String {
    line.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
}

#[cold]
fn refuse_sizes(text: Text, first: &str) -> Error {
    text.unsupported(
        &format!("an edge list whose first line, '{first}', looks like its sizes"),
        "remove that line; where it is an edge, put a line that begins with # above it; where the file is a Matrix \
         Market file without its banner, put the banner back",
    )
}

/// The error for a list whose first line has more words or fewer than the second.
#[cold]
fn refuse_uneven(text: Text, lines: &[Vec<&[u8]>], start: &Start) -> Error {
    let mut words = Words::new(text.bytes, 0);
    words.seek_line(COMMENTS);
    words.skip_line();
    words.seek_line(COMMENTS);
    let at = words.at;
    if let Some((first, announced)) = &start.sizes {
        let mut below = 0;
        while below <= *announced && words.seek_line(COMMENTS) {
            words.skip_line();
            below += 1;
        }
        if below == *announced {
            let parsed = parse(Portions::of(text, at), start.layout, &mut Coo::default());
            return parsed.err().unwrap_or_else(|| refuse_sizes(text, first));
        }
    }
    let expected = format!("an edge of {} words, as on the first line", lines[0].len());
    text.error(Fault { at, expected, found: Some(format!("{} words", lines[1].len())) })
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
        let mut words = Words::new(text.bytes, start);
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
