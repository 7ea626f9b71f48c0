//! Groups of rows that belong together.

use crate::device::Ranks;
use crate::format::{Csr, partition};
use std::ops::Range;

/// The groups of the rows that this rank holds.
pub(crate) struct Groups {
    /// Rows in a group; the last group of all may have fewer.
    pub together: usize,
    /// The first group of each rank, and the number of groups.
    pub starts: Vec<usize>,
    /// The work of each group of this rank: its entries, and a constant for each row.
    pub weights: Vec<u64>,
}

impl Groups {
    /// Groups the rows of this rank, which holds the rows `starts[rank]..starts[rank + 1]`. No group is cut.
    pub(crate) fn of(ranks: &Ranks, starts: &[usize], rows: &Csr, together: usize) -> Groups {
        let starts: Vec<usize> = starts.iter().map(|start| start.div_ceil(together)).collect();
        let count = starts[ranks.rank() + 1] - starts[ranks.rank()];
        let mut groups = Groups { together, starts, weights: Vec::new() };
        let weight = |group: usize| {
            let range = groups.rows_of(group, rows.rows());
            let entries = rows.row_offsets().get(range.end) - rows.row_offsets().get(range.start);
            (entries + partition::ROW * range.len()) as u64
        };
        groups.weights = (0..count).map(weight).collect();
        groups
    }

    /// Returns the rows of a group of this rank, which has `rows` rows. Groups and rows are counted
    /// from the first of this rank.
    pub(crate) fn rows_of(&self, group: usize, rows: usize) -> Range<usize> {
        let start = (group * self.together).min(rows);
        start..(start + self.together).min(rows)
    }
    /// Returns the part of each group of this rank if the groups are cut in their order into
    /// parts of about equal weight.
    pub(crate) fn in_order(&self, ranks: &Ranks, parts: usize) -> Vec<u32> {
        let of_ranks = ranks.all_of(self.weights.iter().sum());
        let total: u64 = of_ranks.iter().sum();
        let mut before: u64 = of_ranks[..ranks.rank()].iter().sum();
        let part = |weight: &u64| {
            // The part in which the middle of the group is.
            let middle = u128::from(2 * before + weight);
            before += weight;
            (middle * parts as u128 / (2 * u128::from(total)).max(1)) as u32
        };
        self.weights.iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;

    #[test]
    fn groups_are_cut_in_their_order_by_their_weights() {
        let cut = |size: usize, weights: &[&[u64]], parts: usize| {
            let found = in_threads(size, |ranks| {
                let weights = weights[ranks.rank()].to_vec();
                Ok(Groups { together: 1, starts: Vec::new(), weights }.in_order(ranks, parts))
            });
            found.into_iter().flat_map(Result::unwrap).collect::<Vec<u32>>()
        };
        assert_eq!(cut(2, &[&[1, 1, 1], &[3]], 2), [0, 0, 0, 1]);
        assert_eq!(cut(1, &[&[5, 5]], 4), [1, 3]);
        assert_eq!(cut(3, &[&[], &[7], &[]], 3), [1]);
    }
}
