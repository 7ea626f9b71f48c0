//! Studies by name and without tables, their plans, and records of two machines.

use crate::bench::{STUDY, json, masked, write};
use crate::common::process::{errors, run, solver, word};
use serde_json::Value;
use solver::bench::{Study, studies};
use std::fs;

#[test]
fn a_study_without_tables_has_the_times_by_matrix_and_backend() {
    let folder = tempfile::tempdir().unwrap();
    let sweeps = STUDY.split("[[table]]").next().unwrap().replace("threads = [1]", "threads = [1, 2]");
    let study = write(folder.path(), "small.toml", &sweeps);
    let done = run(&["bench", &study, "-o", folder.path().to_str().unwrap(), "--device", "cpu"]);
    let text = masked(&String::from_utf8_lossy(&done.stdout));
    let table = text.split("## sizes: time per product").nth(1).unwrap_or_else(|| panic!("{text}"));
    for line in [
        "**threads 2**",
        "| matrix | rows | sell |",
        "| poisson2d:20x20 | T | T |",
        "| poisson2d:30x30 | T | T |",
    ] {
        assert!(table.contains(line), "{line} is not in {text}");
    }
    assert!(table.contains("Values: time per product (µs)"), "{text}");
}

#[test]
fn a_study_of_the_project_is_found_by_its_name_in_any_folder_with_its_time_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let planned = |study: &str| {
        let done = solver().current_dir(folder.path()).args(["bench", study, "--dry-run"]).output().unwrap();
        assert!(done.status.success(), "{}", errors(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    let text = planned("serial-vs-cuda");
    assert!(text.starts_with("One thread per row against serial code"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // The largest matrix has half of 16,384 x 16,384 entries, of 12 bytes each.
    let line =
        |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("memory").contains("density:n=16384,sparsity=0.5 needs most"), "{text}");
    assert!(line("memory").contains("at most about 3.2"), "{text}");
    assert!(line("time").starts_with("time    about "), "{text}");
}

#[test]
fn every_study_of_the_project_can_be_planned_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<&str> = studies().collect();
    let arguments = [&["bench", "--dry-run"], &names[..]].concat();
    let done = solver().current_dir(folder.path()).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", errors(&done));
    let text = String::from_utf8(done.stdout).unwrap();
    for name in names {
        let title = Study::named(name).unwrap().unwrap().title;
        assert!(text.lines().any(|line| line.starts_with(&format!("{title}: "))), "{name}: {text}");
    }
}

#[test]
fn a_plan_refuses_a_matrix_that_no_generator_makes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, fault) in [("poison2d:20x20", "poisson2d"), ("poisson2d:0x20", "poisson2d:0x20")] {
        let text = format!(
            "title = \"Wrong\"\n[[sweep]]\nname = \"one\"\nmatrix = [\"{name}\"]\nbackend = [\"rows\"]\n"
        );
        let study = write(folder.path(), "wrong.toml", &text);
        let done = run(&["bench", &study, "--dry-run"]);
        assert_eq!(done.status.code(), Some(2), "{name}: {}", String::from_utf8_lossy(&done.stdout));
        assert!(errors(&done).contains(fault), "{}", errors(&done));
    }
}

/// Solves with two preconditioners, and one that ends at its limit.
const SOLVES: &str = r#"
title = "Solves"

[[sweep]]
name = "cg"
what = "cg"
matrix = ["poisson2d:20x20"]
precond = "{precond}"
vary = { precond = ["none", "jacobi", "ssor"] }
tolerance = 1e-8
protocol = { samples = 2 }

[[sweep]]
name = "minres"
what = "minres"
matrix = ["poisson2d:20x20", "poisson2d:6x6"]
max_iters = 20
protocol = { samples = 1 }

[[table]]
title = "Iterations"
sweep = ["cg"]
rows = "matrix"
columns = "precond"
value = "iterations"

[[table]]
title = "Limited"
sweep = ["minres"]
rows = "matrix"
values = ["iterations", "bytes", "total"]
"#;

#[test]
fn a_study_varies_the_preconditioner_and_a_solve_at_its_limit_has_only_the_time_of_an_iteration() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "solves.toml", SOLVES);
    let done = run(&["bench", &study, "-o", word(folder.path())]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let record = json(&folder.path().join("solves.json"));
    let [none, jacobi, ssor, limited, whole] = record["rows"].as_array().unwrap().as_slice() else {
        panic!("{record}")
    };
    for (row, precond) in [(none, "none"), (jacobi, "jacobi"), (ssor, "ssor")] {
        assert_eq!(row["vary"]["precond"], precond);
        assert!(row["converged"] == true && row["total_seconds"].is_f64(), "{row}");
    }
    assert!(ssor["iterations"].as_u64() < none["iterations"].as_u64(), "{record}");
    // Neither a failure nor a whole solve.
    assert!(limited["error"].is_null() && limited["total_seconds"].is_null(), "{limited}");
    assert!(limited["converged"] == false && limited["iterations"] == 20, "{limited}");
    assert!(limited["seconds"]["median"].as_f64().unwrap() > 0.0, "{limited}");
    assert!(whole["converged"] == true && whole["total_seconds"].is_f64(), "{whole}");
    let text = fs::read_to_string(folder.path().join("solves.md")).unwrap();
    for line in ["| matrix | none | jacobi | ssor |", "bytes per iteration (MB)", "| poisson2d:20x20 | - | "]
    {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn files_of_real_matrices_are_found_by_name_and_the_record_names_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let header = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4\n";
    write(&data, "good.mtx", &format!("{header}2 2 4\n"));
    write(&data, "bad.mtx", &format!("{header}2 2 nan\n"));
    let sweep = "name = \"real\"\nwhat = \"cg\"\nmatrix = [\"good.mtx | poisson2d:3x3\", \"bad.mtx\"]\n";
    let study = write(folder.path(), "real.toml", &format!("title = \"Real\"\n[[sweep]]\n{sweep}"));
    let out = folder.path().join("out");
    let measured = |data: &str| {
        let done = solver()
            .env("SOLVER_REAL_DATA", data)
            .args(["bench", &study, "-o", word(&out), "--afresh"])
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        fs::read_to_string(out.join("real.json")).unwrap()
    };
    let text = measured(word(&data));
    assert!(!text.contains(word(&data)), "{text}");
    let record: Value = serde_json::from_str(&text).unwrap();
    let [good, bad] = record["rows"].as_array().unwrap().as_slice() else { panic!("{record}") };
    assert!(good["measured"] == "good.mtx" && good["converged"] == true, "{good}");
    assert!(bad["error"].as_str().unwrap().contains("bad.mtx:4:"), "{bad}");
    // Without the folder the stand-in is measured.
    assert!(measured("").contains("\"measured\":\"poisson2d:3x3\""));
}

#[test]
fn records_of_two_machines_are_compared_by_matrix_and_method() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let out = folder.path().join("out");
    run(&["bench", &study, "-o", out.to_str().unwrap(), "--device", "cpu"]);
    let first = out.join("small.json");
    // The tables of a record need no study.
    let again = folder.path().join("again");
    fs::create_dir(&again).unwrap();
    let done = run(&["bench", "--from", first.to_str().unwrap(), "-o", again.to_str().unwrap()]);
    assert!(done.status.success() && again.join("small.md").exists(), "{}", errors(&done));
    let compared = |change: &dyn Fn(&mut Value)| {
        let mut record = json(&first);
        record["rows"].as_array_mut().unwrap().iter_mut().for_each(change);
        let second = write(folder.path(), "second.json", &record.to_string());
        let done = run(&["bench", "--compare", first.to_str().unwrap(), &second]);
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let (code, text) = compared(&|row| {
        row["sweep"] = "gpu".into();
        row["device"] = "cuda".into();
        row["threads"] = Value::Null;
    });
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("4 cases in both, 0 moved beyond noise; 4 on other devices"), "{text}");
    let (code, text) = compared(&|row| {
        if row["backend"] == "rows" {
            row["backend"] = "csr".into();
        }
        row["measured"] = row["measured"].as_str().unwrap().replace("30", "40").into();
    });
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 case in both") && text.contains("only in the first: 3 cases"), "{text}");
    for (cases, why) in [
        (1, "the other record does not have the method rows"),
        (2, "has poisson2d:40x40 instead of poisson2d:30x30"),
    ] {
        let line = text.lines().find(|line| line.contains(why)).unwrap_or_else(|| panic!("{why}: {text}"));
        assert_eq!(line.split_whitespace().next(), Some(cases.to_string().as_str()), "{text}");
    }
    let (code, text) = compared(&|row| row["precision"] = "f32".into());
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("0 cases in both") && text.contains("does not have poisson2d:20x20 in f64"),
        "{text}"
    );
}

#[test]
fn a_plan_counts_what_the_run_would_keep() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let out = folder.path().join("out");
    let with = |more: &[&str]| run(&[&["bench", &study, "-o", word(&out), "--device", "cpu"], more].concat());
    let planned = |more: &[&str]| {
        let done = with(&[&["--dry-run"], more].concat());
        (done.status.code(), [String::from_utf8_lossy(&done.stdout).as_ref(), &errors(&done)].concat())
    };
    with(&[]);
    let (_, text) = planned(&[]);
    assert!(text.contains("4 cases in the record already"), "{text}");
    // A failed case is measured again on request.
    let file = out.join("small.json");
    let mut record = json(&file);
    record["rows"][0]["error"] = "it failed".into();
    fs::write(&file, record.to_string()).unwrap();
    assert!(planned(&[]).1.contains("4 cases in the record already"));
    let (_, text) = planned(&["--retry"]);
    assert!(text.contains("3 cases in the record already"), "{text}");
    assert!(!planned(&["--afresh"]).1.contains("in the record already"));
    // A record of another machine is refused, as by the run.
    record["machine"]["cores"] = 999.into();
    fs::write(&file, record.to_string()).unwrap();
    let (code, text) = planned(&[]);
    assert!(code == Some(2) && text.contains("measurements of another machine"), "{text}");
}
