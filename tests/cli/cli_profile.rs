//! `--profile`: wall time by phase, and the same phases as NVTX ranges for a profiler.

use crate::common::harness::{present, skip};
use crate::common::process::{cg, errors, program, project, run, solve, solver, word};
use serde_json::Value;
use solver::device::cuda;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// A short solve by each method.
const SOLVES: [[&str; 2]; 4] = [
    ["cg", "poisson2d:30x30"],
    ["minres", "poisson2d:20x20,boundary=neumann"],
    ["pagerank", "rmat:scale=8,factor=8"],
    ["markov", "blockband:n=600,block=5,density=0.05"],
];

/// Phases that every solve on the CPU enters.
const ALWAYS: [&str; 6] = ["read", "open", "analyse", "build", "iterate", "verify"];

fn printed(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// Returns the table of a printed report: phase, seconds and percent of each line.
fn table(text: &str) -> Vec<(String, f64, f64)> {
    let lines = text.lines().skip_while(|line| !line.starts_with("profile"));
    let row = |line: &str| {
        let words: Vec<&str> = line.trim_start_matches("profile").split_whitespace().collect();
        let [phase, seconds, "s", percent, "%"] = words[..] else { panic!("'{line}' of {text}") };
        (phase.to_owned(), seconds.parse().unwrap(), percent.parse().unwrap())
    };
    lines.map(row).collect()
}

/// Checks that the phases of a JSON report add up to the total.
fn check_sum(profile: &Value) {
    let phases = profile.as_object().unwrap();
    let seconds = |name: &str| phases[name].as_f64().unwrap();
    let sum: f64 = phases.keys().filter(|name| *name != "total").map(|name| seconds(name)).sum();
    assert!(phases.keys().all(|name| seconds(name) >= 0.0), "{profile}");
    assert!((sum - seconds("total")).abs() < 1e-9, "{sum} is not the total of {profile}");
}

#[test]
fn the_total_time_covers_its_parts_and_fits_in_the_time_of_the_process() {
    for [method, matrix] in SOLVES {
        let began = Instant::now();
        let done = run(&[method, matrix, "--device", "cpu", "--json"]);
        let wall = began.elapsed().as_secs_f64();
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let seconds = |key: &str| report.get(key).map_or(0.0, |seconds| seconds.as_f64().unwrap());
        let parts = ["seconds_load", "seconds_setup", "seconds_solve", "seconds_certify"].map(seconds);
        let total = report["seconds_total"].as_f64().unwrap();
        assert!(parts.iter().sum::<f64>() <= total && total <= wall, "{total} of {wall}: {report}");
    }
}

#[test]
fn the_line_of_the_time_has_the_total_and_its_parts() {
    for [method, matrix] in SOLVES {
        let text = printed(&run(&[method, matrix, "--device", "cpu"]));
        let words: Vec<&str> = text.split_whitespace().skip_while(|word| *word != "time").collect();
        let at = |part: &str| words.iter().position(|word| *word == part);
        assert!(at("load") < at("setup") && at("setup") < at("iterations") && at("load").is_some(), "{text}");
    }
}

#[test]
fn the_table_of_every_method_has_rows_that_add_up_to_the_total() {
    for [method, matrix] in SOLVES {
        let text = printed(&run(&[method, matrix, "--device", "cpu", "--profile"]));
        let rows = table(&text);
        let names: Vec<&str> = rows.iter().map(|row| &*row.0).collect();
        assert_eq!(names[names.len() - 2..], ["other", "total"], "{text}");
        let (_, total, percent) = rows[rows.len() - 1];
        let parts = &rows[..rows.len() - 1];
        let [seconds, share] = [|row: &(String, f64, f64)| row.1, |row: &(String, f64, f64)| row.2]
            .map(|number| parts.iter().map(number).sum::<f64>());
        // Each row is rounded, and phases shorter than the last digit are left out.
        assert!((seconds - total).abs() < 0.0012 && (share - 100.0).abs() < 3.0, "{text}");
        assert_eq!(percent, 100.0);
    }
}

#[test]
fn json_has_the_seconds_of_every_phase_only_with_the_option() {
    for [method, matrix] in SOLVES {
        let (code, report) = solve(method, &[matrix, "--profile"]);
        assert_eq!(code, 0);
        check_sum(&report["profile"]);
        for phase in ALWAYS {
            assert!(report["profile"][phase].as_f64().unwrap() > 0.0, "{method}: {phase} of {report}");
        }
        assert_eq!(report["profile"]["upload"].as_f64(), Some(0.0));
        assert_eq!(report["profile"]["compile"].as_f64(), Some(0.0));
        assert_eq!(solve(method, &[matrix]).1.get("profile"), None);
    }
}

#[test]
fn a_report_without_the_option_has_no_table() {
    for [method, matrix] in SOLVES {
        let text = printed(&run(&[method, matrix, "--device", "cpu"]));
        assert!(!text.contains("profile"), "{text}");
    }
}

#[test]
fn a_solve_that_does_not_converge_prints_the_table() {
    let done = run(&["cg", "poisson2d:30x30", "--device", "cpu", "--max-iters", "3", "--profile"]);
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    assert!(table(&printed(&done)).iter().any(|row| row.0 == "iterate"), "{}", printed(&done));
}

#[test]
fn the_iterations_and_the_written_files_have_their_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let [x, history, plot, checkpoint] =
        ["x.npy", "h.json", "p.svg", "c.ckpt"].map(|name| folder.path().join(name));
    let files = ["--output", word(&x), "--history", word(&history), "--plot", word(&plot)];
    let saves = ["--checkpoint", word(&checkpoint), "--checkpoint-every", "0s"];
    let (_, report) = cg(&[&["poisson2d:60x60", "--profile"], &files[..], &saves].concat());
    check_sum(&report["profile"]);
    let seconds = |key: &str| report["profile"][key].as_f64().unwrap();
    assert!(seconds("write") > 0.0);
    // The clock of the iterations also runs while a checkpoint is written.
    let solve = report["seconds_solve"].as_f64().unwrap();
    assert!(seconds("iterate") <= solve + 0.01 && solve <= seconds("total"), "{report}");
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(history).unwrap()).unwrap();
    check_sum(&saved["report"]["profile"]);
}

#[test]
fn a_configuration_file_turns_the_profile_on_and_the_command_line_turns_it_off() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("run.toml");
    std::fs::write(&config, "profile = true\n").unwrap();
    let options = ["poisson2d:30x30", "--config", word(&config)];
    check_sum(&cg(&options).1["profile"]);
    assert_eq!(cg(&[&options[..], &["--profile=false"]].concat()).1.get("profile"), None);
}

#[test]
fn a_gpu_has_time_for_uploads_and_for_compiling_and_the_phases_add_up() {
    present("SOLVER_REQUIRE_GPU", cuda::usable(0));
    let cache = tempfile::tempdir().unwrap();
    for [method, matrix] in SOLVES {
        let options = ["--device", "cuda", "--json", "--profile", "--cache", word(cache.path())];
        let done = run(&[&[method, matrix], &options[..]].concat());
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        check_sum(&report["profile"]);
        for phase in [&ALWAYS[..], &["upload", "compile"]].concat() {
            assert!(report["profile"][phase].as_f64().unwrap() > 0.0, "{method}: {phase} of {report}");
        }
    }
}

/// Compiles the profiler of `nvtx_recorder.c`. Skips the test if there is no C compiler.
fn recorder(folder: &Path) -> PathBuf {
    let library = folder.join("librecorder.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(project("tests/cli/nvtx_recorder.c"));
    match command.output() {
        Err(e) => skip(format!("the C compiler does not run: {e}")),
        Ok(done) => assert!(done.status.success(), "{}", errors(&done)),
    }
    library
}

#[test]
fn a_profiler_gets_the_phases_and_batches_in_order_and_every_range_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (library, record) = (recorder(folder.path()), folder.path().join("ranges"));
    for [method, matrix] in SOLVES {
        let mut command = Command::new(program());
        command.args([method, matrix, "--device", "cpu"]).env("SOLVER_OFFLINE", "1");
        let done =
            command.env("NVTX_INJECTION64_PATH", &library).env("NVTX_RECORD", &record).output().unwrap();
        assert_eq!(errors(&done), "");
        let text = std::fs::read_to_string(&record).unwrap();
        let (mut open, mut entered) = (Vec::new(), Vec::new());
        for event in text.lines() {
            match event.strip_prefix("push ") {
                None => assert!(open.pop().is_some(), "a range ends that did not begin: {text}"),
                Some(name) if name.contains(" iteration") => {
                    assert_eq!(open.last(), Some(&"iterate"), "{text}");
                    open.push(name);
                }
                Some(name) => {
                    open.push(name);
                    if !entered.contains(&name) {
                        entered.push(name);
                    }
                }
            }
        }
        assert!(open.is_empty(), "{open:?} did not end");
        entered.retain(|name| ALWAYS.contains(name));
        let first = |name: &str| entered.iter().position(|phase| *phase == name);
        assert_eq!(entered.len(), ALWAYS.len(), "{method}: {entered:?}");
        assert!(first("read") < first("build") && first("build") < first("iterate"), "{method}: {entered:?}");
        assert!(first("iterate") < first("verify"), "{method}: {entered:?}");
        assert!(text.contains(" iterations\npop\n") || text.contains("1 iteration\npop\n"), "{text}");
    }
}

#[test]
fn a_profiler_library_that_cannot_be_loaded_is_a_warning() {
    let mut command = solver();
    command.args(["cg", "poisson2d:30x30", "--device", "cpu"]);
    let done = command.env("NVTX_INJECTION64_PATH", "/no/such/library.so").output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    let text = errors(&done);
    assert!(text.contains("NVTX_INJECTION64_PATH names /no/such/library.so, but"), "{text}");
}
