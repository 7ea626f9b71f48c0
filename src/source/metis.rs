//! METIS graphs (`.graph`, also the format of Chaco and of the Walshaw archive): a line
//! `vertices edges [fmt [ncon]]`, then one line for each vertex with its neighbours, counted from 1.
//! Comments begin with `%`.
//!
//! `fmt` has up to three digits, 0 or 1, for sizes of vertices, weights of vertices (`ncon` of them) and
//! weights of edges. Sizes and weights of vertices are skipped; weights of edges become the values. The
//! file lists every edge twice, once at each end, and the reader checks that. A repeated edge is an error,
//! unless duplicates are kept.

mod doubt;

use super::compressed::Compressed;
use super::text::{Fault, Text};
use super::tokens::{ListTokens, Scan, ends_word, fault, first_lines, is_number, is_whole, line_at};
use super::{Loaded, Options};
use crate::error::Result;
use crate::format::Coo;
use crate::format::Csr;
use crate::format::stats::first_unpaired;
pub(super) use doubt::announced;

const COMMENT: &[u8] = b"%";
/// Number of lines examined to distinguish lists of neighbours from lists of edges.
const SAMPLE: usize = 64;

struct Header {
    vertices: usize,
    edges: u64,
    /// Numbers on each line before the neighbours: the vertex's size and weights.
    own_words: u64,
    vertex_weights: bool,
    edge_weights: bool,
}

impl Header {
    /// Returns the total number of words on the lines of all vertices.
    fn words(&self) -> u128 {
        let per_neighbour: u128 = if self.edge_weights { 2 } else { 1 };
        self.vertices as u128 * u128::from(self.own_words) + 2 * per_neighbour * u128::from(self.edges)
    }
}

/// Checks whether the text looks like a METIS graph: its first lines, without comments, contain only numbers,
/// and the first of them is two to four whole numbers without commas. If each has two or three words, as in
/// an edge list, the numbers of lines and words in the whole text must be exactly those that the header
/// implies. If each has four words, as in a table, the header must declare vertex weights.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, COMMENT, SAMPLE);
    let Some(first) = lines.first() else { return false };
    if !(2..=4).contains(&first.len()) || !first.iter().all(|word| is_whole(word)) {
        return false;
    }
    if !lines.iter().flatten().all(|word| is_number(word)) {
        return false;
    }
    let mut words = ListTokens::new(text.bytes, 0);
    if !words.seek_line(COMMENT) || line_at(text.bytes, words.at).0.contains(&b',') {
        return false;
    }
    let header = read_header(&mut words);
    let like_edges = lines.iter().all(|line| (2..=3).contains(&line.len()));
    if like_edges {
        return header.is_ok_and(|header| counts_agree(&text.bytes[words.at..], &header));
    }
    // Lines of equally many words are a table, unless the header has four words: the last is then the
    // number of weights per vertex.
    let table = lines.iter().all(|line| line.len() == first.len());
    !table || header.is_ok_and(|header| header.vertex_weights)
}

/// Checks whether an edge list whose text begins with `head` may be a METIS graph, possibly truncated. If not
/// `all` lines could be parsed as edges, some lines may be longer than the first ones.
pub(super) fn may_be(head: Text, edges: &Coo, all: bool) -> bool {
    let Ok(header) = read_header(&mut ListTokens::new(head.bytes, 0)) else { return false };
    let lines = edges.row_indices.len();
    // The line of sizes, one line for each vertex, and one truncated line.
    if lines > header.vertices + 2 {
        return false;
    }
    if !all {
        return true;
    }
    let words = (lines as u128).saturating_sub(1) * if edges.values.is_empty() { 2 } else { 3 };
    let is_vertex = |node: &u32| (1..=header.vertices).contains(&(*node as usize));
    let inner = 1..lines.saturating_sub(1).max(1);
    let are_vertices = |indices: &[u32]| indices.get(inner.clone()).unwrap_or_default().iter().all(is_vertex);
    words == header.words() || are_vertices(&edges.row_indices) && are_vertices(&edges.col_indices)
}

/// Returns the number of edges from which an edge list whose text begins with `head` is surely no METIS
/// graph, without its edges.
pub(super) fn fewest_edges(head: Text) -> u64 {
    read_header(&mut ListTokens::new(head.bytes, 0)).map_or(0, |header| header.vertices as u64 + 3)
}

/// Checks whether the numbers of lines and words are those that the header announces, apart
/// from blank lines at the end.
fn counts_agree(body: &[u8], header: &Header) -> bool {
    let comment = |line: &&[u8]| !line.starts_with(COMMENT);
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    let (mut lines, mut filled, mut words) = (0, 0, 0_u64);
    for line in body.split(|&byte| byte == b'\n').filter(comment) {
        let line_words = line.split(|&byte| ends_word(byte)).filter(|word| !word.is_empty()).count() as u64;
        lines += 1;
        words += line_words;
        if line_words > 0 {
            filled = lines;
        }
    }
    let vertices = header.vertices as u64;
    vertices > 0 && filled <= vertices && vertices <= lines && u128::from(words) == header.words()
}

/// Reads the graph: two entries for each edge, with the value 1 or the edge's weight.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    let fail = |fault: Box<Fault>| text.error(*fault);
    text.begin("reading", text.bytes.len());
    let mut words = ListTokens::metered(text, 0..text.bytes.len());
    let header = read_header(&mut words).map_err(fail)?;
    let body = words.at;
    let graph = read_lists(&mut words, &header).map_err(fail)?;
    let stored = graph.indices.len() as u64;
    if u128::from(stored) != 2 * u128::from(header.edges) {
        let expected = format!(
            "{} neighbours, two for each of the {} edges that the first line announces",
            2 * u128::from(header.edges),
            header.edges
        );
        return Err(text.error(Fault { at: words.at, expected, found: Some(format!("{stored}")) }));
    }
    let matrix = graph.into_csr(options.duplicates)?;
    if matrix.nnz() as u64 != stored {
        return Err(text.error(*find_repeat(text, body, &header, &matrix)));
    }
    check_ends(text, body, &matrix)?;
    Ok(Loaded { first_id: Some(1), ..Loaded::new(matrix, stored, true) })
}

fn read_header(words: &mut ListTokens) -> Scan<Header> {
    words.seek_line(COMMENT);
    let vertices = words.whole_number("the number of vertices", 0..u64::from(u32::MAX) + 1)?;
    words.skip_blanks();
    let edges = words.whole_number("the number of edges", 0..u64::MAX)?;
    let mut flags = 0;
    if !words.line_is_done() {
        let at = words.at;
        flags = words.whole_number("the format, three digits of 0 and 1", 0..112)?;
        if [flags / 100, flags / 10 % 10, flags % 10].iter().any(|&digit| digit > 1) {
            return Err(fault(at, "the format, three digits of 0 and 1"));
        }
    }
    let (sizes, weights) = (flags / 100 == 1, flags / 10 % 10 == 1);
    let mut constraints = u64::from(weights);
    if !words.line_is_done() {
        let given = words.whole_number("the number of weights of each vertex", 0..1 << 16)?;
        constraints = if weights { given } else { 0 };
    }
    words.finish_line(b"")?;
    let own_words = u64::from(sizes) + constraints;
    let vertices = vertices as usize;
    Ok(Header { vertices, edges, own_words, vertex_weights: weights, edge_weights: flags % 10 == 1 })
}

fn read_lists(words: &mut ListTokens, header: &Header) -> Scan<Compressed> {
    let vertices = header.vertices;
    let mut graph = Compressed {
        rows: vertices,
        cols: vertices,
        offsets: vec![0],
        indices: Vec::new(),
        values: Vec::new(),
    };
    for vertex in 0..vertices {
        if !words.seek_row(COMMENT) {
            let expected = format!("{vertices} lines of neighbours, as the first line announces");
            let found = Some(format!("end of file after {vertex}"));
            return Err(Box::new(Fault { at: words.at, expected, found }));
        }
        read_vertex(words, header, vertex, &mut graph)?;
        graph.offsets.push(graph.indices.len() as u64);
    }
    if words.seek_line(COMMENT) {
        let expected =
            format!("end of file after {vertices} lines of neighbours, as the first line announces");
        return Err(fault(words.at, expected));
    }
    words.report_progress();
    Ok(graph)
}

fn read_vertex(words: &mut ListTokens, header: &Header, vertex: usize, graph: &mut Compressed) -> Scan<()> {
    for _ in 0..header.own_words {
        words.skip_blanks();
        words.number("a size or weight of the vertex")?;
    }
    while !words.line_is_done() {
        let at = words.at;
        let neighbour = words.whole_number("a neighbour", 1..header.vertices as u64 + 1)? - 1;
        if neighbour == vertex as u64 {
            return Err(fault(at, "a neighbour other than the vertex itself"));
        }
        graph.indices.push(neighbour as u32);
        if header.edge_weights {
            words.skip_blanks();
            graph.values.push(words.number("the weight of the edge")?);
        }
    }
    words.finish_line(b"")
}

/// Locates the first vertex that lists a neighbour more than once.
#[cold]
fn find_repeat(text: Text, body: usize, header: &Header, matrix: &Csr) -> Box<Fault> {
    let mut words = ListTokens::new(text.bytes, body);
    for vertex in 0..header.vertices {
        words.seek_row(COMMENT);
        let at = words.at;
        let mut listed =
            Compressed { rows: 0, cols: 0, offsets: Vec::new(), indices: Vec::new(), values: Vec::new() };
        let read = read_vertex(&mut words, header, vertex, &mut listed);
        let distinct = matrix.row_range(vertex).len();
        if read.is_err() || listed.indices.len() != distinct {
            let found = Some(format!("{} with repetitions", listed.indices.len()));
            return Box::new(Fault {
                at,
                expected: format!("{distinct} neighbours, each listed once"),
                found,
            });
        }
    }
    fault(words.at, "neighbours that are listed once")
}

/// Checks that every edge is listed at both of its ends with the same weight.
fn check_ends(text: Text, body: usize, matrix: &Csr) -> Result<()> {
    let Some(a) = first_unpaired(matrix) else { return Ok(()) };
    let (vertex, other) = (a.row + 1, a.col + 1);
    let (line_of, expected, found) = match a.mirrored {
        None => (
            a.col,
            format!("{vertex} among the neighbours of {other}, as {other} is one of {vertex}"),
            "none".into(),
        ),
        Some(weight) => {
            let expected = format!("{vertex} with the weight {}, as the edge has at {vertex}", a.value);
            (a.col, expected, format!("the weight {weight}"))
        }
    };
    let mut words = ListTokens::new(text.bytes, body);
    for _ in 0..line_of {
        words.seek_row(COMMENT);
        words.skip_line();
    }
    words.seek_row(COMMENT);
    Err(text.error(Fault { at: words.at, expected, found: Some(found) }))
}
