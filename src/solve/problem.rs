//! Right-hand sides for solves if the user provides none.

use super::verdict::largest_magnitude;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::parallel::zeros;
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

/// Computes b = A times ones. If that vanishes, as for the Laplacian of a graph, computes b = A times a random vector; the matrix
/// is singular then, and so is a matrix with an empty row, so the answer is not unique.
pub fn with_known_answer(matrix: &Csr) -> Problem {
    let ones = vec![1.0; matrix.cols()];
    let b = matrix.multiply_reference(&ones);
    let magnitudes = matrix.map_rows(|i| matrix.row(i).map(|(_, v)| v.abs()).sum::<f64>());
    let empty_row = magnitudes.contains(&0.0);
    let scale = largest_magnitude(magnitudes.into_iter());
    // Written so that NaN counts as not vanishing.
    let vanishes = scale > 0.0 && largest_magnitude(b.iter().copied()) <= ROUNDING * scale;
    if !vanishes {
        let answer = (scale != 0.0 && !empty_row).then_some(ones);
        return Problem { b, columns: 1, answer, description: "A*ones".to_owned() };
    }
    let random = random(matrix.cols(), SEED);
    let b = matrix.multiply_reference(&random);
    Problem { b, columns: 1, answer: None, description: "A*random, since A*ones vanishes".to_owned() }
}

/// Computes numbers in [-1, 1) that depend only on the seed and their index: the same on every machine.
pub fn random(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64).map(|i| 2.0 * Random::at(seed, i).unit() - 1.0).collect()
}

/// Computes `k` columns, n x k, row-major: column j is [`random`] for the seed plus j.
pub fn random_columns(n: usize, seed: u64, k: usize) -> Result<Vec<f64>> {
    let entries = n.checked_mul(k).ok_or(Error::OutOfMemory { bytes: n as u128 * k as u128 * 8 })?;
    let mut b = zeros(entries)?;
    for (i, row) in b.chunks_exact_mut(k.max(1)).enumerate() {
        for (column, entry) in (0..).zip(row) {
            *entry = 2.0 * Random::at(seed.wrapping_add(column), i as u64).unit() - 1.0;
        }
    }
    Ok(b)
}
