//! The time of an iteration on this machine: iterations of the method are timed, on the matrix or
//! on the rows of some ranks.

use crate::backend::{Choice, Host};
use crate::device::{Cpu, stream};
use crate::error::Result;
use crate::format::Csr;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{Dangling, RankProblem, power};
use crate::solve::{System, problem};
use crate::stop::StoppingRule;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The method whose iterations are timed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Iteration {
    Cg,
    /// The matrix has a row for each vertex, with the links into it.
    Pagerank,
}

/// Seconds of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Those of the fastest round.
    pub least: f64,
    /// The median of all rounds.
    pub median: f64,
    /// Those of the slowest round.
    pub most: f64,
}

impl Spread {
    /// Summarises the seconds of several rounds; `None` if there are none.
    fn of(mut rounds: Vec<f64>) -> Option<Spread> {
        rounds.sort_by(f64::total_cmp);
        let (least, most) = (*rounds.first()?, *rounds.last()?);
        Some(Spread { least, median: rounds[rounds.len() / 2], most })
    }

    /// Returns the spread of a multiple of the time.
    pub(crate) fn times(self, factor: f64) -> Spread {
        let Spread { least, median, most } = self;
        Spread { least: factor * least, median: factor * median, most: factor * most }
    }
}

/// Iterations reach at least this share of the bandwidth of a stream: in the records of this
/// project 45 to 98 %.
const SHARE_OF_STREAM: f64 = 0.4;

/// Returns the seconds of an iteration that moves `bytes`. Times iterations on the matrix; if that is not
/// possible, measures a stream over the same number of bytes, and returns false with its time.
pub(super) fn measure(
    device: &Cpu,
    matrix: &Arc<Csr>,
    iteration: Iteration,
    bytes: u64,
) -> Result<(Spread, bool)> {
    let timed = time_iterations(device, matrix, iteration).unwrap_or_else(|error| {
        log::info!("a stream is measured instead of iterations: {error}");
        None
    });
    if let Some(spread) = timed {
        return Ok((spread, true));
    }
    let least = bytes as f64 / (1e9 * stream::measure(device, bytes.min(stream::LARGEST))?);
    Ok((Spread { least, median: least, most: least / SHARE_OF_STREAM }, false))
}

/// Times rounds of iterations; `None` if there is nothing to iterate on, or no iteration succeeds.
fn time_iterations(device: &Cpu, matrix: &Arc<Csr>, iteration: Iteration) -> Result<Option<Spread>> {
    if matrix.nnz() == 0 {
        return Ok(None);
    }
    match iteration {
        Iteration::Cg => {
            let operator = choice(matrix)?.build::<Cpu, f64>(device, matrix, 0)?;
            let b = problem::random(matrix.rows(), 1);
            let system = System::new(matrix, &b);
            rounds(|rule| {
                let outcome =
                    crate::solve::Method::Cg.solve(operator.clone(), None, &system, rule, &mut [])?.outcome;
                Ok((outcome.iterations, outcome.seconds_solve))
            })
        }
        Iteration::Pagerank => {
            let links = Links::new(&matrix.transposed()?)?;
            let operator = choice(links.incoming())?.build::<Cpu, f64>(device, links.incoming(), 0)?;
            let (damping, dangling) = (0.85, Dangling::Uniform);
            let problem = RankProblem { links: &links, damping, dangling, teleport: None, start: None };
            rounds(|rule| {
                let ranking = power::<Cpu, f64>(operator.clone(), &problem, false, rule, &mut [])?;
                Ok((ranking.iterations, ranking.seconds_solve))
            })
        }
    }
}

/// Returns the backend that `auto` chooses.
fn choice(matrix: &Csr) -> Result<crate::backend::SettledChoice> {
    let auto = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, "auto")?;
    auto.settle(matrix, size_of::<f64>(), &Default::default())
}

/// Repeats solves of some iterations; `solve` returns the iterations that it has done, and their seconds. A
/// round has a solve of n iterations and one of 2n: the difference has no costs of the start. The first
/// solve, in which the threads wake up, decides n, and does not count.
fn rounds(mut solve: impl FnMut(&StoppingRule) -> Result<(usize, f64)>) -> Result<Option<Spread>> {
    /// Iterations of the first round.
    const FIRST: usize = 4;
    const ROUNDS: usize = 7;
    /// The time of n iterations, and of all rounds.
    const PART: Duration = Duration::from_millis(25);
    const ALL: Duration = Duration::from_secs(1);
    let began = Instant::now();
    let mut solve = |iterations: usize| solve(&StoppingRule::MaxIterations(iterations));
    let (done, seconds) = solve(FIRST)?;
    if done == 0 {
        return Ok(None);
    }
    let each = seconds / done as f64;
    let iterations = ((PART.as_secs_f64() / each.max(1e-9)) as usize).clamp(4, 1000);
    let mut all = Vec::new();
    while all.len() < ROUNDS && (all.is_empty() || began.elapsed() < ALL) {
        let ((fewer, short), (more, long)) = (solve(iterations)?, solve(2 * iterations)?);
        // A solve that converges early has no difference, or none above the noise.
        let difference = (long - short) / more.saturating_sub(fewer).max(1) as f64;
        all.push(if more > fewer && difference > 0.0 { difference } else { long / more.max(1) as f64 });
    }
    Ok(Spread::of(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn iterations_of_both_methods_are_timed_and_a_stream_if_there_are_none() {
        let cpu = Cpu::new(Some(1)).unwrap();
        let times = |what: &str, iteration| {
            let matrix = Arc::new(load(what).unwrap().matrix);
            let (spread, timed) = measure(&cpu, &matrix, iteration, 1 << 16).unwrap();
            assert!(
                0.0 < spread.least && spread.least <= spread.median && spread.median <= spread.most,
                "{spread:?}"
            );
            timed
        };
        assert!(times("poisson2d:20x20", Iteration::Cg));
        assert!(times("rmat:scale=8,factor=4", Iteration::Pagerank));
        let empty = Arc::new(crate::format::Coo::with_capacity(9, 9, 0).unwrap().into_csr().unwrap());
        let (spread, timed) = measure(&cpu, &empty, Iteration::Cg, 1 << 16).unwrap();
        assert!(!timed && spread.median == spread.least && spread.most > 2.0 * spread.least, "{spread:?}");
    }

    #[test]
    fn the_first_solve_sets_the_length_of_the_others_and_no_start_counts() {
        let mut lengths = Vec::new();
        let spread = rounds(|rule| {
            let StoppingRule::MaxIterations(length) = rule else { panic!("{rule:?}") };
            lengths.push(*length);
            // Both solves of a round take the number of the round in microseconds for an iteration, and their
            // start 5 ms.
            let round = lengths.len() / 2;
            let seconds = if lengths.len() == 1 { 4e-3 } else { 5e-3 + *length as f64 * round as f64 * 1e-6 };
            Ok((*length, seconds))
        });
        let spread = spread.unwrap().unwrap();
        assert_eq!(lengths, [&[4][..], &[25, 50].repeat(7)].concat());
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(
            close(spread.least, 1e-6) && close(spread.median, 4e-6) && close(spread.most, 7e-6),
            "{spread:?}"
        );
        assert!(rounds(|_| Ok((0, 0.0))).unwrap().is_none());
    }
}
