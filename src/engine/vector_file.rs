//! Vectors from files.

use super::ranks::RankMatrix;
use crate::device::RowNumbers;
use crate::error::{Error, Result};
use crate::parallel::zeros;
use crate::source::vector::pass_vectors;
use crate::source::{UnsaidIndex, read_vector, read_vectors};
use crate::text::thousands;
use bytemuck::cast_slice;
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The vector of a file, or several, with the setting that names the file.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorFile {
    setting: &'static str,
    path: PathBuf,
    columns: usize,
    rows: usize,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    /// The numbers, row-major.
    Read(Vec<f64>),
    /// The hash of the numbers in a file that was checked. Each rank reads its rows from it later.
    InFile(u64),
}

impl VectorFile {
    /// Reads a file of one column. Errors name the setting.
    pub(crate) fn read(setting: &'static str, path: &Path) -> Result<VectorFile> {
        let values = read_vector(path).map_err(|error| name_setting(setting, error))?;
        VectorFile::of(setting, path, (values.len(), 1), Content::Read(values))
    }

    /// Combines the content of a file with its shape. Refuses a file without columns.
    fn of(
        setting: &'static str,
        path: &Path,
        (rows, columns): (usize, usize),
        content: Content,
    ) -> Result<VectorFile> {
        match columns {
            0 => Err(Error::setting(setting, path.display(), "it has no columns; it must have at least one")),
            _ => Ok(VectorFile { setting, path: path.to_owned(), columns, rows, content }),
        }
    }

    /// Reads a file of one column or several.
    pub(crate) fn read_columns(setting: &'static str, path: &Path) -> Result<VectorFile> {
        let dense = read_vectors(path)?;
        let shape = (dense.rows(), dense.cols());
        VectorFile::of(setting, path, shape, Content::Read(dense.into_values()))
    }

    /// Checks a file of one column, or with `several` also of several, for a rank that will keep only its own
    /// rows. The file is read in portions; see `pass_vectors`. A file that can be read only once, such as a
    /// pipe, is read as a whole.
    pub(crate) fn check(setting: &'static str, path: &Path, several: bool) -> Result<VectorFile> {
        if !path.is_file() {
            let read = if several { VectorFile::read_columns } else { VectorFile::read };
            return read(setting, path);
        }
        let mut hash = Xxh3::new();
        let shape = pass_vectors(path, several, &mut |_, numbers| hash.update(cast_slice(numbers)));
        let shape = shape.map_err(|error| name_setting(setting, error))?;
        VectorFile::of(setting, path, shape, Content::InFile(hash.digest()))
    }

    /// Returns the number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the vector, or several row-major, and checks that there is one entry for each row; see
    /// `check_rows`.
    pub(crate) fn values(&self, rows: usize, list: Option<&UnsaidIndex>) -> Result<Cow<'_, [f64]>> {
        self.check_rows(rows, list)?;
        match &self.content {
            Content::Read(values) => Ok(Cow::Borrowed(values)),
            Content::InFile(_) => self.read_rows(&RowNumbers::From(0), rows).map(Cow::Owned),
        }
    }

    /// Checks that there is one entry for each row. If the matrix is a `list` that may be counted from 1, and
    /// there is one entry less, the error asks whether it is.
    pub(crate) fn check_rows(&self, rows: usize, list: Option<&UnsaidIndex>) -> Result<()> {
        let list = list.filter(|_| self.rows + 1 == rows);
        let question = list.map_or(String::new(), |list| format!("; {}: {list}", list.path.display()));
        if self.columns > 1 && self.rows != rows {
            let (length, rows) = (self.rows, thousands(rows as u64));
            let reason = format!(
                "it is {} x {}, but the matrix has {rows} rows{question}",
                thousands(length as u64),
                self.columns
            );
            return Err(Error::setting(self.setting, self, reason));
        }
        check_length(self.setting, self, self.rows, rows, &question)
    }

    /// Returns the rows of this rank of a distributed matrix, row-major. All ranks call this together, and
    /// must have the same file.
    pub(crate) fn rows_of_rank(&self, matrix: &RankMatrix) -> Result<Vec<f64>> {
        let (ranks, numbers, n) = (matrix.ranks(), matrix.rows.numbers(), matrix.rows().len());
        ranks.agreed(self.check_rows(matrix.total_rows(), None))?;
        let hash = match &self.content {
            Content::Read(values) => xxh3_64(cast_slice(values)),
            Content::InFile(hash) => *hash,
        };
        let content = [(self.rows * self.columns) as u64, hash];
        ranks.agree_on(content, || Error::different_files(self.setting, self))?;
        ranks.agreed(match &self.content {
            Content::Read(values) => Ok(numbers.pick(values, n, self.columns).into_owned()),
            Content::InFile(_) => self.read_rows(numbers, n),
        })
    }

    /// Reads the file again and keeps the `n` rows with these numbers.
    fn read_rows(&self, numbers: &RowNumbers, n: usize) -> Result<Vec<f64>> {
        let (k, mut hash) = (self.columns, Xxh3::new());
        let mut mine = zeros(n * k)?;
        pass_vectors(&self.path, true, &mut |at, part| {
            hash.update(cast_slice(part));
            numbers.keep(at, part, &mut mine, k);
        })?;
        match self.content {
            Content::InFile(before) if before != hash.digest() => {
                Err(Error::setting(self.setting, self, "it has changed since it was checked; start again"))
            }
            _ => Ok(mine),
        }
    }

    /// Returns the vector.
    pub(super) fn into_values(self) -> Result<Vec<f64>> {
        match self.content {
            Content::Read(values) => Ok(values),
            Content::InFile(_) => self.read_rows(&RowNumbers::From(0), self.rows),
        }
    }
}

/// Adds the setting that names the file to the error for a file of several columns.
fn name_setting(setting: &'static str, error: Error) -> Error {
    match error {
        Error::NoVector { path, reason } => Error::setting(setting, path.display(), reason),
        other => other,
    }
}

/// Checks that a vector has one entry for each row; `source` names its origin, and `question` ends the error.
pub(super) fn check_length(
    setting: &'static str,
    source: impl fmt::Display,
    length: usize,
    rows: usize,
    question: &str,
) -> Result<()> {
    if length == rows {
        return Ok(());
    }
    let (length, rows) = (thousands(length as u64), thousands(rows as u64));
    let reason = format!("its length is {length}, but the matrix has {rows} rows{question}");
    Err(Error::setting(setting, source, reason))
}

impl fmt::Display for VectorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}
