//! Aggregates of vertices: the vertices of the next level.
//!
//! # Method
//! The roots of the aggregates are a maximal independent set at distance two in the graph of strong
//! connections. In a round each undecided vertex has a key, a hash of its number and the round; it becomes a
//! root if no key within distance two is larger, and it is decided if a root is that near. Each root takes
//! its neighbours. All other vertices join the neighbouring aggregate with the largest sum of weights. A
//! vertex without strong connections joins that of the largest entry of its row.
//!
//! All vertices of a round see the state before it, so the aggregates depend on neither the number of threads
//! nor the order of the work.
//!
//! # Reference
//! N. Bell, S. Dalton, L. N. Olson, Exposing fine-grained parallelism in algebraic multigrid methods, SIAM J.
//! Sci. Comput. 34, 2012.

use super::strength::Strong;
use crate::parallel::collected;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A vertex in no aggregate.
pub(super) const NONE: u32 = u32::MAX;
/// The key of a root.
const ROOT: u64 = u64::MAX;
/// The key of a vertex that is no root.
const DECIDED: u64 = 0;
/// Vertices that a thread processes as one task.
const TASK: usize = 2048;
/// Sums of weights that differ by less than this share are equal.
const EQUAL: f64 = 1e-6;

/// The aggregate of each vertex, counted from 0; [`NONE`] for a vertex without connections.
pub(super) struct Aggregates {
    pub of: Vec<u32>,
    pub count: usize,
}

/// Returns the key of a vertex in a round: 31 hashed bits, then its number, so that no two are equal.
fn key(vertex: u32, round: u64) -> u64 {
    let mut x = u64::from(vertex).wrapping_add((round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((((x ^ (x >> 31)) >> 33) | 1 << 30) << 32) | u64::from(vertex)
}

/// The vertices of a task that a search for roots has not finished.
struct Open {
    /// Those that are neither a root nor near one.
    undecided: Vec<u32>,
    /// Those whose largest key near them may change.
    changing: Vec<u32>,
}

/// Returns a maximal independent set at distance two of the vertices with a connection, in increasing order.
fn roots(strong: &Strong<'_>) -> Vec<u32> {
    let n = strong.vertices();
    // The key of each vertex, and the largest key of it and its neighbours.
    let [keys, nearest] = [(), ()].map(|()| collected(n, |_| AtomicU64::new(DECIDED)));
    let at = |of: &[AtomicU64], vertex: u32| of[vertex as usize].load(Relaxed);
    let is_open = |key: u64| key != ROOT && key != DECIDED;
    let vertices = |task: usize| (task * TASK) as u32..((task + 1) * TASK).min(n) as u32;
    let begin = |task: usize| {
        let undecided: Vec<u32> = vertices(task).filter(|&vertex| strong.is_connected(vertex)).collect();
        Open { changing: undecided.clone(), undecided }
    };
    let mut open: Vec<Open> = (0..n.div_ceil(TASK)).into_par_iter().map(begin).collect();
    for round in 0.. {
        open.retain(|open| !open.undecided.is_empty() || !open.changing.is_empty());
        if open.iter().all(|open| open.undecided.is_empty()) {
            break;
        }
        open.par_iter().for_each(|open| {
            for &vertex in &open.undecided {
                keys[vertex as usize].store(key(vertex, round), Relaxed);
            }
        });
        open.par_iter_mut().for_each(|open| {
            open.changing.retain(|&vertex| {
                let found = strong.largest(vertex, |other| at(&keys, other));
                nearest[vertex as usize].store(found, Relaxed);
                is_open(found)
            });
        });
        open.par_iter_mut().for_each(|open| {
            open.undecided.retain(|&vertex| {
                let found = strong.largest(vertex, |other| at(&nearest, other));
                if found == ROOT {
                    keys[vertex as usize].store(DECIDED, Relaxed);
                } else if found == at(&keys, vertex) {
                    keys[vertex as usize].store(ROOT, Relaxed);
                }
                is_open(at(&keys, vertex))
            });
        });
    }
    let of_task =
        |task: usize| -> Vec<u32> { vertices(task).filter(|&vertex| at(&keys, vertex) == ROOT).collect() };
    let of_tasks: Vec<Vec<u32>> = (0..n.div_ceil(TASK)).into_par_iter().map(of_task).collect();
    of_tasks.concat()
}

/// Returns the aggregate whose connections have the largest sum of weights; of equal ones the smallest.
/// `sums` is scratch.
fn best(
    connections: &[(u32, f64)],
    of: &[AtomicU32],
    sizes: &[u32],
    sums: &mut Vec<(u32, f64)>,
) -> Option<u32> {
    /// The most connections whose aggregates are sorted by insertion.
    const FEW: usize = 32;
    sums.clear();
    let known = connections.iter().map(|(other, weight)| (of[*other as usize].load(Relaxed), *weight));
    let known = known.filter(|(aggregate, _)| *aggregate != NONE);
    if connections.len() <= FEW {
        for (aggregate, weight) in known {
            match sums.iter().position(|(other, _)| *other >= aggregate) {
                Some(at) if sums[at].0 == aggregate => sums[at].1 += weight,
                at => sums.insert(at.unwrap_or(sums.len()), (aggregate, weight)),
            }
        }
    } else {
        sums.extend(known);
        sums.sort_by_key(|(aggregate, _)| *aggregate);
        sums.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            sum.1 += if same { next.1 } else { 0.0 };
            same
        });
    }
    let better = |best: (u32, f64), next: (u32, f64)| {
        let equal = (next.1 - best.1).abs() <= EQUAL * best.1;
        let smaller = sizes[next.0 as usize] < sizes[best.0 as usize];
        if (equal && smaller) || (!equal && next.1 > best.1) { next } else { best }
    };
    sums.iter().copied().reduce(better).map(|(aggregate, _)| aggregate)
}

/// Lets vertices without an aggregate join one of their connections, until none can.
fn join(of: &[AtomicU32], count: usize, connections: impl Fn(u32, &mut Vec<(u32, f64)>) + Sync) {
    let mut sizes = vec![0_u32; count];
    of.iter().map(|of| of.load(Relaxed)).filter(|of| *of != NONE).for_each(|of| sizes[of as usize] += 1);
    let is_free = |vertex: &u32| of[*vertex as usize].load(Relaxed) == NONE;
    let mut left: Vec<u32> = (0..of.len() as u32).into_par_iter().filter(is_free).collect();
    loop {
        let find = |(found, sums): &mut (Vec<_>, Vec<_>), &vertex: &u32| {
            connections(vertex, found);
            best(found, of, &sizes, sums)
        };
        let chosen: Vec<_> = left.par_iter().with_min_len(TASK).map_init(Default::default, find).collect();
        for (vertex, aggregate) in left.iter().zip(&chosen) {
            if let Some(aggregate) = *aggregate {
                of[*vertex as usize].store(aggregate, Relaxed);
                sizes[aggregate as usize] += 1;
            }
        }
        let before = left.len();
        left.retain(is_free);
        if left.len() == before {
            return;
        }
    }
}

/// Aggregates the vertices of a graph of strong connections.
pub(super) fn aggregates(strong: &Strong<'_>) -> Aggregates {
    let n = strong.vertices();
    let of: Vec<AtomicU32> = collected(n, |_| AtomicU32::new(NONE));
    let is_free = |vertex: u32| of[vertex as usize].load(Relaxed) == NONE;
    let roots = roots(strong);
    // A vertex next to two roots, which a graph that is not quite symmetric may have, belongs to the first.
    roots.par_iter().with_min_len(TASK).enumerate().for_each(|(number, &root)| {
        for vertex in strong.neighbours(root) {
            of[vertex as usize].fetch_min(number as u32, Relaxed);
        }
    });
    roots.par_iter().with_min_len(TASK).enumerate().for_each(|(number, &root)| {
        of[root as usize].store(number as u32, Relaxed);
    });
    let mut count = roots.len();
    join(&of, count, |vertex, to| strong.connections(vertex, to));
    // In a symmetric graph every connected vertex has an aggregate by now.
    for vertex in (0..n as u32).filter(|&vertex| is_free(vertex) && strong.is_connected(vertex)) {
        of[vertex as usize].store(count as u32, Relaxed);
        count += 1;
    }
    if (0..n as u32).any(is_free) {
        join(&of, count, |vertex, to| strong.norms.entries(vertex as usize, to));
    }
    Aggregates { of: of.into_iter().map(AtomicU32::into_inner).collect(), count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Csr;
    use crate::format::product::{Workspace, in_double};
    use crate::precond::amg::strength::Norms;
    use crate::source;

    fn strong(name: &str, block: usize) -> Strong<'static> {
        of_matrix(in_double(source::load(name).unwrap().matrix), block)
    }

    fn of_matrix(matrix: Csr, block: usize) -> Strong<'static> {
        let matrix: &'static Csr = Box::leak(Box::new(matrix));
        let norms: &'static Norms<'_> = Box::leak(Box::new(
            Norms::of((matrix, &matrix.diagonal()), block, &Workspace::default()).unwrap(),
        ));
        norms.strong(0.08, &Workspace::default()).unwrap()
    }

    #[test]
    fn no_two_roots_are_within_two_connections_and_every_connected_vertex_is_near_one() {
        // A A' is a symmetric graph with hubs.
        let hubs = in_double(source::load("rmat:scale=9,edges=900").unwrap().matrix);
        let hubs = Workspace::default().product(&hubs, &hubs.transposed().unwrap()).unwrap();
        let meshes = ["poisson2d:37x29", "poisson3d:9x8x10"].map(|name| (name, strong(name, 1)));
        for (name, strong) in meshes.into_iter().chain([("hubs", of_matrix(hubs, 1))]) {
            let degree = |vertex: u32| strong.neighbours(vertex).count();
            let connections: usize = (0..strong.vertices() as u32).map(degree).sum();
            assert!(connections > 2 * strong.vertices(), "{name}: {connections}");
            let found = roots(&strong);
            let mut near = vec![0; strong.vertices()];
            for &root in &found {
                let around = strong.neighbours(root).chain([root]);
                around.for_each(|vertex| near[vertex as usize] += 1);
            }
            assert!(near.iter().all(|roots| *roots <= 1), "{name}");
            let is_near = |vertex: u32| {
                near[vertex as usize] > 0 || strong.neighbours(vertex).any(|other| near[other as usize] > 0)
            };
            let mut connected = (0..strong.vertices() as u32).filter(|&vertex| strong.is_connected(vertex));
            assert!(connected.all(is_near), "{name}");
        }
    }

    #[test]
    fn every_connected_vertex_is_in_an_aggregate_and_none_is_empty() {
        for (name, block) in [("poisson2d:50x41", 1), ("elasticity3d:8x8x8", 3)] {
            let strong = strong(name, block);
            let Aggregates { of, count } = aggregates(&strong);
            let mut sizes = vec![0; count];
            of.iter().for_each(|of| sizes[*of as usize] += 1);
            assert!(sizes.iter().all(|size| *size > 0), "{name}");
            assert!(of.len() > 5 * count, "{name}: {count} of {}", of.len());
        }
    }

    #[test]
    fn aggregates_do_not_depend_on_the_number_of_threads() {
        // The second graph is not symmetric.
        for name in ["poisson2d:120x110", "rmat:scale=14,edges=60000"] {
            let strong = strong(name, 1);
            let of = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| aggregates(&strong).of)
            };
            let one = of(1);
            assert!((2..5).all(|threads| of(threads) == one), "{name}");
        }
    }
}
