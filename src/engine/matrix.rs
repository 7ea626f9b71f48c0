//! Matrices as callers bring them: from a file, by name, or from memory.

use super::arrays::{Indices, Numbers};
use crate::error::{Error, Result};
use crate::format::stats::{self, Rounding, Verdict};
use crate::format::{Coo, Csr, Duplicates, Offsets, Values};
use crate::precond::Preconditioner;
use crate::source::{self, Attached, Labels, Loaded, Options};
use crate::text::{exact, thousands};
use std::ffi::OsStr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A sparse matrix, or a graph as its adjacency matrix, with what its source knows of it. Clones share the arrays.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let grid = Matrix::open("poisson2d:20x20")?;
/// let small = Matrix::from_triplets(2, 2, [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0)])?;
/// let rows = Matrix::from_csr(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0])?;
/// assert_eq!((grid.rows(), small.nnz(), rows.nnz()), (400, 4, 4));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Matrix {
    pub(super) csr: Arc<Csr>,
    pub(super) about: Arc<About>,
}

/// What is known of a matrix besides its arrays.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub name: String,
    pub stand_in: Option<&'static str>,
    /// The kind of file that it was read from.
    pub kind: Option<&'static str>,
    /// Entries as the source stored them; none for a matrix from memory.
    pub stored: Option<u64>,
    /// Whether a symmetric file was read as the triangle that it stores.
    pub as_stored: bool,
    /// Choices of the reader.
    pub notes: Vec<String>,
    pub attached: Vec<Attached>,
    /// The names of vectors that were not read, or are faulty.
    pub attached_unread: Vec<String>,
    pub attached_faults: Vec<String>,
    pub labels: Option<Labels>,
    /// Whether the labels came from a file of their own, so that rows have ids too.
    pub labels_are_added: bool,
    pub ids: Option<Vec<u32>>,
    pub first_id: Option<u32>,
    pub seconds_load: f64,
    pub symmetric: bool,
    verdict: OnceLock<Verdict>,
}

impl Matrix {
    /// Reads a file, or makes what a name of the catalog or of a generator stands for: `A.mtx`, `F1`, `poisson2d:1000x1000`.
    /// Nothing is fetched over a network.
    pub fn open(what: impl AsRef<OsStr>) -> Result<Matrix> {
        Matrix::open_with(what, &Options::default())
    }

    /// The same with options of the reader.
    pub fn open_with(what: impl AsRef<OsStr>, options: &Options) -> Result<Matrix> {
        let (what, began) = (what.as_ref(), Instant::now());
        let loaded = source::load_with(what, options)?;
        Ok(Matrix::of_loaded(what.to_string_lossy(), loaded, began.elapsed().as_secs_f64()))
    }

    /// A matrix that a source has read, with its name and the seconds that reading took.
    pub fn of_loaded(name: impl Into<String>, loaded: Loaded, seconds: f64) -> Matrix {
        let about = About {
            name: name.into(),
            stand_in: loaded.stand_in,
            kind: loaded.kind,
            stored: Some(loaded.stored),
            as_stored: loaded.as_stored,
            notes: loaded.notes,
            attached: loaded.attached,
            attached_unread: loaded.attached_unread,
            attached_faults: loaded.attached_faults,
            labels: loaded.labels,
            labels_are_added: false,
            ids: loaded.ids,
            first_id: loaded.first_id,
            seconds_load: seconds,
            symmetric: loaded.symmetric,
            verdict: OnceLock::new(),
        };
        Matrix { csr: Arc::new(loaded.matrix), about: Arc::new(about) }
    }

    /// A matrix of entries `(row, column, value)`, counted from 0. Entries at one place are summed.
    pub fn from_triplets(
        rows: usize,
        cols: usize,
        entries: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Result<Matrix> {
        let entries = entries.into_iter();
        let mut coo = Coo::with_capacity(rows, cols, entries.size_hint().0)?;
        for (row, col, value) in entries {
            coo.push(row, col, value)?;
        }
        coo.into_csr_with(Duplicates::Sum).map(Matrix::from)
    }

    /// A matrix of compressed sparse rows: the `offsets` at which rows begin and the last one ends, and the column and value of
    /// each entry. Arrays that are given away in the library's own types (`u32` or `u64` offsets, `u32` columns, `f32` or `f64`
    /// values) are not copied; others are converted. Rows whose columns do not rise are sorted, and entries at one place
    /// summed.
    pub fn from_csr<'a>(
        rows: usize,
        cols: usize,
        offsets: impl Into<Indices<'a>>,
        columns: impl Into<Indices<'a>>,
        values: impl Into<Numbers<'a>>,
    ) -> Result<Matrix> {
        let (offsets, columns) = (offsets.into().offsets()?, columns.into().columns()?);
        sorted(rows, cols, offsets, columns, values.into().values()?).map(Matrix::from)
    }

    /// A matrix with other values at the same places, in the order of the rows; the two share their pattern.
    pub fn with_values<'a>(&self, values: impl Into<Numbers<'a>>) -> Result<Matrix> {
        let csr = Csr::with_pattern(Arc::clone(self.csr.pattern()), values.into().values()?)?;
        let about = About {
            name: self.about.name.clone(),
            labels: self.about.labels.clone(),
            ids: self.about.ids.clone(),
            first_id: self.about.first_id,
            ..About::default()
        };
        Ok(Matrix { csr: Arc::new(csr), about: Arc::new(about) })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.csr.rows()
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.csr.cols()
    }

    /// Entries that are stored, symmetric halves expanded.
    pub fn nnz(&self) -> usize {
        self.csr.nnz()
    }

    /// What it was opened by; empty for a matrix from memory.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// What reports call it.
    pub(super) fn title(&self) -> String {
        match self.name() {
            "" => "a matrix in memory".to_owned(),
            name => name.to_owned(),
        }
    }

    /// The arrays.
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// The real matrix that this one only imitates.
    pub fn stand_in(&self) -> Option<&'static str> {
        self.about.stand_in
    }

    /// Choices that the reader made.
    pub fn notes(&self) -> &[String] {
        &self.about.notes
    }

    /// The vectors that came with the matrix, where the options of the reader asked for them.
    pub fn attached(&self) -> &[Attached] {
        &self.about.attached
    }

    /// The names of vectors that came with the matrix and were not read: not asked for, or faulty.
    pub fn attached_unread(&self) -> &[String] {
        &self.about.attached_unread
    }

    /// The faults of vectors that are left out.
    pub fn attached_faults(&self) -> &[String] {
        &self.about.attached_faults
    }

    /// Whether the matrix equals its transpose: known from its source, or found by a comparison that is made once.
    pub fn symmetry(&self) -> Result<Verdict> {
        if self.about.symmetric {
            return Ok(Verdict::Exact);
        }
        if let Some(verdict) = self.about.verdict.get() {
            return Ok(*verdict);
        }
        let verdict = stats::symmetry_of(&self.csr)?;
        Ok(*self.about.verdict.get_or_init(|| verdict))
    }

    /// Refuses a matrix that is not square or not symmetric. Returns a note where it is symmetric to rounding only, or where
    /// its symmetry is assumed.
    pub(super) fn require_symmetric(
        &self,
        solver: &'static str,
        assume: bool,
        precond: Preconditioner,
    ) -> Result<Option<String>> {
        let (rows, cols) = (self.rows(), self.cols());
        if rows != cols {
            return Err(Error::NotSquare { rows, cols, solver });
        }
        let lower = match precond.reads_lower_triangle() {
            true => {
                format!(
                    "; {} uses the lower triangle, and the residual is of the whole matrix",
                    precond.name()
                )
            }
            false => String::new(),
        };
        if assume && !self.about.symmetric {
            return Ok(Some(format!("A was not checked for symmetry, as its symmetry is assumed{lower}")));
        }
        match self.symmetry()? {
            Verdict::Exact => Ok(None),
            Verdict::ToRounding(rounding) => {
                let place = (rounding.first.row + 1, rounding.first.col + 1);
                Ok(Some(format!("A is symmetric to rounding: {}{lower}", pairs_differ(&rounding, place))))
            }
            Verdict::No(a) => Err(Error::NotSymmetric {
                row: a.row + 1,
                col: a.col + 1,
                value: exact(a.value),
                mirrored: a.mirrored.map_or("not stored".to_owned(), exact),
            }),
        }
    }
}

impl From<Csr> for Matrix {
    fn from(matrix: Csr) -> Matrix {
        Matrix { csr: Arc::new(matrix), about: Arc::default() }
    }
}

impl From<Arc<Csr>> for Matrix {
    fn from(csr: Arc<Csr>) -> Matrix {
        Matrix { csr, about: Arc::default() }
    }
}

/// Matrices of other libraries, in one precision: their values are copied.
#[cfg(any(feature = "sprs", feature = "nalgebra"))]
macro_rules! from_libraries {
    ($($feature:literal: $Other:ty),*) => {$(
        #[cfg(feature = $feature)]
        impl TryFrom<&$Other> for Matrix {
            type Error = Error;

            fn try_from(matrix: &$Other) -> Result<Matrix> {
                Csr::try_from(matrix).map(Matrix::from)
            }
        }
    )*};
}

#[cfg(any(feature = "sprs", feature = "nalgebra"))]
from_libraries!(
    "sprs": sprs::CsMat<f64>,
    "sprs": sprs::CsMat<f32>,
    "nalgebra": nalgebra_sparse::CsrMatrix<f64>,
    "nalgebra": nalgebra_sparse::CsrMatrix<f32>
);

/// Compressed rows of valid arrays; rows whose columns do not rise are sorted, and entries at one place summed.
fn sorted(rows: usize, cols: usize, offsets: Offsets, columns: Vec<u32>, values: Values) -> Result<Csr> {
    let row = |i: usize| offsets.get(i)..offsets.get(i + 1);
    let shaped = rows.checked_add(1) == Some(offsets.len())
        && values.stored().unwrap_or(columns.len()) == columns.len()
        && offsets.get(0) == 0
        && offsets.get(rows) == columns.len();
    let valid = shaped && (0..rows).all(|i| row(i).start <= row(i).end && row(i).end <= columns.len());
    // The error about arrays that are not valid comes with their place.
    if !valid || (0..rows).all(|i| columns[row(i)].is_sorted_by(|a, b| a < b)) {
        return Csr::new(rows, cols, offsets, columns, values);
    }
    let mut coo = Coo::with_capacity(rows, cols, columns.len())?;
    for i in 0..rows {
        row(i).try_for_each(|at| coo.push(i, columns[at] as usize, values.get(at)))?;
    }
    coo.into_csr_with(Duplicates::Sum)
}

/// The pairs that differ by rounding, in words. The place of the first counts from 1.
pub(crate) fn pairs_differ(rounding: &Rounding, (row, col): (usize, usize)) -> String {
    let largest = rounding.largest;
    match rounding.pairs {
        1 => format!("1 pair differs, a({row},{col}) and a({col},{row}), by {largest:.0e} of its size"),
        pairs => {
            let pairs = thousands(pairs as u64);
            format!("{pairs} pairs differ, by at most {largest:.0e} of their size, first a({row},{col})")
        }
    }
}
