//! Solves over ranks give the answers of one process, with the same bits in every run.

use crate::common::ranks::{bits, distance, over_ranks};
use solver::device::Ranks;
use solver::engine::{Answers, Matrix, Partition, Purpose, RankMatrix, RhsName, RightHandSides, Solver};
use solver::error::{Error, Result};
use solver::prelude::{Answer, DeviceSettings, RunSettings};
use solver::scalar::Precision;
use solver::solve::Method;
use solver::stop::StopReason;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A solve, with the settings that tests vary.
#[derive(Clone)]
struct Case<'a> {
    method: Method,
    precond: &'a str,
    backend: &'a str,
    precision: Precision,
    threads: usize,
    cancelled_rank: Option<usize>,
}

impl Default for Case<'_> {
    fn default() -> Self {
        let (precision, threads) = (Precision::F64, 1);
        Case {
            method: Method::Cg,
            precond: "none",
            backend: "auto",
            precision,
            threads,
            cancelled_rank: None,
        }
    }
}

impl Case<'_> {
    fn distribute(&self, ranks: &Ranks, matrix: &Matrix) -> Result<RankMatrix> {
        let purpose = Purpose {
            method: self.method,
            precond: self.precond.parse()?,
            precision: self.precision,
            assume_symmetric: false,
            partition: Partition::Entries,
        };
        RankMatrix::distribute(ranks, ranks.is_first().then_some(matrix), &purpose)
    }

    fn settings(&self, solver: Solver) -> Result<Solver> {
        let solver = solver.device("cpu").threads(self.threads).precision(self.precision);
        solver.backend(self.backend).precond(self.precond)
    }

    /// Solves with one right-hand side over ranks; returns the answer of the first rank with the x of all ranks.
    fn solve(&self, size: usize, matrix: &Matrix, rhs: &str) -> Result<(Answer, Vec<f64>)> {
        let whole = matrix.problem(rhs)?;
        let mut answers = over_ranks(size, |ranks| {
            let rows = self.distribute(ranks, matrix)?;
            let problem = rows.problem(ranks.is_first().then_some(&whole))?;
            let cancel = Arc::new(AtomicBool::new(self.cancelled_rank == Some(ranks.rank())));
            let solver = self.settings(Solver::over_ranks(self.method, &rows))?.cancel(&cancel);
            let answer = solver.solve(&problem)?;
            let x = rows.collect(answer.x())?;
            Ok((answer, x))
        })
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
        let residuals: Vec<_> = answers.iter().map(|(answer, _)| answer.outcome().residual_true).collect();
        let all_alike = residuals.iter().all(|residual| residual.to_bits() == residuals[0].to_bits());
        assert!(all_alike, "{residuals:?}");
        let (answer, x) = answers.swap_remove(0);
        Ok((answer, x.unwrap()))
    }

    fn solve_many(&self, size: usize, matrix: &Matrix, rhs: &str, k: usize) -> Result<(Answers, Vec<f64>)> {
        let whole = matrix.problems(rhs, k)?;
        let mut answers = over_ranks(size, |ranks| {
            let rows = self.distribute(ranks, matrix)?;
            let problem = rows.problem(ranks.is_first().then_some(&whole))?;
            let solver = self.settings(Solver::over_ranks(self.method, &rows))?;
            let answers = solver.solve_many(RightHandSides::from(&problem))?;
            let x = rows.collect(answers.x())?;
            Ok((answers, x))
        })
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
        let (answers, x) = answers.swap_remove(0);
        Ok((answers, x.unwrap()))
    }
}

/// Checks that solves over 1 to 4 ranks take about the iterations of one process and give its answer.
fn check_like_one_process(case: &Case<'_>, name: &str) {
    let matrix = Matrix::open(name).unwrap();
    let one = case.settings(Solver::new(case.method, &matrix)).unwrap();
    let one = one.solve(&matrix.problem("random:7").unwrap()).unwrap();
    assert!(one.converged(), "{name}: {}", one.report());
    for size in 1..=4 {
        let (answer, x) = case.solve(size, &matrix, "random:7").unwrap();
        let what = format!("{name}, {:?}, {}, {size} ranks", case.method, case.precond);
        assert!(answer.converged(), "{what}: {}", answer.report());
        let (expected, got) = (one.outcome().iterations as f64, answer.outcome().iterations as f64);
        assert!((got - expected).abs() <= (0.01 * expected).max(2.0), "{what}: {got} for {expected}");
        assert!(distance(&x, one.x()) < 1e-5, "{what}");
        let report = answer.report();
        assert_eq!((report.rows, report.nnz), (matrix.rows() as u64, matrix.nnz() as u64));
        assert!(report.device.starts_with(&format!("{size} ranks, each cpu")), "{}", report.device);
    }
}

const GRID: &str = "poisson2d:40x37";
const NODES: &str = "hex27:6x5x7,dof=3";

#[test]
fn methods_take_the_iterations_of_one_process_and_give_its_answer() {
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
        for precond in ["none", "jacobi"] {
            let case = Case { method, precond, ..Case::default() };
            check_like_one_process(&case, GRID);
            check_like_one_process(&case, NODES);
        }
    }
}

#[test]
fn preconditioners_whose_blocks_are_not_cut_are_those_of_one_process() {
    for precond in ["block-jacobi", "block-jacobi:block=3", "block-jacobi:block=5", "chebyshev:degree=3"] {
        check_like_one_process(&Case { precond, ..Case::default() }, NODES);
        check_like_one_process(&Case { precond, ..Case::default() }, GRID);
    }
}

#[test]
fn every_kind_of_backend_multiplies_the_block_of_a_rank() {
    for backend in ["rows", "serial", "sell", "bsr:block=3x3", "sbsr:block=3", "merge"] {
        check_like_one_process(&Case { backend, ..Case::default() }, NODES);
    }
}

#[test]
fn other_factors_become_an_additive_schwarz_preconditioner_and_are_named_so() {
    let matrix = Matrix::open(GRID).unwrap();
    for precond in ["ic0", "ssor"] {
        let case = Case { precond, ..Case::default() };
        let (plain, _) = Case::default().solve(3, &matrix, "random:7").unwrap();
        let (answer, _) = case.solve(3, &matrix, "random:7").unwrap();
        assert!(answer.converged() && answer.outcome().iterations < plain.outcome().iterations);
        let named = answer.report().preconditioner;
        assert!(named.contains(precond) && named.contains("each of 3 ranks (additive Schwarz)"), "{named}");
    }
}

#[test]
fn bits_are_the_same_in_every_run_and_for_any_number_of_threads() {
    let matrix = Matrix::open("poisson3d:14x13x12").unwrap();
    for precond in ["none", "jacobi", "ic0"] {
        let solve = |threads| {
            let case = Case { precond, threads, ..Case::default() };
            let (answer, x) = case.solve(3, &matrix, "random:1").unwrap();
            (answer.outcome().iterations, answer.outcome().residual_true.to_bits(), bits(&x))
        };
        let first = solve(1);
        assert_eq!(first, solve(1));
        assert_eq!(first, solve(2));
    }
}

#[test]
fn several_right_hand_sides_are_solved_together() {
    let matrix = Matrix::open(GRID).unwrap();
    for method in [Method::Cg, Method::BlockCg, Method::PipelinedCg, Method::Minres] {
        let case = Case { method, ..Case::default() };
        let (answers, x) = case.solve_many(3, &matrix, "random:4", 3).unwrap();
        assert!(answers.converged(), "{method:?}: {}", answers.report());
        for column in 0..3 {
            let (_, alone) = Case::default().solve(1, &matrix, &format!("random:{}", 4 + column)).unwrap();
            let of_column: Vec<f64> = x.iter().skip(column).step_by(3).copied().collect();
            assert!(distance(&of_column, &alone) < 1e-5, "{method:?}, {column}");
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
    let case = Case::default();
    let all = over_ranks(2, |ranks| {
        let rows = case.distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&mixed)).unwrap();
        let solver = case.settings(Solver::over_ranks(Method::Cg, &rows)).unwrap();
        let answers = solver.solve_many(&problem).unwrap();
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
        let (answer, _) = Case { precision, ..Case::default() }.solve(3, &matrix, "A*ones").unwrap();
        assert!(answer.converged(), "{}", answer.report());
        assert!(answer.report().error_max.is_some_and(|error| error < 1e-2));
    }
}

#[test]
fn more_ranks_than_rows_are_no_error() {
    let matrix = Matrix::from_triplets(2, 2, [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0)]).unwrap();
    for precond in ["none", "jacobi", "block-jacobi:block=2", "chebyshev", "ic0"] {
        let (answer, x) = Case { precond, ..Case::default() }.solve(4, &matrix, "ones").unwrap();
        assert!(answer.converged(), "{precond}: {}", answer.report());
        assert!(distance(&x, &[2.0 / 11.0, 3.0 / 11.0]) < 1e-10, "{precond}: {x:?}");
    }
}

#[test]
fn a_right_hand_side_of_zeros_ends_at_once_on_all_ranks() {
    let matrix = Matrix::open(GRID).unwrap();
    let mut whole = matrix.problem("ones").unwrap();
    whole.b.fill(0.0);
    let all = over_ranks(3, |ranks| {
        let rows = Case::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        Solver::over_ranks(Method::Cg, &rows).device("cpu").threads(1).solve(&problem).unwrap().reason()
    });
    assert_eq!(all, [StopReason::ZeroRightHandSide; 3]);
}

#[test]
fn a_right_hand_side_that_is_zero_on_all_ranks_but_one_is_solved() {
    let matrix = Matrix::open(GRID).unwrap();
    let mut whole = matrix.problem("ones").unwrap();
    whole.b.fill(0.0);
    whole.b[1400] = 1.0;
    let one = Solver::new(Method::Cg, &matrix).device("cpu").threads(1).solve(&whole.b).unwrap();
    let all = over_ranks(3, |ranks| {
        let rows = Case::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        let answer = Solver::over_ranks(Method::Cg, &rows).device("cpu").threads(1).solve(&problem).unwrap();
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
        let rows = Case::default().distribute(ranks, &matrix).unwrap();
        let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
        Solver::over_ranks(Method::Cg, &rows).device("cpu").threads(1).solve(&problem).unwrap_err()
    });
    assert!(all.iter().all(|error| matches!(error, Error::RightHandSideNotFinite { row: 1400 })), "{all:?}");
}

#[test]
fn a_rank_that_is_cancelled_ends_all_ranks_with_an_answer_so_far() {
    let matrix = Matrix::open(GRID).unwrap();
    let case = Case { cancelled_rank: Some(2), ..Case::default() };
    let (answer, _) = case.solve(3, &matrix, "ones").unwrap();
    assert_eq!(answer.reason(), StopReason::Interrupted);
}

#[test]
fn a_clock_that_is_ahead_ends_all_ranks_with_the_time_limit() {
    let matrix = Matrix::open(GRID).unwrap();
    let whole = matrix.problem("ones").unwrap();
    for ahead in 0..3 {
        let reasons = over_ranks(3, |ranks| {
            let rows = Case::default().distribute(ranks, &matrix).unwrap();
            let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
            // The limit of one rank is that of a clock that is ahead of the others.
            let limit = if ranks.rank() == ahead { Duration::ZERO } else { Duration::from_secs(3600) };
            let solver = Solver::over_ranks(Method::Cg, &rows).device("cpu").threads(1);
            solver.time_limit(limit).solve(&problem).unwrap().reason()
        });
        assert_eq!(reasons, [StopReason::TimeLimit { seconds: 0.0 }; 3]);
    }
}

#[test]
fn an_indefinite_matrix_ends_all_ranks_with_the_same_evidence() {
    let entries = (0..50).map(|i| (i, i, if i == 40 { -1.0 } else { 2.0 }));
    let matrix = Matrix::from_triplets(50, 50, entries).unwrap();
    let (answer, _) = Case::default().solve(4, &matrix, "random:3").unwrap();
    assert!(matches!(answer.reason(), StopReason::IndefiniteMatrix { .. }), "{:?}", answer.reason());
    let (answer, _) =
        Case { method: Method::Minres, ..Case::default() }.solve(4, &matrix, "random:3").unwrap();
    assert!(answer.converged());
}

#[test]
fn a_singular_system_has_the_least_squares_solution_of_one_process() {
    let matrix = Matrix::open("poisson2d:20x15,boundary=neumann").unwrap();
    let case = Case { method: Method::Minres, ..Case::default() };
    let one = case.settings(Solver::new(Method::Minres, &matrix)).unwrap();
    let one = one.solve(&matrix.problem("random:1").unwrap()).unwrap();
    let (answer, _) = case.solve(3, &matrix, "random:1").unwrap();
    let StopReason::LeastSquares { residual, normal } = answer.reason() else {
        panic!("{:?}", answer.reason())
    };
    assert!(matches!(one.reason(), StopReason::LeastSquares { .. }));
    assert!((residual - one.outcome().residual_true).abs() < 1e-6 && normal < 1e-6);
}

#[test]
fn a_matrix_that_is_not_symmetric_fails_on_all_ranks_and_the_first_knows_why() {
    let matrix = Matrix::from_triplets(2, 2, [(0, 0, 1.0), (0, 1, 2.0), (1, 1, 1.0)]).unwrap();
    let all = over_ranks(3, |ranks| Case::default().distribute(ranks, &matrix).map(|_| ()).unwrap_err());
    assert!(matches!(all[0], Error::NotSymmetric { .. }), "{:?}", all[0]);
    assert!(all[1..].iter().all(|error| matches!(error, Error::OtherRank { rank: 0 })), "{all:?}");
}

#[test]
fn a_preconditioner_that_fails_on_one_rank_fails_on_all_and_names_the_row_of_the_whole_matrix() {
    let entries = (0..60).map(|i| (i, i, if i == 45 { 0.0 } else { 2.0 }));
    let matrix = Matrix::from_triplets(60, 60, entries).unwrap();
    let all = over_ranks(3, |ranks| {
        let case = Case { precond: "jacobi", ..Case::default() };
        let rows = case.distribute(ranks, &matrix)?;
        case.settings(Solver::over_ranks(Method::Cg, &rows))?.prepare().map(|_| ())
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
            let case = Case { method: Method::Minres, precond, ..Case::default() };
            let purpose = Purpose {
                method: case.method,
                precond: precond.parse().unwrap(),
                precision: Precision::F64,
                assume_symmetric: false,
                partition: Partition::Entries,
            };
            for rhs in ["A*ones", "ones", "random:3"] {
                let whole = matrix.problem(rhs).unwrap();
                let all = over_ranks(size, |ranks| {
                    let rows = RankMatrix::generate(ranks, name.as_ref(), &purpose).unwrap().unwrap();
                    let problem = RhsName::resolve(rhs.as_ref()).unwrap().make_rows(&rows).unwrap();
                    assert_eq!(problem.answer.is_some(), whole.answer.is_some());
                    let b = rows.collect(&problem.b).unwrap();
                    let settings = case.settings(Solver::over_ranks(case.method, &rows)).unwrap();
                    let answer = settings.max_iters(40).solve(&problem).unwrap();
                    (rows.total_rows(), b, rows.collect(answer.x()).unwrap())
                });
                let (rows, b, x) = &all[0];
                assert_eq!((*rows, b.as_ref().unwrap()), (matrix.rows(), &whole.b), "{name} {rhs}");
                let distributed = over_ranks(size, |ranks| {
                    let rows = case.distribute(ranks, &matrix).unwrap();
                    let problem = rows.problem(ranks.is_first().then_some(&whole)).unwrap();
                    let settings = case.settings(Solver::over_ranks(case.method, &rows)).unwrap();
                    rows.collect(settings.max_iters(40).solve(&problem).unwrap().x()).unwrap()
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
        let case = Case { method, precond: "jacobi", ..Case::default() };
        let solve = |size: usize, resume: bool, most: usize| {
            let mut all = over_ranks(size, |ranks| {
                let rows = case.distribute(ranks, &matrix)?;
                let problem = rows.problem(ranks.is_first().then_some(&whole))?;
                let solver = case.settings(Solver::over_ranks(method, &rows))?.max_iters(most);
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
        let one = case.settings(Solver::new(method, &matrix)).unwrap().resume(&file);
        let one = one.solve(&whole).unwrap();
        assert!(one.converged() && one.outcome().iterations.abs_diff(straight) <= 2);
        // And the other way round.
        let one = case.settings(Solver::new(method, &matrix)).unwrap().max_iters(11);
        one.checkpoint(&file, Duration::from_secs(1000)).solve(&whole).unwrap();
        let (iterations, converged, _) = solve(2, true, 1000);
        assert!(converged && iterations.abs_diff(straight) <= 2);
    }
}
