//! R-MAT graphs. The position of an edge is found by repeatedly halving the matrix and choosing one of its
//! quarters, with probabilities `a`, `b`, `c` (top left, top right, bottom left) and the rest to 1 for
//! bottom right. The defaults are those of the Graph500 benchmark: heavy tails in both directions.
//! (Chakrabarti, Zhan, Faloutsos 2004.)
//!
//! Edges drawn more than once are kept once. If the number of rows is not a power of two, both indices are
//! taken modulo that number. `permuted` renumbers the vertices at random, `loopless` drops the diagonal,
//! `weighted` gives every edge a value between 0 and 1 in place of an implicit 1.

use super::distinct::{self, Draws, Position};
use super::random::Random;
use super::spec::{ORDER, SEED, flag, from_to};
use super::{Loaded, Recipe, Spec};
use crate::error::Result;
use crate::parallel::zeros;
use crate::params::{Kind, Param};
use rayon::prelude::*;
use std::sync::Arc;

// Seeds that keep the random numbers of values and of numbering apart from those of positions.
const VALUES: u64 = 0x7661_6c75_6573;
const NUMBERS: u64 = 0x6e75_6d62_6572;

/// The probabilities of the quarters, as bounds on 32 random bits.
struct Quarters {
    levels: u32,
    a: u64,
    ab: u64,
    abc: u64,
}

impl Quarters {
    /// Returns row and column of the edge drawn with these random numbers.
    fn draw(&self, mut random: Random) -> (u64, u64) {
        let (mut row, mut col, mut bits) = (0, 0, 0);
        for level in 0..self.levels {
            bits = if level % 2 == 0 { random.bits() } else { bits >> 32 };
            let u = bits & 0xffff_ffff;
            row = row << 1 | u64::from(u >= self.ab);
            col = col << 1 | u64::from((u >= self.a) & (u < self.ab) | (u >= self.abc));
        }
        (row, col)
    }
}

/// The parameters of the description.
struct Graph {
    n: usize,
    edges: u64,
    quarters: Quarters,
    seed: u64,
    permuted: bool,
    loopless: bool,
    weighted: bool,
}

const fn share(name: &'static str, default: &'static str) -> Param {
    Param::new(name, from_to(0.0, 1.0), "the probability of a quarter of the matrix").or(default)
}

pub(super) const PARAMS: &[Param] = &[
    Param::new("scale", Kind::Whole(1, 31), "the logarithm of the number of rows, to base 2"),
    ORDER,
    Param::new("edges", Kind::Whole(0, u64::MAX), "edges that are drawn"),
    Param::new("factor", Kind::Whole(0, u32::MAX as u64), "edges that are drawn for each row"),
    share("a", "0.57"),
    share("b", "0.19"),
    share("c", "0.19"),
    SEED,
    flag("weighted", "edges have weights"),
    flag("permuted", "the rows are numbered at random"),
    flag("loopless", "there are no edges from a vertex to itself"),
];

pub(super) fn make(spec: &Spec<'_>) -> Result<Recipe> {
    let (n, levels) = size(spec)?;
    let edges = edges(spec, n)?;
    let quarters = quarters(spec, levels)?;
    let seed = spec.whole("seed");
    let [permuted, loopless, weighted] = ["permuted", "loopless", "weighted"].map(|name| spec.has(name));
    let graph = Graph { n, edges, quarters, seed, permuted, loopless, weighted };
    let graph = Arc::new(graph);
    let drawn = Arc::clone(&graph);
    let make = move || {
        let matrix = graph.draws()?.make()?;
        let stored = matrix.nnz() as u64;
        Ok(Loaded::new(matrix, stored, false))
    };
    Ok(Recipe::new(distinct::bytes(edges), make).by_draws(move || drawn.draws()))
}

impl Graph {
    fn draws(self: &Arc<Graph>) -> Result<Draws> {
        let numbers = if self.permuted { permutation(self.n, self.seed)? } else { Vec::new() };
        let (graph, seed) = (Arc::clone(self), self.seed);
        let draw = move |k| -> Option<Position> {
            let (row, col) = graph.quarters.draw(Random::at(seed, k));
            let (row, col) = ((row % graph.n as u64) as u32, (col % graph.n as u64) as u32);
            if graph.loopless && row == col {
                return None;
            }
            let number = |i: u32| numbers.get(i as usize).copied().unwrap_or(i);
            Some((number(row), number(col)))
        };
        let draws = Draws::new(self.n, self.edges, draw);
        Ok(if self.weighted { draws.with_values(move |position| weight(seed, position)) } else { draws })
    }
}

/// Returns the number of rows, and the number of halvings that reach each row.
fn size(spec: &Spec<'_>) -> Result<(usize, u32)> {
    let scale = spec.find_whole("scale").map(|scale| scale as u32);
    let n = if spec.has("n") { Some(spec.order()?) } else { None };
    match (scale, n) {
        (None, None) => Err(spec.fault("neither 'scale' nor 'n' is given")),
        (Some(scale), None) => Ok((1 << scale, scale)),
        (None, Some(n)) => Ok((n, n.next_power_of_two().trailing_zeros())),
        (Some(scale), Some(n)) if n > 1 << scale => {
            Err(spec.fault(format!("n={n} is more than 2^{scale}, the most rows that scale={scale} allows")))
        }
        (Some(scale), Some(n)) => Ok((n, scale)),
    }
}

fn edges(spec: &Spec<'_>, n: usize) -> Result<u64> {
    let edges = match (spec.find_whole("edges"), spec.find_whole("factor")) {
        (Some(edges), None) => edges,
        (None, Some(factor)) => factor * n as u64,
        (None, None) => return Err(spec.fault("neither 'edges' nor 'factor' (edges a row) is given")),
        (Some(_), Some(_)) => return Err(spec.fault("both 'edges' and 'factor' are given")),
    };
    let positions = n as u64 * n as u64;
    if edges > positions {
        return Err(spec
            .fault(format!("{edges} edges are more than the {positions} positions of a {n} x {n} matrix")));
    }
    Ok(edges)
}

fn quarters(spec: &Spec<'_>, levels: u32) -> Result<Quarters> {
    let [a, b, c] = ["a", "b", "c"].map(|name| spec.real(name));
    let sum = a + b + c;
    if sum > 1.0 + 1e-9 {
        return Err(spec.fault(format!("a + b + c is {sum}, more than 1")));
    }
    let bound = |share: f64| (share * 2f64.powi(32)).round() as u64;
    Ok(Quarters { levels, a: bound(a), ab: bound(a + b), abc: bound(sum) })
}

/// Returns the value at a position: above 0, at most 1.
pub(super) fn weight(seed: u64, (row, col): (u32, u32)) -> f64 {
    1.0 - Random::at(seed ^ VALUES, u64::from(row) << 32 | u64::from(col)).unit()
}

/// Returns the numbers 0..n in random order.
fn permutation(n: usize, seed: u64) -> Result<Vec<u32>> {
    let mut keys = zeros::<u64>(n)?;
    keys.par_iter_mut().enumerate().for_each(|(i, key)| {
        *key = (Random::at(seed ^ NUMBERS, i as u64).bits() >> 32) << 32 | i as u64;
    });
    keys.par_sort_unstable();
    Ok(keys.into_par_iter().map(|key| key as u32).collect())
}
