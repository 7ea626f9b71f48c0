//! Tests that need a process of their own, because they count or refuse the allocations of all its threads.

use super::harness::without_crate;
use std::process::Command;

/// The variable with the name of the test that a process runs.
const CHILD: &str = "SOLVER_TEST_ALONE";

/// Returns whether the test with this path is alone in its process. If it is not, runs it in a new process,
/// and fails if it fails there.
pub(crate) fn runs_alone(path: &str) -> bool {
    let name = without_crate(path);
    if std::env::var_os(CHILD).is_some_and(|child| *child == *name) {
        return true;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &name]).env(CHILD, &name).env_remove("SOLVER_TEST_ONLY");
    let done = child.output().unwrap();
    let [text, errors] = [&done.stdout, &done.stderr].map(|output| String::from_utf8_lossy(output));
    assert!(done.status.success() && text.contains("1 passed"), "{text}\n{errors}");
    false
}
