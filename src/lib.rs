//! Conjugate Gradient, PageRank and Markov-chain solves on sparse matrices, where every iteration calls one
//! pluggable SpMV backend.
//!
//! # Features
//!
//! The default features build the program. `default-features = false` is the lean library: no argument parser, no HTTP client,
//! no plots. It has every method, device and kind of file; a CUDA driver is looked for at run time in every build.
//!
//! | feature | adds |
//! |---|---|
//! | `cli` (default) | the program `solver` and `solver::cli`; turns on `fetch` and `plot` |
//! | `fetch` | `solver::source::fetch`: downloads of the catalog's matrices; without it, a matrix that is not on disk is an error |
//! | `plot` | `solver::plot`: pictures as SVG and PNG |
//! | `nalgebra` (default) | conversions from and to the matrices of `nalgebra-sparse`, and its product as the backend `nalgebra` |
//! | `sprs` (default) | conversions from and to the matrices of `sprs`, and its product as the backend `sprs` |

pub mod backend;
pub mod bench;
mod bytes;
#[cfg(feature = "cli")]
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
#[cfg(feature = "plot")]
pub mod plot;
pub mod precond;
pub mod prelude;
pub mod scalar;
#[cfg(feature = "cli")]
mod signals;
pub mod solve;
pub mod source;
pub mod spectrum;
pub mod spelling;
pub mod stop;
mod text;
mod trust;

pub use error::{Error, Result};
pub use files::set_cache_folder;
pub use memory::allocation_may_fail;
pub use parallel::start_pool;
