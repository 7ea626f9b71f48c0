//! Sums with a rounding error independent of the number of terms.

/// Computes a sum that is rounded about once, regardless of the number of terms (A. Neumaier, ZAMM 54, 1974).
pub(crate) fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_keeps_digits_that_plain_addition_loses() {
        assert_eq!(sum([1e16, 1.0, 1.0, -1e16].into_iter()), 2.0);
        assert_eq!(sum(std::iter::repeat_n(0.1, 10)), 1.0);
        assert_eq!(sum(std::iter::empty()), 0.0);
    }
}
