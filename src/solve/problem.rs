//! Right-hand sides for solves if the user provides none.

use super::given::MatrixRef;
use super::norms::{larger, largest_magnitude};
use crate::backend::distributed::{AsGiven, RankRows};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::parallel::{run_all, zeros};
use crate::source::generate::random::Random;

/// One right-hand side or several, and the answer from which a single one was computed.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The right-hand sides, n x `columns`, row-major.
    pub b: Vec<f64>,
    /// The number of right-hand sides.
    pub columns: usize,
    /// The answer, if it is the only one.
    pub answer: Option<Vec<f64>>,
    /// How b was computed.
    pub description: String,
}

/// The seed of a random right-hand side that is used because A times ones vanishes.
const SEED: u64 = 0x5EED;

/// A row sum below this times the sum of magnitudes is rounding.
const ROUNDING: f64 = 1e-13;

/// Computes b = A times ones. If that vanishes, as for the Laplacian of a graph, computes b = A
/// times a random vector; the matrix is singular then, and so is a matrix with an empty row, so
/// the answer is not unique.
pub(crate) fn with_known_answer(matrix: &Csr) -> Problem {
    let (b, scale, empty_row) = row_sums(matrix);
    // Written so that NaN counts as not vanishing.
    let vanishes = scale > 0.0 && largest_magnitude(b.iter().copied()) <= ROUNDING * scale;
    if !vanishes {
        let answer = (scale != 0.0 && !empty_row).then(|| vec![1.0; matrix.cols()]);
        return Problem { b, columns: 1, answer, description: "A*ones".to_owned() };
    }
    let random = random(matrix.cols(), SEED);
    let b = matrix.multiply_reference(&random);
    Problem { b, columns: 1, answer: None, description: "A*random, since A*ones vanishes".to_owned() }
}

/// Computes the right-hand side of [`with_known_answer`] for the rows of this rank, with the bits of one
/// process. All ranks call this together.
pub(crate) fn with_known_answer_over_ranks(rows: &RankRows) -> Result<Problem> {
    let (ranks, description) = (rows.halo().ranks(), "A*ones".to_owned());
    // Rows are summed in the order of the matrix as given.
    let given = rows.numbers().listed().map(|_| rows.as_given()).transpose()?;
    let (b, scale, empty_row) = row_sums(given.as_ref().map_or(rows.matrix(), |given| &given.matrix));
    let scale = ranks.fold(scale, larger);
    let largest = ranks.fold(largest_magnitude(b.iter().copied()), larger);
    if !(scale > 0.0 && largest <= ROUNDING * scale) {
        let known = scale != 0.0 && !ranks.any(empty_row);
        return Ok(Problem { answer: known.then(|| vec![1.0; b.len()]), b, columns: 1, description });
    }
    let b = match given {
        Some(AsGiven { matrix, columns }) => {
            matrix.multiply_reference(&random_rows(columns.iter().map(|column| *column as usize), SEED))
        }
        None => MatrixRef::OfRank(rows).multiply(&random_rows(rows.numbers().all(b.len()), SEED)),
    };
    Ok(Problem { b, columns: 1, answer: None, description: "A*random, since A*ones vanishes".to_owned() })
}

/// Returns A times ones, with each row summed in order, the largest sum of magnitudes in a row, and
/// whether such a sum is 0.
fn row_sums(matrix: &Csr) -> (Vec<f64>, f64, bool) {
    /// Rows that a thread sums as one task.
    const ROWS: usize = 4096;
    let mut b = vec![0.0; matrix.rows()];
    let parts = run_all(b.chunks_mut(ROWS).enumerate().collect(), |(task, b): (usize, &mut [f64])| {
        let (mut largest, mut empty) = (0.0, false);
        for (row, b) in (task * ROWS..).zip(b) {
            *b = matrix.row(row).map(|(_, value)| value).sum();
            let magnitude: f64 = matrix.row(row).map(|(_, value)| value.abs()).sum();
            largest = largest_magnitude([largest, magnitude].into_iter());
            empty |= magnitude == 0.0;
        }
        (largest, empty)
    });
    let largest = largest_magnitude(parts.iter().map(|part| part.0));
    (b, largest, parts.iter().any(|part| part.1))
}

/// Computes numbers in [-1, 1) that depend only on the seed and their index: the same on every machine.
pub fn random(n: usize, seed: u64) -> Vec<f64> {
    random_rows(0..n, seed)
}

/// Computes some rows of [`random`].
pub(crate) fn random_rows(rows: impl Iterator<Item = usize>, seed: u64) -> Vec<f64> {
    rows.map(|row| 2.0 * Random::at(seed, row as u64).unit() - 1.0).collect()
}

/// Computes some rows of `k` columns, row-major: column j is [`random`] for the seed plus j.
pub(crate) fn random_columns(
    rows: impl ExactSizeIterator<Item = usize>,
    seed: u64,
    k: usize,
) -> Result<Vec<f64>> {
    let n = rows.len();
    let entries = n.checked_mul(k).ok_or(Error::OutOfMemory { bytes: n as u128 * k as u128 * 8 })?;
    let mut b = zeros(entries)?;
    for (i, row) in rows.zip(b.chunks_exact_mut(k.max(1))) {
        for (column, entry) in (0..).zip(row) {
            *entry = 2.0 * Random::at(seed.wrapping_add(column), i as u64).unit() - 1.0;
        }
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Coo, Values};
    use crate::source::load;
    use std::sync::Arc;

    #[test]
    fn row_sums_are_those_of_the_reference() {
        let grid = load("poisson2d:97x89").unwrap().matrix;
        let values: Vec<f64> = (0..grid.nnz()).map(|i| (i as f64).sin()).collect();
        let with = |at: usize, value: f64| {
            let mut values = values.clone();
            values[at] = value;
            Csr::with_pattern(Arc::clone(grid.pattern()), Values::F64(values)).unwrap()
        };
        let mut gaps = Coo::with_capacity(5, 5, 2).unwrap();
        gaps.push(1, 4, -0.0).unwrap();
        gaps.push(3, 0, -2.5).unwrap();
        let empty = Coo::with_capacity(0, 0, 0).unwrap();
        let small = [gaps, empty].map(|coo| coo.into_csr().unwrap());
        for matrix in [with(0, 1.0), with(7000, f64::NAN), with(9, f64::INFINITY)].into_iter().chain(small) {
            let (b, scale, empty_row) = row_sums(&matrix);
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&b), bits(&matrix.multiply_reference(&vec![1.0; matrix.cols()])));
            let magnitudes = matrix.map_rows(|i| matrix.row(i).map(|(_, v)| v.abs()).sum::<f64>());
            assert_eq!(empty_row, magnitudes.contains(&0.0));
            assert_eq!(scale.to_bits(), largest_magnitude(magnitudes.into_iter()).to_bits());
        }
    }
}
