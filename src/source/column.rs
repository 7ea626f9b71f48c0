//! Numbers as text, as NumPy's `savetxt` writes and `loadtxt` reads them: one line for each row,
//! numbers separated by blanks or a comma, comments from `#` to the end of a line. One column is a
//! vector, and so is one row.

use super::market::{push_value, write_packed};
use super::passing::{Pass, Take};
use super::text::{Fault, Text};
use super::tokens::{ListTokens, Scan, first_lines, is_number};
use crate::error::Result;
use crate::files::Content;
use crate::format::Dense;
use crate::parallel::grow;
use std::path::Path;

const COMMENT: &[u8] = b"#";
/// Numbers formatted per write.
const BLOCK: usize = 1 << 14;

/// Checks whether the first word outside comments is a number.
pub(super) fn recognises(text: Text) -> bool {
    let lines = first_lines(text.bytes, COMMENT, 1);
    lines.first().and_then(|line| line.first()).is_some_and(|word| is_number(word))
}

/// Reads the numbers, which must be finite.
pub(super) fn read(text: Text) -> Result<Dense> {
    let mut values = Vec::new();
    let (rows, cols) = read_rows(text, &mut values, |_| ())?;
    Dense::new(rows, cols, values)
}

/// Passes the numbers on in portions. Returns rows and columns.
pub(super) fn pass(text: Text, take: Take<'_>) -> Result<(usize, usize)> {
    let (mut first, mut values) = (0, Vec::new());
    let mut pass = |values: &mut Vec<f64>, most: usize| {
        if values.len() > most {
            take(first, values);
            first += values.len();
            values.clear();
        }
    };
    let shape = read_rows(text, &mut values, |values| pass(values, BLOCK))?;
    pass(&mut values, 0);
    Ok(shape)
}

/// Reads the rows, appends each to `values`, and calls `done` after it. Returns rows and columns.
fn read_rows(
    text: Text,
    values: &mut Vec<f64>,
    mut done: impl FnMut(&mut Vec<f64>),
) -> Result<(usize, usize)> {
    text.begin("reading", text.bytes.len());
    let mut words = ListTokens::metered(text, 0..text.bytes.len());
    let (mut rows, mut cols) = (0, 0);
    while words.seek_line(COMMENT) {
        let start = words.at;
        let before = values.len();
        read_row(&mut words, values).map_err(|fault| text.error(*fault))??;
        let count = values.len() - before;
        if rows > 0 && count != cols {
            let expected = format!("{cols} numbers, as on the first line");
            return Err(text.error(Fault { at: start, expected, found: Some(count.to_string()) }));
        }
        (rows, cols) = (rows + 1, count);
        done(values);
    }
    words.report_progress();
    Ok(if rows == 1 { (cols, 1) } else { (rows, cols) })
}

/// Reads the numbers of a line and appends them to `values`.
fn read_row(words: &mut ListTokens, values: &mut Vec<f64>) -> Scan<Result<()>> {
    loop {
        let value = words.number("a number of the vector")?;
        if let Err(error) = grow(values, 1) {
            return Ok(Err(error));
        }
        values.push(value);
        words.skip_separator();
        match words.peek() {
            Some(b'#') => {
                words.skip_line();
                return Ok(Ok(()));
            }
            None | Some(b'\n') => return words.finish_line(b"").map(Ok),
            Some(_) => {}
        }
    }
}

/// Writes vectors that come in portions as text, a line for each row, each number with the fewest digits that
/// read back to the same bits. A file whose name ends in `.gz` is compressed with gzip.
pub(super) fn write_vectors(path: &Path, [_, k]: [usize; 2], pass: &mut Pass<'_>) -> Result<()> {
    write_packed(path, Content::Answer, |out| {
        let mut column = 0;
        pass(None, &mut |values| {
            values.chunks(BLOCK).try_for_each(|block| {
                let mut text = Vec::with_capacity(25 * block.len());
                for value in block {
                    push_value(&mut text, *value);
                    column = (column + 1) % k;
                    text.push(if column == 0 { b'\n' } else { b' ' });
                }
                out.write_all(&text)
            })
        })
    })
}
