//! A captured step as a graph that may move between threads.

use super::driver::{bind, fault};
use crate::error::{Error, GpuError, Result};
use cudarc::driver::result::{graph, stream};
use cudarc::driver::{CudaStream, sys};
use std::sync::Arc;

/// A graph that is ready to launch on the stream that it was captured on.
pub(super) struct Graph {
    executable: sys::CUgraphExec,
    stream: Arc<CudaStream>,
}

// SAFETY: the driver does not tie a graph to a thread. It requires that calls on one graph do not overlap and
// that the graph's context is current. Every call here binds the context first. The type is not `Sync`, so
// that only the thread that owns the graph makes calls.
unsafe impl Send for Graph {}

impl Graph {
    /// Ends the capture on a stream, and instantiates the captured graph.
    pub(crate) fn end_capture(on: &Arc<CudaStream>) -> Result<Graph> {
        bind(on.context())?;
        // SAFETY: the stream lives through the call.
        let captured = unsafe { stream::end_capture(on.cu_stream()) }.map_err(fault("cuStreamEndCapture"))?;
        if captured.is_null() {
            let message = "the step enqueued no work".to_owned();
            return Err(Error::Gpu(GpuError::Cuda { call: "cuStreamEndCapture", message }));
        }
        // SAFETY: `captured` is the graph of the capture that has just ended.
        let executable = unsafe { graph::instantiate(captured, sys::CUgraphInstantiate_flags(0)) };
        // SAFETY: no other code has the graph, and its executable form is independent of it.
        let destroyed = unsafe { graph::destroy(captured) };
        let executable = executable.map_err(fault("cuGraphInstantiate"))?;
        let graph = Graph { executable, stream: Arc::clone(on) };
        destroyed.map_err(fault("cuGraphDestroy"))?;
        // SAFETY: both live as long as `graph`.
        unsafe { graph::upload(graph.executable, on.cu_stream()) }.map_err(fault("cuGraphUpload"))?;
        Ok(graph)
    }

    /// Enqueues the step once.
    pub(crate) fn launch(&self) -> Result<()> {
        bind(self.stream.context())?;
        // SAFETY: both live as long as `self`.
        unsafe { graph::launch(self.executable, self.stream.cu_stream()) }.map_err(fault("cuGraphLaunch"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: made by `end_capture`, destroyed once; the driver frees it after the launches under way.
        context.record_err(unsafe { graph::exec_destroy(self.executable) });
    }
}
