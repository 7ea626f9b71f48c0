//! The command line: parse, plan, run, print. Only this module prints.

#![allow(rustdoc::bare_urls)] // Comments of options are help texts.

mod args;
mod backends;
mod bench;
mod cg;
mod choices;
mod command;
mod config;
mod convert;
mod doctor;
mod dry_run;
mod fetch;
mod flags;
mod groups;
mod info;
mod interrupt;
mod interval;
mod launch;
mod layout;
mod load;
mod manual;
mod markov;
mod matrices;
mod matrix_arg;
mod memory;
mod over_ranks;
mod pagerank;
mod paths;
mod plan;
mod plot;
mod precond;
mod profile;
mod progress;
mod running;
mod spmv;
mod summary;
mod tune;
mod unknown;
mod words;

use crate::error::Error;
use crate::text::{count_from_one, duration, thousands};
use crate::{files, signals};
use args::Command;
use launch::{COULD_NOT_RUN, print, print_found, print_json};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Exit code of a solve that ended without meeting its tolerance.
const NOT_CONVERGED: u8 = 1;

/// Runs the program with the arguments of this process.
pub fn run() -> ExitCode {
    ExitCode::from(run_with(std::env::args_os().collect()))
}

/// Runs the program with these arguments, of which the first one is its name, and returns its exit code. A
/// process may call this once.
pub fn run_with(arguments: Vec<OsString>) -> u8 {
    profile::start_clock();
    count_from_one();
    signals::ignore_file_size_limit();
    let code = match launch::start() {
        Ok(()) => run_command(arguments),
        Err(error) if launch::is_first_process() => could_not_run(&error),
        // Each process has the same error.
        Err(_) => COULD_NOT_RUN,
    };
    launch::finish();
    if launch::prints() { code } else { 0 }
}

fn run_command(arguments: Vec<OsString>) -> u8 {
    let cli = match config::parse(arguments) {
        Ok(cli) => cli,
        Err(error) => return could_not_run(&error),
    };
    if cli.quiet || !launch::prints() {
        progress::silence();
    }
    if cli.offline {
        fetch::forbid();
    }
    if let Some(folder) = cli.cache {
        files::set_cache_folder(folder);
    }
    let level = match cli.verbose {
        _ if cli.quiet => "error",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        // Its errors are included in the error messages of this program.
        .filter_module("rustls_platform_verifier", log::LevelFilter::Off)
        .format(|out, record| {
            if !launch::prints() {
                return Ok(());
            }
            let (level, style) = (record.level(), out.default_level_style(record.level()));
            let text = layout::indented_message("[ERROR] ".len(), &record.args().to_string());
            write!(out, "[{style}{level:<5}{style:#}] {text}")
        })
        .init();
    if cli.quiet {
        // RUST_LOG cannot raise the level above that of --quiet.
        log::set_max_level(log::LevelFilter::Error);
    }
    if !launch::prints() {
        log::set_max_level(log::LevelFilter::Off);
    }
    if let Err(error) = over_ranks::check(&cli.command) {
        // Processes that are no ranks have the same error.
        let prints = launch::ranks().is_some() || launch::is_first_process();
        return if prints { could_not_run(&error) } else { COULD_NOT_RUN };
    }
    let outcome = match cli.command {
        Command::Cg(args) => cg::run(args, false),
        Command::Minres(args) => cg::run(args, true),
        Command::Pagerank(args) => pagerank::run(args),
        Command::Markov(args) => markov::run(args),
        Command::Info(args) => info::run(&args),
        Command::Spmv(args) => spmv::run_products(&args, None),
        Command::Spmm(args) => spmv::run_products(&args.product, Some(args.columns)),
        Command::Bench(args) => bench::run_bench(&args),
        Command::Matrices(args) => matrices::run(&args),
        Command::Fetch(args) => fetch::run(&args),
        Command::Backends(args) => backends::run(&args),
        Command::Preconditioners(args) => precond::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    };
    match outcome {
        Ok(true) => 0,
        Ok(false) => NOT_CONVERGED,
        Err(error) => could_not_run(&error),
    }
}

fn could_not_run(error: &Error) -> u8 {
    launch::failed(error, flags::message(error));
    COULD_NOT_RUN
}
