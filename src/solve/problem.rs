//! Right-hand sides for solves if the user provides none.

use super::verdict::largest_magnitude;
use crate::format::Csr;
use crate::source::generate::random::Random;

/// A right-hand side, and the answer from which it was computed.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The right-hand side.
    pub b: Vec<f64>,
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
        return Problem { b, answer, description: "A*ones".to_owned() };
    }
    let random = random(matrix.cols(), SEED);
    let b = matrix.multiply_reference(&random);
    Problem { b, answer: None, description: "A*random, since A*ones vanishes".to_owned() }
}

/// Computes numbers in [-1, 1) that depend only on the seed and their index: the same on every machine.
pub fn random(n: usize, seed: u64) -> Vec<f64> {
    (0..n as u64).map(|i| 2.0 * Random::at(seed, i).unit() - 1.0).collect()
}
