//! The number of distinct values, exact up to a limit.

/// Number of distinct values at which counting ends.
pub(crate) const MOST_DISTINCT: usize = 1 << 16;

/// Initial number of slots.
const FEW: usize = 64;
/// The bits of an empty slot: a NaN other than the one that is inserted.
const EMPTY: u64 = u64::MAX;

/// A hash set of values with open addressing and a load factor of at most one half.
pub(super) struct Distinct {
    slots: Vec<u64>,
    count: usize,
    last: u64,
}

impl Distinct {
    pub(crate) fn new() -> Distinct {
        Distinct { slots: vec![EMPTY; FEW], count: 0, last: EMPTY }
    }

    /// Returns the number of distinct values, up to [`MOST_DISTINCT`].
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Inserts a value.
    #[inline]
    pub(crate) fn insert(&mut self, value: f64) {
        if self.count < MOST_DISTINCT {
            // Adding 0 turns -0 into 0; all NaNs count as one value.
            let bits = if value.is_nan() { f64::NAN } else { value + 0.0 }.to_bits();
            if bits != self.last {
                self.last = bits;
                self.insert_bits(bits);
            }
        }
    }

    fn insert_bits(&mut self, bits: u64) {
        let mask = self.slots.len() - 1;
        // The highest bits of the product depend on all bits of the value.
        let shift = u64::BITS - self.slots.len().trailing_zeros();
        let mut at = (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize & mask;
        while self.slots[at] != EMPTY {
            if self.slots[at] == bits {
                return;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = bits;
        self.count += 1;
        if self.count * 2 > self.slots.len() && self.count < MOST_DISTINCT {
            let old = std::mem::replace(&mut self.slots, vec![EMPTY; (mask + 1) * 2]);
            self.count = 0;
            old.into_iter().filter(|&bits| bits != EMPTY).for_each(|bits| self.insert_bits(bits));
        }
    }

    /// Returns the union of both sets.
    pub(crate) fn join(mut self, other: Distinct) -> Distinct {
        for bits in other.slots.into_iter().filter(|&bits| bits != EMPTY) {
            if self.count < MOST_DISTINCT {
                self.insert_bits(bits);
            }
        }
        self
    }
}
