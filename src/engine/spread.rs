//! Solves of linear systems on several devices of this process: each has a part of the rows, of which the
//! process has all.

use super::device::{DeviceHandle, Settled};
use super::ranks::{Purpose, RankMatrix};
use super::seat::Seat;
use super::settings::{Input, Settings};
use super::team::{NO_TUNING, Team, Turn};
use super::tune::Choosing;
use super::watch::Phases;
use crate::backend::Choice;
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::parallel::{split_front, zeros};
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{MatrixRef, System};
use crate::stop::StoppingRule;
use std::borrow::Cow;

/// Refuses what several devices cannot do.
pub(super) fn check(settings: &Settings, settled: &Settled) -> Result<()> {
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

/// Distributes the matrix over the devices and builds the operators. The first device takes the phases.
pub(super) fn build(
    turn: &Turn,
    devices: &[DeviceHandle],
    settings: &Settings,
    backend: &Choice,
    phases: Phases,
) -> Result<Team<Seat>> {
    let mut parts: Vec<Settings> = devices.iter().map(|_| settings.for_seat()).collect();
    if let Some(first) = parts.first_mut() {
        first.run.phases = phases;
    }
    Team::build(turn, devices, parts, |ranks: &Ranks, device, mut settings| {
        let Input::Stored(matrix) = &settings.matrix else {
            return Err(Error::setting(
                "matrix",
                "",
                "only a matrix with entries is distributed over devices",
            ));
        };
        let purpose = Purpose {
            method: settings.method,
            precond: settings.run.request.precond.clone(),
            precision: settings.run.request.precision,
            assume_symmetric: settings.assume_symmetric,
            partition: settings.partition.clone(),
        };
        let rows = RankMatrix::of_shared(ranks, (matrix, &settings.named), &purpose)?;
        settings.matrix = Input::OfRank(rows);
        Seat::build(device, &mut settings, backend)
    })
}

/// Solves on all devices, and writes the rows of all to `x`.
pub(super) fn solve(
    team: &mut Team<Seat>,
    turn: &Turn,
    system: &System<'_>,
    (rule, checkpoints): (&StoppingRule, &Checkpoints),
    x: &mut [f64],
    observers: &mut [&mut dyn Observer],
) -> Result<()> {
    check_lengths(system, x)?;
    let wants_iterates = observers.iter().any(|observer| observer.wants_iterates());
    let seats = team.states();
    let rows: Vec<RankMatrix> = seats.iter().filter_map(|seat| seat.matrix.of_rank()).cloned().collect();
    let mut divided = Divided::of(&rows, system)?;
    let parts = rows.iter().zip(divided.rows(&rows, x, system.columns)).collect();
    let on_seat = |seat: &mut Seat, (rows, part): (&RankMatrix, Rows<'_>), to: &mut [&mut dyn Observer]| {
        let mut collecting = Collecting { rows, to, wants_iterates };
        let system = System {
            x0: part.x0,
            columns: system.columns,
            ..System::new(MatrixRef::OfRank(&rows.rows), part.b)
        };
        seat.session()?.solve(&system, rule, checkpoints, part.x, &mut [&mut collecting])
    };
    team.run(
        turn,
        parts,
        |_, seat, part| on_seat(seat, part, observers),
        |_, seat, part| on_seat(seat, part, &mut []),
    )?;
    divided.put(&rows, x, system.columns);
    Ok(())
}

/// Checks the lengths of the vectors, which are then cut.
fn check_lengths(system: &System<'_>, x: &[f64]) -> Result<()> {
    let expected = system.matrix.shape().0.saturating_mul(system.columns);
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

/// The rows of a rank of right-hand sides, starts and x.
struct Rows<'a> {
    b: &'a [f64],
    x0: Option<&'a [f64]>,
    x: &'a mut [f64],
}

/// The rows of each rank of the vectors of a system: slices, or copies if the rows of the ranks are no
/// ranges.
struct Divided<'a> {
    b: Vec<Cow<'a, [f64]>>,
    x0: Option<Vec<Cow<'a, [f64]>>>,
    /// Empty if the x of the ranks are slices.
    x: Vec<Vec<f64>>,
}

impl<'a> Divided<'a> {
    fn of(all: &[RankMatrix], system: &System<'a>) -> Result<Divided<'a>> {
        let k = system.columns;
        let picked = |from: &'a [f64]| all.iter().map(|rows| rows.pick(from, k)).collect();
        let in_order = all.iter().all(|rows| rows.partition().is_in_order());
        let copies = all.iter().filter(|_| !in_order);
        let x = copies.map(|rows| zeros(rows.rows().len() * k)).collect::<Result<_>>()?;
        Ok(Divided { b: picked(system.b), x0: system.x0.map(picked), x })
    }

    /// Returns the rows of each rank, with those of `x` if they are slices.
    fn rows<'b>(&'b mut self, all: &[RankMatrix], mut x: &'b mut [f64], k: usize) -> Vec<Rows<'b>> {
        let Divided { b, x0, x: copies } = self;
        let mut copies = copies.iter_mut();
        let of = |(rank, rows): (usize, &RankMatrix)| Rows {
            b: &b[rank],
            x0: x0.as_ref().map(|x0| &*x0[rank]),
            x: copies.next().map_or_else(|| split_front(&mut x, rows.rows().len() * k), |copy| &mut copy[..]),
        };
        all.iter().enumerate().map(of).collect()
    }

    /// Writes the copies to `x`.
    fn put(&self, all: &[RankMatrix], x: &mut [f64], k: usize) {
        for (rows, copy) in all.iter().zip(&self.x) {
            rows.put(copy, x, k);
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
