//! Recorded steps: CUDA graphs, or one launch for many steps.

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

/// Iterations in the longer of the two graphs that a step is recorded into: launching a graph takes the host
/// a few microseconds, as long as an iteration on a small system.
const STEPS_IN_GRAPH: usize = 16;
const _: () = assert!(STEPS_IN_GRAPH.is_multiple_of(2), "a long graph must restore swapped vectors");

/// A recorded step, with all memory and operators whose addresses the recording has.
pub struct CudaSteps {
    // Dropped before the memory that they use.
    steps: Steps,
    device: Cuda,
    _kept: Vec<Kept>,
}

enum Steps {
    /// Runs the step as graphs.
    Graphs(Graphs),
    /// Runs the step many times in one kernel.
    Burst(Box<Burst>),
}

/// CUDA graphs of one and of several iterations.
///
/// Graphs hold addresses. If the step swaps vectors, every second step begins with swapped vectors: `second`
/// is the graph of such a step. `first`, and `many` with its even number of steps, begin with the vectors as
/// they were when the recording began.
struct Graphs {
    first: Graph,
    second: Option<Graph>,
    many: Graph,
    /// Whether the vectors are swapped now.
    swapped: bool,
}

impl Graphs {
    /// Launches the step `times` times.
    fn launch(&mut self, times: usize) -> Result<()> {
        let mut left = times;
        if let (Some(second), true, 1..) = (&self.second, self.swapped, left) {
            second.launch()?;
            self.swapped = false;
            left -= 1;
        }
        (0..left / STEPS_IN_GRAPH).try_for_each(|_| self.many.launch())?;
        for _ in 0..left % STEPS_IN_GRAPH {
            match &self.second {
                Some(second) if self.swapped => second.launch()?,
                _ => self.first.launch()?,
            }
            self.swapped = self.second.is_some() && !self.swapped;
        }
        Ok(())
    }
}

/// Locked for reading while a stream of this process is captured.
static CAPTURES: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread is capturing.
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that waits for the whole GPU, as the release of a library's handle does, while no stream is
/// captured: it would end the captures of other threads.
pub(crate) fn between_captures<R>(work: impl FnOnce() -> R) -> R {
    if CAPTURING.get() {
        // The work ends the capture of this thread, which cannot wait for itself.
        return work();
    }
    let _alone = CAPTURES.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Sets a flag, and clears it on drop, also if a step panics.
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

/// Collects the memory and operators that a step uses.
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
    /// Runs a step with its launches left out: the step compiles its kernels and swaps its vectors.
    fn rehearse(&self, step: impl FnOnce() -> Result<()>) -> Result<()> {
        let turn = self.turn();
        let _rehearsing = Raised::new(&turn.rehearsing);
        step()
    }

    /// Traces a step, to run it many times in one launch.
    fn trace_step(
        &self,
        kept: &mut Vec<Kept>,
        mut step: impl FnMut() -> Result<()>,
    ) -> Result<Option<Burst>> {
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
        // Restores the swapped vectors.
        self.rehearse(step)?;
        Ok(None)
    }

    /// Counts a step that was recorded as one launch.
    pub(super) fn count_burst(&self) {
        let turn = self.turn();
        turn.bursts.set(turn.bursts.get() + 1);
    }

    /// Captures a step and instantiates the graph. The capture ends even if the step fails.
    fn capture(&self, step: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let stream = &self.0.stream;
        let _capturing = CAPTURES.read().unwrap_or_else(PoisonError::into_inner);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.begin_capture(mode).map_err(fault("cuStreamBeginCapture"))?;
        // A panic of the step ends the capture, too.
        let outcome = CAPTURING.with(|capturing| {
            let _capturing = Raised::new(capturing);
            // A capture ends when all streams that take part have joined.
            catch_unwind(AssertUnwindSafe(|| step().and_then(|()| self.join_side())))
        });
        let graph = Graph::end_capture(stream);
        outcome.unwrap_or_else(|panic| resume_unwind(panic)).and(graph)
    }

    /// Captures a step that does not run in one launch.
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
        let first = self.capture(&mut step)?;
        let second = if swaps { Some(self.capture(&mut step)?) } else { None };
        let many = self.capture(|| (0..STEPS_IN_GRAPH).try_for_each(|_| step()))?;
        Ok(Graphs { first, second, many, swapped: false })
    }

    /// Records a step; see [`Device::record`](crate::device::Device::record).
    pub(super) fn record_step(&self, mut step: impl FnMut() -> Result<()>) -> Result<CudaSteps> {
        bind(&self.0.context)?;
        let turn = self.turn();
        self.check_not_recording()?;
        self.join_side()?;
        let mut kept = Vec::new();
        let expects_bursts = turn.expects_bursts.get();
        let burst = if expects_bursts { self.trace_step(&mut kept, &mut step)? } else { None };
        let steps = match burst {
            Some(burst) => Steps::Burst(Box::new(burst)),
            None => Steps::Graphs(self.graphs(&mut kept, &mut step)?),
        };
        Ok(CudaSteps { steps, device: self.clone(), _kept: kept })
    }

    /// Replays a recorded step; see [`Device::replay`](crate::device::Device::replay). `step`
    /// runs the step itself.
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
        self.join_side()?;
        match &mut recorded.steps {
            Steps::Burst(burst) => burst.launch(self, times),
            Steps::Graphs(graphs) => {
                let swapped = graphs.swapped;
                graphs.launch(times)?;
                if graphs.swapped != swapped {
                    // Swaps the vectors of the workspace as well.
                    self.rehearse(step)?;
                }
                Ok(())
            }
        }
    }
}

impl CudaSteps {
    /// Returns whether a launch ends as soon as the step has stopped.
    pub(super) fn stops_early(&self) -> bool {
        matches!(self.steps, Steps::Burst(_))
    }
}
