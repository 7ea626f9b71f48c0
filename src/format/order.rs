//! In-place sort of entries without values by row: a radix sort that swaps entries into their buckets
//! (McIlroy, Bostic and McIlroy, "Engineering Radix Sort", 1993), by eight bits of the row at a time.
//!
//! A counting sort into separate arrays would need half as much memory in addition to that of the triplets.
//! The first pass over all entries runs on one thread.

use crate::parallel::{run_all, split_front, threads_for};

/// Bits of a row index that select a bucket.
const BITS: u32 = 8;
const BUCKETS: usize = 1 << BITS;
/// Largest number of entries that are sorted as pairs: few enough for the L1 cache.
const FEW: usize = 1 << 10;

/// Sorts the entries by row. The order within a row is unspecified, but the same for any number of threads.
pub(super) fn by_rows(rows: &mut [u32], cols: &mut [u32]) {
    let largest = rows.iter().max().copied().unwrap_or(0);
    by_low_bits(rows, cols, u32::BITS - largest.leading_zeros());
}

/// Sorts the entries by row; the row indices differ at most in their low `bits` bits.
fn by_low_bits(rows: &mut [u32], cols: &mut [u32], bits: u32) {
    if bits == 0 {
        return;
    }
    if rows.len() <= FEW {
        return sort_few(rows, cols);
    }
    let shift = bits.saturating_sub(BITS);
    let ends = into_buckets(rows, cols, |row| (row >> shift) as usize % BUCKETS);
    let several = threads_for(size_of::<[u32; 2]>() * rows.len()) > 1;
    let (mut rows, mut cols, mut start) = (rows, cols, 0);
    let buckets = ends.into_iter().map(|end| {
        let entries = end - start;
        start = end;
        (split_front(&mut rows, entries), split_front(&mut cols, entries))
    });
    if several {
        run_all(buckets.collect(), |(rows, cols)| by_low_bits(rows, cols, shift));
    } else {
        buckets.for_each(|(rows, cols)| by_low_bits(rows, cols, shift));
    }
}

fn sort_few(rows: &mut [u32], cols: &mut [u32]) {
    let mut pairs = [(0, 0); FEW];
    let pairs = &mut pairs[..rows.len()];
    for (pair, (row, col)) in pairs.iter_mut().zip(rows.iter().zip(cols.iter())) {
        *pair = (*row, *col);
    }
    pairs.sort_unstable();
    for (pair, (row, col)) in pairs.iter().zip(rows.iter_mut().zip(cols)) {
        (*row, *col) = *pair;
    }
}

/// Moves the entries into their buckets, and returns the end of each bucket.
fn into_buckets(rows: &mut [u32], cols: &mut [u32], bucket: impl Fn(u32) -> usize) -> [usize; BUCKETS] {
    let mut ends = [0; BUCKETS];
    for &row in rows.iter() {
        ends[bucket(row)] += 1;
    }
    let mut next = [0; BUCKETS];
    let mut total = 0;
    for (next, end) in next.iter_mut().zip(&mut ends) {
        *next = total;
        total += *end;
        *end = total;
    }
    // Every swap moves one entry into its bucket. The displaced entry is processed when the loop reaches its
    // new index: following it at once would make each swap wait for the one before.
    let mut scattered = true;
    while scattered {
        scattered = false;
        for here in 0..BUCKETS {
            for place in next[here]..ends[here] {
                let to = &mut next[bucket(rows[place])];
                rows.swap(place, *to);
                cols.swap(place, *to);
                *to += 1;
            }
            scattered |= next[here] < ends[here];
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_by_row_and_keep_their_columns() {
        let check = |entry: &dyn Fn(u32) -> (u32, u32), entries: u32| {
            let (mut row, mut col): (Vec<u32>, Vec<u32>) = (0..entries).map(entry).unzip();
            by_rows(&mut row, &mut col);
            assert!(row.is_sorted());
            let mut pairs: Vec<_> = row.into_iter().zip(col).collect();
            let mut expected: Vec<_> = (0..entries).map(entry).collect();
            pairs.sort_unstable();
            expected.sort_unstable();
            assert!(pairs == expected, "{entries} entries");
        };
        for (entries, rows) in
            [(0, 1), (1, 5), (900, 7), (70_000, 1), (70_000, 300), (200_000, 2_000), (70_000, u32::MAX)]
        {
            check(&|e| (e.wrapping_mul(2_654_435_761) % rows, e), entries);
        }
        // Two rows far apart, and rows in between that differ in all digits: three levels of the sort.
        check(&|e| ([0, 1 << 24, 70_000 + e % 7, 65_536 * (e % 5)][e as usize % 4], e), 100_000);
    }
}
