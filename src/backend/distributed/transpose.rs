//! The transpose of a matrix whose rows are distributed over ranks.

use crate::device::Ranks;
use crate::error::Result;
use crate::format::{Csr, Offsets, Pattern, Values, partition};
use crate::parallel::copied;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The most bins of columns whose entries are counted.
const MOST_BINS: usize = 1 << 16;

/// The numbers of entries of all ranks by bins of neighbouring columns.
pub(crate) struct ColumnCounts {
    columns: usize,
    /// Columns in a bin.
    width: usize,
    /// Entries before each bin, and all entries.
    before: Vec<u64>,
}

impl ColumnCounts {
    /// Counts the entries of all ranks, each of which passes the columns of its entries.
    pub(crate) fn of(
        ranks: &Ranks,
        columns: usize,
        mine: impl IndexedParallelIterator<Item = u32>,
    ) -> ColumnCounts {
        /// The fewest entries that a thread counts in bins of its own.
        const FEWEST: usize = 1 << 20;
        let width = columns.div_ceil(MOST_BINS).max(1);
        let none = || vec![0.0; columns.div_ceil(width)];
        let add = |mut counts: Vec<f64>, column: u32| {
            counts[column as usize / width] += 1.0;
            counts
        };
        let join = |mut all: Vec<f64>, counts: Vec<f64>| {
            all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
            all
        };
        let mut counts = mine.with_min_len(FEWEST).fold(none, add).reduce(none, join);
        // Whole numbers below 2^53 are exact.
        ranks.sum(&mut counts);
        let mut before = vec![0];
        counts.iter().for_each(|count| before.push(before[before.len() - 1] + *count as u64));
        ColumnCounts { columns, width, before }
    }

    /// Cuts the columns into parts of about equal work; a column counts as `work` entries in addition to its
    /// own. Returns the first column of each part, and the number of columns.
    pub(crate) fn cut(&self, parts: usize, work: usize) -> Vec<usize> {
        // The entries of a bin count as evenly spread.
        let entries = |column: usize| {
            let bin = column / self.width;
            let (before, next) = (self.before[bin], self.before.get(bin + 1));
            // The last bin may have fewer columns.
            let width = self.width.min(self.columns - bin * self.width).max(1);
            let inside = next.map_or(0, |next| next - before) as usize * (column - bin * self.width) / width;
            before as usize + inside
        };
        partition::cut((self.columns, work), entries, parts, 1)
    }
}

/// Returns the rows `to[rank]..to[rank + 1]` of the transpose of a matrix of which each rank has the
/// rows `from[rank]..from[rank + 1]`. Repeated entries stay in the order of the rows of the matrix. All
/// ranks call this together.
pub(crate) fn transposed(ranks: &Ranks, from: &[usize], rows: &Csr, to: &[usize]) -> Result<Csr> {
    let first = from[ranks.rank()] as u32;
    let mine = rows.transposed().and_then(|mine| mine.with_columns(from[ranks.size()], |row| first + row));
    let mine = ranks.agreed(mine)?;
    let to: Vec<Range<usize>> = to.windows(2).map(|ends| ends[0]..ends[1]).collect();
    let received = swap_rows(ranks, &mine, &to);
    drop(mine);
    ranks.agreed(received.and_then(|received| Csr::joined(&received)))
}

/// Sends the rows `to[other]` to each rank. Returns the matrices that the ranks have sent to this one. All
/// ranks have the same kind of values.
pub(crate) fn swap_rows(ranks: &Ranks, rows: &Csr, to: &[Range<usize>]) -> Result<Vec<Csr>> {
    let parts = || to.iter().cloned();
    let length = |row: usize| rows.row_range(row).len() as u32;
    let lengths: Vec<Vec<u32>> = parts().map(|part| part.map(length).collect()).collect();
    let lengths = ranks.swap(&lengths)?;
    let entries: Vec<Range<usize>> = {
        let offset = |row| rows.row_offsets().get(row);
        parts().map(|part| offset(part.start)..offset(part.end)).collect()
    };
    let columns = swap_parts(ranks, rows.col_indices(), &entries)?;
    let values: Vec<Values> = match rows.values() {
        Values::Ones => vec![Values::Ones; ranks.size()],
        Values::F32(all) => swap_parts(ranks, all, &entries)?.into_iter().map(Values::F32).collect(),
        Values::F64(all) => swap_parts(ranks, all, &entries)?.into_iter().map(Values::F64).collect(),
    };
    let matrix = |((lengths, columns), values): ((Vec<u32>, Vec<u32>), Values)| {
        let mut offsets = vec![0_u64];
        lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + u64::from(*length)));
        let pattern =
            Pattern::with_repeats(lengths.len(), rows.cols(), Offsets::narrowest(offsets), columns)?;
        Csr::with_pattern(Arc::new(pattern), values)
    };
    lengths.into_iter().zip(columns).zip(values).map(matrix).collect()
}

/// Sends each rank a part of an array.
fn swap_parts<T: bytemuck::Pod + Send + Sync>(
    ranks: &Ranks,
    all: &[T],
    parts: &[Range<usize>],
) -> Result<Vec<Vec<T>>> {
    let parts = parts.iter().map(|part| copied(&all[part.clone()]));
    ranks.swap(&ranks.agreed(parts.collect::<Result<Vec<_>>>())?)
}
