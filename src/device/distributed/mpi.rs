//! The processes that an MPI launcher has started.

use super::communicator::{Communicator, Incoming, Outgoing};
use crate::parallel::lock;
use mpi::Threading;
use mpi::environment::Universe;
use mpi::request::multiple_scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest message; MPI counts bytes in 32 bits.
const MOST: usize = 1 << 30;
/// The tag of messages about failures.
const FAILURE: i32 = 7;
/// Bytes of such a message, short enough that it is sent without waiting for its receiver.
const FAILURE_BYTES: usize = 2048;
/// The time that a failed rank waits for the failures of other ranks.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The MPI library, initialised for this process.
#[derive(Clone)]
pub struct Mpi(Arc<World>);

struct World {
    universe: Mutex<Option<Universe>>,
    rank: usize,
    size: usize,
}

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

impl Mpi {
    /// Initialises MPI; `None` if it has been initialised already.
    pub fn start() -> Option<Mpi> {
        let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
        let (rank, size) = (universe.world().rank() as usize, universe.world().size() as usize);
        Some(Mpi(Arc::new(World { universe: Mutex::new(Some(universe)), rank, size })))
    }

    /// Waits for all ranks, and finalises MPI. Nothing may be exchanged afterwards.
    pub fn finish(&self) {
        world().barrier();
        drop(lock(&self.0.universe).take());
    }

    /// Tells the other ranks why this one has failed. Returns the messages of all ranks in their order; a rank that has not failed within
    /// a second or two has none, and must be ended.
    pub fn fail(&self, message: &str) -> Vec<Option<String>> {
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
    pub fn end_all(&self, code: i32) -> ! {
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
        world().all_gather_into(mine, all);
    }

    fn exchange(&self, sent: &[Outgoing<'_>], received: &mut [Incoming<'_>], meanwhile: &mut dyn FnMut()) {
        let world = world();
        multiple_scope(sent.len() + received.len(), |scope, requests| {
            for (rank, buffer) in received {
                let process = world.process_at_rank(*rank as i32);
                for piece in buffer.chunks_mut(MOST) {
                    requests.add(process.immediate_receive_into(scope, piece));
                }
            }
            for (rank, message) in sent {
                let process = world.process_at_rank(*rank as i32);
                for piece in message.chunks(MOST) {
                    requests.add(process.immediate_send(scope, piece));
                }
            }
            meanwhile();
            requests.wait_all(&mut Vec::with_capacity(sent.len() + 1));
        });
    }
}
