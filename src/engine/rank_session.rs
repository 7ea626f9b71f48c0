//! A prepared solve over ranks.

use super::device::{DeviceHandle, Opened};
use super::matrix::Matrix;
use super::memory;
use super::ranks::RankMatrix;
use super::running::finish_work;
use super::session::{Recipe, Session, residuals};
use super::settings::Settings;
use super::shared::{DeviceValue, Shared};
use super::tune::{Choosing, Context, Explanation, choose};
use super::watch::Phases;
use crate::backend::{Choice, Operator, Pick, SettledChoice, distributed};
use crate::device::distributed::Local;
use crate::device::{Device, Distributed};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::{Observer, Phase};
use crate::precond::distributed::RankOperators;
use crate::scalar::{Precision, Scalar};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{self, Outcome, System};
use crate::stop::StoppingRule;
use std::sync::Arc;

struct RankSession<D: Local, T: Scalar> {
    prepared: DeviceValue<D, solve::PreparedMethod<Distributed<D>, T>>,
    device: Distributed<D>,
}

impl<D: Local, T: Scalar> RankSession<D, T> {
    fn ready<R>(
        &mut self,
        solve: impl FnOnce(&mut solve::PreparedMethod<Distributed<D>, T>) -> Result<R>,
    ) -> Result<R> {
        let (device, prepared) = self.prepared.parts();
        let device = device.acquire()?;
        device.enter()?;
        prepared.as_mut().map_or_else(|| Err(no_update()), solve)
    }
}

fn no_update() -> Error {
    Error::setting("matrix", "", "the values of a matrix that is distributed over ranks cannot be replaced")
}

impl<D: Local, T: Scalar> Session for RankSession<D, T> {
    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome> {
        self.ready(|prepared| prepared.solve(system, rule, checkpoints, x, observers))
    }

    fn solve_columns(
        &mut self,
        (system, k, rule, checkpoints): (&System<'_>, usize, &StoppingRule, &Checkpoints),
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Outcome>> {
        self.ready(|prepared| prepared.solve_columns(system, k, rule, checkpoints, x, observers))
    }

    fn rebuild(&mut self, _: &Matrix) -> Result<()> {
        Err(no_update())
    }
}

/// The block of a rank's own columns, with the operator that a backend has built from it.
struct Own<D: Device, T: Scalar> {
    /// In full precision.
    exact: Arc<Csr>,
    backend: SettledChoice,
    explanation: Explanation,
    operator: Operator<D, T>,
    /// Bytes of vectors, for which memory is kept free.
    reserve: u64,
}

impl<D: Local + Pick<T>, T: Scalar> Own<D, T> {
    /// Chooses a backend for the block and builds its operator. The choice of each rank is that of the model,
    /// so it is the same in every run.
    fn build(
        device: &D,
        matrix: &RankMatrix,
        settings: &mut Settings,
        backend: &Choice,
    ) -> Result<Own<D, T>> {
        let (precision, columns) = (settings.run.request.precision, settings.run.request.columns);
        let exact = Arc::new(matrix.rows.own_block()?);
        let csr = if precision.narrow_values() { Arc::new(exact.to_f32()) } else { Arc::clone(&exact) };
        let size = device.gpu_size().without_shared_launches();
        let context = Context { precision, size, choosing: Choosing::Model, columns };
        let phases = &mut settings.run.phases;
        let choosing = phases.begin(Phase::Analyse, "choosing a backend");
        let selected = choose::<D, T>(device, backend, &csr, &context, &mut |_| ())?;
        drop(choosing);
        let (explanation, backend) = (selected.explanation(), selected.backend);
        let reserve =
            memory::reserve(settings.method, &matrix.facts.precond, &csr, (columns, size_of::<T>()));
        let _building = phases.begin(Phase::Build, &format!("building backend {}", backend.label()));
        let operator = backend.build_for::<D, T>(device, &csr, reserve.all, columns)?;
        Ok(Own { exact, backend, explanation, operator, reserve: reserve.vectors })
    }
}

/// Settles the backend of each rank and builds the operators.
fn build<D: Local + Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    matrix: &RankMatrix,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe)> {
    let held = device.acquire()?;
    held.enter()?;
    let (precision, columns) = (settings.run.request.precision, settings.run.request.columns);
    let own = Own::<D, T>::build(&held, matrix, settings, backend);
    let own = matrix.ranks().agreed(own)?;
    let distributed = Distributed::new(held.clone(), matrix.ranks().clone(), matrix.rows.numbers().clone())?;
    let a =
        distributed::operator(&distributed, &matrix.rows, own.operator.clone(), precision.narrow_values());
    let a = matrix.ranks().agreed(a)?;
    let precond = matrix.facts.precond.clone();
    let m = precondition(&a, matrix, &own, columns, &mut settings.run.phases)?;
    finish_work(&*held)?;
    let prepared = settings.method.prepare(a, m);
    let prepared = match residuals(&*held, matrix.rows.matrix(), matrix.rows.halo().below(), own.reserve) {
        Some(residuals) => prepared.with_residuals(residuals),
        None => prepared,
    };
    let recipe = Recipe {
        method: settings.method,
        backend: own.backend,
        precond,
        custom_precond: None,
        precision,
        columns,
        explanation: own.explanation,
    };
    let session = RankSession { prepared: DeviceValue::new(device, prepared), device: distributed };
    Ok((Box::new(session), recipe))
}

fn precondition<D: Local + Pick<T>, T: Scalar>(
    a: &Operator<Distributed<D>, T>,
    matrix: &RankMatrix,
    own: &Own<D, T>,
    columns: usize,
    phases: &mut Phases,
) -> Result<Option<Operator<Distributed<D>, T>>> {
    let precond = &matrix.facts.precond;
    let _building = phases.begin(Phase::Build, &format!("building preconditioner {precond}"));
    let given = RankOperators { rows: &matrix.rows, own: (&own.exact, &own.operator), a };
    precond.build_over_ranks(&given, own.reserve, columns)
}

/// Settles the backends and builds the operators on the device of each rank. Returns a note on the
/// symmetry of the matrix, too.
pub(super) fn session(
    device: &DeviceHandle,
    matrix: &RankMatrix,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe, Option<String>)> {
    if settings.check_products {
        let reason = "it is checked by entries when it is distributed, and not by products";
        return Err(Error::setting("matrix", matrix.facts.origin.title(), reason));
    }
    if settings.run.request.precond.name() != matrix.facts.precond.name() || settings.custom_precond.is_some()
    {
        let reason = format!("the matrix is distributed for preconditioner {}", matrix.facts.precond);
        return Err(Error::setting("precond", &settings.run.request.precond, reason));
    }
    let (session, recipe) = match (&device.0, settings.run.request.precision) {
        (Opened::Cpu(held), Precision::F32) => build::<_, f32>(held, matrix, settings, backend),
        (Opened::Cpu(held), _) => build::<_, f64>(held, matrix, settings, backend),
        (Opened::Cuda(held), Precision::F32) => build::<_, f32>(held, matrix, settings, backend),
        (Opened::Cuda(held), _) => build::<_, f64>(held, matrix, settings, backend),
    }?;
    // Its symmetry was checked when it was distributed.
    Ok((session, recipe, matrix.facts.note.clone()))
}
