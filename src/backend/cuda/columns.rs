//! Column indices of CSR in 32 or 16 bits.

use crate::error::Result;
use crate::format::Csr;
use crate::parallel::{run_all, split_front, zeros};
use rayon::prelude::*;

/// How the column indices of CSR are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// In 32 bits.
    Full,
    /// In 16 bits.
    Narrow,
    /// In 16 bits, relative to the row.
    Near,
}

impl Columns {
    /// Number of columns up to which 16 bits are enough.
    pub(crate) const NARROW: usize = 1 << 16;

    /// Returns the storage with the fewest bytes for kernels that do not need the row of an entry.
    pub(crate) fn for_any_kernel(matrix: &Csr) -> Columns {
        if matrix.cols() <= Self::NARROW { Columns::Narrow } else { Columns::Full }
    }

    /// Returns the storage with the fewest bytes for kernels that have the row of an entry.
    pub(crate) fn for_rows(matrix: &Csr) -> Columns {
        // The first and the last column of a row are the furthest from it.
        let near = |row| {
            let columns = matrix.row_columns(row);
            [columns.first(), columns.last()].into_iter().flatten().all(|&column| is_near(column, row))
        };
        match Columns::for_any_kernel(matrix) {
            Columns::Full if (0..matrix.rows()).into_par_iter().with_min_len(4096).all(near) => Columns::Near,
            columns => columns,
        }
    }

    /// Returns the bytes of a column index.
    pub(crate) fn width(self) -> usize {
        if self == Columns::Full { size_of::<u32>() } else { size_of::<u16>() }
    }
}

/// Returns whether the distance of a column from a row fits in 16 bits.
fn is_near(column: u32, row: usize) -> bool {
    i16::try_from(i64::from(column) - row as i64).is_ok()
}

/// Returns columns in 16 bits, for a matrix in which they fit.
pub(super) fn in_16_bits(columns: &[u32]) -> Vec<u16> {
    columns.par_iter().map(|&column| column as u16).collect()
}

/// Returns the distance of each column from its row, for a matrix that fits [`Columns::Near`].
pub(super) fn distances(matrix: &Csr) -> Result<Vec<i16>> {
    /// Rows of a parallel task.
    const ROWS: usize = 4096;
    let mut distances = zeros::<i16>(matrix.nnz())?;
    let mut rest = &mut distances[..];
    let tasks = (0..matrix.rows()).step_by(ROWS).map(|first| {
        let rows = first..matrix.rows().min(first + ROWS);
        let entries = matrix.row_range(rows.end - 1).end - matrix.row_range(first).start;
        (rows, split_front(&mut rest, entries))
    });
    run_all(tasks.collect(), |(rows, mut targets)| {
        for row in rows {
            let columns = matrix.row_columns(row);
            for (target, &column) in split_front(&mut targets, columns.len()).iter_mut().zip(columns) {
                debug_assert!(is_near(column, row), "column {column} of row {row}");
                *target = column.wrapping_sub(row as u32) as i16;
            }
        }
    });
    Ok(distances)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Offsets, Values};

    /// Builds a graph of `n` rows with the given columns in each row.
    fn graph(n: usize, columns: impl Fn(u32) -> Vec<u32>) -> Csr {
        let rows: Vec<Vec<u32>> = (0..n as u32).map(columns).collect();
        let mut offsets = vec![0];
        offsets.extend(rows.iter().scan(0, |end, row| {
            *end += row.len() as u64;
            Some(*end)
        }));
        Csr::new(n, n, Offsets::narrowest(offsets), rows.concat(), Values::Ones).unwrap()
    }

    #[test]
    fn columns_take_16_bits_if_there_are_few_or_all_are_near_their_row() {
        let spread = |least: u32, most: u32, n: u32| {
            move |i: u32| -> Vec<u32> {
                let columns = [i.checked_sub(least), Some(i), Some(i + most)];
                columns.into_iter().flatten().filter(|&j| j < n).collect()
            }
        };
        for (n, least, most, want) in [
            (65_536, 40_000, 40_000, Columns::Narrow),
            (65_537, 32_768, 32_767, Columns::Near),
            (65_537, 32_769, 32_767, Columns::Full),
            (65_537, 32_768, 32_768, Columns::Full),
        ] {
            assert_eq!(
                Columns::for_rows(&graph(n as usize, spread(least, most, n))),
                want,
                "{least} and {most} of {n}"
            );
        }
    }

    #[test]
    fn distances_restore_the_columns_in_order() {
        // More rows than a task has, with empty rows at the ends of tasks.
        let matrix = graph(70_001, |i| {
            if (i + 1) % 4096 < 2 { vec![] } else { (i / 2 + 20_000..i / 2 + 20_000 + i % 5).collect() }
        });
        let found = distances(&matrix).unwrap();
        let rows = (0..matrix.rows()).flat_map(|row| std::iter::repeat_n(row, matrix.row_range(row).len()));
        let columns: Vec<u32> = rows.zip(found).map(|(row, d)| (row as i64 + i64::from(d)) as u32).collect();
        assert!(columns == matrix.col_indices());
        assert!(distances(&graph(0, |_| vec![])).unwrap().is_empty());
    }
}
