//! A trace of packets between computers: one of them, the hub, exchanges packets with nearly all others, because it
//! scans the network or is scanned.
//!
//! Symmetric, no diagonal, values whole numbers of packets with a heavy tail. `AWAY` of the rows are not coupled with
//! the hub; they form small trees of their own, so that the graph has as many components as the real one. Some more
//! couplings, among those that talk to the hub, make hubs of the second rank.

use super::Wanted;
use crate::error::Result;
use crate::format::Csr;
use crate::source::generate::assemble::{Shape, pattern, valued};
use crate::source::generate::distinct::{Place, Places, distinct};
use crate::source::generate::random::Random;
use rayon::prelude::*;

const ROWS: usize = 18_571_154;
/// The share of rows without the hub, and the number of couplings among those with it.
const AWAY: f64 = 2_171_257.0 / 18_571_153.0;
const COUPLINGS: usize = 891_500;
/// Rows that are all with the hub or all without it: computers that came up at the same time.
const TOGETHER: usize = 64;
/// The share of rows, from the first on, that the hubs of the second rank are among: they came up early too.
const EARLY: f64 = 0.15;
/// Roots of trees, as a share of the rows without the hub.
const ROOTS: f64 = 442_522.0 / 2_171_257.0;
/// The hub's row, as a share of all: what the real matrix' bandwidth says.
const HUB: f64 = 638_201.0 / 18_571_154.0;
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
    /// The rows without the hub, ascending.
    away: Vec<u32>,
}

pub(super) fn make(wanted: Wanted) -> Result<Csr> {
    let n = wanted.of(ROWS);
    let hub = (n as f64 * HUB) as usize;
    let mut traffic = Traffic { n, hub, seed: wanted.seed, away: Vec::new() };
    traffic.away = (0..n).into_par_iter().filter(|&i| traffic.is_away(i)).map(|i| i as u32).collect();
    let trees = traffic.away.len() as u64;
    let draw = |k| if k < trees { traffic.tree(k as usize) } else { traffic.coupling(k) };
    let rest = distinct(n, trees + wanted.of(COUPLINGS) as u64, draw, None)?;
    let with_hub = n - 1 - traffic.away.len();
    let others = |i: usize| &rest.col_indices()[rest.row_range(i)];
    let all = pattern(
        Shape { rows: n, cols: n, entries: (rest.nnz() + 2 * with_hub) as u128 },
        |i| others(i).len() + if i == hub { with_hub } else { usize::from(!traffic.is_away(i)) },
        |i, columns| {
            if i == hub {
                let leaves = (0..n).filter(|&j| j != hub && !traffic.is_away(j));
                columns.iter_mut().zip(leaves).for_each(|(slot, leaf)| *slot = leaf as u32);
            } else {
                let with_hub = (!traffic.is_away(i)).then_some(hub as u32);
                columns
                    .iter_mut()
                    .zip(others(i).iter().copied().chain(with_hub))
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
    fn random(&self, kind: Kind, place: u64) -> Random {
        Random::at(self.seed.wrapping_mul(16) + kind as u64, place)
    }

    fn is_away(&self, i: usize) -> bool {
        i != self.hub && self.random(Kind::Away, (i / TOGETHER) as u64).unit() < AWAY
    }

    /// The edge that joins the `w`-th row without the hub to its tree; none for a root. Only every second one may be a
    /// root, and the last one never is, so that no tree is a single row.
    fn tree(&self, w: usize) -> Places {
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

    /// A coupling among rows with the hub: of any of them with one that is the more busy the lower its rank is.
    fn coupling(&self, k: u64) -> Places {
        let mut random = self.random(Kind::Coupling, k);
        let rank = (self.n as f64).powf(random.unit()) as u64;
        let early = (self.n as f64 * EARLY) as u64;
        let busy = self.with_hub(self.random(Kind::Busy, rank).below(early) as usize);
        let any = self.with_hub(random.below(self.n as u64) as usize);
        if busy == any { [None; 2] } else { both((busy as u32, any as u32)) }
    }

    /// The next row that is coupled with the hub.
    fn with_hub(&self, from: usize) -> usize {
        let next = |i: usize| if i + 1 < self.n { i + 1 } else { 0 };
        let mut i = from;
        while i == self.hub || self.is_away(i) {
            i = next(i);
        }
        i
    }

    /// Packets between two rows: at least x of them with probability 1 / x.
    fn packets(&self, i: u64, j: u64) -> f64 {
        let pair = i.min(j) << 32 | i.max(j);
        (1.0 - self.random(Kind::Packets, pair).unit()).recip().floor().min(MOST_PACKETS)
    }
}

fn both((a, b): Place) -> Places {
    [Some((a, b)), Some((b, a))]
}
