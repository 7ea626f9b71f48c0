//! Describes a hierarchy for reports.

use super::aggregate::{Aggregates, NONE};
use super::hierarchy::{Hierarchy, Last, Level};
use crate::observe::report::{self, Levels};

/// Returns the number of nodes of the largest aggregate, and their mean number.
fn sizes(aggregates: &Aggregates) -> (u64, f64) {
    let mut sizes = vec![0u64; aggregates.count];
    aggregates.of.iter().filter(|&&of| of != NONE).for_each(|&of| sizes[of as usize] += 1);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    (largest, sizes.iter().sum::<u64>() as f64 / aggregates.count.max(1) as f64)
}

/// Returns what is known of the levels before there are operators: backends and bytes are missing.
pub(super) fn levels(hierarchy: &Hierarchy, near_null: String, constants: bool, block: usize) -> Levels {
    let last = match hierarchy.last {
        Last::Inverse(_) => None,
        Last::Matrix(_, _, largest) => Some(largest),
    };
    let level = |((rows, entries), made): ((usize, usize), Option<&Level>)| {
        let sizes = made.map(|level| sizes(&level.aggregates));
        report::Level {
            rows: rows as u64,
            entries: entries as u64,
            aggregates: made.map(|level| level.aggregates.count as u64),
            aggregate_mean: sizes.map(|(_, mean)| mean),
            aggregate_largest: sizes.map(|(largest, _)| largest),
            eigenvalue_largest: made.map_or(last, |level| Some(level.largest)),
            ..report::Level::default()
        }
    };
    let made = hierarchy.levels.iter().map(Some).chain([None]);
    let levels = hierarchy.sizes().into_iter().zip(made).map(level).collect();
    Levels::new(near_null, constants, block as u64, levels)
}
