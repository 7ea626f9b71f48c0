//! z = L^-T D L^-1 r: two triangular solves, one after the other, in a single parallel region.
//!
//! A row can be solved after the rows that it depends on. Instead of a barrier after every level of rows, each thread works
//! through a strand of tasks and publishes how many it has done; another thread waits only before a task that depends on one of
//! them. No barrier is needed before the backward solve either: an unknown that still needs L^-1 r of a row is itself a
//! dependency of that row in the backward solve. `schedule.rs` describes how the rows are cut; the cut changes no bit of the
//! result.
//!
//! If nodes have several unknowns, rows are solved in square blocks with one column index for each block.

mod kernel;
mod pack;
mod schedule;

use super::chunked::check_shapes;
use crate::backend::SharedOperator;
use crate::device::cpu::{Cpu, CpuVector};
use crate::device::{Device, Operand, Sweep, Term, Update};
use crate::error::{Error, Result};
use crate::format::{Bsr, Csr};
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use kernel::Cursor;
use pack::{Packed, Triangle};
use rayon::prelude::*;
use schedule::{Direction, Schedule};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The block sizes that have compiled code.
const BLOCKS: Range<usize> = 1..7;
/// Polls before a waiting thread yields its core. There are no more strands than cores, so most waits end sooner; a yielded core
/// may stay with another process for milliseconds.
const POLLS: u32 = 2000;

/// Builds the operator z = L^-T D L^-1 r. `factor` holds L below its diagonal and D on it; L has a unit diagonal, and every row
/// ends with its diagonal entry.
pub(in crate::backend) fn build<T: Scalar>(device: &Cpu, factor: Csr) -> Result<SharedOperator<Cpu, T>> {
    let (rows, entries, block) = (factor.rows(), factor.nnz(), best_block::<T>(&factor));
    let blocks = Bsr::from_csr(&factor, (block, block))?;
    // The blocks hold the same values.
    drop(factor);
    let triangle = Triangle::new(&blocks)?;
    let weight = block * block * size_of::<T>() + size_of::<u32>();
    // With more strands than cores, a wait for another strand could last until the operating system schedules that strand.
    let schedule =
        Schedule::new(&triangle.dependencies(Direction::Forward), device.threads_at_once(), weight)?;
    let threads = schedule.strands.len();
    log::info!(
        "triangular solves: blocks of {block} x {block}, {} on {threads} of {} threads",
        schedule.name,
        device.threads()
    );
    let strands: Vec<Packed<T>> =
        (0..threads).into_par_iter().map(|thread| triangle.pack(&schedule, thread)).collect::<Result<_>>()?;
    Ok(Arc::new(Triangles {
        rows,
        entries,
        team: Team {
            block,
            avx2: device.avx2,
            strands,
            done: (0..threads).map(|_| Progress::default()).collect(),
        },
        scratch: Mutex::new((device.vector(rows, 1)?, device.slots(1, 1)?, None)),
    }))
}

/// Returns the block size that moves the fewest bytes, estimated from strips of rows; it divides the number of rows.
fn best_block<T: Scalar>(factor: &Csr) -> usize {
    /// A multiple of every size.
    const STRIP: usize = 60;
    const STRIPS: usize = 200;
    let strips = factor.rows() / STRIP;
    let step = strips.div_ceil(STRIPS).max(1);
    let bytes = |block: usize| {
        let weight = block * block * size_of::<T>() + size_of::<u32>();
        let mut columns = Vec::new();
        let mut bytes = 0;
        for first in (0..strips).step_by(step).map(|strip| strip * STRIP) {
            for top in (first..first + STRIP).step_by(block) {
                columns.clear();
                let rows = (top..top + block).flat_map(|row| factor.row_columns(row));
                columns.extend(rows.map(|&column| column as usize / block));
                columns.sort_unstable();
                columns.dedup();
                bytes += columns.len() * weight;
            }
        }
        bytes
    };
    let sizes = BLOCKS.filter(|&block| factor.rows().is_multiple_of(block));
    sizes.min_by_key(|&block| bytes(block)).unwrap_or(1)
}

/// The number of tasks that a thread has done, on separate cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU32);

/// Both triangles, cut for the threads of a device.
struct Triangles<T> {
    rows: usize,
    entries: usize,
    team: Team<T>,
    /// Scratch vectors for applications with beta other than 0, and for several columns. Locked for a whole application, because the task counts in `team`
    /// serve one application at a time.
    scratch: Mutex<Scratch<T>>,
}

/// A vector, its slots, and from the first application to several columns on a second vector.
type Scratch<T> = (CpuVector<T>, <Cpu as Device>::Slots, Option<CpuVector<T>>);

/// The data that the threads share.
struct Team<T> {
    block: usize,
    avx2: bool,
    strands: Vec<Packed<T>>,
    done: Vec<Progress>,
}

/// The vectors of an application, shared by all threads.
#[derive(Clone, Copy)]
struct Vectors<T> {
    x: *const T,
    z: *mut T,
}

// SAFETY: each unknown is written by one thread, and read by another only after that thread has seen that its task is done.
unsafe impl<T: Sync> Sync for Vectors<T> {}

impl<T: Scalar> Triangles<T> {
    /// Computes z = L^-T D L^-1 x. The caller holds the lock of `scratch`.
    fn solve(&self, device: &Cpu, x: &CpuVector<T>, z: &mut CpuVector<T>) -> Result<()> {
        let threads = self.team.strands.len();
        if threads > device.threads() {
            let what = "threads of the device on which triangles are solved";
            return Err(Error::Dimension { what, expected: threads, got: device.threads() });
        }
        self.team.done.iter().for_each(|done| done.0.store(0, Ordering::Relaxed));
        let vectors = Vectors { x: x.data().as_ptr(), z: z.data_mut().as_mut_ptr() };
        let (team, vectors) = (&self.team, &vectors);
        if threads == 1 {
            team.strand(0, vectors);
        } else {
            // Strands wait for each other, so each one needs its own thread.
            device.team(|thread| {
                if thread < threads {
                    team.strand(thread, vectors);
                }
            });
        }
        Ok(())
    }
}

impl<T: Scalar> Team<T> {
    /// Runs the strand of one thread, forward and backward.
    fn strand(&self, thread: usize, vectors: &Vectors<T>) {
        let packed = &self.strands[thread];
        let mut at = Cursor::new(packed, vectors.x, vectors.z);
        let (mut segment, mut wait) = (0, 0);
        for (number, task) in packed.tasks.iter().enumerate() {
            let segments = segment..task.segments_end as usize;
            (segment, wait) = (segments.end, self.wait(packed, wait..task.waits_end as usize));
            let forward = number < packed.tasks.len() / 2;
            // SAFETY: the strand was packed with blocks of this size for vectors of this length, the unknowns that its task
            // depends on are solved, and every unit belongs to one strand.
            unsafe { kernel::run(packed, &mut at, (self.block, self.avx2), forward, segments) };
            self.done[thread].0.store(number as u32 + 1, Ordering::Release);
        }
    }

    /// Waits until the other threads have done the tasks that these waits require; returns the end of the range.
    fn wait(&self, packed: &Packed<T>, waits: Range<usize>) -> usize {
        for wait in &packed.waits[waits.clone()] {
            let done = &self.done[wait.thread as usize].0;
            let mut polls = 0_u32;
            while done.load(Ordering::Acquire) < wait.tasks {
                polls = polls.wrapping_add(1);
                if polls.is_multiple_of(POLLS) {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
        waits.end
    }
}

impl<T: Scalar> LinearOperator<Cpu, T> for Triangles<T> {
    fn shape(&self) -> (usize, usize) {
        (self.rows, self.rows)
    }

    fn apply(
        &self,
        device: &Cpu,
        alpha: f64,
        x: &CpuVector<T>,
        beta: f64,
        z: &mut CpuVector<T>,
    ) -> Result<()> {
        let k = check_shapes((self.rows, self.rows), x, z)?;
        let (scratch, slots, column) = &mut *lock(&self.scratch);
        if k > 1 {
            let column = match column {
                Some(column) => column,
                None => column.insert(device.vector(self.rows, 1)?),
            };
            let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
            for index in 0..k {
                let own = x.data().iter().skip(index).step_by(k);
                column.data_mut().iter_mut().zip(own).for_each(|(to, x)| *to = *x);
                self.solve(device, column, scratch)?;
                let z = z.data_mut().iter_mut().skip(index).step_by(k).zip(scratch.data());
                match beta == T::default() {
                    true => z.for_each(|(z, solved)| *z = alpha * *solved),
                    false => z.for_each(|(z, solved)| *z = alpha * *solved + beta * *z),
                }
            }
            return Ok(());
        }
        if (alpha, beta) == (1.0, 0.0) {
            return self.solve(device, x, z);
        }
        self.solve(device, x, scratch)?;
        let terms = [Term::number(0, Operand::Read(0)), Term::number(1, Operand::Write(0))];
        let updates = [Update { target: 0, terms: if beta == 0.0 { &terms[..1] } else { &terms } }];
        let sweep = Sweep {
            name: "triangles",
            numbers: &[alpha, beta],
            writes: 1,
            reads: 1,
            updates: &updates,
            dots: &[],
            then: &[],
        };
        device.sweep(&mut [z], &[scratch], slots, &sweep)
    }

    fn cost(&self) -> Cost {
        // x is read, z is written, and z is read and written once more.
        let vectors = 4 * self.rows * size_of::<T>();
        Cost { bytes: self.storage() + vectors as u64, flops: 4 * self.entries as u64 }
    }

    fn storage(&self) -> u64 {
        self.team.strands.iter().map(Packed::bytes).sum()
    }
}
