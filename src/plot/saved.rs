//! Files of saved results, and the picture for each kind of file.

use super::captions::Captions;
use super::chart::{Chart, chart};
use super::convergence::captioned;
use super::speeds::{Speeds, speeds};
use crate::error::{Error, Result};
use crate::observe::History;
use std::path::Path;

/// The content of files of results.
#[derive(Clone, Debug)]
pub enum Saved {
    /// Histories of solves.
    Histories(Vec<History>),
    /// A table of measurements.
    Table(Chart),
    /// Times of competing programs.
    Speeds(Speeds),
}

impl Saved {
    /// Reads histories, or one file of measurements. Each file is read once, so it may be a pipe.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Saved> {
        let text = |path: &Path| {
            let fault = |source| Error::Io { action: "read", path: path.to_owned(), source };
            std::fs::read_to_string(path).map_err(fault)
        };
        let texts = paths.iter().map(|path| text(path.as_ref())).collect::<Result<Vec<_>>>()?;
        if let ([path], [text]) = (paths, &texts[..]) {
            if let Some(table) = Chart::of(text, path.as_ref())? {
                return Ok(Saved::Table(table));
            }
            if let Some(speeds) = Speeds::of(text, path.as_ref())? {
                return Ok(Saved::Speeds(speeds));
            }
        }
        let histories = paths.iter().zip(&texts).map(|(path, text)| History::of(text, path.as_ref()));
        histories.collect::<Result<_>>().map(Saved::Histories)
    }

    /// Draws the results, as SVG or PNG by the ending of the path. Only histories have labels. The file is written completely or
    /// not at all.
    pub fn draw(&self, captions: &Captions, path: &Path) -> Result<()> {
        if !captions.labels.is_empty() && !matches!(self, Saved::Histories(_)) {
            let message = "only histories have labels; this is a file of measurements".to_owned();
            return Err(Error::Plot { path: path.to_owned(), message });
        }
        let title = |own: &String| captions.title.as_ref().unwrap_or(own).clone();
        match self {
            Saved::Histories(histories) => captioned(histories, captions, path),
            Saved::Table(table) => chart(&Chart { title: title(&table.title), ..table.clone() }, path),
            Saved::Speeds(times) => {
                let mut times = times.clone();
                times.title = title(&times.title);
                speeds(&times, path)
            }
        }
    }
}
