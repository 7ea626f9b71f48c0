//! Advice for a solve that did not converge. The advice states facts of the run and makes no promises.

use crate::observe::Forecast;
use crate::scalar::Precision;
use crate::stop::StopReason;
use crate::text::{duration, thousands};

/// Spells a setting and its value, which may be empty, for the interface of the user: `max_iters(1300)`, `--max-iters 1300`.
pub type Naming<'a> = &'a dyn Fn(&str, &str) -> String;

/// Spells a setting as a method call of the library: `max_iters(1300)`.
pub fn as_method(setting: &str, value: &str) -> String {
    match (setting, value) {
        ("method", "minres") => "Minres::new".to_owned(),
        ("method", "cg") | ("variant", "classic") => "Cg::new".to_owned(),
        ("precision", "f64") => "precision(Precision::F64)".to_owned(),
        ("precision", "f32") => "precision(Precision::F32)".to_owned(),
        ("precision", "mixed") => "precision(Precision::Mixed)".to_owned(),
        ("precond", name) if !name.is_empty() => format!("precond(\"{name}\")"),
        ("time-limit", seconds) => format!("time_limit(Duration::from_secs({seconds}))"),
        (setting, "") => setting.replace('-', "_"),
        (setting, value) => format!("{}({value})", setting.replace('-', "_")),
    }
}

/// Fewest iterations for a trend.
const FEWEST: usize = 16;
/// Largest forecast, as a multiple of the iterations done.
const FARTHEST: f64 = 20.0;
/// The proposed limit adds this multiple of the forecast iterations. On recorded solves it sufficed in 95 % of the cases.
const ROOM: f64 = 1.5;
/// Residuals below this are near the rounding of f64; no higher precision lowers them.
const LOWEST: f64 = 1e-13;
/// Residuals below this are near the rounding of f32.
const LOWEST_F32: f64 = 1e-6;
/// Shortest solve, in seconds, for which a checkpoint is advised.
const LONG: f64 = 10.0;

/// The end of a solve, from which advice is derived.
pub(crate) struct Ended<'a> {
    pub reason: &'a StopReason,
    /// The initial residual and the residual of each iteration.
    pub residuals: &'a [f64],
    /// The residual to reach.
    pub goal: f64,
    pub seconds_each: f64,
    pub precision: Precision,
    /// Whether the method recomputes the residual and continues, so that rounding of the vectors does not end the solve.
    pub restarts: bool,
    /// The name of the setting for the tolerance.
    pub tolerance: &'static str,
    /// A preconditioner to try.
    pub precond: Option<&'static str>,
    /// Advice on resuming the solve.
    pub resume: Option<String>,
}

/// Returns advice for a solve that did not converge; none if no advice is certain to be true.
pub(crate) fn hint(ended: &Ended<'_>, naming: Naming<'_>) -> Option<String> {
    let precond = ended
        .precond
        .map(|name| format!("a preconditioner may need fewer iterations: {}", naming("precond", name)));
    let lowest = match ended.reason {
        StopReason::ResidualGap { recomputed, .. } | StopReason::RoundingGap { recomputed, .. } => {
            *recomputed
        }
        _ => ended.residuals.last().copied().unwrap_or(f64::NAN),
    };
    let lower = ended.precision != Precision::F64 && (lowest.is_nan() || lowest >= LOWEST);
    let precise = lower.then(|| {
        let rounded = rounded(ended.precision);
        format!("rounding {rounded} to f32 may be in the way: {}", naming("precision", "f64"))
    });
    let larger = || Some(format!("a larger {} may be met", naming(ended.tolerance, "")));
    let parts = match ended.reason {
        StopReason::IterationLimit { .. } | StopReason::TimeLimit { .. } => match trend(ended, naming) {
            // The recursive residual keeps falling after rounding stops the fall of the true residual.
            Trend::Falls(_) if lower && !ended.restarts && ended.goal < LOWEST_F32 => vec![precise],
            Trend::Falls(advice) => vec![Some(advice), precond, ended.resume.clone()],
            Trend::Stays(advice) => vec![Some(advice), precond, precise, ended.resume.clone()],
            Trend::Unknown => vec![precond, ended.resume.clone()],
        },
        StopReason::Stagnated { .. } => match (&precond, &precise) {
            (None, None) => vec![larger()],
            _ => vec![precond, precise],
        },
        StopReason::ResidualGap { .. } | StopReason::RoundingGap { .. } => vec![larger(), precise],
        StopReason::Rounding { .. } => vec![larger()],
        StopReason::NotFinite { row: Some(_), .. } | StopReason::Underflow { .. } => vec![precise],
        StopReason::Breakdown { .. } => vec![Some(naming("variant", "classic"))],
        StopReason::IndefinitePreconditioner { .. } => vec![Some(naming("precond", "none"))],
        _ => Vec::new(),
    };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Names the data that a precision rounds to f32.
fn rounded(precision: Precision) -> &'static str {
    if precision == Precision::Mixed { "the matrix" } else { "matrix and vectors" }
}

/// The trend of the residuals, with advice.
enum Trend {
    Falls(String),
    Stays(String),
    Unknown,
}

/// Forecasts the iterations still needed at the present rate, and proposes a limit that allows them.
fn trend(ended: &Ended<'_>, naming: Naming<'_>) -> Trend {
    let done = ended.residuals.len().saturating_sub(1);
    let Some(last) = ended.residuals.last().filter(|_| done >= FEWEST) else { return Trend::Unknown };
    if *last <= ended.goal || ended.goal <= 0.0 {
        return Trend::Unknown;
    }
    if *last < LOWEST {
        let setting = naming(ended.tolerance, "");
        return Trend::Stays(format!(
            "the residual is near the rounding of double precision: a larger {setting} is needed"
        ));
    }
    let mut forecast = Forecast::default();
    forecast.add(ended.residuals);
    let Some(left) = forecast.left_at_steady_rate(ended.goal) else {
        return match forecast.left(ended.goal) {
            Some(_) => {
                Trend::Falls("the residual falls, too unevenly to tell when it is low enough".to_owned())
            }
            None => {
                Trend::Stays("the residual did not fall in the last quarter of the iterations".to_owned())
            }
        };
    };
    if left > FARTHEST * done as f64 {
        return Trend::Stays(format!(
            "at its present rate the residual needs more than {FARTHEST} times the iterations"
        ));
    }
    let seconds = left * ended.seconds_each;
    let (setting, limit) = match ended.reason {
        StopReason::TimeLimit { seconds: limit } => ("time-limit", limit + ROOM * seconds),
        _ => ("max-iters", done as f64 + ROOM * left),
    };
    let setting = naming(setting, &rounded_up(limit).to_string());
    let more = thousands(rounded_up(left) as u64);
    Trend::Falls(format!(
        "at its present rate the residual needs about {more} more iterations, {}: {setting}",
        duration(seconds)
    ))
}

/// Rounds up to two significant digits; the result is whole, and at least 1.
fn rounded_up(value: f64) -> f64 {
    let unit = 10f64.powf((value.log10().floor() - 1.0).max(0.0));
    ((value / unit).ceil() * unit).max(1.0)
}

/// Returns advice on resuming: from the checkpoint, or for a long solve on saving one.
pub(crate) fn resume(
    checkpoint: Option<&std::path::Path>,
    seconds: f64,
    naming: Naming<'_>,
) -> Option<String> {
    match checkpoint {
        Some(file) => Some(format!("{} goes on from here", naming("resume", &file.display().to_string()))),
        None if seconds >= LONG => Some(format!(
            "{} saves a solve, and {} goes on with it",
            naming("checkpoint", "FILE"),
            naming("resume", "FILE")
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice_for(ended: &Ended<'_>) -> Option<String> {
        hint(ended, &as_method)
    }

    const LIMIT: StopReason = StopReason::IterationLimit { limit: 500 };

    fn ended<'a>(reason: &'a StopReason, residuals: &'a [f64], precision: Precision) -> Ended<'a> {
        let seconds_each = 0.01;
        let (goal, tolerance, precond, resume) = (1e-8, "rtol", None, None);
        Ended { reason, residuals, goal, seconds_each, precision, restarts: true, tolerance, precond, resume }
    }

    /// Returns the residuals of 500 iterations that fall steadily from 1 to `last`.
    fn falling(last: f64) -> Vec<f64> {
        (0..=500).map(|i| last.powf(f64::from(i) / 500.0)).collect()
    }

    #[test]
    fn a_steady_fall_gives_the_remaining_iterations_and_a_limit() {
        let residuals = falling(1e-4);
        let advice = advice_for(&ended(&LIMIT, &residuals, Precision::F64)).unwrap();
        assert_eq!(
            advice,
            "at its present rate the residual needs about 510 more iterations, 5.01 s: max_iters(1300)"
        );
        let reason = StopReason::TimeLimit { seconds: 5.0 };
        let advice = advice_for(&ended(&reason, &residuals, Precision::F64)).unwrap();
        assert!(advice.ends_with(": time_limit(Duration::from_secs(13))"), "{advice}");
    }

    #[test]
    fn a_residual_that_stays_or_falls_too_slowly_gives_no_limit() {
        let advice = |residuals: &[f64]| advice_for(&ended(&LIMIT, residuals, Precision::F64)).unwrap();
        assert_eq!(advice(&[1.0; 501]), "the residual did not fall in the last quarter of the iterations");
        assert!(advice(&falling(0.9)).contains("more than 20 times"));
        assert_eq!(advice_for(&ended(&LIMIT, &[1.0, 0.5], Precision::F64)), None);
    }

    #[test]
    fn higher_precision_is_advised_only_if_there_is_one() {
        let stagnated = StopReason::Stagnated { iteration: 500, window: 100 };
        let gap = StopReason::ResidualGap { recursive: 1e-9, recomputed: 1e-6 };
        for reason in [&LIMIT, &stagnated, &gap] {
            let advice = |precision| advice_for(&ended(reason, &[1.0; 501], precision)).unwrap();
            assert!(!advice(Precision::F64).contains("precision"), "{}", advice(Precision::F64));
            assert!(advice(Precision::F32).contains("precision(Precision::F64)"));
            assert!(advice(Precision::Mixed).contains("precision(Precision::F64)"));
        }
    }

    #[test]
    fn a_goal_below_single_precision_gives_no_limit() {
        let residuals = falling(1e-4);
        let advice = |restarts, precision| {
            advice_for(&Ended { restarts, ..ended(&LIMIT, &residuals, precision) }).unwrap()
        };
        assert!(advice(false, Precision::F64).contains("510 more iterations"));
        assert!(advice(true, Precision::F32).contains("510 more iterations"));
        assert!(advice(false, Precision::F32).ends_with("may be in the way: precision(Precision::F64)"));
    }

    #[test]
    fn a_stop_caused_by_one_setting_names_that_setting() {
        let advice = |reason| advice_for(&ended(&reason, &[1.0; 501], Precision::F64));
        let rounding = StopReason::Rounding { residual: 1e-9, at_most: 1e-7 };
        assert_eq!(advice(rounding).unwrap(), "a larger rtol may be met");
        assert_eq!(advice(StopReason::Breakdown { iteration: 9 }).unwrap(), "Cg::new");
        let indefinite = StopReason::IndefinitePreconditioner { iteration: 9, product: -1.0 };
        assert_eq!(advice(indefinite).unwrap(), "precond(\"none\")");
        assert_eq!(advice(StopReason::Interrupted), None);
    }

    #[test]
    fn limits_are_rounded_up_to_two_digits() {
        let values = [0.2, 7.3, 99.5, 1249.0, 123_456.0].map(rounded_up);
        assert_eq!(values, [1.0, 8.0, 100.0, 1300.0, 130_000.0]);
    }
}
