//! Estimates how far an answer may be from the solution when its residual does not show it.
//!
//! A small residual r = b - A x bounds the error e = A^-1 r only through the condition number: on an
//! ill-conditioned system x may meet its tolerance and have no correct digit. Two estimates of the largest
//! entry of e, relative to that of x, reveal such answers:
//!
//! - The *doubt* costs one application of the preconditioner M: the largest entry of M r divided by the
//!   smallest eigenvalue of M A that the solve has found, or the largest |r_i / a_ii| if that is larger,
//!   which the recomputation of r has found. The first is usually too large, as few residuals point along the
//!   eigenvector of the smallest eigenvalue; it is too small if the solve has not found the smallest
//!   eigenvalue. The second detects rows that are nearly decoupled from the rest.
//! - If the doubt exceeds [`DOUBT`], A e = r is solved directly, provided that a Cholesky factor in an order
//!   of small profile is cheap; on small systems always. This reveals errors that no residual shows, such as
//!   a motion of the whole structure that costs no energy.
//!
//! # Reference
//! A. George and J. W. Liu, Computer Solution of Large Sparse Positive Definite Systems, Prentice-Hall, 1981,
//! chapter 4 (reverse Cuthill-McKee and the profile factor).

use super::norms::{larger, largest_in};
use crate::device::Device;
use crate::format::{Csr, reverse_cuthill_mckee};

/// The doubt up to which no direct solution is computed. This allows for eigenvalues smaller, by this factor,
/// than the smallest one found.
const DOUBT: f64 = 1e-3;
/// Limits on the cost of a direct solution.
struct Limit {
    /// Entries of the matrix, which must be reordered.
    entries: u64,
    /// Entries of the factor.
    factor: u64,
    /// Multiplications of the factorisation.
    work: u64,
}

/// About 1 ms.
const ALWAYS: Limit = Limit { entries: 10_000, factor: 50_000, work: 1_000_000 };
/// About 0.1 s.
const IN_DOUBT: Limit = Limit { entries: 500_000, factor: 2_000_000, work: 100_000_000 };

/// A factor of the matrix, computed when it is first needed if it is cheap.
#[derive(Default)]
enum CachedFactor {
    #[default]
    Unknown,
    Expensive,
    /// `None` if the matrix is not positive definite to working precision; otherwise the rows of L.
    Cheap(Profile, Option<Vec<Vec<f64>>>),
}

impl CachedFactor {
    /// Orders and factorises the matrix at the first call.
    fn find(&mut self, matrix: &Csr, limit: &Limit) -> &CachedFactor {
        if matches!(self, CachedFactor::Unknown) {
            *self = Profile::of(matrix, limit).map_or(CachedFactor::Expensive, |profile| {
                let factor = profile.factor(matrix);
                CachedFactor::Cheap(profile, factor)
            });
        }
        self
    }
}

/// Estimates errors of answers of systems with one matrix, whose factors it caches.
#[derive(Default)]
pub(super) struct Estimator {
    always: CachedFactor,
    in_doubt: CachedFactor,
}

impl Estimator {
    /// Estimates the largest entry of x - A^-1 b divided by that of x; infinite if A is singular to working
    /// precision. `None` if x is zero or not finite, or the estimate is NaN. `e` is overwritten.
    pub(crate) fn estimate(&mut self, matrix: &Csr, answer: &Evidence<'_>, e: &mut [f64]) -> Option<f64> {
        let x = largest_in(answer.x);
        if !has_size(x) {
            return None;
        }
        let doubt = answer.doubt() / x;
        let (cached, limit) =
            if doubt < DOUBT { (&mut self.always, &ALWAYS) } else { (&mut self.in_doubt, &IN_DOUBT) };
        match cached.find(matrix, limit) {
            CachedFactor::Unknown | CachedFactor::Expensive => Some(doubt).filter(|doubt| !doubt.is_nan()),
            CachedFactor::Cheap(_, None) => Some(f64::INFINITY),
            CachedFactor::Cheap(profile, Some(factor)) => {
                profile.solve(factor, answer.r, e);
                Some(largest_in(e) / x)
            }
        }
    }
}

/// What a solve knows about an answer.
pub(super) struct Evidence<'a> {
    pub x: &'a [f64],
    pub r: &'a [f64],
    /// The largest |r_i / a_ii| over the rows with a positive diagonal entry.
    pub decoupled: f64,
    /// M r, or r without preconditioner; M is positive definite.
    pub z: &'a [f64],
    /// The smallest eigenvalue of M A found; A is positive definite.
    pub smallest: f64,
}

impl Evidence<'_> {
    /// Returns the doubt about the answer.
    fn doubt(&self) -> f64 {
        larger(largest_in(self.z) / self.smallest, self.decoupled)
    }
}

/// Returns the doubt about the answer of a system that is distributed over ranks, divided by
/// the largest entry of x.
pub(super) fn over_ranks(device: &impl Device, answer: &Evidence<'_>) -> Option<f64> {
    let [x, doubt] = [largest_in(answer.x), answer.doubt()].map(|mine| device.fold(mine, larger));
    has_size(x).then_some(doubt / x).filter(|doubt| !doubt.is_nan())
}

/// Returns whether the largest entry of x is neither zero nor infinite nor NaN.
fn has_size(x: f64) -> bool {
    x > 0.0 && x.is_finite()
}

/// An order of the rows, and the first column of each row of the Cholesky factor in that order.
struct Profile {
    /// The row of the matrix at each position, and the position of each row.
    rows: Vec<usize>,
    positions: Vec<usize>,
    /// The first column of each row of the factor.
    first: Vec<usize>,
}

impl Profile {
    /// Computes the profile; `None` if the factor would be too large or too expensive.
    fn of(matrix: &Csr, limit: &Limit) -> Option<Profile> {
        if matrix.nnz() as u64 > limit.entries {
            return None;
        }
        let rows = reverse_cuthill_mckee(matrix);
        let mut positions = vec![0; rows.len()];
        rows.iter().enumerate().for_each(|(position, &row)| positions[row] = position);
        let first = |position: usize| {
            let columns = matrix.row(rows[position]).map(|(column, _)| positions[column]);
            columns.fold(position, usize::min)
        };
        let first: Vec<usize> = (0..rows.len()).map(first).collect();
        let widths = || first.iter().enumerate().map(|(position, first)| (position - first + 1) as u64);
        let work = widths().map(|w| w * w / 2).sum::<u64>();
        let cheap = widths().sum::<u64>() <= limit.factor && work <= limit.work;
        cheap.then_some(Profile { rows, positions, first })
    }

    /// Solves A e = r with the factor.
    fn solve(&self, factor: &[Vec<f64>], r: &[f64], e: &mut [f64]) {
        e.iter_mut().zip(&self.rows).for_each(|(e, &row)| *e = r[row]);
        // L y = r
        for (i, row) in factor.iter().enumerate() {
            let Some((diagonal, left)) = row.split_last() else { continue };
            e[i] = (e[i] - dot(left, &e[self.first[i]..i])) / diagonal;
        }
        // L' e = y
        for (i, row) in factor.iter().enumerate().rev() {
            let Some((diagonal, left)) = row.split_last() else { continue };
            let (above, rest) = e.split_at_mut(i);
            rest[0] /= diagonal;
            above[self.first[i]..].iter_mut().zip(left).for_each(|(e, l)| *e -= l * rest[0]);
        }
    }

    /// Computes the rows of L, each from its first column to the diagonal. `None` if a pivot is not positive.
    fn factor(&self, matrix: &Csr) -> Option<Vec<Vec<f64>>> {
        let mut factor: Vec<Vec<f64>> = Vec::with_capacity(self.rows.len());
        for (i, &first) in self.first.iter().enumerate() {
            let mut row = vec![0.0; i - first + 1];
            for (column, value) in matrix.row(self.rows[i]) {
                let position = self.positions[column];
                if position <= i {
                    row[position - first] += value;
                }
            }
            for j in first..i {
                // The columns that rows i and j of L share.
                let from = first.max(self.first[j]);
                let (diagonal, left) = factor[j].split_last()?;
                let sum = dot(&row[from - first..j - first], &left[from - self.first[j]..]);
                row[j - first] = (row[j - first] - sum) / diagonal;
            }
            let (pivot, left) = row.split_last_mut()?;
            *pivot -= dot(left, left);
            if !(*pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            *pivot = pivot.sqrt();
            factor.push(row);
        }
        Some(factor)
    }
}

/// Computes a dot product in four independent sums, which shortens the chain of dependent additions.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_fours, a_rest) = a.as_chunks::<4>();
    let (b_fours, b_rest) = b.as_chunks::<4>();
    let mut sums = [0.0; 4];
    for (a, b) in a_fours.iter().zip(b_fours) {
        (0..4).for_each(|k| sums[k] += a[k] * b[k]);
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::load;

    #[test]
    fn the_direct_solution_solves_the_system() {
        for what in ["poisson2d:17x13", "hex27:5x4x3,dof=2", "elasticity3d:4x4x4"] {
            let matrix = load(what).unwrap().matrix;
            let x: Vec<f64> = (0..matrix.rows()).map(|i| (i % 7) as f64 - 3.0).collect();
            let b = matrix.multiply_reference(&x);
            let profile = Profile::of(&matrix, &IN_DOUBT).unwrap();
            let mut found = vec![0.0; matrix.rows()];
            profile.solve(&profile.factor(&matrix).unwrap(), &b, &mut found);
            let error = profile
                .positions
                .iter()
                .map(|&position| found[position])
                .zip(&x)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            assert!(error < 1e-8, "{what}: {error:e}");
        }
    }

    #[test]
    fn the_order_narrows_a_shuffled_grid() {
        let grid = load("poisson2d:30x30").unwrap().matrix;
        let shuffled: Vec<usize> = (0..900).map(|i| i * 577 % 900).collect();
        let mut entries = crate::format::Coo::with_capacity(900, 900, grid.nnz()).unwrap();
        for i in 0..900 {
            grid.row(i).for_each(|(j, v)| entries.push(shuffled[i], shuffled[j], v).unwrap());
        }
        let matrix = entries.into_csr().unwrap();
        let profile = Profile::of(&matrix, &IN_DOUBT).unwrap();
        let width = profile.first.iter().enumerate().map(|(i, first)| i - first).max().unwrap();
        assert!(width <= 60, "{width}: about the width of the grid");
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_direct_solution() {
        let matrix = load("poisson2d:9x9,boundary=neumann").unwrap().matrix;
        let mut r = vec![0.0; 81];
        (r[0], r[80]) = (1.0, -1.0);
        let profile = Profile::of(&matrix, &IN_DOUBT).unwrap();
        let large = |factor: Vec<Vec<f64>>| {
            let mut e = vec![0.0; 81];
            profile.solve(&factor, &r, &mut e);
            e.iter().fold(0.0, |m: f64, e| m.max(e.abs())) > 1e8
        };
        assert!(profile.factor(&matrix).is_none_or(large), "the last pivot must be tiny or not positive");
    }

    #[test]
    fn a_large_matrix_is_not_factorised() {
        assert!(Profile::of(&load("poisson3d:40x40x40").unwrap().matrix, &IN_DOUBT).is_none());
    }
}
