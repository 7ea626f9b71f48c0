//! Sweeps computed from their definition, one element after the other, with bounds on the difference
//! from a device's results.

use super::tolerance;
use crate::device::{Coefficient, Factor, Op, Operand, RING, SlotState, Summand, Sweep, Term, Test};
use crate::scalar::Scalar;
use std::marker::PhantomData;

/// A number, and the largest difference allowed to the device's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    pub(crate) value: f64,
    pub(crate) within: f64,
}

impl Near {
    pub(crate) fn exact(value: f64) -> Near {
        Near { value, within: 0.0 }
    }

    /// Returns whether a number is near. Equal numbers always are, NaN and infinity included.
    pub(crate) fn holds(&self, got: f64) -> bool {
        (got - self.value).abs() <= self.within || got.to_bits() == self.value.to_bits() || got == self.value
    }
}

/// The vectors and slots of a sweep. `T` is the precision of the device's vectors.
#[derive(Clone)]
pub(crate) struct Host<T> {
    pub(crate) k: usize,
    pub(crate) writes: Vec<Vec<Near>>,
    pub(crate) reads: Vec<Vec<Near>>,
    ones: Vec<Near>,
    pub(crate) slots: Vec<Near>,
    pub(crate) done: Vec<u32>,
    pub(crate) counts: Vec<u32>,
    pub(crate) ring: Vec<Near>,
    pub(crate) precision: PhantomData<T>,
}

impl<T: Scalar> Host<T> {
    pub(crate) fn new(writes: &[Vec<f64>], reads: &[Vec<f64>], state: &SlotState) -> Host<T> {
        let exact = |values: &Vec<f64>| values.iter().map(|&v| Near::exact(v)).collect();
        Host {
            k: state.k,
            writes: writes.iter().map(exact).collect(),
            reads: reads.iter().map(exact).collect(),
            ones: vec![Near::exact(1.0); writes.iter().chain(reads).map(Vec::len).max().unwrap_or(0)],
            slots: exact(&state.values),
            done: state.done.clone(),
            counts: state.counts.clone(),
            ring: exact(&state.ring),
            precision: PhantomData,
        }
    }

    fn vector(&self, operand: Operand) -> &[Near] {
        match operand {
            Operand::Write(i) => &self.writes[i as usize],
            Operand::Read(i) => &self.reads[i as usize],
            Operand::Ones => &self.ones,
        }
    }

    fn term(&self, term: &Term, numbers: &[f64], at: usize) -> Near {
        let slot = |s: crate::device::Slot| self.slots[s.0 as usize * self.k + at % self.k];
        let by = match term.by {
            Coefficient::One => Near::exact(1.0),
            Coefficient::MinusOne => Near::exact(-1.0),
            Coefficient::Number(i) => Near::exact(numbers[i as usize]),
            Coefficient::Slot(s) => slot(s),
            Coefficient::MinusSlot(s) => Near { value: -slot(s).value, ..slot(s) },
        };
        let v = self.vector(term.v)[at];
        let far = |n: Near| n.value.abs() + n.within;
        let (value, far) = match term.factor {
            None => (by.value * v.value, far(by) * far(v)),
            Some(Factor::Times(w)) => {
                let w = self.vector(w)[at];
                (by.value * (v.value * w.value), far(by) * far(v) * far(w))
            }
            Some(Factor::Over(w)) => {
                let w = self.vector(w)[at];
                (by.value * (v.value / w.value), far(by) * far(v) / (w.value.abs() - w.within))
            }
        };
        let within = far - value.abs() + tolerance::term::<T>(value.abs());
        Near { value, within }
    }

    /// Runs a sweep.
    pub(crate) fn run(&mut self, sweep: &Sweep<'_>) {
        let length = self.writes.iter().chain(&self.reads).map(Vec::len).next().unwrap_or(0);
        for at in (0..length).filter(|at| self.done[at % self.k] == 0) {
            for update in sweep.updates {
                let terms: Vec<Near> = update.terms.iter().map(|t| self.term(t, sweep.numbers, at)).collect();
                let magnitude: f64 = terms.iter().map(|t| t.value.abs()).sum();
                let within = terms.iter().map(|t| t.within).sum::<f64>() + tolerance::sum::<T>(magnitude);
                let value = terms.iter().map(|t| t.value).sum();
                self.writes[update.target as usize][at] = Near { value, within };
            }
        }
        for column in (0..self.k).filter(|&c| self.done[c] == 0).collect::<Vec<_>>() {
            for dot in sweep.dots {
                let signs: Vec<Near>;
                let clear = |v: &Near| {
                    assert!(v.value.is_nan() || v.value.abs() > v.within, "{v:?} has no clear sign")
                };
                let (a, b) = match dot.of {
                    Summand::Product(a, b) => (self.vector(a), self.vector(b)),
                    Summand::Magnitude(a, w) => {
                        let signed = |(v, w): (&Near, &Near)| match v.value * w.value < 0.0 {
                            true => Near { value: -w.value, ..*w },
                            false => *w,
                        };
                        signs = self.vector(a).iter().zip(self.vector(w)).map(signed).collect();
                        (self.vector(a), &signs[..])
                    }
                    Summand::Marked(a, mark) => {
                        self.vector(mark).iter().for_each(clear);
                        let negative = |v: &Near| Near::exact(f64::from(u8::from(v.value < 0.0)));
                        signs = self.vector(mark).iter().map(negative).collect();
                        (self.vector(a), &signs[..])
                    }
                };
                let pairs = || a.iter().zip(b).skip(column).step_by(self.k);
                let value = pairs().map(|(a, b)| a.value * b.value).sum();
                let magnitude = pairs().map(|(a, b)| (a.value * b.value).abs()).sum();
                let far = |(a, b): (&Near, &Near)| {
                    a.within * b.value.abs() + b.within * a.value.abs() + a.within * b.within
                };
                let within = pairs().map(far).sum::<f64>() + tolerance::dot(length / self.k, magnitude);
                self.slots[dot.out.0 as usize * self.k + column] = Near { value, within };
            }
            self.program(sweep.then, column);
        }
    }

    fn program(&mut self, program: &[Op], column: usize) {
        let k = self.k;
        let at = |s: crate::device::Slot| s.0 as usize * k + column;
        for op in program {
            match *op {
                Op::Copy(to, from) => self.slots[at(to)] = self.slots[at(from)],
                Op::Divide(to, a, b) => {
                    let (a, b) = (self.slots[at(a)], self.slots[at(b)]);
                    let value = a.value / b.value;
                    let spread = (a.within + value.abs() * b.within) / (b.value.abs() - b.within);
                    // 0 / 0 has no spread.
                    let within = if value.is_nan() { 0.0 } else { spread + tolerance::divide(value) };
                    self.slots[at(to)] = Near { value, within };
                }
                Op::Add(to, a, b) | Op::Subtract(to, a, b) => {
                    let (a, b) = (self.slots[at(a)], self.slots[at(b)]);
                    let minus = matches!(op, Op::Subtract(..));
                    let value = if minus { a.value - b.value } else { a.value + b.value };
                    let within = a.within + b.within + tolerance::divide(value);
                    self.slots[at(to)] = Near { value, within };
                }
                Op::Multiply(to, a, b) => {
                    let (a, b) = (self.slots[at(a)], self.slots[at(b)]);
                    let value = a.value * b.value;
                    let spread = a.within * b.value.abs() + b.within * a.value.abs() + a.within * b.within;
                    self.slots[at(to)] = Near { value, within: spread + tolerance::divide(value) };
                }
                Op::Root(to, a) => {
                    let a = self.slots[at(a)];
                    let value = a.value.sqrt();
                    // The root of a number that may be negative has no bound.
                    let spread = value - (a.value - a.within).sqrt();
                    let within = if value.is_nan() { 0.0 } else { spread + tolerance::divide(value) };
                    self.slots[at(to)] = Near { value, within };
                }
                Op::Note(track, slot) => {
                    let place = track.0 as usize * RING + self.counts[column] as usize % RING;
                    self.ring[place * k + column] = self.slots[at(slot)];
                }
                Op::Count(slot) => {
                    let place = self.counts[column] as usize % RING * k + column;
                    self.ring[place] = self.slots[at(slot)];
                    self.counts[column] += 1;
                }
                Op::StopIf(test, code) => {
                    if holds(test, |s| self.slots[at(s)]) {
                        self.done[column] = code as u32;
                        return;
                    }
                }
            }
        }
    }

    /// Compares the slots, codes, counts and ring of a device.
    pub(crate) fn assert_slots(&self, got: &SlotState, what: &str) {
        assert_eq!(got.done, self.done, "{what}: done");
        assert_eq!(got.counts, self.counts, "{what}: counts");
        assert_near(&self.slots, &got.values, &format!("{what}: slots"));
        assert_near(&self.ring, &got.ring, &format!("{what}: ring"));
    }
}

/// Evaluates a condition. Panics if rounding could change the outcome: the data of the test must avoid that.
fn holds(test: Test, slot: impl Fn(crate::device::Slot) -> Near) -> bool {
    let clear = |difference: f64, within: f64| {
        assert!(
            within == 0.0 || difference.is_nan() || difference.abs() > within,
            "{test:?} is too close to call"
        );
    };
    match test {
        Test::NotFinite(s) => !slot(s).value.is_finite(),
        Test::NotPositive(s) => {
            clear(slot(s).value, slot(s).within);
            !matches!(slot(s).value, v if v > 0.0)
        }
        Test::Negative(s) => {
            clear(slot(s).value, slot(s).within);
            !matches!(slot(s).value, v if v >= 0.0)
        }
        Test::AtMost(a, b) => {
            let (a, b) = (slot(a), slot(b));
            clear(a.value - b.value, a.within + b.within);
            a.value <= b.value
        }
    }
}

pub(crate) fn assert_near(want: &[Near], got: &[f64], what: &str) {
    assert_eq!(want.len(), got.len(), "{what}: length");
    for (i, (want, got)) in want.iter().zip(got).enumerate() {
        assert!(want.holds(*got), "{what}[{i}]: got {got:e}, expected {want:?}");
    }
}
