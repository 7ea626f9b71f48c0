//! Recorded steps: CUDA graphs, or one launch for many of them.

use super::burst::{Burst, Trace};
use super::driver::{bind, fault};
use super::graph::Graph;
use super::{Cuda, State};
use crate::device::{Device, Kept};
use crate::error::{GpuError, Result};
use cudarc::driver::sys;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError, RwLock};

/// Iterations in the longer of the two graphs that a step is recorded into: launching a graph costs the host a few
/// microseconds, as much as an iteration on a small system.
const STEPS_IN_GRAPH: usize = 16;
const _: () = assert!(STEPS_IN_GRAPH.is_multiple_of(2), "swapped vectors must be back after a long graph");

/// A recorded step, and all memory and operators whose addresses the recording has.
pub struct CudaSteps {
    // Before what it uses.
    steps: Steps,
    device: Cuda,
    _kept: Vec<Kept>,
}

enum Steps {
    /// As graphs.
    Graphs(Graphs),
    /// As a kernel that runs it many times.
    Burst(Box<Burst>),
}

/// CUDA graphs of one and of several iterations.
///
/// Graphs hold addresses. Where the step swaps vectors, every second one finds them swapped: that one is `back`, and both
/// the single graph and the long one, of an even number of steps, begin where the recording began.
struct Graphs {
    one: Graph,
    back: Option<Graph>,
    many: Graph,
    /// Whether vectors are swapped now.
    away: bool,
}

impl Graphs {
    /// Launches so many steps.
    fn launch(&mut self, times: usize) -> Result<()> {
        let mut left = times;
        if let (Some(back), true, 1..) = (&self.back, self.away, left) {
            back.launch()?;
            self.away = false;
            left -= 1;
        }
        (0..left / STEPS_IN_GRAPH).try_for_each(|_| self.many.launch())?;
        for _ in 0..left % STEPS_IN_GRAPH {
            match &self.back {
                Some(back) if self.away => back.launch()?,
                _ => self.one.launch()?,
            }
            self.away = self.back.is_some() && !self.away;
        }
        Ok(())
    }
}

/// Read while a stream of this process is captured.
static CAPTURES: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread captures.
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
}

/// Runs what waits for the whole GPU, as libraries do when a handle goes: it would end the captures of other threads.
pub(crate) fn between_captures<R>(work: impl FnOnce() -> R) -> R {
    if CAPTURING.get() {
        // It ends our own capture, and must not wait for that.
        return work();
    }
    let _alone = CAPTURES.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Sets a flag, and clears it when it goes out of scope, also where a step panics.
struct Raised<'a>(&'a Cell<bool>);

impl<'a> Raised<'a> {
    fn new(flag: &'a Cell<bool>) -> Raised<'a> {
        flag.set(true);
        Raised(flag)
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Collects what a step uses.
struct Collecting<'a> {
    state: &'a State,
    into: &'a mut Vec<Kept>,
}

impl<'a> Collecting<'a> {
    fn new(state: &'a State, into: &'a mut Vec<Kept>) -> Collecting<'a> {
        state.recording.replace(Some(std::mem::take(into)));
        Collecting { state, into }
    }
}

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        *self.into = self.state.recording.take().unwrap_or_default();
    }
}

impl Cuda {
    /// Runs a step with its launches left out: it compiles its kernels and swaps its vectors.
    fn rehearse(&self, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let turn = self.turn();
        let _rehearsing = Raised::new(&turn.rehearsing);
        step()
    }

    /// Takes a step down, as one launch for many of it.
    fn take_down(&self, kept: &mut Vec<Kept>, mut step: impl FnMut() -> Result<()>) -> Result<Option<Burst>> {
        let turn = self.turn();
        let swaps = turn.swaps.get();
        turn.trace.replace(Some(Trace::default()));
        let outcome = {
            let _collecting = Collecting::new(&turn, kept);
            self.rehearse(&mut step)
        };
        let trace = turn.trace.take().unwrap_or_default();
        outcome?;
        if turn.swaps.get() == swaps {
            return Burst::of(self, &trace);
        }
        // The vectors shall stand where they stood.
        self.rehearse(step)?;
        Ok(None)
    }

    /// Counts a step that was recorded as one launch.
    pub(super) fn count_burst(&self) {
        let turn = self.turn();
        turn.bursts.set(turn.bursts.get() + 1);
    }

    /// Ends a capture whatever came of the step, and makes the graph ready to launch.
    fn capture(&self, step: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let stream = &self.0.stream;
        let _capturing = CAPTURES.read().unwrap_or_else(PoisonError::into_inner);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).map_err(fault("cuStreamBeginCapture"))?;
        // A step that panics ends its capture, too.
        let outcome = CAPTURING.with(|capturing| {
            let _capturing = Raised::new(capturing);
            catch_unwind(AssertUnwindSafe(step))
        });
        let graph = Graph::end_capture(stream);
        outcome.unwrap_or_else(|panic| resume_unwind(panic)).and(graph)
    }

    /// Captures a step that is not to run in one launch.
    fn graphs(&self, kept: &mut Vec<Kept>, mut step: impl FnMut() -> Result<()>) -> Result<Graphs> {
        let turn = self.turn();
        let _collecting = Collecting::new(&turn, kept);
        // Modules cannot be loaded inside a capture, so the step first runs with its launches left out.
        let before = turn.swaps.get();
        self.rehearse(&mut step)?;
        let swaps = turn.swaps.get() != before;
        if swaps {
            self.rehearse(&mut step)?;
        }
        let one = self.capture(&mut step)?;
        let back = if swaps { Some(self.capture(&mut step)?) } else { None };
        let many = self.capture(|| (0..STEPS_IN_GRAPH).try_for_each(|_| step()))?;
        Ok(Graphs { one, back, many, away: false })
    }

    /// See [`Device::record`](crate::device::Device::record).
    pub(super) fn record_step(&self, mut step: impl FnMut() -> Result<()>) -> Result<CudaSteps> {
        bind(&self.0.context)?;
        let turn = self.turn();
        self.check_not_recording()?;
        let mut kept = Vec::new();
        let expects_bursts = turn.expects_bursts.get();
        let burst = if expects_bursts { self.take_down(&mut kept, &mut step)? } else { None };
        let steps = match burst {
            Some(burst) => Steps::Burst(Box::new(burst)),
            None => Steps::Graphs(self.graphs(&mut kept, &mut step)?),
        };
        Ok(CudaSteps { steps, device: self.clone(), _kept: kept })
    }

    /// See [`Device::replay`](crate::device::Device::replay); `step` runs the step itself.
    pub(super) fn replay_step(
        &self,
        recorded: &mut CudaSteps,
        times: usize,
        step: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let _turn = self.turn();
        if !Arc::ptr_eq(&recorded.device.0, &self.0) {
            return Err(GpuError::OtherDevice { device: self.name() }.into());
        }
        self.check_not_recording()?;
        match &mut recorded.steps {
            Steps::Burst(burst) => burst.launch(self, times),
            Steps::Graphs(graphs) => {
                let away = graphs.away;
                graphs.launch(times)?;
                if graphs.away != away {
                    // The workspace, too, says where its vectors are now.
                    self.rehearse(step)?;
                }
                Ok(())
            }
        }
    }
}

impl CudaSteps {
    /// Whether a launch ends by itself once the step says so.
    pub(super) fn ends_by_itself(&self) -> bool {
        matches!(self.steps, Steps::Burst(_))
    }
}
