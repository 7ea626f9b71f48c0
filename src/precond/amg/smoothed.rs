//! The prolongator, smoothed by one step of Jacobi's method on the filtered matrix, and the next matrix.
//!
//! P = (I - omega D^-1 F) T with T the tentative prolongator, F the filtered matrix, D its diagonal and omega
//! = 4/3 / rho(D^-1 F). F lacks the entries of A that are not strong; they are added to the diagonal, so that
//! F keeps the row sums of A. A row whose diagonal would lose more than half stays as it is, and so do
//! systems of several unknowns per node.

use super::aggregate::{Aggregates, NONE};
use super::tentative::{NearNull, Tentative};
use crate::error::Result;
use crate::format::Csr;
use crate::format::product::{Rows, made_by_rows};
use crate::parallel::collected;
use crate::spectrum::Tridiagonal;
use rayon::prelude::*;
use std::borrow::Cow;

/// The share of its diagonal that a filtered row keeps.
const KEPT: f64 = 0.5;
/// The factor on an estimate of the largest eigenvalue, which is a lower bound.
pub(super) const SAFETY: f64 = 1.1;
/// Steps of Lanczos' process.
const STEPS: usize = 12;
/// Elements that a thread processes as one task.
const PART: usize = 4096;
/// Rows of the next matrix from which its entries are predicted.
const SAMPLE: usize = 64;

/// Returns the reciprocals of the diagonal; 1 where it is not positive.
pub(super) fn inverse_diagonal(matrix: &Csr) -> Vec<f64> {
    matrix.diagonal().into_iter().map(|d| if d > 0.0 { 1.0 / d } else { 1.0 }).collect()
}

/// Returns the largest absolute row sum of D^-1 A, which no eigenvalue exceeds.
pub(super) fn row_sum_bound(rows: Rows<'_>, inverse: &[f64]) -> f64 {
    let sum = |row: usize| inverse[row] * rows.row(row).map(|(_, value)| value.abs()).sum::<f64>();
    (0..inverse.len()).into_par_iter().with_min_len(PART).map(sum).reduce(|| 0.0, f64::max)
}

/// Changes each element of a vector and sums what `change` returns, by parts that are added in their order.
fn summed(vector: &mut [f64], change: impl Fn(usize, &mut f64) -> f64 + Sync) -> f64 {
    let parts = vector.par_chunks_mut(PART).enumerate().map(|(part, elements)| {
        elements.iter_mut().enumerate().map(|(i, element)| change(part * PART + i, element)).sum()
    });
    parts.collect::<Vec<f64>>().into_iter().sum()
}

/// Estimates the largest eigenvalue of D^-1 A by steps of Lanczos' process, which find it from below, in the
/// inner product x' D y. Once they come within the factor [`SAFETY`] of `bound`, which no eigenvalue exceeds,
/// the bound is the estimate.
pub(super) fn largest_eigenvalue(rows: Rows<'_>, inverse: &[f64], bound: f64) -> f64 {
    let n = inverse.len();
    // Numbers from -1 to 1 by a multiplicative hash.
    let hashed = |i: usize| f64::from((i as u32 + 1).wrapping_mul(2_654_435_761)) / 2_147_483_648.0 - 1.0;
    // The basis vectors are u / norm and, of the step before, v / norm_before.
    let mut u: Vec<f64> = collected(n, hashed);
    let mut v = vec![0.0; n];
    let mut norm = summed(&mut u, |i, u| *u * *u / inverse[i]).sqrt();
    let (mut norm_before, mut beta, mut steps) = (1.0, 0.0, Vec::new());
    let mut found = 1.0;
    for _ in 0..STEPS.min(n) {
        // v = D^-1 A u / norm - beta v / norm_before
        let alpha = summed(&mut v, |row, v| {
            let product = rows.row(row).map(|(column, a)| a * u[column]).sum::<f64>() / norm;
            *v = inverse[row] * product - beta / norm_before * *v;
            product * u[row]
        }) / norm;
        let square = summed(&mut v, |i, v| {
            *v -= alpha / norm * u[i];
            *v * *v / inverse[i]
        });
        beta = square.sqrt();
        steps.push((alpha, beta));
        let mut projection = Tridiagonal::default();
        projection.set_to_lanczos(&steps);
        found = projection.extremes().map_or(found, |found| found.largest);
        if SAFETY * found >= bound {
            return bound;
        }
        if beta < 1e-12 * alpha.abs() {
            break;
        }
        (norm_before, norm) = (norm, beta);
        std::mem::swap(&mut u, &mut v);
    }
    found
}

/// Returns the filtered matrix, or the matrix itself if all connections are strong.
fn filtered<'a>(matrix: &'a Csr, strong: &Csr) -> Result<Cow<'a, Csr>> {
    let keeps = |row: usize, column: usize| {
        row == column || strong.row_columns(row).binary_search(&(column as u32)).is_ok()
    };
    let is_whole = |row: usize| {
        let others = matrix.row(row).filter(|(column, value)| *column != row && *value != 0.0).count();
        others == strong.row_range(row).len()
    };
    if collected(matrix.rows(), is_whole).into_iter().all(|whole| whole) {
        return Ok(Cow::Borrowed(matrix));
    }
    let size = (matrix.rows(), matrix.cols());
    made_by_rows(
        size,
        |row| matrix.row_range(row).len(),
        |row, sum| {
            let weak = matrix.row(row).filter(|(column, _)| !keeps(row, *column));
            let lost: f64 = weak.map(|(_, value)| value).sum();
            let diagonal = matrix.get(row, row).unwrap_or(0.0);
            let keeps_all = diagonal + lost < KEPT * diagonal;
            for (column, value) in matrix.row(row).filter(|(column, _)| keeps_all || keeps(row, *column)) {
                let added = if column == row && !keeps_all { lost } else { 0.0 };
                sum.push(column as u32, value + added);
            }
        },
    )
    .map(Cow::Owned)
}

/// What the prolongator of a level is made from.
pub(super) struct Prolongation<'a> {
    pub matrix: &'a Csr,
    /// The largest eigenvalue of D^-1 A.
    pub largest: f64,
    pub strong: &'a Csr,
    pub aggregates: &'a Aggregates,
    pub tentative: &'a Tentative,
    pub block: usize,
}

impl Prolongation<'_> {
    fn columns(&self) -> usize {
        self.aggregates.count * self.tentative.entries.count
    }

    /// Calls `entry` for each entry of a row of the tentative prolongator.
    fn tentative_row(&self, row: usize, mut entry: impl FnMut(u32, f64)) {
        let aggregate = self.aggregates.of[row / self.block];
        if aggregate == NONE {
            return;
        }
        let NearNull { count, .. } = self.tentative.entries;
        for (c, value) in self.tentative.entries.row(row).iter().enumerate().filter(|(_, v)| **v != 0.0) {
            entry(aggregate * count as u32 + c as u32, *value);
        }
    }

    /// Returns the tentative prolongator.
    pub(crate) fn plain(&self) -> Result<Csr> {
        let size = (self.matrix.rows(), self.columns());
        let count = self.tentative.entries.count;
        made_by_rows(
            size,
            |_| count,
            |row, sum| self.tentative_row(row, |column, value| sum.push(column, value)),
        )
    }

    /// Returns the smoothed prolongator.
    pub(crate) fn smoothed(&self) -> Result<Csr> {
        let filtered = match self.block {
            1 => filtered(self.matrix, self.strong)?,
            _ => Cow::Borrowed(self.matrix),
        };
        let (inverse, rows) = (inverse_diagonal(&filtered), Rows::of(&filtered));
        let largest = match filtered {
            Cow::Borrowed(_) => self.largest,
            Cow::Owned(_) => largest_eigenvalue(rows, &inverse, row_sum_bound(rows, &inverse)),
        };
        let omega = 4.0 / 3.0 / largest;
        let size = (self.matrix.rows(), self.columns());
        let count = self.tentative.entries.count;
        made_by_rows(
            size,
            |row| (filtered.row_range(row).len() + 1) * count,
            |row, sum| {
                self.tentative_row(row, |column, value| sum.add(column, value));
                for (other, value) in rows.row(row) {
                    let by = -omega * inverse[row] * value;
                    self.tentative_row(other, |column, value| sum.add(column, by * value));
                }
            },
        )
    }
}

/// Predicts the entries of P' A P from a sample of its rows.
pub(super) fn predicted_entries(matrix: &Csr, prolongator: &Csr, restriction: &Csr) -> usize {
    let rows = restriction.rows();
    let sampled = SAMPLE.min(rows);
    let length = |sample: usize| {
        let row = sample * (rows - 1) / (sampled - 1).max(1);
        // The rows of P that count, each once, and then their columns, each once.
        let fine = restriction.row_columns(row).iter();
        let mut near: Vec<u32> = fine.flat_map(|&fine| matrix.row_columns(fine as usize)).copied().collect();
        near.sort_unstable();
        near.dedup();
        let mut found: Vec<u32> =
            near.into_iter().flat_map(|near| prolongator.row_columns(near as usize)).copied().collect();
        found.sort_unstable();
        found.dedup();
        found.len()
    };
    let total: usize = (0..sampled).into_par_iter().map(length).sum();
    (total as f64 / sampled.max(1) as f64 * rows as f64) as usize
}

/// Returns P' A P. An unknown with a diagonal of 0, which no other unknown affects, gets a positive one.
pub(super) fn galerkin(matrix: &Csr, prolongator: &Csr, restriction: &Csr) -> Result<Csr> {
    let product = restriction.times(&matrix.times(prolongator)?)?;
    let mut diagonal = product.diagonal();
    let own = diagonal.clone();
    diagonal.sort_unstable_by(f64::total_cmp);
    let median = diagonal.get(diagonal.len() / 2).copied().unwrap_or(0.0);
    let is_empty = |row: usize| own[row] <= 1e-14 * median;
    if median <= 0.0 || !(0..own.len()).any(is_empty) {
        return Ok(product);
    }
    made_by_rows(
        (product.rows(), product.cols()),
        |row| product.row_range(row).len() + 1,
        |row, sum| {
            product.row(row).for_each(|(column, value)| sum.add(column as u32, value));
            if is_empty(row) {
                sum.add(row as u32, median);
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::product::in_double;
    use crate::source;

    /// Returns the estimate with a bound, and the largest eigenvalue by the power method.
    fn estimate(name: &str, bound: Option<f64>) -> (f64, f64) {
        let matrix = in_double(source::load(name).unwrap().matrix);
        let (rows, inverse) = (Rows::of(&matrix), inverse_diagonal(&matrix));
        let bound = bound.unwrap_or_else(|| row_sum_bound(rows, &inverse));
        let (mut x, mut largest) = (collected(inverse.len(), |i| ((i * i + 7) % 13) as f64 - 5.5), 0.0);
        for _ in 0..3000 {
            x = collected(x.len(), |i| inverse[i] * rows.row(i).map(|(j, a)| a * x[j]).sum::<f64>());
            largest = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            x.iter_mut().for_each(|x| *x /= largest);
        }
        (largest_eigenvalue(rows, &inverse, bound), largest)
    }

    #[test]
    fn the_estimate_is_a_close_lower_bound_of_the_largest_eigenvalue() {
        for name in ["poisson2d:25x20", "elasticity3d:4x4x4,contrast=100", "spd-random:n=400,row=9"] {
            let (found, largest) = estimate(name, Some(f64::INFINITY));
            let share = found / largest;
            assert!((1.0 / SAFETY..1.0 + 1e-6).contains(&share), "{name}: {found} of {largest}");
        }
    }

    #[test]
    fn the_estimate_is_the_bound_of_the_row_sums_where_that_is_close() {
        assert_eq!(estimate("poisson2d:25x20", None).0, 2.0);
    }
}
