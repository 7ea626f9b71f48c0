//! The matrix or graph that a command works on: the argument WHAT, or the option `--matrix`.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::ffi::{OsStr, OsString};
use std::ops::Deref;

const HELP: &str = "\
A file (Matrix Market, Harwell-Boeing, SciPy .npz, a graph, an archive, .slv; also .gz), - for standard input, a name such \
as F1 (see solver matrices), or a generator such as poisson2d:1000x1000";
const EXAMPLES: &str = "a file such as A.mtx, a name such as F1, or a generator such as poisson2d:1000x1000 (solver matrices lists both)";

/// What was typed.
#[derive(Clone, Debug)]
pub struct What(OsString);

impl Deref for What {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.0
    }
}

impl From<&str> for What {
    fn from(what: &str) -> What {
        What(what.into())
    }
}

impl Args for What {
    fn augment_args(command: Command) -> Command {
        let arg = |id: &'static str| Arg::new(id).value_name("WHAT").value_parser(value_parser!(OsString));
        command
            .arg(arg("what").help(HELP))
            .arg(arg("matrix").long("matrix").conflicts_with("what").help("The same as the argument WHAT"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        What::augment_args(command)
    }
}

impl FromArgMatches for What {
    fn from_arg_matches(matches: &ArgMatches) -> Result<What, clap::Error> {
        let typed = ["what", "matrix"].into_iter().find_map(|id| matches.get_one::<OsString>(id));
        let reason = match typed {
            Some(typed) if !typed.is_empty() => return Ok(What(typed.clone())),
            Some(_) => "the name of the matrix is empty",
            None => "no matrix is named",
        };
        Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, format!("{reason}: give {EXAMPLES}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = What::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Calls the option `--graph` in a command that works on graphs; no other option changes.
pub(super) fn graph(option: Arg) -> Arg {
    if option.get_id() == "matrix" { option.long("graph").alias("matrix") } else { option }
}
