//! Wall time by phase.
//!
//! The work of a solve is divided into phases ([`Phase`]). Each part announces its phase by `begin`, and
//! the returned `Span` ends the phase when it is dropped. Phases are nested; time counts only for the
//! innermost one. So the times of all phases and the time outside of every phase add up to the total.
//!
//! A [`Profile`] measures the thread that has activated it. Without an active profile, `begin` reads a
//! variable of the thread and no clock. The same announcements are NVTX ranges, if a profiler of NVIDIA
//! has started this process.

use crate::device::cuda::nvtx::{self, Ranges};
use crate::parallel::lock;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::ffi::CStr;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A phase of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Reading, downloading or generating the matrix and the vectors.
    Read,
    /// Opening the device: the driver and the context of a GPU, or the threads of the CPU.
    Open,
    /// Checks and statistics of the matrix, and the choice of the backend.
    Analyse,
    /// Conversion to the format of the backend, the preconditioner, the vectors, and the start of the method.
    Build,
    /// Copies of arrays and vectors to a GPU.
    Upload,
    /// Compiling and loading kernels.
    Compile,
    /// Iterations.
    Iterate,
    /// The verdict: recomputed residuals, certificates and estimates of errors.
    Verify,
    /// Measuring the bandwidth of the machine for the report.
    Limit,
    /// Writing answers, histories, plots and checkpoints.
    Write,
}

/// Number of phases.
const COUNT: usize = Phase::ALL.len();

/// The deepest nesting without an allocation.
const DEPTH: usize = 16;

impl Phase {
    /// All phases, in the order in which a solve first enters them.
    pub(crate) const ALL: [Phase; 10] = [
        Phase::Read,
        Phase::Open,
        Phase::Analyse,
        Phase::Build,
        Phase::Upload,
        Phase::Compile,
        Phase::Iterate,
        Phase::Verify,
        Phase::Limit,
        Phase::Write,
    ];

    /// Returns the name in tables and in JSON.
    pub(crate) fn name(self) -> &'static str {
        self.label().to_str().unwrap_or_default()
    }

    /// Returns the name as a C string.
    fn label(self) -> &'static CStr {
        match self {
            Phase::Read => c"read",
            Phase::Open => c"open",
            Phase::Analyse => c"analyse",
            Phase::Build => c"build",
            Phase::Upload => c"upload",
            Phase::Compile => c"compile",
            Phase::Iterate => c"iterate",
            Phase::Verify => c"verify",
            Phase::Limit => c"limit",
            Phase::Write => c"write",
        }
    }
}

/// Measures wall time by phase. Clones share the measurement.
///
/// On a GPU, a profile adds synchronisations at the ends of copies and of building, so that each phase gets
/// its own time. It adds none between iterations.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::observe::Profile;
/// use solver::prelude::*;
/// let profile = Profile::new();
/// let _active = profile.activate();
/// let a = Matrix::open("poisson2d:50x50")?;
/// let answer = Cg::new(&a).solve(&vec![1.0; a.rows()])?;
/// let times = profile.times();
/// assert!(times.read > 0.0 && times.iterate > 0.0);
/// assert!(answer.report().profile.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Profile(Arc<Mutex<Clock>>);

/// The open phases, and the time of each phase up to the last change.
#[derive(Debug)]
struct Clock {
    began: Instant,
    changed: Instant,
    open: Vec<Phase>,
    spent: [Duration; COUNT],
}

impl Clock {
    /// Adds the time since the last change to the innermost open phase.
    fn advance(&mut self, now: Instant) {
        if let Some(phase) = self.open.last() {
            self.spent[*phase as usize] += now - self.changed;
        }
        self.changed = now;
    }
}

thread_local! {
    /// The profile that measures this thread.
    static ACTIVE: RefCell<Option<Profile>> = const { RefCell::new(None) };
}

/// Returns the profile that measures this thread.
pub(crate) fn active() -> Option<Profile> {
    ACTIVE.with_borrow(Clone::clone)
}

/// Returns whether a profile measures this thread.
pub(crate) fn is_active() -> bool {
    ACTIVE.with_borrow(Option::is_some)
}

impl Profile {
    /// Starts a measurement.
    pub fn new() -> Profile {
        Profile::since(Instant::now())
    }

    /// Starts a measurement whose total time counts from an earlier time.
    pub(crate) fn since(began: Instant) -> Profile {
        let (open, spent) = (Vec::with_capacity(DEPTH), [Duration::ZERO; COUNT]);
        Profile(Arc::new(Mutex::new(Clock { began, changed: Instant::now(), open, spent })))
    }

    /// Measures the phases of the calling thread until the result is dropped. A profile
    /// measures one thread at a time.
    pub fn activate(&self) -> Active {
        let before = ACTIVE.replace(Some(self.clone()));
        Active { before, here: PhantomData }
    }

    /// Returns the times up to now.
    pub fn times(&self) -> Times {
        let mut clock = lock(&self.0);
        clock.advance(Instant::now());
        let spent = |phase: Phase| clock.spent[phase as usize].as_secs_f64();
        let total = (clock.changed - clock.began).as_secs_f64();
        Times {
            read: spent(Phase::Read),
            open: spent(Phase::Open),
            analyse: spent(Phase::Analyse),
            build: spent(Phase::Build),
            upload: spent(Phase::Upload),
            compile: spent(Phase::Compile),
            iterate: spent(Phase::Iterate),
            verify: spent(Phase::Verify),
            limit: spent(Phase::Limit),
            write: spent(Phase::Write),
            other: (total - Phase::ALL.map(spent).iter().sum::<f64>()).max(0.0),
            total,
        }
    }

    fn enter(&self, phase: Phase) {
        let mut clock = lock(&self.0);
        clock.advance(Instant::now());
        clock.open.push(phase);
    }

    fn leave(&self) {
        let mut clock = lock(&self.0);
        clock.advance(Instant::now());
        clock.open.pop();
    }
}

impl Default for Profile {
    fn default() -> Profile {
        Profile::new()
    }
}

/// Keeps a profile active on this thread. Dropping it activates the previous profile, if there was one.
#[must_use = "the profile measures until this value is dropped"]
#[derive(Debug)]
pub struct Active {
    before: Option<Profile>,
    /// The value belongs to one thread.
    here: PhantomData<*const ()>,
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.set(self.before.take());
    }
}

/// Begins a phase of this thread.
pub(crate) fn begin(phase: Phase) -> Span {
    let profile = active();
    if let Some(profile) = &profile {
        profile.enter(phase);
    }
    Span { profile, ranges: Label::begin(phase.label()), here: PhantomData }
}

/// Announces a batch of iterations, which is part of its phase.
pub(crate) fn batch(iterations: usize) -> Label {
    // The longest number has 20 digits, and the last byte stays NUL.
    let mut text = [0_u8; 32];
    if nvtx::ranges().is_none() {
        return Label { ranges: None, here: PhantomData };
    }
    let noun = if iterations == 1 { "iteration" } else { "iterations" };
    let _ = write!(&mut text[..31], "{iterations} {noun}");
    Label::begin(CStr::from_bytes_until_nul(&text).unwrap_or(c"iterations"))
}

/// A phase in progress, which ends when this value is dropped. Spans end in the opposite order
/// of their begin.
#[must_use = "the phase ends when this value is dropped"]
#[derive(Debug)]
pub(crate) struct Span {
    profile: Option<Profile>,
    #[expect(dead_code, reason = "its drop ends the range")]
    ranges: Label,
    here: PhantomData<*const ()>,
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(profile) = &self.profile {
            profile.leave();
        }
    }
}

/// A range shown by an NVIDIA profiler; without a profiler it does nothing.
#[must_use = "the range ends when this value is dropped"]
#[derive(Debug)]
pub(crate) struct Label {
    ranges: Option<&'static Ranges>,
    here: PhantomData<*const ()>,
}

impl Label {
    fn begin(name: &CStr) -> Label {
        let ranges = nvtx::ranges();
        if let Some(ranges) = ranges {
            ranges.push(name);
        }
        Label { ranges, here: PhantomData }
    }
}

impl Drop for Label {
    fn drop(&mut self) {
        if let Some(ranges) = self.ranges {
            ranges.pop();
        }
    }
}

/// Seconds of wall time in each phase, without the phases nested in it. All numbers except
/// `total` add up to `total`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Times {
    /// [`Phase::Read`].
    pub read: f64,
    /// [`Phase::Open`].
    pub open: f64,
    /// [`Phase::Analyse`].
    pub analyse: f64,
    /// [`Phase::Build`].
    pub build: f64,
    /// [`Phase::Upload`].
    pub upload: f64,
    /// [`Phase::Compile`].
    pub compile: f64,
    /// [`Phase::Iterate`].
    pub iterate: f64,
    /// [`Phase::Verify`].
    pub verify: f64,
    /// [`Phase::Limit`].
    pub limit: f64,
    /// [`Phase::Write`].
    pub write: f64,
    /// Time outside of every phase.
    pub other: f64,
    /// Time from the start of the profile.
    pub total: f64,
}

impl Times {
    /// Returns the names of the phases with their seconds, then the time outside of every phase;
    /// the total is not included.
    pub(crate) fn rows(&self) -> [(&'static str, f64); COUNT + 1] {
        [
            (Phase::Read.name(), self.read),
            (Phase::Open.name(), self.open),
            (Phase::Analyse.name(), self.analyse),
            (Phase::Build.name(), self.build),
            (Phase::Upload.name(), self.upload),
            (Phase::Compile.name(), self.compile),
            (Phase::Iterate.name(), self.iterate),
            (Phase::Verify.name(), self.verify),
            (Phase::Limit.name(), self.limit),
            (Phase::Write.name(), self.write),
            ("other", self.other),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    const TICK: Duration = Duration::from_millis(20);

    #[test]
    fn a_nested_phase_is_not_counted_twice() {
        let profile = Profile::new();
        let _active = profile.activate();
        {
            let _build = begin(Phase::Build);
            sleep(TICK);
            let _upload = begin(Phase::Upload);
            sleep(3 * TICK);
        }
        let times = profile.times();
        assert!(times.build >= 0.02 && times.upload >= 0.06 && times.build < times.upload, "{times:?}");
        assert!((times.rows().iter().map(|row| row.1).sum::<f64>() - times.total).abs() < 1e-9, "{times:?}");
    }

    #[test]
    fn a_phase_that_is_still_open_counts_up_to_now() {
        let profile = Profile::new();
        let _active = profile.activate();
        let _iterate = begin(Phase::Iterate);
        sleep(TICK);
        let first = profile.times();
        sleep(TICK);
        let second = profile.times();
        assert!(first.iterate >= 0.02 && second.iterate >= first.iterate + 0.02, "{first:?} {second:?}");
    }

    #[test]
    fn phases_of_other_threads_and_after_the_end_are_not_measured() {
        let profile = Profile::new();
        let active = profile.activate();
        std::thread::spawn(|| {
            assert!(!is_active());
            let _read = begin(Phase::Read);
            sleep(TICK);
        })
        .join()
        .unwrap();
        drop(active);
        let _write = begin(Phase::Write);
        assert_eq!((profile.times().read, profile.times().write), (0.0, 0.0));
    }
}
