//! Faults on one rank, signals and kills: all ranks end soon, with one message.

use super::launcher::{
    end_soon, messages, mpirun_for_a_minute, over, over_patiently, ranks_of, start, wait_until, with_memory,
};
use crate::common::process::{errors, mpirun, program, run, signal, solver, word};
use solver::source::read_vector;
use std::time::Instant;

/// A solve that takes minutes.
const LONG: [&str; 6] = ["cg", "--matrix", "poisson2d:700x700", "--rtol", "1e-300", "--json"];

#[test]
fn a_fault_of_one_rank_ends_all_and_names_the_rank_and_the_cause() {
    let args = ["cg", "--matrix", "poisson2d:100x100"];
    for fault in [["--threads", "5000"], ["--no-such", "5000"]] {
        let mut command = mpirun();
        command.args(["-n", "2"]).arg(program()).args(args);
        command.args([":", "-n", "1"]).arg(program()).args(args).args(fault);
        let began = Instant::now();
        let done = command.output().unwrap();
        assert!(began.elapsed() < super::launcher::SOON);
        assert_eq!(done.status.code(), Some(2), "{}", errors(&done));
        let messages = messages(&done);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("rank 2") && messages[0].contains(fault[0]), "{messages:?}");
    }
}

/// Runs a command on two ranks, the second of which has another last argument, and returns the only message.
fn message_of_two(args: &[&str], last: [&str; 2]) -> String {
    let mut command = mpirun_for_a_minute();
    command.args(["-n", "1"]).arg(program()).args(args).arg(last[0]);
    command.args([":", "-n", "1"]).arg(program()).args(args).arg(last[1]);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", errors(&done));
    let messages = messages(&done);
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages[0].clone()
}

#[test]
fn ranks_that_find_different_vectors_or_checkpoints_end_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (ones, twos) = (path("ones.txt"), path("twos.txt"));
    std::fs::write(&ones, "1\n".repeat(400)).unwrap();
    std::fs::write(&twos, "2\n".repeat(400)).unwrap();
    let grid = ["cg", "--matrix", "poisson2d:20x20", "--threads", "1"];
    for option in ["--rhs", "--x0"] {
        let message = message_of_two(&[&grid[..], &[option]].concat(), [&ones, &twos]);
        assert!(message.contains("different files") && message.contains(&option[2..]), "{message}");
    }
    // The first rank reads a matrix of this format as a whole.
    let whole = path("grid.npz");
    let done = run(&["convert", "poisson2d:20x20", &whole]);
    assert!(done.status.success(), "{}", errors(&done));
    let whole = ["cg", "--matrix", &whole, "--threads", "1"];
    for option in ["--rhs", "--x0"] {
        let message = message_of_two(&[&whole[..], &[option]].concat(), [&ones, &twos]);
        assert!(message.contains("different files") && message.contains(&option[2..]), "{message}");
    }
    let saved: Vec<String> = ["3", "6"]
        .map(|iterations| {
            let checkpoint = path(&format!("after-{iterations}"));
            let args = ["--max-iters", iterations, "--checkpoint", &checkpoint];
            let done = over(2, &[&grid[..3], &args].concat()).output().unwrap();
            assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
            checkpoint
        })
        .to_vec();
    let message = message_of_two(&[&grid[..], &["--resume"]].concat(), [&saved[0], &saved[1]]);
    assert!(message.contains("different files") && message.contains("resume"), "{message}");
}

#[test]
fn ranks_that_find_different_numbers_of_personalisations_end_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (two, three) = (path("two.txt"), path("three.txt"));
    std::fs::write(&two, "1\n2\n").unwrap();
    std::fs::write(&three, "1\n2\n3\n").unwrap();
    let args = ["pagerank", "rmat:scale=6,factor=8", "--threads", "1", "--personalise-each"];
    for files in [[&two, &three], [&three, &two]] {
        let began = Instant::now();
        let message = message_of_two(&args, [files[0], files[1]]);
        assert!(began.elapsed() < super::launcher::SOON, "{:?}", began.elapsed());
        assert!(message.contains("rank 1") && message.contains("--personalise-each"), "{message}");
        assert!(message.contains("2 personalisations") ^ message.contains("has 2;"), "{message}");
    }
}

#[test]
fn a_launcher_of_another_mpi_library_is_named() {
    let done = solver().args(["info", "poisson2d:5x5"]).env("PMI_SIZE", "2").output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", errors(&done));
    assert!(errors(&done).contains("launcher of another MPI library"), "{}", errors(&done));
    // The second process of such a launcher leaves the message to the first one.
    for [size, rank] in [["PMI_SIZE", "PMI_RANK"], ["MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"]] {
        let done = solver().args(["info", "poisson2d:5x5"]).env(size, "2").env(rank, "1").output().unwrap();
        assert_eq!((done.status.code(), errors(&done).as_str()), (Some(2), ""));
    }
}

#[test]
fn another_number_of_processes_than_the_launcher_tells_is_no_fault() {
    let mut command = mpirun_for_a_minute();
    let changed = ["env", "OMPI_COMM_WORLD_SIZE=3"];
    command.args(["-n", "2"]).args(changed).arg(program()).args(["cg", "poisson2d:20x20", "--threads", "1"]);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
}

#[test]
fn a_vector_from_standard_input_is_refused_over_ranks() {
    let grid = ["poisson2d:20x20"];
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/proc/self/fd/0", &link).unwrap();
    for command in [
        &["cg", "--rhs", "/dev/stdin"][..],
        &["cg", "--x0", "/dev/fd/0"],
        &["cg", "--x0", word(&link)],
        &["markov", "--x0", "/proc/self/fd/0"],
        &["pagerank", "--personalise-each", "/dev/fd/../fd/0"],
    ] {
        let done = over(2, &[command, &grid].concat()).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{}", errors(&done));
        assert!(messages(&done)[0].contains("standard input to the first rank alone"), "{}", errors(&done));
    }
}

#[test]
fn a_measurement_of_backends_is_refused_over_ranks() {
    let done = over(2, &["cg", "--matrix", "poisson2d:20x20", "--tune"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", errors(&done));
    assert!(messages(&done)[0].contains("over ranks nothing is measured"), "{}", errors(&done));
}

#[test]
fn a_rank_without_memory_ends_all_and_names_the_rank_and_the_cause() {
    let mut command = mpirun();
    let args = ["cg", "--matrix", "poisson2d:1500x1500", "--threads", "1"];
    command.args(["-n", "1"]).arg(program()).args(args);
    command.args([":", "-n", "1"]).args(with_memory(250_000)).arg(program()).args(args);
    let began = Instant::now();
    let done = command.output().unwrap();
    assert!(began.elapsed() < super::launcher::SOON * 2, "{:?}", began.elapsed());
    assert_eq!(done.status.code(), Some(2), "{}", errors(&done));
    let messages = messages(&done);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("rank 1") && messages[0].contains("memory"), "{messages:?}");
}

#[test]
fn a_compressed_file_is_read_or_refused_if_there_is_no_memory_for_threads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grid.mtx.gz");
    let done = run(&["convert", "poisson2d:400x400", word(&file)]);
    assert!(done.status.success(), "{}", errors(&done));
    let args = ["cg", "--matrix", word(&file), "--threads", "1", "--max-iters", "3", "-v"];
    let mut without_threads = 0;
    for kilobytes in (80_000..125_000).step_by(8000) {
        let mut command = mpirun_for_a_minute();
        command.args(["-n", "2"]).args(with_memory(kilobytes)).arg(program()).args(args);
        let done = command.output().unwrap();
        let text = errors(&done);
        match done.status.code() {
            Some(1) => {}
            Some(2) => assert!(text.contains("memory"), "{kilobytes}: {text}"),
            code => panic!("{kilobytes}: {code:?}: {text}"),
        }
        without_threads += usize::from(text.contains("with 0 threads"));
    }
    assert!(without_threads > 0, "no limit was too low for a thread");
}

#[test]
fn sigterm_and_sigint_end_all_ranks_with_the_answer_so_far() {
    for number in [libc::SIGTERM, libc::SIGINT] {
        let folder = tempfile::tempdir().unwrap();
        let (file, checkpoint) = (folder.path().join("x.npy"), folder.path().join("saved"));
        let saving = ["--output", word(&file), "--checkpoint", word(&checkpoint)];
        let launcher =
            start(over_patiently(2, &[&LONG[..], &saving, &["--checkpoint-every", "50ms"]].concat()));
        // From the first iteration on, a signal leaves an answer.
        wait_until("a checkpoint is written", || checkpoint.is_file());
        let ranks = ranks_of(&launcher);
        assert_eq!(ranks.len(), 2);
        signal(&launcher, number);
        let done = end_soon(launcher, &ranks);
        assert_eq!(read_vector(&file).unwrap().len(), 490_000, "{}", errors(&done));
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.contains("\"interrupted\""), "{text}{}", errors(&done));
    }
}

#[test]
fn a_signal_to_one_rank_ends_all_ranks_with_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("saved");
    let saving = ["--checkpoint", word(&checkpoint), "--checkpoint-every", "50ms"];
    let launcher = start(over(3, &[&LONG[..], &saving].concat()));
    wait_until("a checkpoint is written", || checkpoint.is_file());
    let ranks = ranks_of(&launcher);
    // SAFETY: the call sends a signal to a process of this test.
    unsafe { libc::kill(ranks[1], libc::SIGTERM) };
    let done = end_soon(launcher, &ranks);
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
}

#[test]
fn a_time_limit_ends_all_ranks_with_exit_code_1() {
    let began = Instant::now();
    let done = over(3, &[&LONG[..], &["--time-limit", "0.5"]].concat()).output().unwrap();
    assert!(began.elapsed() < super::launcher::SOON, "{:?}", began.elapsed());
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    assert!(String::from_utf8_lossy(&done.stdout).contains("\"time_limit\""));
}

#[test]
fn a_killed_rank_leaves_no_process_and_a_whole_checkpoint() {
    for ranks in 2..=4 {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join("saved");
        let saving = ["--checkpoint", word(&checkpoint), "--checkpoint-every", "10ms"];
        let launcher = start(over(ranks, &[&LONG[..], &saving].concat()));
        wait_until("a checkpoint is written", || checkpoint.is_file());
        let all = ranks_of(&launcher);
        assert_eq!(all.len(), ranks);
        // SAFETY: the call sends a signal to a process of this test.
        unsafe { libc::kill(all[ranks - 1], libc::SIGKILL) };
        let done = end_soon(launcher, &all);
        assert!(!done.status.success());
        // A checkpoint that is not whole is refused.
        let resumed = ["--resume", word(&checkpoint), "--time-limit", "0.1"];
        let done = over(2, &[&LONG[..], &resumed].concat()).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    }
}
