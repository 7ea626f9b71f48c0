//! The real matrices, which lie outside of the project.

#![allow(clippy::print_stdout)] // What is skipped says so.

use std::path::PathBuf;

/// Their folder, `SOLVER_REAL_DATA`. Without it a test says so and does nothing, unless `SOLVER_REQUIRE_REAL_DATA` is 1.
pub fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SOLVER_REAL_DATA").map(PathBuf::from);
    match &folder {
        Some(folder) => assert!(folder.is_dir(), "SOLVER_REAL_DATA is no folder: {}", folder.display()),
        None => {
            let required = std::env::var("SOLVER_REQUIRE_REAL_DATA").is_ok_and(|value| value == "1");
            assert!(!required, "SOLVER_REQUIRE_REAL_DATA is set, but SOLVER_REAL_DATA is not");
            println!("skipped: SOLVER_REAL_DATA is not set");
        }
    }
    folder
}
