//! Norms of vectors that neither overflow nor underflow, and whose bits do not depend on the
//! number of threads.

use rayon::prelude::*;

/// A sum of squares that neither overflows nor underflows: scale^2 times sum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Norm {
    pub scale: f64,
    pub sum: f64,
}

impl Norm {
    pub(crate) fn add(&mut self, value: f64) {
        *self = self.combine(&Norm { scale: value.abs(), sum: 1.0 });
    }

    pub(crate) fn combine(&self, other: &Norm) -> Norm {
        let (large, small) = if other.scale <= self.scale { (self, other) } else { (other, self) };
        let ratio = if small.scale == 0.0 { 0.0 } else { small.scale / large.scale };
        Norm { scale: large.scale, sum: large.sum + small.sum * ratio * ratio }
    }

    pub(crate) fn value(&self) -> f64 {
        self.scale * self.sum.sqrt()
    }
}

/// Returns the Euclidean norm of two vectors together, from their norms.
pub(super) fn joined_norm(a: f64, b: f64) -> f64 {
    Norm { scale: a, sum: 1.0 }.combine(&Norm { scale: b, sum: 1.0 }).value()
}

/// Returns the larger of two magnitudes, or NaN if one of them is NaN.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    largest_magnitude([a, b].into_iter())
}

/// Computes the Euclidean norm without overflow or underflow.
pub(super) fn norm(values: &[f64]) -> f64 {
    largest_and_norm(values).1
}

/// Chunks of a long vector that threads process, and the entries from which on a vector is long.
const CHUNKS: usize = 128;
const LONG: usize = 1 << 15;

/// Returns the largest magnitude of the values and their Euclidean norm. The squares are added
/// in order, those of a long vector in each of [`CHUNKS`] chunks, so that the bits do not depend
/// on the number of threads.
pub(super) fn largest_and_norm(values: &[f64]) -> (f64, f64) {
    let largest = largest_in(values);
    if largest == 0.0 || !largest.is_finite() {
        return (largest, largest);
    }
    let sum = if values.len() < LONG {
        sum_of_squares(values, largest)
    } else {
        let mut sums = [0.0; CHUNKS];
        let chunks = values.par_chunks(values.len().div_ceil(CHUNKS));
        chunks.zip(&mut sums).for_each(|(chunk, sum)| *sum = sum_of_squares(chunk, largest));
        sums.iter().sum()
    };
    (largest, largest * sum.sqrt())
}

/// Returns the sum of the squares of the values divided by `largest`, added in order.
fn sum_of_squares(values: &[f64], largest: f64) -> f64 {
    const GROUP: usize = 16;
    let square = |value: f64| (value / largest) * (value / largest);
    let (groups, rest) = values.as_chunks::<GROUP>();
    let mut sum = 0.0;
    for group in groups {
        // Computed before they are added, so that the divisions are vectorised.
        let squares = group.map(square);
        squares.iter().for_each(|square| sum += square);
    }
    rest.iter().for_each(|value| sum += square(*value));
    sum
}

/// Returns the largest magnitude of the values, or NaN if any of them is NaN.
pub(super) fn largest_magnitude(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, |m: f64, v| if m.is_nan() || v.is_nan() { f64::NAN } else { m.max(v) })
}

/// Returns the largest magnitude in an array, or NaN if a value is NaN, several values at a time.
pub(super) fn largest_in(values: &[f64]) -> f64 {
    if values.len() < LONG {
        return largest_in_chunk(values);
    }
    values.par_chunks(LONG).map(largest_in_chunk).reduce(|| 0.0, larger)
}

fn largest_in_chunk(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (groups, rest) = values.as_chunks::<LANES>();
    let (mut largest, mut nan) = ([0.0; LANES], [false; LANES]);
    for group in groups {
        for lane in 0..LANES {
            let value = group[lane].abs();
            nan[lane] |= value.is_nan();
            largest[lane] = if value > largest[lane] { value } else { largest[lane] };
        }
    }
    let nan = nan.contains(&true).then_some(f64::NAN);
    largest_magnitude(largest.into_iter().chain(nan).chain(rest.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_magnitude_and_the_norm_are_those_of_a_plain_loop() {
        for length in [0_usize, 1, 7, 8, 9, 16, 100, 1001, LONG - 1, LONG, 3 * LONG + 5] {
            let mut values: Vec<f64> =
                (0..length).map(|i| ((i * 7919 % 1013) as f64 - 500.0) / 3.0).collect();
            let plain = |values: &[f64]| largest_magnitude(values.iter().copied());
            let largest = plain(&values);
            let of_chunk = |chunk: &[f64]| chunk.iter().map(|v| (v / largest) * (v / largest)).sum::<f64>();
            let chunk = if length < LONG { LONG } else { length.div_ceil(CHUNKS) };
            let squares: f64 = values.chunks(chunk).map(of_chunk).sum();
            let expected = if length == 0 { 0.0 } else { largest * squares.sqrt() };
            assert_eq!(largest_and_norm(&values), (largest, expected), "{length}");
            for special in [f64::NAN, f64::NEG_INFINITY, -1e300, -0.0] {
                for at in [0, length / 2, length.saturating_sub(1)] {
                    let Some(value) = values.get_mut(at) else { continue };
                    let before = std::mem::replace(value, special);
                    assert_eq!(largest_in(&values).to_bits(), plain(&values).to_bits(), "{special} at {at}");
                    values[at] = before;
                }
            }
        }
    }
}
