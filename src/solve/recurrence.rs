//! The interface between the loop and a method for linear systems: the description of the method, its
//! iterations, and the meaning of its scalars.

use crate::backend::Operator;
use crate::device::{Device, Formula, Name, Slot, SlotState, Track, Work};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::spectrum::Tridiagonal;
use crate::stop::{StopCode, StopReason};

/// The square of the residual norm, counted in every iteration. The first slots are the same in every method,
/// under the names `rr`, `target` and `ceiling`.
pub(super) const RR: Slot = Slot(0);
/// The square of the residual norm to reach.
pub(super) const TARGET: Slot = Slot(1);
/// The square of the residual norm that counts as divergence.
pub(super) const CEILING: Slot = Slot(2);

/// The tracks of the ring to which a method writes the two coefficients of each iteration.
pub(super) const FIRST: Track = Track(1);
pub(super) const SECOND: Track = Track(2);

/// The matrix and an optional approximation of its inverse.
pub(super) struct Operators<D: Device, T: Scalar> {
    pub a: Operator<D, T>,
    pub m: Option<Operator<D, T>>,
}

impl<D: Device, T: Scalar> Operators<D, T> {
    /// Prepares both for `k` columns.
    pub(crate) fn prepare(&self, k: usize) -> Result<()> {
        let device = self.a.device();
        device.agreed(self.a.prepare(k))?;
        self.m.as_ref().map_or(Ok(()), |m| device.agreed(m.prepare(k)))
    }
}

impl<D: Device, T: Scalar> Clone for Operators<D, T> {
    fn clone(&self) -> Self {
        Operators { a: self.a.clone(), m: self.m.clone() }
    }
}

/// The meaning of the coefficients that an iteration records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coefficients {
    /// The step length alpha and the product rho = r'z of conjugate gradients.
    Conjugate,
    /// The diagonal entry of Lanczos' projection, and the off-diagonal entry that follows it.
    Lanczos,
}

impl Coefficients {
    /// Computes the energy d'A d gained by an iteration with these coefficients; 0 if the
    /// coefficients do not determine it.
    pub(crate) fn energy(self, (first, second): (f64, f64)) -> f64 {
        match self {
            Coefficients::Conjugate => first * second,
            Coefficients::Lanczos => 0.0,
        }
    }

    /// Sets the projection of the matrix from the coefficients of the iterations.
    pub(crate) fn project(self, coefficients: &[(f64, f64)], projection: &mut Tridiagonal) {
        match self {
            Coefficients::Conjugate => projection.set_to_conjugate_gradients(coefficients),
            Coefficients::Lanczos => projection.set_to_lanczos(coefficients),
        }
    }
}

/// What a method needs of the matrix A and of the preconditioner M.
#[derive(Debug)]
pub(crate) struct Needs {
    /// Whether A must be symmetric.
    pub symmetric: bool,
    /// Whether A must be positive definite.
    pub definite: bool,
    /// Whether M must be symmetric and positive definite.
    pub definite_m: bool,
    /// Whether the method updates vectors that M would compute, so that the rounding of M adds up.
    pub linear_m: bool,
}

impl Needs {
    /// The needs of conjugate gradients.
    pub(super) const DEFINITE: Needs =
        Needs { symmetric: true, definite: true, definite_m: true, linear_m: false };
}

/// Two values: for solves without a preconditioner, and with one.
pub(super) type Either<X> = [X; 2];

/// The dense products of a method with small k x k matrices. The host computes these matrices, so it takes
/// part in every iteration.
#[derive(Debug)]
pub(super) struct Dense {
    /// Small matrices of the method, which follow the slots of the workspace.
    pub matrices: usize,
    /// The slot of the number of independent columns that the method iterates with.
    pub rank: Slot,
    /// The vectors that the dense products of an iteration read or write.
    pub traffic: Either<u64>,
}

/// The description of a method.
#[derive(Debug)]
pub(super) struct Facts {
    /// The name of the method.
    pub name: &'static str,
    /// What the method needs of its operators.
    pub needs: Needs,
    /// The version of the state, in slots and vectors, that one step passes to the next. It must be
    /// incremented whenever a solve could not resume from an older checkpoint with the same results.
    pub state: u32,
    /// Slots in the workspace.
    pub slots: usize,
    /// Dense products, if the method has them.
    pub dense: Option<Dense>,
    /// Vectors in the workspace.
    pub vectors: Either<&'static [Name]>,
    /// The vectors that are zero at the start of a run: d = 0, and vectors that grow from it.
    pub zero: Either<&'static [Name]>,
    /// The vectors that are equal to the residual at the start of a run.
    pub residual: Either<&'static [Name]>,
    /// The vectors that one step passes to the next, and that [`finish`](Recurrence::finish) reads. With the
    /// scalars they are all that a solve needs to resume.
    pub carried: Either<&'static [Name]>,
    /// The vectors that [`finish`](Recurrence::finish) changes between two steps. Empty if d is complete
    /// there: `finish` then changes vectors only after a step that has ended the run.
    pub unfinished: Either<&'static [Name]>,
    /// The vectors that may contain NaN, in the order in which an iteration computes them, with
    /// their names in messages.
    pub suspects: Either<&'static [(&'static str, Name)]>,
    /// The vector d.
    pub answer: Name,
    /// The direction with a curvature that was not positive, if the method keeps it.
    pub direction: Option<Name>,
    /// Two vectors for the input and the output of the preconditioner once d has been read.
    pub spare: [Name; 2],
    /// The sweeps of an iteration, without the memory traffic of operators.
    pub sweeps: Either<&'static [Formula]>,
    /// The sweeps at the start and at the end of a run.
    pub other_sweeps: &'static [Formula],
    /// The products with a dot product and a program after them.
    #[cfg(test)]
    pub products: &'static [crate::device::Product],
    /// The meaning of the coefficients that an iteration records; none if they say nothing about the matrix.
    /// The spectrum, the energy and the estimate of the error follow from them.
    pub coefficients: Option<Coefficients>,
    /// Number of iterations in a step: several if vectors exchange their roles from one
    /// iteration to the next.
    pub stride: usize,
    /// The slot of a power of two by which the method multiplies A if squares of its entries
    /// leave the range of numbers.
    pub sigma: Option<Slot>,
    /// The slot of the number of iterations after which a run must stop, if a step could exceed it.
    pub limit: Option<Slot>,
}

impl Facts {
    /// Returns the bytes that the sweeps and the dense products of an iteration move over n
    /// elements of `width` bytes.
    pub(crate) fn sweep_bytes(&self, (n, k): (usize, usize), width: usize, preconditioned: bool) -> u64 {
        let preconditioned = usize::from(preconditioned);
        let dense = self.dense.as_ref().map_or(0, |dense| dense.traffic[preconditioned]);
        let sweeps: u64 = self.sweeps[preconditioned].iter().map(|sweep| sweep.bytes(n, k, width)).sum();
        sweeps + dense * (n * k * width) as u64
    }

    /// Returns the energy d'A d gained by an iteration with these coefficients, if they determine it, or 0.
    pub(crate) fn energy(&self, coefficients: (f64, f64)) -> f64 {
        self.coefficients.map_or(0.0, |meaning| meaning.energy(coefficients))
    }

    /// Returns whether the coefficients of a column project the matrix, in a solve of k columns: those of one
    /// column of a block do not.
    pub(crate) fn projects(&self, k: usize) -> bool {
        self.coefficients.is_some() && (self.dense.is_none() || k == 1)
    }

    /// Returns the slots of a workspace for k columns, with room for the small matrices.
    pub(crate) fn slots_for(&self, k: usize) -> usize {
        self.slots + self.dense.as_ref().map_or(0, |dense| dense.matrices * k)
    }
}

/// A method. Its vectors have n rows and k columns and are stored in a workspace; the parameter
/// `k` contains the operators.
pub(super) trait Recurrence: Send + Sync + 'static {
    /// The description of the method.
    const FACTS: Facts;

    /// Performs one iteration, the one with index `turn` of a step, which is recorded. A method with
    /// dense products has none.
    fn iteration<D: Device, T: Scalar>(
        _k: &Operators<D, T>,
        _w: &mut Work<'_, D, T>,
        _turn: usize,
    ) -> Result<()> {
        unreachable!("the method has an iteration with the host")
    }

    /// Performs one iteration of a method with dense products in the columns that are not done. The host's
    /// copy of the scalars is then their only copy: the device has none that is current.
    fn iteration_with_host<D: Device, T: Scalar>(
        _k: &Operators<D, T>,
        _w: &mut Work<'_, D, T>,
        _state: &mut SlotState,
    ) -> Result<()> {
        unreachable!("the method has a recorded iteration")
    }

    /// Begins A d = r in the columns that are not done: computes the vectors and scalars of the
    /// first iteration, including r'r, from vectors that have been set to zero or to r. `state` is
    /// a buffer for the scalars.
    fn start<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        state: &mut SlotState,
    ) -> Result<()>;

    /// Translates a method-specific code for a column to a reason, with evidence from vectors and slots. The
    /// evidence is recomputed if rounding in the recurrences may have caused the code. All columns are done.
    /// The run of the column began when `first` iterations were counted.
    fn reason<D: Device, T: Scalar>(
        k: &Operators<D, T>,
        w: &mut Work<'_, D, T>,
        code: StopCode,
        state: &mut SlotState,
        column: usize,
        first: usize,
    ) -> Result<StopReason>;

    /// Completes d if the last step has not performed an update. All columns are done; `first` is as for
    /// [`reason`](Self::reason), for each column.
    fn finish<D: Device, T: Scalar>(
        _w: &mut Work<'_, D, T>,
        _state: &mut SlotState,
        _first: &dyn Fn(usize) -> usize,
    ) -> Result<()> {
        Ok(())
    }
}

/// Performs a step of a method: all its iterations.
pub(super) fn step<M: Recurrence, D: Device, T: Scalar>(
    k: &Operators<D, T>,
    w: &mut Work<'_, D, T>,
) -> Result<()> {
    (0..M::FACTS.stride).try_for_each(|turn| M::iteration(k, w, turn))
}

/// Performs the last iterations of a step of which the first one is done.
pub(super) fn rest_of_step<M: Recurrence, D: Device, T: Scalar>(
    k: &Operators<D, T>,
    w: &mut Work<'_, D, T>,
) -> Result<()> {
    (1..M::FACTS.stride).try_for_each(|turn| M::iteration(k, w, turn))
}

/// Makes a reason for NaN or infinity without its location.
pub(super) fn not_finite(iteration: usize) -> StopReason {
    StopReason::NotFinite { iteration, vector: "", row: None }
}
