//! Columns that are done leave: those that still iterate continue in vectors of their own.
//!
//! A product and a sweep take the time of all columns, done or not. Once at most half of the columns iterate,
//! their vectors and scalars are copied to a workspace of that width, with a step recorded for it. They are
//! copied back before anything else than iterations uses the vectors: the verdict, a restart, a checkpoint. A
//! restart begins with all columns.
//!
//! Narrower vectors cost a copy, a recording, and at times a format for another number of columns. So columns
//! leave only some time after they are done, and only if half of the present ones leave together. When they
//! leave depends on the counts of iterations alone and not on time: a product may add in another order for
//! another number of columns, and runs shall have the same bits. A solve that resumes from a checkpoint
//! therefore repeats the decisions from the counts.

use super::steps::{Steps, record, workspace};
use crate::device::{Device, Ranks, SlotState};
use crate::error::{Error, GpuError, Result};
use crate::scalar::Scalar;
use crate::solve::recurrence::{Operators, Recurrence};
use crate::stop::StopCode;

/// Iterations between two checks.
const CHECK: usize = 32;
/// A column leaves once it has been done for this part of the iterations so far: a fifth.
const WAIT: usize = 5;

/// Makes a workspace of a shape, with its step.
type Make<D, T> = fn(&Operators<D, T>, (usize, usize)) -> Result<Steps<D, T>>;

/// Decides when columns leave.
pub(super) struct Narrowing<D: Device, T: Scalar> {
    narrow: Option<Narrow<D, T>>,
    make: Make<D, T>,
    /// The count of each column at the start of the run.
    starts: Vec<usize>,
    /// The columns that have not left.
    members: Vec<usize>,
    /// The iteration of the run at the last check.
    checked: usize,
    /// Whether there was no memory for narrower vectors.
    failed: bool,
}

/// The columns that still iterate.
pub(super) struct Narrow<D: Device, T: Scalar> {
    recorded: Steps<D, T>,
    state: SlotState,
    /// For each column its place here, and that among all columns.
    pairs: Vec<[u32; 2]>,
}

fn reversed(pairs: &[[u32; 2]]) -> Vec<[u32; 2]> {
    pairs.iter().map(|&[a, b]| [b, a]).collect()
}

impl<D: Device, T: Scalar> Narrow<D, T> {
    /// Runs steps, and updates the state of all columns.
    pub(crate) fn advance(&mut self, steps: usize, state: &mut SlotState) -> Result<()> {
        self.recorded.replay(steps)?;
        self.recorded.workspace().read(&mut self.state)?;
        state.copy_columns(&self.state, &self.pairs);
        Ok(())
    }

    /// Writes the codes of the state of all columns.
    pub(crate) fn write(&mut self, state: &SlotState) -> Result<()> {
        self.state.copy_columns(state, &reversed(&self.pairs));
        self.recorded.open().0.write(&self.state)
    }
}

impl<D: Device, T: Scalar> Narrowing<D, T> {
    /// All columns iterate. If there are several, they have these counts at the start of the run.
    pub(crate) fn of<M: Recurrence>(starts: Vec<usize>) -> Narrowing<D, T> {
        let make = |operators: &Operators<D, T>, (n, k): (usize, usize)| {
            operators.prepare(k)?;
            record::<M, D, T>(workspace::<M, D, T>(operators, (n, k))?, operators)
        };
        // A column alone never leaves, and its solve allocates nothing.
        let members = if starts.len() > 1 { (0..starts.len()).collect() } else { Vec::new() };
        Narrowing { narrow: None, make, starts, members, checked: 0, failed: false }
    }

    /// Begins another run, in which the columns have these counts. All of them iterate.
    pub(crate) fn begin_run(&mut self, starts: Vec<usize>) {
        (self.starts, self.checked) = (starts, 0);
    }

    /// Returns the iterations of a column in this run.
    fn iterations(&self, state: &SlotState, column: usize) -> usize {
        (state.counts[column] as usize).saturating_sub(self.starts[column])
    }

    /// Returns what [`Recorded::stops_early`](crate::device::Recorded::stops_early) says of the columns that
    /// iterate in vectors of their own, if they do.
    pub(crate) fn stops_early(&self) -> Option<bool> {
        self.narrow.as_ref().map(|narrow| narrow.recorded.stops_early())
    }

    /// Returns the columns that iterate in vectors of their own, if they do.
    pub(crate) fn narrow(&mut self) -> Option<&mut Narrow<D, T>> {
        self.narrow.as_mut()
    }

    /// Lets columns that are done leave if that is due. Returns the number of iterations until
    /// the next check.
    pub(crate) fn check(&mut self, all: &mut Steps<D, T>, state: &SlotState) -> Result<usize> {
        if self.members.len() <= 1 || self.failed {
            return Ok(usize::MAX);
        }
        let iteration = (0..state.k).map(|column| self.iterations(state, column)).max().unwrap_or(0);
        let before = self.members.len();
        while self.checked + CHECK <= iteration {
            self.checked += CHECK;
            self.drop_members(state);
        }
        if self.members.len() < before {
            self.copy_back(all, state)?;
            self.narrow = None;
            let left = self.leave(all, state);
            let device = all.workspace().device();
            let failed = device.agree(left.is_err());
            let own = left.as_ref().is_err_and(is_fatal);
            let rank = device.ranks().map_or(0, Ranks::rank) as f64 + 1.0;
            // The last rank that failed for another reason than lack of memory, counted from 1; 0 for none.
            let fatal = device.fold(if own { rank } else { 0.0 }, f64::max);
            match left {
                Ok(narrow) if !failed => {
                    log::debug!(
                        "{} of {} columns iterate in vectors of their own",
                        self.members.len(),
                        state.k
                    );
                    self.narrow = Some(narrow);
                }
                Err(error) if own => return Err(error),
                _ if fatal > 0.0 => return Err(Error::OtherRank { rank: fatal as usize - 1 }),
                _ => {
                    log::info!("columns that are done stay in the products: there is no memory for a copy");
                    self.failed = true;
                    all.open().1.prepare(state.k)?;
                }
            }
        }
        Ok(CHECK - iteration % CHECK)
    }

    /// Drops the members that were done some time before this check, if they are at least half.
    fn drop_members(&mut self, state: &SlotState) {
        let limit = self.checked - (self.checked / WAIT).max(CHECK).min(self.checked);
        let stays = |&&column: &&usize| {
            let runs = StopCode::from_device(state.done[column]) == StopCode::Running;
            runs || self.iterations(state, column) > limit
        };
        let staying: Vec<usize> = self.members.iter().filter(stays).copied().collect();
        if !staying.is_empty() && 2 * staying.len() <= self.members.len() {
            self.members = staying;
        }
    }

    /// Copies the members to vectors of their own.
    fn leave(&self, all: &mut Steps<D, T>, state: &SlotState) -> Result<Narrow<D, T>> {
        let (n, k) = (all.workspace().shape().0, self.members.len());
        let mut recorded = (self.make)(all.open().1, (n, k))?;
        let pairs: Vec<[u32; 2]> =
            (0..).zip(&self.members).map(|(place, &column)| [place, column as u32]).collect();
        let mut narrow_state = SlotState::new(state.values.len() / state.k, k);
        let to_narrow = reversed(&pairs);
        narrow_state.copy_columns(state, &to_narrow);
        let (mut work, _) = recorded.open();
        work.copy_columns(all.workspace(), &to_narrow)?;
        work.write(&narrow_state)?;
        Ok(Narrow { recorded, state: narrow_state, pairs })
    }

    /// Copies the columns that iterate in vectors of their own back to the others; they
    /// continue in their own.
    pub(crate) fn copy_back(&mut self, all: &mut Steps<D, T>, state: &SlotState) -> Result<()> {
        let Some(narrow) = &self.narrow else { return Ok(()) };
        let (mut work, _) = all.open();
        work.copy_columns(narrow.recorded.workspace(), &narrow.pairs)?;
        work.write(state)
    }

    /// Copies them back and lets all columns iterate together again.
    pub(crate) fn widen(&mut self, all: &mut Steps<D, T>, state: &SlotState) -> Result<()> {
        self.copy_back(all, state)?;
        if state.k > 1 {
            self.members.clear();
            self.members.extend(0..state.k);
        }
        match self.narrow.take() {
            Some(_) => all.open().1.prepare(state.k),
            None => Ok(()),
        }
    }
}

/// Returns whether an error is neither a lack of memory nor the failure of another rank, which
/// has an error of its own.
fn is_fatal(error: &Error) -> bool {
    !matches!(
        error,
        Error::OutOfMemory { .. } | Error::Gpu(GpuError::DeviceMemory { .. }) | Error::OtherRank { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::distributed::{RankRows, operator};
    use crate::backend::{Choice, Host};
    use crate::device::Cpu;
    use crate::device::distributed::{Distributed, RowNumbers, in_threads};
    use crate::format::{Csr, Offsets, Values};
    use crate::solve::cg::Cg;
    use std::sync::Arc;

    /// Returns the members at an iteration, for columns that end at these counts; those without one iterate.
    fn members(ends: &[Option<u32>], iteration: usize) -> Vec<usize> {
        // The run began at the count 1,000 of each column.
        let mut narrowing = Narrowing::<Cpu, f64>::of::<Cg>(vec![1000; ends.len()]);
        let mut state = SlotState::new(1, ends.len());
        for (column, end) in ends.iter().enumerate() {
            state.counts[column] = 1000 + end.unwrap_or(iteration as u32);
            state.done[column] = if end.is_some() { StopCode::Converged } else { StopCode::Running } as u32;
        }
        while narrowing.checked + CHECK <= iteration {
            narrowing.checked += CHECK;
            narrowing.drop_members(&state);
        }
        narrowing.members
    }

    #[test]
    fn columns_leave_some_time_after_half_of_them_are_done() {
        let ends = [Some(10), None, Some(70), Some(11)];
        assert_eq!(members(&ends, 31), [0, 1, 2, 3]);
        // Two of four were done one check ago.
        assert_eq!(members(&ends, 64), [1, 2]);
        assert_eq!(members(&ends, 96), [1, 2]);
        assert_eq!(members(&ends, 128), [1]);
        // One of four stays in the products.
        assert_eq!(members(&[Some(10), None, None, None], 10_000), [0, 1, 2, 3]);
    }

    #[test]
    fn columns_that_end_at_about_the_same_time_stay_together() {
        assert_eq!(members(&[Some(200), Some(210), None, None], 224), [0, 1, 2, 3]);
        assert_eq!(members(&[Some(200), Some(210), None, None], 288), [2, 3]);
    }

    type Ranked = Distributed<Cpu>;

    /// Returns the operator of the rows of a rank: two of a diagonal matrix.
    fn operators(ranks: &Ranks) -> Result<Operators<Ranked, f64>> {
        let (cpu, first) = (Cpu::new(Some(1))?, 2 * ranks.rank());
        let columns = vec![first as u32, first as u32 + 1];
        let rows = Csr::new(2, 4, Offsets::narrowest(vec![0, 1, 2]), columns, Values::F64(vec![2.0, 3.0]))?;
        let rows = Arc::new(RankRows::new(ranks, &[0, 2, 4], rows)?);
        let choice = Choice::resolve(Cpu::KIND, Cpu::DEFAULT_BACKEND, "rows")?.because(String::new());
        let own = choice.build_for::<Cpu, f64>(&cpu, &Arc::new(rows.own_block()?), 0, 4)?;
        let device = Distributed::new(cpu, ranks.clone(), RowNumbers::From(first))?;
        Ok(Operators { a: operator(&device, &rows, own, false)?, m: None })
    }

    /// Lets two of four columns leave on two ranks. Returns whether they stay in the products, and the number
    /// of ranks that are in step.
    fn leave(make: Make<Ranked, f64>) -> Vec<Result<(bool, u64)>> {
        in_threads(2, |ranks| {
            let operators = operators(ranks)?;
            operators.prepare(4)?;
            let mut all = record::<Cg, _, _>(workspace::<Cg, _, _>(&operators, (2, 4))?, &operators)?;
            let mut narrowing = Narrowing { make, ..Narrowing::of::<Cg>(vec![0; 4]) };
            let mut state = SlotState::new(Cg::FACTS.slots_for(4), 4);
            state.counts.copy_from_slice(&[10, 96, 10, 96]);
            for column in [0, 2] {
                state.done[column] = StopCode::Converged as u32;
            }
            narrowing.check(&mut all, &state)?;
            Ok((narrowing.failed && narrowing.narrow.is_none(), ranks.total(1)))
        })
    }

    /// Fails on the second rank.
    fn fail(operators: &Operators<Ranked, f64>, error: Error) -> Result<Steps<Ranked, f64>> {
        let device = operators.a.device();
        device.agreed(if device.over().ranks.is_first() { Ok(()) } else { Err(error) })?;
        unreachable!("a rank has failed")
    }

    #[test]
    fn columns_stay_on_all_ranks_if_one_lacks_memory_for_them() {
        let enough = leave(Narrowing::<Ranked, f64>::of::<Cg>(Vec::new()).make);
        assert!(enough.iter().all(|rank| matches!(rank, Ok((false, 2)))), "{enough:?}");
        let on_the_gpu = leave(|operators, _| {
            let (what, needed, reserved, free) = ("the vectors of a solve", 2, 0, 1);
            fail(operators, GpuError::DeviceMemory { what, needed, reserved, free, hint: None }.into())
        });
        let on_the_host = leave(|operators, _| fail(operators, Error::OutOfMemory { bytes: 1 }));
        for all in [on_the_gpu, on_the_host] {
            assert!(all.iter().all(|rank| matches!(rank, Ok((true, 2)))), "{all:?}");
        }
    }

    #[test]
    fn another_error_while_columns_leave_ends_all_ranks() {
        let all = leave(|operators, _| fail(operators, Error::setting("device", "gpu", "it is gone")));
        assert!(matches!(all[0], Err(Error::OtherRank { rank: 1 })), "{all:?}");
        assert!(matches!(all[1], Err(Error::BadSetting { .. })), "{all:?}");
    }
}
