//! Work stealing among threads that each have a range of chunks.
//!
//! Each thread takes chunks from the front of its own range, so that it works on the same data in every pass.
//! A thread that is done takes chunks from the back of another thread's range. So a thread that loses its
//! core for a while, or whose chunks cost more than expected, does not delay the pass. Each time a thread
//! takes a fixed fraction of the remaining range: many chunks at first, single chunks at the end.

use super::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// The work on a range of neighbouring chunks.
pub(crate) type Stretch<'a> = dyn Fn(Range<usize>) + Sync + 'a;

/// A thread takes the remaining range divided by this, rounded up.
const DIVISOR: usize = 4;

/// The remaining range of one thread: its start in the upper 32 bits, its end in the lower 32.
/// On a separate cache line.
#[repr(align(64))]
struct Left(AtomicU64);

/// The remaining ranges of all threads.
pub(super) struct Shares(Vec<Left>);

impl Shares {
    /// Makes an empty range for each thread.
    pub(crate) fn new(threads: usize) -> Shares {
        Shares((0..threads).map(|_| Left(AtomicU64::new(0))).collect())
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.0.len()
    }

    /// Gives each thread its range. No thread may be at work. Chunk numbers have 32 bits.
    pub(crate) fn deal(&self, range: impl Fn(usize) -> Range<usize>) {
        for (thread, left) in self.0.iter().enumerate() {
            left.0.store(packed(range(thread)), Ordering::Relaxed);
        }
    }

    /// Runs the share of one thread: the chunks of its own range, then chunks of other ranges.
    pub(crate) fn work(&self, thread: usize, work: &Stretch<'_>) {
        while let Some(chunks) = self.0[thread].take(|left, count| left.start..left.start + count) {
            work(chunks);
        }
        for distance in 1..self.0.len() {
            let other = &self.0[(thread + distance) % self.0.len()];
            while let Some(chunks) = other.take(|left, count| left.end - count..left.end) {
                work(chunks);
            }
        }
    }
}

impl Left {
    /// Takes the chunks that `select` chooses at one end of the range. The range publishes no other data, so
    /// its loads and stores are relaxed.
    fn take(&self, select: impl Fn(&Range<usize>, usize) -> Range<usize>) -> Option<Range<usize>> {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let left = unpacked(now);
            if left.is_empty() {
                return None;
            }
            let chunks = select(&left, left.len().div_ceil(DIVISOR));
            let rest =
                if chunks.start == left.start { chunks.end..left.end } else { left.start..chunks.start };
            match self.0.compare_exchange_weak(now, packed(rest), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(chunks),
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
    fn every_chunk_is_worked_on_once_in_any_order_of_threads() {
        let rounds = if cfg!(miri) { 2 } else { 50 };
        for (threads, chunks) in [(1, 5), (2, 1000), (3, 7), (5, 4001), (4, 0)] {
            let shares = Shares::new(threads);
            let counts: Vec<_> = (0..chunks).map(|_| AtomicU64::new(0)).collect();
            for round in 0..rounds {
                shares.deal(|thread| chunks * thread / threads..chunks * (thread + 1) / threads);
                std::thread::scope(|scope| {
                    // In even rounds one thread does all the work. In odd rounds a thread that starts late
                    // takes chunks of other ranges or finds none.
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
