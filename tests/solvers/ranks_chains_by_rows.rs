//! Markov chains of which each rank reads or makes its own rows: the classes, distributions and errors of a
//! chain that one rank reads.

use crate::common::harness::sample;
use crate::common::jobs::Chain;
use crate::common::places::{Found, Job, Place, check_outcomes};
use crate::common::ranks::{numbers, over_ranks};
use crate::common::vectors::bits;
use serde_json::Value;
use solver::engine::RankChain;
use solver::engine::markov::Classes;
use solver::error::{Error, Result};
use solver::format::Csr;
use solver::prelude::*;
use solver::source::{Loaded, binary, load, market};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

fn write(folder: &Path, name: &str, matrix: &Csr) -> PathBuf {
    let path = folder.join(name);
    match name.ends_with(".slv") {
        true => binary::write(&path, &Loaded::new(matrix.clone(), matrix.nnz() as u64, false)).unwrap(),
        false => market::write_matrix(&path, matrix, false).unwrap(),
    }
    path
}

/// The settings of a solve.
type Change<'a> = &'a (dyn Fn(Markov) -> Markov + Sync);

/// Solves a chain of which each rank has its rows, or one that the first rank has.
fn solved(size: usize, by_rows: Option<&OsStr>, chain: &Matrix, change: Change<'_>) -> Result<Found> {
    let settings = |markov: Markov| change(markov).max_iters(300);
    Chain { by_rows, ..Chain::of("a chain", chain, settings) }.try_run(Place::Ranks(size))
}

/// Returns the classes, which are those of one process, and what only ranks with the same rows
/// have in common.
fn outcome(found: &Found) -> (Vec<Value>, Vec<Value>, Vec<u64>) {
    let report = &found.report;
    let of_classes = |fields: &[&str]| -> Vec<Value> {
        let classes = report["classes"].as_array().unwrap().iter();
        classes.flat_map(|class| fields.iter().map(|field| class[field].clone())).collect()
    };
    let counts = ["states", "nnz", "transient"].map(|field| report[field].clone());
    let classes = [of_classes(&["members", "period", "lazy"]), counts.to_vec()].concat();
    let rest = [of_classes(&["iterations", "residual"]), vec![report["converged"].clone()]].concat();
    (classes, rest, bits(&found.x))
}

/// Checks that a chain has the classes of one process and the bits of a chain that the first rank reads;
/// returns how many classes.
fn check(what: &str, path: &Path, ranks: std::ops::RangeInclusive<usize>, change: Change<'_>) -> usize {
    let chain = Matrix::open(path).unwrap();
    let one = Chain::of(what, &chain, |markov: Markov| change(markov).max_iters(300)).run(Place::Alone);
    let count = one.parts.len();
    for size in ranks {
        let found = solved(size, Some(path.as_os_str()), &chain, change).unwrap();
        let on_first = solved(size, None, &chain, change).unwrap();
        assert_eq!(outcome(&found), outcome(&on_first), "{what}, {size} ranks");
        assert_eq!(outcome(&found).0, outcome(&one).0, "{what}, {size} ranks");
        let notes = found.report["notes"].as_array().unwrap();
        match count {
            1 => assert!(notes.is_empty(), "{what}: {notes:?}"),
            several => assert!(
                notes[0].as_str().unwrap().contains(&format!("{several} closed classes")),
                "{what}: {notes:?}"
            ),
        }
    }
    count
}

fn matrix(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr {
    Matrix::from_triplets(n, n, entries).unwrap().csr().clone()
}

/// A cycle of `n` states, entered from `before` transient ones that follow each other; stored
/// entries of 0 lead back.
fn cycle_after(before: usize, n: usize) -> Csr {
    let path = (0..before).map(|state| (state, state + 1, 1.0));
    let cycle = (0..n).map(|state| (before + state, before + (state + 1) % n, 1.0));
    let none = (0..before).map(|state| (before + state % n, state, 0.0));
    matrix(before + n, path.chain(cycle).chain(none))
}

#[test]
fn chains_in_files_have_the_classes_and_the_bits_of_chains_that_one_rank_reads() {
    let folder = tempfile::tempdir().unwrap();
    let plain: Change<'_> = &|markov| markov;
    let scaled: Change<'_> = &|markov| markov.normalize(true);
    let band = load("blockband:n=300,block=5,density=0.2").unwrap().matrix;
    let star = (1..40).flat_map(|state| [(0, state, 1.0), (state, 0, 1.0)]);
    let start = |markov: Markov| markov.x0((0..300).map(|state| f64::from(state % 3)).collect::<Vec<f64>>());
    let narrow = |markov: Markov| markov.precision(Precision::F32).tol(1e-5);
    let cases: [(&str, Csr, Change<'_>); 9] = [
        ("band", band.clone(), plain),
        ("start", band.clone(), &start),
        ("narrow", band, &narrow),
        ("cycle", cycle_after(0, 40), plain),
        ("a path into a cycle", cycle_after(30, 12), plain),
        ("a path into a state", cycle_after(25, 1), plain),
        ("star", matrix(40, star), scaled),
        ("state", matrix(1, [(0, 0, 1.0)]), plain),
        ("doubled", matrix(3, [(0, 1, 0.5), (0, 2, 0.5), (1, 0, 1.0), (2, 0, 1.0)]), plain),
    ];
    for (what, chain, change) in &cases {
        for name in ["chain.slv", "chain.mtx"] {
            let path = write(folder.path(), name, chain);
            assert_eq!(check(&format!("{what} in {name}"), &path, 1..=4, change), 1);
        }
    }
}

#[test]
fn random_chains_have_the_classes_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (mut single, mut several, mut transient) = (0, 0, 0);
    for seed in sample(3, 0..120, |seed| seed % 4) {
        let mut next = numbers(seed);
        let n = 1 + next(30);
        let degree = 1 + next(3);
        let mut entries: Vec<(usize, usize, f64)> = Vec::new();
        // Steps ahead make long ways into a class, a cycle makes one class, and states that are
        // never left make several.
        let kind = seed % 4;
        for state in 0..n {
            if kind == 3 && state % 11 == 7 {
                entries.push((state, state, 1.0));
                continue;
            }
            for _ in 0..degree {
                let to = if kind == 1 && state % 5 > 0 { state + next(n - state) } else { next(n) };
                entries.push((state, to, f64::from(next(4) as u32)));
            }
            entries.push((state, if kind == 2 { (state + 1) % n } else { next(n) }, 1.0));
        }
        let path = write(folder.path(), "chain.slv", &matrix(n, entries));
        let found = check(&format!("seed {seed}"), &path, 3..=3, &|markov| markov.normalize(true));
        let chain = Matrix::open(&path).unwrap();
        let one = Markov::new(&chain).normalize(true).device("cpu").solve().unwrap().report();
        match (found, one.transient) {
            (1, 0) => single += 1,
            (1, _) => transient += 1,
            _ => several += 1,
        }
    }
    assert!(single > 5 && several > 5 && transient > 5, "{single} {several} {transient}");
}

#[test]
fn a_chain_whose_class_is_not_found_soon_is_gathered() {
    // The end of each path leads to the beginnings of all later paths. They are shorter, so that a search
    // from there finds the end of the next path last, and not the state that is never left.
    let folder = tempfile::tempdir().unwrap();
    let paths = 12;
    let (mut entries, mut ends, mut begins) = (Vec::new(), vec![0], Vec::new());
    let mut states = 1;
    for path in 0..paths {
        begins.push(states);
        let length = 2 + paths - path;
        entries.extend((states..states + length).map(|state| (state, state + 1, 1.0)));
        states += length + 1;
        ends.push(states - 1);
    }
    for (path, end) in ends.iter().enumerate() {
        entries.extend(begins[path.min(paths)..].iter().map(|begin| (*end, *begin, 1.0)));
        entries.push((*end, states, 1.0));
    }
    entries.push((states, states, 1.0));
    let path = write(folder.path(), "paths.slv", &matrix(states + 1, entries));
    let scaled: Change<'_> = &|markov| markov.normalize(true);
    let chain = Matrix::open(&path).unwrap();
    let found = solved(1, Some(path.as_os_str()), &chain, scaled).unwrap();
    assert_eq!(outcome(&found), outcome(&solved(1, None, &chain, scaled).unwrap()));
    assert_eq!((found.parts.len(), &found.report["transient"]), (1, &states.into()));
    let notes = found.report["notes"].as_array().unwrap();
    assert!(
        notes.len() == 1 && notes[0].as_str().unwrap().contains("have not found the closed class"),
        "{notes:?}"
    );
}

#[test]
fn chains_of_several_classes_are_gathered_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let cycle = (0..40).map(|state| (state, (state + 1) % 40, 1.0));
    let rest = [(40, 40, 1.0), (41, 3, 0.25), (41, 40, 0.75)];
    for name in ["chain.slv", "chain.mtx"] {
        let path = write(folder.path(), name, &matrix(42, cycle.clone().chain(rest)));
        assert_eq!(check(name, &path, 1..=4, &|markov| markov), 2);
        let refuse: Change<'_> = &|markov| markov.of_classes(Classes::Refuse);
        let alone = refuse(Markov::new(&Matrix::open(&path).unwrap())).device("cpu").solve().unwrap_err();
        let refused = over_ranks(3, |ranks| {
            let chain = RankChain::open(ranks, path.as_os_str())?.expect("a chain by rows");
            refuse(Markov::over_ranks(&chain).device("cpu").threads(1)).solve().map(drop)
        });
        let messages: Vec<String> =
            refused.into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect();
        assert_eq!(messages, vec![alone.to_string(); 3]);
    }
}

#[test]
fn hundreds_of_classes_have_the_bits_of_a_chain_that_one_rank_reads() {
    let folder = tempfile::tempdir().unwrap();
    let pair = |class: usize| {
        let [a, b] = [2 * class, 2 * class + 1];
        let stay = 1.0 / (2 + class % 7) as f64;
        [(a, a, stay), (a, b, 1.0 - stay), (b, a, 1.0)]
    };
    let path = write(folder.path(), "pairs.slv", &matrix(600, (0..300).flat_map(pair)));
    assert_eq!(check("pairs", &path, 2..=2, &|markov| markov), 300);
}

#[test]
fn generators_of_which_each_rank_makes_its_rows_give_the_chain_of_one_process() {
    for what in [
        "blockband:n=300,block=5,density=0.2",
        "blockband:n=301,block=7,density=0.2,contiguous,seed=3",
        "uniform:n=200,row=7,seed=5",
    ] {
        let scaled: Change<'_> = &|markov| markov.normalize(true);
        let chain = Matrix::open(what).unwrap();
        for size in 1..=4 {
            let [found, on_first] =
                [Some(OsStr::new(what)), None].map(|by_rows| solved(size, by_rows, &chain, scaled).unwrap());
            assert_eq!(outcome(&found), outcome(&on_first), "{what}, {size} ranks");
        }
    }
    // The error of a graph in which some vertices have no links.
    let what = "rmat:scale=8,factor=4";
    let alone = Markov::new(&Matrix::open(what).unwrap()).normalize(true).device("cpu").solve().unwrap_err();
    let chain = Matrix::open(what).unwrap();
    let error =
        solved(3, Some(OsStr::new(what)), &chain, &|markov| markov.normalize(true)).map(drop).unwrap_err();
    assert_eq!(error.to_string(), alone.to_string());
    // Rows that depend on each other, and rows that are not made separately, are left to the first rank.
    for what in ["blockband:n=300,block=5,symmetric", "density:n=100", "uniform:n=9,cols=7", "no-such:n=4"] {
        let opened =
            over_ranks(2, |ranks| RankChain::open(ranks, OsStr::new(what)).map(|chain| chain.is_none()));
        assert!(opened.iter().all(|none| matches!(none, Ok(true))), "{what}: {opened:?}");
    }
}

#[test]
fn faults_of_rows_are_those_of_one_process_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.txt");
    fs::write(&labels, (0..50).map(|state| format!("s{state}\n")).collect::<String>()).unwrap();
    let good = || (0..50).map(|state| (state, (state + 1) % 50, 1.0));
    let without = |row: usize| good().filter(move |(from, _, _)| *from != row);
    let cases: [(&str, Csr); 6] = [
        ("negative", matrix(50, without(31).chain([(31, 2, 1.5), (31, 7, -0.5)]))),
        ("negative before another sum", matrix(50, without(3).chain([(3, 4, 2.0), (44, 9, -1e-300)]))),
        ("sums", matrix(50, without(20).chain([(20, 1, 0.5), (45, 7, 0.5)]))),
        ("sum on the last rank", matrix(50, good().chain([(49, 7, 1e-9)]))),
        ("empty row", matrix(50, without(33).chain([(5, 9, 1.0)]))),
        ("overflow", matrix(50, without(28).chain([(28, 1, 1e308), (28, 2, 1e308), (28, 3, 1e308)]))),
    ];
    for (what, chain) in &cases {
        for (name, labelled) in [("chain.slv", false), ("chain.mtx", false), ("chain.mtx", true)] {
            let path = write(folder.path(), name, chain);
            for normalize in [false, true] {
                let whole = Matrix::open(&path).unwrap();
                let whole = if labelled { whole.read_labels(&labels).unwrap() } else { whole };
                let alone = Markov::new(&whole).normalize(normalize).device("cpu").solve();
                let found = over_ranks(4, |ranks| {
                    let chain = RankChain::open(ranks, path.as_os_str())?.expect("a chain by rows");
                    let chain = if labelled { chain.read_labels(&labels)? } else { chain };
                    Markov::over_ranks(&chain).normalize(normalize).device("cpu").threads(1).solve()
                });
                assert!(!found.iter().any(|outcome| matches!(outcome, Err(Error::OtherRank { .. }))));
                check_outcomes(&format!("{what}, {normalize}"), &found, &alone, |found| {
                    let classes = found.report().classes;
                    (classes.len(), classes[0].period)
                });
            }
        }
    }
    let wide = Matrix::from_triplets(2, 3, [(0, 1, 1.0), (1, 2, 1.0)]).unwrap();
    for name in ["wide.slv", "wide.mtx"] {
        let path = write(folder.path(), name, wide.csr());
        let refused = over_ranks(2, |ranks| RankChain::open(ranks, path.as_os_str()).map(drop).unwrap_err());
        assert!(refused.iter().all(|error| error.to_string().contains("markov")), "{refused:?}");
    }
    let path = write(folder.path(), "empty.slv", &matrix(0, []));
    let alone = Markov::new(&Matrix::open(&path).unwrap()).device("cpu").solve().unwrap_err();
    let chain = Matrix::open(&path).unwrap();
    let error = solved(2, Some(path.as_os_str()), &chain, &|markov| markov).map(drop).unwrap_err();
    assert_eq!(error.to_string(), alone.to_string());
}
