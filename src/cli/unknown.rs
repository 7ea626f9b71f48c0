//! The error for an unknown command: names the command that was probably meant, and the methods that exist.

use super::args::Cli;
use super::flags::as_flag;
use crate::engine::instead_of;
use crate::spelling::{did_you_mean, nearest};
use clap::CommandFactory;
use std::path::Path;

/// The commands that run a method.
const METHODS: &[&str] = &["cg", "minres", "pagerank", "markov"];

/// Returns the message for an unknown command.
pub(super) fn command(name: &str) -> String {
    let cli = Cli::command();
    let about = |method: &&str| {
        let about = cli.find_subcommand(method).and_then(|command| command.get_about());
        format!("  solver {method:<9} {}\n", about.map(ToString::to_string).unwrap_or_default())
    };
    let methods: String = METHODS.iter().map(about).collect();
    let naming = |setting: &str, value: &str| match setting {
        "method" => format!("solver {value}"),
        _ => as_flag(setting, value),
    };
    let hint = match instead_of(name, &naming) {
        Some(instead) => instead,
        None if Path::new(name).is_file() => {
            format!("{name} is a file: try solver info {name}, or run a method on it")
        }
        None => did_you_mean(&nearest(name, cli.get_subcommands().map(clap::Command::get_name))),
    };
    let hint = if hint.is_empty() { hint } else { format!("; {}", hint.trim_end()) };
    format!("there is no command '{name}'{hint}\nThe methods are:\n{methods}solver --help lists all commands")
}
