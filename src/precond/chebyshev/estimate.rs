//! A bound for the largest eigenvalue of D^-1 A; see [chebyshev](super).

use crate::backend::Operator;
use crate::device::formula::{names, product, sweep};
use crate::device::{Device, Formula, Product, SlotState, Track, Workspace};
use crate::error::Result;
use crate::format::Csr;
use crate::scalar::Scalar;
use crate::source::generate::random::Random;
use crate::spectrum::Tridiagonal;
use rayon::prelude::*;

/// Steps of the estimate.
const STEPS: usize = 16;
/// The factor that is applied to the estimate, which is a lower bound.
const SAFETY: f64 = 1.1;
/// The seed of the random vector.
const SEED: u64 = 1;

names! {
    /// `d` is D^-1.
    vectors v { r, z, p, q, d }
    scalars s { rho, rho_next, pq, alpha, beta }
}

const FIRST: Track = Track(1);
const SECOND: Track = Track(2);

/// q = A p, the curvature p'q, and alpha unless the curvature is not positive; recorded with rho.
pub(super) const CURVATURE: Product = product!({ q = A p; pq = <p, q> } then {
    stop NotFinite if not_finite(pq);
    stop IndefiniteMatrix if not_positive(pq);
    alpha = rho / pq;
    note FIRST = alpha;
    note SECOND = rho;
    count pq;
});
/// z = D^-1 r, p = z, r'z.
pub(super) const START: Formula = sweep!({ "chebyshev_estimate_start": z = d .* r; p = z; rho = <z, r>; });
/// r -= alpha q, z = D^-1 r, r'z, beta.
pub(super) const RESIDUAL: Formula = sweep!({
    "chebyshev_estimate_residual": r = r - alpha * q; z = d .* r; rho_next = <r, z>;
} then {
    beta = rho_next / rho;
    rho = rho_next;
});
/// p = z + beta p.
pub(super) const DIRECTION: Formula = sweep!({ "chebyshev_estimate_direction": p = beta * p + z; });

/// Computes the bound, which is positive.
pub(super) fn largest_eigenvalue<D: Device, T: Scalar>(
    device: &D,
    matrix: &Csr,
    a: &Operator<D, T>,
    inverse: &[f64],
    diagonal: &[T],
) -> Result<f64> {
    let row = |i: usize| inverse[i] * matrix.row(i).map(|(_, v)| v.abs()).sum::<f64>();
    // Over ranks, the rows of all ranks count.
    let bound = (0..inverse.len()).into_par_iter().with_min_len(4096).map(row).reduce(|| 0.0, f64::max);
    let bound = device.fold(bound, f64::max);
    let estimate = lanczos(device, a, inverse.len(), diagonal)?.extremes().map(|s| SAFETY * s.largest);
    let largest = estimate.filter(|&estimate| estimate > 0.0 && estimate < bound).unwrap_or(bound);
    // Only a matrix without rows has the bound 0.
    Ok(if largest > 0.0 { largest } else { 1.0 })
}

/// Computes the projection of D^-1 A by a few steps of conjugate gradients, as long as
/// curvatures are positive.
fn lanczos<D: Device, T: Scalar>(
    device: &D,
    a: &Operator<D, T>,
    n: usize,
    diagonal: &[T],
) -> Result<Tridiagonal> {
    let numbers = device.row_numbers();
    let entry = |row: usize| Random::at(SEED, numbers.of(row) as u64).unit() - 0.5;
    let random: Vec<T> = (0..n).map(|row| T::from_f64(entry(row))).collect();
    let names = [v::r, v::z, v::p, v::q, v::d];
    let mut workspace = Workspace::<D, T>::new(device, names, (n, 1), s::COUNT)?;
    let mut work = workspace.work();
    work.upload(v::r, &random)?;
    work.upload(v::d, diagonal)?;
    work.sweep(&START)?;
    for _ in 0..STEPS {
        // q = A p, p'q, alpha
        work.product(a, &CURVATURE)?;
        // r -= alpha q, z = D^-1 r, beta
        work.sweep(&RESIDUAL)?;
        // p = z + beta p
        work.sweep(&DIRECTION)?;
    }
    let mut state = SlotState::new(s::COUNT, 1);
    work.read(&mut state)?;
    let step = |i: usize| (state.noted(FIRST, i, 0), state.noted(SECOND, i, 0));
    let steps: Vec<_> = (0..state.counts[0] as usize).map(step).collect();
    let mut projection = Tridiagonal::default();
    projection.set_to_conjugate_gradients(&steps);
    Ok(projection)
}
