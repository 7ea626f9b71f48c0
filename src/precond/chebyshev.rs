//! A fixed polynomial of the Jacobi-scaled matrix: products with A and sweeps, no factor, no dot product of its own.
//!
//! # Method
//! M = q(D^-1 A) D^-1 with D the diagonal of A, and q of degree K such that 1 - t q(t) is the Chebyshev polynomial of
//! degree K + 1 of the interval [largest / ratio, largest], scaled to 1 at t = 0: it is as small as can be there, so t
//! q(t) is near 1. M is symmetric, and linear as q does not depend on the vector. With theta and delta the middle and
//! half the width of the interval, sigma = theta / delta, rho_0 = 1 / sigma, rho_i = 1 / (2 sigma - rho_(i-1)),
//!
//! ```text
//! d_0 = D^-1 x / theta,   a_i = rho_i rho_(i-1),   b_i = 2 rho_i / delta
//! d_i = a_i d_(i-1) + b_i D^-1 (x - A (d_0 + ... + d_(i-1))),   M x = d_0 + ... + d_K
//! ```
//!
//! # Variant
//! Kept are s = b_i (x - A ...) and e = a_(i+1) d_i, so that the last pass has no coefficients, and may share the
//! scalars of a solver for its dot product: y += e + D^-1 s.
//!
//! # Positive definiteness
//! With K even, t q(t) is positive for every t > 0: M is positive definite whatever the estimate of the largest
//! eigenvalue. With K odd it is so up to largest (1 + 1 / ratio).
//!
//! # The largest eigenvalue
//! `STEPS` steps of conjugate gradients with the diagonal as preconditioner, from a random vector of fixed seed, whose
//! coefficients are those of Lanczos' process; times `SAFETY` (both in `estimate`), as they see it from below; and no
//! more than the largest absolute sum of a row of D^-1 A, which no eigenvalue exceeds.
//!
//! # Cost
//! K products with A, and 7 K + 4 n-vectors read or written besides: of these K as the products add to s.
//!
//! # Reference
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, sections 12.3.2 and 6.7.3.

mod estimate;

use super::jacobi::inverse_diagonal;
use crate::backend::{Made, Operator};
use crate::device::{Coefficient, Device, Dot, Factor, Op, Operand, Slot, SlotState, Sweep, Term, Update};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use estimate::largest_eigenvalue;
pub(super) use estimate::{AFTER_PQ, INTO_PQ};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

/// Degrees that may be asked for.
pub(super) const DEGREES: RangeInclusive<usize> = 1..=100;
/// The degree where none is given.
pub(super) const DEGREE: usize = 4;
/// The largest eigenvalue over the smallest that the polynomial is small for, where none is given.
pub(super) const RATIO: f64 = 30.0;

const E: Operand = Operand::Write(0);
const D: Operand = Operand::Read(0);

/// a_(i+1), or a_1 / theta at the start.
const OF_E: Slot = Slot(0);
/// 1 / a_(i+1).
const OF_Y: Slot = Slot(1);

/// D^-1 s times a coefficient.
const fn scaled(by: Coefficient, s: Operand) -> Term {
    Term { by, v: D, factor: Some(Factor::Times(s)) }
}

/// e = a_(i+1) (e + D^-1 s), y += e / a_(i+1): e = `Write(0)`, y = `Write(1)`, D^-1 = `Read(0)`, s = `Read(1)`.
const STEP: Sweep<'static> = Sweep {
    name: "chebyshev_step",
    writes: 2,
    reads: 2,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::slot(OF_E, E), scaled(Coefficient::Slot(OF_E), Operand::Read(1))],
        },
        Update { target: 1, terms: &[Term::one(Operand::Write(1)), Term::slot(OF_Y, E)] },
    ],
    dots: &[],
    then: &[],
};

/// s = alpha x, e = a_1 / theta D^-1 s, y = e / a_1: e = `Write(0)`, y = `Write(1)`, s = `Write(2)`, D^-1 = `Read(0)`,
/// x = `Read(1)`.
const START: Sweep<'static> = Sweep {
    name: "chebyshev_start",
    writes: 3,
    reads: 2,
    updates: &[
        Update { target: 2, terms: &[Term::one(Operand::Read(1))] },
        Update { target: 0, terms: &[scaled(Coefficient::Slot(OF_E), Operand::Write(2))] },
        Update { target: 1, terms: &[Term::slot(OF_Y, E)] },
    ],
    dots: &[],
    then: &[],
};

const LAST: &[Update<'static>] = &[Update {
    target: 0,
    terms: &[
        Term::one(Operand::Write(0)),
        Term::one(Operand::Read(2)),
        scaled(Coefficient::Constant(1.0), Operand::Read(1)),
    ],
}];

/// y += e + D^-1 s: y = `Write(0)`, D^-1 = `Read(0)`, s = `Read(1)`, e = `Read(2)`.
const FINISH: Sweep<'static> =
    Sweep { name: "chebyshev_finish", writes: 1, reads: 3, updates: LAST, dots: &[], then: &[] };

/// The same with `<x, y>` and a program: x = `Read(3)`.
pub const fn chebyshev_dot<'a>(dots: &'a [Dot; 1], then: &'a [Op]) -> Sweep<'a> {
    Sweep { name: "chebyshev_dot", writes: 1, reads: 4, updates: LAST, dots, then }
}

/// Every sweep but those with the dot product of a solver, for whoever compiles them ahead.
pub(super) const SWEEPS: &[Sweep<'static>] =
    &[START, STEP, FINISH, estimate::START, estimate::RESIDUAL, estimate::DIRECTION];

/// Builds the operator out of that of the matrix; every diagonal entry must be positive and finite.
pub(super) fn build<D: Device, T: Scalar>(
    device: &D,
    matrix: &Csr,
    a: &Operator<D, T>,
    degree: usize,
    ratio: f64,
) -> Result<Made<D, T>> {
    let inverse = inverse_diagonal::<T>("chebyshev", matrix)?;
    let n = matrix.rows();
    let host: Vec<T> = inverse.iter().map(|&d| T::from_f64(d)).collect();
    let mut diagonal = device.vector(n, 1)?;
    device.upload(&host, &mut diagonal)?;
    let largest = largest_eigenvalue(device, matrix, a, &inverse, &diagonal)?;
    log::info!(
        "chebyshev: eigenvalues of the scaled matrix up to {largest:.4}, from {:.4} on",
        largest / ratio
    );
    let (steps, work) = coefficients(device, degree, largest, ratio)?;
    let work = Mutex::new(Work { e: device.vector(n, 1)?, s: device.vector(n, 1)?, slots: work });
    Ok(Arc::new(Chebyshev { n, a: a.clone(), diagonal, steps, work }))
}

/// What a product with A is multiplied by, and what s is: -b_i / a_i and b_i / b_(i-1).
type Step = (f64, f64);

/// The steps, and the scalars of the sweep before each: the start first.
fn coefficients<D: Device>(
    device: &D,
    degree: usize,
    largest: f64,
    ratio: f64,
) -> Result<(Vec<Step>, Vec<D::Slots>)> {
    let smallest = largest / ratio;
    let (theta, delta) = (0.5 * (largest + smallest), 0.5 * (largest - smallest));
    let sigma = theta / delta;
    let (mut rho, mut b_before) = (1.0 / sigma, 1.0);
    let (mut steps, mut slots) = (Vec::new(), Vec::new());
    for i in 1..=degree {
        let next = 1.0 / (2.0 * sigma - rho);
        let (a, b) = (next * rho, 2.0 * next / delta);
        let mut state = SlotState::new(2, 1);
        state.set(OF_E, 0, if i == 1 { a / theta } else { a });
        state.set(OF_Y, 0, 1.0 / a);
        let mut bank = device.slots(2, 1)?;
        device.write(&state, &mut bank)?;
        slots.push(bank);
        steps.push((-b / a, b / b_before));
        (rho, b_before) = (next, b);
    }
    Ok((steps, slots))
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
    e: D::Vector<T>,
    s: D::Vector<T>,
    slots: Vec<D::Slots>,
}

impl<D: Device, T: Scalar> Chebyshev<D, T> {
    /// All but the last sweep. Memory traffic in n-vectors read + written, besides A's: 2 + 3 at the start; each
    /// product with A reads s as well, 1, and each step in between is 4 + 2.
    fn all_but_last(
        &self,
        device: &D,
        w: &mut Work<D, T>,
        (alpha, beta): (f64, f64),
        x: &D::Vector<T>,
        y: &mut D::Vector<T>,
    ) -> Result<()> {
        let Work { e, s, slots } = w;
        // s = alpha x, e = a_1 / theta D^-1 s, y = e / a_1 (+ beta y)
        let copy = [Update { target: 2, terms: &[Term::constant(alpha, Operand::Read(1))] }];
        let into_y = [Term::slot(OF_Y, E), Term::constant(beta, Operand::Write(1))];
        let into_y = Update { target: 1, terms: if beta == 0.0 { &into_y[..1] } else { &into_y } };
        let updates = [copy[0], START.updates[1], into_y];
        let start = Sweep { updates: &updates, ..START };
        device.sweep(&mut [e, y, s], &[&self.diagonal, x], &mut slots[0], &start)?;
        for (i, &(of_a, of_s)) in self.steps.iter().enumerate() {
            if i > 0 {
                // e = a_(i+1) (e + D^-1 s), y += e / a_(i+1)
                device.sweep(&mut [e, y], &[&self.diagonal, s], &mut slots[i], &STEP)?;
            }
            // s = b_i / b_(i-1) s - b_i / a_i A e
            self.a.apply(of_a, e, of_s, s)?;
        }
        Ok(())
    }
}

impl<D: Device, T: Scalar> LinearOperator<D, T> for Chebyshev<D, T> {
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }

    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        let mut work = lock(&self.work);
        self.all_but_last(device, &mut work, (alpha, beta), x, y)?;
        let Work { e, s, slots } = &mut *work;
        device.sweep(&mut [y], &[&self.diagonal, s, e], &mut slots[0], &FINISH)
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
        self.all_but_last(device, &mut work, (1.0, 0.0), x, y)?;
        let Work { e, s, .. } = &mut *work;
        let dots = [Dot::product(Operand::Read(3), Operand::Write(0), dot[0].out)];
        device.sweep(&mut [y], &[&self.diagonal, s, e, x], slots, &chebyshev_dot(&dots, then))
    }

    fn cost(&self) -> Cost {
        let width = size_of::<T>();
        let steps = self.steps.len() as u64;
        let product = self.a.cost();
        let sweeps = [(&START, 1), (&STEP, steps - 1), (&FINISH, 1)];
        let vectors: u64 = sweeps.iter().map(|(sweep, times)| times * sweep.bytes(self.n, 1, width)).sum();
        let old_s = (self.n * width) as u64;
        Cost {
            bytes: steps * (product.bytes + old_s) + vectors,
            // The start 2 a row, each product 3 for s besides its own, a step 5, the last sweep 3.
            flops: steps * (product.flops + 3 * self.n as u64) + (5 * steps * self.n as u64),
        }
    }

    fn storage(&self) -> u64 {
        (3 * self.n * size_of::<T>()) as u64
    }
}
