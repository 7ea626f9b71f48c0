//! Error messages, and errors at the limits of the machine or of f64.

use solver::Error;
use solver::format::Coo;

#[test]
fn duplicates_with_an_overflowing_sum_are_named_by_row_and_column() {
    // Sorted by row, which needs no sort, and unsorted.
    for (rows, cols, values) in [
        (vec![0, 1, 1, 1], vec![0, 2, 0, 2], vec![1.0, 1e308, 1.0, 1e308]),
        (vec![1, 0, 1], vec![2, 0, 2], vec![-1e308, 1.0, -1e308]),
    ] {
        let error = Coo::new(2, 3, rows, cols, values).unwrap().into_csr().unwrap_err();
        assert!(matches!(error, Error::DuplicateOverflow { row: 1, col: 2 }), "{error:?}");
        let expected =
            "the duplicates at row 1, column 2 (counted from 0) have a sum beyond the range of f64";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn messages_of_the_library_end_with_the_flag_or_command_that_helps() {
    use crate::common::process::{errors, solver};
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let table = file("t.csv", "follower,followee\n1,2\n2,3\n");
    let head = "%%MatrixMarket matrix coordinate real symmetric\n";
    let no_factor = file("f.mtx", &format!("{head}3 3 4\n1 1 1\n2 2 1\n3 2 100\n3 3 1\n"));
    let no_diagonal = file("d.mtx", &format!("{head}2 2 2\n1 1 1\n2 1 1\n"));
    for (words, end) in [
        (&["cg", "poisson2d:9x9", "--precond", "jacoby"][..], "--precond jacoby: did you mean jacobi? "),
        (&["pagerank", &table], " (--columns source=NAME,target=NAME)"),
        (&["cg", &no_factor, "--precond", "ic0"], "is positive definite (--precond jacobi)"),
        (&["cg", &no_diagonal, "--precond", "jacobi"], "is positive definite (--precond none)"),
        (&["cg", "nothing"], "not a generator; solver matrices lists names and generators"),
        (
            &["cg", "poisson2d:9x9", "--device", "cpu", "--backend", "pull"],
            "the choice to auto (--backend NAME)",
        ),
        (
            &["cg", "poisson2d:9x9", "--backend", "sprs", "--precision", "f32"],
            "another backend (--precision f64, --backend NAME)",
        ),
    ] {
        let done = solver().args(words).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{words:?}");
        let output = errors(&done);
        assert!(output.contains(end), "{words:?}: {output}");
    }
    let four = file("four.tsv", "a\tb\t1.5\t3\nb\tc\t2.5\t4\n");
    let done = solver().args(["info", &four, "--json"]).output().unwrap();
    let described: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(described["notes"].to_string().contains("(--columns LIST)"), "{described}");
}

/// A limit on the address space simulates a machine that starts no more threads, because each
/// thread needs a stack.
#[cfg(target_os = "linux")]
#[test]
fn a_failure_to_start_threads_is_an_error() {
    let mut command = std::process::Command::new("sh");
    let solve = "ulimit -v 1000000; exec \"$0\" cg --device cpu --threads 1024 --matrix poisson2d:9x9";
    command.args(["-c", solve]).arg(crate::common::process::program());
    let done = command.output().unwrap();
    let output = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{output}");
    assert!(output.starts_with("error: cannot start 1024 threads: "), "{output}");
    assert!(output.trim_end().ends_with("use fewer with --threads"), "{output}");
}

/// Prints results to a full disk and to a closed pipe.
#[cfg(target_os = "linux")]
#[test]
fn a_failure_to_print_is_an_error_except_for_a_closed_pipe() {
    use crate::common::process::{errors, solver};
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (history, picture, matrix) = (at("h.json"), at("p.svg"), at("m.mtx"));
    let solve = ["cg", "--device", "cpu", "--matrix", "poisson2d:9x9"];
    for args in [
        &[&solve[..], &["--history", &history]].concat()[..],
        &[&solve[..], &["--json"]].concat(),
        &[&solve[..], &["--dry-run"]].concat(),
        &["pagerank", "--device", "cpu", "--graph", "rmat:scale=5,factor=4"],
        &["pagerank", "--device", "cpu", "--graph", "rmat:scale=5,factor=4", "--json"],
        &["pagerank", "--device", "cpu", "--graph", "rmat:scale=5,factor=4", "--dry-run"],
        &["markov", "--device", "cpu", "--matrix", "blockband:n=60,block=5,density=0.3"],
        &["markov", "--device", "cpu", "--matrix", "blockband:n=60,block=5,density=0.3", "--json"],
        &["markov", "--device", "cpu", "--matrix", "blockband:n=60,block=5,density=0.3", "--dry-run"],
        &["info", "--matrix", "poisson2d:9x9"],
        &["info", "--matrix", "poisson2d:9x9", "--json"],
        &["convert", "poisson2d:9x9", &matrix],
        &["plot", &history, "-o", &picture],
        &["matrices"],
        &["matrices", "--json"],
        &["backends"],
        &["backends", "--json"],
        &["preconditioners"],
        &["preconditioners", "--json"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--version"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = solver().args(args).stdout(full).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
        assert!(
            errors(&done).contains("cannot write to standard output: No space left"),
            "{}",
            errors(&done)
        );
        let mut gone = solver().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(gone.stdout.take());
        let done = gone.wait_with_output().unwrap();
        assert!(!errors(&done).contains("standard output"), "{args:?}: {}", errors(&done));
        assert!(done.status.success(), "{args:?}: {}", errors(&done));
    }
    assert!(std::path::Path::new(&history).exists(), "files are still written");
}

/// The file of properties is mapped before the pipe is opened, and read after the pipe is closed.
#[cfg(target_os = "linux")]
#[test]
fn a_file_truncated_while_it_is_read_is_an_error() {
    use crate::common::process::{errors, file, solver, word};
    use std::io::Write;
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let mut text = "#BVGraph properties\ngraphclass = it.unimi.dsi.webgraph.BVGraph\n".to_owned();
    text.push_str(&"# nothing\n".repeat(400_000));
    text.push_str("nodes = 1\narcs = 0\n");
    let properties = file(&folder, "g.properties", &text);
    let pipe = folder.path().join("g.graph");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = solver();
    command.args(["info", "--matrix", word(&properties)]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Returns when the program opens the other end.
    let mut writer = std::fs::File::options().write(true).open(&pipe).unwrap();
    std::fs::File::options().write(true).open(&properties).unwrap().set_len(100).unwrap();
    writer.write_all(b"\xff").unwrap();
    drop(writer);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{:?}: {}", done.status, errors(&done));
    let message = errors(&done);
    assert!(message.contains("g.properties: it became shorter while it was read"), "{message}");
}
