//! Random subsets.

use super::random::Random;

/// From this probability on, tossing a coin for every number is faster than drawing the gaps,
/// which takes a logarithm each.
const OFTEN: f64 = 1.0 / 16.0;

/// Tosses 64 coins that show 1 with probability `chance`: 64 random binary fractions are compared with it
/// digit by digit, all at once, until the last is decided. This takes about eight digits.
fn toss(random: &mut Random, chance: f64) -> u64 {
    let (mut below, mut undecided, mut rest) = (0, u64::MAX, chance);
    while undecided != 0 {
        let digits = random.bits();
        rest *= 2.0;
        if rest >= 1.0 {
            rest -= 1.0;
            below |= undecided & !digits;
            undecided &= digits;
        } else {
            undecided &= !digits;
        }
    }
    below
}

/// Returns the numbers below `bound` in ascending order, each with probability `chance`. For small
/// probabilities, the gaps between the numbers are drawn; their lengths are geometrically distributed.
pub(super) fn thinned(mut random: Random, bound: usize, chance: f64) -> impl Iterator<Item = usize> {
    let scale = (-chance).ln_1p().recip();
    let mut next = if chance > 0.0 { 0 } else { bound };
    // The remaining tosses for the 64 numbers before `next`.
    let mut tosses = 0u64;
    std::iter::from_fn(move || {
        if chance < OFTEN {
            let number = next.saturating_add(((1.0 - random.unit()).ln() * scale) as usize);
            next = number.saturating_add(1);
            return (number < bound).then_some(number);
        }
        while tosses == 0 {
            if next >= bound {
                return None;
            }
            tosses = toss(&mut random, chance);
            next += 64;
        }
        let number = next - 64 + tosses.trailing_zeros() as usize;
        tosses &= tosses - 1;
        (number < bound).then_some(number)
    })
}

/// Fills `slots` with different numbers below `bound` in ascending order; every set of numbers
/// is equally likely.
pub(super) fn distinct(random: &mut Random, bound: usize, slots: &mut [u32]) {
    let count = slots.len();
    debug_assert!(count <= bound);
    if count > bound / 2 {
        // The complement is smaller.
        let mut left_out = vec![0; bound - count];
        distinct(random, bound, &mut left_out);
        let mut left_out = left_out.into_iter().peekable();
        let chosen = (0..bound as u32).filter(|number| left_out.next_if_eq(number).is_none());
        slots.iter_mut().zip(chosen).for_each(|(slot, number)| *slot = number);
        return;
    }
    let mut kept = 0;
    while kept < count {
        slots[kept..].iter_mut().for_each(|slot| *slot = random.below(bound as u64) as u32);
        slots.sort_unstable();
        kept = 1;
        for i in 1..count {
            if slots[i] != slots[kept - 1] {
                slots[kept] = slots[i];
                kept += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_numbers_differ_and_are_equally_likely() {
        for (bound, count) in [(1, 0), (1, 1), (10, 3), (10, 5), (10, 6), (10, 10), (1000, 7)] {
            let mut hits = vec![0; bound];
            for index in 0..2000 {
                let mut slots = vec![0; count];
                distinct(&mut Random::at(3, index), bound, &mut slots);
                assert!(slots.is_sorted_by(|a, b| a < b) && slots.iter().all(|&s| (s as usize) < bound));
                slots.iter().for_each(|&s| hits[s as usize] += 1);
            }
            // Six standard deviations of a binomial count.
            let mean = 2000.0 * count as f64 / bound as f64;
            let spread = 6.0 * mean.sqrt() + 1e-9;
            assert!(hits.iter().all(|&h| (f64::from(h) - mean).abs() <= spread), "{bound} {count}: {hits:?}");
        }
    }

    #[test]
    fn thinned_numbers_occur_with_the_given_probability() {
        let sample = |bound, chance| thinned(Random::at(1, 1), bound, chance).collect::<Vec<_>>();
        assert_eq!(sample(5, 1.0), [0, 1, 2, 3, 4]);
        assert_eq!(sample(5, 0.0), [0; 0]);
        assert_eq!(sample(0, 0.5), [0; 0]);
        assert_eq!(sample(1_000_000, 1e-300), [0; 0]);
        for chance in [0.001, 0.05, 0.07, 0.5, 0.999] {
            let numbers = sample(100_000, chance);
            assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.iter().all(|&n| n < 100_000));
            let mean = 1e5 * chance;
            assert!((numbers.len() as f64 - mean).abs() < 6.0 * (mean * (1.0 - chance)).sqrt(), "{chance}");
        }
    }
}
