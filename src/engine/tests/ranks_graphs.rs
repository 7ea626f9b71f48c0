//! PageRank over ranks gives the ranks of one process, with the same bits in every run.

use crate::backend::distributed::complete_operator;
use crate::backend::{Choice, Operator, Pick};
use crate::common::each_backend::Builds;
use crate::common::jobs::{Ranking, ranking};
use crate::common::places::{Found, Place, check, check_threads};
use crate::common::ranks::{distance, over_ranks};
use crate::common::vectors::bits;
use crate::device::distributed::Local;
use crate::device::{Cpu, Device, Distributed, Ranks};
use crate::engine::RankGraph;
use crate::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use crate::error::{ChainError, Error, Result};
use crate::format::{Coo, Csr, Duplicates};
use crate::prelude::*;
use crate::scalar::Precision;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{RankProblem, power};
use crate::stop::{StopReason, StoppingRule};
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(super) const GRAPH: &str = "rmat:scale=9,edges=5000";

const PLACES: [Place; 4] = [Place::Ranks(1), Place::Ranks(2), Place::Ranks(3), Place::Ranks(4)];

/// Ranks a graph that the first rank has.
fn ranked(size: usize, graph: &Matrix, settings: impl Fn(Pagerank) -> Pagerank + Sync) -> Result<Found> {
    ranking("a graph", graph, settings).try_run(Place::Ranks(size))
}

fn graph() -> Matrix {
    Matrix::open_graph(GRAPH).unwrap()
}

/// A graph with weights, links of a vertex to itself and repeated links.
pub(super) fn with_repeats() -> Matrix {
    let mut edges = Coo::with_capacity(90, 90, 1000).unwrap();
    for i in 0..1000_usize {
        let (from, to) = (i * 37 % 83, if i % 9 == 0 { i * 37 % 83 } else { i * i % 90 });
        edges.push(from, to, 1.0 + (i % 5) as f64).unwrap();
    }
    Matrix::from(edges.into_csr_with(Duplicates::Keep).unwrap())
}

/// Returns the links into the vertices of this rank of a generated graph. With `reorder`, the
/// vertices may be reordered.
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
pub(super) fn links_of<D: Local + Pick<f64>>(
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

/// Multiplies `k` vectors 200 times by the links of all ranks, with nothing between two products. Returns
/// the entries of all ranks.
pub(super) fn multiplied<D: Local + Pick<f64>>(
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
            check(&ranking(what, &graph(), settings), PLACES);
        }
    }
    for precision in [Precision::F32, Precision::Mixed] {
        check(&Ranking { precision, ..ranking("narrow", &graph(), |p| p.tol(1e-4)) }, PLACES);
    }
}

#[test]
fn weights_self_loops_and_repeated_links_count_as_in_one_process() {
    let graph = with_repeats();
    for loops in [SelfLoops::Keep, SelfLoops::Remove] {
        for repeated in [Repeated::Keep, Repeated::Once] {
            let settings = move |p: Pagerank| p.self_loops(loops).duplicates(repeated);
            check(&ranking(format!("{loops:?} {repeated:?}"), &graph, settings), PLACES);
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
    let pull = |size: usize, graph: &Matrix| ranked(size, graph, |p| p.backend("pull"));
    let expected = pull(3, &open).unwrap().x;
    assert_eq!(bits(&pull(3, &weighing(1.0)).unwrap().x), bits(&expected));
    let few = Matrix::from_triplets(3, 3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)]).unwrap();
    assert_eq!(pull(5, &few).unwrap().report["converged"], true);
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
        check(&ranking("vertices", &graph(), vertices), PLACES);
        let weights = |p: Pagerank| p.dangling(dangling).personalise(even.clone()).x0(earlier.clone());
        check(&ranking("weights", &graph(), weights), PLACES);
    }
}

#[test]
fn each_of_several_personalisations_is_ranked_as_in_one_process() {
    let each = || {
        let named = ["3", "17", "400"].map(|vertex| Weights::from_vertices([vertex]));
        named.into_iter().chain([Weights::from(vec![1.0; 512])])
    };
    let graph = graph();
    let job = ranking("each", &graph, |p| p.personalise_each(each()));
    let all = check(&Ranking { each: true, ..job }, PLACES);
    assert!(all.iter().all(|found| found.iterations() == all[0].iterations()));
}

#[test]
fn bits_are_the_same_in_every_run_and_for_any_number_of_threads() {
    let graph = graph();
    for size in [2, 3] {
        check_threads(&format!("{size} ranks"), &[1, 3], |threads| {
            let found = ranked(size, &graph, |p| p.threads(threads)).unwrap();
            (bits(&found.x), found.report["error_bound"].clone(), found.iterations())
        });
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
        let expected = crate::source::load(name).unwrap().matrix;
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
    let graph = Matrix::open_graph(name).unwrap();
    let part = |ranks: &Ranks| Ok(RankGraph::generate(ranks, OsStr::new(name))?.unwrap());
    let all =
        check(&Ranking { part: Some(&part), ..ranking(name, &graph, |p| p.tol(1e-8)) }, [Place::Ranks(3)]);
    assert!(all.iter().all(|found| found.report["reordered"] == true));
    assert_eq!(all[1].iterations(), all[0].iterations());
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
    let found = ranked(5, &few, |p| p).unwrap();
    assert!(found.report["converged"] == true && found.x.iter().all(|rank| (rank - 1.0 / 3.0).abs() < 1e-10));
    let none = Matrix::from_triplets(4, 4, []).unwrap();
    let found = ranked(3, &none, |p| p).unwrap();
    assert!(found.report["converged"] == true && found.x.iter().all(|rank| (rank - 0.25).abs() < 1e-15));
    let empty = Matrix::from_triplets(0, 0, []).unwrap();
    for ranks in [1, 2] {
        let refused = ranked(ranks, &empty, |p| p).map(drop).unwrap_err();
        assert!(matches!(refused, Error::Chain(ChainError::NoVertices { .. })), "{refused}");
    }
}

#[test]
fn what_ends_one_rank_ends_all() {
    let graph = graph();
    let endless = |p: Pagerank| p.tol(1e-300).max_iters(usize::MAX).damping(0.9999);
    let reasons = over_ranks(3, |ranks| {
        let part = RankGraph::distribute(ranks, ranks.is_first().then_some(&graph)).unwrap();
        let p = endless(Pagerank::over_ranks(&part).device("cpu").threads(1));
        p.cancel(&Arc::new(AtomicBool::new(ranks.rank() == 2))).solve().unwrap().reason()
    });
    assert_eq!(reasons, [StopReason::Interrupted; 3]);
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
