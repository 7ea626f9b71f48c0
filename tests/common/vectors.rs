//! Vectors for tests: reproducible numbers, and copies to and from devices.

use solver::device::{Device, SlotState};
use solver::scalar::Scalar;

/// An xorshift64* generator: small, and the same on every machine.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.word() % limit as u64) as usize
    }

    /// Returns an integer from -8 to 8: sums of thousands of products of two such numbers are
    /// exact in single precision.
    pub fn integer(&mut self) -> f64 {
        self.below(17) as f64 - 8.0
    }

    /// Returns a number from -1 to 1, with all digits of a double.
    pub fn real(&mut self) -> f64 {
        (self.word() % (1 << 47)) as f64 / (1u64 << 46) as f64 - 1.0
    }
}

pub fn integers(seed: u64, n: usize) -> Vec<f64> {
    let mut numbers = Numbers::new(seed);
    (0..n).map(|_| numbers.integer()).collect()
}

pub fn reals(seed: u64, n: usize) -> Vec<f64> {
    let mut numbers = Numbers::new(seed);
    (0..n).map(|_| numbers.real()).collect()
}

/// Rounds to the nearest numbers that a vector of `T` can hold, and returns them in double precision.
pub fn rounded<T: Scalar>(values: &[f64]) -> Vec<f64> {
    values.iter().map(|&v| T::from_f64(v).to_f64()).collect()
}

pub fn upload<D: Device, T: Scalar>(device: &D, values: &[f64], k: usize) -> D::Vector<T> {
    let host: Vec<T> = values.iter().map(|&v| T::from_f64(v)).collect();
    let mut vector = device.vector(host.len() / k, k).unwrap();
    device.upload(&host, &mut vector).unwrap();
    vector
}

pub fn download<D: Device, T: Scalar>(device: &D, vector: &D::Vector<T>, length: usize) -> Vec<f64> {
    let mut host = vec![T::default(); length];
    device.download(vector, &mut host).unwrap();
    host.iter().map(|v| v.to_f64()).collect()
}

/// Returns the bits of numbers, for comparisons in which NaN equals itself and -0 does not equal 0.
pub fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Returns the host's copy of a bank of slots.
pub fn read<D: Device>(device: &D, slots: &D::Slots, count: usize, k: usize) -> SlotState {
    let mut state = SlotState::new(count, k);
    device.read(slots, &mut state).unwrap();
    state
}
