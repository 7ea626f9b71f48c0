//! Times y = A x on a device, and verifies it. x and y may have several columns, stored row by row.
//!
//! Products are recorded and replayed without the host, as solvers do. Repeated products of data that fits in
//! a cache find it there ("warm"). A "cold" product follows a stream over more bytes than any cache holds;
//! its time is that of stream and product together minus that of the stream alone.

use crate::device::{Device, Slot, stream};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Operator, dot_into};
use crate::scalar::Scalar;
use crate::source::generate::random::Random;
use rayon::prelude::*;
use std::time::Duration;

/// Bytes of the stream that makes caches cold: more than the L2 of any GPU.
pub(crate) const FLUSH: usize = 256 << 20;

/// What a step of a [`ProductTimer`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
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
pub(crate) struct ProductTimer<D: Device, T: Scalar> {
    device: D,
    data: Data<D, T>,
    graphs: Vec<(Timed, D::Graph)>,
    /// The products that y has undergone.
    products: usize,
}

impl<D: Device, T: Scalar> ProductTimer<D, T> {
    /// Allocates the vectors of `k` columns and uploads x. Products can be cold only if `cold` is set.
    pub(crate) fn new(operator: Operator<D, T>, x: &[T], k: usize, cold: bool) -> Result<ProductTimer<D, T>> {
        let device = operator.device().clone();
        operator.prepare(k)?;
        let (rows, cols) = operator.shape();
        let (mut there, y) = (device.vector(cols, k)?, device.vector(rows, k)?);
        device.upload(x, &mut there)?;
        let flush = cold.then(|| device.vector::<f64>(FLUSH / size_of::<f64>(), 1)).transpose()?;
        let slots = device.slots(1, k)?;
        let data = Data { operator, x: there, y, slots, flush, scaling: [1.0, 0.0] };
        Ok(ProductTimer { device, data, graphs: Vec::new(), products: 0 })
    }

    /// Times y = alpha A x + beta y instead, with this y before the first product; it is not read if beta is
    /// 0. Call this before the first product.
    pub(crate) fn scaled(mut self, scaling: [f64; 2], y: &[T]) -> Result<ProductTimer<D, T>> {
        self.data.scaling = scaling;
        if scaling[1] != 0.0 {
            self.device.upload(y, &mut self.data.y)?;
        }
        Ok(self)
    }

    /// Returns the number of products, except those with a dot product. With beta = 0 y has the last of them,
    /// otherwise all.
    pub(crate) fn products(&self) -> usize {
        self.products
    }

    /// Returns the operator.
    pub(crate) fn operator(&self) -> &Operator<D, T> {
        &self.data.operator
    }

    /// Runs a step `times` times, after recording it on first use, and returns the seconds that
    /// the device took for each.
    pub(crate) fn seconds(&mut self, timed: Timed, times: usize) -> Result<f64> {
        let ProductTimer { device, data, graphs, products } = self;
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
        if let Timed::Plain | Timed::Cold = timed {
            *products += times;
        }
        Ok(seconds / times as f64)
    }

    /// Returns the seconds of copying x to the device and y back.
    pub(crate) fn transfer(&mut self, x: &[T], y: &mut [T]) -> Result<f64> {
        let ProductTimer { device, data, .. } = self;
        let began = std::time::Instant::now();
        device.upload(x, &mut data.x)?;
        device.download(&data.y, y)?;
        device.synchronize()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Copies y to the host.
    pub(crate) fn result(&self, y: &mut [T]) -> Result<()> {
        self.device.download(&self.data.y, y)
    }
}

/// Lets a GPU rest as long as it worked, and at most `LONGEST_REST`. At full memory bandwidth for a tenth of
/// a second or more it reaches its power limit, and its clocks go down.
pub(crate) fn rest<D: Device>(worked: f64) {
    if D::BATCH > 1 {
        std::thread::sleep(Duration::from_secs_f64(worked).min(LONGEST_REST));
    }
}

/// After this rest a GPU has its full clocks again.
const LONGEST_REST: Duration = Duration::from_millis(300);

/// Products y = alpha A x + beta y, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated<'a, T> {
    /// The factors alpha and beta.
    pub scaling: [f64; 2],
    /// The number of products, at least 1.
    pub products: usize,
    /// y before the first product; not read if beta is 0.
    pub start: &'a [T],
}

impl<T> Repeated<'_, T> {
    /// Returns the single product y = A x.
    pub(crate) fn once() -> Self {
        Repeated { scaling: [1.0, 0.0], products: 1, start: &[] }
    }
}

/// A computed y compared with its value, summed row by row in double precision on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Checked {
    /// The largest difference in a row as a multiple of the bound on rounding errors of the row. The product
    /// is right if this is at most 1.
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
    pub(crate) fn is_right(&self) -> bool {
        self.worst <= 1.0
    }
}

/// Compares y with A x, both of `k` columns; see [`check_repeated`].
pub(crate) fn check<T: Scalar>(matrix: &Csr, x: &[T], y: &[T], k: usize) -> Checked {
    check_repeated(matrix, x, y, k, &Repeated::once())
}

/// Compares y, of `k` columns, with its value after repeated products. From y0 on, n products give
///
/// y = alpha s A x + beta^n y0, where s = 1 + beta + ... + beta^(n-1),
///
/// so y has a part of every product: an error in one of them is multiplied by beta in each later one. Each
/// product rounds at most entries + 2 times in a row, and backends add in different orders. The bound of a
/// row is therefore
///
/// 4 (entries + 2) eps (|alpha| S^2 (|A| |x|) + n |beta|^n |y0|), where S is s for |beta|,
///
/// with 1 for S and without the last term if beta is 0. The reference walks through the rows of the matrix as
/// given, which no backend does.
pub(crate) fn check_repeated<T: Scalar>(
    matrix: &Csr,
    x: &[T],
    y: &[T],
    k: usize,
    repeated: &Repeated<'_, T>,
) -> Checked {
    let [alpha, beta] = repeated.scaling.map(|factor| T::from_f64(factor).to_f64());
    let [(sum, power), (most, _)] = [beta, beta.abs()].map(|beta| geometric(beta, repeated.products));
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
            let (mut expected, mut bound) =
                (alpha * sum * sums[column], alpha.abs() * most * most * magnitudes[column]);
            if beta != 0.0 {
                let start = power * repeated.start[row * k + column].to_f64();
                expected += start;
                bound += repeated.products as f64 * start.abs() + SMALLEST;
            }
            let found = y[row * k + column].to_f64();
            let off = (found - expected).abs();
            let worst = if off == 0.0 { 0.0 } else { off / (scale * bound) };
            let worst = if worst.is_nan() { f64::INFINITY } else { worst };
            Checked { worst, row, column, values: [found, expected] }
        };
        (0..k).map(of_column).fold(Checked::NONE, Checked::larger)
    };
    (0..matrix.rows())
        .into_par_iter()
        .map_init(|| [vec![0.0; k], vec![0.0; k]], of_row)
        .reduce(|| Checked::NONE, Checked::larger)
}

/// What is left of y0 after many products may be smaller than the normal numbers of single precision, with
/// fewer digits.
const SMALLEST: f64 = 1e-30;

/// Returns 1 + beta + ... + beta^(n-1), and beta^n.
fn geometric(beta: f64, n: usize) -> (f64, f64) {
    (0..n).fold((0.0, 1.0), |(sum, power), _| (sum + power, power * beta))
}

/// The seeds of x and of y before the first product.
const SEEDS: [u64; 2] = [0x5EED, 0xFEED];

/// Returns the x of measured products: random numbers from -0.4 to 0.6. They differ from entry to entry,
/// because a product that gathers from wrong columns is right for a constant x, and they have no period, by
/// which columns could be wrong.
pub(crate) fn operand<T: Scalar>(n: usize) -> Vec<T> {
    of_units(n, SEEDS[0], |unit| unit - 0.4)
}

/// Returns x and the y before the first product, of `k` columns: such numbers in both.
pub(crate) fn operands<T: Scalar>([cols, rows]: [usize; 2], k: usize) -> [Vec<T>; 2] {
    [operand(cols * k), of_units(rows * k, SEEDS[1], |unit| unit - 0.4)]
}

/// Returns two distributions, as x and as the y before the first product: positive random numbers, all drawn
/// anew, of sum 1 in each of `k` columns. The largest is at most three times the smallest.
pub(crate) fn distributions<T: Scalar>([cols, rows]: [usize; 2], k: usize) -> [Vec<T>; 2] {
    [(cols, SEEDS[0]), (rows, SEEDS[1])].map(|(n, seed)| {
        let weights: Vec<f64> = of_units(n * k, seed, |unit| unit + 0.5);
        let sum = |column: usize| -> f64 { weights.iter().skip(column).step_by(k).sum() };
        let sums: Vec<f64> = (0..k).map(sum).collect();
        weights.iter().enumerate().map(|(i, weight)| T::from_f64(weight / sums[i % k])).collect()
    })
}

/// Returns numbers that a function makes of random ones from 0 up to 1, which depend only on the seed and
/// their index.
fn of_units<T: Scalar>(n: usize, seed: u64, make: impl Fn(f64) -> f64 + Sync) -> Vec<T> {
    (0..n).into_par_iter().map(|i| T::from_f64(make(Random::at(seed, i as u64).unit()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Coo;
    use crate::source::load;

    /// Returns y after n products y = alpha A x + beta y, each row summed in order.
    fn after(matrix: &Csr, x: &[f64], [alpha, beta]: [f64; 2], start: &[f64], n: usize) -> Vec<f64> {
        let product = matrix.multiply_reference(x);
        let next = |y: Vec<f64>, _| product.iter().zip(&y).map(|(p, y)| alpha * p + beta * y).collect();
        (0..n).fold(start.to_vec(), next)
    }

    #[test]
    fn a_product_that_gathers_from_wrong_columns_is_wrong_for_both_kinds_of_x() {
        let matrix = load("blockband:n=200,block=5,density=0.1").unwrap().matrix;
        let n = matrix.cols();
        let [distribution, _] = distributions::<f64>([n, n], 1);
        for x in [operand::<f64>(n), distribution] {
            let right = matrix.multiply_reference(&x);
            assert!(check(&matrix, &x, &right, 1).is_right());
            for off in 1..n {
                let moved: Vec<f64> = (0..n).map(|j| x[(j + off) % n]).collect();
                let wrong = matrix.multiply_reference(&moved);
                assert!(!check(&matrix, &x, &wrong, 1).is_right(), "columns off by {off}");
            }
        }
        // Rows have the sum 1: with a constant x every one of these products is right.
        let constant = vec![1.0 / n as f64; n];
        assert!(check(&matrix, &constant, &constant, 1).is_right());
    }

    #[test]
    fn one_wrong_product_among_repeated_ones_is_found_until_beta_has_made_it_small() {
        let matrix = load("blockband:n=200,block=5,density=0.1").unwrap().matrix;
        let [x, start] = distributions::<f64>([matrix.cols(), matrix.rows()], 1);
        for scaling in [[1.5, 0.5], [1.5, 0.99], [0.5, -1.0], [2.0, 1.0]] {
            for n in [1, 2, 7, 200] {
                let repeated = Repeated { scaling, products: n, start: &start };
                let right = after(&matrix, &x, scaling, &start, n);
                let checked = check_repeated(&matrix, &x, &right, 1, &repeated);
                assert!(checked.is_right(), "{n} products by {scaling:?}: {checked:?}");
                // One row of the product before the last is 1 % too large.
                let product = scaling[0] * matrix.multiply_reference(&x)[3];
                let mut wrong = right.clone();
                wrong[3] += 0.01 * product * if n > 1 { scaling[1] } else { 1.0 };
                let checked = check_repeated(&matrix, &x, &wrong, 1, &repeated);
                assert!(!checked.is_right() && checked.row == 3, "{n} products by {scaling:?}");
                // A product more or less.
                let other = after(&matrix, &x, scaling, &start, n + 1);
                let is_right = check_repeated(&matrix, &x, &other, 1, &repeated).is_right();
                // After many products with beta = 0.5, y has stopped changing.
                assert_eq!(is_right, scaling[1] == 0.5 && n == 200, "{n} products by {scaling:?}");
            }
        }
    }

    #[test]
    fn distributions_have_the_sum_one_and_no_two_equal_entries() {
        let [x, y] = distributions::<f64>([1000, 500], 3);
        assert_eq!((x.len(), y.len()), (3000, 1500));
        for (vector, n) in [(&x, 1000), (&y, 500)] {
            for column in 0..3 {
                let mut entries: Vec<f64> = (0..n).map(|i| vector[3 * i + column]).collect();
                assert!((entries.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                entries.sort_by(f64::total_cmp);
                assert!(entries[0] > 0.0 && entries.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
        assert_ne!(x[..300], y[..300]);
    }

    #[test]
    fn what_is_left_of_the_first_y_is_right_in_single_precision_until_it_vanishes() {
        let mut entries = Coo::with_capacity(3, 3, 1).unwrap();
        entries.push(0, 1, 2.0).unwrap();
        let matrix = entries.into_csr().unwrap().to_f32();
        let [x, start] = distributions::<f32>([3, 3], 1);
        let mut y = start.clone();
        for products in 1..=200 {
            y.iter_mut().enumerate().for_each(|(row, y)| {
                *y = 1.5 * if row == 0 { 2.0 * x[1] } else { 0.0 } + 0.5 * *y;
            });
            let repeated = Repeated { scaling: [1.5, 0.5], products, start: &start };
            assert!(check_repeated(&matrix, &x, &y, 1, &repeated).is_right(), "{products}");
        }
        assert_eq!(y[1..], [0.0, 0.0]);
    }
}
