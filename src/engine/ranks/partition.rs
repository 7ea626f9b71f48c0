//! Partitions of the rows of a matrix over ranks.
//!
//! The ranks first hold ranges of the rows in the order of the matrix. A partition gives each group of rows
//! that belong together a part, and the rows then move to the ranks of their parts. Ranks that see the whole
//! matrix copy them from there.

mod bisection;
mod graph;
mod groups;
#[cfg(feature = "metis")]
mod metis;
#[cfg(not(feature = "metis"))]
#[path = "partition/no_metis.rs"]
mod metis;
mod points;
mod setting;

use crate::backend::distributed::{RankRows, rows_of_parts, rows_of_shared};
use crate::device::Ranks;
use crate::error::Result;
use crate::format::Csr;
use crate::parallel::room;
use groups::Groups;
use points::Points;
pub use setting::Partition;
pub(crate) use setting::SETTING;
use std::time::Instant;

/// The rows that a rank holds before they move.
pub(super) struct Held<'a> {
    /// Rank i holds the rows `starts[i]..starts[i + 1]`.
    pub starts: &'a [usize],
    /// The number of neighbouring rows that belong together, counted from the first row of the matrix. Only
    /// the last group may have fewer.
    pub together: usize,
    /// The name of the matrix, on the first rank.
    pub name: &'a str,
    /// The matrix, if all ranks see it.
    pub shared: Option<&'a Csr>,
}

impl Held<'_> {
    /// Returns the part of each row of this rank. There are `parts` parts. All ranks call this together.
    pub(crate) fn parts(
        &self,
        ranks: &Ranks,
        rows: &Csr,
        partition: &Partition,
        parts: usize,
    ) -> Result<Vec<u32>> {
        ranks.agreed(partition.check())?;
        let groups = Groups::of(ranks, self.starts, rows, self.together);
        let total = self.starts[ranks.size()];
        let by_points = |points: Points| {
            bisection::bisect(ranks, parts, &points, (&groups.weights, groups.starts[ranks.rank()]))
        };
        let of_groups = match partition {
            Partition::Entries => groups.in_order(ranks, parts),
            Partition::Coordinates => by_points(Points::of_mesh(ranks, &groups, total, self.name)?),
            Partition::CoordinatesIn(path) => by_points(Points::of_file(ranks, &groups, total, path)?),
            Partition::Graph => graph::parts_of(ranks, &groups, rows, parts)?,
        };
        let mut of_rows = ranks.agreed(room(rows.rows()))?;
        for (group, part) in of_groups.into_iter().enumerate() {
            of_rows.extend(groups.rows_of(group, rows.rows()).map(|_| part));
        }
        Ok(of_rows)
    }

    /// Gives each rank the rows of its part, and plans the exchange. All ranks call this together.
    pub(crate) fn divide(&self, ranks: &Ranks, rows: Csr, partition: &Partition) -> Result<RankRows> {
        if partition.is_in_order() {
            return RankRows::new(ranks, self.starts, rows);
        }
        let began = Instant::now();
        let parts = self.parts(ranks, &rows, partition, ranks.size())?;
        let found = began.elapsed().as_secs_f64();
        let rows = match self.shared {
            Some(matrix) => {
                drop(rows);
                rows_of_shared(ranks, matrix, &parts)?
            }
            None => rows_of_parts(ranks, self.starts, rows, &parts)?,
        };
        if ranks.is_first() {
            let all = began.elapsed().as_secs_f64();
            log::info!("parts {}: {found:.2} s, and {:.2} s for the rows", partition.describe(), all - found);
        }
        Ok(rows)
    }
}
