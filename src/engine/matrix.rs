//! Matrices from a file, by name, or from memory.

use super::arrays::{Indices, Numbers};
use super::device::DeviceHandle;
use super::origin::Origin;
use crate::device::Kept;
use crate::error::{Error, Result};
use crate::format::stats::{self, Asymmetry, Blocks, Rounding, Verdict};
use crate::format::{Coo, Coordinates, Csr, Duplicates, Offsets, Pattern, Values};
use crate::precond::{NearNull, Preconditioner};
use crate::solve::Method;
use crate::source::{self, Attached, Loaded, Options, UnsaidIndex};
use crate::text::{COUNTED, Index, thousands};
use std::ffi::OsStr;
use std::fmt::Display;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A sparse matrix, or a graph as its adjacency matrix, with the metadata of its source.
/// Clones share the arrays.
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
    pub(super) origin: Arc<Origin>,
    pub(super) metadata: Arc<Metadata>,
}

/// The most unknowns of a node with coordinates.
const MOST_UNKNOWNS: usize = 16;

/// What is known about the entries of a matrix, and the vectors stored with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata {
    pub attached: Vec<Attached>,
    /// The names of attached vectors that were not read or are invalid.
    pub attached_unread: Vec<String>,
    pub attached_faults: Vec<String>,
    /// The coordinates of the nodes whose unknowns are the rows.
    pub coordinates: Option<Arc<Coordinates>>,
    /// The indices of a list that may be counted from 1.
    pub unsaid_index: Option<Box<UnsaidIndex>>,
    pub symmetric: bool,
    /// The copies in GPU memory from which the matrix was made.
    pub on_device: Option<OnDevice>,
    verdict: OnceLock<Verdict>,
}

/// Copies of a matrix in the memory of a device. Solves on the device use them.
#[derive(Clone, Debug)]
#[expect(dead_code, reason = "the fields keep the copies alive, and nothing reads them")]
pub(super) struct OnDevice {
    pub pattern: Kept,
    pub values: Option<Kept>,
    /// The shared device of that GPU: later solves then find the device that has the copies.
    pub device: DeviceHandle,
}

impl Matrix {
    /// Reads a file or a catalog matrix, or generates a matrix: `A.mtx`, `F1`,
    /// `poisson2d:1000x1000`. Never uses the network.
    pub fn open(what: impl AsRef<OsStr>) -> Result<Matrix> {
        Matrix::open_with(what, &Options::default())
    }

    /// Reads or generates a matrix as [`open`](Matrix::open) does, with options of the reader.
    pub fn open_with(what: impl AsRef<OsStr>, options: &Options) -> Result<Matrix> {
        let (what, began) = (what.as_ref(), Instant::now());
        let loaded = source::load_with(what, options)?;
        Ok(Matrix::of_loaded(what.to_string_lossy(), loaded, began.elapsed().as_secs_f64()))
    }

    /// Wraps a matrix that a source has read. `seconds` is the time that reading took.
    pub(crate) fn of_loaded(name: impl Into<String>, mut loaded: Loaded, seconds: f64) -> Matrix {
        let origin = Origin::of_loaded(name.into(), &mut loaded, seconds);
        let metadata = Metadata {
            attached: loaded.attached,
            attached_unread: loaded.attached_unread,
            attached_faults: loaded.attached_faults,
            coordinates: loaded.coordinates,
            unsaid_index: loaded.unsaid_index,
            symmetric: loaded.symmetric,
            on_device: None,
            verdict: OnceLock::new(),
        };
        Matrix { csr: Arc::new(loaded.matrix), origin: Arc::new(origin), metadata: Arc::new(metadata) }
    }

    /// Returns the indices of the list that the matrix was read from, if the list may be counted from 1.
    pub(crate) fn unsaid_index(&self) -> Option<&UnsaidIndex> {
        self.metadata.unsaid_index.as_deref()
    }

    /// Returns the matrix without stored values, if each of them is 1. An iteration then moves fewer bytes.
    pub(super) fn without_ones(self) -> Matrix {
        match self.csr.values() {
            Values::F32(_) | Values::F64(_) if self.csr.values().are_ones() => {
                Matrix { csr: Arc::new(self.csr.without_values()), ..self }
            }
            _ => self,
        }
    }

    /// Builds a matrix from entries `(row, column, value)`, counted from 0. Duplicate entries are summed.
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

    /// Builds a matrix from compressed sparse rows: the `offsets` at which rows begin and the last row ends,
    /// and the column index and value of each entry. Owned arrays of the library's types (`u32` or `u64`
    /// offsets, `u32` columns, `f32` or `f64` values) are moved, and arrays of all other types are converted.
    /// If the column indices of a row do not increase, the rows are sorted and duplicate entries summed.
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

    /// Returns a matrix with the same sparsity pattern and other values, given in row order. The two
    /// matrices share the pattern and the coordinates.
    pub fn with_values<'a>(&self, values: impl Into<Numbers<'a>>) -> Result<Matrix> {
        let csr = Csr::with_pattern(Arc::clone(self.csr.pattern()), values.into().values()?)?;
        let on_device = self.metadata.on_device.clone().map(|there| OnDevice { values: None, ..there });
        let Origin { name, labels, ids, first_id, .. } = Origin::clone(&self.origin);
        let origin = Origin { name, labels, ids, first_id, ..Origin::default() };
        let coordinates = self.metadata.coordinates.clone();
        let metadata = Metadata { on_device, coordinates, ..Metadata::default() };
        Ok(Matrix { csr: Arc::new(csr), origin: Arc::new(origin), metadata: Arc::new(metadata) })
    }

    /// Wraps a matrix with its copies on a device.
    pub(super) fn with_copies(csr: Arc<Csr>, on_device: OnDevice) -> Matrix {
        let metadata = Metadata { on_device: Some(on_device), ..Metadata::default() };
        Matrix { csr, origin: Arc::default(), metadata: Arc::new(metadata) }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.csr.rows()
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.csr.cols()
    }

    /// Returns the number of stored entries, with both triangles of a symmetric matrix counted.
    pub fn nnz(&self) -> usize {
        self.csr.nnz()
    }

    /// Returns the name by which the matrix was opened; empty for a matrix from memory.
    pub fn name(&self) -> &str {
        self.origin.name.as_deref().unwrap_or_default()
    }

    /// Returns the arrays.
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// Returns the arrays, without a copy if no clone of the matrix exists.
    pub fn into_csr(self) -> Csr {
        Arc::unwrap_or_clone(self.csr)
    }

    /// Returns the compressed rows for sharing.
    pub(crate) fn shared_csr(&self) -> Arc<Csr> {
        Arc::clone(&self.csr)
    }

    /// Returns the name of the real matrix, if this matrix is a generated imitation of it.
    pub fn stand_in(&self) -> Option<&'static str> {
        self.origin.stand_in
    }

    /// Returns notes on choices that the reader made.
    pub fn notes(&self) -> &[String] {
        &self.origin.notes
    }

    /// Returns the vectors stored with the matrix, if the options of the reader included them.
    pub fn attached(&self) -> &[Attached] {
        &self.metadata.attached
    }

    /// Returns the names of vectors stored with the matrix that were not read: excluded by the
    /// options, or invalid.
    pub(crate) fn attached_unread(&self) -> &[String] {
        &self.metadata.attached_unread
    }

    /// Returns the errors of invalid vectors stored with the matrix.
    pub(crate) fn attached_faults(&self) -> &[String] {
        &self.metadata.attached_faults
    }

    /// Returns the coordinates of the nodes whose unknowns are the rows, if the source has them. A file or
    /// archive has them if the options of the reader include the vectors stored with the matrix.
    pub fn coordinates(&self) -> Option<&Arc<Coordinates>> {
        self.metadata.coordinates.as_ref()
    }

    /// Returns the matrix with the coordinates of its nodes, whose number divides the rows. If every node has
    /// an unknown for each dimension, `amg` computes the rigid-body modes from them.
    pub fn with_coordinates(self, coordinates: Coordinates) -> Result<Matrix> {
        let (nodes, rows) = (coordinates.nodes(), self.rows());
        let fits = nodes > 0 && rows.is_multiple_of(nodes) && rows / nodes <= MOST_UNKNOWNS;
        if !fits {
            let reason = format!(
                "there are {} nodes, which do not divide the {} rows of the matrix into 1 to {MOST_UNKNOWNS} \
                 unknowns for each node; give a row of coordinates for every node, or near-null vectors if \
                 some unknowns have no row",
                thousands(nodes as u64),
                thousands(rows as u64)
            );
            return Err(Error::BadCoordinates { reason });
        }
        let metadata =
            Metadata { coordinates: Some(Arc::new(coordinates)), ..Metadata::clone(&self.metadata) };
        Ok(Matrix { metadata: Arc::new(metadata), ..self })
    }

    /// Sets the parameters of a preconditioner that depend on this matrix, its nodes and the method.
    pub(super) fn settled(&self, precond: &Preconditioner, method: Method) -> Result<Preconditioner> {
        precond.check_rows(self.rows())?;
        let precond = match &self.metadata.coordinates {
            Some(coordinates) => &precond.on_nodes(coordinates, self.rows())?,
            None => precond,
        };
        Ok(precond.settle_for(&self.csr, method.needs().linear_m))
    }

    /// Returns the vectors that the matrix may map to zero: the near-null vectors of a preconditioner, the
    /// rigid-body modes of the nodes, or constants.
    pub(super) fn near_null(&self, precond: &Preconditioner) -> Result<Arc<NearNull>> {
        if let Some(near_null) = precond.near_null() {
            return Ok(Arc::clone(near_null));
        }
        let (coordinates, rows) = (self.metadata.coordinates.as_deref(), self.rows());
        if let Some(modes) = coordinates.map(|nodes| NearNull::of_nodes(nodes, rows)).transpose()?.flatten() {
            return Ok(Arc::new(modes));
        }
        let unknowns = match coordinates {
            Some(coordinates) => rows / coordinates.nodes().max(1),
            None => Blocks::sampled(&self.csr).square().unwrap_or(1),
        };
        let fits = (1..=MOST_UNKNOWNS).contains(&unknowns) && rows.is_multiple_of(unknowns);
        NearNull::constants(rows, if fits { unknowns } else { 1 }).map(Arc::new)
    }

    /// Returns whether the matrix equals its transpose. If the source does not say so, the first call
    /// compares the entries and later calls return the stored result.
    pub fn symmetry(&self) -> Result<Verdict> {
        if self.metadata.symmetric {
            return Ok(Verdict::Exact);
        }
        if let Some(verdict) = self.metadata.verdict.get() {
            return Ok(*verdict);
        }
        let verdict = stats::symmetry_of(&self.csr)?;
        Ok(*self.metadata.verdict.get_or_init(|| verdict))
    }

    /// Returns whether the symmetry must still be computed.
    pub(super) fn symmetry_is_unknown(&self) -> bool {
        !self.metadata.symmetric && self.metadata.verdict.get().is_none()
    }

    /// Stores the result of a device: the matrix equals its transpose exactly.
    pub(super) fn is_found_symmetric(&self) {
        self.metadata.verdict.get_or_init(|| Verdict::Exact);
    }

    /// Refuses a matrix that is not square, not symmetric if the method needs it or, unless its source or the
    /// caller vouches for the symmetry, not finite. Returns a note if the matrix is symmetric to rounding
    /// only, or if its symmetry is assumed.
    pub(super) fn require_for(
        &self,
        method: Method,
        assume: bool,
        precond: &Preconditioner,
    ) -> Result<Option<String>> {
        let (rows, cols) = (self.rows(), self.cols());
        if rows != cols {
            return Err(Error::NotSquare { rows, cols, solver: method.name() });
        }
        let note = judged(method, self.metadata.symmetric, assume, precond, || self.symmetry())?;
        if !self.metadata.symmetric && !assume {
            self.require_finite()?;
        }
        Ok(note)
    }

    /// Refuses NaN and infinity. The comparison with the transpose finds those that differ
    /// from their mirrored entry.
    fn require_finite(&self) -> Result<()> {
        let Some(at) = self.csr.values().first_not_finite() else { return Ok(()) };
        let (offsets, columns) = (self.csr.row_offsets(), self.csr.col_indices());
        let row = (0..self.rows()).find(|&row| offsets.get(row + 1) > at).unwrap_or(self.rows());
        Err(Error::NotFinite { row, col: columns[at] as usize, value: self.csr.values().get(at) })
    }
}

/// Refuses a square matrix that is not symmetric if the method needs it; `known`: the source says that it is.
/// Returns a note if the matrix is symmetric to rounding only, or if its symmetry is assumed.
pub(super) fn judged(
    method: Method,
    known: bool,
    assume: bool,
    precond: &Preconditioner,
    verdict: impl FnOnce() -> Result<Verdict>,
) -> Result<Option<String>> {
    let lower = match precond.reads_lower_triangle() {
        true => {
            format!("; {} uses the lower triangle, and the residual is of the whole matrix", precond.name())
        }
        false => String::new(),
    };
    if known || !method.needs().symmetric {
        return Ok(None);
    }
    if assume {
        return Ok(Some(format!("A was not checked for symmetry: its symmetry is assumed{lower}")));
    }
    match verdict()? {
        Verdict::Exact => Ok(None),
        Verdict::ToRounding(rounding) => {
            let place = (Index(rounding.first.row), Index(rounding.first.col));
            let differ = pairs_differ(&rounding, place);
            Ok(Some(format!("A is symmetric to rounding: {differ} ({COUNTED}){lower}")))
        }
        Verdict::No(a) => Err(not_symmetric(a)),
    }
}

/// Returns the error of a matrix with this pair of entries: a value that is not finite
/// explains why the pair differs.
fn not_symmetric(Asymmetry { row, col, value, mirrored }: Asymmetry) -> Error {
    match mirrored {
        _ if !value.is_finite() => Error::NotFinite { row, col, value },
        Some(mirrored) if !mirrored.is_finite() => Error::NotFinite { row: col, col: row, value: mirrored },
        _ => Error::NotSymmetric { row, col, value, mirrored },
    }
}

impl From<Csr> for Matrix {
    fn from(matrix: Csr) -> Matrix {
        Matrix::from(Arc::new(matrix))
    }
}

impl From<Arc<Csr>> for Matrix {
    fn from(csr: Arc<Csr>) -> Matrix {
        Matrix { csr, origin: Arc::default(), metadata: Arc::default() }
    }
}

/// Implements conversions from matrices of other libraries, in one precision each. The values are copied.
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

/// Builds compressed rows. If the column indices of a row do not increase, the rows are sorted and
/// duplicate entries summed.
fn sorted(rows: usize, cols: usize, offsets: Offsets, columns: Vec<u32>, values: Values) -> Result<Csr> {
    let (offsets, columns) = match Pattern::or_arrays((rows, cols), offsets, columns) {
        Ok(pattern) => return Csr::with_pattern(Arc::new(pattern), values),
        Err(arrays) => arrays,
    };
    let row = |i: usize| offsets.get(i)..offsets.get(i + 1);
    let shaped = rows.checked_add(1) == Some(offsets.len())
        && values.stored().unwrap_or(columns.len()) == columns.len()
        && offsets.get(0) == 0
        && offsets.get(rows) == columns.len();
    let valid = shaped && (0..rows).all(|i| row(i).start <= row(i).end && row(i).end <= columns.len());
    // `Csr::new` reports where invalid arrays are wrong.
    if !valid || (0..rows).all(|i| columns[row(i)].is_sorted_by(|a, b| a < b)) {
        return Csr::new(rows, cols, offsets, columns, values);
    }
    let mut coo = Coo::with_capacity(rows, cols, columns.len())?;
    for i in 0..rows {
        row(i).try_for_each(|at| coo.push(i, columns[at] as usize, values.get(at)))?;
    }
    coo.into_csr_with(Duplicates::Sum)
}

/// Describes the pairs that differ by rounding, with the place of the first pair.
pub(crate) fn pairs_differ<I: Display>(rounding: &Rounding, (row, col): (I, I)) -> String {
    let largest = rounding.largest;
    match rounding.pairs {
        1 => format!("1 pair differs, a({row},{col}) and a({col},{row}), by {largest:.0e} of its size"),
        pairs => {
            let pairs = thousands(pairs as u64);
            format!("{pairs} pairs differ, by at most {largest:.0e} of their size, first a({row},{col})")
        }
    }
}
