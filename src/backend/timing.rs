//! Times y = A x on a device, and verifies it. x and y may have several columns, stored row by row.
//!
//! Products are recorded and replayed without the host, as solvers do. Repeated products of data that fits in a cache find it
//! there ("warm"). A "cold" product follows a stream over more bytes than any cache holds; its time is that of stream and product
//! together minus that of the stream alone.

use crate::device::{Device, Slot, stream};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Operator, dot_into};
use crate::scalar::Scalar;
use rayon::prelude::*;
use std::time::Duration;

/// Bytes of the stream that makes caches cold: more than the L2 of any GPU.
pub const FLUSH: usize = 256 << 20;

/// What a step of a [`ProductTimer`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// y = A x, or y = alpha A x + beta y.
    Plain,
    /// y = A x, and the dot product of x and y in the same pass where the backend can.
    Dot,
    /// A stream over [`FLUSH`] bytes, then y = A x.
    Cold,
    /// The stream alone.
    Flush,
}

/// The vectors of a product, and the steps that can be recorded over them.
struct Data<D: Device, T: Scalar> {
    operator: Operator<D, T>,
    x: D::Vector<T>,
    y: D::Vector<T>,
    slots: D::Slots,
    /// The vector that the stream reads; empty without cold products.
    flush: Option<D::Vector<f64>>,
    /// The factors of y = alpha A x + beta y.
    scaling: [f64; 2],
}

impl<D: Device, T: Scalar> Data<D, T> {
    fn run(&mut self, timed: Timed) -> Result<()> {
        if let (Timed::Cold | Timed::Flush, Some(flush)) = (timed, &self.flush) {
            let device = self.operator.device().clone();
            device.sweep::<f64>(&mut [], &[flush, flush], &mut self.slots, &stream::READ.sweep)?;
        }
        match timed {
            Timed::Plain | Timed::Cold => {
                let [alpha, beta] = self.scaling;
                self.operator.apply(alpha, &self.x, beta, &mut self.y)
            }
            Timed::Dot => {
                let dot = dot_into(Slot(0));
                self.operator.apply_dot(&self.x, &mut self.y, &mut self.slots, &dot, &[])
            }
            Timed::Flush => Ok(()),
        }
    }
}

/// Products of one operator, recorded for timing.
pub struct ProductTimer<D: Device, T: Scalar> {
    device: D,
    data: Data<D, T>,
    graphs: Vec<(Timed, D::Graph)>,
}

impl<D: Device, T: Scalar> ProductTimer<D, T> {
    /// Allocates the vectors of `k` columns and uploads x. Products can be cold only if `cold` is set.
    pub fn new(operator: Operator<D, T>, x: &[T], k: usize, cold: bool) -> Result<ProductTimer<D, T>> {
        let device = operator.device().clone();
        operator.prepare(k)?;
        let (rows, cols) = operator.shape();
        let (mut there, y) = (device.vector(cols, k)?, device.vector(rows, k)?);
        device.upload(x, &mut there)?;
        let flush = cold.then(|| device.vector::<f64>(FLUSH / size_of::<f64>(), 1)).transpose()?;
        let slots = device.slots(1, k)?;
        let data = Data { operator, x: there, y, slots, flush, scaling: [1.0, 0.0] };
        Ok(ProductTimer { device, data, graphs: Vec::new() })
    }

    /// Times y = alpha A x + beta y instead, from y = 0 on. Call this before the first product.
    pub fn scaled(mut self, alpha: f64, beta: f64) -> ProductTimer<D, T> {
        self.data.scaling = [alpha, beta];
        self
    }

    /// Returns the operator.
    pub fn operator(&self) -> &Operator<D, T> {
        &self.data.operator
    }

    /// Runs a step `times` times, after recording it on first use, and returns the seconds that the device took for each.
    pub fn seconds(&mut self, timed: Timed, times: usize) -> Result<f64> {
        let ProductTimer { device, data, graphs } = self;
        let index = match graphs.iter().position(|(recorded, _)| *recorded == timed) {
            Some(index) => index,
            None => {
                let graph = device.record(&mut || data.run(timed))?;
                graphs.push((timed, graph));
                graphs.len() - 1
            }
        };
        let graph = &mut graphs[index].1;
        let seconds = device.timed(&mut || device.replay(graph, times, &mut || data.run(timed)))?;
        Ok(seconds / times as f64)
    }

    /// Returns the seconds of copying x to the device and y back.
    pub fn transfer(&mut self, x: &[T], y: &mut [T]) -> Result<f64> {
        let ProductTimer { device, data, .. } = self;
        let began = std::time::Instant::now();
        device.upload(x, &mut data.x)?;
        device.download(&data.y, y)?;
        device.synchronize()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Copies y to the host.
    pub fn result(&self, y: &mut [T]) -> Result<()> {
        self.device.download(&self.data.y, y)
    }
}

/// Lets a GPU rest as long as it worked, and at most `LONGEST_REST`. At full memory bandwidth for a tenth of a second or more it
/// reaches its power limit, and its clocks go down.
pub fn rest<D: Device>(worked: f64) {
    if D::BATCH > 1 {
        std::thread::sleep(Duration::from_secs_f64(worked).min(LONGEST_REST));
    }
}

/// After this rest a GPU has its full clocks again.
const LONGEST_REST: Duration = Duration::from_millis(300);

/// A computed y compared with A x, summed row by row in double precision on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// The largest difference in a row as a multiple of the bound on rounding errors of the row. The product is right if this is
    /// at most 1.
    pub worst: f64,
    /// The row of this difference.
    pub row: usize,
    /// The column of this difference.
    pub column: usize,
    /// The value of y there, and the reference.
    pub values: [f64; 2],
}

impl Checked {
    const NONE: Checked = Checked { worst: 0.0, row: 0, column: 0, values: [0.0; 2] };

    fn larger(self, other: Checked) -> Checked {
        if other.worst > self.worst { other } else { self }
    }

    /// Returns whether no row is off by more than rounding. A NaN is off.
    pub fn is_right(&self) -> bool {
        self.worst <= 1.0
    }
}

/// Compares y with A x, both of `k` columns. The bound of a row is 4 (entries + 2) eps `(|A| |x|)`: each product and each sum rounds
/// once, and backends add in different orders. The reference walks through the rows of the matrix as given, which no backend does.
pub fn check<T: Scalar>(matrix: &Csr, x: &[T], y: &[T], k: usize) -> Checked {
    let of_row = |[sums, magnitudes]: &mut [Vec<f64>; 2], row: usize| {
        sums.fill(0.0);
        magnitudes.fill(0.0);
        for (j, v) in matrix.row(row) {
            let columns = sums.iter_mut().zip(magnitudes.iter_mut()).zip(&x[j * k..][..k]);
            for ((sum, magnitude), x) in columns {
                let product = v * x.to_f64();
                *sum += product;
                *magnitude += product.abs();
            }
        }
        let scale = 4.0 * (matrix.row_range(row).len() as f64 + 2.0) * T::EPSILON;
        let of_column = |column: usize| {
            let (found, sum) = (y[row * k + column].to_f64(), sums[column]);
            let off = (found - sum).abs();
            let worst = if off == 0.0 { 0.0 } else { off / (scale * magnitudes[column]) };
            let worst = if worst.is_nan() { f64::INFINITY } else { worst };
            Checked { worst, row, column, values: [found, sum] }
        };
        (0..k).map(of_column).fold(Checked::NONE, Checked::larger)
    };
    (0..matrix.rows())
        .into_par_iter()
        .map_init(|| [vec![0.0; k], vec![0.0; k]], of_row)
        .reduce(|| Checked::NONE, Checked::larger)
}

/// Returns the x of measured products: numbers from -0.4 to 0.6, without a pattern that a cache or a compiler could use.
pub fn operand<T: Scalar>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64(((i * 7919) % 1009) as f64 / 1009.0 - 0.4)).collect()
}
