//! Signals before the first iteration: all ranks end soon, with one message.

use super::launcher::{end_soon, messages, over, ranks_of, start, wait_until};
use crate::common::process::{errors, signal, word};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const MESSAGE: &str = "error: interrupted before the first iteration by a signal, from a user or from a launcher that has lost a rank; there is no answer";

/// Starts a solve of two ranks that wait for their matrix. Returns the launcher, the ranks, and the file that
/// they read, to which nothing is written.
fn waiting(folder: &Path, command: &str) -> (Child, Vec<i32>, File) {
    let pipe = folder.join("pipe.mtx");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let launcher = start(over(2, &[command, word(&pipe)]));
    // Returns once a rank reads.
    let writer = File::options().write(true).open(&pipe).unwrap();
    let ranks = ranks_of(&launcher);
    assert_eq!(ranks.len(), 2);
    (launcher, ranks, writer)
}

#[test]
fn a_signal_to_the_launcher_ends_all_ranks_with_one_message() {
    for command in ["cg", "pagerank", "markov"] {
        for number in [libc::SIGTERM, libc::SIGINT] {
            let folder = tempfile::tempdir().unwrap();
            let (launcher, ranks, _writer) = waiting(folder.path(), command);
            signal(&launcher, number);
            let done = end_soon(launcher, &ranks);
            // The launcher chooses its exit code itself when it gets a signal.
            assert!(matches!(done.status.code(), Some(1 | 2)), "{:?}", done.status);
            assert_eq!(messages(&done), [MESSAGE], "{command}: {}", errors(&done));
            assert!(done.stdout.is_empty());
        }
    }
}

#[test]
fn a_signal_to_one_rank_ends_all_ranks_with_one_message_and_exit_code_2() {
    for rank in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let (launcher, ranks, _writer) = waiting(folder.path(), "cg");
        // SAFETY: the call sends a signal to a process of this test.
        unsafe { libc::kill(ranks[rank], libc::SIGTERM) };
        let done = end_soon(launcher, &ranks);
        assert_eq!(
            (done.status.code(), &messages(&done)[..]),
            (Some(2), &[MESSAGE.to_owned()][..]),
            "{}",
            errors(&done)
        );
    }
}

#[test]
fn the_message_after_a_killed_rank_does_not_say_that_a_user_has_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let (launcher, ranks, _writer) = waiting(folder.path(), "cg");
    // SAFETY: the call sends a signal to a process of this test.
    unsafe { libc::kill(ranks[1], libc::SIGKILL) };
    let done = end_soon(launcher, &ranks);
    // The launcher ends the other rank at once, or after the message.
    let found = messages(&done);
    assert!(found.is_empty() || found == [MESSAGE], "{}", errors(&done));
    assert!(!done.status.success() && done.stdout.is_empty());
}

#[test]
fn a_signal_at_any_time_ends_with_a_message_or_with_the_answer_so_far() {
    let args = ["cg", "poisson3d:80x80x80", "--rtol", "1e-300"];
    let args =
        if cfg!(feature = "metis") { [&args[..], &["--partition", "graph"]].concat() } else { args.to_vec() };
    for (turn, milliseconds) in (100..1900).step_by(150).enumerate() {
        let launcher = start(over(2, &args));
        wait_until("both ranks run", || ranks_of(&launcher).len() == 2);
        let ranks = ranks_of(&launcher);
        std::thread::sleep(Duration::from_millis(milliseconds));
        // SAFETY: the call sends a signal to a process of this test.
        unsafe { libc::kill(ranks[turn % 2], libc::SIGTERM) };
        let done = end_soon(launcher, &ranks);
        let text = String::from_utf8_lossy(&done.stdout);
        match done.status.code() {
            Some(1) => assert!(text.contains("interrupted"), "{milliseconds}: {text}"),
            Some(2) => assert_eq!(messages(&done), [MESSAGE], "{milliseconds}: {}", errors(&done)),
            // The signal has come before the program could handle it.
            code => assert!(code == Some(143) && milliseconds < 1000, "{milliseconds}: {code:?}"),
        }
    }
}
