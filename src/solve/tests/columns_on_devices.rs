//! Several right-hand sides and several personalisations on each device, compared with solves
//! of one column there.
//!
//! A column among others may differ from a single solve in rounding: a product adds in another
//! order on a GPU.

use crate::backend::Host;
use crate::common::on_each_device;
use crate::common::tolerance;
use crate::common::vectors::{bits, reals};
use crate::common::zoo;
use crate::engine::Solver;
use crate::prelude::*;
use crate::solve::Method;
use crate::solve::pagerank::Dangling;
use crate::stop::StopReason;

on_each_device! {
    each_of_several_columns_converges_to_the_answer_of_a_single_solve,
    columns_with_a_preconditioner_converge_to_the_answers_of_single_solves,
    an_indefinite_system_of_several_columns_converges,
    a_second_solve_of_several_columns_has_the_same_bits,
    a_solve_prepared_for_one_column_also_solves_several_and_follows_an_update,
    a_column_that_ends_early_keeps_its_answer_while_others_continue,
    columns_that_are_done_leave_and_all_have_their_answers,
    each_of_several_personalisations_has_the_ranks_of_a_single_run,
    a_ranking_prepared_for_one_personalisation_also_ranks_several,
}

const COUNTS: [usize; 7] = [1, 2, 3, 5, 32, 33, 100];

fn column(all: &[f64], k: usize, column: usize) -> Vec<f64> {
    all.iter().skip(column).step_by(k).copied().collect()
}

/// Makes columns of k answers, and the right-hand sides for them, n x k, row-major.
fn system(matrix: &Matrix, k: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let csr = matrix.csr();
    let answers: Vec<_> = (0..k).map(|c| reals(100 + c as u64, matrix.rows())).collect();
    let sides: Vec<_> = answers.iter().map(|x| csr.multiply_reference(x)).collect();
    let b = (0..matrix.rows()).flat_map(|row| sides.iter().map(move |side| side[row])).collect();
    (answers, b)
}

fn near(got: &[f64], want: &[f64], what: &str) {
    let most = got.iter().zip(want).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(most <= tolerance::X, "{what}: {most:e}");
}

fn compare<D: Host>(what: &str, method: Method, precond: Preconditioner, counts: &[usize]) {
    let matrix = Matrix::open(what).unwrap();
    let solver = || {
        let solver = Solver::new(method, &matrix).device(D::KIND).preconditioner(precond.clone());
        solver.rtol(tolerance::RTOL)
    };
    let mut single = solver().prepare().unwrap();
    for &k in counts {
        let (answers, b) = system(&matrix, k);
        let found = solver().solve_many(RightHandSides::new(&b, k)).unwrap();
        assert!(found.converged() && found.count() == k);
        // Single solves of all of 100 columns take long on a GPU.
        for c in (0..k).filter(|c| k < 10 || c % 7 == 0 || c + 1 == k) {
            let what = format!("{what}, {}, {precond}, column {c} of {k}", method.name());
            let x = found.column(c).unwrap();
            near(&x, &answers[c], &what);
            let alone = single.solve(&column(&b, k, c)).unwrap();
            near(&x, alone.x(), &what);
            let (mine, other) = (found.outcomes().nth(c).unwrap().iterations, alone.outcome().iterations);
            assert!(mine.abs_diff(other) <= tolerance::iterations(other), "{what}: {mine} and {other}");
        }
    }
}

fn each_of_several_columns_converges_to_the_answer_of_a_single_solve<D: Host>(_: &D) {
    for method in [Method::Cg, Method::Minres] {
        compare::<D>("poisson2d:30x31", method, Preconditioner::NONE, &COUNTS);
    }
    compare::<D>("poisson2d:30x31", Method::PipelinedCg, Preconditioner::NONE, &[3, 32]);
}

fn columns_with_a_preconditioner_converge_to_the_answers_of_single_solves<D: Host>(_: &D) {
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
        for precond in ["jacobi", "block-jacobi", "chebyshev"] {
            compare::<D>("hex27:6x5x4,dof=3", method, precond.parse().unwrap(), &[2, 33]);
        }
    }
    compare::<D>("poisson2d:20x21", Method::Cg, "chebyshev:degree=3".parse().unwrap(), &[1, 3, 32]);
}

fn an_indefinite_system_of_several_columns_converges<D: Host>(_: &D) {
    let n = 400;
    let diagonal: Vec<f64> =
        (0..n).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 } * (1.0 + (i % 19) as f64)).collect();
    let matrix = Matrix::from(zoo::diagonal(&diagonal));
    for k in [3, 33] {
        let (answers, b) = system(&matrix, k);
        let found =
            Minres::new(&matrix).device(D::KIND).rtol(tolerance::RTOL).solve_many(RightHandSides::new(&b, k));
        let found = found.unwrap();
        assert!(found.converged());
        (0..k).for_each(|c| near(&found.column(c).unwrap(), &answers[c], &format!("column {c} of {k}")));
    }
}

fn a_second_solve_of_several_columns_has_the_same_bits<D: Host>(_: &D) {
    let matrix = Matrix::open("hex27:9x8x7,dof=3").unwrap();
    for (method, k) in [(Method::Cg, 5), (Method::Cg, 32), (Method::Minres, 33)] {
        let (_, b) = system(&matrix, k);
        let solver = || Solver::new(method, &matrix).device(D::KIND).rtol(tolerance::RTOL);
        let mut prepared = solver().columns(k).prepare().unwrap();
        let first = prepared.solve_many(RightHandSides::new(&b, k)).unwrap();
        for found in
            [prepared.solve_many(RightHandSides::new(&b, k)), solver().solve_many(RightHandSides::new(&b, k))]
        {
            let found = found.unwrap();
            assert!(bits(found.x()) == bits(first.x()), "{} of {k}", method.name());
            assert!((0..k).all(|c| found.residuals(c) == first.residuals(c)), "{} of {k}", method.name());
        }
    }
}

/// On a GPU `auto` chooses a backend for one vector here, and another for several.
fn a_solve_prepared_for_one_column_also_solves_several_and_follows_an_update<D: Host>(_: &D) {
    let matrix = Matrix::open("hex27:9x8x7,dof=3").unwrap();
    let values = matrix.csr().values();
    let twice: Vec<f64> = (0..matrix.nnz()).map(|j| 2.0 * values.get(j)).collect();
    let twice = matrix.with_values(&twice).unwrap();
    let mut prepared = Cg::new(&matrix).device(D::KIND).rtol(tolerance::RTOL).prepare().unwrap();
    let (answers, b) = system(&matrix, 3);
    let single = column(&b, 3, 1);
    for scale in [1.0, 0.5] {
        let scaled = |c: usize| -> Vec<f64> { answers[c].iter().map(|x| scale * x).collect() };
        near(prepared.solve(&single).unwrap().x(), &scaled(1), "one column");
        let found = prepared.solve_many(RightHandSides::new(&b, 3)).unwrap();
        assert!(found.converged());
        (0..3).for_each(|c| near(&found.column(c).unwrap(), &scaled(c), &format!("column {c} of 3")));
        near(prepared.solve(&single).unwrap().x(), &scaled(1), "one column, after several");
        prepared.update(&twice).unwrap();
    }
}

fn a_column_that_ends_early_keeps_its_answer_while_others_continue<D: Host>(_: &D) {
    let matrix = Matrix::open("poisson2d:30x31").unwrap();
    let n = matrix.rows();
    for k in [3, 33] {
        let (answers, mut b) = system(&matrix, k);
        // One column is zero, and one has NaN: both are done before the first iteration.
        (0..n).for_each(|row| b[row * k + 1] = 0.0);
        b[5 * k + 2] = f64::NAN;
        let found = Cg::new(&matrix).device(D::KIND).rtol(tolerance::RTOL);
        let found = found.solve_many(RightHandSides::new(&b, k)).unwrap();
        let reasons: Vec<_> = found.outcomes().map(|outcome| outcome.reason).collect();
        assert_eq!(reasons[1], StopReason::ZeroRightHandSide);
        assert!(matches!(reasons[2], StopReason::NotSolved { row: Some(5), .. }), "{}", reasons[2]);
        for c in [1, 2] {
            assert!(found.column(c).unwrap().iter().all(|x| *x == 0.0), "column {c} of {k}");
        }
        for c in (0..k).filter(|c| ![1, 2].contains(c)) {
            assert_eq!(reasons[c], StopReason::Converged);
            near(&found.column(c).unwrap(), &answers[c], &format!("column {c} of {k}"));
        }
    }
}

/// Right-hand sides that are eigenvectors are solved in one iteration; the others take more than a hundred.
fn columns_that_are_done_leave_and_all_have_their_answers<D: Host>(_: &D) {
    let (width, height) = (60, 61);
    let matrix = Matrix::open(format!("poisson2d:{width}x{height}")).unwrap();
    let wave = |i: usize, of: usize| ((i + 1) as f64 * std::f64::consts::PI / (of + 1) as f64).sin();
    let eigenvector: Vec<f64> =
        (0..width * height).map(|at| wave(at % width, width) * wave(at / width, height)).collect();
    for (method, precond) in [
        (Method::Cg, Preconditioner::NONE),
        (Method::Cg, Preconditioner::JACOBI),
        (Method::Minres, Preconditioner::NONE),
    ] {
        for k in [4, 33] {
            let (mut answers, mut b) = system(&matrix, k);
            // Two columns in the middle take long.
            let easy = |c: &usize| !(k / 2..k / 2 + 2).contains(c);
            let image = matrix.csr().multiply_reference(&eigenvector);
            for c in (0..k).filter(easy) {
                answers[c].clone_from(&eigenvector);
                image.iter().enumerate().for_each(|(row, image)| b[row * k + c] = *image);
            }
            let solver = || {
                Solver::new(method, &matrix)
                    .device(D::KIND)
                    .preconditioner(precond.clone())
                    .rtol(tolerance::RTOL)
            };
            let mut prepared = solver().columns(k).prepare().unwrap();
            let found = prepared.solve_many(RightHandSides::new(&b, k)).unwrap();
            assert!(found.converged());
            for (c, outcome) in found.outcomes().enumerate() {
                let what = format!("{}, {precond}, column {c} of {k}", method.name());
                assert_eq!(outcome.iterations < 10, easy(&c), "{what}: {} iterations", outcome.iterations);
                near(&found.column(c).unwrap(), &answers[c], &what);
                assert_eq!(found.residuals(c).unwrap().len(), outcome.iterations + 1, "{what}");
            }
            let again = prepared.solve_many(RightHandSides::new(&b, k)).unwrap();
            assert!(bits(again.x()) == bits(found.x()), "{} of {k}", method.name());
        }
    }
}

fn a_ranking_prepared_for_one_personalisation_also_ranks_several<D: Host>(_: &D) {
    let graph = Matrix::open_graph("rmat:scale=12,factor=16").unwrap();
    let mut prepared = Pagerank::new(&graph).device(D::KIND).prepare().unwrap();
    assert!(prepared.solve().unwrap().converged());
    for k in [2, 1, 5] {
        prepared.personalise_each((0..k).map(|c| Weights::from_vertices([(3 * c + 1).to_string()])));
        let found = prepared.solve_each().unwrap();
        assert!(found.converged() && found.columns().len() == k);
    }
}

fn each_of_several_personalisations_has_the_ranks_of_a_single_run<D: Host>(_: &D) {
    let graph = Matrix::open_graph("rmat:scale=9,factor=8").unwrap();
    for dangling in [Dangling::Uniform, Dangling::Personalised, Dangling::SelfLoop, Dangling::Drop] {
        let ranks = || Pagerank::new(&graph).device(D::KIND).dangling(dangling);
        for k in [1, 2, 3, 5, 32, 33, 100] {
            let weights = |c: usize| Weights::from_vertices([(3 * c + 1).to_string()]);
            let found = ranks().personalise_each((0..k).map(weights)).solve_each().unwrap();
            assert!(found.converged() && found.columns().len() == k);
            for c in [0, k / 2, k - 1] {
                let alone = ranks().personalise(weights(c)).solve().unwrap();
                let mine = &found.columns()[c];
                let pairs = mine.ranks().iter().zip(alone.ranks());
                let distance: f64 = pairs.map(|(x, y)| (x - y).abs()).sum();
                let bound = mine.error_bound() + alone.error_bound();
                assert!(distance <= bound, "{dangling:?}, column {c} of {k}: {distance:e} > {bound:e}");
                let (mine, other) = (mine.outcome().iterations, alone.outcome().iterations);
                assert!(mine.abs_diff(other) <= tolerance::iterations(other), "{mine} and {other}");
            }
        }
    }
}
