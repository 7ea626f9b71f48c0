//! Matrices made ready to be applied to vectors.

use crate::device::sweep::dot_sweep;
use crate::device::{Device, Dot, Formula, Op, Operand, Product, Slot, Sweep, Work};
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// What one application of an operator to one column costs, counted from the arrays that it reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes moved, every array once.
    pub bytes: u64,
    /// Additions and multiplications.
    pub flops: u64,
}

impl Cost {
    /// y = A x with a matrix stored as it is: its arrays, x and y, each once.
    pub fn of_csr(matrix: &Csr, vector_width: usize) -> Cost {
        let vectors = (matrix.rows() + matrix.cols()) * vector_width;
        Cost { bytes: matrix.storage_bytes() + vectors as u64, flops: 2 * matrix.nnz() as u64 }
    }
}

/// The dot product of [`LinearOperator::apply_dot`]: `<x, y>` into a slot.
pub type DotInto = [Dot; 1];

/// `<x, y>` into `slot`, as [`LinearOperator::apply_dot`] takes it: x is `Read(0)` there, y is `Read(1)`.
pub const fn dot_into(slot: Slot) -> DotInto {
    [Dot::product(Operand::Read(0), Operand::Read(1), slot)]
}

/// What a backend makes of a matrix, before it is bound to the device as an [`Operator`].
pub type Made<D, T> = Arc<dyn LinearOperator<D, T>>;

/// A linear map on the device that it was made on: what solvers and callers apply. Clones share it, and it may move between
/// threads.
pub struct Operator<D: Device, T: Scalar> {
    device: D,
    made: Made<D, T>,
}

impl<D: Device, T: Scalar> Clone for Operator<D, T> {
    fn clone(&self) -> Self {
        Operator { device: self.device.clone(), made: Arc::clone(&self.made) }
    }
}

impl<D: Device, T: Scalar> Operator<D, T> {
    /// Binds a linear map to the device that it was made on.
    pub fn new(device: &D, made: Made<D, T>) -> Operator<D, T> {
        Operator { device: device.clone(), made }
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        self.made.shape()
    }

    /// The cost of one application: the only source of speeds in reports.
    pub fn cost(&self) -> Cost {
        self.made.cost()
    }

    /// Bytes that the operator holds on its device.
    pub fn storage(&self) -> u64 {
        self.made.storage()
    }

    /// Bytes that [`apply_sweep`](Operator::apply_sweep) moves for one column.
    pub fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        self.made.bytes_with(sweep)
    }

    /// Applies the linear map while no other thread uses the device. A step that is being recorded keeps the operator.
    fn on_device<R>(&self, apply: impl FnOnce(&D, &dyn LinearOperator<D, T>) -> R) -> R {
        self.device.in_turn(|| {
            self.device.keep(|| Arc::new(self.clone()));
            apply(&self.device, &*self.made)
        })
    }

    /// y = alpha A x + beta y. With beta = 0 the old y is never read, NaN included.
    pub fn apply(&self, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        self.on_device(|device, a| a.apply(device, alpha, x, beta, y))
    }

    /// y = A x, then `<x, y>` into the slot of `dot`, then the program; see [`LinearOperator::apply_dot`].
    pub fn apply_dot(
        &self,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        self.on_device(|device, a| a.apply_dot(device, x, y, slots, dot, then))
    }

    /// y = A x, then a sweep that writes y and x; see [`LinearOperator::apply_sweep`].
    pub fn apply_sweep(
        &self,
        vectors: [&mut D::Vector<T>; 2],
        reads: &[&D::Vector<T>],
        slots: &mut D::Slots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        self.on_device(|device, a| a.apply_sweep(device, vectors, reads, slots, sweep))
    }
}

/// A linear map in the form that a backend, or a caller, implements it. It is applied through an [`Operator`], which passes
/// the device that it was made on.
///
/// One that changes scratch memory while it is applied locks it for the whole application.
pub trait LinearOperator<D: Device, T: Scalar>: Send + Sync {
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);

    /// y = alpha A x + beta y. With beta = 0 the old y is never read, NaN included.
    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()>;

    /// y = A x, then `<x, y>` into the slot of `dot`, then the program; the vectors of columns that are done may be
    /// written or not, their slots stay. By default in two passes.
    fn apply_dot(
        &self,
        device: &D,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        self.apply(device, 1.0, x, 0.0, y)?;
        device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then))
    }

    /// y = A x, then the sweep that writes y and x, in this order, and reads the old ones. What y holds afterwards is not
    /// said, so that a backend may do both in one pass, with the new x where y stood, and let the two change places. By
    /// default in two.
    fn apply_sweep(
        &self,
        device: &D,
        [y, x]: [&mut D::Vector<T>; 2],
        reads: &[&D::Vector<T>],
        slots: &mut D::Slots,
        sweep: &Sweep<'_>,
    ) -> Result<()> {
        self.apply(device, 1.0, x, 0.0, y)?;
        device.sweep(&mut [y, x], reads, slots, sweep)
    }

    /// Bytes that [`apply_sweep`](LinearOperator::apply_sweep) moves for one column.
    fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        self.cost().bytes + sweep.bytes(self.shape().0, 1, size_of::<T>())
    }

    /// The cost of one application: the only source of speeds in reports.
    fn cost(&self) -> Cost;

    /// Bytes that the operator holds on its device.
    fn storage(&self) -> u64;
}

impl<D: Device, T: Scalar> Work<'_, D, T> {
    /// y = A x, and the dot product with its program, if the product has them.
    pub fn product(&mut self, a: &Operator<D, T>, product: &Product) -> Result<()> {
        self.lend([product.x, product.y], |x, y, slots| match product.then {
            None => a.apply(1.0, x, 0.0, y),
            Some((slot, then)) => a.apply_dot(x, y, slots, &dot_into(slot), then),
        })
    }

    /// y = A x, then the sweep, whose first updates are of y and x, in this order.
    pub fn product_then(&mut self, a: &Operator<D, T>, formula: &Formula) -> Result<()> {
        self.lend_operands(formula, |vectors, reads, slots| {
            a.apply_sweep(vectors, reads, slots, &formula.sweep)
        })
    }
}
