//! Preconditioners of matrices whose rows are distributed over ranks.

use super::Preconditioner;
use super::chebyshev;
use super::entry::OverRanks;
use super::jacobi::inverse_diagonal;
use crate::backend::distributed::{RankRows, of_each_rank};
use crate::backend::{Operator, Pick};
use crate::device::Distributed;
use crate::device::distributed::Local;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The rows of a rank and their operators.
pub(crate) struct RankOperators<'a, D: Local, T: Scalar> {
    /// The rows.
    pub rows: &'a RankRows,
    /// The square block of the rank's own columns, and its operator.
    pub own: (&'a Arc<Csr>, &'a Operator<D, T>),
    /// The operator of the whole matrix.
    pub a: &'a Operator<Distributed<D>, T>,
}

impl Preconditioner {
    /// Builds the operator for vectors of `columns` columns; `None` if there is no operator to apply. All
    /// ranks call this together. `reserve` bytes of device memory stay free.
    pub(crate) fn build_over_ranks<D: Local + Pick<T>, T: Scalar>(
        &self,
        given: &RankOperators<'_, D, T>,
        reserve: u64,
        columns: usize,
    ) -> Result<Option<Operator<Distributed<D>, T>>> {
        let RankOperators { rows, own: (block, own), a } = *given;
        let (device, ranks) = (a.device(), rows.halo().ranks());
        let in_matrix = |error: Error| error.in_rows(|row| rows.numbers().of(row));
        if self.over_ranks() == OverRanks::Products {
            let inverse = inverse_diagonal::<T>(self.name(), block).map_err(in_matrix);
            let inverse = ranks.agreed(inverse)?;
            return chebyshev::of_diagonal(rows.matrix(), a, &inverse, &self.params).map(Some);
        }
        let built = self.build_for(block, own, reserve, columns).map_err(in_matrix);
        Ok(ranks.agreed(built)?.map(|operator| of_each_rank(device, operator)))
    }
}
