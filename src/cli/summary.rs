//! The report on the command line: `-v` adds what not every user needs to know.

pub(super) use crate::observe::phrases::{LABELS, Line};
use std::path::Path;

/// Whether reports are complete: with -v.
pub(super) fn verbose() -> bool {
    log::max_level() >= log::LevelFilter::Info
}

/// The files that a solve has written, each with what it holds.
pub(super) fn files(all: &[(&str, Option<&Path>)]) -> Option<Line> {
    let named = all.iter().filter_map(|(what, path)| Some(format!("{} ({what})", (*path)?.display())));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| ("files", named.join(", ")))
}
