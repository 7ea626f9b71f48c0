//! Renumbers the vertices of a graph whose ids have gaps: consecutive numbers from 0, in the
//! order of the ids.

use crate::error::Result;
use crate::format::Coo;
use crate::parallel::{grow, room, zeros};
use rayon::prelude::*;

/// Largest id per edge up to which a bitmap of the ids is less work than sorting them.
const DENSE: usize = 64;
/// Elements per parallel task.
const PIECE: usize = 1 << 16;

/// Numbers the vertices that edges name consecutively from 0 and returns the id of each vertex. Returns
/// `None` and changes no edge if the ids have no gaps.
pub(crate) fn close_gaps(edges: &mut Coo) -> Result<Option<Vec<u32>>> {
    let Some(&largest) = edges.row_indices.iter().chain(&edges.col_indices).max() else { return Ok(None) };
    let range = largest as usize + 1;
    if largest as usize / DENSE > edges.row_indices.len() {
        let ids = sorted(edges)?;
        renumber(edges, |id| ids.partition_point(|&other| other < id) as u32);
        return Ok(Some(ids));
    }
    let bits = Bits::new(edges, largest)?;
    let ids = bits.ids()?;
    if ids.len() == range {
        return Ok(None);
    }
    renumber(edges, |id| bits.rank(id));
    Ok(Some(ids))
}

fn renumber(edges: &mut Coo, number: impl Fn(u32) -> u32 + Sync) {
    for indices in [&mut edges.row_indices, &mut edges.col_indices] {
        indices.par_chunks_mut(PIECE).for_each(|piece| piece.iter_mut().for_each(|id| *id = number(*id)));
    }
}

/// Sorts the distinct ids. Each step adds at most as many ids as were found before, so the buffer stays
/// small if edges repeat ids.
fn sorted(edges: &Coo) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    for mut indices in [&edges.row_indices[..], &edges.col_indices] {
        while !indices.is_empty() {
            let (next, rest) = indices.split_at(indices.len().min(ids.len().max(PIECE)));
            grow(&mut ids, next.len())?;
            ids.extend_from_slice(next);
            ids.par_sort_unstable();
            ids.dedup();
            indices = rest;
        }
    }
    ids.shrink_to_fit();
    Ok(ids)
}

/// A bitmap of the ids that edges name, with the number of set bits before each word.
struct Bits {
    words: Vec<u64>,
    before: Vec<u32>,
}

impl Bits {
    fn new(edges: &Coo, largest: u32) -> Result<Bits> {
        let mut words = zeros::<u64>(largest as usize / 64 + 1)?;
        for &id in edges.row_indices.iter().chain(&edges.col_indices) {
            words[id as usize / 64] |= 1 << (id % 64);
        }
        Bits::of(words)
    }

    fn of(words: Vec<u64>) -> Result<Bits> {
        let mut before = room(words.len())?;
        let mut count = 0;
        for word in &words {
            before.push(count);
            count += word.count_ones();
        }
        Ok(Bits { words, before })
    }

    /// Counts the named ids below `id`.
    fn rank(&self, id: u32) -> u32 {
        let word = id as usize / 64;
        self.before[word] + (self.words[word] & ((1 << (id % 64)) - 1)).count_ones()
    }

    fn ids(&self) -> Result<Vec<u32>> {
        let mut ids = room(self.words.iter().map(|word| word.count_ones() as usize).sum())?;
        for (index, &word) in self.words.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                ids.push(index as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        Ok(ids)
    }
}

/// The ids that edges name, collected while the edges are read.
#[derive(Default)]
pub(super) struct Collected(Vec<u64>);

impl Collected {
    /// Returns one more than the largest id that is collected from a file of this size: the bitmap
    /// takes at most as many bytes.
    pub(crate) fn most(bytes: usize) -> u64 {
        /// Bytes of a bitmap for any file.
        const FREE: usize = 64 << 20;
        8 * bytes.max(FREE) as u64
    }

    /// Makes room for the ids up to the largest one.
    pub(crate) fn make_room(&mut self, largest: u32) -> Result<()> {
        let words = largest as usize / 64 + 1;
        if let Some(more) = words.checked_sub(self.0.len()).filter(|more| *more > 0) {
            grow(&mut self.0, more)?;
            self.0.resize(words, 0);
        }
        Ok(())
    }

    /// Adds an id for which there is room.
    pub(crate) fn add(&mut self, id: u32) {
        self.0[id as usize / 64] |= 1 << (id % 64);
    }

    /// Numbers the ids.
    pub(crate) fn numbered(self) -> Result<Seen> {
        let largest = self.0.iter().rposition(|word| *word > 0);
        let largest = largest.map_or(0, |at| 64 * at + 64 - self.0[at].leading_zeros() as usize);
        let bits = Bits::of(self.0)?;
        let last = bits.words.len().checked_sub(1);
        let count =
            last.map_or(0, |last| bits.before[last] as usize + bits.words[last].count_ones() as usize);
        Ok(Seen { bits, range: largest, count })
    }
}

/// All ids that edges name, numbered from 0 in their order.
pub(super) struct Seen {
    bits: Bits,
    /// One more than the largest id.
    range: usize,
    count: usize,
}

impl Seen {
    /// Returns how many ids there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns whether an id up to the largest one is missing.
    pub(crate) fn has_gaps(&self) -> bool {
        self.count < self.range
    }

    /// Returns the number of an id, if it is one of them.
    pub(crate) fn number(&self, id: u32) -> Option<u32> {
        let word = self.bits.words.get(id as usize / 64)?;
        (word >> (id % 64) & 1 == 1).then(|| self.bits.rank(id))
    }

    /// Returns the ids in their order.
    pub(crate) fn ids(&self) -> Result<Vec<u32>> {
        self.bits.ids()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(rows: &[u32], cols: &[u32]) -> (Vec<u32>, Vec<u32>, Option<Vec<u32>>) {
        let mut edges = Coo { row_indices: rows.to_vec(), col_indices: cols.to_vec(), ..Coo::default() };
        let ids = close_gaps(&mut edges).unwrap();
        (edges.row_indices, edges.col_indices, ids)
    }

    #[test]
    fn vertices_are_numbered_in_the_order_of_their_ids() {
        let (rows, cols, ids) = closed(&[7, 100, 7], &[3, 7, 64]);
        assert_eq!((rows, cols), (vec![1, 3, 1], vec![0, 1, 2]));
        assert_eq!(ids.unwrap(), [3, 7, 64, 100]);
        let (rows, cols, ids) = closed(&[4_000_000_000], &[5]);
        assert_eq!((rows, cols, ids.unwrap()), (vec![1], vec![0], vec![5, 4_000_000_000]));
    }

    #[test]
    fn collected_ids_are_numbered_in_their_order() {
        let collected = |ids: &[u32]| {
            let mut collected = Collected::default();
            for id in ids {
                collected.make_room(*id).unwrap();
                collected.add(*id);
            }
            collected.numbered().unwrap()
        };
        let seen = collected(&[7, 100, 7, 3, 64]);
        assert_eq!((seen.ids().unwrap(), seen.count(), seen.has_gaps()), (vec![3, 7, 64, 100], 4, true));
        let numbers: Vec<_> = [3, 7, 64, 100, 4, 101, 5000].map(|id| seen.number(id)).into();
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3), None, None, None]);
        let seen = collected(&(0..130).rev().collect::<Vec<_>>());
        assert_eq!((seen.count(), seen.has_gaps(), seen.number(129)), (130, false, Some(129)));
        assert_eq!(collected(&[]).count(), 0);
    }

    #[test]
    fn ids_without_gaps_stay_unchanged() {
        assert_eq!(closed(&[0, 2], &[1, 1]), (vec![0, 2], vec![1, 1], None));
        assert_eq!(closed(&[], &[]), (vec![], vec![], None));
    }
}
