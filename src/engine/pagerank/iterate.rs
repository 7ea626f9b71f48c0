//! A method of ranking with its operator on a device, and the names of vertices in its errors.

use crate::engine::graph::Names;
use crate::error::{ChainError, Error, Result};
use crate::observe::Observer;
use crate::solve::pagerank::{Jumps, RankProblem, Ranking};
use crate::stop::StoppingRule;

/// Several distributions of the jumps: their number, and a function that returns one.
pub(super) type Each<'a> = (usize, &'a dyn Fn(usize) -> Result<Jumps>);

/// A method with its operator on a device. Returns the ranks of the problem, or those for each
/// of several distributions.
pub(super) type Iterate = Box<
    dyn Fn(
            &RankProblem<'_>,
            Option<Each<'_>>,
            &StoppingRule,
            &mut [&mut dyn Observer],
        ) -> Result<Vec<Ranking>>
        + Send,
>;

/// Replaces row numbers in an error by the labels or ids of vertices.
pub(super) fn named(names: &Names, error: Error) -> Error {
    match error {
        Error::Chain(ChainError::LinkWeights { vertex, to, reason }) => {
            let (vertex, to) = (names.name(vertex as usize), to.map(|to| names.name(to as usize)));
            ChainError::NamedWeights { vertex, to, reason }.into()
        }
        other => other,
    }
}
