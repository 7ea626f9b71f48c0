//! The engine: prepared solves on each device, matrices from memory, callers' operators, and
//! refused settings.

use crate::Error;
use crate::backend::{Choice, Host, Pick};
use crate::common::each_backend::Builds;
use crate::common::on_each_device;
use crate::common::vectors::{bits, reals};
use crate::common::zoo;
use crate::device::Cpu;
use crate::engine::{Request, Solver};
use crate::prelude::*;
use crate::solve::{Method, System};
use crate::stop::{StopReason, StoppingRule};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

on_each_device! {
    a_second_solve_has_the_same_bits_as_the_first,
    a_prepared_solver_can_move_between_threads,
    a_prepared_solver_accepts_new_values_on_the_same_pattern,
    a_failed_solve_does_not_affect_later_ones,
    the_engine_has_the_same_bits_as_its_parts,
}

const METHODS: [Method; 3] = [Method::Cg, Method::PipelinedCg, Method::Minres];

fn prepared<D: Host>(matrix: &Matrix, method: Method, precond: Preconditioner) -> Prepared {
    Solver::new(method, matrix).device(D::KIND).preconditioner(precond).rtol(1e-9).prepare().unwrap()
}

/// Returns the preconditioners that run on a device.
fn preconds<D: Host>() -> Vec<Preconditioner> {
    let all = crate::precond::Preconditioner::all();
    all.filter(|precond| D::KIND == "cpu" || !precond.needs_cpu()).collect()
}

fn a_second_solve_has_the_same_bits_as_the_first<D: Host>(_: &D) {
    let matrix = Matrix::open("hex27:5x6x4,dof=2").unwrap();
    let (first, second) = (reals(11, matrix.rows()), reals(12, matrix.rows()));
    for method in METHODS {
        for precond in preconds::<D>() {
            let mut many = prepared::<D>(&matrix, method, precond.clone());
            let one = |b: &Vec<f64>| prepared::<D>(&matrix, method, precond.clone()).solve(b).unwrap();
            for b in [&first, &second, &first] {
                let (again, alone) = (many.solve(b).unwrap(), one(b));
                assert!(again.converged(), "{}, {precond}: {}", method.name(), again.reason());
                assert_eq!(bits(again.x()), bits(alone.x()), "{}, {precond}", method.name());
                assert_eq!(again.residuals(), alone.residuals(), "{}, {precond}", method.name());
                let mut x = vec![f64::NAN; matrix.rows()];
                let outcome = many.solve_into(b, &mut x).unwrap();
                assert_eq!((bits(&x), outcome.reason), (bits(alone.x()), StopReason::Converged));
            }
        }
    }
}

fn a_prepared_solver_can_move_between_threads<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson3d:9x8x7").unwrap();
    let b = reals(13, matrix.rows());
    let mut solve = prepared::<D>(&matrix, Method::Cg, Preconditioner::JACOBI);
    let here = solve.solve(&b).unwrap().into_x();
    let (mut solve, there) = std::thread::scope(|scope| {
        let b = &b;
        let moved = scope.spawn(move || {
            let x = solve.solve(b).unwrap().into_x();
            (solve, x)
        });
        moved.join().unwrap()
    });
    assert_eq!(bits(&here), bits(&there));
    assert_eq!(bits(&here), bits(solve.solve(&b).unwrap().x()));
    // A solver created on this thread is dropped on another thread.
    std::thread::spawn(move || drop(solve)).join().unwrap();
}

fn a_prepared_solver_accepts_new_values_on_the_same_pattern<D: Host>(_: &D) {
    let before = Matrix::open("poisson2d:30x20").unwrap();
    let b = reals(14, before.rows());
    let shifted = |by: f64| {
        let csr = before.csr();
        let values =
            (0..csr.rows()).flat_map(|i| csr.row(i).map(move |(j, v)| if i == j { v + by } else { v }));
        let offsets: Vec<usize> = (0..=csr.rows()).map(|i| csr.row_offsets().get(i)).collect();
        let columns = csr.col_indices();
        Matrix::from_csr(csr.rows(), csr.cols(), offsets, columns, values.collect::<Vec<f64>>()).unwrap()
    };
    for precond in preconds::<D>() {
        let mut solve = prepared::<D>(&before, Method::Cg, precond.clone());
        solve.solve(&b).unwrap();
        for by in [1.0, 0.25] {
            let matrix = shifted(by);
            solve.update(&matrix).unwrap();
            let updated = solve.solve(&b).unwrap();
            assert!(updated.converged(), "{precond}, {by}: {}", updated.reason());
            let fresh = prepared::<D>(&matrix, Method::Cg, precond.clone()).solve(&b).unwrap();
            assert_eq!(bits(updated.x()), bits(fresh.x()), "{precond}, {by}");
        }
        let other = Matrix::open("poisson2d:20x30").unwrap();
        let refused = solve.update(&other).unwrap_err().to_string();
        assert!(refused.contains("its pattern is not that of the prepared matrix"), "{refused}");
        assert!(solve.solve(&b).unwrap().converged(), "{precond}: a refused update changes nothing");
    }
}

fn a_failed_solve_does_not_affect_later_ones<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:20x20").unwrap();
    let b = reals(15, matrix.rows());
    for method in METHODS {
        let mut solve = prepared::<D>(&matrix, method, Preconditioner::JACOBI);
        let before = solve.solve(&b).unwrap();
        let tiny: Vec<f64> = b.iter().map(|b| b * 1e-315).collect();
        assert!(solve.solve(&tiny).is_err(), "a norm out of range must be refused");
        let nan = vec![f64::NAN; matrix.rows()];
        assert!(solve.solve(&nan).is_err());
        assert!(solve.solve(&vec![1.0; 3]).is_err(), "another length must be refused");
        assert_eq!(solve.solve(&vec![0.0; matrix.rows()]).unwrap().reason(), StopReason::ZeroRightHandSide);
        assert_eq!(bits(before.x()), bits(solve.solve(&b).unwrap().x()), "{}", method.name());
    }
}

fn the_engine_has_the_same_bits_as_its_parts<D: Host + Pick<f64>>(device: &D) {
    let matrix = Matrix::open("poisson2d:40x30").unwrap();
    let b = reals(16, matrix.rows());
    let csr = Arc::new(matrix.csr().clone());
    let a = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, "auto").unwrap();
    let a = a.build::<D, f64>(device, &csr, 0).unwrap();
    let rule = StoppingRule::any([StoppingRule::RelativeResidual(1e-9), StoppingRule::MaxIterations(12_000)]);
    let system = System::new(&csr, &b);
    let parts = Method::Cg.solve(a, None, &system, &rule, &mut []).unwrap();
    let whole = prepared::<D>(&matrix, Method::Cg, Preconditioner::NONE).solve(&b).unwrap();
    assert_eq!((parts.iterations, bits(&parts.x)), (whole.outcome().iterations, bits(whole.x())));
}

#[test]
fn a_start_near_the_answer_saves_iterations() {
    let matrix = Matrix::open("poisson2d:30x30").unwrap();
    let b = reals(17, matrix.rows());
    let mut solve = prepared::<Cpu>(&matrix, Method::Cg, Preconditioner::NONE);
    let cold = solve.solve(&b).unwrap();
    let warm = solve.solve(RightHandSide::from(&b).from_start(cold.x())).unwrap();
    assert_eq!((warm.converged(), warm.outcome().iterations), (true, 0));
    assert_eq!(bits(cold.x()), bits(warm.x()));
}

#[test]
fn a_progress_closure_may_end_the_solve() {
    let matrix = Matrix::open("poisson2d:60x60").unwrap();
    let b = reals(18, matrix.rows());
    let last = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&last);
    let mut solve = Cg::new(&matrix)
        .device("cpu")
        .on_progress(move |now| {
            seen.store(now.iteration, Ordering::Relaxed);
            now.iteration < 7
        })
        .prepare()
        .unwrap();
    for _ in 0..2 {
        let answer = solve.solve(&b).unwrap();
        assert_eq!((answer.reason(), answer.outcome().iterations), (StopReason::Interrupted, 7));
        assert_eq!(last.load(Ordering::Relaxed), 7);
        assert!(answer.outcome().residual_true < 1.0, "the best answer so far is returned");
    }
}

/// Returns the message of a solve that cannot be prepared.
fn refusal(settings: impl SystemSettings) -> String {
    settings.prepare().map(drop).unwrap_err().to_string()
}

#[test]
fn a_matrix_that_is_not_symmetric_is_refused_unless_its_symmetry_is_assumed() {
    let matrix = Matrix::from_triplets(2, 2, [(0, 0, 4.0), (0, 1, 1.0), (1, 1, 3.0)]).unwrap();
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
        let Err(error) = Solver::new(method, &matrix).device("cpu").prepare() else {
            panic!("the matrix was accepted")
        };
        assert!(
            matches!(error, Error::NotSymmetric { row: 0, col: 1, value: 1.0, mirrored: None }),
            "{error}"
        );
        assert!(
            error.to_string().contains("a(0,1) = 1 but a(1,0) is not stored (counted from 0)"),
            "{error}"
        );
    }
    let answer =
        Cg::new(&matrix).device("cpu").assume_symmetric(true).max_iters(3).solve(&[1.0, 1.0]).unwrap();
    assert!(answer.report().note.unwrap().contains("was not checked for symmetry"));
    let wide = Matrix::from_triplets(2, 3, [(0, 0, 1.0)]).unwrap();
    assert!(matches!(Cg::new(&wide).device("cpu").prepare(), Err(Error::NotSquare { .. })));
}

#[test]
fn a_program_names_settings_report_and_reason_by_the_prelude_alone() {
    use crate::prelude::{Cg, Report, StopReason};
    fn settings(a: &Matrix) -> Cg {
        Cg::new(a).device("cpu").rtol(1e-9)
    }
    let a = Matrix::open("poisson2d:20x20").unwrap();
    let answer = settings(&a).solve(&vec![1.0; a.rows()]).unwrap();
    let (report, reason): (Report, StopReason) = (answer.report(), answer.reason());
    assert_eq!(reason, StopReason::Converged);
    let told = (answer.iterations() as u64, answer.true_residual(), answer.seconds());
    assert_eq!(told, (report.iterations, report.residual_true, report.seconds_solve));
    assert!(report.iterations > 0 && report.seconds_solve > 0.0);
}

#[test]
fn a_value_of_the_matrix_that_is_not_finite_is_reported_with_its_place() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    for (upper, lower, last, place) in [
        (Some(nan), Some(nan), 3.0, "a(0,1) = NaN"),
        (Some(nan), None, 3.0, "a(0,1) = NaN"),
        (Some(1.0), Some(nan), 3.0, "a(1,0) = NaN"),
        (Some(infinite), Some(1.0), 3.0, "a(0,1) = inf"),
        (Some(1.0), Some(-infinite), 3.0, "a(1,0) = -inf"),
        (Some(1.0), Some(1.0), nan, "a(1,1) = NaN"),
        (Some(1.0), Some(1.0), infinite, "a(1,1) = inf"),
        (Some(infinite), Some(infinite), 3.0, "a(0,1) = inf"),
    ] {
        let entries = [(0, 0, Some(4.0)), (0, 1, upper), (1, 0, lower), (1, 1, Some(last))];
        let stored = entries.into_iter().filter_map(|(i, j, value)| Some((i, j, value?)));
        let matrix = Matrix::from_triplets(2, 2, stored).unwrap();
        for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
            let Err(error) = Solver::new(method, &matrix).device("cpu").prepare() else {
                panic!("the matrix was accepted")
            };
            assert!(matches!(error, Error::NotFinite { .. }), "{error}");
            assert!(error.to_string().starts_with(place), "{error}");
        }
    }
}

#[test]
fn an_indefinite_matrix_is_reported_with_a_method_that_solves_it() {
    let matrix = Matrix::from(zoo::diagonal(&[1.0, -4.0, 1.0]));
    let answer = Cg::new(&matrix).device("cpu").solve(&[1.0, 1.0, 1.0]).unwrap();
    assert!(!answer.converged());
    let report = answer.report();
    assert_eq!((report.reason.as_str(), report.hint.as_deref()), ("indefinite_matrix", Some("Minres::new")));
    let answer = Minres::new(&matrix).device("cpu").solve(&[1.0, 1.0, 1.0]).unwrap();
    assert!(answer.converged());
}

#[test]
fn arrays_of_every_width_make_the_same_matrix() {
    let (offsets, columns, values) = ([0, 2, 4], [0, 1, 0, 1], [4.0, 1.0, 1.0, 3.0]);
    let expected = Matrix::from_triplets(2, 2, [(1, 1, 3.0), (0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0)]).unwrap();
    macro_rules! same {
        ($($T:ty),*) => {$({
            let (offsets, columns) = (offsets.map(|i| i as $T), columns.map(|i| i as $T));
            let owned = Matrix::from_csr(2, 2, offsets.to_vec(), columns.to_vec(), values.to_vec()).unwrap();
            assert_eq!(owned.csr(), expected.csr(), stringify!($T));
            let borrowed = Matrix::from_csr(2, 2, &offsets[..], &columns[..], &values[..]).unwrap();
            assert_eq!(borrowed.csr(), expected.csr(), stringify!($T));
        })*};
    }
    same!(u32, u64, usize, i32, i64);
    // Unsorted rows, with duplicate entries.
    let columns = vec![1_i64, 0, 0, 1, 1];
    let values = vec![1.0, 4.0, 1.0, 1.0, 2.0];
    let sorted = Matrix::from_csr(2, 2, vec![0_i64, 2, 5], columns, values).unwrap();
    assert_eq!(sorted.csr(), expected.csr());
    let narrow =
        Matrix::from_csr(2, 2, vec![0_u32, 2, 4], vec![0_u32, 1, 0, 1], vec![4.0_f32, 1.0, 1.0, 3.0]);
    assert_eq!(narrow.unwrap().csr().get(1, 1), Some(3.0));
}

#[test]
fn long_arrays_are_converted_and_checked_to_their_ends() {
    let grid = Matrix::open("poisson2d:200x150").unwrap();
    let csr = grid.csr();
    let columns: Vec<i64> = csr.col_indices().iter().map(|&column| column.into()).collect();
    let offsets: Vec<i32> = (0..=csr.rows()).map(|row| csr.row_offsets().get(row) as i32).collect();
    let values: Vec<f64> = (0..csr.nnz()).map(|entry| csr.values().get(entry)).collect();
    let made = |columns: &[i64]| Matrix::from_csr(30_000, 30_000, &offsets, columns, &values);
    assert_eq!(made(&columns).unwrap().csr(), csr);
    for place in [0, 60_000, 100_000, csr.nnz() - 1] {
        for wrong in [-1, 1 << 33] {
            let mut columns = columns.clone();
            columns[place] = wrong;
            // The error names the first of several.
            let behind = if wrong < 0 { 1 << 40 } else { -7 };
            columns[place + 1..].iter_mut().for_each(|column| *column = behind);
            let message = made(&columns).unwrap_err().to_string();
            assert!(message.contains(&wrong.to_string()), "{message}");
        }
        let mut columns = columns.clone();
        columns[place] = 30_000;
        let message = made(&columns).unwrap_err().to_string();
        assert!(message.contains("30000") || message.contains("30,000"), "{message}");
    }
    // The columns of the last row are in another order.
    let (mut columns, mut values, last) = (columns, values.clone(), csr.nnz() - 1);
    columns.swap(last, last - 1);
    values.swap(last, last - 1);
    let sorted = Matrix::from_csr(30_000, 30_000, &offsets, &columns, &values).unwrap();
    assert_eq!(sorted.csr(), csr);
}

#[test]
fn invalid_arrays_are_refused() {
    let refused = |offsets: Vec<i64>, columns: Vec<i64>| {
        let values = vec![1.0; columns.len()];
        Matrix::from_csr(2, 2, offsets, columns, values).unwrap_err().to_string()
    };
    for (message, part) in [
        (refused(vec![0, 1, 2], vec![0, -1]), "a column index is -1, and must not be negative"),
        (refused(vec![0, 1, 2], vec![0, 5]), "column 5"),
        (refused(vec![0, 2, 1], vec![1, 0]), "row"),
        (refused(vec![0, 2], vec![1, 0]), "2 row offsets for 2 rows"),
        (refused(vec![0, 2, 9], vec![1, 0]), "9"),
        // In unsorted rows too, every entry must belong to a row.
        (refused(vec![1, 3, 4], vec![0, 1, 0, 1]), "row"),
        (
            Matrix::from_csr(usize::MAX, 1, Vec::<u32>::new(), Vec::<u32>::new(), Vec::<f64>::new())
                .unwrap_err()
                .to_string(),
            "row",
        ),
        (refused(vec![0, 1, 2], vec![0, 1 << 40]), "a column index is 1099511627776"),
        (Matrix::from_triplets(2, 2, [(2, 0, 1.0)]).unwrap_err().to_string(), "row"),
        (Matrix::open("no such thing").unwrap_err().to_string(), "no such thing"),
    ] {
        assert!(message.contains(part), "{message}: {part}");
    }
}

/// Multiplies by the Laplacian of a chain.
fn laplacian(x: &[f64], y: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        let left = if i == 0 { 0.0 } else { x[i - 1] };
        let right = if i + 1 == n { 0.0 } else { x[i + 1] };
        y[i] = 2.0 * x[i] - left - right;
    }
}

#[test]
fn a_system_is_solved_with_a_matrix_known_only_by_its_products() {
    const N: usize = 120;
    let b = reals(19, N);
    let matrix = Matrix::open(format!("banded:n={N},half=1")).unwrap();
    assert_eq!(matrix.rows(), N);
    for method in [Method::Cg, Method::Minres] {
        let answer = Solver::with_product(method, (N, laplacian)).rtol(1e-10).solve(&b).unwrap();
        assert!(answer.converged(), "{}", answer.reason());
        let mut back = vec![0.0; N];
        laplacian(answer.x(), &mut back);
        assert!(back.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-8));
        let report = answer.report();
        assert_eq!((report.backend.as_str(), report.percent_of_limit), ("own", None));
    }
    let products = || Cg::with_product((N, laplacian));
    assert!(refusal(products().precond("jacobi")).contains("it is made of entries"));
    assert!(refusal(products().precision(Precision::F32)).contains("run on the CPU in double precision"));
    assert!(refusal(products().device("cuda")).contains("run on the CPU in double precision"));
    let other = |_: &[f64], _: &mut [f64]| ();
    assert!(refusal(products().custom_precond((3, other))).contains("rows of the preconditioner"));
}

#[test]
fn a_product_that_is_not_symmetric_or_not_definite_ends_with_its_evidence() {
    let turn = |x: &[f64], y: &mut [f64]| (y[0], y[1]) = (-x[0], -x[1]);
    let answer = Cg::with_product((2, turn)).solve(&[1.0, 2.0]).unwrap();
    assert!(
        matches!(answer.reason(), StopReason::IndefiniteMatrix { iteration: 1, .. }),
        "{}",
        answer.reason()
    );
    let nan = |_: &[f64], y: &mut [f64]| y.fill(f64::NAN);
    let answer = Cg::with_product((2, nan)).solve(&[1.0, 2.0]).unwrap();
    assert!(matches!(answer.reason(), StopReason::NotFinite { .. }), "{}", answer.reason());
}

#[test]
fn a_preconditioner_of_the_caller_is_used_like_a_built_in_one() {
    let matrix = Matrix::open("poisson2d:30x30").unwrap();
    let b = reals(20, matrix.rows());
    let diagonal = matrix.csr().diagonal();
    let scale = move |r: &[f64], z: &mut [f64]| {
        z.iter_mut().zip(r).zip(&diagonal).for_each(|((z, r), d)| *z = r / d);
    };
    let ours = Cg::new(&matrix).device("cpu").precond("jacobi").solve(&b).unwrap();
    let own = Cg::new(&matrix).custom_precond((matrix.rows(), scale)).solve(&b).unwrap();
    assert!(own.converged());
    assert!(own.outcome().iterations.abs_diff(ours.outcome().iterations) <= 1);
    assert_eq!(own.report().preconditioner, "own");
    let negative = |r: &[f64], z: &mut [f64]| z.iter_mut().zip(r).for_each(|(z, r)| *z = -r);
    let answer = Cg::new(&matrix).custom_precond((matrix.rows(), negative)).solve(&b).unwrap();
    assert!(matches!(answer.reason(), StopReason::IndefinitePreconditioner { .. }));
}

#[test]
fn invalid_settings_are_refused_with_the_names_of_the_library() {
    let matrix = Matrix::open("poisson2d:4x4").unwrap();
    let burst = Cg::new(&matrix).device("cuda").backend("burst").precond("chebyshev");
    for (message, part) in [
        (refusal(burst), "backend 'burst' on cuda does not support preconditioner chebyshev"),
        (refusal(Cg::new(&matrix).rtol(2.0)), "rtol 2: it must lie between 0 and 1"),
        (refusal(Cg::new(&matrix).atol(-1.0)), "atol -1: it must be a positive number"),
        (refusal(Cg::new(&matrix).device("tpu")), "device tpu: the devices are auto, cpu, cuda and cuda:N"),
        (refusal(Cg::new(&matrix).backend("fastest")), "no backend 'fastest'"),
        (refusal(Cg::new(&matrix).threads(0).device("cpu")), "threads 0: it must lie between 1 and 1024"),
        (refusal(Cg::new(&matrix).precond("magic")), "precond magic: the preconditioners are none"),
    ] {
        assert!(message.contains(part) && !message.contains("--"), "{message}");
    }
}

#[test]
fn a_report_is_printed_in_lines_and_stored_with_its_history() {
    let matrix = Matrix::open("poisson2d:20x20").unwrap();
    let answer = Cg::new(&matrix).device("cpu").threads(1).solve(&vec![1.0; 400]).unwrap();
    let text = answer.report().to_string();
    assert!(text.starts_with("result    converged; ") && text.contains("on poisson2d:20x20"), "{text}");
    let history = answer.history();
    assert_eq!(history.residuals.len(), answer.outcome().iterations + 1);
    assert_eq!(history.report, answer.report());
}

#[test]
fn a_solve_inside_another_one_needs_a_separate_device() {
    let matrix = Matrix::open("poisson2d:20x20").unwrap();
    let n = matrix.rows();
    let b = reals(21, n);
    // An inner solve is the preconditioner; the outer solve has a separate device.
    let inner = Mutex::new(prepared::<Cpu>(&matrix, Method::Cg, Preconditioner::JACOBI));
    let inverse = move |r: &[f64], z: &mut [f64]| {
        inner.lock().unwrap().solve_into(r, z).unwrap();
    };
    let answer = Cg::new(&matrix).custom_precond((n, inverse)).solve(&b).unwrap();
    assert!(answer.converged() && answer.outcome().iterations <= 3, "{}", answer.reason());
    // An observer that solves on the device of the observed solve is refused instead of waiting forever.
    let inside = Arc::new(Mutex::new(None));
    let (seen, again) =
        (Arc::clone(&inside), Mutex::new(prepared::<Cpu>(&matrix, Method::Cg, Preconditioner::NONE)));
    let (c, m) = (b.clone(), matrix.clone());
    let outer = Cg::new(&matrix).device("cpu").max_iters(2).on_progress(move |_| {
        let error = again.lock().unwrap().solve(&c).map(drop).unwrap_err().to_string();
        let prepared = Cg::new(&m).device("cpu").prepare().map(drop).unwrap_err().to_string();
        *seen.lock().unwrap() = Some((error, prepared));
        true
    });
    outer.solve(&b).unwrap();
    let (error, prepared) = inside.lock().unwrap().take().unwrap();
    assert!(
        error.contains("a solve on this thread has it already") && error == prepared,
        "{error}; {prepared}"
    );
}

#[test]
fn the_verdict_of_a_product_allows_for_its_rounding() {
    const N: usize = 10_000;
    let b = vec![1.0; N];
    let stored = Matrix::open(format!("banded:n={N},half=1")).unwrap();
    assert_eq!(stored.rows(), N);
    let answer = Cg::with_product((N, laplacian)).rtol(1e-14).max_iters(60_000).solve(&b).unwrap();
    // x reaches 1e7, and the entries of A x are rounded by about 1e-9.
    assert!(!answer.converged(), "{}", answer.outcome().residual_at_most);
}

#[test]
fn a_product_that_reads_its_output_is_detected() {
    let adds = |x: &[f64], y: &mut [f64]| y.iter_mut().zip(x).for_each(|(y, x)| *y += 2.0 * x);
    let answer = Cg::with_product((50, adds)).solve(&[1.0; 50]).unwrap();
    assert!(matches!(answer.reason(), StopReason::NotFinite { .. }), "{}", answer.reason());
}

#[cfg(all(feature = "nalgebra", feature = "sprs"))]
#[test]
fn matrices_of_other_libraries_are_accepted() {
    let ours = Matrix::open("poisson2d:6x5").unwrap();
    let sprs: sprs::CsMat<f64> = ours.csr().try_into().unwrap();
    let nalgebra: nalgebra_sparse::CsrMatrix<f64> = ours.csr().try_into().unwrap();
    assert_eq!(Matrix::try_from(&sprs).unwrap().csr(), ours.csr());
    assert_eq!(Matrix::try_from(&nalgebra).unwrap().csr(), ours.csr());
}

#[test]
fn an_open_device_and_another_device_name_are_refused_together() {
    let matrix = Matrix::open("poisson2d:9x9").unwrap();
    let cpu = DeviceHandle::open(DeviceName::Cpu(Some(1))).unwrap();
    let error = Cg::new(&matrix).on(&cpu).device("cuda").prepare().unwrap_err().to_string();
    assert!(error.contains("device cuda: the solve has the open device cpu already"), "{error}");
    let answer = Cg::new(&matrix).on(&cpu).device("cpu").solve(&[1.0; 81]).unwrap();
    assert_eq!(answer.report().device, "cpu (1 thread)");
}

#[test]
fn a_refused_limit_changes_nothing() {
    let matrix = Matrix::open("poisson2d:9x9").unwrap();
    let mut solve = prepared::<Cpu>(&matrix, Method::Cg, Preconditioner::NONE);
    let before = solve.stopping().clone();
    assert!(solve.set_stopping(Stopping { rtol: Some(2.0), ..Stopping::default() }).is_err());
    assert_eq!(solve.stopping().rtol, before.rtol);
    solve.set_stopping(Stopping { max_iters: Some(1), ..before }).unwrap();
    assert_eq!(solve.solve(&reals(22, 81)).unwrap().reason(), StopReason::IterationLimit { limit: 1 });
}

#[test]
fn a_settled_request_replaces_a_preconditioner_of_an_unknown_name() {
    let a = Matrix::open("poisson2d:5x5").unwrap();
    let b = vec![1.0; a.rows()];
    let request = Request { device: "cpu".to_owned(), ..Request::default() };
    let settled = request.settle().unwrap();
    let unknown = || Cg::new(&a).precond("jacoby");
    assert!(unknown().solve(&b).unwrap_err().to_string().contains("jacoby"));
    assert!(unknown().settled(request, settled).solve(&b).unwrap().converged());
}
