//! Several right-hand sides through the engine.

use crate::common::tolerance;
use crate::common::vectors::{bits, reals};
use solver::Error;
use solver::engine::Solver;
use solver::prelude::*;
use solver::solve::Method;
use solver::stop::StopReason;

fn matrix() -> Matrix {
    Matrix::open("hex27:6x5x4,dof=3").unwrap()
}

/// Makes k columns, n x k, row-major.
fn columns(n: usize, k: usize) -> Vec<f64> {
    reals(3, n * k)
}

fn column(all: &[f64], k: usize, column: usize) -> Vec<f64> {
    all.iter().skip(column).step_by(k).copied().collect()
}

#[test]
fn every_column_has_the_bits_of_a_solve_of_that_column_with_the_backend_rows() {
    let a = matrix();
    for k in [2, 3, 7, 32, 33] {
        let b = columns(a.rows(), k);
        for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
            let solver = || Solver::new(method, &a).device("cpu").backend("rows").rtol(tolerance::RTOL);
            let answers = solver().solve_many(RightHandSides::new(&b, k)).unwrap();
            assert!(answers.converged() && answers.count() == k);
            for c in [0, k / 2, k - 1] {
                let alone = solver().solve(&column(&b, k, c)).unwrap();
                assert!(bits(&answers.column(c).unwrap()) == bits(alone.x()), "column {c} of {k}");
                assert!(bits(answers.residuals(c).unwrap()) == bits(alone.residuals()), "column {c} of {k}");
            }
        }
    }
}

#[test]
fn a_column_has_the_same_bits_in_any_company_with_the_backend_of_auto() {
    let a = matrix();
    let b = columns(a.rows(), 9);
    let solver = |k| Cg::new(&a).device("cpu").columns(k).rtol(tolerance::RTOL).prepare().unwrap();
    let mut nine = solver(9);
    assert!(nine.backend().starts_with("bsr:block="), "{}", nine.backend());
    let all = nine.solve_many(RightHandSides::new(&b, 9)).unwrap();
    for k in [2, 4, 5] {
        let some: Vec<f64> = b.chunks(9).flat_map(|row| &row[9 - k..]).copied().collect();
        let found = solver(k).solve_many(RightHandSides::new(&some, k)).unwrap();
        assert!(bits(&found.column(k - 1).unwrap()) == bits(&all.column(8).unwrap()), "{k} columns");
    }
}

#[test]
fn the_report_of_several_columns_has_a_record_for_each() {
    let a = Matrix::open("poisson2d:30x31").unwrap();
    let b = a.problems("random:5", 4).unwrap();
    assert_eq!((b.columns, b.b.len(), b.description.as_str()), (4, 4 * a.rows(), "random:5 to random:8"));
    let second = a.problem("random:6").unwrap();
    assert_eq!(column(&b.b, 4, 1), second.b);
    let answers = Cg::new(&a).device("cpu").solve_many(&b).unwrap();
    let report = answers.report();
    let most = report.columns.iter().map(|column| column.iterations).max().unwrap();
    assert!(report.converged && report.columns.len() == 4 && report.iterations == most);
    assert_eq!(report.message, "all 4 right-hand sides converged");
    assert!(
        report.columns.iter().all(|column| column.converged && column.residual_true <= report.residual_true)
    );
    let one = Cg::new(&a).device("cpu").solve(&second).unwrap().report();
    assert!(one.columns.is_empty() && !serde_json::to_string(&one).unwrap().contains("columns"));
    let history = answers.history();
    assert_eq!(history.columns.len(), 4);
    assert_eq!(history.residuals.len(), most as usize + 1);
}

#[test]
fn a_column_with_nan_ends_alone_and_is_named_in_the_report() {
    let a = Matrix::open("poisson2d:20x21").unwrap();
    let mut b = a.problems("random:1", 3).unwrap();
    let whole = Cg::new(&a).device("cpu").solve_many(&b).unwrap();
    b.b[3 * 17 + 1] = f64::NAN;
    let answers = Cg::new(&a).device("cpu").solve_many(&b).unwrap();
    assert!(!answers.converged());
    let reasons: Vec<_> = answers.outcomes().map(|outcome| outcome.reason).collect();
    assert!(matches!(reasons[1], StopReason::NotSolved { row: Some(17), .. }), "{reasons:?}");
    for c in [0, 2] {
        assert_eq!(reasons[c], StopReason::Converged);
        assert!(bits(&answers.column(c).unwrap()) == bits(&whole.column(c).unwrap()));
    }
    let report = answers.report();
    assert!(
        report.message.starts_with("2 of 3 right-hand sides converged; column 2: not solved"),
        "{}",
        report.message
    );
    assert!(report.message.contains("row 17 (counted from 0)") && report.reason == "not_solved");
}

#[test]
fn arrays_of_another_size_and_no_columns_are_refused() {
    let a = Matrix::open("poisson2d:9x9").unwrap();
    let refused = |b: &[f64], k| match Cg::new(&a).device("cpu").solve_many(RightHandSides::new(b, k)) {
        Err(error @ Error::BadSetting { setting: "rhs", .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(&[1.0; 161], 2).contains("2 columns for a matrix with 81 rows do not have 161 numbers"));
    refused(&[], 0);
    refused(&[1.0; 162], usize::MAX);
    let start = vec![0.0; 81];
    let error = Cg::new(&a).device("cpu").solve_many(RightHandSides::new(&[1.0; 162], 2).from_start(&start));
    assert!(matches!(error, Err(Error::Dimension { expected: 162, got: 81, .. })));
}

#[test]
fn a_backend_for_one_vector_is_refused_with_the_backends_that_take_several() {
    let a = Matrix::open("elasticity3d:4x4x4").unwrap();
    let solver = || Cg::new(&a).device("cpu").backend("bsr-fixed-tasks-pre");
    let error = solver().columns(3).prepare().unwrap_err().to_string();
    assert!(
        error.contains("3 columns: it multiplies one vector at a time") && error.contains("rows"),
        "{error}"
    );
    let b = vec![1.0; 3 * a.rows()];
    let later = solver().prepare().unwrap().solve_many(RightHandSides::new(&b, 3)).unwrap_err().to_string();
    assert_eq!(later, error);
}

#[test]
fn a_prepared_solve_takes_one_column_and_several_in_turn() {
    let a = Matrix::open("poisson2d:15x16").unwrap();
    let b = a.problems("random:1", 5).unwrap();
    let mut prepared = Cg::new(&a).device("cpu").backend("rows").columns(5).prepare().unwrap();
    let many = prepared.solve_many(&b).unwrap();
    let one = prepared.solve(&column(&b.b, 5, 4)).unwrap();
    assert!(bits(&many.column(4).unwrap()) == bits(one.x()));
    let again = prepared.solve_many(&b).unwrap();
    assert!(bits(again.x()) == bits(many.x()));
}
