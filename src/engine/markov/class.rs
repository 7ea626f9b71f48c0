//! A closed class of a chain with the method that solves it.

use super::ChainMethod;
use crate::backend::Choice;
use crate::backend::distributed::RankRows;
use crate::engine::device::DeviceHandle;
use crate::engine::running::Chosen;
use crate::engine::tune::Choosing;
use crate::error::Result;
use crate::format::Csr;
use crate::observe::Observer;
use crate::observe::report::Parts;
use crate::scalar::Precision;
use crate::solve::markov::{Stationary, StationaryProblem};
use crate::stop::StoppingRule;
use std::sync::Arc;

/// A method, with its operator on a device.
pub(super) type Iterate =
    Box<dyn Fn(&StationaryProblem<'_>, &StoppingRule, &mut [&mut dyn Observer]) -> Result<Stationary> + Send>;

/// A class with the method and operator to solve it.
pub(super) struct PreparedClass {
    pub incoming: Arc<Csr>,
    /// The exchange between ranks.
    pub rows: Option<Arc<RankRows>>,
    /// The parts of the ranks.
    pub parts: Option<Parts>,
    pub iterate: Iterate,
    pub chosen: Chosen,
}

/// The choices by which classes are prepared.
pub(super) struct Recipe {
    pub method: ChainMethod,
    pub device: DeviceHandle,
    pub backend: Choice,
    pub precision: Precision,
    pub choosing: Choosing,
}
