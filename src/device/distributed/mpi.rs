//! The processes that an MPI launcher has started.

use super::communicator::{Communicator, Incoming, Outgoing};
use crate::parallel::lock;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::request::{multiple_scope, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

/// The longest message; MPI counts bytes in 32 bits.
const MOST: usize = 1 << 30;
/// The tag of messages about failures.
const FAILURE: i32 = 7;
/// Bytes of such a message, short enough that it is sent without waiting for its receiver.
const FAILURE_BYTES: usize = 2048;
/// The time that a failed rank waits for the failures of other ranks.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The time between two looks of a watching thread.
const LOOK: Duration = Duration::from_millis(20);
/// Tests for the end of a call without pauses, and the pause after that many.
const EAGER: usize = 100;
const PAUSE: Duration = Duration::from_micros(50);

/// The MPI library, initialised for this process.
#[derive(Clone)]
pub struct Mpi(Arc<World>);

struct World {
    universe: Mutex<Option<Universe>>,
    rank: usize,
    size: usize,
    /// Whether another thread than that of the solve may call MPI.
    serialized: bool,
    /// Whether a thread watches this process; see [`Mpi::watched`].
    watched: AtomicBool,
    /// Held during each call of MPI while a thread watches.
    calling: Mutex<()>,
}

impl World {
    fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// Calls MPI while the watching thread does not.
    fn call<R>(&self, work: impl FnOnce() -> R) -> R {
        let _calling = lock(&self.calling);
        work()
    }

    /// Waits until `done` returns true, and lets the watching thread call MPI between the calls of `done`.
    fn wait_until(&self, mut done: impl FnMut() -> bool) {
        let mut tests = 0;
        while !self.call(&mut done) {
            tests += 1;
            if tests < EAGER { yield_now() } else { sleep(PAUSE) }
        }
    }
}

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl Mpi {
    /// Initialises MPI; `None` if it has been initialised already.
    pub(crate) fn start() -> Option<Mpi> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)?;
        let serialized = threading >= Threading::Serialized;
        let (rank, size) = (universe.world().rank() as usize, universe.world().size() as usize);
        let (universe, calling) = (Mutex::new(Some(universe)), Mutex::new(()));
        Some(Mpi(Arc::new(World {
            universe,
            rank,
            size,
            serialized,
            watched: AtomicBool::new(false),
            calling,
        })))
    }

    /// Lets another thread end this process, by [`end_when`](Mpi::end_when), until
    /// [`unwatched`](Mpi::unwatched). No call of MPI blocks meanwhile. All ranks call both functions at the
    /// same place, because a call that blocks does not match one that does not. Returns false, and changes
    /// nothing, if this MPI does not let another thread call it.
    pub(crate) fn watched(&self) -> bool {
        self.0.watched.store(self.0.serialized, Ordering::Release);
        self.0.serialized
    }

    /// Ends what [`watched`](Mpi::watched) has begun.
    pub(crate) fn unwatched(&self) {
        // The watching thread keeps the lock if it ends the process.
        self.0.call(|| self.0.watched.store(false, Ordering::Release));
    }

    /// Waits until `stop` is set, and then calls `end`, which ends this process, with whether another rank
    /// has failed. Returns once the process is no longer watched.
    pub(crate) fn end_when(&self, stop: &AtomicBool, end: impl FnOnce(bool)) {
        while self.0.is_watched() {
            sleep(LOOK);
            if !stop.load(Ordering::Relaxed) {
                continue;
            }
            let _calling = lock(&self.0.calling);
            if !self.0.is_watched() {
                return;
            }
            // The launcher ends this rank if another one fails. That rank has sent its message.
            let has_failed = || world().any_process().immediate_probe_with_tag(FAILURE).is_some();
            return end((0..10).any(|_| {
                sleep(Duration::from_millis(2));
                has_failed()
            }));
        }
    }

    /// Waits for all ranks, and finalises MPI. Nothing may be exchanged afterwards.
    pub(crate) fn finish(&self) {
        self.unwatched();
        world().barrier();
        drop(lock(&self.0.universe).take());
    }

    /// Tells the other ranks why this one has failed. Returns the messages of all ranks in their order; a
    /// rank that has not failed within a second or two has none, and must be ended.
    pub(crate) fn fail(&self, message: &str) -> Vec<Option<String>> {
        self.unwatched();
        let mut sent = [0; FAILURE_BYTES];
        let length = message.floor_char_boundary(FAILURE_BYTES);
        sent[..length].copy_from_slice(&message.as_bytes()[..length]);
        let others = || (0..self.0.size).filter(|rank| *rank != self.0.rank);
        for rank in others() {
            world().process_at_rank(rank as i32).send_with_tag(&sent[..], FAILURE);
        }
        let mut messages: Vec<Option<String>> = vec![None; self.0.size];
        messages[self.0.rank] = Some(message.to_owned());
        // The first rank that gives up ends the others.
        let patience = PATIENCE + Duration::from_millis(200) * self.0.rank.min(20) as u32;
        let began = Instant::now();
        while messages.iter().any(Option::is_none) {
            if began.elapsed() > patience {
                break;
            }
            let world = world();
            for rank in others() {
                let process = world.process_at_rank(rank as i32);
                if messages[rank].is_none() && process.immediate_probe_with_tag(FAILURE).is_some() {
                    let mut received = [0_u8; FAILURE_BYTES];
                    process.receive_into_with_tag(&mut received[..], FAILURE);
                    let text = String::from_utf8_lossy(&received);
                    messages[rank] = Some(text.trim_end_matches('\0').to_owned());
                }
            }
            sleep(Duration::from_millis(1));
        }
        messages
    }

    /// Ends the processes of all ranks with an exit code.
    pub(crate) fn end_all(&self, code: i32) -> ! {
        world().abort(code)
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.0.rank
    }

    fn size(&self) -> usize {
        self.0.size
    }

    fn all_gather(&self, mine: &[u8], all: &mut [u8]) {
        if !self.0.is_watched() {
            return world().all_gather_into(mine, all);
        }
        scope(|scope| {
            let mut request = Some(self.0.call(|| world().immediate_all_gather_into(scope, mine, all)));
            self.0.wait_until(|| {
                request = request.take().and_then(|request| request.test().err());
                request.is_none()
            });
        });
    }

    fn exchange(&self, sent: &[Outgoing<'_>], received: &mut [Incoming<'_>], meanwhile: &mut dyn FnMut()) {
        let world = world();
        multiple_scope(sent.len() + received.len(), |scope, requests| {
            let start = || {
                for (rank, buffer) in received {
                    let process = world.process_at_rank(*rank as i32);
                    for portion in buffer.chunks_mut(MOST) {
                        requests.add(process.immediate_receive_into(scope, portion));
                    }
                }
                for (rank, message) in sent {
                    let process = world.process_at_rank(*rank as i32);
                    for portion in message.chunks(MOST) {
                        requests.add(process.immediate_send(scope, portion));
                    }
                }
            };
            let mut completed = Vec::with_capacity(sent.len() + 1);
            if self.0.is_watched() {
                self.0.call(start);
                meanwhile();
                return self.0.wait_until(|| requests.test_all(&mut completed));
            }
            start();
            meanwhile();
            requests.wait_all(&mut completed);
        });
    }
}
