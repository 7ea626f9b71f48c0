//! Near-null vectors of a matrix: those that it maps to almost nothing, and that multigrid must represent on
//! every level.

use crate::error::{Error, Result};
use crate::format::{Coordinates, Dense};
use crate::parallel::{tabulate, zeros};
use crate::text::{COUNTED, Index};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// The most near-null vectors.
const MOST: usize = 32;
/// The share of its norm that a vector must keep once the vectors before it are taken out of it.
const INDEPENDENT: f64 = 1e-10;

/// Vectors that a matrix maps to almost nothing: of linear elasticity the rigid-body modes, of a Laplacian
/// the constant. `amg` represents them on all of its levels.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::format::Dense;
/// use solver::precond::NearNull;
/// use solver::prelude::*;
/// let matrix = Matrix::open("poisson2d:40x30")?;
/// let ones = Dense::new(1200, 1, vec![1.0; 1200])?;
/// let amg = "amg".parse::<Preconditioner>()?.with_near_null(NearNull::new(ones)?)?;
/// let b = vec![1.0; 1200];
/// assert!(Cg::new(&matrix).preconditioner(amg).solve(&b)?.converged());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NearNull {
    /// A column for each vector.
    vectors: Dense,
    of: Of,
}

/// The origin of near-null vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A constant for each unknown of a node.
    Unknowns,
    /// The rigid-body modes.
    Motions,
    /// The caller.
    Caller,
}

/// Returns the error for faulty near-null vectors.
fn fault(reason: impl Into<String>) -> Error {
    Error::BadNearNull { reason: reason.into() }
}

impl NearNull {
    /// Takes the columns of a dense matrix, which has as many rows as the matrix that they belong to. They
    /// are finite and linearly independent.
    pub fn new(vectors: Dense) -> Result<NearNull> {
        let m = vectors.cols();
        if !(1..=MOST).contains(&m) {
            return Err(fault(format!("there are {m} vectors; give 1 to {MOST}, a column for each")));
        }
        if let Some(at) = vectors.values().iter().position(|value| !value.is_finite()) {
            let (row, column) = (Index(at / m), Index(at % m));
            let value = vectors.values()[at];
            return Err(fault(format!(
                "column {column}, row {row} ({COUNTED}) is {value}; all numbers must be finite"
            )));
        }
        check_independent(&vectors)?;
        Ok(NearNull { vectors, of: Of::Caller })
    }

    /// Returns the rigid-body modes of the nodes of a mesh that has an unknown for each dimension in every
    /// node: the translations and the rotations, three vectors in the plane and six in space.
    pub fn rigid_body_modes(coordinates: &Coordinates) -> Result<NearNull> {
        let (d, nodes) = (coordinates.dimensions(), coordinates.nodes());
        let (m, axes) = (d * (d + 1) / 2, [(0, 1), (1, 2), (2, 0)]);
        let (centre, size) = centre(coordinates);
        let mut vectors: Vec<f64> = zeros(nodes * d * m)?;
        for (node, rows) in vectors.chunks_exact_mut(d * m).enumerate() {
            let point = coordinates.node(node);
            (0..d).for_each(|axis| rows[axis * m + axis] = 1.0);
            for (rotation, &(a, b)) in axes.iter().take(m - d).enumerate() {
                rows[a * m + d + rotation] = -(point[b] - centre[b]) / size;
                rows[b * m + d + rotation] = (point[a] - centre[a]) / size;
            }
        }
        Ok(NearNull { vectors: Dense::new(nodes * d, m, vectors)?, of: Of::Motions })
    }

    /// Returns the rigid-body modes for a matrix of `rows` rows on these nodes, if every node has an unknown
    /// for each dimension.
    pub(crate) fn of_nodes(coordinates: &Coordinates, rows: usize) -> Result<Option<NearNull>> {
        let fits = rows == coordinates.nodes() * coordinates.dimensions();
        fits.then(|| NearNull::rigid_body_modes(coordinates)).transpose()
    }

    /// Returns a vector for each unknown of a node, which is 1 there and 0 for the others.
    pub(crate) fn constants(rows: usize, block: usize) -> Result<NearNull> {
        let value = |at: usize| f64::from(u8::from(at / block % block == at % block));
        let vectors = Dense::new(rows, block, tabulate(rows * block, value)?)?;
        Ok(NearNull { vectors, of: Of::Unknowns })
    }

    /// Checks that the vectors have as many rows as a matrix.
    pub(super) fn check_rows(&self, rows: usize) -> Result<()> {
        let found = self.vectors.rows();
        if found == rows {
            return Ok(());
        }
        Err(fault(format!(
            "the vectors have {found} rows and the matrix {rows}; give a row for each row of the matrix"
        )))
    }

    /// Returns the vectors, a column for each.
    pub fn vectors(&self) -> &Dense {
        &self.vectors
    }

    /// Returns a hash of the numbers.
    pub(super) fn hash(&self) -> u64 {
        xxh3_64(bytemuck::cast_slice(self.vectors.values()))
    }
}

/// Describes the vectors: `6 rigid-body modes`.
impl fmt::Display for NearNull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = self.vectors.cols();
        match (self.of, m) {
            (Of::Unknowns, 1) => f.write_str("the constant vector"),
            (Of::Unknowns, _) => write!(f, "{m} vectors, constant in one unknown of all nodes each"),
            (Of::Motions, _) => write!(f, "{m} rigid-body modes"),
            (Of::Caller, 1) => f.write_str("1 given vector"),
            (Of::Caller, _) => write!(f, "{m} given vectors"),
        }
    }
}

/// Returns the mean of the coordinates, and the largest distance from it along an axis, or 1.
fn centre(coordinates: &Coordinates) -> ([f64; 3], f64) {
    let (d, nodes) = (coordinates.dimensions(), coordinates.nodes());
    let points = || coordinates.values().chunks_exact(d);
    let mut centre = [0.0; 3];
    for point in points() {
        point.iter().zip(&mut centre).for_each(|(x, sum)| *sum += x / nodes as f64);
    }
    let away =
        |point: &[f64]| point.iter().zip(&centre).map(|(x, centre)| (x - centre).abs()).fold(0.0, f64::max);
    let size = points().map(away).fold(0.0, f64::max);
    (centre, if size > 0.0 { size } else { 1.0 })
}

/// Fails if a vector is zero, or almost a combination of those before it.
fn check_independent(vectors: &Dense) -> Result<()> {
    let m = vectors.cols();
    let mut columns: Vec<Vec<f64>> = (0..m).filter_map(|c| vectors.column(c)).collect();
    let norm = |column: &[f64]| column.iter().map(|x| x * x).sum::<f64>().sqrt();
    for c in 0..m {
        let (before, rest) = columns.split_at_mut(c);
        let own = &mut rest[0];
        let largest = own.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        if largest == 0.0 {
            let column = Index(c);
            return Err(fault(format!("column {column} ({COUNTED}) is zero; leave it out")));
        }
        own.iter_mut().for_each(|x| *x /= largest);
        let size = norm(own);
        own.iter_mut().for_each(|x| *x /= size);
        for _ in 0..2 {
            for other in &*before {
                let part: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                own.iter_mut().zip(other).for_each(|(a, b)| *a -= part * b);
            }
        }
        let left = norm(own);
        if left < INDEPENDENT {
            let column = Index(c);
            return Err(fault(format!(
                "column {column} ({COUNTED}) is a combination of the columns before it; leave it out"
            )));
        }
        own.iter_mut().for_each(|x| *x /= left);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    #[test]
    fn a_floating_body_has_no_force_under_rigid_body_modes() {
        for name in
            ["delaunay2d:n=200,unknowns=2,boundary=neumann", "delaunay3d:n=200,unknowns=3,boundary=neumann"]
        {
            let loaded = source::load(name).unwrap();
            let coordinates = loaded.coordinates.unwrap();
            let modes = NearNull::rigid_body_modes(&coordinates).unwrap();
            let modes = modes.vectors();
            let d = coordinates.dimensions();
            assert_eq!((modes.rows(), modes.cols()), (loaded.matrix.rows(), d * (d + 1) / 2));
            check_independent(modes).unwrap();
            let scale = loaded.matrix.diagonal().into_iter().fold(0.0, f64::max);
            for c in 0..modes.cols() {
                for row in 0..modes.rows() {
                    let force: f64 = loaded.matrix.row(row).map(|(j, a)| a * modes.row(j)[c]).sum();
                    assert!(force.abs() < 1e-13 * scale, "{name}, mode {c}, row {row}: {force}");
                }
            }
        }
    }

    #[test]
    fn faulty_vectors_are_refused_with_the_reason() {
        let refused = |cols: usize, values: &[f64], told: &str| {
            let dense = Dense::new(values.len() / cols, cols, values.to_vec()).unwrap();
            let message = NearNull::new(dense).unwrap_err().to_string();
            assert!(message.contains(told), "{message}");
        };
        refused(2, &[1.0, 0.0, 1.0, 0.0], "column 1 (counted from 0) is zero");
        refused(2, &[1.0, 3.0, 2.0, 6.0], "column 1 (counted from 0) is a combination");
        refused(2, &[1.0, f64::NAN, 2.0, 6.0], "column 1, row 0 (counted from 0) is NaN");
        refused(33, &[1.0; 66], "33 vectors; give 1 to 32");
        NearNull::new(Dense::new(4, 1, vec![1e308; 4]).unwrap()).unwrap();
    }
}
