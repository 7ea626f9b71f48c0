//! Undirected graphs. KONECT's first comment line and Gephi's column `Type` declare whether
//! edges have directions.

use super::text::Text;
use super::tokens::{is_blank, line_at};
use crate::error::Result;
use crate::format::Coo;
use crate::parallel::room;

/// KONECT's keywords for the weights of edges.
const WEIGHTS: &[&[u8]] = &[
    b"unweighted",
    b"positive",
    b"posweighted",
    b"multiposweighted",
    b"signed",
    b"multisigned",
    b"weighted",
    b"multiweighted",
    b"dynamic",
];

/// Checks whether the first line, such as `% sym positive` in the files of KONECT, declares
/// the graph undirected. Refuses a bipartite graph (`% bip`), because its two kinds of
/// vertices are both numbered from 1.
pub(super) fn is_undirected(text: Text) -> Result<bool> {
    let (line, _) = line_at(text.bytes, 0);
    let mut words = line.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty());
    let (mark, kind, weights, more) = (words.next(), words.next(), words.next(), words.next());
    let weights = weights.is_none_or(|word| WEIGHTS.contains(&word));
    if mark != Some(b"%") || !weights || more.is_some() {
        return Ok(false);
    }
    match kind {
        Some(b"bip") => {
            let hint =
                "number the vertices of the second column after those of the first, and remove that line";
            Err(text.unsupported("a network of two modes, '% bip' on its first line,", hint))
        }
        kind => Ok(kind == Some(b"sym")),
    }
}

/// Returns the note for a graph that [`is_undirected`].
pub(super) fn note() -> String {
    "the first line, '% sym', makes the graph undirected: each edge is read in both directions".to_owned()
}

/// Adds the reverse of each edge right after the edge, except for loops. The weights of a repeated edge are
/// then summed in the same order for both directions.
pub(super) fn mirror(edges: &mut Coo) -> Result<()> {
    let ends = || edges.row_indices.iter().zip(&edges.col_indices);
    let length = ends().map(|(from, to)| if from == to { 1 } else { 2 }).sum();
    let (mut rows, mut cols) = (room(length)?, room(length)?);
    let mut values = room(if edges.values.is_empty() { 0 } else { length })?;
    for (edge, (&from, &to)) in ends().enumerate() {
        let both = [(from, to), (to, from)];
        for &(row, col) in &both[..if from == to { 1 } else { 2 }] {
            rows.push(row);
            cols.push(col);
            values.extend(edges.values.get(edge));
        }
    }
    (edges.row_indices, edges.col_indices, edges.values) = (rows, cols, values);
    Ok(())
}
