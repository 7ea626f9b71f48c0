//! Ranks that are threads of one process.

use solver::device::Ranks;
use solver::device::distributed::{Communicator, Incoming, Outgoing};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;

/// Messages from a rank to a rank that nobody has received yet.
type Messages = HashMap<(usize, usize), VecDeque<Vec<u8>>>;

struct Shared {
    parts: Mutex<Vec<Vec<u8>>>,
    barrier: Barrier,
    messages: Mutex<Messages>,
    arrived: Condvar,
}

struct Thread {
    rank: usize,
    size: usize,
    shared: Arc<Shared>,
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) {
        self.shared.parts.lock().unwrap()[self.rank] = mine.to_vec();
        self.shared.barrier.wait();
        all.copy_from_slice(&self.shared.parts.lock().unwrap().concat());
        self.shared.barrier.wait();
    }

    fn exchange(&self, sent: &[Outgoing<'_>], received: &mut [Incoming<'_>], meanwhile: &mut dyn FnMut()) {
        for (to, message) in sent {
            let mut messages = self.shared.messages.lock().unwrap();
            messages.entry((self.rank, *to)).or_default().push_back(message.to_vec());
            self.shared.arrived.notify_all();
        }
        meanwhile();
        for (from, buffer) in received {
            let mut messages = self.shared.messages.lock().unwrap();
            let message = loop {
                match messages.get_mut(&(*from, self.rank)).and_then(VecDeque::pop_front) {
                    Some(message) => break message,
                    None => messages = self.shared.arrived.wait(messages).unwrap(),
                }
            };
            buffer.copy_from_slice(&message);
        }
    }
}

/// Runs `work` on each of several ranks and returns the results in the order of ranks.
pub fn over_ranks<R: Send>(size: usize, work: impl Fn(&Ranks) -> R + Sync) -> Vec<R> {
    let shared = Arc::new(Shared {
        parts: Mutex::new(vec![Vec::new(); size]),
        barrier: Barrier::new(size),
        messages: Mutex::default(),
        arrived: Condvar::new(),
    });
    let ranks = |rank| Ranks::new(Thread { rank, size, shared: Arc::clone(&shared) });
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                let ranks = ranks(rank);
                scope.spawn(move || work(&ranks))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
