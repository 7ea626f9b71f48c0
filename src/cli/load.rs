//! Getting the matrix that was named, with signs of life while it takes.

use super::flags;
use super::progress::metered;
use crate::error::Result;
use crate::observe::Meter;
use crate::parallel::start_pool;
use crate::source::{self, Loaded, Options};
use std::ffi::OsStr;
use std::sync::Arc;

/// Loads what `--matrix` names.
pub(super) fn load(what: &OsStr, mut options: Options) -> Result<Loaded> {
    start_pool(None);
    let meter = Arc::new(Meter::default());
    options.meter = Some(Arc::clone(&meter));
    let mut loaded =
        metered("reading", &what.to_string_lossy(), &meter, || source::load_with(what, &options))?;
    loaded.notes.iter_mut().for_each(|note| *note = flags::note(note));
    Ok(loaded)
}
