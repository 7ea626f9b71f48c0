//! `solver plot`: saved histories in one picture, a table of measurements as lines, or the times of rivals as marks.

use super::args::PlotArgs;
use super::running::bad;
use crate::error::{Error, Result};
use crate::observe::History;
use crate::plot::{Captions, Chart, Speeds};
use std::path::Path;

pub(super) fn run(args: &PlotArgs) -> Result<bool> {
    let (labels, files) = (args.label.len(), args.histories.len());
    if labels != 0 && labels != files {
        let reason =
            format!("there are {labels} labels for {files} files: give one for each, in their order");
        return Err(bad("--label", args.label.join(", "), reason));
    }
    super::places::check_writable(("-o", &args.output))?;
    // Each is read once: it may be a pipe.
    let texts = args.histories.iter().map(|path| text(path)).collect::<Result<Vec<_>>>()?;
    let (table, speeds) = match (&args.histories[..], &texts[..]) {
        ([path], [text]) => (Chart::of(text, path)?, Speeds::of(text, path)?),
        _ => (None, None),
    };
    if labels != 0 && (table.is_some() || speeds.is_some()) {
        return Err(bad(
            "--label",
            args.label.join(", "),
            "only histories have labels; this is a file of measurements",
        ));
    }
    let title = args.title.clone();
    match (table, speeds) {
        (Some(mut table), _) => {
            table.title = title.unwrap_or(table.title);
            crate::plot::chart(&table, &args.output)?;
        }
        (None, Some(mut speeds)) => {
            speeds.title = title.unwrap_or(speeds.title);
            crate::plot::speeds(&speeds, &args.output)?;
        }
        (None, None) => {
            let histories = args.histories.iter().zip(&texts).map(|(path, text)| History::of(text, path));
            let captions = Captions { title, labels: args.label.clone() };
            crate::plot::captioned(&histories.collect::<Result<Vec<_>>>()?, &captions, &args.output)?;
        }
    }
    super::print(&format!("{}\n", args.output.display()))?;
    Ok(true)
}

fn text(path: &Path) -> Result<String> {
    let fault = |source| Error::Io { action: "read", path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(fault)
}
