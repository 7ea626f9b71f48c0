//! `solver plot`: draws saved histories in one plot, a table of measurements as lines, or the times of several libraries as
//! marks.

use super::args::PlotArgs;
use super::flags::bad;
use crate::error::Result;
use crate::plot::{Captions, Saved};

pub(super) fn run(args: &PlotArgs) -> Result<bool> {
    let fault = |reason: String| Err(bad("--label", args.label.join(", "), reason));
    let (labels, files) = (args.label.len(), args.histories.len());
    if labels != 0 && labels != files {
        return fault(format!(
            "there are {labels} labels for {files} files: give one label for each file, in the same order"
        ));
    }
    super::paths::check_writable(("-o", &args.output))?;
    let saved = Saved::read(&args.histories)?;
    if labels != 0 && !matches!(saved, Saved::Histories(_)) {
        return fault("only histories have labels; this is a file of measurements".to_owned());
    }
    let captions = Captions { title: args.title.clone(), labels: args.label.clone() };
    saved.draw(&captions, &args.output)?;
    super::print(&format!("{}\n", args.output.display()))?;
    Ok(true)
}
