//! Detects faulty METIS graphs whose lines could also be a list of edges: truncated, or with wrong
//! counts on the first line.

use super::{Header, read_header, read_vertex};
use crate::source::compressed::Compressed;
use crate::source::text::Text;
use crate::source::tokens::ListTokens;
use memchr::memrchr;

/// This many mutual neighbours are no coincidence, even in a file of which a large part is missing.
const MANY: usize = 8;
/// Limit for the words on a line of a list of edges.
const MOST_WORDS: usize = 3;

/// Checks whether a file that would be read as a list of edges may be a METIS graph; returns the
/// counts on its first line.
///
/// All lines but the last, which may be truncated, must list neighbours of the first vertices, and listings
/// between those vertices must be mutual. If few are mutual, their number must also be close to the announced
/// one. A list of edges does not pass: its first line would have to name its largest node, and no node could
/// have more lines than other nodes name it.
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

/// Reads the neighbours of the vertices that have a line; returns `None` if a line has another form.
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

/// Counts the neighbours whose line lists the vertex in turn; returns `None` if a neighbour's line does not.
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
