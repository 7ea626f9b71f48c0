//! Products of a matrix with one or several vectors on any device: C = alpha A B + beta C.

use super::device::{DeviceHandle, on_device};
use super::matrix::Matrix;
use super::order::{Order, from_device_order, is_stored_alike, to_device_order};
use super::pattern_only::{WITH_CHANGES, without_values};
use super::run_settings::DeviceSettings;
use super::running::{BackendOrder, Chosen, Run, operator};
use super::shared::{DeviceGuard, DeviceValue, Shared};
use super::tune::Explanation;
use super::watch::Phases;
use crate::backend::{MatrixAgain, Operator, Pick};
use crate::device::{Device, LentNumbers, LentProduct};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::Cost;
use crate::parallel::zeros;
use crate::scalar::{Precision, Scalar};
use std::sync::Arc;

/// Settings of products with a matrix.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let a = Matrix::open("poisson2d:30x30")?;
/// let mut products = Multiply::new(&a).columns(2).prepare()?;
/// let b = vec![1.0; a.cols() * 2]; // row-major: a row of B after the other
/// let c = products.product(&b, 2)?;
/// assert_eq!(c[..2], [2.0, 2.0]); // 4 - 1 - 1 at the corner of the grid
/// # Ok(())
/// # }
/// ```
pub struct Multiply {
    matrix: Matrix,
    order: Order,
    changing: bool,
    run: Run,
}

impl DeviceSettings for Multiply {
    fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

impl Multiply {
    /// Creates the settings of products with this matrix.
    pub fn new(matrix: &Matrix) -> Multiply {
        Multiply { matrix: matrix.clone(), order: Order::RowMajor, changing: false, run: Run::default() }
    }

    /// Sets the number of columns of most products: backend `auto` chooses for it. By default 1. If `auto`
    /// has chosen a backend that multiplies one vector at a time, the first product with several columns
    /// prepares another, and the matrix is stored twice.
    pub fn columns(mut self, k: usize) -> Self {
        self.run.request.columns = k.max(1);
        self
    }

    /// Sets the order of the arrays. By default row-major. Column-major arrays are copied to
    /// the other order and back.
    pub fn order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// Prepares the pattern of the matrix only: [`set_values_lent`](Products::set_values_lent) sets the
    /// values, before the first product and whenever they change. Until then all are NaN. It needs the
    /// backend `csr`, or `spmm:plan=rows`, of a GPU.
    pub fn changing_values(mut self, changing: bool) -> Self {
        self.changing = changing;
        self
    }

    /// Chooses device and backend, and builds the operator.
    pub fn prepare(self) -> Result<Products> {
        let Multiply { matrix, order, changing, mut run } = self;
        let (device, backend) = run.open(None)?;
        let (precision, columns) = (run.request.precision, run.request.columns);
        let csr = match changing {
            true => without_values(&matrix.csr, &backend, precision)?,
            false => matrix.csr.narrowed(precision.narrow_values()),
        };
        let choosing = run.choosing;
        let wanted = BackendOrder { backend: &backend, precision, choosing, columns, one_by_one: false };
        let phases = &mut run.phases;
        let (held, chosen) =
            on_device!(device, precision, |shared, D, T| held::<D, T>(shared, &wanted, &csr, phases))?;
        let is_auto = backend.is_auto();
        Ok(Products { csr, device, chosen, order, held, is_auto, precision, changing })
    }
}

/// A matrix that is ready for products on one device. It can be moved to another thread.
pub struct Products {
    csr: Arc<Csr>,
    device: DeviceHandle,
    chosen: Chosen,
    order: Order,
    held: Box<dyn Held>,
    /// Whether the user named no backend.
    is_auto: bool,
    precision: Precision,
    /// Whether only the pattern was prepared.
    changing: bool,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Products>();
};

impl Products {
    /// Returns A B, for B with `k` columns.
    pub fn product(&mut self, b: &[f64], k: usize) -> Result<Vec<f64>> {
        let mut c = zeros(self.csr.rows().saturating_mul(k))?;
        self.update(1.0, b, 0.0, &mut c, k)?;
        Ok(c)
    }

    /// Computes C = alpha A B + beta C, for B and C with `k` columns. With beta = 0 the old C is not read.
    pub fn update(&mut self, alpha: f64, b: &[f64], beta: f64, c: &mut [f64], k: usize) -> Result<()> {
        let (rows, cols) = (self.csr.rows(), self.csr.cols());
        for (what, n, got) in [("B", cols, b.len()), ("C", rows, c.len())] {
            let expected = n.saturating_mul(k);
            if got != expected {
                return Err(Error::Dimension { what, expected, got });
            }
        }
        let order = self.order;
        self.held_for(k)?.update((alpha, b), (beta, c), k, order)
    }

    /// Computes C = alpha A B + beta C on the device, for B and C in memory of the device. The work
    /// begins after that of the stream of `lent` and is done before its later work; the call may return
    /// earlier. Fails unless the elements have the precision of the vectors: single with
    /// [`Precision::F32`], double otherwise.
    ///
    /// # Safety
    /// At the addresses are as many elements of the device's memory as `lent` says, at a multiple of 16
    /// bytes. B and C do not overlap, and work on them is ordered with the stream, which is a stream of the
    /// device, or 0 for the default stream. On the CPU, nothing else uses them during the call.
    pub unsafe fn update_lent(&mut self, lent: &LentProduct) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.held_for(lent.columns)?.update_lent(lent) }
    }

    /// Replaces the values of the matrix by those in memory of the device, in the order of the entries and
    /// the precision of the vectors. The copy begins after the work of `stream` and is done before its later
    /// work; the call may return earlier. Fails without [`changing_values`](Multiply::changing_values).
    ///
    /// # Safety
    /// At the address are as many values as the matrix has entries, at a multiple of 16 bytes. Work on them
    /// is ordered with `stream`, which is a stream of the device, or 0 for the default stream.
    pub unsafe fn set_values_lent(&mut self, values: LentNumbers, stream: u64) -> Result<()> {
        if !self.changing {
            let reason = "only the values of products that were prepared with changing_values change";
            return Err(Error::setting("values", "", reason));
        }
        // SAFETY: as the caller promises.
        match unsafe { self.held.set_values_lent((values, self.csr.nnz()), stream)? } {
            true => Ok(()),
            false => Err(Error::setting("backend", &self.chosen.backend, WITH_CHANGES)),
        }
    }

    /// Returns whether the vectors have single precision.
    pub fn is_single(&self) -> bool {
        self.precision == Precision::F32
    }

    /// Returns the operator, which multiplies `k` columns.
    fn held_for(&mut self, k: usize) -> Result<&mut Box<dyn Held>> {
        if k == 0 {
            return Err(Error::setting("columns", 0, "there must be at least one column"));
        }
        if !self.is_auto {
            self.chosen.check_columns(k)?;
        }
        Ok(&mut self.held)
    }

    /// Returns the device.
    pub fn device(&self) -> &DeviceHandle {
        &self.device
    }

    /// Returns the backend with its parameters.
    pub fn backend(&self) -> &str {
        &self.chosen.backend
    }

    /// Returns the reasons for the backend.
    pub fn explanation(&self) -> &Explanation {
        &self.chosen.explanation
    }

    /// Returns the memory traffic and the operations of a product with `k` columns.
    pub fn cost(&self, k: usize) -> Cost {
        self.held.cost(k)
    }
}

/// An operator with its vectors on a device.
trait Held: Send {
    fn update(
        &mut self,
        product: (f64, &[f64]),
        addend: (f64, &mut [f64]),
        k: usize,
        order: Order,
    ) -> Result<()>;

    /// # Safety
    /// See [`Products::update_lent`].
    unsafe fn update_lent(&mut self, lent: &LentProduct) -> Result<()>;

    /// Returns whether the operator takes values.
    ///
    /// # Safety
    /// See [`Products::set_values_lent`].
    unsafe fn set_values_lent(&mut self, values: (LentNumbers, usize), stream: u64) -> Result<bool>;

    fn cost(&self, k: usize) -> Cost;
}

/// An operator, and what the last product needed.
struct Parts<D: Device, T: Scalar> {
    operator: Operator<D, T>,
    vectors: Option<Vectors<D, T>>,
    /// An array in the order and the precision of the device.
    host: Vec<T>,
    /// The number of columns for which the operator is prepared.
    prepared: usize,
}

/// Locks the device, and prepares the operator for `k` columns.
fn ready<D: Device, T: Scalar>(
    held: &mut DeviceValue<D, Parts<D, T>>,
    k: usize,
) -> Result<(DeviceGuard<'_, D>, &mut Parts<D, T>)> {
    let (device, parts) = held.enter_mut()?;
    if parts.prepared != k {
        parts.operator.prepare(k)?;
        parts.prepared = k;
    }
    Ok((device, parts))
}

/// B and C with `k` columns.
struct Vectors<D: Device, T: Scalar> {
    b: D::Vector<T>,
    c: D::Vector<T>,
    k: usize,
}

fn held<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    order: &BackendOrder<'_>,
    matrix: &Arc<Csr>,
    phases: &mut Phases,
) -> Result<(Box<dyn Held>, Chosen)> {
    // B and C.
    let vectors = 2 * order.columns;
    let again = Arc::clone(matrix);
    let matrix = (matrix, Box::new(move || Ok(Arc::clone(&again))) as MatrixAgain);
    let (operator, chosen) = operator::<D, T>(device, order, matrix, vectors, phases)?;
    let parts = Parts::<D, T> { operator, vectors: None, host: Vec::new(), prepared: 0 };
    Ok((Box::new(DeviceValue::new(device, parts)), chosen))
}

impl<D: Device, T: Scalar> Held for DeviceValue<D, Parts<D, T>> {
    fn update(
        &mut self,
        (alpha, b): (f64, &[f64]),
        (beta, c): (f64, &mut [f64]),
        k: usize,
        order: Order,
    ) -> Result<()> {
        if D::ON_HOST && is_stored_alike::<T>(order) {
            let [b, c] = [b.as_ptr().expose_provenance(), c.as_mut_ptr().expose_provenance()];
            let [b, c] = [b, c].map(|address| LentNumbers::F64(address as u64));
            // SAFETY: the slices have as many elements as the product, and only this call uses
            // them; b is only read.
            return unsafe { self.update_lent(&LentProduct { alpha, b, beta, c, columns: k, stream: 0 }) };
        }
        let (device, Parts { operator, vectors, host, .. }) = ready(self, k)?;
        let (rows, cols) = operator.shape();
        if vectors.as_ref().is_none_or(|vectors| vectors.k != k) {
            // The former vectors are freed first.
            *vectors = None;
            *vectors = Some(Vectors { b: device.vector(cols, k)?, c: device.vector(rows, k)?, k });
        }
        let Some(Vectors { b: x, c: y, .. }) = vectors else { unreachable!("they were just allocated") };
        upload(&*device, b, x, (k, order), host)?;
        if beta != 0.0 {
            upload(&*device, c, y, (k, order), host)?;
        }
        operator.apply(alpha, x, beta, y)?;
        download(&*device, y, c, (k, order), host)
    }

    unsafe fn update_lent(&mut self, lent: &LentProduct) -> Result<()> {
        let LentProduct { alpha, b, beta, c, columns: k, stream } = *lent;
        let (b, c) = (b.address::<T>()?, c.address::<T>()?);
        let (device, Parts { operator, .. }) = ready(self, k)?;
        let (rows, cols) = operator.shape();
        // SAFETY: the caller promises that the elements are there, that they do not overlap, and that the
        // stream orders all work on them. The device's work lies between two positions of that stream.
        unsafe {
            let (x, mut y) = (device.lend::<T>(b, cols, k)?, device.lend::<T>(c, rows, k)?);
            device.wait_for(stream)?;
            let outcome = operator.apply(alpha, &x, beta, &mut y);
            device.let_wait(stream)?;
            outcome
        }
    }

    unsafe fn set_values_lent(&mut self, (values, len): (LentNumbers, usize), stream: u64) -> Result<bool> {
        let values = values.address::<T>()?;
        let (device, Parts { operator, .. }) = self.enter_mut()?;
        // SAFETY: the caller promises that the values are there and that the stream orders all work on them.
        // The device's work lies between two positions of that stream.
        unsafe {
            let values = device.lend::<T>(values, len, 1)?;
            device.wait_for(stream)?;
            let outcome = operator.set_values(&values);
            device.let_wait(stream)?;
            outcome
        }
    }

    fn cost(&self, k: usize) -> Cost {
        self.get().operator.cost_of(k)
    }
}

/// Copies an array to a vector; `host` is memory for it in the order and the precision of the device.
fn upload<D: Device, T: Scalar>(
    device: &D,
    from: &[f64],
    to: &mut D::Vector<T>,
    (k, order): (usize, Order),
    host: &mut Vec<T>,
) -> Result<()> {
    if is_stored_alike::<T>(order) {
        return device.upload(bytemuck::cast_slice(from), to);
    }
    host.clear();
    host.resize(from.len(), T::default());
    to_device_order(from, host, k, order);
    device.upload(host, to)
}

/// Copies a vector to an array, in the same way.
fn download<D: Device, T: Scalar>(
    device: &D,
    from: &D::Vector<T>,
    to: &mut [f64],
    (k, order): (usize, Order),
    host: &mut Vec<T>,
) -> Result<()> {
    if is_stored_alike::<T>(order) {
        return device.download(from, bytemuck::cast_slice_mut(to));
    }
    host.clear();
    host.resize(to.len(), T::default());
    device.download(from, host)?;
    from_device_order(host, to, k, order);
    Ok(())
}
