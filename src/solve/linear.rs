//! Linear systems: runs a method, judges its result, and restarts it when rounding has misled it.
//!
//! # Restarts
//! The recursive residual keeps falling when b - A x no longer does, because rounding separates the two. So
//! when the recursive residual meets the tolerance (or a run stagnates), r = b - A x is computed in double
//! precision with the matrix as its source provides it (`answer.rs`). If that misses the tolerance, A d = r
//! is solved from d = 0 and x + d is the next x, kept in double precision: residual replacement for vectors
//! in double precision, iterative refinement for vectors in single. Restarts continue as long as each run at
//! least halves the true residual; a run that does not is the last, and a run that increases it is undone. A
//! least-squares solution is tested the same way: it is accepted if a second run does not improve it. The
//! target of a run is at least [`FLOOR`] roundings of its initial residual: below that, the recursive
//! residual carries no information. Iterations are counted across restarts.
//!
//! # Columns
//! A system may have k right-hand sides. Each column has its scalars, its end and its verdict. A column is
//! bitwise equal to a solve with this right-hand side alone if the product of the backend is. Once at least
//! half of the columns have been done for some time, the others continue without them (`narrow.rs`). Columns
//! that start again do so together, once all columns have ended. A column that is NaN, infinite or out of
//! range ends before its first iteration, with x = 0, and the other columns are solved as without it; a
//! right-hand side that is alone is refused.
//!
//! # Range
//! Every run solves for a residual that is divided by a power of two near its largest entry, which causes no
//! rounding, so that products of the vectors stay in range whatever the scale of b. If a small matrix
//! nevertheless takes p'Ap out of range, the next run begins with a large residual again. A method that
//! squares entries of A runs on sigma A, with a power of two sigma, if A is very large or very small.
//!
//! # Reference
//! C. B. Moler, Iterative refinement in floating point, J. ACM 14, 1967; H. A. van der Vorst and Q. Ye,
//! Residual replacement strategies for Krylov subspace iterative methods, SIAM J. Sci. Comput. 22, 2000.

mod begin;
mod column;
mod judge;
mod narrow;
mod replay;
mod resuming;
mod saving;
mod showing;
mod steps;

use super::answer::{Answer, Memory};
use super::checkpoint::Checkpoints;
use super::recurrence::{CEILING, FIRST, Operators, RR, Recurrence, SECOND, TARGET};
use super::run::{Family, Run, Track, Tracks};
use super::{Outcome, System};
use crate::device::{Device, SlotState, Work};
use crate::error::{Error, Result};
use crate::observe::{Observer, Phase, profile};
use crate::operator::Residuals;
use crate::scalar::Scalar;
use crate::stop::{PROGRESS, StopCode, StopReason, StoppingRule};
use begin::Common;
use column::Column;
use replay::Replay;
use saving::Saver;
use std::marker::PhantomData;
use std::time::Instant;
use steps::{Steps, record, workspace};

/// The smallest target of a run relative to its initial residual, in units of the vectors' rounding.
const FLOOR: f64 = 64.0;

/// A method prepared for a matrix. Vectors, the recorded step and host memory are kept from one solve to the
/// next: a solve of one right-hand side after the first allocates nothing if it converges, except for a
/// factor that estimates its error the first time it is needed.
pub(super) struct Linear<M, D: Device, T: Scalar> {
    operators: Operators<D, T>,
    /// Present from the first solve on.
    recorded: Option<Steps<D, T>>,
    /// The host's copy of the scalars.
    state: SlotState,
    memory: Memory<T>,
    tracks: Tracks,
    columns: Vec<Column>,
    common: Common,
    method: PhantomData<M>,
}

/// A [`Linear`] of any method.
pub(super) trait Solves<D: Device, T: Scalar>: Send {
    /// Lets a device compute the residuals of the systems, all of which have its matrix.
    fn compute_on_device(&mut self, there: Box<dyn Residuals>);

    /// Solves a system and writes the answer to `x`; see the module.
    fn solve(&mut self, task: &Task<'_>, x: &mut [f64], observers: &mut [&mut dyn Observer]) -> Result<()>;

    /// Returns the outcome of a column in the last solve.
    fn outcome(&self, column: usize) -> Outcome;
}

/// A system to solve, and the conditions that end the solve.
pub(super) struct Task<'a> {
    pub system: &'a System<'a>,
    pub rule: &'a StoppingRule,
    pub checkpoints: &'a Checkpoints,
}

/// A solve in progress: the family of the loop for linear systems.
struct Solve<'a, M, D, T> {
    answer: Answer<'a, D, T>,
    columns: &'a mut [Column],
    /// Whether the coefficients of iterations belong to A, and not to M A.
    coefficients_of_a: bool,
    /// The power of two that the method multiplies A by.
    sigma: f64,
    /// Saves checkpoints, if requested.
    saver: Option<Saver>,
    /// Vectors that are restored after x has been shown.
    kept: Vec<Vec<T>>,
    marker: PhantomData<(M, D, T)>,
}

impl<M: Recurrence, D: Device, T: Scalar> Linear<M, D, T> {
    /// Makes a solver, which allocates in its first solve.
    pub(crate) fn new(operators: Operators<D, T>) -> Linear<M, D, T> {
        Linear {
            operators,
            recorded: None,
            state: SlotState::new(M::FACTS.slots_for(1), 1),
            memory: Memory::default(),
            tracks: Tracks::default(),
            columns: Vec::new(),
            common: Common::default(),
            method: PhantomData,
        }
    }
}

impl<M: Recurrence, D: Device, T: Scalar> Solves<D, T> for Linear<M, D, T> {
    fn compute_on_device(&mut self, there: Box<dyn Residuals>) {
        self.memory.compute_on_device(there);
    }

    fn solve(&mut self, task: &Task<'_>, x: &mut [f64], observers: &mut [&mut dyn Observer]) -> Result<()> {
        let began = Instant::now();
        let Linear { operators, recorded, state, memory, tracks, columns, common, .. } = self;
        let device = operators.a.device();
        let Task { system, rule, .. } = *task;
        let k = system.columns;
        let rule = rule.in_steps_of(M::FACTS.stride);
        let n = begin::check(system, &M::FACTS, operators.a.shape(), x)?;
        let (saver, saved) = saving::prepare::<M, D, T>(operators, task)?;
        operators.prepare(k)?;
        *common = Common::of(operators, &M::FACTS, n, k);
        let vector_bytes = common.effort.vector_bytes;
        common.effort = common.effort.of_all(device.ranks());
        columns.resize_with(k, Column::default);
        let most = if M::FACTS.projects(k) { rule.most_iterations() } else { Some(0) };
        columns.iter_mut().for_each(|column| column.clear(most));
        let mut run = Run::new(tracks, k, rule, observers);
        if !device.agree(system.b.iter().any(|b| *b != 0.0)) {
            x.fill(0.0);
            columns.iter_mut().enumerate().for_each(|(c, column)| column.end_as_zero(&mut run, c));
            return Ok(());
        }
        if state.k != k {
            (*state, *recorded) = (SlotState::new(M::FACTS.slots_for(k), k), None);
        }
        if recorded.is_none() {
            device.require_memory("the vectors of a solve", vector_bytes)?;
        }
        let answer = Answer::new(device, system, (n, k), memory)?;
        let (coefficients_of_a, sigma) = (operators.m.is_none(), 1.0);
        let mut solve: Solve<'_, M, D, T> =
            Solve { answer, columns, coefficients_of_a, sigma, saver, kept: Vec::new(), marker: PhantomData };
        for column in 0..k {
            solve.start(&mut run, column, saved.is_some())?;
        }
        if solve.columns.iter().all(|column| column.end.is_some()) {
            solve.answer.copy_to(x);
            return Ok(());
        }
        if M::FACTS.sigma.is_some() && coefficients_of_a {
            solve.sigma = solve.answer.matrix_scale();
        }
        let recorded = match &saved {
            Some(saved) => {
                let space = recorded.take().map(|recorded| recorded.into_parts().0);
                let space = space.map_or_else(|| workspace::<M, D, T>(operators, (n, k)), Ok)?;
                let space = solve.resume(&mut run, space, operators, state, saved)?;
                recorded.insert(record::<M, D, T>(space, operators)?)
            }
            None => {
                let recorded = match recorded {
                    Some(recorded) => recorded,
                    None => {
                        let space = workspace::<M, D, T>(operators, (n, k))?;
                        recorded.insert(record::<M, D, T>(space, operators)?)
                    }
                };
                let (mut work, operators) = recorded.open();
                solve.begin(&mut run, operators, &mut work, state)?;
                solve.check_start(state)?;
                recorded
            }
        };
        drop(saved);
        device.synchronize()?;
        common.effort.seconds_setup = began.elapsed().as_secs_f64();
        common.earlier = run.earlier;
        run.start_clock();
        let mut source = Replay::of::<M>(recorded, solve.starts(&run));
        run.drive(&mut source, &mut solve, state)?;
        let _span = profile::begin(Phase::Verify);
        let (mut work, operators) = source.recorded.open();
        solve.conclude(&mut run, operators, &mut work);
        solve.answer.copy_to(x);
        common.checkpoint_fault = solve.saver.and_then(Saver::into_fault);
        Ok(())
    }

    fn outcome(&self, column: usize) -> Outcome {
        self.columns[column].outcome(&self.common, self.tracks.column(column))
    }
}

impl<M: Recurrence, D: Device, T: Scalar> Solve<'_, M, D, T> {
    /// Measures the residual of a column's start, to which tolerances may be relative. Ends the column if the
    /// start meets the goal, unless it `resumes`: then the x of the checkpoint is judged.
    fn start(&mut self, run: &mut Run<'_, '_>, index: usize, resumes: bool) -> Result<()> {
        let (largest, norm_b) = self.answer.right_hand_side(index);
        let column = &mut self.columns[index];
        run.tracks[index].log.records = self.saver.is_some();
        if largest == 0.0 {
            self.answer.clear(index);
            column.end_as_zero(run, index);
            return Ok(());
        }
        if !norm_b.is_normal() {
            let row = self.answer.first_not_finite_in_b(index);
            if self.columns.len() == 1 {
                return Err(match row {
                    Some(row) => Error::RightHandSideNotFinite { row },
                    None => Error::RightHandSideScale { largest, norm_squared: norm_b * norm_b },
                });
            }
            self.answer.clear(index);
            self.columns[index].end_unsolved(run, index, StopReason::NotSolved { row, norm: norm_b });
            return Ok(());
        }
        column.begin(&run.rule, norm_b);
        let truth = match self.answer.start(index, &column.aim(0.0)) {
            // The caller's product has ended the solve before the residual of its start is known.
            Err(Error::StartScale { .. }) if self.answer.needs_norm() && run.rule.product_has_ended() => {
                self.columns[index].end_unsolved(run, index, StopReason::Interrupted);
                return Ok(());
            }
            Err(Error::StartScale { row, norm, .. }) if self.columns.len() > 1 => {
                self.answer.clear(index);
                self.columns[index].end_unsolved(run, index, StopReason::NotSolved { row, norm });
                return Ok(());
            }
            truth => truth?,
        };
        let column = &mut self.columns[index];
        column.set_start(run, index, truth);
        if self.saver.is_some() {
            saving::reserve(&mut run.tracks[index].log, &run.rule);
        }
        if column.meets_goal() && !resumes {
            column.end_at_start(run, index);
        }
        Ok(())
    }

    /// Begins a run for the current residuals and clears the vectors of the workspace that must be zero.
    /// Columns that have ended permanently are done from the start.
    fn begin(
        &mut self,
        run: &mut Run<'_, '_>,
        operators: &Operators<D, T>,
        work: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()> {
        let columns = &mut *self.columns;
        let preconditioned = usize::from(operators.m.is_some());
        M::FACTS.zero[preconditioned].iter().try_for_each(|name| work.clear(*name))?;
        state.clear();
        for (done, column) in state.done.iter_mut().zip(&*columns) {
            *done = if column.end.is_some() { StopCode::Converged } else { StopCode::Running } as u32;
        }
        work.write(state)?;
        let live = |column: usize| columns[column].end.is_none();
        self.answer.upload_residuals(&live, work, M::FACTS.residual[preconditioned])?;
        M::start(operators, work, state)?;
        work.read(state)?;
        for (index, column) in columns.iter_mut().enumerate() {
            let track = &mut run.tracks[index];
            state.counts[index] = track.now.iteration as u32;
            if column.end.is_some() {
                continue;
            }
            let (now, truth) = (&mut track.now, column.truth.residual);
            (now.residual, now.run_began, now.improved_at) = (truth, now.iteration, now.iteration);
            (track.lowest, track.stop) = (truth, None);
            track.pace.restart();
            (column.energy, column.energy_mark, column.idle) = (0.0, 0.0, false);
            column.initial_rr = state.get(RR, index);
        }
        self.bound(run, state);
        work.write(state)
    }

    /// Returns the count of each of several columns at the start of the current run.
    fn starts(&self, run: &Run<'_, '_>) -> Vec<usize> {
        if self.columns.len() == 1 {
            return Vec::new();
        }
        let start = |(column, track): (&Column, &Track)| match column.end {
            // A column that has ended permanently takes no part in the run.
            Some(_) => track.now.iteration,
            None => track.now.run_began,
        };
        self.columns.iter().zip(&*run.tracks).map(start).collect()
    }

    /// Refuses right-hand sides if the device cannot sum up their squares.
    fn check_start(&self, state: &SlotState) -> Result<()> {
        for (index, column) in self.columns.iter().enumerate() {
            let norm_squared = state.get(RR, index);
            if column.end.is_none() && !norm_squared.is_normal() {
                let (largest, _) = self.answer.right_hand_side(index);
                return Err(Error::RightHandSideScale { largest, norm_squared });
            }
        }
        Ok(())
    }

    /// Sets the limits of a run according to the rules.
    fn bound(&mut self, run: &Run<'_, '_>, state: &mut SlotState) {
        let rule = &run.rule;
        for (index, column) in self.columns.iter_mut().enumerate().filter(|(_, column)| column.end.is_none())
        {
            let (now, rr, truth) = (&run.tracks[index].now, column.initial_rr, column.truth.residual);
            column.unit = rr.sqrt() / truth;
            // A residual of exactly zero ends every run, as no search direction is left.
            let tolerance = rule.residual_tolerance(&now.norms);
            let target = tolerance.map_or(0.0, |t| (t / truth).max(FLOOR * T::EPSILON));
            state.set(TARGET, index, target * target * rr);
            let ceiling = rule.divergence().unwrap_or(f64::INFINITY) * now.norms.initial / truth;
            state.set(CEILING, index, ceiling * ceiling * rr);
            if let Some(slot) = M::FACTS.sigma {
                state.set(slot, index, self.sigma);
            }
            if let Some(slot) = M::FACTS.limit {
                let most = rule.most_iterations().map_or(f64::INFINITY, |limit| limit as f64);
                state.set(slot, index, most - now.run_began as f64);
            }
        }
    }
}

impl<'s, M: Recurrence, D: Device, T: Scalar> Family<Replay<'s, D, T>> for Solve<'_, M, D, T> {
    fn counted(&mut self, column: usize, iteration: usize, state: &SlotState) -> (f64, bool) {
        let coefficients = (state.noted(FIRST, iteration, column), state.noted(SECOND, iteration, column));
        let residual = state.counted(iteration, column).sqrt();
        let column = &mut self.columns[column];
        column.keep_coefficients(coefficients);
        column.energy += M::FACTS.energy(coefficients);
        let gained = column.energy > column.energy_mark / PROGRESS;
        if gained {
            column.energy_mark = column.energy;
        }
        (residual / column.unit, gained)
    }

    fn after_batch(
        &mut self,
        run: &mut Run<'_, '_>,
        source: &mut Replay<'s, D, T>,
        state: &SlotState,
    ) -> Result<()> {
        if self.saver.is_some() && source.recorded.workspace().device().agree(self.is_due(run, state)) {
            source.copy_back(state)?;
            let (mut work, operators) = source.recorded.open();
            self.save(run, operators, &mut work, state);
        }
        let (mut work, operators) = source.recorded.open();
        self.show(run, operators, &mut work, state)
    }

    fn judge(
        &mut self,
        run: &mut Run<'_, '_>,
        source: &mut Replay<'s, D, T>,
        state: &mut SlotState,
    ) -> Result<bool> {
        source.widen(state)?;
        let (mut work, operators) = source.recorded.open();
        self.save_at_end(run, operators, &mut work, state);
        let span = run.phase(Phase::Verify, "checking the answer");
        self.find_reasons(run, operators, &mut work, state)?;
        M::finish(&mut work, state, &|column| run.tracks[column].now.run_began)?;
        self.answer.fetch(&work, M::FACTS.answer)?;
        if let Some(dense) = &M::FACTS.dense {
            for (index, column) in self.columns.iter_mut().enumerate().filter(|(_, c)| c.end.is_none()) {
                column.block_rank.get_or_insert(state.get(dense.rank, index) as usize);
            }
        }
        let mut again = false;
        for column in 0..run.tracks.len() {
            again |= self.judge_column(run, column, operators.a.device());
        }
        drop(span);
        if again {
            self.begin(run, operators, &mut work, state)?;
            source.begin_run(self.starts(run));
        }
        Ok(again)
    }
}
