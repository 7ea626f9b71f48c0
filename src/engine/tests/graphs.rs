//! PageRank and Markov chains through the engine, as front-ends call it.

use crate::common::gpu::gpu;
use crate::common::vectors::bits;
use crate::common::zoo;
use crate::device::Cpu;
use crate::engine::markov::{ChainMethod, Classes};
use crate::engine::pagerank::{Repeated, SelfLoops};
use crate::engine::{Request, Settled};
use crate::error::ChainError;
use crate::prelude::*;
use crate::solve::markov::chain::Chain;
use crate::solve::pagerank::gauss_seidel::Parts;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{Dangling, RankMethod, RankProblem, gauss_seidel};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const GRAPH: &str = "rmat:scale=9,edges=5000";
const CHAIN: &str = "blockband:n=300,block=5,density=0.2";

fn pagerank() -> Pagerank {
    Pagerank::new(&Matrix::open_graph(GRAPH).unwrap()).device("cpu")
}

fn markov(chain: &Matrix) -> Markov {
    Markov::new(chain).device("cpu")
}

/// Two states that are never left, and one state from which both are reached.
fn two_classes() -> Matrix {
    Matrix::from_triplets(3, 3, [(0, 0, 1.0), (1, 1, 1.0), (2, 0, 0.5), (2, 1, 0.5)]).unwrap()
}

fn tolerance(tol: f64) -> StoppingRule {
    StoppingRule::any([StoppingRule::AbsoluteResidual(tol), StoppingRule::MaxIterations(10_000)])
}

#[test]
fn ranks_of_the_engine_match_the_method_called_directly() {
    let links = Links::new(&Matrix::open_graph(GRAPH).unwrap().csr().clone()).unwrap();
    let problem =
        RankProblem { links: &links, damping: 0.9, dangling: Dangling::Drop, teleport: None, start: None };
    let (cpu, parts) = (Cpu::new(Some(1)).unwrap(), Parts::new(&links).unwrap());
    let expected = gauss_seidel(&cpu, &parts, &problem, &tolerance(1e-12), &mut []).unwrap();
    let of = |method| pagerank().damping(0.9).dangling(Dangling::Drop).tol(1e-12).method(method).solve();
    let same = of(RankMethod::GaussSeidel).unwrap();
    assert_eq!(bits(same.ranks()), bits(&expected.ranks));
    for method in [RankMethod::Power, RankMethod::Extrapolated] {
        let ranks = of(method).unwrap();
        assert!(ranks.converged() && ranks.error_bound() <= 1e-12);
        let apart: f64 = ranks.ranks().iter().zip(&expected.ranks).map(|(a, b)| (a - b).abs()).sum();
        assert!(apart <= ranks.error_bound() + same.error_bound(), "{apart:e}");
    }
}

#[test]
fn a_graph_prepared_once_gives_the_same_bits_as_single_solves() {
    let mut prepared = pagerank().prepare().unwrap();
    let backend = prepared.backend().to_owned();
    for vertex in ["3", "17", "3"] {
        let weights = Weights::from_vertices([vertex]);
        let single = pagerank().personalise(weights.clone()).solve().unwrap();
        prepared.personalise(Some(weights));
        let again = prepared.solve().unwrap();
        assert_eq!(bits(again.ranks()), bits(single.ranks()), "{vertex}");
        assert_eq!(again.report().backend, backend);
    }
    prepared.personalise(None);
    let ranks = prepared.solve().unwrap();
    assert_eq!(bits(ranks.ranks()), bits(pagerank().solve().unwrap().ranks()));
    prepared.x0(Some(ranks.ranks().into()));
    assert!(prepared.solve().unwrap().outcome().iterations <= 2);
}

#[test]
fn a_chain_prepared_once_gives_the_same_bits_as_single_solves() {
    let chain = Matrix::open(CHAIN).unwrap();
    let mut prepared = markov(&chain).prepare().unwrap();
    let start: Vec<f64> = (1..=300).map(f64::from).collect();
    for x0 in [None, Some(start), None] {
        let mut single = markov(&chain);
        if let Some(x0) = &x0 {
            single = single.x0(x0.as_slice());
        }
        let single = single.solve().unwrap();
        prepared.x0(x0.map(Weights::from));
        let again = prepared.solve().unwrap();
        let probabilities = |found: &markov::Distributions| bits(found.classes()[0].probabilities());
        assert_eq!(probabilities(&again), probabilities(&single));
    }
}

#[test]
fn a_graph_keeps_parallel_edges_and_lists_its_highest_ranks() {
    let graph = Matrix::from_edges([(0, 1), (1, 0), (2, 0), (2, 3), (2, 3), (1, 1)]).unwrap();
    assert_eq!((graph.rows(), graph.nnz()), (4, 6));
    let solve = |pagerank: Pagerank| pagerank.device("cpu").solve().unwrap().report();
    let report = solve(Pagerank::new(&graph));
    assert_eq!((report.links, report.self_loops, report.duplicates, report.sinks), (6, 1, 1, 1));
    let fewer = solve(Pagerank::new(&graph).self_loops(SelfLoops::Remove).duplicates(Repeated::Once)).links;
    assert_eq!(fewer, 4);
    let ranks = Pagerank::new(&graph).device("cpu").solve().unwrap();
    let top = ranks.top(2);
    assert_eq!((top.len(), top[0].id, top[0].above_next_is_certain), (2, Some(1), true));
    assert!(top[0].rank > top[1].rank && top[0].rank == ranks.ranks()[1]);
    let text = ranks.report().to_string();
    assert!(text.starts_with("result    converged;") && text.contains("\ntop "), "{text}");
    assert!(Matrix::from_edges([(0, usize::MAX - 1)]).is_err());
}

#[test]
fn links_that_all_weigh_1_are_ranked_like_links_without_weights() {
    let open = || Matrix::open_graph(GRAPH).unwrap();
    let weighing = |weight: f64| {
        let rows =
            |i: usize| open().csr().row_columns(i).iter().map(|&j| (i, j as usize)).collect::<Vec<_>>();
        let links: Vec<_> = (0..open().rows()).flat_map(rows).collect();
        let mut links: Vec<_> = links.into_iter().map(|(i, j)| (i, j, 1.0)).collect();
        links[7].2 = weight;
        Matrix::from_triplets(open().rows(), open().rows(), links).unwrap()
    };
    // The backend refuses weights.
    let solve = |graph: &Matrix| Pagerank::new(graph).device("cpu").backend("pull").solve();
    assert_eq!(bits(solve(&weighing(1.0)).unwrap().ranks()), bits(solve(&open()).unwrap().ranks()));
    let refused = solve(&weighing(1.5)).unwrap_err();
    assert!(refused.to_string().contains("a matrix with values"), "{refused}");
}

#[test]
fn the_highest_ranks_have_the_labels_of_the_caller() {
    let graph = || Matrix::from_edges([(0, 1), (1, 2), (2, 1)]).unwrap();
    let ranks = Pagerank::new(&graph().with_labels(["ann", "bob", "cid"]).unwrap()).solve().unwrap();
    let report = ranks.report();
    assert_eq!((report.top[0].label.as_deref(), report.top[0].id), (Some("bob"), Some(1)));
    assert!(report.to_string().contains("bob"), "{report}");
    let refused = graph().with_labels(["ann"]).unwrap_err();
    assert!(matches!(refused, Error::BadSetting { setting: "labels", .. }), "{refused}");
}

#[test]
fn vertices_are_found_by_the_labels_of_a_file_and_by_ids() {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.txt");
    std::fs::write(&labels, "alice\nbob\ncarol\n").unwrap();
    let graph = Matrix::from_edges([(0, 1), (1, 2)]).unwrap().read_labels(&labels).unwrap();
    let jumps = |vertex: &str| {
        let ranks = Pagerank::new(&graph).device("cpu").personalise(Weights::from_vertices([vertex])).solve();
        ranks.map(|ranks| bits(ranks.ranks()))
    };
    assert_eq!(jumps("bob").unwrap(), jumps("1").unwrap());
    let unknown = jumps("erin").unwrap_err();
    assert!(matches!(&unknown, Error::BadSetting { setting: "personalise", .. }), "{unknown}");
    assert!(unknown.to_string().contains("no vertex with that label or id"), "{unknown}");
    let again = graph.read_labels(&labels).unwrap_err();
    assert!(matches!(&again, Error::BadSetting { setting: "labels", .. }), "{again}");
}

#[test]
fn written_ranks_can_be_read_as_a_start_for_another_solve() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = pagerank().solve().unwrap();
    for name in ["r.npy", "r.csv", "r.json"] {
        let path = folder.path().join(name);
        ranks.write(&path).unwrap();
        let start = Weights::read("x0", &path).unwrap();
        let again = pagerank().x0(start).solve().unwrap();
        assert!(again.outcome().iterations <= 2, "{name}: {}", again.outcome().iterations);
    }
    let unknown = ranks.write(folder.path().join("r.txt")).unwrap_err().to_string();
    assert!(unknown.contains(".npy, .csv, .json"), "{unknown}");
}

#[test]
fn one_report_contains_the_distribution_of_each_class() {
    let found = markov(&two_classes()).solve().unwrap();
    assert!(found.converged() && found.classes().len() == 2);
    assert_eq!((found.classes()[1].states(), found.classes()[1].probabilities()), (&[1][..], &[1.0][..]));
    let report = found.report();
    assert_eq!((report.states, report.transient, report.classes.len()), (3, 1, 2));
    assert_eq!(report.iterations, report.classes.iter().map(|class| class.iterations).sum::<u64>());
    assert_eq!(found.history().report.rows, 3);
    let refused = markov(&two_classes()).of_classes(Classes::Refuse).solve().unwrap_err();
    assert!(matches!(refused, Error::Chain(ChainError::Reducible { classes: 2 })));
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("pi.csv");
    found.write(&table).unwrap();
    let text = std::fs::read_to_string(&table).unwrap();
    assert_eq!(text, "state,probability,class\n1,1e0,1\n2,1e0,2\n");
}

#[test]
fn every_method_solves_a_chain_and_normalises_its_rows_on_request() {
    let doubled = {
        let csr = zoo::generated(CHAIN);
        let entries = (0..csr.rows()).flat_map(|i| csr.row(i).map(move |(j, p)| (i, j, 2.0 * p)));
        Matrix::from_triplets(csr.rows(), csr.cols(), entries.collect::<Vec<_>>()).unwrap()
    };
    let exact = Chain::new(doubled.csr().clone(), true).unwrap();
    assert_eq!(exact.closed().len(), 1);
    for method in markov::ChainMethod::ALL {
        let found = markov(&doubled).normalize(true).method(method).max_iters(100_000).solve().unwrap();
        let incoming = exact.within(&exact.closed()[0]).unwrap();
        let residual = crate::solve::markov::residual(&incoming, found.classes()[0].probabilities());
        assert!(found.converged() && residual <= 1e-10, "{method:?}: {residual:e}");
    }
    let refused = markov(&doubled).solve().unwrap_err();
    assert!(matches!(refused, Error::Chain(ChainError::RowSum { row: 0, .. })), "{refused}");
}

#[test]
fn a_row_that_is_no_distribution_is_named_by_its_vertex() {
    let graph = Matrix::from_edges([(0, 1), (1, 0), (1, 1)]).unwrap();
    let refused = markov(&graph).solve().unwrap_err();
    assert!(
        matches!(&refused, Error::Chain(ChainError::NamedSum { vertex, sum: 2.0 }) if vertex == "1"),
        "{refused}"
    );
}

#[test]
fn settings_out_of_range_are_refused_by_their_names() {
    let setting = |error: Error| match error {
        Error::BadSetting { setting, .. } => setting,
        other => panic!("{other}"),
    };
    let ranks = |pagerank: Pagerank| setting(pagerank.solve().unwrap_err());
    assert_eq!(ranks(pagerank().damping(1.0)), "damping");
    assert_eq!(ranks(pagerank().damping(f64::NAN)), "damping");
    assert_eq!(ranks(pagerank().tol(0.0)), "tol");
    assert_eq!(ranks(pagerank().threads(0)), "threads");
    assert_eq!(ranks(pagerank().device("abacus")), "device");
    assert_eq!(ranks(pagerank().method(RankMethod::GaussSeidel).backend("csr")), "backend");
    assert_eq!(ranks(pagerank().personalise(Weights::from_vertices(["no vertex"]))), "personalise");
    assert_eq!(ranks(pagerank().personalise(vec![1.0; 3])), "personalise");
    assert_eq!(ranks(pagerank().x0(vec![-1.0; 512])), "x0");
    let chain = Matrix::open(CHAIN).unwrap();
    assert_eq!(setting(markov(&chain).tol(2.0).solve().unwrap_err()), "tol");
    assert_eq!(setting(markov(&chain).x0(vec![0.0; 300]).solve().unwrap_err()), "x0");
}

#[test]
fn methods_of_the_cpu_refuse_a_gpu_that_was_settled_for_them() {
    let request = Request { device: "cpu".to_owned(), ..Request::default() };
    let on_gpu = || Settled { device: DeviceName::Cuda(0), ..request.settle().unwrap() };
    let ranking = pagerank().method(RankMethod::GaussSeidel).settled(Request::default(), on_gpu());
    let chain = Matrix::open(CHAIN).unwrap();
    let chain = markov(&chain).method(ChainMethod::Aggregation).settled(Request::default(), on_gpu());
    let refused = [ranking.solve().map(drop).unwrap_err(), chain.solve().map(drop).unwrap_err()];
    for (error, place) in refused.iter().zip(["on the CPU", "on one thread of the CPU"]) {
        let text = error.to_string();
        assert!(matches!(error, Error::BadSetting { setting: "device", .. }), "{text}");
        assert!(text.contains("cuda:0") && text.contains(&format!("runs in f64 {place}")), "{text}");
    }
    let settled = request.settle().unwrap();
    assert!(
        pagerank().method(RankMethod::GaussSeidel).settled(request, settled).solve().unwrap().converged()
    );
}

#[test]
fn a_flag_or_an_observer_ends_one_solve_and_the_next_one_runs() {
    let flag = Arc::new(AtomicBool::new(true));
    let cancelled = pagerank().cancel(&flag).solve().unwrap();
    assert_eq!(cancelled.reason(), StopReason::Interrupted);
    assert!(!cancelled.converged() && cancelled.report().hint.is_none());
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    // The first solve is ended at its second batch.
    let watched = move |_: &crate::engine::Progress| seen.fetch_add(1, Ordering::Relaxed) != 1;
    let mut prepared = markov(&Matrix::open(CHAIN).unwrap()).on_progress(watched).prepare().unwrap();
    assert_eq!(prepared.solve().unwrap().classes()[0].reason(), StopReason::Interrupted);
    assert!(prepared.solve().unwrap().converged());
}

#[test]
fn prepared_rankings_and_chains_can_be_moved_to_another_thread() {
    let mut ranking = pagerank().prepare().unwrap();
    let mut chain = markov(&Matrix::open(CHAIN).unwrap()).prepare().unwrap();
    let moved = std::thread::spawn(move || (ranking.solve().unwrap(), chain.solve().unwrap()));
    let (ranks, found) = moved.join().unwrap();
    assert_eq!(bits(ranks.ranks()), bits(pagerank().solve().unwrap().ranks()));
    assert!(found.converged());
}

#[test]
fn graphs_and_chains_are_solved_on_an_open_device_in_every_precision() {
    let device = DeviceHandle::open(DeviceName::Cpu(Some(2))).unwrap();
    for precision in [Precision::F64, Precision::Mixed, Precision::F32] {
        let ranks = pagerank().on(&device).precision(precision).tol(1e-4).solve().unwrap();
        assert!(ranks.converged(), "{precision:?}");
        assert_eq!(ranks.report().precision, precision.name());
        let chain = Matrix::open(CHAIN).unwrap();
        let found = markov(&chain).on(&device).precision(precision).tol(1e-4).solve().unwrap();
        assert!(found.converged(), "{precision:?}");
    }
}

/// The GPU transposes chains with so many steps.
#[test]
fn chains_on_a_gpu_have_the_distributions_of_the_cpu_in_every_precision_and_class() {
    drop(gpu());
    let band = zoo::generated("blockband:n=2000,block=5,density=0.05");
    assert!(band.nnz() > 100_000);
    let steps = |shift: usize| {
        let of_row = |i: usize| band.row(i).map(move |(j, p)| (shift + i, shift + j, p));
        (0..band.rows()).flat_map(of_row).collect::<Vec<_>>()
    };
    let one = Matrix::from_triplets(2000, 2000, steps(0)).unwrap();
    let two = Matrix::from_triplets(4000, 4000, [steps(0), steps(2000)].concat()).unwrap();
    for precision in [Precision::F64, Precision::Mixed, Precision::F32] {
        let tol = if precision == Precision::F64 { 1e-10 } else { 1e-5 };
        for chain in [&one, &two] {
            let solve = |device| {
                let markov = Markov::new(chain).of_classes(Classes::Each).device(device);
                markov.precision(precision).tol(tol).solve().unwrap()
            };
            let (there, here) = (solve("cuda"), solve("cpu"));
            assert!(there.converged() && there.classes().len() == chain.rows() / 2000, "{precision:?}");
            for (there, here) in there.classes().iter().zip(here.classes()) {
                let pairs = there.probabilities().iter().zip(here.probabilities());
                let apart: f64 = pairs.map(|(a, b)| (a - b).abs()).sum();
                assert!(apart <= 1e3 * tol, "{precision:?}: {apart:e}");
            }
        }
    }
}
