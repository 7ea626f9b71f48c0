//! Minimal residuals: for symmetric systems, indefinite or singular ones too.
//!
//! # Method
//! Lanczos' process makes y_(k+1) orthogonal to all before it, from y_1 = b - A x with z = M y and beta_k^2 = y_k'z_k:
//!
//! ```text
//! q = A z_k,   alpha = z_k'q / beta_k^2 - y_k'z_(k-1) / beta_(k-1)
//! y_(k+1) = q / beta_k - alpha / beta_k y_k - beta_k / beta_(k-1) y_(k-1),   z_(k+1) = M y_(k+1)
//! ```
//!
//! Plane rotations (c, s) turn the tridiagonal matrix of alpha and beta into a triangular one with gamma, delta and
//! epsilon in its rows; with phi = c phi_bar and phi_bar = s phi_bar the answer moves along w:
//!
//! ```text
//! w_k = (z_k / beta_k - delta w_(k-1) - epsilon w_(k-2)) / gamma,   x = x + phi w_k
//! ```
//!
//! Among all x of the space searched so far this one has the smallest residual (in the norm of M).
//!
//! # Variant
//! The last term of alpha is zero but for rounding; with it alpha is what it would be with y_(k-1) taken off q first,
//! and ill-conditioned systems take up to 4 % fewer iterations. Vectors of Lanczos are not scaled to length 1; their
//! lengths ride in the coefficients. Vectors that swap their roles from one iteration to the next lie in pairs, so a
//! step is two iterations, and the device itself keeps the limit of iterations. Without preconditioner the update of w
//! and x waits for the next iteration, whose sweep reads y_k anyway; the last one is added at the end. With one, the
//! residual is kept as a vector, r = s^2 r - phi / gamma y_(k+1), so that the test is on the same norm as everywhere.
//!
//! # Range
//! The coefficients of Lanczos are as large as A, and their squares are added up. Where those would leave the range of
//! numbers, the method runs on sigma A, with a power of two sigma that makes the largest entry about 1, and the shell
//! multiplies the answer by sigma. A preconditioner makes M A about 1 by itself.
//!
//! # Cost
//! For each iteration: one operator, the preconditioner, three dot products or four, and 11 n-vectors read or written
//! without preconditioner (see `half`).
//!
//! # Stopping
//! ||r|| / ||b||, tested on the device in every iteration; without preconditioner it is |phi_bar|. Where the system has no
//! solution, ||r|| stays and ||A r|| falls: once it is 1e-7 of ||A|| ||r|| (64 units of rounding in single precision),
//! x is a least-squares solution. ||A|| is the root mean square of Lanczos' coefficients in a row. The method cannot be
//! asked for less: near the square root of the rounding, x begins to grow along the null space and ||A r|| rises again.
//! So a consistent system with a condition number beyond 1e7 may look like one without solution; the shell therefore
//! starts again once, and believes what does not change.
//!
//! # Reference
//! C. C. Paige and M. A. Saunders, Solution of sparse indefinite systems of linear equations, SIAM J. Numer. Anal. 12,
//! 1975.

mod sweeps;

use super::recurrence::{self, Operators, Preconditioning, Recurrence};
use crate::device::{Device, SlotState};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::spectrum::Tridiagonal;
use crate::stop::{StopCode, StopReason};
use sweeps::*;
pub use sweeps::{PROGRAMS, SLOTS, SWEEPS};

/// The normal residual of a least-squares solution, and the least that it can be asked for in units of rounding.
const LEAST_SQUARES: f64 = 1e-7;
const LEAST_SQUARES_ROUNDING: f64 = 64.0;

/// Operators, vectors and scalars of a solve. Of each pair the first vector is the newer one in the first half of a
/// step.
pub(super) struct Work<D: Device, T: Scalar> {
    operators: Operators<D, T>,
    x: D::Vector<T>,
    y: [D::Vector<T>; 2],
    w: [D::Vector<T>; 2],
    q: D::Vector<T>,
    preconditioned: Option<Preconditioned<D, T>>,
    slots: D::Slots,
}

/// The vectors that only a preconditioner needs.
struct Preconditioned<D: Device, T: Scalar> {
    z: [D::Vector<T>; 2],
    r: D::Vector<T>,
}

/// The two of a pair: the newer, then the older.
fn roles<V>(pair: &mut [V; 2], half: usize) -> (&mut V, &mut V) {
    let [a, b] = pair;
    if half == 0 { (a, b) } else { (b, a) }
}

/// One iteration.
///
/// Memory traffic in n-vectors read + written, besides the matrix: q = A y 1 + 1, the sweep 6 + 3: 11 in all. With a
/// preconditioner q = A z 1 + 1, the next vector 3 + 1, its own (jacobi: d and y in, z out), w, x and r 6 + 3: 18 in
/// all.
fn half<D: Device, T: Scalar>(device: &D, k: &mut Work<D, T>, half: usize) -> Result<()> {
    let (y, old) = roles(&mut k.y, half);
    let (w2, w1) = roles(&mut k.w, half);
    let a = &k.operators.a;
    match (&k.operators.m, &mut k.preconditioned) {
        (Some(m), Some(Preconditioned { z, r })) => {
            let (z, z_next) = roles(z, half);
            // q = A z, z'q, alpha
            a.apply_dot(z, &mut k.q, &mut k.slots, &INTO_ZQ, AFTER_ZQ)?;
            // y' = q / beta - alpha / beta y - beta / beta_old y_old
            device.sweep(&mut [old], &[&k.q, y], &mut k.slots, &LANCZOS)?;
            // z' = M y', y''z', the rotation
            m.apply_dot(old, z_next, &mut k.slots, &INTO_SQUARE_NEXT, AFTER_SQUARE)?;
            // w = (v - epsilon w1 - delta w2) / gamma, x += phi w, r = s^2 r - phi / gamma y', r'r
            device.sweep(&mut [w1, &mut k.x, r], &[z, w2, old], &mut k.slots, &UPDATE)
        }
        _ => {
            // q = A y, y'q, alpha
            a.apply_dot(y, &mut k.q, &mut k.slots, &INTO_ZQ, AFTER_ZQ)?;
            // w and x of the iteration before; y' = q / beta - alpha / beta y - beta / beta_old y_old, the rotation
            device.sweep(&mut [w1, &mut k.x, old], &[&k.q, y, w2], &mut k.slots, &STEP)
        }
    }
}

impl<D: Device, T: Scalar> Recurrence<D, T> for Work<D, T> {
    const STATE: u32 = 2;
    const SLOTS: usize = SLOTS;
    const STRIDE: usize = 2;
    const SCALES: bool = true;

    /// x, q, two y, two w, and two z and r with a preconditioner.
    fn vectors(preconditioned: bool) -> usize {
        if preconditioned { 9 } else { 6 }
    }

    fn sweep_bytes(n: usize, preconditioned: bool) -> u64 {
        let width = size_of::<T>();
        if preconditioned {
            LANCZOS.bytes(n, 1, width) + UPDATE.bytes(n, 1, width)
        } else {
            STEP.bytes(n, 1, width)
        }
    }

    fn new(device: &D, operators: Operators<D, T>, n: usize) -> Result<Self> {
        let v = || device.vector::<T>(n, 1);
        let extra = || -> Result<_> { Ok(Preconditioned { z: [v()?, v()?], r: v()? }) };
        let preconditioned = operators.m.is_some().then(extra).transpose()?;
        let slots = device.slots(SLOTS, 1)?;
        let (y, w) = ([v()?, v()?], [v()?, v()?]);
        Ok(Work { operators, x: v()?, y, w, q: v()?, preconditioned, slots })
    }

    fn clear(&mut self, device: &D) -> Result<()> {
        let [w, older] = &mut self.w;
        [&mut self.x, &mut self.y[1], w, older].into_iter().try_for_each(|v| device.clear(v))
    }

    fn start(&mut self, device: &D, r: &[T]) -> Result<()> {
        let k = self;
        device.upload(r, &mut k.y[0])?;
        // r'r
        device.sweep::<T>(&mut [], &[&k.y[0]], &mut k.slots, &NORM)?;
        if let (Some(m), Some(extra)) = (&k.operators.m, &mut k.preconditioned) {
            device.upload(r, &mut extra.r)?;
            // z = M y, y'z
            m.apply_dot(&k.y[0], &mut extra.z[0], &mut k.slots, &INTO_SQUARE, CHECK_SQUARE)?;
        }
        Ok(())
    }

    fn step(device: &D, k: &mut Self) -> Result<()> {
        half(device, k, 0)?;
        half(device, k, 1)
    }

    fn slots(&self) -> &D::Slots {
        &self.slots
    }

    fn slots_mut(&mut self) -> &mut D::Slots {
        &mut self.slots
    }

    fn carried(&self) -> Vec<&D::Vector<T>> {
        let mut all: Vec<_> = [&self.x].into_iter().chain(&self.y).chain(&self.w).collect();
        all.extend(self.preconditioned.iter().flat_map(|extra| extra.z.iter().chain([&extra.r])));
        all
    }

    fn carried_mut(&mut self) -> Vec<&mut D::Vector<T>> {
        let mut all: Vec<_> = [&mut self.x].into_iter().chain(&mut self.y).chain(&mut self.w).collect();
        all.extend(self.preconditioned.iter_mut().flat_map(|extra| extra.z.iter_mut().chain([&mut extra.r])));
        all
    }

    fn prepare(state: &mut SlotState, sigma: f64) {
        let beta = state.get(SQUARE, 0).sqrt();
        let normal = LEAST_SQUARES.max(LEAST_SQUARES_ROUNDING * T::EPSILON);
        let values = [
            (BETA, beta),
            (PHI_BAR, beta),
            (BETA_OLD, 1.0),
            (C, -1.0),
            (NORMAL, normal * normal),
            (ONE, 1.0),
            (SIGMA, sigma),
        ];
        for (slot, value) in values {
            state.set(slot, 0, value);
        }
    }

    fn limit(state: &mut SlotState, iterations: f64) {
        state.set(LIMIT, 0, iterations);
    }

    fn rest(iterations: usize) -> Option<fn(&D, &mut Self) -> Result<()>> {
        (iterations % 2 == 1).then_some(|device, work| half(device, work, 1))
    }

    fn reason(code: StopCode, state: &SlotState, _: usize) -> StopReason {
        let counted = state.counts[0] as usize;
        match code {
            // The shell knows the numbers.
            StopCode::LeastSquares => StopReason::LeastSquares { residual: f64::NAN, normal: f64::NAN },
            StopCode::IndefinitePreconditioner => {
                let before = !matches!(state.get(SQUARE, 0), square if square > 0.0);
                let product = state.get(if before { SQUARE } else { SQUARE_NEXT }, 0);
                StopReason::IndefinitePreconditioner { iteration: counted + usize::from(!before), product }
            }
            _ => recurrence::not_finite(counted + usize::from(state.get(SQUARE, 0).is_finite())),
        }
    }

    /// Without preconditioner the last update of w and x is open, unless the sweep that stopped was the one to add it.
    fn finish(&mut self, device: &D, state: &mut SlotState, first: usize) -> Result<()> {
        let added = match StopCode::from_device(state.done[0]) {
            StopCode::LeastSquares => true,
            StopCode::NotFinite => state.get(ZQ, 0).is_finite(),
            _ => false,
        };
        if self.preconditioned.is_some() || added {
            return Ok(());
        }
        state.done[0] = StopCode::Running as u32;
        device.write(state, &mut self.slots)?;
        let next = (state.counts[0] as usize - first) % 2;
        let (_, old) = roles(&mut self.y, next);
        let (w2, w1) = roles(&mut self.w, next);
        device.sweep(&mut [w1, &mut self.x], &[old, w2], &mut self.slots, &FINISH)
    }

    fn answer(&self) -> &D::Vector<T> {
        &self.x
    }

    fn preconditioner(&mut self) -> Option<Preconditioning<'_, D, T>> {
        let z = &mut self.preconditioned.as_mut()?.z;
        Some((self.operators.m.as_ref()?, [&mut self.q, &mut z[0]]))
    }

    fn suspects(&self) -> Vec<(&'static str, &D::Vector<T>)> {
        let mut all = vec![("A v", &self.q)];
        if let Some(extra) = &self.preconditioned {
            all.extend(extra.z.iter().map(|z| ("M v", z)));
        }
        all.extend(self.y.iter().map(|y| ("v", y)));
        all
    }

    fn project(coefficients: &[(f64, f64)], projection: &mut Tridiagonal) {
        projection.set_to_lanczos(coefficients);
    }
}
