//! Markov chains over ranks have the distributions of one process, with the same bits in every run.

use crate::common::jobs::Chain;
use crate::common::places::{Job, Place, check, check_threads};
use crate::common::ranks::over_ranks;
use crate::common::vectors::bits;
use solver::engine::RankChain;
use solver::engine::markov::{ChainMethod, Classes};
use solver::error::Error;
use solver::prelude::*;
use solver::stop::StopReason;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const CHAIN: &str = "blockband:n=300,block=5,density=0.2";

/// A cycle of states, which has a period, and states that lead to it or to a state that is never left.
fn two_classes() -> Matrix {
    let cycle = (0..40).map(|state| (state, (state + 1) % 40, 1.0));
    let rest = [(40, 40, 1.0), (41, 3, 0.25), (41, 40, 0.75)];
    Matrix::from_triplets(42, 42, cycle.chain(rest)).unwrap()
}

#[test]
fn chains_take_the_iterations_of_one_process_and_give_its_distributions() {
    let chain = Matrix::open(CHAIN).unwrap();
    let places = || (1..=4).map(Place::Ranks);
    check(&Chain::of("one class", &chain, |markov| markov.normalize(true)), places());
    check(&Chain::of("two classes", &two_classes(), |markov| markov), places());
    let start: Vec<f64> = (0..300).map(|state| f64::from(state % 3)).collect();
    check(&Chain::of("start", &chain, |markov| markov.normalize(true).x0(start.clone())), places());
    let narrow = Chain::of("narrow", &chain, |markov| markov.normalize(true).tol(1e-5));
    check(&Chain { precision: Precision::F32, ..narrow }, places());
}

#[test]
fn bits_are_the_same_in_every_run_and_for_any_number_of_threads() {
    let chain = Matrix::open(CHAIN).unwrap();
    check_threads("a chain", &[1, 3], |threads| {
        let job = Chain::of("a chain", &chain, |markov| markov.normalize(true).threads(threads));
        let found = job.run(Place::Ranks(3));
        (bits(&found.x), found.report["classes"][0]["residual"].clone())
    });
}

#[test]
fn a_flag_of_one_rank_ends_all() {
    let chain = Matrix::open(CHAIN).unwrap();
    let reasons = over_ranks(3, |ranks| {
        let markov = Markov::over_ranks(&RankChain::distribute(ranks, ranks.is_first().then_some(&chain)));
        let flag = Arc::new(AtomicBool::new(ranks.rank() == 1));
        let markov = markov.device("cpu").threads(1).normalize(true).tol(1e-300);
        markov.cancel(&flag).solve().unwrap().classes()[0].reason()
    });
    assert_eq!(reasons, [StopReason::Interrupted; 3]);
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
