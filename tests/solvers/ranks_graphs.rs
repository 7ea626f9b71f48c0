//! PageRank over ranks gives the ranks of one process, with the same bits in every run.

use crate::common::each_backend::Builds;
use crate::common::ranks::{distance, over_ranks};
use crate::common::vectors::bits;
use solver::backend::distributed::complete_operator;
use solver::backend::{Choice, Operator, Pick};
use solver::device::distributed::Local;
use solver::device::{Cpu, Device, Distributed, Ranks};
use solver::engine::RankGraph;
use solver::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use solver::error::{ChainError, Error, Result};
use solver::format::{Coo, Csr, Duplicates};
use solver::prelude::*;
use solver::scalar::Precision;
use solver::solve::pagerank::links::Links;
use solver::solve::pagerank::{RankProblem, power};
use solver::stop::{StopReason, StoppingRule};
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub const GRAPH: &str = "rmat:scale=9,edges=5000";

/// The ranking of the first rank, with the ranks of all vertices.
type Found = (pagerank::Ranks, Vec<f64>);

/// Ranks a graph that the first rank has over `size` ranks.
fn ranked(
    size: usize,
    graph: &Matrix,
    settings: &(impl Fn(&Ranks, Pagerank) -> Pagerank + Sync),
) -> Result<Found> {
    let found = over_ranks(size, |ranks| {
        let part = RankGraph::distribute(ranks, ranks.is_first().then_some(graph))?;
        settings(ranks, Pagerank::over_ranks(&part).device("cpu").threads(1)).solve()
    });
    let found = found.into_iter().collect::<Result<Vec<_>>>()?;
    let all: Vec<f64> = found.iter().flat_map(|ranks| ranks.ranks().to_vec()).collect();
    let bounds: Vec<_> = found.iter().map(|ranks| ranks.error_bound().to_bits()).collect();
    assert!(bounds.iter().all(|bound| *bound == bounds[0]), "all ranks have the same bound");
    let rows: Vec<usize> = found.iter().flat_map(pagerank::Ranks::rows).collect();
    assert_eq!(rows, (0..graph.rows()).collect::<Vec<_>>());
    let tops: Vec<_> =
        found.iter().map(|ranks| ranks.top(5).iter().map(|t| t.row).collect::<Vec<_>>()).collect();
    assert!(tops.iter().all(|top| *top == tops[0]));
    Ok((found.into_iter().next().unwrap(), all))
}

/// Checks that 1 to 4 ranks take about the iterations of one process, and give its ranks within the bounds of both.
fn check_like_one_process(
    what: &str,
    graph: &Matrix,
    settings: impl Fn(&Ranks, Pagerank) -> Pagerank + Sync,
    alone: impl Fn(Pagerank) -> Pagerank,
) {
    let one = alone(Pagerank::new(graph).device("cpu")).solve().unwrap();
    assert!(one.converged(), "{what}: {}", one.report());
    for size in 1..=4 {
        let (first, all) = ranked(size, graph, &settings).unwrap();
        let what = format!("{what}, {size} ranks");
        assert!(first.converged(), "{what}: {}", first.report());
        let (expected, got) = (one.outcome().iterations as f64, first.outcome().iterations as f64);
        assert!((got - expected).abs() <= 0.01 * expected, "{what}: {got} for {expected} iterations");
        let distance: f64 = all.iter().zip(one.ranks()).map(|(a, b)| (a - b).abs()).sum();
        assert!(distance <= one.error_bound() + first.error_bound(), "{what}: {distance:e}");
        let rows = |top: Vec<pagerank::Top>| top.iter().map(|t| t.row).collect::<Vec<_>>();
        let certain = one.top(5).iter().all(|t| t.above_next_is_certain);
        assert!(!certain || rows(first.top(5)) == rows(one.top(5)), "{what}");
        let (a, b) = (first.report(), one.report());
        assert_eq!(
            (a.vertices, a.links, a.sinks, a.self_loops, a.duplicates, a.top.len()),
            (b.vertices, b.links, b.sinks, b.self_loops, b.duplicates, b.top.len()),
            "{what}"
        );
        assert!((a.sum - b.sum).abs() < 1e-14 && a.device.starts_with(&format!("{size} ranks, each cpu")));
    }
}

fn graph() -> Matrix {
    Matrix::open_graph(GRAPH).unwrap()
}

/// A graph with weights, links of a vertex to itself and repeated links.
pub fn with_repeats() -> Matrix {
    let mut edges = Coo::with_capacity(90, 90, 1000).unwrap();
    for i in 0..1000_usize {
        let (from, to) = (i * 37 % 83, if i % 9 == 0 { i * 37 % 83 } else { i * i % 90 });
        edges.push(from, to, 1.0 + (i % 5) as f64).unwrap();
    }
    Matrix::from(edges.into_csr_with(Duplicates::Keep).unwrap())
}

/// Returns the links into the vertices of this rank of a generated graph. With `reorder`, the vertices may be reordered.
fn links_into(ranks: &Ranks, name: &str, reorder: bool) -> Links {
    let part = RankGraph::generate(ranks, OsStr::new(name)).unwrap().unwrap();
    Links::of_ranks(ranks, &starts_of(ranks, &part), (part.links(), None), 2, reorder).unwrap()
}

/// Returns the first vertex of each rank, and the number of vertices.
fn starts_of(ranks: &Ranks, part: &RankGraph) -> Vec<usize> {
    let starts = ranks.all_of(part.vertices().start as u64);
    starts.into_iter().map(|start| start as usize).chain([part.links().cols()]).collect()
}

#[test]
fn ranks_that_see_the_whole_graph_have_the_links_that_others_exchange() {
    for (graph, reorder) in [(graph(), true), (graph(), false), (with_repeats(), false)] {
        for size in 1..=4 {
            over_ranks(size, |ranks| {
                let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&graph)).unwrap();
                let links = |whole| {
                    Links::of_ranks(ranks, &starts_of(ranks, &part), (part.links(), whole), 2, reorder)
                        .unwrap()
                };
                let [exchanged, seen] = [links(None), links(Some(graph.csr()))];
                assert!(exchanged.incoming() == seen.incoming(), "{size} ranks");
                assert_eq!(exchanged.count_sinks(), seen.count_sinks());
            });
        }
    }
}

/// Returns the operator of the links into the vertices of this rank.
pub fn links_of<D: Local + Pick<f64>>(
    ranks: &Ranks,
    device: D,
    backend: &str,
) -> Operator<Distributed<D>, f64> {
    operator_of(ranks, &links_into(ranks, GRAPH, true), device, backend)
}

fn operator_of<D: Local + Pick<f64>>(
    ranks: &Ranks,
    links: &Links,
    device: D,
    backend: &str,
) -> Operator<Distributed<D>, f64> {
    let rows = links.rank_rows().unwrap();
    device.enter().unwrap();
    let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, backend).unwrap();
    let multiply = choice.build::<D, f64>(&device, rows.matrix(), 0).unwrap();
    let device = Distributed::new(device, ranks.clone(), rows.numbers().clone()).unwrap();
    complete_operator(&device, rows, multiply).unwrap()
}

/// Multiplies `k` vectors 200 times by the links of all ranks, with nothing between two products. Returns the entries of all ranks.
pub fn multiplied<D: Local + Pick<f64>>(
    size: usize,
    (backend, k): (&str, usize),
    device: impl Fn(&Ranks) -> D + Sync,
) -> Vec<f64> {
    let parts = over_ranks(size, |ranks| {
        let a = links_of(ranks, device(ranks), backend);
        a.prepare(k).unwrap();
        let (device, n) = (a.device(), a.shape().0);
        let (mut x, mut y) = (device.vector::<f64>(n, k).unwrap(), device.vector(n, k).unwrap());
        let first = k * device.row_numbers().of(0);
        let mut host: Vec<f64> = (first..first + n * k).map(|i| (i % 7) as f64).collect();
        device.upload(&host, &mut x).unwrap();
        for _ in 0..100 {
            a.apply(0.03, &x, 0.0, &mut y).unwrap();
            a.apply(0.03, &y, 0.0, &mut x).unwrap();
        }
        device.download(&x, &mut host).unwrap();
        host
    });
    parts.concat()
}

#[test]
fn products_that_follow_each_other_at_once_are_those_of_one_rank() {
    for k in [1, 3] {
        let run = |size| multiplied(size, ("rows", k), |_| Cpu::new(Some(1)).unwrap());
        let one = run(1);
        assert!(one.len() == 512 * k && one.iter().any(|x| *x > 0.0));
        (2..=4).for_each(|size| assert!(distance(&run(size), &one) < 1e-11, "{size} ranks, {k} columns"));
    }
}

#[test]
fn policies_methods_and_precisions_take_the_iterations_of_one_process_and_give_its_ranks() {
    for dangling in Dangling::ALL {
        for method in [RankMethod::Power, RankMethod::Extrapolated] {
            let settings = move |p: Pagerank| p.dangling(dangling).method(method).damping(0.9);
            let what = format!("{} {}", dangling.name(), method.name());
            check_like_one_process(&what, &graph(), |_, p| settings(p), settings);
        }
    }
    for precision in [Precision::F32, Precision::Mixed] {
        let settings = move |p: Pagerank| p.precision(precision).tol(1e-4);
        check_like_one_process(precision.name(), &graph(), |_, p| settings(p), settings);
    }
}

#[test]
fn weights_self_loops_and_repeated_links_count_as_in_one_process() {
    let graph = with_repeats();
    for loops in [SelfLoops::Keep, SelfLoops::Remove] {
        for repeated in [Repeated::Keep, Repeated::Once] {
            let settings = move |p: Pagerank| p.self_loops(loops).duplicates(repeated);
            check_like_one_process(&format!("{loops:?} {repeated:?}"), &graph, |_, p| settings(p), settings);
        }
    }
}

#[test]
fn links_that_all_weigh_1_are_ranked_without_weights_on_all_ranks() {
    let open = graph();
    let weighing = |last: f64| {
        let ones = vec![1.0; open.nnz() - 1];
        open.with_values([ones, vec![last]].concat()).unwrap()
    };
    // The backend refuses weights. Five ranks have a graph of three links, so two of them have none.
    let pull = |size: usize, graph: &Matrix| ranked(size, graph, &|_, p| p.backend("pull"));
    let (_, expected) = pull(3, &open).unwrap();
    assert_eq!(bits(&pull(3, &weighing(1.0)).unwrap().1), bits(&expected));
    let few = Matrix::from_triplets(3, 3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)]).unwrap();
    assert!(pull(5, &few).unwrap().0.converged());
    // All ranks keep the weights if one of them has a weight other than 1.
    let errors = over_ranks(3, |ranks| {
        let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&weighing(1.5))).unwrap();
        assert_eq!(part.links().values().get(part.links().nnz() - 1) == 1.5, ranks.rank() == 2);
        let solved = Pagerank::over_ranks(&part).device("cpu").threads(1).backend("pull").solve();
        solved.map(drop).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.contains("a matrix with values")), "{errors:?}");
}

#[test]
fn jumps_and_starts_are_those_of_one_process() {
    let earlier = Pagerank::new(&graph()).device("cpu").damping(0.5).solve().unwrap().into_ranks();
    let even: Vec<f64> = (0..512).map(|vertex| f64::from(vertex % 7)).collect();
    for dangling in Dangling::ALL {
        let vertices =
            move |p: Pagerank| p.dangling(dangling).personalise(Weights::from_vertices(["3", "400"]));
        check_like_one_process("vertices", &graph(), |_, p| vertices(p), vertices);
        let weights = |p: Pagerank| p.dangling(dangling).personalise(even.clone()).x0(earlier.clone());
        check_like_one_process("weights", &graph(), |_, p| weights(p), weights);
    }
}

#[test]
fn each_of_several_personalisations_is_ranked_as_in_one_process() {
    let each = || {
        let named = ["3", "17", "400"].map(|vertex| Weights::from_vertices([vertex]));
        named.into_iter().chain([Weights::from(vec![1.0; 512])])
    };
    let graph = graph();
    let one = Pagerank::new(&graph).device("cpu").personalise_each(each()).solve_each().unwrap();
    for size in 1..=4 {
        let found = over_ranks(size, |ranks| {
            let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&graph)).unwrap();
            let pagerank = Pagerank::over_ranks(&part).device("cpu").threads(1).personalise_each(each());
            pagerank.solve_each().unwrap()
        });
        assert!(found[0].converged());
        for (column, expected) in one.columns().iter().enumerate() {
            let all = found.iter().flat_map(|of_rank| of_rank.columns()[column].ranks());
            let distance: f64 = all.zip(expected.ranks()).map(|(a, b)| (a - b).abs()).sum();
            let got = &found[0].columns()[column];
            assert!(distance <= expected.error_bound() + got.error_bound(), "{size} ranks: {distance:e}");
            assert_eq!(got.outcome().iterations, expected.outcome().iterations);
        }
    }
}

#[test]
fn bits_are_the_same_in_every_run_and_for_any_number_of_threads() {
    let graph = graph();
    for size in [2, 3] {
        let run = |threads: usize| {
            let (first, all) = ranked(size, &graph, &|_, p: Pagerank| p.threads(threads)).unwrap();
            (bits(&all), first.error_bound().to_bits(), first.outcome().iterations)
        };
        let once = run(1);
        assert_eq!(once, run(1));
        assert_eq!(once, run(3));
    }
}

/// Returns the rows of all ranks of a generated graph.
fn generated(size: usize, name: &str) -> Csr {
    let parts = over_ranks(size, |ranks| {
        let part = RankGraph::generate(ranks, OsStr::new(name)).unwrap().unwrap();
        (part.vertices(), part.links().clone())
    });
    let n = parts[0].1.cols();
    let mut all = Coo::with_capacity(n, n, 0).unwrap();
    let mut next = 0;
    for (vertices, links) in &parts {
        assert_eq!((vertices.start, vertices.len()), (next, links.rows()));
        next = vertices.end;
        for row in 0..links.rows() {
            links.row(row).for_each(|(col, value)| all.push(vertices.start + row, col, value).unwrap());
        }
    }
    assert_eq!(next, n);
    all.into_csr().unwrap()
}

#[test]
fn ranks_generate_the_graph_of_one_process() {
    for name in [
        GRAPH,
        "rmat:scale=9,edges=5000,weighted,seed=3",
        "rmat:n=700,factor=6,permuted,loopless",
        "rmat:n=1000,edges=9000,a=0.25,b=0.25,c=0.25,permuted,weighted",
        "rmat:scale=1,edges=1",
        "rmat:scale=3,edges=0",
    ] {
        let expected = solver::source::load(name).unwrap().matrix;
        for size in [1, 2, 3, 4, 7] {
            let got = generated(size, name);
            assert_eq!(got.pattern(), expected.pattern(), "{name}, {size} ranks");
            let values =
                |matrix: &Csr| (0..matrix.nnz()).map(|at| matrix.values().get(at).to_bits()).collect();
            let (got, expected): (Vec<u64>, Vec<u64>) = (values(&got), values(&expected));
            assert_eq!(got, expected, "{name}, {size} ranks");
        }
    }
}

#[test]
fn a_generated_graph_whose_vertices_are_reordered_has_the_ranks_of_one_process() {
    let name = "rmat:scale=18,edges=2000000";
    let one = Pagerank::new(&Matrix::open_graph(name).unwrap()).device("cpu").tol(1e-8).solve().unwrap();
    assert!(one.report().reordered);
    let found = over_ranks(3, |ranks| {
        let part = RankGraph::generate(ranks, OsStr::new(name)).unwrap().unwrap();
        Pagerank::over_ranks(&part).device("cpu").threads(1).tol(1e-8).solve().unwrap()
    });
    assert!(found[0].report().reordered && found[0].converged());
    assert_eq!(found[0].outcome().iterations, one.outcome().iterations);
    let all = found.iter().flat_map(|ranks| ranks.ranks());
    let distance: f64 = all.zip(one.ranks()).map(|(a, b)| (a - b).abs()).sum();
    assert!(distance <= one.error_bound() + found[0].error_bound(), "{distance:e}");
    // About equal work, although a few vertices have most links: a vertex counts as six more links.
    let links: Vec<u64> = over_ranks(3, |ranks| {
        let part = RankGraph::generate(ranks, OsStr::new(name)).unwrap().unwrap();
        (part.links().nnz() + 6 * part.vertices().len()) as u64
    });
    let [least, most] = [links.iter().min().unwrap(), links.iter().max().unwrap()];
    assert!(most - least < most / 10, "{links:?}");
}

#[test]
fn vertices_that_keep_their_order_have_the_ranks_of_one_process() {
    let name = "rmat:scale=18,edges=2000000";
    let graph = Matrix::open_graph(name).unwrap();
    let one = Pagerank::new(&graph).device("cpu").tol(1e-8).solve().unwrap();
    let incoming = Links::new(graph.csr()).unwrap();
    let lengths = |links: &Links| -> Vec<_> {
        (0..links.rows()).map(|vertex| links.incoming().row_range(vertex).len()).collect()
    };
    let found = over_ranks(3, |ranks| {
        assert!(links_into(ranks, name, true).are_reordered());
        let links = links_into(ranks, name, false);
        assert!(!links.are_reordered());
        let operator = operator_of(ranks, &links, Cpu::new(Some(1)).unwrap(), "rows");
        let problem = RankProblem {
            links: &links,
            damping: 0.85,
            dangling: Dangling::Uniform,
            teleport: None,
            start: None,
        };
        let rule =
            StoppingRule::any([StoppingRule::AbsoluteResidual(1e-8), StoppingRule::MaxIterations(1000)]);
        let ranking = power(operator, &problem, false, &rule, &mut []).unwrap();
        (lengths(&links), ranking)
    });
    let of_all: Vec<_> = found.iter().flat_map(|(lengths, _)| lengths.clone()).collect();
    assert!(of_all == lengths(&incoming));
    let all = found.iter().flat_map(|(_, ranking)| &ranking.ranks);
    let distance: f64 = all.zip(one.ranks()).map(|(a, b)| (a - b).abs()).sum();
    let bound = found[0].1.certificate.error_bound;
    assert!(bound <= 1e-8 && distance <= one.error_bound() + bound, "{distance:e}");
}

#[test]
fn more_ranks_than_vertices_and_graphs_without_links_are_ranked_but_not_those_without_vertices() {
    let few = Matrix::from_edges([(0, 1), (1, 2), (2, 0)]).unwrap();
    let (first, all) = ranked(5, &few, &|_, p| p).unwrap();
    assert!(first.converged() && all.iter().all(|rank| (rank - 1.0 / 3.0).abs() < 1e-10));
    let none = Matrix::from_triplets(4, 4, []).unwrap();
    let (first, all) = ranked(3, &none, &|_, p| p).unwrap();
    assert!(first.converged() && all.iter().all(|rank| (rank - 0.25).abs() < 1e-15));
    let empty = Matrix::from_triplets(0, 0, []).unwrap();
    for ranks in [1, 2] {
        let refused = ranked(ranks, &empty, &|_, p| p).unwrap_err();
        assert!(matches!(refused, Error::Chain(ChainError::NoVertices { .. })), "{refused}");
    }
}

#[test]
fn what_ends_one_rank_ends_all() {
    let graph = graph();
    let endless = |p: Pagerank| p.tol(1e-300).max_iters(usize::MAX).damping(0.9999);
    let cancelled =
        |ranks: &Ranks, p: Pagerank| endless(p).cancel(&Arc::new(AtomicBool::new(ranks.rank() == 2)));
    let (first, _) = ranked(3, &graph, &cancelled).unwrap();
    assert_eq!(first.reason(), StopReason::Interrupted);
    // The limit of one rank is that of a clock that is ahead of the others. All ranks give the same reason.
    for ahead in 0..3 {
        let reasons = over_ranks(3, |ranks| {
            let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&graph)).unwrap();
            let limit = if ranks.rank() == ahead { Duration::ZERO } else { Duration::from_secs(3600) };
            let p = Pagerank::over_ranks(&part).device("cpu").threads(1);
            let found = endless(p).time_limit(limit).solve().unwrap();
            assert!(found.outcome().iterations < 10);
            found.reason()
        });
        assert_eq!(reasons, [StopReason::TimeLimit { seconds: 0.0 }; 3]);
    }
}

#[test]
fn what_cannot_be_ranked_is_refused_on_all_ranks_with_the_cause_on_one() {
    let refused = |graph: &Matrix, settings: &(dyn Fn(Pagerank) -> Pagerank + Sync)| {
        let errors = over_ranks(3, |ranks| {
            let part = RankGraph::distribute(ranks, ranks.is_first().then_some(graph));
            part.and_then(|part| settings(Pagerank::over_ranks(&part).device("cpu").threads(1)).solve())
                .map(drop)
                .unwrap_err()
        });
        let causes: Vec<String> = errors
            .iter()
            .filter(|e| !matches!(e, Error::OtherRank { .. }))
            .map(ToString::to_string)
            .collect();
        assert!(!causes.is_empty() && causes.iter().all(|cause| *cause == causes[0]), "{causes:?}");
        causes[0].clone()
    };
    let alone = refused(&graph(), &|p| p.method(RankMethod::GaussSeidel));
    assert!(alone.contains("one process") && alone.contains("gauss-seidel"), "{alone}");
    let unknown = refused(&graph(), &|p| p.personalise(Weights::from_vertices(["4711"])));
    assert!(unknown.contains("4711"), "{unknown}");
    let short = refused(&graph(), &|p| p.personalise(vec![1.0; 10]));
    assert!(short.contains("10") && short.contains("512"), "{short}");
    let wide = Matrix::from_triplets(3, 4, [(0, 1, 1.0)]).unwrap();
    assert!(refused(&wide, &|p| p).contains('4'));
    let entries = (0..30).map(|i| (i, (i * 7 + 1) % 30, if i == 25 { -2.0 } else { 1.0 }));
    let negative = refused(&Matrix::from_triplets(30, 30, entries).unwrap(), &|p| p);
    assert!(negative.contains("25") && negative.contains("-2"), "{negative}");
}
