//! Iterations allocate no memory on any thread: a solve of three times the iterations makes the
//! same number of allocations.

use crate::backend::{Choice, REGISTRY};
use crate::common::alone::runs_alone;
use crate::common::each_backend::Builds;
use crate::common::memory;
use crate::device::Cpu;
use crate::engine::{DeviceSettings, Matrix, Solver, SystemSettings};
use crate::format::{Csr, Values};
use crate::observe::Recorder;
use crate::precond::Preconditioner;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{Dangling, RankProblem, power};
use crate::solve::{Method, System as Given};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;

/// Counts the allocations of a whole solve of `iterations` iterations, including the verdict.
fn allocations(
    cpu: &Cpu,
    method: Method,
    backend: &str,
    precond: Preconditioner,
    iterations: usize,
) -> usize {
    let matrix = Arc::new(crate::source::load("poisson2d:100x90").unwrap().matrix);
    let b = matrix.multiply_reference(&vec![1.0; matrix.cols()]);
    let choice = Choice::resolve("cpu", "auto", backend).unwrap();
    let rules = [StoppingRule::RelativeResidual(1e-300), StoppingRule::MaxIterations(iterations)];
    let rule = StoppingRule::any(rules);
    let mut recorder = Recorder::with_capacity(iterations);
    // Not counted: the number of allocations of the threads that build varies.
    let a = choice.build::<Cpu, f64>(cpu, &matrix, 0).unwrap();
    let m = precond.build(&matrix, &a, 0).unwrap();
    let before = memory::allocations();
    let system = Given::new(&matrix, &b);
    let outcome = method.solve(a, m, &system, &rule, &mut [&mut recorder]).unwrap();
    let count = memory::allocations() - before;
    assert_eq!(outcome.reason, StopReason::IterationLimit { limit: iterations });
    count
}

/// Counts the allocations of PageRank with `iterations` iterations.
fn allocations_of_ranks(cpu: &Cpu, backend: &str, extrapolate: bool, iterations: usize) -> usize {
    let grid = crate::source::load("poisson2d:100x90").unwrap().matrix;
    let links = Links::new(&Csr::with_pattern(grid.pattern().clone(), Values::Ones).unwrap()).unwrap();
    let v: Vec<f64> = (0..grid.rows()).map(|i| f64::from(u8::from(i < 10)) / 10.0).collect();
    let problem = RankProblem {
        links: &links,
        damping: 0.99,
        dangling: Dangling::Uniform,
        teleport: Some(&v),
        start: None,
    };
    let rules = [StoppingRule::AbsoluteResidual(1e-300), StoppingRule::MaxIterations(iterations)];
    let operator = Choice::resolve("cpu", "auto", backend).unwrap().build(cpu, links.incoming(), 0).unwrap();
    let mut recorder = Recorder::with_capacity(iterations);
    let before = memory::allocations();
    let rule = StoppingRule::any(rules);
    power::<Cpu, f64>(operator, &problem, extrapolate, &rule, &mut [&mut recorder]).unwrap();
    memory::allocations() - before
}

/// Excluded backends: reference strategies with a task queue that each product fills again, and backends that
/// do not support this matrix.
const EXCLUDED: [&str; 4] = ["bsr-max-tasks", "bsr-fixed-tasks", "dense", "pull"];

// In a pool of one thread, the parallel loops of the verdict always make the same number of allocations.
#[test]
fn iterations_allocate_no_memory() {
    if !runs_alone(concat!(module_path!(), "::iterations_allocate_no_memory")) {
        return;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(Some(threads)).unwrap();
            // A thread allocates once when it starts and once when it first sleeps, which may be late on a
            // busy machine. Iterations that allocate would do so at every try.
            const TRIES: usize = 4;
            allocations(&cpu, Method::Cg, "rows", Preconditioner::NONE, 3);
            let same = |what: String, (few, many): (usize, usize), count: &dyn Fn(usize) -> usize| {
                let mut counted = (0, 1);
                for _ in 0..TRIES {
                    counted = (count(few), count(many));
                    if counted.0 == counted.1 {
                        break;
                    }
                }
                assert!(counted.0 > 5, "{what}: the vectors of a solve are allocated: {counted:?}");
                assert_eq!(counted.0, counted.1, "{what}: {few} iterations and {many}");
            };
            // Few enough that no solve restarts, even with the best preconditioner.
            let early = (8, 24);
            for (method, backend) in
                [(Method::Cg, "auto"), (Method::PipelinedCg, "rows"), (Method::Minres, "rows")]
            {
                for precond in Preconditioner::all() {
                    let precond = match precond.name() {
                        // Multigrid would converge before.
                        "amg" => "amg:prolongator=plain,coarse=20,degree=1".parse().unwrap(),
                        _ => precond,
                    };
                    let what = format!("{}, {backend}, {}, {threads} threads", method.name(), precond.name());
                    same(what, early, &|iterations| {
                        allocations(&cpu, method, backend, precond.clone(), iterations)
                    });
                }
            }
            let backends = REGISTRY.iter().filter(|e| e.device() == "cpu" && !EXCLUDED.contains(&e.name));
            for backend in backends.map(|e| e.name) {
                let none = Preconditioner::NONE;
                let count = |iterations| allocations(&cpu, Method::Cg, backend, none.clone(), iterations);
                same(format!("cg, {backend}, {threads} threads"), early, &count);
            }
            for (backend, extrapolate) in [("pull", false), ("merge", false), ("sell", true)] {
                let count = |iterations| allocations_of_ranks(&cpu, backend, extrapolate, iterations);
                // The first extrapolation allocates memory for its sums.
                let when = if extrapolate { (24, 64) } else { early };
                same(format!("pagerank, {backend}, {threads} threads"), when, &count);
            }
        }
    });
}

// In a pool of one thread, as above; the verdict runs on the threads of the device.
#[test]
fn a_second_solve_allocates_only_its_answer_and_solve_into_no_memory() {
    if !runs_alone(concat!(
        module_path!(),
        "::a_second_solve_allocates_only_its_answer_and_solve_into_no_memory"
    )) {
        return;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let matrix = Matrix::open("poisson2d:70x64").unwrap();
        let b = matrix.csr().multiply_reference(&vec![1.0; matrix.rows()]);
        for threads in [1, 3] {
            for method in Method::ALL {
                for precond in Preconditioner::all() {
                    let solver = Solver::new(method, &matrix).device("cpu").threads(threads);
                    let mut solve = solver
                        .preconditioner(precond.clone())
                        .backend("sell")
                        .max_iters(3000)
                        .prepare()
                        .unwrap();
                    let mut x = vec![0.0; matrix.rows()];
                    solve.solve_into(&b, &mut x).unwrap();
                    // Each thread allocates once, when it first sleeps.
                    let counts = |solve: &mut dyn FnMut()| {
                        (0..4).map(|_| memory::counted(&mut *solve)).min().unwrap_or(usize::MAX)
                    };
                    let what = format!("{}, {precond}, {threads} threads", method.name());
                    let into = counts(&mut || {
                        assert_eq!(
                            solve.solve_into(&b, &mut x).unwrap().reason,
                            StopReason::Converged,
                            "{what}"
                        );
                    });
                    assert_eq!(into, 0, "{what}: solve_into");
                    let answer = counts(&mut || drop(solve.solve(&b).unwrap()));
                    // x, the residuals, their times, and the description of b.
                    assert!((1..=4).contains(&answer), "{what}: solve: {answer}");
                }
            }
        }
    });
}
