//! A prepared solve on several devices of this process: each has a part of the rows, of which
//! the process has all.

use super::device::{DeviceHandle, Request, Settled};
use super::matrix::Matrix;
use super::rank_session;
use super::ranks::{self, Partition, Purpose, RankMatrix};
use super::session::{Recipe, Session, UPDATE_AGAIN};
use super::settings::{Input, Settings};
use super::team::{NO_TUNING, Team, Turn, turn};
use super::tune::Choosing;
use super::watch::Phases;
use crate::backend::Choice;
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::observe::report::Parts;
use crate::observe::{Batch, Observer};
use crate::parallel::{split_front, zeros};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{MatrixRef, Method, Outcome, System};
use crate::stop::StoppingRule;
use std::borrow::Cow;

/// What a rank keeps.
struct RankState {
    matrix: RankMatrix,
    session: Box<dyn Session>,
    built: Built,
}

/// What a rank has built, for the report.
#[derive(Clone)]
struct Built {
    recipe: Recipe,
    note: Option<String>,
    labels: Labels,
}

/// The devices, the backends and the preconditioner of all ranks, as reports name them.
#[derive(Clone)]
pub(super) struct Labels {
    pub device: String,
    pub backend: String,
    pub precond: String,
    /// The preconditioner as checkpoints name it.
    pub precond_identity: String,
    pub parts: Parts,
}

impl Labels {
    /// Describes what the ranks of a matrix have chosen. All ranks call this together.
    pub(crate) fn of(matrix: &RankMatrix, device: &DeviceHandle, recipe: &Recipe) -> Result<Labels> {
        let parts = match matrix.partition() {
            partition if partition.is_in_order() => String::new(),
            partition => format!(" {}", partition.describe()),
        };
        Ok(Labels {
            device: device.describe_parts(matrix.ranks(), &parts),
            backend: ranks::backend_label(matrix.ranks(), &recipe.backend.label())?,
            precond: matrix.precond_label(),
            precond_identity: matrix.precond_identity(),
            parts: matrix.parts(recipe.precision),
        })
    }
}

/// The choices by which the ranks are made.
struct TeamRecipe {
    method: Method,
    request: Request,
    backend: Choice,
    assume_symmetric: bool,
    partition: Partition,
    /// The name of the matrix that was prepared.
    named: String,
}

impl TeamRecipe {
    /// Builds what a rank keeps. All ranks call this together.
    fn build(
        &self,
        matrix: &Matrix,
        (ranks, device): (&Ranks, &DeviceHandle),
        phases: Phases,
    ) -> Result<RankState> {
        let TeamRecipe { method, request, backend, assume_symmetric, partition, named } = self;
        let (precond, precision) = (request.precond.clone(), request.precision);
        let (method, assume_symmetric, partition) = (*method, *assume_symmetric, partition.clone());
        let purpose = Purpose { method, precond, precision, assume_symmetric, partition };
        let matrix = RankMatrix::of_shared(ranks, (matrix, named), &purpose)?;
        let mut settings = Settings::new(method, Input::OfRank(matrix.clone()));
        (settings.run.request, settings.run.phases) = (request.clone(), phases);
        let (session, recipe, note) = rank_session::session(device, &matrix, &mut settings, backend)?;
        let labels = Labels::of(&matrix, device, &recipe)?;
        Ok(RankState { matrix, session, built: Built { recipe, note, labels } })
    }
}

struct SpreadSession {
    devices: Vec<DeviceHandle>,
    order: TeamRecipe,
    matrix: Matrix,
    /// None after a failure; the next solve makes the ranks again.
    team: Option<Team<RankState>>,
    /// Whether the last update failed: the matrix is that of the update, and the caller may have the old one.
    is_stale: bool,
}

/// Refuses what several devices cannot do.
fn check(settings: &Settings, settled: &Settled) -> Result<()> {
    if let Input::OfRank(_) = settings.matrix {
        let reason = "each rank has one device, and this is a list; name one";
        return Err(Error::setting("device", settled.names(), reason));
    }
    if settings.run.device.is_some() {
        let reason = "the solve has an open device already, and this is a list; leave out one of the two";
        return Err(Error::setting("device", settled.names(), reason));
    }
    if settings.has_custom_operators() {
        let reason = "products and preconditioners of the caller run on one device";
        return Err(Error::setting("device", settled.names(), reason));
    }
    if settings.run.choosing == Choosing::Measure {
        return Err(Error::setting("tune", "", NO_TUNING));
    }
    Ok(())
}

/// Opens the devices on which a solve is prepared.
pub(super) fn open(settings: &Settings, settled: &Settled) -> Result<Vec<DeviceHandle>> {
    check(settings, settled)?;
    Team::<RankState>::open(&settled.shares)
}

/// What is built on devices, with a note on the symmetry of the matrix, and labels for the report over ranks.
pub(super) type Opened = (Box<dyn Session>, Recipe, Option<String>, Option<Labels>);

/// Distributes the matrix over the devices and builds the operators.
pub(super) fn session(devices: &[DeviceHandle], settings: &mut Settings, backend: &Choice) -> Result<Opened> {
    let Input::Stored(matrix) = settings.matrix.clone() else {
        return Err(Error::setting("matrix", "", "only a matrix with entries is distributed over devices"));
    };
    settings.check_products()?;
    let order = TeamRecipe {
        method: settings.method,
        request: settings.run.request.clone(),
        backend: backend.clone(),
        assume_symmetric: settings.assume_symmetric,
        partition: settings.partition.clone(),
        named: settings.named.clone(),
    };
    let mut session = SpreadSession { devices: devices.to_vec(), order, matrix, team: None, is_stale: false };
    let team = session.build(&turn()?, std::mem::take(&mut settings.run.phases))?;
    // A backend that multiplies one vector at a time limits all ranks.
    let limited = |state: &&RankState| state.built.recipe.backend.entry().check_columns(2).is_err();
    let states = team.states();
    let Built { mut recipe, note, labels } = states[0].built.clone();
    if let Some(limited) = states.iter().find(limited) {
        recipe.backend = limited.built.recipe.backend.clone();
    }
    session.team = Some(team);
    Ok((Box::new(session), recipe, note, Some(labels)))
}

impl SpreadSession {
    /// Distributes the matrix and builds the operators.
    fn build(&self, turn: &Turn, phases: Phases) -> Result<Team<RankState>> {
        let mut parts = vec![phases];
        parts.resize_with(self.devices.len(), Phases::default);
        let (order, matrix) = (&self.order, &self.matrix);
        Team::build(turn, &self.devices, parts, |ranks, device, phases| {
            order.build(matrix, (ranks, device), phases)
        })
    }

    /// Solves on all ranks: `solve` gets the session, the system, the x and the observers of a rank. Returns
    /// the outcome of the first rank.
    fn solve_on_all<R: Send>(
        &mut self,
        (system, k): (&System<'_>, usize),
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
        solve: impl Fn(&mut dyn Session, &System<'_>, &mut [f64], &mut [&mut dyn Observer]) -> Result<R> + Sync,
    ) -> Result<R> {
        self.check_lengths(system, k, x)?;
        if self.is_stale {
            return Err(Error::setting("matrix", "", UPDATE_AGAIN));
        }
        let turn = turn()?;
        let mut team = match self.team.take() {
            Some(team) => team,
            None => self.build(&turn, Phases::default())?,
        };
        let wants_iterates = observers.iter().any(|observer| observer.wants_iterates());
        let mut divided = Divided::of(team.states(), (system, k))?;
        let parts = divided.rows(team.states(), x, k);
        let on_rank = |state: &mut RankState, part: Rows<'_>, observers: &mut [&mut dyn Observer]| {
            let matrix = MatrixRef::OfRank(&state.matrix.rows);
            let system = System { matrix, b: part.b, x0: part.x0 };
            solve(&mut *state.session, &system, part.x, observers)
        };
        let found = team.run(
            &turn,
            parts,
            |_, state, part| {
                let rows = state.matrix.clone();
                let mut collecting = Collecting { rows: &rows, to: observers, wants_iterates };
                on_rank(state, part, &mut [&mut collecting])
            },
            |_, state, part| {
                let rows = state.matrix.clone();
                let mut collecting = Collecting { rows: &rows, to: &mut [], wants_iterates };
                on_rank(state, part, &mut [&mut collecting])
            },
        )?;
        divided.put(team.states(), x, k);
        self.team = Some(team);
        let Some(first) = found.into_iter().next() else { unreachable!("there are several devices") };
        Ok(first)
    }

    /// Checks the lengths of the vectors, which are then cut.
    fn check_lengths(&self, system: &System<'_>, k: usize, x: &[f64]) -> Result<()> {
        let expected = self.matrix.rows().saturating_mul(k);
        let lengths = [
            ("entries of the right-hand side", system.b.len()),
            ("entries of the start", system.x0.map_or(expected, <[f64]>::len)),
            ("entries of the answer", x.len()),
        ];
        match lengths.into_iter().find(|(_, got)| *got != expected) {
            Some((what, got)) => Err(Error::Dimension { what, expected, got }),
            None => Ok(()),
        }
    }
}

/// The rows of a rank of right-hand sides, starts and x.
struct Rows<'a> {
    b: &'a [f64],
    x0: Option<&'a [f64]>,
    x: &'a mut [f64],
}

/// The rows of each rank of the vectors of a system with `k` columns: slices, or copies if the rows of
/// the ranks are no ranges.
struct Divided<'a> {
    b: Vec<Cow<'a, [f64]>>,
    x0: Option<Vec<Cow<'a, [f64]>>>,
    /// Empty if the x of the ranks are slices.
    x: Vec<Vec<f64>>,
}

impl<'a> Divided<'a> {
    fn of(states: &[RankState], (system, k): (&System<'a>, usize)) -> Result<Divided<'a>> {
        let picked = |all: &'a [f64]| states.iter().map(|state| state.matrix.pick(all, k)).collect();
        let in_order = states.iter().all(|state| state.matrix.partition().is_in_order());
        let copies = states.iter().filter(|_| !in_order);
        let x = copies.map(|state| zeros(state.matrix.rows().len() * k)).collect::<Result<_>>()?;
        Ok(Divided { b: picked(system.b), x0: system.x0.map(picked), x })
    }

    /// Returns the rows of each rank, with those of `x` if they are slices.
    fn rows<'b>(&'b mut self, states: &[RankState], mut x: &'b mut [f64], k: usize) -> Vec<Rows<'b>> {
        let Divided { b, x0, x: copies } = self;
        let mut copies = copies.iter_mut();
        let of = |(rank, state): (usize, &RankState)| Rows {
            b: &b[rank],
            x0: x0.as_ref().map(|x0| &*x0[rank]),
            x: copies
                .next()
                .map_or_else(|| split_front(&mut x, state.matrix.rows().len() * k), |copy| &mut copy[..]),
        };
        states.iter().enumerate().map(of).collect()
    }

    /// Writes the copies to `x`.
    fn put(&self, states: &[RankState], x: &mut [f64], k: usize) {
        for (state, copy) in states.iter().zip(&self.x) {
            state.matrix.put(copy, x, k);
        }
    }
}

/// Passes what the first rank observes to the observers of the solve, with the x of all ranks.
struct Collecting<'a, 'o> {
    rows: &'a RankMatrix,
    to: &'a mut [&'o mut dyn Observer],
    wants_iterates: bool,
}

impl Observer for Collecting<'_, '_> {
    fn batch(&mut self, batch: &Batch<'_>) {
        self.to.iter_mut().for_each(|observer| observer.batch(batch));
    }

    fn phase(&mut self, what: &'static str) {
        self.to.iter_mut().for_each(|observer| observer.phase(what));
    }

    fn wants_iterates(&self) -> bool {
        self.wants_iterates
    }

    fn iterate(&mut self, iteration: usize, x: &[f64]) {
        // The rows of all ranks fit into memory, which has the x of the solve.
        if let Ok(Some(x)) = self.rows.collect(x) {
            let wanting = self.to.iter_mut().filter(|observer| observer.wants_iterates());
            wanting.for_each(|observer| observer.iterate(iteration, &x));
        }
    }
}

impl Session for SpreadSession {
    fn solve(
        &mut self,
        system: &System<'_>,
        rule: &StoppingRule,
        checkpoints: &Checkpoints,
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome> {
        self.solve_on_all((system, 1), x, observers, |session, system, x, observers| {
            session.solve(system, rule, checkpoints, x, observers)
        })
    }

    fn solve_columns(
        &mut self,
        (system, k, rule, checkpoints): (&System<'_>, usize, &StoppingRule, &Checkpoints),
        x: &mut [f64],
        observers: &mut [&mut dyn Observer],
    ) -> Result<Vec<Outcome>> {
        self.solve_on_all((system, k), x, observers, |session, system, x, observers| {
            session.solve_columns((system, k, rule, checkpoints), x, observers)
        })
    }

    fn rebuild(&mut self, matrix: &Matrix) -> Result<()> {
        // The old operators are freed first: memory need not hold both.
        self.team = None;
        let turn = turn()?;
        (self.matrix, self.is_stale) = (matrix.clone(), true);
        self.team = Some(self.build(&turn, Phases::default())?);
        self.is_stale = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
