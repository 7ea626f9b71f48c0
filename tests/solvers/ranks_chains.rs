//! Markov chains over ranks have the distributions of one process, with the same bits in every run.

use crate::common::ranks::over_ranks;
use crate::common::vectors::bits;
use solver::device::Ranks;
use solver::engine::RankChain;
use solver::engine::markov::{ChainMethod, Classes, Distributions};
use solver::error::{Error, Result};
use solver::prelude::*;
use solver::stop::StopReason;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const CHAIN: &str = "blockband:n=300,block=5,density=0.2";

/// Solves a chain that the first rank has; returns the distributions of the first rank.
fn solved(
    size: usize,
    chain: &Matrix,
    settings: &(impl Fn(&Ranks, Markov) -> Markov + Sync),
) -> Result<Distributions> {
    let found = over_ranks(size, |ranks| {
        let markov = Markov::over_ranks(&RankChain::distribute(ranks, ranks.is_first().then_some(chain)));
        settings(ranks, markov.device("cpu").threads(1)).solve()
    });
    let mut found = found.into_iter().collect::<Result<Vec<_>>>()?;
    let residuals =
        |found: &Distributions| found.classes().iter().map(|c| c.outcome().residual.to_bits()).collect();
    let all: Vec<Vec<u64>> = found.iter().map(residuals).collect();
    assert!(all.iter().all(|residuals| *residuals == all[0]), "all ranks have the same residuals");
    Ok(found.swap_remove(0))
}

fn check_like_one_process(what: &str, chain: &Matrix, settings: impl Fn(Markov) -> Markov + Sync) {
    let one = settings(Markov::new(chain).device("cpu")).solve().unwrap();
    assert!(one.converged(), "{what}");
    for size in 1..=4 {
        let found = solved(size, chain, &|_, markov| settings(markov)).unwrap();
        assert!(found.converged(), "{what}, {size} ranks: {}", found.report());
        assert_eq!(found.classes().len(), one.classes().len());
        for (got, expected) in found.classes().iter().zip(one.classes()) {
            assert_eq!(got.states(), expected.states());
            let (iterations, of_one) =
                (got.outcome().iterations as f64, expected.outcome().iterations as f64);
            assert!((iterations - of_one).abs() <= 0.01 * of_one, "{what}, {size} ranks: {iterations}");
            let pairs = got.probabilities().iter().zip(expected.probabilities());
            let distance: f64 = pairs.map(|(a, b)| (a - b).abs()).sum();
            assert!(distance < 1e-8 && got.probabilities().len() == got.states().len(), "{distance:e}");
        }
        let (a, b) = (found.report(), one.report());
        assert_eq!((a.states, a.nnz, a.transient), (b.states, b.nnz, b.transient));
        assert!(a.device.starts_with(&format!("{size} ranks, each cpu")), "{}", a.device);
    }
}

/// A cycle of states, which has a period, and states that lead to it or to a state that is never left.
fn two_classes() -> Matrix {
    let cycle = (0..40).map(|state| (state, (state + 1) % 40, 1.0));
    let rest = [(40, 40, 1.0), (41, 3, 0.25), (41, 40, 0.75)];
    Matrix::from_triplets(42, 42, cycle.chain(rest)).unwrap()
}

#[test]
fn chains_take_the_iterations_of_one_process_and_give_its_distributions() {
    let chain = Matrix::open(CHAIN).unwrap();
    check_like_one_process("one class", &chain, |markov| markov.normalize(true));
    check_like_one_process("two classes", &two_classes(), |markov| markov);
    let start: Vec<f64> = (0..300).map(|state| f64::from(state % 3)).collect();
    check_like_one_process("start", &chain, |markov| markov.normalize(true).x0(start.clone()));
    let narrow = |markov: Markov| markov.normalize(true).precision(Precision::F32).tol(1e-5);
    check_like_one_process("f32", &chain, narrow);
}

#[test]
fn bits_are_the_same_in_every_run_and_for_any_number_of_threads() {
    let chain = Matrix::open(CHAIN).unwrap();
    let run = |threads: usize| {
        let found = solved(3, &chain, &|_, m: Markov| m.normalize(true).threads(threads)).unwrap();
        (bits(found.classes()[0].probabilities()), found.classes()[0].outcome().residual.to_bits())
    };
    let once = run(1);
    assert_eq!(once, run(1));
    assert_eq!(once, run(3));
}

#[test]
fn a_flag_of_one_rank_ends_all() {
    let chain = Matrix::open(CHAIN).unwrap();
    let cancelled = |ranks: &Ranks, markov: Markov| {
        let flag = Arc::new(AtomicBool::new(ranks.rank() == 1));
        markov.normalize(true).tol(1e-300).cancel(&flag)
    };
    let found = solved(3, &chain, &cancelled).unwrap();
    assert_eq!(found.classes()[0].reason(), StopReason::Interrupted);
}

#[test]
fn chains_that_cannot_be_solved_are_refused_on_all_ranks_with_the_cause_on_one() {
    let refused = |chain: &Matrix, settings: &(dyn Fn(Markov) -> Markov + Sync)| {
        let errors = over_ranks(3, |ranks| {
            let markov = Markov::over_ranks(&RankChain::distribute(ranks, ranks.is_first().then_some(chain)));
            settings(markov.device("cpu").threads(1)).solve().map(drop).unwrap_err()
        });
        let causes: Vec<String> = errors
            .iter()
            .filter(|e| !matches!(e, Error::OtherRank { .. }))
            .map(ToString::to_string)
            .collect();
        assert!(!causes.is_empty() && causes.iter().all(|cause| *cause == causes[0]), "{causes:?}");
        causes[0].clone()
    };
    let chain = Matrix::open(CHAIN).unwrap();
    let unscaled = Matrix::from_triplets(2, 2, [(0, 1, 1.0), (1, 0, 3.0)]).unwrap();
    assert!(refused(&unscaled, &|markov| markov).contains("sum"));
    let serial = refused(&chain, &|markov| markov.normalize(true).method(ChainMethod::Aggregation));
    assert!(serial.contains("aggregation") && serial.contains("one process"), "{serial}");
    assert!(refused(&two_classes(), &|markov| markov.of_classes(Classes::Refuse)).contains('2'));
    let short = refused(&chain, &|markov| markov.normalize(true).x0(vec![1.0; 3]));
    assert!(short.contains('3') && short.contains("300"), "{short}");
}
