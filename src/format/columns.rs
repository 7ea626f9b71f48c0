//! Column indices that are in memory, or that are computed when they are first read.

use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

/// The column indices of a pattern.
pub(super) enum Columns {
    Ready(Vec<u32>),
    /// The function, and the number of indices that it returns.
    Later(LazyLock<Vec<u32>, Later>, usize),
}

/// A function that computes column indices.
pub(super) type Later = Box<dyn FnOnce() -> Vec<u32> + Send>;

impl Columns {
    /// Wraps a function that computes `len` indices at the first use.
    pub(crate) fn later(len: usize, later: Later) -> Columns {
        Columns::Later(LazyLock::new(later), len)
    }

    /// Returns the number of indices. Computes none.
    pub(crate) fn len(&self) -> usize {
        match self {
            Columns::Ready(columns) => columns.len(),
            Columns::Later(_, len) => *len,
        }
    }

    /// Returns whether the indices are in memory from the start.
    pub(crate) fn are_ready(&self) -> bool {
        matches!(self, Columns::Ready(_))
    }

    /// Returns the indices without a copy if they are in memory.
    pub(crate) fn into_vec(self) -> Vec<u32> {
        match self {
            Columns::Ready(columns) => columns,
            Columns::Later(..) => self.to_vec(),
        }
    }
}

impl Deref for Columns {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        match self {
            Columns::Ready(columns) => columns,
            Columns::Later(columns, _) => columns,
        }
    }
}

impl From<Vec<u32>> for Columns {
    fn from(columns: Vec<u32>) -> Columns {
        Columns::Ready(columns)
    }
}

impl Clone for Columns {
    fn clone(&self) -> Columns {
        Columns::Ready(self.to_vec())
    }
}

impl PartialEq for Columns {
    fn eq(&self, other: &Columns) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Columns::Ready(columns) => columns.fmt(f),
            Columns::Later(_, len) => write!(f, "{len} column indices"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn later_columns_are_computed_once_at_the_first_read_and_not_for_their_number() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let columns = Columns::later(
            3,
            Box::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                vec![4, 0, 7]
            }),
        );
        assert_eq!((columns.len(), calls.load(Ordering::Relaxed)), (3, 0));
        assert_eq!(format!("{columns:?}"), "3 column indices");
        assert_eq!((columns[0], &columns[1..]), (4, &[0, 7][..]));
        assert_eq!(columns, Columns::from(vec![4, 0, 7]));
        assert_eq!((columns.clone().into_vec(), calls.load(Ordering::Relaxed)), (vec![4, 0, 7], 1));
    }
}
