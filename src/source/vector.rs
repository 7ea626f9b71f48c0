//! Files with vectors in columns: text, a NumPy array, or a Matrix Market file.

use super::detect::{pass_dense, read_columns};
pub(crate) use super::passing::Take;
pub(crate) use super::passing::{Next, Pass};
use super::{column, market, npy, read_dense};
use crate::error::{Error, Result};
use crate::files::{HEADER, by_ending};
use crate::format::Dense;
use crate::observe::profile::{self, Phase};
use std::path::Path;

/// The most bytes of a number and the character after it in text.
const TEXT: u64 = 25;
/// The most bytes of a number in compressed text. The text has 15 different characters, so a code with four
/// bits for each exists; the tables of the codes take the rest.
const PACKED: u64 = 14;

/// The extensions of vector files, the functions that write them, and the most bytes that a number takes.
const WRITERS: &[(&str, (Write, u64))] = &[
    (".mtx", (market::write_vectors, TEXT)),
    (".mtx.gz", (market::write_vectors, PACKED)),
    (".npy", (npy::write_vectors, size_of::<f64>() as u64)),
    (".txt", (column::write_vectors, TEXT)),
    (".txt.gz", (column::write_vectors, PACKED)),
];

/// A function that writes vectors of n rows and k columns, which come in portions, to a file.
pub(crate) type Write = fn(&Path, [usize; 2], &mut Pass<'_>) -> Result<()>;

/// Returns the function that writes vectors to a file with the extension of `path`.
pub(crate) fn writer(path: &Path) -> Result<Write> {
    Ok(format_of(path)?.0)
}

/// Returns the most bytes that a file with the extension of `path` takes for vectors of `rows`
/// rows and `k` columns.
pub(crate) fn most_bytes(path: &Path, rows: usize, k: usize) -> Result<u64> {
    let each = format_of(path)?.1;
    Ok((rows as u64).saturating_mul(k as u64).saturating_mul(each).saturating_add(HEADER))
}

fn format_of(path: &Path) -> Result<(Write, u64)> {
    by_ending(path, WRITERS).map_err(|reason| Error::Unwritable { path: path.to_owned(), reason })
}

/// Writes a vector in the format that the extension selects: `.mtx`, `.npy`, `.txt`, `.mtx.gz` or `.txt.gz`.
/// Reading the file gives the same bits.
pub fn write_vector(path: impl AsRef<Path>, values: &[f64]) -> Result<()> {
    write_vectors(path, values, 1)
}

/// Writes `k` vectors as the columns of a file, in the formats of [`write_vector`]; `values`
/// is n x k, row-major.
pub fn write_vectors(path: impl AsRef<Path>, values: &[f64], k: usize) -> Result<()> {
    let path = path.as_ref();
    if k == 0 || !values.len().is_multiple_of(k) {
        let reason = format!("{} numbers cannot be divided into {k} columns", values.len());
        return Err(Error::Unwritable { path: path.to_owned(), reason });
    }
    writer(path)?(path, [values.len() / k, k], &mut |column, next| match column {
        None => next(values),
        Some(column) => values
            .chunks(k * BLOCK)
            .try_for_each(|rows| next(&rows.iter().skip(column).step_by(k).copied().collect::<Vec<_>>())),
    })
}

/// Rows of which a column is copied at once.
const BLOCK: usize = 1 << 20;

/// Passes the numbers of a file on in portions. They are those of [`read_vector`], or with `columns` those of
/// [`read_vectors`]. Returns rows and columns. Only a portion of the numbers is in memory, except for
/// symmetric arrays and the coordinate format of Matrix Market; a compressed file is decompressed in memory.
pub(crate) fn pass_vectors(path: &Path, columns: bool, take: Take<'_>) -> Result<(usize, usize)> {
    let _span = profile::begin(Phase::Read);
    let (rows, cols) = pass_dense(path, columns, take)?;
    if columns || cols == 1 { Ok((rows, cols)) } else { Err(several_columns(path, rows, cols)) }
}

fn several_columns(path: &Path, rows: usize, cols: usize) -> Error {
    let reason = format!("it holds a {rows} x {cols} matrix, and must hold one column");
    Error::NoVector { path: path.to_owned(), reason }
}

/// Reads the columns of a file: numbers as text, one line for each row, `.mtx`, or `.npy` in C
/// or Fortran order, plain or compressed with gzip. The numbers of several columns in a `.npy`
/// file may be NaN or infinite.
pub fn read_vectors(path: impl AsRef<Path>) -> Result<Dense> {
    let _span = profile::begin(Phase::Read);
    read_columns(path.as_ref())
}

/// Reads a file with one column: numbers as text, `.mtx` or `.npy`, plain or compressed with gzip.
pub fn read_vector(path: impl AsRef<Path>) -> Result<Vec<f64>> {
    let _span = profile::begin(Phase::Read);
    let path = path.as_ref();
    let dense = read_dense(path)?;
    match dense.cols() {
        1 => Ok(dense.values().to_vec()),
        cols => Err(several_columns(path, dense.rows(), cols)),
    }
}
