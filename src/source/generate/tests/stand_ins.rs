//! Compares the stand-ins for well-known matrices with the facts of those matrices.
//! `--include-ignored` and `--release` check all stand-ins at full size; `--nocapture` prints a table
//! of each stand-in and its real matrix.

use crate::common::solves::{System, serial, to};
use crate::common::tolerance;
use crate::format::stats::{Verdict, symmetry_of};
use crate::format::{Csr, Values};
use crate::precond::Preconditioner;
use crate::source::{Loaded, Options, load, load_with};
use crate::stop::StopReason;
use rayon::prelude::*;
use std::time::Instant;

/// The facts of a real matrix.
struct Facts {
    name: &'static str,
    real: &'static str,
    rows: usize,
    entries: usize,
    row_min: usize,
    row_max: usize,
    row_deviation: f64,
    col_max: usize,
    col_deviation: f64,
    /// Mean of last minus first column index of a row, divided by n.
    span: f64,
    /// Mean number of runs of consecutive columns in a row.
    runs: f64,
    /// Mean fraction of a row's entries with an entry in the next row at most one column away.
    similarity: f64,
    /// Entries and the shortest and longest row of what the matrix's file stores: the lower
    /// triangle of a symmetric matrix.
    stored: usize,
    stored_min: usize,
    stored_max: usize,
}

#[rustfmt::skip]
const FACTS: &[Facts] = &[
    Facts { name: "F1-like", real: "Koutsovasilis/F1", rows: 343_791, entries: 26_837_113, row_min: 24, row_max: 435, row_deviation: 40.81, col_max: 435, col_deviation: 40.81, span: 0.733, runs: 16.50, similarity: 0.813, stored: 13_590_452, stored_min: 1, stored_max: 306 },
    Facts { name: "inline_1-like", real: "GHS_psdef/inline_1", rows: 503_712, entries: 36_816_170, row_min: 18, row_max: 843, row_deviation: 35.63, col_max: 843, col_deviation: 35.63, span: 0.321, runs: 15.24, similarity: 0.824, stored: 18_660_027, stored_min: 1, stored_max: 843 },
    Facts { name: "crankseg_1-like", real: "GHS_psdef/crankseg_1", rows: 52_804, entries: 10_614_210, row_min: 48, row_max: 2703, row_deviation: 88.66, col_max: 2703, col_deviation: 88.66, span: 0.820, runs: 27.32, similarity: 0.869, stored: 5_333_507, stored_min: 1, stored_max: 262 },
    Facts { name: "ecology1-like", real: "McRae/ecology1", rows: 1_000_000, entries: 4_996_000, row_min: 3, row_max: 5, row_deviation: 0.063, col_max: 5, col_deviation: 0.063, span: 0.002, runs: 2.998, similarity: 0.9997, stored: 2_998_000, stored_min: 1, stored_max: 3 },
    Facts { name: "mawi-like", real: "MAWI/mawi_201512012345", rows: 18_571_154, entries: 38_040_320, row_min: 1, row_max: 16_399_896, row_deviation: 3805.8, col_max: 16_399_896, col_deviation: 3805.8, span: 0.0090, runs: 1.143, similarity: 0.887, stored: 19_020_160, stored_min: 0, stored_max: 7_397_164 },
    Facts { name: "stackoverflow-like", real: "SNAP/sx-stackoverflow", rows: 2_601_977, entries: 36_233_450, row_min: 0, row_max: 38_148, row_deviation: 137.85, col_max: 22_258, col_deviation: 65.37, span: 0.240, runs: 13.90, similarity: 0.117, stored: 36_233_450, stored_min: 0, stored_max: 38_148 },
];

fn facts(name: &str) -> &'static Facts {
    FACTS.iter().find(|facts| facts.name == name).unwrap()
}

/// The same facts, measured from a matrix.
struct Measured {
    row_min: usize,
    row_max: usize,
    row_deviation: f64,
    col_max: usize,
    col_deviation: f64,
    span: f64,
    runs: f64,
    similarity: f64,
    stored: usize,
    stored_min: usize,
    stored_max: usize,
}

fn deviation(lengths: &[usize]) -> f64 {
    let n = lengths.len() as f64;
    let mean = lengths.iter().sum::<usize>() as f64 / n;
    (lengths.iter().map(|&l| (l as f64 - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// Counts the entries of a row with an entry in the other row at most one column away.
fn near(row: &[u32], other: &[u32]) -> usize {
    let close = |&col: &u32| {
        let at = other.partition_point(|&o| o + 1 < col);
        other.get(at).is_some_and(|&o| o <= col + 1)
    };
    row.iter().filter(|col| close(col)).count()
}

fn measure(loaded: &Loaded) -> Measured {
    let (m, symmetric) = (&loaded.matrix, loaded.symmetric);
    let n = m.rows();
    let columns = |i: usize| &m.col_indices()[m.row_range(i)];
    let lengths: Vec<usize> = (0..n).map(|i| columns(i).len()).collect();
    let mut counts = vec![0; m.cols()];
    m.col_indices().iter().for_each(|&col| counts[col as usize] += 1);
    let kept =
        |i: usize| if symmetric { columns(i).partition_point(|&col| col as usize <= i) } else { lengths[i] };
    let stored: Vec<usize> = (0..n).map(kept).collect();
    let mean = |f: &(dyn Fn(usize) -> f64 + Sync)| (0..n).into_par_iter().map(f).sum::<f64>() / n as f64;
    Measured {
        row_min: *lengths.iter().min().unwrap(),
        row_max: *lengths.iter().max().unwrap(),
        row_deviation: deviation(&lengths),
        col_max: *counts.iter().max().unwrap(),
        col_deviation: deviation(&counts),
        span: mean(&|i| columns(i).last().map_or(0.0, |last| f64::from(last - columns(i)[0])) / n as f64),
        runs: mean(&|i| {
            columns(i).windows(2).filter(|w| w[1] > w[0] + 1).count() as f64
                + if columns(i).is_empty() { 0.0 } else { 1.0 }
        }),
        similarity: mean(&|i| match columns(i).len() {
            0 => 0.0,
            _ if i + 1 == n => 0.0,
            length => near(columns(i), columns(i + 1)) as f64 / length as f64,
        }),
        stored: stored.iter().sum(),
        stored_min: *stored.iter().min().unwrap(),
        stored_max: *stored.iter().max().unwrap(),
    }
}

/// Asserts that a value is within 5 % of the real matrix's.
fn close(what: &str, got: f64, real: f64) {
    assert!((got - real).abs() <= 0.05 * real, "{what}: {got}, the real one has {real}");
}

/// Generates a stand-in at full size, prints its facts next to those of the real matrix, and compares them.
fn check_full(name: &str) -> Loaded {
    let real = facts(name);
    let start = Instant::now();
    let loaded = load(name).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let (m, got) = (&loaded.matrix, measure(&loaded));
    println!("{name}: {seconds:.2} s, {} bytes", m.storage_bytes());
    let row = |what: &str, got: f64, real: f64| {
        println!("| {what} | {got:.4} | {real:.4} | {:+.1} % |", 100.0 * (got / real - 1.0));
    };
    row("rows", m.rows() as f64, real.rows as f64);
    row("entries", m.nnz() as f64, real.entries as f64);
    row("shortest row", got.row_min as f64, real.row_min as f64);
    row("longest row", got.row_max as f64, real.row_max as f64);
    row("deviation of rows", got.row_deviation, real.row_deviation);
    row("longest column", got.col_max as f64, real.col_max as f64);
    row("deviation of columns", got.col_deviation, real.col_deviation);
    row("span / n", got.span, real.span);
    row("runs per row", got.runs, real.runs);
    row("similarity", got.similarity, real.similarity);
    row("stored entries", got.stored as f64, real.stored as f64);
    row("shortest stored row", got.stored_min as f64, real.stored_min as f64);
    row("longest stored row", got.stored_max as f64, real.stored_max as f64);
    assert_eq!(loaded.stand_in, Some(real.real));
    assert_eq!(m.rows(), real.rows);
    close("entries", m.nnz() as f64, real.entries as f64);
    close("shortest row", got.row_min as f64, real.row_min as f64);
    close("longest row", got.row_max as f64, real.row_max as f64);
    close("longest column", got.col_max as f64, real.col_max as f64);
    close("stored entries", got.stored as f64, real.stored as f64);
    assert_eq!(got.stored_min, real.stored_min);
    close("longest stored row", got.stored_max as f64, real.stored_max as f64);
    if loaded.symmetric {
        assert_eq!(symmetry_of(m).unwrap(), Verdict::Exact);
    }
    loaded
}

#[test]
fn f1_like_matches_f1_in_full_and_as_stored() {
    check_full("F1-like");
}

#[test]
#[ignore = "large: 37 million entries"]
fn inline_1_like_matches_inline_1_in_full_and_as_stored() {
    check_full("inline_1-like");
}

#[test]
fn crankseg_1_like_matches_crankseg_1_in_full_and_as_stored() {
    check_full("crankseg_1-like");
}

#[test]
fn ecology1_like_matches_ecology1_in_full_and_as_stored() {
    let loaded = check_full("ecology1-like");
    assert_eq!(loaded.matrix.nnz(), facts("ecology1-like").entries);
    let grid = load("poisson2d:1000x1000").unwrap().matrix;
    assert_eq!(loaded.matrix.pattern(), grid.pattern());
}

#[test]
#[ignore = "large: 38 million entries"]
fn mawi_like_matches_mawi_201512012345_in_full_and_as_stored() {
    check_full("mawi-like");
}

#[test]
#[ignore = "large: 36 million entries"]
fn stackoverflow_like_matches_sx_stackoverflow_in_full_and_as_stored() {
    let loaded = check_full("stackoverflow-like");
    close("self loops", diagonal(&loaded.matrix) as f64, 1_357_766.0);
}

#[test]
fn a_scaled_stand_in_has_a_scaled_number_of_rows_and_similar_row_lengths() {
    for real in FACTS {
        let loaded = load(&format!("{}:scale=0.01", real.name)).unwrap();
        let (m, got) = (&loaded.matrix, measure(&loaded));
        assert_eq!(loaded.stand_in, Some(real.real));
        assert_eq!(loaded.stored, m.nnz() as u64);
        close(real.name, m.rows() as f64, 0.01 * real.rows as f64);
        assert_eq!(got.row_min, real.row_min, "{}", real.name);
        // A smaller body has relatively more surface, where rows are shorter; a smaller graph
        // has more duplicate draws.
        let mean = |entries: usize, rows: usize| entries as f64 / rows as f64;
        let ratio = mean(m.nnz(), m.rows()) / mean(real.entries, real.rows);
        assert!((0.6..=1.05).contains(&ratio), "{}: {ratio}", real.name);
        let structural = real.runs > 15.0;
        if structural {
            let mean = mean(m.nnz(), m.rows());
            assert!(got.row_max <= real.row_max && got.row_max as f64 > 1.5 * mean, "{}", real.name);
        }
        assert_eq!(loaded.symmetric, real.name != "stackoverflow-like");
        assert_eq!(symmetry_of(m).unwrap() == Verdict::Exact, loaded.symmetric, "{}", real.name);
    }
}

#[test]
fn every_seed_of_a_scaled_stand_in_keeps_the_longest_stored_row() {
    // Bodies keep the length itself, at sizes that have enough long rows; the hub's row is
    // proportional to the size.
    let lengths = [
        ("F1-like:scale=0.01", 306.0),
        ("crankseg_1-like:scale=0.05", 262.0),
        ("inline_1-like:scale=0.02", 843.0),
    ];
    for (what, longest) in lengths.into_iter().chain([("mawi-like:scale=0.01", 0.01 * 7_397_164.0)]) {
        for seed in 1..4 {
            let loaded = load(&format!("{what},seed={seed}")).unwrap();
            let got = measure(&loaded);
            close(&format!("{what},seed={seed}: longest stored row"), got.stored_max as f64, longest);
            assert_eq!(got.stored, (loaded.matrix.nnz() + diagonal(&loaded.matrix)) / 2, "{what}");
        }
    }
}

fn diagonal(m: &Csr) -> usize {
    (0..m.rows()).filter(|&i| m.get(i, i).is_some()).count()
}

#[test]
fn as_stored_keeps_the_lower_triangle_with_the_diagonal_of_symmetric_generators_and_all_of_others() {
    let options = Options { as_stored: true, ..Options::default() };
    let scaled = FACTS.iter().map(|facts| format!("{}:scale=0.01", facts.name));
    for what in scaled.chain(["poisson2d:9x7".to_owned(), "uniform:n=50,row=4".to_owned()]) {
        let (full, stored) = (load(&what).unwrap(), load_with(&what, &options).unwrap());
        let kept = |m: &Csr, i: usize| -> Vec<(usize, f64)> {
            m.row(i).filter(|&(j, _)| j <= i || !full.symmetric).collect()
        };
        let all = |m: &Csr, i: usize| -> Vec<(usize, f64)> { m.row(i).collect() };
        let (m, triangle) = (&full.matrix, &stored.matrix);
        assert!((0..m.rows()).all(|i| kept(m, i) == all(triangle, i)), "{what}");
        assert_eq!((stored.stored, stored.stand_in), (triangle.nnz() as u64, full.stand_in), "{what}");
        assert!(stored.as_stored && !stored.symmetric, "{what}");
    }
}

#[test]
fn full_names_select_the_same_stand_ins() {
    for (short, full) in [("mawi", "mawi_201512012345"), ("stackoverflow", "sx-stackoverflow")] {
        let [a, b] = [short, full].map(|name| load(&format!("{name}-like:scale=0.001")).unwrap());
        assert!(a.matrix == b.matrix && a.stand_in == b.stand_in, "{full}");
    }
}

#[test]
fn stand_ins_do_not_depend_on_the_number_of_threads_and_differ_by_seed() {
    for real in FACTS {
        let what = format!("{}:scale=0.01", real.name);
        let generate = |threads: usize, seed: &str| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| load(&format!("{what}{seed}")).unwrap().matrix)
        };
        let one = generate(1, "");
        assert!(one == generate(2, ",seed=1") && one == generate(3, ""), "{what}");
        assert!(one != generate(2, ",seed=2"), "{what}");
    }
}

/// Checks whether all pivots of a dense Cholesky factorisation are positive.
fn positive_definite(m: &Csr) -> bool {
    let n = m.rows();
    let mut dense = vec![vec![0.0; n]; n];
    (0..n).for_each(|i| m.row(i).for_each(|(j, value)| dense[i][j] = value));
    for pivot in 0..n {
        let (above, below) = dense.split_at_mut(pivot + 1);
        let row = &above[pivot];
        if row[pivot].is_nan() || row[pivot] <= 1e-9 * m.get(pivot, pivot).unwrap() {
            return false;
        }
        for other in below.iter_mut().filter(|other| other[pivot] != 0.0) {
            let by = other[pivot] / row[pivot];
            other[pivot..].iter_mut().zip(&row[pivot..]).for_each(|(value, pivot)| *value -= by * pivot);
        }
    }
    true
}

#[test]
fn structural_stand_ins_are_positive_definite_with_dense_blocks() {
    for (what, aligned) in [
        ("F1-like:scale=0.001", true),
        ("inline_1-like:scale=0.001", true),
        ("crankseg_1-like:scale=0.01", false),
    ] {
        let m = load(what).unwrap().matrix;
        assert!(positive_definite(&m), "{what}");
        let lengths = (0..m.rows()).filter(|&i| !m.row_range(i).len().is_multiple_of(3)).count();
        assert_eq!(lengths == 0 && m.rows().is_multiple_of(3), aligned, "{what}: {lengths} of {}", m.rows());
    }
    // A negative control: this Laplacian is singular.
    assert!(!positive_definite(&load("ecology1-like:scale=0.001").unwrap().matrix));
}

#[test]
fn conjugate_gradients_converge_on_a_small_f1_like() {
    let system = System::generated("F1-like:scale=0.01");
    for precond in [Preconditioner::NONE, Preconditioner::JACOBI] {
        let outcome = serial(&system, precond.clone(), &to(tolerance::RTOL));
        assert_eq!(outcome.reason, StopReason::Converged, "{}", precond.name());
    }
}

#[test]
fn ecology1_like_is_a_laplacian_with_row_sums_of_exactly_zero() {
    let m = load("ecology1-like:scale=0.01").unwrap().matrix;
    assert_eq!(m.multiply_reference(&vec![1.0; m.cols()]), vec![0.0; m.rows()]);
    for i in 0..m.rows() {
        for (j, value) in m.row(i) {
            let range = if i == j { 0.0..40.5 } else { -10.0..0.0 };
            assert!(range.contains(&value), "({i}, {j}): {value}");
        }
    }
}

#[test]
fn mawi_like_has_one_hub_no_diagonal_and_the_real_number_of_components() {
    let m = load("mawi-like:scale=0.01").unwrap().matrix;
    let Values::F64(packets) = m.values() else { panic!("packets are counted") };
    assert!(packets.iter().all(|&p| (1.0..=1_509_116.0).contains(&p) && p.fract() == 0.0));
    assert!((0..m.rows()).all(|i| m.get(i, i).is_none()));
    let mut lengths: Vec<usize> = (0..m.rows()).map(|i| m.row_range(i).len()).collect();
    lengths.sort_unstable();
    assert!(lengths[m.rows() - 2] < lengths[m.rows() - 1] / 10, "a second hub");
    close("the hub's row", lengths[m.rows() - 1] as f64, 0.01 * 16_399_896.0);
    assert!(lengths[m.rows() / 2] <= 2);
    // The rows not connected to the hub are drawn 64 at a time, so their number varies.
    let ratio = components(&m) as f64 / (0.01 * 442_523.0);
    assert!((0.85..1.15).contains(&ratio), "ratio of the numbers of components: {ratio}");
}

/// Counts the connected components of a symmetric pattern.
fn components(m: &Csr) -> usize {
    let mut visited = vec![false; m.rows()];
    let mut count = 0;
    for start in 0..m.rows() {
        count += usize::from(!visited[start]);
        let mut open = vec![start];
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut visited[i], true) {
                open.extend(m.row(i).map(|(j, _)| j).filter(|&j| !visited[j]));
            }
        }
    }
    count
}

#[test]
fn stackoverflow_like_has_heavy_tails_loops_and_reciprocal_edges() {
    let loaded = load("stackoverflow-like:scale=0.01").unwrap();
    let m = &loaded.matrix;
    let Values::F64(times) = m.values() else { panic!("answers are counted") };
    assert!(times.iter().all(|&t| (1.0..=29_919.0).contains(&t) && t.fract() == 0.0));
    close("mean of values", times.iter().sum::<f64>() / times.len() as f64, 63_497_050.0 / 36_233_450.0);
    let loops = diagonal(m);
    close("self loops", loops as f64, 0.01 * 1_357_766.0);
    let mirrored = (0..m.rows()).flat_map(|i| m.row(i).map(move |(j, _)| (i, j)));
    let mirrored = mirrored.filter(|&(i, j)| i != j && m.get(j, i).is_some()).count();
    let share = mirrored as f64 / (m.nnz() - loops) as f64;
    assert!((0.33..0.6).contains(&share), "{share}: the real one has 0.384");
    let got = measure(&loaded);
    let mean = m.nnz() as f64 / m.rows() as f64;
    assert!(got.row_max as f64 > 30.0 * mean && got.col_max as f64 > 20.0 * mean);
    assert!(got.row_deviation > 1.5 * mean && got.col_deviation > mean);
}
