//! Sums with a rounding error independent of the number of terms.

use crate::operator::SUM_CHUNK;
use rayon::prelude::*;

/// Computes a sum that is rounded about once, regardless of the number of terms (A. Neumaier, ZAMM 54, 1974).
pub(crate) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let [sum, lost] = sum_and_lost(terms);
    sum + lost
}

/// A sum, and the sum of the rounding errors of its additions.
#[derive(Clone, Copy, Default)]
pub(super) struct Total {
    sum: f64,
    lost: f64,
}

impl Total {
    pub(crate) fn add(&mut self, term: f64) {
        let next = self.sum + term;
        let (large, small) = if self.sum.abs() >= term.abs() { (self.sum, term) } else { (term, self.sum) };
        self.lost += (large - next) + small;
        self.sum = next;
    }

    /// Returns the sum, rounded about once.
    pub(crate) fn value(&self) -> f64 {
        self.sum + self.lost
    }
}

/// Computes a sum, and the sum of the rounding errors of its additions.
pub(super) fn sum_and_lost(terms: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut total = Total::default();
    terms.for_each(|term| total.add(term));
    [total.sum, total.lost]
}

/// Computes a sum of `count` terms on all threads, and the sum of its rounding errors. The bits do not depend
/// on the number of threads.
pub(super) fn sum_in_chunks(count: usize, term: impl Fn(usize) -> f64 + Sync) -> [f64; 2] {
    sums_in_chunks(count, |i| [term(i)])[0]
}

/// Computes several sums of `count` terms in one pass, and the sums of their rounding errors. Each has the
/// bits that it has alone.
pub(super) fn sums_in_chunks<const N: usize>(
    count: usize,
    terms: impl Fn(usize) -> [f64; N] + Sync,
) -> [[f64; 2]; N] {
    let chunk = |first: usize| {
        let mut totals = [Total::default(); N];
        for i in first..(first + SUM_CHUNK).min(count) {
            totals.iter_mut().zip(terms(i)).for_each(|(total, term)| total.add(term));
        }
        totals
    };
    let chunks: Vec<[Total; N]> = (0..count).into_par_iter().step_by(SUM_CHUNK).map(chunk).collect();
    std::array::from_fn(|which| {
        sum_and_lost(chunks.iter().flat_map(|totals| [totals[which].sum, totals[which].lost]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_in_chunks_has_all_terms_and_keeps_their_digits() {
        let sum_of =
            |count, term: &(dyn Fn(usize) -> f64 + Sync)| sum_in_chunks(count, term).iter().sum::<f64>();
        for count in [0, 1, SUM_CHUNK - 1, SUM_CHUNK, 100_000] {
            assert_eq!(sum_of(count, &|i| i as f64), (count * count.saturating_sub(1) / 2) as f64);
        }
        let term = |i: usize| match i {
            0 => 1e16,
            99_999 => -1e16,
            _ => 1.0,
        };
        assert_eq!(sum_of(100_000, &term), 99_998.0);
    }

    #[test]
    fn sums_of_one_pass_have_the_bits_of_sums_alone() {
        let terms =
            [|i: usize| (i as f64).sin(), |i: usize| 1e9 * (i as f64).cos(), |i: usize| 1.0 / (1 + i) as f64];
        let together = sums_in_chunks(50_001, |i| terms.map(|term| term(i)));
        for (together, term) in together.iter().zip(terms) {
            let starts = (0..50_001).step_by(SUM_CHUNK);
            let parts =
                starts.flat_map(|first| sum_and_lost((first..(first + SUM_CHUNK).min(50_001)).map(term)));
            let alone = sum_and_lost(parts.collect::<Vec<f64>>().into_iter());
            assert_eq!(together.map(f64::to_bits), alone.map(f64::to_bits));
        }
    }

    #[test]
    fn a_sum_keeps_digits_that_plain_addition_loses() {
        assert_eq!(sum([1e16, 1.0, 1.0, -1e16].into_iter()), 2.0);
        assert_eq!(sum(std::iter::repeat_n(0.1, 10)), 1.0);
        assert_eq!(sum(std::iter::empty()), 0.0);
    }
}
