//! The loop of every method: runs iterations in batches, reads their residuals, notifies observers, and
//! applies the stopping rules.
//!
//! A [`Run`] has k columns. Each column counts its iterations and ends separately: by a code of the
//! device, or by a rule on the host. In the second case the loop writes a code to the device, and the
//! remaining columns continue. Once every column has ended, the family of the method judges the
//! results and may start columns again ([`Family::judge`]): linear systems from the true residual,
//! fixed points with a lower target.

use super::pace::Pace;
use crate::device::{RING, SlotState};
use crate::error::Result;
use crate::observe::profile::{self, Span};
use crate::observe::{Batch, Observer, Phase};
use crate::stop::{PROGRESS, Progress, StopCode, StopReason, StoppingRule};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Executes the iterations and writes codes, counts and counted values to a [`SlotState`].
pub(super) trait Iterations {
    /// Performs work before the next iteration, and returns how many iterations may follow until
    /// this must be called again.
    fn prepare(&mut self, iteration: usize, state: &SlotState) -> Result<usize>;

    /// Returns whether iterations after the end of all columns take no time.
    fn stops_early(&self) -> bool;

    /// Returns the stop on which all ranks of a distributed device agree; see
    /// [`agree::stop`](super::agree::stop). Every stop that the host decides is passed to this function.
    fn agree(&self, stop: Option<Stop>) -> Option<Stop>;

    /// Returns the least number of iterations that a rank of a distributed device is about to
    /// run. All ranks run as many.
    fn least(&self, iterations: usize) -> usize;

    /// Runs this many iterations, or fewer if all columns end before, and updates the state.
    fn advance(&mut self, iterations: usize, state: &mut SlotState) -> Result<()>;

    /// Writes the codes of the state, after a rule has ended a column while at least one column continues.
    fn write(&mut self, state: &SlotState) -> Result<()>;
}

/// The part of the loop that depends on the family of methods.
pub(super) trait Family<S: Iterations> {
    /// Returns the residual after an iteration of a column, and whether the iteration made progress that
    /// the residual does not show.
    fn counted(&mut self, column: usize, iteration: usize, state: &SlotState) -> (f64, bool);

    /// Called after each batch.
    fn after_batch(&mut self, _run: &mut Run<'_, '_>, _source: &mut S, _state: &SlotState) -> Result<()> {
        Ok(())
    }

    /// Judges the columns that have ended. Returns whether some of them continue; their `stop`
    /// is reset to `None`.
    fn judge(&mut self, run: &mut Run<'_, '_>, source: &mut S, state: &mut SlotState) -> Result<bool>;
}

/// Why the iterations of a column have ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// The device has set this code for the column.
    Code(StopCode),
    /// A stopping rule applies.
    Rule(StopReason),
}

/// The progress of a column.
pub(super) struct Track {
    pub now: Progress,
    /// The smallest residual, by which [`Progress::improved_at`] is determined.
    pub lowest: f64,
    /// The tolerance that observers receive, and the target of the current iterations.
    pub tolerance: Option<f64>,
    pub aim: Option<f64>,
    pub stop: Option<Stop>,
    pub pace: Pace,
    pub log: Log,
}

impl Track {
    /// Resets the column to the state before its first iteration, and keeps its allocated memory.
    pub(crate) fn begin(&mut self, now: Progress, tolerance: Option<f64>) {
        (self.now, self.lowest) = (now, now.residual);
        (self.tolerance, self.aim) = (tolerance, tolerance);
        (self.stop, self.pace) = (None, Pace::default());
        self.log.clear();
    }
}

impl Default for Track {
    fn default() -> Track {
        let norms = crate::stop::Norms { b: 1.0, initial: 1.0 };
        let elapsed = Duration::ZERO;
        Track {
            now: Progress { iteration: 0, residual: 1.0, norms, run_began: 0, improved_at: 0, elapsed },
            lowest: 1.0,
            tolerance: None,
            aim: None,
            stop: None,
            pace: Pace::default(),
            log: Log::default(),
        }
    }
}

/// The history of a column as sent to observers, batch by batch; stored if a checkpoint needs it.
#[derive(Default)]
pub(super) struct Log {
    /// Whether observers have received a batch, recorded or not.
    pub begun: bool,
    pub records: bool,
    pub residuals: Vec<f64>,
    /// The number of residuals in each batch, and the seconds at its end.
    pub batches: Vec<f64>,
}

impl Log {
    /// Empties the history.
    fn clear(&mut self) {
        self.begun = false;
        self.residuals.clear();
        self.batches.clear();
    }

    fn add(&mut self, residuals: &[f64], seconds: f64) {
        self.begun = true;
        if self.records {
            self.residuals.extend_from_slice(residuals);
            self.batches.extend([residuals.len() as f64, seconds]);
        }
    }
}

/// The columns of a run, and the residuals of a batch; reused in later solves.
#[derive(Default)]
pub(super) struct Tracks {
    columns: Vec<Track>,
    residuals: Vec<f64>,
}

impl Tracks {
    pub(crate) fn column(&self, column: usize) -> &Track {
        &self.columns[column]
    }
}

/// A run in progress.
pub(super) struct Run<'a, 'o> {
    pub tracks: &'a mut [Track],
    residuals: &'a mut Vec<f64>,
    pub rule: Cow<'a, StoppingRule>,
    pub observers: &'a mut [&'o mut dyn Observer],
    began: Instant,
    /// Time that earlier processes have spent on the solve.
    pub earlier: Duration,
    /// Time that does not count as iterating.
    pub checking: Duration,
}

impl<'a, 'o> Run<'a, 'o> {
    pub(crate) fn new(
        tracks: &'a mut Tracks,
        k: usize,
        rule: Cow<'a, StoppingRule>,
        observers: &'a mut [&'o mut dyn Observer],
    ) -> Run<'a, 'o> {
        tracks.columns.resize_with(k, Track::default);
        tracks.residuals.clear();
        tracks.residuals.reserve(RING);
        let Tracks { columns, residuals } = tracks;
        let (began, zero) = (Instant::now(), Duration::ZERO);
        Run { tracks: columns, residuals, rule, observers, began, earlier: zero, checking: zero }
    }

    /// Starts the clock.
    pub(crate) fn start_clock(&mut self) {
        self.began = Instant::now();
    }

    /// Returns the time on the clock.
    pub(crate) fn elapsed(&self) -> Duration {
        (self.earlier + self.began.elapsed()).saturating_sub(self.checking)
    }

    /// Begins a phase other than iterations, and notifies observers.
    pub(crate) fn phase(&mut self, phase: Phase, what: &'static str) -> Span {
        self.observers.iter_mut().for_each(|o| o.phase(what));
        profile::begin(phase)
    }

    /// Notifies observers of the residual before the first iteration of a column.
    pub(crate) fn notify_start(&mut self, column: usize) {
        let residual = self.tracks[column].now.residual;
        self.residuals.clear();
        self.residuals.push(residual);
        self.notify(column, 0, (0.0, 0.0));
    }

    fn notify(&mut self, column: usize, first: usize, seconds: (f64, f64)) {
        let track = &mut self.tracks[column];
        let residuals = &*self.residuals;
        track.log.add(residuals, seconds.1);
        let batch = Batch { column, first, residuals, seconds, tolerance: track.tolerance };
        self.observers.iter_mut().for_each(|o| o.batch(&batch));
    }

    /// Iterates, and lets the family judge the results, until the family needs no more iterations.
    pub(crate) fn drive<S: Iterations, F: Family<S>>(
        &mut self,
        source: &mut S,
        family: &mut F,
        state: &mut SlotState,
    ) -> Result<()> {
        loop {
            self.iterate(source, family, state)?;
            if !family.judge(self, source, state)? {
                return Ok(());
            }
        }
    }

    /// Runs batches of iterations until every column has ended.
    fn iterate<S: Iterations, F: Family<S>>(
        &mut self,
        source: &mut S,
        family: &mut F,
        state: &mut SlotState,
    ) -> Result<()> {
        let _span = profile::begin(Phase::Iterate);
        for column in 0..self.tracks.len() {
            if self.tracks[column].stop.is_none() && !self.tracks[column].log.begun {
                self.notify_start(column);
            }
        }
        // After resuming from a checkpoint, iterations that completed a step may have been counted.
        self.read_counts(family, state);
        loop {
            let ended_here = self.end_columns(source, state);
            let mut running = self.tracks.iter().filter(|track| track.stop.is_none());
            let Some(iteration) = running.next().map(|track| track.now.iteration) else { return Ok(()) };
            if ended_here {
                source.write(state)?;
            }
            let longest = source.prepare(iteration, state)?;
            let mut batch = self.batch(longest, source.stops_early());
            if longest > 1 {
                // The clock of each rank has another time.
                batch = source.least(batch);
            }
            let label = profile::batch(batch);
            source.advance(batch, state)?;
            drop(label);
            self.read_counts(family, state);
            family.after_batch(self, source, state)?;
        }
    }

    /// Ends the columns to which a code or a rule applies. Returns whether a rule has changed
    /// codes of the state.
    fn end_columns<S: Iterations>(&mut self, source: &S, state: &mut SlotState) -> bool {
        for (column, track) in self.tracks.iter_mut().enumerate().filter(|(_, track)| track.stop.is_none()) {
            let stop = match StopCode::from_device(state.done[column]) {
                StopCode::Running | StopCode::Limit => self.rule.check(&track.now).map(Stop::Rule),
                code => Some(Stop::Code(code)),
            };
            track.stop = source.agree(stop);
        }
        // If all columns have ended, the state stays as their last iterations left it, because
        // checkpoints contain it.
        if self.tracks.iter().all(|track| track.stop.is_some()) {
            return false;
        }
        let mut changed = false;
        for (done, track) in state.done.iter_mut().zip(&*self.tracks) {
            if track.stop.is_some() && StopCode::from_device(*done) == StopCode::Running {
                (*done, changed) = (StopCode::Limit as u32, true);
            }
        }
        changed
    }

    /// Returns the number of iterations in the next batch: the maximum over the running columns.
    fn batch(&mut self, longest: usize, stops_early: bool) -> usize {
        let running = || self.tracks.iter().filter(|track| track.stop.is_none());
        let left = running().map(|track| self.rule.iterations_left(&track.now)).min().unwrap_or(1);
        let longest = if self.observers.iter().any(|o| o.wants_iterates()) { 1 } else { longest };
        let longest = longest.min(left).max(1);
        (self.tracks.iter_mut().filter(|track| track.stop.is_none()))
            .map(|track| track.pace.next(&track.now, track.aim, longest, stops_early))
            .max()
            .unwrap_or(1)
    }

    /// Reads the iterations counted since the last call from the ring, and notifies the observers.
    fn read_counts<S: Iterations, F: Family<S>>(&mut self, family: &mut F, state: &SlotState) {
        let elapsed = self.elapsed();
        for column in 0..self.tracks.len() {
            let track = &mut self.tracks[column];
            if track.stop.is_some() {
                continue;
            }
            let (before, first) = (std::mem::replace(&mut track.now.elapsed, elapsed), track.now.iteration);
            self.residuals.clear();
            for i in first..state.counts[column] as usize {
                let (residual, gained) = family.counted(column, i, state);
                self.residuals.push(residual);
                let lower = residual < PROGRESS * track.lowest;
                if lower {
                    track.lowest = residual;
                }
                if lower || gained {
                    track.now.improved_at = i + 1;
                }
                (track.now.iteration, track.now.residual) = (i + 1, residual);
            }
            if !self.residuals.is_empty() {
                self.notify(column, first, (before.as_secs_f64(), elapsed.as_secs_f64()));
            }
        }
    }
}
