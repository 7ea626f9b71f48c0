//! Strategies on the CPU.

mod aligned;
pub mod bsr;
mod chunked;
pub(super) use chunked::chunk_height;
#[cfg(target_arch = "x86_64")]
mod columns;
pub mod dense;
pub(super) mod diagonal;
#[cfg(target_arch = "x86_64")]
mod lanes;
pub mod merge;
#[cfg(feature = "nalgebra")]
pub mod nalgebra;
pub mod pull;
mod row_values;
pub mod rows;
pub mod sbsr;
pub mod sell;
pub mod serial;
#[cfg(feature = "sprs")]
pub mod sprs;
pub mod studies;
pub(super) mod triangular;
#[cfg(any(feature = "nalgebra", feature = "sprs"))]
mod yardstick;
