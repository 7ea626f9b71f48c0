//! Power iteration: x = F(x), on any device.
//!
//! The operator multiplies the links by the vertex that they lead to with c, what each vertex gives along a link. So a graph
//! without weights needs no values, and any backend serves. c is all that is kept: with w the sum of a vertex's links, and
//! -1 where there are none (a sink), x is w c. Nobody gathers the c of a sink, so that its sign is free: w marks sinks. One
//! sweep does the rest:
//!
//! ```text
//! y = A c
//! y = d y + mu 1 + rho v (+ d x at sinks)     the next x
//! y = y / w - c                               the step of c
//! c = c + y
//! ||w y||_1, and minus the sum of x over sinks, from which mu and rho of the next iteration follow
//! ```
//!
//! Where iteration stands still, the step is 0 to the last bit: the next c is rounded from the next x alone.
//!
//! Memory traffic in n-vectors, besides the operator: y 1 read + 1 written, c 1 + 1, w 1 read: 5; v is one more where ranks
//! are personal, and so is what marks sinks where they keep their own. Backends that own rows sweep each chunk as soon as
//! they have multiplied it: y is never in memory then, and these 5 with the operator's own 2 become 3.
//!
//! # Extrapolation
//! The error of x is a sum of directions, each of which shrinks by its own factor; the largest are much the same in one
//! step and the next. Of the last three steps u0, u1, u2 that combination a u0 + b u1 + (1 - a - b) u2 is taken which is
//! shortest, and x is moved to the same combination of the vectors that they led to: what is left out of the step is left
//! out of the error, as far as two directions make up all of it. The sum of x stays. Nothing is believed of the new x: the
//! next step is computed from the graph like any other, and what it says is what counts.
//!
//! S. Kamvar, T. Haveliwala, C. Manning and G. Golub, Extrapolation methods for accelerating PageRank computations, WWW
//! 2003; as a least-squares problem: A. Sidi, Extrapolation vs. projection methods for linear systems of equations, Journal
//! of Computational and Applied Mathematics, 1988 (reduced rank extrapolation).

use super::{Dangling, Problem};
use crate::backend::Operator;
use crate::device::sweep::dot_sweep;
use crate::device::{Device, Dot, Op, Operand, Slot, SlotState, Sweep, Term, Test, Update};
use crate::error::Result;
use crate::scalar::Scalar;
use crate::solve::steps::Steps;
use crate::stop::StopCode;

/// The l1 norm of the step, counted in every iteration.
const STEP: Slot = Slot(0);
/// The step to reach.
const TARGET: Slot = Slot(1);
/// Minus the sum of x over sinks.
const STRANDED: Slot = Slot(2);
const DAMPING: Slot = Slot(3);
/// What every vertex gets, and how it follows from what is stranded.
const MU: Slot = Slot(4);
const MU_SHARE: Slot = Slot(5);
const MU_REST: Slot = Slot(6);
/// What v is multiplied by, likewise.
const RHO: Slot = Slot(7);
const RHO_SHARE: Slot = Slot(8);
const RHO_REST: Slot = Slot(9);
/// Inner products of v0 = u0 - u2, v1 = u1 - u2 and u2.
const V0_V0: Slot = Slot(10);
const V0_V1: Slot = Slot(11);
const V1_V1: Slot = Slot(12);
const V0_U2: Slot = Slot(13);
const V1_U2: Slot = Slot(14);
/// What v1 and u2 are multiplied by where x is moved.
const BY_V1: Slot = Slot(15);
const BY_U2: Slot = Slot(16);
/// Slots that a workspace has.
pub const SLOTS: usize = 17;

/// Iterations from one extrapolation to the next.
const PERIOD: usize = 10;
/// Vectors kept for it.
const KEPT_VECTORS: usize = 3;

/// mu and rho from what is stranded.
const SPREAD: [Op; 4] = [
    Op::Multiply(MU, MU_SHARE, STRANDED),
    Op::Add(MU, MU, MU_REST),
    Op::Multiply(RHO, RHO_SHARE, STRANDED),
    Op::Add(RHO, RHO, RHO_REST),
];
const AFTER_STEP: &[Op] = &[
    Op::StopIf(Test::NotFinite(STEP), StopCode::NotFinite),
    Op::Count(STEP),
    // Before the end, so that it holds where iteration goes on after one.
    SPREAD[0],
    SPREAD[1],
    SPREAD[2],
    SPREAD[3],
    Op::StopIf(Test::AtMost(STEP, TARGET), StopCode::Converged),
];

const Y: Operand = Operand::Write(0);
const C: Operand = Operand::Write(1);
const W: Operand = Operand::Read(0);
const V: Operand = Operand::Read(1);
const SINKS: Operand = Operand::Read(2);

/// y = y / w - c, c = c + y.
const STEP_OF_C: Update<'static> = Update { target: 0, terms: &[Term::one(Y).over(W), Term::minus_one(C)] };
const MOVE: Update<'static> = Update { target: 1, terms: &[Term::one(C), Term::one(Y)] };
const SUMS: &[Dot] = &[Dot::weighted_magnitudes(Y, W, STEP), Dot::marked(C, W, STRANDED)];

/// The sum over sinks, before the first iteration.
const START: Sweep<'static> = Sweep {
    name: "pagerank_start",
    numbers: &[],
    writes: 0,
    reads: 2,
    updates: &[],
    dots: &[Dot::marked(Operand::Read(1), W, STRANDED)],
    then: &SPREAD,
};
/// Where every vertex gets the same.
const EVEN: Sweep<'static> = Sweep {
    name: "pagerank_even",
    numbers: &[],
    writes: 2,
    reads: 1,
    updates: &[
        Update { target: 0, terms: &[Term::slot(DAMPING, Y), Term::slot(MU, Operand::Ones)] },
        STEP_OF_C,
        MOVE,
    ],
    dots: SUMS,
    then: AFTER_STEP,
};
/// Where v says who gets how much.
const PERSONAL: Sweep<'static> = Sweep {
    name: "pagerank_personal",
    numbers: &[],
    writes: 2,
    reads: 2,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::slot(DAMPING, Y), Term::slot(MU, Operand::Ones), Term::slot(RHO, V)],
        },
        STEP_OF_C,
        MOVE,
    ],
    dots: SUMS,
    then: AFTER_STEP,
};
/// Where sinks keep d of their own x, which is -c.
const SELF_LOOP: Sweep<'static> = Sweep {
    name: "pagerank_self_loop",
    numbers: &[],
    writes: 2,
    reads: 3,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::slot(DAMPING, Y), Term::slot(RHO, V), Term::minus(DAMPING, C).times(SINKS)],
        },
        STEP_OF_C,
        MOVE,
    ],
    dots: SUMS,
    then: AFTER_STEP,
};

/// Keeps x: c = `Read(1)`.
const KEEP: Sweep<'static> = Sweep {
    name: "pagerank_keep",
    numbers: &[],
    writes: 1,
    reads: 2,
    updates: &[Update { target: 0, terms: &[Term::one(Operand::Read(1)).times(W)] }],
    dots: &[],
    then: &[],
};
const fn minus(v: Operand) -> Term {
    Term::minus_one(v)
}
const FIRST: Operand = Operand::Write(0);
const SECOND: Operand = Operand::Write(1);
const THIRD: Operand = Operand::Write(2);
/// v0, v1 and u2, in the place of the three vectors that were kept before x: c = `Read(1)`.
const DIFFERENCES: Sweep<'static> = Sweep {
    name: "pagerank_differences",
    numbers: &[],
    writes: 3,
    reads: 2,
    updates: &[
        Update { target: 0, terms: &[minus(FIRST), Term::one(SECOND)] },
        Update { target: 1, terms: &[minus(SECOND), Term::one(THIRD)] },
        Update { target: 2, terms: &[minus(THIRD), Term::one(Operand::Read(1)).times(W)] },
        Update { target: 0, terms: &[Term::one(FIRST), minus(THIRD)] },
        Update { target: 1, terms: &[Term::one(SECOND), minus(THIRD)] },
    ],
    dots: &[
        Dot::product(FIRST, FIRST, V0_V0),
        Dot::product(FIRST, SECOND, V0_V1),
        Dot::product(SECOND, SECOND, V1_V1),
        Dot::product(FIRST, THIRD, V0_U2),
    ],
    then: &[],
};
const LAST_DOT: Sweep<'static> = dot_sweep(&[Dot::product(Operand::Read(0), Operand::Read(1), V1_U2)], &[]);
/// Moves x, for which it takes the place of v0 to add up how far, and makes the sum over sinks of it.
const AHEAD: Sweep<'static> = Sweep {
    name: "pagerank_ahead",
    numbers: &[],
    writes: 2,
    reads: 3,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::slot(BY_V1, Operand::Read(1)), Term::slot(BY_U2, Operand::Read(2))],
        },
        Update { target: 1, terms: &[Term::one(C), Term::one(Y).over(W)] },
    ],
    dots: &[Dot::marked(C, W, STRANDED)],
    then: &SPREAD,
};

/// The sweeps that follow a product.
pub const AFTER_PRODUCT: &[Sweep<'static>] = &[EVEN, PERSONAL, SELF_LOOP];
/// Every sweep of this method, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[START, EVEN, PERSONAL, SELF_LOOP, KEEP, DIFFERENCES, LAST_DOT, AHEAD];

/// Operator, vectors and scalars of an iteration.
pub(super) struct Work<D: Device, T: Scalar> {
    links: Operator<D, T>,
    y: D::Vector<T>,
    c: D::Vector<T>,
    w: D::Vector<T>,
    /// What the sweep reads besides w: nothing, or v, or v and what is 1 at sinks.
    others: Vec<D::Vector<T>>,
    /// Only where x is extrapolated: what is kept of x, and the host's copy of the scalars.
    kept: Option<([D::Vector<T>; KEPT_VECTORS], SlotState)>,
    slots: D::Slots,
}

/// Vectors in a workspace.
pub fn vectors(dangling: Dangling, personal: bool, extrapolate: bool) -> usize {
    2 + sweep_of(dangling, personal).reads as usize + if extrapolate { KEPT_VECTORS } else { 0 }
}

impl<D: Device, T: Scalar> Work<D, T> {
    /// Bytes that an iteration moves.
    pub fn bytes(links: &Operator<D, T>, problem: &Problem<'_>) -> u64 {
        links.bytes_with(&sweep(problem))
    }

    /// The workspace, and the host's copy of its scalars; iteration begins at x.
    pub fn start(
        device: &D,
        links: Operator<D, T>,
        problem: &Problem<'_>,
        extrapolate: bool,
        x: &[f64],
    ) -> Result<(Self, SlotState)> {
        let n = x.len();
        let room = || device.vector::<T>(n, 1);
        let upload = |value: &dyn Fn(usize) -> f64| -> Result<D::Vector<T>> {
            let host: Vec<T> = (0..n).map(|i| T::from_f64(value(i))).collect();
            let mut vector = device.vector::<T>(n, 1)?;
            device.upload(&host, &mut vector)?;
            Ok(vector)
        };
        let w = |i| signed(problem.links.out()[i]);
        let others: [&dyn Fn(usize) -> f64; 2] =
            [&|i| problem.teleport(i), &|i| f64::from(u8::from(w(i) < 0.0))];
        let read = sweep(problem).reads as usize - 1;
        let mut work = Work {
            links,
            y: device.vector(n, 1)?,
            c: upload(&|i| x[i] / w(i))?,
            w: upload(&w)?,
            others: others[..read].iter().map(|value| upload(*value)).collect::<Result<_>>()?,
            kept: match extrapolate {
                true => Some(([room()?, room()?, room()?], SlotState::new(SLOTS, 1))),
                false => None,
            },
            slots: device.slots(SLOTS, 1)?,
        };
        let mut state = SlotState::new(SLOTS, 1);
        shares(problem).into_iter().for_each(|(slot, value)| state.set(slot, 0, value));
        device.write(&state, &mut work.slots)?;
        device.sweep(&mut [], &[&work.w, &work.c], &mut work.slots, &START)?;
        device.read(&work.slots, &mut state)?;
        Ok((work, state))
    }
}

impl<D: Device, T: Scalar> Work<D, T> {
    /// Moves x to the shortest combination of the last three steps; whether it has.
    fn extrapolate(&mut self, device: &D) -> Result<bool> {
        let Some(([first, second, third], state)) = &mut self.kept else { return Ok(false) };
        device.sweep(&mut [first, second, third], &[&self.w, &self.c], &mut self.slots, &DIFFERENCES)?;
        device.sweep(&mut [], &[second, third], &mut self.slots, &LAST_DOT)?;
        device.read(&self.slots, state)?;
        let value = |slot| state.get(slot, 0);
        let combination = shortest([value(V0_V0), value(V0_V1), value(V1_V1)], [value(V0_U2), value(V1_U2)]);
        let Some((a, b)) = combination else { return Ok(false) };
        // In x, u2 and v1, the vectors that the steps led to are x - 2 u2 - v1, x - u2 and x.
        state.set(BY_V1, 0, -a);
        state.set(BY_U2, 0, -(2.0 * a + b));
        device.write(state, &mut self.slots)?;
        let reads = &[&self.w, &*second, &*third];
        device.sweep(&mut [first, &mut self.c], reads, &mut self.slots, &AHEAD)?;
        Ok(true)
    }
}

/// a and b that make a v0 + b v1 + u2 shortest, from the products of v0 and v1 with each other and with u2; a is 0 where
/// the two have one direction. None where nothing is to be gained.
fn shortest([aa, ab, bb]: [f64; 3], [a_u, b_u]: [f64; 2]) -> Option<(f64, f64)> {
    let determinant = aa * bb - ab * ab;
    let (a, b) = if determinant > 1e-10 * aa * bb {
        ((ab * b_u - bb * a_u) / determinant, (ab * a_u - aa * b_u) / determinant)
    } else {
        (0.0, -b_u / bb)
    };
    (a.is_finite() && b.is_finite()).then_some((a, b))
}

impl<D: Device, T: Scalar> Steps<D, T> for Work<D, T> {
    const TARGET: Slot = TARGET;

    fn step(_: &D, w: &mut Self) -> Result<()> {
        let writes = [&mut w.y, &mut w.c];
        match &w.others[..] {
            [] => w.links.apply_sweep(writes, &[&w.w], &mut w.slots, &EVEN),
            [v] => w.links.apply_sweep(writes, &[&w.w, v], &mut w.slots, &PERSONAL),
            [v, sinks, ..] => w.links.apply_sweep(writes, &[&w.w, v, sinks], &mut w.slots, &SELF_LOOP),
        }
    }

    fn beside(&mut self, device: &D, iterations: usize) -> Result<bool> {
        let Some((kept, _)) = &mut self.kept else { return Ok(false) };
        if iterations > 0 && iterations.is_multiple_of(PERIOD) {
            return self.extrapolate(device);
        }
        if let Some(place) = (iterations % PERIOD + KEPT_VECTORS).checked_sub(PERIOD) {
            device.sweep(&mut [&mut kept[place]], &[&self.w, &self.c], &mut self.slots, &KEEP)?;
        }
        Ok(false)
    }

    fn undisturbed(&self, iterations: usize) -> usize {
        match self.kept {
            None => usize::MAX,
            Some(_) => (PERIOD - KEPT_VECTORS).saturating_sub(iterations % PERIOD).max(1),
        }
    }

    fn slots(&self) -> &D::Slots {
        &self.slots
    }

    fn slots_mut(&mut self) -> &mut D::Slots {
        &mut self.slots
    }

    fn answer(&self) -> &D::Vector<T> {
        &self.c
    }
}

/// w of a vertex with so many links, or weights of links.
fn signed(out: f64) -> f64 {
    if out > 0.0 { out } else { -1.0 }
}

/// x of what has come back from the device, c.
pub(super) fn ranks(problem: &Problem<'_>, mut c: Vec<f64>) -> Vec<f64> {
    c.iter_mut().zip(problem.links.out()).for_each(|(c, &out)| *c *= signed(out));
    c
}

fn sweep(problem: &Problem<'_>) -> Sweep<'static> {
    sweep_of(problem.dangling, problem.teleport.is_some())
}

fn sweep_of(dangling: Dangling, personal: bool) -> Sweep<'static> {
    match (dangling, personal) {
        (Dangling::SelfLoop, _) => SELF_LOOP,
        (_, true) => PERSONAL,
        (_, false) => EVEN,
    }
}

/// What is spread to whom, by policy.
fn shares(problem: &Problem<'_>) -> [(Slot, f64); 5] {
    let (n, d) = (problem.links.vertices() as f64, problem.damping);
    let spread = matches!(problem.dangling, Dangling::Uniform | Dangling::Personalised);
    // Of minus the sum over sinks.
    let share = if spread { -d } else { 0.0 };
    let (mu, rho) = if sweep(problem) == EVEN {
        ((share / n, (1.0 - d) / n), (0.0, 0.0))
    } else if problem.dangling == Dangling::Uniform {
        ((share / n, 0.0), (0.0, 1.0 - d))
    } else {
        ((0.0, 0.0), (share, 1.0 - d))
    };
    [(DAMPING, d), (MU_SHARE, mu.0), (MU_REST, mu.1), (RHO_SHARE, rho.0), (RHO_REST, rho.1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_combination_is_found_and_none_where_there_is_nothing_to_combine() {
        // v0 = (1, 1), v1 = (0, 2), u2 = (3, 5): a = -3 leaves (0, 2), which b = -1 takes away.
        assert_eq!(shortest([2.0, 2.0, 4.0], [8.0, 10.0]), Some((-3.0, -1.0)));
        // One direction: v0 = v1 = (2, 0), u2 = (3, 1).
        assert_eq!(shortest([4.0, 4.0, 4.0], [6.0, 6.0]), Some((0.0, -1.5)));
        assert_eq!(shortest([0.0; 3], [0.0; 2]), None);
        assert_eq!(shortest([f64::NAN; 3], [1.0; 2]), None);
    }
}
