//! Stationary distributions compared with closed forms; chains with several distributions, with none,
//! or with slow convergence.

use crate::Error;
use crate::backend::Pick;
use crate::common::on_each_device;
use crate::common::places::check_threads;
use crate::common::solves::operator;
use crate::common::zoo;
use crate::device::Cpu;
use crate::error::ChainError;
use crate::format::{Coo, Csr};
use crate::solve::markov::chain::Chain;
use crate::solve::markov::{ChainMethod, Stationary, StationaryProblem, power, residual, serial};
use crate::solve::part::Part;
use crate::stop::{StopReason, StoppingRule};

fn chain(n: usize, steps: &[(usize, usize, f64)]) -> Chain {
    Chain::new(matrix(n, steps), false).unwrap()
}

fn matrix(n: usize, steps: &[(usize, usize, f64)]) -> Csr {
    let place = |v: usize| u32::try_from(v).unwrap();
    let rows = steps.iter().map(|s| place(s.0)).collect();
    let cols = steps.iter().map(|s| place(s.1)).collect();
    Coo::new(n, n, rows, cols, steps.iter().map(|s| s.2).collect()).unwrap().into_csr().unwrap()
}

fn dense(rows: &[&[f64]]) -> Chain {
    let steps: Vec<_> = rows
        .iter()
        .enumerate()
        .flat_map(|(i, row)| row.iter().enumerate().map(move |(j, &p)| (i, j, p)))
        .filter(|(_, _, p)| *p != 0.0)
        .collect();
    chain(rows.len(), &steps)
}

fn rule(tolerance: f64) -> StoppingRule {
    StoppingRule::any([StoppingRule::AbsoluteResidual(tolerance), StoppingRule::MaxIterations(200_000)])
}

fn on<D: Pick<f64>>(device: &D, chain: &Chain, class: usize, tolerance: f64) -> Stationary {
    let class = &chain.closed()[class];
    let incoming = chain.within(class).unwrap();
    let problem =
        StationaryProblem { incoming: &incoming, part: Part::default(), period: class.period, start: None };
    power::<D, f64>(operator(device, &incoming), &problem, &rule(tolerance), &mut []).unwrap()
}

fn by(method: ChainMethod, chain: &Chain, class: usize, tolerance: f64) -> Stationary {
    if method == ChainMethod::Power {
        return on(&Cpu::new(Some(2)).unwrap(), chain, class, tolerance);
    }
    let class = &chain.closed()[class];
    let incoming = chain.within(class).unwrap();
    let problem =
        StationaryProblem { incoming: &incoming, part: Part::default(), period: class.period, start: None };
    serial(&problem, method == ChainMethod::Aggregation, &rule(tolerance), &mut []).unwrap()
}

fn near(got: &[f64], want: &[f64], within: f64) -> bool {
    got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() <= within)
}

/// Makes a walk on 0..n that goes up with probability p: its distribution is geometric.
fn walk(n: usize, p: f64) -> Chain {
    let steps: Vec<_> = (0..n)
        .flat_map(|i| {
            let (down, up) = (i.saturating_sub(1), (i + 1).min(n - 1));
            [(i, down, 1.0 - p), (i, up, p)]
        })
        .collect();
    chain(n, &steps)
}

fn geometric(n: usize, ratio: f64) -> Vec<f64> {
    let all: Vec<f64> = (0..n).map(|i| ratio.powi(i as i32)).collect();
    let sum: f64 = all.iter().sum();
    all.iter().map(|p| p / sum).collect()
}

/// Makes P.-J. Courtois' chain of three groups that are seldom left (Decomposability, 1977).
fn courtois() -> Chain {
    dense(&[
        &[0.85, 0.0, 0.149, 0.0009, 0.0, 0.00005, 0.0, 0.00005],
        &[0.1, 0.65, 0.249, 0.0, 0.0009, 0.00005, 0.0, 0.00005],
        &[0.1, 0.8, 0.0996, 0.0003, 0.0, 0.0, 0.0001, 0.0],
        &[0.0, 0.0004, 0.0, 0.7, 0.2995, 0.0, 0.0001, 0.0],
        &[0.0005, 0.0, 0.0004, 0.399, 0.6, 0.0001, 0.0, 0.0],
        &[0.0, 0.00005, 0.0, 0.0, 0.00005, 0.6, 0.2499, 0.15],
        &[0.00003, 0.0, 0.00003, 0.00004, 0.0, 0.1, 0.8, 0.0999],
        &[0.0, 0.00005, 0.0, 0.0, 0.00005, 0.1999, 0.25, 0.55],
    ])
}

#[test]
fn every_method_finds_the_closed_form_distribution_of_a_walk() {
    let chain = walk(12, 0.3);
    let want = geometric(12, 0.3 / 0.7);
    for method in ChainMethod::ALL {
        let got = by(method, &chain, 0, 1e-13);
        assert_eq!(got.reason, StopReason::Converged, "{method:?}");
        assert!(near(&got.probabilities, &want, 1e-12), "{method:?}: {:?}", got.probabilities);
        assert!(got.residual <= 1e-13 && !got.lazy);
    }
}

#[test]
fn a_periodic_chain_is_solved_as_the_lazy_chain_and_reports_it() {
    // A ring of 6 with one shortcut of 3: the length of every cycle is a multiple of 3.
    let mut steps: Vec<_> = (0..6).map(|i| (i, (i + 1) % 6, if i == 0 { 0.5 } else { 1.0 })).collect();
    steps.push((0, 4, 0.5));
    let ring = chain(6, &steps);
    assert_eq!(ring.closed()[0].period, 3);
    let got = by(ChainMethod::Power, &ring, 0, 1e-12);
    assert!(got.lazy && got.reason == StopReason::Converged);
    // 0, 4 and 5 are on every cycle, 1 to 3 on half of them.
    let want = [2.0, 1.0, 1.0, 1.0, 2.0, 2.0].map(|p| p / 9.0);
    assert!(near(&got.probabilities, &want, 1e-11), "{:?}", got.probabilities);
    assert_eq!(walk(9, 0.5).closed()[0].period, 1, "the walk may stay at its ends");
    for n in [2, 3, 7, 16] {
        let ring: Vec<_> = (0..n).map(|i| (i, (i + 1) % n, 1.0)).collect();
        let ring = chain(n, &ring);
        assert_eq!(ring.closed()[0].period, n);
        let got = by(ChainMethod::Power, &ring, 0, 1e-12);
        assert!(near(&got.probabilities, &vec![1.0 / n as f64; n], 1e-12));
    }
}

#[test]
fn closed_classes_have_one_distribution_each_and_transient_states_none() {
    // {1, 4} and {2} are never left; 0 and 3 are transient, and a stored 0 is no step.
    let reducible = chain(
        5,
        &[
            (0, 1, 0.5),
            (0, 3, 0.5),
            (1, 4, 1.0),
            (4, 1, 0.25),
            (4, 4, 0.75),
            (2, 2, 1.0),
            (2, 0, 0.0),
            (3, 2, 1.0),
        ],
    );
    let classes: Vec<_> = reducible.closed().iter().map(|class| class.states.clone()).collect();
    assert_eq!((classes, reducible.transient()), (vec![vec![1, 4], vec![2]], 2));
    for method in ChainMethod::ALL {
        let got = by(method, &reducible, 0, 1e-13);
        assert!(near(&got.probabilities, &[0.2, 0.8], 1e-13), "{method:?}: {:?}", got.probabilities);
        assert_eq!(by(method, &reducible, 1, 1e-13).probabilities, [1.0]);
    }
}

#[test]
fn a_long_path_is_analysed_without_recursion() {
    let n = 300_000;
    let steps: Vec<_> = (0..n).map(|i| (i, (i + 1).min(n - 1), 1.0)).collect();
    let path = chain(n, &steps);
    assert_eq!(path.closed()[0].states, [n as u32 - 1]);
    assert_eq!(path.transient(), n - 1);
}

#[test]
fn groups_that_are_seldom_left_need_few_aggregations_or_many_power_iterations() {
    let chain = courtois();
    let want = by(ChainMethod::GaussSeidel, &chain, 0, 1e-15);
    let aggregated = by(ChainMethod::Aggregation, &chain, 0, 1e-14);
    assert_eq!(aggregated.reason, StopReason::Converged);
    assert_eq!(aggregated.groups.map(|(count, _)| count), Some(3));
    assert!(near(&aggregated.probabilities, &want.probabilities, 1e-10));
    // Published in Stewart, Introduction to the numerical solution of Markov chains, 1994.
    let published = [0.0893, 0.0928, 0.0405, 0.1585, 0.1189, 0.1204, 0.2778, 0.1018];
    assert!(near(&aggregated.probabilities, &published, 5.1e-5), "{:?}", aggregated.probabilities);
    let plain = by(ChainMethod::Power, &chain, 0, 1e-14);
    assert!(aggregated.iterations <= 15, "{}", aggregated.iterations);
    assert!(plain.iterations > 100 * aggregated.iterations, "{}", plain.iterations);
}

on_each_device! {
    a_block_band_chain_is_solved,
}

fn a_block_band_chain_is_solved<D: Pick<f64>>(device: &D) {
    let chain =
        Chain::new(zoo::generated("blockband:n=400,block=5,density=0.1").as_ref().clone(), false).unwrap();
    let got = on(device, &chain, 0, 1e-12);
    assert_eq!(got.reason, StopReason::Converged);
    let incoming = chain.within(&chain.closed()[0]).unwrap();
    assert!(residual(&incoming, &got.probabilities) <= 1e-12);
    assert!((got.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-13);
    let other = by(ChainMethod::GaussSeidel, &chain, 0, 1e-13);
    assert!(near(&got.probabilities, &other.probabilities, 1e-10), "{}", device.describe());
}

#[test]
fn rows_that_are_no_distributions_are_refused_with_their_index_and_can_be_normalised() {
    let halves = [(0, 0, 0.25), (0, 1, 0.25), (1, 0, 3.0), (1, 1, 1.0)];
    let error = Chain::new(matrix(2, &halves), false).unwrap_err();
    assert!(matches!(error, Error::Chain(ChainError::RowSum { row: 0, sum }) if sum == 0.5), "{error}");
    assert!(
        error.to_string().contains("row 0 sums to 0.5 (counted from 0)")
            && error.to_string().contains("can be divided by it")
    );
    let divided = Chain::new(matrix(2, &halves), true).unwrap();
    let got = by(ChainMethod::Power, &divided, 0, 1e-13);
    assert!(near(&got.probabilities, &[0.6, 0.4], 1e-12), "{:?}", got.probabilities);
    let negative = Chain::new(matrix(2, &[(0, 0, 1.5), (0, 1, -0.5), (1, 1, 1.0)]), true).unwrap_err();
    assert!(matches!(negative, Error::Chain(ChainError::Probability { row: 0, col: 1, .. })), "{negative}");
    let empty = Chain::new(matrix(2, &[(0, 0, 1.0)]), true).unwrap_err();
    assert!(matches!(empty, Error::Chain(ChainError::RowSum { row: 1, sum: 0.0 })), "{empty}");
    let oblong = Coo::new(1, 2, vec![0], vec![1], vec![1.0]).unwrap().into_csr().unwrap();
    assert!(matches!(Chain::new(oblong, false), Err(Error::NotSquare { solver: "markov", .. })));
}

#[test]
fn an_iteration_limit_is_not_convergence() {
    let chain = courtois();
    let class = &chain.closed()[0];
    let incoming = chain.within(class).unwrap();
    let problem = StationaryProblem { incoming: &incoming, part: Part::default(), period: 1, start: None };
    let rule = StoppingRule::any([StoppingRule::AbsoluteResidual(1e-12), StoppingRule::MaxIterations(20)]);
    let cpu = Cpu::new(Some(1)).unwrap();
    let got = power::<Cpu, f64>(operator(&cpu, &incoming), &problem, &rule, &mut []).unwrap();
    assert_eq!((got.reason, got.iterations), (StopReason::IterationLimit { limit: 20 }, 20));
    assert!(got.residual > 1e-12);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let chain =
        Chain::new(zoo::generated("blockband:n=3000,block=5,density=0.02").as_ref().clone(), false).unwrap();
    check_threads("a chain", &[2, 5], |threads| {
        let found = on(&Cpu::new(Some(threads)).unwrap(), &chain, 0, 1e-9);
        (found.iterations, found.probabilities)
    });
}

#[test]
fn gauss_seidel_does_not_oscillate_on_an_aperiodic_chain() {
    let ring = dense(&[&[0.5, 0.0, 0.5], &[0.3, 0.7, 0.0], &[0.0, 0.8, 0.2]]);
    let want = by(ChainMethod::Power, &ring, 0, 1e-14).probabilities;
    for method in [ChainMethod::GaussSeidel, ChainMethod::Aggregation] {
        let got = by(method, &ring, 0, 1e-13);
        assert_eq!(got.reason, StopReason::Converged, "{method:?}");
        assert!(near(&got.probabilities, &want, 1e-12), "{method:?}: {:?}", got.probabilities);
    }
}

#[test]
fn gauss_seidel_is_not_damped_while_its_steps_decrease() {
    // Each pass multiplies the error of a walk by cos^2(pi / n) = 0.989, a reduction of about one percent.
    let got = by(ChainMethod::GaussSeidel, &walk(30, 0.5), 0, 1e-12);
    assert!(near(&got.probabilities, &[1.0 / 30.0; 30], 1e-9));
    let start: Vec<f64> = (0..30).map(|i| (1.0 + i as f64) / 465.0).collect();
    let chain = walk(30, 0.5);
    let incoming = chain.within(&chain.closed()[0]).unwrap();
    let problem =
        StationaryProblem { incoming: &incoming, part: Part::default(), period: 1, start: Some(&start) };
    let got = serial(&problem, false, &rule(1e-12), &mut []).unwrap();
    assert!(got.iterations < 2500, "{}: about 2300 passes reduce the step to 1e-12", got.iterations);
}

#[test]
fn states_that_are_seldom_left_lose_no_digits() {
    let seldom = dense(&[&[1.0 - 1e-12, 1e-12], &[3e-12, 1.0 - 3e-12]]);
    let got = by(ChainMethod::GaussSeidel, &seldom, 0, 1e-14);
    assert!(near(&got.probabilities, &[0.75, 0.25], 1e-12), "{:?}", got.probabilities);
}

#[test]
fn a_residual_limited_by_rounding_ends_the_solve_without_success() {
    let chain =
        Chain::new(zoo::generated("blockband:n=200,block=5,density=0.2").as_ref().clone(), false).unwrap();
    let class = &chain.closed()[0];
    let incoming = chain.within(class).unwrap();
    let narrow = std::sync::Arc::new(incoming.to_f32());
    let problem = StationaryProblem { incoming: &incoming, part: Part::default(), period: 1, start: None };
    let rule = StoppingRule::any([StoppingRule::AbsoluteResidual(2e-9), StoppingRule::MaxIterations(300)]);
    let cpu = Cpu::new(Some(1)).unwrap();
    let got = power::<Cpu, f64>(operator(&cpu, &narrow), &problem, &rule, &mut []).unwrap();
    assert!(got.iterations <= 300 && !got.reason.is_success(), "{:?}", got.reason);
}

#[test]
fn a_start_that_is_no_distribution_and_a_chain_without_states_are_refused() {
    let chain = courtois();
    let incoming = chain.within(&chain.closed()[0]).unwrap();
    for start in [&[1.0][..], &[0.5; 8][..], &[f64::NAN; 8][..]] {
        let problem =
            StationaryProblem { incoming: &incoming, part: Part::default(), period: 1, start: Some(start) };
        assert!(serial(&problem, false, &rule(1e-8), &mut []).is_err());
    }
    assert!(matches!(Chain::new(matrix(0, &[]), false), Err(Error::Chain(ChainError::NoStates))));
}
