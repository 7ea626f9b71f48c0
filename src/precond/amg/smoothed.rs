//! The prolongator, smoothed by one step of Jacobi's method on the filtered matrix, and the next matrix.
//!
//! P = (I - omega D^-1 F) T with T the tentative prolongator, F the filtered matrix, D its diagonal and omega
//! = 4/3 / rho(D^-1 F). F lacks the entries of A that are not strong; they are added to the diagonal, so that
//! F keeps the row sums of A. A row whose diagonal would lose more than half stays as it is, and so do
//! systems of several unknowns per node.

use super::aggregate::{Aggregates, NONE};
use super::strength::Strong;
use super::tentative::Tentative;
use crate::error::Result;
use crate::format::Csr;
use crate::format::product::{RowSum, Rows, Workspace, block_width, in_blocks};
use crate::parallel::collected;
use crate::spectrum::Tridiagonal;
use rayon::prelude::*;

/// The share of its diagonal that a filtered row keeps.
const KEPT: f64 = 0.5;
/// The factor on an estimate of the largest eigenvalue, which is a lower bound.
pub(super) const SAFETY: f64 = 1.1;
/// Steps of Lanczos' process for an estimate that the smoother needs.
pub(super) const STEPS: usize = 12;
/// Steps for an estimate that affects the prolongator alone.
const FEW_STEPS: usize = 6;
/// The rows and columns of a matrix that are tried first.
const FIRST: usize = 1 << 13;
/// Elements that a thread processes as one task.
const PART: usize = 4096;
/// Rows of the next matrix from which its entries are predicted.
const SAMPLE: usize = 64;

/// Returns the reciprocals of a diagonal; 1 where it is not positive.
pub(super) fn reciprocals(diagonal: &[f64]) -> Vec<f64> {
    collected(diagonal.len(), |row| if diagonal[row] > 0.0 { 1.0 / diagonal[row] } else { 1.0 })
}

/// Returns the largest absolute row sum of D^-1 A, which no eigenvalue exceeds.
pub(super) fn row_sum_bound<R: Iterator<Item = (usize, f64)>>(
    rows: impl Fn(usize) -> R + Sync,
    inverse: &[f64],
) -> f64 {
    let sum = |row: usize| inverse[row] * rows(row).map(|(_, value)| value.abs()).sum::<f64>();
    (0..inverse.len()).into_par_iter().with_min_len(PART).map(sum).reduce(|| 0.0, f64::max)
}

/// Changes each element of a vector and sums what `change` returns, by parts that are added in their order.
fn summed(vector: &mut [f64], change: impl Fn(usize, &mut f64) -> f64 + Sync) -> f64 {
    let parts = vector.par_chunks_mut(PART).enumerate().map(|(part, elements)| {
        elements.iter_mut().enumerate().map(|(i, element)| change(part * PART + i, element)).sum()
    });
    parts.collect::<Vec<f64>>().into_iter().sum()
}

/// Estimates the largest eigenvalue of D^-1 A from below. If the estimate comes within the factor [`SAFETY`]
/// of `bound`, which no eigenvalue exceeds, the bound is the result. The first rows and columns of a large
/// matrix are tried before the whole: their eigenvalues do not exceed its largest one.
pub(super) fn largest_eigenvalue<R: Iterator<Item = (usize, f64)>>(
    rows: impl Fn(usize) -> R + Sync,
    inverse: &[f64],
    bound: f64,
    steps: usize,
) -> f64 {
    if inverse.len() > 2 * FIRST {
        let found = by_lanczos(&rows, &inverse[..FIRST], bound, steps);
        if found == bound {
            return bound;
        }
    }
    by_lanczos(&rows, inverse, bound, steps)
}

/// Estimates the largest eigenvalue of as many rows and columns as there are elements of `inverse`, by `most`
/// steps of Lanczos' process, in the inner product x' D y.
fn by_lanczos<R: Iterator<Item = (usize, f64)>>(
    rows: &(impl Fn(usize) -> R + Sync),
    inverse: &[f64],
    bound: f64,
    most: usize,
) -> f64 {
    let n = inverse.len();
    // Numbers from -1 to 1 by a multiplicative hash.
    let hashed = |i: usize| f64::from((i as u32 + 1).wrapping_mul(2_654_435_761)) / 2_147_483_648.0 - 1.0;
    // The basis vectors are u / norm and, of the step before, v / norm_before.
    let mut u: Vec<f64> = collected(n, hashed);
    let mut v = vec![0.0; n];
    let mut norm = summed(&mut u, |i, u| *u * *u / inverse[i]).sqrt();
    let (mut norm_before, mut beta, mut steps) = (1.0, 0.0, Vec::new());
    let mut found = 1.0;
    for _ in 0..most.min(n) {
        // v = D^-1 A u / norm - beta v / norm_before
        let alpha = summed(&mut v, |row, v| {
            let element = |column: usize| u.get(column).copied().unwrap_or(0.0);
            let product = rows(row).map(|(column, a)| a * element(column)).sum::<f64>() / norm;
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

/// Returns the matrix without the connections that are not strong.
fn filtered(matrix: &Csr, strong: &Csr, space: &Workspace) -> Result<Csr> {
    let (all, diagonal) = (Rows::of(matrix), matrix.diagonal());
    let fill = |row: usize, sum: &mut RowSum<'_, 1>| {
        // Both rows are in the order of their columns.
        let mut kept = strong.row_columns(row).iter().copied().peekable();
        let mut keeps = |column: usize| column == row || kept.next_if_eq(&(column as u32)).is_some();
        let lost: f64 = all.row(row).filter(|(column, _)| !keeps(*column)).map(|(_, value)| value).sum();
        if diagonal[row] + lost < KEPT * diagonal[row] {
            return all.row(row).for_each(|(column, value)| sum.push(column as u32, [value]));
        }
        let mut kept = strong.row_columns(row).iter().copied().peekable();
        for (column, value) in all.row(row) {
            if column == row {
                sum.push(column as u32, [value + lost]);
            } else if kept.next_if_eq(&(column as u32)).is_some() {
                sum.push(column as u32, [value]);
            }
        }
    };
    space.made_by_rows((matrix.rows(), matrix.cols()), |row| matrix.row_range(row).len(), fill)
}

/// What the prolongator of a level is made from.
pub(super) struct Prolongation<'a> {
    pub matrix: &'a Csr,
    /// The reciprocals of the diagonal.
    pub inverse: &'a [f64],
    /// The largest eigenvalue of D^-1 A.
    pub largest: f64,
    pub strong: &'a Strong<'a>,
    pub aggregates: &'a Aggregates,
    pub tentative: &'a Tentative,
    pub block: usize,
}

impl Prolongation<'_> {
    fn columns(&self) -> usize {
        self.aggregates.count * self.tentative.entries.cols()
    }

    /// Returns the number of neighbouring columns that each block of the prolongator's entries has.
    pub(crate) fn width(&self) -> usize {
        block_width(self.tentative.entries.cols())
    }

    /// Calls `entry` for each block of W columns of a row of the tentative prolongator that is not zero.
    #[inline(always)]
    fn tentative_row<const W: usize>(&self, row: usize, mut entry: impl FnMut(u32, &[f64; W])) {
        // A division takes longer than the rest of this function.
        let node = if self.block == 1 { row } else { row / self.block };
        let aggregate = self.aggregates.of[node];
        if aggregate == NONE {
            return;
        }
        let blocks = self.tentative.entries.row(row).as_chunks::<W>().0;
        let first = aggregate * blocks.len() as u32;
        for (block, values) in (first..).zip(blocks).filter(|(_, values)| **values != [0.0; W]) {
            entry(block, values);
        }
    }

    /// Returns the tentative prolongator.
    pub(crate) fn plain(&self, space: &Workspace) -> Result<Csr> {
        in_blocks!(self.width(), W => self.plain_in_blocks::<W>(space))
    }

    fn plain_in_blocks<const W: usize>(&self, space: &Workspace) -> Result<Csr> {
        let blocks = self.tentative.entries.cols() / W;
        space.made_by_rows::<W>(
            (self.matrix.rows(), self.columns() / W),
            |_| blocks,
            |row, sum| self.tentative_row(row, |block, values| sum.push(block, *values)),
        )
    }

    /// Returns the smoothed prolongator.
    pub(crate) fn smoothed(&self, space: &Workspace) -> Result<Csr> {
        in_blocks!(self.width(), W => self.smoothed_in_blocks::<W>(space))
    }

    fn smoothed_in_blocks<const W: usize>(&self, space: &Workspace) -> Result<Csr> {
        let some = self.strong.some().filter(|_| self.block == 1);
        let filtered = some.map(|strong| filtered(self.matrix, strong, space)).transpose()?;
        let own = filtered.as_ref().map(|filtered| reciprocals(&filtered.diagonal()));
        let (rows, inverse) =
            (Rows::of(filtered.as_ref().unwrap_or(self.matrix)), own.as_deref().unwrap_or(self.inverse));
        let row = |row: usize| rows.row(row);
        let largest = match filtered {
            None => self.largest,
            Some(_) => largest_eigenvalue(row, inverse, row_sum_bound(row, inverse), FEW_STEPS),
        };
        let omega = 4.0 / 3.0 / largest;
        let blocks = self.tentative.entries.cols() / W;
        space.made_by_rows::<W>(
            (self.matrix.rows(), self.columns() / W),
            |row| (self.matrix.row_range(row).len() + 1) * blocks,
            |row, sum| {
                self.tentative_row(row, |block, values| sum.add(block, *values));
                for (other, value) in rows.row(row) {
                    let by = -omega * inverse[row] * value;
                    self.tentative_row::<W>(other, |block, values| {
                        sum.add(block, values.map(|value| by * value));
                    });
                }
            },
        )
    }
}

/// Numbers without repetition.
struct Distinct {
    has: Vec<bool>,
    list: Vec<u32>,
}

impl Distinct {
    /// Creates an empty list for numbers below `n`.
    fn below(n: usize) -> Distinct {
        Distinct { has: vec![false; n], list: Vec::new() }
    }

    fn clear(&mut self) {
        self.list.drain(..).for_each(|number| self.has[number as usize] = false);
    }

    fn extend(&mut self, numbers: &[u32]) {
        for &number in numbers {
            if !std::mem::replace(&mut self.has[number as usize], true) {
                self.list.push(number);
            }
        }
    }
}

/// Predicts the entries of P' A P from a sample of its rows.
pub(super) fn predicted_entries(matrix: &Csr, prolongator: &Csr, restriction: &Csr) -> usize {
    let rows = restriction.rows();
    let sampled = SAMPLE.min(rows);
    let length = |(near, found): &mut (Distinct, Distinct), sample: usize| {
        let row = sample * (rows - 1) / (sampled - 1).max(1);
        // The rows of P that count, each once, and then their columns, each once.
        near.clear();
        found.clear();
        for &fine in restriction.row_columns(row) {
            near.extend(matrix.row_columns(fine as usize));
        }
        for &near in &near.list {
            found.extend(prolongator.row_columns(near as usize));
        }
        found.list.len()
    };
    let lists = || (Distinct::below(matrix.rows()), Distinct::below(rows));
    let total: usize = (0..sampled).into_par_iter().map_init(lists, length).sum();
    (total as f64 / sampled.max(1) as f64 * rows as f64) as usize
}

/// Returns P' A P, where the entries of P come in blocks of `width` columns. An unknown with a diagonal of 0,
/// which no other unknown affects, gets a positive one.
pub(super) fn galerkin(
    matrix: &Csr,
    (prolongator, restriction): (&Csr, &Csr),
    width: usize,
    space: &Workspace,
) -> Result<Csr> {
    let product = space.product_of_three(restriction, matrix, prolongator, width)?;
    let mut diagonal = product.diagonal();
    let own = diagonal.clone();
    diagonal.sort_unstable_by(f64::total_cmp);
    let median = diagonal.get(diagonal.len() / 2).copied().unwrap_or(0.0);
    let is_empty = |row: usize| own[row] <= 1e-14 * median;
    if median <= 0.0 || !(0..own.len()).any(is_empty) {
        return Ok(product);
    }
    space.made_by_rows(
        (product.rows(), product.cols()),
        |row| product.row_range(row).len() + 1,
        |row, sum| {
            product.row(row).for_each(|(column, value)| sum.add(column as u32, [value]));
            if is_empty(row) {
                sum.add(row as u32, [median]);
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
        let (all, inverse) = (Rows::of(&matrix), reciprocals(&matrix.diagonal()));
        let rows = |row: usize| all.row(row);
        let bound = bound.unwrap_or_else(|| row_sum_bound(rows, &inverse));
        let (mut x, mut largest) = (collected(inverse.len(), |i| ((i * i + 7) % 13) as f64 - 5.5), 0.0);
        for _ in 0..3000 {
            x = collected(x.len(), |i| inverse[i] * rows(i).map(|(j, a)| a * x[j]).sum::<f64>());
            largest = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            x.iter_mut().for_each(|x| *x /= largest);
        }
        (largest_eigenvalue(rows, &inverse, bound, STEPS), largest)
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
