//! Strategies on the CPU.

mod aligned;
pub(crate) mod bsr;
mod chunked;
pub(super) use chunked::chunk_height;
#[cfg(target_arch = "x86_64")]
mod columns;
pub(crate) mod dense;
pub(super) mod diagonal;
#[cfg(target_arch = "x86_64")]
mod lanes;
pub(crate) mod merge;
#[cfg(feature = "nalgebra")]
pub(crate) mod nalgebra;
pub(crate) mod pull;
mod row_values;
pub(crate) mod rows;
pub(crate) mod sbsr;
pub(crate) mod sell;
pub(crate) mod serial;
#[cfg(feature = "sprs")]
pub(crate) mod sprs;
pub(crate) mod studies;
pub(super) mod triangular;
#[cfg(any(feature = "nalgebra", feature = "sprs"))]
mod yardstick;
