//! The error of a command that does not exist: what was probably meant, and which methods there are.

use super::args::Cli;
use crate::spelling::{did_you_mean, nearest};
use clap::CommandFactory;
use std::path::Path;

/// The commands that solve.
const METHODS: &[&str] = &["cg", "minres", "pagerank", "markov"];

/// Methods of other programs, with what to use for their problems.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["pcg", "conjugate-gradient", "conjugate-gradients"],
        "solver cg --precond NAME is preconditioned conjugate gradients",
    ),
    (&["symmlq", "minres-qlp"], "solver minres is for symmetric indefinite and singular systems"),
    (
        &["gmres", "fgmres", "lgmres", "gcrotmk", "gcr", "bicgstab", "bicg", "cgs", "qmr", "tfqmr", "idr"],
        "this program solves symmetric systems only; for unsymmetric ones SciPy, PETSc and Ginkgo have GMRES and BiCGSTAB",
    ),
    (
        &["lsqr", "lsmr", "cgls", "cgnr", "cgne", "craig"],
        "this program solves square symmetric systems only; for least squares SciPy has LSQR and LSMR",
    ),
    (
        &["lu", "ldl", "cholesky", "direct", "splu"],
        "this program has iterative methods only; direct ones are in SciPy (splu), SuiteSparse and MUMPS",
    ),
    (
        &["eig", "eigs", "eigsh", "lanczos", "lobpcg"],
        "this program finds no eigenvectors; SciPy has eigsh and lobpcg",
    ),
];

/// The message for a command that does not exist.
pub(super) fn command(name: &str) -> String {
    let cli = Cli::command();
    let about = |method: &&str| {
        let about = cli.find_subcommand(method).and_then(|command| command.get_about());
        format!("  solver {method:<9} {}\n", about.map(ToString::to_string).unwrap_or_default())
    };
    let methods: String = METHODS.iter().map(about).collect();
    let lower = name.to_lowercase();
    let known = ELSEWHERE.iter().find(|(names, _)| names.contains(&lower.as_str()));
    let hint = match known {
        Some((_, instead)) => (*instead).to_owned(),
        None if Path::new(name).is_file() => {
            format!("{name} is a file: try solver info {name}, or one of the methods on it")
        }
        None => did_you_mean(&nearest(name, cli.get_subcommands().map(clap::Command::get_name))),
    };
    let hint = if hint.is_empty() { hint } else { format!("; {}", hint.trim_end()) };
    format!("there is no command '{name}'{hint}\nThe methods are:\n{methods}solver --help lists all commands")
}
