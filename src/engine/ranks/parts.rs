//! The parts of the ranks of a solve, for its report.

use super::RankMatrix;
use crate::backend::distributed::RankRows;
use crate::observe::report::Parts;
use crate::scalar::Precision;

/// Describes the parts of all ranks. All ranks call this together.
pub(in crate::engine) fn parts_of(rows: &RankRows, partition: String, precision: Precision) -> Parts {
    let (halo, ranks) = (rows.halo(), rows.halo().ranks());
    let width = if precision == Precision::F32 { size_of::<f32>() } else { size_of::<f64>() };
    let mine = [rows.rows(), rows.matrix().nnz(), halo.neighbours(), halo.ghosts() * width];
    let mut most = mine.map(|number| number as f64);
    let mut all = [most[1], most[3]];
    ranks.fold_all(&mut most, f64::max);
    ranks.sum(&mut all);
    let [rows_most, entries_most, neighbours_most, halo_bytes_most] = most.map(|number| number as u64);
    let imbalance = if all[0] > 0.0 { most[1] * ranks.size() as f64 / all[0] } else { 1.0 };
    Parts {
        ranks: ranks.size() as u64,
        partition,
        rows_most,
        entries_most,
        imbalance,
        neighbours_most,
        halo_bytes_most,
        halo_bytes: all[1] as u64,
    }
}

impl RankMatrix {
    /// Describes the parts of all ranks. All ranks call this together.
    pub(in crate::engine) fn parts(&self, precision: Precision) -> Parts {
        parts_of(&self.rows, self.partition().to_string(), precision)
    }
}
