//! Sweeps that exercise every part of the language, beyond those of the solvers.

use crate::device::{Dot, Op, Operand, Slot, Sweep, Term, Test, Track, Update};
use crate::stop::StopCode;

const W0: Operand = Operand::Write(0);
const W1: Operand = Operand::Write(1);
const R0: Operand = Operand::Read(0);
const R1: Operand = Operand::Read(1);

/// Three terms without the target, a constant other than 1, and a dot of written with read.
pub(crate) const THREE_TERMS: Sweep<'static> = Sweep {
    name: "three_terms",
    numbers: &[-2.5],
    writes: 2,
    reads: 2,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::number(0, R0), Term::slot(Slot(0), R1), Term::minus(Slot(1), W1)],
        },
        Update { target: 1, terms: &[Term::slot(Slot(0), W1), Term::one(W0), Term::one(R0)] },
    ],
    dots: &[Dot::product(W0, R1, Slot(2)), Dot::product(W1, W0, Slot(3))],
    then: &[Op::Divide(Slot(4), Slot(2), Slot(3)), Op::Copy(Slot(5), Slot(4)), Op::Count(Slot(5))],
};

/// An element-wise product added to the scaled target.
pub(crate) const PRODUCT: Sweep<'static> = Sweep {
    name: "product",
    numbers: &[0.5],
    writes: 1,
    reads: 2,
    updates: &[Update { target: 0, terms: &[Term::slot(Slot(0), R0).times(R1), Term::number(0, W0)] }],
    dots: &[Dot::product(R0, W0, Slot(2))],
    then: &[],
};

/// A copy that must not read the old target, NaN included.
pub(crate) const OVERWRITE: Sweep<'static> = Sweep {
    name: "overwrite",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: &[Update { target: 0, terms: &[Term::slot(Slot(0), R0)] }],
    dots: &[],
    then: &[],
};

/// Every test of the scalar program.
pub(crate) const STOPS: Sweep<'static> = Sweep {
    name: "stops",
    numbers: &[],
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot::product(R0, R0, Slot(2))],
    then: &[
        Op::StopIf(Test::NotFinite(Slot(2)), StopCode::NotFinite),
        Op::StopIf(Test::NotPositive(Slot(2)), StopCode::IndefiniteMatrix),
        Op::Count(Slot(2)),
        Op::StopIf(Test::AtMost(Slot(2), Slot(0)), StopCode::Converged),
        Op::Copy(Slot(3), Slot(2)),
    ],
};

/// A program without vectors.
pub(crate) const PROGRAM_ALONE: Sweep<'static> = Sweep {
    name: "program_alone",
    numbers: &[],
    writes: 0,
    reads: 0,
    updates: &[],
    dots: &[],
    then: &[Op::Divide(Slot(4), Slot(0), Slot(1)), Op::Count(Slot(4))],
};

/// The arithmetic of the scalar program, and the tracks of the ring before and after an iteration is counted.
pub(crate) const ARITHMETIC: Sweep<'static> = Sweep {
    name: "arithmetic",
    numbers: &[],
    writes: 0,
    reads: 1,
    updates: &[],
    dots: &[Dot::product(R0, R0, Slot(2))],
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

/// Sums of magnitudes in addition to one of products: of a vector that the sweep writes and of
/// one that it only reads.
pub(crate) const MAGNITUDES: Sweep<'static> = Sweep {
    name: "magnitudes",
    numbers: &[],
    writes: 1,
    reads: 2,
    updates: &[Update { target: 0, terms: &[Term::slot(Slot(0), R0), Term::minus(Slot(1), W0)] }],
    dots: &[Dot::magnitudes(W0, Slot(2)), Dot::product(W0, R1, Slot(3)), Dot::magnitudes(R1, Slot(4))],
    then: &[Op::Count(Slot(2))],
};

/// Ones as a term, as a factor, and in a sum over elements.
pub(crate) const ONES: Sweep<'static> = Sweep {
    name: "ones",
    numbers: &[],
    writes: 2,
    reads: 1,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::slot(Slot(0), Operand::Ones), Term::minus(Slot(1), W0), Term::one(R0)],
        },
        Update { target: 1, terms: &[Term::slot(Slot(1), R0).times(Operand::Ones)] },
    ],
    dots: &[Dot::product(Operand::Ones, W0, Slot(2)), Dot::product(W1, Operand::Ones, Slot(3))],
    then: &[Op::Count(Slot(3))],
};

/// Quotients, alone and with other terms, of the target and by it, and the sums of elements that another
/// vector marks or weights: one that the sweep writes and one that it only reads.
pub(crate) const QUOTIENTS: Sweep<'static> = Sweep {
    name: "quotients",
    numbers: &[2.0],
    writes: 2,
    reads: 2,
    updates: &[
        Update {
            target: 0,
            terms: &[Term::minus(Slot(0), R0).over(R1), Term::slot(Slot(1), W0), Term::one(R0)],
        },
        Update { target: 1, terms: &[Term::one(W0).over(R0)] },
        Update { target: 0, terms: &[Term::minus(Slot(1), W0).over(R0), Term::one(R1)] },
        Update { target: 1, terms: &[Term::number(0, R1).times(W1)] },
    ],
    dots: &[
        Dot::marked(W0, R1, Slot(2)),
        Dot::marked(R1, W1, Slot(3)),
        Dot::marked(R0, R0, Slot(4)),
        Dot::weighted_magnitudes(W1, R0, Slot(6)),
    ],
    then: &[Op::Count(Slot(2)), Op::Copy(Slot(5), Slot(3))],
};

/// All sweeps of this module.
pub(crate) const ALL: &[Sweep<'static>] =
    &[MAGNITUDES, ONES, QUOTIENTS, THREE_TERMS, PRODUCT, OVERWRITE, STOPS, PROGRAM_ALONE, ARITHMETIC];
