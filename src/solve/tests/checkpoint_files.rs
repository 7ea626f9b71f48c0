//! Refusal of checkpoints with a valid checksum but impossible content, with messages that name the
//! differences in the version of the method.

use crate::common::solves::{System, operator};
use crate::common::zoo;
use crate::device::Cpu;
use crate::prelude::*;
use crate::solve::checkpoint::Checkpoints;
use crate::solve::{Method, Solution, verdict};
use crate::stop::StoppingRule;
use std::path::Path;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

fn solve(method: Method, most: usize, checkpoints: &Checkpoints) -> crate::Result<Solution> {
    let cpu = Cpu::new(Some(1)).unwrap();
    let system = System::random(zoo::generated("poisson2d:20x15"));
    let a = operator::<Cpu, f64>(&cpu, &system.matrix);
    let rule = StoppingRule::any([StoppingRule::RelativeResidual(1e-9), StoppingRule::MaxIterations(most)]);
    method.solve_saved(a, None, &system.given(), &rule, &mut [], checkpoints)
}

/// Returns the bytes of a checkpoint of a solve that was cut after this many iterations.
fn saved(path: &Path, method: Method, cut: usize) -> Vec<u8> {
    let save = Some((path.to_owned(), Duration::from_secs(1_000_000)));
    solve(method, cut, &Checkpoints { save, ..Checkpoints::default() }).unwrap();
    std::fs::read(path).unwrap()
}

/// Writes these bytes after setting a valid checksum.
fn seal(path: &Path, mut bytes: Vec<u8>) {
    let body = bytes.len() - 8;
    let sum = xxh3_64(&bytes[..body]);
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// Resumes from these bytes after setting a valid checksum. Returns the solution or the message.
fn resumed(path: &Path, method: Method, bytes: Vec<u8>) -> std::result::Result<Solution, String> {
    seal(path, bytes);
    let resume = Some(path.to_owned());
    solve(method, 3000, &Checkpoints { resume, ..Checkpoints::default() }).map_err(|e| e.to_string())
}

/// A cursor that walks through a checkpoint.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn count(&mut self) -> usize {
        self.at += 8;
        u64::from_le_bytes(self.bytes[self.at - 8..self.at].try_into().unwrap()) as usize
    }

    fn skip(&mut self, width: usize) {
        self.at += self.count() * width;
    }
}

/// Returns the names and offsets of the counts in a checkpoint.
fn counts(bytes: &[u8]) -> Vec<(&'static str, usize)> {
    let mut walk = Walk { bytes, at: 12 };
    for _ in 0..2 * walk.count() {
        walk.skip(1);
    }
    let mut offsets = Vec::new();
    for name in ["iteration", "run_began", "improved_at", "restarts"] {
        offsets.push((name, walk.at));
        walk.count();
    }
    for name in ["numbers", "seconds", "coefficients", "residuals", "batches", "x", "scalars"] {
        offsets.push((name, walk.at));
        walk.skip(8);
    }
    offsets.extend([("done", walk.at), ("counted", walk.at + 8), ("first vector", walk.at + 16)]);
    offsets
}

#[test]
fn impossible_counts_are_refused_despite_a_valid_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    for method in Method::ALL {
        for cut in [0, 7, 8] {
            let good = saved(&path, method, cut);
            let iterations = resumed(&path, method, good.clone()).unwrap().iterations;
            assert!(iterations > 20, "an unmodified checkpoint can be resumed");
            for (name, at) in counts(&good) {
                let original = u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
                for wrong in
                    [original + 1, original.wrapping_sub(1), 1 << 32, 1 << 61, u64::MAX / 2, u64::MAX]
                {
                    let mut bytes = good.clone();
                    bytes[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
                    let what =
                        format!("{} cut after {cut}: {name} {wrong} instead of {original}", method.name());
                    match resumed(&path, method, bytes) {
                        Err(message) => assert!(
                            message.contains("cannot resume from this checkpoint"),
                            "{what}: {message}"
                        ),
                        // The last iteration with progress, the number of runs and a device's stop code
                        // cannot be checked; nevertheless the answer is judged by its residual.
                        Ok(outcome) => {
                            let harmless = matches!(name, "improved_at" | "restarts" | "done") && wrong < 10;
                            let right = outcome.reason.is_success() && outcome.residual_true <= 1e-9;
                            assert!(harmless && right, "{what}: {:?}", outcome.reason);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn an_invalid_time_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let good = saved(&path, Method::Cg, 7);
    let (_, at) = counts(&good).into_iter().find(|(name, _)| *name == "seconds").unwrap();
    for seconds in [f64::NAN, -1.0, 1e300, 1.8e19] {
        let mut bytes = good.clone();
        bytes[at + 8..at + 16].copy_from_slice(&seconds.to_le_bytes());
        let message = resumed(&path, Method::Cg, bytes).unwrap_err();
        assert!(message.contains("its time is"), "{message}");
    }
}

#[test]
fn a_checkpoint_with_another_version_of_a_methods_state_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    for method in Method::ALL {
        let mut bytes = saved(&path, method, 7);
        let at = bytes.windows(8).position(|bytes| bytes == b"version ").unwrap() + 8;
        let here = std::mem::replace(&mut bytes[at], b'0') as char;
        let message = resumed(&path, method, bytes).unwrap_err();
        let differs = format!("state of the method: version 0 in the checkpoint, version {here} here");
        assert!(message.contains(&differs), "{message}");
    }
}

/// Returns the offset of the first number of x of each of `k` columns.
fn answers(bytes: &[u8], k: usize) -> Vec<usize> {
    let mut walk = Walk { bytes, at: 12 };
    for _ in 0..2 * walk.count() {
        walk.skip(1);
    }
    let mut offsets = Vec::new();
    for _ in 0..k {
        walk.at += 4 * 8;
        (0..5).for_each(|_| walk.skip(8));
        offsets.push(walk.at + 8);
        walk.skip(8);
        walk.at += 8;
    }
    offsets
}

#[test]
fn an_x_in_a_checkpoint_is_judged_in_every_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let a = Matrix::open("poisson2d:20x15").unwrap();
    let (n, k) = (a.rows(), 4);
    // The columns: one to solve, one with the right-hand side 0, one that cannot be solved, and one
    // whose start is the answer.
    let ones = vec![1.0; n];
    let product = a.csr().multiply_reference(&ones);
    let b: Vec<f64> = (0..n).flat_map(|i| [(i % 7) as f64, 0.0, f64::NAN, product[i]]).collect();
    let x0: Vec<f64> = (0..n).flat_map(|_| [0.0, 0.0, 0.0, 1.0]).collect();
    let solve = |most: usize, save: bool| {
        let solver = Cg::new(&a).device("cpu").rtol(1e-9).max_iters(most);
        let solver = match save {
            true => solver.checkpoint(&path, Duration::from_secs(1_000_000)),
            false => solver.resume(&path),
        };
        solver.solve_many(RightHandSides::new(&b, k).from_start(&x0))
    };
    solve(5, true).unwrap();
    let good = std::fs::read(&path).unwrap();
    let answers = answers(&good, k);
    let tampered = |column: usize, x: f64| {
        let mut bytes = good.clone();
        bytes[answers[column] + 8 * 7..][..8].copy_from_slice(&x.to_le_bytes());
        seal(&path, bytes);
        solve(3000, false)
    };
    let names = |answers: &Answers| answers.outcomes().map(|o| o.reason.name()).collect::<Vec<_>>();
    let expected = ["converged", "zero_right_hand_side", "not_solved", "converged"];
    assert_eq!(names(&tampered(1, 0.0).unwrap()), expected, "an unmodified checkpoint");
    for (column, x) in [(1, 1.0), (1, f64::NAN), (1, 1e-300), (2, 1.0), (2, f64::NAN), (3, f64::NAN)] {
        let message = tampered(column, x).unwrap_err().to_string();
        assert!(message.contains("cannot resume from this checkpoint"), "column {column}, {x}: {message}");
    }
    // The start was exact, so the residual has diverged from it.
    let found = tampered(3, 1e3).unwrap();
    let reason = found.outcomes().nth(3).unwrap().reason;
    let x = found.column(3).unwrap();
    let truth = verdict::true_residual(a.csr(), &product, &x);
    assert!(truth > 1e-9 && !reason.is_success(), "{truth}: {reason}");
}

#[test]
fn residuals_stored_in_a_checkpoint_are_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c");
    let system = System::random(zoo::generated("poisson2d:20x15"));
    for method in Method::ALL {
        let good = saved(&path, method, 8);
        let (_, at) = counts(&good).into_iter().find(|(name, _)| *name == "numbers").unwrap();
        let numbers = u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
        for number in 0..numbers {
            for wrong in [0.0, 1e-300, 1e-12, 1e300, f64::NAN] {
                let mut bytes = good.clone();
                bytes[at + 8 + 8 * number..][..8].copy_from_slice(&f64::to_le_bytes(wrong));
                let Ok(outcome) = resumed(&path, method, bytes) else { continue };
                let truth = verdict::true_residual(&system.matrix, &system.b, &outcome.x);
                let what = format!("{}: number {number} is {wrong}: {:?}", method.name(), outcome.reason);
                assert!(truth <= 1e-9 || !outcome.reason.is_success(), "{what}");
                assert!(truth <= outcome.residual_at_most, "{what}");
            }
        }
    }
}
