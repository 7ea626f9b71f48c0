//! Sweeps on every device, compared with their definition.

use crate::Error;
use crate::common::interpreter::{Host, assert_near};
use crate::common::on_each_device;
use crate::common::steps::Steps;
use crate::common::vectors::{bits, download, read, reals, rounded, upload};
use crate::device::sweep::Test;
use crate::device::{Cpu, Device, Dot, Op, Operand, RING, Slot, SlotState, Sweep, Term, Update};
use crate::scalar::Scalar;
use crate::solve::{Method, markov, pagerank};
use crate::stop::StopCode;
use std::marker::PhantomData;

on_each_device! {
    every_sweep_matches_its_definition,
    columns_that_are_done_keep_their_vectors_and_slots,
    the_ring_holds_the_last_values_counted,
    the_program_stops_at_the_first_test_that_holds,
    a_wrong_number_or_shape_of_vectors_is_refused,
    the_ring_survives_a_write_of_the_slots,
    recording_runs_nothing_and_replays_add_up,
    sweeps_over_any_number_of_columns_match_their_definition,
    done_columns_among_many_keep_their_vectors_and_slots,
    a_read_vector_of_one_column_is_used_for_every_column,
    sums_over_columns_have_the_same_bits_every_time,
}

const SIZES: [usize; 7] = [0, 1, 31, 511, 512, 513, 1025];
const LARGE: usize = 5000;
const SLOTS: usize = 40;

fn all_sweeps() -> Vec<Sweep<'static>> {
    let solvers = Method::ALL.into_iter().flat_map(Method::sweeps);
    let rest = [
        crate::common::sweeps::ALL,
        crate::device::stream::SWEEPS,
        pagerank::power::SWEEPS,
        markov::power::SWEEPS,
    ];
    let rest = rest.concat();
    solvers.chain(rest).collect()
}

/// Returns whether a written vector is overwritten before it is read.
fn is_overwritten(sweep: &Sweep<'_>, i: u8) -> bool {
    for update in sweep.updates {
        if update.terms.iter().flat_map(Term::operands).any(|o| o == Operand::Write(i)) {
            return false;
        }
        if update.target == i {
            return true;
        }
    }
    false
}

/// Returns positive slots that differ from each other, and codes for the columns.
fn state(k: usize, done: impl Fn(usize) -> u32) -> SlotState {
    let mut state = SlotState::new(SLOTS, k);
    state.values.iter_mut().enumerate().for_each(|(i, v)| *v = 0.5 + 0.37 * i as f64);
    state.done.iter_mut().enumerate().for_each(|(c, d)| *d = done(c));
    state.counts.iter_mut().enumerate().for_each(|(c, count)| *count = 250 + 5 * c as u32);
    state
}

/// The results of a sweep on a device.
#[derive(Debug, PartialEq)]
struct Got {
    writes: Vec<Vec<f64>>,
    slots: SlotState,
}

struct Data {
    writes: Vec<Vec<f64>>,
    reads: Vec<Vec<f64>>,
}

/// Returns vectors for a sweep; those that it overwrites hold NaN.
fn data<T: Scalar>(sweep: &Sweep<'_>, n: usize, k: usize) -> Data {
    let vector = |seed: u64| rounded::<T>(&reals(seed, n * k));
    let written = |i: u8| match is_overwritten(sweep, i) {
        true => vec![f64::NAN; n * k],
        false => vector(20 + u64::from(i)),
    };
    Data {
        writes: (0..sweep.writes).map(written).collect(),
        reads: (0..sweep.reads).map(|i| vector(30 + u64::from(i))).collect(),
    }
}

fn on_device<D: Device, T: Scalar>(device: &D, sweep: &Sweep<'_>, data: &Data, state: &SlotState) -> Got {
    let k = state.k;
    let mut slots = device.slots(SLOTS, k).unwrap();
    device.write(state, &mut slots).unwrap();
    let mut writes: Vec<_> = data.writes.iter().map(|v| upload::<D, T>(device, v, k)).collect();
    let reads: Vec<_> = data.reads.iter().map(|v| upload::<D, T>(device, v, k)).collect();
    let mut targets: Vec<_> = writes.iter_mut().collect();
    device.sweep(&mut targets, &reads.iter().collect::<Vec<_>>(), &mut slots, sweep).unwrap();
    let home = |(v, before): (&D::Vector<T>, &Vec<f64>)| download::<D, T>(device, v, before.len());
    Got { writes: writes.iter().zip(&data.writes).map(home).collect(), slots: read(device, &slots, SLOTS, k) }
}

fn check<D: Device, T: Scalar>(device: &D, sweep: &Sweep<'_>, n: usize, state: &SlotState) {
    let what = format!("{} of {n} x {} {}", sweep.name, state.k, T::NAME);
    let data = data::<T>(sweep, n, state.k);
    let got = on_device::<D, T>(device, sweep, &data, state);
    let mut expected = Host::<T>::new(&data.writes, &data.reads, state);
    expected.run(sweep);
    for (i, (want, got)) in expected.writes.iter().zip(&got.writes).enumerate() {
        assert_near(want, got, &format!("{what}: vector {i}"));
    }
    expected.assert_slots(&got.slots, &what);
}

fn every_sweep_matches_its_definition<D: Device>(device: &D) {
    for sweep in &all_sweeps() {
        for k in [1, 3] {
            for n in SIZES.into_iter().chain([LARGE]) {
                check::<D, f64>(device, sweep, n, &state(k, |_| 0));
                check::<D, f32>(device, sweep, n, &state(k, |_| 0));
            }
        }
    }
}

fn columns_that_are_done_keep_their_vectors_and_slots<D: Device>(device: &D) {
    for sweep in &all_sweeps() {
        for n in [1, 513] {
            for (k, done) in [(1, 0b1), (3, 0b010), (3, 0b101), (3, 0b111)] {
                let state = state(k, |c| if done >> c & 1 == 1 { c as u32 + 1 } else { 0 });
                check::<D, f64>(device, sweep, n, &state);
                check::<D, f32>(device, sweep, n, &state);
            }
        }
    }
}

/// Returns a column of a vector of k columns.
fn column(all: &[f64], k: usize, column: usize) -> Vec<f64> {
    all.iter().skip(column).step_by(k).copied().collect()
}

fn each_column_has_the_bits_of_a_separate_sweep<T: Scalar>(cpu: &Cpu, sweep: &Sweep<'_>, n: usize) {
    const K: usize = 3;
    let (whole, codes) = (data::<T>(sweep, n, K), [0, StopCode::Converged as u32, 0]);
    let together = on_device::<Cpu, T>(cpu, sweep, &whole, &state(K, |c| codes[c]));
    for (c, code) in codes.into_iter().enumerate() {
        let one = |all: &Vec<Vec<f64>>| all.iter().map(|v| column(v, K, c)).collect();
        let part = Data { writes: one(&whole.writes), reads: one(&whole.reads) };
        let mut start = state(1, |_| code);
        start.values = column(&state(K, |_| 0).values, K, c);
        let alone = on_device::<Cpu, T>(cpu, sweep, &part, &start);
        let what = format!("{} of {n}, {}, column {c}", sweep.name, T::NAME);
        for (all, one) in together.writes.iter().zip(&alone.writes) {
            assert!(bits(&column(all, K, c)) == bits(one), "{what}");
        }
        assert_eq!(bits(&column(&together.slots.values, K, c)), bits(&alone.slots.values), "{what}");
    }
}

#[test]
fn on_the_cpu_each_of_several_columns_has_the_bits_of_a_single_column() {
    let cpu = Cpu::new(Some(2)).unwrap();
    for sweep in &all_sweeps() {
        for n in [1, 511, 1025] {
            each_column_has_the_bits_of_a_separate_sweep::<f64>(&cpu, sweep, n);
            each_column_has_the_bits_of_a_separate_sweep::<f32>(&cpu, sweep, n);
        }
    }
}

/// Numbers of columns: a few, beside a warp, beside a block of a GPU, and more than one tile
/// of columns there.
const COLUMNS: [usize; 10] = [2, 5, 8, 31, 32, 33, 100, 257, 600, 1030];

/// Returns sweeps that represent all: with and without sums, programs, updates, numbers and many vectors.
fn representative() -> impl Iterator<Item = Sweep<'static>> {
    let named = ["cg_residual", "cg_direction", "minres_step", "pagerank_personal"];
    let own = [crate::common::sweeps::THREE_TERMS, crate::common::sweeps::PROGRAM_ALONE];
    let solvers = all_sweeps().into_iter().filter(move |sweep| named.contains(&sweep.name));
    let mut met = std::collections::HashSet::new();
    solvers.filter(move |sweep| met.insert(sweep.name)).chain(own)
}

/// Returns numbers of rows with at most about a million elements.
fn rows(k: usize) -> impl Iterator<Item = usize> {
    [0, 1, 31, 513, LARGE].into_iter().filter(move |n| n * k <= 1 << 20)
}

fn sweeps_over_any_number_of_columns_match_their_definition<D: Device>(device: &D) {
    for sweep in representative() {
        for k in COLUMNS {
            for n in rows(k) {
                check::<D, f64>(device, &sweep, n, &state(k, |_| 0));
            }
            check::<D, f32>(device, &sweep, 513, &state(k, |_| 0));
        }
    }
}

fn done_columns_among_many_keep_their_vectors_and_slots<D: Device>(device: &D) {
    let rules: [fn(usize) -> bool; 4] = [|c| c % 3 == 1, |c| c > 0, |c| c < 513, |_| true];
    for sweep in representative() {
        for k in [2, 33, 600] {
            for is_done in rules {
                let state = state(k, |c| if is_done(c) { 1 + c as u32 % 4 } else { 0 });
                check::<D, f64>(device, &sweep, 513, &state);
                let data = data::<f64>(&sweep, 513, k);
                let got = on_device::<D, f64>(device, &sweep, &data, &state);
                for (before, after) in data.writes.iter().zip(&got.writes) {
                    let same = |e: usize| before[e].to_bits() == after[e].to_bits();
                    assert!((0..513 * k).filter(|e| is_done(e % k)).all(same), "{} of {k}", sweep.name);
                }
            }
        }
    }
}

/// Sums over a vector of several columns and one of one column, neither of which is written.
const WEIGHTED: Sweep<'static> = Sweep {
    name: "weighted",
    numbers: &[],
    writes: 0,
    reads: 2,
    updates: &[],
    dots: &[Dot::product(Operand::Read(0), Operand::Read(1), Slot(2))],
    then: &[Op::Count(Slot(2))],
};

fn a_read_vector_of_one_column_is_used_for_every_column<D: Device>(device: &D) {
    let n = 600;
    let sweeps =
        all_sweeps().into_iter().filter(|sweep| sweep.reads > 0 && sweep.writes > 0).chain([WEIGHTED]);
    for (sweep, k) in sweeps.flat_map(|sweep| [2, 3, 33, 600].map(|k| (sweep, k))) {
        let sweep = &sweep;
        let last = sweep.reads as usize - 1;
        // The last of the vectors that are read has one column, or all have. Without vectors that are
        // written, one must be wide.
        for first in if sweep.writes > 0 { vec![last, 0] } else { vec![last] } {
            let start = state(k, |c| u32::from(c == 1));
            let mut data = data::<f64>(sweep, n, k);
            let narrow: Vec<Vec<f64>> = (0..=last).map(|i| reals(3 + i as u64, n)).collect();
            for (wide, narrow) in data.reads.iter_mut().zip(&narrow).skip(first) {
                *wide = narrow.iter().flat_map(|v| vec![*v; k]).collect();
            }
            let whole = on_device::<D, f64>(device, sweep, &data, &start);
            let mut slots = device.slots(SLOTS, k).unwrap();
            device.write(&start, &mut slots).unwrap();
            let mut writes: Vec<_> = data.writes.iter().map(|v| upload::<D, f64>(device, v, k)).collect();
            let columns = |i: usize| if i >= first { (&narrow[i], 1) } else { (&data.reads[i], k) };
            let upload = |i: usize| upload::<D, f64>(device, columns(i).0, columns(i).1);
            let reads: Vec<_> = (0..=last).map(upload).collect();
            let mut targets: Vec<_> = writes.iter_mut().collect();
            device.sweep(&mut targets, &reads.iter().collect::<Vec<_>>(), &mut slots, sweep).unwrap();
            let what = format!("{} of {k} columns, narrow from {first}", sweep.name);
            for (one, other) in writes.iter().zip(&whole.writes) {
                assert!(bits(&download::<D, f64>(device, one, n * k)) == bits(other), "{what}");
            }
            assert!(read(device, &slots, SLOTS, k) == whole.slots, "{what}");
        }
    }
}

fn sums_over_columns_have_the_same_bits_every_time<D: Device>(device: &D) {
    for sweep in representative() {
        for k in [3, 32, 600] {
            let (data, start) = (data::<f64>(&sweep, LARGE, k), state(k, |_| 0));
            let run = || {
                let got = on_device::<D, f64>(device, &sweep, &data, &start);
                (got.writes.iter().map(|v| bits(v)).collect::<Vec<_>>(), bits(&got.slots.values))
            };
            let first = run();
            assert!((0..5).all(|_| run() == first), "{} of {k} columns", sweep.name);
        }
    }
}

/// Halves a slot and counts it: the values in the ring are all different, and exact.
const HALVE: Sweep<'static> = Sweep {
    name: "halve",
    numbers: &[],
    writes: 0,
    reads: 0,
    updates: &[],
    dots: &[],
    then: &[Op::Divide(Slot(0), Slot(0), Slot(1)), Op::Count(Slot(0))],
};

fn the_ring_holds_the_last_values_counted<D: Device>(device: &D) {
    const TIMES: usize = RING + 44;
    for k in [1, 3, 600] {
        let mut start = SlotState::new(2, k);
        for c in 0..k {
            start.set(Slot(0), c, 1.0 + c as f64);
            start.set(Slot(1), c, 2.0);
        }
        let mut slots = device.slots(2, k).unwrap();
        device.write(&start, &mut slots).unwrap();
        for _ in 0..TIMES {
            device.sweep::<f64>(&mut [], &[], &mut slots, &HALVE).unwrap();
        }
        let got = read(device, &slots, 2, k);
        assert_eq!(got.counts, vec![TIMES as u32; k]);
        for c in 0..k {
            for i in TIMES - RING..TIMES {
                let want = (1.0 + c as f64) * 0.5f64.powi(i as i32 + 1);
                assert!(got.counted(i, c) == want, "iteration {i}, column {c}: {:e}", got.counted(i, c));
            }
        }
    }
}

fn the_program_stops_at_the_first_test_that_holds<D: Device>(device: &D) {
    let sweep = &crate::common::sweeps::STOPS;
    let huge = f64::MAX.sqrt();
    for (vector, limit, code, counted) in [
        (vec![f64::NAN, 1.0], 0.0, StopCode::NotFinite, 0),
        (vec![huge, huge, huge], 0.0, StopCode::NotFinite, 0),
        (vec![0.0, 0.0], 9.0, StopCode::IndefiniteMatrix, 0),
        (vec![3.0, 4.0], 25.0, StopCode::Converged, 1),
        (vec![3.0, 4.0], 24.0, StopCode::Running, 1),
        (vec![3.0, 4.0], f64::NAN, StopCode::Running, 1),
        (vec![], 1.0, StopCode::IndefiniteMatrix, 0),
    ] {
        let mut before = SlotState::new(SLOTS, 1);
        before.set(Slot(0), 0, limit);
        before.set(Slot(3), 0, -7.0);
        let data = Data { writes: vec![], reads: vec![vector] };
        let got = on_device::<D, f64>(device, sweep, &data, &before).slots;
        assert_eq!((StopCode::from_device(got.done[0]), got.counts[0]), (code, counted), "{:?}", data.reads);
        // Only a program that ran to its end has copied the product.
        let copied = if code == StopCode::Running { 25.0 } else { -7.0 };
        assert_eq!(got.get(Slot(3), 0), copied, "{:?}", data.reads);
    }
}

fn a_wrong_number_or_shape_of_vectors_is_refused<D: Device>(device: &D) {
    let vector = |n, k| device.vector::<f64>(n, k).unwrap();
    let mut slots = device.slots(SLOTS, 1).unwrap();
    let sweep = &crate::common::sweeps::OVERWRITE;
    let refused = |outcome: crate::Result<()>| {
        assert!(matches!(outcome, Err(Error::Dimension { .. })), "{outcome:?}");
    };
    refused(device.sweep(&mut [&mut vector(5, 1)], &[&vector(4, 1)], &mut slots, sweep));
    refused(device.sweep(&mut [&mut vector(5, 1)], &[&vector(5, 3)], &mut slots, sweep));
    refused(device.sweep(&mut [&mut vector(5, 3)], &[&vector(5, 3)], &mut slots, sweep));
    refused(device.sweep(&mut [&mut vector(5, 1)], &[], &mut slots, sweep));
    refused(device.sweep(&mut [], &[&vector(5, 1)], &mut slots, sweep));
    refused(device.upload(&[1.0; 4], &mut vector(5, 1)));
    refused(device.download(&vector(5, 1), &mut [0.0; 6]));
}

fn the_ring_survives_a_write_of_the_slots<D: Device>(device: &D) {
    let mut slots = device.slots(2, 1).unwrap();
    let mut start = SlotState::new(2, 1);
    start.values = vec![8.0, 2.0];
    device.write(&start, &mut slots).unwrap();
    device.sweep::<f64>(&mut [], &[], &mut slots, &HALVE).unwrap();
    let counted = read(device, &slots, 2, 1);
    assert_eq!(counted.counted(0, 0), 4.0);
    let mut other = SlotState::new(2, 1);
    other.values = vec![100.0, 5.0];
    other.counts[0] = 1;
    device.write(&other, &mut slots).unwrap();
    device.sweep::<f64>(&mut [], &[], &mut slots, &HALVE).unwrap();
    let got = read(device, &slots, 2, 1);
    assert_eq!((got.counted(0, 0), got.counted(1, 0), got.counts[0]), (4.0, 20.0, 2));
}

struct Work<D: Device> {
    x: D::Vector<f64>,
    r: D::Vector<f64>,
    slots: D::Slots,
}

/// x = alpha x + r and x'r, which is counted; then alpha becomes slot 1 / x'r.
const STEP: Sweep<'static> = Sweep {
    name: "recorded",
    numbers: &[],
    writes: 1,
    reads: 1,
    updates: &[Update {
        target: 0,
        terms: &[Term::slot(Slot(0), Operand::Write(0)), Term::one(Operand::Read(0))],
    }],
    dots: &[crate::device::Dot::product(Operand::Write(0), Operand::Read(0), Slot(2))],
    then: &[Op::Count(Slot(2)), Op::Divide(Slot(0), Slot(1), Slot(2))],
};

fn step<D: Device>(device: &D, w: &mut Work<D>) -> crate::Result<()> {
    device.sweep(&mut [&mut w.x], &[&w.r], &mut w.slots, &STEP)
}

fn recording_runs_nothing_and_replays_add_up<D: Device>(device: &D) {
    [1, 3, 33].into_iter().for_each(|k| replays_of_columns_add_up(device, k));
}

fn replays_of_columns_add_up<D: Device>(device: &D, k: usize) {
    const N: usize = 1500;
    let mut start = SlotState::new(SLOTS, k);
    start.values[..k].fill(0.5);
    start.values[k..2 * k].fill(300.0);
    let (x, r) = (reals(40, N * k), reals(41, N * k));
    let run = |splits: &[usize]| {
        let mut slots = device.slots(SLOTS, k).unwrap();
        device.write(&start, &mut slots).unwrap();
        let work = Work::<D> { x: upload(device, &x, k), r: upload(device, &r, k), slots };
        let mut recorded = Steps::record(device, work, step::<D>).unwrap();
        device.synchronize().unwrap();
        assert_eq!(read(device, &recorded.work.slots, SLOTS, k), start);
        assert_eq!(bits(&download::<D, f64>(device, &recorded.work.x, N * k)), bits(&x));
        splits.iter().for_each(|&times| recorded.replay(times).unwrap());
        let got = download::<D, f64>(device, &recorded.work.x, N * k);
        (bits(&got), read(device, &recorded.work.slots, SLOTS, k))
    };
    let expected = run(&[1; 20]);
    assert_eq!(expected.1.counts, vec![20; k]);
    assert!(expected.1.values.iter().all(|v| v.is_finite()) && expected.0 != bits(&x));
    for splits in [&[20][..], &[7, 13], &[0, 16, 0, 4], &[17, 3]] {
        assert!(run(splits) == expected, "{splits:?}");
    }
    assert!(run(&[21]) != expected);
}

#[test]
fn on_the_cpu_any_number_of_threads_gives_the_same_bits() {
    fn all<T: Scalar>(cpu: &Cpu) -> Vec<u64> {
        let run = |sweep: &Sweep<'_>, k| {
            let data = data::<T>(sweep, LARGE, k);
            let got = on_device::<Cpu, T>(cpu, sweep, &data, &state(k, |_| 0));
            got.writes.concat().into_iter().chain(got.slots.values).collect::<Vec<_>>()
        };
        let sweeps = all_sweeps();
        sweeps.iter().flat_map(|s| [run(s, 1), run(s, 3)]).flat_map(|v| bits(&v)).collect()
    }
    let one = Cpu::new(Some(1)).unwrap();
    let (wide, narrow) = (all::<f64>(&one), all::<f32>(&one));
    for threads in [2, 3, 7] {
        let cpu = Cpu::new(Some(threads)).unwrap();
        assert_eq!(cpu.threads(), threads);
        assert!(all::<f64>(&cpu) == wide && all::<f32>(&cpu) == narrow, "{threads} threads");
    }
}

fn named(name: &str) -> Sweep<'static> {
    Method::ALL.into_iter().flat_map(Method::sweeps).find(|s| s.name == name).unwrap()
}

#[test]
fn the_sweeps_of_an_iteration_of_cg_move_eight_vectors() {
    let (residual, direction) = (named("cg_residual"), named("cg_direction"));
    assert_eq!(residual.vectors_moved(), (2, 1));
    assert_eq!(named("cg_residual_pre").vectors_moved(), (2, 1));
    assert_eq!(direction.vectors_moved(), (3, 2));
    assert_eq!(residual.bytes(1000, 1, 8) + direction.bytes(1000, 1, 8), 8 * 1000 * 8);
    assert_eq!(residual.bytes(1000, 3, 4) + direction.bytes(1000, 3, 4), 8 * 3000 * 4);
}

#[test]
fn the_sweeps_of_the_other_methods_move_as_many_vectors_as_they_document() {
    for (name, read, written) in [
        ("pipelined_step", 7, 6),
        ("pipelined_step_pre", 10, 8),
        ("minres_step", 6, 3),
        ("minres_lanczos", 3, 1),
        ("minres_update", 6, 3),
    ] {
        assert_eq!(named(name).vectors_moved(), (read, written), "{name}");
    }
}

#[test]
fn vectors_that_are_overwritten_are_not_counted_as_read() {
    assert_eq!(crate::common::sweeps::OVERWRITE.vectors_moved(), (1, 1));
    assert_eq!(crate::common::sweeps::PRODUCT.vectors_moved(), (3, 1));
    assert_eq!(crate::common::sweeps::THREE_TERMS.vectors_moved(), (3, 2));
    assert_eq!(crate::common::sweeps::PROGRAM_ALONE.vectors_moved(), (0, 0));
    assert_eq!(named("cg_norm").vectors_moved(), (1, 0));
    assert_eq!(crate::device::stream::SWEEPS[0].bytes(10, 1, 8), 240);
}

/// Returns the message of `validate`, which must refuse the sweep.
fn refusal(sweep: Sweep<'_>) -> String {
    let sweep = std::panic::AssertUnwindSafe(sweep);
    let outcome = std::panic::catch_unwind(|| sweep.validate(SLOTS));
    *outcome.unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn sweeps_that_contradict_themselves_are_refused() {
    const EMPTY: Sweep<'static> =
        Sweep { name: "bad", numbers: &[], writes: 1, reads: 1, updates: &[], dots: &[], then: &[] };
    let (w0, r0) = (Operand::Write(0), Operand::Read(0));
    let (own, other) = (Term::one(w0), Term::one(r0));
    let with = |target, terms: &[Term]| refusal(Sweep { updates: &[Update { target, terms }], ..EMPTY });
    assert!(with(1, &[other]).contains("unknown target"));
    let beyond = Slot(SLOTS as u8);
    assert!(with(0, &[Term::slot(beyond, r0)]).contains("a slot is not in the bank"));
    assert!(refusal(Sweep { dots: &[Dot::product(r0, r0, beyond)], ..EMPTY }).contains("not in the bank"));
    let then = &[Op::StopIf(Test::AtMost(Slot(0), beyond), StopCode::Converged)];
    assert!(
        refusal(Sweep { dots: &[Dot::product(r0, r0, Slot(0))], then, ..EMPTY }).contains("not in the bank")
    );
    assert!(with(0, &[]).contains("one to three terms"));
    assert!(with(0, &[other; 4]).contains("one to three terms"));
    assert!(with(0, &[Term::one(Operand::Read(1))]).contains("unknown operand"));
    assert!(with(0, &[own, own]).contains("twice"));
    assert!(with(0, &[other.times(w0), own]).contains("twice"));
    assert!(with(0, &[own.over(w0)]).contains("twice"));
    let squares = [other.times(r0), other.over(r0)];
    assert!(with(0, &squares).contains("at most one product"));
    let dot = crate::device::Dot::product(w0, Operand::Read(3), Slot(0));
    assert!(refusal(Sweep { dots: &[dot], ..EMPTY }).contains("unknown operand"));
    assert!(refusal(Sweep { dots: &[dot; 5], ..EMPTY }).contains("more than 4 dots"));
    assert!(refusal(Sweep { writes: 9, ..EMPTY }).contains("bad"));
    for track in [0, crate::device::TRACKS as u8] {
        let then = &[Op::Note(crate::device::Track(track), Slot(0))];
        assert!(refusal(Sweep { writes: 0, reads: 0, then, ..EMPTY }).contains("unknown track"));
    }
}

#[test]
fn the_interpreter_of_the_tests_detects_an_error_of_1e_14() {
    let sweep = named("cg_direction");
    let data = data::<f64>(&sweep, 40, 1);
    let mut expected = Host::<f64>::new(&data.writes, &data.reads, &state(1, |_| 0));
    expected.run(&sweep);
    let PhantomData::<f64> = expected.precision;
    for near in expected.writes.concat() {
        assert!(near.within > 0.0 && near.within < 1e-14, "{near:?}");
        assert!(near.holds(near.value) && !near.holds(near.value + 1e-14) && !near.holds(f64::NAN));
    }
}
