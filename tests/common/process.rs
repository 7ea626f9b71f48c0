//! The program as users run it: the real binary in a separate process.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime};

/// Returns the path of the program: `SOLVER_TEST_PROGRAM` if the tests run on another machine
/// than they were built on.
pub fn program() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_solver").map(Into::into);
    let program = std::env::var_os("SOLVER_TEST_PROGRAM").or(built);
    program.expect("unit tests cannot start the program").into()
}

/// Returns a file of the project, whose folder is `SOLVER_TEST_PROJECT` on such a machine.
pub fn project(file: &str) -> PathBuf {
    let folder = std::env::var_os("SOLVER_TEST_PROJECT").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&folder).join(file)
}

pub fn solver() -> Command {
    let mut command = Command::new(program());
    // Tests never use the network, and they search for texts that a narrow line would break.
    command.stdin(Stdio::null()).env("SOLVER_OFFLINE", "1").env("COLUMNS", "2000");
    // Choices that the user has kept would change reports.
    if std::env::var_os("SOLVER_TEST_PROGRAM").is_none() {
        command.env(
            "SOLVER_CACHE",
            Path::new(option_env!("CARGO_TARGET_TMPDIR").unwrap_or("target/tmp")).join("cache"),
        );
    }
    command
}

/// Returns the launcher of ranks with its options.
pub fn mpirun() -> Command {
    for_ranks(Command::new("mpirun"))
}

/// Adds the options of the launcher. Ranks may outnumber the cores of this machine.
pub fn for_ranks(mut command: Command) -> Command {
    command.arg("--oversubscribe");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.stdin(Stdio::null()).env("SOLVER_OFFLINE", "1").env("COLUMNS", "2000");
    command
}

pub fn run(args: &[&str]) -> Output {
    solver().args(args).output().unwrap()
}

/// Runs `solver cg` on the CPU and returns exit code and report.
pub fn cg(args: &[&str]) -> (i32, Value) {
    solve("cg", args)
}

/// Runs any method on the CPU and returns exit code and report.
pub fn solve(method: &str, args: &[&str]) -> (i32, Value) {
    let done = run(&[&[method, "--device", "cpu", "--json"], args].concat());
    let text = String::from_utf8_lossy(&done.stdout);
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{}", errors(&done)));
    (done.status.code().unwrap(), report)
}

pub fn errors(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Returns the message of a run that must fail with exit code 2.
pub fn refused(args: &[&str]) -> String {
    let done = run(args);
    assert_eq!(done.status.code(), Some(2), "{args:?}: {}", errors(&done));
    errors(&done)
}

pub fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Sends the signal of Ctrl-C.
#[cfg(unix)]
pub fn interrupt(child: &Child) {
    signal(child, libc::SIGINT);
}

#[cfg(unix)]
pub fn signal(child: &Child, signal: i32) {
    // SAFETY: the call sends a signal to a child that has not been waited for.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), signal) };
}

/// Leaves a temporary file like that of a process that was killed two hours ago.
pub fn leftover(path: &Path) {
    std::fs::write(path, "half").unwrap();
    let then = SystemTime::now() - Duration::from_secs(7200);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

pub fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub const NONSYMMETRIC: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n2 2 4\n3 3 4\n2 3 1\n3 2 2\n";
pub const INDEFINITE: &str = "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n2 2 -4\n3 3 1\n";
