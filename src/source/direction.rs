//! Whether the links of a graph have directions, where its file tells: KONECT's first comment, or Gephi's column `Type`.

use super::text::Text;
use super::tokens::{is_blank, line_at};
use crate::error::Result;
use crate::format::Coo;
use crate::parallel::room;

/// KONECT's words for the weights of edges.
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

/// Whether a graph is undirected by a first line such as `% sym positive`, as the files of KONECT have it. One of two kinds of
/// vertices, `% bip`, is refused: both kinds are counted from 1.
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

/// The note on a graph that [`is_undirected`].
pub(super) fn note() -> String {
    "the first line, '% sym', makes the graph undirected: each edge is read in both directions".to_owned()
}

/// Adds the other direction of each edge right after the edge, a loop aside: weights of an edge that is listed again are then
/// added up in the same order for both.
pub(super) fn mirror(edges: &mut Coo) -> Result<()> {
    let ends = || edges.row_indices.iter().zip(&edges.col_indices);
    let length = ends().map(|(from, to)| if from == to { 1 } else { 2 }).sum();
    let (mut rows, mut cols) = (room(length)?, room(length)?);
    let mut values = room(if edges.values.is_empty() { 0 } else { length })?;
    for (place, (&from, &to)) in ends().enumerate() {
        let both = [(from, to), (to, from)];
        for &(row, col) in &both[..if from == to { 1 } else { 2 }] {
            rows.push(row);
            cols.push(col);
            values.extend(edges.values.get(place));
        }
    }
    (edges.row_indices, edges.col_indices, edges.values) = (rows, cols, values);
    Ok(())
}
