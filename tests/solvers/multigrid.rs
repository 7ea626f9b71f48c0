//! Algebraic multigrid: the numbers of iterations, the independence of threads, and the systems that it
//! takes.

use crate::common::places::check_threads;
use crate::common::solves::{System, preconditioner, to};
use crate::common::vectors::bits;
use crate::common::{tolerance, zoo};
use solver::device::Cpu;
use solver::engine::{Cg, DeviceSettings, Matrix, RightHandSides, SystemSettings};
use solver::scalar::Precision;
use solver::solve::Method;
use solver::stop::StopReason;

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
        ("cycle=w", 14),
        ("cycle=w,degree=1", 20),
        ("strength=0", 16),
        ("coarse=20", 16),
        ("coarse=1", 16),
        ("levels=1", 300),
        ("levels=2", 24),
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
