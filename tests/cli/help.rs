//! Help texts and their examples, completions, and unknown commands.

use crate::common::process::{errors, program, refused, run};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const COMMANDS: &[&str] = &[
    "cg",
    "minres",
    "pagerank",
    "markov",
    "info",
    "matrices",
    "fetch",
    "backends",
    "preconditioners",
    "tune",
    "doctor",
    "plot",
    "convert",
    "spmv",
    "spmm",
    "completions",
    "man",
];

fn help(command: &[&str]) -> String {
    let done = run(&[command, &["--help"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    String::from_utf8(done.stdout).unwrap()
}

/// Returns the example commands of a help text.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Example"));
    let lines = lines.filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| line.contains("solver ")).map(str::to_owned).collect()
}

/// Runs a line in a shell with the program on its path; the current folder is also the home folder.
fn typed(line: &str, folder: &Path) -> Output {
    let programs = program();
    let path = format!("{}:{}", programs.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).stdin(Stdio::null());
    // Kept choices of tune, which an example removes, are in the folder, too.
    shell.env_remove("SOLVER_CACHE").env_remove("XDG_CACHE_HOME");
    shell.env("PATH", path).env("HOME", folder).env("SOLVER_OFFLINE", "1").output().unwrap()
}

#[cfg(unix)]
#[test]
fn the_examples_of_every_help_text_run_in_an_empty_folder() {
    for command in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(".local/share/bash-completion/completions")).unwrap();
        let examples = examples(&help(&[command]));
        assert!(!examples.is_empty(), "{command}");
        for line in examples {
            assert!(line.len() <= 80, "too long for a terminal: {line}");
            // Small systems replace large ones, which would take long.
            let line = ["1000x1000", "300x300", "48x48x50"]
                .iter()
                .fold(line, |line, size| line.replace(size, "20x20"));
            let line =
                line.replace("hex27:20x20", "hex27:9x9x9").replace("poisson3d:60x60x60", "poisson3d:9x9x9");
            let line = line.replace("elasticity3d:20x20x20", "elasticity3d:6x6x6");
            let line =
                line.replace("scale=20,edges=16000000", "scale=10,edges=16000").replace("n=2000", "n=500");
            let line = line.replace("n=4096", "n=256").replace("31x37x29", "9x9x9");
            let shown = line.replace("man -l -", "cat");
            let done = typed(&shown, folder.path());
            let output = errors(&done);
            // Matrices of the catalog need a network, and some backends need a GPU.
            let unavailable = ["Downloads are forbidden", "no connection", "libcuda"]
                .iter()
                .any(|part| output.contains(part));
            let needs = ["F1", "thermal2", "--device cuda"].iter().any(|part| line.contains(part));
            let passed = done.status.success() || (needs && unavailable);
            assert!(passed, "{line}: {output}{}", String::from_utf8_lossy(&done.stdout));
        }
    }
}

#[test]
fn every_solve_groups_its_options_in_the_same_order() {
    for command in ["cg", "minres", "pagerank", "markov"] {
        let text = help(&[command]);
        let headings: Vec<&str> = text
            .lines()
            .filter(|line| line.ends_with(':') && !line.starts_with(' '))
            .map(|line| line.trim_end_matches(':'))
            .take_while(|line| *line != "Examples")
            .collect();
        let groups = ["Arguments", "Input", "Method", "Device", "Stopping", "Output", "General"];
        assert_eq!(headings, groups, "{command}: every option has a group: {text}");
    }
}

#[test]
fn tolerances_in_help_texts_are_written_with_exponents() {
    for command in ["pagerank", "markov"] {
        let text = help(&[command]);
        assert!(text.contains("[default: 1e-10]") && !text.contains("0.0000"), "{text}");
    }
}

#[test]
fn shells_complete_the_names_of_backends_and_preconditioners() {
    for shell in ["bash", "zsh", "fish"] {
        let script = String::from_utf8(run(&["completions", shell]).stdout).unwrap();
        for name in ["hybrid", "cusparse-sell", "merge", "ic0", "block-jacobi"] {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let bash = String::from_utf8(run(&["completions", "bash"]).stdout).unwrap();
    let backends = bash.lines().skip_while(|line| !line.contains("--backend)")).nth(1).unwrap();
    assert!(backends.contains("compgen -W \"auto serial rows "), "{backends}");
}

#[test]
fn an_unknown_method_is_answered_with_the_methods_and_alternatives() {
    for (name, parts) in [
        ("gmres", &["symmetric systems only", "SciPy, PETSc and Ginkgo have GMRES and BiCGSTAB"][..]),
        ("BiCGSTAB", &["symmetric systems only"]),
        ("lsqr", &["LSQR and LSMR"]),
        ("svds", &["no singular values"]),
        ("pcg", &["use solver cg with --precond NAME"]),
        ("symmlq", &["solver minres"]),
        ("plto", &["did you mean plot?"]),
        ("nonsense", &[]),
    ] {
        let message = refused(&[name, "--matrix", "poisson2d:9x9"]);
        let methods = ["solver cg", "solver minres", "solver pagerank", "solver markov", "positive definite"];
        assert!(parts.iter().chain(&methods).all(|part| message.contains(part)), "{name}: {message}");
        assert!(!message.contains("similar"), "{message}");
    }
    let matrix = crate::common::process::project("data/grid3x3.mtx");
    let message = refused(&[matrix.to_str().unwrap()]);
    assert!(message.contains("is a file: try solver info "), "{message}");
}

#[test]
fn the_matrix_is_an_argument_or_an_option() {
    for args in [&["poisson2d:9x9"][..], &["--matrix", "poisson2d:9x9"]] {
        for command in ["cg", "minres", "info"] {
            let done = run(&[&[command, "--json"], args].concat());
            assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        }
    }
    for args in [&["rmat:scale=5,edges=90"][..], &["--graph", "rmat:scale=5,edges=90"]] {
        let done = run(&[&["pagerank", "--device", "cpu"], args].concat());
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    }
}

#[test]
fn every_method_accepts_tol() {
    for command in ["cg", "minres", "pagerank", "markov"] {
        let matrix = if command == "markov" { "blockband:n=400" } else { "poisson2d:9x9" };
        let done = run(&[command, matrix, "--device", "cpu", "--tol", "1e-9", "--dry-run"]);
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        assert!(String::from_utf8_lossy(&done.stdout).contains("1e-9"));
    }
}

#[test]
fn a_filter_without_matches_is_an_error_with_similar_names() {
    assert!(refused(&["matrices", "ecolgy1"]).contains("did you mean ecology1"));
    assert!(refused(&["matrices", "nosuchthing", "--json"]).contains("'nosuchthing'"));
    assert_eq!(run(&["matrices", "structural"]).status.code(), Some(0));
}
