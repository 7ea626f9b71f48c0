//! Edge lists, as in the SNAP collection: a line `from to` or `from to weight` for every edge, the words
//! separated by blanks, tabs or a comma. Comments begin with `#` or `%`.
//!
//! The numbers in the file are the nodes, counted from 0 unless [`Options::first_index`] is 1, so n is the
//! largest number plus one. A number that no edge names is a row without entries, unless
//! [`Options::close_gaps`] removes it. Repeated edges are summed, unless duplicates are kept: values count
//! the edges, or are the sums of their weights.
//!
//! The file is parsed one portion after the other, each by several threads. The result does not depend
//! on the number of threads.

use super::direction::{self, is_undirected};
use super::graph::{COMMENTS, Layout, assemble, parse, refuse_sizes};
use super::portions::Portions;
use super::text::{Fault, Text};
use super::tokens::{ListTokens, first_lines, is_number, is_whole, signed_whole};
use super::{Loaded, Options, metis, table};
use crate::error::{Error, Result};
use crate::format::Coo;

/// Lines of edges that distinguish an edge list from other graphs, when only the head of the
/// file is available.
const SAMPLE: usize = 64;

/// Checks whether the first line outside comments consists of two whole numbers and an optional third number.
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
    let start = Start::new(text, &lines, options)?;
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

/// Reads the graph in a gzip file whose text begins with `head`. Returns `None` if the complete text is
/// needed: if the file may be a graph of another kind, or if the head has fewer than [`SAMPLE`] lines or
/// lines of different lengths.
pub(super) fn read_unpacking(file: Text, head: Text, options: &Options) -> Result<Option<Loaded>> {
    let lines = first_lines(head.bytes, COMMENTS, SAMPLE);
    let start = Start::new(head, &lines, options)?;
    if lines.len() < SAMPLE || !start.even {
        return Ok(None);
    }
    let portions = Portions::unpacking(file, 0);
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

/// Returns how to read the lines in portions, the number of further lines that the first line announces if it
/// may hold sizes, and the fewest lines with which the file is surely no METIS graph. `text` is the complete
/// text, or the beginning of a compressed one. Returns `None` if the complete text is needed.
pub(super) fn by_lines(text: Text, packed: bool) -> Result<Option<(Layout, Option<u64>, u64)>> {
    if !packed && metis::announced(text).is_some() {
        return Ok(None);
    }
    let lines = first_lines(text.bytes, COMMENTS, if packed { SAMPLE } else { 2 });
    let start = Start::new(text, &lines, &Options::default())?;
    if !start.even || packed && lines.len() < SAMPLE {
        return Ok(None);
    }
    let fewest = if packed { metis::fewest_edges(text) } else { 0 };
    Ok(Some((start.layout, start.sizes.map(|(_, announced)| announced), fewest)))
}

/// How to read the lines, derived from the first ones.
struct Start {
    layout: Layout,
    /// Whether the first two lines have the same number of words.
    even: bool,
    /// The first line, if it may hold sizes instead of an edge, and the number of lines that it announces.
    sizes: Option<(String, u64)>,
}

impl Start {
    fn new(head: Text, lines: &[Vec<&[u8]>], options: &Options) -> Result<Start> {
        let second = lines.get(1).or(lines.first());
        Ok(Start {
            layout: Layout {
                weighted: second.is_some_and(|line| line.len() > 2),
                both: is_undirected(head)?,
                first: options.first_index.unwrap_or(0).into(),
                end: u64::from(u32::MAX),
            },
            even: lines.first().map(Vec::len) == second.map(Vec::len),
            sizes: lines.first().and_then(|first| Some((shown(first), sizes(head, first)?))),
        })
    }

    fn assemble(self, portions: Portions, edges: Coo, options: &Options) -> Result<Loaded> {
        let loaded = assemble(portions, self.layout, self.sizes, edges, options)?;
        let note = self.layout.both.then(direction::note);
        note.iter().for_each(|note| log::info!("{}: {note}", portions.file.path.display()));
        let notes = note.into_iter().chain(loaded.notes).collect();
        Ok(Loaded { notes, ..loaded })
    }
}

/// Returns the number of edges that the first line announces, if it may hold sizes instead of an edge. If a
/// comment that begins with `#` precedes it, the first line is an edge.
fn sizes(head: Text, first: &[&[u8]]) -> Option<u64> {
    let mut words = ListTokens::new(head.bytes, 0);
    if !words.seek_line(b"%") || words.peek() == Some(b'#') {
        return None;
    }
    // A line of two numbers that announces 0 edges is an edge.
    let fewest = if first.len() > 2 { 0 } else { 1 };
    let announced = signed_whole(first.last()?)?;
    (announced >= fewest).then_some(announced)
}

fn shown(line: &[&[u8]]) -> String {
    line.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the error for a list whose first two lines have different numbers of words.
#[cold]
fn refuse_uneven(text: Text, lines: &[Vec<&[u8]>], start: &Start) -> Error {
    let mut words = ListTokens::new(text.bytes, 0);
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
        "if it is a METIS graph, download it again or correct its first line; if it is an edge list, insert a line that \
         begins with # at the top",
    )
}
