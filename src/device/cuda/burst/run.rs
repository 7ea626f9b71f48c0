//! Launches of the kernel that runs a step many times.

use super::{HOME, LAST_ROUND, MatrixPointers, ROWS, TIMES, Trace, WORDS};
use crate::device::RING;
use crate::device::cuda::driver::fault;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::{CudaArray, address};
use crate::device::cuda::modules::Kernel;
use crate::device::cuda::parameters::Parameter;
use crate::device::cuda::{Cuda, SlotPointers};
use crate::device::sweep::MAX_DOTS;
use crate::error::Result;

/// A step that runs many times in one launch.
pub(crate) struct Burst {
    kernel: Kernel,
    blocks: u32,
    shared: u32,
    matrix: MatrixPointers,
    vectors: Vec<(Parameter, u64)>,
    /// The numbers of the sweeps.
    numbers: Vec<f64>,
    /// The second buffers of gathered vectors.
    second_buffers: Vec<(Parameter, CudaArray<u8>)>,
    words: CudaArray<[u64; 2]>,
    last_round: CudaArray<u32>,
    slots: SlotPointers,
    rows: u32,
    /// The most iterations that a step counts.
    counted: usize,
}

impl Burst {
    /// Prepares the launch of a traced step; returns `None` if the step cannot run in one launch.
    pub(in crate::device::cuda) fn of(device: &Cuda, trace: &Trace) -> Result<Option<Burst>> {
        if let Some(obstacle) = trace.obstacle {
            log::debug!("a step is recorded as a graph: {obstacle}");
            return Ok(None);
        }
        let shared_memory = device.shared_memory()?;
        let (Some((_, matrix)), Some((slots, count)), Some(rows)) = (&trace.matrix, trace.slots, trace.rows)
        else {
            return Ok(None);
        };
        let Some((source, blocks, shared)) = trace.kernel(count, device.multiprocessors(), shared_memory)
        else {
            return Ok(None);
        };
        let kernel = device.kernel(&source)?;
        kernel.allow_shared(shared)?;
        let resident = kernel.function.occupancy_max_active_blocks_per_multiprocessor(
            kernel.block,
            shared as usize,
            None,
        );
        if resident.map_err(fault("cuOccupancyMaxActiveBlocksPerMultiprocessor"))? == 0 {
            log::debug!("a step is recorded as a graph: its blocks would not be resident");
            return Ok(None);
        }
        let second_buffer =
            |parameter| Ok((parameter, device.allocate::<u8>("the vectors of a solve", 8 * rows)?));
        device.count_burst();
        let burst = Burst {
            kernel,
            blocks,
            shared,
            matrix: *matrix,
            vectors: trace.vector_parameters().zip(trace.vectors.iter().copied()).collect(),
            numbers: trace.numbers.clone(),
            second_buffers: trace.gathered_parameters().map(second_buffer).collect::<Result<_>>()?,
            words: device.allocate("sums of blocks", 2 * MAX_DOTS * blocks as usize)?,
            last_round: device.allocate("sums of blocks", 1)?,
            slots,
            rows: rows as u32,
            counted: trace.counted(),
        };
        log::debug!(
            "a step runs in one launch: {} blocks of {} threads, {} bytes of the matrix in shared memory of each",
            burst.blocks,
            burst.kernel.block,
            burst.shared
        );
        Ok(Some(burst))
    }

    /// Runs the step `times` times.
    pub(in crate::device::cuda) fn launch(&mut self, device: &Cuda, times: usize) -> Result<()> {
        let mut left = times;
        while left > 0 {
            // The ring must hold all values that a launch counts.
            let steps = left.min(RING / self.counted) as u32;
            left -= steps as usize;
            let mut arguments = Arguments::on(device);
            // SAFETY: the recording, which holds `self`, keeps the matrix, the vectors and the slots of the
            // trace; `second_buffers` have room for vectors of any type.
            unsafe {
                arguments.kept(Parameter::value::<MatrixPointers>("matrix"), &self.matrix.0);
                self.vectors.iter().for_each(|&(parameter, at)| arguments.kept(parameter, &[at]));
                self.second_buffers.iter().for_each(|(parameter, second_buffer)| {
                    arguments.kept(*parameter, &[address(second_buffer)])
                });
            }
            arguments.scratch(WORDS, &self.words);
            arguments.scratch(LAST_ROUND, &self.last_round);
            if !self.numbers.is_empty() {
                arguments.numbers(&self.numbers, self.numbers.len());
            }
            // SAFETY: as above.
            unsafe { arguments.kept_slots(HOME, self.slots) };
            arguments.value(ROWS, self.rows);
            arguments.value(TIMES, steps);
            arguments.launch_together(&self.kernel, self.blocks, self.shared)?;
        }
        Ok(())
    }
}
