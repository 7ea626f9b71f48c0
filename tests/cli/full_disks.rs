//! Answers on disks that are full or become unusable during a solve.
#![cfg(target_os = "linux")]

use crate::common::harness::skip;
use crate::common::process::{errors, file, interrupt, program, solver, word};
use crate::scarcity::limit;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Solves whose answers take more than 8 kB.
const SOLVES: [&[&str]; 3] = [
    &["cg", "poisson2d:60x60", "--output", "x.npy"],
    &["pagerank", "rmat:scale=11,factor=4", "--output", "ranks.json"],
    &["markov", "blockband:n=2000,block=5,density=0.05", "--output", "p.csv"],
];

fn names(folder: &Path) -> Vec<String> {
    let entries: Vec<_> = fs::read_dir(folder).map(|entries| entries.flatten().collect()).unwrap_or_default();
    entries.iter().map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Returns the only file in a folder of kept answers.
fn kept(folder: &Path) -> PathBuf {
    let names = names(folder);
    assert_eq!(names.len(), 1, "{names:?}");
    folder.join(&names[0])
}

/// Runs a command in a folder on a file system of this size, and lists the files in it on stdout. Skips the
/// test if no file system can be mounted.
fn on_a_disk_of(size: &str, [cache, temporary]: [&Path; 2], args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        skip("only root may mount a file system");
    }
    let mount = "mount -t tmpfs -o size=\"$0\" none \"$1\" && cd \"$1\" || exit 99; shift";
    let script = format!("{mount}; \"$@\" >/dev/null; code=$?; ls -A; exit $code");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, size, word(folder.path())]).arg(program());
    command.args(args).args(["--device", "cpu"]).env("SOLVER_CACHE", cache).env("TMPDIR", temporary);
    let done = command.output().unwrap();
    let message = errors(&done);
    if matches!(done.status.code(), Some(1 | 99))
        && (message.contains("mount") || message.contains("unshare"))
    {
        skip("no file system can be mounted here");
    }
    done
}

#[test]
fn a_full_disk_is_noticed_before_the_solve() {
    let cache = tempfile::tempdir().unwrap();
    for args in SOLVES {
        let done = on_a_disk_of("4k", [cache.path(); 2], args);
        let message = errors(&done);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {message}");
        for part in ["--output", "its file needs up to", "4,096 available", "another folder"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(done.stdout, b"", "{args:?}: the reserved space has no file");
    }
    assert_eq!(names(cache.path()).len(), 0, "nothing was computed that could be kept");
}

#[test]
fn a_limit_on_the_size_of_files_is_noticed_before_the_solve() {
    let folder = tempfile::tempdir().unwrap();
    for args in SOLVES {
        let mut command = solver();
        limit(&mut command, libc::RLIMIT_FSIZE, 8192);
        let done = command.args(args).args(["--device", "cpu"]).current_dir(&folder).output().unwrap();
        let message = errors(&done);
        assert_eq!((done.status.code(), names(folder.path()).len()), (Some(2), 0), "{args:?}: {message}");
        assert!(message.contains("its file needs up to") && message.contains("at most 8,192"), "{message}");
    }
}

#[test]
fn a_file_is_as_long_as_its_answer_and_an_answer_that_fits_is_written() {
    let cache = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.npy", "x.mtx", "x.txt", "x.txt.gz"] {
        let path = folder.path().join(name);
        let args = ["cg", "poisson2d:9x9", "--device", "cpu", "--output", word(&path)];
        assert_eq!(solver().args(args).output().unwrap().status.code(), Some(0), "{name}");
        let read = solver::source::read_vector(&path).unwrap();
        let again = folder.path().join(format!("again-{name}"));
        solver::source::write_vector(&again, &read).unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(&again).unwrap(), "{name}");
    }
    let done = on_a_disk_of("4k", [cache.path(); 2], &["cg", "poisson2d:9x9", "--output", "x.npy"]);
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"x.npy\n"[..]), "{}", errors(&done));
}

#[test]
fn a_history_that_fills_the_disk_is_kept_in_the_cache_folder_or_else_in_that_of_temporary_files() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, temporary) = (folder.path().join("cache"), folder.path().join("tmp"));
    fs::create_dir(&temporary).unwrap();
    let args = ["cg", "poisson2d:60x60", "--rtol", "1e-12", "--history", "h.json"];
    for (cache, place) in [(&*cache, cache.join("kept")), (Path::new("/dev/null"), temporary.clone())] {
        let done = on_a_disk_of("4k", [cache, &temporary], &args);
        let (message, kept) = (errors(&done), kept(&place));
        assert_eq!((done.status.code(), &*done.stdout), (Some(2), &b""[..]), "{message}");
        let named = format!("the complete file is {}: move it by hand", word(&kept));
        assert!(message.contains(&named), "{message}");
        let history: serde_json::Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
        let iterations = history["report"]["iterations"].as_u64().unwrap();
        assert_eq!(history["residuals"].as_array().unwrap().len() as u64, iterations + 1);
    }
}

/// The arguments of solves that take long, without their outputs.
fn endless(folder: &TempDir) -> [Vec<String>; 3] {
    let n = 3000;
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {n}\n");
    (1..=n).for_each(|i| text.push_str(&format!("{i} {i} {:e}\n", 10f64.powf(-f64::from(i) / 250.0))));
    let system = file(folder, "A.mtx", &text);
    let mut ring = String::new();
    (0..n).for_each(|i| ring.push_str(&format!("{i} {}\n", (i + 1) % n)));
    let ring = file(folder, "ring.txt", &ring);
    let mut walk = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {}\n", 2 * n);
    for i in 1..=n {
        let up = 0.5 + 0.01 * f64::from(i).sin();
        let (next, last) = (i % n + 1, (i + n - 2) % n + 1);
        walk.push_str(&format!("{i} {next} {up}\n{i} {last} {}\n", 1.0 - up));
    }
    let walk = file(folder, "walk.mtx", &walk);
    let words = |args: &[&str]| args.iter().map(|word| (*word).to_owned()).collect();
    [
        words(&["cg", word(&system), "--rtol", "1e-300", "--max-iters", "100000000"]),
        words(&[
            "pagerank",
            word(&ring),
            "--damping",
            "0.9999",
            "--personalise",
            "0",
            "--max-iters",
            "100000000",
        ]),
        words(&["markov", word(&walk), "--method", "power", "--tol", "1e-15", "--max-iters", "100000000"]),
    ]
}

/// Starts a solve with its output in the folder `out`, calls `change` while it iterates, and interrupts it.
fn change_while_solving(folder: &TempDir, args: &[String], output: &Path, change: impl FnOnce()) -> Output {
    let mut child = solver()
        .args(args)
        .args(["--device", "cpu", "--threads", "1", "--monitor", "1", "--output", word(output)])
        .args(["--history", word(&folder.path().join("history.json"))])
        .env("SOLVER_CACHE", folder.path().join("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The residual after the first iteration. The solve cannot end before all residuals are read.
    let mut text = String::new();
    while !text.lines().any(|line| line.trim_start().starts_with("1 ")) {
        text.push_str(&(lines.next().unwrap_or_else(|| panic!("{text}")).unwrap() + "\n"));
    }
    change();
    interrupt(&child);
    lines.for_each(|line| text.push_str(&(line.unwrap() + "\n")));
    Output { status: child.wait().unwrap(), stdout: Vec::new(), stderr: text.into_bytes() }
}

/// Checks that an answer was kept in the cache folder.
fn assert_kept(folder: &TempDir, done: &Output, what: &str) {
    let (message, kept) = (errors(done), kept(&folder.path().join("cache/kept")));
    assert_eq!(done.status.code(), Some(2), "{what}: {message}");
    assert!(message.contains(&format!("the complete file is {}: move it by hand", word(&kept))), "{message}");
    let read = solver::source::read_vector(&kept).unwrap();
    assert_eq!(read.len(), 3000, "{what}");
    assert!(read.iter().any(|x| *x != 0.0), "{what}");
    fs::remove_file(kept).unwrap();
    let history = folder.path().join("history.json");
    assert!(solver::observe::History::load(&history).is_ok(), "{what}: the history is written all the same");
    fs::remove_file(history).unwrap();
}

#[test]
fn an_answer_is_kept_in_the_cache_folder_if_its_folder_becomes_unusable() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for args in endless(&folder) {
        fs::create_dir(&out).unwrap();
        let path = out.join("x.npy");
        let done = change_while_solving(&folder, &args, &path, || symlink("x.npy", &path).unwrap());
        assert_kept(&folder, &done, "the output becomes a loop of links");
        fs::remove_file(&path).unwrap();
        let done = change_while_solving(&folder, &args, &path, || {
            fs::remove_dir(&out).unwrap();
            symlink("nowhere", &out).unwrap();
        });
        assert_kept(&folder, &done, "the folder becomes a dangling link");
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn an_answer_is_kept_in_the_cache_folder_if_its_folder_becomes_immutable() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let set = |flag: &str| Command::new("chattr").arg(flag).arg(&out).output();
    if !set("+i").is_ok_and(|done| done.status.success()) {
        skip("no folder can be made immutable here");
    }
    set("-i").unwrap();
    let [cg, ..] = endless(&folder);
    let done = change_while_solving(&folder, &cg, &out.join("x.npy"), || drop(set("+i").unwrap()));
    set("-i").unwrap();
    assert_kept(&folder, &done, "the folder becomes immutable");
}
