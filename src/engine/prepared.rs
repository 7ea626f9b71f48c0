//! A prepared solve: device, matrix and preconditioner are kept from one right-hand side to the next.

mod null_space;
mod update;

use super::answer::{Answer, AnswerFacts, MatrixFacts};
use super::device::{DeviceHandle, Opened as OpenedDevice};
use super::many::{Answers, RightHandSides};
use super::range::check_range;
use super::ranks::{PARTITION, RankMatrix};
use super::rhs::RightHandSide;
use super::running::HISTORY_CAPACITY;
use super::seat::{Seat, UPDATE_AGAIN};
use super::session::Recipe;
use super::settings::{Input, Settings};
use super::singular::KnownNullSpace;
use super::spread;
use super::stopping::Stopping;
use super::team::{Seats, Team, on_seats, turn};
use super::tune::Explanation;
use super::watch::{FanOut, Phases};
use crate::error::{Error, Result};
use crate::observe::profile::{self, Phase};
use crate::observe::{Levels, Observer, Recorder};
use crate::parallel::zeros;
use crate::scalar::Precision;
use crate::solve::given::Guarded;
use crate::solve::{Outcome, System};
use crate::stop::StoppingRule;
use crate::text::thousands;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A prepared solve of one matrix on one device or several GPUs, for any number of right-hand sides. It can
/// be moved to another thread.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let a = Matrix::open("poisson2d:50x50")?;
/// let mut cg = Cg::new(&a).precond("ic0").prepare()?;
/// let mut x = vec![0.0; a.rows()];
/// for step in 1..=3 {
///     let b = vec![f64::from(step); a.rows()];
///     assert!(cg.solve_into(&b, &mut x)?.reason.is_success());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Prepared {
    settings: Settings,
    seats: Seats<Seat>,
    /// Whether the last update failed: the matrix of the caller may be the new one.
    is_stale: bool,
    facts: Arc<AnswerFacts>,
    rule: StoppingRule,
    recipe: Recipe,
    /// The number of columns for which products are prepared.
    columns: usize,
    /// The facts for several columns, if `auto` has chosen another backend for them.
    several: Option<Arc<AnswerFacts>>,
    /// The null space of the matrix, once it was looked for.
    null_space: Option<Option<Arc<KnownNullSpace>>>,
}

/// Prints the method, the number of rows, the backend and the device.
impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (method, device) = (self.facts.method.name(), self.describe_devices());
        write!(f, "{method} with {} rows by backend {} on {device}", self.rows(), self.backend())
    }
}

on_seats!(Prepared, facts.labels.common);

impl Prepared {
    pub(super) fn new(mut settings: Settings) -> Result<Prepared> {
        settings.run.precond_fault.take().map_or(Ok(()), Err)?;
        settings.check_own()?;
        settings.stopping.tolerances(settings.run.request.precision)?;
        if let Some(device) = &settings.run.device {
            settings.run.request.device = device.instead_of(&settings.run.request.device)?;
        }
        let settled = match settings.run.settled.take() {
            Some(settled) => settled,
            None => settings.run.request.settle()?,
        };
        settings.check_partition(&settled)?;
        settings.check_projection()?;
        settled.check_device()?;
        let several = !settled.shares.is_empty();
        if several {
            spread::check(&settings, &settled)?;
        }
        let mut devices = match settings.run.device.take() {
            _ if several => Team::<Seat>::open(&settled.shares)?,
            Some(device) => vec![device],
            // An operator of the caller may itself solve systems on the shared device, so this
            // solve opens another one. Ranks that are threads of one process must not wait for
            // the device of another rank.
            None if settings.has_custom_operators() || settings.matrix.of_rank().is_some() => {
                vec![DeviceHandle::open(settled.device)?]
            }
            None => vec![DeviceHandle::shared(settled.device)?],
        };
        let began = Instant::now();
        let (backend, precision) = (settled.backend, settings.run.request.precision);
        let phases = std::mem::take(&mut settings.run.phases);
        let seats = if several {
            settings.check_products()?;
            Seats::Several(spread::build(&turn()?, &devices, &settings, &backend, phases)?)
        } else {
            settings.run.phases = phases;
            let device = devices.swap_remove(0);
            let seat = Seat::build(&device, &mut settings, &backend)?;
            Seats::One(device, seat)
        };
        settings.stopping = settings.run.watch.stopping(settings.stopping);
        settings.run.phases = Phases::default();
        let Seat { recipe, note, labels, .. } = &seats.states()[0];
        let mut labels = labels.clone();
        labels.common.seconds_setup = began.elapsed().as_secs_f64();
        let facts = Arc::new(AnswerFacts {
            method: recipe.method,
            matrix: MatrixFacts::of(&settings.matrix),
            labels,
            levels: seats.states()[0].levels(),
            on_cpu: matches!(seats.devices()[0].0, OpenedDevice::Cpu(_)),
            precision,
            note: note.clone(),
            checkpoint: settings.checkpoints.save.as_ref().map(|(file, _)| file.clone()),
            moves: !matches!(settings.matrix, Input::Applied(_)),
        });
        let (rule, recipe) = (StoppingRule::any([]), recipe.clone());
        let columns = settings.run.request.columns;
        let (is_stale, several) = (false, None);
        let null_space = None;
        let mut ready =
            Prepared { settings, seats, is_stale, facts, rule, recipe, columns, several, null_space };
        ready.label_checkpoints(1);
        ready.rule = ready.rule(&ready.settings.stopping)?;
        Ok(ready)
    }

    fn rule(&self, stopping: &Stopping) -> Result<StoppingRule> {
        let rule = stopping.rule(
            self.settings.matrix.total_rows(),
            self.facts.precision,
            self.facts.method.stride(),
        )?;
        let products = self.own_products();
        let ended = products.map(|product| StoppingRule::ProductEnded(Arc::clone(product.broken())));
        let interrupt = StoppingRule::Interrupt(Arc::clone(&self.settings.run.watch.ended));
        Ok(StoppingRule::any([rule].into_iter().chain(ended).chain([interrupt])))
    }

    /// Returns the products and preconditioners of the caller.
    fn own_products(&self) -> impl Iterator<Item = &Arc<Guarded>> {
        let matrix = match &self.settings.matrix {
            Input::Applied(product) => Some(product),
            Input::Stored(_) | Input::OfRank(_) => None,
        };
        matrix.into_iter().chain(&self.recipe.custom_precond)
    }

    /// Forgets that an observer or a product of the caller has ended the solve before.
    fn begin_solve(&self) {
        self.settings.run.watch.ended.store(false, Ordering::Relaxed);
        self.own_products().for_each(|product| product.begin());
    }

    /// Returns the facts of a solve for `k` columns.
    fn facts(&self, k: usize) -> &Arc<AnswerFacts> {
        self.several.as_ref().filter(|_| k > 1).unwrap_or(&self.facts)
    }

    /// Sets what checkpoints of a solve for `k` columns say about it.
    fn label_checkpoints(&mut self, k: usize) {
        let facts = self.facts(k);
        self.settings.checkpoints.labels = vec![
            ("precision", facts.precision.name().to_owned()),
            ("backend", facts.labels.common.backend.clone()),
            ("preconditioner", facts.labels.precond_identity.clone()),
        ];
        let partition =
            self.settings.matrix.of_rank().map_or(&self.settings.partition, RankMatrix::partition);
        if !partition.is_in_order() {
            self.settings.checkpoints.labels.push((PARTITION, partition.to_string()));
        }
    }

    /// Prepares products with `k` columns. `auto` may choose another backend, for which the matrix is stored
    /// once more.
    fn prepare_columns(&mut self, k: usize) -> Result<()> {
        // A product of the caller is applied column by column.
        if k == self.columns || matches!(self.settings.matrix, Input::Applied(_)) {
            return Ok(());
        }
        if !self.recipe.ordered.is_auto() {
            self.recipe.backend.entry().check_columns(k)?;
        }
        if k > 1 {
            let chosen = self.seats.run(|seat| seat.prepare(k), |seat| seat.prepare(k))?;
            self.several = chosen.into_iter().next().flatten().map(|again| {
                let mut facts = AnswerFacts::clone(&self.facts);
                facts.labels.common.rechosen(again);
                Arc::new(facts)
            });
        }
        self.columns = k;
        Ok(())
    }

    /// Builds the operators again if an error has ended the connection of several devices.
    fn restore(&mut self) -> Result<()> {
        if self.is_stale {
            return Err(Error::setting("matrix", "", UPDATE_AGAIN));
        }
        match &mut self.seats {
            Seats::Several(team) if team.states().is_empty() => {
                let Recipe { ordered, .. } = &self.recipe;
                let phases = Phases::default();
                *team = spread::build(&turn()?, team.devices(), &self.settings, ordered, phases)?;
                (self.columns, self.several) = (1, None);
                self.label_checkpoints(1);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Solves a system on all seats, and writes the answer to `x`.
    fn solve_system(
        &mut self,
        (b, x0, k): (&[f64], Option<&[f64]>, usize),
        x: &mut [f64],
        recorders: &mut [Recorder],
        passed: &mut [&mut dyn Observer],
    ) -> Result<()> {
        self.restore()?;
        self.prepare_columns(k)?;
        if self.several.is_some() {
            self.label_checkpoints(k);
        }
        self.check_right_hand_sides(b)?;
        // Lengths that do not fit are refused below.
        let fits = b.len() == self.settings.matrix.rows() * k;
        let null_space = if self.settings.projects && fits { self.null_space()? } else { None };
        let b = null_space.as_ref().map_or(Cow::Borrowed(b), |known| Cow::Owned(known.space.without(b, k)));
        self.begin_solve();
        let Prepared { settings, seats, rule, .. } = self;
        let system = System { x0, columns: k, ..System::new(settings.matrix.reference(), &b) };
        let prepared = &mut settings.run.watch.observers;
        let observers: &mut [&mut dyn Observer] = &mut [&mut FanOut { recorders, prepared, passed }];
        let _span = profile::begin(Phase::Build);
        let rule = settings.stopping.timed(rule);
        match seats {
            Seats::One(_, seat) => seat.session()?.solve(&system, &rule, &settings.checkpoints, x, observers),
            Seats::Several(team) => {
                spread::solve(team, &turn()?, &system, (&rule, &settings.checkpoints), x, observers)
            }
        }?;
        // A checkpoint belongs to one system.
        settings.checkpoints.resume = None;
        if let Some(known) = null_space {
            known.space.remove(x, k);
        }
        Ok(())
    }

    /// Returns how the last solve ended for a column.
    fn outcome(&mut self, column: usize) -> Result<Outcome> {
        match self.seats.states_mut() {
            [first, ..] => Ok(first.session()?.outcome(column)),
            [] => Err(Error::setting("matrix", "", UPDATE_AGAIN)),
        }
    }

    /// Sets tolerances and limits for later solves.
    pub fn set_stopping(&mut self, stopping: Stopping) -> Result<()> {
        (self.rule, self.settings.stopping) = (self.rule(&stopping)?, stopping);
        Ok(())
    }

    /// Sets a flag that ends later solves once it is true.
    pub(crate) fn cancel_by(&mut self, flag: &Arc<AtomicBool>) -> Result<()> {
        self.set_stopping(Stopping { cancel: Some(Arc::clone(flag)), ..self.settings.stopping.clone() })
    }

    /// Returns the tolerances and limits.
    pub fn stopping(&self) -> &Stopping {
        &self.settings.stopping
    }

    /// Returns the number of rows, which is also the length of right-hand sides and solutions; over
    /// ranks, that of this rank.
    pub fn rows(&self) -> usize {
        self.settings.matrix.rows()
    }

    /// Returns the SpMV backend, with its parameters.
    pub fn backend(&self) -> &str {
        &self.facts.labels.common.backend
    }

    /// Returns the levels of the preconditioner, if it has any: those of `amg`, unless ranks share the solve.
    pub fn levels(&self) -> Option<&Levels> {
        self.facts.levels.as_deref()
    }

    /// Returns the reasons for the backend.
    pub fn explanation(&self) -> &Explanation {
        &self.recipe.explanation
    }

    /// Solves a system. Only the answer is allocated.
    pub fn solve<'b>(&mut self, b: impl Into<RightHandSide<'b>>) -> Result<Answer> {
        self.solve_watched(b, &mut [])
    }

    /// Solves a system with additional observers.
    pub fn solve_watched<'b>(
        &mut self,
        b: impl Into<RightHandSide<'b>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Answer> {
        let b = b.into();
        let mut x = zeros(self.settings.matrix.rows())?;
        let most = self.settings.stopping.most_iterations(self.settings.matrix.total_rows());
        let mut recorder = Recorder::with_capacity(most.min(HISTORY_CAPACITY));
        self.solve_system((b.b, b.x0, 1), &mut x, std::slice::from_mut(&mut recorder), observers)?;
        let outcome = self.outcome(0)?;
        let singular = self.singular(b.b, std::slice::from_ref(&outcome)).pop();
        let mut answer = Answer::new(x, outcome, recorder, Arc::clone(&self.facts), &b).singular(singular);
        if let Some(rank) = self.settings.matrix.of_rank() {
            answer.combine_errors(rank.ranks());
        }
        Ok(answer)
    }

    /// Solves the systems of several right-hand sides at once: one product of the matrix and all columns
    /// in an iteration. Each column has its own scalars, end and verdict; one that contains NaN or
    /// infinity ends with [`StopReason::NotSolved`](crate::stop::StopReason::NotSolved) and does not
    /// touch the other columns.
    ///
    /// Prepare with [`columns`](super::SystemSettings::columns) for backend `auto` to choose for several
    /// columns. If it has chosen a backend that multiplies one vector at a time, the first call prepares
    /// another backend, and the matrix is stored twice.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let a = Matrix::open("poisson2d:30x30")?;
    /// let mut cg = Cg::new(&a).columns(3).prepare()?;
    /// let b: Vec<f64> = (0..3 * a.rows()).map(|i| (i % 7) as f64).collect(); // n x 3, row-major
    /// let answers = cg.solve_many(RightHandSides::new(&b, 3))?;
    /// assert!(answers.converged() && answers.x().len() == b.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn solve_many<'b>(&mut self, b: impl Into<RightHandSides<'b>>) -> Result<Answers> {
        self.solve_many_watched(b, &mut [])
    }

    /// Solves several systems at once with additional observers, which receive the batches of each column.
    pub(crate) fn solve_many_watched<'b>(
        &mut self,
        b: impl Into<RightHandSides<'b>>,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Answers> {
        let b = b.into();
        let rows = self.settings.matrix.rows();
        let entries = rows.checked_mul(b.k).filter(|entries| *entries == b.b.len());
        let Some(entries) = entries.filter(|_| b.k > 0) else {
            let (length, rows) = (thousands(b.b.len() as u64), thousands(rows as u64));
            let reason =
                format!("{} columns for a matrix with {rows} rows do not have {length} numbers", b.k);
            return Err(Error::setting("rhs", b.description, reason));
        };
        let mut x = zeros(entries)?;
        let most = self.settings.stopping.most_iterations(self.settings.matrix.total_rows());
        let most = most.min(HISTORY_CAPACITY / b.k.min(HISTORY_CAPACITY));
        let mut recorders = Recorder::of_columns(b.k, most);
        self.solve_system((b.b, b.x0, b.k), &mut x, &mut recorders, observers)?;
        let outcomes = (0..b.k).map(|column| self.outcome(column)).collect::<Result<Vec<_>>>()?;
        let singular = self.singular(b.b, &outcomes);
        Ok(Answers::new(x, outcomes, recorders, self.facts(b.k), &b).singular(singular))
    }

    /// Refuses right-hand sides that vectors in single precision cannot hold.
    fn check_right_hand_sides(&self, b: &[f64]) -> Result<()> {
        let checked = match self.facts.precision {
            Precision::F32 => check_range(self.facts.precision, "the right-hand side", b.iter().copied()),
            _ => Ok(()),
        };
        match self.settings.matrix.of_rank() {
            Some(rank) => rank.ranks().agreed(checked),
            None => checked,
        }
    }

    /// Solves a system, and writes the solution to `x`. After the first solve, later solves allocate no
    /// device memory; on the CPU, those that converge allocate no memory at all. The first solve with a
    /// doubtful error stores a factor of the matrix.
    pub fn solve_into<'b>(&mut self, b: impl Into<RightHandSide<'b>>, x: &mut [f64]) -> Result<Outcome> {
        let b = b.into();
        self.solve_system((b.b, b.x0, 1), x, &mut [], &mut [])?;
        self.outcome(0)
    }
}
