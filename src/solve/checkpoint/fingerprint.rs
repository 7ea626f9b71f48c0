//! Fingerprints of matrices and vectors: XXH3 over the bytes of their arrays, block by block on all threads.

use crate::backend::distributed::RankRows;
use crate::device::Ranks;
use crate::error::Result;
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{run_all, zeros};
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

/// Returns what [`of_matrix`] returns for the whole matrix of all ranks. All ranks call this together.
pub(super) fn of_matrix_of_ranks(rows: &RankRows) -> Result<String> {
    let (matrix, halo) = (rows.matrix(), rows.halo());
    let ranks = halo.ranks();
    let entries = ranks.all_of(matrix.nnz() as u64);
    let before: u64 = entries[..ranks.rank()].iter().sum();
    let total: u64 = entries.iter().sum();
    let from = usize::from(!ranks.is_first());
    let offsets = (from..matrix.rows() + 1).map(|row| before + matrix.row_offsets().get(row) as u64);
    let offsets = over_ranks(ranks, &mut offsets.map(u64::to_le_bytes))?;
    let columns = matrix.col_indices().iter().map(|column| halo.column(*column).to_le_bytes());
    let columns = over_ranks(ranks, &mut { columns })?;
    let values = match matrix.values() {
        Values::Ones => 1,
        Values::F32(values) => over_ranks(ranks, &mut values.iter().map(|value| value.to_le_bytes()))?,
        Values::F64(values) => over_ranks(ranks, &mut values.iter().map(|value| value.to_le_bytes()))?,
    };
    let arrays = of(&[offsets, columns, values], u64::to_le_bytes);
    let n = halo.total_rows();
    ranks.text_from_first(&format!("{n} x {n} with {total} entries [{arrays:016x}]"))
}

/// Returns what [`of_vector`] returns for the vector of all ranks. All ranks call this together.
pub(super) fn of_vector_of_ranks(ranks: &Ranks, values: &[f64]) -> Result<String> {
    let length = ranks.total(values.len() as u64);
    let sum = over_ranks(ranks, &mut values.iter().map(|value| value.to_le_bytes()))?;
    ranks.text_from_first(&format!("{length} numbers [{sum:016x}]"))
}

/// Returns the fingerprint of the numbers of all ranks, in the order of ranks, on the first rank. The numbers come in blocks, so
/// no rank has all of them.
fn over_ranks<const N: usize>(
    ranks: &Ranks,
    mine: &mut dyn ExactSizeIterator<Item = [u8; N]>,
) -> Result<u64> {
    let (mut pending, mut sums) = (Vec::with_capacity(2 * N * BLOCK), Vec::new());
    for (rank, count) in ranks.all_of(mine.len() as u64).into_iter().enumerate() {
        let mut left = count as usize;
        while left > 0 {
            let length = left.min(BLOCK);
            left -= length;
            let block: Vec<u8> = match ranks.rank() == rank {
                true => mine.take(length).flatten().collect(),
                false => zeros(if ranks.is_first() { N * length } else { 0 })?,
            };
            pending.extend(to_first(ranks, rank, block));
            while pending.len() >= N * BLOCK {
                sums.extend(xxh3_64(&pending[..N * BLOCK]).to_le_bytes());
                pending.drain(..N * BLOCK);
            }
        }
    }
    if !pending.is_empty() {
        sums.extend(xxh3_64(&pending).to_le_bytes());
    }
    Ok(xxh3_64(&sums))
}

/// Returns the block of a rank on the first rank, which passes a buffer for it; nothing on the others.
fn to_first(ranks: &Ranks, rank: usize, mut block: Vec<u8>) -> Vec<u8> {
    match (ranks.is_first(), rank) {
        (true, 0) => return block,
        (true, _) => ranks.exchange(&[], vec![(rank, &mut block[..])], &mut || ()),
        (false, _) if ranks.rank() == rank => ranks.exchange(&[(0, &block[..])], Vec::new(), &mut || ()),
        (false, _) => {}
    }
    if ranks.is_first() { block } else { Vec::new() }
}
