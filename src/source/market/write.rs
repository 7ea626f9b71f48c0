//! Writing Matrix Market files.

use crate::error::Result;
use std::fmt::Write;
use std::path::Path;

/// Writes a vector as an array of one column, each number with the digits that bring back the same bits.
pub fn write_vector(path: &Path, values: &[f64]) -> Result<()> {
    let mut text = String::with_capacity(24 * values.len() + 64);
    let _ = writeln!(text, "%%MatrixMarket matrix array real general\n{} 1", values.len());
    for value in values {
        let _ = writeln!(text, "{value:e}");
    }
    crate::observe::write_file(path, text.as_bytes())
}
