//! What the shell asks of a method: its workspace, one iteration, and what its scalars mean.

use crate::backend::Operator;
use crate::device::{Device, Slot, SlotState, Track};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::spectrum::Tridiagonal;
use crate::stop::{StopCode, StopReason};

/// The square of the residual's norm, counted in every iteration. The first slots have the same place in every method.
pub(super) const RR: Slot = Slot(0);
/// The square of the residual norm to reach.
pub(super) const TARGET: Slot = Slot(1);
/// The square of the residual norm that counts as divergence.
pub(super) const CEILING: Slot = Slot(2);
/// The first slot of a method's own.
pub(super) const OWN: u8 = 3;

/// The tracks of the ring on which a method leaves the two coefficients of each iteration.
pub(super) const FIRST: Track = Track(1);
pub(super) const SECOND: Track = Track(2);

/// The matrix and what approximates its inverse.
pub(super) struct Operators<D: Device, T: Scalar> {
    pub a: Operator<D, T>,
    pub m: Option<Operator<D, T>>,
}

impl<D: Device, T: Scalar> Clone for Operators<D, T> {
    fn clone(&self) -> Self {
        Operators { a: self.a.clone(), m: self.m.clone() }
    }
}

/// An operator that approximates the inverse, and two vectors that it may be applied to.
pub(super) type Preconditioning<'a, D, T> = (&'a Operator<D, T>, [&'a mut <D as Device>::Vector<T>; 2]);

/// A method, as the type of its workspace: operators, vectors and scalars, allocated once.
pub(super) trait Recurrence<D: Device, T: Scalar>: Sized + Send {
    /// The version of what one step hands to the next, in slots and vectors. It is raised whenever an older checkpoint
    /// would go on otherwise than it began.
    const STATE: u32;
    /// Slots in the workspace.
    const SLOTS: usize;
    /// Iterations in a step: two where vectors swap their roles from one iteration to the next.
    const STRIDE: usize = 1;

    /// Whether the method can run on A times a power of two, where the squares of A leave the range of numbers.
    const SCALES: bool = false;

    /// Vectors in the workspace.
    fn vectors(preconditioned: bool) -> usize;

    /// Bytes that the sweeps of an iteration move over vectors of n elements, besides what operators move.
    fn sweep_bytes(n: usize, preconditioned: bool) -> u64;

    /// The workspace for systems of n rows; all vectors and scalars are zero.
    fn new(device: &D, operators: Operators<D, T>, n: usize) -> Result<Self>;

    /// Sets the vectors to zero that [`start`](Self::start) expects to be zero.
    fn clear(&mut self, device: &D) -> Result<()>;

    /// Begins A d = r from d = 0: sets vectors and scalars of the first iteration, r'r among them.
    fn start(&mut self, device: &D, r: &[T]) -> Result<()>;

    /// [`STRIDE`](Self::STRIDE) iterations.
    fn step(device: &D, work: &mut Self) -> Result<()>;

    /// The scalars.
    fn slots(&self) -> &D::Slots;

    /// The scalars.
    fn slots_mut(&mut self) -> &mut D::Slots;

    /// The vectors that one step hands to the next, and those that [`finish`](Self::finish) reads: with the scalars all
    /// that a solve needs to go on. Always in the same order.
    fn carried(&self) -> Vec<&D::Vector<T>>;

    /// The same, to be filled.
    fn carried_mut(&mut self) -> Vec<&mut D::Vector<T>>;

    /// Sets scalars of the method's own before the first iteration; `sigma` is the power of two that A is multiplied by.
    fn prepare(_state: &mut SlotState, _sigma: f64) {}

    /// Sets the number of iterations after which a run must stop, where a step may go beyond it.
    fn limit(_state: &mut SlotState, _iterations: f64) {}

    /// The rest of a step that such a limit has cut after so many iterations, if there is any.
    fn rest(_iterations: usize) -> Option<fn(&D, &mut Self) -> Result<()>> {
        None
    }

    /// What a code of the method's own means, with the evidence that the slots still hold. The run began when `first`
    /// iterations were counted.
    fn reason(code: StopCode, state: &SlotState, first: usize) -> StopReason;

    /// The reason, looked at again where rounding in the recurrences may have feigned it. The state is that of the
    /// stop.
    fn verify(
        &mut self,
        _device: &D,
        reason: StopReason,
        _state: &mut SlotState,
        _first: usize,
    ) -> Result<StopReason> {
        Ok(reason)
    }

    /// Completes d where the last step has left an update open.
    fn finish(&mut self, device: &D, state: &mut SlotState, first: usize) -> Result<()>;

    /// d.
    fn answer(&self) -> &D::Vector<T>;

    /// The preconditioner, and two vectors that it may be applied to once d has been read; none without preconditioner.
    fn preconditioner(&mut self) -> Option<Preconditioning<'_, D, T>>;

    /// The vectors in which NaN may stand, in the order in which an iteration computes them, by what they are.
    fn suspects(&self) -> Vec<(&'static str, &D::Vector<T>)>;

    /// The direction whose curvature was not positive; none where the method does not keep it.
    fn direction(&self) -> Option<&D::Vector<T>> {
        None
    }

    /// The energy d'A d that an iteration with these coefficients has gained; 0 where the method does not know.
    fn energy(_first: f64, _second: f64) -> f64 {
        0.0
    }

    /// Sets the projection that coefficients of the iterations make.
    fn project(coefficients: &[(f64, f64)], projection: &mut Tridiagonal);
}

/// NaN or infinity, before anybody has looked where.
pub(super) fn not_finite(iteration: usize) -> StopReason {
    StopReason::NotFinite { iteration, vector: "", row: None }
}

/// A step recorded on a device, together with the workspace that it works on.
pub(super) struct Recorded<D: Device, W> {
    graph: D::Graph,
    work: W,
    step: fn(&D, &mut W) -> Result<()>,
}

impl<D: Device, W> Recorded<D, W> {
    pub fn new(device: &D, mut work: W, step: fn(&D, &mut W) -> Result<()>) -> Result<Self> {
        let graph = device.record(&mut || step(device, &mut work))?;
        Ok(Recorded { graph, work, step })
    }

    pub fn replay(&mut self, device: &D, times: usize) -> Result<()> {
        let Recorded { graph, work, step } = self;
        device.replay(graph, times, &mut || step(device, work))
    }

    pub fn ends_by_itself(&self, device: &D) -> bool {
        device.ends_by_itself(&self.graph)
    }

    pub fn work(&self) -> &W {
        &self.work
    }

    pub fn work_mut(&mut self) -> &mut W {
        &mut self.work
    }

    pub fn into_work(self) -> W {
        self.work
    }
}
