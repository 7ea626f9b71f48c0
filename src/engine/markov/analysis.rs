//! The classes of a chain that one process has, and the names of states in errors.

use super::distributions::ChainFacts;
use super::{Classes, Settings};
use crate::engine::graph::Names;
use crate::engine::matrix::Matrix;
use crate::error::{ChainError, Error, Result};
use crate::solve::markov::chain::Chain;

/// Finds the classes of a chain.
pub(super) fn analysed(matrix: Matrix, normalise: bool) -> Result<(Chain, ChainFacts)> {
    let names = Names::of(&matrix, 1);
    let chain = match Chain::new(matrix.csr, normalise) {
        Err(error) if names.origin.is_graph() => return Err(named(error, |row| Ok(names.name(row)))?),
        chain => chain?,
    };
    let (nnz, transient) = (chain.steps().nnz() as u64, chain.transient() as u64);
    Ok((chain, ChainFacts { names, nnz, transient }))
}

/// Refuses a chain of several classes, if the settings do.
pub(super) fn check_classes(classes: usize, settings: &Settings) -> Result<()> {
    match settings.classes {
        Classes::Refuse if classes > 1 => Err(ChainError::Reducible { classes }.into()),
        _ => Ok(()),
    }
}

/// Replaces row numbers in an error by the labels or ids of vertices.
pub(super) fn named(error: Error, name: impl Fn(usize) -> Result<String>) -> Result<Error> {
    Ok(match error {
        Error::Chain(ChainError::RowSum { row, sum }) => {
            ChainError::NamedSum { vertex: name(row)?, sum }.into()
        }
        Error::Chain(ChainError::Probability { row, col, value }) => {
            let reason = format!("its weight is {value}, and must not be negative");
            ChainError::NamedWeights { vertex: name(row)?, to: Some(name(col)?), reason }.into()
        }
        other => other,
    })
}
