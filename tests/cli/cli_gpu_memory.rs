//! Solves on a GPU whose memory suffices for the solve, but not for making the format of the backend there.

use crate::common::harness::present;
use crate::common::process::{errors, program, word};
use solver::device::cuda;
use std::path::Path;
use std::process::{Command, Output};

/// Solves with at most that many megabytes of GPU memory, and writes the answer.
fn solve(backend: &str, megabytes: u64, answer: &Path) -> Output {
    let mut command = Command::new(program());
    command.args(["cg", "poisson2d:1000x1000", "--device", "cuda", "--backend", backend, "--rtol", "1e-2"]);
    command.args(["--output", word(answer)]).env(cuda::MEMORY_LIMIT, (megabytes << 20).to_string());
    command.output().unwrap()
}

#[test]
fn with_too_little_memory_to_make_a_format_on_the_gpu_the_host_makes_it_and_the_answer_is_the_same() {
    present("SOLVER_REQUIRE_GPU", cuda::usable(0));
    let folder = tempfile::tempdir().unwrap();
    let answer = |name: String| folder.path().join(name);
    for backend in ["sell", "bsr:block=2x2"] {
        let ample = answer(format!("{}.npy", &backend[..3]));
        let done = solve(backend, 8192, &ample);
        assert!(done.status.success() && errors(&done).is_empty(), "{backend}: {}", errors(&done));
        let mut made_by_the_host = 0;
        // With less and less memory, until the solve itself is refused.
        for megabytes in (1..40).rev().map(|tens| 10 * tens) {
            let short = answer(format!("{}-{megabytes}.npy", &backend[..3]));
            let done = solve(backend, megabytes, &short);
            let message = errors(&done);
            if !done.status.success() {
                assert_eq!(done.status.code(), Some(2), "{backend}, {megabytes} MB: {message}");
                assert!(message.contains("memory"), "{backend}, {megabytes} MB: {message}");
                break;
            }
            made_by_the_host += u32::from(message.contains("the host converts the matrix"));
            let [expected, got] = [&ample, &short].map(|path| std::fs::read(path).unwrap());
            assert!(expected == got, "{backend}, {megabytes} MB: {message}");
        }
        assert!(made_by_the_host > 0, "{backend}: no limit lets the host make the format");
    }
}
