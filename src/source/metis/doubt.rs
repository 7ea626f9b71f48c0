//! Graphs with a fault whose lines could be a list of edges as well: cut off, or with wrong counts on the first line.

use super::{Header, read_header, read_vertex};
use crate::source::compressed::Compressed;
use crate::source::text::Text;
use crate::source::tokens::ListTokens;
use memchr::memrchr;

/// Neighbours that list each other are no accident where there are so many, however much of the file is missing.
const MANY: usize = 8;
/// ListTokens that a line of edges can have.
const MOST_WORDS: usize = 3;

/// Whether a file that would be read as a list of edges may be such a graph; what its first line would say of it then.
///
/// The lines, except for the last one, which may be half of one, must be neighbours of the first vertices, and each
/// that names another of them must be named there. Where few do, there must be about as many as announced too. A list
/// of edges stays clear of this: its first line would have to name its largest node, and no node may have more lines
/// than others name it.
pub(in crate::source) fn announced(text: Text) -> Option<(usize, u64)> {
    let mut words = ListTokens::new(text.bytes, 0);
    let header = read_header(&mut words).ok()?;
    let written = text.bytes.trim_ascii_end();
    let last = memrchr(b'\n', written).map_or(0, |newline| newline + 1);
    let mut words = ListTokens::new(&text.bytes[..last.max(words.at)], words.at);
    let graph = read_short_lists(&mut words, &header)?;
    let pairs = mutual(&graph)?;
    let (here, all) = (graph.indices.len() as u128, 2 * u128::from(header.edges));
    let near = (all / 2..=2 * all).contains(&here);
    (pairs >= MANY || near && pairs > 0).then_some((header.vertices, header.edges))
}

/// The neighbours of the vertices that have a line; none where a line is something else.
fn read_short_lists(words: &mut ListTokens, header: &Header) -> Option<Compressed> {
    let mut graph = Compressed {
        rows: 0,
        cols: header.vertices,
        offsets: vec![0],
        indices: Vec::new(),
        values: Vec::new(),
    };
    while graph.rows < header.vertices && words.seek_row(super::COMMENT) {
        let before = graph.indices.len();
        read_vertex(words, header, graph.rows, &mut graph).ok()?;
        if graph.indices.len() - before > MOST_WORDS {
            return None;
        }
        graph.rows += 1;
        graph.offsets.push(graph.indices.len() as u64);
    }
    (!words.seek_line(super::COMMENT)).then_some(graph)
}

/// How many neighbours have a line that lists the vertex in turn; none where one with a line does not.
fn mutual(graph: &Compressed) -> Option<usize> {
    let row =
        |vertex: usize| &graph.indices[graph.offsets[vertex] as usize..graph.offsets[vertex + 1] as usize];
    let mut pairs = 0;
    for vertex in 0..graph.rows {
        for &neighbour in row(vertex).iter().filter(|&&neighbour| (neighbour as usize) < graph.rows) {
            if !row(neighbour as usize).contains(&(vertex as u32)) {
                return None;
            }
            pairs += 1;
        }
    }
    Some(pairs)
}
