//! Downloads of catalog matrices at their first use.

use super::matrix::Matrix;
use crate::error::Result;
use crate::source::fetch::{self, Settings};
use crate::source::{Options, missing};
use std::ffi::OsStr;

impl Matrix {
    /// Reads or generates a matrix as [`Matrix::open`] does, and first downloads a catalog matrix that is not
    /// on this machine. `SOLVER_OFFLINE` forbids downloads, and `SOLVER_MIRROR` names another server.
    pub fn fetch(what: impl AsRef<OsStr>) -> Result<Matrix> {
        let what = what.as_ref();
        match missing(what)? {
            None => Matrix::open(what),
            Some(_) => Matrix::fetch_with(what, &Options::default(), &Settings::new(None)?, &mut |_, _| ()),
        }
    }

    /// Opens a matrix as [`fetch`](Matrix::fetch) does, with options of the reader; `settings` has the
    /// server, the folder and a flag that stops the download. Calls `progress` with the bytes received and
    /// the total, if the total is known. The folder must be that of [`Settings::new`], as matrices are opened
    /// from there.
    pub fn fetch_with(
        what: impl AsRef<OsStr>,
        options: &Options,
        settings: &Settings,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<Matrix> {
        let what = what.as_ref();
        if let Some(entry) = missing(what)? {
            if fetch::is_forbidden() {
                return Err(fetch::offline(entry));
            }
            fetch::on_first_use(entry, || fetch::fetch(entry, settings, progress))?;
        }
        Matrix::open_with(what, options)
    }
}
