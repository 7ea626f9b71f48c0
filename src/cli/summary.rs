//! The report on the command line; `-v` adds details.

pub(super) use crate::observe::phrases::{LABELS, Line};
use std::path::Path;

/// Returns whether reports are complete, as with -v.
pub(super) fn verbose() -> bool {
    log::max_level() >= log::LevelFilter::Info
}

/// Formats the line of written files, each with its content.
pub(super) fn files(all: &[(&str, Option<&Path>)]) -> Option<Line> {
    let named = all.iter().filter_map(|(what, path)| Some(format!("{} ({what})", (*path)?.display())));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| ("files", named.join(", ")))
}
