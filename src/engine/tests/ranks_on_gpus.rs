//! Solves over ranks, each with a GPU of its own. Needs several GPUs; with one, a single rank
//! runs by the same code.

use crate::common::gpu::{list, sizes};
use crate::common::harness::skip;
use crate::common::jobs::System;
use crate::common::places::{Place, check};
use crate::common::ranks::{bits, distance};
use crate::device::distributed::{Distributed, RowNumbers, in_threads};
use crate::device::sweep::dot_sweep;
use crate::device::{Cuda, Device, Slot, SlotState};
use crate::engine::{Cg, Matrix, Partition, Progress, RightHandSide, RightHandSides, Solver, SystemSettings};
use crate::engine::{DeviceSettings, RunSettings};
use crate::error::Error;
use crate::operator::dot_into;
use crate::scalar::Precision;
use crate::solve::Method;
use crate::stop::StopReason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Checks that ranks on GPUs take about the iterations of the CPU, give its answer, and have
/// the same bits in every run.
fn check_on_gpus(system: &System<'_>) {
    let (_alone, sizes) = sizes();
    check(system, sizes.into_iter().map(Place::RanksOnGpus));
}

const GRID: &str = "poisson2d:140x137";
const NODES: &str = "hex27:12x11x13,dof=3";

#[test]
fn methods_on_gpus_take_the_iterations_of_the_cpu_and_give_its_answer() {
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres] {
        for precond in ["none", "jacobi"] {
            for matrix in [GRID, NODES] {
                check_on_gpus(&System { matrix, method, precond, ..System::default() });
            }
        }
    }
}

#[test]
fn preconditioners_on_gpus_are_those_of_one_process() {
    for precond in ["block-jacobi", "chebyshev:degree=3"] {
        check_on_gpus(&System { matrix: NODES, precond, ..System::default() });
    }
}

#[test]
fn every_kind_of_backend_multiplies_the_block_of_a_gpu() {
    for backend in ["csr", "vector", "merge", "sell", "bsr:block=3x3", "burst", "cusparse"] {
        check_on_gpus(&System { matrix: NODES, backend, ..System::default() });
    }
}

#[test]
fn several_right_hand_sides_are_solved_together_on_gpus() {
    for method in [Method::Cg, Method::PipelinedCg, Method::Minres, Method::BlockCg] {
        check_on_gpus(&System { matrix: GRID, method, columns: 3, ..System::default() });
    }
    check_on_gpus(&System { matrix: NODES, columns: 8, ..System::default() });
}

#[test]
fn single_and_mixed_precision_on_gpus_converge() {
    for precision in [Precision::F32, Precision::Mixed] {
        check_on_gpus(&System { matrix: NODES, precision, ..System::default() });
    }
}

#[test]
fn a_matrix_that_leaves_ranks_without_rows_is_solved_on_gpus() {
    let (_alone, sizes) = sizes();
    let size = sizes[sizes.len() - 1];
    let matrix = Matrix::from_triplets(1, 1, [(0, 0, 4.0)]).unwrap();
    let found = System::default().try_run(&matrix, Place::RanksOnGpus(size)).unwrap();
    assert!(found.report["converged"] == true && found.x.len() == 1, "{}", found.report);
}

#[test]
fn methods_with_several_products_in_a_step_keep_the_order_of_messages() {
    for method in [Method::PipelinedCg, Method::Minres] {
        check_on_gpus(&System { matrix: GRID, method, precond: "chebyshev:degree=4", ..System::default() });
    }
}

#[test]
fn a_kernel_that_waits_for_a_rank_that_fails_ends() {
    let (_alone, sizes) = sizes();
    let Some(&size) = sizes.iter().find(|size| **size > 1) else { skip("one GPU") };
    let began = Instant::now();
    let all = in_threads(size, |ranks| {
        let gpu = Cuda::new(ranks.rank())?;
        let device = Distributed::new(gpu, ranks.clone(), RowNumbers::From(0))?;
        let mut slots = device.slots(1, 1)?;
        let x = device.vector::<f64>(1000, 1)?;
        ranks.agreed(device.synchronize())?;
        if ranks.rank() == 1 {
            return Err(Error::OtherRank { rank: 7 });
        }
        // The sum waits on the GPU for a number that never comes, and then the host for the rank.
        device.sweep(&mut [], &[&x, &x], &mut slots, &dot_sweep(&dot_into(Slot(0)), &[]))?;
        device.read(&slots, &mut SlotState::new(1, 1))?;
        ranks.sum(&mut [1.0]);
        Ok(())
    });
    assert!(matches!(all[0], Err(Error::OtherRank { rank: 1 })), "{:?}", all[0]);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_list_of_gpus_is_a_device_of_one_call() {
    let (_alone, _, count) = list();
    for (matrix, method, precond) in [
        (GRID, Method::Cg, "none"),
        (GRID, Method::PipelinedCg, "jacobi"),
        (NODES, Method::Cg, "block-jacobi"),
        (NODES, Method::Minres, "chebyshev"),
    ] {
        check(&System { matrix, method, precond, ..System::default() }, [Place::Gpus(count)]);
    }
}

#[test]
fn the_rows_of_a_list_of_gpus_are_divided_by_coordinates() {
    let (_alone, list, count) = list();
    for (name, precond) in [(GRID, "jacobi"), (NODES, "block-jacobi"), (NODES, "chebyshev")] {
        let partition = &Partition::Coordinates;
        let system = System { matrix: name, precond, partition, ..System::default() };
        let found = check(&system, [Place::Gpus(count)]).swap_remove(1);
        let matrix = Matrix::open(name).unwrap();
        let b = matrix.problem("random:7").unwrap().b;
        let cg = Cg::new(&matrix).device(&list).precond(precond).partition(partition.clone());
        let mut cg = cg.prepare().unwrap();
        assert_eq!(bits(cg.solve(&b).unwrap().x()), bits(&found.x));
        assert!(cg.solve_many(RightHandSides::new(&[&b[..], &b[..]].concat(), 2)).unwrap().converged());
    }
}

#[test]
fn a_solve_on_a_list_of_gpus_is_prepared_once_and_runs_on_any_thread_and_after_errors() {
    let (_alone, list, count) = list();
    let matrix = Matrix::open(GRID).unwrap();
    let b = matrix.problem("random:7").unwrap().b;
    let seen = Arc::new(AtomicUsize::new(0));
    let length = Arc::clone(&seen);
    let mut cg = Cg::new(&matrix)
        .device(&list)
        .on_progress(move |_| length.fetch_add(1, Ordering::Relaxed) < usize::MAX)
        .prepare()
        .unwrap();
    assert_eq!(cg.devices().len(), count);
    let first = cg.solve(&b).unwrap();
    assert!(seen.load(Ordering::Relaxed) > 0);
    let start = vec![f64::NAN; matrix.rows()];
    assert!(cg.solve(RightHandSide::from(&b).from_start(&start)).is_err());
    let second = thread::scope(|scope| scope.spawn(|| cg.solve(&b).unwrap()).join().unwrap());
    assert_eq!(bits(first.x()), bits(second.x()));
    let doubled: Vec<f64> = (0..matrix.nnz()).map(|j| 2.0 * matrix.csr().values().get(j)).collect();
    cg.update(&matrix.with_values(&doubled).unwrap()).unwrap();
    let half: Vec<f64> = first.x().iter().map(|x| 0.5 * x).collect();
    assert_eq!(bits(cg.solve(&b).unwrap().x()), bits(&half));
    let many = cg.solve_many(RightHandSides::new(&[&b[..], &b[..]].concat(), 2)).unwrap();
    assert!(many.converged() && many.x().len() == 2 * matrix.rows());
    // Two prepared solves on the same GPUs take turns.
    let mut other = Cg::new(&matrix).device(&list).prepare().unwrap();
    thread::scope(|scope| {
        let theirs = scope.spawn(|| (0..3).all(|_| cg.solve(&b).unwrap().converged()));
        assert!((0..3).all(|_| other.solve(&b).unwrap().converged()) && theirs.join().unwrap());
    });
}

#[test]
fn a_rank_that_fails_after_steps_were_recorded_ends_the_solve_on_all_gpus() {
    let (_alone, list, _) = list();
    let (sender, receiver) = mpsc::channel();
    // A solve that does not end must not keep this test from failing.
    thread::spawn(move || {
        let matrix = Matrix::open(GRID).unwrap();
        let b = matrix.problem("random:7").unwrap().b;
        for least in [0, 1, 50] {
            let failing = move |progress: &Progress| -> bool {
                assert!(progress.iteration < least, "the observer fails");
                true
            };
            let solver = Cg::new(&matrix).device(&list).on_progress(failing);
            assert!(catch_unwind(AssertUnwindSafe(|| solver.solve(&b))).is_err());
            assert!(Cg::new(&matrix).device(&list).solve(&b).unwrap().converged());
        }
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap();
}

#[test]
fn iterates_limits_and_flags_reach_a_list_of_gpus() {
    let (_alone, list, _) = list();
    let matrix = Matrix::open(GRID).unwrap();
    let (b, rows) = (matrix.problem("random:7").unwrap().b, matrix.rows());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let counting =
        move |_: usize, x: &[f64]| _ = counted.fetch_add(usize::from(x.len() == rows), Ordering::Relaxed);
    let answer = Cg::new(&matrix).device(&list).on_iterate(counting).solve(&b).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), answer.outcome().iterations);
    let flag = Arc::new(AtomicBool::new(true));
    let ended = Cg::new(&matrix).device(&list).cancel(&flag).solve(&b).unwrap();
    assert_eq!(ended.reason(), StopReason::Interrupted);
    let ended = Cg::new(&matrix).device(&list).time_limit(Duration::ZERO).solve(&b).unwrap();
    assert!(matches!(ended.reason(), StopReason::TimeLimit { .. }), "{}", ended.report());
}

#[test]
fn a_checkpoint_of_a_list_of_gpus_resumes_there_and_on_one_gpu() {
    let (_alone, list, _) = list();
    let (matrix, folder) = (Matrix::open(GRID).unwrap(), tempfile::tempdir().unwrap());
    for (method, columns) in [(Method::Cg, 1), (Method::Minres, 1), (Method::Cg, 3)] {
        let file = folder.path().join(format!("{method:?}{columns}"));
        let problem = matrix.problems("random:7", columns).unwrap();
        let solver = |device: &str| Solver::new(method, &matrix).device(device).precond("jacobi");
        let whole = solver(&list).solve_many(&problem).unwrap();
        let hour = Duration::from_secs(3600);
        let cut = solver(&list).max_iters(50).checkpoint(&file, hour).solve_many(&problem).unwrap();
        assert!(!cut.converged() && file.is_file());
        let resumed = solver(&list).resume(&file).solve_many(&problem).unwrap();
        assert_eq!(bits(resumed.x()), bits(whole.x()), "{method:?}");
        let alone = solver("cuda:0").resume(&file).solve_many(&problem).unwrap();
        assert!(alone.converged() && distance(alone.x(), whole.x()) < 1e-5, "{}", alone.report());
    }
}

#[test]
fn a_gpu_that_is_not_there_is_named() {
    let (_alone, _sizes) = sizes();
    let matrix = Matrix::open("poisson2d:9x9").unwrap();
    let error = Cg::new(&matrix).device("cuda:0,99").solve(&vec![1.0; 81]).unwrap_err().to_string();
    assert!(error.contains("99"), "{error}");
}
