//! The vectors that options name: the right-hand side, the start vector and the answer.

use super::flags::bad;
pub use crate::engine::{RhsName as RightHandSide, VectorFile as FromFile};
use crate::error::{Error, Result};
use crate::source::vector;
use std::path::Path;

/// Returns the function that writes an answer to a file with this ending.
pub fn writer(path: &Path) -> Result<vector::Write> {
    vector::writer(path).map_err(|error| match error {
        Error::Unwritable { path, reason } => bad("--output", path.display(), reason),
        other => other,
    })
}
