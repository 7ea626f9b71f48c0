//! Solves over ranks whose rows are divided by coordinates or by the graph of the matrix.

use crate::common::harness::skip;
use crate::common::jobs::System;
use crate::common::places::{Job, Place, check};
use crate::common::ranks::{bits, distance, over_ranks};
use solver::device::Ranks;
use solver::engine::DeviceSettings;
use solver::engine::{
    Cg, Cluster, Matrix, Network, Partition, Purpose, RankMatrix, RhsName, Solver, SystemSettings,
};
use solver::error::Result;
use solver::prelude::Answer;
use solver::scalar::Precision;
use solver::solve::Method;
use solver::source::{write_vector, write_vectors};
use std::path::Path;
use std::time::Duration;

const NODES: &str = "hex27:6x5x7,dof=3";
const GRID: &str = "poisson2d:40x37";

/// The partitions of this build that need no file.
fn partitions() -> Vec<Partition> {
    let all = [Partition::Coordinates, Partition::Graph];
    all.into_iter().filter(|partition| partition.check().is_ok()).collect()
}

fn purpose(method: Method, precond: &str, partition: &Partition) -> Purpose {
    let (precond, partition) = (precond.parse().unwrap(), partition.clone());
    Purpose { method, precond, precision: Precision::F64, assume_symmetric: false, partition }
}

fn distribute(ranks: &Ranks, matrix: &Matrix, purpose: &Purpose) -> Result<RankMatrix> {
    RankMatrix::distribute(ranks, ranks.is_first().then_some(matrix), purpose)
}

fn settings(rows: &RankMatrix, purpose: &Purpose) -> Solver {
    let solver = Solver::over_ranks(purpose.method, rows).device("cpu").threads(1);
    solver.preconditioner(purpose.precond.clone())
}

#[test]
fn solves_over_partitions_take_about_the_iterations_of_one_process_and_give_its_answer() {
    let all = [
        (Method::Cg, "none"),
        (Method::Cg, "jacobi"),
        (Method::Cg, "block-jacobi"),
        (Method::Cg, "block-jacobi:block=5"),
        (Method::Cg, "chebyshev:degree=3"),
        (Method::PipelinedCg, "jacobi"),
        (Method::Minres, "none"),
    ];
    for partition in &partitions() {
        for matrix in [NODES, GRID] {
            for (method, precond) in all {
                let system = System { matrix, method, precond, partition, ..System::default() };
                check(&system, [1, 2, 3, 5].map(Place::Ranks));
            }
        }
    }
}

#[test]
fn incomplete_factors_of_the_parts_converge_and_are_named_with_the_partition() {
    for partition in &partitions() {
        let system = System { matrix: NODES, precond: "ic0", partition, ..System::default() };
        let all = check(&system, [1, 4].map(Place::Ranks));
        // One part is the whole matrix in its order.
        assert_eq!(all[1].iterations(), all[0].iterations());
        assert!(distance(&all[1].x, &all[0].x) < 1e-6);
        let expected = format!("ic0 in each of 4 ranks by {partition} (additive Schwarz)");
        assert_eq!(all[2].report["preconditioner"], expected);
    }
}

#[test]
fn the_same_partition_gives_the_same_bits_in_every_run() {
    for partition in &partitions() {
        let (precond, rhs) = ("block-jacobi", "random:2");
        let system = System { matrix: NODES, precond, rhs, partition, ..System::default() };
        let run = || {
            let found = system.run(Place::Ranks(4));
            (found.report["device"].clone(), found.iterations(), bits(&found.x))
        };
        assert_eq!(run(), run(), "{partition}");
    }
}

#[test]
fn right_hand_sides_and_answers_are_in_the_order_of_the_matrix_as_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.npy");
    for (what, names) in [
        (NODES, &["A*ones", "ones", "random:3"][..]),
        // A*ones vanishes.
        ("poisson2d:13x11,boundary=neumann", &["A*ones"]),
    ] {
        let matrix = Matrix::open(what).unwrap();
        let n = matrix.rows();
        let sides: Vec<f64> = (0..2 * n).map(|i| (i as f64).sin()).collect();
        write_vectors(&file, &sides, 2).unwrap();
        for partition in partitions() {
            let purpose = purpose(Method::Minres, "none", &partition);
            for size in [1, 3, 4] {
                let found = over_ranks(size, |ranks| -> Result<_> {
                    let rows = distribute(ranks, &matrix, &purpose)?;
                    let numbers: Vec<usize> = rows.row_numbers().collect();
                    assert!(numbers.is_sorted() && numbers.len() == rows.rows().len());
                    let file = RhsName::resolve(file.as_os_str())?;
                    let b = file.make_rows(&rows)?;
                    let expected: Vec<f64> =
                        numbers.iter().flat_map(|row| [sides[2 * row], sides[2 * row + 1]]).collect();
                    assert_eq!(b.b, expected);
                    assert_eq!(rows.collect(&b.b)?, ranks.is_first().then(|| sides.clone()));
                    let mut all = Vec::new();
                    for name in names {
                        let made = RhsName::resolve(name.as_ref())?.make_rows(&rows)?;
                        let whole = matrix.problem(name)?;
                        let sent = rows.problem(ranks.is_first().then_some(&whole))?;
                        assert_eq!(bits(&made.b), bits(&sent.b), "{name}");
                        assert_eq!(made.answer, sent.answer);
                        all.push(rows.collect(&made.b)?);
                    }
                    let many = RhsName::with_count(None, 3)?;
                    let many = (
                        many.make_rows(&rows)?,
                        rows.problem(
                            ranks
                                .is_first()
                                .then(|| many.make(matrix.csr(), &[], None))
                                .transpose()?
                                .as_ref(),
                        )?,
                    );
                    assert_eq!(bits(&many.0.b), bits(&many.1.b));
                    Ok(all)
                });
                let found = found.into_iter().next().unwrap().unwrap();
                for (name, b) in names.iter().zip(found) {
                    assert_eq!(bits(&b.unwrap()), bits(&matrix.problem(name).unwrap().b), "{what}: {name}");
                }
            }
        }
    }
}

#[test]
fn several_columns_are_solved_over_partitions() {
    for method in [Method::Cg, Method::BlockCg] {
        for partition in &partitions() {
            let (rhs, columns) = ("random:4", 3);
            let system = System { matrix: NODES, method, rhs, columns, partition, ..System::default() };
            check(&system, [Place::Ranks(3)]);
        }
    }
}

/// Runs some iterations from a start over ranks or in one process, with a checkpoint at the end. Returns the
/// iterations, the x and whether the solve has converged.
fn continued(
    (matrix, partition): (&Matrix, &Partition),
    size: usize,
    iterations: usize,
    (save, resume): (&Path, Option<&Path>),
) -> (u64, Vec<f64>, bool) {
    let purpose = purpose(Method::Cg, "jacobi", partition);
    let with = |solver: Solver| {
        let solver = solver.max_iters(iterations).checkpoint(save, Duration::from_secs(1000));
        match resume {
            Some(path) => solver.resume(path),
            None => solver,
        }
    };
    let x0: Vec<f64> = (0..matrix.rows()).map(|i| (i as f64).cos()).collect();
    let of = |answer: &Answer| (answer.report().iterations, answer.converged());
    if size == 0 {
        let b = matrix.problem("A*ones").unwrap();
        let b = solver::engine::RightHandSide::of(&b).from_start(&x0);
        let answer =
            with(Solver::new(Method::Cg, matrix).device("cpu").threads(1).preconditioner(purpose.precond));
        let answer = answer.solve(b).unwrap();
        let (iterations, converged) = of(&answer);
        return (iterations, answer.x().to_vec(), converged);
    }
    let mut found = over_ranks(size, |ranks| -> Result<_> {
        let rows = distribute(ranks, matrix, &purpose)?;
        // A*ones is computed by the ranks.
        let problem = RhsName::TimesOnes.make_rows(&rows)?;
        let start = rows.pick(&x0, 1);
        let b = solver::engine::RightHandSide::of(&problem).from_start(&start);
        let answer = with(settings(&rows, &purpose)).solve(b)?;
        Ok((of(&answer), rows.collect(answer.x())?))
    });
    let ((iterations, converged), x) = found.swap_remove(0).unwrap();
    (iterations, x.unwrap(), converged)
}

#[test]
fn a_checkpoint_over_a_partition_is_resumed_by_one_process_and_over_other_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // More rows than are collected at once for the fingerprint.
    let matrix = Matrix::open("poisson2d:300x250").unwrap();
    let mut all = vec![Partition::Entries];
    all.extend(partitions());
    let (expected, x, converged) =
        continued((&matrix, &Partition::Entries), 0, 10_000, (&path("whole"), None));
    assert!(converged);
    for (index, partition) in all.iter().enumerate() {
        let saved = path("saved");
        let (done, ..) = continued((&matrix, partition), 3, 40, (&saved, None));
        assert_eq!(done, 40);
        let other = &all[(index + 1) % all.len()];
        for (size, partition) in [(0, &Partition::Entries), (4, other), (3, partition)] {
            let (iterations, got, converged) =
                continued((&matrix, partition), size, 10_000, (&path("end"), Some(&saved)));
            let what = format!("saved over {partition}, resumed over {size} ranks");
            assert!(converged, "{what}");
            assert!(
                (iterations as f64 - expected as f64).abs() <= 0.01 * expected as f64,
                "{what}: {iterations} for {expected}"
            );
            assert!(distance(&got, &x) < 1e-5, "{what}");
        }
        // One process saves, and ranks resume.
        continued((&matrix, partition), 0, 40, (&saved, None));
        let (iterations, ..) = continued((&matrix, partition), 2, 10_000, (&path("end"), Some(&saved)));
        assert!((iterations as f64 - expected as f64).abs() <= 0.01 * expected as f64);
    }
}

#[test]
fn factors_of_other_parts_are_refused_on_resume_though_the_file_of_points_has_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let (points, saved) = (folder.path().join("points.npy"), folder.path().join("saved"));
    let matrix = Matrix::open(GRID).unwrap();
    let run = |file: &Path, iterations: usize, resume: bool| {
        let purpose = purpose(Method::Cg, "ic0", &Partition::CoordinatesIn(file.to_owned()));
        let found = over_ranks(3, |ranks| -> Result<bool> {
            let rows = distribute(ranks, &matrix, &purpose)?;
            let problem = RhsName::Ones.make_rows(&rows)?;
            let solver = settings(&rows, &purpose).max_iters(iterations);
            let solver = match resume {
                true => solver.resume(&saved),
                false => solver.checkpoint(&saved, Duration::from_secs(1000)),
            };
            Ok(solver.solve(&problem)?.converged())
        });
        found.into_iter().next().unwrap()
    };
    let columns: Vec<f64> = (0..matrix.rows()).map(|row| (row % 40) as f64).collect();
    let lines: Vec<f64> = (0..matrix.rows()).map(|row| (row / 40) as f64).collect();
    write_vector(&points, &columns).unwrap();
    assert!(!run(&points, 10, false).unwrap());
    assert!(run(&points, 1000, true).unwrap());
    // The same parts by a file of another name.
    let copy = folder.path().join("copy.npy");
    write_vector(&copy, &columns).unwrap();
    assert!(run(&copy, 1000, true).unwrap());
    write_vector(&points, &lines).unwrap();
    let refused = run(&points, 1000, true).unwrap_err().to_string();
    assert!(refused.contains("preconditioner") && refused.contains("parts ["), "{refused}");
}

#[test]
fn a_file_of_coordinates_divides_a_matrix_as_its_mesh_does() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = Matrix::open(NODES).unwrap();
    let nodes: Vec<f64> =
        (0..210).flat_map(|node| [node % 6, node / 6 % 5, node / 30].map(|c| c as f64)).collect();
    let of_rows: Vec<f64> = nodes.chunks(3).flat_map(|point| [point; 3].concat()).collect();
    let numbers = |partition: &Partition| {
        let purpose = purpose(Method::Cg, "none", partition);
        let found =
            over_ranks(4, |ranks| distribute(ranks, &matrix, &purpose).unwrap().row_numbers().collect());
        found as Vec<Vec<usize>>
    };
    let expected = numbers(&Partition::Coordinates);
    for (name, points) in [("nodes.npy", &nodes), ("rows.npy", &of_rows), ("nodes.mtx", &nodes)] {
        let path = folder.path().join(name);
        write_vectors(&path, points, 3).unwrap();
        assert_eq!(numbers(&Partition::CoordinatesIn(path)), expected, "{name}");
    }
    // Rows of a node have the same rank.
    assert!(
        expected.iter().all(|rows| rows.chunks(3).all(|node| node[0] % 3 == 0 && node[2] == node[0] + 2))
    );
}

#[test]
fn wrong_coordinates_are_refused_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = Matrix::open("poisson2d:6x5").unwrap();
    let unnamed = Matrix::from(matrix.csr().clone());
    let refused = |matrix: &Matrix, partition: Partition| {
        let purpose = purpose(Method::Cg, "none", &partition);
        let found = over_ranks(3, |ranks| distribute(ranks, matrix, &purpose).map(|_| ()));
        assert!(found.iter().all(Result::is_err));
        found.into_iter().next().unwrap().unwrap_err().to_string()
    };
    let path = |name: &str| Partition::CoordinatesIn(folder.path().join(name));
    let message = refused(&matrix, path("missing.npy"));
    assert!(message.contains("no such file of coordinates"), "{message}");
    write_vectors(folder.path().join("few.npy"), &[0.0; 14], 2).unwrap();
    let message = refused(&matrix, path("few.npy"));
    assert!(message.contains("it is 7 x 2, but the matrix has 30 rows"), "{message}");
    let mut points = vec![0.5; 60];
    points[9] = f64::NAN;
    write_vectors(folder.path().join("nan.npy"), &points, 2).unwrap();
    let message = refused(&matrix, path("nan.npy"));
    assert!(message.contains("row 4, column 1 (counted from 0) is NaN"), "{message}");
    write_vectors(folder.path().join("transposed.npy"), &[0.5; 60], 30).unwrap();
    let message = refused(&matrix, path("transposed.npy"));
    assert!(message.contains("it is 2 x 30; is it transposed?"), "{message}");
    write_vectors(folder.path().join("single.npy"), &[0.5; 2], 2).unwrap();
    let message = refused(&matrix, path("single.npy"));
    assert!(message.contains("a single point"), "{message}");
    let message = refused(&unnamed, Partition::Coordinates);
    assert!(message.contains("coordinates:FILE"), "{message}");
    if Partition::Graph.check().is_err() {
        let message = refused(&matrix, Partition::Graph);
        assert!(message.contains("cargo feature metis"), "{message}");
    }
}

#[test]
fn one_device_needs_no_partition() {
    let matrix = Matrix::open(GRID).unwrap();
    let refused = Cg::new(&matrix).device("cpu").partition(Partition::Coordinates).prepare().unwrap_err();
    assert!(refused.to_string().contains("the solve has one device"), "{refused}");
}

#[test]
fn errors_name_rows_of_the_matrix_as_given() {
    let mut entries = solver::format::Coo::with_capacity(24, 24, 24).unwrap();
    (0..24).for_each(|row| entries.push(row, row, if row == 17 { -1.0 } else { 2.0 }).unwrap());
    let matrix = Matrix::from(entries.into_csr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.npy");
    // Even rows are on the left.
    let points: Vec<f64> = (0..24).map(|row| f64::from(row % 2)).collect();
    write_vector(&path, &points).unwrap();
    let partition = Partition::CoordinatesIn(path);
    for precond in ["jacobi", "ic0"] {
        let purpose = purpose(Method::Cg, precond, &partition);
        let found = over_ranks(2, |ranks| {
            settings(&distribute(ranks, &matrix, &purpose)?, &purpose).prepare().map(|_| ())
        });
        let messages: Vec<String> = found.into_iter().map(|found| found.unwrap_err().to_string()).collect();
        assert!(messages.iter().any(|message| message.contains("row 17 ")), "{messages:?}");
    }
}

fn predicted(matrix: &Matrix, ranks: usize, partition: Partition) -> (Vec<usize>, Vec<usize>, f64) {
    let network = Network::default();
    let prediction = matrix.over_ranks(&Cluster { ranks, per_machine: 1, network, partition }).unwrap();
    let received = prediction.parts.iter().map(|part| part.received).collect();
    (received, prediction.parts.iter().map(|part| part.neighbours).collect(), prediction.balance)
}

#[test]
fn boxes_of_a_grid_have_the_surface_of_bricks() {
    let matrix = Matrix::open("poisson3d:16x16x16").unwrap();
    let (received, neighbours, balance) = predicted(&matrix, 8, Partition::Coordinates);
    // Eight cubes with three faces of 8 x 8 points inside.
    assert_eq!((received, neighbours), (vec![192; 8], vec![3; 8]));
    assert!(balance < 1.001, "{balance}");
    let (slabs, ..) = predicted(&matrix, 8, Partition::Entries);
    assert!(slabs.iter().all(|slab| *slab >= 256));
}

#[test]
fn the_graph_of_a_shuffled_grid_has_parts_that_exchange_few_numbers() {
    if let Err(missing) = Partition::Graph.check() {
        skip(missing);
    }
    let grid = Matrix::open("poisson2d:60x60").unwrap();
    let order: Vec<u32> = (0..3600).map(|i| i * 1009 % 3600).collect();
    let mut numbers = vec![0; 3600];
    order.iter().enumerate().for_each(|(number, row)| numbers[*row as usize] = number as u32);
    let shuffled = grid.csr().renumbered(&order, 3600, |column| numbers[column as usize]).unwrap();
    let shuffled = Matrix::from(shuffled);
    let total = |partition| predicted(&shuffled, 4, partition).0.iter().sum::<usize>();
    let (entries, graph) = (total(Partition::Entries), total(Partition::Graph));
    // Two lines of 60 points cut a grid into four squares.
    assert!(entries > 5000 && graph < 320, "{entries}, {graph}");
    let (_, _, balance) = predicted(&shuffled, 4, Partition::Graph);
    assert!(balance < 1.05, "{balance}");
}
