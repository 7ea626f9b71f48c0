//! Conjugate gradients, MINRES, PageRank and Markov chains on sparse matrices, on CPUs and NVIDIA GPUs.
//!
//! Every iteration calls one pluggable backend for the product of the matrix with a vector. A solve ends with
//! a verdict: the residual is recomputed from the matrix as it was given, with a bound on its rounding error,
//! and only a solve that passes this test counts as converged.
//!
//! ```
//! # fn main() -> solver::Result<()> {
//! use solver::prelude::*;
//! let a = Matrix::open("data/grid3x3.mtx")?; // a file, a catalog name, a generator
//! let b = vec![1.0; a.rows()];
//! let answer = Cg::new(&a).precond("jacobi").rtol(1e-10).solve(&b)?; // chooses the best device and backend
//! assert!(answer.converged());
//! println!("{}", answer.report());
//! # Ok(())
//! # }
//! ```
//!
//! - [`Matrix`](engine::Matrix) comes from a file or a name, from triplets, or from compressed rows of any
//!   index type; a matrix of `sprs` or `nalgebra-sparse` converts into a [`Csr`](format::Csr), and that into
//!   a `Matrix`. [`Cg::with_product`](engine::Cg::with_product) takes a caller's own product instead.
//! - [`Cg`](engine::Cg) and [`Minres`](engine::Minres) collect the settings of a solve
//!   ([`SystemSettings`](engine::SystemSettings)); [`Solver`](engine::Solver) does so for any method. A
//!   matrix that is not symmetric is refused.
//! - [`prepare`](engine::SystemSettings::prepare) keeps device, matrix and preconditioner for many
//!   right-hand sides ([`Prepared`](engine::Prepared)), on any thread.
//! - [`Answer`](engine::Answer) has x, the verdict, the report and the history.
//! - [`Pagerank`](engine::Pagerank) ranks the vertices of a graph, with a guaranteed bound on the error, and
//!   [`Markov`](engine::Markov) finds the stationary distribution of each closed class of a chain. Both can
//!   be prepared for many solves, and have reports and histories.
//! - [`Multiply`](engine::Multiply) prepares products of a matrix with one or several vectors.
//! - A failure is an [`Error`]. A solve that did not converge is not an error:
//!   [`StopReason`](stop::StopReason) says why it ended.
//!
//! The folder `examples/` has programs to start from.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`prelude`] | what most programs need |
//! | [`engine`] | the whole solve, from the matrix to the report; all front-ends call it |
//! | [`solve`] | the methods, which use only operators and a device's vector algebra |
//! | [`precond`] | preconditioners: builders of operators that approximate an inverse |
//! | [`backend`] | strategies for y = A x on a CPU or a GPU, and their registry |
//! | [`operator`] | a matrix prepared by a backend |
//! | [`params`] | the parameters of backends, preconditioners and generators |
//! | [`source`] | files, the catalog and the generators that matrices come from |
//! | [`mod@format`] | how matrices are stored, and their statistics |
//! | [`device`] | vectors and their algebra: the CPU, CUDA |
//! | [`observe`] | reports, histories, progress, and wall time by phase |
//! | [`stop`] | tolerances, limits, and why a solve ended |
//! | `plot` | pictures of histories, with the feature `plot` |
//!
//! A module calls only modules below it in this order: `engine`, `solve`, `precond`,
//! `backend`, then the rest.
//!
//! # Features
//!
//! The default features build the program. `default-features = false` is the minimal library: no argument
//! parser, no HTTP client, no plots. It has every method, device and kind of file; every build searches for a
//! CUDA driver at run time.
//!
//! | feature | adds |
//! |---|---|
//! | `cli` (default) | the program `solver` and `solver::cli`; turns on `fetch` and `plot` |
//! | `fetch` | `solver::source::fetch`: downloads of the catalog's matrices; without it, a matrix that is not on disk is an error |
//! | `plot` | `solver::plot`: pictures as SVG, PNG and PDF |
//! | `nalgebra` (default) | conversions from and to the matrices of `nalgebra-sparse`, and its product as the backend `nalgebra` |
//! | `sprs` (default) | conversions from and to the matrices of `sprs`, and its product as the backend `sprs` |
//! | `metis` | the partition `graph` of a system over ranks, by METIS; needs a C compiler to build |
//! | `mpi` | one solve over the processes that an MPI launcher starts; needs an MPI library and libclang to build |

#![warn(unreachable_pub)]
// Tests and their helpers panic on failure, and may print measurements.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::print_stdout))]
// Some code serves the program or conversions only.
#![cfg_attr(
    not(all(feature = "cli", feature = "nalgebra", feature = "sprs")),
    allow(dead_code, unused_imports)
)]

// The unit tests use the harness and the helpers of the integration tests.
#[cfg(test)]
#[macro_use]
extern crate solver_test_attribute;
#[cfg(test)]
extern crate self as solver;
#[cfg(test)]
#[allow(unreachable_pub)]
mod common;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: common::memory::Counted = common::memory::Counted;

pub mod backend;
pub mod bench;
mod bytes;
// Only for the program.
#[cfg(feature = "cli")]
#[doc(hidden)]
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
pub mod params;
#[cfg(feature = "plot")]
pub mod plot;
pub mod precond;
pub mod prelude;
pub mod scalar;
#[cfg(feature = "cli")]
mod signals;
pub mod solve;
pub mod source;
pub(crate) mod spectrum;
mod spelling;
pub mod stop;
mod text;
mod trust;

pub use error::{Error, Result};
pub use files::set_cache_folder;
#[doc(hidden)]
pub use memory::allocation_may_fail;
#[doc(hidden)]
pub use parallel::start_pool;

#[cfg(test)]
fn main() -> std::process::ExitCode {
    common::harness::run(None)
}
