//! Dense columns in Matrix Market files: right-hand sides, solutions and coordinates of nodes,
//! with a matrix or alone.

use super::market;
use super::text::Text;
use super::tokens::first_lines;
use crate::error::{Error, Result};
use crate::format::Dense;

/// Maximum number of columns of dense vectors in a coordinate file: a file with more columns
/// is a sparse matrix.
const MOST_COLUMNS: usize = 64;

/// Returns the words of the banner in lower case; none if there is no banner.
fn banner(text: Text) -> Vec<String> {
    if !market::recognises(text) {
        return Vec::new();
    }
    let line = text.bytes.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let words = first_lines(line, b"", 1).concat();
    words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect()
}

/// Checks whether the banner names the dense format `array`.
pub(super) fn is_array(text: Text) -> bool {
    banner(text).get(2).is_some_and(|word| word == "array")
}

/// Checks by the banner and the size line whether the file holds dense columns of real numbers.
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

/// Reads the dense columns; returns `None` for a valid file of another kind.
pub(super) fn read(text: Text) -> Result<Option<Dense>> {
    if !is_vectors(text)? {
        return Ok(None);
    }
    match market::read_columns(text) {
        // The file is too sparse to be dense vectors.
        Err(Error::TooLarge { .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// Reads the dense columns; any other content is an error.
pub(super) fn read_vectors(text: Text) -> Result<Dense> {
    if market::recognises(text) {
        return market::read_columns(text);
    }
    Err(no_vectors(text))
}

/// Returns the error for a file that holds no vectors.
pub(super) fn no_vectors(text: Text) -> Error {
    text.unsupported(
        "the content of this file, where a vector is needed,",
        "a vector is a column of numbers as text, a Matrix Market file, preferably in the format 'array', or a NumPy .npy file",
    )
}
