//! The vectors of a system as options name them: the right-hand side, where to start, and where the answer goes.

use super::flags::bad;
pub use crate::engine::{RhsName as RightHandSide, VectorFile as FromFile};
use crate::error::{Error, Result};
use crate::source::vector;
use std::path::Path;

/// The function that writes an answer to a file with that ending.
pub fn writer(path: &Path) -> Result<vector::Write> {
    vector::writer(path).map_err(|error| match error {
        Error::Unwritable { path, reason } => bad("--output", path.display(), reason),
        other => other,
    })
}
