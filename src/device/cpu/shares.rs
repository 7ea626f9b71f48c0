//! Work shared among threads that keep to their own part of it, and help others once they are done.
//!
//! Each thread takes chunks from the front of its own range, so that it meets the same data in every pass; whoever is
//! done takes from the back of another's. A thread whose core is taken away for a while, or whose chunks cost more than
//! was expected, so holds up nobody. Each bite is a share of what is left: large at first, single chunks at the end.

use super::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// What is done with neighbouring chunks.
pub(super) type Stretch<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// What is left of a range is taken in bites of this share of it.
const BITE: usize = 4;

/// What is left of one thread's chunks: the first in the upper half, the end in the lower one. On a line of its own.
#[repr(align(64))]
struct Left(AtomicU64);

/// What is left of every thread's chunks.
pub(super) struct Shares(Vec<Left>);

impl Shares {
    /// For so many threads.
    pub fn new(threads: usize) -> Shares {
        Shares((0..threads).map(|_| Left(AtomicU64::new(0))).collect())
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.0.len()
    }

    /// Gives each thread its range; no thread may be at work. Chunks are numbered in 32 bits.
    pub fn deal(&self, range: impl Fn(usize) -> Range<usize>) {
        for (thread, left) in self.0.iter().enumerate() {
            left.0.store(packed(range(thread)), Ordering::Relaxed);
        }
    }

    /// All that one thread does, its own chunks first.
    pub fn work(&self, thread: usize, work: &Stretch<'_>) {
        while let Some(bite) = self.0[thread].take(|left, bite| left.start..left.start + bite) {
            work(bite);
        }
        for other in 1..self.0.len() {
            let other = &self.0[(thread + other) % self.0.len()];
            while let Some(bite) = other.take(|left, bite| left.end - bite..left.end) {
                work(bite);
            }
        }
    }
}

impl Left {
    /// Takes a bite off one end. Nothing else is published by these numbers, so their order is free.
    fn take(&self, bite: impl Fn(&Range<usize>, usize) -> Range<usize>) -> Option<Range<usize>> {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let left = unpacked(now);
            if left.is_empty() {
                return None;
            }
            let taken = bite(&left, left.len().div_ceil(BITE));
            let rest = if taken.start == left.start { taken.end..left.end } else { left.start..taken.start };
            match self.0.compare_exchange_weak(now, packed(rest), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(taken),
                Err(changed) => now = changed,
            }
        }
    }
}

fn packed(range: Range<usize>) -> u64 {
    (range.start as u64) << 32 | range.end as u64
}

fn unpacked(left: u64) -> Range<usize> {
    (left >> 32) as usize..left as u32 as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_worked_on_once_whoever_comes_first() {
        let rounds = if cfg!(miri) { 2 } else { 50 };
        for (threads, chunks) in [(1, 5), (2, 1000), (3, 7), (5, 4001), (4, 0)] {
            let shares = Shares::new(threads);
            let counts: Vec<_> = (0..chunks).map(|_| AtomicU64::new(0)).collect();
            for round in 0..rounds {
                shares.deal(|thread| chunks * thread / threads..chunks * (thread + 1) / threads);
                std::thread::scope(|scope| {
                    // One thread alone does the work of all; others that come later find nothing left, or help.
                    for thread in 0..if round % 2 == 0 { 1 } else { threads } {
                        let (shares, counts) = (&shares, &counts);
                        scope.spawn(move || {
                            shares.work(thread, &|chunks| {
                                for chunk in chunks {
                                    counts[chunk].fetch_add(1, Ordering::Relaxed);
                                }
                            });
                        });
                    }
                });
            }
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == rounds), "{threads} {chunks}");
        }
    }
}
