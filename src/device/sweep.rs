//! One fused pass over vectors, described as data: updates, then dot products, then a small
//! program on scalars.
//!
//! A [`Sweep`] is the only operation, in addition to operators, that a solver needs from a device. The CPU
//! runs it tile by tile in cache, and for a GPU one kernel is generated from it. The bytes that it moves
//! follow from the same description. So a new method adds no operation to any device.
//!
//! Order: the updates run in their order on each element, the dot products use the updated vectors, and the
//! program runs once when all dot products are complete. Scalars are stored in [`Slot`]s on the device. If a
//! column is done (see [`StopCode`]), a sweep does not change its vectors and slots.

use crate::stop::StopCode;

/// A scalar on the device, one for each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u8);

/// A track of the ring, numbered from 1 to one less than [`TRACKS`](super::TRACKS).
/// [`Op::Count`] fills track 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Track(pub u8);

/// A vector that takes part in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Number `i` of the vectors that the sweep may write.
    Write(u8),
    /// Number `i` of the vectors that the sweep only reads.
    Read(u8),
    /// A vector of ones that takes no memory: a term with it adds a scalar, a dot product with
    /// it sums a vector.
    Ones,
}

/// The coefficient of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coefficient {
    /// 1.
    One,
    /// -1.
    MinusOne,
    /// Number `i` of the sweep's [`numbers`](Sweep::numbers).
    Number(u8),
    /// A scalar on the device.
    Slot(Slot),
    /// The negative of a scalar on the device.
    MinusSlot(Slot),
}

/// How a second vector changes the first, element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factor {
    /// The first vector is multiplied by this vector.
    Times(Operand),
    /// The first vector is divided by this vector.
    Over(Operand),
}

impl Factor {
    /// Returns the second vector.
    pub(crate) const fn operand(self) -> Operand {
        match self {
            Factor::Times(w) | Factor::Over(w) => w,
        }
    }
}

/// A coefficient times a vector, or times the element-wise product or quotient of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The coefficient.
    pub by: Coefficient,
    /// The vector.
    pub v: Operand,
    /// A second vector; at most one term of a sum has one.
    pub factor: Option<Factor>,
}

impl Term {
    /// Returns 1 times a vector.
    pub const fn one(v: Operand) -> Term {
        Term { by: Coefficient::One, v, factor: None }
    }

    /// Returns -1 times a vector.
    pub(crate) const fn minus_one(v: Operand) -> Term {
        Term { by: Coefficient::MinusOne, v, factor: None }
    }

    /// Returns a vector times `numbers[i]` of the sweep.
    pub const fn number(i: u8, v: Operand) -> Term {
        Term { by: Coefficient::Number(i), v, factor: None }
    }

    /// Returns a slot times a vector.
    pub const fn slot(slot: Slot, v: Operand) -> Term {
        Term { by: Coefficient::Slot(slot), v, factor: None }
    }

    /// Returns minus a slot times a vector.
    pub(crate) const fn minus(slot: Slot, v: Operand) -> Term {
        Term { by: Coefficient::MinusSlot(slot), v, factor: None }
    }

    /// Returns the term multiplied by another vector.
    pub const fn times(self, w: Operand) -> Term {
        Term { factor: Some(Factor::Times(w)), ..self }
    }

    /// Returns the term divided by another vector.
    pub const fn over(self, w: Operand) -> Term {
        Term { factor: Some(Factor::Over(w)), ..self }
    }

    /// Returns the vectors that the term reads.
    pub fn operands(&self) -> impl Iterator<Item = Operand> {
        std::iter::once(self.v).chain(self.factor.map(Factor::operand))
    }
}

/// `Write(target) = sum of terms`. The target may occur once in the terms, and then its old value is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update<'a> {
    /// The number of the vector that is written.
    pub target: u8,
    /// One to three terms.
    pub terms: &'a [Term],
}

/// The quantity that is summed over all elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Summand {
    /// The products of the elements: `<a, b>`.
    Product(Operand, Operand),
    /// The magnitudes of the products: an l1 norm, weighted by the second vector.
    Magnitude(Operand, Operand),
    /// The elements of the first vector at which the second is negative.
    Marked(Operand, Operand),
}

impl Summand {
    /// Returns the vectors that the sum reads.
    pub(crate) fn operands(&self) -> impl Iterator<Item = Operand> {
        let operands = match *self {
            Summand::Product(a, b) | Summand::Magnitude(a, b) | Summand::Marked(a, b) => [a, b],
        };
        operands.into_iter()
    }
}

/// A sum over the elements of vectors, in double precision for vectors of any precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dot {
    /// The quantity that is summed.
    pub of: Summand,
    /// The slot that receives the sum.
    pub out: Slot,
}

impl Dot {
    /// `out = <a, b>`.
    pub const fn product(a: Operand, b: Operand, out: Slot) -> Dot {
        Dot { of: Summand::Product(a, b), out }
    }

    /// `out = ||a||_1`.
    pub(crate) const fn magnitudes(a: Operand, out: Slot) -> Dot {
        Dot::weighted_magnitudes(a, Operand::Ones, out)
    }

    /// `out` = the sum of `|a w|`.
    pub(crate) const fn weighted_magnitudes(a: Operand, w: Operand, out: Slot) -> Dot {
        Dot { of: Summand::Magnitude(a, w), out }
    }

    /// `out` = the sum of the elements of a at which `mark` is negative.
    pub const fn marked(a: Operand, mark: Operand, out: Slot) -> Dot {
        Dot { of: Summand::Marked(a, mark), out }
    }
}

/// A condition on scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// The scalar is NaN or infinite.
    NotFinite(Slot),
    /// The scalar is zero, negative or NaN.
    NotPositive(Slot),
    /// The scalar is negative or NaN.
    Negative(Slot),
    /// The first scalar is at most the second.
    AtMost(Slot, Slot),
}

/// One step of the scalar program. It does not run in a column that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// First = second.
    Copy(Slot, Slot),
    /// First = second + third.
    Add(Slot, Slot, Slot),
    /// First = second - third.
    Subtract(Slot, Slot, Slot),
    /// First = second times third.
    Multiply(Slot, Slot, Slot),
    /// First = second / third.
    Divide(Slot, Slot, Slot),
    /// First = the square root of the second.
    Root(Slot, Slot),
    /// Counts one iteration and appends the slot's value to the first track of the ring that the host reads.
    Count(Slot),
    /// Stores the slot's value on another track of the ring, at the index of the iteration
    /// that is counted next.
    Note(Track, Slot),
    /// Marks the column as done with this code if the condition holds.
    StopIf(Test, StopCode),
}

impl Op {
    /// Returns the slots that the step reads and writes.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        let slots = match *self {
            Op::Add(a, b, c) | Op::Subtract(a, b, c) | Op::Multiply(a, b, c) | Op::Divide(a, b, c) => {
                [Some(a), Some(b), Some(c)]
            }
            Op::Copy(a, b) | Op::Root(a, b) | Op::StopIf(Test::AtMost(a, b), _) => [Some(a), Some(b), None],
            Op::Count(a)
            | Op::Note(_, a)
            | Op::StopIf(Test::NotFinite(a) | Test::NotPositive(a) | Test::Negative(a), _) => {
                [Some(a), None, None]
            }
        };
        slots.into_iter().flatten()
    }
}

/// A fused pass; see the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sweep<'a> {
    /// A name for profilers and errors: letters, digits and underscores.
    pub name: &'static str,
    /// The number of vectors that the sweep writes.
    pub writes: u8,
    /// The number of vectors that the sweep only reads.
    pub reads: u8,
    /// Linear updates, in order.
    pub updates: &'a [Update<'a>],
    /// Dot products of the updated vectors.
    pub dots: &'a [Dot],
    /// The scalar program. If the sweep has vectors, the program needs dot products.
    pub then: &'a [Op],
    /// Numbers that are known when the sweep runs. They are arguments of its kernel, so other
    /// numbers need no compilation.
    pub numbers: &'a [f64],
}

/// The most vectors of one kind in a sweep.
pub(crate) const MAX_OPERANDS: usize = 8;
/// The most terms of an update.
pub(crate) const MAX_TERMS: usize = 3;
/// The most dot products in a sweep.
pub(crate) const MAX_DOTS: usize = 4;
/// The most numbers in a sweep.
pub(crate) const MAX_NUMBERS: usize = 4;

impl<'a> Sweep<'a> {
    /// Returns the same sweep with these numbers.
    pub const fn with<'b>(&self, numbers: &'b [f64]) -> Sweep<'b>
    where
        'a: 'b,
    {
        let Sweep { name, writes, reads, updates, dots, then, .. } = *self;
        Sweep { name, writes, reads, updates, dots, then, numbers }
    }

    /// Returns the number of vectors that the sweep must read from memory and the number that it writes,
    /// each vector counted once.
    pub fn vectors_moved(&self) -> (usize, usize) {
        let mut written = [false; MAX_OPERANDS];
        let mut read_w = [false; MAX_OPERANDS];
        let mut read_r = [false; MAX_OPERANDS];
        let mut mark = |operand: Operand, written: &[bool; MAX_OPERANDS]| match operand {
            Operand::Write(i) => read_w[i as usize] |= !written[i as usize],
            Operand::Read(i) => read_r[i as usize] = true,
            Operand::Ones => {}
        };
        for update in self.updates {
            update.terms.iter().flat_map(Term::operands).for_each(|operand| mark(operand, &written));
            written[update.target as usize] = true;
        }
        for dot in self.dots {
            dot.of.operands().for_each(|operand| mark(operand, &written));
        }
        let count = |flags: &[bool]| flags.iter().filter(|&&f| f).count();
        (count(&read_w) + count(&read_r), count(&written))
    }

    /// Returns the bytes that the sweep reads and writes: each vector counts once for reading and once for
    /// writing, with `n` rows, `k` columns and elements of `width` bytes.
    pub fn bytes(&self, n: usize, k: usize, width: usize) -> u64 {
        let (read, written) = self.vectors_moved();
        ((read + written) * n * k * width) as u64
    }

    /// Returns every slot that the sweep reads or writes, some more than once.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        let terms = self.updates.iter().flat_map(|update| update.terms);
        let coefficients = terms.filter_map(|term| match term.by {
            Coefficient::Slot(slot) | Coefficient::MinusSlot(slot) => Some(slot),
            Coefficient::One | Coefficient::MinusOne | Coefficient::Number(_) => None,
        });
        let sums = self.dots.iter().map(|dot| dot.out);
        coefficients.chain(sums).chain(self.then.iter().flat_map(Op::slots))
    }

    /// Panics if the description contradicts itself or names a slot that a bank of `slots` slots lacks: a bug
    /// in the solver that wrote the description, not an error in its input.
    pub fn validate(&self, slots: usize) {
        assert!(
            self.slots().all(|slot| (slot.0 as usize) < slots),
            "{}: a slot is not in the bank",
            self.name
        );
        let is_operand = |operand: Operand| match operand {
            Operand::Write(i) => i < self.writes,
            Operand::Read(i) => i < self.reads,
            Operand::Ones => true,
        };
        assert!(self.writes as usize <= MAX_OPERANDS && self.reads as usize <= MAX_OPERANDS, "{self:?}");
        assert!(self.dots.len() <= MAX_DOTS, "{}: more than {MAX_DOTS} dots", self.name);
        // The program must run after all blocks of the grid, and only a dot product waits for them.
        let vectors = self.writes + self.reads;
        assert!(
            !self.dots.is_empty() || self.then.is_empty() || vectors == 0,
            "{}: a program over vectors needs a dot product",
            self.name
        );
        let valid_track =
            |op: &Op| !matches!(op, Op::Note(t, _) if !(1..super::TRACKS).contains(&(t.0 as usize)));
        assert!(self.then.iter().all(valid_track), "{}: unknown track", self.name);
        assert!(self.numbers.len() <= MAX_NUMBERS, "{}: more than {MAX_NUMBERS} numbers", self.name);
        for update in self.updates {
            let has_number =
                |t: &Term| !matches!(t.by, Coefficient::Number(i) if i as usize >= self.numbers.len());
            assert!(update.terms.iter().all(has_number), "{}: a number is missing", self.name);
            assert!(update.target < self.writes, "{}: unknown target", self.name);
            assert!((1..=MAX_TERMS).contains(&update.terms.len()), "{}: one to three terms", self.name);
            let mut operands = update.terms.iter().flat_map(Term::operands);
            assert!(operands.all(is_operand), "{}: unknown operand", self.name);
            let products = update.terms.iter().filter(|t| t.factor.is_some()).count();
            assert!(products <= 1, "{}: at most one product in a sum", self.name);
            let own =
                update.terms.iter().flat_map(Term::operands).filter(|&o| o == Operand::Write(update.target));
            assert!(own.count() <= 1, "{}: the target occurs twice in its own sum", self.name);
        }
        assert!(self.dots.iter().all(|d| d.of.operands().all(is_operand)), "{}: unknown operand", self.name);
    }
}

/// Returns the sweep that computes the dot product `<x, y>` of two vectors that are only read,
/// and then runs a program.
pub(crate) const fn dot_sweep<'a>(dot: &'a [Dot; 1], then: &'a [Op]) -> Sweep<'a> {
    Sweep { name: "dot", writes: 0, reads: 2, updates: &[], dots: dot, then, numbers: &[] }
}
