//! The table of all strategies. What is missing here does not exist, and what stands here is tested everywhere.

mod cpu;
mod cuda;

use super::Entry;
use crate::scalar::Precision;

pub(super) const ALL_PRECISIONS: &[Precision] = &[Precision::F64, Precision::F32, Precision::Mixed];

const COUNT: usize = cpu::ENTRIES.len() + cuda::ENTRIES.len();

/// Every backend there is: those of the CPU, then those of GPUs.
pub static REGISTRY: &[Entry] = &{
    let mut all = [cpu::ENTRIES[0]; COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = if i < cpu::ENTRIES.len() { cpu::ENTRIES[i] } else { cuda::ENTRIES[i - cpu::ENTRIES.len()] };
        i += 1;
    }
    all
};
