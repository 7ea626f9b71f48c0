//! Linear operators: matrices in a form that a device can multiply by vectors.

use crate::device::formula::{names, sweep};
use crate::device::sweep::dot_sweep;
use crate::device::{Device, Dot, Formula, Op, Operand, Product, Slot, Sweep, Work};
use crate::error::Result;
use crate::format::Csr;
use crate::observe::report::Levels;
use crate::scalar::Scalar;
use std::sync::Arc;

names! {
    vectors v { y, z }
    scalars s { none }
}

/// y = z.
pub(crate) const COPY: Formula = sweep!({ "copy": y = z; });

/// The cost of one application of an operator, counted from the arrays that it reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes moved, each array counted once.
    pub bytes: u64,
    /// Additions and multiplications.
    pub flops: u64,
}

impl Cost {
    /// Returns the cost of y = A x with a matrix in CSR: the matrix's arrays, x and y, each counted once.
    pub fn of_csr(matrix: &Csr, vector_width: usize) -> Cost {
        let vectors = (matrix.rows() + matrix.cols()) * vector_width;
        Cost { bytes: matrix.storage_bytes() + vectors as u64, flops: 2 * matrix.nnz() as u64 }
    }
}

/// How the kernel of a product occupies a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Registers of a thread, as compiled.
    pub registers: u32,
    /// Thread blocks that a multiprocessor holds at once.
    pub resident: u32,
    /// Thread blocks launched.
    pub blocks: u32,
    /// The threads of these resident blocks in percent of those that a multiprocessor can hold, if the driver
    /// reports their number.
    pub percent: Option<f64>,
}

/// The backend that an operator has chosen by itself, with the reason.
#[derive(Clone, Debug)]
pub struct OwnBackend {
    /// The backend with its parameters.
    pub backend: String,
    /// The reason for the choice.
    pub because: Option<String>,
}

/// The dot product of [`LinearOperator::apply_dot`]: `<x, y>` into a slot.
pub type DotInto = [Dot; 1];

/// Returns the dot product `<x, y>` into `slot` for [`LinearOperator::apply_dot`]: x is
/// `Read(0)` there, y is `Read(1)`.
pub const fn dot_into(slot: Slot) -> DotInto {
    [Dot::product(Operand::Read(0), Operand::Read(1), slot)]
}

/// A shared linear map of a backend; [`Operator`] binds it to its device.
pub type SharedOperator<D, T> = Arc<dyn LinearOperator<D, T>>;

/// Rows whose bounds [`Residuals`] combines for one chunk: few, as a thread of a GPU combines
/// them one after the other.
pub(crate) const RESIDUAL_CHUNK: usize = 512;

/// Computes residuals of one matrix as its source provides it, on a device, by other code than
/// that of a backend.
pub trait Residuals: Send {
    /// Writes b - A x to `r`, and for each `RESIDUAL_CHUNK` rows the sum of the squares of the bounds on
    /// rounding errors, as scale and sum, the largest sum of magnitudes in a row of A, and the largest |r_i /
    /// a_ii| over the rows with a positive diagonal entry. The bits are those of the host's computation.
    fn compute(
        &mut self,
        compensated: bool,
        system: (&[f64], &[f64]),
        r: &mut [f64],
        parts: &mut [[f64; 4]],
    ) -> Result<()>;
}

/// Terms of a sum that are added one after the other; the sums of these chunks are added in their order.
pub(crate) const SUM_CHUNK: usize = 1 << 14;

/// The sum of each chunk of [`SUM_CHUNK`] terms, and the sum of the rounding errors of its additions.
pub(crate) type ChunkSums = Vec<[f64; 2]>;

/// The map F(x) = d (inflow + kept + spread) + (1 - d) v of PageRank, apart from its links.
#[derive(Clone, Copy, Debug)]
pub struct RankMap<'a> {
    /// The damping factor d.
    pub damping: f64,
    /// The distribution v; none if every vertex has `even`.
    pub teleport: Option<&'a [f64]>,
    /// The entry of v of every vertex, if v is not given.
    pub even: f64,
    /// What vertices without links spread: to each vertex this number, or its product with the
    /// entry of v if `by_teleport`.
    pub spread: f64,
    /// Whether `spread` is multiplied by v.
    pub by_teleport: bool,
    /// Whether a vertex without links keeps its rank.
    pub keeps: bool,
}

/// Computes the sums of PageRank's certificate for one graph, on a device, by other code than that of a
/// backend. The bits are those of the host's computation.
pub trait Inflow: Send {
    /// Writes for each vertex the sum of the contributions of the vertices that link to it, times
    /// the weights of the links.
    fn compute(&mut self, contributions: &[f64], inflow: &mut [f64]) -> Result<()>;

    /// Takes the ranks x and the sum of the weights of the links out of each vertex. Returns the sums of x
    /// over the vertices without links, and over all.
    fn begin(&mut self, x: &[f64], out: &[f64]) -> Result<[ChunkSums; 2]>;

    /// Returns the sums of |F(x) - x|, and of the magnitudes of the terms that are rounded, for x of
    /// the last call of `begin`.
    fn finish(&mut self, map: &RankMap<'_>) -> Result<[ChunkSums; 2]>;
}

/// A linear map bound to the device that it was made on: what solvers and callers apply. Clones share the
/// map, and it may move between threads.
pub struct Operator<D: Device, T: Scalar> {
    device: D,
    map: SharedOperator<D, T>,
}

impl<D: Device, T: Scalar> Clone for Operator<D, T> {
    fn clone(&self) -> Self {
        Operator { device: self.device.clone(), map: Arc::clone(&self.map) }
    }
}

impl<D: Device, T: Scalar> Operator<D, T> {
    /// Binds a linear map to the device that it was made on.
    pub fn new(device: &D, map: SharedOperator<D, T>) -> Operator<D, T> {
        Operator { device: device.clone(), map }
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the linear map.
    pub(crate) fn map(&self) -> &SharedOperator<D, T> {
        &self.map
    }

    /// Returns the numbers of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        self.map.shape()
    }

    /// Returns the cost of one application to one column.
    pub fn cost(&self) -> Cost {
        self.map.cost()
    }

    /// Returns the cost of one application to `k` columns at once: the only source of speeds in reports.
    pub fn cost_of(&self, k: usize) -> Cost {
        self.map.cost_of(k)
    }

    /// Returns the bytes that the operator holds on its device.
    pub fn storage(&self) -> u64 {
        self.map.storage()
    }

    /// Prepares applications to `k` columns; see [`LinearOperator::prepare`].
    pub fn prepare(&self, k: usize) -> Result<()> {
        self.device.in_turn(|| self.map.prepare(&self.device, k))
    }

    /// Replaces the values of the matrix; see [`LinearOperator::set_values`].
    pub(crate) fn set_values(&self, values: &D::Vector<T>) -> Result<bool> {
        self.on_device(|device, a| a.set_values(device, values))
    }

    /// Returns how the operator multiplies `k` columns, if it chooses between several ways.
    pub(crate) fn plan_of(&self, k: usize) -> Option<String> {
        self.map.plan_of(k)
    }

    /// Returns the backend for `k` columns, if the operator has chosen another one than for a vector.
    pub(crate) fn chosen_for(&self, k: usize) -> Option<Arc<OwnBackend>> {
        self.map.chosen_for(k)
    }

    /// Returns the levels of which the operator consists; see [`LinearOperator::levels`].
    pub(crate) fn levels(&self) -> Option<Arc<Levels>> {
        self.map.levels()
    }

    /// Returns how the kernel of y = A x occupies the device; see [`LinearOperator::occupancy`].
    pub(crate) fn occupancy(&self) -> Result<Option<Occupancy>> {
        self.device.in_turn(|| self.map.occupancy(&self.device))
    }

    /// Returns the bytes that [`apply_sweep`](Operator::apply_sweep) moves for one column.
    pub(crate) fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        self.map.bytes_with(sweep)
    }

    /// Applies the linear map while no other thread uses the device. A step that is being recorded
    /// keeps the operator alive.
    fn on_device<R>(&self, apply: impl FnOnce(&D, &dyn LinearOperator<D, T>) -> R) -> R {
        self.device.in_turn(|| {
            self.device.keep(|| Arc::new(self.clone()));
            apply(&self.device, &*self.map)
        })
    }

    /// Computes y = alpha A x + beta y. With beta = 0 the old y is never read, so a NaN in it
    /// does not matter.
    pub fn apply(&self, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        self.on_device(|device, a| a.apply(device, alpha, x, beta, y))
    }

    /// Computes y = alpha A x + beta z for `(beta, z)`; see [`LinearOperator::apply_onto`].
    pub(crate) fn apply_onto(
        &self,
        alpha: f64,
        x: &D::Vector<T>,
        onto: (f64, &D::Vector<T>),
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
    ) -> Result<()> {
        self.on_device(|device, a| a.apply_onto(device, alpha, x, onto, y, slots))
    }

    /// Computes y = A x, then `<x, y>` into the slot of `dot`, then runs the program; see
    /// [`LinearOperator::apply_dot`].
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

    /// Computes y = A x, then runs a sweep that writes y and x; see [`LinearOperator::apply_sweep`].
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

/// A linear map as a backend, or a caller, implements it. It is applied through an [`Operator`], which passes
/// the device that the map was made on.
///
/// An implementation that changes scratch memory during an application locks that memory for
/// the whole application.
pub trait LinearOperator<D: Device, T: Scalar>: Send + Sync {
    /// Returns the numbers of rows and columns.
    fn shape(&self) -> (usize, usize);

    /// Allocates and compiles what an application to `k` columns needs. A recorded step must not allocate, so
    /// callers prepare an operator before they record a step. The builder of a backend prepares its operator
    /// for the columns that it is given. The default does nothing.
    fn prepare(&self, _device: &D, _k: usize) -> Result<()> {
        Ok(())
    }

    /// Replaces the values of the matrix, given in the order of its entries, in the order of the device's
    /// work; false if the operator does not store values of the type of the vectors in places that depend on
    /// the pattern only. The default is false.
    fn set_values(&self, _device: &D, _values: &D::Vector<T>) -> Result<bool> {
        Ok(false)
    }

    /// Returns how the operator multiplies `k` columns, in words, if it chooses between several ways.
    fn plan_of(&self, _k: usize) -> Option<String> {
        None
    }

    /// Returns the backend for `k` columns, if the operator has chosen another one than for a vector when it
    /// was prepared for them.
    fn chosen_for(&self, _k: usize) -> Option<Arc<OwnBackend>> {
        None
    }

    /// Returns the levels of which the operator consists, for reports; none if it has no levels.
    fn levels(&self) -> Option<Arc<Levels>> {
        None
    }

    /// Returns how the kernel of y = A x, the last one of several, occupies a GPU; none on a CPU, and if the
    /// operator is no launch of kernels over one format.
    fn occupancy(&self, _device: &D) -> Result<Option<Occupancy>> {
        Ok(None)
    }

    /// Computes y = alpha A x + beta y. With beta = 0 the old y is never read, so a NaN in it
    /// does not matter.
    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()>;

    /// Computes y = alpha A x + beta z for `(beta, z)`. The default copies z first; `slots` serve the copy,
    /// and no column of theirs may be done.
    fn apply_onto(
        &self,
        device: &D,
        alpha: f64,
        x: &D::Vector<T>,
        (beta, z): (f64, &D::Vector<T>),
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
    ) -> Result<()> {
        COPY.run(device, [(v::y, &mut *y)], [(v::z, z)], slots, &[])?;
        self.apply(device, alpha, x, beta, y)
    }

    /// Computes y = A x, then `<x, y>` into the slot of `dot`, then runs the program. The vectors of columns
    /// that are done may be written or not; their slots do not change. The default takes two passes.
    fn apply_dot(
        &self,
        device: &D,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        dot_after_product(self, device, (x, y), slots, dot, then)
    }

    /// Computes y = A x, then runs the sweep that writes y and x, in this order, and reads their old values.
    /// The contents of y afterwards are unspecified: a backend may do both in one pass, write the new x to
    /// the memory of y, and swap the two. The default takes two passes.
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

    /// Returns the bytes that [`apply_sweep`](LinearOperator::apply_sweep) moves for one column.
    fn bytes_with(&self, sweep: &Sweep<'_>) -> u64 {
        self.cost().bytes + sweep.bytes(self.shape().0, 1, size_of::<T>())
    }

    /// Returns the cost of one application to one column.
    fn cost(&self) -> Cost;

    /// Returns the cost of one application to `k` columns at once: the only source of speeds in reports. The
    /// default counts the arrays of the matrix once, and x, y and the operations `k` times, which suits an
    /// operator that stores one form of its matrix; others override it.
    fn cost_of(&self, k: usize) -> Cost {
        let Cost { bytes, flops } = self.cost();
        let (rows, cols) = self.shape();
        let (k, vectors) = (k as u64, ((rows + cols) * size_of::<T>()) as u64);
        Cost { bytes: bytes.saturating_sub(vectors) + k * vectors, flops: k * flops }
    }

    /// Returns the bytes that the operator holds on its device.
    fn storage(&self) -> u64;
}

/// Computes y = A x, and then, in a pass over both vectors, `<x, y>` and the program.
pub(crate) fn dot_after_product<D: Device, T: Scalar>(
    a: &(impl LinearOperator<D, T> + ?Sized),
    device: &D,
    (x, y): (&D::Vector<T>, &mut D::Vector<T>),
    slots: &mut D::Slots,
    dot: &DotInto,
    then: &[Op],
) -> Result<()> {
    a.apply(device, 1.0, x, 0.0, y)?;
    device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then))
}

impl<D: Device, T: Scalar> Work<'_, D, T> {
    /// Computes y = A x, and the dot product with its program if `product` has them.
    pub(crate) fn product(&mut self, a: &Operator<D, T>, product: &Product) -> Result<()> {
        self.lend([product.x, product.y], |x, y, slots| match product.then {
            None => a.apply(1.0, x, 0.0, y),
            Some((slot, then)) => a.apply_dot(x, y, slots, &dot_into(slot), then),
        })
    }

    /// Computes y = A x, then runs the sweep whose first updates are of y and x, in this order.
    pub(crate) fn product_then(&mut self, a: &Operator<D, T>, formula: &Formula) -> Result<()> {
        self.lend_operands(formula, |vectors, reads, slots| {
            a.apply_sweep(vectors, reads, slots, &formula.sweep)
        })
    }
}
