//! Storage formats of matrices: plain data, validated on construction, with conversions. There is
//! no other arithmetic here.
//!
//! Every format is built from [`Csr`] and converts back to it, so that any two formats convert through
//! CSR. The round trip returns:
//!
//! | format | additional storage | back to CSR |
//! |---|---|---|
//! | [`Coo`] | row indices | the same, duplicates summed; f32 as f64 |
//! | `Dcsr` | indices of the rows that have entries | the same |
//! | `Ell`, `Sell` | padding, and row lengths to distinguish it | the same |
//! | `Bsr` | zeros that fill blocks | without stored +0, which looks like fill; ones stored |
//! | [`Dense`] | all zeros | without stored +0; f32 and ones as f64 |
//!
//! [`Coordinates`] are no matrix, but the positions of the nodes whose unknowns are the rows of one.
//! `DiagonalBlocks` are what a preconditioner computes; they are not built from CSR.
//!
//! "The same" means bit for bit, including explicit zeros, the sign of zero and the payload of a NaN.

pub(crate) mod assemble;
pub(crate) mod blocked;
pub(crate) mod bsr;
mod buckets;
pub(crate) mod columns;
mod columns_transposed;
#[cfg(any(feature = "nalgebra", feature = "sprs"))]
pub(crate) mod convert;
mod coo;
mod coordinates;
pub(crate) mod csr;
mod cuthill_mckee;
pub(crate) mod dcsr;
pub(crate) mod dense;
mod diagonal_blocks;
pub(crate) mod ell;
pub(crate) mod finish;
mod join;
pub(crate) mod narrow;
mod order;
pub(crate) mod partition;
pub(crate) mod pattern;
mod pieces;
pub(crate) mod product;
mod renumber;
mod rows;
mod select;
pub(crate) mod sell;
pub mod stats;
mod transpose;
pub(crate) mod values;

pub(crate) use bsr::Bsr;
pub use coo::Coo;
pub use coordinates::Coordinates;
pub use csr::Csr;
pub(crate) use cuthill_mckee::reverse_cuthill_mckee;
pub(crate) use dcsr::Dcsr;
pub use dense::Dense;
pub(crate) use diagonal_blocks::DiagonalBlocks;
pub(crate) use ell::Ell;
pub use finish::Duplicates;
pub(crate) use pattern::Offset;
pub use pattern::{Offsets, Pattern};
pub(crate) use rows::offsets_of;
pub(crate) use sell::Sell;
pub(crate) use stats::Stats;
pub use values::Values;

#[cfg(all(test, feature = "nalgebra", feature = "sprs"))]
mod tests;
