//! A solve to a checkpoint and back.

use super::scales::scale;
use super::{Solve, Task};
use crate::device::{Device, SlotState};
use crate::error::Result;
use crate::files;
use crate::observe::{Batch, Observer};
use crate::scalar::Scalar;
use crate::solve::checkpoint::{Identity, Reader, Saved, Writer, identity};
use crate::solve::recurrence::{Operators, Recorded, Recurrence};
use crate::spectrum::MOST_COEFFICIENTS;
use crate::stop::{StopCode, StopReason};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Iterations for whose history there is room at the start.
const ROOM: usize = 1 << 16;

/// More seconds than any solve has taken.
const LONGEST: f64 = 1e12;
/// What a device may have stopped for when a solve was saved.
const ENDED: [StopCode; 3] = [StopCode::Converged, StopCode::LeastSquares, StopCode::Limit];

/// Saves a solve.
pub(super) struct Keeper {
    path: PathBuf,
    every: Duration,
    identity: Identity,
    /// When the last checkpoint was due, on the clock of the solve.
    last: Duration,
    /// The newest complete checkpoint that could not be given its name.
    kept: Option<PathBuf>,
}

/// What observers were told, batch by batch.
#[derive(Default)]
pub(super) struct Log {
    /// Whether anything was told at all, kept or not.
    begun: bool,
    residuals: Vec<f64>,
    /// Residuals in each batch, and the seconds at its end.
    batches: Vec<f64>,
}

impl Log {
    pub fn is_empty(&self) -> bool {
        !self.begun
    }

    pub fn add(&mut self, residuals: &[f64], seconds: f64, keep: bool) {
        self.begun = true;
        if keep {
            self.residuals.extend_from_slice(residuals);
            self.batches.extend([residuals.len() as f64, seconds]);
        }
    }

    /// Tells it all again.
    fn replay(
        &self,
        observers: &mut [&mut dyn Observer],
        tolerance: Option<f64>,
    ) -> std::result::Result<(), String> {
        let (mut done, mut from) = (0, 0.0);
        for batch in self.batches.as_chunks::<2>().0 {
            let end = (batch[0] as usize).saturating_add(done);
            let residuals = self.residuals.get(done..end).ok_or("its history has a hole")?;
            // The first batch is the initial residual alone.
            let batch =
                Batch { first: done.saturating_sub(1), residuals, seconds: (from, batch[1]), tolerance };
            observers.iter_mut().for_each(|o| o.batch(&batch));
            (done, from) = (end, batch.seconds.1);
        }
        if done == self.residuals.len() { Ok(()) } else { Err("its history has a hole".to_owned()) }
    }
}

/// What saves the solve and what it goes on from, as far as they were asked for.
pub(super) fn prepare<M: Recurrence<D, T>, D: Device, T: Scalar>(
    device: &D,
    operators: &Operators<D, T>,
    task: &Task<'_>,
) -> Result<(Option<Keeper>, Option<Saved>)> {
    let asked = task.checkpoints;
    if asked.save.is_none() && asked.resume.is_none() {
        return Ok((None, None));
    }
    let name = device.name();
    let kind = name.split(':').next().unwrap_or_default().to_owned();
    let with = if operators.m.is_some() { "preconditioned" } else { "not preconditioned" };
    let vectors = format!("{}, {with}", T::NAME);
    let state = format!("version {}", M::STATE);
    let own = [
        ("method", task.name.to_owned()),
        ("state of the method", state),
        ("device", kind),
        ("hardware", device.hardware()),
        ("vectors", vectors),
    ];
    let identity = identity(task.system, own, asked)?;
    let saved = asked.resume.as_deref().map(Saved::read).transpose()?;
    saved.as_ref().map(|saved| saved.check(&identity)).transpose()?;
    if let Some((path, _)) = &asked.save {
        files::remove_leftovers(path);
    }
    let keeper = asked.save.clone().map(|(path, every)| Keeper {
        path,
        every,
        identity,
        last: Duration::ZERO,
        kept: None,
    });
    Ok((keeper, saved))
}

/// Whether a checkpoint of this end is of use: more iterations may follow, or the verdict stands again. What failed
/// leaves the checkpoint before it alone.
fn worth_saving(reason: &StopReason) -> bool {
    matches!(
        reason,
        StopReason::Converged
            | StopReason::LeastSquares { .. }
            | StopReason::Stagnated { .. }
            | StopReason::IterationLimit { .. }
            | StopReason::TimeLimit { .. }
            | StopReason::Interrupted
    )
}

impl<T: Scalar> Solve<'_, '_, T> {
    /// The counts in a checkpoint.
    fn counts(&mut self) -> [&mut usize; 4] {
        let now = &mut self.now;
        [&mut now.iteration, &mut now.run_began, &mut now.improved_at, &mut self.restarts]
    }

    /// The numbers in a checkpoint, besides the seconds.
    fn numbers(&mut self) -> [&mut f64; 6] {
        [
            &mut self.now.residual,
            &mut self.recursive,
            &mut self.began_with,
            &mut self.lowest,
            &mut self.energy,
            &mut self.energy_mark,
        ]
    }

    /// From now on the solve is saved, if somebody asked for that.
    pub(super) fn keep_by(&mut self, keeper: Option<Keeper>) {
        let Some(mut keeper) = keeper else { return };
        keeper.last = self.now.elapsed;
        let room = self.rule.most_iterations().unwrap_or(ROOM).min(ROOM) + 1;
        self.log.residuals.reserve(room);
        self.log.batches.reserve(2 * room);
        self.keeper = Some(keeper);
    }

    /// Saves the solve if an interval has passed.
    pub(super) fn save_in_time<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        work: &M,
        state: &SlotState,
    ) {
        let running = StopCode::from_device(state.done[0]) == StopCode::Running;
        let elapsed = self.now.elapsed;
        let due =
            self.keeper.as_ref().is_some_and(|keeper| elapsed >= keeper.last.saturating_add(keeper.every));
        if due && running {
            self.save(device, work, state);
        }
    }

    /// Saves the solve where a run ends, if it ended well.
    pub(super) fn save_at_end<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        work: &M,
        state: &SlotState,
        reason: &StopReason,
    ) {
        if self.keeper.is_some() && worth_saving(reason) {
            self.save(device, work, state);
        }
    }

    fn save<M: Recurrence<D, T>, D: Device>(&mut self, device: &D, work: &M, state: &SlotState) {
        let Some(mut keeper) = self.keeper.take() else { return };
        let began = Instant::now();
        let mut length = 0;
        let written = files::replace(&keeper.path, files::Content::Result, true, |file| {
            length = self.write(Writer::new(file, &keeper.identity)?, device, work, state)?;
            Ok(())
        });
        // One complete checkpoint is enough.
        let kept = written.as_ref().err().and_then(files::kept).map(Path::to_owned);
        if (written.is_ok() || kept.is_some())
            && let Some(older) = std::mem::replace(&mut keeper.kept, kept)
        {
            let _ = std::fs::remove_file(older);
        }
        let (path, iteration) = (keeper.path.display(), self.now.iteration);
        match written {
            Ok(()) => log::info!(
                "checkpoint of iteration {iteration}: {length} bytes to {path} in {:.2} s",
                began.elapsed().as_secs_f64()
            ),
            Err(e) => log::warn!(
                "the checkpoint of iteration {iteration} could not be written to {path}: {e}; one that was there before \
                 stays, and the solve goes on"
            ),
        }
        // Where writing takes longer than the interval, iterations still get their turn.
        keeper.last = self.earlier + self.began.elapsed();
        self.keeper = Some(keeper);
    }

    fn write<M: Recurrence<D, T>, D: Device>(
        &mut self,
        mut to: Writer<impl Write>,
        device: &D,
        work: &M,
        state: &SlotState,
    ) -> io::Result<u64> {
        for count in self.counts() {
            to.count(*count)?;
        }
        let numbers: Vec<f64> = self.numbers().iter().map(|number| **number).collect();
        to.vector(&numbers)?;
        to.vector(&[self.now.elapsed.as_secs_f64()])?;
        let coefficients: Vec<f64> = self.space.coefficients.iter().flat_map(|c| [c.0, c.1]).collect();
        to.vector(&coefficients)?;
        to.vector(&self.log.residuals)?;
        to.vector(&self.log.batches)?;
        to.vector(&self.space.x)?;
        to.vector(&state.values)?;
        to.count(state.done[0] as usize)?;
        to.count(state.counts[0] as usize)?;
        let host = &mut self.space.host;
        for vector in work.carried() {
            device.download(vector, host).map_err(io::Error::other)?;
            to.vector(host)?;
        }
        to.finish()
    }

    /// Fills a workspace, and the host's copy of its scalars, as a checkpoint left them.
    pub(super) fn go_on<M: Recurrence<D, T>, D: Device>(
        &mut self,
        device: &D,
        mut work: M,
        state: &mut SlotState,
        saved: &Saved,
    ) -> Result<M> {
        let mut from = saved.state();
        let n = self.space.x.len();
        state.clear();
        (self.read_host(&mut from, state).and_then(|()| self.check_counts(state, M::STRIDE)))
            .map_err(|reason| saved.fault(reason))?;
        // What is true of x is computed from x, whatever a file says.
        self.measure_again(device);
        if !self.truth.is_finite() {
            return Err(saved.fault("its x is not finite, or b - A x is not".to_owned()));
        }
        self.scale = scale(&self.space.r);
        let tolerance = self.rule.residual_tolerance(&self.now.norms);
        self.log.replay(self.observers, tolerance).map_err(|reason| saved.fault(reason))?;
        for vector in work.carried_mut() {
            let host = from.vector::<T>(n).map_err(|reason| saved.fault(reason))?;
            device.upload(&host, vector)?;
        }
        from.finish().map_err(|reason| saved.fault(reason))?;
        self.bound::<M, D>(state);
        let more = self.rule.most_iterations().is_none_or(|most| self.now.iteration < most);
        let reopened = more && StopCode::from_device(state.done[0]) == StopCode::Limit;
        if reopened {
            state.done[0] = StopCode::Running as u32;
        }
        device.write(state, work.slots_mut())?;
        let rest = M::rest(self.now.iteration - self.now.run_began);
        if let (true, Some(rest)) = (reopened, rest) {
            // Recorded as whole steps are, which decides on roundings.
            let mut recorded = Recorded::new(device, work, rest)?;
            recorded.replay(device, 1)?;
            work = recorded.into_work();
            device.read(work.slots(), state)?;
        }
        let seconds = self.now.elapsed.as_secs_f64();
        log::info!("going on from iteration {}, after {seconds:.2} s", self.now.iteration);
        Ok(work)
    }

    /// All of a checkpoint but what the device holds.
    fn read_host(&mut self, from: &mut Reader<'_>, state: &mut SlotState) -> std::result::Result<(), String> {
        for count in self.counts() {
            *count = from.count()?;
        }
        let numbers = from.vector::<f64>(self.numbers().len())?;
        self.numbers().into_iter().zip(numbers).for_each(|(number, saved)| *number = saved);
        let seconds = from.vector::<f64>(1)?[0];
        if !(0.0..=LONGEST).contains(&seconds) {
            return Err(format!("its time is {seconds} s"));
        }
        let elapsed = Duration::from_secs_f64(seconds);
        (self.earlier, self.now.elapsed) = (elapsed, elapsed);
        self.earlier_iterations = self.now.iteration;
        self.pace = super::Pace::since(&self.now);
        let coefficients = from.list::<f64>()?;
        self.space.coefficients.extend(coefficients.as_chunks::<2>().0.iter().map(|c| (c[0], c[1])));
        self.log = Log { begun: true, residuals: from.list()?, batches: from.list()? };
        self.space.x = from.vector(self.space.x.len())?;
        state.values = from.vector(state.values.len())?;
        let narrow = |count: usize| u32::try_from(count).map_err(|_| format!("{count} is out of range"));
        state.done[0] = narrow(from.count()?)?;
        state.counts[0] = narrow(from.count()?)?;
        Ok(())
    }

    /// Refuses counts that no solve has saved.
    fn check_counts(&self, state: &SlotState, stride: usize) -> std::result::Result<(), String> {
        let now = &self.now;
        let run = now.run_began..=now.iteration;
        let whole_step = || (now.iteration - now.run_began).is_multiple_of(stride);
        let fits = state.counts[0] as usize == now.iteration
            && now.run_began <= now.iteration
            && (now.run_began == 0 || self.restarts > 0)
            && run.contains(&now.improved_at)
            // But for the first one, a run gains something, or is the last.
            && self.restarts <= now.iteration + 1
            && self.space.coefficients.len() <= now.iteration.min(MOST_COEFFICIENTS)
            && self.log.residuals.len() == now.iteration + 1
            && match state.done[0] {
                done if done == StopCode::Running as u32 => whole_step(),
                done => ENDED.iter().any(|code| *code as u32 == done),
            };
        if fits { Ok(()) } else { Err("its counts of iterations contradict each other".to_owned()) }
    }
}
