//! The memory plan of `--dry-run` suffices: a run takes at most 5 % more.
#![cfg(target_os = "linux")]

use crate::common::process::{program, solver};
use std::process::Stdio;
use std::time::Duration;

const CASES: [&str; 17] = [
    "cg --matrix poisson3d:70x70x70 --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precond jacobi --backend rows --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precond block-jacobi --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precond chebyshev --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precond ic0 --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precond ic0 --precision f32 --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precond ssor --threads 1 --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --variant pipelined --max-iters 9",
    "minres --matrix poisson3d:70x70x70 --precond jacobi --max-iters 9",
    "cg --matrix poisson3d:70x70x70 --precision mixed --backend bsr --max-iters 9",
    // Solved in several runs.
    "cg --matrix poisson3d:50x50x50 --precision f32 --rtol 1e-9",
    "cg --matrix elasticity3d:24x24x24 --backend sell --max-iters 9",
    "cg --matrix elasticity3d:24x24x24 --backend sbsr --max-iters 9",
    "cg --matrix elasticity3d:24x24x24 --precond ic0 --max-iters 9",
    "cg --matrix poisson2d:60x60 --backend dense --max-iters 9",
    "cg --matrix F1-like:scale=0.05 --max-iters 9",
    "cg --matrix poisson2d:200x200 --max-iters 9 --plot u.png",
];

/// Returns the bytes of the plan.
fn planned(words: &[&str]) -> f64 {
    let done = solver().args(words).args(["--device", "cpu", "--dry-run"]).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("memory ")).unwrap();
    let mut said = line.split_whitespace().skip(1);
    let number: f64 = said.next().unwrap().parse().unwrap();
    number
        * match said.next().unwrap() {
            "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            unit => panic!("{unit}: {line}"),
        }
}

/// Returns the peak resident memory of a run in bytes, as the system counts it. The count is lost when the
/// process ends, so it is read repeatedly; it never decreases.
fn peak(words: &[&str], folder: &std::path::Path) -> f64 {
    let mut command = solver();
    command.args(words).args(["--device", "cpu"]).current_dir(folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        if let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
            peak = peak.max(1024.0 * kilobytes);
        }
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(matches!(ended.code(), Some(0 | 1)), "{words:?}: {ended}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_takes_at_most_five_percent_more_memory_than_planned() {
    let folder = tempfile::tempdir().unwrap();
    let mut beyond = Vec::new();
    for case in CASES {
        let words: Vec<&str> = case.split(' ').collect();
        let (planned, peak) = (planned(&words), peak(&words, folder.path()));
        assert!(peak > 0.3 * planned, "{case}: {peak} of {planned}: the peak was missed");
        println!("{case}: {:.1} MB of {:.1} MB", peak / 1e6, planned / 1e6);
        if peak > 1.05 * planned {
            beyond.push(format!("{case}: {:.1} MB and not {:.1} MB", peak / 1e6, planned / 1e6));
        }
    }
    assert!(beyond.is_empty(), "{}: {}", program().display(), beyond.join("; "));
}
