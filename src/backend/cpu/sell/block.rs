//! The cut of a slice into a block of eight interleaved rows and a rest of separate entries: the cut
//! that takes the fewest bytes.

use super::LANES;
use std::ops::Range;

/// Number of columns that a 16-bit offset can address.
const WINDOW: u32 = 1 << 16;

/// The interleaved block of a slice; the remaining entries of each row form the slice's rest.
#[derive(Clone)]
pub(super) struct Block {
    pub width: usize,
    /// The base column: at most the lowest column.
    pub low: u32,
    pub near: bool,
    /// The entries of each lane's row that belong to the block.
    pub lanes: [Range<usize>; LANES],
}

impl Block {
    /// Returns the block that holds the rows entirely.
    pub(crate) fn of_whole_rows(columns: &[&[u32]; LANES]) -> Block {
        let low = columns.iter().filter_map(|c| c.first()).copied().min().unwrap_or(0);
        let high = columns.iter().filter_map(|c| c.last()).copied().max().unwrap_or(0);
        let lanes = columns.map(|c| 0..c.len());
        let width = lanes.iter().map(Range::len).max().unwrap_or(0);
        Block { width, low, near: high - low < WINDOW, lanes }
    }

    /// Returns the block of the entries inside a 16-bit window around the middle of the longest row.
    fn window(columns: &[&[u32]; LANES]) -> Block {
        let longest = columns.iter().max_by_key(|c| c.len()).copied().unwrap_or_default();
        let low = longest.get(longest.len() / 2).map_or(0, |middle| middle.saturating_sub(WINDOW / 2));
        let lanes = columns.map(|c| {
            c.partition_point(|&column| column < low)
                ..c.partition_point(|&column| u64::from(column) < u64::from(low) + u64::from(WINDOW))
        });
        let width = lanes.iter().map(Range::len).max().unwrap_or(0);
        Block { width, low, near: true, lanes }
    }

    /// Returns the block with at most `width` entries of each lane.
    fn cut(&self, width: usize) -> Block {
        let lanes = self.lanes.clone().map(|lane| lane.start..lane.end.min(lane.start + width));
        Block { width, lanes, ..*self }
    }

    /// Returns the number of entries in the block.
    pub(crate) fn entries(&self) -> usize {
        self.lanes.iter().map(Range::len).sum()
    }

    fn column_bytes(&self) -> f64 {
        if self.near { 2.0 } else { 4.0 }
    }

    /// Returns the bytes of columns and values, `value` bytes each, of a slice whose rows have
    /// `entries` entries in total.
    fn bytes(&self, entries: usize, value: f64) -> f64 {
        let rest = entries - self.entries();
        let head = if rest > 0 { (2 * LANES * size_of::<u32>()) as f64 } else { 0.0 };
        head + (self.width * LANES) as f64 * (self.column_bytes() + value) + rest as f64 * (4.0 + value)
    }

    /// Returns a lower bound on the bytes of every cut of this block: those of a cut without padding.
    fn fewest_bytes(&self, entries: usize, value: f64) -> f64 {
        let inside = self.entries();
        inside as f64 * (self.column_bytes() + value) + (entries - inside) as f64 * (4.0 + value)
    }

    /// Returns the block with the fewest bytes; the whole rows unless another block saves enough.
    pub(crate) fn of(columns: &[&[u32]; LANES], value: f64) -> Block {
        /// A rest is worth it only if the bytes fall below this share: the entries of a rest
        /// are added one by one.
        const WORTH: f64 = 0.875;
        let whole = Block::of_whole_rows(columns);
        let (entries, padded) = (whole.entries(), whole.width * LANES);
        if whole.near && entries as f64 >= WORTH * padded as f64 {
            return whole;
        }
        let window = if whole.near { None } else { Some(Block::window(columns)) };
        let (mut fewest, mut best) = (WORTH * whole.bytes(entries, value), whole.clone());
        for block in window.iter().chain([&whole]) {
            if block.fewest_bytes(entries, value) >= fewest {
                continue;
            }
            for width in block.lanes.iter().map(Range::len).chain([0]) {
                let cut = block.cut(width);
                let (bytes, stored) = (cut.bytes(entries, value), width * LANES + entries - cut.entries());
                if bytes < fewest && stored <= padded {
                    (fewest, best) = (bytes, cut);
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::generate::random::Random;

    fn row(columns: impl IntoIterator<Item = u32>) -> Vec<u32> {
        columns.into_iter().collect()
    }

    fn of(rows: &[Vec<u32>; LANES], value: f64) -> Block {
        Block::of(&rows.each_ref().map(|row| &row[..]), value)
    }

    #[test]
    fn no_cut_of_a_block_has_fewer_bytes_than_the_lower_bound() {
        for case in 0..200_u64 {
            let random = |lane: usize, j: usize| Random::at(case, (lane * 1000 + j) as u64).bits();
            let spread = [100, 60_000, 1_000_000][case as usize % 3];
            let rows: [_; LANES] = std::array::from_fn(|lane| {
                let mut columns: Vec<u32> =
                    (0..random(lane, 999) % 40).map(|j| (random(lane, j as usize) % spread) as u32).collect();
                columns.sort_unstable();
                columns
            });
            let columns = rows.each_ref().map(|row| &row[..]);
            let whole = Block::of_whole_rows(&columns);
            let entries = whole.entries();
            for block in [&whole, &Block::window(&columns)] {
                for (width, value) in (0..=block.width).flat_map(|width| [(width, 0.0), (width, 8.0)]) {
                    let bytes = block.cut(width).bytes(entries, value);
                    assert!(bytes >= block.fewest_bytes(entries, value), "{case}, {width}, {value}");
                }
            }
        }
    }

    #[test]
    fn rows_of_similar_length_with_near_columns_leave_no_rest() {
        let rows = std::array::from_fn(|lane| row((0..20 + lane as u32 % 2).map(|j| 3000 * j)));
        let block = of(&rows, 0.0);
        assert_eq!((block.width, block.near, block.entries()), (21, true, 164));
    }

    #[test]
    fn the_end_of_a_row_far_longer_than_the_others_goes_to_the_rest() {
        let rows: [_; LANES] = std::array::from_fn(|lane| row(0..if lane == 5 { 900 } else { 10 }));
        for value in [0.0, 8.0] {
            let block = of(&rows, value);
            assert_eq!((block.width, block.entries()), (10, 80));
            assert_eq!(block.lanes[5], 0..10);
        }
    }

    #[test]
    fn a_few_columns_far_from_the_others_go_to_the_rest_on_both_sides() {
        let rows = std::array::from_fn(|lane| {
            let (before, after) = if lane == 3 { (Some(7), Some(9_000_000)) } else { (None, None) };
            row(before.into_iter().chain((0..30).map(|j| 500_000 + 10 * j)).chain(after))
        });
        let block = of(&rows, 0.0);
        assert_eq!((block.width, block.near, block.entries()), (30, true, 240));
        assert_eq!(block.lanes[3], 1..31);
        assert!(
            rows.iter()
                .flatten()
                .all(|&c| !(500_000..=600_000).contains(&c) || (block.low..block.low + WINDOW).contains(&c))
        );
    }

    #[test]
    fn scattered_columns_stay_in_the_block() {
        let rows = std::array::from_fn(|lane| row((0..30).map(|j| 1_000_000 * j + lane as u32)));
        let block = of(&rows, 8.0);
        assert_eq!((block.width, block.near, block.entries()), (30, false, 240));
        assert_eq!(of(&[const { Vec::new() }; LANES], 0.0).width, 0);
    }
}
