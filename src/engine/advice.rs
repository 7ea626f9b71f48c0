//! Advice for a solve that did not converge. It states facts of this run, and promises nothing.

use crate::observe::Forecast;
use crate::scalar::Precision;
use crate::stop::StopReason;
use crate::text::{duration, thousands};

/// Writes a setting with its value, which may be empty, as a caller gives it: `max_iters(1300)`, `--max-iters 1300`.
pub type Naming<'a> = &'a dyn Fn(&str, &str) -> String;

/// A setting as a method of the library: `max_iters(1300)`.
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

/// Residuals that a trend needs at least.
const FEWEST: usize = 16;
/// No forecast goes beyond this many times the iterations that are done.
const FARTHEST: f64 = 20.0;
/// The proposed limit has room for this many times the iterations of the forecast. On recorded solves it sufficed in 95 % of
/// the cases.
const ROOM: f64 = 1.5;
/// Below this a residual is near the rounding of f64, and no precision lowers it.
const LOWEST: f64 = 1e-13;
/// Below this a residual is near the rounding of f32.
const LOWEST_F32: f64 = 1e-6;
/// Seconds of a solve from which a checkpoint is advised.
const LONG: f64 = 10.0;

/// A solve that has ended.
pub(crate) struct Ended<'a> {
    pub reason: &'a StopReason,
    /// The residual of each iteration, that of the start first.
    pub residuals: &'a [f64],
    /// The residual to reach.
    pub goal: f64,
    pub seconds_each: f64,
    pub precision: Precision,
    /// Whether the method recomputes the residual and goes on, so that rounding of vectors does not end it.
    pub restarts: bool,
    /// The name of the setting for the tolerance.
    pub tolerance: &'static str,
    /// A preconditioner to try.
    pub precond: Option<&'static str>,
    /// How the solve can go on.
    pub resume: Option<String>,
}

/// Advice for a solve that did not converge; none where no advice is known to be true.
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
            // The residual of the recursion falls on where rounding keeps up the true one.
            Trend::Falls(_) if lower && !ended.restarts && ended.goal < LOWEST_F32 => vec![precise],
            Trend::Falls(said) => vec![Some(said), precond, ended.resume.clone()],
            Trend::Stays(said) => vec![Some(said), precond, precise, ended.resume.clone()],
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

/// What is rounded to single precision.
fn rounded(precision: Precision) -> &'static str {
    if precision == Precision::Mixed { "the matrix" } else { "matrix and vectors" }
}

/// How the residuals develop.
enum Trend {
    Falls(String),
    Stays(String),
    Unknown,
}

/// The iterations that are still needed at the present rate, and the limit that leaves room for them.
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

/// How a solve that is long enough to be saved can go on.
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

    fn told_of(ended: &Ended<'_>) -> Option<String> {
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
    fn a_steady_fall_is_told_with_the_iterations_that_it_still_needs() {
        let residuals = falling(1e-4);
        let told = told_of(&ended(&LIMIT, &residuals, Precision::F64)).unwrap();
        assert_eq!(
            told,
            "at its present rate the residual needs about 510 more iterations, 5.01 s: max_iters(1300)"
        );
        let reason = StopReason::TimeLimit { seconds: 5.0 };
        let told = told_of(&ended(&reason, &residuals, Precision::F64)).unwrap();
        assert!(told.ends_with(": time_limit(Duration::from_secs(13))"), "{told}");
    }

    #[test]
    fn no_number_is_told_where_the_residual_stays_or_falls_too_slowly() {
        let told = |residuals: &[f64]| told_of(&ended(&LIMIT, residuals, Precision::F64)).unwrap();
        assert_eq!(told(&[1.0; 501]), "the residual did not fall in the last quarter of the iterations");
        assert!(told(&falling(0.9)).contains("more than 20 times"));
        assert_eq!(told_of(&ended(&LIMIT, &[1.0, 0.5], Precision::F64)), None);
    }

    #[test]
    fn a_higher_precision_is_named_only_where_there_is_one() {
        let stagnated = StopReason::Stagnated { iteration: 500, window: 100 };
        let gap = StopReason::ResidualGap { recursive: 1e-9, recomputed: 1e-6 };
        for reason in [&LIMIT, &stagnated, &gap] {
            let told = |precision| told_of(&ended(reason, &[1.0; 501], precision)).unwrap();
            assert!(!told(Precision::F64).contains("precision"), "{}", told(Precision::F64));
            assert!(told(Precision::F32).contains("precision(Precision::F64)"));
            assert!(told(Precision::Mixed).contains("precision(Precision::F64)"));
        }
    }

    #[test]
    fn no_number_is_told_where_single_precision_cannot_reach_the_goal() {
        let residuals = falling(1e-4);
        let told = |restarts, precision| {
            told_of(&Ended { restarts, ..ended(&LIMIT, &residuals, precision) }).unwrap()
        };
        assert!(told(false, Precision::F64).contains("510 more iterations"));
        assert!(told(true, Precision::F32).contains("510 more iterations"));
        assert!(told(false, Precision::F32).ends_with("may be in the way: precision(Precision::F64)"));
    }

    #[test]
    fn a_stop_that_one_setting_caused_names_its_flag() {
        let told = |reason| told_of(&ended(&reason, &[1.0; 501], Precision::F64));
        let rounding = StopReason::Rounding { residual: 1e-9, at_most: 1e-7 };
        assert_eq!(told(rounding).unwrap(), "a larger rtol may be met");
        assert_eq!(told(StopReason::Breakdown { iteration: 9 }).unwrap(), "Cg::new");
        let indefinite = StopReason::IndefinitePreconditioner { iteration: 9, product: -1.0 };
        assert_eq!(told(indefinite).unwrap(), "precond(\"none\")");
        assert_eq!(told(StopReason::Interrupted), None);
    }

    #[test]
    fn limits_are_rounded_up_to_two_digits() {
        let values = [0.2, 7.3, 99.5, 1249.0, 123_456.0].map(rounded_up);
        assert_eq!(values, [1.0, 8.0, 100.0, 1300.0, 130_000.0]);
    }
}
