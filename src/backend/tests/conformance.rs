//! Every backend compared with the definition of y = alpha A x + beta y, on every matrix of the
//! zoo and in every precision.

use crate::Error;
use crate::backend::{Choice, Host, Operator, Pick};
use crate::common::each_backend::{Case, Check, for_each, trials};
use crate::common::harness::Family;
use crate::common::interpreter::Host as Interpreter;
use crate::common::steps::Steps;
use crate::common::vectors::{Numbers, bits, download, integers, read, reals, rounded, upload};
use crate::common::{on_each_backend, tolerance, zoo};
use crate::device::sweep::dot_sweep;
use crate::device::{Cpu, Cuda, Op, SlotState};
use crate::format::{Csr, Values};
use crate::operator::{Cost, DotInto};
use crate::scalar::Scalar;
use crate::solve::{Method, cg, markov, pagerank};
use std::sync::Arc;

on_each_backend! {
    every_backend_computes_the_product,
    sums_of_small_integers_are_exact,
    with_beta_zero_the_old_y_is_not_read_and_every_element_is_written,
    empty_rows_give_zero,
    the_fused_dot_product_is_that_of_the_product_and_runs_the_program,
    the_fused_dot_product_does_not_change_the_slots_of_a_done_column,
    a_fused_sweep_equals_product_then_sweep,
    a_product_onto_another_vector_equals_a_copy_then_the_product,
    recorded_sweeps_after_products_do_not_depend_on_how_they_are_replayed,
    vectors_of_other_lengths_are_refused,
    deterministic_backends_give_the_same_bits_again,
    the_device_makes_the_format_that_the_host_makes,
    the_cost_is_counted_from_the_arrays,
}

pub(super) const COMBINATIONS: [(f64, f64); 5] =
    [(1.0, 0.0), (2.5, 0.0), (-1.0, 1.0), (0.5, -2.0), (0.0, 1.0)];

/// Returns alpha A x + beta y and `|alpha| |A| |x| + |beta y|` for one row.
fn reference(matrix: &Csr, row: usize, (alpha, beta): (f64, f64), x: &[f64], y: f64) -> (f64, f64) {
    let products = || matrix.row(row).map(|(j, v)| v * x[j]);
    let old = if beta == 0.0 { 0.0 } else { beta * y };
    let sum: f64 = products().sum();
    (alpha * sum + old, alpha.abs() * products().map(f64::abs).sum::<f64>() + old.abs())
}

pub(super) fn entries(matrix: &Csr, row: usize) -> usize {
    matrix.row_range(row).len()
}

/// Applies the operator once; `y` is the content of y before.
pub(super) fn apply<D: Pick<T>, T: Scalar>(
    device: &D,
    operator: &Operator<D, T>,
    (alpha, beta): (f64, f64),
    x: &D::Vector<T>,
    y: &[f64],
    k: usize,
) -> Vec<f64> {
    let mut target = upload::<D, T>(device, y, k);
    operator.apply(alpha, x, beta, &mut target).unwrap();
    download::<D, T>(device, &target, y.len())
}

struct Product {
    exact: bool,
}

/// x and y, and for each of the [`COMBINATIONS`] the expected rows of the product with their error bounds.
pub(super) struct Products {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub rows: [Vec<(f64, f64)>; COMBINATIONS.len()],
}

impl Products {
    pub(super) fn of<T: Scalar>(matrix: &Csr, x: Vec<f64>, y: Vec<f64>) -> Products {
        let rows = COMBINATIONS.map(|by| {
            let row = |row| {
                let (want, magnitude) = reference(matrix, row, by, &x, y[row]);
                (want, tolerance::spmv_row::<T>(entries(matrix, row), magnitude))
            };
            (0..matrix.rows()).map(row).collect()
        });
        Products { x, y, rows }
    }
}

impl Check for Product {
    type Expected = Products;

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Products {
        let numbers = |seed, n| if self.exact { integers(seed, n) } else { rounded::<T>(&reals(seed, n)) };
        Products::of::<T>(matrix, numbers(1, matrix.cols()), numbers(2, matrix.rows()))
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, expected: &Products) {
        let Some(operator) = case.build::<D, T>(device) else { return };
        assert_eq!(operator.shape(), (case.matrix.rows(), case.matrix.cols()), "{case}");
        let x = upload::<D, T>(device, &expected.x, 1);
        for (by, rows) in COMBINATIONS.into_iter().zip(&expected.rows) {
            let got = apply(device, &operator, by, &x, &expected.y, 1);
            for (row, (got, &(want, bound))) in got.into_iter().zip(rows).enumerate() {
                let near = if self.exact { got == want } else { (got - want).abs() <= bound };
                assert!(near, "{case}: alpha, beta = {by:?}: y[{row}] = {got:e}, expected {want:e}");
            }
        }
    }
}

fn every_backend_computes_the_product<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::reals(), &Product { exact: false });
}

fn sums_of_small_integers_are_exact<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::integers(), &Product { exact: true });
}

struct Overwrites;

impl Overwrites {
    const COMBINATIONS: [(f64, f64); 2] = [(1.0, 0.0), (2.5, 0.0)];
}

impl Check for Overwrites {
    type Expected = (Vec<f64>, [Vec<f64>; 2]);

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected {
        let x = integers(3, matrix.cols());
        let rows = |by| (0..matrix.rows()).map(|row| reference(matrix, row, by, &x, 0.0).0).collect();
        let wanted = Overwrites::COMBINATIONS.map(rows);
        (x, wanted)
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, (x, wanted): &Self::Expected) {
        let Some(operator) = case.build::<D, T>(device) else { return };
        let x = upload::<D, T>(device, x, 1);
        for (by, want) in Overwrites::COMBINATIONS.into_iter().zip(wanted) {
            for poison in [f64::NAN, f64::INFINITY] {
                let got = apply(device, &operator, by, &x, &vec![poison; case.matrix.rows()], 1);
                assert_eq!(got, *want, "{case}: over {poison}");
            }
        }
    }
}

fn with_beta_zero_the_old_y_is_not_read_and_every_element_is_written<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::integers(), &Overwrites);
}

struct EmptyRows;

impl Check for EmptyRows {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        let Some(operator) = case.build::<D, T>(device) else { return };
        let rows = case.matrix.rows();
        // An entry of a neighbouring row that leaked into the row would show as a large value.
        let x = upload::<D, T>(device, &vec![1e30; case.matrix.cols()], 1);
        let got = apply(device, &operator, (3.0, 0.0), &x, &vec![7.0; rows], 1);
        for row in (0..rows).filter(|&row| entries(&case.matrix, row) == 0) {
            assert!(got[row] == 0.0, "{case}: y[{row}] = {}", got[row]);
        }
    }
}

fn empty_rows_give_zero<D: Host>(device: &D, backend: &str) {
    let zoo: zoo::Zoo =
        zoo::reals().into_iter().filter(|(_, m)| (0..m.rows()).any(|r| entries(m, r) == 0)).collect();
    assert!(zoo.len() >= 5);
    for_each(device, backend, &zoo, &EmptyRows);
}

/// Returns slots in the state before a dot product of CG, with the given `done` code.
fn slots<D: Host>(device: &D, done: u32) -> (SlotState, D::Slots) {
    let mut state = SlotState::new(cg::SLOTS, 1);
    state.values.iter_mut().zip(integers(5, cg::SLOTS)).for_each(|(v, i)| *v = i + 20.0);
    state.done[0] = done;
    let mut slots = device.slots(cg::SLOTS, 1).unwrap();
    device.write(&state, &mut slots).unwrap();
    (state, slots)
}

struct FusedDot {
    done: u32,
}

impl Check for FusedDot {
    type Expected = (Vec<f64>, Vec<f64>);

    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected {
        let x = integers(4, matrix.cols());
        let y = (0..matrix.rows()).map(|row| reference(matrix, row, (1.0, 0.0), &x, 0.0).0).collect();
        (x, y)
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, (values, want): &Self::Expected) {
        let n = case.matrix.rows();
        if n != case.matrix.cols() {
            return;
        }
        let Some(operator) = case.build::<D, T>(device) else { return };
        let x = upload::<D, T>(device, values, 1);
        // Every program is a separate kernel on a GPU; one program is enough for most matrices.
        let most = if case.name == "513 rows" { usize::MAX } else { 1 };
        for (dot, then) in Method::Cg.programs().take(most) {
            let (state, mut slots) = slots(device, self.done);
            let mut y = upload::<D, T>(device, &vec![f64::NAN; n], 1);
            operator.apply_dot(&x, &mut y, &mut slots, &dot, then).unwrap();
            let got = read(device, &slots, cg::SLOTS, 1);
            if self.done != 0 {
                assert_eq!(got, state, "{case}");
                continue;
            }
            let y = download::<D, T>(device, &y, n);
            assert_eq!(y, *want, "{case}");
            let mut expected = Interpreter::<T>::new(&[], &[values.clone(), want.clone()], &state);
            expected.run(&dot_sweep(&dot, then));
            expected.assert_slots(&got, &case.to_string());
        }
    }
}

/// Returns a large matrix for devices whose backends store columns relative to their row.
fn near_and_square<D: Host>() -> Option<(&'static str, Arc<Csr>)> {
    (D::KIND == Cuda::KIND).then(zoo::near_and_square)
}

fn the_fused_dot_product_is_that_of_the_product_and_runs_the_program<D: Host>(device: &D, backend: &str) {
    let mut zoo = zoo::integers();
    zoo.extend(near_and_square::<D>());
    for_each(device, backend, &zoo, &FusedDot { done: 0 });
}

fn the_fused_dot_product_does_not_change_the_slots_of_a_done_column<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::few(), &FusedDot { done: 3 });
}

/// Number of slots that the sweeps of PageRank use.
const SWEEP_SLOTS: usize = pagerank::power::SLOTS;

struct Swept;

impl Check for Swept {
    type Expected = [Vec<f64>; 5];

    /// Returns the vectors before the sweep: small integers, so that sums do not depend on their order.
    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected {
        let mut vectors: [Vec<f64>; 5] = std::array::from_fn(|seed| integers(seed as u64, matrix.rows()));
        // A sweep may divide by any vector that it only reads.
        for read in &mut vectors[2..] {
            read.iter_mut().for_each(|w| *w = if *w < 0.0 { -1.0 } else { 2.0 });
        }
        vectors
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, vectors: &Self::Expected) {
        let n = case.matrix.rows();
        if n != case.matrix.cols() {
            return;
        }
        let Some(operator) = case.build::<D, T>(device) else { return };
        let sweeps = [pagerank::power::AFTER_PRODUCT, markov::power::SWEEPS].concat();
        for (sweep, done) in sweeps.iter().flat_map(|sweep| [(sweep, 0), (sweep, 3)]) {
            let run = |together: bool| {
                let [mut y, mut x, a, b, c] = vectors.each_ref().map(|v| upload::<D, T>(device, v, 1));
                let mut state = SlotState::new(SWEEP_SLOTS, 1);
                state.values.iter_mut().zip(integers(5, SWEEP_SLOTS)).for_each(|(v, i)| *v = i + 20.0);
                state.done[0] = done;
                let mut slots = device.slots(SWEEP_SLOTS, 1).unwrap();
                device.write(&state, &mut slots).unwrap();
                let reads = &[&a, &b, &c][..sweep.reads as usize];
                if together {
                    operator.apply_sweep([&mut y, &mut x], reads, &mut slots, sweep).unwrap();
                } else {
                    operator.apply(1.0, &x, 0.0, &mut y).unwrap();
                    device.sweep(&mut [&mut y, &mut x], reads, &mut slots, sweep).unwrap();
                }
                (bits(&download::<D, T>(device, &x, n)), read(device, &slots, SWEEP_SLOTS, 1))
            };
            let (together, in_turn) = (run(true), run(false));
            assert!(together.0 == in_turn.0, "{case}, {}, done: {done}: x", sweep.name);
            assert_eq!(together.1.values, in_turn.1.values, "{case}, {}, done: {done}", sweep.name);
        }
    }
}

fn a_fused_sweep_equals_product_then_sweep<D: Host>(device: &D, backend: &str) {
    let mut zoo: zoo::Zoo = zoo::integers().into_iter().filter(|(_, m)| m.rows() == m.cols()).collect();
    // Enough rows for chunks of full height, with a partial last chunk.
    let large = zoo::generated("poisson2d:95x90");
    let ones = Csr::with_pattern(large.pattern().clone(), Values::Ones).unwrap();
    zoo.extend([("many rows", large), ("ones, many rows", ones.into())]);
    zoo.extend(near_and_square::<D>());
    for_each(device, backend, &zoo, &Swept);
}

struct Onto;

impl Check for Onto {
    type Expected = [Vec<f64>; 2];

    /// Returns x and z: small integers, so that sums do not depend on their order.
    fn expect<T: Scalar>(&self, matrix: &Csr) -> Self::Expected {
        [integers(1, matrix.cols()), integers(2, matrix.rows())]
    }

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, [x, z]: &Self::Expected) {
        let Some(operator) = case.build::<D, T>(device) else { return };
        let mut slots = device.slots(1, 1).unwrap();
        let (x, z_there, n) = (upload::<D, T>(device, x, 1), upload::<D, T>(device, z, 1), z.len());
        for (alpha, beta) in [(2.0, -3.0), (-1.0, 1.0)] {
            let mut expected = upload::<D, T>(device, z, 1);
            operator.apply(alpha, &x, beta, &mut expected).unwrap();
            // Nothing of the old y is read.
            let mut y = upload::<D, T>(device, &vec![f64::NAN; n], 1);
            operator.apply_onto(alpha, &x, (beta, &z_there), &mut y, &mut slots).unwrap();
            let [y, expected] = [y, expected].map(|vector| bits(&download::<D, T>(device, &vector, n)));
            assert!(y == expected, "{case}: {alpha}, {beta}");
        }
    }
}

fn a_product_onto_another_vector_equals_a_copy_then_the_product<D: Host>(device: &D, backend: &str) {
    let mut zoo: zoo::Zoo = zoo::integers();
    zoo.extend([("many rows", zoo::generated("poisson2d:95x90"))]);
    for_each(device, backend, &zoo, &Onto);
}

/// Returns the first program that follows a dot product of conjugate gradients.
fn first_program() -> (DotInto, &'static [Op]) {
    Method::Cg.programs().next().unwrap()
}

/// The data of a step of a power iteration.
struct Work<D: Host, T: Scalar> {
    operator: Operator<D, T>,
    y: D::Vector<T>,
    x: D::Vector<T>,
    reads: [D::Vector<T>; 1],
    slots: D::Slots,
}

fn step<D: Host, T: Scalar>(_: &D, w: &mut Work<D, T>) -> crate::Result<()> {
    let sweep = &pagerank::power::AFTER_PRODUCT[0];
    let reads = w.reads.each_ref();
    w.operator.apply_sweep([&mut w.y, &mut w.x], &reads, &mut w.slots, sweep)
}

struct Replayed;

impl Check for Replayed {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        let n = case.matrix.rows();
        if n != case.matrix.cols() || !case.choice.entry.deterministic || n == 0 {
            return;
        }
        // The gathered values are small, so that the iteration stays bounded. `until` is the
        // change below which it stops.
        let Some(operator) = case.build::<D, T>(device) else { return };
        let run = |splits: &[usize], until: f64| {
            let operator = operator.clone();
            let vector = |values: Vec<f64>| upload::<D, T>(device, &values, 1);
            let mut state = SlotState::new(SWEEP_SLOTS, 1);
            state.values.fill(0.25);
            state.values[1] = until;
            let mut slots = device.slots(SWEEP_SLOTS, 1).unwrap();
            device.write(&state, &mut slots).unwrap();
            let (y, x) = (vector(vec![0.0; n]), vector(reals(1, n)));
            let reads = [vector(vec![1e3; n])];
            let work = Work { operator, y, x, reads, slots };
            let recorded = Steps::record(device, work, step::<D, T>);
            let mut recorded = recorded.unwrap_or_else(|e| panic!("{case}: {e}"));
            let mut content = Vec::new();
            for &times in splits {
                recorded.replay(times).unwrap();
                // The content of the workspace between replays.
                let work = &recorded.work;
                content = bits(&download::<D, T>(device, &work.x, n));
                content.extend(bits(&read(device, &work.slots, SWEEP_SLOTS, 1).values));
            }
            let work = recorded.work;
            let counted = read(device, &work.slots, SWEEP_SLOTS, 1).counts[0];
            (content, bits(&download::<D, T>(device, &work.x, n)), counted)
        };
        let expected = run(&[1; 21], -1.0);
        assert_eq!(expected.2, 21, "{case}");
        for splits in [&[21][..], &[1, 17, 0, 3]] {
            assert!(run(splits, -1.0) == expected, "{case}: {splits:?}");
        }
        let ended = run(&[1], f64::INFINITY);
        for splits in [&[2][..], &[1, 18]] {
            assert!(run(splits, f64::INFINITY) == ended, "{case}: {splits:?} of one step");
        }
    }
}

fn recorded_sweeps_after_products_do_not_depend_on_how_they_are_replayed<D: Host>(device: &D, backend: &str) {
    let skewed = |name: &str| name.ends_with("some long rows");
    for_each(device, backend, &zoo::few().into_iter().filter(|(name, _)| skewed(name)).collect(), &Replayed);
}

struct Lengths;

impl Check for Lengths {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        let Some(operator) = case.build::<D, T>(device) else { return };
        let (rows, cols) = (case.matrix.rows(), case.matrix.cols());
        let vector = |n: usize, k| device.vector::<T>(n, k).unwrap();
        let refused = |outcome: crate::Result<()>, wanted: usize| match outcome {
            Err(Error::Dimension { expected, got, .. }) => {
                assert!(expected == wanted && got != wanted, "{case}")
            }
            other => panic!("{case}: {other:?}"),
        };
        for wrong in [cols + 1, cols.saturating_sub(1)].into_iter().filter(|&w| w != cols) {
            refused(operator.apply(1.0, &vector(wrong, 1), 0.0, &mut vector(rows, 1)), cols);
            let (mut slots, (dot, then)) = (device.slots(cg::SLOTS, 1).unwrap(), first_program());
            if rows == cols {
                let (x, mut y) = (vector(wrong, 1), vector(rows, 1));
                refused(operator.apply_dot(&x, &mut y, &mut slots, &dot, then), cols);
            }
        }
        for wrong in [rows + 1, rows.saturating_sub(1)].into_iter().filter(|&w| w != rows) {
            refused(operator.apply(1.0, &vector(cols, 1), 0.0, &mut vector(wrong, 1)), rows);
        }
        if rows == cols {
            let (mut slots, (dot, then)) = (device.slots(cg::SLOTS, 3).unwrap(), first_program());
            let outcome = operator.apply_dot(&vector(cols, 1), &mut vector(rows, 1), &mut slots, &dot, then);
            assert!(
                matches!(outcome, Err(Error::Dimension { .. })),
                "{case}: slots of 3 columns: {outcome:?}"
            );
        }
    }
}

fn vectors_of_other_lengths_are_refused<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::few(), &Lengths);
    let shapes = |name: &str| ["0x0", "0x3", "3x0", "tall", "wide"].contains(&name);
    for_each(device, backend, &zoo::reals().into_iter().filter(|(name, _)| shapes(name)).collect(), &Lengths);
}

/// Returns the bits of y after `apply`, and of y and the slots after `apply_dot`.
fn all_bits<D: Pick<T>, T: Scalar>(device: &D, case: &Case<'_>) -> Option<Vec<u64>> {
    let operator = case.build::<D, T>(device)?;
    let rows = case.matrix.rows();
    let x = upload::<D, T>(device, &reals(6, case.matrix.cols()), 1);
    let mut all = bits(&apply(device, &operator, (1.5, -0.5), &x, &reals(8, rows), 1));
    if rows == case.matrix.cols() {
        let (dot, then) = first_program();
        let (_, mut slots) = slots(device, 0);
        let mut y = upload::<D, T>(device, &vec![0.0; rows], 1);
        operator.apply_dot(&x, &mut y, &mut slots, &dot, then).unwrap();
        all.extend(bits(&download::<D, T>(device, &y, rows)));
        all.extend(bits(&read(device, &slots, cg::SLOTS, 1).values));
    }
    Some(all)
}

struct Again;

impl Check for Again {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        if case.choice.entry.deterministic {
            assert_eq!(all_bits::<D, T>(device, case), all_bits::<D, T>(device, case), "{case}");
        }
    }
}

fn deterministic_backends_give_the_same_bits_again<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::reals(), &Again);
}

/// Compares the formats that the parameter `made` selects.
struct MadeThere;

impl Check for MadeThere {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        let label = case.choice.label();
        let has = case.choice.entry.params.iter().any(|param| param.name == "made");
        if !has || label.contains("made=") {
            return;
        }
        let joint = if label.contains(':') { ',' } else { ':' };
        let [there, here] = ["device", "host"].map(|place| {
            let typed = format!("{label}{joint}made={place}");
            let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &typed).unwrap();
            let case = Case { choice: &choice, matrix: case.matrix.clone(), ..*case };
            let built = case.build::<D, T>(device).map(|operator| (operator.storage(), operator.cost()));
            (built, all_bits::<D, T>(device, &case))
        });
        assert!(there == here, "{case}");
        // As in a solve, whose verdict has a copy of the matrix on the device.
        let _copy = device.residuals(&case.matrix, 0, 0).unwrap();
        assert!(all_bits::<D, T>(device, case) == here.1, "{case}, beside a copy of the matrix");
    }
}

fn the_device_makes_the_format_that_the_host_makes<D: Host>(device: &D, backend: &str) {
    let mut zoo = zoo::reals();
    // Blocks have many sizes, each of which the host would make.
    if backend != "bsr" {
        zoo.extend(near_and_square::<D>());
    }
    for_each(device, backend, &zoo, &MadeThere);
}

/// Devices with other numbers of threads.
struct OtherThreadCounts([Cpu; 3]);

impl Check for OtherThreadCounts {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        if !case.choice.entry.deterministic {
            return;
        }
        let expected = all_bits::<D, T>(device, case);
        for other in &self.0 {
            let got = match size_of::<T>() {
                4 => all_bits::<Cpu, f32>(other, case),
                _ => all_bits::<Cpu, f64>(other, case),
            };
            let refused = !case.choice.entry.values && case.matrix.values().width() != 0;
            assert!(got.is_some() != refused && got == expected, "{case}: {} threads", other.threads());
        }
    }
}

fn any_number_of_threads_gives_the_same_bits(backend: &str) {
    let devices = [2, 3, 7].map(|threads| Cpu::new(Some(threads)).unwrap());
    for_each(&Cpu::new(Some(1)).unwrap(), backend, &zoo::reals(), &OtherThreadCounts(devices));
}

inventory::submit! {
    Family(|| {
        let path = concat!(module_path!(), "::on_the_cpu::any_number_of_threads_gives_the_same_bits");
        trials::<Cpu>(path, any_number_of_threads_gives_the_same_bits)
    })
}

struct CountsCost;

impl Check for CountsCost {
    type Expected = ();

    fn expect<T: Scalar>(&self, _: &Csr) {}

    fn check<D: Pick<T>, T: Scalar>(&self, device: &D, case: &Case<'_>, _: &()) {
        let Some(operator) = case.build::<D, T>(device) else { return };
        let m = &case.matrix;
        assert_eq!(operator.cost_of(1), operator.cost(), "{case}");
        if case.choice.entry.columns {
            let vectors = ((m.rows() + m.cols()) * size_of::<T>()) as u64;
            let (one, three) = (operator.cost(), operator.cost_of(3));
            assert_eq!(three.bytes, one.bytes + 2 * vectors, "{case}: the matrix counts once");
            assert_eq!(three.flops, 3 * one.flops, "{case}");
        }
        // The backend that `auto` selects is checked under its own name.
        if case.choice.entry.name == "auto" {
            return;
        }
        if case.choice.entry.format != "csr" {
            // Fill, padding and narrower indices belong to the operator: all that it stores is read once.
            let vectors = ((m.rows() + m.cols()) * size_of::<T>()) as u64;
            // A library holds a buffer in addition to the arrays.
            let buffer = if case.choice.entry.family == "cusparse" { operator.storage() } else { 0 };
            let unread = (operator.storage() + vectors).checked_sub(operator.cost().bytes);
            assert!(unread.is_some_and(|unread| unread <= buffer), "{case}: {unread:?}");
            assert!(operator.cost().flops >= 2 * m.nnz() as u64, "{case}");
            return;
        }
        let value = match m.values() {
            // cuSPARSE has no implicit values.
            Values::Ones if case.choice.entry.family == "cusparse" => size_of::<T>(),
            Values::Ones => 0,
            Values::F32(_) => 4,
            Values::F64(_) => 8,
        };
        let offset = if case.name.starts_with("wide offsets") { 8 } else { 4 };
        let arrays = (m.rows() + 1) * offset + m.nnz() * (4 + value);
        let bytes = (arrays + (m.rows() + m.cols()) * size_of::<T>()) as u64;
        assert_eq!(operator.cost(), Cost { bytes, flops: 2 * m.nnz() as u64 }, "{case}");
        assert!(operator.storage() >= arrays as u64, "{case}: {}", operator.storage());
    }
}

fn the_cost_is_counted_from_the_arrays<D: Host>(device: &D, backend: &str) {
    for_each(device, backend, &zoo::integers(), &CountsCost);
}

#[test]
fn the_random_numbers_of_the_tests_cover_their_range() {
    let mut numbers = Numbers::new(1);
    let (mut low, mut high) = (0, 0);
    for _ in 0..1000 {
        let v = numbers.real();
        assert!((-1.0..=1.0).contains(&v));
        low += usize::from(v < -0.5);
        high += usize::from(v > 0.5);
    }
    assert!(low > 150 && high > 150, "{low} {high}");
}
