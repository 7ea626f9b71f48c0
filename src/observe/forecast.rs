//! Estimates how many iterations a solve still needs from the trend of its residuals.
//!
//! Residuals of conjugate gradients oscillate, and fall faster towards the end. Therefore only the lowest
//! residual of each stretch of iterations counts, and the estimate is the smaller of two: from the rate of
//! the whole solve, and from a straight line through the logarithms of the last quarter. If that line does
//! not fall, there is no estimate.
//!
//! [`Forecast::range`] returns a range instead, for a line of progress. It is none until the range contains
//! what earlier ranges of the same solve foresaw. Its constants were chosen by replaying 91 recorded
//! solves: CG and MINRES on generated and real matrices, PageRank, and Markov chains. The true number was
//! in the range in 94 % of the moments of these solves that had one; `forecast/tests.rs` replays
//! some of them and new ones.

/// Maximum number of stretches; at this number, pairs of stretches are merged.
const STRETCHES: usize = 256;
/// Minimum number of stretches for a line.
const FEWEST: usize = 4;
/// Rates that differ by less than this factor count as equal.
const STEADY: f64 = 2.0;
/// Minimum number of stretches for a range.
const FEWEST_FOR_RANGE: usize = 10;
/// A range begins at this multiple of the lowest estimate and ends at that multiple of the highest one.
const MARGINS: [f64; 2] = [0.55, 1.4];
/// The largest ratio of the ends of a range.
const WIDEST: f64 = 12.0;
/// The share of the way to the goal, in logarithms, below which there is no range.
const LEAST_PROGRESS: f64 = 0.35;
/// There is no range if the last eighth of the solve is slower than the whole solve by more than this factor:
/// the rate may fall further.
const SLOWER: f64 = 1.5;
/// Shares of the solve after which the range must have contained the end that is expected now.
const CONFIRMED: [f64; 2] = [0.75, 0.9];

/// The residuals so far, as the lowest of each of at most 256 equally long stretches of iterations.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    /// Logarithm of the first residual.
    first: f64,
    /// Residuals in a stretch.
    width: usize,
    /// Logarithms of the lowest residuals of whole stretches.
    lows: Vec<f64>,
    /// Logarithm of the lowest residual of the incomplete stretch.
    low: f64,
    /// Number of residuals in the incomplete stretch.
    count: usize,
}

impl Default for Forecast {
    fn default() -> Forecast {
        Forecast {
            first: f64::NAN,
            width: 1,
            lows: Vec::with_capacity(STRETCHES),
            low: f64::INFINITY,
            count: 0,
        }
    }
}

impl Forecast {
    /// Adds the residuals of further iterations; the first residual is that of the start.
    pub(crate) fn add(&mut self, residuals: &[f64]) {
        for residual in residuals {
            let value = residual.max(f64::MIN_POSITIVE).ln();
            if self.lows.is_empty() && self.count == 0 {
                self.first = value;
            }
            self.low = self.low.min(value);
            self.count += 1;
            if self.count == self.width {
                self.lows.push(self.low);
                (self.low, self.count) = (f64::INFINITY, 0);
            }
            if self.lows.len() == STRETCHES {
                for i in 0..STRETCHES / 2 {
                    self.lows[i] = self.lows[2 * i].min(self.lows[2 * i + 1]);
                }
                self.lows.truncate(STRETCHES / 2);
                self.width *= 2;
            }
        }
    }

    /// Estimates the iterations left until the residual is at most `tolerance`; `None` if the
    /// residual does not fall.
    pub(crate) fn left(&self, tolerance: f64) -> Option<f64> {
        let (recent, _) = self.at_rate_of_last(4, self.lows.len(), tolerance)?;
        let (stretches, goal) = (self.lows.len(), tolerance.ln());
        let done = (stretches * self.width + self.count - 1) as f64;
        let last = &self.lows[stretches - (stretches / 8).max(1)..];
        let low = last.iter().copied().fold(f64::INFINITY, f64::min);
        let overall = (low - goal) / (self.first - low) * done;
        let left = if self.first > low && low > goal { recent.min(overall) } else { recent };
        left.is_finite().then_some(left)
    }

    /// Estimates as [`Forecast::left`] does, from the rate of the last quarter alone; `None` if the last
    /// half has a different rate.
    pub(crate) fn left_at_steady_rate(&self, tolerance: f64) -> Option<f64> {
        let (left, rate) = self.at_rate_of_last(4, self.lows.len(), tolerance)?;
        let (_, before) = self.at_rate_of_last(2, self.lows.len(), tolerance)?;
        (rate < STEADY * before && before < STEADY * rate).then_some(left)
    }

    /// Estimates the fewest and the most iterations left until the residual is at most `tolerance`; `None` as
    /// long as the estimates are not reliable.
    pub(crate) fn range(&self, tolerance: f64) -> Option<[f64; 2]> {
        let stretches = self.lows.len();
        if stretches < FEWEST_FOR_RANGE {
            return None;
        }
        let [fewest, most] = self.range_after(stretches, tolerance)?;
        let done = (stretches * self.width) as f64;
        let lowest = self.lows.iter().copied().fold(f64::INFINITY, f64::min);
        let progress = (self.first - lowest) / (self.first - tolerance.ln());
        let at_rate_of_all = (1.0 - progress) / progress * done;
        let (at_last_rate, _) = self.at_rate_of_last(8, stretches, tolerance)?;
        let middle = done + (fewest * most).sqrt();
        let confirmed = |share: &f64| {
            let then = (share * stretches as f64) as usize;
            let before = (then * self.width) as f64;
            self.range_after(then, tolerance)
                .is_some_and(|[fewest, most]| (before + fewest..=before + most).contains(&middle))
        };
        let reliable = progress >= LEAST_PROGRESS
            && most <= WIDEST * fewest
            && at_last_rate <= SLOWER * at_rate_of_all
            && CONFIRMED.iter().all(confirmed);
        // The estimates begin at the end of the last whole stretch.
        let slack = self.width as f64 + 1.0;
        reliable.then(|| [(fewest - slack).max(0.0), most + slack])
    }

    /// Returns the range as it was after so many stretches, from the rates of the last half,
    /// quarter and eighth.
    fn range_after(&self, stretches: usize, tolerance: f64) -> Option<[f64; 2]> {
        let left = |parts| self.at_rate_of_last(parts, stretches, tolerance).map(|(left, _)| left);
        let (half, quarter, eighth) = (left(2)?, left(4)?, left(8)?);
        // If the fall has become steeper, it may do so further.
        let steeper = (eighth / half).min(1.0);
        let [least, most] = MARGINS;
        Some([least * quarter.min(eighth) * steeper, most * half.max(quarter).max(eighth)])
    }

    /// Returns the iterations left after so many stretches at the rate of the last of `parts` equal parts of
    /// these, and that rate; `None` if the rate is not positive.
    fn at_rate_of_last(&self, parts: usize, stretches: usize, tolerance: f64) -> Option<(f64, f64)> {
        let line = &self.lows[stretches.checked_sub((stretches / parts).max(FEWEST))?..stretches];
        let (mean, slope) = fit(line);
        let last = (line.len() as f64 - 1.0) / 2.0 * slope + mean;
        let left = (last - tolerance.ln()) / -slope * self.width as f64;
        (slope < 0.0 && left.is_finite()).then_some((left.max(1.0), -slope))
    }
}

/// Returns mean and slope of the least-squares line through equidistant values.
fn fit(values: &[f64]) -> (f64, f64) {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (mut products, mut squares) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let x = i as f64 - middle;
        products += x * (value - mean);
        squares += x * x;
    }
    (mean, products / squares)
}

#[cfg(test)]
mod tests;
