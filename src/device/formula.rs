//! Sweeps and products written as formulas, with names that the compiler checks.
//!
//! `names!` declares the vectors and scalars of a method; `sweep!` and `product!` describe
//! computations on them:
//!
//! ```text
//! names! { vectors v { x, r, p, q } scalars s { rr, target, pq, rho, alpha, beta } }
//!
//! const CURVATURE: Product = product!({ q = A p; pq = <p, q> } then { alpha = rho / pq; });
//! const RESIDUAL: Formula = sweep!({
//!     "cg_residual": r = r - alpha * q; rr = <r, r>;
//! } then { beta = rr / rho; rho = rr; });
//! ```
//!
//! | formula | meaning |
//! |---|---|
//! | `y = x;` `y = -x;` `y = y - alpha * x + z;` | y becomes a sum of up to three terms; `alpha` is a scalar |
//! | `y = d .* x;` `y = alpha * d ./ x;` | element by element; at most one such term in a sum |
//! | `y = mu * 1;` | the scalar `mu` in every element |
//! | `y = [0] * x;` `y = [0] * 1;` | number 0 of those that are given when the sweep runs |
//! | `rr = <r, r>;` | a dot product; `norm1(y)`, `norm1(y .* w)` and `sum(x if w < 0)` are sums, too |
//! | `then { .. }` | the program on scalars that runs when all sums are complete, see `program!` |
//!
//! Updates come first, in their order on each element, then the sums, then the program. Vectors that are
//! written are numbered in the order of the updates, vectors that are only read in the order of their first
//! use. This is the order of the kernel's arguments.

mod macros;

use super::sweep::{Dot, MAX_OPERANDS, Op, Operand, Sweep};
use super::{Device, Slot};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
pub(crate) use macros::{names, product, program, sweep};

/// The name of a vector of a workspace or of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub u8);

/// The most vectors that a method can name.
pub(crate) const MAX_NAMES: usize = 16;

/// The operand of a sweep for each name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Binding {
    operands: [Option<Operand>; MAX_NAMES],
    writes: u8,
    reads: u8,
}

impl Binding {
    /// Makes the operands of a sweep that writes the targets and reads the other vectors that are used.
    pub(crate) const fn of(targets: &[Name], used: &[Name]) -> Binding {
        let mut binding = Binding { operands: [None; MAX_NAMES], writes: 0, reads: 0 };
        let mut i = 0;
        while i < targets.len() {
            let index = targets[i].0 as usize;
            if binding.operands[index].is_none() {
                binding.operands[index] = Some(Operand::Write(binding.writes));
                binding.writes += 1;
            }
            i += 1;
        }
        let mut i = 0;
        while i < used.len() {
            let index = used[i].0 as usize;
            if binding.operands[index].is_none() {
                binding.operands[index] = Some(Operand::Read(binding.reads));
                binding.reads += 1;
            }
            i += 1;
        }
        binding
    }

    /// Returns the operand of a name.
    pub(crate) const fn operand(&self, name: Name) -> Operand {
        match self.operands[name.0 as usize] {
            Some(operand) => operand,
            None => panic!("the formula does not name this vector"),
        }
    }

    /// Returns the number of a vector among those that are written.
    pub(crate) const fn target(&self, name: Name) -> u8 {
        match self.operand(name) {
            Operand::Write(i) => i,
            Operand::Read(_) | Operand::Ones => panic!("the formula does not write this vector"),
        }
    }

    /// Returns the number of vectors that are written.
    pub(crate) const fn writes(&self) -> u8 {
        self.writes
    }

    /// Returns the number of vectors that are only read.
    pub(crate) const fn reads(&self) -> u8 {
        self.reads
    }

    /// Returns whether the formula names this vector.
    pub(crate) fn has(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// Returns the operand of a name, if the formula has it.
    pub(super) fn get(&self, name: Name) -> Option<Operand> {
        self.operands[name.0 as usize]
    }
}

/// A sweep over named vectors; see the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Formula {
    /// The operand of each name.
    pub binding: Binding,
    /// The sweep over operands.
    pub sweep: Sweep<'static>,
}

impl Formula {
    /// Returns the bytes moved over vectors of `n` elements of `width` bytes in `k` columns.
    pub(crate) fn bytes(&self, n: usize, k: usize, width: usize) -> u64 {
        self.sweep.bytes(n, k, width)
    }

    /// Returns the formula's sum with another output slot.
    pub(crate) const fn sum_into(&self, slot: Slot) -> [Dot; 1] {
        [Dot { out: slot, ..self.sweep.dots[0] }]
    }

    /// Returns the sweep with `dots` as its sums and `then` as the program on scalars after them. An operator
    /// fuses such a sweep in [`apply_dot`](crate::operator::LinearOperator::apply_dot).
    pub(crate) const fn ending_in<'a>(&self, dots: &'a [Dot], then: &'a [Op]) -> Sweep<'a> {
        let Sweep { name, writes, reads, updates, numbers, .. } = self.sweep;
        Sweep { name, writes, reads, updates, dots, then, numbers }
    }

    /// Runs the sweep on vectors that are given by name. Every vector of the formula must be given once.
    pub(crate) fn run<D: Device, T: Scalar, const W: usize, const R: usize>(
        &self,
        device: &D,
        writes: [(Name, &mut D::Vector<T>); W],
        reads: [(Name, &D::Vector<T>); R],
        slots: &mut D::Slots,
        numbers: &[f64],
    ) -> Result<()> {
        self.run_as(&self.sweep.with(numbers), device, writes, reads, slots)
    }

    /// Runs another sweep over the same operands.
    pub(crate) fn run_as<D: Device, T: Scalar, const W: usize, const R: usize>(
        &self,
        sweep: &Sweep<'_>,
        device: &D,
        mut writes: [(Name, &mut D::Vector<T>); W],
        mut reads: [(Name, &D::Vector<T>); R],
        slots: &mut D::Slots,
    ) -> Result<()> {
        let index = |name: Name| match self.binding.get(name) {
            Some(Operand::Write(i) | Operand::Read(i)) => i as usize,
            Some(Operand::Ones) | None => MAX_OPERANDS,
        };
        writes.sort_unstable_by_key(|(name, _)| index(*name));
        reads.sort_unstable_by_key(|(name, _)| index(*name));
        let written = writes
            .iter()
            .enumerate()
            .all(|(i, (name, _))| self.binding.get(*name) == Some(Operand::Write(i as u8)));
        let read = reads
            .iter()
            .enumerate()
            .all(|(i, (name, _))| self.binding.get(*name) == Some(Operand::Read(i as u8)));
        if !(written && read) {
            return Err(Error::Operands { what: self.sweep.name });
        }
        device.sweep(&mut writes.map(|(_, vector)| vector), &reads.map(|(_, vector)| vector), slots, sweep)
    }
}

/// y = A x, with an optional dot product and program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// The vector that is multiplied.
    pub x: Name,
    /// The vector that receives the product.
    pub y: Name,
    /// The slot of `<x, y>` and the program after it, if there are any.
    pub then: Option<(Slot, &'static [Op])>,
}

impl Product {
    /// Returns the dot product `<x, y>` and the program on scalars after it, in the form in which kernels are
    /// compiled before a solve: x is `Read(0)` and y is `Read(1)`. Panics if the product has no dot product.
    pub(crate) const fn program(&self) -> ([Dot; 1], &'static [Op]) {
        match self.then {
            Some((slot, then)) => ([Dot::product(Operand::Read(0), Operand::Read(1), slot)], then),
            None => panic!("the product has no dot product"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::sweep::Term;
    use crate::device::{Cpu, Test, Track, Update, Workspace};
    use crate::stop::StopCode;

    names! {
        vectors v { a, b, c, d }
        scalars s { sum, other, alpha }
    }

    const W0: Operand = Operand::Write(0);
    const W1: Operand = Operand::Write(1);
    const R0: Operand = Operand::Read(0);
    const R1: Operand = Operand::Read(1);

    #[test]
    fn a_formula_expands_to_its_sweep() {
        const FOURTH: Track = Track(1);
        const FORMULA: Formula = sweep!({
            "test":
            b = alpha * c - b + d;
            a = -a + [1] * d .* c;
            a = c ./ d;
            b = alpha * 1 - alpha * a .* d;
            a = [2] * 1;
            sum = <a, b>;
            other = norm1(c);
            other = norm1(a .* d);
            alpha = sum(c if d < 0);
        } then {
            count sum;
            note FOURTH = alpha;
            stop Converged if sum <= alpha;
            stop NotFinite if not_finite(sum);
            stop Limit if not_positive(sum);
            stop Diverged if negative(sum);
            other = sqrt(sum);
            other = sum + alpha;
            other = sum - alpha;
            other = sum * alpha;
            other = sum / alpha;
            other = sum;
        });
        let (alpha, sum, other) = (s::alpha, s::sum, s::other);
        let expected = Sweep {
            name: "test",
            writes: 2,
            reads: 2,
            updates: &[
                Update { target: 0, terms: &[Term::slot(alpha, R0), Term::minus_one(W0), Term::one(R1)] },
                Update { target: 1, terms: &[Term::minus_one(W1), Term::number(1, R1).times(R0)] },
                Update { target: 1, terms: &[Term::one(R0).over(R1)] },
                Update {
                    target: 0,
                    terms: &[Term::slot(alpha, Operand::Ones), Term::minus(alpha, W1).times(R1)],
                },
                Update { target: 1, terms: &[Term::number(2, Operand::Ones)] },
            ],
            dots: &[
                Dot::product(W1, W0, sum),
                Dot::magnitudes(R0, other),
                Dot::weighted_magnitudes(W1, R1, other),
                Dot::marked(R0, R1, alpha),
            ],
            then: &[
                Op::Count(sum),
                Op::Note(FOURTH, alpha),
                Op::StopIf(Test::AtMost(sum, alpha), StopCode::Converged),
                Op::StopIf(Test::NotFinite(sum), StopCode::NotFinite),
                Op::StopIf(Test::NotPositive(sum), StopCode::Limit),
                Op::StopIf(Test::Negative(sum), StopCode::Diverged),
                Op::Root(other, sum),
                Op::Add(other, sum, alpha),
                Op::Subtract(other, sum, alpha),
                Op::Multiply(other, sum, alpha),
                Op::Divide(other, sum, alpha),
                Op::Copy(other, sum),
            ],
            numbers: &[],
        };
        assert_eq!(FORMULA.sweep, expected);
        assert_eq!(FORMULA.binding.operand(v::b), W0);
        assert_eq!(FORMULA.binding.operand(v::d), R1);
    }

    #[test]
    fn vectors_are_found_by_name_in_any_order() {
        const FORMULA: Formula = sweep!({ "test": a = a + [0] * c .* d; b = c; sum = <a, b>; });
        let cpu = Cpu::new(Some(1)).unwrap();
        let vector = |value: f64| {
            let mut vector = cpu.vector::<f64>(3, 1).unwrap();
            cpu.upload(&[value; 3], &mut vector).unwrap();
            vector
        };
        let (mut a, mut b, c, d) = (vector(1.0), vector(0.0), vector(3.0), vector(5.0));
        let mut slots = cpu.slots(s::COUNT, 1).unwrap();
        let writes = [(v::b, &mut b), (v::a, &mut a)];
        FORMULA.run(&cpu, writes, [(v::d, &d), (v::c, &c)], &mut slots, &[2.0]).unwrap();
        assert_eq!((a.data(), b.data()), (&[31.0; 3][..], &[3.0; 3][..]));
        assert_eq!(slots.state.get(s::sum, 0), 3.0 * 93.0);
        let outcome = FORMULA.run(&cpu, [(v::a, &mut a), (v::d, &mut b)], [(v::c, &c)], &mut slots, &[2.0]);
        assert!(matches!(outcome, Err(Error::Operands { what: "test" })), "{outcome:?}");
    }

    #[test]
    fn a_workspace_lends_vectors_by_name_and_lets_two_exchange_their_names() {
        const FORMULA: Formula = sweep!({ "test": a = a + b + b; });
        const MISSING: Formula = sweep!({ "test": a = a + c; });
        let cpu = Cpu::new(Some(1)).unwrap();
        let mut workspace = Workspace::<Cpu, f64>::new(&cpu, [v::a, v::b], (2, 1), s::COUNT).unwrap();
        let mut work = workspace.work();
        work.upload(v::a, &[1.0, 2.0]).unwrap();
        work.upload(v::b, &[10.0, 20.0]).unwrap();
        work.sweep(&FORMULA).unwrap();
        let mut exchanged = work.with_exchanged(&[(v::a, v::b)]);
        exchanged.sweep(&FORMULA).unwrap();
        let mut host = [0.0; 2];
        exchanged.download(v::a, &mut host).unwrap();
        assert_eq!(host, [52.0, 104.0]);
        work.download(v::a, &mut host).unwrap();
        assert_eq!(host, [21.0, 42.0]);
        assert!(matches!(work.sweep(&MISSING), Err(Error::Operands { .. })));
        assert!(matches!(work.clear(v::d), Err(Error::Operands { .. })));
    }
}
