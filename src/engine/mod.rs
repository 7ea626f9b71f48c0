//! Solves from the matrix to the report: device, backend, memory, operators, method, verdict.
//!
//! Every front-end calls this module; a front-end itself only parses its input and displays the results.

mod advice;
mod answer;
mod arrays;
mod caller_matrix;
mod device;
pub mod doctor;
#[cfg(feature = "fetch")]
mod first_use;
mod gpus;
mod graph;
mod info;
mod limit;
mod many;
pub mod markov;
mod matrix;
mod memory;
mod multiply;
mod opening;
mod order;
mod origin;
pub mod pagerank;
mod pattern_only;
#[cfg(feature = "plot")]
mod pictures;
mod prepared;
mod problem;
mod range;
mod rank_session;
mod ranks;
mod report;
mod rhs;
mod run_settings;
mod running;
mod save;
mod seat;
mod session;
mod settings;
mod shared;
mod singular;
mod solver;
mod spread;
mod stopping;
mod system_settings;
mod team;
mod transpose;
mod trial;
pub mod tune;
mod vector_file;
mod watch;
mod weights;

pub use crate::device::{LentIndices, LentNumbers, LentProduct, LentRows};
pub use advice::instead_of;
pub use answer::Answer;
pub use arrays::{Indices, Numbers};
pub(crate) use device::HostMethod;
pub use device::{DeviceHandle, DeviceName, Request, Settled};
pub use graph::Names;
pub use info::Info;
pub use many::{Answers, RightHandSides};
pub use markov::Markov;
pub use matrix::Matrix;
pub(crate) use memory::{MemoryPlan, compressed_rows};
pub use multiply::{Multiply, Products};
pub(crate) use opening::{Ahead, Opening};
pub use order::Order;
pub use pagerank::Pagerank;
pub use prepared::Prepared;
pub use problem::RhsName;
pub(crate) use ranks::RankSource;
pub use ranks::{Cluster, Network, Partition, Purpose, RankChain, RankGraph, RankMatrix};
pub(crate) use report::Found;
pub use rhs::RightHandSide;
pub use run_settings::{DeviceSettings, RunSettings};
pub use solver::{Cg, Minres, Solver};
pub use stopping::Stopping;
pub use system_settings::SystemSettings;
pub(crate) use trial::Trial;
pub(crate) use vector_file::VectorFile;
pub use watch::Progress;
pub use weights::Weights;

#[cfg(test)]
mod tests;
