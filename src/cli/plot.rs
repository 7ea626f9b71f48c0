//! `solver plot`: saved histories in one picture, a table of measurements as lines, or the times of rivals as marks.

use super::args::PlotArgs;
use crate::error::{Error, Result};
use crate::observe::History;
use crate::plot::{Chart, Speeds};
use std::path::Path;

pub(super) fn run(args: &PlotArgs) -> Result<bool> {
    super::places::check_writable(("-o", &args.output))?;
    // Each is read once: it may be a pipe.
    let texts = args.histories.iter().map(|path| text(path)).collect::<Result<Vec<_>>>()?;
    let (table, speeds) = match (&args.histories[..], &texts[..]) {
        ([path], [text]) => (Chart::of(text, path)?, Speeds::of(text, path)?),
        _ => (None, None),
    };
    match (table, speeds) {
        (Some(table), _) => crate::plot::chart(&table, &args.output)?,
        (None, Some(speeds)) => crate::plot::speeds(&speeds, &args.output)?,
        (None, None) => {
            let histories = args.histories.iter().zip(&texts).map(|(path, text)| History::of(text, path));
            crate::plot::convergence(&histories.collect::<Result<Vec<_>>>()?, &args.output)?;
        }
    }
    super::print(&format!("{}\n", args.output.display()))?;
    Ok(true)
}

fn text(path: &Path) -> Result<String> {
    let fault = |source| Error::Io { action: "read", path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(fault)
}
