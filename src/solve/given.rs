//! The matrix of a system as the verdict uses it: stored, or known only by its products.

use crate::backend::SharedOperator;
use crate::backend::distributed::RankRows;
use crate::device::cpu::{CpuSlots, CpuVector};
use crate::device::{Cpu, Op};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator, dot_after_product};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A caller-defined square matrix of which only products with vectors are available, or a caller-defined
/// approximation of an inverse.
pub trait Product: Send + Sync {
    /// Returns the number of rows, which is also that of columns.
    fn rows(&self) -> usize;

    /// Sets y = A x. The previous contents of y must not be read. `Break` ends the solve as
    /// interrupted, with the x of the last finished iteration: y is then not read, and the product is
    /// not called again in this solve.
    fn multiply(&self, x: &[f64], y: &mut [f64]) -> ControlFlow<()>;
}

/// What the closure of a product returns: nothing, or whether the solve continues.
pub(crate) trait Continues {
    /// Returns `Break` if the solve ends.
    fn flow(self) -> ControlFlow<()>;
}

impl Continues for () {
    fn flow(self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Continues for ControlFlow<()> {
    fn flow(self) -> ControlFlow<()> {
        self
    }
}

/// A pair of a number of rows and a closure is a product.
impl<R: Continues, F: Fn(&[f64], &mut [f64]) -> R + Send + Sync> Product for (usize, F) {
    fn rows(&self) -> usize {
        self.0
    }

    fn multiply(&self, x: &[f64], y: &mut [f64]) -> ControlFlow<()> {
        self.1(x, y).flow()
    }
}

/// Sets y = A x, and y to NaN if the product ends the solve.
pub(super) fn multiply_or_nan(product: &dyn Product, x: &[f64], y: &mut [f64]) {
    if product.multiply(x, y).is_break() {
        y.fill(f64::NAN);
    }
}

/// A product of the caller that is not called again in a solve that it has ended.
pub(crate) struct Guarded {
    product: Arc<dyn Product>,
    /// Whether the product has ended the solve.
    broken: Arc<AtomicBool>,
}

impl Guarded {
    pub(crate) fn new(product: impl Product + 'static) -> Arc<Guarded> {
        Arc::new(Guarded { product: Arc::new(product), broken: Arc::default() })
    }

    /// Returns the flag that is set once the product has ended the solve.
    pub(crate) fn broken(&self) -> &Arc<AtomicBool> {
        &self.broken
    }

    /// Begins another solve.
    pub(crate) fn begin(&self) {
        self.broken.store(false, Ordering::Relaxed);
    }
}

impl Product for Guarded {
    fn rows(&self) -> usize {
        self.product.rows()
    }

    fn multiply(&self, x: &[f64], y: &mut [f64]) -> ControlFlow<()> {
        if self.broken.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let flow = self.product.multiply(x, y);
        if flow.is_break() {
            self.broken.store(true, Ordering::Relaxed);
        }
        flow
    }
}

/// The matrix of a system, in double precision.
#[derive(Clone, Copy)]
pub(crate) enum MatrixRef<'a> {
    /// A matrix with its entries, as the source provides them.
    Stored(&'a Csr),
    /// A matrix known only by its products.
    Applied(&'a dyn Product),
    /// The rows of this rank of a matrix that is distributed over ranks.
    OfRank(&'a RankRows),
}

impl<'a> From<&'a Csr> for MatrixRef<'a> {
    fn from(matrix: &'a Csr) -> MatrixRef<'a> {
        MatrixRef::Stored(matrix)
    }
}

impl<'a> From<&'a Arc<Csr>> for MatrixRef<'a> {
    fn from(matrix: &'a Arc<Csr>) -> MatrixRef<'a> {
        MatrixRef::Stored(matrix)
    }
}

impl fmt::Debug for MatrixRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols) = self.shape();
        write!(f, "{rows} x {cols}")
    }
}

impl<'a> MatrixRef<'a> {
    /// Returns the numbers of rows and columns; those of a rank, if the matrix is distributed.
    pub(crate) fn shape(self) -> (usize, usize) {
        match self {
            MatrixRef::Stored(matrix) => (matrix.rows(), matrix.cols()),
            MatrixRef::Applied(product) => (product.rows(), product.rows()),
            MatrixRef::OfRank(rows) => (rows.rows(), rows.rows()),
        }
    }

    /// Returns the entries that this process has; the columns of a rank's rows are those of a
    /// complete vector.
    pub(crate) fn entries(self) -> Option<&'a Csr> {
        match self {
            MatrixRef::Stored(matrix) => Some(matrix),
            MatrixRef::OfRank(rows) => Some(rows.matrix()),
            MatrixRef::Applied(_) => None,
        }
    }

    /// Returns the number of rows of all ranks, if this process has `own` rows.
    pub(crate) fn rows_of_all(self, own: usize) -> usize {
        match self {
            MatrixRef::OfRank(rows) => rows.halo().total_rows(),
            MatrixRef::Stored(_) | MatrixRef::Applied(_) => own,
        }
    }

    /// Computes A x in the rows of this process.
    pub(crate) fn multiply(self, x: &[f64]) -> Vec<f64> {
        match self {
            MatrixRef::Stored(matrix) => matrix.multiply_reference(x),
            MatrixRef::Applied(product) => {
                let mut y = vec![0.0; product.rows()];
                multiply_or_nan(product, x, &mut y);
                y
            }
            MatrixRef::OfRank(rows) => {
                let mut complete = Vec::new();
                rows.halo().complete(x, &mut complete);
                rows.matrix().multiply_reference(&complete)
            }
        }
    }
}

impl MatrixRef<'_> {
    /// Multiplies a vector y twice with A, and returns <A y, A y> and <y, A (A y)> if they differ:
    /// they are equal if A is symmetric. The tolerance is that of SciPy's `minres`. Products with NaN
    /// do not count as different.
    pub(crate) fn asymmetry(self, y: &[f64]) -> Option<(f64, f64)> {
        let w = self.multiply(y);
        let (square, mixed) = (dot(&w, &w), dot(y, &self.multiply(&w)));
        let allowed = (square + f64::EPSILON) * f64::EPSILON.cbrt();
        ((square - mixed).abs() > allowed).then_some((square, mixed))
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A caller's product as an operator on the CPU.
struct Applied {
    product: Arc<dyn Product>,
    /// Holds A x if y = alpha A x + beta y needs more than A x, and a column of x if there are several.
    scratch: Mutex<Vec<f64>>,
}

/// Makes the operator of a product. If the product breaks, the operator returns NaN. The solve then ends as
/// interrupted if the product has also set the flag of a rule
/// [`ProductEnded`](crate::stop::StoppingRule::ProductEnded).
pub(crate) fn operator(product: Arc<dyn Product>) -> SharedOperator<Cpu, f64> {
    Arc::new(Applied { product, scratch: Mutex::default() })
}

impl LinearOperator<Cpu, f64> for Applied {
    fn shape(&self) -> (usize, usize) {
        (self.product.rows(), self.product.rows())
    }

    fn apply(
        &self,
        _device: &Cpu,
        alpha: f64,
        x: &CpuVector<f64>,
        beta: f64,
        y: &mut CpuVector<f64>,
    ) -> Result<()> {
        let (n, k) = (x.n(), x.k());
        if k == 1 && (alpha, beta) == (1.0, 0.0) {
            multiply_or_nan(&*self.product, x.data(), y.data_mut());
            return Ok(());
        }
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.resize(if k == 1 { n } else { 2 * n }, 0.0);
        let (product, of_x) = scratch.split_at_mut(n);
        for column in 0..k {
            let x = match k {
                1 => x.data(),
                _ => {
                    let entries = x.data().iter().skip(column).step_by(k);
                    of_x.iter_mut().zip(entries).for_each(|(to, from)| *to = *from);
                    &*of_x
                }
            };
            multiply_or_nan(&*self.product, x, product);
            for (y, product) in y.data_mut().iter_mut().skip(column).step_by(k).zip(&*product) {
                let rest = if beta == 0.0 { 0.0 } else { beta * *y };
                *y = if (alpha, beta) == (1.0, 0.0) { *product } else { alpha * product + rest };
            }
        }
        Ok(())
    }

    /// A function of the caller is not called for nothing, if all columns are done.
    fn apply_dot(
        &self,
        device: &Cpu,
        x: &CpuVector<f64>,
        y: &mut CpuVector<f64>,
        slots: &mut CpuSlots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        if slots.all_done() {
            return Ok(());
        }
        dot_after_product(self, device, (x, y), slots, dot, then)
    }

    /// Counts the vectors alone: what else a product reads is not known.
    fn cost(&self) -> Cost {
        Cost { bytes: 16 * self.product.rows() as u64, flops: 0 }
    }

    fn storage(&self) -> u64 {
        0
    }
}
