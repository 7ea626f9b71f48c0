//! Output and exit codes of the commands that do not solve.

#[cfg(not(feature = "mpi"))]
use crate::common::process::solver as program;
use crate::common::process::{NONSYMMETRIC, cg, errors, file, refused, run, word};
use serde_json::Value;
use std::process::Output;

#[test]
fn info_describes_a_matrix_in_json() {
    let done = run(&["info", "--matrix", "poisson2d:7x5", "--json"]);
    let info: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((info["rows"].as_u64(), info["cols"].as_u64()), (Some(35), Some(35)));
    assert_eq!(info["nnz"], 35 + 2 * (6 * 5 + 7 * 4));
    assert_eq!(info["nnz_stored"], info["nnz"]);
    assert_eq!(info["symmetric"], true);
    assert_eq!((info["row_length"]["min"].as_u64(), info["row_length"]["max"].as_u64()), (Some(3), Some(5)));
    assert!(info["row_length"]["mean"].as_f64().unwrap() > 4.0);
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "n.mtx", NONSYMMETRIC);
    let done = run(&["info", "--matrix", word(&path)]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("no: a(2,3) = 1 but a(3,2) = 2"), "{text}");
}

#[test]
fn backends_lists_the_registry() {
    let done = run(&["backends", "--json"]);
    let rows: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(rows.len(), solver::backend::REGISTRY.len());
    for (row, entry) in rows.iter().zip(solver::backend::REGISTRY) {
        assert_eq!(row["name"], entry.name);
        assert_eq!(row["device"], entry.device());
        assert_eq!(row["deterministic"], entry.deterministic);
        assert!(row["format"].is_string() && row["summary"].is_string());
    }
    let text = |args: &[&str]| String::from_utf8_lossy(&run(args).stdout).into_owned();
    let (few, all) = (text(&["backends"]), text(&["backends", "--all"]));
    for entry in solver::backend::REGISTRY {
        let line = format!("  {} ", entry.name);
        assert!(all.contains(&line), "{line}: {all}");
        if solver::backend::recommended(entry) {
            assert!(few.contains(&line), "{line}: {few}");
        }
        let one = text(&["backends", entry.name]);
        assert!(one.contains(entry.format) && one.contains(entry.summary), "{one}");
        let parameter = |p: &solver::params::Param| one.contains(&format!("{}:{}=", entry.name, p.name));
        assert!(entry.params.iter().all(parameter), "{one}");
    }
    assert!(!few.contains("  thread-v1 "), "{few}");
    assert!(refused(&["backends", "hybird"]).contains("did you mean hybrid"));
}

#[test]
fn lists_fit_the_width_of_the_terminal() {
    for columns in [80, 100] {
        for args in
            [&["backends"][..], &["backends", "--all"], &["backends", "hybrid"], &["matrices"], &["doctor"]]
        {
            let done = crate::common::process::solver()
                .args(args)
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            // A long path is not broken; it has a separate line.
            let long = |line: &&str| line.chars().count() > columns && line.trim().contains(' ');
            assert_eq!(text.lines().find(long), None, "{args:?}, {columns}");
        }
    }
}

#[test]
fn doctor_tests_every_backend_of_the_cpu() {
    let done = run(&["doctor", "--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let findings: Vec<Value> = serde_json::from_slice(&done.stdout).unwrap();
    let backends = solver::backend::REGISTRY.iter().filter(|entry| entry.device() == "cpu");
    for name in backends.map(|entry| format!("cpu {}", entry.name)) {
        assert!(findings.iter().any(|f| f["what"] == name && f["state"] == "ok"), "{name}: {findings:?}");
    }
    for name in ["driver", "nvrtc", "cusparse", "cublas", "kernel cache"] {
        assert!(findings.iter().any(|f| f["what"] == name), "{name}: {findings:?}");
    }
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .map_while(|line| line.strip_prefix("  "))
        // Lines with more indentation continue the previous one.
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.contains(&"cg") && commands.contains(&"man"), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&["man", "--output", word(folder.path())]).status.code(), Some(0));
    let page = String::from_utf8(run(&["man"]).stdout).unwrap();
    for command in commands {
        assert!(page.contains(&format!("solver\\-{command}")), "{command} in {page}");
        let own = std::fs::read_to_string(folder.path().join(format!("solver-{command}.1"))).unwrap();
        assert!(own.contains(".SH SYNOPSIS"), "{command}");
        for shell in ["bash", "zsh", "fish"] {
            let script = String::from_utf8(run(&["completions", shell]).stdout).unwrap();
            assert!(script.contains(command), "{command} in {shell}");
        }
    }
}

#[test]
fn quiet_silences_warnings_but_not_errors_or_results() {
    let done = run(&["--quiet", "cg", "--device", "cpu", "--matrix", "poisson2d:30x30"]);
    assert_eq!((done.status.code(), errors(&done).as_str()), (Some(0), ""));
    assert!(!done.stdout.is_empty());
    assert!(refused(&["-q", "info", "--matrix", "nonesuch"]).contains("nonesuch"));
}

#[test]
fn quiet_overrides_rust_log() {
    let mut command = crate::common::process::solver();
    command.args(["--quiet", "cg", "--device", "cpu", "--matrix", "poisson2d:30x30"]);
    let loud = command.env("RUST_LOG", "info").output().unwrap();
    let silent = command.env("RUST_LOG", "error").output().unwrap();
    assert_eq!(errors(&loud), "");
    let lines = |done: &Output| String::from_utf8_lossy(&done.stdout).lines().count();
    assert_eq!(lines(&loud), lines(&silent));
}

#[test]
fn a_stand_in_is_labelled_as_one_when_solved_or_written() {
    let what = ["--matrix", "crankseg_1-like:scale=0.001", "--device", "cpu", "--max-iters", "3"];
    let text = run(&[&["cg"], &what[..]].concat());
    assert!(String::from_utf8_lossy(&text.stdout).contains("a stand-in for GHS_psdef/crankseg_1"));
    let (_, report) = cg(&what);
    assert_eq!(report["stand_in"], "GHS_psdef/crankseg_1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx");
    let written = run(&["convert", what[1], word(&path)]);
    assert!(String::from_utf8_lossy(&written.stdout).contains("a stand-in for GHS_psdef/crankseg_1"));
}

#[test]
fn help_and_preconditioners_list_the_preconditioners_with_their_parameters() {
    let names = solver::precond::ROWS.iter().map(|row| row.name);
    let listed: Value = serde_json::from_slice(&run(&["preconditioners", "--json"]).stdout).unwrap();
    let found: Vec<_> = listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(found, names.collect::<Vec<_>>());
    for args in [&["cg", "--help"][..], &["minres", "--help"], &["preconditioners"]] {
        let text = String::from_utf8(run(args).stdout).unwrap();
        for words in ["  block-jacobi ", ":block=B", "  chebyshev ", ":degree=4", ":ratio=30"] {
            assert!(text.contains(words), "{args:?}: {words}: {text}");
        }
    }
    let script = String::from_utf8(run(&["completions", "bash"]).stdout).unwrap();
    assert!(script.contains("jacobi block-jacobi chebyshev"), "shells complete names");
}

#[test]
fn an_unknown_preconditioner_is_rejected_with_the_existing_ones() {
    let message = refused(&["cg", "--matrix", "poisson2d:9x9", "--precond", "jacoby"]);
    assert!(message.contains("jacoby") && message.contains("block-jacobi, chebyshev"), "{message}");
    let message = refused(&["cg", "--matrix", "poisson2d:9x9", "--precond", "block-jacobi:block=1"]);
    assert!(message.contains("from 2 to 256"), "{message}");
}

#[test]
fn the_report_names_the_chosen_block_size() {
    let (code, report) =
        cg(&["--matrix", "elasticity3d:6x5x4,contrast=100,seed=2", "--precond", "block-jacobi"]);
    assert_eq!((code, &report["preconditioner"]), (0, &Value::from("block-jacobi:block=3")));
    let (code, report) = cg(&["--matrix", "poisson2d:30x30", "--precond", "chebyshev:degree=6"]);
    assert_eq!((code, &report["preconditioner"]), (0, &Value::from("chebyshev:degree=6,ratio=30")));
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_refuses_to_solve_one_system_in_each_of_several_processes() {
    let with = |size: &str, rank: &str, more: &[&str]| {
        let mut command = program();
        command.args(["cg", "poisson2d:5x5"]).args(more);
        command.env("OMPI_COMM_WORLD_SIZE", size).env("OMPI_COMM_WORLD_RANK", rank).output().unwrap()
    };
    for more in [&[][..], &["--quiet"]] {
        let (first, second) = (with("2", "0", more), with("2", "1", more));
        assert_eq!((first.status.code(), second.status.code()), (Some(2), Some(2)));
        let message = errors(&first);
        assert!(message.contains("started 2 processes") && message.contains("--features mpi"), "{message}");
        assert!(first.stdout.is_empty() && second.stdout.is_empty() && second.stderr.is_empty());
    }
    assert!(with("1", "0", &[]).status.success(), "one process needs no MPI");
    assert!(with("2", "0", &["--help"]).status.success(), "help solves nothing");
}
