//! Recorded steps: CUDA graphs, or one launch for many of them.

use super::Cuda;
use super::burst::{Burst, Trace};
use super::driver::{bind, fault};
use super::graph::Graph;
use crate::device::Recorded;
use crate::error::Result;
use cudarc::driver::sys;
use std::cell::Cell;
use std::sync::{PoisonError, RwLock};

/// Iterations in the longer of the two graphs that a step is recorded into: launching a graph costs the host a few
/// microseconds, as much as an iteration on a small system.
const STEPS_IN_GRAPH: usize = 16;
const _: () = assert!(STEPS_IN_GRAPH.is_multiple_of(2), "swapped vectors must be back after a long graph");

/// A recorded step.
pub enum CudaSteps {
    /// As graphs.
    Graphs(Graphs),
    /// As a kernel that runs it many times.
    Burst(Box<Burst>),
}

/// CUDA graphs of one and of several iterations.
///
/// Graphs hold addresses. Where the step swaps vectors, every second one finds them swapped: that one is `back`, and both
/// the single graph and the long one, of an even number of steps, begin where the recording began.
pub struct Graphs {
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

impl Cuda {
    /// Runs a step with its launches left out: it compiles its kernels and swaps its vectors.
    fn rehearse(&self, step: impl FnOnce() -> Result<()>) -> Result<()> {
        self.rehearsing.set(true);
        let outcome = step();
        self.rehearsing.set(false);
        outcome
    }

    /// Takes a step down, as one launch for many of it.
    fn take_down(&self, mut step: impl FnMut() -> Result<()>) -> Result<Option<Burst>> {
        let swaps = self.swaps.get();
        self.trace.replace(Some(Trace::default()));
        let outcome = self.rehearse(&mut step);
        let trace = self.trace.take().unwrap_or_default();
        outcome?;
        if self.swaps.get() == swaps {
            return Burst::of(self, &trace);
        }
        // The vectors shall stand where they stood.
        self.rehearse(step)?;
        Ok(None)
    }

    /// Ends a capture whatever came of the step, and makes the graph ready to launch.
    fn capture(&self, step: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let _capturing = CAPTURES.read().unwrap_or_else(PoisonError::into_inner);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.stream.begin_capture(mode).map_err(fault("cuStreamBeginCapture"))?;
        CAPTURING.set(true);
        let outcome = step();
        CAPTURING.set(false);
        let graph = Graph::end_capture(&self.stream);
        outcome.and(graph)
    }

    /// Captures a step that is not to run in one launch.
    fn graphs(&self, mut step: impl FnMut() -> Result<()>) -> Result<Graphs> {
        // Modules cannot be loaded inside a capture, so the step first runs with its launches left out.
        let before = self.swaps.get();
        self.rehearse(&mut step)?;
        let swaps = self.swaps.get() != before;
        if swaps {
            self.rehearse(&mut step)?;
        }
        let one = self.capture(&mut step)?;
        let back = if swaps { Some(self.capture(&mut step)?) } else { None };
        let many = self.capture(|| (0..STEPS_IN_GRAPH).try_for_each(|_| step()))?;
        Ok(Graphs { one, back, many, away: false })
    }

    /// See [`Device::record`](crate::device::Device::record).
    pub(super) fn record_step<W>(
        &self,
        mut work: W,
        step: fn(&Cuda, &mut W) -> Result<()>,
    ) -> Result<Recorded<Cuda, W>> {
        bind(&self.context)?;
        let burst = if self.expects_bursts.get() { self.take_down(|| step(self, &mut work))? } else { None };
        let graph = match burst {
            Some(burst) => CudaSteps::Burst(Box::new(burst)),
            None => CudaSteps::Graphs(self.graphs(|| step(self, &mut work))?),
        };
        Ok(Recorded { work, step, graph })
    }

    /// See [`Device::replay`](crate::device::Device::replay).
    pub(super) fn replay_step<W>(&self, recorded: &mut Recorded<Cuda, W>, times: usize) -> Result<()> {
        match &mut recorded.graph {
            CudaSteps::Burst(burst) => burst.launch(self, times),
            CudaSteps::Graphs(graphs) => {
                let away = graphs.away;
                graphs.launch(times)?;
                if graphs.away != away {
                    // The workspace, too, says where its vectors stand now.
                    self.rehearse(|| (recorded.step)(self, &mut recorded.work))?;
                }
                Ok(())
            }
        }
    }
}
