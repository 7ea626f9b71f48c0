//! The residual of every iteration, recorded and saved with the report: as JSON, from which plots are drawn,
//! or as CSV for other programs.

use super::number::nan_for_nulls;
use super::profile::{self, Phase};
use super::{Batch, Observer, Report, slowest};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::Path;

/// Version of the file's layout.
const SCHEMA: u32 = 1;

/// The file format of a history, selected by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Layout {
    /// One JSON object, which can be read back.
    Json,
    /// A table with a line for each iteration, after the report in lines that begin with `#`.
    Csv,
}

impl Layout {
    /// Returns the layout for the ending of a path.
    pub(crate) fn of(path: &Path) -> Result<Layout> {
        match path.extension().unwrap_or_default().to_string_lossy().to_lowercase().as_str() {
            "json" => Ok(Layout::Json),
            "csv" => Ok(Layout::Csv),
            _ => Err(Error::Unwritable {
                path: path.to_owned(),
                reason: "the ending of a history must be .json or .csv".to_owned(),
            }),
        }
    }
}

/// A finished solve with the residual of every iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Version of this layout.
    pub schema: u32,
    /// The report of the solve.
    pub report: Report,
    /// Relative residual before the first iteration and after each iteration; for PageRank and Markov chains
    /// the number that each iteration counts, after a first number that is 2.
    #[serde(deserialize_with = "nan_for_nulls")]
    pub residuals: Vec<f64>,
    /// Seconds since the start for each of these residuals.
    #[serde(deserialize_with = "nan_for_nulls")]
    pub seconds: Vec<f64>,
    /// Whether the seconds within a batch are interpolated, because the device ran the batch
    /// without the host.
    pub seconds_interpolated: bool,
    /// The residuals of each column of a solve of several right-hand sides. The fields above are then those
    /// of the column that took the most iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Curve>,
}

/// The residuals of one column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Relative residual before the first iteration and after each iteration.
    #[serde(deserialize_with = "nan_for_nulls")]
    pub residuals: Vec<f64>,
    /// Seconds since the start for each of these residuals.
    #[serde(deserialize_with = "nan_for_nulls")]
    pub seconds: Vec<f64>,
}

impl History {
    /// Combines the report with the recorded residuals and their times.
    pub(crate) fn new(report: Report, recorder: Recorder) -> History {
        History {
            schema: SCHEMA,
            report,
            residuals: recorder.residuals,
            seconds: recorder.seconds,
            seconds_interpolated: recorder.interpolated,
            columns: Vec::new(),
        }
    }

    /// Combines the report with the recorded residuals of several columns.
    pub(crate) fn of_columns(report: Report, recorders: Vec<Recorder>) -> History {
        let longest = slowest(recorders.iter().map(|recorder| recorder.residuals.len()));
        let longest = recorders.get(longest).cloned().unwrap_or_default();
        let curve = |recorder: Recorder| Curve { residuals: recorder.residuals, seconds: recorder.seconds };
        let columns = recorders.into_iter().map(curve).collect();
        History { columns, ..History::new(report, longest) }
    }

    /// Writes the history as JSON or CSV, selected by the ending of the path.
    pub fn save(&self, path: &Path) -> Result<()> {
        let _span = profile::begin(Phase::Write);
        let fault = |e: serde_json::Error| Error::History { path: path.to_owned(), message: e.to_string() };
        match Layout::of(path)? {
            Layout::Json => {
                crate::observe::write_file(path, serde_json::to_string(self).map_err(fault)?.as_bytes())
            }
            Layout::Csv => {
                let report = serde_json::to_string_pretty(&self.report).map_err(fault)?;
                crate::observe::write_file_with(path, crate::files::Content::Answer, |out| {
                    self.write_table(&report, out)
                })
            }
        }
    }

    /// Writes the report as a comment, the names of the columns, and the numbers.
    fn write_table(&self, report: &str, out: &mut impl Write) -> io::Result<()> {
        for line in report.lines() {
            writeln!(out, "# {line}")?;
        }
        writeln!(out, "# seconds_interpolated: {}", self.seconds_interpolated)?;
        if !self.columns.is_empty() {
            writeln!(out, "column,iteration,seconds,residual")?;
            for (number, Curve { residuals, seconds }) in (1..).zip(&self.columns) {
                for (iteration, (seconds, residual)) in seconds.iter().zip(residuals).enumerate() {
                    writeln!(out, "{number},{iteration},{seconds:e},{residual:e}")?;
                }
            }
            return Ok(());
        }
        writeln!(out, "iteration,seconds,residual")?;
        for (iteration, (seconds, residual)) in self.seconds.iter().zip(&self.residuals).enumerate() {
            writeln!(out, "{iteration},{seconds:e},{residual:e}")?;
        }
        Ok(())
    }

    /// Reads a history, and checks that its arrays have equal lengths.
    pub fn load(path: &Path) -> Result<History> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        History::of(&text, path)
    }

    /// Parses a history from the text of a file.
    pub(crate) fn of(text: &str, path: &Path) -> Result<History> {
        let fault = |message: String| Error::History { path: path.to_owned(), message };
        if text.starts_with('#') {
            return Err(fault("it is a CSV table; plots are drawn from a history in JSON".to_owned()));
        }
        let history: History = serde_json::from_str(text).map_err(|e| fault(e.to_string()))?;
        if history.schema != SCHEMA {
            return Err(fault(format!("expected schema {SCHEMA}, found {}", history.schema)));
        }
        let own = std::iter::once((&history.residuals, &history.seconds));
        let lengths = own.chain(history.columns.iter().map(|curve| (&curve.residuals, &curve.seconds)));
        for (r, s) in lengths.map(|(residuals, seconds)| (residuals.len(), seconds.len())) {
            if r != s {
                return Err(fault(format!("{r} residuals but {s} times")));
            }
        }
        Ok(history)
    }
}

/// The observer that records every residual of a column with its time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    column: usize,
    residuals: Vec<f64>,
    seconds: Vec<f64>,
    interpolated: bool,
}

impl Recorder {
    /// Reserves memory for this many iterations, so that recording them does not allocate.
    pub(crate) fn with_capacity(iterations: usize) -> Recorder {
        Recorder {
            column: 0,
            residuals: Vec::with_capacity(iterations + 1),
            seconds: Vec::with_capacity(iterations + 1),
            interpolated: false,
        }
    }

    /// Records one of several columns, counted from 0.
    #[cfg(test)]
    pub(crate) fn of_column(column: usize) -> Recorder {
        Recorder { column, ..Recorder::default() }
    }

    /// Creates a recorder for each of `k` columns, with memory for this many iterations.
    pub(crate) fn of_columns(k: usize, iterations: usize) -> Vec<Recorder> {
        (0..k).map(|column| Recorder { column, ..Recorder::with_capacity(iterations) }).collect()
    }

    /// The residuals so far.
    pub(crate) fn residuals(&self) -> &[f64] {
        &self.residuals
    }
}

impl Observer for Recorder {
    fn batch(&mut self, batch: &Batch<'_>) {
        if batch.column != self.column {
            return;
        }
        let (from, to) = batch.seconds;
        let count = batch.residuals.len();
        self.interpolated |= count > 1;
        for (i, &residual) in batch.residuals.iter().enumerate() {
            self.residuals.push(residual);
            self.seconds.push(from + (to - from) * (i + 1) as f64 / count as f64);
        }
    }
}
