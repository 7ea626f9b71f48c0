//! `solver preconditioners`, the list of preconditioners in help texts, and the parser of
//! `--precond`, from one table.

use super::layout::{wrapped, wrapped_with};
use super::{flags, print, print_json};
use crate::error::Result;
use crate::precond::{Preconditioner, ROWS};
use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use std::ffi::OsStr;

/// Options of `solver preconditioners`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver preconditioners\n  solver preconditioners --json")]
pub(crate) struct PreconditionersArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(serde::Serialize)]
struct Row {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<String>,
    default: String,
}

pub(super) fn run(args: &PreconditionersArgs) -> Result<bool> {
    if !args.json {
        print(&list())?;
        return Ok(true);
    }
    let row = |row: &'static crate::precond::Entry| Row {
        name: row.name,
        summary: row.summary,
        parameters: row.params.iter().map(ToString::to_string).collect(),
        default: row.default().to_string(),
    };
    print_json(&ROWS.iter().map(row).collect::<Vec<_>>())?;
    Ok(true)
}

/// Lists the preconditioners, with a line for each and for each of its parameters.
fn list() -> String {
    let mut text = String::new();
    for row in ROWS {
        text.push_str(&wrapped(&format!("  {:<14} ", row.name), row.summary));
        let parameter = |param| wrapped_with(&" ".repeat(19), &" ".repeat(22), &format!(":{param}"));
        row.params.iter().for_each(|param| text.push_str(&parameter(param)));
    }
    text
}

/// Appends the list of preconditioners to a help text.
pub(super) fn listed_below(text: &str) -> String {
    format!("{text}\n\nPreconditioners:\n{}", list().trim_end())
}

/// Parses a preconditioner with its parameters; shells complete the names.
#[derive(Clone)]
pub(super) struct PreconditionerParser;

impl TypedValueParser for PreconditionerParser {
    type Value = Preconditioner;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<Preconditioner, clap::Error> {
        let value = value.to_string_lossy();
        value.parse().map_err(|e| {
            let message = format!("{}\n", flags::message(&e));
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ROWS.iter().map(|row| PossibleValue::new(row.name).help(row.summary))))
    }
}
