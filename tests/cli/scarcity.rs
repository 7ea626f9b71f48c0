//! Without enough memory or threads the program ends with exit code 2 and an error, or runs with less.
//! `scripts/scarcity.py` tries many more limits.
#![cfg(target_os = "linux")]

use crate::common::harness::skip;
use crate::common::process::{program, solver};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MB: u64 = 1 << 20;
/// A run that takes longer counts as hanging.
const HANGS: Duration = Duration::from_secs(60);
/// A user without other processes.
const USER: u32 = 200_000;

const COMMANDS: [&[&str]; 5] = [
    &["info", "--matrix", "poisson3d:60x60x60"],
    &["cg", "--device", "cpu", "--matrix", "poisson2d:500x500", "--max-iters", "5"],
    &["cg", "--device", "cpu", "--matrix", "elasticity3d:20x20x20", "--precond", "ic0", "--plot", "u.png"],
    &["pagerank", "--device", "cpu", "--graph", "rmat:scale=14,factor=16"],
    &["convert", "poisson2d:300x300", "m.mtx"],
];

/// Limits a resource of a command.
pub fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: only `setrlimit` is called between fork and exec, which is allowed.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(resource, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
}

/// Runs a command to its end and returns its exit code. No run may panic, end by a signal or hang.
fn code(what: &str, mut command: Command) -> i32 {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let began = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(ended) => break ended,
            None if began.elapsed() > HANGS => {
                child.kill().unwrap();
                panic!("{what} hangs: {}", reader.join().unwrap());
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let text = reader.join().unwrap();
    let code = ended.code().unwrap_or_else(|| panic!("{what}: signal {:?}: {text}", ended.signal()));
    assert!(matches!(code, 0..=2), "{what}: exit code {code}: {text}");
    assert!(!text.contains("panicked"), "{what}: {text}");
    assert!(code != 2 || text.contains("error: "), "{what}: no error: {text}");
    code
}

/// Returns the program with this limit on its address space.
fn within(bytes: u64) -> Command {
    let mut command = solver();
    limit(&mut command, libc::RLIMIT_AS, bytes);
    // Printing a backtrace needs memory and takes locks.
    command.env("RUST_BACKTRACE", "1");
    command
}

/// Finds the smallest address space in which the program starts, to within 256 kB.
fn least() -> u64 {
    let starts = |quarters: u64| {
        let mut command = within(quarters * MB / 4);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    let (mut low, mut high) = (0, 1024);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if starts(middle) { high = middle } else { low = middle }
    }
    high * MB / 4
}

#[test]
fn a_lack_of_memory_is_an_error_without_a_panic_an_abort_or_a_hang() {
    let folder = tempfile::tempdir().unwrap();
    let least = least();
    let (mut met, mut refused) = (0, 0);
    let beyond = [0, 1, 2, 3, 5, 8, 12, 16, 20, 26, 32, 36, 40, 48, 64, 80, 112, 160, 300, 600];
    for (at, beyond) in beyond.into_iter().enumerate() {
        for (number, words) in COMMANDS.into_iter().enumerate() {
            let mut command = within(least + beyond * MB);
            command.args(words).current_dir(&folder);
            let threads = [1, 2, 3, 8][(at + number) % 4].to_string();
            if words.contains(&"--device") {
                command.args(["--threads", &threads]);
            }
            let what = format!("{} with {threads} threads in {beyond} MB", words.join(" "));
            match code(&what, command) {
                2 if beyond == 600 => panic!("{what} fails"),
                2 => refused += 1,
                _ => met += 1,
            }
        }
    }
    assert!(met > 20 && refused > 20, "{met} runs had enough memory, {refused} did not");
}

#[test]
fn a_lack_of_threads_is_an_error_or_the_run_uses_fewer() {
    // SAFETY: the call has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        skip("only root can become a user whose threads are limited");
    }
    let folder = tempfile::tempdir().unwrap();
    let as_user = |most: u64, words: &[&str]| {
        let mut command = solver();
        limit(&mut command, libc::RLIMIT_NPROC, most);
        command.gid(USER).uid(USER).args(words).current_dir(&folder).env("RUST_BACKTRACE", "1");
        command
    };
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let started = as_user(64, &["--version"]).stdout(Stdio::null()).status();
    if !started.is_ok_and(|status| status.success()) {
        skip(format!("another user cannot run {}", program().display()));
    }
    for words in COMMANDS {
        for most in [1, 2, 3, 4, 6] {
            code(&format!("{} with {most} threads", words.join(" ")), as_user(most, words));
        }
    }
    // A solve on one thread uses only the main thread.
    let serial =
        ["cg", "--device", "cpu", "--matrix", "poisson2d:500x500", "--rtol", "0.9", "--threads", "1"];
    assert_eq!(code("a solve on one thread", as_user(1, &serial)), 0);
}
