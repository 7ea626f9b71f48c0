//! What watches a solve: reports, histories and progress. Observers own no part of the loop.

pub mod forecast;
pub mod history;
pub mod meter;
mod number;
pub(crate) mod phrases;
pub mod report;

pub use forecast::Forecast;
pub use history::{History, Recorder};
pub use meter::Meter;
pub use report::Report;

use crate::error::{Error, Result};
use crate::files;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// One batch of iterations that has just ended.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The column whose iterations these are, from 0: a solve of one right-hand side has no other.
    pub column: usize,
    /// Iterations of the column done before this batch.
    pub first: usize,
    /// The relative residual after each iteration of the batch.
    pub residuals: &'a [f64],
    /// Seconds since the start, at the beginning and at the end of the batch.
    pub seconds: (f64, f64),
    /// The tolerance that the residuals are heading for, where there is one.
    pub tolerance: Option<f64>,
}

/// Sees each batch of iterations.
pub trait Observer {
    /// Called once after each batch for each column, and once before the first with the initial residual alone and
    /// `first` = 0.
    fn batch(&mut self, batch: &Batch<'_>);

    /// Called when something other than iterations begins; it lasts until the next batch or the end of the solve.
    fn phase(&mut self, _what: &'static str) {}
}

/// Writes a file whole or not at all. Links are followed, an existing file keeps its mode, and a pipe or device is written to
/// as it is.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    write_file_with(path, |file| file.write_all(bytes))
}

/// The same for content that is made while it is written.
pub fn write_file_with(
    path: &Path,
    content: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<()> {
    let fault = |source| Error::Io { action: "write", path: path.to_owned(), source };
    files::replace(path, files::Content::Result, false, content).map_err(fault)
}
