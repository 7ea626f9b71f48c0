//! Fingerprints of matrices and vectors: XXH3 over the bytes of their arrays, block by block on all threads.

use crate::backend::distributed::{AsGiven, RankRows};
use crate::device::Ranks;
use crate::error::Result;
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{run_all, zeros};
use xxhash_rust::xxh3::xxh3_64;

/// Numbers per block; the fingerprint is the hash of the blocks' hashes.
const BLOCK: usize = 1 << 17;

/// Returns the sizes of a matrix and the fingerprint of its arrays.
pub(crate) fn of_matrix(matrix: &Csr) -> String {
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
pub(crate) fn of_vector(values: &[f64]) -> String {
    format!("{} numbers [{:016x}]", values.len(), of(values, f64::to_le_bytes))
}

fn of<T: Copy + Sync, const N: usize>(numbers: &[T], encode: impl Fn(T) -> [u8; N] + Send + Sync) -> u64 {
    let sums = run_all(numbers.chunks(BLOCK).collect(), |block: &[T]| {
        let bytes: Vec<u8> = block.iter().flat_map(|number| encode(*number)).collect();
        xxh3_64(&bytes).to_le_bytes()
    });
    xxh3_64(&sums.concat())
}

/// Returns what [`of_matrix`] returns for the whole matrix of all ranks, as it was given. All
/// ranks call this together.
pub(super) fn of_matrix_of_ranks(rows: &RankRows) -> Result<String> {
    let (matrix, halo) = (rows.matrix(), rows.halo());
    let ranks = halo.ranks();
    let (n, total) = (halo.total_rows(), ranks.total(matrix.nnz() as u64));
    let arrays = match rows.numbers().listed() {
        Some(numbers) => listed_arrays(ranks, numbers, &rows.as_given()?)?,
        None => arrays_in_order(rows)?,
    };
    let arrays = of(&arrays, u64::to_le_bytes);
    ranks.text_from_first(&format!("{n} x {n} with {total} entries [{arrays:016x}]"))
}

/// Returns the fingerprints of the arrays on the first rank; each rank has a range of the rows.
fn arrays_in_order(rows: &RankRows) -> Result<[u64; 3]> {
    let (matrix, halo) = (rows.matrix(), rows.halo());
    let ranks = halo.ranks();
    let entries = ranks.all_of(matrix.nnz() as u64);
    let before: u64 = entries[..ranks.rank()].iter().sum();
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
    Ok([offsets, columns, values])
}

/// Returns what [`of_vector`] returns for the vector of all ranks, in the order of the matrix as given. All
/// ranks call this together.
pub(super) fn of_vector_of_ranks(rows: &RankRows, values: &[f64]) -> Result<String> {
    let ranks = rows.halo().ranks();
    let length = ranks.total(values.len() as u64);
    let sum = match rows.numbers().listed() {
        Some(numbers) => listed_vector(ranks, numbers, values)?,
        None => over_ranks(ranks, &mut values.iter().map(|value| value.to_le_bytes()))?,
    };
    ranks.text_from_first(&format!("{length} numbers [{sum:016x}]"))
}

/// Rows of the matrix as given that the first rank collects at once.
const SLICE: usize = 1 << 16;

/// The hash of an array of numbers of N bytes that comes in portions.
#[derive(Default)]
struct BlockHash<const N: usize> {
    pending: Vec<u8>,
    sums: Vec<u8>,
}

impl<const N: usize> BlockHash<N> {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while self.pending.len() >= N * BLOCK {
            self.sums.extend(xxh3_64(&self.pending[..N * BLOCK]).to_le_bytes());
            self.pending.drain(..N * BLOCK);
        }
    }

    fn finish(mut self) -> u64 {
        if !self.pending.is_empty() {
            self.sums.extend(xxh3_64(&self.pending).to_le_bytes());
        }
        xxh3_64(&self.sums)
    }
}

/// Calls `take` on the first rank with the bytes of each row of all ranks, in the order of the matrix as
/// given. Only a slice of the rows is there at once. `bytes` appends those of a row of this rank, whose rows
/// have the numbers `listed`.
fn in_order(
    ranks: &Ranks,
    listed: &[u32],
    bytes: impl Fn(usize, &mut Vec<u8>),
    mut take: impl FnMut(&[u8]),
) -> Result<()> {
    let total = ranks.total(listed.len() as u64) as usize;
    for first in (0..total).step_by(SLICE) {
        let place = |number: usize| listed.partition_point(|listed| (*listed as usize) < number);
        let mine = place(first)..place(first + SLICE);
        let (mut lengths, mut all) = (Vec::with_capacity(mine.len()), Vec::new());
        for row in mine.clone() {
            let before = all.len();
            bytes(row, &mut all);
            lengths.push((all.len() - before) as u64);
        }
        let numbers = ranks.collect(&listed[mine])?;
        let lengths = ranks.collect(&lengths)?;
        let all = ranks.collect(&all)?;
        let (Some(numbers), Some(lengths), Some(all)) = (numbers, lengths, all) else { continue };
        let mut rows = vec![0..0; numbers.len()];
        let mut end = 0;
        for (number, length) in numbers.iter().zip(lengths) {
            let start = end;
            end += length as usize;
            rows[*number as usize - first] = start..end;
        }
        rows.into_iter().for_each(|row| take(&all[row]));
    }
    Ok(())
}

/// Returns the fingerprint of a vector whose rows have the numbers `listed`, on the first rank.
fn listed_vector(ranks: &Ranks, listed: &[u32], values: &[f64]) -> Result<u64> {
    let k = values.len() / listed.len().max(1);
    listed_numbers::<8>(ranks, listed, |row, to| {
        values[row * k..(row + 1) * k].iter().for_each(|value| to.extend(value.to_le_bytes()));
    })
}

/// Returns the fingerprint of numbers of N bytes, on the first rank. `bytes` appends those of a row.
fn listed_numbers<const N: usize>(
    ranks: &Ranks,
    listed: &[u32],
    bytes: impl Fn(usize, &mut Vec<u8>),
) -> Result<u64> {
    let mut hash = BlockHash::<N>::default();
    in_order(ranks, listed, bytes, |row| hash.push(row))?;
    Ok(hash.finish())
}

/// Returns the fingerprints of the arrays of a matrix whose rows have the numbers `listed`, on
/// the first rank.
fn listed_arrays(ranks: &Ranks, listed: &[u32], given: &AsGiven) -> Result<[u64; 3]> {
    let (matrix, mut end) = (&given.matrix, 0_u64);
    let (mut offsets, mut columns) = (BlockHash::<8>::default(), BlockHash::<4>::default());
    offsets.push(&end.to_le_bytes());
    let of_columns = |row: usize, to: &mut Vec<u8>| {
        let columns = matrix.row_columns(row).iter().map(|column| given.columns[*column as usize]);
        columns.for_each(|column| to.extend(column.to_le_bytes()));
    };
    in_order(ranks, listed, of_columns, |row| {
        end += (row.len() / size_of::<u32>()) as u64;
        offsets.push(&end.to_le_bytes());
        columns.push(row);
    })?;
    let values = match matrix.values() {
        Values::Ones => 1,
        Values::F32(values) => listed_numbers::<4>(ranks, listed, |row, to| {
            values[matrix.row_range(row)].iter().for_each(|value| to.extend(value.to_le_bytes()));
        })?,
        Values::F64(values) => listed_numbers::<8>(ranks, listed, |row, to| {
            values[matrix.row_range(row)].iter().for_each(|value| to.extend(value.to_le_bytes()));
        })?,
    };
    Ok([offsets.finish(), columns.finish(), values])
}

/// Returns the fingerprint of the numbers of all ranks, in the order of ranks, on the first rank. The numbers
/// come in blocks, so no rank has all of them.
fn over_ranks<const N: usize>(
    ranks: &Ranks,
    mine: &mut dyn ExactSizeIterator<Item = [u8; N]>,
) -> Result<u64> {
    let mut hash = BlockHash::<N> { pending: Vec::with_capacity(2 * N * BLOCK), sums: Vec::new() };
    for (rank, count) in ranks.all_of(mine.len() as u64).into_iter().enumerate() {
        let mut left = count as usize;
        while left > 0 {
            let length = left.min(BLOCK);
            left -= length;
            let block: Vec<u8> = match ranks.rank() == rank {
                true => mine.take(length).flatten().collect(),
                false => zeros(if ranks.is_first() { N * length } else { 0 })?,
            };
            hash.push(&to_first(ranks, rank, block));
        }
    }
    Ok(hash.finish())
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
