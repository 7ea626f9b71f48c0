//! Solves on a GPU whose memory suffices for the solve, but not for making the format of the
//! backend or the transpose there.

use crate::common::harness::present;
use crate::common::process::{errors, solver, word};
use solver::device::cuda;
use std::path::Path;
use std::process::Output;

/// Solves with at most that many megabytes of GPU memory, and writes the answer.
fn solve(args: &[&str], megabytes: u64, answer: &Path) -> Output {
    let mut command = solver();
    command.args(args).args(["--device", "cuda", "--output", word(answer)]);
    command.env(cuda::MEMORY_LIMIT, (megabytes << 20).to_string()).output().unwrap()
}

/// Solves with less and less memory, until the solve itself is refused: all answers are the same, and with
/// some limits a message contains `note`.
fn check(args: &[&str], note: &str) {
    present("SOLVER_REQUIRE_GPU", cuda::usable(0));
    let folder = tempfile::tempdir().unwrap();
    let answer = |name: &str| folder.path().join(format!("{name}.npy"));
    let ample = answer("ample");
    let done = solve(args, 8192, &ample);
    assert!(done.status.success() && errors(&done).is_empty(), "{args:?}: {}", errors(&done));
    let mut noted = 0;
    for megabytes in (1..40).rev().map(|tens| 10 * tens) {
        let short = answer("short");
        let done = solve(args, megabytes, &short);
        let message = errors(&done);
        if !done.status.success() {
            assert_eq!(done.status.code(), Some(2), "{args:?}, {megabytes} MB: {message}");
            assert!(message.contains("memory"), "{args:?}, {megabytes} MB: {message}");
            break;
        }
        noted += u32::from(message.contains(note));
        let [expected, got] = [&ample, &short].map(|path| std::fs::read(path).unwrap());
        assert!(expected == got, "{args:?}, {megabytes} MB: {message}");
    }
    assert!(noted > 0, "{args:?}: no limit lets the host do the work");
}

#[test]
fn with_too_little_memory_to_make_a_format_on_the_gpu_the_host_makes_it_and_the_answer_is_the_same() {
    for backend in ["sell", "bsr:block=2x2"] {
        let args = ["cg", "poisson2d:1000x1000", "--backend", backend, "--rtol", "1e-2"];
        check(&args, "the host converts the matrix");
    }
}

#[test]
fn with_too_little_memory_to_transpose_a_graph_on_the_gpu_the_host_transposes_it_and_the_ranks_are_the_same()
{
    for backend in ["csr", "sell"] {
        let args = ["pagerank", "stackoverflow-like:scale=0.1", "--backend", backend, "--tol", "1e-4"];
        check(&args, "the host transposes the matrix");
    }
}
