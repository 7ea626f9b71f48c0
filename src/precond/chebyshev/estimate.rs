//! A bound for the largest eigenvalue of D^-1 A; see [chebyshev](super).

use crate::backend::Operator;
use crate::device::{Device, Dot, Op, Operand, Slot, SlotState, Sweep, Term, Test, Track, Update};
use crate::error::Result;
use crate::format::Csr;
use crate::operator::{DotInto, dot_into};
use crate::scalar::Scalar;
use crate::source::generate::random::Random;
use crate::spectrum::Tridiagonal;
use crate::stop::StopCode;
use rayon::prelude::*;

/// Steps of the estimate.
const STEPS: usize = 16;
/// What an estimate from below is multiplied by.
const SAFETY: f64 = 1.1;
/// Of the random vector.
const SEED: u64 = 1;

const RHO: Slot = Slot(0);
const RHO_NEXT: Slot = Slot(1);
const PQ: Slot = Slot(2);
const ALPHA: Slot = Slot(3);
const BETA: Slot = Slot(4);
const SLOTS: usize = 5;

/// The dot product that follows a product with A.
pub(in crate::precond) const INTO_PQ: DotInto = dot_into(PQ);
/// alpha = rho / p'q, unless the curvature is not positive; noted with rho.
pub(in crate::precond) const AFTER_PQ: &[Op] = &[
    Op::StopIf(Test::NotFinite(PQ), StopCode::NotFinite),
    Op::StopIf(Test::NotPositive(PQ), StopCode::IndefiniteMatrix),
    Op::Divide(ALPHA, RHO, PQ),
    Op::Note(Track(1), ALPHA),
    Op::Note(Track(2), RHO),
    Op::Count(PQ),
];

/// z = D^-1 r, p = z, r'z: z = `Write(0)`, p = `Write(1)`, D^-1 = `Read(0)`, r = `Read(1)`.
pub(super) const START: Sweep<'static> = Sweep {
    name: "chebyshev_estimate_start",
    writes: 2,
    reads: 2,
    updates: &[
        Update { target: 0, terms: &[D_TIMES_R] },
        Update { target: 1, terms: &[Term::one(Operand::Write(0))] },
    ],
    dots: &[Dot::product(Operand::Write(0), Operand::Read(1), RHO)],
    then: &[],
};
const D_TIMES_R: Term = Term::one(Operand::Read(0)).times(Operand::Read(1));

/// r -= alpha q, z = D^-1 r, r'z: r = `Write(0)`, z = `Write(1)`, D^-1 = `Read(0)`, q = `Read(1)`.
pub(super) const RESIDUAL: Sweep<'static> = Sweep {
    name: "chebyshev_estimate_residual",
    writes: 2,
    reads: 2,
    updates: &[
        Update { target: 0, terms: &[Term::one(Operand::Write(0)), Term::minus(ALPHA, Operand::Read(1))] },
        Update { target: 1, terms: &[Term::one(Operand::Read(0)).times(Operand::Write(0))] },
    ],
    dots: &[Dot::product(Operand::Write(0), Operand::Write(1), RHO_NEXT)],
    then: &[Op::Divide(BETA, RHO_NEXT, RHO), Op::Copy(RHO, RHO_NEXT)],
};

/// p = z + beta p.
pub(super) const DIRECTION: Sweep<'static> = Sweep {
    name: "chebyshev_estimate_direction",
    writes: 1,
    reads: 1,
    updates: &[Update {
        target: 0,
        terms: &[Term::slot(BETA, Operand::Write(0)), Term::one(Operand::Read(0))],
    }],
    dots: &[],
    then: &[],
};

/// The bound; positive.
pub(super) fn largest_eigenvalue<D: Device, T: Scalar>(
    device: &D,
    matrix: &Csr,
    a: &Operator<D, T>,
    inverse: &[f64],
    diagonal: &D::Vector<T>,
) -> Result<f64> {
    let row = |i: usize| inverse[i] * matrix.row(i).map(|(_, v)| v.abs()).sum::<f64>();
    let bound = (0..inverse.len()).into_par_iter().with_min_len(4096).map(row).reduce(|| 0.0, f64::max);
    let seen = lanczos(device, a, inverse.len(), diagonal)?.extremes().map(|s| SAFETY * s.largest);
    let largest = seen.filter(|&seen| seen > 0.0 && seen < bound).unwrap_or(bound);
    // Only a matrix of no rows has none.
    Ok(if largest > 0.0 { largest } else { 1.0 })
}

/// The projection of D^-1 A that a few steps of conjugate gradients make, as far as curvatures are positive.
fn lanczos<D: Device, T: Scalar>(
    device: &D,
    a: &Operator<D, T>,
    n: usize,
    diagonal: &D::Vector<T>,
) -> Result<Tridiagonal> {
    let random: Vec<T> = (0..n).map(|i| T::from_f64(Random::at(SEED, i as u64).unit() - 0.5)).collect();
    let vector = || device.vector::<T>(n, 1);
    let (mut r, mut z, mut p, mut q, mut slots) =
        (vector()?, vector()?, vector()?, vector()?, device.slots(SLOTS, 1)?);
    device.upload(&random, &mut r)?;
    device.sweep(&mut [&mut z, &mut p], &[diagonal, &r], &mut slots, &START)?;
    for _ in 0..STEPS {
        // q = A p, p'q, alpha
        a.apply_dot(&p, &mut q, &mut slots, &INTO_PQ, AFTER_PQ)?;
        // r -= alpha q, z = D^-1 r, beta
        device.sweep(&mut [&mut r, &mut z], &[diagonal, &q], &mut slots, &RESIDUAL)?;
        // p = z + beta p
        device.sweep(&mut [&mut p], &[&z], &mut slots, &DIRECTION)?;
    }
    let mut state = SlotState::new(SLOTS, 1);
    device.read(&slots, &mut state)?;
    let step = |i: usize| (state.noted(Track(1), i, 0), state.noted(Track(2), i, 0));
    let steps: Vec<_> = (0..state.counts[0] as usize).map(step).collect();
    let mut projection = Tridiagonal::default();
    projection.set_to_conjugate_gradients(&steps);
    Ok(projection)
}
