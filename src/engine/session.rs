//! Operators of a linear system on a device, built for a method.

use super::device::Request;
use super::matrix::Matrix;
use super::memory;
use super::running::finish_work;
use super::settings::{Input, Settings};
use super::shared::{DeviceValue, Shared};
use super::tune::{Context, Explanation, choose};
use super::watch::Phases;
use crate::backend::{Choice, ForColumns, Host, Operator, Pick, SettledChoice, SharedOperator};
use crate::device::Device;
use crate::error::{Error, GpuError, Result};
use crate::format::Csr;
use crate::observe::{Levels, Observer, Phase, profile};
use crate::operator::{OwnBackend, Residuals};
use crate::parallel::start_scoped;
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::given::{self, Guarded};
use crate::solve::{Method, Outcome, PreparedMethod, System};
use crate::stop::StoppingRule;
use std::any::Any;
use std::sync::Arc;

/// The choices by which a prepared solve builds its operators from a matrix, and rebuilds them
/// for new values.
#[derive(Clone)]
pub(super) struct Recipe {
    pub method: Method,
    /// The backend that the user named, or `auto`.
    pub ordered: Choice,
    pub backend: SettledChoice,
    pub precond: Preconditioner,
    pub custom_precond: Option<Arc<Guarded>>,
    pub precision: Precision,
    /// Number of right-hand sides for which memory is kept free.
    pub columns: usize,
    pub explanation: Explanation,
}

/// A method with its operators on a device, of this process or over ranks.
pub(super) trait Session: Send {
    /// Prepares the operator of the matrix for `k` columns. Returns the backend, if it is another one than
    /// for a vector.
    fn prepare(&mut self, k: usize) -> Result<Option<Arc<OwnBackend>>>;

    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<()>;

    /// Returns how the last solve ended for a column.
    fn outcome(&self, column: usize) -> Outcome;

    /// Returns the levels of the preconditioner, if it has any.
    fn levels(&self) -> Option<Arc<Levels>>;
}

/// A method whose operators work on the device E, and what device D keeps of it: E itself, or the device of
/// this rank of E. The levels are those of the preconditioner.
struct Kept<D, E: Device, T: Scalar>(DeviceValue<D, WithOperator<E, T>>, Option<Arc<Levels>>);

/// A method, with the operator of its matrix.
type WithOperator<E, T> = (PreparedMethod<E, T>, Operator<E, T>);

/// Keeps a method on a device.
pub(super) fn kept<D: Device, E: Device, T: Scalar>(
    device: &Arc<Shared<D>>,
    method: Method,
    (a, m): (Operator<E, T>, Option<Operator<E, T>>),
    residuals: Option<Box<dyn Residuals>>,
) -> Box<dyn Session> {
    let levels = m.as_ref().and_then(Operator::levels);
    let mut prepared = method.prepare(a.clone(), m);
    if let Some(residuals) = residuals {
        prepared = prepared.with_residuals(residuals);
    }
    Box::new(Kept(DeviceValue::new(device, (prepared, a)), levels))
}

impl<D: Device, E: Device, T: Scalar> Session for Kept<D, E, T> {
    fn prepare(&mut self, k: usize) -> Result<Option<Arc<OwnBackend>>> {
        let (_device, (_, a)) = self.0.enter()?;
        a.device().agreed(a.prepare(k))?;
        Ok(a.chosen_for(k))
    }

    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<()> {
        let (_device, (prepared, _)) = self.0.enter_mut()?;
        prepared.solve(system, rule, checkpoints, x, observers)
    }

    fn outcome(&self, column: usize) -> Outcome {
        self.0.get().0.outcome(column)
    }

    fn levels(&self) -> Option<Arc<Levels>> {
        self.1.clone()
    }
}

/// Returns the operator of a caller's product. Fails unless the device is the CPU and the precision f64.
fn product_operator<D: Pick<T>, T: Scalar>(device: &D, product: &Arc<Guarded>) -> Result<Operator<D, T>> {
    let operator: Box<dyn Any> = Box::new(given::operator(Arc::<Guarded>::clone(product)));
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

/// Returns what computes the residuals of a matrix, whose diagonal begins in column `below`, on a device;
/// none if the host does it. Leaves `reserve` bytes.
pub(super) fn residuals<D: Host>(
    device: &D,
    matrix: &Arc<Csr>,
    below: usize,
    reserve: u64,
) -> Option<Box<dyn Residuals>> {
    device.residuals(matrix, below, reserve).unwrap_or_else(|error| {
        log::warn!("the host computes the residuals, which takes longer: {error}");
        None
    })
}

/// What a matrix is prepared with: the matrix in single precision, if the precision narrows values, and what
/// computes residuals on the device.
#[derive(Default)]
struct Ready {
    narrow: Option<Arc<Csr>>,
    residuals: Option<Box<dyn Residuals>>,
}

/// Builds matrix and preconditioner on a device.
fn build<D: Pick<T>, T: Scalar>(
    (shared, device): (&Arc<Shared<D>>, &D),
    recipe: &Recipe,
    matrix: &Input,
    ready: Ready,
    phases: &mut Phases,
) -> Result<Box<dyn Session>> {
    let Recipe { method, ordered, backend, precond, custom_precond, precision, columns, .. } = recipe;
    let Ready { narrow, mut residuals } = ready;
    let (a, m) = match matrix {
        Input::OfRank(_) => return Err(Error::setting("matrix", "", "it is distributed over ranks")),
        Input::Applied(product) => (product_operator::<D, T>(device, product)?, None),
        Input::Stored(exact) => {
            let csr = narrow.unwrap_or_else(|| Arc::clone(&exact.csr));
            let reserve = memory::reserve(*method, precond, &csr, (*columns, size_of::<T>()));
            let building = phases.begin(Phase::Build, &format!("building backend {}", backend.label()));
            let build = || backend.build_for::<D, T>(device, &csr, reserve.all, *columns);
            let a = match build() {
                // The copy of the matrix may take the memory that the backend needs.
                Err(Error::Gpu(GpuError::DeviceMemory { .. })) if residuals.take().is_some() => build()?,
                built => built?,
            };
            let (narrow, again) = (precision.narrow_values(), Arc::clone(&exact.csr));
            let later = ForColumns {
                auto: ordered.clone(),
                size: device.gpu_size().without_shared_launches(),
                matrix: Box::new(move || Ok(again.narrowed(narrow))),
                reserve: reserve.vectors / (*columns).max(1) as u64,
            };
            let a = later.after(a, backend);
            drop(building);
            let _building = phases.begin(Phase::Build, &format!("building preconditioner {precond}"));
            let m = precond.build_for::<D, T>(&exact.csr, &a, reserve.vectors, *columns)?;
            finish_work(device)?;
            (a, m)
        }
    };
    let m =
        custom_precond.as_ref().map(|precond| product_operator::<D, T>(device, precond)).transpose()?.or(m);
    Ok(kept(shared, *method, (a, m), residuals))
}

/// Builds the operators again, for the values of `matrix`.
pub(super) fn rebuilt<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    recipe: &Recipe,
    matrix: &Matrix,
) -> Result<Box<dyn Session>> {
    let held = device.acquire()?;
    held.enter()?;
    let Recipe { method, ref precond, precision, columns, .. } = *recipe;
    let narrow = narrowed(precision, matrix);
    let reserve = memory::reserve(method, precond, &matrix.csr, (columns, size_of::<T>()));
    // The operator comes next.
    let reserve = reserve.all.saturating_add(matrix.csr.storage_bytes());
    let ready = Ready { residuals: residuals(&*held, &matrix.csr, 0, reserve), narrow };
    let matrix = Input::Stored(matrix.clone());
    build::<D, T>((device, &held), recipe, &matrix, ready, &mut Phases::default())
}

/// Calls `there` on another thread while `here` runs; not at all if `alone` is set, or if no
/// thread can be started.
fn meanwhile<A, B: Send>(
    here: impl FnOnce() -> A,
    alone: bool,
    there: impl FnOnce() -> Option<B> + Send,
) -> (A, Option<B>) {
    if alone {
        return (here(), None);
    }
    std::thread::scope(|scope| {
        let there = start_scoped(scope, "solver-copy".to_owned(), there);
        let here = here();
        let there =
            there.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let there = there.unwrap_or_else(|error| {
            log::info!("the host tests the symmetry and computes the residuals: {error}");
            None
        });
        (here, there)
    })
}

/// Checks the matrix, settles the backend for it and builds the operators on a device. Returns a note on the
/// symmetry of the matrix, too.
pub(super) fn session<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe, Option<String>)> {
    let held = device.acquire()?;
    held.enter()?;
    let Request { precision, columns, .. } = settings.run.request;
    let (mut ready, mut explanation) = (Ready::default(), Explanation::default());
    let (method, ordered) = (settings.method, backend.clone());
    // A device may find the matrix symmetric in less time than the host.
    let later = !D::ON_HOST && settings.must_compute_symmetry();
    let mut note = if later { None } else { settings.check_matrix()? };
    settings.check_products()?;
    let (backend, precond) = match &settings.matrix {
        Input::Applied(_) | Input::OfRank(_) => (backend.without_matrix(), Preconditioner::NONE),
        Input::Stored(exact) => {
            let plain = settings.run.request.precond.is_sweeps() && settings.custom_precond.is_none();
            let size = held.gpu_size();
            let size = if plain && columns == 1 { size } else { size.without_shared_launches() };
            ready.narrow = narrowed(precision, exact);
            let _span = settings.run.phases.begin(Phase::Analyse, "choosing a backend");
            let csr = ready.narrow.as_ref().unwrap_or(&exact.csr);
            let context = Context { precision, size, choosing: settings.run.choosing, columns };
            let precond = exact.settled(&settings.run.request.precond, method)?;
            let phases = &mut settings.run.phases;
            let choose = || choose::<D, T>(&held, backend, csr, &context, &mut |what| phases.announce(what));
            let reserve = memory::reserve(method, &precond, csr, (columns, size_of::<T>()));
            let (selected, there) = meanwhile(choose, D::ON_HOST, || {
                // Copies the matrix to the device, which then tests its symmetry.
                let reserve = reserve.all.saturating_add(exact.csr.storage_bytes());
                let residuals = residuals(&*held, &exact.csr, 0, reserve)?;
                let symmetric = later && held.is_symmetric(&exact.csr).is_ok_and(|found| found == Some(true));
                Some((residuals, symmetric))
            });
            let selected = selected?;
            if let Some((residuals, symmetric)) = there {
                ready.residuals = Some(residuals);
                if symmetric {
                    exact.is_found_symmetric();
                }
            }
            if let Some(why) = selected.backend.because() {
                log::info!("backend {}: {why}", selected.backend.label());
            }
            explanation = selected.explanation();
            (selected.backend, precond)
        }
    };
    if later {
        note = settings.check_matrix()?;
    }
    let custom_precond = settings.custom_precond.clone();
    let recipe =
        Recipe { method, ordered, backend, precond, custom_precond, precision, columns, explanation };
    let session = build::<D, T>((device, &held), &recipe, &settings.matrix, ready, &mut settings.run.phases)?;
    Ok((session, recipe, note))
}
