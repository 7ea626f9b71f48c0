//! The entries of vectors that GPUs exchange, and the products with them.

use super::Link;
use super::direct::{Place, Window};
use super::nccl::{Message, Nccl};
use crate::device::cuda::arrangement::Arrangement;
use crate::device::cuda::generate::ranks::DIRECT;
use crate::device::cuda::launch::{Arguments, Stored};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::device::cuda::{Cuda, CudaSlots, CudaVector, SlotPointers, generate};
use crate::device::distributed::{Border, Halo, Over, Ranks};
use crate::device::{Device, Slot};
use crate::error::Result;
use crate::parallel::lock;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::{Arc, Mutex};

pub(super) const WHAT: &str = "the entries that ranks exchange";

const TEXT: &str = include_str!("../../../../kernels/halo.cuh");

/// The steps of kernels/halo.cuh.
const PACK: u32 = 0;
const SEND: u32 = 1;
const BORDER: u32 = 2;

pub(super) fn defines<T: Scalar>() -> Vec<(&'static str, String)> {
    vec![("SCALAR", T::CUDA_NAME.to_owned()), ("READ_ONLY", "__restrict__".to_owned())]
}

fn defines_of<T: Scalar>(step: u32) -> Vec<(&'static str, String)> {
    [defines::<T>(), vec![("STEP", step.to_string())]].concat()
}

/// Returns the kernel that copies the rows that other ranks need, for NCCL.
pub(crate) fn pack_kernel<T: Scalar>(k: usize) -> KernelSource {
    KernelSource {
        name: "halo_pack".to_owned(),
        body: TEXT.to_owned(),
        parameters: vec![
            Parameter::read::<T>("x"),
            Parameter::array::<u32>("sent_rows"),
            Parameter::scalars::<T>("sent"),
            Parameter::value::<u64>("count"),
        ],
        defines: defines_of::<T>(PACK),
        k,
        block: BLOCK,
    }
}

/// Returns the kernel that stores these rows in the memory of other ranks.
pub(crate) fn send_kernel<T: Scalar>(k: usize) -> KernelSource {
    KernelSource {
        name: "halo_send".to_owned(),
        body: format!("{DIRECT}{TEXT}"),
        parameters: vec![
            Parameter::read::<T>("x"),
            Parameter::array::<u32>("sent_rows"),
            Parameter::array::<u32>("ends"),
            Parameter::array::<u64>("places"),
            Parameter::scratch::<u32>("rounds"),
            Parameter::value::<u32>("neighbours"),
            Parameter::value::<u64>("count"),
        ],
        defines: defines_of::<T>(SEND),
        k,
        block: BLOCK,
    }
}

/// Returns the kernel of the products with ghosts, with a dot product into `slot` if there is one.
/// `lanes` threads take a row.
pub(crate) fn border_kernel<T: Scalar>(
    k: usize,
    lanes: u32,
    slot: Option<Slot>,
    direct: bool,
) -> KernelSource {
    let mut parameters: Vec<Parameter> = ["rows", "columns"].map(Parameter::array::<u32>).into();
    parameters.push(Parameter::array::<u64>("offsets"));
    parameters.push(Parameter::scalars::<T>("values"));
    let (mut defines, mut body) = (defines_of::<T>(BORDER), String::new());
    if direct {
        defines.push(("DIRECT", "1".to_owned()));
        body.push_str(DIRECT);
        parameters.extend([
            Parameter::scratch::<u64>("received"),
            Parameter::value::<u64>("distance"),
            Parameter::value::<u32>("neighbours"),
            Parameter::scratch::<u32>("rounds"),
            Parameter::scratch::<u32>("stop"),
        ]);
    } else {
        parameters.push(Parameter::scalars::<T>("ghosts"));
    }
    parameters.push(Parameter::written::<T>("y"));
    if let Some(slot) = slot {
        parameters.push(Parameter::read::<T>("x"));
        parameters.push(Parameter::value::<SlotPointers>("s"));
        defines.extend([("DOT", "1".to_owned()), ("SLOT", slot.0.to_string())]);
        body.push_str("#define DOTS 1\n");
    }
    parameters.extend([Parameter::scalar::<T>("alpha"), Parameter::value::<u64>("count")]);
    let block = if k == 1 {
        defines.push(("LANES", lanes.to_string()));
        BLOCK
    } else {
        defines.extend(Arrangement::of(k).defines());
        body.push_str(generate::columns::COLUMNS);
        Arrangement::of(k).block
    };
    body.push_str(TEXT);
    KernelSource { name: "halo_border".to_owned(), body, parameters, defines, k, block }
}

/// Room for the entries that are sent and received, for `k` columns.
struct Room {
    k: usize,
    by: By,
}

enum By {
    Nccl { sent: Stored, ghosts: Stored },
    Direct(DirectRoom),
}

/// Room for direct messages.
struct DirectRoom {
    window: Window,
    /// The elements of a round: a token of each neighbour, and the ghosts.
    distance: usize,
    /// The end of the part of each neighbour of the rows that are sent.
    ends: Stored,
    /// The addresses of each neighbour's memory; see kernels/halo.cuh.
    places: Stored,
    /// The number of the last round, and of the blocks that have sent their entries.
    rounds: CudaArray<u32>,
}

/// A border on a GPU, with room for the entries that are sent and received.
pub(crate) struct CudaBorder {
    device: Cuda,
    link: Link,
    ranks: Ranks,
    sent_rows: Stored,
    rows: Stored,
    columns: Stored,
    offsets: Stored,
    values: Stored,
    /// Rows with entries in columns of other ranks.
    count: usize,
    /// Rows that are sent.
    sent: usize,
    neighbours: usize,
    /// Threads that take a row.
    lanes: u32,
    room: Mutex<Option<Room>>,
}

/// Enqueues the messages of NCCL beside the stream of the device, for `k` columns: from the rows that are
/// sent, at the first address, to the ghosts, whose parts begin at `place` rows after the second.
pub(super) fn exchange_by_nccl<T: Scalar>(
    device: &Cuda,
    nccl: &Arc<Nccl>,
    (halo, k): (&Halo, usize),
    (sent, ghosts): (u64, u64),
    place: impl Fn(&Range<usize>) -> usize,
) -> Result<()> {
    let _turn = device.turn();
    device.keep(|| nccl.clone());
    if halo.neighbours() == 0 || device.skips_launch() {
        return Ok(());
    }
    device.fork_side()?;
    let message = |from: u64, rank: usize, first: usize, rows: usize| {
        let address = from + (first * k * size_of::<T>()) as u64;
        Message { rank, address, elements: rows * k }
    };
    let to = halo.sent_parts().map(|(rank, part)| message(sent, rank, part.start, part.len()));
    let from = halo.received_parts().map(|(rank, part)| message(ghosts, rank, place(part), part.len()));
    // SAFETY: there is room for the parts of all neighbours; it is freed in the order of the stream, which
    // waits for the side stream.
    let exchanged = unsafe { nccl.exchange(size_of::<T>(), to, from) };
    device.leave_side();
    exchanged
}

impl CudaBorder {
    /// Copies a border to the device. All ranks call this together.
    pub(super) fn new<T: Scalar>(
        device: &Cuda,
        over: Over<'_, Cuda>,
        halo: &Halo,
        border: Border<T>,
    ) -> Result<CudaBorder> {
        let (count, entries) = (border.rows.len(), border.values.len());
        let offsets: Vec<u64> = border.offsets.iter().map(|offset| *offset as u64).collect();
        let words = |name, words: &[u32]| -> Result<Stored> {
            Ok(Stored::array(name, device.allocate_from(WHAT, words)?))
        };
        let made = || -> Result<CudaBorder> {
            Ok(CudaBorder {
                device: device.clone(),
                link: over.link.clone(),
                ranks: over.ranks.clone(),
                sent_rows: words("sent_rows", halo.sent_rows())?,
                rows: words("rows", &border.rows)?,
                columns: words("columns", &border.ghosts)?,
                offsets: Stored::array("offsets", device.allocate_from(WHAT, &offsets)?),
                values: Stored::scalars("values", device.allocate_from(WHAT, &border.values)?),
                count,
                sent: halo.sent_rows().len(),
                neighbours: halo.neighbours(),
                lanes: (entries / count.max(1)).clamp(1, 32).next_power_of_two() as u32,
                room: Mutex::default(),
            })
        };
        let border = over.ranks.agreed(made())?;
        border.fit::<T>(halo, 1)?;
        if let Link::Nccl(_) = over.link {
            // Their first message connects two GPUs, which a recorded step cannot contain.
            over.ranks.agreed(border.send_by_nccl::<T>(halo, 1))?;
            device.synchronize()?;
        }
        Ok(border)
    }

    /// Allocates the room for `k` columns, unless it is there. All ranks call this together.
    pub(super) fn fit<T: Scalar>(&self, halo: &Halo, k: usize) -> Result<()> {
        let mut room = lock(&self.room);
        if room.as_ref().is_some_and(|room| room.k == k) {
            return Ok(());
        }
        *room = None;
        let by = match &self.link {
            Link::Nccl(_) => {
                let stored = |name, rows: usize| -> Result<Stored> {
                    Ok(Stored::scalars::<T>(name, self.device.allocate(WHAT, k * rows)?))
                };
                let (sent, ghosts) = (stored("sent", self.sent), stored("ghosts", halo.ghosts()));
                self.ranks.agreed(sent.and_then(|sent| Ok(By::Nccl { sent, ghosts: ghosts? })))?
            }
            Link::Direct(_) => By::Direct(self.direct_room::<T>(halo, k)?),
        };
        *room = Some(Room { k, by });
        Ok(())
    }

    /// Allocates the room for direct messages, and tells the neighbours where it is.
    fn direct_room<T: Scalar>(&self, halo: &Halo, k: usize) -> Result<DirectRoom> {
        let Link::Direct(link) = &self.link else { unreachable!("the link is direct") };
        let (ranks, element) = (&self.ranks, size_of::<Place<T>>());
        let distance = self.neighbours + k * halo.ghosts();
        let window = Window::new(link, ranks, 2 * distance * element)?;
        // For each neighbour: where its token is, and where its part of the ghosts begins, in bytes from
        // the begin of the window.
        let mut told = vec![Vec::new(); ranks.size()];
        for (number, (rank, part)) in halo.all_parts().map(|(rank, _, received)| (rank, received)).enumerate()
        {
            let begin = self.neighbours + k * part.start;
            told[rank] =
                vec![(number * element) as u64, (begin * element) as u64, (distance * element) as u64];
        }
        let heard = ranks.swap(&told)?;
        let (mut ends, mut places) = (Vec::new(), Vec::new());
        for (rank, sent, _) in halo.all_parts() {
            ends.push(sent.end as u32);
            let at = window.of_ranks()[rank];
            let [token, part, distance] = heard[rank][..] else { unreachable!("neighbours tell each other") };
            places.extend([at + token, at + part, distance]);
        }
        let made = || -> Result<DirectRoom> {
            Ok(DirectRoom {
                window,
                distance,
                ends: Stored::array("ends", self.device.allocate_from(WHAT, &ends)?),
                places: Stored::array("places", self.device.allocate_from(WHAT, &places)?),
                rounds: self.device.allocate(WHAT, 2)?,
            })
        };
        ranks.agreed(made())
    }

    /// Returns the bytes of the room.
    pub(super) fn bytes(&self) -> u64 {
        match lock(&self.room).as_ref().map(|room| &room.by) {
            None => 0,
            Some(By::Nccl { sent, ghosts }) => [sent, ghosts].into_iter().filter_map(Stored::bytes).sum(),
            Some(By::Direct(room)) => room.window.bytes(),
        }
    }

    /// Enqueues the messages with entries of x.
    pub(super) fn send<T: Scalar>(&self, device: &Cuda, halo: &Halo, x: &CudaVector<T>) -> Result<()> {
        let k = x.k();
        self.fit::<T>(halo, k)?;
        let _turn = device.turn();
        let room = lock(&self.room);
        let mut arguments = Arguments::on(device);
        arguments.read("x", x)?;
        arguments.stored(&self.sent_rows);
        match room.as_ref().map(|room| &room.by) {
            Some(By::Direct(direct)) if self.neighbours > 0 => {
                let kernel = device.kernel(&send_kernel::<T>(k))?;
                device.keep(|| direct.window.kept());
                arguments.stored(&direct.ends);
                arguments.stored(&direct.places);
                arguments.scratch("rounds", &direct.rounds);
                arguments.value("neighbours", self.neighbours as u32);
                arguments.value("count", self.sent as u64);
                let threads = (self.sent * k + self.neighbours) as u64;
                arguments.launch(&kernel, device.blocks_for(&kernel, threads))
            }
            Some(By::Nccl { sent, .. }) => {
                if self.sent > 0 {
                    let kernel = device.kernel(&pack_kernel::<T>(k))?;
                    arguments.stored(sent);
                    arguments.value("count", self.sent as u64);
                    arguments.launch(&kernel, device.blocks_for(&kernel, (self.sent * k) as u64))?;
                }
                drop(room);
                self.send_by_nccl::<T>(halo, k)
            }
            _ => Ok(()),
        }
    }

    /// Enqueues the messages of NCCL beside the stream of the device.
    fn send_by_nccl<T: Scalar>(&self, halo: &Halo, k: usize) -> Result<()> {
        let (device, room) = (&self.device, lock(&self.room));
        let (Link::Nccl(nccl), Some(Room { by: By::Nccl { sent, ghosts }, .. })) = (&self.link, &*room)
        else {
            return Ok(());
        };
        let addresses = (sent.address(), ghosts.address());
        exchange_by_nccl::<T>(device, nccl, (halo, k), addresses, |part| part.start)
    }

    /// Lets later work wait for the messages of NCCL; the kernel of the border waits for direct ones.
    pub(super) fn wait(&self, device: &Cuda) -> Result<()> {
        match self.link {
            Link::Nccl(_) => device.join_side(),
            Link::Direct(_) => Ok(()),
        }
    }

    /// Enqueues y = y + alpha B g.
    pub(super) fn add_to<T: Scalar>(
        &self,
        device: &Cuda,
        alpha: f64,
        y: &mut CudaVector<T>,
        dot: Option<(&CudaVector<T>, &mut CudaSlots, Slot)>,
    ) -> Result<()> {
        let k = y.k();
        let room = lock(&self.room);
        let Some(Room { by, .. }) = &*room else { return Ok(()) };
        // Tokens are waited for even if no entry is.
        let waits = matches!(by, By::Direct(_)) && self.neighbours > 0;
        if self.count == 0 && !waits {
            return Ok(());
        }
        let slot = dot.as_ref().map(|(.., slot)| *slot);
        let kernel = device.kernel(&border_kernel::<T>(k, self.lanes, slot, waits))?;
        let mut arguments = Arguments::on(device);
        for stored in [&self.rows, &self.columns, &self.offsets, &self.values] {
            arguments.stored(stored);
        }
        match (by, &self.link) {
            (By::Direct(direct), Link::Direct(link)) => {
                device.keep(|| direct.window.kept());
                arguments.scratch("received", direct.window.own());
                arguments.value("distance", direct.distance as u64);
                arguments.value("neighbours", self.neighbours as u32);
                arguments.scratch("rounds", &direct.rounds);
                arguments.scratch("stop", link.stop());
            }
            (By::Nccl { ghosts, .. }, _) => arguments.stored(ghosts),
            (By::Direct(_), Link::Nccl(_)) => unreachable!("the room is that of the link"),
        }
        arguments.written("y", y)?;
        if let Some((x, slots, _)) = dot {
            arguments.read("x", x)?;
            arguments.slots("s", slots)?;
        }
        arguments.scalar("alpha", T::from_f64(alpha));
        arguments.value("count", self.count as u64);
        let blocks = match k {
            1 => device.blocks_for(&kernel, self.count as u64 * u64::from(self.lanes)),
            _ => Arrangement::of(k).blocks(device.multiprocessors(), &kernel, self.count as u64),
        };
        arguments.launch(&kernel, blocks)
    }
}
