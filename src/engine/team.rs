//! Several devices of this process that share one solve: a rank for each device, with state that is kept
//! from one solve to the next.
//!
//! The ranks are threads that run during a solve only, and the first rank is the calling thread. So a
//! prepared solve can be used from any thread, and observers are called on the thread of the solve. One solve
//! at a time runs on several devices: kernels of ranks wait for kernels on other GPUs, and those of two
//! solves could wait for each other.

use super::device::{DeviceHandle, DeviceName};
use super::shared::{DeviceGuard, Shared, holds_any};
use crate::device::Ranks;
use crate::device::distributed::Threads;
use crate::error::{Error, Result};
use std::sync::LazyLock;
use std::thread::Builder;

/// Why nothing is measured on several devices.
pub(super) const NO_TUNING: &str =
    "a measurement is for one device, and on several the model chooses the backend of each; leave out tune";

/// Held by the solve that runs on several devices.
static TURN: LazyLock<Shared<()>> = LazyLock::new(|| Shared::named((), "several devices"));

/// The right to run on several devices, until it is dropped.
pub(super) struct Turn(#[expect(dead_code, reason = "dropping it ends the turn")] DeviceGuard<'static, ()>);

/// Waits until no other solve runs on several devices. Fails on a thread that must not wait: one whose solve
/// the others would wait for.
pub(super) fn turn() -> Result<Turn> {
    let refuse = |reason: &str| Err(Error::setting("device", "several devices", reason));
    if TURN.is_held_here() {
        return refuse("a solve on several devices runs on this thread; name one device for the inner solve");
    }
    if holds_any() {
        return refuse(
            "a solve on this thread has a device, for which another solve on several may wait; name one device",
        );
    }
    if rayon::current_thread_index().is_some() {
        return refuse(
            "this thread belongs to a pool of rayon, which the other ranks need; start the solve on another thread",
        );
    }
    Ok(Turn(TURN.acquire()?))
}

/// Ranks with a device and a state each.
pub(super) struct Team<S: Send + 'static> {
    threads: Threads,
    devices: Vec<DeviceHandle>,
    states: Vec<S>,
}

impl<S: Send + 'static> Team<S> {
    /// Opens the devices.
    pub(crate) fn open(names: &[DeviceName]) -> Result<Vec<DeviceHandle>> {
        let threads = Threads::new(names.len());
        let open = |_: &Ranks, name: DeviceName| DeviceHandle::of_rank(name);
        let outcomes = threads.run(names.to_vec(), open, open);
        all_of(outcomes, |rank| names[rank].to_string())
    }

    /// Makes the state of each rank, which gets its device and its part of `parts`.
    pub(crate) fn build<P: Send>(
        _: &Turn,
        devices: &[DeviceHandle],
        parts: Vec<P>,
        make: impl Fn(&Ranks, &DeviceHandle, P) -> Result<S> + Sync,
    ) -> Result<Team<S>> {
        let mut team =
            Team { threads: Threads::new(devices.len()), devices: devices.to_vec(), states: Vec::new() };
        let make = |ranks: &Ranks, part: P| make(ranks, &devices[ranks.rank()], part);
        let outcomes = team.threads.run(parts, make, make);
        team.states = team.found(outcomes)?;
        Ok(team)
    }

    /// Runs work on each rank with its state and its part of `parts`: `first` on this thread, `others` on a
    /// thread each. An error ends the connection of the ranks, so their states are dropped, and later runs
    /// fail.
    pub(crate) fn run<P: Send, R: Send>(
        &mut self,
        _: &Turn,
        parts: Vec<P>,
        first: impl FnOnce(&Ranks, &mut S, P) -> Result<R>,
        others: impl Fn(&Ranks, &mut S, P) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if self.states.is_empty() {
            return Err(broken(&self.devices));
        }
        // Kept only if the work ends without an error or a panic.
        let mut running = Running { team: self, has_ended: false };
        let Team { threads, states, .. } = &mut *running.team;
        let outcomes = threads.run(
            states.iter_mut().zip(parts).collect(),
            |ranks, (state, part)| first(ranks, state, part),
            |ranks, (state, part)| others(ranks, state, part),
        );
        let found = running.team.found(outcomes);
        running.has_ended = found.is_ok();
        found
    }

    /// Drops the states.
    pub(crate) fn clear(&mut self) {
        free(&self.threads, std::mem::take(&mut self.states));
    }

    /// Returns the device of each rank.
    pub(crate) fn devices(&self) -> &[DeviceHandle] {
        &self.devices
    }

    /// Returns the state of each rank; none after an error.
    pub(crate) fn states(&self) -> &[S] {
        &self.states
    }

    fn found<R>(&self, outcomes: Vec<Result<R>>) -> Result<Vec<R>> {
        all_of(outcomes, |rank| self.devices[rank].name().to_owned())
    }
}

/// A team at work, whose states are dropped if the work does not end well.
struct Running<'a, S: Send + 'static> {
    team: &'a mut Team<S>,
    has_ended: bool,
}

impl<S: Send + 'static> Drop for Running<'_, S> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.team.clear();
        }
    }
}

impl<S: Send + 'static> Drop for Team<S> {
    fn drop(&mut self) {
        let threads = std::mem::replace(&mut self.threads, Threads::new(0));
        let states = std::mem::take(&mut self.states);
        if states.is_empty() {
            return;
        }
        if !TURN.is_held_here() {
            return free(&threads, states);
        }
        // A solve of this thread on several devices holds their locks until it ends.
        let later = Builder::new().name("freeing".to_owned()).spawn(move || free(&threads, states));
        later.map_or_else(|error| log::warn!("the memory of a solve is freed early: {error}"), drop);
    }
}

/// Drops the states at once, each on a thread of its rank: they free connections of all ranks.
fn free<S: Send>(threads: &Threads, states: Vec<S>) {
    if states.is_empty() {
        return;
    }
    let _turn = if TURN.is_held_here() { None } else { TURN.acquire().ok() };
    let free = |_: &Ranks, state: S| {
        drop(state);
        Ok(())
    };
    threads.run(states, free, free);
}

/// The seats of a prepared solve in this process, with their devices.
pub(super) enum Seats<S: Send + 'static> {
    /// The process is one seat: the only one, or that of a rank.
    One(DeviceHandle, S),
    /// Each of several devices of the process is a seat.
    Several(Team<S>),
}

impl<S: Send + 'static> Seats<S> {
    /// Returns whether several devices of this process share the solve.
    pub(crate) fn are_several(&self) -> bool {
        matches!(self, Seats::Several(_))
    }

    /// Returns the devices that share the solve, or the one device.
    pub(crate) fn devices(&self) -> &[DeviceHandle] {
        match self {
            Seats::One(device, _) => std::slice::from_ref(device),
            Seats::Several(team) => team.devices(),
        }
    }

    /// Returns the states of all seats; none after an error on several devices.
    pub(crate) fn states(&self) -> &[S] {
        match self {
            Seats::One(_, state) => std::slice::from_ref(state),
            Seats::Several(team) => team.states(),
        }
    }

    /// Returns the states of all seats, which may be changed; none after an error on several devices.
    pub(crate) fn states_mut(&mut self) -> &mut [S] {
        match self {
            Seats::One(_, state) => std::slice::from_mut(state),
            Seats::Several(team) => &mut team.states,
        }
    }

    /// Runs `first` for the first seat, on this thread, and `others` for the other seats.
    pub(crate) fn run<R: Send>(
        &mut self,
        first: impl FnOnce(&mut S) -> Result<R>,
        others: impl Fn(&mut S) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        match self {
            Seats::One(_, state) => first(state).map(|found| vec![found]),
            Seats::Several(team) => {
                let parts = vec![(); team.devices.len()];
                team.run(&turn()?, parts, |_, state, ()| first(state), |_, state, ()| others(state))
            }
        }
    }
}

/// Gives a prepared solve the functions that tell its devices, and checks that it can be moved to another
/// thread. `common` leads to the common part of its reports.
macro_rules! on_seats {
    ($prepared:ty, $($common:ident).+) => {
        const _: () = {
            const fn is_send<T: Send>() {}
            is_send::<$prepared>();
        };

        impl $prepared {
            /// Returns the device, or the first of several.
            pub fn device(&self) -> &DeviceHandle {
                &self.seats.devices()[0]
            }

            /// Returns the devices that share the solve, or the one device.
            pub fn devices(&self) -> &[DeviceHandle] {
                self.seats.devices()
            }

            /// Describes the hardware: `cpu (2 threads)`, `2 ranks, each a GPU (NVIDIA H200)`.
            pub fn describe_devices(&self) -> &str {
                &self.$($common).+.device
            }

            /// Drops all that is prepared, and returns the device, or the first of several.
            pub(crate) fn into_device(self) -> DeviceHandle {
                self.device().clone()
            }
        }
    };
}
pub(super) use on_seats;

/// Returns the error of a solve after another one has failed on the same devices.
fn broken(devices: &[DeviceHandle]) -> Error {
    let names: Vec<&str> = devices.iter().map(DeviceHandle::name).collect();
    let reason = "an earlier solve on these devices has failed, which has ended their connection; prepare the solve again";
    Error::setting("device", names.join(", "), reason)
}

/// Returns the results of all ranks, or the error that is the reason of all. `name` names the
/// device of a rank.
fn all_of<R>(mut outcomes: Vec<Result<R>>, name: impl Fn(usize) -> String) -> Result<Vec<R>> {
    // The first rank also finds the faults of the input, as a single device would.
    let of_device = matches!(outcomes.first(), Some(Err(Error::Gpu(_) | Error::OutOfMemory { .. })));
    let Some(rank) = cause(&outcomes).filter(|rank| *rank > 0 || of_device) else {
        return outcomes.into_iter().collect();
    };
    match outcomes.swap_remove(rank) {
        Err(source) => Err(Error::OnDevice { device: name(rank), source: Box::new(source) }),
        Ok(_) => outcomes.into_iter().collect(),
    }
}

/// Returns the rank whose error is the reason of all: the one that others name, or else the first that
/// has an error of its own.
fn cause<R>(outcomes: &[Result<R>]) -> Option<usize> {
    let own =
        |outcome: &Result<R>| matches!(outcome, Err(error) if !matches!(error, Error::OtherRank { .. }));
    let named = outcomes.iter().find_map(|outcome| match outcome {
        Err(Error::OtherRank { rank }) => Some(*rank).filter(|rank| outcomes.get(*rank).is_some_and(own)),
        _ => None,
    });
    named.or_else(|| outcomes.iter().position(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    const NAMES: [DeviceName; 3] = [DeviceName::Cpu(Some(1)); 3];

    #[test]
    fn the_rank_that_others_name_is_the_cause_of_a_failure_on_several_devices() {
        let other = |rank| Err::<(), _>(Error::OtherRank { rank });
        let own = || Err(Error::setting("device", "cuda:1", "it has no memory"));
        assert_eq!(cause(&[own(), own(), other(1)]), Some(1));
        assert_eq!(cause(&[other(1), own()]), Some(1));
        assert_eq!(cause(&[Ok(()), own()]), Some(1));
        assert_eq!(cause(&[other(1), other(0)]), None);
        assert_eq!(cause(&[Ok(()), Ok(())]), None);
    }

    #[test]
    fn states_are_kept_and_an_error_names_the_device_of_its_rank() {
        let devices = Team::<usize>::open(&NAMES).unwrap();
        let mut team = Team::build(&turn().unwrap(), &devices, vec![1, 2, 3], |_, _, part| Ok(part)).unwrap();
        let add = |ranks: &Ranks, state: &mut usize, part: usize| {
            *state += part;
            Ok(ranks.total(*state as u64))
        };
        assert_eq!(team.run(&turn().unwrap(), vec![1, 1, 1], add, add).unwrap(), [9, 9, 9]);
        assert_eq!(team.states(), [2, 3, 4]);
        for bad in [2, 0] {
            let mut team =
                Team::build(&turn().unwrap(), &devices, vec![1, 2, 3], |_, _, part| Ok(part)).unwrap();
            let fail = |ranks: &Ranks, _: &mut usize, (): ()| match ranks.rank() == bad {
                true => Err(Error::OutOfMemory { bytes: 8 }),
                false => Ok(ranks.total(1)),
            };
            let error = team.run(&turn().unwrap(), vec![(); 3], fail, fail).unwrap_err();
            assert!(matches!(error, Error::OnDevice { .. }), "{error}");
            assert!(error.to_string().starts_with("cpu: "), "{error}");
        }
    }

    #[test]
    fn a_solve_on_several_devices_inside_another_one_is_refused() {
        let devices = Team::<()>::open(&NAMES).unwrap();
        let mut team = Team::build(&turn().unwrap(), &devices, vec![(); 3], |_, _, ()| Ok(())).unwrap();
        let nested = |_: &Ranks, _: &mut (), (): ()| turn().map(drop);
        let error = team.run(&turn().unwrap(), vec![(); 3], nested, |_, _, ()| Ok(())).unwrap_err();
        assert!(error.to_string().contains("name one device for the inner solve"), "{error}");
    }

    #[test]
    fn a_thread_that_others_may_wait_for_does_not_wait_for_several_devices() {
        let one = Shared::named((), "one device");
        let held = one.acquire().unwrap();
        assert!(turn().is_err_and(|error| error.to_string().contains("has a device")));
        drop(held);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let refused = pool.install(|| turn().map(drop)).unwrap_err();
        assert!(refused.to_string().contains("a pool of rayon"), "{refused}");
        assert!(turn().is_ok());
    }

    #[test]
    fn a_team_that_is_dropped_during_a_solve_of_its_thread_is_freed_after_it() {
        /// Tells when it is dropped.
        struct Told(mpsc::Sender<bool>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.send(TURN.is_held_here()).unwrap();
            }
        }
        let (sender, receiver) = mpsc::channel();
        let devices = Team::<()>::open(&NAMES).unwrap();
        let parts = (0..3).map(|_| sender.clone()).collect();
        let other = Team::build(&turn().unwrap(), &devices, parts, |_, _, sender| Ok(Told(sender))).unwrap();
        let mut team = Team::build(&turn().unwrap(), &devices, vec![(); 3], |_, _, ()| Ok(())).unwrap();
        let begun = |_: &Ranks, _: &mut (), (): ()| {
            drop(other);
            Ok(receiver.recv_timeout(Duration::from_millis(50)).is_err())
        };
        let kept = team.run(&turn().unwrap(), vec![(); 3], begun, |_, _, ()| Ok(true)).unwrap();
        assert_eq!(kept, [true; 3]);
        // The first rank is the thread that has the turn.
        let mut turns: Vec<bool> = (0..3).map(|_| receiver.recv().unwrap()).collect();
        turns.sort_unstable();
        assert_eq!(turns, [false, false, true]);
    }
}
