//! Figures of a record.

use super::record::Record;
use crate::error::Result;
use std::path::{Path, PathBuf};

/// Draws the figures of a record into a folder; returns their titles and files.
pub fn draw(_record: &Record, _folder: &Path, _dark: bool) -> Result<Vec<(String, PathBuf)>> {
    Ok(Vec::new())
}
