//! Building, verification and timing of candidates.

use super::Measured;
use crate::backend::timing::{ProductTimer, Timed, check, operand, rest};
use crate::backend::{Choice, Pick};
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::{Precision, Scalar};
use crate::text::{COUNTED, Index};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Candidates that take more than this multiple of the least time are dropped after their first samples.
const HOPELESS: f64 = 3.0;
/// Candidates that are held at once for further samples: each holds a copy of the matrix.
const MOST_HELD: usize = 4;
/// The least seconds of a sample: short on the CPU, because a busy machine has only short idle gaps, and
/// longer on a GPU, for which the host submits many products at once.
const SAMPLE: f64 = 2e-4;
const SAMPLE_WITHOUT_HOST: f64 = 2e-3;
/// Samples of the first look at a candidate.
const FIRST: usize = 3;
/// The most products of a sample.
const MOST_PRODUCTS: f64 = 2000.0;
/// Samples of a candidate: the fewest, even if the time has ended, and the most.
const SAMPLES: std::ops::RangeInclusive<usize> = 5..=500;

/// A candidate that is held for further samples.
struct Held<D: Pick<T>, T: Scalar> {
    /// The index among the results.
    index: usize,
    timer: ProductTimer<D, T>,
    samples: Vec<f64>,
}

impl<D: Pick<T>, T: Scalar> Held<D, T> {
    fn least(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Takes a sample of as many products as [`SAMPLE`] needs.
    fn sample(&mut self, timed: Timed, each: f64) -> Result<()> {
        let least = if D::BATCH > 1 { SAMPLE_WITHOUT_HOST } else { SAMPLE };
        let times = (least / each.max(1e-9)).clamp(1.0, MOST_PRODUCTS) as usize;
        let seconds = self.timer.seconds(timed, times)?;
        rest::<D>(seconds * times as f64);
        self.samples.push(seconds);
        Ok(())
    }
}

/// The matrix, and how it is measured.
pub(super) struct Measure<'a> {
    pub matrix: &'a Arc<Csr>,
    pub precision: Precision,
    pub timed: Timed,
    pub budget: Duration,
    /// Bytes that solves need in addition.
    pub reserve: u64,
}

impl Measure<'_> {
    /// Measures the candidates; the results are in the order of the candidates.
    pub(crate) fn run<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        choices: &[Choice],
        phase: &mut dyn FnMut(&str),
    ) -> Result<Vec<Measured>> {
        let x = operand::<T>(self.matrix.cols());
        let mut results = Vec::new();
        let mut held: Vec<Held<D, T>> = Vec::new();
        for (index, choice) in choices.iter().enumerate() {
            let label = choice.label();
            phase(&format!("measuring backend {label}"));
            let mut result = Measured { backend: label, ..Measured::default() };
            match self.first::<D, T>(device, choice, &x, &mut result) {
                Ok(candidate) => {
                    let first = candidate.least();
                    (result.samples, result.dropped) = (FIRST, true);
                    (result.seconds, result.seconds_median) = (Some(first), Some(first));
                    held.push(Held { index, ..candidate });
                }
                Err(reason) => result.error = Some(reason),
            }
            results.push(result);
            drop_slow(&mut held);
        }
        phase("comparing the fastest backends");
        let began = Instant::now();
        // The first sample includes the cost of recording.
        held.iter_mut().for_each(|candidate| candidate.samples.clear());
        let each: Vec<f64> = held.iter().map(|held| results[held.index].seconds.unwrap_or(SAMPLE)).collect();
        for round in 0..*SAMPLES.end() {
            if round >= *SAMPLES.start() && began.elapsed() > self.budget {
                break;
            }
            held.iter_mut().zip(&each).try_for_each(|(held, each)| held.sample(self.timed, *each))?;
        }
        for mut candidate in held {
            let least = candidate.least();
            candidate.samples.sort_by(f64::total_cmp);
            let result = &mut results[candidate.index];
            result.dropped = false;
            result.seconds = Some(least);
            result.seconds_median = candidate.samples.get(candidate.samples.len() / 2).copied();
            result.samples = candidate.samples.len();
        }
        Ok(results)
    }

    /// Builds a candidate, verifies its product, and takes the first samples. Returns the reason if the
    /// candidate cannot be measured.
    fn first<D: Pick<T>, T: Scalar>(
        &self,
        device: &D,
        choice: &Choice,
        x: &[T],
        result: &mut Measured,
    ) -> std::result::Result<Held<D, T>, String> {
        let said = |error: crate::error::Error| error.to_string();
        choice.check_precision(self.precision).map_err(said)?;
        let began = Instant::now();
        let operator =
            choice.without_matrix().build::<D, T>(device, self.matrix, self.reserve).map_err(said)?;
        device.synchronize().map_err(said)?;
        result.seconds_build = began.elapsed().as_secs_f64();
        result.bytes = operator.cost().bytes;
        let mut timer = ProductTimer::new(operator, x, 1, false).map_err(said)?;
        let once = timer.seconds(self.timed, 1).map_err(said)?;
        let mut y = vec![T::from_f64(0.0); self.matrix.rows()];
        timer.result(&mut y).map_err(said)?;
        let checked = check(self.matrix, x, &y, 1);
        if !checked.is_right() {
            let [found, expected] = checked.values;
            let row = Index(checked.row);
            return Err(format!("wrong: row {row} of y ({COUNTED}) is {found:e} instead of {expected:e}"));
        }
        let mut held = Held { index: 0, timer, samples: Vec::new() };
        for _ in 0..FIRST {
            held.sample(self.timed, once).map_err(said)?;
        }
        Ok(held)
    }
}

/// Drops candidates that are far slower than the best, and the slowest ones if too many are held.
fn drop_slow<D: Pick<T>, T: Scalar>(held: &mut Vec<Held<D, T>>) {
    let best = held.iter().map(Held::least).fold(f64::INFINITY, f64::min);
    // The first candidate is the choice of the model, with which the winner is compared.
    held.retain(|candidate| candidate.index == 0 || candidate.least() <= HOPELESS * best);
    while held.len() > MOST_HELD {
        let slowest = held.iter().enumerate().filter(|(_, candidate)| candidate.index > 0);
        let slowest = slowest.max_by(|a, b| a.1.least().total_cmp(&b.1.least())).map(|(at, _)| at);
        match slowest {
            Some(at) => drop(held.remove(at)),
            None => return,
        }
    }
}
