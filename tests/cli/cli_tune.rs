//! The choice of a backend by measurement: `solver tune`, `--tune`, `--explain`, and choices that are kept.

use crate::common::process::{errors, solver, word};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::{TempDir, tempdir};

const SMALL: &str = "poisson2d:50x50";

/// Runs the program with this cache folder.
fn run(cache: &TempDir, args: &[&str]) -> Output {
    solver().env("SOLVER_CACHE", cache.path()).args(args).output().unwrap()
}

fn printed(done: &Output) -> String {
    assert_eq!(done.status.code(), Some(0), "{}", errors(done));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn json(cache: &TempDir, args: &[&str]) -> Value {
    let text = printed(&run(cache, &[args, &["--device", "cpu", "--json"]].concat()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Measures the candidates for a short time on one thread.
fn tune(cache: &TempDir, args: &[&str]) -> Value {
    json(cache, &[&["tune", "--time-limit", "0.02", "--threads", "1"], args].concat())
}

fn solve(cache: &TempDir, args: &[&str]) -> Value {
    json(cache, &[&["cg", "--threads", "1", "--max-iters", "500"], args].concat())
}

fn because(report: &Value) -> String {
    report["backend_because"].as_str().unwrap().to_owned()
}

fn is_kept(report: &Value) -> bool {
    because(report).starts_with("kept choice of a measurement on 2")
}

/// Returns the files of kept choices.
fn files(cache: &TempDir) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(cache.path().join("choices"));
    listed.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Makes a backend that is neither the fastest nor the model's choice the kept one.
fn keep(file: &Path, backend: &str) {
    let mut kept: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    kept["tuning"]["winner"] = backend.into();
    std::fs::write(file, kept.to_string()).unwrap();
}

#[test]
fn tuning_verifies_and_times_candidates_and_the_winner_is_one_of_them() {
    let cache = tempdir().unwrap();
    let tuning = tune(&cache, &["hex27:7x7x7,dof=3"]);
    let measured = tuning["measured"].as_array().unwrap();
    assert!(measured.len() >= 5, "{tuning:#}");
    for candidate in measured {
        assert!(candidate["error"].is_null(), "{candidate}");
        let (least, median) = (candidate["seconds"].as_f64(), candidate["seconds_median"].as_f64());
        assert!(least.unwrap() > 0.0 && least <= median, "{candidate}");
        assert!(candidate["bytes"].as_u64().unwrap() > 0 && candidate["samples"].as_u64().unwrap() > 0);
    }
    let named = |name: &Value| measured.iter().any(|candidate| candidate["backend"] == *name);
    assert!(named(&tuning["winner"]) && named(&tuning["model"]) && named(&"rows".into()), "{tuning:#}");
    assert!(
        measured.iter().any(|candidate| candidate["backend"].as_str().unwrap().starts_with("bsr:block=3x3"))
    );
    assert_eq!(tuning["product"], "y = A x with <x, y>");
    let times: Vec<f64> = measured.iter().map(|candidate| candidate["seconds"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "the fastest comes first");
    assert_eq!(tuning["break_even"].is_null(), tuning["winner"] == tuning["model"]);
}

#[test]
fn named_candidates_restrict_the_measurement_and_auto_extends_them() {
    let cache = tempdir().unwrap();
    let names = |args: &[&str]| -> Vec<String> {
        let tuning = tune(&cache, &[&[SMALL], args].concat());
        let all = tuning["measured"].as_array().unwrap().iter();
        all.map(|candidate| candidate["backend"].as_str().unwrap().to_owned()).collect()
    };
    let few = names(&["--backend", "rows,bsr:block=2x2"]);
    assert!(few.len() <= 3 && few.contains(&"bsr:block=2x2".to_owned()), "{few:?}");
    let more = names(&["--backend", "auto,serial"]);
    assert!(more.len() > 3 && more.contains(&"serial".to_owned()), "{more:?}");
    let with_refused = tune(&cache, &[SMALL, "--backend", "pull,rows"]);
    let refused =
        with_refused["measured"].as_array().unwrap().iter().find(|c| c["backend"] == "pull").unwrap();
    assert!(refused["error"].as_str().unwrap().contains("a matrix with values"), "{refused}");
}

#[test]
fn the_next_solve_uses_the_kept_choice_and_its_report_says_so() {
    let cache = tempdir().unwrap();
    assert!(!is_kept(&solve(&cache, &[SMALL])));
    tune(&cache, &[SMALL]);
    let [file] = &files(&cache)[..] else { panic!("one file") };
    keep(file, "serial");
    let report = solve(&cache, &[SMALL]);
    assert!(is_kept(&report), "{}", because(&report));
    assert_eq!((&report["backend"], &report["converged"]), (&"serial".into(), &true.into()));
    let text = printed(&run(&cache, &["cg", SMALL, "--device", "cpu", "--threads", "1"]));
    assert!(text.contains("\nbackend") && text.contains("serial, kept choice of a measurement on"), "{text}");
    let plan = printed(&run(&cache, &["cg", SMALL, "--device", "cpu", "--dry-run"]));
    assert!(plan.contains("kept choice") && plan.contains("serial in f64 on cpu (1 thread"), "{plan}");
    let named = solve(&cache, &[SMALL, "--backend", "sell"]);
    assert!(
        named["backend_because"].is_null() && named["backend"] == "sell",
        "a named backend is not replaced"
    );
}

#[test]
fn another_pattern_precision_or_number_of_threads_does_not_use_a_kept_choice() {
    let cache = tempdir().unwrap();
    tune(&cache, &[SMALL]);
    for other in [
        &["poisson2d:51x50"][..],
        &["poisson2d:25x100"],
        &[SMALL, "--precision", "f32"],
        &[SMALL, "--precision", "mixed"],
        &[SMALL, "--threads", "2"],
    ] {
        assert!(!is_kept(&solve(&cache, other)), "{other:?}");
    }
    assert!(is_kept(&solve(&cache, &[SMALL])));
    tune(&cache, &[SMALL, "--precision", "f32"]);
    assert!(is_kept(&solve(&cache, &[SMALL, "--precision", "f32"])));
    assert_eq!(files(&cache).len(), 2);
}

#[test]
fn a_kept_choice_remains_if_only_values_change() {
    let (cache, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let write = |name: &str, diagonal: f64| {
        let path = folder.path().join(name);
        let mut text = "%%MatrixMarket matrix coordinate real symmetric\n600 600 1199\n".to_owned();
        (1..=600).for_each(|i| text.push_str(&format!("{i} {i} {diagonal}\n")));
        (2..=600).for_each(|i| text.push_str(&format!("{i} {} -1.0\n", i - 1)));
        std::fs::write(&path, text).unwrap();
        path
    };
    let (a, b) = (write("a.mtx", 4.0), write("b.mtx", 5.0));
    tune(&cache, &[word(&a)]);
    assert!(is_kept(&solve(&cache, &[word(&b)])));
}

#[test]
fn a_corrupt_or_foreign_file_is_ignored_with_a_warning() {
    let cache = tempdir().unwrap();
    tune(&cache, &[SMALL]);
    let [file] = &files(&cache)[..] else { panic!("one file") };
    let good = std::fs::read_to_string(file).unwrap();
    let foreign = good.replace("\"threads\": 1", "\"threads\": 7");
    for bad in [
        "",
        "{",
        "[1, 2]",
        &good[..good.len() / 2],
        &foreign,
        &good.replace("\"winner\": \"", "\"winner\": \"x"),
    ] {
        std::fs::write(file, bad).unwrap();
        let done = run(&cache, &["cg", SMALL, "--device", "cpu", "--threads", "1", "--json"]);
        let report: Value = serde_json::from_str(&printed(&done)).unwrap();
        assert!(!is_kept(&report), "{bad}");
        assert!(errors(&done).contains("is ignored"), "{bad}: {}", errors(&done));
    }
    tune(&cache, &[SMALL]);
    assert!(is_kept(&solve(&cache, &[SMALL])), "a new measurement replaces it");
}

#[test]
fn forget_removes_the_choices_of_a_matrix_or_all() {
    let cache = tempdir().unwrap();
    let other = "poisson2d:40x40";
    assert_eq!(printed(&run(&cache, &["tune", "--forget"])), "0 kept choices removed\n");
    tune(&cache, &[SMALL]);
    tune(&cache, &[SMALL, "--precision", "f32"]);
    tune(&cache, &[other]);
    assert_eq!(json(&cache, &["tune", SMALL, "--forget"])["removed"], 2);
    assert!(!is_kept(&solve(&cache, &[SMALL])) && is_kept(&solve(&cache, &[other])));
    assert_eq!(printed(&run(&cache, &["tune", "--forget"])), "1 kept choice removed\n");
    assert!(files(&cache).is_empty());
}

#[test]
fn solves_with_a_kept_choice_have_the_same_bits() {
    let cache = tempdir().unwrap();
    tune(&cache, &["hex27:6x6x6,dof=2"]);
    let solve = || solve(&cache, &["hex27:6x6x6,dof=2"]);
    let (first, second) = (solve(), solve());
    assert!(is_kept(&first));
    for field in ["backend", "iterations", "residual_recursive", "residual_true", "error_max"] {
        assert_eq!(first[field], second[field], "{field}");
    }
}

#[test]
fn every_method_can_tune_before_the_solve_and_uses_the_choice_afterwards() {
    let cache = tempdir().unwrap();
    for (method, matrix) in [
        ("cg", SMALL),
        ("minres", "poisson2d:30x30"),
        ("pagerank", "rmat:scale=9,factor=8"),
        ("markov", "blockband:n=600"),
    ] {
        let solve = |args: &[&str]| json(&cache, &[&[method, matrix, "--threads", "1"], args].concat());
        let report = solve(&["--tune"]);
        assert!(because(&report).starts_with("measured on 2"), "{method}: {}", because(&report));
        let again = solve(&["--tune"]);
        assert!(is_kept(&again), "{method}: {}", because(&again));
        let later = solve(&["--explain"]);
        assert!(is_kept(&later) && later["explanation"]["kept"]["tuning"]["measured"].is_array(), "{method}");
    }
}

#[test]
fn explain_lists_the_candidates_and_marks_the_choice() {
    let cache = tempdir().unwrap();
    let matrix = "poisson2d:120x120";
    let text = printed(&run(&cache, &["cg", matrix, "--device", "cpu", "--explain"]));
    for part in ["backend", "estimated", "rows", "sell", "bsr:block=", "chosen; ", "\nresult"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("chosen; ").count(), 1, "{text}");
    let explanation = json(&cache, &["tune", matrix, "--explain"]);
    let candidates = explanation["candidates"].as_array().unwrap();
    let chosen: Vec<&Value> = candidates.iter().filter(|candidate| candidate["chosen"] == true).collect();
    let report = solve(&cache, &[matrix, "--explain"]);
    assert_eq!((chosen.len(), &chosen[0]["backend"]), (1, &report["backend"]));
    assert_eq!(&report["explanation"]["candidates"], &explanation["candidates"]);
    assert!(solve(&cache, &[matrix])["explanation"].is_null());
    tune(&cache, &[matrix]);
    let text = printed(&run(&cache, &["tune", matrix, "--device", "cpu", "--threads", "1", "--explain"]));
    assert!(text.starts_with("Measured on 2") && text.contains("winner"), "{text}");
    assert_eq!(files(&cache).len(), 1, "explaining keeps nothing");
}

#[test]
fn a_cache_folder_that_is_no_folder_brings_no_advice_on_permissions() {
    let args = ["tune", "--time-limit", "0.02", "--threads", "1", "--device", "cpu", SMALL];
    let done = solver().env("SOLVER_CACHE", "/dev/null").args(args).output().unwrap();
    let message = errors(&done);
    assert_eq!(done.status.code(), Some(0), "{message}");
    assert!(message.contains("/dev/null is not a folder") && message.contains("SOLVER_CACHE"), "{message}");
    assert!(!message.contains("chmod"), "{message}");
}

#[test]
fn invalid_input_is_refused_with_a_clear_message() {
    let (cache, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let refused = |args: &[&str]| {
        let done = run(&cache, args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
        errors(&done)
    };
    let message = refused(&["tune", SMALL, "--device", "cpu", "--backend", "rows,sel"]);
    assert!(message.contains("no backend 'sel'") && message.contains("did you mean sell"), "{message}");
    assert!(refused(&["tune", SMALL, "--backend", "rows,,sell"]).contains("a name is missing"));
    assert!(refused(&["tune", SMALL, "--time-limit=-1"]).contains("--time-limit -1"));
    assert!(refused(&["tune"]).contains("MATRIX"));
    assert!(refused(&["cg", SMALL, "--tune", "--backend", "rows"]).contains("leave out one of the two"));
    for (name, head) in [("empty.mtx", "0 0 0"), ("zero.mtx", "3 3 0")] {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("%%MatrixMarket matrix coordinate real general\n{head}\n")).unwrap();
        let message = refused(&["tune", word(&path), "--device", "cpu"]);
        assert!(message.contains("no product to measure"), "{message}");
    }
    assert!(files(&cache).is_empty());
}

#[test]
fn a_matrix_that_is_not_square_is_measured_without_a_dot_product() {
    let (cache, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let path = folder.path().join("wide.mtx");
    let text = "%%MatrixMarket matrix coordinate real general\n2 5 3\n1 1 2\n1 5 1\n2 3 4\n";
    std::fs::write(&path, text).unwrap();
    let tuning = tune(&cache, &[word(&path)]);
    assert_eq!(tuning["product"], "y = A x");
    assert!(
        tuning["measured"]
            .as_array()
            .unwrap()
            .iter()
            .all(|measured| measured["seconds"].as_f64() > Some(0.0))
    );
}
