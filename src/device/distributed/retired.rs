//! Resources that other ranks may still use when this rank no longer does, as memory that
//! their processes have opened.

use super::communicator::Ranks;
use crate::error::Result;
use crate::parallel::lock;
use std::collections::HashSet;
use std::sync::Mutex;

/// The resources of this process that have been retired and not yet returned. Each has a name,
/// which all ranks know it by.
pub(crate) struct Retired<T>(Mutex<Vec<Entry<T>>>);

struct Entry<T> {
    /// The rank that has retired the resource.
    rank: usize,
    name: u64,
    resource: T,
}

impl<T> Default for Retired<T> {
    fn default() -> Retired<T> {
        Retired::new()
    }
}

impl<T> Retired<T> {
    /// Makes an empty list.
    pub(crate) const fn new() -> Retired<T> {
        Retired(Mutex::new(Vec::new()))
    }

    /// Adds a resource that a rank no longer uses.
    pub(crate) fn push(&self, rank: usize, name: u64, resource: T) {
        lock(&self.0).push(Entry { rank, name, resource });
    }

    /// Removes and returns the resources of this rank that every rank has retired by these names. All
    /// ranks call this together.
    pub(crate) fn unused(&self, ranks: &Ranks) -> Result<Vec<T>> {
        let here = ranks.rank();
        let mine: Vec<u64> =
            lock(&self.0).iter().filter(|entry| entry.rank == here).map(|entry| entry.name).collect();
        let of_ranks = ranks.swap(&vec![mine; ranks.size()])?;
        let of_ranks: Vec<HashSet<u64>> =
            of_ranks.into_iter().map(|names| names.into_iter().collect()).collect();
        let everywhere = |entry: &mut Entry<T>| {
            entry.rank == here && of_ranks.iter().all(|names| names.contains(&entry.name))
        };
        Ok(lock(&self.0).extract_if(.., everywhere).map(|entry| entry.resource).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::distributed::in_threads;

    #[test]
    fn a_resource_is_returned_once_all_ranks_have_retired_it() {
        let retired = Retired::new();
        let all = in_threads(3, |ranks| {
            let rank = ranks.rank();
            let retire =
                |names: &[u64]| names.iter().for_each(|name| retired.push(rank, *name, (rank, *name)));
            let mut found = Vec::new();
            // The ranks retire the resources 5, 6 and 7 in different rounds; 7 is never
            // retired by the last rank.
            for round in [[&[5, 7][..], &[6]], [&[6], &[5, 7]], [&[5], &[6]]][rank] {
                retire(round);
                found.push(retired.unused(ranks)?);
            }
            retire(&[8]);
            found.push(retired.unused(ranks)?);
            Ok(found)
        });
        for (rank, found) in all.into_iter().enumerate() {
            let of_rank = |names: &[u64]| names.iter().map(|name| (rank, *name)).collect::<Vec<_>>();
            let mut found = found.unwrap();
            found[1].sort_unstable();
            assert_eq!(found, [of_rank(&[]), of_rank(&[5, 6]), of_rank(&[8])]);
        }
        assert_eq!(lock(&retired.0).len(), 2);
    }
}
