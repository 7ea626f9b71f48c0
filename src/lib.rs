//! Conjugate Gradient, PageRank and Markov-chain solves on sparse matrices, where every iteration calls one
//! pluggable SpMV backend.

pub mod backend;
pub mod bench;
mod bytes;
pub mod cli;
pub mod device;
pub mod engine;
pub mod error;
mod files;
pub mod format;
mod memory;
pub mod observe;
pub mod operator;
mod parallel;
pub mod plot;
pub mod precond;
pub mod prelude;
pub mod scalar;
mod signals;
pub mod solve;
pub mod source;
pub mod spectrum;
pub mod spelling;
pub mod stop;
mod text;
mod trust;

pub use error::{Error, Result};
pub use memory::allocation_may_fail;
