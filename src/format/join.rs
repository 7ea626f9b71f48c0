//! A matrix from several ones with the same rows.

use super::pieces::{each_row, narrow_length};
use super::rows::build_rows;
use super::values::{One, Stored};
use super::{Csr, Offsets, Pattern, Values};
use crate::error::Result;
use crate::parallel::{grow, split_front};
use std::ops::Range;
use std::sync::Arc;

impl Csr {
    /// Joins matrices of the same size and with the same kind of values. Each row has the entries of all of
    /// them, one matrix after the other, and their columns must increase in this order.
    pub(crate) fn joined(parts: &[Csr]) -> Result<Csr> {
        match parts.first().map(Csr::values) {
            None => Csr::new(0, 0, Offsets::U32(vec![0]), Vec::new(), Values::Ones),
            Some(Values::Ones) => {
                let longest = parts.iter().map(Csr::nnz).max().unwrap_or(0);
                let ones: Vec<One> = vec![One::default(); longest];
                join(parts, |part| &ones[..part.nnz()])
            }
            Some(Values::F32(_)) => join(parts, |part| match part.values() {
                Values::F32(values) => &values[..],
                _ => &[],
            }),
            Some(Values::F64(_)) => join(parts, |part| match part.values() {
                Values::F64(values) => &values[..],
                _ => &[],
            }),
        }
    }
}

impl Csr {
    /// Returns the rows `kept`, after those of some matrices and before those of others, which have the same
    /// columns and the same kind of values. The arrays are changed in place.
    pub(crate) fn between(self, before: &[Csr], kept: Range<usize>, after: &[Csr]) -> Result<Csr> {
        let range = self.row_range_of(&kept);
        let lengths_of = |matrix: &Csr, rows: Range<usize>| -> Vec<u64> {
            rows.map(|row| matrix.row_range(row).len() as u64).collect()
        };
        let mut offsets: Vec<u64> = vec![0];
        let all = before.iter().map(|part| lengths_of(part, 0..part.rows()));
        let all = all.chain([lengths_of(&self, kept)]);
        for length in all.chain(after.iter().map(|part| lengths_of(part, 0..part.rows()))).flatten() {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let repeats = self.pattern().has_repeats();
        let repeats = repeats || before.iter().chain(after).any(|part| part.pattern().has_repeats());
        let (pattern, mut values) = self.into_parts();
        let Pattern { cols, col_indices, .. } = Pattern::unshared(pattern)?;
        let mut columns = col_indices.into_vec();
        surround(&mut columns, range.clone(), (before, after), |part| part.col_indices())?;
        match &mut values {
            Values::Ones => {}
            Values::F32(all) => surround(all, range, (before, after), |part| match part.values() {
                Values::F32(values) => values,
                _ => &[],
            })?,
            Values::F64(all) => surround(all, range, (before, after), |part| match part.values() {
                Values::F64(values) => values,
                _ => &[],
            })?,
        }
        let (rows, offsets) = (offsets.len() - 1, Offsets::narrowest(offsets));
        let pattern = match repeats {
            true => Pattern::with_repeats(rows, cols, offsets, columns)?,
            false => Pattern::new(rows, cols, offsets, columns)?,
        };
        Csr::with_pattern(Arc::new(pattern), values)
    }

    /// Returns the range of the entries of a range of rows.
    fn row_range_of(&self, rows: &Range<usize>) -> Range<usize> {
        self.row_offsets().get(rows.start)..self.row_offsets().get(rows.end)
    }
}

/// Keeps a range of an array, with the arrays of other matrices before and after it.
fn surround<T: Copy>(
    array: &mut Vec<T>,
    kept: Range<usize>,
    (before, after): (&[Csr], &[Csr]),
    of: impl Fn(&Csr) -> &[T],
) -> Result<()> {
    array.truncate(kept.end);
    grow(array, before.iter().chain(after).map(Csr::nnz).sum())?;
    let before: Vec<T> = before.iter().flat_map(|part| of(part).iter().copied()).collect();
    array.splice(..kept.start, before);
    after.iter().for_each(|part| array.extend_from_slice(of(part)));
    Ok(())
}

fn join<'a, T: Stored + 'a>(parts: &'a [Csr], values: impl Fn(&'a Csr) -> &'a [T]) -> Result<Csr> {
    let size = parts.first().map_or((0, 0), |part| (part.rows(), part.cols()));
    let entries = parts.iter().map(Csr::nnz).sum::<usize>();
    let length = |row: usize| parts.iter().map(|part| part.row_range(row).len()).sum();
    let lengths = each_row(size.0, 4 * entries, |row| narrow_length(length(row)))?;
    let repeats = parts.iter().any(|part| part.pattern().has_repeats());
    let parts: Vec<(&Csr, &[T])> = parts.iter().map(|part| (part, values(part))).collect();
    build_rows(size, &lengths, repeats, |row, mut columns_out, mut values_out| {
        for (part, values) in &parts {
            let entries = part.row_range(row);
            let columns = &part.col_indices()[entries.clone()];
            split_front(&mut columns_out, entries.len()).copy_from_slice(columns);
            split_front(&mut values_out, entries.len()).copy_from_slice(&values[entries]);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Duplicates;
    use crate::source::{Options, load_with};

    #[test]
    fn rows_between_those_of_other_matrices_are_the_rows_of_the_whole() {
        let options = Options { duplicates: Duplicates::Keep, ..Options::default() };
        for name in ["rmat:scale=5,edges=300", "rmat:scale=5,edges=300,weighted", "poisson2d:8x4"] {
            let whole = load_with(name, &options).unwrap().matrix;
            let band = |rows: Range<usize>| whole.row_band(rows).unwrap();
            for [a, b, c, d] in [[0, 0, 32, 32], [0, 5, 20, 32], [3, 9, 9, 30], [7, 7, 8, 8]] {
                let before = [band(a..(a + b) / 2), band((a + b) / 2..b)];
                // The rows around the kept ones are dropped.
                let own = band(b.saturating_sub(2)..(c + 1).min(32));
                let kept = b - b.saturating_sub(2);
                let rows = own.between(&before, kept..kept + (c - b), &[band(c..d)]).unwrap();
                assert_eq!(rows, band(a..d), "{name} {a} {b} {c} {d}");
            }
        }
    }
}
