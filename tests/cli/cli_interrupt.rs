//! The files and exit codes after Ctrl-C, SIGTERM and SIGHUP.
#![cfg(unix)]
use crate::common::process::{errors, file, interrupt, signal, solver, word};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The signals that end a solve early.
const SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The program with default signal handling, even if the tests run with signals ignored, as under `nohup`.
fn interruptible() -> Command {
    with_hangup(libc::SIG_DFL)
}

/// The program, with this disposition of SIGHUP.
fn with_hangup(disposition: libc::sighandler_t) -> Command {
    let mut command = solver();
    // SAFETY: only `signal` is called between fork and exec, which is allowed.
    unsafe {
        command.pre_exec(move || {
            for signal in SIGNALS {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::signal(libc::SIGHUP, disposition);
            Ok(())
        })
    };
    command
}

/// Writes a matrix with eigenvalues over twelve decades, for which a solve does not end.
fn endless(folder: &tempfile::TempDir) -> PathBuf {
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n90000 90000 90000\n".to_owned();
    for i in 1..=90_000 {
        text.push_str(&format!("{i} {i} {:e}\n", 10f64.powf(-12.0 * f64::from(i) / 90_000.0)));
    }
    file(folder, "m.mtx", &text)
}

fn wait_for(condition: impl Fn() -> bool) {
    let from = Instant::now();
    while !condition() {
        assert!(from.elapsed() < Duration::from_secs(60), "the condition does not become true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_writes_all_results_of_the_iterations_so_far() {
    check_results_after(libc::SIGINT);
}

#[test]
fn sigterm_writes_all_results_of_the_iterations_so_far() {
    check_results_after(libc::SIGTERM);
}

#[test]
fn sighup_writes_all_results_of_the_iterations_so_far() {
    check_results_after(libc::SIGHUP);
}

#[test]
fn under_nohup_a_solve_ignores_sighup_and_two_sigterms_keep_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let (answer, checkpoint) = (folder.path().join("x.npy"), folder.path().join("c"));
    let child = with_hangup(libc::SIG_IGN)
        .args(["cg", "--device", "cpu", "--matrix", word(&endless(&folder)), "--rtol", "1e-300", "--json"])
        .args(["--max-iters", "100000000", "--output", word(&answer)])
        .args(["--checkpoint", word(&checkpoint), "--checkpoint-every", "1ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(|| checkpoint.exists());
    signal(&child, libc::SIGHUP);
    for _ in 0..3 {
        // A solve that continues writes the file again; the first write may have begun before the signal.
        std::fs::rename(&checkpoint, folder.path().join("moved")).unwrap();
        wait_for(|| checkpoint.exists());
    }
    signal(&child, libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(20));
    signal(&child, libc::SIGTERM);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["reason"], "interrupted");
    assert_eq!(solver::source::read_dense(&answer).unwrap().rows(), 90_000);
}

/// Interrupts a solve by a signal, and checks the report and all output files.
fn check_results_after(number: i32) {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("h.json");
    let answer = folder.path().join("x.mtx");
    let picture = folder.path().join("p.svg");
    let (matrix, checkpoint) = (endless(&folder), folder.path().join("c"));
    let child = interruptible()
        .args(["cg", "--device", "cpu", "--matrix", word(&matrix), "--rtol", "1e-300", "--json"])
        .args(["--max-iters", "100000000", "--history", word(&history), "--output", word(&answer)])
        .args(["--plot", word(&picture), "--checkpoint", word(&checkpoint), "--checkpoint-every", "1ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(|| checkpoint.exists());
    signal(&child, number);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["reason"], "interrupted");
    assert!(report["iterations"].as_u64().unwrap() > 0);
    assert!(report["residual_true"].as_f64().unwrap() < 1.0, "x is the best so far");
    assert!(report["stream_gigabytes_per_second"].is_null(), "no bandwidth is measured after an interrupt");
    let saved = solver::observe::History::load(&history).unwrap();
    assert_eq!(saved.report.reason, "interrupted");
    assert_eq!(std::fs::read_to_string(&answer).unwrap().lines().count(), 90_002);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("interrupted"), "the plot names the reason");
}

/// Returns a dense matrix without incomplete factors. Only its last row shows this, so each factorisation
/// runs to the end for every shift.
fn hopeless(n: usize) -> String {
    let mut text = format!("%%MatrixMarket matrix array real symmetric\n{n} {n}\n");
    for col in 0..n {
        for row in col..n {
            let value = match (row, col) {
                _ if col + 1 == n => "1\n",
                _ if row == col => "9999\n",
                _ if row + 1 == n => "7777\n",
                _ => "1\n",
            };
            text.push_str(value);
        }
    }
    text
}

#[test]
fn ctrl_c_before_the_first_iteration_ends_the_program_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = file(&folder, "m.mtx", &hopeless(1500));
    let answer = folder.path().join("x.npy");
    let mut child = interruptible()
        .args(["-vv", "cg", "--device", "cpu", "--precond", "ic0", "--matrix", word(&matrix)])
        .args(["--output", word(&answer)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    let mut factorisations = lines.filter(|line| line.contains("ic0 with a shift of"));
    assert!(factorisations.next().is_some(), "the first factorisation has failed, and the second begins");
    interrupt(&child);
    let ended = child.wait().unwrap();
    assert_eq!((ended.code(), ended.signal()), (None, Some(libc::SIGINT)), "ended by the signal itself");
    assert!(factorisations.count() < 13, "it did not try all shifts");
    assert!(!answer.exists());
}

#[test]
fn ctrl_c_twice_during_the_bandwidth_measurement_keeps_all_results() {
    for solve in [
        ["cg", "--matrix", "poisson2d:300x300"],
        ["pagerank", "--graph", "rmat:scale=15,factor=16"],
        ["markov", "--matrix", "blockband:n=2000,block=5,density=0.05"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (answer, history, picture) = (at("x.npy"), at("h.json"), at("p.svg"));
        let mut child = interruptible()
            .args(solve)
            .args(["-vv", "--device", "cpu", "--max-iters", "5", "--output", word(&answer)])
            .args(["--history", word(&history), "--plot", word(&picture)])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
        assert!(lines.any(|line| line.contains("] measuring the ")), "{solve:?}");
        interrupt(&child);
        interrupt(&child);
        lines.for_each(drop);
        child.wait().unwrap();
        let saved = solver::observe::History::load(&history).unwrap();
        assert_eq!((saved.report.iterations, saved.residuals.len()), (5, 6), "{solve:?}");
        assert!(solver::source::read_dense(&answer).is_ok(), "{solve:?}");
        assert!(std::fs::read_to_string(&picture).unwrap().contains("</svg>"), "{solve:?}");
    }
}

#[test]
fn a_history_written_to_a_pipe_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("h.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let solve = ["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--history", word(&pipe)];
    let done = solver().args(solve).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let text = reader.join().unwrap();
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "one report: {text}");
}
