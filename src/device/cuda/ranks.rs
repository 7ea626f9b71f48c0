//! The GPU of a rank: sums and messages between GPUs.
//!
//! GPUs of one machine that can write to each other's memory exchange numbers by kernels of this project
//! (`direct`). Any other GPUs exchange them by NCCL. A recorded step contains sums and messages, so that the
//! host takes no part in an iteration.

mod complete;
pub(super) mod direct;
mod halo;
pub(crate) mod nccl;
mod sums;

use super::memory::{CudaArray, address};
use super::{Cuda, CudaSlots, CudaVector};
use crate::device::distributed::{Border, Halo, Local, Over, RankSlots, Ranks};
use crate::device::{Device, Op, Slot};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
pub(crate) use complete::CudaComplete;
use direct::Direct;
pub(crate) use halo::CudaBorder;
use nccl::Nccl;
use std::sync::Arc;
pub(crate) use sums::CudaGathered;
#[cfg(test)]
pub(crate) use {
    complete::complete_kernel,
    halo::{border_kernel, pack_kernel, send_kernel},
    sums::sum_kernel,
};

/// The environment variable that chooses how GPUs exchange data: `direct` or `nccl`.
pub(crate) const LINK: &str = "SOLVER_GPU_LINK";

/// The connection to the GPUs of the other ranks.
#[derive(Clone)]
pub(crate) enum Link {
    /// GPUs that write to each other's memory.
    Direct(Arc<Direct>),
    /// GPUs that NCCL connects.
    Nccl(Arc<Nccl>),
}

impl Link {
    /// Connects the GPUs of all ranks, which call this together.
    fn connect(device: &Cuda, ranks: &Ranks) -> Result<Link> {
        ranks.agreed(refuse_shared_gpus(device, ranks))?;
        // A launcher may set the variable on one machine only.
        let value =
            std::env::var_os(LINK).map_or_else(String::new, |value| value.to_string_lossy().into_owned());
        let wanted = wanted(&ranks.text_from_first(&value)?)?;
        let reason = match wanted {
            Wanted::Nccl => None,
            Wanted::Direct | Wanted::Any => match Direct::connect(device, ranks)? {
                Ok(direct) => return Ok(Link::Direct(direct)),
                Err(reason) => Some(reason),
            },
        };
        if let (Wanted::Direct, Some(reason)) = (&wanted, &reason) {
            return Err(Error::setting(LINK, "direct", format!("{reason}; leave it out, or set it to nccl")));
        }
        if let Some(reason) = reason.filter(|_| ranks.is_first()) {
            log::info!("GPUs exchange data by NCCL: {reason}");
        }
        Nccl::connect(device, ranks).map(Link::Nccl)
    }
}

enum Wanted {
    Any,
    Direct,
    Nccl,
}

/// Returns the connection that a value of the variable names.
fn wanted(value: &str) -> Result<Wanted> {
    match value {
        "" => Ok(Wanted::Any),
        "direct" => Ok(Wanted::Direct),
        "nccl" => Ok(Wanted::Nccl),
        other => Err(Error::setting(LINK, other, "it must be direct or nccl")),
    }
}

/// Fails if two ranks have the same GPU.
fn refuse_shared_gpus(device: &Cuda, ranks: &Ranks) -> Result<()> {
    let mine = ranks.agreed(device.identity())?;
    let halves = [0, 1].map(|half| ranks.all_of((mine >> (64 * half)) as u64));
    let of = |rank: usize| (halves[0][rank], halves[1][rank]);
    let twice =
        (0..ranks.size()).find_map(|a| (a + 1..ranks.size()).find(|b| of(a) == of(*b)).map(|b| (a, b)));
    match twice {
        None => Ok(()),
        Some((a, b)) => {
            let reason = format!(
                "ranks {a} and {b} have the same GPU; start at most as many ranks as there are GPUs, or use the CPU"
            );
            Err(Error::setting("device", device.name(), reason))
        }
    }
}

impl Local for Cuda {
    type Link = Link;
    type Gathered = CudaGathered;
    type Border<T: Scalar> = CudaBorder;
    type Complete<T: Scalar> = CudaComplete<T>;

    fn link(&self, ranks: &Ranks) -> Result<Link> {
        let link = Link::connect(self, ranks)?;
        if let Link::Nccl(nccl) = &link {
            // NCCL prepares its operations at their first use, which a recorded step cannot contain.
            let numbers: CudaArray<f64> = ranks.agreed(self.allocate(halo::WHAT, 1 + ranks.size()))?;
            let (from, to) = (address(&numbers), address(&numbers) + size_of::<f64>() as u64);
            // SAFETY: there is a number to send, and room for a number of each rank; the work
            // ends before they are freed.
            let enqueued = self.fork_side().and_then(|()| unsafe { nccl.all_gather(from, to, 1) });
            self.leave_side();
            // No rank waits for one that has enqueued nothing.
            ranks.agreed(enqueued)?;
            self.synchronize()?;
        }
        Ok(link)
    }

    fn gathered(&self, over: Over<'_, Cuda>, slots: usize, k: usize) -> Result<CudaGathered> {
        CudaGathered::new(self, over, slots, k)
    }

    fn finish(
        &self,
        over: Over<'_, Cuda>,
        slots: &mut RankSlots<Cuda>,
        which: &mut dyn Iterator<Item = Slot>,
        program: &[Op],
    ) -> Result<()> {
        self.sum_over(over, slots, which, program)
    }

    fn border<T: Scalar>(&self, over: Over<'_, Cuda>, halo: &Halo, border: Border<T>) -> Result<CudaBorder> {
        CudaBorder::new(self, over, halo, border)
    }

    fn prepare_border<T: Scalar>(&self, halo: &Halo, border: &CudaBorder, k: usize) -> Result<()> {
        border.fit::<T>(halo, k)
    }

    fn exchanged_bytes<T: Scalar>(&self, border: &CudaBorder) -> u64 {
        border.bytes()
    }

    fn exchange<T: Scalar>(
        &self,
        _: Over<'_, Cuda>,
        (halo, border): (&Halo, &CudaBorder),
        x: &CudaVector<T>,
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        border.send(self, halo, x)?;
        meanwhile()?;
        border.wait(self)
    }

    fn add_border<T: Scalar>(
        &self,
        border: &CudaBorder,
        alpha: f64,
        y: &mut CudaVector<T>,
        dot: Option<(&CudaVector<T>, &mut CudaSlots, Slot)>,
    ) -> Result<()> {
        border.add_to(self, alpha, y, dot)
    }

    fn complete_room<T: Scalar>(&self, over: Over<'_, Cuda>, halo: &Halo) -> Result<CudaComplete<T>> {
        CudaComplete::new(self, over, halo)
    }

    fn prepare_complete<T: Scalar>(&self, halo: &Halo, room: &CudaComplete<T>, k: usize) -> Result<()> {
        room.fit(halo, k)
    }

    fn complete_bytes<T: Scalar>(&self, room: &CudaComplete<T>) -> u64 {
        room.bytes()
    }

    fn moved_to_complete<T: Scalar>(&self, halo: &Halo, room: &CudaComplete<T>) -> usize {
        room.moved(halo)
    }

    fn complete<T: Scalar>(
        &self,
        (halo, room): (&Halo, &CudaComplete<T>),
        x: &CudaVector<T>,
        multiply: &mut dyn FnMut(&CudaVector<T>) -> Result<()>,
    ) -> Result<()> {
        room.apply(halo, x, multiply)
    }
}
