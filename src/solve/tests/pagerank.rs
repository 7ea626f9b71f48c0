//! Ranks compared with closed forms and dense solves, for every policy, method and device; and the error
//! bound compared with the error.

use crate::Error;
use crate::backend::{Choice, Host, Pick};
use crate::common::each_backend::Builds;
use crate::common::gpu::gpu;
use crate::common::on_each_device;
use crate::common::places::check_threads;
use crate::common::solves::operator;
use crate::common::vectors::{Numbers, bits};
use crate::common::zoo;
use crate::device::{Cpu, Cuda, Device};
use crate::engine::{DeviceSettings, Matrix, Pagerank};
use crate::error::ChainError;
use crate::format::{Coo, Csr, Duplicates, Offsets, Values};
use crate::operator::RankMap;
use crate::scalar::{Precision, Scalar};
use crate::solve::pagerank::gauss_seidel::Parts;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::{Dangling, RankMethod, RankProblem, Ranking, certify, gauss_seidel, power};
use crate::stop::{StopReason, StoppingRule};
use std::sync::Arc;

/// Makes the graph with these links.
fn graph(n: usize, links: &[(usize, usize, f64)]) -> Csr {
    let place = |v: usize| u32::try_from(v).unwrap();
    let rows = links.iter().map(|l| place(l.0)).collect();
    let cols = links.iter().map(|l| place(l.1)).collect();
    let coo = Coo::new(n, n, rows, cols, links.iter().map(|l| l.2).collect()).unwrap();
    coo.into_csr_with(Duplicates::Keep).unwrap()
}

fn unweighted(n: usize, links: impl IntoIterator<Item = (usize, usize)>) -> Csr {
    graph(n, &links.into_iter().map(|(i, j)| (i, j, 1.0)).collect::<Vec<_>>())
}

fn cpu() -> Cpu {
    Cpu::new(Some(1)).unwrap()
}

fn rule(tolerance: f64) -> StoppingRule {
    StoppingRule::any([StoppingRule::AbsoluteResidual(tolerance), StoppingRule::MaxIterations(20_000)])
}

fn on<D: Pick<T>, T: Scalar>(device: &D, problem: &RankProblem<'_>, tolerance: f64) -> Ranking {
    let operator = operator::<D, T>(device, problem.links.incoming());
    power::<D, T>(operator, problem, false, &rule(tolerance), &mut []).unwrap()
}

/// Returns the links in the order of Gauss-Seidel.
fn parts(problem: &RankProblem<'_>) -> Parts {
    Parts::new(problem.links).unwrap()
}

fn extrapolated<D: Pick<f64>>(device: &D, problem: &RankProblem<'_>, tolerance: f64) -> Ranking {
    let operator = operator::<D, f64>(device, problem.links.incoming());
    power::<D, f64>(operator, problem, true, &rule(tolerance), &mut []).unwrap()
}

fn ranks(problem: &RankProblem<'_>, method: RankMethod, tolerance: f64) -> Ranking {
    match method {
        RankMethod::Power => on::<Cpu, f64>(&Cpu::new(Some(2)).unwrap(), problem, tolerance),
        RankMethod::Extrapolated => extrapolated(&Cpu::new(Some(2)).unwrap(), problem, tolerance),
        RankMethod::GaussSeidel => {
            gauss_seidel(&cpu(), &parts(problem), problem, &rule(tolerance), &mut []).unwrap()
        }
    }
}

fn plain(links: &Links) -> RankProblem<'_> {
    RankProblem { links, damping: 0.85, dangling: Dangling::Uniform, teleport: None, start: None }
}

/// Computes the exact ranks: solves (I - d P) x = (1 - d) v by elimination, with P from the
/// definition of each policy.
#[allow(clippy::needless_range_loop)] // Indices as in the formulas.
fn exact(graph: &Csr, problem: &RankProblem<'_>) -> Vec<f64> {
    let (n, d) = (graph.rows(), problem.damping);
    let v: Vec<f64> = (0..n).map(|i| problem.teleport(i)).collect();
    let mut a = vec![vec![0.0; n + 1]; n];
    for j in 0..n {
        let total: f64 = graph.row(j).map(|(_, w)| w).sum();
        for i in 0..n {
            let p = match problem.dangling {
                _ if total > 0.0 => graph.row(j).filter(|(to, _)| *to == i).map(|(_, w)| w / total).sum(),
                Dangling::Uniform => 1.0 / n as f64,
                Dangling::Personalised => v[i],
                Dangling::SelfLoop => f64::from(u8::from(i == j)),
                Dangling::Drop => 0.0,
            };
            a[i][j] = f64::from(u8::from(i == j)) - d * p;
        }
    }
    for i in 0..n {
        a[i][n] = (1.0 - d) * v[i];
    }
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).unwrap();
        a.swap(k, pivot);
        let row = a[k].clone();
        for other in a.iter_mut().skip(k + 1) {
            let by = other[k] / row[k];
            other.iter_mut().zip(&row).for_each(|(x, r)| *x -= by * r);
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
        x[i] = (a[i][n] - known) / a[i][i];
    }
    x
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

/// Makes random links, some of them twice, and vertices without links.
fn random(n: usize, seed: u64) -> Csr {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let links: Vec<_> = (0..3 * n).map(|_| (next(n), next(n), 0.25 * (1 + next(8)) as f64)).collect();
    let linked: Vec<_> = links.into_iter().filter(|l| l.0 % 4 != 3).collect();
    graph(n, &linked)
}

#[test]
fn a_cycle_has_equal_ranks_and_a_star_those_of_the_closed_form() {
    let cycle = Links::new(&unweighted(7, (0..7).map(|i| (i, (i + 1) % 7)))).unwrap();
    // n leaves, each with a link to the hub and one from the hub.
    let n = 50;
    let star = Links::new(&unweighted(n + 1, (1..=n).flat_map(|i| [(i, 0), (0, i)]))).unwrap();
    let d = 0.85;
    for method in RankMethod::ALL {
        let all = ranks(&plain(&cycle), method, 1e-13).ranks;
        assert!(all.iter().all(|x| (x - 1.0 / 7.0).abs() < 1e-14), "{all:?}");
        // hub = d (1 - hub) + (1 - d) / (n + 1).
        let hub = (d + (1.0 - d) / (n + 1) as f64) / (1.0 + d);
        let got = ranks(&plain(&star), method, 1e-13);
        assert!((got.ranks[0] - hub).abs() < 1e-13, "{} {hub}", got.ranks[0]);
        assert!((got.ranks[1] - (1.0 - hub) / n as f64).abs() < 1e-14);
    }
}

#[test]
fn a_clique_fed_by_a_cycle_has_the_ranks_of_the_closed_form() {
    let (d, k, m) = (0.85_f64, 6, 9);
    // The cycle is 0 to m - 1; vertex 0 also links to the first vertex of the clique.
    let clique = |i: usize| (0..k).filter(move |&j| j != i).map(move |j| (m + i, m + j));
    let cycle = (0..m).map(|i| (i, (i + 1) % m)).chain([(0, m)]);
    let links = Links::new(&unweighted(m + k, cycle.chain((0..k).flat_map(clique)))).unwrap();
    let (n, others) = ((m + k) as f64, (k - 1) as f64);
    let jump = (1.0 - d) / n;
    let first = (1.0 - d.powi(m as i32)) / n / (1.0 - 0.5 * d.powi(m as i32));
    let mut want = vec![first, jump + 0.5 * d * first];
    (2..m).for_each(|i| want.push(jump + d * want[i - 1]));
    let whole = (k as f64 * jump + 0.5 * d * first) / (1.0 - d);
    let (fed, other) = (jump + d * (whole / others + 0.5 * first), jump + d * whole / others);
    want.extend((0..k).map(|i| if i == 0 { fed } else { other } / (1.0 + d / others)));
    for method in RankMethod::ALL {
        let got = ranks(&plain(&links), method, 1e-13);
        assert!(distance(&got.ranks, &want) < 1e-13, "{:?}, not {want:?}", got.ranks);
    }
}

#[test]
fn a_path_to_a_sink_has_the_ranks_of_the_closed_form_for_each_policy() {
    // 0 -> 1 -> 2, and 2 is a sink. With `Drop`: x0 = (1 - d) / 3, x1 = x0 + d x0, x2 = x0 + d x1.
    let links = Links::new(&unweighted(3, [(0, 1), (1, 2)])).unwrap();
    let d = 0.85;
    let x0 = (1.0 - d) / 3.0;
    let dropped = [x0, x0 * (1.0 + d), x0 * (1.0 + d + d * d)];
    let total: f64 = dropped.iter().sum();
    for method in RankMethod::ALL {
        let by = |dangling| ranks(&RankProblem { dangling, ..plain(&links) }, method, 1e-13);
        let gone = by(Dangling::Drop);
        assert!(distance(&gone.ranks, &dropped) < 1e-13);
        assert!((gone.certificate.sum - total).abs() < 1e-13 && total < 0.5);
        // Spreading like a jump changes only the scale.
        for dangling in [Dangling::Uniform, Dangling::Personalised] {
            let scaled: Vec<f64> = dropped.iter().map(|x| x / total).collect();
            assert!(distance(&by(dangling).ranks, &scaled) < 1e-13);
        }
        // The sink keeps its rank: x2 = (x0 + d x1) / (1 - d).
        let kept = [dropped[0], dropped[1], dropped[2] / (1.0 - d)];
        assert!(distance(&by(Dangling::SelfLoop).ranks, &kept) < 1e-12);
    }
}

#[test]
fn every_policy_agrees_with_a_dense_solve_within_the_error_bound() {
    for seed in 0..12 {
        let n = 5 + 9 * seed as usize;
        let graph = random(n, seed);
        let links = Links::new(&graph).unwrap();
        let mut v: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { (1 + i) as f64 } else { 0.0 }).collect();
        let sum: f64 = v.iter().sum();
        v.iter_mut().for_each(|v| *v /= sum);
        for dangling in Dangling::ALL {
            for teleport in [None, Some(&v[..])] {
                for damping in [0.0, 0.5, 0.85, 0.99] {
                    let problem = RankProblem { links: &links, damping, dangling, teleport, start: None };
                    let truth = exact(&graph, &problem);
                    for (method, tolerance) in
                        RankMethod::ALL.into_iter().flat_map(|m| [1e-3, 1e-7, 1e-12].map(|t| (m, t)))
                    {
                        let got = ranks(&problem, method, tolerance);
                        let what = format!("{seed} {dangling:?} {damping} {method:?} {tolerance}");
                        assert_eq!(got.reason, StopReason::Converged, "{what}");
                        let (error, bound) = (distance(&got.ranks, &truth), got.certificate.error_bound);
                        assert!(bound <= tolerance, "{what}: {bound}");
                        // The dense solve has rounding errors too.
                        assert!(error <= bound + 1e-13 / (1.0 - damping), "{what}: {error} {bound}");
                        let kept = if dangling.conserves() { 1.0 } else { truth.iter().sum() };
                        assert!((got.certificate.sum - kept).abs() <= bound + 4e-16 * n as f64, "{what}");
                    }
                }
            }
        }
    }
}

/// The output of `scripts/rank_semantics.py`.
#[derive(serde::Deserialize)]
struct Peers {
    cases: Vec<Peer>,
}

#[derive(serde::Deserialize)]
struct Peer {
    peer: String,
    graph: String,
    vertices: usize,
    links: Vec<(usize, usize, f64)>,
    damping: f64,
    teleport: Option<Vec<f64>>,
    dangling: String,
    ranks: Vec<f64>,
}

#[test]
fn ranks_match_networkx_and_igraph_for_the_policies_that_they_support() {
    let peers: Peers = serde_json::from_str(include_str!("../../../tests/data/ranks.json")).unwrap();
    let by = |name| peers.cases.iter().filter(|case| case.peer == name).count();
    assert_eq!((by("NetworkX"), by("igraph")), (63, 42));
    for case in &peers.cases {
        let links = Links::new(&graph(case.vertices, &case.links)).unwrap();
        let dangling = Dangling::ALL.into_iter().find(|policy| policy.name() == case.dangling).unwrap();
        let (damping, teleport) = (case.damping, case.teleport.as_deref());
        let problem = RankProblem { links: &links, damping, dangling, teleport, start: None };
        for method in RankMethod::ALL {
            let got = ranks(&problem, method, 5e-13);
            let off = distance(&got.ranks, &case.ranks);
            assert!(off < 1e-12, "{}, {}, {damping}, {method:?}: {off}", case.peer, case.graph);
        }
    }
}

on_each_device! {
    ranks_agree_with_a_dense_solve,
    single_precision_never_certifies_an_error_that_it_has_not_reached,
    a_start_at_the_ranks_needs_few_iterations,
    extrapolation_saves_iterations_if_groups_are_seldom_left,
}

fn ranks_agree_with_a_dense_solve<D: Pick<f64>>(device: &D) {
    let graph = random(300, 5);
    let links = Links::new(&graph).unwrap();
    let v: Vec<f64> = (0..300).map(|i| f64::from(u8::from(i < 10)) / 10.0).collect();
    for dangling in Dangling::ALL {
        for teleport in [None, Some(&v[..])] {
            let problem = RankProblem { dangling, teleport, ..plain(&links) };
            let got = on::<D, f64>(device, &problem, 1e-12);
            assert_eq!(got.reason, StopReason::Converged);
            assert!(distance(&got.ranks, &exact(&graph, &problem)) <= 1e-12, "{dangling:?}");
        }
    }
}

/// On a power-law graph the steps in single precision keep falling while the error does not.
fn single_precision_never_certifies_an_error_that_it_has_not_reached<D: Pick<f32> + Pick<f64>>(device: &D) {
    let graph = zoo::generated("rmat:scale=13,edges=200000");
    let links = Links::new(&graph).unwrap();
    let problem = plain(&links);
    let truth = on::<D, f64>(device, &problem, 1e-12).ranks;
    let got = on::<D, f32>(device, &problem, 1e-9);
    let error = distance(&got.ranks, &truth);
    assert!(error > 1e-9, "single precision cannot reach this error: {error}");
    assert!(got.certificate.error_bound >= error, "{} {error}", got.certificate.error_bound);
    assert!(!got.reason.is_success(), "{:?}", got.reason);
    let rough = on::<D, f32>(device, &problem, 1e-3);
    assert_eq!(rough.reason, StopReason::Converged);
    assert!(distance(&rough.ranks, &truth) <= rough.certificate.error_bound);
}

fn a_start_at_the_ranks_needs_few_iterations<D: Pick<f64>>(device: &D) {
    let links = Links::new(&random(500, 9)).unwrap();
    let cold = on::<D, f64>(device, &plain(&links), 1e-10);
    let warm = on::<D, f64>(device, &RankProblem { start: Some(&cold.ranks), ..plain(&links) }, 1e-9);
    assert!(cold.iterations > 20 && warm.iterations <= 8, "{} {}", cold.iterations, warm.iterations);
}

fn extrapolation_saves_iterations_if_groups_are_seldom_left<D: Pick<f64>>(device: &D) {
    // Three groups of 20, 30 and 40 fully connected vertices, with one link from each group to the next.
    let groups = [(0, 20), (20, 50), (50, 90)];
    let within =
        groups.iter().flat_map(|&(from, to)| (from..to).flat_map(move |i| (from..to).map(move |j| (i, j))));
    let between = [(0, 20), (20, 50), (50, 0)];
    let graph = unweighted(90, within.filter(|(i, j)| i != j).chain(between));
    let links = Links::new(&graph).unwrap();
    let v: Vec<f64> = (0..90).map(|i| f64::from(u8::from(i == 3))).collect();
    for dangling in Dangling::ALL {
        let problem = RankProblem { damping: 0.99, teleport: Some(&v), dangling, ..plain(&links) };
        let (power, ahead) = (on::<D, f64>(device, &problem, 1e-11), extrapolated(device, &problem, 1e-11));
        assert_eq!(ahead.reason, StopReason::Converged);
        assert!(distance(&ahead.ranks, &exact(&graph, &problem)) <= 1e-11, "{dangling:?}");
        assert!(2 * ahead.iterations < power.iterations, "{} {}", ahead.iterations, power.iterations);
        assert!(ahead.extrapolations > 0 && power.extrapolations == 0);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let links = Links::new(&zoo::generated("rmat:scale=11,edges=30000")).unwrap();
    check_threads("a ranking", &[2, 3, 8], |threads| {
        let ranking = on::<Cpu, f64>(&Cpu::new(Some(threads)).unwrap(), &plain(&links), 1e-10);
        (ranking.iterations, ranking.ranks)
    });
}

#[test]
fn reordered_vertices_keep_their_ranks() {
    let graph = zoo::generated("rmat:scale=18,edges=2000000");
    let (original, reordered) =
        (Links::new(&graph).unwrap(), Links::in_best_order((*graph).clone()).unwrap());
    assert!(reordered.are_reordered() && !original.are_reordered());
    let v: Vec<f64> = (0..1 << 18).map(|i| if i % 1000 == 7 { 1.0 / 263.0 } else { 0.0 }).collect();
    assert!((v.iter().sum::<f64>() - 1.0).abs() < 1e-10);
    for (method, teleport) in [
        (RankMethod::Power, None),
        (RankMethod::Power, Some(&v[..])),
        (RankMethod::GaussSeidel, Some(&v[..])),
    ] {
        let by = |links| ranks(&RankProblem { teleport, ..plain(links) }, method, 1e-9);
        let (a, b) = (by(&original), by(&reordered));
        assert!(distance(&a.ranks, &b.ranks) <= 2e-9);
        let again = certify(&RankProblem { teleport, ..plain(&reordered) }, &a.ranks).unwrap();
        assert!(again.error_bound <= 1.1e-9, "{again:?}");
    }
}

#[test]
fn parts_of_a_large_graph_are_updated_with_the_same_bits_by_any_number_of_threads() {
    // Links to near vertices mostly, self-loops, repeated links and sinks; vertices that link to sinks alone;
    // and groups of 8 vertices with equal links, all of them from the group.
    let n = 40_000;
    let mut numbers = Numbers::new(5);
    let mut links = Vec::new();
    let in_group = |i: usize| i % 97 < 8;
    for i in (0..n).filter(|i| i % 11 != 0) {
        if i % 13 == 5 {
            links.push((i, i / 11 * 11, 1.0));
            continue;
        }
        let group = i / 97 * 97;
        (0..8).filter(|_| in_group(i)).for_each(|k| links.push((i, group + k, 2.0)));
        for _ in 0..6 {
            let far = numbers.below(20) == 0;
            let j = if far { numbers.below(n) } else { (i + numbers.below(30)) % n };
            let weight = 1.0 + numbers.below(4) as f64;
            links.extend((!in_group(j)).then_some((i, j, weight)));
        }
    }
    assert!(links.len() > 1 << 17, "the graph has parts");
    let with_weights = graph(n, &links);
    let without = Csr::with_pattern(with_weights.pattern().clone(), Values::Ones).unwrap();
    let v: Vec<f64> = (0..n).map(|i| if i % 100 == 7 { 100.0 / n as f64 } else { 0.0 }).collect();
    for graph in [with_weights, without] {
        let links = Links::new(&graph).unwrap();
        let order = Parts::new(&links).unwrap();
        for (dangling, teleport) in
            Dangling::ALL.into_iter().flat_map(|policy| [(policy, None), (policy, Some(&v[..]))])
        {
            let problem = RankProblem { dangling, teleport, ..plain(&links) };
            let by = |threads| {
                let cpu = Cpu::new(Some(threads)).unwrap();
                gauss_seidel(&cpu, &order, &problem, &rule(1e-11), &mut []).unwrap()
            };
            let (one, expected) = (by(1), ranks(&problem, RankMethod::Power, 1e-11));
            assert!(one.reason.is_success() && one.iterations < expected.iterations, "{dangling:?}");
            assert!(distance(&one.ranks, &expected.ranks) <= 2e-11, "{dangling:?}");
            for threads in [2, 3, 5] {
                let found = by(threads);
                assert_eq!((bits(&found.ranks), found.iterations), (bits(&one.ranks), one.iterations));
            }
            let start = Some(&one.ranks[..]);
            let warm = RankProblem { start, ..problem };
            let warm = gauss_seidel(&cpu(), &order, &warm, &rule(1e-10), &mut []).unwrap();
            assert!(warm.iterations <= 3, "{dangling:?}: {} iterations", warm.iterations);
        }
    }
}

#[test]
fn gauss_seidel_takes_few_passes_whatever_sinks_and_jumps_do() {
    let csr = zoo::generated("rmat:scale=12,factor=16");
    let links = Links::new(&csr).unwrap();
    let n = links.vertices();
    let is_sink = |i: usize| csr.row(i).next().is_none();
    let leads_to_sinks = (0..n).find(|&i| !is_sink(i) && csr.row(i).all(|(j, _)| is_sink(j))).unwrap();
    let of = |chosen: &[usize]| {
        let mut v = vec![0.0; n];
        chosen.iter().for_each(|&i| v[i] = 1.0 / chosen.len() as f64);
        v
    };
    let jumps = [of(&[3, 17]), of(&[leads_to_sinks])];
    let order = Parts::new(&links).unwrap();
    for (dangling, damping) in Dangling::ALL.into_iter().flat_map(|policy| [(policy, 0.85), (policy, 0.9999)])
    {
        for teleport in [None, Some(&jumps[0][..]), Some(&jumps[1][..])] {
            let problem = RankProblem { links: &links, damping, dangling, teleport, start: None };
            let found = gauss_seidel(&cpu(), &order, &problem, &rule(1e-8), &mut []).unwrap();
            let what = format!("{dangling:?}, {damping}, jumps to all: {}", teleport.is_none());
            assert!(found.reason.is_success(), "{what}: {:?}", found.reason);
            assert!(found.iterations <= 30, "{what}: {} passes", found.iterations);
        }
    }
}

#[test]
fn rounding_of_large_sums_does_not_keep_gauss_seidel_from_converging() {
    // A plain sum of many equal terms has the same rounding error in each addition.
    let n = 1 << 18;
    let mut numbers = Numbers::new(11);
    let mut links = Vec::new();
    for i in 0..n {
        let far = if numbers.below(5) == 0 { numbers.below(n) } else { (i + 1 + numbers.below(50)) % n };
        links.extend([(i, (i + 1) % n), (i, (i + 1 + numbers.below(2000)) % n), (i, far)]);
    }
    let links = Links::new(&unweighted(n, links)).unwrap();
    let found = ranks(&plain(&links), RankMethod::GaussSeidel, 5e-12);
    assert!(found.reason.is_success() && found.iterations < 100, "{} passes", found.iterations);
}

#[test]
fn more_vertices_with_the_same_links_than_share_a_sum_get_the_ranks_of_a_dense_solve() {
    // More vertices than share one sum of links; each has links to all of them, itself included.
    let group = 200;
    let mut links: Vec<_> = (0..group).flat_map(|i| (0..group).map(move |j| (i, j, 1.0))).collect();
    links.extend((0..group).map(|i| (group + i % 7, i, 1.0)));
    links.extend((0..7).map(|i| (i * 20, group + i, 50.0)));
    let graph = graph(group + 7, &links);
    let links = Links::new(&graph).unwrap();
    let v: Vec<f64> = (0..group + 7).map(|i| if i == 150 { 1.0 } else { 0.0 }).collect();
    let problem = RankProblem { damping: 0.99, teleport: Some(&v), ..plain(&links) };
    let found = ranks(&problem, RankMethod::GaussSeidel, 1e-12);
    assert!(distance(&found.ranks, &exact(&graph, &problem)) <= 1e-12);
    assert!(found.iterations <= 20, "{} passes", found.iterations);
}

#[test]
fn the_tolerance_bounds_the_error_at_any_graph_size() {
    // NetworkX stops at n times its tolerance, which is far from the ranks of a large graph.
    let links = Links::new(&zoo::generated("rmat:scale=15,edges=300000")).unwrap();
    let truth = ranks(&plain(&links), RankMethod::Power, 1e-13).ranks;
    let got = ranks(&plain(&links), RankMethod::Power, 1e-6);
    let error = distance(&got.ranks, &truth);
    assert!(error <= 1e-6 && got.certificate.error_bound <= 1e-6, "{error}");
}

#[test]
fn an_iteration_limit_is_not_convergence() {
    let links = Links::new(&random(200, 1)).unwrap();
    let rule = StoppingRule::any([StoppingRule::AbsoluteResidual(1e-10), StoppingRule::MaxIterations(5)]);
    let cpu = Cpu::new(Some(1)).unwrap();
    let problem = plain(&links);
    let got = power::<Cpu, f64>(operator(&cpu, links.incoming()), &problem, false, &rule, &mut []).unwrap();
    assert_eq!((got.reason, got.iterations), (StopReason::IterationLimit { limit: 5 }, 5));
    assert!(got.certificate.error_bound > 1e-10);
    let got = gauss_seidel(&cpu, &parts(&problem), &problem, &rule, &mut []).unwrap();
    assert_eq!((got.reason, got.iterations), (StopReason::IterationLimit { limit: 5 }, 5));
}

#[test]
fn links_of_weight_0_do_not_count() {
    let linked = [(0, 1, 1.0), (1, 0, 1.0), (1, 2, 2.0), (3, 2, 1.0), (3, 3, 0.5)];
    let zeros = [(2, 0, 0.0), (2, 2, 0.0), (0, 3, 0.0), (4, 1, 0.0), (0, 0, 0.0)];
    let with = graph(5, &[&linked[..], &zeros[..]].concat());
    let links = Links::new(&with).unwrap();
    for dangling in Dangling::ALL {
        let problem = RankProblem { dangling, ..plain(&links) };
        let truth = exact(&graph(5, &linked), &problem);
        for method in RankMethod::ALL {
            let got = ranks(&problem, method, 1e-13);
            assert!(distance(&got.ranks, &truth) < 2e-13, "{dangling:?} {method:?}: {:?}", got.ranks);
        }
    }
}

#[test]
fn weights_determine_transitions_and_repeated_links_add_up() {
    let weighted = Links::new(&graph(3, &[(0, 1, 3.0), (0, 2, 1.0), (1, 0, 0.5), (2, 0, 7.0)])).unwrap();
    let repeated = Links::new(&unweighted(3, [(0, 1), (0, 1), (0, 1), (0, 2), (1, 0), (2, 0)])).unwrap();
    let (a, b) = (plain(&weighted), plain(&repeated));
    let (a, b) = (ranks(&a, RankMethod::Power, 1e-13), ranks(&b, RankMethod::Power, 1e-13));
    assert!(distance(&a.ranks, &b.ranks) < 1e-14);
    assert!(a.ranks[1] > 2.0 * a.ranks[2]);
}

#[test]
fn graphs_without_vertices_or_links_and_with_one_vertex_have_ranks() {
    for method in RankMethod::ALL {
        let none = ranks(&plain(&Links::new(&unweighted(0, [])).unwrap()), method, 1e-10);
        assert!(none.ranks.is_empty() && none.reason.is_success());
        let one = ranks(&plain(&Links::new(&unweighted(1, [])).unwrap()), method, 1e-10);
        assert_eq!(one.ranks, [1.0]);
        let apart = ranks(&plain(&Links::new(&unweighted(4, [])).unwrap()), method, 1e-10);
        assert!(distance(&apart.ranks, &[0.25; 4]) < 1e-15);
    }
}

#[test]
fn invalid_graphs_and_vectors_are_refused() {
    let refused = |links: &[(usize, usize, f64)]| Links::new(&graph(3, links)).unwrap_err().to_string();
    assert!(
        refused(&[(0, 1, 1.0), (1, 2, -0.5)])
            .contains("out of vertex 1, the one to vertex 2: its weight is -0.5")
    );
    assert!(refused(&[(2, 0, f64::INFINITY)]).contains("vertex 2"));
    assert!(refused(&[(2, 0, 1e308), (2, 1, 1e308)]).contains("scale them to between 1e-280 and 1e280"));
    let oblong = Coo::new(2, 3, vec![0], vec![2], vec![1.0]).unwrap().into_csr().unwrap();
    assert!(matches!(Links::new(&oblong), Err(Error::NotSquare { solver: "pagerank", .. })));
    let links = Links::new(&unweighted(3, [(0, 1)])).unwrap();
    let with = |problem: RankProblem<'_>| {
        gauss_seidel(&cpu(), &parts(&problem), &problem, &rule(1e-8), &mut []).unwrap_err()
    };
    for damping in [-0.1, 1.0, f64::NAN] {
        assert!(matches!(
            with(RankProblem { damping, ..plain(&links) }),
            Error::BadSetting { setting: "damping", .. }
        ));
    }
    let other = Links::new(&unweighted(3, [(1, 0)])).unwrap();
    let refused =
        gauss_seidel(&cpu(), &parts(&plain(&other)), &plain(&links), &rule(1e-8), &mut []).unwrap_err();
    assert!(refused.to_string().contains("make them from the links of the problem"), "{refused}");
    assert!(matches!(with(RankProblem { teleport: Some(&[1.0]), ..plain(&links) }), Error::Dimension { .. }));
    for bad in [[0.5, 0.2, 0.2], [1.5, -0.5, 0.0], [f64::NAN, 0.5, 0.5]] {
        let error = with(RankProblem { start: Some(&bad), ..plain(&links) });
        assert!(matches!(error, Error::Chain(ChainError::NoDistribution { .. })), "{error}");
    }
}

#[test]
fn a_gpu_finds_the_same_ranks_as_the_cpu() {
    let gpu = gpu();
    let web = Links::new(&zoo::generated("rmat:scale=14,edges=200000")).unwrap();
    // More vertices than 16 bits can number, but only links to near vertices, which a GPU stores in 16 bits.
    let n: usize = 70_000;
    let next = |i: usize| [i + 1, i + 2 + i % 50, i + 30_000].into_iter().take(1 + i % 3).filter(|&j| j < n);
    let offsets = std::iter::once(0).chain((0..n).scan(0, |end, i| {
        *end += next(i).count() as u64;
        Some(*end)
    }));
    let columns = (0..n).flat_map(next).map(|j| j as u32).collect();
    let chain = Csr::new(n, n, Offsets::narrowest(offsets.collect()), columns, Values::Ones).unwrap();
    for links in [web, Links::new(&chain).unwrap()] {
        let there = on::<_, f64>(&gpu, &plain(&links), 1e-11);
        let here = ranks(&plain(&links), RankMethod::Power, 1e-11);
        assert!(distance(&there.ranks, &here.ranks) <= 2e-11);
        assert!(there.iterations.abs_diff(here.iterations) <= 1, "{}", gpu.describe());
        let precise: f64 = there.ranks.iter().sum();
        assert!((precise - 1.0).abs() < 1e-12);
    }
}

/// A row with more links than a block processes at once is completed by the block that
/// finishes its piece last.
#[test]
fn ranks_of_hubs_on_the_gpu_have_the_same_bits_every_time() {
    let gpu = gpu();
    let links = Links::new(&crate::source::load("rmat:scale=13,edges=1500000").unwrap().matrix).unwrap();
    let longest = (0..links.vertices()).map(|v| links.incoming().row_range(v).len()).max().unwrap();
    assert!(longest > 4096, "the longest row has {longest} links");
    for backend in ["pull:cut=windows", "csr:cut=windows"] {
        let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, backend).unwrap();
        let ranks = || {
            let operator = choice.build::<Cuda, f64>(&gpu, links.incoming(), 0).unwrap();
            let ranking = power::<Cuda, f64>(operator, &plain(&links), false, &rule(1e-9), &mut []);
            bits(&ranking.unwrap().ranks)
        };
        let first = ranks();
        assert!((0..20).all(|_| ranks() == first), "{backend}");
    }
}

#[test]
fn a_tolerance_below_rounding_ends_with_a_rounding_gap_at_any_damping() {
    let links = Links::new(&random(200, 3)).unwrap();
    for damping in [0.0, 0.85] {
        for method in RankMethod::ALL {
            let got = ranks(&RankProblem { damping, ..plain(&links) }, method, 1e-18);
            assert!(
                matches!(got.reason, StopReason::RoundingGap { .. }),
                "{damping} {method:?}: {:?}",
                got.reason
            );
            assert!(got.certificate.error_bound < 1e-12);
        }
        let rough =
            on::<Cpu, f32>(&Cpu::new(Some(1)).unwrap(), &RankProblem { damping, ..plain(&links) }, 1e-10);
        // With damping 0 every rank is the same, and exact after normalisation.
        assert!(
            (damping == 0.0 || !rough.reason.is_success()) && rough.iterations < 20_000,
            "{:?}",
            rough.reason
        );
    }
}

#[test]
fn ranks_with_a_sum_below_one_are_a_valid_start() {
    let links = Links::new(&random(300, 4)).unwrap();
    let problem = RankProblem { dangling: Dangling::Drop, ..plain(&links) };
    let cold = ranks(&problem, RankMethod::Power, 1e-10);
    let warm = ranks(&RankProblem { start: Some(&cold.ranks), ..problem }, RankMethod::Power, 1e-9);
    assert!(cold.iterations > 15 && warm.iterations <= 3, "{} {}", cold.iterations, warm.iterations);
}

#[test]
fn certify_refuses_invalid_problems() {
    let links = Links::new(&unweighted(2, [(0, 1), (1, 0)])).unwrap();
    assert!(certify(&plain(&links), &[0.5]).is_err());
    assert!(certify(&RankProblem { damping: 1.5, ..plain(&links) }, &[0.5, 0.5]).is_err());
    assert!(certify(&plain(&links), &[0.5, 0.5]).unwrap().error_bound < 1e-12);
}

/// Unless the host reads them, the columns of a transpose that the GPU has computed are read there only: by
/// the product and by the certificate.
#[test]
fn a_transpose_and_a_certificate_of_the_gpu_have_the_bits_of_the_host() {
    let gpu = gpu();
    let open = |what: &str| crate::source::load(what).unwrap().matrix;
    let ones = |graph: Csr| Csr::with_pattern(Arc::clone(graph.pattern()), Values::Ones).unwrap();
    let graph = |what: &str| ones(open(what));
    let parallel = open("rmat:scale=12,edges=300000");
    let weighted = |graph: &Csr, single: bool| {
        let weights = (0..graph.nnz()).map(|entry| (1 + entry % 11) as f64 / (1 + entry % 7) as f64);
        let values = match single {
            true => Values::F32(weights.map(|weight| weight as f32).collect()),
            false => Values::F64(weights.collect()),
        };
        Csr::with_pattern(Arc::clone(graph.pattern()), values).unwrap()
    };
    // All links lead to the last of many vertices, or come from one.
    let star = ones(unweighted(100_000, (0..99_999).map(|i| (i, 99_999))));
    let hub = ones(unweighted(70_000, (1..70_000).map(|i| (0, i))));
    let (scattered, grid) = (graph("uniform:n=70000,row=9"), graph("poisson2d:300x300"));
    let (heavy, repeated) = (weighted(&scattered, false), weighted(&parallel, false));
    let sinks = {
        let Values::F64(mut weights) = heavy.values().clone() else { unreachable!("the weights are in f64") };
        weights[..9000].fill(0.0);
        weights.iter_mut().step_by(5).for_each(|weight| *weight = 0.0);
        Csr::with_pattern(Arc::clone(heavy.pattern()), Values::F64(weights)).unwrap()
    };
    // The last value of a line is whether the GPU certifies, too. One long row takes longer there
    // than all rows on the host.
    for (name, host_reads, graph, certifies) in [
        ("many links of one vertex", false, graph("rmat:scale=16,factor=16"), true),
        (
            "weights, many links of one vertex",
            false,
            weighted(&graph("rmat:scale=16,factor=16"), false),
            true,
        ),
        ("weights in single precision", true, weighted(&scattered, true), true),
        ("weights of 0", false, sinks, true),
        ("weights", false, heavy, true),
        ("more than 65,536 vertices", false, scattered, true),
        ("a grid", false, grid.clone(), true),
        ("a grid that the host reads", true, grid, true),
        ("weights of parallel links", false, repeated, true),
        ("parallel links that the host reads", true, parallel.clone(), true),
        ("parallel links", false, parallel, true),
        ("one target", false, star, false),
        ("one source", false, hub, true),
    ] {
        let graph = Arc::new(graph);
        let mut calls = 0;
        let made = gpu.transposed(&graph, (0, host_reads), &mut || calls += 1);
        let transpose = made.unwrap().expect(name);
        assert_eq!(calls, 1, "{name}");
        let loops = |i: usize| graph.row_columns(i).iter().filter(|&&j| j as usize == i).count();
        assert_eq!(transpose.loops, (0..graph.rows()).map(loops).sum::<usize>() as u64, "{name}");
        let out = Links::weights_out(&graph).unwrap();
        let (mut there, here) = (Links::with_transpose(transpose.matrix, out), Links::new(&graph).unwrap());
        let teleport: Vec<f64> = {
            let weights = (0..here.vertices()).map(|i| (1 + i % 7) as f64);
            let sum: f64 = weights.clone().sum();
            weights.map(|weight| weight / sum).collect()
        };
        let of = |links: &Links| {
            let backend = if matches!(links.incoming().values(), Values::Ones) { "pull" } else { "csr" };
            let choice = Choice::resolve(Cuda::KIND, Cuda::DEFAULT_BACKEND, backend).unwrap();
            let operator = choice.build::<Cuda, f64>(&gpu, links.incoming(), 0).unwrap();
            power::<Cuda, f64>(operator, &plain(links), false, &rule(1e-10), &mut []).unwrap()
        };
        let inflow = gpu.inflow(there.incoming(), 0).unwrap();
        assert_eq!(inflow.is_some(), certifies, "{name}");
        if let Some(inflow) = inflow {
            // A device that fails would leave the certificate to the host.
            let mut alone = gpu.inflow(there.incoming(), 0).unwrap().unwrap();
            let (n, out) = (there.vertices() as f64, vec![1.0; there.vertices()]);
            let (even, x) = (1.0 / n, vec![1.0 / n; there.vertices()]);
            alone.begin(&x, &out).unwrap();
            let (damping, teleport, spread) = (0.85, None, 0.0);
            let map = RankMap { damping, teleport, even, spread, by_teleport: false, keeps: false };
            alone.finish(&map).unwrap();
            there.compute_on_device(inflow);
        }
        let (there_ranks, here_ranks) = (of(&there), of(&here));
        for dangling in Dangling::ALL {
            for teleport in [None, Some(&teleport[..])] {
                let of = |links: &Links| {
                    certify(&RankProblem { dangling, teleport, ..plain(links) }, &here_ranks.ranks).unwrap()
                };
                assert_eq!(
                    of(&there),
                    of(&here),
                    "{name}: {dangling:?}, personalised {}",
                    teleport.is_some()
                );
            }
        }
        assert!(bits(&there_ranks.ranks) == bits(&here_ranks.ranks), "{name}");
        assert_eq!(there_ranks.certificate, here_ranks.certificate, "{name}");
        assert!(there.incoming() == here.incoming(), "{name}: the host's transpose");
    }
}

/// The certificate takes the weights as they are given, also where the backend multiplies
/// weights in single precision.
#[test]
fn ranks_of_a_graph_with_weights_on_the_gpu_are_certified_with_its_weights_in_every_precision() {
    drop(gpu());
    let links = (0..200_000).map(|i| (i * 7 % 50_000, i * i % 49_999, (1 + i % 13) as f64 / 7.0));
    let graph = graph(50_000, &links.collect::<Vec<_>>());
    let links = Links::new(&graph).unwrap();
    for precision in [Precision::F64, Precision::Mixed, Precision::F32] {
        let tol = if precision == Precision::F64 { 1e-10 } else { 1e-4 };
        let solve = |backend| {
            let pagerank = Pagerank::new(&Matrix::from(graph.clone())).device("cuda").backend(backend);
            pagerank.precision(precision).tol(tol).solve().unwrap()
        };
        for backend in ["auto", "csr", "sell"] {
            let found = solve(backend);
            assert!(found.converged(), "{backend}, {precision:?}");
            let certificate = certify(&plain(&links), found.ranks()).unwrap();
            assert_eq!(found.outcome().certificate, certificate, "{backend}, {precision:?}");
        }
    }
}

#[test]
fn the_gpu_transposes_rectangles_and_counts_their_diagonal() {
    let gpu = gpu();
    for (rows, cols) in [(300, 70_000), (70_000, 300)] {
        let entries = (0..100_000).map(|i| (i * 7 % rows, i * i % cols, i as f64)).collect::<Vec<_>>();
        let place = |of: fn(&(usize, usize, f64)) -> usize| entries.iter().map(|e| of(e) as u32).collect();
        let values = entries.iter().map(|entry| entry.2).collect();
        let coo = Coo::new(rows, cols, place(|e| e.0), place(|e| e.1), values).unwrap();
        let matrix = Arc::new(coo.into_csr_with(Duplicates::Keep).unwrap());
        for matrix in [Arc::clone(&matrix), Arc::new(matrix.to_f32())] {
            let there = gpu.transposed(&matrix, (0, true), &mut || ()).unwrap().unwrap();
            assert!(*there.matrix == matrix.transposed().unwrap(), "{rows} x {cols}");
            let on_diagonal = |i: usize| matrix.row_columns(i).iter().filter(|&&j| j as usize == i).count();
            assert_eq!(there.loops, (0..rows).map(on_diagonal).sum::<usize>() as u64, "{rows} x {cols}");
        }
    }
}
