//! Dense columns in Matrix Market files: right-hand sides, solutions and places of nodes, beside a matrix or alone.

use super::text::{Fault, Text, check_rows};
use super::words::{Words, first_lines};
use super::{detect, market};
use crate::error::{Error, Result};
use crate::format::Dense;
use crate::parallel::zeros;

const COMMENT: &[u8] = b"%";
/// Columns that dense vectors may have where the file stores them sparsely: more are a matrix of its own.
const MOST_COLUMNS: usize = 64;

/// The words of a banner, in small letters; none where there is no banner.
fn banner(text: Text) -> Vec<String> {
    if !detect::is_matrix_market(text) {
        return Vec::new();
    }
    let line = text.bytes.split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let words = first_lines(line, b"", 1).concat();
    words.iter().map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect()
}

/// Whether it says that it is dense.
pub(super) fn is_array(text: Text) -> bool {
    banner(text).get(2).is_some_and(|word| word == "array")
}

/// Reads the text; `None` where it is well but no dense columns of real numbers.
pub(super) fn read(text: Text) -> Result<Option<Dense>> {
    let words = banner(text);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["matrix", "array", "real" | "integer", "general"] => read_array(text).map(Some),
        ["matrix", "coordinate", "real" | "integer" | "pattern", "general"] => scatter(text),
        _ => Ok(None),
    }
}

/// Reads the array format, column after column.
fn read_array(text: Text) -> Result<Dense> {
    let fail = |fault: Box<Fault>| text.error(*fault);
    let mut words = Words::new(text.bytes, 0);
    words.skip_line();
    words.seek_line(COMMENT);
    let rows = words.whole("the number of rows", 0..u64::from(u32::MAX)).map_err(fail)? as usize;
    words.skip_blanks();
    let cols = words.whole("the number of columns", 0..u64::from(u32::MAX)).map_err(fail)? as usize;
    words.finish_line().map_err(fail)?;
    let count = rows.saturating_mul(cols);
    // Each number takes two bytes, so that a header cannot ask for more than the file holds.
    if count > text.bytes.len() / 2 + 1 {
        let expected = format!("{count} numbers, as the size line announces");
        let found = Some("a shorter file".to_owned());
        return Err(text.error(Fault { at: text.bytes.len(), expected, found }));
    }
    let mut values = zeros(count)?;
    for col in 0..cols {
        for row in 0..rows {
            words.seek_line(COMMENT);
            values[row * cols + col] = words.number("a number").map_err(fail)?;
        }
    }
    if words.seek_line(COMMENT) {
        let expected = format!("end of file after {count} numbers, as the size line announces");
        return Err(text.error(Fault::new(words.at, expected)));
    }
    Dense::new(rows, cols, values)
}

/// Reads the coordinate format; what is not stored is 0.
fn scatter(text: Text) -> Result<Option<Dense>> {
    let matrix = market::parse(text.path, text.bytes)?.matrix;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let size = rows.saturating_mul(cols);
    if cols > MOST_COLUMNS || check_rows(size, matrix.nnz() as u64).is_err() {
        return Ok(None);
    }
    let mut values = zeros(size)?;
    for row in 0..rows {
        for (col, value) in matrix.row(row) {
            values[row * cols + col] = value;
        }
    }
    Dense::new(rows, cols, values).map(Some)
}

/// Reads the text, which must be dense columns.
pub(super) fn read_vectors(text: Text) -> Result<Dense> {
    let refuse = || -> Error {
        text.unsupported(
            "what this file holds, where a vector is needed,",
            "a vector is a Matrix Market file with the format 'array', or a NumPy .npy file",
        )
    };
    read(text)?.ok_or_else(refuse)
}
