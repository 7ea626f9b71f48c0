//! Dense columns in Matrix Market files: right-hand sides, solutions and places of nodes, beside a matrix or alone.

use super::market;
use super::text::Text;
use super::tokens::first_lines;
use crate::error::{Error, Result};
use crate::format::Dense;

/// Columns that dense vectors may have where the file stores them sparsely: more are a matrix of its own.
const MOST_COLUMNS: usize = 64;

/// The words of a banner, in small letters; none where there is no banner.
fn banner(text: Text) -> Vec<String> {
    if !market::recognises(text) {
        return Vec::new();
    }
    let line = text.bytes.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let words = first_lines(line, b"", 1).concat();
    words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect()
}

/// Whether it says that it is dense.
pub(super) fn is_array(text: Text) -> bool {
    banner(text).get(2).is_some_and(|word| word == "array")
}

/// Whether it is dense columns of real numbers by what comes before its numbers.
pub(super) fn is_vectors(text: Text) -> Result<bool> {
    let words = banner(text);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["matrix", "array", field, "general"] => Ok(field != "complex"),
        ["matrix", "coordinate", field, "general"] if field != "complex" => {
            market::size(text).map(|(_, cols)| cols <= MOST_COLUMNS)
        }
        _ => Ok(false),
    }
}

/// Reads the text; `None` where it is well but no dense columns of real numbers.
pub(super) fn read(text: Text) -> Result<Option<Dense>> {
    if !is_vectors(text)? {
        return Ok(None);
    }
    match market::read_columns(text) {
        // So sparse that it was never meant as vectors.
        Err(Error::TooLarge { .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// Reads the text, which must be dense columns.
pub(super) fn read_vectors(text: Text) -> Result<Dense> {
    if market::recognises(text) {
        return market::read_columns(text);
    }
    Err(no_vectors(text))
}

/// That a file holds no vectors.
pub(super) fn no_vectors(text: Text) -> Error {
    text.unsupported(
        "what this file holds, where a vector is needed,",
        "a vector is a column of numbers as text, a Matrix Market file, best of the format 'array', or a NumPy .npy file",
    )
}
