//! How a matrix is stored: plain data, validated on construction, and its conversions. No arithmetic beyond that.

pub(crate) mod assemble;
pub mod convert;
pub mod coo;
pub mod csr;
pub mod dense;
pub mod stats;

pub use coo::Coo;
pub use csr::{Csr, Offset, Offsets, Pattern, Values};
pub use dense::Dense;
pub use stats::Stats;
