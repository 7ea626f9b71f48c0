//! `solver backends`: the registry as text or JSON, and the names that shells complete.

use super::flags::bad;
use super::layout::wrapped;
use super::print_found;
use crate::backend::{Entry, REGISTRY, auto_entries, backend_names, recommended};
use crate::error::Result;
use crate::spelling::{did_you_mean, nearest};
use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use std::ffi::OsStr;

/// Options of `solver backends`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  solver backends\n  solver backends hybrid\n  solver backends --all\n  solver backends --json"
)]
pub(crate) struct BackendsArgs {
    /// Show the parameters, format and precisions of this backend
    #[arg(value_name = "NAME", value_parser = BackendParser, hide_possible_values = true)]
    pub name: Option<String>,
    /// List all backends, not only the recommended ones
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(serde::Serialize)]
struct Row {
    name: &'static str,
    device: &'static str,
    format: &'static str,
    deterministic: bool,
    summary: &'static str,
    family: &'static str,
    from: &'static str,
    columns: bool,
    precisions: Vec<&'static str>,
    parameters: Vec<Parameter>,
    recommended: bool,
}

#[derive(serde::Serialize)]
struct Parameter {
    name: &'static str,
    values: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<String>,
    summary: &'static str,
}

fn row(entry: &Entry) -> Row {
    let parameter = |p: &crate::params::Param| Parameter {
        name: p.name,
        values: p.words(),
        others: p.others(),
        summary: p.summary,
    };
    Row {
        name: entry.name,
        device: entry.device(),
        format: entry.format,
        deterministic: entry.deterministic,
        summary: entry.summary,
        family: entry.family,
        from: entry.from,
        columns: entry.columns,
        precisions: entry.precisions.iter().map(|p| p.name()).collect(),
        parameters: entry.params.iter().map(parameter).collect(),
        recommended: recommended(entry),
    }
}

pub(super) fn run(args: &BackendsArgs) -> Result<bool> {
    let named = |row: &Row| args.name.as_ref().is_none_or(|name| name == row.name);
    let rows: Vec<Row> = REGISTRY.iter().map(row).filter(named).collect();
    if let Some(name) = args.name.as_ref().filter(|_| rows.is_empty()) {
        let near = did_you_mean(&nearest(name, backend_names()));
        let reason = format!("there is no such backend; {near}solver backends --all lists them");
        return Err(bad("NAME", name, reason));
    }
    print_found(args.json, &rows, |rows| match &args.name {
        Some(_) => rows.iter().map(details).collect::<Vec<_>>().join("\n"),
        None => list(rows, args.all),
    })?;
    Ok(true)
}

/// Lists all or the recommended backends, grouped by device, one a line.
fn list(rows: &[Row], all: bool) -> String {
    let mut text = String::new();
    let widest = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for auto in auto_entries() {
        text.push_str(&format!("{}\n", auto.device()));
        text.push_str(&wrapped(&format!("  {:<widest$}  ", auto.name), auto.summary));
        for row in rows.iter().filter(|row| row.device == auto.device() && (all || row.recommended)) {
            text.push_str(&wrapped(&format!("  {:<widest$}  ", row.name), row.summary));
        }
    }
    text.push('\n');
    let hidden = rows.iter().filter(|row| !row.recommended).count();
    if !all {
        text.push_str(&wrapped(
            "",
            &format!("solver backends --all lists {hidden} more, including published kernels."),
        ));
    }
    text.push_str(&wrapped(
        "",
        "solver backends NAME shows the parameters of a backend, its format and its precisions.",
    ));
    text
}

/// Describes one backend with its parameters.
fn details(row: &Row) -> String {
    let mut text = wrapped(&format!("{} on {}: ", row.name, row.device), row.summary);
    let result =
        if row.deterministic { "identical bits in every run" } else { "bits may differ between runs" };
    let columns = if row.columns { "several at a time" } else { "one at a time" };
    for (label, value) in [
        ("format", row.format),
        ("from", row.from),
        ("precisions", &row.precisions.join(", ")),
        ("result", result),
        ("vectors", columns),
    ] {
        text.push_str(&wrapped(&format!("  {label:<11} "), value));
    }
    for p in &row.parameters {
        let allowed: Vec<_> = p.values.iter().copied().chain(p.others.as_deref()).collect();
        let value = format!("{}:{}={}  {}", row.name, p.name, allowed.join("|"), p.summary);
        text.push_str(&wrapped("  parameter   ", &value));
    }
    text
}

/// Accepts any name, to be resolved with the device; shells complete the registered names.
#[derive(Clone)]
pub(super) struct BackendParser;

impl TypedValueParser for BackendParser {
    type Value = String;

    fn parse_ref(
        &self,
        _command: &clap::Command,
        _argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(backend_names().map(PossibleValue::new)))
    }
}
