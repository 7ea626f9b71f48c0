//! The rows of each rank of a matrix that one process has, and what the ranks exchange.

use super::partition::{Held, Partition};
use crate::device::distributed::in_threads;
use crate::error::Result;
use crate::format::{Csr, partition};
use serde::Serialize;
use std::collections::HashSet;

/// The part of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RankPart {
    /// Number of rows.
    pub rows: usize,
    /// Number of entries.
    pub entries: usize,
    /// Numbers that it receives from other ranks in an iteration.
    pub received: usize,
    /// Numbers that it sends in an iteration.
    pub sent: usize,
    /// Number of ranks that it exchanges numbers with.
    pub neighbours: usize,
    /// Bytes of memory traffic of an iteration.
    pub bytes: u64,
    /// Predicted seconds of an iteration, without sums over all ranks.
    pub seconds: f64,
}

/// The rows of each rank.
pub(crate) struct Division {
    /// Rank i has the rows `starts[i]..starts[i + 1]` of the order.
    starts: Vec<usize>,
    /// The rows in the order of ranks, and the rank of each row; `None` if the rows stay in their order.
    moved: Option<(Vec<u32>, Vec<u32>)>,
}

impl Division {
    /// Divides the rows into ranges.
    pub(crate) fn in_order(starts: Vec<usize>) -> Division {
        Division { starts, moved: None }
    }

    /// Divides the rows of a named matrix by a partition, as ranks do; `together` neighbouring
    /// rows belong together.
    pub(crate) fn by(
        partition: &Partition,
        (matrix, name): (&Csr, &str),
        parts: usize,
        together: usize,
    ) -> Result<Division> {
        if partition.is_in_order() {
            return Ok(Division::in_order(partition::by_entries(matrix, parts, together)));
        }
        let held = Held { starts: &[0, matrix.rows()], together, name, shared: None };
        let found = in_threads(1, |ranks| held.parts(ranks, matrix, partition, parts)).swap_remove(0)?;
        let mut starts = vec![0; parts + 1];
        found.iter().for_each(|part| starts[*part as usize + 1] += 1);
        (0..parts).for_each(|part| starts[part + 1] += starts[part]);
        let mut rows: Vec<u32> = (0..found.len() as u32).collect();
        rows.sort_by_key(|row| found[*row as usize]);
        Ok(Division { starts, moved: Some((rows, found)) })
    }

    /// Returns the row at a place of the order.
    fn row(&self, place: usize) -> usize {
        self.moved.as_ref().map_or(place, |(rows, _)| rows[place] as usize)
    }

    /// Returns the rank of a row.
    fn rank(&self, row: usize) -> usize {
        match &self.moved {
            Some((_, ranks)) => ranks[row] as usize,
            None => self.starts.partition_point(|start| *start <= row) - 1,
        }
    }

    /// Returns the rows of the first ranks, in rising order.
    pub(crate) fn rows_of_first(&self, ranks: usize) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.starts[ranks]).map(|place| self.row(place) as u32).collect();
        rows.sort_unstable();
        rows
    }

    /// Counts what the ranks exchange.
    pub(crate) fn parts(&self, matrix: &Csr) -> Vec<RankPart> {
        let count = self.starts.len() - 1;
        let mut parts = vec![RankPart::default(); count];
        // The last rank that has received each number, counted from 1.
        let mut receiver = vec![0_u32; matrix.cols()];
        let mut pairs = HashSet::new();
        for rank in 0..count {
            let places = self.starts[rank]..self.starts[rank + 1];
            parts[rank].rows = places.len();
            for row in places.clone().map(|place| self.row(place)) {
                let columns = matrix.row_columns(row);
                parts[rank].entries += columns.len();
                for column in columns.iter().map(|column| *column as usize) {
                    let own = self.moved.is_none() && places.contains(&column);
                    if own || receiver[column] == rank as u32 + 1 {
                        continue;
                    }
                    receiver[column] = rank as u32 + 1;
                    let owner = self.rank(column);
                    if owner == rank {
                        continue;
                    }
                    parts[rank].received += 1;
                    parts[owner].sent += 1;
                    pairs.insert((rank.min(owner), rank.max(owner)));
                }
            }
        }
        for (a, b) in pairs {
            parts[a].neighbours += 1;
            parts[b].neighbours += 1;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn parts_exchange_the_lines_of_a_grid_at_their_border() {
        let grid = load("poisson2d:10x12").unwrap().matrix;
        let parts = Division::in_order(vec![0, 40, 80, 120]).parts(&grid);
        let counts = |part: &RankPart| (part.rows, part.received, part.sent, part.neighbours);
        assert_eq!(
            parts.iter().map(counts).collect::<Vec<_>>(),
            [(40, 10, 10, 1), (40, 20, 20, 2), (40, 10, 10, 1)]
        );
        assert_eq!(parts.iter().map(|part| part.entries).sum::<usize>(), grid.nnz());
    }
}
