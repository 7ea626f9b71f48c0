//! Conjugate Gradient, PageRank and Markov-chain solves on sparse matrices, where every iteration calls one
//! pluggable SpMV backend.

pub mod error;
pub mod format;
pub mod observe;
pub mod plot;
pub mod scalar;
pub mod source;
pub mod stop;

pub use error::{Error, Result};
