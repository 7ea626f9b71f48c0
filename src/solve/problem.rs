//! Right-hand sides with known answers: what a solve is tried on when nobody brings one.

use super::verdict::largest_magnitude;
use crate::format::Csr;

/// A right-hand side, and the answer it was made of.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The right-hand side.
    pub b: Vec<f64>,
    /// The answer, where it is the only one.
    pub answer: Option<Vec<f64>>,
    /// How b was made.
    pub description: String,
}

/// A row sum below this times the sum of magnitudes is rounding.
const ROUNDING: f64 = 1e-13;

/// b = A times ones. Where that vanishes, as for the Laplacian of a graph, b = A times a random vector; the matrix is
/// singular then, and no answer is the only one.
pub fn with_known_answer(matrix: &Csr) -> Problem {
    let ones = vec![1.0; matrix.cols()];
    let b = matrix.multiply_reference(&ones);
    let magnitudes = matrix.map_rows(|i| matrix.row(i).map(|(_, v)| v.abs()).sum::<f64>());
    let scale = largest_magnitude(magnitudes.into_iter());
    // Written so that NaN counts as not vanishing.
    let vanishes = scale > 0.0 && largest_magnitude(b.iter().copied()) <= ROUNDING * scale;
    if !vanishes {
        let answer = (scale != 0.0).then_some(ones);
        return Problem { b, answer, description: "A*ones".to_owned() };
    }
    let random = random_vector(matrix.cols());
    let b = matrix.multiply_reference(&random);
    Problem { b, answer: None, description: "A*random, since A*ones vanishes".to_owned() }
}

/// Numbers in [-1, 1), the same on every machine (SplitMix64).
fn random_vector(n: usize) -> Vec<f64> {
    let mut state = 0x5EED_u64;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) >> 11
    };
    (0..n).map(|_| next() as f64 / (1u64 << 52) as f64 - 1.0).collect()
}
