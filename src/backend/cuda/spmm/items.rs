//! Rows as items of work, with long rows cut into pieces.

/// The slot of an item that is a whole row.
const WHOLE: u32 = u32::MAX;
/// Units (quads of entries, or blocks) of the shortest piece of a row.
const SHORTEST: usize = 128;
/// The most pieces of a row: adding them takes as many steps.
const PIECES: usize = 64;
/// A row is cut if it has this multiple of the mean length.
const LONG: usize = 8;
/// Items are sorted if the longest row has this multiple of the mean length.
const UNEVEN: usize = 3;

/// The items of work of a matrix, in the layout of kernels/spmm.
pub(super) struct Items {
    /// Row, range of units, and slot of each item.
    pub list: Vec<[u32; 4]>,
    /// Of each row in pieces: the row, its first slot, its pieces, and the slots between two of them.
    pub cut_rows: Vec<[u32; 4]>,
    /// Number of slots.
    pub slots: usize,
    /// Mean units of a row.
    pub mean: usize,
}

/// Makes the items of rows that begin at these offsets; a row has `height` rows of C, and `cut_rows` lists
/// each of these. C has `rows_of_c` rows: the last row may reach beyond them.
pub(super) fn item_list(offsets: &[u32], height: usize, rows_of_c: usize) -> Items {
    let rows = offsets.len() - 1;
    let length = |row: usize| (offsets[row + 1] - offsets[row]) as usize;
    let mean = (offsets[rows] as usize).div_ceil(rows.max(1));
    let longest = (0..rows).map(length).max().unwrap_or(0);
    let limit = (LONG * mean).max(2 * SHORTEST);
    let mut items = Items { list: Vec::with_capacity(rows), cut_rows: Vec::new(), slots: 0, mean };
    for row in 0..rows {
        if length(row) <= limit {
            items.list.push([row as u32, offsets[row], offsets[row + 1], WHOLE]);
            continue;
        }
        let piece = SHORTEST.max(length(row).div_ceil(PIECES));
        let count = length(row).div_ceil(piece);
        for i in 0..count {
            let begin = offsets[row] + (i * piece) as u32;
            let end = offsets[row + 1].min(begin.saturating_add(piece as u32));
            items.list.push([row as u32, begin, end, (items.slots + i * height) as u32]);
        }
        for r in 0..height.min(rows_of_c - row * height) {
            items.cut_rows.push([
                (row * height + r) as u32,
                (items.slots + r) as u32,
                count as u32,
                height as u32,
            ]);
        }
        items.slots += count * height;
    }
    if longest > UNEVEN * mean.max(1) {
        items.list.sort_by_key(|[_, begin, end, _]| std::cmp::Reverse((end - begin).checked_ilog2()));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(lengths: &[u32]) -> Vec<u32> {
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    }

    #[test]
    fn every_unit_of_every_row_is_in_one_item() {
        for lengths in [vec![], vec![0, 0], vec![3, 0, 9000, 1, 257, 256, 40_000], vec![300; 50]] {
            let offsets = offsets(&lengths);
            let Items { mut list, cut_rows, slots, .. } = item_list(&offsets, 3, 3 * lengths.len());
            list.sort_by_key(|item| (item[0], item[1]));
            let (mut next, mut row) = (0, None);
            for [of_row, begin, end, slot] in &list {
                if row != Some(of_row) {
                    assert!(slot % 3 == 0 || *slot == WHOLE);
                    row = Some(of_row);
                }
                assert!(*begin == next && *slot != slots as u32, "{list:?}");
                next = *end;
            }
            assert_eq!(next, offsets[lengths.len()]);
            let pieces: u32 = cut_rows.iter().map(|row| row[2]).sum();
            assert_eq!(pieces as usize, slots);
            assert_eq!(list.iter().filter(|item| item[3] != WHOLE).count() * 3, slots);
        }
    }

    #[test]
    fn rows_beyond_the_end_of_c_are_not_written() {
        let lengths = [vec![1; 50], vec![1000]].concat();
        let items = item_list(&offsets(&lengths), 4, 4 * 51 - 2);
        assert_eq!(items.cut_rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [200, 201]);
    }

    #[test]
    fn long_rows_come_first_and_rows_of_about_equal_length_keep_their_order() {
        let rows = |lengths: &[u32]| -> Vec<u32> {
            item_list(&offsets(lengths), 1, lengths.len()).list.iter().map(|item| item[0]).collect()
        };
        assert_eq!(rows(&[4, 5, 6, 2]), [0, 1, 2, 3]);
        assert_eq!(rows(&[1, 40, 1, 2, 3, 1]), [1, 3, 4, 0, 2, 5]);
    }
}
