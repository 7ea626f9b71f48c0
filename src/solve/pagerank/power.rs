//! Power iteration: x = F(x), on any device.
//!
//! The operator multiplies the links, stored by target vertex, by c, the contribution of each vertex along a
//! link. So a graph without weights needs no values, and any backend can be used. Only c is stored: with w
//! the sum of a vertex's links, and -1 if there are none (a sink), x is w c. No vertex gathers the c of a
//! sink, so its sign is free, and the sign of w marks sinks. One sweep computes the rest:
//!
//! ```text
//! y = A c
//! y = d y + mu 1 + rho v (+ d x at sinks)     the next x
//! y = y / w - c                               the step of c
//! c = c + y
//! ||w y||_1, and minus the sum of x over sinks, from which mu and rho of the next iteration follow
//! ```
//!
//! When iteration becomes stationary, the step is 0 to the last bit: the next c is rounded
//! from the next x alone.
//!
//! Memory traffic in n-vectors, in addition to the operator: y 1 read + 1 written, c 1 + 1, w 1 read: 5. v
//! adds one more for personalised ranks, and the vector that marks sinks adds one if sinks keep their rank.
//! Backends that own rows sweep each chunk as soon as they have multiplied it: y is never in memory then, and
//! these 5 with the operator's 2 become 3.
//!
//! # Extrapolation
//! The error of x is a sum of directions, each of which shrinks by a constant factor; the largest are nearly
//! the same in one step and the next. Of the last three steps u0, u1, u2, the shortest combination a u0 + b
//! u1 + (1 - a - b) u2 is computed, and x is moved to the same combination of the vectors after these steps:
//! components that the combination removes from the step are removed from the error as well, as far as two
//! directions make up all of it. The sum of x is unchanged. The new x is not trusted: the next step is
//! computed from the graph as usual and determines the estimate.
//!
//! S. Kamvar, T. Haveliwala, C. Manning and G. Golub, Extrapolation methods for accelerating
//! PageRank computations, WWW 2003; as a least-squares problem: A. Sidi, Extrapolation vs.
//! projection methods for linear systems of equations, Journal of Computational and Applied
//! Mathematics, 1988 (reduced rank extrapolation).

use super::{Dangling, Jumps, RankProblem};
use crate::backend::Operator;
use crate::device::formula::{names, program, sweep};
use crate::device::{Device, Formula, Name, Op, Slot, SlotState, Sweep, Work, Workspace};
use crate::error::Result;
use crate::parallel::{tabulate, zeros};
use crate::scalar::Scalar;
use crate::solve::fixed::Steps;
use rayon::prelude::*;
use std::cell::RefCell;

names! {
    vectors v {
        y, c, w, v,
        /// 1 at sinks.
        sinks,
        /// x of three iterations; then v0 = u0 - u2, v1 = u1 - u2 and u2.
        first, second, third,
    }
    scalars s {
        /// The l1 norm of the step, counted in every iteration, and the norm to reach.
        step, target,
        /// The x of every vertex before the first iteration, if all are equal.
        even,
        /// Minus the sum of x over sinks.
        stranded,
        damping,
        /// The amount added to every vertex, and the coefficients that derive it from `stranded`.
        mu, mu_share, mu_rest,
        /// The multiple of v that is added, and its coefficients.
        rho, rho_share, rho_rest,
        v0_v0, v0_v1, v1_v1, v0_u2, v1_u2,
        /// The factors of v1 and u2 in the extrapolation of x.
        by_v1, by_u2,
    }
}
/// Number of slots in a workspace.
pub(crate) const SLOTS: usize = s::COUNT;

/// Iterations from one extrapolation to the next.
const PERIOD: usize = 10;
/// The vectors of the extrapolation.
const KEPT: [Name; 3] = [v::first, v::second, v::third];

/// Computes mu and rho from `stranded`.
const SPREAD: &[Op] = program!(
    mu = mu_share * stranded;
    mu = mu + mu_rest;
    rho = rho_share * stranded;
    rho = rho + rho_rest;
);
/// Sets mu and rho before the stop, so that they are valid if iteration continues after it.
const AFTER_STEP: &[Op] = program!(
    stop NotFinite if not_finite(step);
    count step;
    mu = mu_share * stranded;
    mu = mu + mu_rest;
    rho = rho_share * stranded;
    rho = rho + rho_rest;
    stop Converged if step <= target;
);

/// Computes the sum over sinks, before the first iteration.
const START: Formula = sweep!({ "pagerank_start": stranded = sum(c if w < 0); } then (SPREAD));
/// The same, if x is equal at all vertices.
const START_EVEN: Formula = sweep!({
    "pagerank_start_even":
    c = even * 1;
    c = c ./ w;
    stranded = sum(c if w < 0);
} then (SPREAD));
/// The step if every vertex gets the same amount.
const EVEN: Formula = sweep!({
    "pagerank_even":
    y = damping * y + mu * 1;
    y = y ./ w - c;
    c = c + y;
    step = norm1(y .* w);
    stranded = sum(c if w < 0);
} then (AFTER_STEP));
/// The step if v determines the amounts.
const PERSONAL: Formula = sweep!({
    "pagerank_personal":
    y = damping * y + mu * 1 + rho * v;
    y = y ./ w - c;
    c = c + y;
    step = norm1(y .* w);
    stranded = sum(c if w < 0);
} then (AFTER_STEP));
/// The step if sinks keep d of their x, which is -c.
const SELF_LOOP: Formula = sweep!({
    "pagerank_self_loop":
    y = damping * y + rho * v - damping * c .* sinks;
    y = y ./ w - c;
    c = c + y;
    step = norm1(y .* w);
    stranded = sum(c if w < 0);
} then (AFTER_STEP));

/// Stores x.
const KEEP: Formula = sweep!({ "pagerank_keep": first = c .* w; });
/// Replaces the three stored vectors by v0, v1 and u2.
const DIFFERENCES: Formula = sweep!({
    "pagerank_differences":
    first = -first + second;
    second = -second + third;
    third = -third + c .* w;
    first = first - third;
    second = second - third;
    v0_v0 = <first, first>;
    v0_v1 = <first, second>;
    v1_v1 = <second, second>;
    v0_u2 = <first, third>;
});
const LAST_PRODUCT: Formula = sweep!({ "pagerank_last_product": v1_u2 = <second, third>; });
/// Extrapolates x, with the displacement in the vector of v0, and computes the sum over sinks.
const AHEAD: Formula = sweep!({
    "pagerank_ahead":
    first = by_v1 * second + by_u2 * third;
    c = c + first ./ w;
    stranded = sum(c if w < 0);
} then (SPREAD));

/// The sweeps that follow a product.
#[cfg(test)]
pub(crate) const AFTER_PRODUCT: &[Sweep<'static>] = &[EVEN.sweep, PERSONAL.sweep, SELF_LOOP.sweep];
/// The sweep before the first iteration if the start is the same at all vertices.
pub(crate) const USUAL_START: Sweep<'static> = START_EVEN.sweep;
/// The sweeps of this method, so that they can be compiled ahead.
#[cfg(test)]
pub(crate) const SWEEPS: &[Sweep<'static>] = &[
    START.sweep,
    START_EVEN.sweep,
    EVEN.sweep,
    PERSONAL.sweep,
    SELF_LOOP.sweep,
    KEEP.sweep,
    DIFFERENCES.sweep,
    LAST_PRODUCT.sweep,
    AHEAD.sweep,
];

/// The links of a graph, and the sweep after each product with them.
pub(super) struct Power<D: Device, T: Scalar> {
    links: Operator<D, T>,
    step: &'static Formula,
    /// A buffer for the scalars, if x is extrapolated.
    extrapolates: Option<RefCell<SlotState>>,
}

/// Returns the vectors of a workspace.
fn names(step: &'static Formula, extrapolate: bool) -> impl Iterator<Item = Name> {
    let used = [v::y, v::c, v::w, v::v, v::sinks].into_iter().filter(|name| step.binding.has(*name));
    used.chain(KEPT.into_iter().filter(move |_| extrapolate))
}

/// Returns the number of vectors in a workspace.
pub(crate) fn vectors(dangling: Dangling, personal: bool, extrapolate: bool) -> usize {
    names(step_by(dangling, personal), extrapolate).count()
}

impl<D: Device, T: Scalar> Power<D, T> {
    /// Creates a power iteration with an operator that multiplies the links.
    pub(crate) fn new(links: Operator<D, T>, problem: &RankProblem<'_>, extrapolate: bool) -> Power<D, T> {
        let extrapolates = extrapolate.then(|| RefCell::new(SlotState::new(SLOTS, 1)));
        Power { links, step: step_of(problem), extrapolates }
    }

    /// Returns the bytes that an iteration of `k` columns moves. With several columns the
    /// sweep follows the product.
    pub(crate) fn bytes(&self, k: usize) -> u64 {
        match k {
            1 => self.links.bytes_with(&self.step.sweep),
            _ => {
                let n = self.links.shape().0;
                self.links.cost_of(k).bytes + self.step.sweep.bytes(n, k, size_of::<T>())
            }
        }
    }

    /// Allocates the workspace, and the host's copy of its scalars; iteration begins at the
    /// start of the problem.
    pub(crate) fn workspace(&self, problem: &RankProblem<'_>) -> Result<(Workspace<D, T>, SlotState)> {
        let n = problem.links.rows();
        // An earlier solve may have had several columns.
        self.links.prepare(1)?;
        let names = names(self.step, self.extrapolates.is_some());
        let mut workspace = Workspace::new(self.links.device(), names, (n, 1), SLOTS)?;
        let mut work = workspace.work();
        let w = |i: usize| signed(problem.links.out()[i]);
        let even = problem.even_start();
        let values: [(Name, &(dyn Fn(usize) -> f64 + Sync)); 4] = [
            (v::w, &w),
            (v::v, &|i| problem.teleport(i)),
            (v::sinks, &|i| f64::from(u8::from(w(i) < 0.0))),
            (v::c, &|i| problem.start(i) / w(i)),
        ];
        for (name, value) in values {
            if work.has(name) && !(name == v::c && even.is_some()) {
                let host: Vec<T> = tabulate(n, |i| T::from_f64(value(i)))?;
                work.upload(name, &host)?;
            }
        }
        let mut state = SlotState::new(SLOTS, 1);
        shares(problem).into_iter().for_each(|(slot, value)| state.set(slot, 0, value));
        even.into_iter().for_each(|x| state.set(s::even, 0, x));
        work.write(&state)?;
        work.sweep(if even.is_some() { &START_EVEN } else { &START })?;
        work.read(&mut state)?;
        Ok((workspace, state))
    }

    /// Allocates the workspace for `k` distributions of the jumps, each with the vertices of the links, and
    /// the host's copy of its scalars; the iteration of a column begins at its distribution.
    pub(crate) fn workspace_each(
        &self,
        problem: &RankProblem<'_>,
        k: usize,
        teleport: &dyn Fn(usize) -> Result<Jumps>,
    ) -> Result<(Workspace<D, T>, SlotState)> {
        let n = problem.links.rows();
        self.links.prepare(k)?;
        let wide = [v::y, v::c, v::v].into_iter().filter(|name| self.step.binding.has(*name));
        let mut workspace = Workspace::new(self.links.device(), wide, (n, k), SLOTS)?;
        let w = |i: usize| signed(problem.links.out()[i]);
        let narrow: [(Name, &(dyn Fn(usize) -> f64 + Sync)); 2] =
            [(v::w, &w), (v::sinks, &|i| f64::from(u8::from(w(i) < 0.0)))];
        for (name, value) in narrow.into_iter().filter(|(name, _)| self.step.binding.has(*name)) {
            workspace.add_narrow(name)?;
            let host: Vec<T> = tabulate(n, |i| T::from_f64(value(i)))?;
            workspace.work().upload(name, &host)?;
        }
        let mut host: Vec<T> = zeros(n * k)?;
        for column in 0..k {
            teleport(column)?.for_each(|i, v| host[i * k + column] = T::from_f64(v));
        }
        let mut work = workspace.work();
        work.upload(v::v, &host)?;
        // The division is in double precision, also for vectors in single precision, as that of a
        // personalised start of one column.
        for column in 0..k {
            teleport(column)?.for_each(|i, v| host[i * k + column] = T::from_f64(v / w(i)));
        }
        work.upload(v::c, &host)?;
        drop(host);
        let mut state = SlotState::new(SLOTS, k);
        for column in 0..k {
            shares(problem).into_iter().for_each(|(slot, value)| state.set(slot, column, value));
        }
        work.write(&state)?;
        work.sweep(&START)?;
        work.read(&mut state)?;
        Ok((workspace, state))
    }

    /// Performs one iteration.
    pub(crate) fn step(&self, work: &mut Work<'_, D, T>) -> Result<()> {
        // y = A c; the next x; its step; c
        work.product_then(&self.links, self.step)
    }

    /// Moves x to the shortest combination of the last three steps. Returns whether it has moved x.
    fn extrapolate(&self, work: &mut Work<'_, D, T>, state: &mut SlotState) -> Result<bool> {
        work.sweep(&DIFFERENCES)?;
        work.sweep(&LAST_PRODUCT)?;
        work.read(state)?;
        let value = |slot| state.get(slot, 0);
        let squares = [value(s::v0_v0), value(s::v0_v1), value(s::v1_v1)];
        let combination = shortest(squares, [value(s::v0_u2), value(s::v1_u2)]);
        let Some((a, b)) = combination else { return Ok(false) };
        // In terms of x, u2 and v1, the vectors after the three steps are x - 2 u2 - v1, x - u2 and x.
        state.set(s::by_v1, 0, -a);
        state.set(s::by_u2, 0, -(2.0 * a + b));
        work.write(state)?;
        work.sweep(&AHEAD)?;
        Ok(true)
    }
}

/// Computes a and b that make a v0 + b v1 + u2 shortest, from the products of v0 and v1 with each other and
/// with u2; a is 0 if the two are parallel. `None` if the result is not finite.
fn shortest([aa, ab, bb]: [f64; 3], [a_u, b_u]: [f64; 2]) -> Option<(f64, f64)> {
    let determinant = aa * bb - ab * ab;
    let (a, b) = if determinant > 1e-10 * aa * bb {
        ((ab * b_u - bb * a_u) / determinant, (ab * a_u - aa * b_u) / determinant)
    } else {
        (0.0, -b_u / bb)
    };
    (a.is_finite() && b.is_finite()).then_some((a, b))
}

impl<D: Device, T: Scalar> Steps<D, T> for Power<D, T> {
    const ANSWER: Name = v::c;

    fn between(&self, work: &mut Work<'_, D, T>, iterations: usize) -> Result<bool> {
        let Some(state) = &self.extrapolates else { return Ok(false) };
        if iterations > 0 && iterations.is_multiple_of(PERIOD) {
            return self.extrapolate(work, &mut state.borrow_mut());
        }
        if let Some(index) = (iterations % PERIOD + KEPT.len()).checked_sub(PERIOD) {
            work.with_exchanged(&[(v::first, KEPT[index])]).sweep(&KEEP)?;
        }
        Ok(false)
    }

    fn until_next_work(&self, iterations: usize) -> usize {
        match self.extrapolates {
            None => usize::MAX,
            Some(_) => (PERIOD - KEPT.len()).saturating_sub(iterations % PERIOD).max(1),
        }
    }
}

/// Returns w of a vertex whose links have the sum of weights `out`.
fn signed(out: f64) -> f64 {
    if out > 0.0 { out } else { -1.0 }
}

/// Computes x from c, as copied from the device.
pub(super) fn ranks(problem: &RankProblem<'_>, mut c: Vec<f64>) -> Vec<f64> {
    let out = problem.links.out();
    c.par_iter_mut().zip(out).with_min_len(1 << 14).for_each(|(c, &out)| *c *= signed(out));
    c
}

fn step_of(problem: &RankProblem<'_>) -> &'static Formula {
    step_by(problem.dangling, problem.teleport.is_some())
}

fn step_by(dangling: Dangling, personal: bool) -> &'static Formula {
    match (dangling, personal) {
        (Dangling::SelfLoop, _) => &SELF_LOOP,
        (_, true) => &PERSONAL,
        (_, false) => &EVEN,
    }
}

/// Returns the coefficients of the spread by policy.
fn shares(problem: &RankProblem<'_>) -> [(Slot, f64); 5] {
    let (n, d) = (problem.links.vertices() as f64, problem.damping);
    let spread = matches!(problem.dangling, Dangling::Uniform | Dangling::Personalised);
    // Multiplies `stranded`, which is minus the sum over sinks.
    let share = if spread { -d } else { 0.0 };
    let (mu, rho) = if *step_of(problem) == EVEN {
        ((share / n, (1.0 - d) / n), (0.0, 0.0))
    } else if problem.dangling == Dangling::Uniform {
        ((share / n, 0.0), (0.0, 1.0 - d))
    } else {
        ((0.0, 0.0), (share, 1.0 - d))
    };
    [(s::damping, d), (s::mu_share, mu.0), (s::mu_rest, mu.1), (s::rho_share, rho.0), (s::rho_rest, rho.1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_combination_is_found_and_none_for_vectors_that_are_zero_or_nan() {
        // v0 = (1, 1), v1 = (0, 2), u2 = (3, 5): a = -3 leaves (0, 2), which b = -1 cancels.
        assert_eq!(shortest([2.0, 2.0, 4.0], [8.0, 10.0]), Some((-3.0, -1.0)));
        // Parallel vectors: v0 = v1 = (2, 0), u2 = (3, 1).
        assert_eq!(shortest([4.0, 4.0, 4.0], [6.0, 6.0]), Some((0.0, -1.5)));
        assert_eq!(shortest([0.0; 3], [0.0; 2]), None);
        assert_eq!(shortest([f64::NAN; 3], [1.0; 2]), None);
    }
}
