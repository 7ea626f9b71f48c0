//! `solver completions` and `solver man`, both generated from the definitions of `--help`.

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::print;
use crate::error::{Error, Result};
use clap::CommandFactory;

pub(super) fn completions(args: &CompletionsArgs) -> Result<bool> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "solver", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(true)
}

pub(super) fn man(args: &ManArgs) -> Result<bool> {
    let command = Cli::command().disable_help_subcommand(true);
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command).render(&mut page);
        rendered.map_err(|source| Error::Io { action: "write", path: "stdout".into(), source })?;
        print(&String::from_utf8_lossy(&page))?;
        return Ok(true);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|source| Error::Io { action: "write", path: folder.clone(), source })?;
    Ok(true)
}
