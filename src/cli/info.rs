//! `solver info`: describes a matrix before it is used in a solve.

pub(super) mod args;
mod levels;

use super::flags::{as_flag, bad};
use super::layout::{labelled, wrapped};
use super::load::load_matrix;
use super::plan::check_partition;
use super::progress::{during, metered};
use super::{fetch, launch, print_found};
use crate::engine::{Cluster, Info, Network};
use crate::error::Result;
use crate::observe::Meter;
use crate::plot::Format;
use crate::source::Options;
use args::InfoArgs;
use std::sync::Arc;

pub(super) fn run(args: &InfoArgs) -> Result<bool> {
    // The picture's format and path are checked before the matrix is read.
    args.spy.as_deref().map(Format::of).transpose()?;
    args.spy.as_deref().map_or(Ok(()), |path| super::paths::check_writable(("--spy", path)))?;
    check_partition(&args.partition, &args.matrix)?;
    fetch::on_first_use(fetch::missing(&args.matrix)?)?;
    if let Some(ranks) = args.ranks {
        return predict(args, ranks);
    }
    if let Some(precond) = &args.precond {
        return levels::run(args, precond);
    }
    let info = describe(args)?;
    print_found(args.json, &info, in_words)?;
    Ok(true)
}

/// Predicts the parts and the time over ranks. Under a launcher, the ranks measure their network, and the
/// first rank does the rest.
fn predict(args: &InfoArgs, ranks: usize) -> Result<bool> {
    let positive = |flag: &'static str, given: Option<f64>| match given {
        Some(value) if !(value > 0.0 && value.is_finite()) => {
            Err(bad(flag, value, "it must be a positive number"))
        }
        _ => Ok(()),
    };
    positive("--latency", args.latency)?;
    positive("--network", args.network)?;
    let measured = launch::ranks().map(Network::measure).transpose()?.flatten();
    let default = measured.unwrap_or_default();
    let network = Network {
        latency: args.latency.map_or(default.latency, |microseconds| microseconds / 1e6),
        bandwidth: args.network.map_or(default.bandwidth, |gigabytes| gigabytes * 1e9),
    };
    if !launch::prints() {
        return Ok(true);
    }
    let matrix = load_matrix(&args.matrix, options(args, false))?;
    let (per_machine, partition) = (args.ranks_per_machine, args.partition.clone());
    let cluster = Cluster { ranks, per_machine, network, partition };
    let prediction = during("timing iterations on this machine".to_owned(), || matrix.over_ranks(&cluster))?;
    print_found(args.json, &prediction, |prediction| labelled(12, &prediction.lines()))?;
    Ok(true)
}

/// Returns the options of the reader; `attached` is whether it reads vectors and coordinates stored with the
/// matrix.
fn options(args: &InfoArgs, attached: bool) -> Options {
    Options {
        as_stored: args.as_stored,
        attached,
        columns: args.columns.clone(),
        first_index: args.first_index,
        ..Options::default()
    }
}

/// Reads and describes the matrix and draws its picture, and shows which phase is running.
fn describe(args: &InfoArgs) -> Result<Info> {
    let matrix = load_matrix(&args.matrix, options(args, args.attached))?;
    let meter = Arc::new(Meter::default());
    metered("describing", matrix.name(), &meter, || {
        let info = Info::of(&matrix, &|setting, value| naming(matrix.name(), setting, value));
        if let Some(path) = &args.spy {
            meter.begin("drawing", 0);
            matrix.spy(path)?;
        }
        Ok(info)
    })
}

/// Formats a method as a command on this matrix, and any other setting as a flag.
fn naming(matrix: &str, setting: &str, value: &str) -> String {
    if setting != "method" {
        return as_flag(setting, value);
    }
    let plain = |c: char| c.is_alphanumeric() || "._-:/,=+@%~".contains(c);
    match matrix.chars().all(plain) {
        true => format!("solver {value} --matrix {matrix}"),
        false => format!("solver {value} --matrix '{}'", matrix.replace('\'', r"'\''")),
    }
}

fn in_words(info: &Info) -> String {
    let mut text = labelled(12, &info.lines_naming(&as_flag));
    for (i, hint) in info.hints.iter().enumerate() {
        text.push_str(&wrapped(&format!("{:<12} - ", if i == 0 { "hints" } else { "" }), hint));
    }
    text
}
