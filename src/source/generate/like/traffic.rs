//! A trace of packets between computers. One of them, the hub, exchanges packets with nearly all computers,
//! because it scans the network or is scanned.
//!
//! Symmetric without a diagonal; values are whole numbers of packets with a heavy tail. The share `AWAY` of
//! the rows is not coupled with the hub. These rows form small separate trees, so that the graph has as
//! many components as the real one. Additional couplings among rows with the hub create secondary hubs,
//! many of them near the hub.

use super::Wanted;
use crate::error::Result;
use crate::format::Csr;
use crate::source::generate::assemble::{Shape, pattern, valued};
use crate::source::generate::distinct::{Position, Positions, distinct};
use crate::source::generate::random::Random;
use rayon::prelude::*;

const ROWS: usize = 18_571_154;
/// The share of rows not coupled with the hub, and the number of additional couplings among
/// the remaining rows.
const AWAY: f64 = 2_171_257.0 / 18_571_153.0;
const COUPLINGS: usize = 891_500;
/// Size of groups of consecutive rows that are all coupled with the hub or all not: computers
/// that appeared together.
const TOGETHER: usize = 64;
/// Exponent of the distances between secondary hubs and the hub: the higher it is, the closer they are.
const CLOSENESS: i32 = 4;
/// Number of tree roots, as a share of the rows not coupled with the hub.
const ROOTS: f64 = 442_522.0 / 2_171_257.0;
/// The hub's row, as a share of all rows: the share of its entries that are in the lower triangle.
const HUB: f64 = 7_397_164.0 / 16_399_896.0;
const MOST_PACKETS: f64 = 1_509_116.0;

/// Each kind of random number has its own seed.
#[derive(Clone, Copy)]
enum Kind {
    Away = 1,
    Root,
    Parent,
    Coupling,
    Busy,
    Packets,
}

struct Traffic {
    n: usize,
    hub: usize,
    seed: u64,
    /// The rows not coupled with the hub, in ascending order.
    away: Vec<u32>,
}

pub(super) fn make(wanted: Wanted) -> Result<Csr> {
    let n = wanted.scaled(ROWS);
    let hub = (n as f64 * HUB) as usize;
    let mut traffic = Traffic { n, hub, seed: wanted.seed, away: Vec::new() };
    traffic.away = (0..n).into_par_iter().filter(|&i| traffic.is_away(i)).map(|i| i as u32).collect();
    let trees = traffic.away.len() as u64;
    let draw = |k| if k < trees { traffic.tree(k as usize) } else { traffic.coupling(k) };
    let rest = distinct(n, trees + wanted.scaled(COUPLINGS) as u64, draw, None)?;
    let with_hub = n - 1 - traffic.away.len();
    let rest_columns = |i: usize| &rest.col_indices()[rest.row_range(i)];
    let all = pattern(
        Shape { rows: n, cols: n, entries: (rest.nnz() + 2 * with_hub) as u128 },
        |i| rest_columns(i).len() + if i == hub { with_hub } else { usize::from(!traffic.is_away(i)) },
        |i, columns| {
            if i == hub {
                let leaves = (0..n).filter(|&j| j != hub && !traffic.is_away(j));
                columns.iter_mut().zip(leaves).for_each(|(slot, leaf)| *slot = leaf as u32);
            } else {
                let with_hub = (!traffic.is_away(i)).then_some(hub as u32);
                columns
                    .iter_mut()
                    .zip(rest_columns(i).iter().copied().chain(with_hub))
                    .for_each(|(slot, j)| *slot = j);
                columns.sort_unstable();
            }
        },
    )?;
    drop(rest);
    valued(&all, |i, columns, values| {
        for (value, &j) in values.iter_mut().zip(columns) {
            *value = traffic.packets(i as u64, u64::from(j));
        }
    })
}

impl Traffic {
    fn random(&self, kind: Kind, index: u64) -> Random {
        Random::at(self.seed.wrapping_mul(16) + kind as u64, index)
    }

    fn is_away(&self, i: usize) -> bool {
        i != self.hub && self.random(Kind::Away, (i / TOGETHER) as u64).unit() < AWAY
    }

    /// Returns the edge that joins the `w`-th row without the hub to its tree; no edge for a root. Only every
    /// second row may be a root, and the last one never is, so no tree consists of a single row.
    fn tree(&self, w: usize) -> Positions {
        let last = self.away.len() - 1;
        let root = |w: usize| {
            w == 0
                || w.is_multiple_of(2) && w < last && self.random(Kind::Root, w as u64).unit() < 2.0 * ROOTS
        };
        if root(w) {
            return [None; 2];
        }
        let to_root = self.random(Kind::Parent, w as u64).bits().is_multiple_of(2);
        let parent = if to_root { (0..w).rev().find(|&w| root(w)).unwrap_or(0) } else { w - 1 };
        both((self.away[w], self.away[parent]))
    }

    /// Returns a coupling between two rows with the hub: a random one, and one that occurs more
    /// often the lower its rank is.
    fn coupling(&self, k: u64) -> Positions {
        let mut random = self.random(Kind::Coupling, k);
        let rank = (self.n as f64).powf(random.unit()) as u64;
        let busy = self.with_hub(self.near_hub(rank));
        let any = self.with_hub(random.below(self.n as u64) as usize);
        if busy == any { [None; 2] } else { both((busy as u32, any as u32)) }
    }

    /// Returns the row of the secondary hub of a rank, on either side of the hub.
    fn near_hub(&self, rank: u64) -> usize {
        let side = 2.0 * self.random(Kind::Busy, rank).unit() - 1.0;
        let rows = if side < 0.0 { self.hub } else { self.n - 1 - self.hub };
        (self.hub as f64 + rows as f64 * side * side.abs().powi(CLOSENESS - 1)) as usize
    }

    /// Returns the first row from `from` on that is coupled with the hub, cyclically.
    fn with_hub(&self, from: usize) -> usize {
        let next = |i: usize| if i + 1 < self.n { i + 1 } else { 0 };
        let mut i = from;
        while i == self.hub || self.is_away(i) {
            i = next(i);
        }
        i
    }

    /// Returns the number of packets between two rows: at least x with probability 1 / x.
    fn packets(&self, i: u64, j: u64) -> f64 {
        let pair = i.min(j) << 32 | i.max(j);
        (1.0 - self.random(Kind::Packets, pair).unit()).recip().floor().min(MOST_PACKETS)
    }
}

fn both((a, b): Position) -> Positions {
    [Some((a, b)), Some((b, a))]
}
