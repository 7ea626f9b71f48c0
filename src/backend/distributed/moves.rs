//! Gives the ranks the rows of their parts: rows that ranks hold in ranges move, and rows of a matrix that
//! all ranks see are copied.

use super::RankRows;
use super::transpose::swap_rows;
use crate::device::{Ranks, RowNumbers};
use crate::error::Result;
use crate::format::Csr;
use crate::parallel::{room, zeros};
use std::ops::Range;

/// Moves each row to the rank of its part. This rank has the rows `starts[rank]..starts[rank + 1]`, and
/// `parts` has the part of each. The rows of all ranks are numbered anew, part by part, in the order of their
/// numbers within a part. All ranks call this together.
pub(crate) fn rows_of_parts(ranks: &Ranks, starts: &[usize], rows: Csr, parts: &[u32]) -> Result<RankRows> {
    let order = ranks.agreed(NewNumbers::of(ranks, parts))?;
    let numbers = ranks.agreed(order.numbers(parts))?;
    let held = RankRows::new(ranks, starts, rows)?;
    // Whole numbers of 32 bits are exact.
    let mut columns = Vec::new();
    held.halo.complete(&numbers, &mut columns);
    let total = starts[ranks.size()];
    let renumbered = held.matrix.renumbered(&order.rows, total, |column| columns[column as usize] as u32);
    drop(held);
    let renumbered = ranks.agreed(renumbered)?;
    let received = ranks.agreed(swap_rows(ranks, &renumbered, &order.ranges))?;
    drop(renumbered);
    let first = starts[ranks.rank()] as u32;
    let sent =
        order.ranges.iter().map(|range| order.rows[range.clone()].iter().map(|row| first + row).collect());
    let given = ranks.swap(&sent.collect::<Vec<_>>())?.concat();
    let mine = ranks.agreed(stacked(received))?;
    let rows = RankRows::new(ranks, &order.starts, mine)?;
    Ok(RankRows { numbers: RowNumbers::Listed(given.into()), ..rows })
}

/// Gives each rank the rows of its part of a matrix that all ranks see, as threads of one process do: each
/// rank copies the rows of its part.
pub(crate) fn rows_of_shared(ranks: &Ranks, matrix: &Csr, parts: &[u32]) -> Result<RankRows> {
    let of_all = ranks.lists_of_all(parts)?;
    let mut starts = vec![0; ranks.size() + 1];
    of_all.iter().for_each(|part| starts[*part as usize + 1] += 1);
    (0..ranks.size()).for_each(|part| starts[part + 1] += starts[part]);
    let copied = || -> Result<(Vec<u32>, Csr)> {
        let mut next = starts.clone();
        let mut numbers: Vec<u32> = zeros(of_all.len())?;
        for (number, part) in numbers.iter_mut().zip(&of_all) {
            *number = next[*part as usize] as u32;
            next[*part as usize] += 1;
        }
        let (here, rows) = (ranks.rank() as u32, starts[ranks.rank() + 1] - starts[ranks.rank()]);
        let mut mine = room(rows)?;
        mine.extend((0..).zip(&of_all).filter(|(_, part)| **part == here).map(|(row, _)| row));
        let rows = matrix.renumbered(&mine, matrix.rows(), |column| numbers[column as usize])?;
        Ok((mine, rows))
    };
    let (mine, rows) = ranks.agreed(copied())?;
    drop(of_all);
    let rows = RankRows::new(ranks, &starts, rows)?;
    Ok(RankRows { numbers: RowNumbers::Listed(mine.into()), ..rows })
}

/// Joins rows one below the other.
fn stacked(mut parts: Vec<Csr>) -> Result<Csr> {
    let own = parts.remove(0);
    let kept = 0..own.rows();
    own.between(&[], kept, &parts)
}

/// The new order of the rows.
struct NewNumbers {
    /// The first row of each part, and the number of rows.
    starts: Vec<usize>,
    /// The rows of this rank, counted from the first, part by part.
    rows: Vec<u32>,
    /// The places of each part in `rows`.
    ranges: Vec<Range<usize>>,
    /// The new number of the first row of this rank in each part.
    firsts: Vec<usize>,
}

impl NewNumbers {
    /// Counts the rows of all ranks by part. There are as many parts as ranks.
    fn of(ranks: &Ranks, parts: &[u32]) -> Result<NewNumbers> {
        let mut counts = vec![0_u64; ranks.size()];
        parts.iter().for_each(|part| counts[*part as usize] += 1);
        let all = ranks.lists_of_all(&counts)?;
        let all: Vec<&[u64]> = all.chunks(ranks.size()).collect();
        let (mut starts, mut firsts) = (vec![0], Vec::new());
        for part in 0..ranks.size() {
            let before: u64 = all[..ranks.rank()].iter().map(|counts| counts[part]).sum();
            let whole: u64 = all.iter().map(|counts| counts[part]).sum();
            firsts.push(starts[part] + before as usize);
            starts.push(starts[part] + whole as usize);
        }
        let mut ranges = Vec::with_capacity(counts.len());
        let mut next = Vec::with_capacity(counts.len());
        let mut end = 0;
        for count in &counts {
            next.push(end);
            ranges.push(end..end + *count as usize);
            end += *count as usize;
        }
        let mut rows: Vec<u32> = zeros(parts.len())?;
        for (row, part) in (0..).zip(parts) {
            let place = &mut next[*part as usize];
            rows[*place] = row;
            *place += 1;
        }
        Ok(NewNumbers { starts, rows, ranges, firsts })
    }

    /// Returns the new numbers of the rows of this rank.
    fn numbers(&self, parts: &[u32]) -> Result<Vec<f64>> {
        let mut next = self.firsts.clone();
        let mut numbers = zeros(parts.len())?;
        for (number, part) in numbers.iter_mut().zip(parts) {
            let place = &mut next[*part as usize];
            *number = *place as f64;
            *place += 1;
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;
    use crate::format::partition::by_entries;
    use crate::source::generate::random::Random;
    use crate::source::load;

    /// Checks that the rows of all ranks are those of P A P', for the parts that `part` gives the rows.
    fn check(matrix: &Csr, size: usize, part: impl Fn(usize) -> usize + Sync) {
        let n = matrix.rows();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|row| part(*row as usize));
        let mut numbers = vec![0; n];
        order.iter().enumerate().for_each(|(number, row)| numbers[*row as usize] = number as u32);
        let expected = matrix.renumbered(&order, n, |column| numbers[column as usize]).unwrap();
        let starts = by_entries(matrix, size, 1);
        let found = in_threads(size, |ranks| {
            let own = starts[ranks.rank()]..starts[ranks.rank() + 1];
            let parts: Vec<u32> = own.clone().map(|row| part(row) as u32).collect();
            let rows = rows_of_parts(ranks, &starts, matrix.row_band(own)?, &parts)?;
            let range = rows.halo.rows();
            let copied = rows_of_shared(ranks, matrix, &parts)?;
            assert!(copied.matrix == rows.matrix && copied.halo.rows() == range);
            assert_eq!(copied.numbers.listed(), rows.numbers.listed());
            assert!(copied.halo.all_parts().eq(rows.halo.all_parts()));
            assert_eq!(rows.numbers.listed().unwrap(), &order[range.clone()]);
            let halo = &rows.halo;
            let whole = (*rows.matrix).clone().with_columns(n, |column| halo.column(column))?;
            assert!(whole == expected.row_band(range.clone())?, "rank {} of {size}", ranks.rank());
            let given = rows.as_given()?;
            for row in 0..range.len() {
                let entries =
                    given.matrix.row(row).map(|(column, value)| (given.columns[column] as usize, value));
                assert!(entries.eq(matrix.row(order[range.start + row] as usize)));
            }
            Ok(range.len())
        });
        assert_eq!(found.into_iter().map(Result::unwrap).sum::<usize>(), n);
    }

    #[test]
    fn the_rows_of_all_ranks_are_those_of_the_permuted_matrix() {
        for what in ["poisson2d:9x7", "hex27:3x4x3,dof=3", "poisson2d:2x1", "poisson3d:4x5x3"] {
            let matrix = load(what).unwrap().matrix;
            for size in 1..=5 {
                check(&matrix, size, |row| Random::at(size as u64, row as u64).bits() as usize % size);
                // All ranks but the last are empty.
                check(&matrix, size, |_| size - 1);
                check(&matrix, size, |row| row % size);
            }
            let ones = matrix.without_values();
            check(&ones, 3, |row| (row / 2) % 3);
            check(&matrix.to_f32(), 3, |row| (row / 2) % 3);
        }
    }
}
