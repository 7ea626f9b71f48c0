//! Edge lists with names, as a small web crawl comes: a line `nodes edges`, perhaps with more numbers, then a line
//! `number name` for every node, numbered from 1 on in order, then a line `from to` for every edge.

use super::compressed::check_sizes;
use super::edges::{Layout, parse};
use super::text::{Fault, Text};
use super::words::{Scan, Words, first_lines, is_number, is_whole};
use super::{Loaded, Options};
use crate::error::Result;

/// Whether the first line consists of whole numbers and the second is node 1 with a name that is no number.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, b"", 2);
    let [sizes, name] = lines.as_slice() else { return false };
    let sizes = (2..=3).contains(&sizes.len()) && sizes.iter().all(|word| is_whole(word));
    sizes && name.len() >= 2 && name[0] == b"1" && !is_number(name[1])
}

/// Reads the graph: the entry (i, j) is the edge from node i + 1 to node j + 1. The names are read past.
pub(super) fn read(text: Text, _: &Options) -> Result<Loaded> {
    let mut words = Words::new(text.bytes, 0);
    let (nodes, edges) = read_names(&mut words).map_err(|fault| text.error(*fault))?;
    let layout = Layout { weighted: false, first: 1, end: nodes as u64 + 1 };
    let mut triplets = parse(text, words.at, layout)?;
    let stored = triplets.row_indices.len() as u64;
    if stored != edges {
        let expected = format!("{edges} edges, as the first line announces");
        return Err(text.error(Fault { at: text.bytes.len(), expected, found: Some(format!("{stored}")) }));
    }
    check_sizes(nodes as u64, 0)?;
    (triplets.rows, triplets.cols) = (nodes, nodes);
    Ok(Loaded::new(triplets.into_csr()?, stored, false))
}

/// Reads the sizes and the lines of names, which bound the number of nodes by that of lines.
fn read_names(words: &mut Words) -> Scan<(usize, u64)> {
    words.seek_line(b"");
    let nodes = words.whole("the number of nodes", 0..u64::from(u32::MAX))?;
    words.skip_blanks();
    let edges = words.whole("the number of edges", 0..u64::MAX)?;
    words.skip_line();
    for node in 1..=nodes {
        words.seek_line(b"");
        words.whole(&format!("the name of node {node}; a number"), node..node + 1)?;
        words.skip_line();
    }
    Ok((nodes as usize, edges))
}
