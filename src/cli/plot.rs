//! `solver plot`: draws saved histories in one plot, or one file: a figure, a table of measurements as lines,
//! or the times of several libraries as marks.

use super::args::PlotArgs;
use super::flags::bad;
use crate::error::Result;
use crate::plot::{Captions, Saved, Style};

pub(super) fn run(args: &PlotArgs) -> Result<bool> {
    let style = Style { dark: args.dark, width: args.width };
    style.check().map_err(|reason| bad("--width", args.width.unwrap_or(0.0), reason))?;
    super::paths::check_writable(("-o", &args.output))?;
    let saved = Saved::read(&args.histories)?;
    check_labels(&saved, &args.label)?;
    let captions = Captions { title: args.title.clone(), labels: args.label.clone() };
    saved.draw(&captions, style, &args.output)?;
    super::print(&format!("{}\n", args.output.display()))?;
    Ok(true)
}

/// Checks that there is a label for each history or series.
fn check_labels(saved: &Saved, labels: &[String]) -> Result<()> {
    let (count, names) = (labels.len(), saved.names());
    if count == 0 || count == names.len() {
        return Ok(());
    }
    let listed = match saved {
        Saved::Histories(_) => String::new(),
        _ => format!(" ({})", names.join(", ")),
    };
    let reason = format!(
        "there are {count} labels for {} {}{listed}: give one label for each, in the same order",
        names.len(),
        saved.labelled()
    );
    Err(bad("--label", labels.join(", "), reason))
}
