//! Node numbering as in models that grew over time: runs of neighbours keep their order, and
//! the runs are displaced.

use crate::error::Result;
use crate::format::Csr;
use crate::parallel::{room, zeros};
use crate::source::generate::random::Random;
use rayon::prelude::*;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Returns the nodes 0..n in the order of their numbers. Runs are `stretch` long on average, and move by up
/// to half of `stray * n` in either direction.
pub(super) fn displaced_order(n: usize, stretch: usize, stray: f64, seed: u64) -> Result<Vec<u32>> {
    let mut order = room(n)?;
    order.extend(displaced_runs(n, stretch, stray, seed)?.into_iter().flatten());
    Ok(order)
}

/// Returns the runs of [`displaced_order`] in their new order.
pub(super) fn displaced_runs(n: usize, stretch: usize, stray: f64, seed: u64) -> Result<Vec<Range<u32>>> {
    let mut stretches = room(n / stretch + 1)?;
    let mut start = 0;
    while start < n {
        let mut random = Random::at(seed, start as u64);
        let length = 1 + random.below(2 * stretch as u64 - 1) as usize;
        let key = start as f64 + (random.unit() - 0.5) * stray * n as f64;
        stretches.push((key, start as u32, length.min(n - start) as u32));
        start += length;
    }
    stretches.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut runs = room(stretches.len())?;
    runs.extend(stretches.iter().map(|&(_, start, length)| start..start + length));
    Ok(runs)
}

/// Returns the nodes of the runs in the order of their numbers. The order of the runs changes as little as
/// needed for short lower rows: a node and its neighbours of lower number have at most `most` unknowns.
///
/// The numbers are given from the last to the first. Each goes to the last run whose rows, without the
/// nodes that already have a number, are short enough. If all are too long, it goes to the run that
/// exceeds `most` least. Each row of `graph` has a node and its neighbours; `unknowns(node)` is the
/// number of unknowns of a node.
pub(super) fn limited_order(
    runs: &[Range<u32>],
    graph: &Csr,
    unknowns: impl Fn(u32) -> u32,
    most: u32,
) -> Result<Vec<u32>> {
    let n = graph.rows();
    let near = |node: u32| &graph.col_indices()[graph.row_range(node as usize)];
    // The unknowns of the nodes without a number in each row, and the run of each node.
    let (mut left, mut run_of) = (zeros::<u32>(n)?, zeros::<u32>(n)?);
    // The number of rows of each run that are too long. The runs without such rows are candidates.
    let mut too_long = zeros::<u32>(runs.len())?;
    let mut numbered = zeros::<bool>(runs.len())?;
    let mut candidates = BinaryHeap::new();
    for (run, nodes) in runs.iter().enumerate() {
        for node in nodes.clone() {
            left[node as usize] = near(node).iter().map(|&other| unknowns(other)).sum();
            run_of[node as usize] = run as u32;
            too_long[run] += u32::from(left[node as usize] > most);
        }
        if too_long[run] == 0 {
            candidates.push(run);
        }
    }
    let mut reversed = room(n)?;
    for _ in runs {
        let longest = |run: usize| runs[run].clone().map(|node| left[node as usize]).max();
        let shortest = || (0..runs.len()).filter(|&run| !numbered[run]).min_by_key(|&run| longest(run));
        let Some(run) = candidates.pop().or_else(shortest) else { break };
        numbered[run] = true;
        for node in runs[run].clone().rev() {
            reversed.push(node);
            for &other in near(node) {
                let was = left[other as usize];
                left[other as usize] = was - unknowns(node);
                let run = run_of[other as usize] as usize;
                if was > most && left[other as usize] <= most {
                    too_long[run] -= 1;
                    if too_long[run] == 0 && !numbered[run] {
                        candidates.push(run);
                    }
                }
            }
        }
    }
    reversed.reverse();
    Ok(reversed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::generate::assemble::{Shape, pattern};

    /// Numbers runs of two nodes, all coupled with each other, and returns the order.
    fn of_complete_graph(most: u32) -> Vec<u32> {
        let shape = Shape { rows: 6, cols: 6, entries: 36 };
        let all = |_, columns: &mut [u32]| (0..).zip(columns).for_each(|(other, slot)| *slot = other);
        let graph = pattern(shape, |_| 6, all).unwrap();
        limited_order(&[2..4, 4..6, 0..2], &graph, |_| 1, most).unwrap()
    }

    #[test]
    fn a_limit_that_holds_anyway_keeps_the_order_of_the_runs() {
        assert_eq!(of_complete_graph(6), [2, 3, 4, 5, 0, 1]);
    }

    #[test]
    fn nodes_are_numbered_even_if_no_order_satisfies_the_limit() {
        let mut order = of_complete_graph(1);
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_node_with_many_neighbours_gets_a_number_before_some_of_them() {
        // Node 0 is coupled with all others, and they only with it.
        let shape = Shape { rows: 5, cols: 5, entries: 13 };
        let length = |node: usize| if node == 0 { 5 } else { 2 };
        let star = |node: usize, columns: &mut [u32]| match node {
            0 => (0..).zip(columns).for_each(|(other, slot)| *slot = other),
            _ => columns.copy_from_slice(&[0, node as u32]),
        };
        let graph = pattern(shape, length, star).unwrap();
        let order = |most| limited_order(&[1..2, 2..3, 3..4, 4..5, 0..1], &graph, |_| 1, most).unwrap();
        assert_eq!((order(5), order(3)), (vec![1, 2, 3, 4, 0], vec![1, 2, 0, 3, 4]));
    }
}
