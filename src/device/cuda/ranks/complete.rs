//! Complete vectors: a rank's own entries of x, between those that other GPUs send.

use super::Link;
use super::direct::Window;
use super::halo::{WHAT, defines, exchange_by_nccl};
use crate::device::Device;
use crate::device::cuda::launch::{Arguments, Stored};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::device::cuda::{Cuda, CudaVector};
use crate::device::distributed::{Halo, Over, Ranks};
use crate::error::Result;
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::sync::Mutex;

/// Numbers that a thread copies at once, as `BATCH` of kernels/complete.cuh.
const BATCH: u64 = 4;

/// Bytes at a multiple of which the words begin that order the accesses.
const ALIGNMENT: usize = 16;

/// Returns the kernel that copies the rank's own entries, and stores the rows that other ranks need in their
/// memory, or else in a buffer for NCCL.
pub(crate) fn complete_kernel<T: Scalar>(k: usize, direct: bool) -> KernelSource {
    let mut parameters = vec![
        Parameter::read::<T>("x"),
        Parameter::written::<T>("complete"),
        Parameter::value::<u64>("below"),
        Parameter::value::<u64>("own"),
        Parameter::array::<u32>("sent_rows"),
        Parameter::value::<u32>("copiers"),
    ];
    let mut defines = defines::<T>();
    if direct {
        defines.push(("DIRECT", "1".to_owned()));
        parameters.extend([
            Parameter::array::<u64>("places"),
            Parameter::value::<u32>("neighbours"),
            Parameter::scratch::<u32>("words"),
            Parameter::scratch::<u32>("rounds"),
            Parameter::scratch::<u32>("stop"),
        ]);
    } else {
        parameters.extend([Parameter::scalars::<T>("sent"), Parameter::value::<u64>("count")]);
    }
    KernelSource {
        name: "complete_vector".to_owned(),
        body: include_str!("../../../../kernels/complete.cuh").to_owned(),
        parameters,
        defines,
        k,
        block: BLOCK,
    }
}

/// A complete vector of `k` columns, and what the exchange needs.
struct Room<T> {
    k: usize,
    vector: CudaVector<T>,
    by: By,
}

enum By {
    /// The rows that are sent.
    Nccl(Stored),
    Direct(DirectRoom),
}

/// What direct stores need.
struct DirectRoom {
    /// The complete vector, and after it two words for each neighbour, which the neighbours set.
    window: Window,
    words: CudaArray<u32>,
    /// The neighbours; see `Neighbour` in kernels/complete.cuh.
    places: Stored,
    /// The number of the last round, and of the blocks that have stored their entries.
    rounds: CudaArray<u32>,
}

/// A complete vector on a GPU.
pub(crate) struct CudaComplete<T> {
    device: Cuda,
    link: Link,
    ranks: Ranks,
    sent_rows: Stored,
    room: Mutex<Option<Room<T>>>,
}

impl<T: Scalar> CudaComplete<T> {
    /// Allocates a complete vector of one column. All ranks call this together.
    pub(super) fn new(device: &Cuda, over: Over<'_, Cuda>, halo: &Halo) -> Result<CudaComplete<T>> {
        let rows = over.ranks.agreed(device.allocate_from(WHAT, halo.sent_rows()))?;
        let complete = CudaComplete {
            device: device.clone(),
            link: over.link.clone(),
            ranks: over.ranks.clone(),
            sent_rows: Stored::array("sent_rows", rows),
            room: Mutex::default(),
        };
        complete.fit(halo, 1)?;
        if let Link::Nccl(_) = over.link {
            // Their first message connects two GPUs, which a recorded step cannot contain.
            over.ranks.agreed(complete.exchange_by_nccl(halo))?;
            device.synchronize()?;
        }
        Ok(complete)
    }

    /// Allocates a complete vector of `k` columns, unless it is there. All ranks call this together.
    pub(super) fn fit(&self, halo: &Halo, k: usize) -> Result<()> {
        let mut room = lock(&self.room);
        if room.as_ref().is_some_and(|room| room.k == k) {
            return Ok(());
        }
        *room = None;
        *room = Some(match &self.link {
            Link::Nccl(_) => {
                let made = || -> Result<Room<T>> {
                    let sent = self.device.allocate(WHAT, k * halo.sent_rows().len())?;
                    let by = By::Nccl(Stored::scalars::<T>("sent", sent));
                    Ok(Room { k, vector: self.device.vector(halo.complete_rows(), k)?, by })
                };
                self.ranks.agreed(made())?
            }
            Link::Direct(_) => self.direct_room(halo, k)?,
        });
        Ok(())
    }

    /// Allocates a complete vector that other ranks write to, and tells the neighbours where it is.
    fn direct_room(&self, halo: &Halo, k: usize) -> Result<Room<T>> {
        let Link::Direct(link) = &self.link else { unreachable!("the link is direct") };
        let (ranks, neighbours) = (&self.ranks, halo.neighbours());
        let words_at = (halo.complete_rows() * k * size_of::<T>()).next_multiple_of(ALIGNMENT);
        let window = Window::new(link, ranks, words_at + 2 * neighbours * size_of::<u32>())?;
        // Each rank begins with the rank after it, so that not all of them write to the same one at once.
        let mut all: Vec<_> = halo.all_parts().collect();
        let lower = all.partition_point(|(rank, ..)| *rank < ranks.rank());
        all.rotate_left(lower);
        // For each neighbour: where its words and its entries are, in bytes from the begin of the window.
        let mut told = vec![Vec::new(); ranks.size()];
        for (number, (rank, _, received)) in all.iter().enumerate() {
            let word = |which: usize| (words_at + (which * neighbours + number) * size_of::<u32>()) as u64;
            told[*rank] = vec![word(0), word(1), (halo.place_of(received) * k * size_of::<T>()) as u64];
        }
        let heard = ranks.swap(&told)?;
        let mut places = Vec::new();
        for (rank, sent, _) in &all {
            let at = window.of_ranks()[*rank];
            let [ready, arrived, entries] = heard[*rank][..] else {
                unreachable!("neighbours tell each other")
            };
            places.extend([at + ready, at + arrived, at + entries, sent.start as u64, sent.end as u64]);
        }
        let (device, address) = (&self.device, window.of_ranks()[ranks.rank()]);
        let made = || -> Result<Room<T>> {
            // SAFETY: the window has room for both, and lives as long as they and as recordings that use
            // them; other ranks write it as the kernel expects.
            let (vector, words) = unsafe {
                let words = device.lent(address + words_at as u64, 2 * neighbours)?;
                (device.lend(address, halo.complete_rows(), k)?, words)
            };
            let places = Stored::array("places", device.allocate_from(WHAT, &places)?);
            let rounds = device.allocate(WHAT, 2)?;
            Ok(Room { k, vector, by: By::Direct(DirectRoom { window, words, places, rounds }) })
        };
        ranks.agreed(made())
    }

    /// Returns the bytes of the complete vector, and of the rows that are sent.
    pub(super) fn bytes(&self) -> u64 {
        match lock(&self.room).as_ref() {
            None => 0,
            Some(Room { by: By::Direct(direct), .. }) => direct.window.bytes(),
            Some(Room { vector, by: By::Nccl(sent), .. }) => {
                (vector.n() * vector.k() * size_of::<T>()) as u64 + sent.bytes().unwrap_or(0)
            }
        }
    }

    /// Returns the entries that an exchange of one column reads and writes in the memory of this rank.
    pub(super) fn moved(&self, halo: &Halo) -> usize {
        // Direct stores read the entries that are sent once. NCCL reads copies of them.
        let sent = if let Link::Direct(_) = self.link { 1 } else { 3 };
        2 * halo.rows().len() + sent * halo.sent_rows().len() + halo.ghosts()
    }

    /// Enqueues the exchange, and then what `multiply` enqueues with the complete vector.
    pub(super) fn apply(
        &self,
        halo: &Halo,
        x: &CudaVector<T>,
        multiply: &mut dyn FnMut(&CudaVector<T>) -> Result<()>,
    ) -> Result<()> {
        self.fit(halo, x.k())?;
        let _turn = self.device.turn();
        {
            let mut room = lock(&self.room);
            let Some(room) = &mut *room else { unreachable!("the room has been made") };
            self.copy(halo, x, room)?;
        }
        if let Link::Nccl(_) = self.link {
            self.exchange_by_nccl(halo)?;
            self.device.join_side()?;
        }
        match &*lock(&self.room) {
            Some(room) => multiply(&room.vector),
            None => unreachable!("the room has been made"),
        }
    }

    /// Enqueues the kernel.
    fn copy(&self, halo: &Halo, x: &CudaVector<T>, room: &mut Room<T>) -> Result<()> {
        let (device, k) = (&self.device, room.k);
        let (own, sent, neighbours) = (halo.rows().len() * k, halo.sent_rows().len() * k, halo.neighbours());
        if own + neighbours == 0 {
            return Ok(());
        }
        let kernel = device.kernel(&complete_kernel::<T>(k, matches!(room.by, By::Direct(_))))?;
        let blocks = device.blocks_for(&kernel, ((own + sent) as u64).div_ceil(BATCH));
        // Messages take longer than copies, but a part of the GPU fills the link.
        let (blocks, copiers) = match (own, sent) {
            (_, 0) => (blocks, blocks),
            (0, _) => (blocks, 0),
            _ => (blocks.max(2), blocks.max(2) / 2),
        };
        let mut arguments = Arguments::on(device);
        arguments.read("x", x)?;
        arguments.written("complete", &mut room.vector)?;
        arguments.value("below", (halo.below() * k) as u64);
        arguments.value("own", own as u64);
        arguments.stored(&self.sent_rows);
        arguments.value("copiers", copiers);
        match (&room.by, &self.link) {
            (By::Direct(direct), Link::Direct(link)) => {
                device.keep(|| direct.window.kept());
                arguments.stored(&direct.places);
                arguments.value("neighbours", neighbours as u32);
                arguments.scratch("words", &direct.words);
                arguments.scratch("rounds", &direct.rounds);
                arguments.scratch("stop", link.stop());
            }
            (By::Nccl(sent), _) => {
                arguments.stored(sent);
                arguments.value("count", halo.sent_rows().len() as u64);
            }
            (By::Direct(_), Link::Nccl(_)) => unreachable!("the room is that of the link"),
        }
        arguments.launch(&kernel, blocks)
    }

    /// Enqueues the messages of NCCL beside the stream of the device, if it is the link.
    fn exchange_by_nccl(&self, halo: &Halo) -> Result<()> {
        let room = lock(&self.room);
        let (Link::Nccl(nccl), Some(Room { k, vector, by: By::Nccl(sent) })) = (&self.link, &*room) else {
            return Ok(());
        };
        let addresses = (sent.address(), vector.address());
        exchange_by_nccl::<T>(&self.device, nccl, (halo, *k), addresses, |part| halo.place_of(part))
    }
}
