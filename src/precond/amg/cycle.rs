//! The cycle over the levels, on a device.
//!
//! On each level, with D the diagonal of its matrix A, b its right-hand side and s a polynomial smoother:
//!
//! ```text
//! x = s b                       the first steps, from x = 0
//! b' = P' (b - A x)             the right-hand side of the next level
//! x = x + P x'                  x' solves A' x' = b' by the same cycle
//! x = x + s (b - A x)           the last steps
//! ```
//!
//! The smoother s b of degree 2 is e0 d + e1 D^-1 (b - A d) with d = c D^-1 b: an optimised Chebyshev
//! polynomial of the fourth kind for the eigenvalues up to `largest`, in one step that follows a product. The
//! smoothers before and after are the same, so the cycle is symmetric.
//!
//! # Cost
//! On each level 2 products for every degree of the smoother, one with P and one with P'. Vectors are counted
//! with the sweeps below.
//!
//! # Reference
//! J. Lottes, Optimal polynomial smoothers for multigrid V-cycles, Numer. Linear Algebra Appl. 30, 2023.

use super::hierarchy::{Hierarchy, Last, Level};
use crate::backend::{Choice, Operator, Pick};
use crate::device::formula::{names, sweep};
use crate::device::{Device, Formula, Sweep};
use crate::error::Result;
use crate::format::Csr;
use crate::observe::report::Levels;
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

names! {
    /// `inverse` is D^-1.
    vectors v { y, x, d, b, inverse }
    scalars s { none }
}

/// x = c D^-1 b.
const START: Formula = sweep!({ "amg_start": x = [0] * inverse .* b; });
/// After y = A x: y = b - y, x = e0 x + e1 D^-1 y.
const STEP: Formula = sweep!({ "amg_step": y = b - y; x = [0] * x + [1] * inverse .* y; });
/// y = b - y.
const RESIDUAL: Formula = sweep!({ "amg_residual": y = b - y; });
/// y = b - y, d = c D^-1 y.
const AGAIN: Formula = sweep!({ "amg_again": y = b - y; d = [0] * inverse .* y; });
/// x = x + d.
const ADD: Formula = sweep!({ "amg_add": x = x + d; });
/// b = b - y, d = x.
const KEEP: Formula = sweep!({ "amg_keep": b = b - y; d = x; });

/// All sweeps; the values of their numbers do not affect compilation.
pub(super) const SWEEPS: &[Sweep<'static>] = &[
    START.sweep.with(&[1.0]),
    STEP.sweep.with(&[1.0; 2]),
    RESIDUAL.sweep,
    AGAIN.sweep.with(&[1.0]),
    ADD.sweep,
    KEEP.sweep,
];

/// The smoothing steps on a last level that is not inverted.
const LAST_STEPS: usize = 4;

/// The degree of the smoother, and the shape of the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub degree: u64,
    /// Whether the levels between the first and the last are visited twice.
    pub twice: bool,
}

/// The smoother of a level: c, and e0 and e1 of degree 2.
#[derive(Clone, Copy)]
struct Smoother {
    c: f64,
    step: Option<[f64; 2]>,
}

impl Smoother {
    fn of(degree: u64, largest: f64) -> Smoother {
        let c = 4.0 / 3.0 / largest;
        if degree == 1 {
            return Smoother { c: 1.125 * c, step: None };
        }
        let (first, second) = (1.023_872_875_703_13, 1.264_089_053_710_85);
        Smoother { c, step: Some([first + second / 5.0, second * 12.0 / 5.0 / largest]) }
    }
}

/// The matrix of a level on the device, with its smoother.
struct Smoothed<D: Device, S: Scalar> {
    n: usize,
    a: Operator<D, S>,
    backend: String,
    inverse: D::Vector<S>,
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
    x: D::Vector<S>,
    y: D::Vector<S>,
    q: D::Vector<S>,
    d: D::Vector<S>,
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
    space: Mutex<Space<D, S>>,
    outside: PhantomData<fn(T)>,
}

/// Builds operators and vectors on a device.
pub(super) struct Builder<'a, D> {
    pub device: &'a D,
    pub reserve: u64,
    pub columns: usize,
}

impl<D: Device> Builder<'_, D> {
    /// Builds the operator of a matrix; returns it with the name of its backend.
    fn operator<S: Scalar>(&self, matrix: &Arc<Csr>) -> Result<(Operator<D, S>, String)>
    where
        D: Pick<S>,
    {
        let matrix = matrix.narrowed(size_of::<S>() == size_of::<f32>());
        let auto = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, "auto")?;
        let size = self.device.gpu_size().without_shared_launches();
        let choice = auto.settle_columns(&matrix, size_of::<S>(), &size, self.columns)?;
        log::debug!("amg: {} x {} by {}", matrix.rows(), matrix.cols(), choice.label());
        let operator = choice.build_for(self.device, &matrix, self.reserve, self.columns)?;
        Ok((operator, choice.label()))
    }

    fn vector<S: Scalar>(&self, host: &[f64]) -> Result<D::Vector<S>> {
        let host: Vec<S> = host.iter().map(|&value| S::from_f64(value)).collect();
        let mut vector = self.device.vector(host.len(), 1)?;
        self.device.upload(&host, &mut vector)?;
        Ok(vector)
    }

    fn smoothed<S: Scalar>(
        &self,
        matrix: &Arc<Csr>,
        inverse: &[f64],
        smoother: Smoother,
    ) -> Result<Smoothed<D, S>>
    where
        D: Pick<S>,
    {
        let (a, backend) = self.operator(matrix)?;
        Ok(Smoothed { n: matrix.rows(), a, backend, inverse: self.vector(inverse)?, smoother })
    }

    fn level<S: Scalar>(&self, level: &Level, degree: u64) -> Result<LevelOn<D, S>>
    where
        D: Pick<S>,
    {
        let smoother = Smoother::of(degree, level.largest);
        Ok(LevelOn {
            matrix: self.smoothed(&level.matrix, &level.inverse, smoother)?,
            prolongator: self.operator(&level.prolongator)?.0,
            restriction: self.operator(&level.restriction)?.0,
        })
    }

    /// Builds the cycle of a hierarchy, whose matrices are scaled, and completes its description.
    pub(crate) fn cycle<T: Scalar, S: Scalar>(
        &self,
        hierarchy: &Hierarchy,
        mut described: Levels,
        shape: Shape,
        scale: f64,
    ) -> Result<Cycle<D, T, S>>
    where
        D: Pick<S>,
    {
        let levels = hierarchy.levels.iter().map(|level| self.level(level, shape.degree));
        let levels: Vec<LevelOn<D, S>> = levels.collect::<Result<_>>()?;
        let (last, rows_of_last) = match &hierarchy.last {
            Last::Inverse(inverse) => {
                let (operator, backend) = self.operator(inverse)?;
                (LastOn::Inverse(operator, backend), inverse.rows())
            }
            Last::Matrix(matrix, inverse, largest) => {
                let smoother = Smoother::of(2, *largest);
                (LastOn::Matrix(self.smoothed(matrix, inverse, smoother)?), matrix.rows())
            }
        };
        let rows: Vec<usize> = levels.iter().map(|level| level.matrix.n).chain([rows_of_last]).collect();
        let space = Mutex::new(Space::new(self.device, &rows, shape, self.columns)?);
        let (nothing, outside) = (Arc::default(), PhantomData);
        let mut cycle =
            Cycle { levels, last, rows_of_last, described: nothing, shape, scale, space, outside };
        for (level, (backend, bytes)) in described.levels.iter_mut().zip(cycle.built(self.columns)) {
            (level.backend, level.bytes) = (backend.to_owned(), bytes);
        }
        cycle.described = Arc::new(described);
        Ok(cycle)
    }
}

impl<D: Device, S: Scalar> Space<D, S> {
    fn new(device: &D, rows: &[usize], shape: Shape, k: usize) -> Result<Space<D, S>> {
        let of = |(at, &n): (usize, &usize)| {
            let vector = || device.vector(n, k);
            let between = at > 0 && at + 1 < rows.len();
            let kept = (shape.twice && between).then(vector).transpose()?;
            Ok(Vectors { b: vector()?, x: vector()?, y: vector()?, q: vector()?, d: vector()?, kept })
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
        let vectors = move |n: usize| (n * (1 + 5 * k) * size_of::<S>()) as u64;
        let levels = self.levels.iter().map(move |LevelOn { matrix, prolongator, restriction }| {
            let operators = [&matrix.a, prolongator, restriction].map(Operator::storage);
            (matrix.backend.as_str(), operators.iter().sum::<u64>() + vectors(matrix.n))
        });
        let (last, backend) = match &self.last {
            LastOn::Inverse(a, backend) | LastOn::Matrix(Smoothed { a, backend, .. }) => (a, backend),
        };
        let last = (backend.as_str(), last.storage() + vectors(self.rows_of_last));
        levels.chain([last])
    }

    /// Solves approximately on a level and all later ones: from `b` of its vectors to `x`.
    fn solve(&self, device: &D, at: usize, spaces: &mut [Vectors<D, S>], slots: &mut D::Slots) -> Result<()> {
        let Some((own, later)) = spaces.split_first_mut() else { return Ok(()) };
        let Some(LevelOn { matrix, prolongator, restriction }) = self.levels.get(at) else {
            return match &self.last {
                LastOn::Inverse(inverse, _) => inverse.apply(1.0, &own.b, 0.0, &mut own.x),
                LastOn::Matrix(matrix) => {
                    matrix.first_steps(device, own, slots)?;
                    (1..LAST_STEPS).try_for_each(|_| matrix.further_steps(device, own, slots))
                }
            };
        };
        matrix.first_steps(device, own, slots)?;
        // y = b - A x
        matrix.a.apply(1.0, &own.x, 0.0, &mut own.y)?;
        RESIDUAL.run(device, [(v::y, &mut own.y)], [(v::b, &own.b)], slots, &[])?;
        restriction.apply(1.0, &own.y, 0.0, &mut later[0].b)?;
        self.solve(device, at + 1, later, slots)?;
        if later[0].kept.is_some() {
            self.solve_again(device, at + 1, later, slots)?;
        }
        prolongator.apply(1.0, &later[0].x, 1.0, &mut own.x)?;
        matrix.further_steps(device, own, slots)
    }

    /// Adds the solution for the residual to `x`.
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
            let own = &mut spaces[0];
            level.matrix.a.apply(1.0, &own.x, 0.0, &mut own.y)?;
            let writes = [(v::b, &mut own.b), (v::d, &mut kept)];
            KEEP.run(device, writes, [(v::y, &own.y), (v::x, &own.x)], slots, &[])?;
            self.solve(device, at, spaces, slots)?;
            ADD.run(device, [(v::x, &mut spaces[0].x)], [(v::d, &kept)], slots, &[])
        })();
        spaces[0].kept = Some(kept);
        outcome
    }
}

impl<D: Device, S: Scalar> Smoothed<D, S> {
    /// x = s b; changes y.
    fn first_steps(&self, device: &D, own: &mut Vectors<D, S>, slots: &mut D::Slots) -> Result<()> {
        let Vectors { b, x, y, .. } = own;
        let reads = [(v::inverse, &self.inverse), (v::b, &*b)];
        START.run(device, [(v::x, &mut *x)], reads, slots, &[self.smoother.c])?;
        match &self.smoother.step {
            None => Ok(()),
            Some(step) => self.a.apply_sweep([y, x], &[b, &self.inverse], slots, &STEP.sweep.with(step)),
        }
    }

    /// x = x + s (b - A x); changes y, q and d.
    fn further_steps(&self, device: &D, own: &mut Vectors<D, S>, slots: &mut D::Slots) -> Result<()> {
        let Vectors { b, x, y, q, d, .. } = own;
        // y = b - A x, d = c D^-1 y
        self.a.apply(1.0, x, 0.0, y)?;
        let reads = [(v::b, &*b), (v::inverse, &self.inverse)];
        AGAIN.run(device, [(v::y, &mut *y), (v::d, &mut *d)], reads, slots, &[self.smoother.c])?;
        if let Some(step) = &self.smoother.step {
            self.a.apply_sweep([q, &mut *d], &[&*y, &self.inverse], slots, &STEP.sweep.with(step))?;
        }
        ADD.run(device, [(v::x, x)], [(v::d, &*d)], slots, &[])
    }
}

impl<D: Device, S: Scalar> Smoothed<D, S> {
    /// Returns the cost of `first` first steps and `further` further ones for `k` columns, and of `products`
    /// products with the matrix and these sweeps in addition.
    fn cost(&self, k: usize, (first, further, products): (u64, u64, u64), sweeps: &[Formula]) -> Cost {
        let bytes = |sweep: &Formula| sweep.bytes(self.n, k, size_of::<S>());
        let (a, steps) = (self.a.cost_of(k), u64::from(self.smoother.step.is_some()) * (first + further));
        let times = steps + further + products;
        let smoothing =
            first * bytes(&START) + further * (bytes(&AGAIN) + bytes(&ADD)) + steps * bytes(&STEP);
        let others: u64 = sweeps.iter().map(bytes).sum();
        // About two operations for each element of a sweep.
        let passes = first + 2 * further + 2 * steps + sweeps.len() as u64;
        Cost {
            bytes: times * a.bytes + smoothing + others,
            flops: times * a.flops + 2 * passes * (self.n * k) as u64,
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
        device.convert(self.scale, x, 0.0, &mut levels[0].b)?;
        self.solve(device, 0, levels, slots)?;
        device.convert(alpha, &levels[0].x, beta, y)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    fn cost_of(&self, k: usize) -> Cost {
        let (width, n) = (size_of::<S>(), self.shape().0);
        let mut total =
            Cost { bytes: (2 * n * k * (size_of::<T>() + width)) as u64, flops: 2 * (n * k) as u64 };
        let mut add = |times: u64, cost: Cost| {
            (total.bytes, total.flops) = (total.bytes + times * cost.bytes, total.flops + times * cost.flops);
        };
        let mut visits = 1;
        for (at, LevelOn { matrix, prolongator, restriction }) in self.levels.iter().enumerate() {
            if self.shape.twice && at > 0 {
                // Between two visits.
                add(visits, matrix.cost(k, (0, 0, 1), &[KEEP, ADD]));
                visits *= 2;
            }
            add(visits, matrix.cost(k, (1, 1, 1), &[RESIDUAL]));
            add(visits, prolongator.cost_of(k));
            add(visits, restriction.cost_of(k));
        }
        match &self.last {
            LastOn::Inverse(inverse, _) => add(visits, inverse.cost_of(k)),
            LastOn::Matrix(matrix) => add(visits, matrix.cost(k, (1, LAST_STEPS as u64 - 1, 0), &[])),
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
