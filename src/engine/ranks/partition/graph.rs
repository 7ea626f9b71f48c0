//! Parts of the graph of a matrix that need few numbers of each other.
//!
//! A vertex of the graph is a group of rows that belong together; two are linked if a row of one has an entry
//! in a column of the other. The first rank collects the graph, without values, and partitions it.

use super::groups::Groups;
use super::metis;
use super::setting::{Partition, SETTING};
use crate::backend::distributed::transposed;
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{collected, room};
use crate::text::thousands;

/// Graphs with fewer vertices for each part are cut in the order of their rows.
const FEWEST: usize = 8;

/// The most links that METIS can number, with both directions of a link.
const MOST_LINKS: u64 = i32::MAX as u64;

/// Returns the part of each group of this rank.
pub(crate) fn parts_of(ranks: &Ranks, groups: &Groups, rows: &Csr, parts: usize) -> Result<Vec<u32>> {
    let total = groups.starts[ranks.size()];
    if parts > 1 && total < FEWEST * parts && ranks.is_first() {
        log::warn!(
            "partition graph: {total} groups of rows are too few for {parts} parts by METIS; they are cut in their order"
        );
    }
    if parts == 1 || total < FEWEST * parts {
        return Ok(groups.in_order(ranks, parts));
    }
    let lists = neighbours(ranks, groups, rows)?;
    let lengths: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
    check_links(ranks.total(lengths.iter().sum()))?;
    let lengths = ranks.collect(&lengths)?;
    let links = ranks.collect(&lists.concat())?;
    drop(lists);
    let weights = ranks.collect(&groups.weights)?;
    let whole = lengths.zip(links).zip(weights).map(|((lengths, links), weights)| {
        let mut offsets = room::<usize>(lengths.len() + 1)?;
        offsets.push(0);
        lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + *length as usize));
        metis::parts_of(&offsets, &links, &weights, parts)
    });
    let whole = ranks.agreed(whole.transpose())?;
    ranks.scatter(whole.as_deref(), groups.weights.len())
}

/// Refuses a graph with more links than METIS can count. Both directions of a link are counted.
fn check_links(links: u64) -> Result<()> {
    match links <= MOST_LINKS {
        true => Ok(()),
        false => {
            let reason = format!(
                "the graph has {} links between nodes, and METIS takes fewer than 2^30; use the partition coordinates or entries",
                thousands(links / 2)
            );
            Err(Error::setting(SETTING, Partition::Graph, reason))
        }
    }
}

/// Returns the groups that each group of this rank is linked with, in increasing order, without itself. Links
/// are symmetric also if an entry and its mirror image are not both stored.
fn neighbours(ranks: &Ranks, groups: &Groups, rows: &Csr) -> Result<Vec<Vec<u32>>> {
    let together = groups.together;
    let list = |group: usize| {
        let range = groups.rows_of(group, rows.rows());
        let entries = rows.row_offsets().get(range.start)..rows.row_offsets().get(range.end);
        let mut list: Vec<u32> =
            rows.col_indices()[entries].iter().map(|column| column / together as u32).collect();
        list.sort_unstable();
        list.dedup();
        list
    };
    let count = groups.weights.len();
    let lists = collected(count, list);
    let mut offsets = vec![0_u64];
    lists.iter().for_each(|list| offsets.push(offsets[offsets.len() - 1] + list.len() as u64));
    let total = groups.starts[ranks.size()];
    let graph = Csr::new(count, total, Offsets::narrowest(offsets), lists.concat(), Values::Ones);
    drop(lists);
    let graph = ranks.agreed(graph)?;
    let mirrored = transposed(ranks, &groups.starts, &graph, &groups.starts)?;
    let first = groups.starts[ranks.rank()];
    let both = |group: usize| {
        let mut list = [graph.row_columns(group), mirrored.row_columns(group)].concat();
        list.sort_unstable();
        list.dedup();
        list.retain(|other| *other as usize != first + group);
        list
    };
    Ok(collected(count, both))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;
    use crate::format::Coo;
    use crate::format::partition::by_entries;

    #[test]
    fn graphs_with_more_links_than_metis_can_number_are_refused() {
        check_links((1 << 31) - 2).unwrap();
        let message = check_links(1 << 31).unwrap_err().to_string();
        assert!(message.contains("has 1,073,741,824 links between nodes"), "{message}");
    }

    #[test]
    fn links_are_symmetric_and_lead_from_group_to_group() {
        // Six rows in groups of two; (1, 4) has no mirror image.
        let mut entries = Coo::with_capacity(6, 6, 8).unwrap();
        (0..6).for_each(|row| entries.push(row, row, 2.0).unwrap());
        entries.push(1, 4, 1e-300).unwrap();
        entries.push(0, 1, 1.0).unwrap();
        let matrix = entries.into_csr().unwrap();
        for size in 1..=4 {
            let starts = by_entries(&matrix, size, 2);
            let found = in_threads(size, |ranks| {
                let rows = matrix.row_band(starts[ranks.rank()]..starts[ranks.rank() + 1])?;
                let groups = Groups::of(ranks, &starts, &rows, 2);
                neighbours(ranks, &groups, &rows)
            });
            let found: Vec<Vec<u32>> = found.into_iter().flat_map(Result::unwrap).collect();
            assert_eq!(found, [vec![2], vec![], vec![0]]);
        }
    }
}
