//! Sweeps that exercise every part of the language, beyond those of the solvers.

use solver::device::{Coefficient, Dot, Op, Operand, Slot, Sweep, Term, Test, Track, Update};
use solver::stop::StopCode;

const W0: Operand = Operand::Write(0);
const W1: Operand = Operand::Write(1);
const R0: Operand = Operand::Read(0);
const R1: Operand = Operand::Read(1);

/// Three terms without the target, a constant other than 1, and a dot of written with read.
pub const THREE_TERMS: Sweep<'static> = Sweep {
    name: "three_terms",
    writes: 2,
    reads: 2,
    updates: &[
        Update {
            target: 0,
            terms: &[
                Term { by: Coefficient::Constant(-2.5), v: R0, times: None },
                Term::slot(Slot(0), R1),
                Term::minus(Slot(1), W1),
            ],
        },
        Update { target: 1, terms: &[Term::slot(Slot(0), W1), Term::one(W0), Term::one(R0)] },
    ],
    dots: &[Dot { a: W0, b: R1, out: Slot(2) }, Dot { a: W1, b: W0, out: Slot(3) }],
    then: &[Op::Divide(Slot(4), Slot(2), Slot(3)), Op::Copy(Slot(5), Slot(4)), Op::Count(Slot(5))],
};

/// An element-wise product added to the scaled target.
pub const PRODUCT: Sweep<'static> = Sweep {
    name: "product",
    writes: 1,
    reads: 2,
    updates: &[Update {
        target: 0,
        terms: &[
            Term { by: Coefficient::Slot(Slot(0)), v: R0, times: Some(R1) },
            Term { by: Coefficient::Constant(0.5), v: W0, times: None },
        ],
    }],
    dots: &[Dot { a: R0, b: W0, out: Slot(2) }],
    then: &[],
};

/// A copy that must not read the old target, NaN included.
pub const OVERWRITE: Sweep<'static> = Sweep {
    name: "overwrite",
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::slot(Slot(0), R0)] }],
    dots: &[],
    then: &[],
};

/// Every test of the scalar program.
pub const STOPS: Sweep<'static> = Sweep {
    name: "stops",
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot { a: R0, b: R0, out: Slot(2) }],
    then: &[
        Op::StopIf(Test::NotFinite(Slot(2)), StopCode::NotFinite),
        Op::StopIf(Test::NotPositive(Slot(2)), StopCode::IndefiniteMatrix),
        Op::Count(Slot(2)),
        Op::StopIf(Test::AtMost(Slot(2), Slot(0)), StopCode::Converged),
        Op::Copy(Slot(3), Slot(2)),
    ],
};

/// A program without vectors.
pub const PROGRAM_ALONE: Sweep<'static> = Sweep {
    name: "program_alone",
    writes: 0,
    reads: 0,
    updates: &[],
    dots: &[],
    then: &[Op::Divide(Slot(4), Slot(0), Slot(1)), Op::Count(Slot(4))],
};

/// The arithmetic of the scalar program, and the tracks of the ring before and after an iteration is counted.
pub const ARITHMETIC: Sweep<'static> = Sweep {
    name: "arithmetic",
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot { a: R0, b: R0, out: Slot(2) }],
    then: &[
        Op::Add(Slot(3), Slot(0), Slot(2)),
        Op::Subtract(Slot(4), Slot(0), Slot(1)),
        Op::Multiply(Slot(5), Slot(4), Slot(3)),
        Op::Note(Track(1), Slot(4)),
        Op::Root(Slot(6), Slot(3)),
        Op::Count(Slot(6)),
        Op::Note(Track(2), Slot(5)),
        Op::StopIf(Test::Negative(Slot(3)), StopCode::NotFinite),
        Op::StopIf(Test::Negative(Slot(4)), StopCode::IndefinitePreconditioner),
        Op::Add(Slot(5), Slot(5), Slot(5)),
        Op::Count(Slot(5)),
    ],
};

/// All of them.
pub const ALL: &[Sweep<'static>] = &[THREE_TERMS, PRODUCT, OVERWRITE, STOPS, PROGRAM_ALONE, ARITHMETIC];
