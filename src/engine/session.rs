//! Operators of a linear system on a device, built for a method and rebuilt for new values.

use super::device::Request;
use super::matrix::Matrix;
use super::memory;
use super::running::finish_work;
use super::settings::{Input, Settings};
use super::shared::{DeviceValue, Shared};
use super::tune::{Context, Explanation, choose};
use super::watch::Phases;
use crate::backend::{Choice, Operator, Pick, SettledChoice, SharedOperator};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::{Observer, Phase, profile};
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{self, Method, Outcome, Product, System, given};
use crate::stop::StoppingRule;
use std::any::Any;
use std::sync::Arc;

/// The choices by which a prepared solve builds its operators from a matrix, and rebuilds them for new values.
#[derive(Clone)]
pub(super) struct Recipe {
    pub method: Method,
    pub backend: SettledChoice,
    pub precond: Preconditioner,
    pub custom_precond: Option<Arc<dyn Product>>,
    pub precision: Precision,
    /// Number of right-hand sides for which memory is kept free.
    pub columns: usize,
    pub explanation: Explanation,
}

/// A method with its operators on a device.
pub(super) trait Session: Send {
    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome>;

    /// Solves the system of several right-hand sides: the system, the number of columns, the rule and the checkpoints.
    fn solve_columns(
        &mut self,
        task: (&System<'_>, usize, &StoppingRule, &Checkpoints),
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Outcome>>;

    /// Rebuilds the operators for the values of `matrix`.
    fn rebuild(&mut self, matrix: &Matrix) -> Result<()>;
}

struct DeviceSession<D: Pick<T>, T: Scalar> {
    recipe: Recipe,
    /// Empty after a failed rebuild.
    prepared: DeviceValue<D, solve::Prepared<D, T>>,
}

impl<D: Pick<T>, T: Scalar> DeviceSession<D, T> {
    /// Runs a solve on the device. Fails if the operators could not be rebuilt.
    fn ready<R>(&mut self, solve: impl FnOnce(&mut solve::Prepared<D, T>) -> Result<R>) -> Result<R> {
        let (device, prepared) = self.prepared.parts();
        let device = device.acquire()?;
        device.enter()?;
        let Some(prepared) = prepared else {
            let reason = "rebuilding its operators failed; call update again";
            return Err(Error::setting("matrix", "", reason));
        };
        solve(prepared)
    }
}

impl<D: Pick<T>, T: Scalar> Session for DeviceSession<D, T> {
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

    fn rebuild(&mut self, matrix: &Matrix) -> Result<()> {
        let (device, prepared) = self.prepared.parts();
        let device = device.acquire()?;
        device.enter()?;
        // The old operators are freed first: memory need not hold both.
        *prepared = None;
        let narrow = narrowed(self.recipe.precision, matrix);
        let matrix = Input::Stored(matrix.clone());
        *prepared = Some(build(&*device, &self.recipe, &matrix, narrow, &mut Phases::default())?);
        Ok(())
    }
}

/// Returns the operator of a caller's product. Fails unless the device is the CPU and the precision f64.
fn product_operator<D: Pick<T>, T: Scalar>(device: &D, product: &Arc<dyn Product>) -> Result<Operator<D, T>> {
    let operator: Box<dyn Any> = Box::new(given::operator(Arc::clone(product)));
    operator.downcast::<SharedOperator<D, T>>().map(|shared| Operator::new(device, *shared)).map_err(|_| {
        let reason = "products and preconditioners of the caller run on the CPU in double precision only";
        Error::setting("device", D::KIND, reason)
    })
}

/// Returns the matrix with its values in single precision if the precision narrows values.
fn narrowed(precision: Precision, matrix: &Matrix) -> Option<Arc<Csr>> {
    precision.narrow_values().then(|| {
        let _span = profile::begin(Phase::Build);
        Arc::new(matrix.csr.to_f32())
    })
}

/// Builds matrix and preconditioner on a device. `narrow` is the matrix in single precision, if the precision narrows values.
fn build<D: Pick<T>, T: Scalar>(
    device: &D,
    recipe: &Recipe,
    matrix: &Input,
    narrow: Option<Arc<Csr>>,
    phases: &mut Phases,
) -> Result<solve::Prepared<D, T>> {
    let Recipe { method, backend, precond, custom_precond, columns, .. } = recipe;
    let (a, m) = match matrix {
        Input::Applied(product) => (product_operator::<D, T>(device, product)?, None),
        Input::Stored(exact) => {
            let csr = narrow.unwrap_or_else(|| Arc::clone(&exact.csr));
            let reserve = memory::reserve(*method, *precond, &csr, (*columns, size_of::<T>()));
            let building = phases.begin(Phase::Build, &format!("building backend {}", backend.label()));
            let a = backend.build_for::<D, T>(device, &csr, reserve.all, *columns)?;
            drop(building);
            let _building = phases.begin(Phase::Build, &format!("building preconditioner {precond}"));
            let m = precond.build_for::<D, T>(&exact.csr, &a, reserve.vectors, *columns)?;
            finish_work(device)?;
            (a, m)
        }
    };
    let m =
        custom_precond.as_ref().map(|precond| product_operator::<D, T>(device, precond)).transpose()?.or(m);
    Ok(method.prepare(a, m))
}

/// Settles the backend for the matrix and builds the operators on a device.
pub(super) fn session<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe)> {
    let held = device.acquire()?;
    held.enter()?;
    let Request { precision, columns, .. } = settings.request;
    let (mut narrow, mut explanation) = (None, Explanation::default());
    let (backend, precond) = match &settings.matrix {
        Input::Applied(_) => (backend.without_matrix(), Preconditioner::NONE),
        Input::Stored(exact) => {
            let plain = settings.request.precond.is_sweeps() && settings.custom_precond.is_none();
            let size = held.gpu_size();
            let size = if plain && columns == 1 { size } else { size.without_shared_launches() };
            narrow = narrowed(precision, exact);
            let _span = settings.phases.begin(Phase::Analyse, "choosing a backend");
            let csr = narrow.as_ref().unwrap_or(&exact.csr);
            let context = Context { precision, size, choosing: settings.choosing, columns };
            let selected =
                choose::<D, T>(&held, backend, csr, &context, &mut |what| settings.phases.announce(what))?;
            if let Some(why) = selected.backend.because() {
                log::info!("backend {}: {why}", selected.backend.label());
            }
            explanation = selected.explanation();
            (selected.backend, settings.request.precond.settle(&exact.csr))
        }
    };
    let (method, custom_precond) = (settings.method, settings.custom_precond.clone());
    let recipe = Recipe { method, backend, precond, custom_precond, precision, columns, explanation };
    let prepared = build::<D, T>(&*held, &recipe, &settings.matrix, narrow, &mut settings.phases)?;
    let session = DeviceSession { recipe: recipe.clone(), prepared: DeviceValue::new(device, prepared) };
    Ok((Box::new(session), recipe))
}
