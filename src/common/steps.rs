//! A step recorded over any workspace.

use crate::Result;
use crate::device::Device;

/// A recorded step with its workspace.
pub(crate) struct Steps<D: Device, W> {
    device: D,
    graph: D::Graph,
    /// The data on which the step works. Its vectors keep their addresses.
    pub(crate) work: W,
    step: fn(&D, &mut W) -> Result<()>,
}

impl<D: Device, W> Steps<D, W> {
    /// Records the step.
    pub(crate) fn record(device: &D, mut work: W, step: fn(&D, &mut W) -> Result<()>) -> Result<Steps<D, W>> {
        let graph = device.record(&mut || step(device, &mut work))?;
        Ok(Steps { device: device.clone(), graph, work, step })
    }

    /// Runs the step `times` times.
    pub(crate) fn replay(&mut self, times: usize) -> Result<()> {
        let Steps { device, graph, work, step } = self;
        device.replay(graph, times, &mut || step(device, work))
    }
}
