//! A solve made ready: device, matrix and preconditioner stay where they are from one right-hand side to the next.

use super::answer::{About, Answer, Facts};
use super::device::{DeviceHandle, Opened, Request, on_device};
use super::matrix::Matrix;
use super::memory;
use super::rhs::RightHandSide;
use super::settings::{Input, Settings};
use super::shared::{Kept, Shared};
use super::stopping::Stopping;
use super::watch::Fan;
use crate::backend::{Choice, Operator, Pick, SettledChoice};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::{Observer, Recorder};
use crate::parallel::zeros;
use crate::precond::Preconditioner;
use crate::scalar::{Precision, Scalar};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{self, Method, Outcome, Product, System, given};
use crate::stop::StoppingRule;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Iterations for whose history there is room from the start.
const ROOM: usize = 1 << 16;

/// A solve ready for right-hand sides: of one matrix, on one device. It can be moved to another thread.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let a = Matrix::open("poisson2d:50x50")?;
/// let mut cg = Cg::new(&a).precond("ic0")?.prepare()?;
/// let mut x = vec![0.0; a.rows()];
/// for step in 1..=3 {
///     let b = vec![f64::from(step); a.rows()];
///     assert!(cg.solve_into(&b, &mut x)?.reason.is_success());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Prepared {
    matrix: Input,
    device: DeviceHandle,
    session: Box<dyn Session>,
    facts: Arc<Facts>,
    stopping: Stopping,
    rule: StoppingRule,
    checkpoints: Checkpoints,
    observers: Vec<Box<dyn Observer + Send>>,
    ended: Arc<AtomicBool>,
    assume_symmetric: bool,
    precond: Preconditioner,
}

/// The method, the matrix and where it is.
impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, device) = (self.facts.method.name(), self.device.describe());
        write!(f, "{method} with {} rows by backend {} on {device}", self.rows(), self.backend())
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Prepared>();
};

/// What a prepared solve builds of a matrix, and builds again of new values.
#[derive(Clone)]
struct Recipe {
    method: Method,
    backend: SettledChoice,
    precond: Preconditioner,
    own_precond: Option<Arc<dyn Product>>,
    precision: Precision,
}

/// A method with its operators on a device.
trait Session: Send {
    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome>;

    /// Builds the operators anew.
    fn rebuild(&mut self, matrix: &Matrix) -> Result<()>;
}

struct On<D: Pick<T>, T: Scalar> {
    recipe: Recipe,
    /// Without a value where the operators could not be built anew.
    prepared: Kept<D, solve::Prepared<D, T>>,
}

impl<D: Pick<T>, T: Scalar> Session for On<D, T> {
    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome> {
        let (device, prepared) = self.prepared.parts();
        let device = device.turn()?;
        device.enter()?;
        let Some(prepared) = prepared else {
            let reason = "its operators could not be built; update it again";
            return Err(Error::setting("matrix", "", reason));
        };
        prepared.solve(&*device, system, rule, checkpoints, x, observers)
    }

    fn rebuild(&mut self, matrix: &Matrix) -> Result<()> {
        let (device, prepared) = self.prepared.parts();
        let device = device.turn()?;
        device.enter()?;
        // Old and new operators need not fit side by side.
        *prepared = None;
        let narrow = narrowed(self.recipe.precision, matrix);
        let matrix = Input::Stored(matrix.clone());
        *prepared = Some(build(&*device, &self.recipe, &matrix, narrow, &mut |_| ())?);
        Ok(())
    }
}

/// The operator of a caller's product, where this device and precision have one.
fn own<D: Pick<T>, T: Scalar>(product: &Arc<dyn Product>) -> Result<Operator<D, T>> {
    let operator: Box<dyn Any> = Box::new(given::operator(Arc::clone(product)));
    operator.downcast::<Operator<D, T>>().map(|operator| *operator).map_err(|_| {
        let reason = "products and preconditioners of a caller's own run on the CPU in double precision";
        Error::setting("device", D::KIND, reason)
    })
}

/// The matrix with values in single precision, where the precision asks for that.
fn narrowed(precision: Precision, matrix: &Matrix) -> Option<Arc<Csr>> {
    precision.narrow_values().then(|| Arc::new(matrix.csr.to_f32()))
}

/// Builds matrix and preconditioner on a device. `narrow` is the matrix in single precision, where that is used.
fn build<D: Pick<T>, T: Scalar>(
    device: &D,
    recipe: &Recipe,
    matrix: &Input,
    narrow: Option<Arc<Csr>>,
    phase: &mut dyn FnMut(&str),
) -> Result<solve::Prepared<D, T>> {
    let Recipe { method, backend, precond, own_precond, .. } = recipe;
    let (a, m) = match matrix {
        Input::Applied(product) => (own::<D, T>(product)?, None),
        Input::Stored(exact) => {
            let csr = narrow.unwrap_or_else(|| Arc::clone(&exact.csr));
            let reserve = memory::reserve(*method, *precond, &csr, size_of::<T>());
            phase(&format!("building backend {}", backend.label()));
            let a = backend.build::<D, T>(device, &csr, reserve.all)?;
            phase(&format!("building preconditioner {precond}"));
            let m = precond.build::<D, T>(device, &exact.csr, &a, reserve.vectors)?;
            (a, m)
        }
    };
    let m = own_precond.as_ref().map(own::<D, T>).transpose()?.or(m);
    Ok(method.prepare(a, m))
}

/// Settles the backend for the matrix and builds on a device.
fn session<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    settings: &mut Settings,
    backend: &Choice,
) -> Result<(Box<dyn Session>, Recipe)> {
    let held = device.turn()?;
    held.enter()?;
    let precision = settings.request.precision;
    let mut narrow = None;
    let (backend, precond) = match &settings.matrix {
        Input::Applied(_) => (backend.without_matrix(), Preconditioner::None),
        Input::Stored(exact) => {
            let plain = settings.request.precond.is_sweeps() && settings.own_precond.is_none();
            let resident = if plain { held.resident_rows() } else { 0 };
            (settings.phase)("choosing a backend");
            narrow = narrowed(precision, exact);
            let csr = narrow.as_ref().unwrap_or(&exact.csr);
            let backend = backend.settle(csr, size_of::<T>(), resident)?;
            if let Some(why) = backend.because() {
                log::info!("backend {}: {why}", backend.label());
            }
            (backend, settings.request.precond.settle(&exact.csr))
        }
    };
    let (method, own_precond) = (settings.method, settings.own_precond.clone());
    let recipe = Recipe { method, backend, precond, own_precond, precision };
    let prepared = build::<D, T>(&*held, &recipe, &settings.matrix, narrow, &mut settings.phase)?;
    let session = On { recipe: recipe.clone(), prepared: Kept::new(device, prepared) };
    Ok((Box::new(session), recipe))
}

impl Prepared {
    pub(super) fn new(mut settings: Settings) -> Result<Prepared> {
        settings.check_own()?;
        settings.stopping.tolerances(settings.request.precision)?;
        if let Some(device) = &settings.device {
            settings.request.device = device.instead_of(&settings.request.device)?;
        }
        let settled = match settings.settled.take() {
            Some(settled) => settled,
            None => settings.request.settle()?,
        };
        settled.check_device()?;
        let note = settings.check_matrix()?;
        let device = match settings.device.take() {
            Some(device) => device,
            // A caller's own operator may solve other systems, on the device that is shared.
            None if settings.has_own_operators() => DeviceHandle::open(settled.device)?,
            None => DeviceHandle::shared(settled.device)?,
        };
        let began = Instant::now();
        let (backend, precision) = (&settled.backend, settings.request.precision);
        let (session, recipe) =
            on_device!(device, precision, |held, D, T| session::<D, T>(held, &mut settings, backend))?;
        let Settings { matrix, stopping, mut checkpoints, observers, ended, assume_symmetric, .. } = settings;
        let applied = matches!(matrix, Input::Applied(_));
        let own = recipe.own_precond.is_some();
        let facts = Facts {
            method: recipe.method,
            matrix: About::of(&matrix),
            device: device.describe().to_owned(),
            on_cpu: matches!(device.0, Opened::Cpu(_)),
            backend: if applied { "own".to_owned() } else { recipe.backend.label() },
            backend_because: recipe.backend.because().map(str::to_owned),
            precision,
            precond: if own { "own".to_owned() } else { recipe.precond.to_string() },
            note,
            checkpoint: checkpoints.save.as_ref().map(|(file, _)| file.clone()),
            seconds_setup: began.elapsed().as_secs_f64(),
            moves: !applied,
        };
        checkpoints.labels = vec![
            ("precision", precision.name().to_owned()),
            ("backend", facts.backend.clone()),
            ("preconditioner", facts.precond.clone()),
        ];
        let mut prepared = Prepared {
            matrix,
            device,
            session,
            facts: Arc::new(facts),
            stopping,
            rule: StoppingRule::any([]),
            checkpoints,
            observers,
            ended,
            assume_symmetric,
            precond: recipe.precond,
        };
        prepared.rule = prepared.rule(&prepared.stopping)?;
        Ok(prepared)
    }

    fn rule(&self, stopping: &Stopping) -> Result<StoppingRule> {
        let rule = stopping.rule(self.matrix.rows(), self.facts.precision, self.facts.method.stride())?;
        Ok(StoppingRule::any([rule, StoppingRule::Interrupt(Arc::clone(&self.ended))]))
    }

    /// Tolerances and limits of the solves from now on.
    pub fn set_stopping(&mut self, stopping: Stopping) -> Result<()> {
        (self.rule, self.stopping) = (self.rule(&stopping)?, stopping);
        Ok(())
    }

    /// Solves from now on end once this flag is set.
    pub fn cancel_by(&mut self, flag: &Arc<AtomicBool>) -> Result<()> {
        self.set_stopping(Stopping { cancel: Some(Arc::clone(flag)), ..self.stopping.clone() })
    }

    /// Where solves from now on are saved, and what the next one goes on from.
    pub fn set_checkpoints(&mut self, checkpoints: Checkpoints) {
        let labels = std::mem::take(&mut self.checkpoints.labels);
        self.checkpoints = Checkpoints { labels, ..checkpoints };
    }

    /// Tolerances and limits.
    pub fn stopping(&self) -> &Stopping {
        &self.stopping
    }

    /// Rows of the matrix, and entries of right-hand sides and answers.
    pub fn rows(&self) -> usize {
        self.matrix.rows()
    }

    /// The device.
    pub fn device(&self) -> &DeviceHandle {
        &self.device
    }

    /// The backend of the products, with its parameters.
    pub fn backend(&self) -> &str {
        &self.facts.backend
    }

    /// Solves a system. Nothing is allocated but the answer.
    pub fn solve<'b>(&mut self, b: impl Into<RightHandSide<'b>>) -> Result<Answer> {
        self.solve_watched(b, &mut [])
    }

    /// Solves a system under the eyes of more observers.
    pub fn solve_watched<'b>(
        &mut self,
        b: impl Into<RightHandSide<'b>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Answer> {
        let b = b.into();
        let mut x = zeros(self.matrix.rows())?;
        let most = self.stopping.most_iterations(self.matrix.rows());
        let mut recorder = Recorder::with_capacity(most.min(ROOM));
        let outcome = self.run(&b, &mut x, Some(&mut recorder), observers)?;
        Ok(Answer::new(x, outcome, recorder, Arc::clone(&self.facts), &b))
    }

    /// Solves a system, and leaves the answer in `x`. Once a solve has run, further ones allocate nothing on the device, and on
    /// the CPU nothing at all where they converge; the first that leaves its error in doubt keeps a factor of the matrix.
    pub fn solve_into<'b>(&mut self, b: impl Into<RightHandSide<'b>>, x: &mut [f64]) -> Result<Outcome> {
        self.run(&b.into(), x, None, &mut [])
    }

    fn run(
        &mut self,
        b: &RightHandSide<'_>,
        x: &mut [f64],
        recorder: Option<&mut Recorder>,
        others: &mut [&mut dyn Observer],
    ) -> Result<Outcome> {
        if self.facts.precision == Precision::F32 {
            check_range(self.facts.precision, "the right-hand side", b.b.iter().copied())?;
        }
        self.ended.store(false, Ordering::Relaxed);
        let system = System { matrix: self.matrix.reference(), b: b.b, x0: b.x0 };
        let mut fan = Fan { recorder, prepared: &mut self.observers, others };
        let outcome = self.session.solve(&system, &self.rule, &self.checkpoints, x, &mut [&mut fan])?;
        // A checkpoint belongs to one system.
        self.checkpoints.resume = None;
        Ok(outcome)
    }

    /// Takes new values on the pattern of the matrix. Device, backend and sizes of blocks stay as they were chosen; the arrays of
    /// matrix and preconditioner are built anew.
    pub fn update(&mut self, matrix: &Matrix) -> Result<()> {
        let Input::Stored(before) = &self.matrix else {
            let reason = "only products of the prepared matrix are known; change what these compute";
            return Err(Error::setting("matrix", matrix.name(), reason));
        };
        let (old, new) = (before.csr.pattern(), matrix.csr.pattern());
        if !Arc::ptr_eq(old, new) && old != new {
            let reason = "its pattern is not that of the prepared matrix; prepare another solve";
            return Err(Error::setting("matrix", matrix.name(), reason));
        }
        let method = self.facts.method.name();
        let note = matrix.require_symmetric(method, self.assume_symmetric, self.precond)?;
        if self.facts.precision.narrow_values() {
            let values = matrix.csr.values();
            check_range(self.facts.precision, "the matrix", (0..matrix.nnz()).map(|j| values.get(j)))?;
        }
        let began = Instant::now();
        self.session.rebuild(matrix)?;
        self.matrix = Input::Stored(matrix.clone());
        self.facts = Arc::new(Facts {
            matrix: About::of(&self.matrix),
            note,
            seconds_setup: began.elapsed().as_secs_f64(),
            ..(*self.facts).clone()
        });
        Ok(())
    }

    /// Lets matrix and preconditioner go, and keeps the device.
    pub fn into_device(self) -> DeviceHandle {
        self.device
    }
}

impl Settings {
    fn has_own_operators(&self) -> bool {
        matches!(self.matrix, Input::Applied(_)) || self.own_precond.is_some()
    }

    /// A caller's own operators run in one place only.
    fn check_own(&mut self) -> Result<()> {
        let applied = matches!(self.matrix, Input::Applied(_));
        if !self.has_own_operators() {
            return Ok(());
        }
        let why = "products and preconditioners of a caller's own run on the CPU in double precision";
        let named = self.request.precond;
        if named != Preconditioner::None && applied {
            let reason =
                "it is made of entries, and only products of the matrix are known; pass one of your own";
            return Err(Error::setting("precond", named, reason));
        }
        if named != Preconditioner::None {
            return Err(Error::setting(
                "precond",
                named,
                "there is a preconditioner of the caller's own already",
            ));
        }
        if self.request.precision != Precision::F64 {
            return Err(Error::setting("precision", self.request.precision.name(), why));
        }
        if !matches!(self.request.device.as_str(), "auto" | "cpu") {
            return Err(Error::setting("device", &self.request.device, why));
        }
        let rows = self.matrix.rows();
        if let Some(precond) = self.own_precond.as_ref().filter(|precond| precond.rows() != rows) {
            let (what, got) = ("rows of the preconditioner", precond.rows());
            return Err(Error::Dimension { what, expected: rows, got });
        }
        self.request.device = "cpu".to_owned();
        Ok(())
    }

    /// Refuses a matrix that the method does not take; returns a note on its symmetry.
    fn check_matrix(&mut self) -> Result<Option<String>> {
        let Input::Stored(matrix) = &self.matrix else { return Ok(None) };
        (self.phase)("checking the matrix");
        let Request { precond, precision, .. } = self.request;
        let note = matrix.require_symmetric(self.method.name(), self.assume_symmetric, precond)?;
        if precision.narrow_values() {
            let values = matrix.csr.values();
            check_range(precision, "the matrix", (0..matrix.nnz()).map(|j| values.get(j)))?;
        }
        Ok(note)
    }
}

/// Numbers that vanish or overflow in f32 would make another problem of it.
fn check_range(precision: Precision, what: &str, mut values: impl Iterator<Item = f64>) -> Result<()> {
    let lost = |v: &f64| *v != 0.0 && v.is_finite() && (*v as f32 == 0.0 || (*v as f32).is_infinite());
    match values.find(lost) {
        None => Ok(()),
        Some(value) => Err(Error::setting(
            "precision",
            precision.name(),
            format!("{what} holds {value:e}, which f32 cannot; use precision f64, or scale the system"),
        )),
    }
}
