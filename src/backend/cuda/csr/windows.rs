//! Windows of consecutive rows with about equally many entries. A row with more entries is cut into pieces.

use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::Share;
use crate::device::cuda::modules::BLOCK;
use crate::device::sweep::MAX_DOTS;
use crate::format::Csr;
use rayon::prelude::*;
use std::ops::Range;

/// Maximum number of rows of a window.
const HEIGHT: usize = 4 * BLOCK as usize;

/// A unit of work of one block, in the layout that kernels/csr.cu reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// The first row.
    row: u32,
    /// The number of rows; for a piece, [`PIECE`] plus the number of rows cut into pieces before.
    height: u32,
    /// The index of the piece.
    piece: u32,
    /// The index of the long row's ticket in the scratch array; the sums of the row's pieces follow it.
    ticket: u32,
}

/// Flag that marks pieces.
const PIECE: u32 = 1 << 31;
/// Number of rows that a thread cuts into windows at a time. Windows do not cross the end of such a band.
const BAND: usize = 1 << 16;

impl Window {
    fn is_piece(&self) -> bool {
        self.height >= PIECE
    }
}

/// A matrix cut into windows, in the order of its rows.
#[derive(Debug)]
pub(super) struct Windows {
    windows: Vec<Window>,
    /// Number of rows that are cut into pieces.
    long: usize,
    /// Length of the scratch array for tickets and sums of pieces.
    scratch_len: usize,
}

impl Windows {
    /// Cuts rows into windows of at most `capacity` entries; row and window indices fit in 32 bits.
    pub(crate) fn cut(matrix: &Csr, capacity: usize) -> Windows {
        let starts: Vec<usize> = (0..matrix.rows()).step_by(BAND).collect();
        let bands: Vec<Windows> = starts
            .into_par_iter()
            .map(|first| Windows::cut_band(matrix, first..(first + BAND).min(matrix.rows()), capacity))
            .collect();
        let mut cut = Windows::none();
        bands.iter().for_each(|band| cut.append(band));
        let ahead = cut.ahead() as u32;
        cut.windows.iter_mut().filter(|window| window.is_piece()).for_each(|piece| piece.ticket += ahead);
        cut
    }

    /// Cuts a band of rows. Numbers of long rows, and tickets, are counted from the first of the band.
    fn cut_band(matrix: &Csr, rows: Range<usize>, capacity: usize) -> Windows {
        let (mut cut, offsets) = (Windows::none(), matrix.row_offsets());
        let mut first = rows.start;
        while first < rows.end {
            let most = offsets.get(first) + capacity;
            // The rows from `first` on that fit into a window.
            let (mut end, mut beyond) = (first, (first + HEIGHT).min(rows.end));
            while end < beyond {
                let middle = (end + beyond).div_ceil(2);
                if offsets.get(middle) <= most { end = middle } else { beyond = middle - 1 }
            }
            if end > first {
                cut.push_rows(first, end);
                first = end;
            } else {
                cut.push_pieces(first, matrix.row_range(first).len().div_ceil(capacity));
                first += 1;
            }
        }
        cut
    }

    /// Appends the windows of the next band.
    fn append(&mut self, band: &Windows) {
        let (long, ticket) = (self.long as u32, self.scratch_len as u32);
        let windows = band.windows.iter().map(|window| match window.is_piece() {
            true => Window { height: window.height + long, ticket: window.ticket + ticket, ..*window },
            false => *window,
        });
        self.windows.extend(windows);
        self.long += band.long;
        self.scratch_len += band.scratch_len;
    }

    /// Returns the scratch elements before the first ticket: the number of long rows, and their
    /// contributions to dot products.
    fn ahead(&self) -> usize {
        1 + MAX_DOTS * self.long
    }

    /// Returns the initial content of the kernel's scratch array.
    fn scratch(&self) -> Vec<f64> {
        let mut scratch = vec![0.0; self.ahead() + self.scratch_len];
        scratch[0] = f64::from_bits(self.long as u64);
        scratch
    }

    fn push_rows(&mut self, first: usize, end: usize) {
        self.windows.push(Window { row: first as u32, height: (end - first) as u32, piece: 0, ticket: 0 });
    }

    fn push_pieces(&mut self, row: usize, pieces: usize) {
        let (ticket, height) = (self.scratch_len as u32, PIECE + self.long as u32);
        let piece = |piece| Window { row: row as u32, height, piece: piece as u32, ticket };
        self.windows.extend((0..pieces).map(piece));
        self.long += 1;
        self.scratch_len += 1 + pieces;
    }

    fn list(&self) -> Vec<u32> {
        self.windows.iter().flat_map(|w| [w.row, w.height, w.piece, w.ticket]).collect()
    }
}

impl Share for Windows {
    fn none() -> Windows {
        Windows { windows: Vec::new(), long: 0, scratch_len: 0 }
    }

    fn arrays(&self) -> Arrays<'_> {
        Arrays::of("the windows of rows").add("list", self.list()).add_scratch("scratch", self.scratch())
    }

    fn count(&self) -> Option<u32> {
        // Each row makes at most as many windows as it has entries, and `Windows::cut` counts
        // them in 32 bits.
        Some(self.windows.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CSR, PULL};
    use super::*;
    use crate::format::{Offsets, Values};

    /// Builds a graph with rows of these lengths.
    fn graph(lengths: &[usize]) -> Csr {
        let mut offsets = vec![0];
        offsets.extend(lengths.iter().scan(0, |end, &length| {
            *end += length as u64;
            Some(*end)
        }));
        let cols = lengths.iter().copied().max().unwrap_or(0);
        let columns = lengths.iter().flat_map(|&length| 0..length as u32).collect();
        Csr::new(lengths.len(), cols, Offsets::narrowest(offsets), columns, Values::Ones).unwrap()
    }

    fn check(lengths: &[usize], capacity: usize) -> Windows {
        let cut = Windows::cut(&graph(lengths), capacity);
        let (mut row, mut long, mut windows) = (0, 0, cut.windows.iter().peekable());
        let ahead = 1 + MAX_DOTS * lengths.iter().filter(|&&length| length > capacity).count();
        let mut ticket = ahead;
        while let Some(window) = windows.next() {
            assert_eq!(window.row as usize, row, "rows are in order, each once");
            if window.height < PIECE {
                assert!(
                    (window.piece, window.ticket) == (0, 0)
                        && (1..=HEIGHT).contains(&(window.height as usize))
                );
                let end = row + window.height as usize;
                assert!(lengths[row..end].iter().sum::<usize>() <= capacity);
                row = end;
                continue;
            }
            let length = lengths[row];
            assert!(length > capacity, "a row that fits is not cut");
            let mut covered = 0;
            let mut piece = *window;
            loop {
                // Pieces have full capacity; the kernel derives their number from the row length.
                assert_eq!((piece.piece as usize * capacity, piece.ticket as usize), (covered, ticket));
                covered += capacity.min(length - covered);
                if covered == length {
                    break;
                }
                piece = *windows.next().unwrap();
                assert_eq!((piece.row as usize, piece.height), (row, PIECE + long));
            }
            ticket += 1 + length.div_ceil(capacity);
            (row, long) = (row + 1, long + 1);
        }
        assert_eq!((row, cut.long, cut.scratch().len()), (lengths.len(), long as usize, ticket));
        assert_eq!((cut.ahead(), cut.scratch()[0].to_bits()), (ahead, u64::from(long)));
        assert_eq!(cut.list().len(), 4 * cut.windows.len());
        cut
    }

    #[test]
    fn every_row_is_in_one_window_or_in_consecutive_pieces() {
        check(&[], 10);
        assert_eq!(check(&[0], 10).windows.len(), 1);
        assert_eq!(check(&[10], 10).windows.len(), 1, "a window may be full");
        assert_eq!(check(&[11], 10).windows.len(), 2);
        assert_eq!(check(&[20], 10).windows.len(), 2, "no piece is empty");
        assert_eq!(check(&[5, 5, 1, 0, 9, 1], 10).windows.len(), 3);
        assert_eq!(check(&[0, 35, 0, 0, 21, 11, 3], 10).windows.len(), 1 + 4 + 1 + 3 + 2 + 1);
        assert_eq!(check(&vec![0; 2 * HEIGHT + 1], 10).windows.len(), 3);
        assert_eq!(check(&vec![1; 100], 10).windows.len(), 10);
        let skewed: Vec<usize> = (0..500).map(|i| if i % 37 == 5 { 10 * i } else { i % 7 }).collect();
        for strategy in [CSR, PULL] {
            check(&skewed, strategy.capacity());
        }
        // Long rows in several bands, at their ends too.
        let bands: Vec<usize> =
            (0..2 * BAND + 100).map(|i| if i % 32_767 == 1 { 35 } else { i % 3 }).collect();
        check(&bands, 10);
    }
}
