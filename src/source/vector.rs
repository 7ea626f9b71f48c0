//! Files with one vector: a column of text, a NumPy array, or a Matrix Market file.

use super::{column, market, npy, read_dense};
use crate::error::{Error, Result};
use crate::files::by_ending;
use crate::observe::profile::{self, Phase};
use std::path::Path;

/// The extensions of vector files, and the functions that write them.
const WRITERS: &[(&str, Write)] = &[
    (".mtx", market::write_vector),
    (".mtx.gz", market::write_vector),
    (".npy", npy::write_vector),
    (".txt", column::write_vector),
    (".txt.gz", column::write_vector),
];

/// A function that writes a vector to a file.
pub type Write = fn(&Path, &[f64]) -> Result<()>;

/// Returns the function that writes a vector to a file with the extension of `path`.
pub fn writer(path: &Path) -> Result<Write> {
    by_ending(path, WRITERS).map_err(|reason| Error::Unwritable { path: path.to_owned(), reason })
}

/// Writes a vector in the format that the extension selects: `.mtx`, `.npy`, `.txt`, `.mtx.gz` or `.txt.gz`. Reading the
/// file gives the same bits.
pub fn write_vector(path: impl AsRef<Path>, values: &[f64]) -> Result<()> {
    let path = path.as_ref();
    writer(path)?(path, values)
}

/// Reads a file with one column: numbers as text, `.mtx` or `.npy`, plain or compressed with gzip.
pub fn read_vector(path: impl AsRef<Path>) -> Result<Vec<f64>> {
    let _span = profile::begin(Phase::Read);
    let path = path.as_ref();
    let dense = read_dense(path)?;
    match dense.cols() {
        1 => Ok(dense.values().to_vec()),
        cols => {
            let reason = format!("it holds a {} x {cols} matrix, and must hold one column", dense.rows());
            Err(Error::NoVector { path: path.to_owned(), reason })
        }
    }
}
