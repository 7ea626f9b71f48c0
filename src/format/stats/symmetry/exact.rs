//! The test whether a matrix equals its transpose exactly, in one pass without searches: the fast way for
//! most matrices. It finds no pairs that differ.
//!
//! The rows are taken from the top. The entries to the right of the diagonal in row j have their mirrored
//! entries in the rows below, in the order of their columns. So each row j has a cursor, which begins to
//! the right of the diagonal: an entry (i, j) below the diagonal must have the entry at the cursor of row
//! j as its mirrored entry, and moves the cursor on. If there are as many entries below the diagonal as
//! above it, all are paired.
//!
//! Threads take bands of rows. At the first entry of a band in a row above the band, a search finds where the
//! cursor of that row begins. A band has cursors for its rows and for the rows just above; for rows further
//! up, each entry is searched.
//!
//! # Traffic
//! Columns and values are read twice: in order, and at the cursors. In a matrix whose entries are near the
//! diagonal, the second read finds them in the cache. A row has 8 bytes of cursors (16 with 64-bit offsets),
//! and a band has at least as many cursors for the rows above.

use super::super::super::pieces::{cut, pieces_for};
use super::super::super::values::{Stored, for_stored};
use super::super::super::{Csr, Offset, Offsets};
use crate::parallel::{run_all, zeros};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The fewest rows above a band that have cursors, if there are so many.
const ROWS_ABOVE: usize = 1 << 16;

/// Returns whether each entry of a square matrix is equal to a stored mirrored entry. False for a matrix with
/// repeated entries, and if there is no memory for the cursors.
pub(super) fn is_mirrored(matrix: &Csr) -> bool {
    if matrix.pattern().has_repeats() {
        return false;
    }
    let columns = matrix.col_indices();
    for_stored!(matrix.values(), matrix.nnz(), |values| match matrix.row_offsets() {
        Offsets::U32(offsets) => Rows { offsets, columns, values }.are_mirrored(),
        Offsets::U64(offsets) => Rows { offsets, columns, values }.are_mirrored(),
    })
}

/// The arrays of a matrix.
struct Rows<'a, O, V> {
    offsets: &'a [O],
    columns: &'a [u32],
    values: &'a [V],
}

impl<O: Offset, V: Stored> Rows<'_, O, V> {
    fn are_mirrored(&self) -> bool {
        let rows = self.offsets.len() - 1;
        let pieces = pieces_for(size_of_val(self.columns) + size_of_val(self.values));
        let bands = cut(rows, pieces, |row| self.offsets[row].at() + row);
        let differs = AtomicBool::new(false);
        let paired = run_all(bands, |band| {
            let paired = self.paired(band, &differs);
            differs.fetch_or(paired.is_none(), Ordering::Relaxed);
            paired
        });
        paired.into_iter().sum::<Option<usize>>() == Some(self.columns.len())
    }

    /// Returns the number of entries in the pairs of which one entry is below the diagonal and in these rows,
    /// and on the diagonal of these rows. None if a pair differs in these rows or, by `differs`, in others.
    fn paired(&self, band: Range<usize>, differs: &AtomicBool) -> Option<usize> {
        // The first row with a cursor.
        let first = band.start - band.len().max(ROWS_ABOVE).min(band.start);
        // The next entry and the end of each row; an end of 0 for rows in which nothing was searched.
        let mut cursors: Vec<[O; 2]> = zeros(band.end - first).ok()?;
        let mut paired = 0;
        for row in band {
            if differs.load(Ordering::Relaxed) {
                return None;
            }
            let (start, end) = (self.offsets[row].at(), self.offsets[row + 1].at());
            let (columns, values) = (&self.columns[start..end], &self.values[start..end]);
            let mut below = 0;
            for (&column, value) in columns.iter().zip(values) {
                let column = column as usize;
                if column >= row {
                    break;
                }
                let [next, its_end] = if column < first {
                    self.search(column, row)
                } else {
                    let cursor = &mut cursors[column - first];
                    if cursor[1].at() == 0 {
                        *cursor = self.search(column, row);
                    }
                    let here = *cursor;
                    cursor[0] = O::from_index(here[0].at() + 1);
                    here
                };
                let next = next.at();
                if next >= its_end.at() || self.columns[next] as usize != row || self.values[next] != *value {
                    return None;
                }
                below += 1;
            }
            paired += 2 * below;
            let mut above = start + below;
            if columns.get(below) == Some(&(row as u32)) {
                // An entry on the diagonal is its own mirrored entry, and NaN does not equal itself.
                if self.values[above] != values[below] {
                    return None;
                }
                above += 1;
                paired += 1;
            }
            cursors[row - first] = [O::from_index(above), self.offsets[row + 1]];
        }
        Some(paired)
    }

    /// Returns the first entry of a row whose column is not left of `column`, and the end of the row.
    #[cold]
    fn search(&self, row: usize, column: usize) -> [O; 2] {
        let (start, end) = (self.offsets[row].at(), self.offsets[row + 1].at());
        let left = self.columns[start..end].partition_point(|&other| (other as usize) < column);
        [O::from_index(start + left), self.offsets[row + 1]]
    }
}
