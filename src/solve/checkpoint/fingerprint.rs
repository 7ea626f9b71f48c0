//! Fingerprints of matrices and vectors: XXH3 over the bytes of their arrays, block by block on all threads.

use crate::format::{Csr, Offsets, Values};
use crate::parallel::run_all;
use xxhash_rust::xxh3::xxh3_64;

/// Numbers per block; the fingerprint is the hash of the blocks' hashes.
const BLOCK: usize = 1 << 17;

/// Returns the sizes of a matrix and the fingerprint of its arrays.
pub fn of_matrix(matrix: &Csr) -> String {
    let offsets = match matrix.row_offsets() {
        Offsets::U32(offsets) => of(offsets, |o| u64::from(o).to_le_bytes()),
        Offsets::U64(offsets) => of(offsets, u64::to_le_bytes),
    };
    let columns = of(matrix.col_indices(), u32::to_le_bytes);
    // A matrix of ones has no values to hash.
    let values = match matrix.values() {
        Values::Ones => 1,
        Values::F32(values) => of(values, f32::to_le_bytes),
        Values::F64(values) => of(values, f64::to_le_bytes),
    };
    let arrays = of(&[offsets, columns, values], u64::to_le_bytes);
    format!("{} x {} with {} entries [{arrays:016x}]", matrix.rows(), matrix.cols(), matrix.nnz())
}

/// Returns the length of a vector and its fingerprint.
pub fn of_vector(values: &[f64]) -> String {
    format!("{} numbers [{:016x}]", values.len(), of(values, f64::to_le_bytes))
}

fn of<T: Copy + Sync, const N: usize>(numbers: &[T], encode: impl Fn(T) -> [u8; N] + Send + Sync) -> u64 {
    let sums = run_all(numbers.chunks(BLOCK).collect(), |block: &[T]| {
        let bytes: Vec<u8> = block.iter().flat_map(|number| encode(*number)).collect();
        xxh3_64(&bytes).to_le_bytes()
    });
    xxh3_64(&sums.concat())
}
