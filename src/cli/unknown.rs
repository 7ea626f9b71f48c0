//! The error for an unknown command: names the command that was probably meant, and the methods that exist.

use super::args::Cli;
use crate::spelling::{did_you_mean, nearest};
use clap::CommandFactory;
use std::path::Path;

/// The commands that run a method.
const METHODS: &[&str] = &["cg", "minres", "pagerank", "markov"];

/// Methods that this program lacks, with the command or library to use instead.
const ALTERNATIVES: &[(&[&str], &str)] = &[
    (
        &["pcg", "conjugate-gradient", "conjugate-gradients"],
        "use solver cg --precond NAME for preconditioned conjugate gradients",
    ),
    (&["symmlq", "minres-qlp"], "use solver minres for symmetric indefinite and singular systems"),
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
        "this program has iterative methods only; SciPy (splu), SuiteSparse and MUMPS have direct ones",
    ),
    (
        &["eig", "eigs", "eigsh", "lanczos", "lobpcg"],
        "this program computes no eigenvectors; SciPy has eigsh and lobpcg",
    ),
];

/// Returns the message for an unknown command.
pub(super) fn command(name: &str) -> String {
    let cli = Cli::command();
    let about = |method: &&str| {
        let about = cli.find_subcommand(method).and_then(|command| command.get_about());
        format!("  solver {method:<9} {}\n", about.map(ToString::to_string).unwrap_or_default())
    };
    let methods: String = METHODS.iter().map(about).collect();
    let lower = name.to_lowercase();
    let alternative = ALTERNATIVES.iter().find(|(names, _)| names.contains(&lower.as_str()));
    let hint = match alternative {
        Some((_, instead)) => (*instead).to_owned(),
        None if Path::new(name).is_file() => {
            format!("{name} is a file: try solver info {name}, or run a method on it")
        }
        None => did_you_mean(&nearest(name, cli.get_subcommands().map(clap::Command::get_name))),
    };
    let hint = if hint.is_empty() { hint } else { format!("; {}", hint.trim_end()) };
    format!("there is no command '{name}'{hint}\nThe methods are:\n{methods}solver --help lists all commands")
}
