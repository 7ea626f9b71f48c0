//! PageRank and Markov chains over ranks, each with a GPU of its own. Needs several GPUs; with one, a single rank runs by the same
//! code.

use crate::common::harness::skip;
use crate::common::process;
use crate::common::ranks::{bits, distance, over_ranks};
use crate::ranks_graphs::{GRAPH, links_of, multiplied, with_repeats};
use crate::ranks_on_gpus::{list, sizes};
use crate::several_devices::chain;
use solver::device::distributed::in_threads;
use solver::device::{Cpu, Cuda, Device, Ranks};
use solver::engine::markov::ChainMethod;
use solver::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use solver::engine::{RankChain, RankGraph};
use solver::error::{Error, Result};
use solver::prelude::*;
use solver::scalar::Precision;
use solver::stop::StopReason;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn gpu_of(ranks: &Ranks) -> String {
    format!("cuda:{}", ranks.rank())
}

/// The ranking of the first rank, with the ranks of all vertices.
type Found = (pagerank::Ranks, Vec<f64>);

fn joined(found: Vec<Result<pagerank::Ranks>>) -> Found {
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    let bounds: Vec<_> = found.iter().map(|ranks| ranks.error_bound().to_bits()).collect();
    assert!(bounds.iter().all(|bound| *bound == bounds[0]), "all ranks have the same bound");
    let all = found.iter().flat_map(|ranks| ranks.ranks().to_vec()).collect();
    (found.into_iter().next().unwrap(), all)
}

/// Ranks a graph on GPUs.
fn ranked(size: usize, graph: &Matrix, settings: &(impl Fn(Pagerank) -> Pagerank + Sync)) -> Found {
    joined(over_ranks(size, |ranks| {
        let part = RankGraph::distribute(ranks, ranks.is_first().then_some(graph)).unwrap();
        settings(Pagerank::over_ranks(&part).device(&gpu_of(ranks))).solve()
    }))
}

/// Checks a ranking on GPUs against one of one process on the CPU.
fn check_ranking(what: &str, (first, all): &Found, one: &pagerank::Ranks) {
    assert!(first.converged() && one.converged(), "{what}: {}", first.report());
    let (expected, got) = (one.outcome().iterations as f64, first.outcome().iterations as f64);
    assert!((got - expected).abs() <= (0.01 * expected).max(1.0), "{what}: {got} for {expected} iterations");
    let distance: f64 = all.iter().zip(one.ranks()).map(|(a, b)| (a - b).abs()).sum();
    assert!(distance <= one.error_bound() + first.error_bound(), "{what}: {distance:e}");
    assert!(first.outcome().bytes_per_iteration > 0);
}

/// Checks that GPUs take about the iterations of the CPU, give its ranks, and have the same bits in every run.
fn check(what: &str, graph: &Matrix, settings: impl Fn(Pagerank) -> Pagerank + Sync) {
    let (_alone, sizes) = sizes();
    let one = settings(Pagerank::new(graph)).device("cpu").backend("auto").solve().unwrap();
    for size in sizes {
        let what = format!("{what}, {size} ranks");
        let [found, again] = [(); 2].map(|()| ranked(size, graph, &settings));
        assert_eq!(bits(&found.1), bits(&again.1), "{what}");
        check_ranking(&what, &found, &one);
        let device = found.0.report().device;
        assert!(device.starts_with(&format!("{size} ranks, each a GPU (")), "{device}");
    }
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
            check(&what, &graph(), |p| p.dangling(dangling).method(method).damping(0.9));
        }
    }
    for precision in [Precision::F32, Precision::Mixed] {
        check(precision.name(), &graph(), |p| p.precision(precision).tol(1e-4));
    }
    check("jumps", &graph(), |p| p.personalise(Weights::from_vertices(["3", "400"])));
}

#[test]
fn weights_self_loops_and_repeated_links_count_on_gpus() {
    for loops in [SelfLoops::Keep, SelfLoops::Remove] {
        for repeated in [Repeated::Keep, Repeated::Once] {
            let what = format!("{loops:?} {repeated:?}");
            check(&what, &with_repeats(), |p| p.self_loops(loops).duplicates(repeated));
        }
    }
    // With so many links, the GPUs compute the sums of the certificate over them.
    let links = (0..400_000_usize).map(|i| (i * 7 % 30_000, i * i % 29_989, (1 + i % 13) as f64 / 7.0));
    let heavy = Matrix::from_triplets(30_000, 30_000, links).unwrap();
    check("many links with weights", &heavy, |p| p);
}

#[test]
fn every_kind_of_backend_multiplies_the_links_of_a_gpu() {
    for backend in ["pull", "csr", "vector", "merge", "sell", "burst", "cusparse"] {
        check(backend, &graph(), |p| p.backend(backend));
    }
}

#[test]
fn each_of_several_personalisations_is_ranked_on_gpus() {
    let (_alone, sizes) = sizes();
    let each = || {
        let named = ["3", "17", "400"].map(|vertex| Weights::from_vertices([vertex]));
        named.into_iter().chain([Weights::from(vec![1.0; 512])])
    };
    let graph = graph();
    let one = Pagerank::new(&graph).device("cpu").personalise_each(each()).solve_each().unwrap();
    for size in sizes {
        let found = over_ranks(size, |ranks| {
            let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&graph)).unwrap();
            let pagerank = Pagerank::over_ranks(&part).device(&gpu_of(ranks));
            pagerank.personalise_each(each()).solve_each().unwrap()
        });
        assert!(found[0].converged());
        for (column, expected) in one.columns().iter().enumerate() {
            let all = found.iter().flat_map(|of_rank| of_rank.columns()[column].ranks());
            let distance: f64 = all.zip(expected.ranks()).map(|(a, b)| (a - b).abs()).sum();
            let bounds = expected.error_bound() + found[0].columns()[column].error_bound();
            assert!(distance <= bounds, "{size} ranks: {distance:e}");
        }
    }
}

#[test]
fn a_generated_graph_keeps_its_order_and_is_certified_on_gpus() {
    let (_alone, sizes) = sizes();
    let name = "rmat:scale=18,edges=2000000";
    let one = Pagerank::new(&Matrix::open_graph(name).unwrap()).device("cpu").tol(1e-8).solve().unwrap();
    for size in sizes {
        let found = joined(over_ranks(size, |ranks| {
            let part = RankGraph::generate(ranks, OsStr::new(name)).unwrap().unwrap();
            Pagerank::over_ranks(&part).device(&gpu_of(ranks)).tol(1e-8).solve()
        }));
        assert!(!found.0.report().reordered);
        check_ranking(&format!("{size} ranks"), &found, &one);
    }
}

#[test]
fn graphs_that_leave_ranks_without_vertices_are_ranked_on_gpus() {
    let few = Matrix::from_edges([(0, 1), (1, 2), (2, 0)]).unwrap();
    check("a cycle", &few, |p| p);
    check("one vertex", &Matrix::from_triplets(1, 1, [(0, 0, 1.0)]).unwrap(), |p| p);
    check("no links", &Matrix::from_triplets(4, 4, []).unwrap(), |p| p);
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
        let settings = |markov: Markov| markov.normalize(true).precision(precision).tol(tol);
        let one = settings(Markov::new(chain).device("cpu")).solve().unwrap();
        for &size in &sizes {
            let run = || {
                let mut found = over_ranks(size, |ranks| {
                    let markov =
                        Markov::over_ranks(&RankChain::distribute(ranks, ranks.is_first().then_some(chain)));
                    settings(markov.device(&gpu_of(ranks))).solve().unwrap()
                });
                found.swap_remove(0)
            };
            let (found, again) = (run(), run());
            assert!(found.converged(), "{}", found.report());
            for ((got, again), expected) in found.classes().iter().zip(again.classes()).zip(one.classes()) {
                assert_eq!(bits(got.probabilities()), bits(again.probabilities()));
                let pairs = got.probabilities().iter().zip(expected.probabilities());
                let distance: f64 = pairs.map(|(a, b)| (a - b).abs()).sum();
                assert!(distance < 100.0 * tol, "{size} ranks: {distance:e}");
            }
        }
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
    let (_alone, list, count) = list();
    type Set = fn(Pagerank) -> Pagerank;
    let cases: [(Matrix, Set); 4] = [
        (graph(), |p| p),
        (graph(), |p| p.method(RankMethod::Extrapolated).dangling(Dangling::SelfLoop)),
        (with_repeats(), |p| p.duplicates(Repeated::Once).self_loops(SelfLoops::Remove)),
        (Matrix::open_graph("rmat:scale=18,edges=2000000").unwrap(), |p| p.tol(1e-8)),
    ];
    for (graph, settings) in cases {
        let one = settings(Pagerank::new(&graph).device("cpu")).solve().unwrap();
        let [found, again] = [(); 2].map(|()| settings(Pagerank::new(&graph).device(&list)).solve().unwrap());
        assert_eq!(bits(found.ranks()), bits(again.ranks()));
        let all = found.ranks().to_vec();
        assert_eq!(found.rows(), 0..graph.rows());
        let (report, expected) = (found.report(), one.report());
        assert!(report.device.starts_with(&format!("{count} ranks, each a GPU (")), "{}", report.device);
        assert_eq!((report.links, report.sinks), (expected.links, expected.sinks));
        check_ranking("a list", &(found, all), &one);
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
        let one = Markov::new(&chain).device("cpu").solve().unwrap();
        let mut prepared = Markov::new(&chain).device(&list).prepare().unwrap();
        assert_eq!((prepared.devices().len(), prepared.classes().len()), (count, classes));
        let mut before: Vec<Vec<u64>> = Vec::new();
        // Each solve prepares each of two classes again.
        for _ in 0..3 {
            let found = thread::scope(|scope| scope.spawn(|| prepared.solve().unwrap()).join().unwrap());
            assert!(found.converged() && found.report().device.contains("each a GPU"), "{}", found.report());
            for (class, alone) in found.classes().iter().zip(one.classes()) {
                assert_eq!(class.states(), alone.states());
                assert!(apart(class.probabilities(), alone.probabilities()) < 1e-8);
            }
            let now: Vec<_> = found.classes().iter().map(|class| bits(class.probabilities())).collect();
            assert!(before.is_empty() || before == now);
            before = now;
        }
        let solved = Markov::new(&chain).device(&list).precision(Precision::F32).tol(1e-5).solve().unwrap();
        assert!(solved.converged(), "{}", solved.report());
    }
}

#[test]
fn the_program_ranks_and_finds_distributions_on_a_list_of_gpus() {
    let (_alone, list, count) = list();
    let folder = tempfile::tempdir().unwrap();
    let chain = "blockband:n=300,block=5,density=0.2";
    for (args, name) in [(&["pagerank", GRAPH][..], "ranks"), (&["markov", chain, "--normalize"], "pi")] {
        let path = |device: &str| folder.path().join(format!("{name}-{device}.npy"));
        let run = |device: &str| {
            let output = path(device);
            let done = process::solver()
                .args(args)
                .args(["--device", device, "--json", "--output", output.to_str().unwrap()])
                .output()
                .unwrap();
            assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
            serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
        };
        let report = run(&list);
        assert!(report["device"].as_str().unwrap().starts_with(&format!("{count} ranks")), "{report}");
        run("cpu");
        let [several, one] = [&list, "cpu"].map(|device| solver::source::read_vector(path(device)).unwrap());
        assert!(apart(&several, &one) < 1e-8 && (several.iter().sum::<f64>() - 1.0).abs() < 1e-8);
    }
}
