//! Outputs that a rename cannot replace, links, and files with a mode or owner to keep.
#![cfg(unix)]

use crate::common::harness::skip;
use crate::common::process::{cg, errors, file, interrupt, program, refused, run, solver, word};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A user and a group without files, on most systems `nobody`.
const OTHER: u32 = 65_534;

const SOLVE: [&str; 5] = ["cg", "--device", "cpu", "--matrix", "poisson2d:9x9"];

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn answer(path: &Path) -> usize {
    solver::source::read_dense(path).unwrap().rows()
}

/// Skips the test unless it runs as root.
fn need_root(folder: &TempDir) {
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        skip("only root may act as several users and mount files");
    }
}

/// Returns the path of an answer owned by root in a folder with the sticky bit.
fn in_sticky_folder(folder: &TempDir, mode: u32) -> PathBuf {
    need_root(folder);
    set_mode(folder.path(), 0o1777);
    let path = folder.path().join("x.npy");
    fs::write(&path, "old").unwrap();
    set_mode(&path, mode);
    path
}

/// Runs the program as another user.
fn as_other_user(args: &[&str]) -> Output {
    let user = Command::new("true").uid(OTHER).gid(OTHER).status();
    let able = solver().arg("--version").uid(OTHER).gid(OTHER).output();
    if user.is_err() || able.is_err() {
        skip("another user cannot run the program here");
    }
    solver().args(args).uid(OTHER).gid(OTHER).env("SOLVER_CACHE", "").output().unwrap()
}

#[test]
fn a_file_of_another_user_in_a_sticky_folder_is_refused_before_the_matrix_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = in_sticky_folder(&folder, 0o644);
    let matrix = file(&folder, "A.mtx", "no matrix");
    let done = as_other_user(&["cg", "--device", "cpu", "--matrix", word(&matrix), "--output", word(&path)]);
    let message = errors(&done);
    assert_eq!(done.status.code(), Some(2), "{message}");
    assert!(message.contains("--output") && message.contains("sticky bit"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
}

#[test]
fn a_writable_file_of_another_user_in_a_sticky_folder_is_written_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = in_sticky_folder(&folder, 0o666);
    let done = as_other_user(&[&SOLVE[..], &["--output", word(&path)]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert_eq!((answer(&path), names(folder.path())), (81, vec!["x.npy".to_owned()]));
    assert_eq!((fs::metadata(&path).unwrap().uid(), mode(&path)), (0, 0o666));
}

#[cfg(target_os = "linux")]
#[test]
fn a_mounted_file_is_written_in_place() {
    let folder = tempfile::tempdir().unwrap();
    need_root(&folder);
    let at = |name: &str| folder.path().join(name);
    fs::write(at("outside"), vec![b'x'; 5000]).unwrap();
    fs::write(at("x.npy"), "").unwrap();
    let mounted = |then: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &format!("mount --bind \"$0\" \"$1\" && {then}")]);
        command.args([at("outside"), at("x.npy")]);
        command
    };
    if !mounted("true").output().is_ok_and(|done| done.status.success()) {
        skip("no file can be mounted here");
    }
    let mut command = mounted("shift && exec \"$@\"");
    command.arg(program()).args(SOLVE).args(["--output", word(&at("x.npy"))]);
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert_eq!((answer(&at("outside")), names(folder.path()).len()), (81, 2));
}

#[cfg(target_os = "linux")]
#[test]
fn an_immutable_file_is_refused_before_the_matrix_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (path, matrix) = (file(&folder, "x.npy", "old"), file(&folder, "A.mtx", "no matrix"));
    let set = |flag: &str| Command::new("chattr").arg(flag).arg(&path).output();
    if !set("+i").is_ok_and(|done| done.status.success()) {
        skip("no file can be made immutable here");
    }
    let done = run(&["cg", "--device", "cpu", "--matrix", word(&matrix), "--output", word(&path)]);
    set("-i").unwrap();
    let message = errors(&done);
    assert_eq!(done.status.code(), Some(2), "{message}");
    assert!(message.contains("--output") && message.contains("immutable"), "{message}");
}

#[test]
fn a_name_that_is_too_long_is_refused_before_the_matrix_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = file(&folder, "A.mtx", "no matrix");
    for (option, ending) in
        [("--output", ".npy"), ("--history", ".json"), ("--plot", ".svg"), ("--checkpoint", "")]
    {
        let path = folder.path().join("x".repeat(256 - ending.len()) + ending);
        let message = refused(&["cg", "--device", "cpu", "--matrix", word(&matrix), option, word(&path)]);
        assert!(message.contains(option) && message.contains("name another file"), "{message}");
    }
    let path = folder.path().join("x".repeat(252) + ".svg");
    for command in [
        &["plot", word(&matrix), "-o", word(&path)][..],
        &["info", "--matrix", word(&matrix), "--spy", word(&path)],
    ] {
        let message = refused(command);
        assert!(message.contains("name another file"), "{message}");
    }
    let path = folder.path().join("x".repeat(252) + ".mtx");
    let message = refused(&["convert", word(&matrix), word(&path)]);
    assert!(message.contains("name another file"), "{message}");
    // The name of the matrix is short enough, but those of its vectors are not.
    let path = folder.path().join("x".repeat(251) + ".mtx");
    let message = refused(&["convert", "elasticity3d:2x2x2", word(&path)]);
    assert!(message.contains("_b.mtx") && message.contains("name another file"), "{message}");
    assert!(!path.exists());
}

/// Starts an endless solve, calls `change` while it iterates, waits for `until`, and interrupts it.
fn change_while_solving(
    folder: &TempDir,
    args: &[&str],
    change: impl FnOnce(),
    until: impl Fn() -> bool,
) -> Output {
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n90000 90000 90000\n".to_owned();
    (1..=90_000).for_each(|i| text.push_str(&format!("{i} {i} {:e}\n", 10f64.powf(-f64::from(i) / 7500.0))));
    let matrix = file(folder, "A.mtx", &text);
    let mut child = solver()
        .args(["-vv", "cg", "--device", "cpu", "--matrix", word(&matrix), "--rtol", "1e-300"])
        .args([
            "--max-iters",
            "100000000",
            "--checkpoint",
            word(&folder.path().join("begun")),
            "--checkpoint-every",
            "1ms",
        ])
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = folder.path().join("begun");
    let wait = |condition: &dyn Fn() -> bool| {
        let from = std::time::Instant::now();
        while !condition() {
            assert!(from.elapsed().as_secs() < 60, "the condition does not become true");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    wait(&|| begun.exists());
    change();
    wait(&until);
    interrupt(&child);
    let mut lines = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        lines.push_str(&(line.unwrap() + "\n"));
    }
    let status = child.wait().unwrap();
    Output { status, stdout: Vec::new(), stderr: lines.into_bytes() }
}

#[test]
fn an_answer_is_kept_under_another_name_if_its_path_becomes_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let done =
        change_while_solving(&folder, &["--output", word(&path)], || fs::create_dir(&path).unwrap(), || true);
    let message = errors(&done);
    assert_eq!(done.status.code(), Some(2), "{message}");
    let kept = names(folder.path()).into_iter().find(|name| name.starts_with("kept-"));
    let kept = folder.path().join(kept.unwrap_or_else(|| panic!("no file is kept: {message}")));
    assert_eq!(answer(&kept), 90_000);
    assert!(message.contains(&format!("the complete file is {}: move it by hand", word(&kept))), "{message}");
}

#[test]
fn the_newest_checkpoint_is_kept_if_its_path_becomes_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("begun");
    let kept =
        || names(folder.path()).into_iter().filter(|name| name.starts_with("kept-")).collect::<Vec<_>>();
    let take = || {
        fs::rename(&path, folder.path().join("moved")).unwrap();
        // The solve may write a checkpoint between the two calls.
        while fs::create_dir(&path).is_err() {
            let _ = fs::remove_file(&path);
        }
    };
    let first = std::cell::RefCell::new(None);
    let replaced = || {
        let now = kept();
        let mut first = first.borrow_mut();
        let first = first.get_or_insert_with(|| now.clone());
        if first.is_empty() {
            *first = now.clone();
        }
        !now.is_empty() && now != *first
    };
    let done = change_while_solving(&folder, &[], take, replaced);
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    let kept = kept();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(fs::read(folder.path().join(&kept[0])).unwrap().starts_with(b"\x93SCP"));
}

/// Every option that names an output, with an ending and the rest of the command.
const OUTPUTS: [(&str, &str, &[&str]); 6] = [
    ("--output", ".npy", &SOLVE),
    ("--history", ".json", &SOLVE),
    ("--plot", ".svg", &SOLVE),
    ("--checkpoint", "", &SOLVE),
    ("--spy", ".png", &["info", "--matrix", "poisson2d:9x9"]),
    ("", ".mtx", &["convert", "poisson2d:9x9"]),
];

/// Runs a command with an output.
fn write(option: &str, path: &Path, rest: &[&str]) {
    let option: Vec<&str> = Some(option).filter(|option| !option.is_empty()).into_iter().collect();
    let done = run(&[rest, &option, &[word(path)]].concat());
    assert_eq!(done.status.code(), Some(0), "{option:?}: {}", errors(&done));
}

#[test]
fn an_existing_file_keeps_its_mode_and_a_new_file_follows_the_umask() {
    let folder = tempfile::tempdir().unwrap();
    let usual = mode(&file(&folder, "usual", ""));
    for (option, ending, rest) in OUTPUTS {
        let (old, new) =
            (folder.path().join(format!("old{ending}")), folder.path().join(format!("new{ending}")));
        fs::write(&old, "").unwrap();
        for kept in [0o600, 0o664, 0o444] {
            set_mode(&old, kept);
            write(option, &old, rest);
            assert_eq!(mode(&old), kept, "{option}");
        }
        assert!(fs::metadata(&old).unwrap().len() > 0);
        write(option, &new, rest);
        assert_eq!(mode(&new), usual, "{option}");
        [&old, &new].into_iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

#[test]
fn an_existing_file_keeps_its_owner_and_group() {
    let folder = tempfile::tempdir().unwrap();
    need_root(&folder);
    for (option, ending, rest) in OUTPUTS {
        let path = folder.path().join(format!("x{ending}"));
        fs::write(&path, "").unwrap();
        chown(&path, Some(OTHER), Some(OTHER)).unwrap();
        write(option, &path, rest);
        let about = fs::metadata(&path).unwrap();
        assert_eq!((about.uid(), about.gid(), about.len() > 0), (OTHER, OTHER, true), "{option}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_group_that_cannot_be_kept_gives_no_other_group_access() {
    let folder = tempfile::tempdir().unwrap();
    need_root(&folder);
    set_mode(folder.path(), 0o777);
    let path = file(&folder, "x.npy", "");
    set_mode(&path, 0o664);
    let done = as_other_user(&[&SOLVE[..], &["--output", word(&path)]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    assert_eq!((fs::metadata(&path).unwrap().uid(), mode(&path)), (OTHER, 0o644));
}

#[test]
fn links_are_followed_whether_their_target_exists_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    fs::create_dir(at("sub".to_owned())).unwrap();
    for (option, ending, rest) in OUTPUTS {
        let link = at(format!("link{ending}"));
        let target = at(format!("sub/target{ending}"));
        symlink(format!("sub/target{ending}"), &link).unwrap();
        for exists in [false, true] {
            assert_eq!(target.exists(), exists);
            write(option, &link, rest);
            assert!(link.is_symlink(), "{option}: the link is kept");
            assert!(fs::metadata(&target).unwrap().len() > 0, "{option}");
        }
        [&link, &target].into_iter().for_each(|path| fs::remove_file(path).unwrap());
    }
}

#[test]
fn a_link_to_the_output_of_another_option_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (link, path) = (folder.path().join("link.json"), folder.path().join("h.json"));
    symlink("h.json", &link).unwrap();
    let outputs = ["--history", word(&path), "--checkpoint", word(&link)];
    let message = refused(&[&SOLVE[..], &outputs].concat());
    assert!(message.contains("written by --history"), "{message}");
    let (code, _) = cg(&["--matrix", "poisson2d:9x9", "--history", word(&path)]);
    assert_eq!(code, 0);
}
