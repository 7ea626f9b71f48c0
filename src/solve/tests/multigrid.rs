//! Algebraic multigrid: the numbers of iterations, the independence of threads, and the systems that it
//! takes.

use crate::common::places::check_threads;
use crate::common::solves::{System, preconditioner, to};
use crate::common::vectors::bits;
use crate::common::{tolerance, zoo};
use solver::device::Cpu;
use solver::engine::{Cg, DeviceSettings, Matrix, RightHandSides, SystemSettings};
use solver::format::{Coordinates, Csr, Dense};
use solver::precond::{NearNull, Preconditioner};
use solver::scalar::Precision;
use solver::solve::Method;
use solver::stop::StopReason;
use std::sync::Arc;

fn iterations(matrix: &str, precond: &str) -> usize {
    let cpu = Cpu::new(Some(2)).unwrap();
    let outcome = System::generated(matrix).solve_with(&cpu, preconditioner(precond), &to(tolerance::RTOL));
    assert_eq!(outcome.reason, StopReason::Converged, "{matrix}, {precond}");
    outcome.iterations
}

#[test]
fn the_iterations_hardly_grow_with_the_mesh() {
    let of = |precond: &str| {
        ["poisson2d:40x40", "poisson2d:80x80", "poisson2d:160x160"].map(|matrix| iterations(matrix, precond))
    };
    let [small, middle, large] = of("amg");
    assert!(large <= small + 4 && large <= 14, "{small}, {middle}, {large}");
    // Conjugate gradients alone take twice as many on a mesh that is twice as wide.
    let [small, _, large] = of("jacobi");
    assert!(large > 3 * small, "{small}, {large}");
}

#[test]
fn systems_in_three_dimensions_with_jumps_and_of_elasticity_take_few_iterations() {
    for (matrix, most) in [
        ("poisson3d:20x20x20", 12),
        ("poisson3d:27x9x31", 14),
        ("elasticity3d:8x8x8", 40),
        ("elasticity3d:8x8x8,contrast=100,seed=2", 60),
    ] {
        let found = iterations(matrix, "amg");
        assert!(found <= most, "{matrix}: {found}");
    }
}

#[test]
fn every_parameter_gives_a_preconditioner_that_converges() {
    for (parameters, most) in [
        ("degree=1", 22),
        ("cycle=v", 18),
        ("cycle=v,degree=1", 26),
        ("strength=0", 16),
        ("coarse=20", 16),
        ("coarse=1", 16),
        ("levels=1", 300),
        ("levels=2", 24),
        ("levels=2,degree=1", 40),
        ("levels=3,cycle=v", 24),
        ("prolongator=plain", 60),
        ("precision=f64", 14),
    ] {
        let found = iterations("poisson2d:90x80", &format!("amg:{parameters}"));
        assert!(found <= most, "{parameters}: {found}");
    }
}

#[test]
fn every_number_of_threads_gives_the_same_bits() {
    let system = System::generated("poisson3d:24x23x22");
    check_threads("amg", &[2, 3, 8], |threads| {
        let cpu = Cpu::new(Some(threads)).unwrap();
        let outcome = system.solve_with(&cpu, preconditioner("amg:coarse=100"), &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged);
        bits(&outcome.x)
    });
}

#[test]
fn a_singular_but_consistent_system_converges() {
    let cpu = Cpu::new(Some(2)).unwrap();
    let system = System::random(zoo::generated("poisson2d:70x60,boundary=neumann"));
    for method in [Method::Cg, Method::Minres] {
        let outcome = system.solve_by(&cpu, method, preconditioner("amg"), &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged, "{}", method.name());
        assert!(outcome.iterations <= 20, "{}: {}", method.name(), outcome.iterations);
    }
}

#[test]
fn every_method_and_precision_takes_it_and_columns_are_solved_together() {
    let matrix = Matrix::open("poisson2d:60x50").unwrap();
    let b: Vec<f64> = (0..3 * matrix.rows()).map(|i| (i as f64).sin()).collect();
    for method in Method::ALL {
        for precision in [Precision::F64, Precision::F32, Precision::Mixed] {
            let solver = solver::engine::Solver::new(method, &matrix).precond("amg:coarse=50");
            let mut prepared = solver.device("cpu").precision(precision).columns(3).prepare().unwrap();
            let answers = prepared.solve_many(RightHandSides::new(&b, 3)).unwrap();
            assert!(answers.converged(), "{}, {}", method.name(), precision.name());
            assert!(answers.outcomes().all(|outcome| outcome.iterations <= 30));
        }
    }
}

#[test]
fn blocks_that_do_not_divide_the_rows_are_refused() {
    let matrix = Matrix::open("poisson2d:10x10").unwrap();
    let error = Cg::new(&matrix).device("cpu").precond("amg:block=7").prepare().unwrap_err().to_string();
    assert!(error.contains("100 rows") && error.contains("amg:block=7"), "{error}");
}

#[test]
fn a_matrix_whose_diagonal_is_not_positive_is_refused_with_its_row() {
    let entries = [(0, 0, 1.0), (1, 1, -2.0), (2, 2, 1.0)];
    let matrix = Matrix::from_triplets(3, 3, entries).unwrap();
    let error = Cg::new(&matrix).device("cpu").precond("amg").prepare().unwrap_err().to_string();
    assert!(error.contains("amg") && error.contains("row 1 "), "{error}");
}

/// Solves with `amg` for a random right-hand side of the range; returns the iterations and the description of
/// the preconditioner.
fn solved(matrix: &Matrix, precond: Preconditioner) -> (usize, String) {
    let b = System::random(Arc::new(matrix.csr().clone())).b;
    let answer = Cg::new(matrix).device("cpu").threads(2).preconditioner(precond).solve(&b).unwrap();
    assert!(answer.converged(), "{}", answer.report());
    (answer.iterations(), answer.report().preconditioner.clone())
}

/// Returns the same matrix without the coordinates of its nodes.
fn without_coordinates(matrix: &Matrix) -> Matrix {
    Matrix::from(Csr::clone(matrix.csr()))
}

#[test]
fn rigid_body_modes_make_elasticity_take_few_iterations() {
    for (name, modes, most) in [
        ("delaunay2d:n=3000,unknowns=2", 3, 20),
        ("delaunay2d:n=3000,unknowns=2,boundary=neumann", 3, 20),
        ("delaunay3d:n=3000,unknowns=3", 6, 24),
        ("delaunay3d:n=3000,unknowns=3,boundary=neumann", 6, 24),
        ("delaunay3d:n=3000,unknowns=3,shape=beam", 6, 30),
        ("delaunay3d:n=3000,unknowns=3,shape=plate", 6, 50),
        ("elasticity3d:10x10x10,contrast=100", 6, 30),
    ] {
        let matrix = Matrix::open(name).unwrap();
        let (with, told) = solved(&matrix, preconditioner("amg"));
        assert!(told.contains(&format!("{modes} rigid-body modes")), "{name}: {told}");
        assert!(with <= most, "{name}: {with}");
        let (without, told) = solved(&without_coordinates(&matrix), preconditioner("amg"));
        assert!(!told.contains("rigid"), "{name}: {told}");
        assert!(with < without, "{name}: {with} with the modes, {without} without");
    }
}

#[test]
fn rigid_body_modes_given_as_vectors_or_as_coordinates_make_the_same_preconditioner() {
    let matrix = Matrix::open("delaunay3d:n=1500,unknowns=3").unwrap();
    let coordinates = Coordinates::clone(matrix.coordinates().unwrap());
    let modes = NearNull::rigid_body_modes(&coordinates).unwrap();
    let plain = without_coordinates(&matrix);
    let amg = preconditioner("amg:block=3,coarse=30").with_near_null(modes).unwrap();
    let by_vectors = solved(&plain, amg);
    let by_coordinates =
        solved(&plain.with_coordinates(coordinates).unwrap(), preconditioner("amg:block=3,coarse=30"));
    assert_eq!(by_vectors, by_coordinates);
}

#[test]
fn displacements_fixed_by_rows_of_the_identity_do_not_break_rigid_body_modes() {
    let whole = Matrix::open("delaunay3d:n=3000,unknowns=3,boundary=neumann").unwrap();
    let coordinates = whole.coordinates().unwrap();
    // All of x = 0, and rollers on z = 0: only displacements along z are fixed there.
    let is_fixed = |row: usize| {
        let point = coordinates.node(row / 3);
        point[0] == 0.0 || (row % 3 == 2 && point[2] == 0.0)
    };
    let csr = whole.csr();
    let kept = |row: usize| csr.row(row).filter(move |(column, _)| !is_fixed(*column) && !is_fixed(row));
    let entries = (0..whole.rows()).flat_map(|row| {
        let one = is_fixed(row).then_some((row, row, 1.0));
        one.into_iter().chain(kept(row).map(move |(column, value)| (row, column, value)))
    });
    let fixed = Matrix::from_triplets(whole.rows(), whole.rows(), entries).unwrap();
    let fixed = fixed.with_coordinates(Coordinates::clone(coordinates)).unwrap();
    let (iterations, _) = solved(&fixed, preconditioner("amg"));
    assert!(iterations <= 24, "{iterations}");
}

#[test]
fn near_null_vectors_that_do_not_fit_are_refused_with_a_remedy() {
    let matrix = Matrix::open("poisson2d:10x10").unwrap();
    let vectors = |rows| NearNull::new(Dense::new(rows, 1, vec![1.0; rows]).unwrap()).unwrap();
    let short = preconditioner("amg").with_near_null(vectors(99)).unwrap();
    let error = Cg::new(&matrix).device("cpu").preconditioner(short).prepare().unwrap_err().to_string();
    assert!(error.contains("99 rows and the matrix 100"), "{error}");
    let error = preconditioner("ic0").with_near_null(vectors(100)).unwrap_err().to_string();
    assert!(error.contains("ic0") && error.contains("use amg"), "{error}");
    let points = Coordinates::new(2, vec![0.5; 2 * 33]).unwrap();
    let error = matrix.with_coordinates(points).map(drop).unwrap_err().to_string();
    assert!(error.contains("33 nodes") && error.contains("100 rows"), "{error}");
}

#[test]
fn the_answer_for_a_singular_matrix_names_its_null_space() {
    for (name, what) in [
        ("poisson2d:30x20,boundary=neumann", "the constant vector"),
        ("delaunay3d:n=300,unknowns=3,boundary=neumann", "6 rigid-body modes"),
    ] {
        let matrix = Matrix::open(name).unwrap();
        let b = System::random(Arc::new(matrix.csr().clone())).b;
        let answer = Cg::new(&matrix).device("cpu").precond("amg").solve(&b).unwrap();
        let note = answer.report().note.unwrap_or_default();
        assert!(answer.converged() && note.contains(&format!("it maps {what} to 0")), "{name}: {note}");
    }
    let matrix = Matrix::open("poisson2d:30x20").unwrap();
    let answer = Cg::new(&matrix).device("cpu").precond("amg").solve(&vec![1.0; 600]).unwrap();
    assert!(!answer.report().note.unwrap_or_default().contains("singular"));
}

#[test]
fn a_right_hand_side_outside_the_range_is_named_and_its_rest_is_solved_with_a_projection() {
    let matrix = Matrix::open("poisson2d:40x30,boundary=neumann").unwrap();
    let b: Vec<f64> = (0..1200).map(|i| f64::from(i % 13) - 2.0).collect();
    for precond in ["none", "ic0", "amg"] {
        let solver = || Cg::new(&matrix).device("cpu").precond(precond);
        let failed = solver().solve(&b).unwrap();
        let hint = failed.report().hint.unwrap_or_default();
        assert!(!failed.converged() && hint.contains("no x solves the system"), "{precond}: {hint}");
        assert!(hint.contains("project(true)"), "{precond}: {hint}");
        let answer = solver().project(true).solve(&b).unwrap();
        assert!(answer.converged(), "{precond}: {}", answer.report());
        let note = answer.report().note.unwrap_or_default();
        assert!(note.contains("was removed"), "{precond}: {note}");
        // The residual is the constant part of b, and the solution has no such part.
        let mean = b.iter().sum::<f64>() / 1200.0;
        let product = matrix.csr().multiply_reference(answer.x());
        let size = b.iter().map(|b| b * b).sum::<f64>().sqrt();
        let left = b.iter().zip(&product).map(|(b, p)| (b - p - mean).powi(2)).sum::<f64>().sqrt();
        assert!(left < 2.0 * tolerance::RTOL * size, "{precond}: {left}");
        assert!((answer.x().iter().sum::<f64>() / 1200.0).abs() < 1e-10, "{precond}");
    }
}

#[test]
fn every_column_is_projected_and_a_definite_matrix_is_solved_as_without_a_projection() {
    let singular = Matrix::open("poisson2d:20x20,boundary=neumann").unwrap();
    let b: Vec<f64> = (0..800).map(|i| f64::from(i % 7)).collect();
    let mut prepared = Cg::new(&singular).device("cpu").columns(2).project(true).prepare().unwrap();
    let answers = prepared.solve_many(RightHandSides::new(&b, 2)).unwrap();
    assert!(answers.converged(), "{}", answers.report());
    let definite = Matrix::open("poisson2d:20x20").unwrap();
    let x = |project| Cg::new(&definite).device("cpu").project(project).solve(&b[..400]).unwrap().into_x();
    assert_eq!(bits(&x(true)), bits(&x(false)));
    let answer = Cg::new(&definite).device("cpu").project(true).solve(&b[..400]).unwrap();
    let note = answer.report().note.unwrap_or_default();
    assert!(note.contains("no part of b was removed"), "{note}");
    // All of b is in the null space, and b of a wrong length is refused as without a projection.
    let solver = || Cg::new(&singular).device("cpu").precond("amg").project(true);
    let answer = solver().solve(&vec![1.3; 400]).unwrap();
    assert!(answer.converged() && answer.x().iter().all(|x| *x == 0.0), "{}", answer.report());
    assert!(solver().solve(&[1.0; 10]).is_err());
}

#[test]
fn a_prepared_solve_has_the_levels_and_its_report_the_same() {
    let matrix = Matrix::open("delaunay3d:n=1500,unknowns=3").unwrap();
    let mut prepared = Cg::new(&matrix).device("cpu").precond("amg:coarse=100").prepare().unwrap();
    let levels = prepared.levels().unwrap().clone();
    assert_eq!(
        (levels.near_null.as_str(), levels.constants, levels.unknowns),
        ("6 rigid-body modes", false, 3)
    );
    let [first, second, ..] = &levels.levels[..] else { panic!("{levels:?}") };
    assert_eq!((first.rows, first.entries), (matrix.rows() as u64, matrix.nnz() as u64));
    assert_eq!(second.rows, 6 * first.aggregates.unwrap());
    let (mean, largest) = (first.aggregate_mean.unwrap(), first.aggregate_largest.unwrap() as f64);
    let nodes = mean * first.aggregates.unwrap() as f64;
    assert!(nodes <= matrix.rows() as f64 / 3.0 + 1e-6 && 1.0 < mean && mean < largest, "{mean}, {largest}");
    let answer = prepared.solve(&vec![1.0; matrix.rows()]).unwrap();
    let report = answer.report();
    assert_eq!(report.multigrid.as_ref(), Some(&levels));
    let factor = report.convergence_factor.unwrap();
    let expected = answer.residuals().last().unwrap().powf(1.0 / answer.iterations() as f64);
    assert!((factor - expected).abs() < 1e-12, "{factor}");
    let jacobi = Cg::new(&matrix).device("cpu").precond("jacobi").prepare().unwrap();
    assert!(jacobi.levels().is_none());
}

#[test]
fn levels_in_double_precision_take_more_bytes_and_a_last_level_that_is_smoothed_has_an_eigenvalue() {
    let matrix = Matrix::open("poisson2d:60x60").unwrap();
    let levels = |precond: &str| {
        let prepared = Cg::new(&matrix).device("cpu").precond(precond).prepare().unwrap();
        prepared.levels().unwrap().levels.clone()
    };
    let bytes = |precond: &str| levels(precond).iter().map(|level| level.bytes).sum::<u64>();
    assert!(bytes("amg:precision=f64") > bytes("amg:precision=f32"));
    let last = levels("amg:levels=2,coarse=1").pop().unwrap();
    assert!(last.eigenvalue_largest.is_some() && last.aggregates.is_none(), "{last:?}");
    assert_eq!(levels("amg").pop().unwrap().eigenvalue_largest, None);
}

#[test]
fn new_values_of_the_matrix_make_new_levels() {
    let matrix = Matrix::open("poisson2d:40x40").unwrap();
    let mut prepared = Cg::new(&matrix).device("cpu").precond("amg:coarse=50").prepare().unwrap();
    let before = prepared.levels().unwrap().clone();
    // Weak connections along x.
    let values: Vec<f64> = (0..matrix.rows())
        .flat_map(|row| {
            let weaken =
                move |column: usize, value: f64| if column.abs_diff(row) == 1 { 1e-3 * value } else { value };
            matrix.csr().row(row).map(move |(column, value)| weaken(column, value)).collect::<Vec<_>>()
        })
        .collect();
    let changed = matrix.with_values(values).unwrap();
    prepared.update(&changed).unwrap();
    let after = prepared.levels().unwrap().clone();
    assert!(after.levels[1].rows > before.levels[1].rows, "{before:?}, {after:?}");
    let answer = prepared.solve(&vec![1.0; matrix.rows()]).unwrap();
    assert_eq!(answer.report().multigrid, Some(after));
}
