//! Real matrices, which are not part of the project.

use super::harness::present;
use std::path::PathBuf;

/// Returns the folder of the matrices, `SOLVER_REAL_DATA`. Without it the test is skipped, unless
/// `SOLVER_REQUIRE_REAL_DATA` is 1.
pub fn folder() -> PathBuf {
    let folder = std::env::var_os("SOLVER_REAL_DATA").ok_or("SOLVER_REAL_DATA is not set");
    let folder = PathBuf::from(present("SOLVER_REQUIRE_REAL_DATA", folder));
    assert!(folder.is_dir(), "SOLVER_REAL_DATA is not a folder: {}", folder.display());
    folder
}
