//! The matrix or graph of a command: the argument MATRIX, or the option `--matrix`.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::ffi::{OsStr, OsString};
use std::ops::Deref;

const HELP: &str = "\
A file (Matrix Market, Harwell-Boeing, SciPy .npz, a graph, an archive, .slv; also .gz), - for standard input, a name such \
as F1, or a generator such as poisson2d:1000x1000 (see solver matrices)";
const EXAMPLES: &str = "a file such as A.mtx, a name such as F1, or a generator such as poisson2d:1000x1000 (solver matrices lists names and \
     generators)";

/// The matrix as typed.
#[derive(Clone, Debug)]
pub(crate) struct MatrixArg(OsString);

impl Deref for MatrixArg {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.0
    }
}

impl From<&str> for MatrixArg {
    fn from(typed: &str) -> MatrixArg {
        MatrixArg(typed.into())
    }
}

impl Args for MatrixArg {
    fn augment_args(command: Command) -> Command {
        let arg = |id: &'static str| Arg::new(id).value_name("MATRIX").value_parser(value_parser!(OsString));
        command
            .arg(arg("what").help(HELP))
            .arg(arg("matrix").long("matrix").conflicts_with("what").help("Same as the argument MATRIX"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        MatrixArg::augment_args(command)
    }
}

impl FromArgMatches for MatrixArg {
    fn from_arg_matches(matches: &ArgMatches) -> Result<MatrixArg, clap::Error> {
        let typed = ["what", "matrix"].into_iter().find_map(|id| matches.get_one::<OsString>(id));
        let reason = match typed {
            Some(typed) if !typed.is_empty() => return Ok(MatrixArg(typed.clone())),
            Some(_) => "the name of the matrix is empty",
            None => "no matrix is named",
        };
        Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, format!("{reason}: give {EXAMPLES}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = MatrixArg::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Renames the argument to GRAPH and the option to `--graph` for commands on graphs; leaves all
/// other options unchanged.
pub(super) fn graph(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "what" => option.value_name("GRAPH"),
        "matrix" => option.long("graph").value_name("GRAPH").help("Same as the argument GRAPH"),
        _ => option,
    }
}
