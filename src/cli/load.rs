//! Loads the named matrix and shows progress.

use super::flags;
use super::progress::metered;
use crate::engine::Matrix;
use crate::error::Result;
use crate::observe::Meter;
use crate::parallel::start_pool;
use crate::source::{self, Loaded, Options};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Loads what `--matrix` names.
pub(super) fn load(what: &OsStr, mut options: Options) -> Result<Loaded> {
    start_pool(None);
    let mut loaded = shown(what, |meter| {
        options.meter = Some(Arc::clone(meter));
        source::load_with(what, &options)
    })?;
    loaded.notes.iter_mut().for_each(|note| *note = flags::note(note));
    Ok(loaded)
}

/// Runs `read`, which reads what `what` names, and shows its progress by the meter that it gets.
pub(super) fn shown<R>(what: &OsStr, read: impl FnOnce(&Arc<Meter>) -> R) -> R {
    let meter = Arc::new(Meter::default());
    metered("reading", &what.to_string_lossy(), &meter, || read(&meter))
}

/// Loads what `--matrix` names as a matrix of the library, with the labels of a file.
pub(super) fn load_labelled(what: &OsStr, options: Options, labels: Option<&Path>) -> Result<Matrix> {
    let matrix = load_matrix(what, options)?;
    labels.into_iter().try_fold(matrix, Matrix::read_labels)
}

/// Loads what `--matrix` names as a matrix of the library.
pub(super) fn load_matrix(what: &OsStr, options: Options) -> Result<Matrix> {
    let began = Instant::now();
    let loaded = load(what, options)?;
    Ok(Matrix::of_loaded(what.to_string_lossy(), loaded, began.elapsed().as_secs_f64()))
}
