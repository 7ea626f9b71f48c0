//! What the vertices of a graph, or the states of a chain, are called.

use crate::source::Loaded;

/// The ids of rows: listed, or counted from the first.
pub(super) struct Ids {
    listed: Option<Vec<u32>>,
    first: u32,
}

impl Ids {
    /// Takes the ids of what was loaded; rows of what has none are counted from `first`.
    pub fn of(loaded: &mut Loaded, first: u32) -> Ids {
        Ids { listed: loaded.ids.take(), first: loaded.first_id.unwrap_or(first) }
    }

    /// The id of a row.
    pub fn id(&self, row: usize) -> u64 {
        self.listed.as_ref().map_or(row as u64 + u64::from(self.first), |ids| ids[row].into())
    }

    /// The row with that id among `n`.
    pub fn row(&self, id: u64, n: usize) -> Option<usize> {
        match &self.listed {
            None => {
                let row = id.checked_sub(self.first.into())?;
                usize::try_from(row).ok().filter(|row| *row < n)
            }
            Some(ids) => ids.binary_search(&u32::try_from(id).ok()?).ok(),
        }
    }
}
