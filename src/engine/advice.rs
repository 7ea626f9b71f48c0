//! Hints for a solve that did not converge, based on facts of this run. They do not guarantee convergence.

mod absent;

pub use absent::instead_of;

use crate::observe::{Forecast, Levels};
use crate::scalar::Precision;
use crate::stop::StopReason;
use crate::text::{duration, thousands};

/// Formats a setting with its value, which may be empty, in the form that the caller uses: `max_iters(1300)`,
/// `--max-iters 1300`. The text is empty for a setting that the caller lacks.
pub(crate) type Naming<'a> = &'a dyn Fn(&str, &str) -> String;

/// Formats a setting as a method of the library: `max_iters(1300)`.
pub(crate) fn as_method(setting: &str, value: &str) -> String {
    match (setting, value) {
        ("method", "minres") => "Minres::new".to_owned(),
        ("method", "cg") | ("variant", "classic") => "Cg::new".to_owned(),
        ("precision", "f64") => "precision(Precision::F64)".to_owned(),
        ("precision", "f32") => "precision(Precision::F32)".to_owned(),
        ("precision", "mixed") => "precision(Precision::Mixed)".to_owned(),
        ("precond", name) if !name.is_empty() => format!("precond(\"{name}\")"),
        ("coords", _) => "Matrix::with_coordinates".to_owned(),
        ("vectors", _) => "Options { attached: true }".to_owned(),
        ("time-limit", seconds) => format!("time_limit(Duration::from_secs({seconds}))"),
        ("project", _) => "project(true)".to_owned(),
        (setting, "") => setting.replace('-', "_"),
        (setting, value) => format!("{}({value})", setting.replace('-', "_")),
    }
}

/// Minimum number of residuals for a trend.
const FEWEST: usize = 16;
/// Forecasts are limited to this multiple of the iterations so far.
const FARTHEST: f64 = 20.0;
/// The proposed limit allows this multiple of the forecast iterations. This sufficed for 95 %
/// of recorded solves.
const ROOM: f64 = 1.5;
/// Residuals below this are near the rounding of f64, so no precision lowers them.
const LOWEST: f64 = 1e-13;
/// Residuals below this are near the rounding of f32.
const LOWEST_F32: f64 = 1e-6;
/// Solves with constants on all levels that take more iterations get the hint about coordinates.
pub(crate) const MANY: f64 = 60.0;
/// Solves that take at least this many seconds get the hint about checkpoints.
const LONG: f64 = 10.0;

/// A solve that has ended.
pub(crate) struct Ended<'a> {
    pub reason: &'a StopReason,
    /// The residual of the start, then of each iteration.
    pub residuals: &'a [f64],
    /// The residual to reach.
    pub goal: f64,
    pub seconds_each: f64,
    pub precision: Precision,
    /// Whether the method recomputes the residual and restarts, so that rounding of vectors does not end it.
    pub restarts: bool,
    /// The name of the setting for the tolerance.
    pub tolerance: &'static str,
    /// A preconditioner to try.
    pub precond: Option<&'static str>,
    /// How to resume the solve.
    pub resume: Option<String>,
}

/// Returns the hints for a solve that did not converge, joined by `; `; `None` if no hint fits the reason why
/// it ended. `naming` writes settings as the caller types them.
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
        format!("rounding {rounded} to f32 may prevent convergence: {}", naming("precision", "f64"))
    });
    let larger = || Some(format!("a larger {} may be met", naming(ended.tolerance, "")));
    let parts = match ended.reason {
        StopReason::IterationLimit { .. } | StopReason::TimeLimit { .. } => match trend(ended, naming) {
            // The recurrence residual may keep falling while rounding stops the true residual.
            Trend::Falls(_) if lower && !ended.restarts && ended.goal < LOWEST_F32 => vec![precise],
            Trend::Falls(text) => vec![Some(text), precond, ended.resume.clone()],
            Trend::Stays(text) => vec![Some(text), precond, precise, ended.resume.clone()],
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

/// Names the data rounded to single precision.
fn rounded(precision: Precision) -> &'static str {
    if precision == Precision::Mixed { "the matrix" } else { "matrix and vectors" }
}

/// The trend of the residuals, with its description.
enum Trend {
    Falls(String),
    Stays(String),
    Unknown,
}

/// Returns whether the residuals fall, with a sentence on the iterations that are still needed at the present
/// rate and on a limit that allows them.
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
            Some(_) => Trend::Falls("the residual falls too unevenly for a forecast".to_owned()),
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
pub(crate) fn rounded_up(value: f64) -> f64 {
    let unit = 10f64.powf((value.log10().floor() - 1.0).max(0.0));
    ((value / unit).ceil() * unit).max(1.0)
}

/// Returns the hint that the coordinates of the nodes, which are not known, may save iterations of a solve
/// that takes many.
pub(crate) fn coordinates(levels: &Levels, iterations: f64, naming: Naming<'_>) -> Option<String> {
    (levels.constants && levels.unknowns > 1 && iterations > MANY).then(|| {
        let coordinates = naming("coords", "FILE");
        format!("if this is elasticity, the coordinates of the nodes would save iterations: {coordinates}")
    })
}

/// Returns the hint on how to resume, if the solve has a checkpoint or takes at least `LONG` seconds.
pub(crate) fn resume(
    checkpoint: Option<&std::path::Path>,
    seconds: f64,
    naming: Naming<'_>,
) -> Option<String> {
    match checkpoint {
        Some(file) => Some(format!("{} continues from here", naming("resume", &file.display().to_string()))),
        None if seconds >= LONG => {
            let (save, resume) = (naming("checkpoint", "FILE"), naming("resume", "FILE"));
            (!save.is_empty()).then(|| format!("{save} saves a solve, and {resume} continues it"))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_for(ended: &Ended<'_>) -> Option<String> {
        hint(ended, &as_method)
    }

    const LIMIT: StopReason = StopReason::IterationLimit { limit: 500 };

    fn ended<'a>(reason: &'a StopReason, residuals: &'a [f64], precision: Precision) -> Ended<'a> {
        let seconds_each = 0.01;
        let (goal, tolerance, precond, resume) = (1e-8, "rtol", None, None);
        Ended { reason, residuals, goal, seconds_each, precision, restarts: true, tolerance, precond, resume }
    }

    /// 500 iterations that reach this residual.
    fn falling(last: f64) -> Vec<f64> {
        (0..=500).map(|i| last.powf(f64::from(i) / 500.0)).collect()
    }

    #[test]
    fn a_steady_fall_has_a_forecast_of_the_remaining_iterations() {
        let residuals = falling(1e-4);
        let hint = hint_for(&ended(&LIMIT, &residuals, Precision::F64)).unwrap();
        assert_eq!(
            hint,
            "at its present rate the residual needs about 510 more iterations, 5.01 s: max_iters(1300)"
        );
        let reason = StopReason::TimeLimit { seconds: 5.0 };
        let hint = hint_for(&ended(&reason, &residuals, Precision::F64)).unwrap();
        assert!(hint.ends_with(": time_limit(Duration::from_secs(13))"), "{hint}");
    }

    #[test]
    fn there_is_no_forecast_if_the_residual_stalls_or_falls_too_slowly() {
        let hint = |residuals: &[f64]| hint_for(&ended(&LIMIT, residuals, Precision::F64)).unwrap();
        assert_eq!(hint(&[1.0; 501]), "the residual did not fall in the last quarter of the iterations");
        assert!(hint(&falling(0.9)).contains("more than 20 times"));
        assert_eq!(hint_for(&ended(&LIMIT, &[1.0, 0.5], Precision::F64)), None);
    }

    #[test]
    fn hints_name_a_higher_precision_only_if_one_exists() {
        let stagnated = StopReason::Stagnated { iteration: 500, window: 100 };
        let gap = StopReason::ResidualGap { recursive: 1e-9, recomputed: 1e-6 };
        for reason in [&LIMIT, &stagnated, &gap] {
            let hint = |precision| hint_for(&ended(reason, &[1.0; 501], precision)).unwrap();
            assert!(!hint(Precision::F64).contains("precision"), "{}", hint(Precision::F64));
            assert!(hint(Precision::F32).contains("precision(Precision::F64)"));
            assert!(hint(Precision::Mixed).contains("precision(Precision::F64)"));
        }
    }

    #[test]
    fn there_is_no_forecast_if_single_precision_cannot_reach_the_goal() {
        let residuals = falling(1e-4);
        let hint = |restarts, precision| {
            hint_for(&Ended { restarts, ..ended(&LIMIT, &residuals, precision) }).unwrap()
        };
        assert!(hint(false, Precision::F64).contains("510 more iterations"));
        assert!(hint(true, Precision::F32).contains("510 more iterations"));
        assert!(hint(false, Precision::F32).ends_with("may prevent convergence: precision(Precision::F64)"));
    }

    #[test]
    fn a_stop_caused_by_one_setting_names_this_setting() {
        let hint = |reason| hint_for(&ended(&reason, &[1.0; 501], Precision::F64));
        let rounding = StopReason::Rounding { residual: 1e-9, at_most: 1e-7 };
        assert_eq!(hint(rounding).unwrap(), "a larger rtol may be met");
        assert_eq!(hint(StopReason::Breakdown { iteration: 9 }).unwrap(), "Cg::new");
        let indefinite = StopReason::IndefinitePreconditioner { iteration: 9, product: -1.0 };
        assert_eq!(hint(indefinite).unwrap(), "precond(\"none\")");
        assert_eq!(hint(StopReason::Interrupted), None);
    }

    #[test]
    fn a_long_solve_names_checkpoints_only_if_the_caller_has_them() {
        assert!(resume(None, 20.0, &as_method).unwrap().contains("checkpoint(FILE) saves"));
        assert_eq!(resume(None, 20.0, &|_, _| String::new()), None);
    }

    #[test]
    fn limits_are_rounded_up_to_two_digits() {
        let values = [0.2, 7.3, 99.5, 1249.0, 123_456.0].map(rounded_up);
        assert_eq!(values, [1.0, 8.0, 100.0, 1300.0, 130_000.0]);
    }
}
