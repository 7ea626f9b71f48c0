//! Edge lists with names, a format of small web crawls: a line `nodes edges`, possibly with more numbers; a
//! line `number name` for every node, numbered in order from 1; a line `from to` for every edge.

use super::graph::{Layout, parse};
use super::labels::{Labels, checked};
use super::portions::Portions;
use super::text::{Fault, Text};
use super::tokens::{ListTokens, Scan, first_lines, is_number, is_whole, parse_whole};
use super::{Loaded, Options};
use crate::error::Result;
use crate::format::Coo;

/// Number of lines with names that detection examines.
const SAMPLE: usize = 16;

/// Checks whether the first line consists of whole numbers and the next lines number nodes from 1, each with
/// a name that is not a number.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, b"", SAMPLE + 1);
    let Some((sizes, names)) = lines.split_first() else { return false };
    if !(2..=3).contains(&sizes.len()) || !sizes.iter().all(|word| is_whole(word)) {
        return false;
    }
    let nodes = parse_whole(sizes[0]).unwrap_or(0) as usize;
    let is_name = |(index, line): (usize, &Vec<&[u8]>)| {
        line.len() >= 2 && line[0] == (index + 1).to_string().as_bytes() && !is_number(line[1])
    };
    nodes > 0 && names.len() >= nodes.min(SAMPLE) && names.iter().take(nodes).enumerate().all(is_name)
}

/// Reads the graph: the entry (i, j) is the edge from node i + 1 to node j + 1. The labels are the names; a
/// name extends to the end of its line.
pub(super) fn read(text: Text, options: &Options) -> Result<Loaded> {
    let mut words = ListTokens::new(text.bytes, 0);
    let (nodes, edges) = read_sizes(&mut words).map_err(|fault| text.error(*fault))?;
    let labels = read_names(text, &mut words, nodes)?;
    let nodes = nodes as usize;
    let layout = Layout { weighted: false, both: false, first: 1, end: nodes as u64 + 1 };
    let mut triplets = Coo::default();
    parse(Portions::of(text, words.at), layout, &mut triplets)?;
    let stored = triplets.row_indices.len() as u64;
    if stored != edges {
        let expected = format!("{edges} edges, as the first line announces");
        return Err(text.error(Fault { at: text.bytes.len(), expected, found: Some(format!("{stored}")) }));
    }
    (triplets.rows, triplets.cols) = (nodes, nodes);
    let matrix = triplets.into_csr_with(options.duplicates)?;
    Ok(Loaded { first_id: Some(1), labels: Some(labels), ..Loaded::new(matrix, stored, false) })
}

fn read_sizes(words: &mut ListTokens) -> Scan<(u64, u64)> {
    words.seek_line(b"");
    let nodes = words.whole_number("the number of nodes", 0..u64::from(u32::MAX))?;
    words.skip_blanks();
    let edges = words.whole_number("the number of edges", 0..u64::MAX)?;
    words.skip_line();
    Ok((nodes, edges))
}

/// Reads the lines with names. As every node needs a line, the number of lines limits the number of nodes.
fn read_names(text: Text, words: &mut ListTokens, nodes: u64) -> Result<Labels> {
    let mut labels = Labels::default();
    for node in 1..=nodes {
        words.seek_line(b"");
        let number =
            words.whole_number(&format!("the line with the name of node {node}, a number"), node..node + 1);
        number.map_err(|fault| text.error(*fault))?;
        words.skip_blanks();
        let at = words.at;
        words.skip_line();
        let name = text.bytes[at..words.at].trim_ascii_end();
        labels.push(checked(name, at).map_err(|fault| text.error(*fault))?)?;
    }
    Ok(labels)
}
