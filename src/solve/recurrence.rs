//! What the loop needs of a method for linear systems: what is known of it, its iterations, and what its scalars mean.

use crate::backend::Operator;
use crate::device::{Device, Formula, Name, Product, Slot, SlotState, Track, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::spectrum::Tridiagonal;
use crate::stop::{StopCode, StopReason};

/// The square of the residual's norm, counted in every iteration. The first slots have the same place in every method, under
/// the names `rr`, `target` and `ceiling`.
pub(super) const RR: Slot = Slot(0);
/// The square of the residual norm to reach.
pub(super) const TARGET: Slot = Slot(1);
/// The square of the residual norm that counts as divergence.
pub(super) const CEILING: Slot = Slot(2);

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

/// What the coefficients that an iteration notes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coefficients {
    /// The step length alpha and the product rho = r'z of conjugate gradients.
    Conjugate,
    /// The diagonal of Lanczos' projection, and the entry that follows it.
    Lanczos,
}

impl Coefficients {
    /// The energy d'A d that an iteration with these coefficients has gained; 0 where it does not follow from them.
    pub fn energy(self, (first, second): (f64, f64)) -> f64 {
        match self {
            Coefficients::Conjugate => first * second,
            Coefficients::Lanczos => 0.0,
        }
    }

    /// Sets the projection of the matrix that coefficients of the iterations make.
    pub fn project(self, coefficients: &[(f64, f64)], projection: &mut Tridiagonal) {
        match self {
            Coefficients::Conjugate => projection.set_to_conjugate_gradients(coefficients),
            Coefficients::Lanczos => projection.set_to_lanczos(coefficients),
        }
    }
}

/// Two values: for solves without a preconditioner, and with one.
pub(super) type Either<X> = [X; 2];

/// What is known of a method.
#[derive(Debug)]
pub(super) struct Facts {
    /// The word for it.
    pub name: &'static str,
    /// The version of what one step hands to the next, in slots and vectors. It is raised whenever an older checkpoint
    /// would go on otherwise than it began.
    pub state: u32,
    /// Slots in the workspace.
    pub slots: usize,
    /// Vectors in the workspace.
    pub vectors: Either<&'static [Name]>,
    /// Those that are zero at the start of a run: d = 0, and what grows from it.
    pub zero: Either<&'static [Name]>,
    /// Those that are the residual at the start of a run.
    pub residual: Either<&'static [Name]>,
    /// Those that one step hands to the next, and that [`finish`](Recurrence::finish) reads: with the scalars all that a solve
    /// needs to go on.
    pub carried: Either<&'static [Name]>,
    /// Those that NaN may be in, in the order in which an iteration computes them, with the words for them.
    pub suspects: Either<&'static [(&'static str, Name)]>,
    /// d.
    pub answer: Name,
    /// The direction whose curvature was not positive, where the method keeps it.
    pub direction: Option<Name>,
    /// Two that the preconditioner may be applied to once d has been read.
    pub spare: [Name; 2],
    /// The sweeps of an iteration, besides what operators move.
    pub sweeps: Either<&'static [Formula]>,
    /// The sweeps at the start and at the end of a run.
    pub other_sweeps: &'static [Formula],
    /// The products that a dot product and a program follow.
    pub products: &'static [Product],
    /// What an iteration notes.
    pub coefficients: Coefficients,
    /// The iterations of a step: several where vectors exchange their roles from one to the next.
    pub stride: usize,
    /// Whether it solves for several right-hand sides at once.
    pub columns: bool,
    /// The slot of a power of two by which the method multiplies A where squares of its entries leave the range of numbers.
    pub sigma: Option<Slot>,
    /// The slot of the number of iterations after which a run must stop, where a step may go beyond it.
    pub limit: Option<Slot>,
}

impl Facts {
    /// Bytes that the sweeps of an iteration move over n elements of `width` bytes.
    pub fn sweep_bytes(&self, n: usize, width: usize, preconditioned: bool) -> u64 {
        self.sweeps[usize::from(preconditioned)].iter().map(|sweep| sweep.bytes(n, 1, width)).sum()
    }
}

/// A method. Its vectors have n rows and k columns and live in a workspace; `k` are the operators.
pub(super) trait Recurrence: Send + Sync + 'static {
    /// What is known of it.
    const FACTS: Facts;

    /// One iteration, the `turn`-th of a step.
    fn iteration<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        turn: usize,
    ) -> Result<()>;

    /// Begins A d = r in the columns that are not done: sets vectors and scalars of the first iteration, r'r among them, once
    /// the vectors that are zero or r are set. `state` is room for the scalars.
    fn start<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()>;

    /// What a code of the method's own means for a column, with the evidence that vectors and slots still hold, looked at again
    /// where rounding in the recurrences may have feigned it. All columns are done. The run of the column began when `first`
    /// iterations were counted.
    fn reason<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        code: StopCode,
        state: &mut SlotState,
        column: usize,
        first: usize,
    ) -> Result<StopReason>;

    /// Completes d where the last step has left an update open. All columns are done; `first` as for
    /// [`reason`](Self::reason), of each column.
    fn finish<D: Device, T: Scalar>(
        _w: &mut Work<'_, D, T>,
        _state: &mut SlotState,
        _first: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        Ok(())
    }
}

/// A step of a method: all its iterations.
pub(super) fn step<M: Recurrence, D: Device, T: Scalar>(
    k: &Operators<D, T>,
    w: &mut Work<'_, D, T>,
) -> Result<()> {
    (0..M::FACTS.stride).try_for_each(|turn| M::iteration(k, w, turn))
}

/// The last iterations of a step of which some are done.
pub(super) fn rest_of_step<M: Recurrence, D: Device, T: Scalar>(
    k: &Operators<D, T>,
    w: &mut Work<'_, D, T>,
) -> Result<()> {
    (1..M::FACTS.stride).try_for_each(|turn| M::iteration(k, w, turn))
}

/// NaN or infinity, before its place is known.
pub(super) fn not_finite(iteration: usize) -> StopReason {
    StopReason::NotFinite { iteration, vector: "", row: None }
}
