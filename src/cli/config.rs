//! Configuration files: TOML with the options of a sub-command as `key = value`. Each value becomes the
//! default of its option, so that typed options take precedence, and every command with `--config` accepts
//! all of its options in the file.

use super::args::Cli;
use super::launch::{self, check_printed};
use super::layout::message;
use crate::error::{Error, Result};
use crate::spelling::{did_you_mean, nearest};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use toml::{Spanned, Value};

/// The option that names the file; it is not allowed in the file.
const OPTION: &str = "config";

/// The arguments of this run.
static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Returns the arguments of this run, of which the first one is the name of the program.
pub(super) fn arguments() -> &'static [OsString] {
    ARGUMENTS.get().map_or(&[], Vec::as_slice)
}

/// Parses the typed arguments on top of the configuration file that they name. Exits as clap does if they are
/// invalid or request help.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Cli> {
    let arguments = ARGUMENTS.get_or_init(|| arguments).as_slice();
    let command = match file(arguments) {
        Some((name, path)) => with_defaults(Cli::command(), &name, &path)?,
        None => Cli::command(),
    };
    let parsed = command.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.or_else(|error| {
        if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
            return Err(Error::UnknownCommand { message: super::unknown::command(name) });
        }
        if error.use_stderr() && launch::ranks().is_some() {
            // The other ranks may have other arguments, so this one must not simply exit.
            let message = error.to_string();
            let message = message.trim_end().trim_start_matches("error: ").to_owned();
            return Err(Error::UnknownCommand { message });
        }
        if error.use_stderr() {
            // A failure to print an error message cannot be reported.
            let _ = write!(std::io::stderr(), "{}", message(error.to_string().trim_end()));
        } else if launch::prints() {
            check_printed(error.print())?;
        }
        launch::finish();
        std::process::exit(error.exit_code())
    })
}

/// Returns the sub-command and the named configuration file. The second parse reports all other errors.
fn file(arguments: &[OsString]) -> Option<(String, PathBuf)> {
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(arguments).ok()?;
    let (name, options) = matches.subcommand()?;
    let path = options.try_get_one::<PathBuf>(OPTION).ok()??;
    Some((name.to_owned(), path.clone()))
}

/// Sets the values of the file as the defaults of the sub-command.
fn with_defaults(command: Command, name: &str, path: &Path) -> Result<Command> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let fault = |message: String| Error::Config { path: path.to_owned(), message };
    let table: BTreeMap<String, Spanned<Value>> = toml::from_str(&text).map_err(|e| fault(e.to_string()))?;
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(_, value)| value.span().start);
    let mut defaults: Vec<(&str, String, String)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let line = text[..value.span().start].matches('\n').count() + 1;
        let fault = |message: String| fault(format!("line {line}: {message}"));
        let (option, typed) = default(&command, name, key, value.get_ref()).map_err(fault)?;
        if let Some((other, ..)) = defaults.iter().find(|(_, earlier, _)| *earlier == option) {
            return Err(fault(format!("'{key}' and '{other}' name the same option: remove one of them")));
        }
        defaults.push((key, option, typed));
    }
    Ok(command.mut_subcommand(name, |sub| {
        defaults.into_iter().fold(sub, |sub, (_, option, value)| {
            sub.mut_arg(option, |arg| arg.required(false).default_value(value))
        })
    }))
}

/// Returns the option of the sub-command that a key names, and its value in the form typed on
/// the command line.
fn default(
    command: &Command,
    name: &str,
    key: &str,
    value: &Value,
) -> std::result::Result<(String, String), String> {
    let sub = command.find_subcommand(name).ok_or_else(|| format!("there is no sub-command {name}"))?;
    let options = || sub.get_arguments().filter(|arg| arg.get_id() != OPTION);
    let named = |arg: &&clap::Arg| {
        arg.get_long() == Some(key) || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&key))
    };
    let option = options().find(named).ok_or_else(|| {
        let keys = || options().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
        let near = did_you_mean(&nearest(key, keys()));
        format!("there is no key '{key}'; {near}the keys are {}", keys().collect::<Vec<_>>().join(", "))
    })?;
    let typed = match value {
        Value::String(text) => text.clone(),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => value.to_string(),
        _ => return Err(format!("{key} must be a string, a number, true or false")),
    };
    match sub.clone().no_binary_name(true).try_get_matches_from([format!("--{key}={typed}")]) {
        // Required arguments may be typed on the command line.
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            Err(format!("{key}: {}", reason(&error)))
        }
        _ => Ok((option.get_id().to_string(), typed)),
    }
}

/// Returns the message of clap without its advice on usage.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.split("\n\n").next().unwrap_or(text).trim_end().to_owned()
}
