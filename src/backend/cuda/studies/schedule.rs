//! Distribution of rows on the host before the first product: by length, into bins, or into
//! pieces. Linear in the rows.

use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::Share;
use crate::format::Csr;

/// Label of the lists in out-of-memory errors.
pub(super) const LISTS: &str = "lists of rows";

/// A list of row indices of a matrix.
pub(in crate::backend::cuda) struct Listed(Vec<u32>);

impl Listed {
    /// Returns the rows of at most `short` entries, those of at most `long`, and those of
    /// more; each in order.
    pub(crate) fn by_length(matrix: &Csr, short: usize, long: usize) -> [Listed; 3] {
        classes(matrix, short, long).map(Listed)
    }
}

impl Share for Listed {
    fn none() -> Listed {
        Listed(Vec::new())
    }

    fn arrays(&self) -> Arrays<'_> {
        Arrays::of(LISTS).add("list", &self.0)
    }

    fn count(&self) -> Option<u32> {
        // At most as many as rows, which fit in 32 bits.
        Some(self.0.len() as u32)
    }
}

/// All rows of a matrix, cut into ranges: the first row of each, and the end of the last.
pub(super) struct Ranges(Vec<u32>);

impl Ranges {
    /// Cuts rows into bins of about `entries` entries; see [`bins`].
    pub(crate) fn bins(matrix: &Csr, entries: usize) -> Ranges {
        Ranges(bins(matrix, entries))
    }

    /// Cuts rows into pieces for blocks of `block` threads; see [`pieces`].
    pub(crate) fn pieces(matrix: &Csr, short: usize, block: usize) -> Ranges {
        Ranges(pieces(matrix, short, block))
    }
}

impl Share for Ranges {
    fn none() -> Ranges {
        Ranges(vec![0])
    }

    fn arrays(&self) -> Arrays<'_> {
        Arrays::of(LISTS).add("list", &self.0)
    }

    fn count(&self) -> Option<u32> {
        // At most as many ranges as rows, which fit in 32 bits.
        Some(self.0.len() as u32 - 1)
    }
}

fn length(matrix: &Csr, row: usize) -> usize {
    matrix.row_range(row).len()
}

/// Returns the rows of at most `short` entries, those of at most `long`, and those of more; each in order.
pub(super) fn classes(matrix: &Csr, short: usize, long: usize) -> [Vec<u32>; 3] {
    let mut classes = [const { Vec::new() }; 3];
    for row in 0..matrix.rows() {
        let length = length(matrix, row);
        let class = usize::from(length > short) + usize::from(length > long.max(short));
        // `Compressed::of` refuses matrices with more rows than 32 bits count.
        classes[class].push(row as u32);
    }
    classes
}

/// Cuts the rows into bins: returns the first row of each, and the end of the last. A bin is full when it has
/// `entries` entries; every row counts as one more entry, so that bins of empty rows end, too.
fn bins(matrix: &Csr, entries: usize) -> Vec<u32> {
    let (mut bounds, mut held) = (vec![0], 0);
    for row in 0..matrix.rows() {
        held += length(matrix, row) + 1;
        if held >= entries || row + 1 == matrix.rows() {
            bounds.push((row + 1) as u32);
            held = 0;
        }
    }
    bounds
}

/// Cuts the rows into pieces for blocks of `block` threads: returns the first row of each, and the end of the
/// last. If at least half a block of consecutive rows have at most `short` entries each, they form a piece of
/// up to `block` rows; otherwise a piece has one row per warp, or the remaining rows.
fn pieces(matrix: &Csr, short: usize, block: usize) -> Vec<u32> {
    let (mut bounds, mut row) = (vec![0], 0);
    while row < matrix.rows() {
        let reach = matrix.rows().min(row + block);
        let run = (row..reach).take_while(|&row| length(matrix, row) <= short).count();
        row = if run >= block / 2 { row + run } else { reach.min(row + block / 32) };
        bounds.push(row as u32);
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Offsets, Values};
    use proptest::prelude::*;

    /// Builds a matrix of ones with rows of these lengths.
    fn matrix(lengths: &[usize]) -> Csr {
        let offsets = std::iter::once(0).chain(lengths.iter().scan(0, |end, &length| {
            *end += length as u64;
            Some(*end)
        }));
        let columns = lengths.iter().flat_map(|&length| 0..length as u32).collect();
        let cols = lengths.iter().copied().max().unwrap_or(0);
        Csr::new(lengths.len(), cols, Offsets::narrowest(offsets.collect()), columns, Values::Ones).unwrap()
    }

    /// Generates runs of short rows, of longer rows, and of both.
    fn lengths() -> impl Strategy<Value = Vec<usize>> {
        let run = prop_oneof![
            prop::collection::vec(0..5_usize, 0..400),
            prop::collection::vec(0..90_usize, 0..40),
            prop::collection::vec(500..700_usize, 0..3),
        ];
        prop::collection::vec(run, 0..6).prop_map(|runs| runs.concat())
    }

    /// Converts bounds to ranges of rows; asserts that these cover all rows in order and that none is empty.
    fn ranges(bounds: &[u32], rows: usize) -> Vec<std::ops::Range<usize>> {
        assert_eq!((bounds[0], *bounds.last().unwrap() as usize), (0, rows));
        assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
        bounds.windows(2).map(|pair| pair[0] as usize..pair[1] as usize).collect()
    }

    proptest! {
        #[test]
        fn every_row_is_in_the_class_of_its_length(lengths in lengths(), short in 0..40_usize, more in 0..600_usize) {
            let long = short + more;
            let classes = classes(&matrix(&lengths), short, long);
            let mut all = classes.concat();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(0..lengths.len() as u32));
            for (class, rows) in classes.iter().enumerate() {
                prop_assert!(rows.is_sorted());
                let fits = |&row: &u32| match (class, lengths[row as usize]) {
                    (0, length) => length <= short,
                    (1, length) => length > short && length <= long,
                    (_, length) => length > long,
                };
                prop_assert!(rows.iter().all(fits), "class {}: {:?}", class, rows);
            }
        }

        #[test]
        fn bins_are_full_only_with_their_last_row(lengths in lengths(), entries in 1..1000_usize) {
            let bins = ranges(&bins(&matrix(&lengths), entries), lengths.len());
            let held = |rows: std::ops::Range<usize>| rows.map(|row| lengths[row] + 1).sum::<usize>();
            for (i, rows) in bins.iter().enumerate() {
                prop_assert!(i + 1 == bins.len() || held(rows.clone()) >= entries, "bin {}", i);
                prop_assert!(held(rows.start..rows.end - 1) < entries, "bin {}", i);
            }
        }

        #[test]
        fn a_piece_has_short_rows_for_threads_or_one_row_per_warp(
            lengths in lengths(), short in 0..60_usize, warps in 1..17_usize,
        ) {
            let pieces = ranges(&pieces(&matrix(&lengths), short, 32 * warps), lengths.len());
            for rows in pieces {
                let short_only = lengths[rows.clone()].iter().all(|&length| length <= short);
                let by_threads = short_only && (16 * warps..=32 * warps).contains(&rows.len());
                let by_warps = rows.len() == warps || rows.len() < warps && rows.end == lengths.len();
                prop_assert!(by_threads || by_warps, "{:?}", rows);
            }
        }
    }

    #[test]
    fn rows_of_one_length_make_equal_bins_and_pieces() {
        let (short, long) = (matrix(&[3; 1000]), matrix(&[40; 1000]));
        assert_eq!(bins(&short, 200)[..4], [0, 50, 100, 150]);
        assert_eq!(bins(&long, 200)[..4], [0, 5, 10, 15]);
        assert_eq!(pieces(&short, 32, 256), [0, 256, 512, 768, 1000]);
        assert_eq!(pieces(&long, 32, 256)[..4], [0, 8, 16, 24]);
    }

    #[test]
    fn a_matrix_without_rows_gives_empty_lists() {
        let none = matrix(&[]);
        assert_eq!(classes(&none, 1, 2).concat(), [0_u32; 0]);
        assert_eq!((bins(&none, 5), pieces(&none, 5, 32)), (vec![0], vec![0]));
    }
}
