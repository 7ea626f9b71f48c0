//! Observation of a solve: reports, histories and progress. Observers are not part of the solver loop.

pub(crate) mod forecast;
pub(crate) mod history;
pub(crate) mod meter;
mod number;
pub(crate) mod phrases;
pub mod profile;
pub(crate) mod report;

pub(crate) use forecast::Forecast;
pub use history::History;
pub(crate) use history::Recorder;
pub use meter::Meter;
pub(crate) use profile::Phase;
pub use profile::Profile;
pub use report::{Common, Level, Levels, Report};

use crate::error::{Error, Result};
use crate::files;
use std::cmp::Reverse;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Returns the index of the column with the most iterations, the first of several; 0 without columns.
pub(crate) fn slowest(iterations: impl IntoIterator<Item = usize>) -> usize {
    let counted = iterations.into_iter().enumerate();
    counted.max_by_key(|&(index, count)| (count, Reverse(index))).map_or(0, |(index, _)| index)
}

/// Returns the largest value; NaN, of a column that was not solved, counts as the largest.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |a: f64, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) })
}

/// A batch of iterations that has just ended.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The column of these iterations, counted from 0. A solve of one right-hand side has only column 0.
    pub column: usize,
    /// Iterations of the column before this batch.
    pub first: usize,
    /// The relative residual after each iteration of the batch.
    pub residuals: &'a [f64],
    /// Seconds since the start, at the beginning and at the end of the batch.
    pub seconds: (f64, f64),
    /// The tolerance on the residuals, if there is one.
    pub tolerance: Option<f64>,
}

/// Receives each batch of iterations.
pub trait Observer {
    /// Called once after each batch for each column, and once before the first with the initial
    /// residual alone and `first` = 0.
    fn batch(&mut self, batch: &Batch<'_>);

    /// Called when a phase other than iterations begins; the phase lasts until the next batch
    /// or the end of the solve.
    fn phase(&mut self, _what: &'static str) {}

    /// Returns whether [`iterate`](Self::iterate) is to be called. Then a batch is one step of the
    /// method, which has two iterations in MINRES, and x is copied to the host after each: a solve
    /// takes several times as long.
    fn wants_iterates(&self) -> bool {
        false
    }

    /// Called after each batch of a solve of a linear system with one right-hand side: the number of
    /// iterations, and x after them.
    fn iterate(&mut self, _iteration: usize, _x: &[f64]) {}
}

/// Writes a file completely or not at all. Follows links, keeps the mode of an existing file, and
/// writes directly to a pipe or device. If the file cannot be written, because the disk is full for
/// example, the bytes are kept in the cache folder or in the system's folder of temporary files, and
/// the error names the file.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    write_file_with(path, files::Content::Answer, |file| file.write_all(bytes))
}

/// Writes a file with content that `write` generates.
pub(crate) fn write_file_with(
    path: &Path,
    content: files::Content,
    write: impl FnOnce(&mut BufWriter<&mut files::Output>) -> std::io::Result<()>,
) -> Result<()> {
    let fault = |source| Error::Io { action: "write", path: path.to_owned(), source };
    files::replace(path, content, false, write).map_err(fault)
}
