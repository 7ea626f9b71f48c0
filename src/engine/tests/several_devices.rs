//! Solves on several devices of one process, by the name of the device alone. CPUs stand in for
//! GPUs: each has one thread.

use super::ranks_graphs::with_repeats;
use crate::common::jobs::{Chain, Ranking, System, on_cpus, ranking};
use crate::common::places::{Place, check};
use crate::common::ranks::{bits, distance};
use crate::engine::markov::ChainMethod;
use crate::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use crate::engine::{
    DeviceHandle, DeviceName, Matrix, Partition, Prepared, Request, RightHandSide, RightHandSides, Solver,
    Stopping, SystemSettings,
};
use crate::engine::{DeviceSettings, RunSettings};
use crate::error::{Error, Result};
use crate::observe::{Batch, Observer};
use crate::prelude::{Cg, Markov, Minres, Multiply, Pagerank, Weights};
use crate::scalar::Precision;
use crate::solve::Method;
use crate::stop::StopReason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const GRID: &str = "poisson2d:40x37";
const NODES: &str = "hex27:6x5x7,dof=3";

fn solver(method: Method, matrix: &Matrix, count: usize, precond: &str) -> Solver {
    let (request, settled) =
        on_cpus(count, Request { precond: precond.parse().unwrap(), ..Request::default() });
    Solver::new(method, matrix).settled(request, settled)
}

fn prepared(name: &str, count: usize) -> (Matrix, Prepared) {
    let matrix = Matrix::open(name).unwrap();
    let prepared = solver(Method::Cg, &matrix, count, "jacobi").prepare().unwrap();
    (matrix, prepared)
}

#[test]
fn methods_take_the_iterations_of_one_device_and_give_its_answer() {
    for (matrix, method, precond) in [
        (GRID, Method::Cg, "none"),
        (GRID, Method::PipelinedCg, "jacobi"),
        (NODES, Method::Cg, "block-jacobi"),
        (NODES, Method::Cg, "ic0"),
        (NODES, Method::Minres, "jacobi"),
    ] {
        let system = System { matrix, rhs: "A*ones", method, precond, ..System::default() };
        for found in &check(&system, (2..=4).map(Place::Cpus))[1..] {
            assert!(found.report["error_max"].as_f64().unwrap() < 1e-4, "{}", found.report);
        }
    }
}

#[test]
fn a_prepared_solve_runs_on_any_thread_and_after_errors() {
    let (matrix, mut cg) = prepared(GRID, 3);
    assert_eq!(cg.rows(), matrix.rows());
    assert_eq!(cg.devices().len(), 3);
    assert!(cg.describe_devices().starts_with("3 ranks"), "{cg:?}");
    let problem = matrix.problem("random:3").unwrap();
    let first = cg.solve(&problem.b).unwrap();
    // A start that is no number fails after the ranks have begun.
    let start = vec![f64::NAN; matrix.rows()];
    let failed = cg.solve(RightHandSide::from(&problem.b).from_start(&start)).unwrap_err();
    assert!(matches!(failed, Error::StartScale { .. }), "{failed}");
    let short = cg.solve(&problem.b[1..].to_vec()).unwrap_err();
    assert!(matches!(short, Error::Dimension { .. }), "{short}");
    let mut x = vec![0.0; matrix.rows()];
    assert!(
        cg.solve_into(&vec![1.0; 5], &mut x).is_err()
            && cg.solve_into(&problem.b, &mut x[1..].to_vec()).is_err()
    );
    let (mut cg, second) = thread::spawn(move || {
        let second = cg.solve(&problem.b).unwrap();
        (cg, second)
    })
    .join()
    .unwrap();
    assert_eq!(bits(first.x()), bits(second.x()));
    // A good start needs few iterations.
    let b = matrix.problem("random:3").unwrap().b;
    let again = cg.solve(RightHandSide::from(&b).from_start(first.x())).unwrap();
    assert!(again.converged() && again.outcome().iterations < 5, "{}", again.report());
    assert!(
        cg.solve_into(&vec![0.0; matrix.rows()], &mut x).unwrap().reason == StopReason::ZeroRightHandSide
    );
    assert!(x.iter().all(|x| *x == 0.0));
}

#[test]
fn prepared_solves_of_several_threads_follow_each_other() {
    let (matrix, _) = prepared(GRID, 2);
    let problem = matrix.problem("random:3").unwrap();
    let alone = solver(Method::Cg, &matrix, 2, "none").solve(&problem).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut cg = solver(Method::Cg, &matrix, 2, "none").prepare().unwrap();
                for _ in 0..3 {
                    assert_eq!(bits(cg.solve(&problem).unwrap().x()), bits(alone.x()));
                }
            });
        }
    });
}

#[test]
fn several_right_hand_sides_are_solved_with_whole_columns() {
    for method in [Method::Cg, Method::Minres, Method::BlockCg] {
        let matrix = Matrix::open(GRID).unwrap();
        let problem = matrix.problems("random:5", 3).unwrap();
        let one = System { method, rhs: "random:5", columns: 3, ..System::default() };
        let one = check(&one, [Place::Cpus(3)]).swap_remove(0);
        // Prepared for one column and for three.
        for columns in [1, 3] {
            let mut prepared = solver(method, &matrix, 3, "none").columns(columns).prepare().unwrap();
            let answers = prepared.solve_many(&problem).unwrap();
            assert!(answers.converged() && answers.count() == 3, "{}", answers.report());
            assert!(distance(answers.x(), &one.x) < 1e-5);
            let short = RightHandSides::new(&problem.b[1..], 3);
            assert!(prepared.solve_many(short).is_err());
            let start = prepared.solve_many(RightHandSides::from(&problem).from_start(answers.x())).unwrap();
            assert!(start.converged() && start.outcomes().all(|outcome| outcome.iterations < 5));
        }
    }
}

#[test]
fn new_values_are_distributed_again() {
    let (matrix, mut cg) = prepared(GRID, 3);
    let b = matrix.problem("random:3").unwrap().b;
    let before = cg.solve(&b).unwrap();
    let doubled: Vec<f64> = (0..matrix.nnz()).map(|j| 2.0 * matrix.csr().values().get(j)).collect();
    let doubled = matrix.with_values(&doubled).unwrap();
    cg.update(&doubled).unwrap();
    let after = cg.solve(&b).unwrap();
    let half: Vec<f64> = before.x().iter().map(|x| 0.5 * x).collect();
    assert_eq!(bits(after.x()), bits(&half));
}

#[test]
fn observers_see_all_rows_and_end_the_solve() {
    let matrix = Matrix::open(GRID).unwrap();
    let b = matrix.problem("random:3").unwrap().b;
    type Seen = Mutex<Vec<(usize, Vec<f64>)>>;
    let seen: Arc<Seen> = Arc::default();
    let (iterates, here) = (Arc::clone(&seen), thread::current().id());
    let answer = solver(Method::Cg, &matrix, 3, "none")
        .on_iterate(move |iteration, x| {
            assert_eq!(thread::current().id(), here);
            iterates.lock().unwrap().push((iteration, x.to_vec()));
        })
        .solve(&b)
        .unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), answer.outcome().iterations);
    let (last, x) = seen.last().unwrap();
    assert_eq!((*last, bits(x)), (answer.outcome().iterations, bits(answer.x())));
    assert_eq!(answer.residuals().len(), answer.outcome().iterations + 1);
    let ended = solver(Method::Cg, &matrix, 3, "none")
        .on_progress(|progress| progress.iteration < 1)
        .solve(&b)
        .unwrap();
    assert_eq!(ended.reason(), StopReason::Interrupted);
    let flag = Arc::new(AtomicBool::new(true));
    let ended = solver(Method::Cg, &matrix, 3, "none").cancel(&flag).solve(&b).unwrap();
    assert_eq!(ended.reason(), StopReason::Interrupted);
    let ended = solver(Method::Cg, &matrix, 3, "none").time_limit(Duration::ZERO).solve(&b).unwrap();
    assert!(matches!(ended.reason(), StopReason::TimeLimit { .. }), "{}", ended.report());
    let ended = solver(Method::Cg, &matrix, 3, "none").max_iters(7).solve(&b).unwrap();
    assert_eq!(ended.reason(), StopReason::IterationLimit { limit: 7 });
}

#[test]
fn an_observer_that_panics_ends_all_ranks_and_the_next_solve_runs() {
    let (matrix, mut cg) = prepared(GRID, 3);
    let b = matrix.problem("random:3").unwrap().b;
    struct Panics;
    impl crate::observe::Observer for Panics {
        fn batch(&mut self, _: &crate::observe::Batch<'_>) {
            panic!("the observer of the test panics");
        }
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| cg.solve_watched(&b, &mut [&mut Panics]).map(drop)));
    assert!(panicked.is_err());
    assert!(cg.solve(&b).unwrap().converged());
}

#[test]
fn a_solve_resumes_from_its_checkpoint_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = Matrix::open(GRID).unwrap();
    for (method, columns) in [(Method::Cg, 1), (Method::Minres, 1), (Method::Cg, 3)] {
        let file = folder.path().join(format!("{method:?}{columns}.checkpoint"));
        let problem = matrix.problems("random:3", columns).unwrap();
        let solver = || solver(method, &matrix, 3, "jacobi");
        let whole = solver().solve_many(&problem).unwrap();
        let cut =
            solver().max_iters(20).checkpoint(&file, Duration::from_secs(3600)).solve_many(&problem).unwrap();
        assert!(!cut.converged() && file.is_file());
        let resumed = solver().resume(&file).solve_many(&problem).unwrap();
        assert_eq!(bits(resumed.x()), bits(whole.x()), "{method:?}");
        assert_eq!(resumed.residuals(0), whole.residuals(0), "{method:?}");
    }
}

#[test]
fn a_matrix_with_fewer_rows_than_devices_is_solved() {
    let matrix = Matrix::from_triplets(2, 2, [(0, 0, 4.0), (1, 1, 2.0)]).unwrap();
    let answer = solver(Method::Cg, &matrix, 4, "none").solve(&[4.0, 4.0]).unwrap();
    assert_eq!(answer.x(), [1.0, 2.0]);
}

#[test]
fn other_precisions_are_rounded_on_all_devices() {
    let matrix = Matrix::open(NODES).unwrap();
    let b = matrix.problem("random:3").unwrap().b;
    for precision in [Precision::F32, Precision::Mixed] {
        let (request, settled) = on_cpus(3, Request { precision, ..Request::default() });
        let answer = Cg::new(&matrix).settled(request, settled).solve(&b).unwrap();
        assert!(answer.converged() && answer.report().precision == precision.name());
    }
}

#[test]
fn rankings_have_the_ranks_of_one_device() {
    let graph = Matrix::open_graph("rmat:scale=9,factor=8").unwrap();
    let found = check(&ranking("a graph", &graph, |p| p), [Place::Cpus(3)]);
    let one = Pagerank::new(&graph).device("cpu").threads(1).solve().unwrap();
    let (request, settled) = on_cpus(3, Request::default());
    let pagerank = || Pagerank::new(&graph).settled(request.clone(), settled.clone());
    let batches = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&batches);
    let mut prepared = pagerank()
        .on_progress(move |_| {
            *counted.lock().unwrap() += 1;
            true
        })
        .prepare()
        .unwrap();
    let ranks = prepared.solve().unwrap();
    assert_eq!(bits(ranks.ranks()), bits(&found[1].x));
    assert_eq!(ranks.rows(), 0..graph.rows());
    assert_eq!(ranks.residuals().len(), ranks.outcome().iterations + 1);
    assert!(*batches.lock().unwrap() > 0);
    let row = |top: &crate::engine::pagerank::Top| top.row;
    assert!(ranks.top(3).iter().map(row).eq(one.top(3).iter().map(row)));
    assert_eq!(ranks.top(100).len(), 100);
    let folder = tempfile::tempdir().unwrap();
    ranks.write(folder.path().join("ranks.csv")).unwrap();
    // Vectors of the caller, and errors before and after good solves.
    prepared.personalise(Some(Weights::from_vertices(["nobody"])));
    assert!(refused(prepared.solve()).contains("nobody"));
    prepared.personalise(Some(Weights::from_vertices(["3"])));
    let own = prepared.solve().unwrap();
    let jump = ranking("a jump", &graph, |p| p.personalise(Weights::from_vertices(["3"])));
    assert_eq!(bits(own.ranks()), bits(&check(&jump, [Place::Cpus(3)])[1].x));
    prepared.x0(Some(Weights::from(own.ranks().to_vec())));
    assert!(prepared.solve().unwrap().outcome().iterations <= 3);
    prepared.cancel_by(&Arc::new(AtomicBool::new(true)));
    prepared.x0(None);
    assert_eq!(prepared.solve().unwrap().reason(), StopReason::Interrupted);
    let ended = pagerank().time_limit(Duration::ZERO).solve().unwrap();
    assert_eq!(ended.reason(), StopReason::TimeLimit { seconds: 0.0 });
    assert!(refused(pagerank().tune(true).solve()).contains("a measurement is for one device"));
}

#[test]
fn policies_precisions_and_weights_are_those_of_one_device() {
    let graph = Matrix::open_graph("rmat:scale=9,factor=8").unwrap();
    let repeated = with_repeats();
    for dangling in Dangling::ALL {
        for method in [RankMethod::Power, RankMethod::Extrapolated] {
            let what = format!("{} {}", dangling.name(), method.name());
            check(&ranking(what, &graph, |p| p.dangling(dangling).method(method)), [Place::Cpus(3)]);
        }
    }
    for precision in [Precision::F32, Precision::Mixed] {
        check(&Ranking { precision, ..ranking("narrow", &graph, |p| p.tol(1e-4)) }, [Place::Cpus(3)]);
    }
    for (loops, repeats) in [(SelfLoops::Keep, Repeated::Keep), (SelfLoops::Remove, Repeated::Once)] {
        let what = format!("{loops:?} {repeats:?}");
        let settings = |p: Pagerank| p.self_loops(loops).duplicates(repeats);
        check(&ranking(what, &repeated, settings), [Place::Cpus(3)]);
    }
}

#[test]
fn a_ranking_and_a_chain_that_have_failed_say_that_they_must_be_prepared_again() {
    struct Panics;
    impl crate::observe::Observer for Panics {
        fn batch(&mut self, _: &crate::observe::Batch<'_>) {
            panic!("the observer of the test panics");
        }
    }
    let graph = Matrix::open_graph("rmat:scale=9,factor=8").unwrap();
    let (request, settled) = on_cpus(3, Request::default());
    let mut ranking = Pagerank::new(&graph).settled(request.clone(), settled.clone()).prepare().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| ranking.solve_watched(&mut [&mut Panics]).map(drop)));
    assert!(panicked.is_err());
    assert!(refused(ranking.solve()).contains("prepare the solve again"));
    let mut markov = Markov::new(&chain(2)).settled(request, settled).prepare().unwrap();
    let panicked =
        catch_unwind(AssertUnwindSafe(|| markov.solve_watched(|_| Some(Box::new(Panics))).map(drop)));
    assert!(panicked.is_err());
    assert!(refused(markov.solve()).contains("prepare the solve again"));
}

#[test]
fn several_personalisations_are_ranked_on_several_devices() {
    let graph = Matrix::open_graph("rmat:scale=9,factor=8").unwrap();
    let each = ["3", "17", "40"].map(|vertex| Weights::from_vertices([vertex]));
    let job = ranking("each", &graph, |p| p.columns(3).personalise_each(each.clone()));
    let found = check(&Ranking { each: true, ..job }, [Place::Cpus(3)]).swap_remove(1);
    let (request, settled) = on_cpus(3, Request::default());
    let pagerank = Pagerank::new(&graph).settled(request, settled).columns(3);
    let mut prepared = pagerank.personalise_each(each.clone()).prepare().unwrap();
    assert!(refused(prepared.solve()).contains("solve_each"));
    let all = prepared.solve_each().unwrap();
    assert!(all.converged() && all.columns().len() == 3);
    let ranks: Vec<f64> = all.columns().iter().flat_map(|column| column.ranks().to_vec()).collect();
    assert_eq!(bits(&ranks), bits(&found.x));
    assert_eq!(all.report().columns.len(), 3);
    prepared.personalise_each([]);
    assert!(refused(prepared.solve_each()).contains("at least one"));
}

/// Returns a chain with two closed classes of 40 and 20 states, and four transient states; without
/// the second class, with one.
pub(super) fn chain(classes: usize) -> Matrix {
    let ends: &[usize] = if classes == 2 { &[0, 40, 60] } else { &[0, 40] };
    let mut steps = Vec::new();
    for (from, to) in ends.iter().zip(&ends[1..]) {
        let size = to - from;
        for i in 0..size {
            let mut row = vec![(i, 0.3), ((i + 1) % size, 0.5)];
            // A row has each column once.
            let jump = (7 * i + 3) % size;
            let same = row.iter_mut().find(|(column, _)| *column == jump);
            same.map(|(_, p)| *p += 0.2).unwrap_or_else(|| row.push((jump, 0.2)));
            steps.extend(row.into_iter().map(|(column, p)| (from + i, from + column, p)));
        }
    }
    let closed = ends[ends.len() - 1];
    steps.extend((closed..closed + 4).flat_map(|i| [(i, i - closed, 0.5), (i, closed - 1, 0.5)]));
    Matrix::from_triplets(closed + 4, closed + 4, steps).unwrap()
}

#[test]
fn chains_have_the_distributions_of_one_device() {
    for classes in [1, 2] {
        let chain = chain(classes);
        let job = Chain::of("a chain", &chain, |markov| markov);
        let expected = check(&job, [Place::Cpus(3)]).swap_remove(1);
        let (request, settled) = on_cpus(3, Request::default());
        let markov = || Markov::new(&chain).settled(request.clone(), settled.clone());
        let mut prepared = markov().prepare().unwrap();
        assert!(prepared.describe_devices().starts_with("3 ranks"));
        assert_eq!(prepared.classes().len(), classes);
        for _ in 0..2 {
            let found = prepared.solve().unwrap();
            assert!(found.converged() && found.classes().len() == classes);
            let all: Vec<f64> =
                found.classes().iter().flat_map(|class| class.probabilities().to_vec()).collect();
            assert_eq!(bits(&all), bits(&expected.x));
            let folder = tempfile::tempdir().unwrap();
            found.write(folder.path().join("distribution.csv")).unwrap();
            assert_eq!((found.report().states, found.report().transient), (chain.rows() as u64, 4));
        }
        prepared.x0(Some(Weights::from(vec![1.0; 3])));
        assert!(refused(prepared.solve()).contains("3"));
        let mut start = vec![0.0; chain.rows()];
        start[0] = 1.0;
        prepared.x0(Some(Weights::from(start)));
        assert!(prepared.solve().unwrap().converged());
        prepared.cancel_by(&Arc::new(AtomicBool::new(true)));
        assert!(!prepared.solve().unwrap().converged());
    }
    let improper = Matrix::from_triplets(2, 2, [(0, 1, 0.5), (1, 0, 1.0)]).unwrap();
    let (request, settled) = on_cpus(2, Request::default());
    let error = Markov::new(&improper).settled(request, settled).solve().unwrap_err();
    assert_eq!(error.to_string(), refused(Markov::new(&improper).device("cpu").solve()));
}

/// Returns the message of an error.
fn refused<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("it is accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_several_devices_cannot_do_is_refused_in_words() {
    let matrix = Matrix::open("poisson2d:5x5").unwrap();
    let (b, open) = (vec![1.0; 25], DeviceHandle::open(DeviceName::Cpu(Some(1))).unwrap());
    fn on<S: SystemSettings>(settings: S) -> S {
        let (request, settled) = on_cpus(2, Request::default());
        settings.settled(request, settled)
    }
    let message = refused(on(Cg::new(&matrix)).on(&open).solve(&b));
    assert!(message.contains("an open device already"), "{message}");
    let message = refused(on(Minres::new(&matrix)).tune(true).solve(&b));
    assert!(message.contains("a measurement is for one device"), "{message}");
    let unsymmetric = Matrix::from_triplets(2, 2, [(0, 0, 4.0), (0, 1, 1.0), (1, 1, 2.0)]).unwrap();
    let error = on(Cg::new(&unsymmetric)).solve(&[1.0, 1.0]).unwrap_err();
    assert!(matches!(error, Error::NotSymmetric { .. }), "{error}");
    let checked = on(Cg::new(&unsymmetric)).assume_symmetric(true).check_products(true).solve(&[1.0, 1.0]);
    assert!(matches!(checked, Err(Error::ProductNotSymmetric { .. })));
    let copy = |r: &[f64], z: &mut [f64]| z.copy_from_slice(r);
    for custom in [on(Cg::new(&matrix)).custom_precond((25, copy)), on(Cg::with_product((25, copy)))] {
        let message = refused(custom.solve(&b));
        assert!(message.contains("of the caller run on one device"), "{message}");
    }
    let custom = (25, copy);
    let message = refused(Cg::new(&matrix).device("cuda:0,1").custom_precond(custom).solve(&b));
    assert!(message.contains("run on the CPU"), "{message}");
    let message = refused(Cg::new(&matrix).device("cuda:0,1").precond("ic0").solve(&b));
    assert!(message.contains("runs on the CPU only"), "{message}");
    let message = refused(Multiply::new(&matrix).device("cuda:0,1").prepare());
    assert!(message.contains("cuda:0, cuda:1") && message.contains("on one device"), "{message}");
    for name in ["cuda:1,1", "cuda:0,", "cuda:0,x"] {
        let message = refused(Cg::new(&matrix).device(name).solve(&b));
        assert!(message.contains(name), "{message}");
        assert!(refused(Pagerank::new(&matrix).device(name).solve()).contains(name));
        assert!(refused(Markov::new(&matrix).normalize(true).device(name).solve()).contains(name));
    }
    let ranking = Pagerank::new(&matrix).device("cuda:0,1").method(RankMethod::GaussSeidel);
    assert!(refused(ranking.solve()).contains("runs in f64 on the CPU"));
    for method in [ChainMethod::GaussSeidel, ChainMethod::Aggregation] {
        let markov = Markov::new(&matrix).normalize(true).device("cuda:0,1").method(method);
        assert!(refused(markov.solve()).contains("one thread of the CPU"));
    }
}

/// Keeps the last x of a solve.
#[derive(Default)]
struct LastIterate(Vec<f64>);

impl Observer for LastIterate {
    fn batch(&mut self, _: &Batch<'_>) {}

    fn wants_iterates(&self) -> bool {
        true
    }

    fn iterate(&mut self, _: usize, x: &[f64]) {
        self.0 = x.to_vec();
    }
}

#[test]
fn vectors_of_the_caller_are_divided_and_joined_in_the_order_of_the_matrix() {
    let matrix = Matrix::open("hex27:5x4x6,dof=3").unwrap();
    let prepared = |partition: Partition| {
        let stopping = Stopping { rtol: Some(1e-10), ..Stopping::default() };
        let solver = solver(Method::Cg, &matrix, 3, "none").partition(partition).stopping(stopping);
        solver.prepare().unwrap()
    };
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
    for k in [1, 3] {
        let b: Vec<f64> = (0..matrix.rows() * k).map(|i| (i as f64).sin()).collect();
        let x0: Vec<f64> = (0..matrix.rows() * k).map(|i| (i as f64).cos()).collect();
        let [expected, found] = [Partition::Entries, Partition::Coordinates].map(|partition| {
            let all = RightHandSides::new(&b, k).from_start(&x0);
            prepared(partition).solve_many(all).unwrap()
        });
        assert!(expected.converged() && found.converged());
        assert!(near(found.x(), expected.x()), "{k} columns");
        if k == 1 {
            let mut last = LastIterate::default();
            let one = RightHandSide::from(&b).from_start(&x0);
            let found = prepared(Partition::Coordinates).solve_watched(one, &mut [&mut last]).unwrap();
            assert!(near(found.x(), expected.x()) && near(&last.0, expected.x()));
        }
    }
}

#[test]
fn an_update_without_a_name_keeps_the_coordinates_of_the_prepared_matrix() {
    let matrix = Matrix::open("hex27:5x4x6,dof=3").unwrap();
    let mut cg = solver(Method::Cg, &matrix, 3, "none").partition(Partition::Coordinates).prepare().unwrap();
    let b: Vec<f64> = (0..matrix.rows()).map(|i| (i as f64).sin()).collect();
    let before = cg.solve(&b).unwrap();
    // Every value is doubled, which halves the answer.
    let n = matrix.rows();
    let row = |row: usize| {
        matrix.csr().row(row).map(move |(column, value)| (row, column, 2.0 * value)).collect::<Vec<_>>()
    };
    let doubled = Matrix::from_triplets(n, n, (0..n).flat_map(row)).unwrap();
    assert!(doubled.name().is_empty());
    cg.update(&doubled).unwrap();
    let after = cg.solve(&b).unwrap();
    assert!(before.converged() && after.converged());
    assert!(before.x().iter().zip(after.x()).all(|(before, after)| (before - 2.0 * after).abs() < 1e-6));
}
