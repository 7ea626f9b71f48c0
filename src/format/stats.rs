//! What there is to know of a matrix before solving with it.
//!
//! # Passes
//! 1. `rows`: one parallel pass over rows, columns and values, in pieces that stay in cache. It finds lengths, sums,
//!    the diagonal, bandwidth, values, the components of the undirected pattern (`components`) and the number of
//!    blocks of every size from 2 x 2 to 8 x 8 (`blocks`).
//! 2. `symmetry`: one parallel pass that looks up each pair of entries across the diagonal once, in the shorter of its
//!    two rows. It is left out where the source vouches for symmetry.
//!
//! Row lengths alone are read once more for the slots of SELL (`memory`), and parents of the components for their
//! sizes: n numbers each.
//!
//! # Memory
//! Four bytes a row for the components, and for each worker up to two bytes a column for the blocks; there are never so
//! many workers that those outweigh the matrix. Nothing is transposed.
//!
//! # Determinism
//! All that the workers join is counts, extremes and sets, so no bit depends on their number. Sums of floating-point
//! numbers are taken within rows only, in the order of columns.

mod blocks;
mod components;
pub mod density;
mod distinct;
mod memory;
mod rows;
mod symmetry;

pub use blocks::{Block, Blocks, SIZES};
pub use components::Components;
pub use density::Density;
pub use distinct::MOST_DISTINCT;
pub use memory::{FormatBytes, SELL_SIGMA, SELL_SLICE};
pub use symmetry::{Asymmetry, ROUNDING, Rounding, Symmetry, Verdict, first_unpaired, symmetry_of};

use super::Csr;
use crate::error::Error;
use components::Parents;

/// Lengths of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RowLength {
    /// Shortest.
    pub min: usize,
    /// Mean.
    pub mean: f64,
    /// Longest.
    pub max: usize,
    /// Standard deviation, over all rows.
    pub deviation: f64,
}

/// Rows of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LengthBin {
    /// Shortest length counted here: 0, 1, 2, 4, 8, ...
    pub from: usize,
    /// Longest length counted here: 0, 1, 3, 7, 15, ...
    pub to: usize,
    /// How many rows.
    pub rows: usize,
}

/// Sums of rows that have entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct RowSums {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// The largest magnitude of a sum, in shares of the sum of magnitudes in the same row.
    pub largest_share: f64,
}

/// Values of stored entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ValueStats {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// How many are negative.
    pub negative: usize,
    /// How many are zero, though stored.
    pub zero: usize,
    /// How many are no number or infinite.
    pub not_finite: usize,
    /// How many single precision cannot hold exactly.
    pub beyond_f32: usize,
    /// How many different ones there are, -0 being 0; counting ends at [`MOST_DISTINCT`].
    pub distinct: usize,
    /// Whether counting did not have to end.
    pub distinct_is_exact: bool,
}

/// The diagonal of a square matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Diagonal {
    /// Rows without a stored diagonal entry.
    pub missing: usize,
    /// Stored entries that are zero.
    pub zero: usize,
    /// Negative entries.
    pub negative: usize,
    /// Positive entries.
    pub positive: usize,
    /// Rows in which it outweighs or equals the sum of the others' magnitudes.
    pub dominant_rows: usize,
    /// Rows in which it outweighs them.
    pub strictly_dominant_rows: usize,
    /// The first row, counted from 0, whose entry is missing or not positive.
    pub first_not_positive: Option<usize>,
}

/// How far the entries of a square matrix lie from its diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Bandwidth {
    /// Furthest below.
    pub lower: usize,
    /// Furthest above.
    pub upper: usize,
    /// Places between the first entry of a row and the diagonal, where that entry lies below it, over all rows: what
    /// a factor without pivoting may fill.
    pub profile: u64,
}

/// Statistics of a matrix. Places count from 0.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Entries, stored zeros included.
    pub nnz: usize,
    /// Lengths of rows.
    pub row_length: RowLength,
    /// Lengths of rows by powers of two, up to the longest.
    pub row_histogram: Vec<LengthBin>,
    /// The first of the longest rows, where there are entries.
    pub longest_row: Option<usize>,
    /// Rows without entries.
    pub empty_rows: usize,
    /// The first of them.
    pub first_empty_row: Option<usize>,
    /// Sums of rows.
    pub row_sums: RowSums,
    /// Values of entries.
    pub values: ValueStats,
    /// Whether it equals its transpose; a place where nothing is stored holds 0.
    pub symmetric: bool,
    /// How many entries have a partner across the diagonal, for square matrices.
    pub symmetry: Option<Symmetry>,
    /// The pairs that differ, where it is symmetric to rounding.
    pub rounding: Option<Rounding>,
    /// The first entry that shows that it is not symmetric, not even to rounding; none for rectangular matrices.
    pub asymmetry: Option<Asymmetry>,
    /// The diagonal, for square matrices.
    pub diagonal: Option<Diagonal>,
    /// The band, for square matrices.
    pub bandwidth: Option<Bandwidth>,
    /// The components of the undirected pattern, for square matrices; none too where memory does not suffice.
    pub components: Option<Components>,
    /// What blocks of R x C would do.
    pub blocks: Blocks,
    /// Bytes in each format without blocks; [`FormatBytes::of_block`] tells those in blocks.
    pub memory: Vec<FormatBytes>,
}

impl Stats {
    /// Looks at every entry; symmetry is taken for granted where the source vouches for it.
    pub fn of(matrix: &Csr, symmetric_by_construction: bool) -> Stats {
        // Entries that stand several times at one place count as the one that they sum to.
        let summed = matrix.pattern().has_repeats().then(|| matrix.summed().ok()).flatten();
        let matrix = summed.as_ref().unwrap_or(matrix);
        let (rows, nnz) = (matrix.rows(), matrix.nnz());
        let square = rows == matrix.cols();
        let warn = |error: &Error| log::warn!("the components of the matrix are not counted: {error}");
        let parents = if square { Parents::new(rows).inspect_err(warn).ok() } else { None };
        let part = rows::describe(matrix, parents.as_ref());
        let diagonal = square.then_some(part.diagonal);
        let off_diagonal = nnz - (rows - part.diagonal.missing) * usize::from(square);
        let across = square.then(|| match symmetric_by_construction {
            true => (Symmetry::vouched(off_diagonal), Verdict::Exact),
            false => symmetry::counted(matrix, off_diagonal),
        });
        let (rounding, asymmetry) = match across {
            Some((_, Verdict::ToRounding(rounding))) => (Some(rounding), None),
            Some((_, Verdict::No(asymmetry))) => (None, Some(asymmetry)),
            _ => (None, None),
        };
        let blocks = match &part.blocks {
            Some(counts) => Blocks::from_counts(matrix, counts),
            None => Blocks::unknown(matrix),
        };
        Stats {
            rows,
            cols: matrix.cols(),
            nnz,
            row_length: part.row_length(rows, nnz),
            row_histogram: part.histogram(),
            longest_row: part.longest.map(|longest| longest.row),
            empty_rows: part.empty,
            first_empty_row: part.first_empty,
            row_sums: part.sums.unwrap_or_default(),
            values: part.values(nnz),
            symmetric: across.is_some_and(|(_, verdict)| verdict == Verdict::Exact),
            symmetry: across.map(|(symmetry, _)| symmetry),
            rounding,
            asymmetry,
            diagonal,
            bandwidth: square.then_some(part.bandwidth),
            components: parents.and_then(|parents| parents.components().inspect_err(warn).ok()),
            memory: memory::in_each_format(matrix, part.empty, part.longest.map_or(0, |l| l.length)),
            blocks,
        }
    }
}
