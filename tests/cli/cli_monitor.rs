//! `--monitor N`, and progress lines if stderr is not a terminal.

use crate::common::process::{errors, refused, run, solver, word};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Returns iteration and residual of the lines on stderr that are not comments.
fn printed(stderr: &str) -> Vec<(usize, String)> {
    let lines = stderr.lines().filter(|line| !line.starts_with('#'));
    let pairs =
        lines.map(|line| line.trim().split_once("  ").unwrap_or_else(|| panic!("'{line}' of {stderr}")));
    pairs.map(|(iteration, residual)| (iteration.parse().unwrap(), residual.to_owned())).collect()
}

fn residuals(history: &std::path::Path) -> Vec<Value> {
    let history: Value = serde_json::from_str(&std::fs::read_to_string(history).unwrap()).unwrap();
    history["residuals"].as_array().unwrap().clone()
}

#[test]
fn every_method_prints_every_nth_residual_and_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("h.json");
    for solve in [
        ["cg", "--matrix", "poisson2d:30x30"],
        ["minres", "--matrix", "poisson2d:20x20,boundary=neumann"],
        ["pagerank", "--graph", "rmat:scale=8,factor=8"],
        ["markov", "--matrix", "blockband:n=600,block=5,density=0.05"],
    ] {
        let options = ["--device", "cpu", "--monitor", "7", "--json", "--history", word(&history)];
        let done = run(&[&solve[..], &options].concat());
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let (all, lines) = (residuals(&history), printed(&errors(&done)));
        let last = report["iterations"].as_u64().unwrap() as usize;
        assert_eq!(all.len(), last + 1);
        let wanted: Vec<(usize, String)> = (0..=last)
            .filter(|i| i.is_multiple_of(7) || *i == last)
            .map(|i| (i, format!("{:.6e}", all[i].as_f64().unwrap())))
            .collect();
        assert_eq!(lines, wanted, "{solve:?}");
        assert!(errors(&done).starts_with("# iteration, "), "{}", errors(&done));
    }
}

#[test]
fn a_monitor_does_not_change_the_bits_of_residuals_and_answer() {
    let folder = tempfile::tempdir().unwrap();
    let solve = |name: &str, more: &[&str]| {
        let (history, x) =
            (folder.path().join(format!("{name}.json")), folder.path().join(format!("{name}.npy")));
        let files = ["--history", word(&history), "--output", word(&x)];
        run(&[&["cg", "--device", "cpu", "--matrix", "poisson2d:40x40"], more, &files].concat());
        (residuals(&history), std::fs::read(&x).unwrap())
    };
    assert_eq!(solve("plain", &[]), solve("watched", &["--monitor", "1"]));
}

#[test]
fn the_last_residual_is_printed_once() {
    let done =
        run(&["cg", "--device", "cpu", "--matrix", "poisson2d:30x30", "--max-iters", "10", "--monitor", "5"]);
    let iterations: Vec<usize> =
        printed(&errors(&done)).into_iter().map(|(iteration, _)| iteration).collect();
    assert_eq!(iterations, [0, 5, 10]);
}

#[test]
fn monitor_0_is_rejected() {
    let output = refused(&["cg", "--matrix", "poisson2d:5x5", "--monitor", "0"]);
    assert!(output.contains("--monitor") && output.contains("at least 1"), "{output}");
}

#[test]
fn quiet_keeps_the_lines_of_the_monitor() {
    let with = |more: &[&str]| {
        errors(&run(&[&["cg", "--device", "cpu", "poisson2d:9x9", "--monitor", "5"], more].concat()))
    };
    let output = with(&["-q"]);
    assert!(printed(&output).len() > 2, "{output}");
    assert_eq!(output, with(&[]));
}

#[test]
fn without_a_terminal_only_runs_longer_than_two_seconds_print_progress() {
    let solve = |more: &[&str]| errors(&run(&[&["cg", "--device", "cpu"], more].concat()));
    let output =
        solve(&["poisson2d:1000x1000", "--rtol", "1e-14", "--max-iters", "1000000", "--time-limit", "5"]);
    let line = output
        .lines()
        .find(|line| line.contains("  residual "))
        .unwrap_or_else(|| panic!("no line: {output}"));
    assert!(
        line.contains("iteration ") && line.contains(" (tolerance 1e-14)") && line.contains("(--time-limit)"),
        "{line}"
    );
    assert_eq!(solve(&["poisson2d:9x9"]), "");
}

#[test]
fn a_long_wait_before_the_first_iteration_is_shown_without_a_terminal() {
    let mut command = solver();
    command.args(["cg", "--device", "cpu", "--matrix", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("reading -: ") && line.trim_end().ends_with(" s so far"), "{line}");
    let matrix = b"%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 2\n";
    child.stdin.take().unwrap().write_all(matrix).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}
