//! Runs of `solver bench` that continue, are interrupted, or leave cases out.

use crate::bench::{STUDY, json, masked, write};
use crate::common::process::{errors, run, solver, word};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A time that no measurement gives.
const MARK: f64 = 123.0;

/// Gives every row of a record the time of the mark.
fn mark(record: &Path) {
    let mut marked = json(record);
    for row in marked["rows"].as_array_mut().unwrap() {
        row["seconds"]["min"] = MARK.into();
    }
    fs::write(record, marked.to_string()).unwrap();
}

fn rows(record: &Path) -> Vec<Value> {
    json(record)["rows"].as_array().unwrap().clone()
}

/// Returns the numbers of rows that are marked and that are not.
fn marked(record: &Path) -> (usize, usize) {
    let all = rows(record);
    let old = all.iter().filter(|row| row["seconds"]["min"] == MARK).count();
    (old, all.len() - old)
}

#[test]
fn the_tables_of_a_small_study_are_these() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let done = run(&["bench", &study, "-o", word(folder.path()), "--device", "cpu"]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let text = masked(&fs::read_to_string(folder.path().join("small.md")).unwrap());
    // Which backend is the faster one differs from run to run.
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("- 20: the best here")).collect();
    let text = text.join("\n").replace("\nWhere the order differs from the study's:\n\n", "");
    let expected = "\
# A small study

Two backends.

Measured on M

## Times

Values: time per product (ms). In brackets: the study, on an abacus.

| n | rows | sell |
|---|--:|--:|
| 20 | T (7) | T (9) |
| 30 | T | T |

## Speed-up

Values: speed-up over rows.

| n | sell |
|---|--:|
| 20 | T |
| 30 | T |

## Left out

- cases on a GPU of sweep gpu: cases of other devices were not asked for

## Figures

![Times](small-1.svg)
";
    assert_eq!(text, expected.trim_end());
}

#[test]
fn a_changed_study_keeps_the_cases_that_it_measures_in_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    let (out, record) = (folder.path().join("out"), folder.path().join("out/small.json"));
    let measure = |text: &str| {
        let study = write(folder.path(), "small.toml", text);
        let done = run(&["bench", &study, "-o", word(&out), "--device", "cpu", "--no-tables"]);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        errors(&done)
    };
    measure(STUDY);
    mark(&record);
    // Titles, tables and the statistic of the tables show the same measurements.
    let shown = STUDY.replace("A small study", "Another title").replace("Two backends", "Both backends");
    let shown = shown.replace("title = \"Times\"", "title = \"Seconds\"").replace("\"min\" }", "\"mean\" }");
    assert_eq!((measure(&shown).as_str(), marked(&record)), ("", (4, 0)));
    assert_eq!(json(&record)["study"]["title"], "Another title");
    // A record of an earlier version, without the schema.
    let mut old = json(&record);
    old.as_object_mut().unwrap().remove("schema");
    fs::write(&record, old.to_string()).unwrap();
    assert_eq!((measure(STUDY).as_str(), marked(&record)), ("", (4, 0)));
    // A backend less, and one more.
    let other = STUDY.replace("\"rows\", \"sell\"", "\"rows\", \"merge\"");
    let other = other.replace("where = { backend = \"sell\" }", "");
    let note = measure(&other);
    assert!(
        note.contains("2 of the measured cases of sweep sizes are dropped: the study has no such cases"),
        "{note}"
    );
    assert_eq!(marked(&record), (2, 2));
    assert!(rows(&record).iter().all(|row| row["backend"] != "sell"));
    // Another protocol.
    mark(&record);
    let note = measure(&other.replace("samples = 3", "samples = 4"));
    assert!(
        note.contains("4 of the measured cases of sweep sizes are dropped: the study measures them in"),
        "{note}"
    );
    assert_eq!(marked(&record), (0, 4));
    assert!(rows(&record).iter().all(|row| row["seconds"]["samples"] == 4));
}

#[test]
fn tables_from_a_record_leave_out_what_the_study_measures_in_another_way() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    run(&["bench", &study, "-o", word(folder.path()), "--device", "cpu"]);
    let record = folder.path().join("small.json");
    let other = STUDY.replace("rounds = 1", "rounds = 2");
    let other = write(folder.path(), "other.toml", &other);
    let done = run(&["bench", &other, "--from", word(&record), "-o", word(folder.path())]);
    assert!(
        errors(&done).contains("4 of the measured cases of sweep sizes are dropped"),
        "{}",
        errors(&done)
    );
    assert_eq!(done.status.code(), Some(1), "no case is left");
    // The comparison names such sweeps.
    run(&["bench", &other, "-o", word(folder.path()), "--device", "cpu"]);
    let done = run(&["bench", "--compare", word(&record), word(&folder.path().join("other.json"))]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        text.contains("Measured in different ways: sweeps sizes.") && text.contains("4 cases in both"),
        "{text}"
    );
}

#[test]
fn a_matrix_that_is_here_now_is_measured_instead_of_its_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real.mtx");
    let study = STUDY
        .replace(
            "\"poisson2d:{n}x{n}\"",
            &format!("\"{} | poisson2d:20x20\", \"poisson2d:{{n}}x{{n}}\"", real.display()),
        )
        .replace("\"rows\", \"sell\"", "\"rows\"")
        .replace("where = { backend = \"sell\" }", "");
    let study = write(folder.path(), "small.toml", &study);
    let arguments = ["bench", &study, "-o", word(folder.path()), "--device", "cpu", "--no-tables"];
    let record = folder.path().join("small.json");
    let measured =
        || rows(&record).iter().map(|row| row["measured"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    run(&arguments);
    assert_eq!(measured(), ["poisson2d:20x20", "poisson2d:20x20", "poisson2d:30x30"]);
    let before = write(folder.path(), "before.json", &fs::read_to_string(&record).unwrap());
    mark(&record);
    let matrix = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n";
    fs::write(&real, matrix).unwrap();
    let done = run(&arguments);
    assert!(
        errors(&done).contains("1 of the measured cases of sweep sizes are dropped"),
        "{}",
        errors(&done)
    );
    assert_eq!(measured(), [word(&real), "poisson2d:20x20", "poisson2d:30x30"]);
    assert_eq!(marked(&record), (2, 1));
    // The stand-in and the real matrix are different cases.
    let done = run(&["bench", "--compare", &before, word(&record)]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("2 cases in both") && text.contains("only in the first: 1 case\n"), "{text}");
    assert!(text.contains("instead of poisson2d:20x20"), "{text}");
}

#[test]
fn cases_that_were_not_asked_for_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let study = STUDY.replacen("[[table]]", "[[sweep]]\nname = \"more\"\nmatrix = [\"poisson2d:9x9\"]\nprotocol = { rounds = 1 }\n\n[[table]]\ntitle = \"More\"\nsweep = [\"more\"]\nrows = \"matrix\"\ncolumns = \"backend\"\n\n[[table]]", 1);
    let study = write(folder.path(), "small.toml", &study);
    let tables = |arguments: &[&str]| {
        run(&[&["bench", &study, "-o", word(folder.path())], arguments].concat());
        fs::read_to_string(folder.path().join("small.md")).unwrap()
    };
    let text = tables(&["--only", "sizes"]);
    for line in [
        "- cases on a GPU of sweep gpu: only other sweeps were asked for\n",
        "- cases on the CPU of sweep more: only other sweeps were asked for\n",
        "Not measured in this record: only other sweeps were asked for.\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("of sweep sizes:"), "{text}");
    let text = tables(&["--device", "cuda", "--only", "gpu", "--afresh"]);
    assert!(text.contains("- cases on the CPU of sweep sizes: only other sweeps were asked for\n"), "{text}");
    let text = tables(&["--device", "cuda"]);
    assert!(
        text.contains("- cases on the CPU of sweep sizes: cases of other devices were not asked for\n"),
        "{text}"
    );
    // What an earlier run has measured is not left out.
    let text = tables(&["--device", "cpu"]);
    assert!(!text.contains("cases on the CPU"), "{text}");
}

#[test]
fn auto_is_the_choice_of_the_model_whatever_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cached = |arguments: &[&str]| {
        let done =
            solver().env("SOLVER_CACHE", folder.path().join("cache")).args(arguments).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", errors(&done));
        String::from_utf8(done.stdout).unwrap()
    };
    let one = ["poisson2d:60x60", "--device", "cpu", "--threads", "1", "--json"];
    let with = |command: &str, more: &[&str]| -> Value {
        serde_json::from_str(&cached(&[&[command], &one[..], more].concat())).unwrap()
    };
    let model = with("cg", &[])["backend"].clone();
    let kept = if model == "rows" { "sell" } else { "rows" };
    with("tune", &["--backend", kept, "--time-limit", "0.01"]);
    // The winner depends on the machine, and on its load.
    let choices = folder.path().join("cache/choices");
    let choice = fs::read_dir(choices).unwrap().next().unwrap().unwrap().path();
    let mut tuned = json(&choice);
    tuned["tuning"]["winner"] = kept.into();
    fs::write(&choice, tuned.to_string()).unwrap();
    assert_eq!(with("cg", &[])["backend"], kept, "solves use the kept choice");
    let study = "title = \"auto\"\n\
        [[sweep]]\nname = \"solve\"\nwhat = \"cg\"\nmatrix = [\"poisson2d:60x60\"]\nthreads = [1]\nprotocol = { samples = 1 }\n\
        [[sweep]]\nname = \"product\"\nmatrix = [\"poisson2d:60x60\"]\nthreads = [1]\nprotocol = { rounds = 1 }\n\
        [[sweep]]\nname = \"ranks\"\nwhat = \"pagerank\"\nmatrix = [\"rmat:scale=8,factor=4\"]\nthreads = [1]\nprotocol = { samples = 1 }\n";
    let study = write(folder.path(), "auto.toml", study);
    cached(&["bench", &study, "-o", word(folder.path()), "--no-tables"]);
    let labels: Vec<Value> =
        rows(&folder.path().join("auto.json")).iter().map(|row| row["label"].clone()).collect();
    assert_eq!(labels[..2], [model.clone(), model.clone()]);
    assert!(labels[2].as_str().is_some_and(|label| !label.is_empty() && label != "auto"), "{labels:?}");
    assert_eq!(with("spmv", &["--backend", "auto", "--rounds", "1"])["rows"][0]["label"], model);
}

#[test]
fn an_interrupted_study_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let study = write(folder.path(), "small.toml", STUDY);
    let out = folder.path().join("out");
    let arguments = ["bench", &study, "-o", word(&out), "--device", "cpu", "--no-tables"];
    run(&arguments);
    let record = out.join("small.json");
    mark(&record);
    // One case is lost.
    let mut cut = json(&record);
    cut["rows"].as_array_mut().unwrap().pop();
    fs::write(&record, cut.to_string()).unwrap();
    run(&arguments);
    assert_eq!(marked(&record), (3, 1));
    run(&[&arguments[..], &["--afresh"]].concat());
    assert_eq!(marked(&record), (0, 4));
}

#[cfg(unix)]
mod interrupted {
    use super::*;
    use crate::common::process::signal;
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    /// Runs a study whose second sweep takes minutes, sends a signal while it runs, and checks exit
    /// code, record and tables.
    fn check(sweep: &str, number: i32) {
        let folder = tempfile::tempdir().unwrap();
        let quick =
            STUDY.replacen("name = \"gpu\"\ndevice = [\"cuda\"]\nmatrix = [\"poisson2d:20x20\"]\n", sweep, 1);
        assert_ne!(quick, STUDY);
        let study = write(folder.path(), "small.toml", &quick);
        let record = folder.path().join("small.json");
        let mut command = solver();
        // SAFETY: only `signal` is called between fork and exec, which is allowed.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            })
        };
        command.args(["bench", &study, "-o", word(folder.path()), "--no-tables"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        // The record is written after every matrix.
        while !record.exists() || rows(&record).len() < 4 {
            assert!(began.elapsed() < Duration::from_secs(60), "the first sweep does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        let sent = Instant::now();
        signal(&child, number);
        let done = child.wait_with_output().unwrap();
        assert!(sent.elapsed() < Duration::from_secs(10), "it ended after {:?}", sent.elapsed());
        assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
        assert!(errors(&done).contains("the same command continues"), "{}", errors(&done));
        assert_eq!(rows(&record).len(), 4, "an unfinished case has no row");
        let unfinished = json(&record)["unfinished"].as_u64().unwrap();
        assert!(unfinished > 0);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            said.contains(&format!("4 cases measured, 0 failed, {unfinished} not measured yet")),
            "{said}"
        );
        let text = fs::read_to_string(folder.path().join("small.md")).unwrap();
        assert!(text.contains("**These tables are partial:** the run was interrupted"), "{text}");
        assert!(
            text.contains("- cases on the CPU of sweep long: the run was interrupted; the same"),
            "{text}"
        );
        // The first sweep is kept.
        mark(&record);
        let done = run(&["bench", &study, "-o", word(folder.path()), "--no-tables", "--only", "sizes"]);
        assert_eq!((done.status.code(), marked(&record)), (Some(0), (4, 0)), "{}", errors(&done));
        assert!(json(&record)["unfinished"].is_null());
    }

    #[test]
    fn ctrl_c_ends_a_round_of_products() {
        let sweep = "name = \"long\"\nmatrix = [\"poisson2d:200x200\"]\nbackend = [\"rows\", \"sell\"]\n\
                     protocol = { samples = 10000, products = 300 }\n";
        check(sweep, libc::SIGINT);
    }

    #[test]
    fn ctrl_c_ends_a_solve() {
        let sweep = "name = \"long\"\nwhat = \"cg\"\nmatrix = [\"poisson2d:700x700\"]\nbackend = [\"rows\", \"sell\"]\n\
                     protocol = { samples = 1000 }\n";
        check(sweep, libc::SIGINT);
    }

    #[test]
    fn sigterm_ends_a_rival() {
        let sweep = "name = \"long\"\nmatrix = [\"poisson2d:20x20\"]\nbackend = []\n\
                     rival = [{ name = \"Sleeper\", command = [\"sleep\", \"300\"] }]\n";
        check(sweep, libc::SIGTERM);
    }
}

#[test]
fn products_that_add_to_y_are_verified_with_all_that_came_before() {
    let folder = tempfile::tempdir().unwrap();
    let text = "title = \"Chains\"\n[[sweep]]\nname = \"added\"\nmatrix = [\"blockband:n=200,block=5,density=0.1\"]\n\
                backend = [\"bsr-rows:size=runtime\", \"bsr-flat\", \"rows\", \"sell\"]\nprecision = [\"f64\", \"f32\"]\n\
                protocol = { samples = 3, products = 40, rounds = 2, stochastic = true, scaling = [1.5, 0.5] }\n";
    let study = write(folder.path(), "added.toml", text);
    let done = run(&["bench", &study, "-o", word(folder.path()), "--device", "cpu", "--no-tables"]);
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    let all = rows(&folder.path().join("added.json"));
    assert_eq!(all.len(), 8);
    for row in all {
        assert!(row["error"].is_null() && row["seconds"]["samples"] == 6, "{row}");
        assert!(row["checked"].as_f64().is_some_and(|worst| worst <= 1.0), "{row}");
    }
}
