//! Random numbers that depend only on a seed and an index: the same for any number of threads, in any order.

/// A sequence of random numbers for one index, such as a row.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

/// The finaliser of SplitMix64: every bit of the input affects every bit of the output.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// Starts the sequence of one index under one seed.
    pub(crate) fn at(seed: u64, index: u64) -> Random {
        Random { state: mix(mix(seed ^ 0x5851_f42d_4c95_7f2d).wrapping_add(index)) }
    }

    /// Returns 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number from 0 up to but not including 1.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an integer below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_depend_on_seed_and_index_and_spread_over_their_range() {
        let draw = |seed, index| Random::at(seed, index).unit();
        assert_eq!(draw(1, 2).to_bits(), draw(1, 2).to_bits());
        assert_ne!(draw(1, 2).to_bits(), draw(1, 3).to_bits());
        assert_ne!(draw(1, 2).to_bits(), draw(2, 2).to_bits());
        let mut random = Random::at(7, 7);
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let mean = (0..10_000).map(|_| random.unit()).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
