//! Solves from the matrix to the report: device, backend, memory, operators, method, verdict.
//!
//! Every front-end calls this room, and does nothing else than to read what its users want and to show what comes of it.

mod advice;
mod answer;
mod arrays;
mod device;
mod limit;
mod matrix;
mod memory;
mod prepared;
mod rhs;
mod settings;
mod solver;
mod stopping;
mod watch;

pub(crate) use advice::{Ended, hint};
pub use advice::{Naming, as_method};
pub use answer::Answer;
pub use arrays::{Indices, Numbers};
pub(crate) use device::check_threads;
pub use device::{DeviceHandle, DeviceName, Request, Settled};
pub(crate) use limit::{Moved, measure};
pub use matrix::Matrix;
pub(crate) use matrix::pairs_differ;
pub use memory::MemoryPlan;
pub(crate) use memory::compressed_rows;
pub use prepared::Prepared;
pub use rhs::RightHandSide;
pub use solver::{Cg, Minres, Solver};
pub use stopping::Stopping;
pub use watch::Progress;
