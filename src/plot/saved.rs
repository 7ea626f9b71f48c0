//! Files of saved results, and the picture for each kind of file.

use super::captions::Captions;
use super::chart::{Chart, chart};
use super::convergence::captioned;
use super::figure::Figure;
use super::speeds::speeds;
use super::style::Style;
use super::times::Speeds;
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
    /// A figure of several panels.
    Figure(Figure),
}

impl Saved {
    /// Reads histories, or one figure or file of measurements. Each file is read once, so it may be a pipe.
    pub fn read(paths: &[impl AsRef<Path>]) -> Result<Saved> {
        let text = |path: &Path| {
            let fault = |source| Error::Io { action: "read", path: path.to_owned(), source };
            std::fs::read_to_string(path).map_err(fault)
        };
        let texts = paths.iter().map(|path| text(path.as_ref())).collect::<Result<Vec<_>>>()?;
        if let ([path], [text]) = (paths, &texts[..]) {
            if let Some(figure) = Figure::of(text, path.as_ref())? {
                return Ok(Saved::Figure(figure));
            }
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

    /// Draws the results, as SVG, PNG or PDF by the ending of the path. Labels name the histories, or the
    /// series of one file of measurements, in their order. The file is written completely or not at all.
    pub fn draw(&self, captions: &Captions, style: Style, path: &Path) -> Result<()> {
        let count = self.names().len();
        let labels = &captions.labels;
        if !labels.is_empty() && labels.len() != count {
            let message = format!("{} labels for {count} {}", labels.len(), self.labelled());
            return Err(Error::Plot { path: path.to_owned(), message });
        }
        let title = |own: &String| captions.title.as_ref().unwrap_or(own).clone();
        match self {
            Saved::Histories(histories) => captioned(histories, captions, style, path),
            Saved::Table(table) => {
                let mut table = Chart { title: title(&table.title), ..table.clone() };
                table.rename(labels);
                chart(&table, style, path)
            }
            Saved::Speeds(times) => {
                let mut times = times.clone();
                times.title = title(&times.title);
                times.rename(labels);
                speeds(&times, style, path)
            }
            Saved::Figure(figure) => {
                let mut figure = Figure { title: title(&figure.title), ..figure.clone() };
                figure.rename(labels);
                figure.draw(style, path)
            }
        }
    }

    /// Names what labels rename.
    pub(crate) fn labelled(&self) -> &'static str {
        match self {
            Saved::Histories(_) => "histories",
            _ => "series",
        }
    }

    /// Returns what labels rename: the backends of histories, or the names of series.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Saved::Histories(histories) => histories.iter().map(|h| h.report.backend.as_str()).collect(),
            Saved::Table(table) => table.names(),
            Saved::Speeds(times) => times.names(),
            Saved::Figure(figure) => figure.names(),
        }
    }
}
