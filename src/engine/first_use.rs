//! Matrices of the catalog that are fetched when they are first used.

use super::matrix::Matrix;
use crate::error::Result;
use crate::source::fetch::{self, Settings};
use crate::source::{Options, missing};
use std::ffi::OsStr;

impl Matrix {
    /// Does what [`Matrix::open`] does, and fetches a matrix of the catalog that is not on this machine. `SOLVER_OFFLINE`
    /// forbids that, and `SOLVER_MIRROR` names another server.
    pub fn fetch(what: impl AsRef<OsStr>) -> Result<Matrix> {
        let what = what.as_ref();
        match missing(what)? {
            None => Matrix::open(what),
            Some(_) => Matrix::fetch_with(what, &Options::default(), &Settings::new(None)?, &mut |_, _| ()),
        }
    }

    /// The same with options of the reader, from a server and with a flag that stops the download. `progress` gets the bytes
    /// that are here, and their number in the end where it is known. The folder of the settings must be that of [`Settings::new`], from
    /// which matrices are opened.
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
