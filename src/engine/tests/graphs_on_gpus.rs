//! PageRank and Markov chains over ranks, each with a GPU of its own. Needs several GPUs; with one, a single
//! rank runs by the same code.

use super::ranks_graphs::{GRAPH, links_of, multiplied, with_repeats};
use super::several_devices::chain;
use crate::common::gpu::{list, sizes};
use crate::common::harness::skip;
use crate::common::jobs::{Chain, Command, Ranking, ranking};
use crate::common::places::{Job, Place, check};
use crate::common::ranks::{bits, distance, over_ranks};
use crate::device::distributed::in_threads;
use crate::device::{Cpu, Cuda, Device, Ranks};
use crate::engine::markov::ChainMethod;
use crate::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use crate::engine::{RankChain, RankGraph};
use crate::error::Error;
use crate::prelude::*;
use crate::scalar::Precision;
use crate::stop::StopReason;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn gpu_of(ranks: &Ranks) -> String {
    format!("cuda:{}", ranks.rank())
}

/// Checks that ranks on GPUs take about the iterations of the CPU, give its ranks, and have
/// the same bits in every run.
fn check_on_gpus(job: &impl Job) {
    let (_alone, sizes) = sizes();
    check(job, sizes.into_iter().map(Place::RanksOnGpus));
}

fn graph() -> Matrix {
    Matrix::open_graph(GRAPH).unwrap()
}

#[test]
fn products_that_follow_each_other_at_once_are_those_of_the_cpu() {
    let (_alone, sizes) = sizes();
    for (backend, k) in [("pull", 1), ("spmm", 3)] {
        let one = multiplied(1, ("rows", k), |_| Cpu::new(Some(1)).unwrap());
        for &size in &sizes {
            let got = multiplied(size, (backend, k), |ranks| Cuda::new(ranks.rank()).unwrap());
            assert!(distance(&got, &one) < 1e-11, "{size} ranks, {k} columns");
        }
    }
}

#[test]
fn rankings_on_gpus_take_the_iterations_of_the_cpu_and_give_its_ranks() {
    for dangling in Dangling::ALL {
        for method in [RankMethod::Power, RankMethod::Extrapolated] {
            let what = format!("{} {}", dangling.name(), method.name());
            let settings = |p: Pagerank| p.dangling(dangling).method(method).damping(0.9);
            check_on_gpus(&ranking(what, &graph(), settings));
        }
    }
    for precision in [Precision::F32, Precision::Mixed] {
        check_on_gpus(&Ranking { precision, ..ranking("narrow", &graph(), |p| p.tol(1e-4)) });
    }
    let jumps = |p: Pagerank| p.personalise(Weights::from_vertices(["3", "400"]));
    check_on_gpus(&ranking("jumps", &graph(), jumps));
}

#[test]
fn weights_self_loops_and_repeated_links_count_on_gpus() {
    for loops in [SelfLoops::Keep, SelfLoops::Remove] {
        for repeated in [Repeated::Keep, Repeated::Once] {
            let what = format!("{loops:?} {repeated:?}");
            let settings = |p: Pagerank| p.self_loops(loops).duplicates(repeated);
            check_on_gpus(&ranking(what, &with_repeats(), settings));
        }
    }
    // With so many links, the GPUs compute the sums of the certificate over them.
    let links = (0..400_000_usize).map(|i| (i * 7 % 30_000, i * i % 29_989, (1 + i % 13) as f64 / 7.0));
    let heavy = Matrix::from_triplets(30_000, 30_000, links).unwrap();
    check_on_gpus(&ranking("many links with weights", &heavy, |p| p));
}

#[test]
fn every_kind_of_backend_multiplies_the_links_of_a_gpu() {
    for backend in ["pull", "csr", "vector", "merge", "sell", "burst", "cusparse"] {
        check_on_gpus(&ranking(backend, &graph(), |p| p.backend(backend)));
    }
}

#[test]
fn each_of_several_personalisations_is_ranked_on_gpus() {
    let each = || {
        let named = ["3", "17", "400"].map(|vertex| Weights::from_vertices([vertex]));
        named.into_iter().chain([Weights::from(vec![1.0; 512])])
    };
    let graph = graph();
    let job = ranking("each", &graph, |p| p.personalise_each(each()));
    check_on_gpus(&Ranking { each: true, ..job });
}

#[test]
fn a_generated_graph_keeps_its_order_and_is_certified_on_gpus() {
    let (_alone, sizes) = sizes();
    let name = "rmat:scale=18,edges=2000000";
    let graph = Matrix::open_graph(name).unwrap();
    let part = |ranks: &Ranks| Ok(RankGraph::generate(ranks, OsStr::new(name))?.unwrap());
    let job = Ranking { part: Some(&part), ..ranking(name, &graph, |p| p.tol(1e-8)) };
    for found in &check(&job, sizes.into_iter().map(Place::RanksOnGpus))[1..] {
        assert_eq!(found.report["reordered"], false);
    }
}

#[test]
fn graphs_that_leave_ranks_without_vertices_are_ranked_on_gpus() {
    let few = Matrix::from_edges([(0, 1), (1, 2), (2, 0)]).unwrap();
    check_on_gpus(&ranking("a cycle", &few, |p| p));
    check_on_gpus(&ranking("one vertex", &Matrix::from_triplets(1, 1, [(0, 0, 1.0)]).unwrap(), |p| p));
    check_on_gpus(&ranking("no links", &Matrix::from_triplets(4, 4, []).unwrap(), |p| p));
}

#[test]
fn chains_on_gpus_have_the_distributions_of_the_cpu() {
    let (_alone, sizes) = sizes();
    let cycle = (0..40).map(|state| (state, (state + 1) % 40, 1.0));
    let rest = [(40, 40, 1.0), (41, 3, 0.25), (41, 40, 0.75)];
    let two_classes = Matrix::from_triplets(42, 42, cycle.chain(rest)).unwrap();
    let one_class = Matrix::open("blockband:n=300,block=5,density=0.2").unwrap();
    let cases = [
        (&one_class, Precision::F64, 1e-10),
        (&one_class, Precision::F32, 1e-5),
        (&two_classes, Precision::F64, 1e-10),
    ];
    for (chain, precision, tol) in cases {
        let settings = |markov: Markov| markov.normalize(true).tol(tol);
        let within = Some(100.0 * tol);
        let job = Chain { precision, within, ..Chain::of("a chain", chain, settings) };
        check(&job, sizes.iter().copied().map(Place::RanksOnGpus));
    }
}

#[test]
fn methods_of_one_process_are_refused_on_gpus() {
    let (_alone, sizes) = sizes();
    let size = sizes[sizes.len() - 1];
    let (graph, chain) = (graph(), Matrix::from_triplets(2, 2, [(0, 1, 1.0), (1, 0, 1.0)]).unwrap());
    let refusals = over_ranks(size, |ranks| {
        let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&graph)).unwrap();
        let ranking = Pagerank::over_ranks(&part).device(&gpu_of(ranks)).method(RankMethod::GaussSeidel);
        let solve = Markov::over_ranks(&RankChain::distribute(ranks, ranks.is_first().then_some(&chain)))
            .device(&gpu_of(ranks));
        let solve = solve.method(ChainMethod::Aggregation);
        [ranking.solve().map(drop).unwrap_err().to_string(), solve.solve().map(drop).unwrap_err().to_string()]
    });
    assert!(refusals.iter().flatten().all(|refusal| refusal.contains("one process")), "{refusals:?}");
}

#[test]
fn a_product_that_waits_for_a_rank_that_fails_ends() {
    let (_alone, sizes) = sizes();
    let Some(&size) = sizes.iter().find(|size| **size > 1) else { skip("one GPU") };
    let began = Instant::now();
    let all = in_threads(size, |ranks| {
        let a = links_of(ranks, Cuda::new(ranks.rank())?, "pull");
        let (device, n) = (a.device(), a.shape().0);
        let (x, mut y) = (device.vector::<f64>(n, 1)?, device.vector(n, 1)?);
        ranks.agreed(device.synchronize())?;
        if ranks.rank() == 1 {
            return Err(Error::OtherRank { rank: 7 });
        }
        // The product waits on the GPU for entries that never come, and then the host for the rank.
        a.apply(1.0, &x, 0.0, &mut y)?;
        device.synchronize()?;
        ranks.sum(&mut [1.0]);
        Ok(())
    });
    assert!(matches!(all[0], Err(Error::OtherRank { rank: 1 })), "{:?}", all[0]);
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// Returns the l1 distance of two vectors.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

#[test]
fn a_list_of_gpus_is_a_device_of_rankings() {
    let (_alone, _, count) = list();
    type Set = fn(Pagerank) -> Pagerank;
    let cases: [(Matrix, Set); 4] = [
        (graph(), |p| p),
        (graph(), |p| p.method(RankMethod::Extrapolated).dangling(Dangling::SelfLoop)),
        (with_repeats(), |p| p.duplicates(Repeated::Once).self_loops(SelfLoops::Remove)),
        (Matrix::open_graph("rmat:scale=18,edges=2000000").unwrap(), |p| p.tol(1e-8)),
    ];
    for (graph, settings) in cases {
        check(&ranking("a list", &graph, settings), [Place::Gpus(count)]);
    }
}

#[test]
fn a_ranking_on_a_list_of_gpus_is_prepared_once_and_runs_on_any_thread_and_after_errors() {
    let (_alone, list, count) = list();
    let graph = graph();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let mut prepared = Pagerank::new(&graph)
        .device(&list)
        .on_progress(move |_| counted.fetch_add(1, Ordering::Relaxed) < usize::MAX)
        .prepare()
        .unwrap();
    assert_eq!(prepared.devices().len(), count);
    let first = prepared.solve().unwrap();
    assert!(first.converged() && seen.load(Ordering::Relaxed) > 0);
    prepared.personalise(Some(Weights::from_vertices(["nobody"])));
    assert!(prepared.solve().is_err());
    prepared.personalise(None);
    let second = thread::scope(|scope| scope.spawn(|| prepared.solve().unwrap()).join().unwrap());
    assert_eq!(bits(first.ranks()), bits(second.ranks()));
    prepared.x0(Some(Weights::from(first.ranks().to_vec())));
    assert!(prepared.solve().unwrap().outcome().iterations <= 3);
    prepared.x0(None);
    prepared.personalise_each(["3", "17"].map(|vertex| Weights::from_vertices([vertex])));
    let each = prepared.solve_each().unwrap();
    for (vertex, column) in ["3", "17"].iter().zip(each.columns()) {
        let alone = Pagerank::new(&graph).device("cpu").personalise(Weights::from_vertices([*vertex]));
        let alone = alone.solve().unwrap();
        let distance = apart(column.ranks(), alone.ranks());
        assert!(column.converged() && distance <= column.error_bound() + alone.error_bound(), "{distance:e}");
    }
    prepared.personalise_each([]);
    prepared.cancel_by(&Arc::new(AtomicBool::new(true)));
    assert_eq!(prepared.solve().unwrap().reason(), StopReason::Interrupted);
    let ended = Pagerank::new(&graph).device(&list).time_limit(Duration::ZERO).solve().unwrap();
    assert_eq!(ended.reason(), StopReason::TimeLimit { seconds: 0.0 });
}

#[test]
fn a_list_of_gpus_is_a_device_of_chains_once_and_prepared() {
    let (_alone, list, count) = list();
    for classes in [1, 2] {
        let chain = chain(classes);
        let expected =
            check(&Chain::of("a list", &chain, |markov| markov), [Place::Gpus(count)]).swap_remove(1);
        let mut prepared = Markov::new(&chain).device(&list).prepare().unwrap();
        assert_eq!((prepared.devices().len(), prepared.classes().len()), (count, classes));
        // Each solve prepares each of two classes again.
        for _ in 0..3 {
            let found = thread::scope(|scope| scope.spawn(|| prepared.solve().unwrap()).join().unwrap());
            assert!(found.converged() && found.report().device.contains("each a GPU"), "{}", found.report());
            let all: Vec<f64> =
                found.classes().iter().flat_map(|class| class.probabilities().to_vec()).collect();
            assert_eq!(bits(&all), bits(&expected.x));
        }
        let solved = Markov::new(&chain).device(&list).precision(Precision::F32).tol(1e-5).solve().unwrap();
        assert!(solved.converged(), "{}", solved.report());
    }
}

#[test]
fn the_program_ranks_and_finds_distributions_on_a_list_of_gpus() {
    let (_alone, _, count) = list();
    for args in [&["pagerank", GRAPH][..], &["markov", "blockband:n=300,block=5,density=0.2", "--normalize"]]
    {
        let all = check(&Command { within: Some(1e-8), ..Command::new(args) }, [Place::Gpus(count)]);
        let (several, one) = (&all[1].x, &all[0].x);
        assert!(apart(several, one) < 1e-8 && (several.iter().sum::<f64>() - 1.0).abs() < 1e-8);
    }
}
