//! Use of a catalog matrix by its name before it has been fetched.

use crate::catalog::{Run, text};
use crate::common::harness::skip;
use serde_json::Value;
use solver::device::cuda;
use std::net::TcpListener;
use std::process::Output;

fn errors(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn a_matrix_of_the_catalog_is_fetched_on_first_use_and_its_size_url_and_path_are_printed() {
    let run = Run::good();
    let done = run.run(&["cg", "1138_bus", "--device", "cpu", "--json"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", text(&done)));
    assert_eq!((report["matrix"].as_str(), report["converged"].as_bool()), (Some("1138_bus"), Some(true)));
    let stderr = errors(&done);
    let archive = run.folder.path().join("matrices/1138_bus.tar.gz");
    let parts =
        ["about 15.6 kB", &format!("{}/MM/HB/1138_bus.tar.gz", run.server.url), archive.to_str().unwrap()];
    assert!(parts.iter().all(|part| stderr.contains(part)), "{stderr}");
    assert!(archive.is_file());
    let requests = run.server.requests().len();
    for args in [&["info", "1138_bus"][..], &["cg", "1138_bus", "--device", "cpu"]] {
        let done = run.run(args);
        assert!(done.status.success() && errors(&done).is_empty(), "{}", text(&done));
    }
    assert_eq!(run.server.requests().len(), requests, "it is fetched once");
}

#[test]
fn every_command_that_reads_a_matrix_fetches_it() {
    for args in [
        &["info", "1138_bus"][..],
        &["cg", "1138_bus", "--device", "cpu"],
        &["minres", "1138_bus", "--device", "cpu"],
        &["markov", "1138_bus", "--device", "cpu", "--normalize"],
        &["pagerank", "1138_bus", "--device", "cpu"],
    ] {
        let run = Run::good();
        let done = run.run(args);
        assert!(!run.server.requests().is_empty(), "{args:?}: {}", text(&done));
        // The matrix has negative values, which PageRank and Markov chains refuse.
        let refused = text(&done).contains(" is -1");
        assert!(done.status.success() || refused, "{args:?}: {}", text(&done));
    }
}

#[test]
fn a_dry_run_prints_size_url_and_path_and_fetches_no_data() {
    let run = Run::good();
    for offline in [false, true] {
        let mut command = run.command(&["cg", "1138_bus", "--device", "cpu", "--dry-run"]);
        if offline {
            command.arg("--offline");
        }
        let done = command.output().unwrap();
        let plan = text(&done);
        let path = run.folder.path().join("matrices/1138_bus.tar.gz");
        let parts =
            ["about 15.6 kB", &format!("{}/MM/HB/1138_bus.tar.gz", run.server.url), path.to_str().unwrap()];
        assert!(done.status.success() && parts.iter().all(|part| plan.contains(part)), "{plan}");
        assert_eq!(plan.contains("--offline or SOLVER_OFFLINE forbids the download"), offline, "{plan}");
    }
    assert!(run.server.requests().is_empty());
    assert_eq!(std::fs::read_dir(run.folder.path()).unwrap().count(), 0);
}

#[test]
fn the_error_for_a_forbidden_download_names_the_size_and_the_alternatives() {
    let run = Run::good();
    for command in ["cg", "info"] {
        let by_option = run.refused(&[command, "F1", "--offline"]);
        let by_variable = run.command(&[command, "F1"]).env("SOLVER_OFFLINE", "1").output().unwrap();
        for message in [by_option, errors(&by_variable)] {
            let alternatives = [
                "343791 rows",
                "26837113 entries",
                "MB",
                "solver fetch F1",
                "the stand-in F1-like needs no download",
                "SOLVER_OFFLINE",
            ];
            assert!(alternatives.iter().all(|part| message.contains(part)), "{message}");
        }
    }
    assert!(run.server.requests().is_empty());
    let allowed = run.command(&["info", "1138_bus"]).env("SOLVER_OFFLINE", "0").output().unwrap();
    assert!(allowed.status.success(), "{}", text(&allowed));
}

#[test]
fn without_a_network_a_single_error_names_the_stand_in() {
    let run = Run::good();
    // A port on which no server listens any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = run.command(&["cg", "F1", "--device", "cpu"]);
    let done = command.env("SOLVER_MIRROR", format!("http://127.0.0.1:{port}")).output().unwrap();
    let stderr = errors(&done);
    assert_eq!(done.status.code(), Some(2), "{stderr}");
    let problems: Vec<_> = stderr.lines().filter(|line| !line.contains("; downloading")).collect();
    assert_eq!(problems.len(), 1, "{stderr}");
    let parts = ["no connection (is this machine online?)", "The stand-in F1-like needs no network"];
    assert!(parts.iter().all(|part| problems[0].contains(part)), "{stderr}");
}

#[test]
fn a_missing_gpu_is_an_error_before_any_download() {
    if cuda::usable(0).is_ok() {
        skip("there is a GPU");
    }
    let run = Run::good();
    let message = run.refused(&["cg", "1138_bus", "--backend", "hybrid"]);
    assert!(message.contains("the nearest backends are rows and merge: --backend rows"), "{message}");
    let message = run.refused(&["cg", "1138_bus", "--device", "cuda", "--backend", "bsr"]);
    assert!(message.contains("the nearest backend is bsr: --backend bsr --device cpu"), "{message}");
    assert!(run.server.requests().is_empty());
}
