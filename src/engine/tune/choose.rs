//! The backend of a solve: a kept choice, a new measurement, or the choice of the model.

use super::candidates::resolved;
use super::date::today;
use super::kept::{self, Kept};
use super::measure::Measure;
use super::{BUDGET, Explanation, Measured, Tuning};
use crate::backend::timing::Timed;
use crate::backend::{Choice, GpuSize, Pick, SettledChoice};
use crate::engine::memory;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::{Precision, Scalar};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Candidates within this share of the least time count as equally fast.
const EQUAL: f64 = 0.02;
/// Vectors for which a measurement leaves memory.
const VECTORS: usize = 16;
/// The backend whose iterations share a launch, which products do not show.
const BURST: &str = "burst";

/// How `auto` becomes a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) enum Choosing {
    /// By the model, whatever choices are kept on this machine.
    Model,
    /// By a kept choice, or else by the model.
    #[default]
    Kept,
    /// By a kept choice, or else by a measurement.
    Measure,
}

impl Choosing {
    /// Returns how a solve chooses that measures if `tune` is set.
    pub(crate) fn tuning(tune: bool) -> Choosing {
        if tune { Choosing::Measure } else { Choosing::Kept }
    }
}

/// What the choice of a solve depends on, besides the matrix.
pub(in crate::engine) struct Context {
    pub precision: Precision,
    pub size: GpuSize,
    pub choosing: Choosing,
    /// Number of columns that are multiplied at once. Measurements and kept choices are for one column.
    pub columns: usize,
}

/// A chosen backend, and the kept choice that it comes from.
pub(in crate::engine) struct Selected {
    pub backend: SettledChoice,
    kept: Option<Kept>,
}

impl Selected {
    pub(crate) fn explanation(&self) -> Explanation {
        Explanation { candidates: self.backend.candidates().to_vec(), kept: self.kept.clone() }
    }
}

/// What a measurement compares, and for how long.
pub(super) struct TuneCandidates<'a> {
    pub precision: Precision,
    pub candidates: &'a [String],
    pub budget: Duration,
}

/// Returns the backend `auto` of a device.
pub(super) fn auto<D: Pick<T>, T: Scalar>() -> Result<Choice> {
    Choice::resolve(D::KIND, D::DEFAULT_BACKEND, "auto")
}

/// Chooses the backend for a matrix.
pub(in crate::engine) fn choose<D: Pick<T>, T: Scalar>(
    device: &D,
    choice: &Choice,
    matrix: &Arc<Csr>,
    context: &Context,
    phase: &mut dyn FnMut(&str),
) -> Result<Selected> {
    let model = || choice.settle_columns(matrix, size_of::<T>(), &context.size, context.columns);
    let by_model = |backend| Ok(Selected { backend, kept: None });
    let only_model = context.choosing == Choosing::Model;
    if !choice.is_auto() || matrix.nnz() == 0 || context.columns > 1 || only_model {
        return by_model(model()?);
    }
    if matrix.rows() <= context.size.resident_rows && D::BATCH > 1 {
        let backend = model()?;
        if backend.entry().name == BURST {
            return by_model(backend);
        }
    }
    if let Some(selected) = kept::lookup(device, matrix, context.precision).and_then(usable::<D, T>(matrix)) {
        return Ok(selected);
    }
    if context.choosing == Choosing::Kept {
        return by_model(model()?);
    }
    let order = TuneCandidates { precision: context.precision, candidates: &[], budget: BUDGET };
    let tuning = tune_on::<D, T>(device, matrix, &order, true, phase)?;
    let backend = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &tuning.winner)?;
    let because = format!("measured on {}: {}", tuning.date, tuning.why);
    let kept = kept::lookup(device, matrix, context.precision);
    Ok(Selected { backend: backend.because(because), kept })
}

/// Returns a function that turns a kept choice into a backend; none, with a warning, if the backend refuses
/// the matrix or does not exist.
fn usable<D: Pick<T>, T: Scalar>(matrix: &Csr) -> impl Fn(Kept) -> Option<Selected> {
    move |kept| {
        let resolve = || {
            let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &kept.tuning.winner)?;
            choice.entry.check(matrix, &choice.params, size_of::<T>())?;
            Ok::<_, Error>(choice.because(kept.because()))
        };
        let warn = |error: &Error| log::warn!("the kept choice {} is ignored: {error}", kept.tuning.winner);
        let backend = resolve().inspect_err(warn).ok()?;
        Some(Selected { backend, kept: Some(kept.clone()) })
    }
}

/// Measures the candidates on a device, and keeps the choice if `keep` is set.
pub(super) fn tune_on<D: Pick<T>, T: Scalar>(
    device: &D,
    matrix: &Arc<Csr>,
    order: &TuneCandidates<'_>,
    keep: bool,
    phase: &mut dyn FnMut(&str),
) -> Result<Tuning> {
    device.enter()?;
    let began = Instant::now();
    let size = device.gpu_size().without_shared_launches();
    let model = auto::<D, T>()?.settle(matrix, size_of::<T>(), &size)?;
    let choices = resolved::<D>(matrix, &model, order.candidates)?;
    let square = matrix.rows() == matrix.cols();
    let timed = if square { Timed::Dot } else { Timed::Plain };
    let reserve = memory::vectors(VECTORS, matrix.rows(), size_of::<T>());
    let measure = Measure { matrix, precision: order.precision, timed, budget: order.budget, reserve };
    let mut measured = measure.run::<D, T>(device, &choices, phase)?;
    let seconds = began.elapsed().as_secs_f64();
    let model = model.label();
    let Some(winner) = winner(&measured, &model).cloned() else {
        let reason = match measured.iter().find_map(|measured| measured.error.as_deref()) {
            Some(error) => format!("no candidate could be measured: {error}"),
            None => "no candidate could be measured".to_owned(),
        };
        return Err(Error::setting("backend", model, reason));
    };
    let of_model = measured.iter().find(|measured| measured.backend == model);
    let (why, break_even) = verdict(&winner, of_model, seconds);
    measured.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut tuning = Tuning {
        rows: matrix.rows() as u64,
        nnz: matrix.nnz() as u64,
        device: device.describe(),
        precision: order.precision.name().to_owned(),
        product: if square { "y = A x with <x, y>" } else { "y = A x" }.to_owned(),
        measured,
        winner: winner.backend,
        model,
        why,
        seconds,
        break_even,
        date: today(),
        kept: None,
    };
    if keep {
        let warn = |reason: &String| log::warn!("the choice cannot be kept: {reason}");
        tuning.kept = kept::store(device, matrix, order.precision, &tuning).inspect_err(warn).ok();
    }
    Ok(tuning)
}

fn time(measured: &Measured) -> f64 {
    measured.seconds.unwrap_or(f64::INFINITY)
}

/// Returns the fastest candidate. Of those that are equally fast it is the choice of the model, or else the
/// one that is built in the least time, so that the choice does not change from one measurement to the next.
fn winner<'a>(measured: &'a [Measured], model: &str) -> Option<&'a Measured> {
    let best = measured.iter().map(time).fold(f64::INFINITY, f64::min);
    let equal =
        || measured.iter().filter(|measured| best.is_finite() && time(measured) <= (1.0 + EQUAL) * best);
    let quick = || equal().min_by(|a, b| a.seconds_build.total_cmp(&b.seconds_build));
    equal().find(|measured| measured.backend == model).or_else(quick)
}

/// Returns the reason for the winner, and the number of products after which `seconds` of tuning and a longer
/// build have paid compared with the choice of the model.
fn verdict(winner: &Measured, model: Option<&Measured>, seconds: f64) -> (String, Option<f64>) {
    let Some(of_model) = model.filter(|model| model.seconds.is_some()) else {
        return ("the fastest; the model's choice could not be measured".to_owned(), None);
    };
    if of_model.backend == winner.backend {
        return ("the model's choice is the best already".to_owned(), None);
    }
    let (new, old) = (time(winner), time(of_model));
    let saved = old - new;
    let build = winner.seconds_build - of_model.seconds_build;
    let why = format!("{:.0} % of the time of {}, the model's choice", 100.0 * new / old, of_model.backend);
    (why, (saved > 0.0).then(|| ((seconds + build).max(0.0) / saved).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(backend: &str, seconds: f64, seconds_build: f64) -> Measured {
        let seconds = (seconds > 0.0).then_some(seconds);
        Measured { backend: backend.to_owned(), seconds, seconds_build, ..Measured::default() }
    }

    #[test]
    fn of_equally_fast_candidates_the_models_choice_wins_and_then_the_least_build_time() {
        let all = [
            measured("a", 1.0, 3.0),
            measured("b", 1.019, 1.0),
            measured("c", 1.021, 0.1),
            measured("d", 0.0, 0.0),
        ];
        let of = |model: &str| winner(&all, model).unwrap().backend.clone();
        assert_eq!((of("a"), of("b"), of("c"), of("d")), ("a".into(), "b".into(), "b".into(), "b".into()));
        assert!(winner(&all[3..], "d").is_none());
        assert!(winner(&[], "a").is_none());
    }

    #[test]
    fn tuning_pays_after_its_seconds_and_the_longer_build_are_saved() {
        let (fast, slow) = (measured("fast", 1.0, 5.0), measured("slow", 3.0, 1.0));
        let (why, products) = verdict(&fast, Some(&slow), 16.0);
        assert_eq!(products, Some(10.0));
        assert_eq!(why, "33 % of the time of slow, the model's choice");
        assert_eq!(
            verdict(&fast, Some(&fast), 16.0),
            ("the model's choice is the best already".to_owned(), None)
        );
        assert_eq!(verdict(&fast, Some(&measured("slow", 0.0, 1.0)), 1.0).1, None);
    }
}
