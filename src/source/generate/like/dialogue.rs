//! A graph of answers between the users of a question site: directed, heavy tails in both directions, no
//! locality, many self-loops, and many pairs of opposite edges.
//!
//! Users are ranked by activity. An answer goes from a rank drawn by the law (r + r0)^-5/6 to one drawn by
//! (r + s0)^-3/5; exponents and constants are fitted to the mean, deviation and maximum of rows and columns.
//! A share of the answers is answered in turn. Active users tend to have joined early, so node numbers are
//! the ranks with random deviations. Values count the answers: whole numbers from 1 on, at least x of them
//! with probability x^-1.9.

use super::Wanted;
use super::numbering::displaced_order;
use crate::error::Result;
use crate::format::Csr;
use crate::source::generate::distinct::{Positions, distinct};
use crate::source::generate::random::Random;

const ROWS: usize = 2_601_977;
/// Number of answers drawn, before duplicates are merged and reverse edges are added.
const ANSWERS: usize = 28_300_000;
/// The share of answers that are answered in turn, and the share of users who answer themselves.
const RETURNED: f64 = 0.235;
const OWN: f64 = 1_357_766.0 / 2_601_977.0;
/// The bends r0 and s0 of the laws of rows and columns.
const ROW_BEND: f64 = 20.5;
const COL_BEND: f64 = 2.5;
/// Deviation of node numbers from ranks.
const STRAY: f64 = 0.03;
const MOST_TIMES: f64 = 29_919.0;
/// Random numbers above this, 2^-1.9, give the value 1.
const ONCE: f64 = 0.268;

// Seeds that keep the random numbers of values and of numbering apart from those of answers.
const TIMES: u64 = 0x0074_696d_6573;
const NUMBERS: u64 = 0x6e75_6d62_6572;

/// Ranks below `n` by the law (r + bend)^(1 / power - 1). The sum of the law up to r is a power of r + bend.
/// If twice the power is a whole number, its inverse needs only multiplications and a root.
struct Ranks {
    n: usize,
    twice_power: i32,
    bend: f64,
    low: f64,
    span: f64,
}

impl Ranks {
    fn new(n: usize, twice_power: i32, bend: f64) -> Ranks {
        let inverse = |x: f64| x.powf(2.0 / f64::from(twice_power));
        let low = inverse(bend);
        Ranks { n, twice_power, bend, low, span: inverse(n as f64 + bend) - low }
    }

    fn draw(&self, random: &mut Random) -> usize {
        let rank = (self.low + self.span * random.unit()).powi(self.twice_power).sqrt() - self.bend;
        (rank.max(0.0) as usize).min(self.n - 1)
    }
}

pub(super) fn make(wanted: Wanted) -> Result<Csr> {
    let (n, seed) = (wanted.scaled(ROWS), wanted.seed);
    let (rows, cols) = (Ranks::new(n, 12, ROW_BEND), Ranks::new(n, 5, COL_BEND));
    let numbers = displaced_order(n, 1, STRAY, seed ^ NUMBERS)?;
    let draw = |k: u64| -> Positions {
        let mut random = Random::at(seed, k);
        if k < n as u64 {
            return [(random.unit() < OWN).then_some((k as u32, k as u32)), None];
        }
        let (from, to) = (numbers[rows.draw(&mut random)], numbers[cols.draw(&mut random)]);
        if from == to {
            return [None; 2];
        }
        [Some((from, to)), (random.unit() < RETURNED).then_some((to, from))]
    };
    let times = |(row, col): (u32, u32)| {
        let u = 1.0 - Random::at(seed ^ TIMES, u64::from(row) << 32 | u64::from(col)).unit();
        // Most values are 1, and need no power.
        if u > ONCE { 1.0 } else { u.powf(-1.0 / 1.9).floor().min(MOST_TIMES) }
    };
    distinct(n, (n + wanted.scaled(ANSWERS)) as u64, draw, Some(&times))
}
