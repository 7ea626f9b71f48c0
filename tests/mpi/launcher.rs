//! Starts the program with `mpirun`.

use crate::common::jobs::Command as Run;
use crate::common::places::{Job, Place};
use crate::common::process::{errors, for_ranks, mpirun, program, run};
use crate::common::ranks::bits;
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The time within which all ranks must have ended after a failure.
pub const SOON: Duration = Duration::from_secs(10);

/// Returns the launcher, which is ended with exit code 124 if it takes longer than a minute.
pub fn mpirun_for_a_minute() -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", "mpirun"]);
    for_ranks(command)
}

/// Returns the command over ranks.
pub fn over(ranks: usize, args: &[&str]) -> Command {
    on(mpirun(), ranks, args)
}

/// Returns the command with a launcher that gives ranks time to write their answer after a signal.
pub fn over_patiently(ranks: usize, args: &[&str]) -> Command {
    let mut command = mpirun();
    command.args(["--mca", "odls_base_sigkill_timeout", "3"]);
    on(command, ranks, args)
}

fn on(mut command: Command, ranks: usize, args: &[&str]) -> Command {
    command.args(["-n", &ranks.to_string()]).arg(program()).args(args).args(["--threads", "1"]);
    command
}

/// Runs the program over ranks and returns the exit code and the report.
pub fn solve(ranks: usize, args: &[&str]) -> (i32, Value) {
    let done = over(ranks, &[args, &["--json"]].concat()).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{}", errors(&done)));
    (done.status.code().unwrap(), report)
}

/// Runs the program in one process and returns the exit code and the report.
pub fn alone(args: &[&str]) -> (i32, Value) {
    let done = run(&[args, &["--json", "--threads", "1", "--device", "cpu"]].concat());
    let text = String::from_utf8_lossy(&done.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {}", errors(&done)));
    (done.status.code().unwrap(), report)
}

/// Checks that two runs over three ranks have the same bits, iterations and number in the report.
pub fn check_runs(args: &[&str], number: &str) {
    let [first, second] = [(); 2].map(|()| Run::new(args).run(Place::Processes(3)));
    assert_eq!(bits(&first.x), bits(&second.x), "{args:?}");
    assert_eq!(first.iterations(), second.iterations(), "{args:?}");
    assert_eq!(first.report[number], second.report[number], "{args:?}");
}

/// Returns the words before a command that give it at most `kilobytes` of memory.
pub fn with_memory(kilobytes: u32) -> [String; 3] {
    ["sh".to_owned(), "-c".to_owned(), format!("ulimit -v {kilobytes}; exec \"$0\" \"$@\"")]
}

/// Checks that a process with at most `kilobytes` of memory fails for lack of it, and that four of them reach
/// the limit of iterations. Returns their report.
pub fn needs_several_processes(args: &[&str], kilobytes: u32) -> Value {
    let limited = with_memory(kilobytes);
    let mut alone = Command::new(&limited[0]);
    let done = alone.args(&limited[1..]).arg(program()).args(args).output().unwrap();
    assert!(done.status.code() == Some(2) && errors(&done).contains("memory"), "{}", errors(&done));
    let done = mpirun().args(["-n", "4"]).args(limited).arg(program()).args(args).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Returns the lines of the program's own errors.
pub fn messages(done: &Output) -> Vec<String> {
    errors(done).lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect()
}

/// Starts a command in the background, with its output kept.
pub fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the processes of the program that a launcher has started, in the order of ranks.
pub fn ranks_of(launcher: &Child) -> Vec<i32> {
    let parent = launcher.id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name is in parentheses; the state and the parent follow.
        let after = stat.rsplit(')').next().unwrap().split_whitespace().collect::<Vec<_>>();
        if after.get(1) == Some(&parent.as_str()) && after.first() != Some(&"Z") {
            found.push(entry.file_name().to_str().unwrap().parse().unwrap());
        }
    }
    found.sort_unstable();
    found
}

/// Waits until a condition holds; fails after half a minute.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(30), "waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of all ranks, which fails if it takes too long, and then for that of their
/// launcher. Returns the output.
pub fn end_soon(launcher: Child, ranks: &[i32]) -> Output {
    let began = Instant::now();
    let alive = |process: &i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.contains("(solver)") && !stat.contains(") Z ")
    };
    while ranks.iter().any(alive) {
        assert!(began.elapsed() < SOON, "a rank is left: {ranks:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    launcher.wait_with_output().unwrap()
}
