//! Tells the program which commit it is built from, so that records of measurements name it. Compiles the
//! error functions of METIS.

#![allow(clippy::print_stdout)] // Cargo reads the output.

use std::path::Path;
use std::process::Command;

/// What the program is made of: a change elsewhere does not change it.
const SOURCES: [&str; 6] = ["src", "kernels", "data/catalog.toml", "build.rs", "Cargo.toml", "Cargo.lock"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOLVER_COMMIT");
    let named = std::env::var("SOLVER_COMMIT").ok().filter(|commit| !commit.is_empty());
    // Only optimised programs measure, and without the commit a new one does not build the others again. A
    // package inside another repository has no commit.
    let optimised = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let look = || if optimised && Path::new(".git").exists() { commit() } else { None };
    if let Some(commit) = named.or_else(look) {
        println!("cargo::rustc-env=SOLVER_BUILT_FROM={commit}");
    }
    #[cfg(feature = "metis")]
    {
        const ERRORS: &str = "src/engine/ranks/partition/metis/errors.c";
        println!("cargo::rerun-if-changed={ERRORS}");
        cc::Build::new().file(ERRORS).compile("solver_metis_errors");
    }
}

/// Returns the commit, and asks Cargo to look again once it or the sources change.
fn commit() -> Option<String> {
    for path in SOURCES {
        println!("cargo::rerun-if-changed={path}");
    }
    // The log has a line for each commit, checkout and reset; the head names the branch.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=8", "HEAD"])?;
    let changes = git(&[&["status", "--porcelain", "--"], &SOURCES[..]].concat())?;
    Some(if changes.is_empty() { commit } else { format!("{commit} with changes") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
