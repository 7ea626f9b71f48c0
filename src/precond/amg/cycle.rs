//! The cycle over the levels, on a device.
//!
//! On each level, with A its matrix, b its right-hand side and s a polynomial smoother:
//!
//! ```text
//! x = s b                       the first steps, from x = 0
//! b' = P' (b - A x)             the right-hand side of the next level
//! x = x + P x'                  x' solves A' x' = b' by the same cycle
//! x = x + s (b - A x)           the last steps
//! ```
//!
//! The rows and columns of every matrix that is smoothed are divided by the square roots of its diagonal,
//! which is 1 then, and those of P to match. A diagonal entry that is not positive stays. The smoother is s =
//! alpha I + beta A: an optimised Chebyshev polynomial of the fourth kind of degree 2 for the eigenvalues up
//! to `largest`, or of degree 1 with beta = 0. The smoothers before and after are the same, so the cycle is
//! symmetric.
//!
//! # Cost
//! For each visit of a level 2 products for every degree of the smoother, one with P and one with P'.
//! Products take their sums with other vectors along, so that few passes over vectors are left. A W-cycle
//! visits the levels between the first and the last twice as often as the level before, and computes a
//! residual between two visits.
//!
//! # Reference
//! J. Lottes, Optimal polynomial smoothers for multigrid V-cycles, Numer. Linear Algebra Appl. 30, 2023.

mod build;

use crate::backend::Operator;
use crate::device::formula::{names, sweep};
use crate::device::{Device, Formula, Sweep};
use crate::error::Result;
use crate::observe::report::Levels;
use crate::operator::{COPY, Cost, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
pub(super) use build::Builder;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

names! {
    vectors v { y, x, b, r, q }
    scalars s { none }
}

/// After q = A r: q = x + beta q, r = q + alpha r.
const TWO_STEPS: Formula = sweep!({ "amg_two_steps": q = x + [1] * q; r = q + [0] * r; });
/// After q = A x: q = b - q, x = x + alpha q.
const STEP: Formula = sweep!({ "amg_step": q = b - q; x = x + [0] * q; });
/// x = x + y.
const ADD: Formula = sweep!({ "amg_add": x = x + y; });
/// b = b - y, r = x.
const KEEP: Formula = sweep!({ "amg_keep": b = b - y; r = x; });

/// All sweeps; the values of their numbers do not affect compilation.
pub(super) const SWEEPS: &[Sweep<'static>] =
    &[TWO_STEPS.sweep.with(&[1.0; 2]), STEP.sweep.with(&[1.0]), ADD.sweep, KEEP.sweep, COPY.sweep];

/// How often the smoother is applied on a last level that is not inverted. All but the first application swap
/// two vectors, and their odd number leaves the solution where [`Cycle::solution`] finds it.
const LAST_STEPS: usize = 4;
const _: () = assert!(LAST_STEPS.is_multiple_of(2));

/// The degree of the smoother, and the shape of the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub degree: u64,
    /// Whether the levels between the first and the last are visited twice.
    pub twice: bool,
}

/// The smoother of a level: alpha I + beta A, without the second term if its degree is 1.
#[derive(Clone, Copy)]
struct Smoother {
    alpha: f64,
    beta: Option<f64>,
}

impl Smoother {
    fn of(degree: u64, largest: f64) -> Smoother {
        let c = 4.0 / 3.0 / largest;
        if degree == 1 {
            return Smoother { alpha: 1.125 * c, beta: None };
        }
        // With x = c b: e0 x + e1 (b - A x).
        let (first, second) = (1.023_872_875_703_13, 1.264_089_053_710_85);
        let (e0, e1) = (first + second / 5.0, second * 12.0 / 5.0 / largest);
        Smoother { alpha: e0 * c + e1, beta: Some(-e1 * c) }
    }
}

/// The matrix of a level on the device, with its smoother.
struct Smoothed<D: Device, S: Scalar> {
    n: usize,
    a: Operator<D, S>,
    backend: String,
    smoother: Smoother,
}

/// A level on the device.
struct LevelOn<D: Device, S: Scalar> {
    matrix: Smoothed<D, S>,
    prolongator: Operator<D, S>,
    restriction: Operator<D, S>,
}

/// The last level on the device.
enum LastOn<D: Device, S: Scalar> {
    Inverse(Operator<D, S>, String),
    Matrix(Smoothed<D, S>),
}

/// The vectors of a level.
struct Vectors<D: Device, S: Scalar> {
    b: D::Vector<S>,
    /// The solution before the last steps; [`Cycle::solution`] says where it is in the end.
    x: D::Vector<S>,
    /// The residual, or the solution.
    r: D::Vector<S>,
    q: D::Vector<S>,
    /// The x of the first visit of two.
    kept: Option<D::Vector<S>>,
}

/// The vectors of all levels, and slots for sweeps, which use none.
struct Space<D: Device, S: Scalar> {
    columns: usize,
    levels: Vec<Vectors<D, S>>,
    slots: D::Slots,
}

/// The cycle as a preconditioner: vectors of T outside, of S inside.
pub(super) struct Cycle<D: Device, T, S: Scalar> {
    levels: Vec<LevelOn<D, S>>,
    last: LastOn<D, S>,
    rows_of_last: usize,
    /// The description for reports.
    described: Arc<Levels>,
    shape: Shape,
    /// A power of two: the levels are those of the matrix times this.
    scale: f64,
    /// The reciprocal square roots of the diagonal of the first level.
    roots: D::Vector<S>,
    space: Mutex<Space<D, S>>,
    outside: PhantomData<fn(T)>,
}

impl<D: Device, S: Scalar> Space<D, S> {
    fn new(device: &D, rows: &[usize], shape: Shape, k: usize) -> Result<Space<D, S>> {
        let of = |(at, &n): (usize, &usize)| {
            let vector = || device.vector(n, k);
            let between = at > 0 && at + 1 < rows.len();
            let kept = (shape.twice && between).then(vector).transpose()?;
            Ok(Vectors { b: vector()?, x: vector()?, r: vector()?, q: vector()?, kept })
        };
        let levels = rows.iter().enumerate().map(of).collect::<Result<_>>()?;
        Ok(Space { columns: k, levels, slots: device.slots(1, k)? })
    }
}

impl<D: Device, T: Scalar, S: Scalar> Cycle<D, T, S> {
    fn rows(&self) -> Vec<usize> {
        self.levels.iter().map(|level| level.matrix.n).chain([self.rows_of_last]).collect()
    }

    fn fit(&self, device: &D, space: &mut Space<D, S>, k: usize) -> Result<()> {
        if space.columns != k {
            *space = Space::new(device, &self.rows(), self.shape, k)?;
        }
        Ok(())
    }

    fn operators(&self) -> impl Iterator<Item = &Operator<D, S>> {
        let last = match &self.last {
            LastOn::Inverse(a, _) | LastOn::Matrix(Smoothed { a, .. }) => a,
        };
        self.levels
            .iter()
            .flat_map(|level| [&level.matrix.a, &level.prolongator, &level.restriction])
            .chain([last])
    }

    /// Returns the backend and the bytes of each level, with vectors of `k` columns.
    fn built(&self, k: usize) -> impl Iterator<Item = (&str, u64)> {
        let (end, twice) = (self.levels.len(), self.shape.twice);
        // Four vectors, one that is kept between two visits, and the roots of the first level.
        let vectors = move |at: usize, n: usize| {
            let kept = usize::from(twice && at > 0 && at < end);
            (n * ((4 + kept) * k + usize::from(at == 0)) * size_of::<S>()) as u64
        };
        let levels = self.levels.iter().enumerate();
        let levels = levels.map(move |(at, LevelOn { matrix, prolongator, restriction })| {
            let operators = [&matrix.a, prolongator, restriction].map(Operator::storage);
            (matrix.backend.as_str(), operators.iter().sum::<u64>() + vectors(at, matrix.n))
        });
        let (last, backend) = match &self.last {
            LastOn::Inverse(a, backend) | LastOn::Matrix(Smoothed { a, backend, .. }) => (a, backend),
        };
        let last = (backend.as_str(), last.storage() + vectors(end, self.rows_of_last));
        levels.chain([last])
    }

    /// Returns the vector with the solution of a level, given its x and r, and the other one, which is free.
    fn solution<V>(&self, at: usize, x: V, r: V) -> [V; 2] {
        let in_x = match (self.levels.get(at), &self.last) {
            (Some(level), _) => level.matrix.smoother.beta.is_none(),
            (None, LastOn::Inverse(..)) => true,
            (None, LastOn::Matrix(_)) => false,
        };
        if in_x { [x, r] } else { [r, x] }
    }

    /// Solves approximately on a level and all later ones, from `b` of its vectors.
    fn solve(&self, device: &D, at: usize, spaces: &mut [Vectors<D, S>], slots: &mut D::Slots) -> Result<()> {
        let Some((own, later)) = spaces.split_first_mut() else { return Ok(()) };
        let Some(LevelOn { matrix, prolongator, restriction }) = self.levels.get(at) else {
            return match &self.last {
                LastOn::Inverse(inverse, _) => inverse.apply(1.0, &own.b, 0.0, &mut own.x),
                LastOn::Matrix(matrix) => matrix.smooth(own, slots),
            };
        };
        let Smoother { alpha, beta } = matrix.smoother;
        match beta {
            // x is alpha b, and not needed yet.
            None => matrix.a.apply_onto(-alpha, &own.b, (1.0, &own.b), &mut own.r, slots)?,
            Some(beta) => {
                matrix.a.apply_onto(beta, &own.b, (alpha, &own.b), &mut own.x, slots)?;
                matrix.a.apply_onto(-1.0, &own.x, (1.0, &own.b), &mut own.r, slots)?;
            }
        }
        restriction.apply(1.0, &own.r, 0.0, &mut later[0].b)?;
        self.solve(device, at + 1, later, slots)?;
        if later[0].kept.is_some() {
            self.solve_again(device, at + 1, later, slots)?;
        }
        let [correction, _] = self.solution(at + 1, &later[0].x, &later[0].r);
        match beta {
            None => prolongator.apply_onto(1.0, correction, (alpha, &own.b), &mut own.x, slots)?,
            Some(_) => prolongator.apply(1.0, correction, 1.0, &mut own.x)?,
        }
        let Vectors { b, x, r, q, .. } = own;
        matrix.further_steps(b, [x, r, q], slots)
    }

    /// Adds the solution for the residual to the solution.
    fn solve_again(
        &self,
        device: &D,
        at: usize,
        spaces: &mut [Vectors<D, S>],
        slots: &mut D::Slots,
    ) -> Result<()> {
        let (Some(own), Some(level)) = (spaces.first_mut(), self.levels.get(at)) else { return Ok(()) };
        let Some(mut kept) = own.kept.take() else { return Ok(()) };
        let outcome = (|| {
            let Vectors { b, x, r, .. } = &mut spaces[0];
            let [x, y] = self.solution(at, x, r);
            level.matrix.a.apply(1.0, x, 0.0, y)?;
            let writes = [(v::b, b), (v::r, &mut kept)];
            KEEP.run(device, writes, [(v::y, &*y), (v::x, &*x)], slots, &[])?;
            self.solve(device, at, spaces, slots)?;
            let Vectors { x, r, .. } = &mut spaces[0];
            let [x, _] = self.solution(at, x, r);
            ADD.run(device, [(v::x, x)], [(v::y, &kept)], slots, &[])
        })();
        spaces[0].kept = Some(kept);
        outcome
    }
}

impl<D: Device, S: Scalar> Smoothed<D, S> {
    /// x + s (b - A x) in place of x if the degree is 1, or else in r; changes q.
    fn further_steps(
        &self,
        b: &D::Vector<S>,
        [x, r, q]: [&mut D::Vector<S>; 3],
        slots: &mut D::Slots,
    ) -> Result<()> {
        let Smoother { alpha, beta } = self.smoother;
        let Some(beta) = beta else {
            return self.a.apply_sweep([q, x], &[b], slots, &STEP.sweep.with(&[alpha]));
        };
        self.a.apply_onto(-1.0, x, (1.0, b), r, slots)?;
        self.a.apply_sweep([q, r], &[x], slots, &TWO_STEPS.sweep.with(&[alpha, beta]))
    }

    /// Solves approximately by [`LAST_STEPS`] times the smoother of degree 2; the solution is in r.
    fn smooth(&self, own: &mut Vectors<D, S>, slots: &mut D::Slots) -> Result<()> {
        let Vectors { b, x, r, q, .. } = own;
        let Smoother { alpha, beta } = self.smoother;
        self.a.apply_onto(beta.unwrap_or(0.0), b, (alpha, b), x, slots)?;
        let (mut from, mut to) = (x, r);
        for _ in 1..LAST_STEPS {
            self.further_steps(b, [from, to, q], slots)?;
            (from, to) = (to, from);
        }
        Ok(())
    }

    /// Returns the cost of `times` applications of the smoother to `k` columns, the first of them from x = 0,
    /// and of one residual if `restricts`.
    fn cost(&self, k: usize, times: u64, restricts: bool) -> Cost {
        let (a, elements, width) = (self.a.cost_of(k), (self.n * k) as u64, size_of::<S>());
        let sweep = if self.smoother.beta.is_some() { &TWO_STEPS.sweep } else { &STEP.sweep };
        let swept = match k {
            1 => self.a.bytes_with(sweep),
            _ => a.bytes + sweep.bytes(self.n, k, width),
        };
        // All applications but the first end in a sweep; the other products read one more vector.
        let sweeps = times - 1;
        let onto = u64::from(restricts) + if self.smoother.beta.is_some() { times } else { 0 };
        Cost {
            bytes: sweeps * swept + onto * (a.bytes + elements * width as u64),
            flops: (sweeps + onto) * (a.flops + 2 * elements),
        }
    }
}

impl<D: Device, T: Scalar, S: Scalar> LinearOperator<D, T> for Cycle<D, T, S> {
    fn shape(&self) -> (usize, usize) {
        let n = self.levels.first().map_or(self.rows_of_last, |level| level.matrix.n);
        (n, n)
    }

    fn prepare(&self, device: &D, k: usize) -> Result<()> {
        self.operators().try_for_each(|operator| operator.prepare(k))?;
        self.fit(device, &mut lock(&self.space), k)
    }

    fn apply(&self, device: &D, alpha: f64, x: &D::Vector<T>, beta: f64, y: &mut D::Vector<T>) -> Result<()> {
        let mut space = lock(&self.space);
        self.fit(device, &mut space, device.columns(x))?;
        let Space { levels, slots, .. } = &mut *space;
        device.convert((self.scale, &self.roots), x, 0.0, &mut levels[0].b)?;
        self.solve(device, 0, levels, slots)?;
        let [solution, _] = self.solution(0, &levels[0].x, &levels[0].r);
        device.convert((alpha, &self.roots), solution, beta, y)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    fn cost_of(&self, k: usize) -> Cost {
        let (width, n) = (size_of::<S>(), self.shape().0);
        let outside = 2 * (n * k * (size_of::<T>() + width) + n * width);
        let mut total = Cost { bytes: outside as u64, flops: 4 * (n * k) as u64 };
        let mut add = |times: u64, cost: Cost| {
            (total.bytes, total.flops) = (total.bytes + times * cost.bytes, total.flops + times * cost.flops);
        };
        let mut visits = 1;
        for (at, LevelOn { matrix, prolongator, restriction }) in self.levels.iter().enumerate() {
            if self.shape.twice && at > 0 {
                // Between two visits.
                let passes = KEEP.bytes(matrix.n, k, width) + ADD.bytes(matrix.n, k, width);
                add(visits, matrix.a.cost_of(k));
                add(visits, Cost { bytes: passes, flops: 2 * (matrix.n * k) as u64 });
                visits *= 2;
            }
            add(visits, matrix.cost(k, 2, true));
            add(visits, prolongator.cost_of(k));
            add(visits, restriction.cost_of(k));
        }
        match &self.last {
            LastOn::Inverse(inverse, _) => add(visits, inverse.cost_of(k)),
            LastOn::Matrix(matrix) => add(visits, matrix.cost(k, LAST_STEPS as u64, false)),
        }
        total
    }

    fn storage(&self) -> u64 {
        self.built(lock(&self.space).columns).map(|(_, bytes)| bytes).sum()
    }

    fn levels(&self) -> Option<Arc<Levels>> {
        Some(Arc::clone(&self.described))
    }
}
