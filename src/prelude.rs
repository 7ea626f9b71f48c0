//! The items that most programs need: `use solver::prelude::*`.

pub use crate::engine::{
    Answer, Answers, Cg, DeviceHandle, DeviceName, DeviceSettings, Markov, Matrix, Minres, Multiply, Order,
    Pagerank, Prepared, Products, Progress, RightHandSide, RightHandSides, RunSettings, Solver, Stopping,
    SystemSettings, Weights, markov, pagerank,
};
pub use crate::error::{Error, Result};
pub use crate::observe::report::Report;
pub use crate::precond::Preconditioner;
pub use crate::scalar::Precision;
pub use crate::solve::Product;
pub use crate::stop::StopReason;
