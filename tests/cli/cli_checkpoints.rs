//! Checkpoints of the program: killed, interrupted and resumed.

use crate::common::process::{cg, errors, file, leftover, refused, run, solve, solver, word};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const MATRIX: [&str; 2] = ["--matrix", "poisson2d:120x110"];

/// The folder for the files of one solve.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Files {
        Files { folder: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Returns the residuals of a saved history.
fn residuals(path: &Path) -> Value {
    serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap()["residuals"].clone()
}

/// Starts a solve that saves a checkpoint after every iteration, and waits for this number of checkpoints.
fn start_and_wait(args: &[&str], checkpoint: &Path, checkpoints: usize) -> Child {
    let common = ["--device", "cpu", "--checkpoint-every", "0s", "--checkpoint", word(checkpoint)];
    let mut child = solver().args([args, &common].concat()).stdout(Stdio::null()).spawn().unwrap();
    let (mut length, mut count) = (0, 0);
    while count < checkpoints {
        let now = std::fs::metadata(checkpoint).map_or(0, |file| file.len());
        // The file grows by the residual of each iteration.
        if now > length {
            (length, count) = (now, count + 1);
        }
        assert_eq!(child.try_wait().unwrap(), None, "the solve ended too early");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child
}

#[test]
fn a_killed_solve_resumes_with_the_same_bits() {
    for (method, options) in [
        ("cg", vec!["--precond", "jacobi"]),
        ("cg", vec!["--variant", "pipelined"]),
        ("cg", vec!["--variant", "block"]),
        ("minres", vec!["--precision", "f32", "--rtol", "1e-7"]),
    ] {
        let files = Files::new();
        let (x, history) = (files.at("x.mtx"), files.at("h.json"));
        let base = [&MATRIX[..], &options].concat();
        let full = [&base[..], &["--output", word(&x), "--history", word(&history)]].concat();
        let (code, report) = solve(method, &full);
        assert_eq!(code, 0, "{report}");
        for times in [1, 4, 9] {
            let (checkpoint, y, rest) = (files.at("c"), files.at("y.mtx"), files.at("r.json"));
            let mut child = start_and_wait(&[&[method], &base[..]].concat(), &checkpoint, times);
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().code(), None, "ended by the signal");
            let on = ["--resume", word(&checkpoint), "--output", word(&y), "--history", word(&rest)];
            let (code, again) = solve(method, &[&base[..], &on].concat());
            let what = format!("{method} {options:?}, killed after {times}");
            assert_eq!((code, &again["iterations"]), (0, &report["iterations"]), "{what}");
            assert_eq!(std::fs::read(&x).unwrap(), std::fs::read(&y).unwrap(), "{what}: x");
            assert_eq!(residuals(&history), residuals(&rest), "{what}: residuals");
            std::fs::remove_file(&checkpoint).unwrap();
        }
    }
}

#[test]
fn a_solve_resumes_from_the_checkpoint_written_at_ctrl_c() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let mut child = start_and_wait(&[&["cg"], &MATRIX[..]].concat(), &checkpoint, 2);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(1), "interrupted");
    let (_, full) = cg(&MATRIX);
    let (code, rest) = cg(&[&MATRIX[..], &["--resume", word(&checkpoint)]].concat());
    assert_eq!((code, &rest["iterations"]), (0, &full["iterations"]));
    assert_eq!(rest["residual_true"], full["residual_true"]);
}

#[test]
fn limits_may_be_raised_and_a_finished_solve_reports_the_same_result_again() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let saved = ["--checkpoint", word(&checkpoint)];
    let resumed = ["--resume", word(&checkpoint)];
    let (_, full) = cg(&MATRIX);
    let (code, part) = cg(&[&MATRIX[..], &saved, &["--max-iters", "50"]].concat());
    assert_eq!((code, part["reason"].as_str()), (1, Some("iteration_limit")));
    let (code, rest) = cg(&[&MATRIX[..], &saved, &resumed, &["--threads", "1"]].concat());
    assert_eq!((code, &rest["residual_true"]), (0, &full["residual_true"]));
    let (code, again) = cg(&[&MATRIX[..], &resumed].concat());
    for key in ["iterations", "residual_true", "residual_recursive", "condition_number", "message"] {
        assert_eq!((code, &again[key]), (0, &full[key]), "{key}");
    }
}

#[test]
fn after_a_resume_the_times_of_this_run_and_of_earlier_ones_are_told_apart() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let seconds = |report: &Value, name: &str| report[name].as_f64().unwrap_or(f64::NAN);
    let (_, part) = cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint), "--max-iters", "50"]].concat());
    assert!(part.get("seconds_earlier").is_none() && part.get("iterations_earlier").is_none());
    let resumed = [&MATRIX[..], &["--resume", word(&checkpoint), "--time-limit", "60"]].concat();
    let (code, rest) = cg(&resumed);
    assert_eq!((code, &rest["iterations_earlier"]), (0, &50.into()));
    let gap = seconds(&rest, "seconds_earlier") - seconds(&part, "seconds_solve");
    assert!(gap.abs() < 1e-6, "{gap}");
    let parts = ["seconds_load", "seconds_setup", "seconds_solve"].map(|name| seconds(&rest, name));
    assert!(seconds(&rest, "seconds_total") >= parts.iter().sum::<f64>(), "all are times of this run");
    let done = run(&[&["cg", "--device", "cpu"], &resumed[..]].concat());
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("resumed")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("from iteration 50: 50 iterations in") && line.contains("in all"), "{line}");
}

/// Runs a solve that may write files of 8 kB, which its checkpoint exceeds.
#[cfg(unix)]
fn without_room(args: &[&str]) -> std::process::Output {
    let mut command = solver();
    crate::scarcity::limit(&mut command, libc::RLIMIT_FSIZE, 8192);
    command.args([&["cg", "--device", "cpu"], &MATRIX[..], args].concat()).output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_checkpoint_that_cannot_be_written_is_a_note_of_the_report() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let saved = ["--checkpoint", word(&checkpoint), "--quiet"];
    let note = |remains: &str| {
        let done = without_room(&[&saved[..], &["--json"]].concat());
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!((done.status.code(), errors(&done).as_str()), (Some(0), ""), "{report}");
        let note = report["note"].as_str().unwrap_or_else(|| panic!("{report}")).to_owned();
        let text = String::from_utf8(without_room(&saved).stdout).unwrap();
        for part in ["the checkpoint of iteration", "could not be written to", word(&checkpoint), remains] {
            assert!(note.contains(part) && text.contains(part), "{part}: {note} {text}");
        }
    };
    note("this run has no checkpoint");
    assert!(!checkpoint.exists());
    cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint), "--max-iters", "5"]].concat());
    note("the file from before this run is kept");
    let (_, report) = cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint)]].concat());
    assert_eq!(report["note"], Value::Null, "a checkpoint that was written");
}

#[test]
fn a_checkpoint_of_another_run_is_rejected_with_the_difference() {
    let files = Files::new();
    let checkpoint = files.at("c");
    cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint), "--max-iters", "5"]].concat());
    let on = ["--device", "cpu", "--resume", word(&checkpoint)];
    for (command, options, named) in [
        ("cg", vec!["--matrix", "poisson2d:110x120"], "matrix: 13200 x 13200"),
        ("minres", MATRIX.to_vec(), "method: cg in the checkpoint, minres here"),
        (
            "cg",
            [&MATRIX[..], &["--precision", "mixed"]].concat(),
            "precision: f64 in the checkpoint, mixed here",
        ),
        (
            "cg",
            [&MATRIX[..], &["--precond", "jacobi"]].concat(),
            "preconditioner: none in the checkpoint, jacobi here",
        ),
        ("cg", [&MATRIX[..], &["--variant", "pipelined"]].concat(), "pipelined cg here"),
    ] {
        let message = refused(&[&[command], &options[..], &on].concat());
        assert!(message.contains(named) && message.contains("another run"), "{named}: {message}");
    }
}

#[test]
fn resuming_with_another_backend_warns_of_different_rounding() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let begun = ["--device", "cpu", "--checkpoint", word(&checkpoint), "--max-iters", "5"];
    cg(&[&MATRIX[..], &begun].concat());
    let on = ["--device", "cpu", "--backend", "serial", "--resume", word(&checkpoint)];
    let done = run(&[&["cg"], &MATRIX[..], &on].concat());
    let warning = errors(&done);
    assert_eq!(done.status.code(), Some(0), "{warning}");
    assert!(warning.contains("(backend: "), "{warning}");
}

#[test]
fn damaged_checkpoints_and_other_files_are_rejected() {
    let files = Files::new();
    let checkpoint = files.at("c");
    cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint), "--max-iters", "5"]].concat());
    let good = std::fs::read(&checkpoint).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let mut newer = good.clone();
    newer[8] += 1;
    let long = [&good[..], b"more"].concat();
    for (content, reason) in [
        (&flipped[..], "truncated or damaged"),
        (&good[..good.len() - 1], "truncated or damaged"),
        (&good[..good.len() / 2], "truncated or damaged"),
        (&good[..12], "truncated or damaged"),
        (&good[..5], "no checkpoint, or it is truncated"),
        (b"", "no checkpoint, or it is truncated"),
        (&long, "truncated or damaged"),
        (&newer, "version 3"),
        (b"%%MatrixMarket matrix coordinate real general\n", "no checkpoint of this program"),
    ] {
        std::fs::write(&checkpoint, content).unwrap();
        let message = refused(&[&["cg", "--resume", word(&checkpoint)], &MATRIX[..]].concat());
        assert!(message.contains(reason) && message.contains(word(&checkpoint)), "{reason}: {message}");
    }
    let message = refused(&[&["cg", "--resume", word(&files.at("none"))], &MATRIX[..]].concat());
    assert!(message.contains("cannot read") && message.contains("none"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_failed_write_keeps_the_previous_checkpoint_and_the_solve_continues() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let program = crate::common::process::program();
    cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint), "--max-iters", "5"]].concat());
    let before = std::fs::read(&checkpoint).unwrap();
    // A limit on the file size simulates a full disk.
    let command = format!(
        "ulimit -f 16; trap '' XFSZ; exec '{}' cg --device cpu --matrix {} --checkpoint '{2}' --resume '{2}' \
         --checkpoint-every 0",
        program.display(),
        MATRIX[1],
        checkpoint.display()
    );
    let done = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert!(errors(&done).contains("could not be written"), "{}", errors(&done));
    assert_eq!(std::fs::read(&checkpoint).unwrap(), before);
    assert_eq!(std::fs::read_dir(files.folder.path()).unwrap().count(), 1, "no other file is left");
}

#[test]
fn options_of_checkpoints_are_checked_before_the_matrix_is_read() {
    let files = Files::new();
    let with = |options: &[&str]| refused(&[&["cg", "--matrix", "no-such-matrix"], options].concat());
    let there = word(files.folder.path()).to_owned();
    assert!(with(&["--checkpoint-every", "60s"]).contains("--checkpoint FILE"));
    assert!(with(&["--checkpoint-every", "soon", "--checkpoint", "c"]).contains("60s, 5m, 1h or 500ms"));
    assert!(with(&["--checkpoint", "/dev/null/c"]).contains("/dev/null is not a folder"));
    assert!(with(&["--checkpoint", &there]).contains("it is a folder"));
}

#[test]
fn checkpoint_options_work_in_a_configuration_file_and_appear_in_the_dry_run() {
    let files = Files::new();
    let checkpoint = files.at("c");
    let text = format!(
        "matrix = \"{}\"\ndevice = \"cpu\"\nmax-iters = 9\ncheckpoint = \"{}\"\ncheckpoint-every = \"5m\"\n",
        MATRIX[1],
        checkpoint.display()
    );
    let config = file(&files.folder, "run.toml", &text);
    let plan = run(&["cg", "--dry-run", "--config", word(&config)]);
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains(&format!("{}, every 300 s", checkpoint.display())), "{plan}");
    let done = run(&["-v", "cg", "--config", word(&config)]);
    assert_eq!(done.status.code(), Some(1));
    assert!(errors(&done).contains("checkpoint of iteration 9"), "{}", errors(&done));
    assert!(checkpoint.exists());
}

#[test]
fn incomplete_files_of_a_killed_solve_are_removed_by_the_next_solve() {
    let files = Files::new();
    let (left, other) = (files.at(".1f-18c0ffee-0.tmp"), files.at("notes.tmp"));
    let written = files.at(".2f-18c0ffee-0.tmp");
    [&left, &other, &written].iter().for_each(|path| leftover(path));
    let held = std::fs::File::open(&written).unwrap();
    held.try_lock().unwrap();
    cg(&[&MATRIX[..], &["--checkpoint", word(&files.at("c")), "--max-iters", "5"]].concat());
    assert!(!left.exists());
    assert!(other.exists() && written.exists(), "other files, and files still being written, are kept");
}

#[test]
fn a_checkpoint_records_the_hardware_that_affects_its_bits() {
    let files = Files::new();
    let checkpoint = files.at("c");
    cg(&[&MATRIX[..], &["--checkpoint", word(&checkpoint), "--max-iters", "5"]].concat());
    let bytes = std::fs::read(&checkpoint).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("hardware") && has("AVX2") && !has("threads"));
}

#[test]
fn a_checkpoint_does_not_replace_another_kind_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n";
    let path = file(&folder, "A.mtx", text);
    let message =
        refused(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--checkpoint", word(&path)]);
    assert!(message.contains("no checkpoint; name another one") && message.contains("A.mtx"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}
