//! Sums over ranks.

use super::Link;
use super::direct::{Place, Window};
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::{CudaArray, address};
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::parameters::Parameter;
use crate::device::cuda::{Cuda, SlotPointers, generate};
use crate::device::distributed::{Over, RankSlots};
use crate::device::sweep::MAX_DOTS;
use crate::device::{Device, Op, Slot};
use crate::error::Result;
use arrayvec::ArrayVec;

/// Threads of the kernel, for one column and for several.
const ONE: u32 = 128;
const SEVERAL: u32 = 512;

const WHAT: &str = "the scalars of all ranks";

/// Room for the scalars of all ranks.
pub(crate) struct CudaGathered {
    numbers: CudaArray<f64>,
    direct: Option<DirectSums>,
}

/// What direct messages need in addition.
struct DirectSums {
    window: Window,
    /// The addresses of the windows of all ranks.
    places: CudaArray<u64>,
    /// The number of the last round.
    rounds: CudaArray<u32>,
    /// The numbers of all ranks in a round, at most.
    half: usize,
}

impl CudaGathered {
    pub(super) fn new(device: &Cuda, over: Over<'_, Cuda>, slots: usize, k: usize) -> Result<CudaGathered> {
        let half = over.ranks.size() * slots * k;
        let numbers = over.ranks.agreed(device.allocate(WHAT, half))?;
        let Link::Direct(direct) = over.link else { return Ok(CudaGathered { numbers, direct: None }) };
        let window = Window::new(direct, over.ranks, 2 * half * size_of::<Place<f64>>())?;
        let places = over.ranks.agreed(device.allocate_from(WHAT, window.of_ranks()))?;
        let rounds = over.ranks.agreed(device.allocate(WHAT, 1))?;
        Ok(CudaGathered { numbers, direct: Some(DirectSums { window, places, rounds, half }) })
    }
}

/// The slots of each rank that are exchanged: all from the first to the last of those that are added.
fn window(which: &[Slot]) -> (usize, usize) {
    let at = || which.iter().map(|slot| slot.0 as usize);
    let (first, last) = (at().min().unwrap_or(0), at().max().unwrap_or(0));
    (first, last + 1 - first)
}

/// Returns the kernel that adds slots over ranks and runs a program; with `direct` it collects them first.
pub(crate) fn sum_kernel(which: &[Slot], program: &[Op], k: usize, direct: bool) -> KernelSource {
    let (first, width) = window(which);
    let mut parameters = vec![Parameter::scratch::<f64>("gathered"), Parameter::value::<u32>("ranks")];
    if direct {
        parameters.extend([
            Parameter::scratch::<u64>("places"),
            Parameter::scratch::<u32>("rounds"),
            Parameter::value::<u32>("rank"),
            Parameter::value::<u64>("half"),
            Parameter::scratch::<u32>("stop"),
        ]);
    }
    parameters.push(Parameter::value::<SlotPointers>("s"));
    KernelSource {
        name: "sum_ranks".to_owned(),
        body: generate::ranks::sum(which, first, program, direct),
        parameters,
        defines: vec![("FIRST", first.to_string()), ("WIDTH", width.to_string())],
        k,
        block: if k == 1 { ONE } else { SEVERAL },
    }
}

impl Cuda {
    /// Adds slots over ranks and runs a program; see
    /// [`Local::finish`](crate::device::distributed::Local::finish).
    pub(super) fn sum_over(
        &self,
        over: Over<'_, Cuda>,
        slots: &mut RankSlots<Cuda>,
        which: &mut dyn Iterator<Item = Slot>,
        program: &[Op],
    ) -> Result<()> {
        let which: ArrayVec<Slot, MAX_DOTS> = which.collect();
        let RankSlots { own, gathered } = slots;
        let k = own.k();
        let direct = gathered.direct.as_ref();
        let kernel = self.kernel(&sum_kernel(&which, program, k, direct.is_some()))?;
        let _turn = self.turn();
        if let Link::Nccl(nccl) = over.link {
            let (first, width) = window(&which);
            let from = own.pointers().values_at(first * k);
            let to = address(&gathered.numbers);
            self.keep(|| nccl.clone());
            if !self.skips_launch() {
                self.fork_side()?;
                // SAFETY: the bank has the slots of the window, and there is room for all slots of all
                // ranks. The work ends before they are freed: their memory is freed in the order of the
                // stream, which waits for it.
                unsafe { nccl.all_gather(from, to, width * k)? };
                self.leave_side();
                self.join_side()?;
            }
        }
        let mut arguments = Arguments::on(self);
        arguments.scratch("gathered", &gathered.numbers);
        arguments.value("ranks", over.ranks.size() as u32);
        if let (Some(sums), Link::Direct(link)) = (direct, over.link) {
            self.keep(|| sums.window.kept());
            arguments.scratch("places", &sums.places);
            arguments.scratch("rounds", &sums.rounds);
            arguments.value("rank", over.ranks.rank() as u32);
            arguments.value("half", sums.half as u64);
            arguments.scratch("stop", link.stop());
        }
        arguments.slots("s", own)?;
        if direct.is_none() || self.skips_launch() {
            return arguments.launch(&kernel, 1);
        }
        // Work that does not use the scalars overlaps with the wait for the other ranks.
        self.fork_side()?;
        arguments.launch_beside(&kernel, 1)?;
        self.leave_side();
        Ok(())
    }
}
