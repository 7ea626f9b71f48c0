//! The symmetry of a matrix whose rows are distributed over ranks. The verdict is that of one process.

use crate::backend::distributed::transposed;
use crate::device::Ranks;
use crate::error::Result;
use crate::format::Csr;
use crate::format::stats::{Asymmetry, PartRows, PartVerdict, Rounding, Verdict};

/// Returns whether a square matrix of which each rank has the rows `starts[rank]..starts[rank + 1]` is
/// symmetric. All ranks call this together.
pub(super) fn symmetry(ranks: &Ranks, starts: &[usize], rows: &Csr) -> Result<Verdict> {
    let mirrored = transposed(ranks, starts, rows, starts)?;
    let part = PartRows { first: starts[ranks.rank()], rows, transposed: &mirrored };
    if !ranks.any(!part.is_symmetric()) {
        return Ok(Verdict::Exact);
    }
    let own = |row: usize| rows.get(row, part.first + row).unwrap_or(0.0);
    let own: Vec<f64> = (0..rows.rows()).map(own).collect();
    let diagonal = ranks.swap(&vec![own; ranks.size()])?.concat();
    let mine = part.compare(|row| diagonal[row]);
    let rounded = ranks.swap(&vec![mine.rounded.iter().map(of_rounding).collect(); ranks.size()])?;
    let beyond = ranks.swap(&vec![mine.beyond.iter().map(of_pair).collect(); ranks.size()])?;
    let parts = rounded.into_iter().zip(beyond).map(|(rounded, beyond)| PartVerdict {
        rounded: rounded.first().map(to_rounding),
        beyond: beyond.first().map(to_pair),
    });
    Ok(parts.fold(PartVerdict::default(), PartVerdict::join).verdict())
}

/// A pair as numbers: row, column, bits of the value, whether the mirrored entry is stored,
/// and the bits of its value.
type PairNumbers = [u64; 5];

fn of_pair(pair: &Asymmetry) -> PairNumbers {
    let mirrored = pair.mirrored;
    let [value, other] = [pair.value, mirrored.unwrap_or(0.0)].map(f64::to_bits);
    [pair.row as u64, pair.col as u64, value, u64::from(mirrored.is_some()), other]
}

fn to_pair(&[row, col, value, stored, other]: &PairNumbers) -> Asymmetry {
    let mirrored = (stored > 0).then(|| f64::from_bits(other));
    Asymmetry { row: row as usize, col: col as usize, value: f64::from_bits(value), mirrored }
}

/// Pairs that differ by rounding, as numbers.
type RoundingNumbers = [u64; 9];

fn of_rounding(rounding: &Rounding) -> RoundingNumbers {
    let [row, col, value, stored, other] = of_pair(&rounding.first);
    let [pairs, at_row, at_col] = [rounding.pairs, rounding.row, rounding.col].map(|number| number as u64);
    [pairs, rounding.largest.to_bits(), at_row, at_col, row, col, value, stored, other]
}

fn to_rounding(
    &[pairs, largest, at_row, at_col, row, col, value, stored, other]: &RoundingNumbers,
) -> Rounding {
    Rounding {
        pairs: pairs as usize,
        largest: f64::from_bits(largest),
        row: at_row as usize,
        col: at_col as usize,
        first: to_pair(&[row, col, value, stored, other]),
    }
}
