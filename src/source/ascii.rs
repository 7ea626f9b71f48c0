//! ASCIIGraph files, as the WebGraph framework writes them: the number of nodes on the first line, then one
//! line for each node with its successors, counted from 0. A node without successors has an empty line.

use super::compressed::Compressed;
use super::text::{Fault, Text};
use super::tokens::{ListTokens, Scan, fault, first_lines, is_whole};
use super::{Loaded, Options};
use crate::error::Result;

/// Checks whether the first line is one whole number and all words of the second line are whole numbers too.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, b"", 2);
    lines.first().is_some_and(|first| first.len() == 1) && lines.iter().flatten().all(|word| is_whole(word))
}

/// Reads the graph: the entry (i, j) is the arc from node i to node j.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    text.begin("reading", text.bytes.len());
    let mut words = ListTokens::metered(text, 0..text.bytes.len());
    words.seek_line(b"");
    let fail = |fault: Box<Fault>| text.error(*fault);
    let nodes = words.whole_number("the number of nodes", 0..u64::from(u32::MAX) + 1).map_err(fail)? as usize;
    words.finish_line(b"").map_err(fail)?;
    let (offsets, indices) = read_lists(&mut words, nodes).map_err(fail)?;
    let stored = indices.len() as u64;
    let arcs = Compressed { rows: nodes, cols: nodes, offsets, indices, values: Vec::new() };
    Ok(Loaded { first_id: Some(0), ..Loaded::new(arcs.into_csr(options.duplicates)?, stored, false) })
}

fn read_lists(words: &mut ListTokens, nodes: usize) -> Scan<(Vec<u64>, Vec<u32>)> {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for node in 0..nodes {
        if words.peek().is_none() {
            let expected = format!("{nodes} lines of successors, as the first line announces");
            let found = Some(format!("end of file after {node}"));
            return Err(Box::new(Fault { at: words.at, expected, found }));
        }
        while !words.line_is_done() {
            indices.push(words.whole_number("a successor", 0..nodes as u64)? as u32);
        }
        words.finish_line(b"")?;
        offsets.push(indices.len() as u64);
    }
    if words.seek_line(b"") {
        let expected = format!("end of file after {nodes} lines of successors, as the first line announces");
        return Err(fault(words.at, expected));
    }
    words.report_progress();
    Ok((offsets, indices))
}
