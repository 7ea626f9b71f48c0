//! Solves over ranks give the answers of one process, with the same bits in every run.

use crate::common::jobs::System;
use crate::common::places::{Found, Place, check, check_threads};
use crate::common::ranks::{bits, distance, over_ranks};
use solver::engine::{Matrix, RankMatrix, RhsName, RunSettings, SystemSettings};
use solver::error::{Error, Result};
use solver::scalar::Precision;
use solver::solve::Method;
use solver::stop::StopReason;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Solves over ranks; returns the report of the first rank with the x of all ranks.
fn solved(system: &System<'_>, size: usize, matrix: &Matrix) -> Found {
    system.try_run(matrix, Place::Ranks(size)).unwrap()
}

fn check_like_one_process(system: &System<'_>) {
    check(system, (1..=4).map(Place::Ranks));
}

const GRID: &str = "poisson2d:40x37";
const NODES: &str = "hex27:6x5x7,dof=3";

#[test]
fn methods_take_the_iterations_of_one_process_and_give_its_answer() {
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
        for precond in ["none", "jacobi"] {
            for matrix in [GRID, NODES] {
                check_like_one_process(&System { matrix, method, precond, ..System::default() });
            }
        }
    }
}

#[test]
fn preconditioners_whose_blocks_are_not_cut_are_those_of_one_process() {
    for precond in ["block-jacobi", "block-jacobi:block=3", "block-jacobi:block=5", "chebyshev:degree=3"] {
        for matrix in [NODES, GRID] {
            check_like_one_process(&System { matrix, precond, ..System::default() });
        }
    }
}

#[test]
fn every_kind_of_backend_multiplies_the_block_of_a_rank() {
    for backend in ["rows", "serial", "sell", "bsr:block=3x3", "sbsr:block=3", "merge"] {
        check_like_one_process(&System { matrix: NODES, backend, ..System::default() });
    }
}

#[test]
fn other_factors_become_an_additive_schwarz_preconditioner_and_are_named_so() {
    let plain = solved(&System::default(), 3, &Matrix::open(GRID).unwrap());
    for precond in ["ic0", "ssor"] {
        let found = &check(&System { precond, ..System::default() }, [Place::Ranks(3)])[1];
        assert!(found.iterations() < plain.iterations());
        let named = found.report["preconditioner"].as_str().unwrap();
        assert!(named.contains(precond) && named.contains("each of 3 ranks (additive Schwarz)"), "{named}");
    }
}

#[test]
fn bits_are_the_same_in_every_run_and_for_any_number_of_threads() {
    let matrix = Matrix::open("poisson3d:14x13x12").unwrap();
    for precond in ["none", "jacobi", "ic0"] {
        check_threads(precond, &[1, 2], |threads| {
            let found =
                solved(&System { rhs: "random:1", precond, threads, ..System::default() }, 3, &matrix);
            (found.iterations(), found.report["residual_true"].clone(), bits(&found.x))
        });
    }
}

#[test]
fn several_right_hand_sides_are_solved_together() {
    let matrix = Matrix::open(GRID).unwrap();
    for method in [Method::Cg, Method::BlockCg, Method::PipelinedCg, Method::Minres] {
        let system = System { method, rhs: "random:4", columns: 3, ..System::default() };
        let found = check(&system, [Place::Ranks(3)]).swap_remove(1);
        for column in 0..3 {
            let rhs = &format!("random:{}", 4 + column);
            let alone = solved(&System { rhs, ..System::default() }, 1, &matrix);
            let of_column: Vec<f64> = found.x.iter().skip(column).step_by(3).copied().collect();
            assert!(distance(&of_column, &alone.x) < 1e-5, "{method:?}, {column}");
        }
    }
}

#[test]
fn columns_that_leave_the_products_leave_them_on_all_ranks() {
    let matrix = Matrix::open("poisson2d:60x50").unwrap();
    let whole = matrix.problems("random:1", 4).unwrap();
    let ones = matrix.problem("A*ones").unwrap();
    let mut mixed = whole;
    // Two columns converge at once, because their right-hand sides are eigenvectors or zero.
    mixed.b.chunks_exact_mut(4).for_each(|row| (row[0], row[2]) = (0.0, 0.0));
    for (row, b) in mixed.b.chunks_exact_mut(4).zip(&ones.b) {
        row[3] = *b;
    }
    let system = System::default();
    let all = over_ranks(2, |ranks| {
        let rows = system.distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&mixed)).unwrap();
        let answers = system.over(&rows).solve_many(&problem).unwrap();
        assert!(answers.converged(), "{}", answers.report());
        answers.outcomes().map(|outcome| outcome.iterations).collect::<Vec<_>>()
    });
    assert_eq!(all[0], all[1]);
    assert!(all[0][0] == 0 && all[0][1] > 60, "{all:?}");
}

#[test]
fn single_and_mixed_precision_are_judged_in_double() {
    let matrix = Matrix::open(NODES).unwrap();
    for precision in [Precision::F32, Precision::Mixed] {
        let report = solved(&System { precision, rhs: "A*ones", ..System::default() }, 3, &matrix).report;
        assert!(report["converged"] == true && report["error_max"].as_f64().unwrap() < 1e-2, "{report}");
    }
}

#[test]
fn more_ranks_than_rows_are_no_error() {
    let matrix = Matrix::from_triplets(2, 2, [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0)]).unwrap();
    for precond in ["none", "jacobi", "block-jacobi:block=2", "chebyshev", "ic0"] {
        let found = solved(&System { precond, rhs: "ones", ..System::default() }, 4, &matrix);
        assert_eq!(found.report["converged"], true, "{precond}: {}", found.report);
        assert!(distance(&found.x, &[2.0 / 11.0, 3.0 / 11.0]) < 1e-10, "{precond}: {:?}", found.x);
    }
}

#[test]
fn a_right_hand_side_of_zeros_ends_at_once_on_all_ranks() {
    let matrix = Matrix::open(GRID).unwrap();
    let mut whole = matrix.problem("ones").unwrap();
    whole.b.fill(0.0);
    let all = over_ranks(3, |ranks| {
        let rows = System::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        System::default().over(&rows).solve(&problem).unwrap().reason()
    });
    assert_eq!(all, [StopReason::ZeroRightHandSide; 3]);
}

#[test]
fn a_right_hand_side_that_is_zero_on_all_ranks_but_one_is_solved() {
    let matrix = Matrix::open(GRID).unwrap();
    let mut whole = matrix.problem("ones").unwrap();
    whole.b.fill(0.0);
    whole.b[1400] = 1.0;
    let one = System::default().alone(&matrix).solve(&whole.b).unwrap();
    let all = over_ranks(3, |ranks| {
        let rows = System::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        let answer = System::default().over(&rows).solve(&problem).unwrap();
        assert!(answer.converged());
        rows.collect(answer.x()).unwrap()
    });
    assert!(distance(all[0].as_ref().unwrap(), one.x()) < 1e-6);
}

#[test]
fn an_infinite_entry_of_one_rank_is_refused_by_all_with_its_row() {
    let matrix = Matrix::open(GRID).unwrap();
    let mut whole = matrix.problem("ones").unwrap();
    whole.b[1400] = f64::INFINITY;
    let all = over_ranks(3, |ranks| {
        let rows = System::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        System::default().over(&rows).solve(&problem).unwrap_err()
    });
    assert!(all.iter().all(|error| matches!(error, Error::RightHandSideNotFinite { row: 1400 })), "{all:?}");
}

#[test]
fn a_rank_that_is_cancelled_ends_all_ranks_with_an_answer_so_far() {
    let matrix = Matrix::open(GRID).unwrap();
    let whole = matrix.problem("ones").unwrap();
    let reasons = over_ranks(3, |ranks| {
        let rows = System::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        let cancel = Arc::new(AtomicBool::new(ranks.rank() == 2));
        let answer = System::default().over(&rows).cancel(&cancel).solve(&problem).unwrap();
        assert!(rows.collect(answer.x()).unwrap().is_some() == ranks.is_first());
        answer.reason()
    });
    assert_eq!(reasons, [StopReason::Interrupted; 3]);
}

#[test]
fn a_clock_that_is_ahead_ends_all_ranks_with_the_time_limit() {
    let matrix = Matrix::open(GRID).unwrap();
    let whole = matrix.problem("ones").unwrap();
    for ahead in 0..3 {
        let reasons = over_ranks(3, |ranks| {
            let rows = System::default().distribute(ranks, &matrix).unwrap();
            let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
            // The limit of one rank is that of a clock that is ahead of the others.
            let limit = if ranks.rank() == ahead { Duration::ZERO } else { Duration::from_secs(3600) };
            let solver = System::default().over(&rows);
            solver.time_limit(limit).solve(&problem).unwrap().reason()
        });
        assert_eq!(reasons, [StopReason::TimeLimit { seconds: 0.0 }; 3]);
    }
}

#[test]
fn an_indefinite_matrix_ends_all_ranks_with_the_same_evidence() {
    let entries = (0..50).map(|i| (i, i, if i == 40 { -1.0 } else { 2.0 }));
    let matrix = Matrix::from_triplets(50, 50, entries).unwrap();
    let system = System { rhs: "random:3", ..System::default() };
    let report = solved(&system, 4, &matrix).report;
    assert_eq!(report["reason"], "indefinite_matrix", "{report}");
    let report = solved(&System { method: Method::Minres, ..system }, 4, &matrix).report;
    assert_eq!(report["converged"], true, "{report}");
}

#[test]
fn a_singular_system_has_the_least_squares_solution_of_one_process() {
    let matrix = Matrix::open("poisson2d:20x15,boundary=neumann").unwrap();
    let system = System { method: Method::Minres, rhs: "random:1", ..System::default() };
    let one = system.alone(&matrix).solve(&matrix.problem("random:1").unwrap()).unwrap();
    let StopReason::LeastSquares { residual, .. } = one.reason() else { panic!("{:?}", one.reason()) };
    let whole = matrix.problem("random:1").unwrap();
    let reasons = over_ranks(3, |ranks| {
        let rows = system.distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        system.over(&rows).solve(&problem).unwrap().reason()
    });
    let StopReason::LeastSquares { residual: got, normal } = reasons[0] else { panic!("{reasons:?}") };
    assert!((got - one.outcome().residual_true).abs() < 1e-6 && normal < 1e-6, "{got} {residual}");
}

#[test]
fn a_matrix_that_is_not_symmetric_fails_on_all_ranks_and_the_first_knows_why() {
    let matrix = Matrix::from_triplets(2, 2, [(0, 0, 1.0), (0, 1, 2.0), (1, 1, 1.0)]).unwrap();
    let all = over_ranks(3, |ranks| System::default().distribute(ranks, &matrix).map(|_| ()).unwrap_err());
    assert!(matches!(all[0], Error::NotSymmetric { .. }), "{:?}", all[0]);
    assert!(all[1..].iter().all(|error| matches!(error, Error::OtherRank { rank: 0 })), "{all:?}");
}

#[test]
fn a_preconditioner_that_fails_on_one_rank_fails_on_all_and_names_the_row_of_the_whole_matrix() {
    let entries = (0..60).map(|i| (i, i, if i == 45 { 0.0 } else { 2.0 }));
    let matrix = Matrix::from_triplets(60, 60, entries).unwrap();
    let all = over_ranks(3, |ranks| {
        let system = System { precond: "jacobi", ..System::default() };
        system.over(&system.distribute(ranks, &matrix)?).prepare().map(|_| ())
    });
    let all: Vec<Error> = all.into_iter().map(|result| result.unwrap_err()).collect();
    assert!(matches!(all[2], Error::BadDiagonal { row: 45, .. }), "{:?}", all[2]);
    assert!(all[..2].iter().all(|error| matches!(error, Error::OtherRank { rank: 2 })), "{all:?}");
}

#[test]
fn meshes_that_each_rank_makes_are_those_that_the_first_rank_distributes() {
    let names =
        [GRID, NODES, "poisson3d:9x8x7,points=27,boundary=neumann", "elasticity3d:5x4x3,contrast=100"];
    for name in names {
        let matrix = Matrix::open(name).unwrap();
        for (size, precond) in [(1, "none"), (3, "block-jacobi"), (4, "jacobi")] {
            let system = System { method: Method::Minres, precond, ..System::default() };
            for rhs in ["A*ones", "ones", "random:3"] {
                let whole = matrix.problem(rhs).unwrap();
                let all = over_ranks(size, |ranks| {
                    let rows =
                        RankMatrix::generate(ranks, name.as_ref(), &system.purpose()).unwrap().unwrap();
                    let problem = RhsName::resolve(rhs.as_ref()).unwrap().make_rows(&rows).unwrap();
                    assert_eq!(problem.answer.is_some(), whole.answer.is_some());
                    let b = rows.collect(&problem.b).unwrap();
                    let answer = system.over(&rows).max_iters(40).solve(&problem).unwrap();
                    (rows.total_rows(), b, rows.collect(answer.x()).unwrap())
                });
                let (rows, b, x) = &all[0];
                assert_eq!((*rows, b.as_ref().unwrap()), (matrix.rows(), &whole.b), "{name} {rhs}");
                let distributed = over_ranks(size, |ranks| {
                    let rows = system.distribute(ranks, &matrix).unwrap();
                    let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
                    rows.collect(system.over(&rows).max_iters(40).solve(&problem).unwrap().x()).unwrap()
                });
                assert_eq!(
                    bits(x.as_ref().unwrap()),
                    bits(distributed[0].as_ref().unwrap()),
                    "{name} {rhs} {size}"
                );
            }
        }
    }
}

#[test]
fn a_solve_over_ranks_resumes_on_any_number_of_ranks_and_in_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = Matrix::open(NODES).unwrap();
    let whole = matrix.problem("random:5").unwrap();
    for method in [Method::Cg, Method::Minres, Method::PipelinedCg] {
        let file = folder.path().join(method.name());
        let system = System { method, precond: "jacobi", ..System::default() };
        let solve = |size: usize, resume: bool, most: usize| {
            let mut all = over_ranks(size, |ranks| {
                let rows = system.distribute(ranks, &matrix)?;
                let problem = rows.problem(ranks.is_first().then_some(&whole))?;
                let solver = system.over(&rows).max_iters(most);
                let solver = match resume {
                    true => solver.resume(&file),
                    false => solver.checkpoint(&file, Duration::from_secs(1000)),
                };
                let answer = solver.solve(&problem)?;
                Ok((answer.outcome().iterations, answer.converged(), rows.collect(answer.x())?))
            })
            .into_iter()
            .collect::<Result<Vec<_>>>()
            .unwrap();
            all.swap_remove(0)
        };
        let (straight, converged, expected) = solve(3, false, 1000);
        assert!(converged);
        let (saved_at, converged, _) = solve(3, false, 11);
        assert!(!converged && (11..13).contains(&saved_at), "{saved_at}");
        for size in [3, 1, 2, 4] {
            let (iterations, converged, x) = solve(size, true, 1000);
            assert!(converged && iterations.abs_diff(straight) <= 2, "{method:?}: {iterations} {straight}");
            let (x, expected) = (x.unwrap(), expected.as_ref().unwrap());
            assert!(distance(&x, expected) < 1e-6);
            if size == 3 {
                assert_eq!(bits(&x), bits(expected), "{method:?}");
            }
        }
        let one = system.alone(&matrix).resume(&file).solve(&whole).unwrap();
        assert!(one.converged() && one.outcome().iterations.abs_diff(straight) <= 2);
        // And the other way round.
        let one = system.alone(&matrix).max_iters(11);
        one.checkpoint(&file, Duration::from_secs(1000)).solve(&whole).unwrap();
        let (iterations, converged, _) = solve(2, true, 1000);
        assert!(converged && iterations.abs_diff(straight) <= 2);
    }
}
