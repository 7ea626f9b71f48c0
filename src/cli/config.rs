//! Configuration files: TOML in which the options of a sub-command stand as `key = value`. What a file says becomes the
//! default of its option, so that what is typed wins, and every command that has `--config` reads all of its options.

use super::args::Cli;
use super::layout::message;
use crate::error::{Error, Result};
use crate::spelling::{did_you_mean, nearest};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use toml::{Spanned, Value};

/// The option that names the file, and may not stand in one.
const OPTION: &str = "config";

/// What was typed, over what the configuration file says that was named. Ends the program as clap does where that makes
/// no sense, or help is asked for.
pub(super) fn parse() -> Result<Cli> {
    let command = match file() {
        Some((name, path)) => with_defaults(Cli::command(), &name, &path)?,
        None => Cli::command(),
    };
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.or_else(|error| {
        if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) {
            return Err(Error::UnknownCommand { message: super::unknown::command(name) });
        }
        if error.use_stderr() {
            // An error message has no other place to go.
            let _ = write!(std::io::stderr(), "{}", message(error.to_string().trim_end()));
        } else {
            super::printed(error.print())?;
        }
        std::process::exit(error.exit_code())
    })
}

/// The sub-command, and the file that was named. Whatever else is wrong is for the second parse to say.
fn file() -> Option<(String, PathBuf)> {
    let matches = Cli::command().ignore_errors(true).try_get_matches().ok()?;
    let (name, options) = matches.subcommand()?;
    let path = options.try_get_one::<PathBuf>(OPTION).ok()??;
    Some((name.to_owned(), path.clone()))
}

/// The command whose sub-command of that name has the defaults that the file gives.
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
        if let Some((other, ..)) = defaults.iter().find(|(_, known, _)| *known == option) {
            return Err(fault(format!("'{key}' is the option that '{other}' is: one of them must go")));
        }
        defaults.push((key, option, typed));
    }
    Ok(command.mut_subcommand(name, |sub| {
        defaults.into_iter().fold(sub, |sub, (_, option, value)| {
            sub.mut_arg(option, |arg| arg.required(false).default_value(value))
        })
    }))
}

/// The option of the sub-command that a key stands for, and its value as it would be typed; or what is wrong with it.
fn default(
    command: &Command,
    name: &str,
    key: &str,
    value: &Value,
) -> std::result::Result<(String, String), String> {
    let sub = command.find_subcommand(name).ok_or_else(|| format!("there is no solver {name}"))?;
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
        _ => return Err(format!("{key} must be a text, a number, true or false")),
    };
    match sub.clone().no_binary_name(true).try_get_matches_from([format!("--{key}={typed}")]) {
        // The rest may be typed.
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => {
            Err(format!("{key}: {}", reason(&error)))
        }
        _ => Ok((option.get_id().to_string(), typed)),
    }
}

/// What clap says, without its advice on how to type it.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.split("\n\n").next().unwrap_or(text).trim_end().to_owned()
}
