//! A fixed polynomial of the Jacobi-scaled matrix: products with A and sweeps, without a factorisation or
//! additional dot products.
//!
//! # Method
//! M = q(D^-1 A) D^-1 with D the diagonal of A, and q of degree K such that 1 - t q(t) is the Chebyshev
//! polynomial of degree K + 1 of the interval [largest / ratio, largest], scaled to 1 at t = 0. This
//! polynomial has the smallest maximum there, so t q(t) is near 1. M is symmetric, and linear as q does not
//! depend on the vector. With theta and delta the middle and half the width of the interval, sigma = theta /
//! delta, rho_0 = 1 / sigma, rho_i = 1 / (2 sigma - rho_(i-1)),
//!
//! ```text
//! d_0 = D^-1 x / theta,   a_i = rho_i rho_(i-1),   b_i = 2 rho_i / delta
//! d_i = a_i d_(i-1) + b_i D^-1 (x - A (d_0 + ... + d_(i-1))),   M x = d_0 + ... + d_K
//! ```
//!
//! # Variant
//! The stored vectors are s = b_i (x - A ...) and e = a_(i+1) d_i, so that the last pass has no coefficients
//! and can use the scalars of a solver for its dot product: y += e + D^-1 s.
//!
//! # Positive definiteness
//! If K is even, t q(t) is positive for every t > 0: M is positive definite for any estimate of the largest
//! eigenvalue. If K is odd, M is positive definite for eigenvalues up to largest (1 + 1 / ratio).
//!
//! # The largest eigenvalue
//! The estimate uses `STEPS` steps of conjugate gradients with the diagonal as preconditioner, from a random
//! vector of fixed seed; their coefficients are those of the Lanczos process. The result is multiplied by
//! `SAFETY` (both constants are in `estimate`), because it is a lower bound. It is limited by the largest
//! absolute row sum of D^-1 A, which no eigenvalue exceeds.
//!
//! # Cost
//! K products with A, and 7 K + 4 n-vectors read or written in addition, K of which because
//! the products add to s.
//!
//! # Reference
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, sections 12.3.2 and 6.7.3.

mod estimate;

use super::entry::{Construction, DotSweep, Given, OverRanks, Program, Size};
use super::jacobi::inverse_diagonal;
use crate::backend::{Operator, Pick};
use crate::device::distributed::Local;
use crate::device::formula::{names, sweep};
use crate::device::{Device, Distributed, Dot, Formula, Op, Sweep};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::lock;
use crate::params::{Kind, Param, Params};
use crate::scalar::Scalar;
use estimate::{CURVATURE, largest_eigenvalue};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

const RATIO: Kind = Kind::Real(Bound::Excluded(1.0), Bound::Included(1e6));

/// The preconditioner's row in the table.
pub(super) struct Row;

names! {
    /// `d` is D^-1.
    vectors v { e, y, s, d, x }
    scalars s { dot }
}

/// s = alpha x, e = a_1 / theta D^-1 s, y = e / a_1; numbers: alpha, a_1 / theta, 1 / a_1.
const START: Formula = sweep!({ "chebyshev_start": s = [0] * x; e = [1] * d .* s; y = [2] * e; });
/// The same with beta y added to y; numbers: alpha, a_1 / theta, 1 / a_1, beta.
const START_UPDATE: Formula =
    sweep!({ "chebyshev_start_update": s = [0] * x; e = [1] * d .* s; y = [2] * e + [3] * y; });
/// e = a_(i+1) (e + D^-1 s), y += e / a_(i+1); numbers: a_(i+1), 1 / a_(i+1).
const STEP: Formula = sweep!({ "chebyshev_step": e = [0] * e + [0] * d .* s; y = y + [1] * e; });
/// y += e + D^-1 s.
const FINISH: Formula = sweep!({ "chebyshev_finish": y = y + e + d .* s; });
/// The same with `<x, y>` and a program.
const FINISH_DOT: Formula = sweep!({ "chebyshev_dot": y = y + e + d .* s; dot = <x, y>; });

/// Returns the last of these sweeps with the dot product and the program of a solver.
pub(crate) const fn chebyshev_dot<'a>(dots: &'a [Dot; 1], then: &'a [Op]) -> Sweep<'a> {
    FINISH_DOT.ending_in(dots, then)
}

impl Construction for Row {
    const NAME: &'static str = "chebyshev";
    const SYNONYMS: &'static [&'static str] = &["polynomial"];
    const SUMMARY: &'static str = "a polynomial of the matrix scaled by its diagonal";
    const PARAMS: &'static [Param] = &[
        Param::new("degree", Kind::Whole(1, 100), "products with the matrix").or("4").always_printed(),
        Param::new("ratio", RATIO, "largest eigenvalue over the smallest it is made for")
            .or("30")
            .always_printed(),
    ];
    const DOT_SWEEP: Option<DotSweep> = Some(chebyshev_dot);
    /// The values of the numbers do not affect compilation.
    const SWEEPS: &'static [Sweep<'static>] = &[
        START.sweep.with(&[1.0; 3]),
        START_UPDATE.sweep.with(&[1.0; 4]),
        STEP.sweep.with(&[1.0; 2]),
        FINISH.sweep,
        estimate::START.sweep,
        estimate::RESIDUAL.sweep,
        estimate::DIRECTION.sweep,
    ];
    const PROGRAMS: &'static [Program] = &[CURVATURE.program()];
    const EXACT_OVER_RANKS: bool = true;

    /// D^-1, e and s.
    fn bytes(_: &Params, size: Size, width: u64) -> u64 {
        3 * size.rows * width
    }

    /// Counts the vectors for the estimate of the largest eigenvalue.
    fn bytes_to_build(_: &Params, size: Size) -> u64 {
        6 * 8 * size.rows
    }

    /// Builds the operator from that of the matrix; every diagonal entry must be positive and finite.
    fn build<D: Pick<T>, T: Scalar>(given: &Given<'_, D, T>) -> Result<Operator<D, T>> {
        let inverse = inverse_diagonal::<T>(Self::NAME, given.matrix)?;
        of_diagonal(given.matrix, given.a, &inverse, &given.params)
    }

    /// Builds the operator with products of the whole matrix.
    fn build_over_ranks<D: Local + Pick<T>, T: Scalar>(
        given: &OverRanks<'_, D, T>,
    ) -> Result<Operator<Distributed<D>, T>> {
        let inverse = given.agreed(inverse_diagonal::<T>(Self::NAME, given.own.matrix))?;
        of_diagonal(given.rows.matrix(), given.a, &inverse, &given.own.params)
    }
}

/// Builds the operator from the rows of the matrix, the inverses of their diagonal entries, and
/// the operator of the matrix.
fn of_diagonal<D: Device, T: Scalar>(
    rows: &Csr,
    a: &Operator<D, T>,
    inverse: &[f64],
    params: &Params,
) -> Result<Operator<D, T>> {
    let (degree, ratio) = (params.whole("degree"), params.real("ratio"));
    let (device, n) = (a.device(), rows.rows());
    let host: Vec<T> = inverse.iter().map(|&d| T::from_f64(d)).collect();
    let mut diagonal = device.vector(n, 1)?;
    device.upload(&host, &mut diagonal)?;
    let largest = largest_eigenvalue(device, rows, a, inverse, &host)?;
    log::info!(
        "chebyshev: interval from {:.4} to {largest:.4} for the eigenvalues of the scaled matrix",
        largest / ratio
    );
    let steps = coefficients(degree as usize, largest, ratio);
    let work = Mutex::new(Work::new(device, n, 1)?);
    Ok(Operator::new(device, Arc::new(Chebyshev { n, a: a.clone(), diagonal, steps, work })))
}

/// The coefficients of a step.
struct Step {
    /// The factors of e and y in the sweep before the product: a_i (a_1 / theta at the start) and 1 / a_i.
    of_sweep: [f64; 2],
    /// The factors of the product with A and of s: -b_i / a_i and b_i / b_(i-1).
    of_product: (f64, f64),
}

fn coefficients(degree: usize, largest: f64, ratio: f64) -> Vec<Step> {
    let smallest = largest / ratio;
    let (theta, delta) = (0.5 * (largest + smallest), 0.5 * (largest - smallest));
    let sigma = theta / delta;
    let (mut rho, mut b_before) = (1.0 / sigma, 1.0);
    let mut steps = Vec::new();
    for i in 1..=degree {
        let next = 1.0 / (2.0 * sigma - rho);
        let (a, b) = (next * rho, 2.0 * next / delta);
        let of_e = if i == 1 { a / theta } else { a };
        steps.push(Step { of_sweep: [of_e, 1.0 / a], of_product: (-b / a, b / b_before) });
        (rho, b_before) = (next, b);
    }
    steps
}

struct Chebyshev<D: Device, T: Scalar> {
    n: usize,
    a: Operator<D, T>,
    /// D^-1.
    diagonal: D::Vector<T>,
    steps: Vec<Step>,
    work: Mutex<Work<D, T>>,
}

struct Work<D: Device, T: Scalar> {
    columns: usize,
    e: D::Vector<T>,
    s: D::Vector<T>,
    /// For sweeps without a scalar of the solver.
    slots: D::Slots,
}

impl<D: Device, T: Scalar> Work<D, T> {
    fn new(device: &D, n: usize, columns: usize) -> Result<Work<D, T>> {
        let (e, s, slots) =
            (device.vector(n, columns)?, device.vector(n, columns)?, device.slots(1, columns)?);
        Ok(Work { columns, e, s, slots })
    }

    /// Allocates the vectors for another number of columns.
    fn fit(&mut self, device: &D, n: usize, columns: usize) -> Result<()> {
        if self.columns != columns {
            *self = Work::new(device, n, columns)?;
        }
        Ok(())
    }
}

impl<D: Device, T: Scalar> Chebyshev<D, T> {
    /// Runs all sweeps except the last. Memory traffic in n-vectors read + written, in addition to that of A:
    /// 2 + 3 at the start; each product with A reads s as well, 1, and each step in between is 4 + 2.
    fn all_but_last(
        &self,
        device: &D,
        w: &mut Work<D, T>,
        (alpha, beta): (f64, f64),
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
    ) -> Result<()> {
        let Work { e, s, slots, .. } = w;
        let d = (v::d, &self.diagonal);
        for (i, Step { of_sweep: [of_e, of_y], of_product }) in self.steps.iter().enumerate() {
            if i == 0 {
                // s = alpha x, e = a_1 / theta D^-1 s, y = e / a_1 (+ beta y)
                let (formula, numbers) = match beta == 0.0 {
                    true => (&START, &[alpha, *of_e, *of_y][..]),
                    false => (&START_UPDATE, &[alpha, *of_e, *of_y, beta][..]),
                };
                let writes = [(v::s, &mut *s), (v::e, &mut *e), (v::y, &mut *y)];
                formula.run(device, writes, [d, (v::x, x)], slots, numbers)?;
            } else {
                // e = a_(i+1) (e + D^-1 s), y += e / a_(i+1)
                let writes = [(v::e, &mut *e), (v::y, &mut *y)];
                STEP.run(device, writes, [d, (v::s, &*s)], slots, &[*of_e, *of_y])?;
            }
            // s = b_i / b_(i-1) s - b_i / a_i A e
            let (of_a, of_s) = *of_product;
            self.a.apply(of_a, e, of_s, s)?;
        }
        Ok(())
    }
}

impl<D: Device, T: Scalar> LinearOperator<D, T> for Chebyshev<D, T> {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn prepare(&self, device: &D, k: usize) -> Result<()> {
        self.a.prepare(k)?;
        lock(&self.work).fit(device, self.n, k)
    }

    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        let mut work = lock(&self.work);
        work.fit(device, self.n, device.columns(x))?;
        self.all_but_last(device, &mut work, (alpha, beta), x, y)?;
        let Work { e, s, slots, .. } = &mut *work;
        FINISH.run(device, [(v::y, y)], [(v::d, &self.diagonal), (v::s, s), (v::e, e)], slots, &[])
    }

    fn apply_dot(
        &self,
        device: &D,
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
        slots: &mut D::Slots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        let mut work = lock(&self.work);
        work.fit(device, self.n, device.columns(x))?;
        self.all_but_last(device, &mut work, (1.0, 0.0), x, y)?;
        let Work { e, s, .. } = &mut *work;
        let dots = FINISH_DOT.sum_into(dot[0].out);
        let reads = [(v::d, &self.diagonal), (v::s, &*s), (v::e, &*e), (v::x, x)];
        FINISH_DOT.run_as(&chebyshev_dot(&dots, then), device, [(v::y, y)], reads, slots)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    fn cost_of(&self, k: usize) -> Cost {
        let width = size_of::<T>();
        let steps = self.steps.len() as u64;
        let product = self.a.cost_of(k);
        let sweeps = [(&START, 1), (&STEP, steps - 1), (&FINISH, 1)];
        let vectors: u64 = sweeps.iter().map(|(sweep, times)| times * sweep.bytes(self.n, k, width)).sum();
        let elements = (self.n * k) as u64;
        let old_s = elements * width as u64;
        Cost {
            bytes: steps * (product.bytes + old_s) + vectors,
            // Per row: the start 2, each product 3 for s in addition to A, a step 5, the last sweep 3.
            flops: steps * (product.flops + 3 * elements) + 5 * steps * elements,
        }
    }

    fn storage(&self) -> u64 {
        let vectors = 1 + 2 * lock(&self.work).columns;
        (vectors * self.n * size_of::<T>()) as u64
    }
}
