//! How a matrix is stored: plain data, validated on construction, and its conversions. No arithmetic beyond that.

pub mod convert;
pub mod csr;
pub mod stats;

pub use csr::{Csr, Offset, Offsets, Pattern, Values};
pub use stats::Stats;
