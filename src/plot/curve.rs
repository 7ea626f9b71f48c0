//! Converts a run to points that a logarithmic axis can show, thinned to the resolution of the picture.

use super::axis::drawable;
use super::scene::Point;
use crate::observe::History;
use crate::observe::history::Curve;

/// Curves up to this length are drawn with all points.
const THIN_ABOVE: usize = 4000;
/// Leading points of a longer curve that are all drawn, as logarithmic axes give them much room.
const WHOLE: usize = 500;
/// Number of sections of the remaining curve; each is drawn by its lowest and its highest point.
const SECTIONS: usize = 1000;

/// Width of the stripes of coinciding curves, in pixels.
const STRIPE: f64 = 9.0;

/// The quantity on the x axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Against {
    /// Iterations.
    Iterations,
    /// Seconds since the setup began.
    Seconds,
    /// Seconds since the first iteration began.
    SecondsOfIterations,
}

impl Against {
    /// Returns the seconds before the first iteration that this axis includes.
    pub(crate) fn before(self, history: &History) -> f64 {
        if self == Against::Seconds { setup(history) } else { 0.0 }
    }

    /// Returns the end of the run on this axis.
    pub(crate) fn end(self, history: &History) -> f64 {
        let end = match self {
            Against::Iterations => match history.residuals.len() {
                0 => history.report.iterations as f64,
                count => (count - 1) as f64,
            },
            Against::Seconds | Against::SecondsOfIterations => {
                self.before(history) + history.seconds.last().copied().unwrap_or(history.report.seconds_solve)
            }
        };
        if end.is_finite() { end.max(0.0) } else { 0.0 }
    }
}

/// Returns the seconds before the first iteration, 0 if unknown.
pub(super) fn setup(history: &History) -> f64 {
    Some(history.report.seconds_setup).filter(|seconds| seconds.is_finite() && *seconds > 0.0).unwrap_or(0.0)
}

/// Returns the drawable points of a run: x coordinate and residual.
pub(super) fn points(history: &History, against: Against) -> Vec<(f64, f64)> {
    points_of((&history.residuals, &history.seconds), history, against)
}

/// Returns the drawable points of each column of a run.
pub(super) fn columns(history: &History, against: Against) -> Vec<Vec<(f64, f64)>> {
    let points = |curve: &Curve| points_of((&curve.residuals, &curve.seconds), history, against);
    history.columns.iter().map(points).collect()
}

fn points_of((residuals, seconds): (&[f64], &[f64]), history: &History, against: Against) -> Vec<(f64, f64)> {
    let before = against.before(history);
    let all = residuals.iter().zip(seconds).enumerate();
    let points: Vec<(f64, f64)> = all
        .map(|(iteration, (&residual, &seconds))| match against {
            Against::Iterations => (iteration as f64, residual),
            _ if seconds >= 0.0 => (before + seconds, residual),
            _ => (f64::NAN, residual),
        })
        .filter(|&(x, residual)| x.is_finite() && x >= 0.0 && drawable(residual))
        .collect();
    if points.len() > THIN_ABOVE { thin(&points) } else { points }
}

/// Keeps the beginning and the end, and of each section the lowest and the highest point in their
/// order, so that spikes stay.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept = Vec::with_capacity(WHOLE + 2 * SECTIONS + 1);
    let (begin, rest) = points.split_at(WHOLE.min(points.len()));
    kept.extend(begin);
    for section in rest.chunks(rest.len().div_ceil(SECTIONS).max(1)) {
        let (mut low, mut high) = (0, 0);
        for (i, point) in section.iter().enumerate() {
            if point.1 < section[low].1 {
                low = i;
            }
            if point.1 > section[high].1 {
                high = i;
            }
        }
        kept.push(section[low.min(high)]);
        if low != high {
            kept.push(section[low.max(high)]);
        }
    }
    kept.extend(points.last());
    kept
}

/// Returns the lines of a curve that are drawn again above all other curves. Coinciding runs, such as those
/// of two backends, become stripes of all their colours, so that the last one does not hide the rest. A curve
/// that coincides with no other looks the same. Stripes are numbered by the sum of both coordinates, not
/// along the curve, so that coinciding curves agree on them.
pub(super) fn stripes(curve: &[Point], run: usize, runs: usize) -> Vec<Vec<Point>> {
    let number = |sum: f64| (sum / STRIPE).floor();
    let is_own = |number: f64| number.rem_euclid(runs as f64) as usize == run;
    let mut lines: Vec<Vec<Point>> = Vec::new();
    for pair in curve.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let (from, to) = (a.0 + a.1, b.0 + b.1);
        let (low, high) = (from.min(to), from.max(to));
        let mut stripe = number(low);
        while stripe <= number(high) {
            if is_own(stripe) {
                let (start, end) = (low.max(stripe * STRIPE), high.min((stripe + 1.0) * STRIPE));
                let at = |sum: f64| {
                    let share = if from == to { 1.0 } else { (sum - from) / (to - from) };
                    (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share)
                };
                let ends = if from <= to { [at(start), at(end)] } else { [at(end), at(start)] };
                match lines.last_mut() {
                    Some(line) if line.last().is_some_and(|&last| near(last, ends[0])) => line.push(ends[1]),
                    _ => lines.push(ends.to_vec()),
                }
            }
            stripe += 1.0;
        }
    }
    lines
}

fn near(a: Point, b: Point) -> bool {
    (a.0 - b.0).abs() + (a.1 - b.1).abs() < 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_ends_and_spikes() {
        let mut points: Vec<(f64, f64)> =
            (0..50_000).map(|i| (f64::from(i), 1.0 / f64::from(i + 1))).collect();
        points[31_415].1 = 7.0;
        points[27_182].1 = 1e-12;
        let thinned = thin(&points);
        assert!(thinned.len() <= WHOLE + 2 * SECTIONS + 1);
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
        assert!(thinned.contains(&(31_415.0, 7.0)) && thinned.contains(&(27_182.0, 1e-12)));
        assert!(thinned.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn the_stripes_of_all_runs_cover_the_curve_once() {
        let curve: Vec<Point> = (0..100).map(|i| (f64::from(i) * 3.0, f64::from((i * 37) % 50))).collect();
        let length = |points: &[Point]| -> f64 {
            points.windows(2).map(|p| (p[1].0 - p[0].0).hypot(p[1].1 - p[0].1)).sum()
        };
        let covered: f64 = (0..3).flat_map(|run| stripes(&curve, run, 3)).map(|line| length(&line)).sum();
        assert!((covered - length(&curve)).abs() < 1e-6 * covered);
        assert!(stripes(&curve[..1], 0, 2).is_empty());
    }
}
