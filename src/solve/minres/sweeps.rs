//! The scalars, programs and sweeps of MINRES; see the [method](super).

use crate::device::{Dot, Op, Operand, Slot, Sweep, Term, Test, Update};
use crate::operator::{DotInto, dot_into};
use crate::solve::recurrence::{CEILING, FIRST, OWN, RR, SECOND, TARGET};
use crate::stop::StopCode;

const fn own(i: u8) -> Slot {
    Slot(OWN + i)
}

/// z'q, beta_k^2 and beta_(k+1)^2.
pub(super) const ZQ: Slot = own(0);
pub(super) const SQUARE: Slot = own(1);
pub(super) const SQUARE_NEXT: Slot = own(2);
pub(super) const BETA: Slot = own(3);
pub(super) const BETA_NEXT: Slot = own(4);
pub(super) const BETA_OLD: Slot = own(5);
pub(super) const ALPHA: Slot = own(6);
/// The rotation.
pub(super) const C: Slot = own(7);
pub(super) const S: Slot = own(8);
pub(super) const DELTA_BAR: Slot = own(9);
pub(super) const GAMMA_BAR: Slot = own(10);
pub(super) const DELTA: Slot = own(11);
pub(super) const GAMMA: Slot = own(12);
pub(super) const EPSILON: Slot = own(13);
pub(super) const EPSILON_OLD: Slot = own(14);
pub(super) const PHI: Slot = own(15);
pub(super) const PHI_BAR: Slot = own(16);
/// Coefficients of the sweeps.
pub(super) const OF_Q: Slot = own(17);
pub(super) const OF_Y: Slot = own(18);
pub(super) const OF_OLD: Slot = own(19);
pub(super) const OF_V: Slot = own(20);
pub(super) const OF_W1: Slot = own(21);
pub(super) const OF_W2: Slot = own(22);
pub(super) const OF_R: Slot = own(23);
pub(super) const R_OF_Y: Slot = own(24);
/// The sum of the squares of Lanczos' coefficients, and the square of what a normal residual must be relative to it.
pub(super) const SQUARES: Slot = own(25);
pub(super) const NORMAL: Slot = own(26);
/// Iterations of this run, and how many it may do.
pub(super) const COUNT: Slot = own(27);
pub(super) const LIMIT: Slot = own(28);
pub(super) const ONE: Slot = own(29);
pub(super) const ZERO: Slot = own(30);
pub(super) const TEMP_A: Slot = own(31);
pub(super) const TEMP_B: Slot = own(32);
pub(super) const TEMP_C: Slot = own(33);
/// y_(k+1)'z_k: zero but for rounding.
const CROSS: Slot = own(34);
/// The power of two that A is multiplied by: 1 but where squares of its entries leave the range of numbers.
pub(super) const SIGMA: Slot = own(35);
/// Slots that a workspace has.
pub const SLOTS: usize = OWN as usize + 36;

pub(super) const INTO_ZQ: DotInto = dot_into(ZQ);
pub(super) const INTO_SQUARE: DotInto = dot_into(SQUARE);
pub(super) const INTO_SQUARE_NEXT: DotInto = dot_into(SQUARE_NEXT);

/// alpha, and the coefficients of the next vector of Lanczos.
pub(super) const AFTER_ZQ: &[Op] = &[
    Op::StopIf(Test::NotFinite(ZQ), StopCode::NotFinite),
    Op::Multiply(ZQ, ZQ, SIGMA),
    Op::Divide(TEMP_A, CROSS, BETA_OLD),
    Op::Divide(ALPHA, ZQ, SQUARE),
    Op::Subtract(ALPHA, ALPHA, TEMP_A),
    Op::Divide(OF_Q, SIGMA, BETA),
    Op::Divide(OF_Y, ALPHA, BETA),
    Op::Divide(OF_OLD, BETA, BETA_OLD),
];
pub(super) const CHECK_SQUARE: &[Op] = &[
    Op::StopIf(Test::NotFinite(SQUARE), StopCode::NotFinite),
    Op::StopIf(Test::NotPositive(SQUARE), StopCode::IndefinitePreconditioner),
];

/// The rotation that eliminates beta_(k+1), and what follows for w and x. The test for least squares is on the x
/// before:
/// ||A r_(k-1)|| = phi_bar_(k-1) |(gamma_bar, delta_bar')|.
const ROTATE: [Op; 37] = [
    Op::StopIf(Test::NotFinite(SQUARE_NEXT), StopCode::NotFinite),
    Op::StopIf(Test::Negative(SQUARE_NEXT), StopCode::IndefinitePreconditioner),
    Op::Root(BETA_NEXT, SQUARE_NEXT),
    // delta = c delta_bar + s alpha
    Op::Multiply(TEMP_A, C, DELTA_BAR),
    Op::Multiply(TEMP_B, S, ALPHA),
    Op::Add(DELTA, TEMP_A, TEMP_B),
    // gamma_bar = s delta_bar - c alpha
    Op::Multiply(TEMP_A, S, DELTA_BAR),
    Op::Multiply(TEMP_B, C, ALPHA),
    Op::Subtract(GAMMA_BAR, TEMP_A, TEMP_B),
    // epsilon' = s beta', delta_bar' = -c beta'
    Op::Copy(EPSILON_OLD, EPSILON),
    Op::Multiply(EPSILON, S, BETA_NEXT),
    Op::Multiply(TEMP_A, C, BETA_NEXT),
    Op::Subtract(DELTA_BAR, ZERO, TEMP_A),
    // the mean of the squares in a row, times the square of the tolerance
    Op::Multiply(TEMP_A, ALPHA, ALPHA),
    Op::Add(SQUARES, SQUARES, TEMP_A),
    Op::Add(SQUARES, SQUARES, SQUARE_NEXT),
    Op::Add(SQUARES, SQUARES, SQUARE_NEXT),
    Op::Add(COUNT, COUNT, ONE),
    Op::Divide(TEMP_A, SQUARES, COUNT),
    Op::Multiply(TEMP_C, NORMAL, TEMP_A),
    // gamma_bar^2 + delta_bar'^2
    Op::Multiply(TEMP_A, GAMMA_BAR, GAMMA_BAR),
    Op::Multiply(TEMP_B, DELTA_BAR, DELTA_BAR),
    Op::Add(TEMP_B, TEMP_A, TEMP_B),
    Op::StopIf(Test::AtMost(TEMP_B, TEMP_C), StopCode::LeastSquares),
    // gamma = |(gamma_bar, beta')|
    Op::Add(TEMP_A, TEMP_A, SQUARE_NEXT),
    Op::Root(GAMMA, TEMP_A),
    Op::Divide(C, GAMMA_BAR, GAMMA),
    Op::Divide(S, BETA_NEXT, GAMMA),
    Op::Multiply(PHI, C, PHI_BAR),
    Op::Multiply(PHI_BAR, S, PHI_BAR),
    Op::Divide(OF_V, ONE, BETA),
    Op::Divide(OF_V, OF_V, GAMMA),
    Op::Divide(OF_W1, EPSILON_OLD, GAMMA),
    Op::Divide(OF_W2, DELTA, GAMMA),
    Op::Copy(BETA_OLD, BETA),
    Op::Copy(BETA, BETA_NEXT),
    Op::Copy(SQUARE, SQUARE_NEXT),
];

/// The end of an iteration, once r'r is known.
const COUNTED: [Op; 7] = [
    Op::StopIf(Test::NotFinite(RR), StopCode::NotFinite),
    Op::Note(FIRST, ALPHA),
    Op::Note(SECOND, BETA),
    Op::Count(RR),
    Op::StopIf(Test::AtMost(RR, TARGET), StopCode::Converged),
    Op::StopIf(Test::AtMost(CEILING, RR), StopCode::Diverged),
    Op::StopIf(Test::AtMost(LIMIT, COUNT), StopCode::Limit),
];

/// One program after another; they must make `N` operations together.
const fn joined<const N: usize>(programs: &[&[Op]]) -> [Op; N] {
    let mut all = [Op::Count(RR); N];
    let (mut i, mut to) = (0, 0);
    while i < programs.len() {
        let mut j = 0;
        while j < programs[i].len() {
            all[to] = programs[i][j];
            (j, to) = (j + 1, to + 1);
        }
        i += 1;
    }
    assert!(to == N, "programs of another length");
    all
}

/// Without preconditioner: ||r|| = |phi_bar|.
const AFTER_STEP: &[Op] = &joined::<45>(&[&ROTATE, &[Op::Multiply(RR, PHI_BAR, PHI_BAR)], &COUNTED]);
/// With one: the coefficients of r = s^2 r - phi / gamma y'.
pub(super) const AFTER_SQUARE: &[Op] =
    &joined::<39>(&[&ROTATE, &[Op::Multiply(OF_R, S, S), Op::Divide(R_OF_Y, PHI, GAMMA)]]);

/// w1 = (v - epsilon w1 - delta w2) / gamma, with w1 = `Write(0)`.
const fn next_w(v: Operand, w2: Operand) -> [Term; 3] {
    [Term::slot(OF_V, v), Term::minus(OF_W1, Operand::Write(0)), Term::minus(OF_W2, w2)]
}
/// x += phi w1, with x = `Write(1)`.
const MOVE_X: Update<'static> =
    Update { target: 1, terms: &[Term::one(Operand::Write(1)), Term::slot(PHI, Operand::Write(0))] };
/// The next vector of Lanczos in the place of the one before, `target`; q = `Read(0)`, y = `Read(1)`.
const fn lanczos(target: u8) -> [Term; 3] {
    [
        Term::slot(OF_Q, Operand::Read(0)),
        Term::minus(OF_Y, Operand::Read(1)),
        Term::minus(OF_OLD, Operand::Write(target)),
    ]
}

/// The initial r'r; without preconditioner it is beta_1^2 as well.
pub(super) const NORM: Sweep<'static> = Sweep {
    name: "minres_norm",
    numbers: &[],
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot::product(Operand::Read(0), Operand::Read(0), RR)],
    then: &[Op::Copy(SQUARE, RR)],
};
/// The update of w and x left open by the iteration before, then the next vector of Lanczos: w1, x, old =
/// `Write(0..3)`, q, y, w2 = `Read(0..3)`.
pub(super) const STEP: Sweep<'static> = Sweep {
    name: "minres_step",
    numbers: &[],
    writes: 3,
    reads: 3,
    updates: &[
        Update { target: 0, terms: &next_w(Operand::Write(2), Operand::Read(2)) },
        MOVE_X,
        Update { target: 2, terms: &lanczos(2) },
    ],
    dots: &[
        Dot::product(Operand::Write(2), Operand::Write(2), SQUARE_NEXT),
        Dot::product(Operand::Write(2), Operand::Read(1), CROSS),
    ],
    then: AFTER_STEP,
};
/// The update that the last step left open: w1, x = `Write(0..2)`, old, w2 = `Read(0..2)`.
pub(super) const FINISH: Sweep<'static> = Sweep {
    name: "minres_finish",
    numbers: &[],
    writes: 2,
    reads: 2,
    updates: &[Update { target: 0, terms: &next_w(Operand::Read(0), Operand::Read(1)) }, MOVE_X],
    dots: &[],
    then: &[],
};
/// The next vector of Lanczos alone: old = `Write(0)`, q, y = `Read(0..2)`.
pub(super) const LANCZOS: Sweep<'static> = Sweep {
    name: "minres_lanczos",
    numbers: &[],
    writes: 1,
    reads: 2,
    updates: &[Update { target: 0, terms: &lanczos(0) }],
    dots: &[],
    then: &[],
};
/// w, x and r with r'r: w1, x, r = `Write(0..3)`, z, w2, y' = `Read(0..3)`.
pub(super) const UPDATE: Sweep<'static> = Sweep {
    name: "minres_update",
    numbers: &[],
    writes: 3,
    reads: 3,
    updates: &[
        Update { target: 0, terms: &next_w(Operand::Read(0), Operand::Read(1)) },
        MOVE_X,
        Update {
            target: 2,
            terms: &[Term::slot(OF_R, Operand::Write(2)), Term::minus(R_OF_Y, Operand::Read(2))],
        },
    ],
    dots: &[
        Dot::product(Operand::Write(2), Operand::Write(2), RR),
        Dot::product(Operand::Read(2), Operand::Read(0), CROSS),
    ],
    then: &COUNTED,
};

/// Every sweep of this method, for whoever compiles them ahead.
pub const SWEEPS: &[Sweep<'static>] = &[NORM, STEP, FINISH, LANCZOS, UPDATE];
/// Every program that follows the dot product of an operator, likewise.
pub const PROGRAMS: &[(DotInto, &[Op])] =
    &[(INTO_ZQ, AFTER_ZQ), (INTO_SQUARE, CHECK_SQUARE), (INTO_SQUARE_NEXT, AFTER_SQUARE)];
