//! Block conjugate gradients: the answers of separate solves in fewer iterations, whatever the rank
//! of the right-hand sides.

use crate::backend::Host;
use crate::common::solves::{System, at_most, to};
use crate::common::vectors::{bits, reals};
use crate::common::{on_each_device, tolerance, zoo};
use crate::precond::Preconditioner;
use crate::prelude::*;
use crate::scalar::Precision;
use crate::solve::Method;
use crate::stop::StopReason;

on_each_device! {
    each_column_converges_to_its_answer_in_fewer_iterations_than_alone,
    one_column_takes_the_iterations_of_the_classic_form,
    zero_equal_and_dependent_right_hand_sides_lower_the_rank_only,
    right_hand_sides_of_very_different_size_converge,
    right_hand_sides_that_are_nearly_equal_converge,
    a_column_with_nan_does_not_touch_the_others,
    restarts_reach_a_tight_tolerance,
    single_precision_is_refined_to_the_tolerance_of_double,
    preconditioners_keep_their_effect,
    dependent_right_hand_sides_do_not_make_a_preconditioner_indefinite,
    an_indefinite_matrix_is_detected,
    a_curvature_that_is_zero_with_rounding_is_a_breakdown,
    an_indefinite_preconditioner_is_detected,
    a_limit_of_iterations_is_kept_exactly,
    a_second_solve_has_the_same_bits,
}

fn interleaved(columns: &[Vec<f64>]) -> Vec<f64> {
    (0..columns[0].len()).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
}

/// Makes the right-hand sides of random answers.
fn random(matrix: &Matrix, k: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let answers: Vec<_> = (0..k).map(|c| reals(200 + c as u64, matrix.rows())).collect();
    let sides = answers.iter().map(|x| matrix.csr().multiply_reference(x)).collect();
    (answers, sides)
}

fn settings<D: Host>(matrix: &Matrix) -> Cg {
    Cg::block(matrix).device(D::KIND).rtol(tolerance::RTOL)
}

fn solve<D: Host>(matrix: &Matrix, sides: &[Vec<f64>]) -> Answers {
    settings::<D>(matrix).solve_many(RightHandSides::new(&interleaved(sides), sides.len())).unwrap()
}

/// Checks the residual of each column on the host.
fn assert_solved(matrix: &Matrix, sides: &[Vec<f64>], found: &Answers, rtol: f64) {
    for (c, b) in sides.iter().enumerate() {
        let ax = matrix.csr().multiply_reference(&found.column(c).unwrap());
        let square = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
        let residual = square(&mut b.iter().zip(&ax).map(|(b, ax)| b - ax));
        let most = 1.001 * rtol * square(&mut b.iter().copied());
        assert!(residual <= most, "column {c}: {residual:e} > {most:e}");
    }
    assert!(found.converged());
}

fn iterations(found: &Answers) -> Vec<usize> {
    found.outcomes().map(|outcome| outcome.iterations).collect()
}

fn each_column_converges_to_its_answer_in_fewer_iterations_than_alone<D: Host>(_: &D) {
    for (what, counts) in [("poisson2d:40x41", &[2, 3, 8, 16, 33][..]), ("hex27:6x5x6,dof=3", &[8])] {
        let matrix = Matrix::open(what).unwrap();
        for &k in counts {
            let (answers, sides) = random(&matrix, k);
            let found = solve::<D>(&matrix, &sides);
            assert_solved(&matrix, &sides, &found, tolerance::RTOL);
            let b = interleaved(&sides);
            let alone = Cg::new(&matrix).device(D::KIND).rtol(tolerance::RTOL);
            let alone = alone.solve_many(RightHandSides::new(&b, k)).unwrap();
            for (c, x) in answers.iter().enumerate() {
                let mine = found.column(c).unwrap();
                let off = mine.iter().zip(x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off <= tolerance::X, "{what}, column {c} of {k}: {off:e}");
                assert_eq!(found.residuals(c).unwrap().len(), iterations(&found)[c] + 1);
            }
            let (mine, others) = (iterations(&found), iterations(&alone));
            assert!(mine.iter().max() < others.iter().min(), "{what}, {k}: {mine:?}, {others:?}");
            if k >= 8 {
                assert!(
                    4 * mine.iter().max().unwrap() < 3 * others.iter().max().unwrap(),
                    "{what}, {k}: {mine:?}"
                );
            }
            assert_eq!(found.report().block_rank, Some(k as u64));
        }
    }
}

fn one_column_takes_the_iterations_of_the_classic_form<D: Host>(device: &D) {
    for what in ["poisson2d:64x64", "hex27:6x6x6,dof=3", "poisson2d:1x1"] {
        let system = System::random(zoo::generated(what));
        for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
            let solve = |method| system.solve_by(device, method, precond.clone(), &to(tolerance::RTOL));
            let (classic, block) = (solve(Method::Cg), solve(Method::BlockCg));
            assert_eq!(block.reason, StopReason::Converged, "{what}: {block:?}");
            let off = block.iterations.abs_diff(classic.iterations);
            assert!(off <= tolerance::iterations(classic.iterations), "{what}: {off}");
            if let (Some(mine), Some(other)) = (block.spectrum, classic.spectrum) {
                assert!((mine.largest / other.largest - 1.0).abs() < 1e-3, "{mine:?}, {other:?}");
            }
        }
    }
}

fn zero_equal_and_dependent_right_hand_sides_lower_the_rank_only<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:30x31").unwrap();
    let (_, some) = random(&matrix, 3);
    let zero = vec![0.0; matrix.rows()];
    let sum: Vec<f64> = some[0].iter().zip(&some[1]).map(|(a, b)| a - 3.0 * b).collect();
    let scaled: Vec<f64> = some[2].iter().map(|b| -0.3 * b).collect();
    let sides = [zero, some[0].clone(), sum, some[1].clone(), some[0].clone(), scaled, some[2].clone()];
    let found = solve::<D>(&matrix, &sides);
    assert_solved(&matrix, &sides, &found, tolerance::RTOL);
    let report = found.report();
    assert_eq!((report.block_rank, report.restarts), (Some(3), 0));
    let reasons: Vec<_> = found.outcomes().map(|outcome| outcome.reason).collect();
    assert_eq!(reasons[0], StopReason::ZeroRightHandSide);
    assert!(found.column(0).unwrap().iter().all(|x| *x == 0.0));
    let (few, all) = (iterations(&solve::<D>(&matrix, &some)), iterations(&found));
    assert!(few[0].abs_diff(all[1]) <= tolerance::iterations(few[0]), "{few:?}, {all:?}");
    assert!(report.to_string().contains("rank 3"), "{report}");
}

fn right_hand_sides_of_very_different_size_converge<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:30x31").unwrap();
    let (_, mut sides) = random(&matrix, 5);
    for (side, scale) in sides.iter_mut().zip([1e-40, 1.0, 1e12, 1e-9, 1e60]) {
        side.iter_mut().for_each(|b| *b *= scale);
    }
    // One right-hand side has a single entry.
    sides[1].fill(0.0);
    sides[1][17] = 1.0;
    assert_solved(&matrix, &sides, &solve::<D>(&matrix, &sides), tolerance::RTOL);
}

fn right_hand_sides_that_are_nearly_equal_converge<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:30x31").unwrap();
    let (_, sides) = random(&matrix, 2);
    for distance in [1e-3, 1e-6, 1e-8, 1e-10, 1e-13] {
        let near = |by: f64| sides[0].iter().zip(&sides[1]).map(|(a, b)| a + by * b).collect::<Vec<f64>>();
        let sides = [sides[0].clone(), near(distance), near(-2.0 * distance)];
        let found = solve::<D>(&matrix, &sides);
        assert_solved(&matrix, &sides, &found, tolerance::RTOL);
        assert_eq!(found.report().block_rank, Some(2), "{distance:e}");
        assert!(found.outcomes().all(|outcome| outcome.restarts == 0), "{distance:e}");
    }
}

fn a_column_with_nan_does_not_touch_the_others<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:30x31").unwrap();
    let (_, mut sides) = random(&matrix, 4);
    let others = [sides[0].clone(), sides[2].clone(), sides[3].clone()];
    sides[1][5] = f64::NAN;
    let (found, without) = (solve::<D>(&matrix, &sides), solve::<D>(&matrix, &others));
    let reasons: Vec<_> = found.outcomes().map(|outcome| outcome.reason).collect();
    assert!(matches!(reasons[1], StopReason::NotSolved { row: Some(5), .. }), "{}", reasons[1]);
    assert!(found.column(1).unwrap().iter().all(|x| *x == 0.0));
    for (with, c) in [(0, 0), (2, 1), (3, 2)] {
        assert_eq!(reasons[with], StopReason::Converged);
        let (mine, other) = (iterations(&found)[with], iterations(&without)[c]);
        assert!(mine.abs_diff(other) <= tolerance::iterations(other), "{mine} and {other}");
    }
    assert_eq!(found.report().block_rank, Some(3));
}

fn restarts_reach_a_tight_tolerance<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:60x60").unwrap();
    let (_, sides) = random(&matrix, 8);
    let b = interleaved(&sides);
    let found = settings::<D>(&matrix).rtol(1e-12).solve_many(RightHandSides::new(&b, 8)).unwrap();
    assert_solved(&matrix, &sides, &found, 1e-12);
}

fn single_precision_is_refined_to_the_tolerance_of_double<D: Host>(_: &D) {
    for what in ["poisson2d:30x31", "hex27:5x4x5,dof=3"] {
        let matrix = Matrix::open(what).unwrap();
        let (_, sides) = random(&matrix, 6);
        let b = interleaved(&sides);
        for precision in [Precision::F32, Precision::Mixed] {
            let found = settings::<D>(&matrix).rtol(1e-10).precision(precision);
            let found = found.solve_many(RightHandSides::new(&b, 6)).unwrap();
            assert_solved(&matrix, &sides, &found, 1e-10);
            let restarts = found.outcomes().all(|outcome| outcome.restarts > 0);
            assert!(restarts || precision == Precision::Mixed, "{what}");
        }
    }
}

fn preconditioners_keep_their_effect<D: Host>(_: &D) {
    let matrix = Matrix::open("hex27:6x5x6,dof=3").unwrap();
    let (_, mut sides) = random(&matrix, 8);
    sides[3] = sides[0].iter().zip(&sides[1]).map(|(a, b)| a + b).collect();
    let b = interleaved(&sides);
    let all = RightHandSides::new(&b, 8);
    let plain = settings::<D>(&matrix).solve_many(all).unwrap();
    // ic0 runs on the CPU only.
    let all_devices = ["jacobi", "block-jacobi:block=3", "chebyshev:degree=3"];
    for precond in all_devices.into_iter().chain((D::KIND == "cpu").then_some("ic0")) {
        let found = settings::<D>(&matrix).precond(precond).solve_many(all).unwrap();
        assert_solved(&matrix, &sides, &found, tolerance::RTOL);
        assert_eq!(found.report().block_rank, Some(7), "{precond}");
        let (mine, others) = (iterations(&found), iterations(&plain));
        assert!(mine.iter().max() <= others.iter().max(), "{precond}: {mine:?}, {others:?}");
        let alone = Cg::new(&matrix).device(D::KIND).rtol(tolerance::RTOL).precond(precond);
        let alone = iterations(&alone.solve_many(all).unwrap());
        assert!(mine.iter().max() <= alone.iter().min(), "{precond}: {mine:?}, {alone:?}");
    }
}

/// What remains of a dependent right-hand side is rounding alone, and its product with M may
/// have either sign.
fn dependent_right_hand_sides_do_not_make_a_preconditioner_indefinite<D: Host>(_: &D) {
    for (what, k, rank) in [("poisson2d:2x2", 8, 4), ("poisson2d:6x6", 37, 36), ("poisson2d:30x30", 60, 15)] {
        let matrix = Matrix::open(what).unwrap();
        let (_, mut sides) = random(&matrix, k);
        for c in rank..k {
            let sum = |row: usize| sides[c % rank][row] - 0.75 * sides[(7 * c + 1) % rank][row];
            sides[c] = (0..matrix.rows()).map(sum).collect();
        }
        let b = interleaved(&sides);
        for precision in [Precision::F64, Precision::F32] {
            for precond in ["chebyshev", "jacobi", "block-jacobi:block=2"] {
                let rtol = if precision == Precision::F64 { 1e-9 } else { 1e-5 };
                let found = settings::<D>(&matrix).precond(precond).precision(precision).rtol(rtol);
                let found = found.columns(k).solve_many(RightHandSides::new(&b, k)).unwrap();
                assert_solved(&matrix, &sides, &found, rtol);
            }
        }
    }
}

fn an_indefinite_matrix_is_detected<D: Host>(_: &D) {
    let values: Vec<f64> = (0..600).map(|i| if i % 7 == 0 { -3.0 } else { 1.0 + (i % 5) as f64 }).collect();
    let matrix = Matrix::from(zoo::diagonal(&values));
    for k in [1, 4, 33] {
        let sides: Vec<_> = (0..k).map(|c| reals(70 + c as u64, 600)).collect();
        let found = solve::<D>(&matrix, &sides);
        for outcome in found.outcomes() {
            match outcome.reason {
                StopReason::IndefiniteMatrix { iteration, curvature } => {
                    assert!(curvature < 0.0 && iteration == outcome.iterations + 1, "{}", outcome.reason);
                }
                other => panic!("{k}: {other}"),
            }
        }
    }
}

fn a_curvature_that_is_zero_with_rounding_is_a_breakdown<D: Host>(_: &D) {
    let ones = [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0)];
    let matrix = Matrix::from_triplets(2, 2, ones).unwrap();
    let found = solve::<D>(&matrix, &[vec![1.0, 0.0], vec![0.0, 1.0]]);
    for outcome in found.outcomes() {
        assert_eq!(outcome.reason, StopReason::Breakdown { iteration: 1 });
    }
}

fn an_indefinite_preconditioner_is_detected<D: Host>(device: &D) {
    use crate::common::solves::operator;
    let system = System { matrix: zoo::diagonal(&[2.0, 3.0, 4.0, 5.0]), b: vec![1.0; 4] };
    let a = operator::<D, f64>(device, &system.matrix);
    let m = operator::<D, f64>(device, &zoo::diagonal(&[1.0, -5.0, 1.0, 1.0]));
    let outcome = Method::BlockCg.solve(a, Some(m), &system.given(), &to(tolerance::RTOL), &mut []).unwrap();
    match outcome.reason {
        StopReason::IndefinitePreconditioner { iteration: 0, product } => {
            assert!((product + 2.0).abs() < 1e-12)
        }
        other => panic!("{other}"),
    }
}

fn a_limit_of_iterations_is_kept_exactly<D: Host>(device: &D) {
    let system = System::generated("poisson2d:40x40");
    for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
        for limit in [0, 1, 8, 33] {
            let outcome = system.solve_by(device, Method::BlockCg, precond.clone(), &at_most(limit));
            assert_eq!(outcome.reason, StopReason::IterationLimit { limit });
            assert_eq!(outcome.iterations, limit);
        }
    }
}

fn a_second_solve_has_the_same_bits<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:50x50").unwrap();
    let (_, sides) = random(&matrix, 9);
    let b = interleaved(&sides);
    let solve = || settings::<D>(&matrix).solve_many(RightHandSides::new(&b, 9));
    let (first, again) = (solve().unwrap(), solve().unwrap());
    assert!(bits(first.x()) == bits(again.x()) && iterations(&first) == iterations(&again));
    let mut prepared = settings::<D>(&matrix).columns(9).prepare().unwrap();
    let one = prepared.solve_many(RightHandSides::new(&b, 9)).unwrap();
    let two = prepared.solve_many(RightHandSides::new(&b, 9)).unwrap();
    assert!(bits(one.x()) == bits(two.x()));
}

#[test]
fn every_number_of_threads_and_every_backend_of_several_columns_serves_a_block() {
    let matrix = Matrix::open("poisson2d:50x50").unwrap();
    let (_, sides) = random(&matrix, 9);
    let b = interleaved(&sides);
    for backend in ["rows", "serial", "sell"] {
        let solve = |threads: usize| {
            let solver =
                Cg::block(&matrix).device("cpu").threads(threads).backend(backend).rtol(tolerance::RTOL);
            solver.solve_many(RightHandSides::new(&b, 9)).unwrap()
        };
        let (one, three) = (solve(1), solve(3));
        assert_solved(&matrix, &sides, &one, tolerance::RTOL);
        assert!(bits(one.x()) == bits(three.x()), "{backend}");
    }
}

#[test]
fn more_right_hand_sides_than_a_block_takes_are_refused() {
    let matrix = Matrix::open("poisson2d:4x4").unwrap();
    let b = vec![1.0; 16 * 257];
    let refused = Cg::block(&matrix).device("cpu").solve_many(RightHandSides::new(&b, 257));
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("257") && message.contains("at most 256") && message.contains("classic"),
        "{message}"
    );
}
