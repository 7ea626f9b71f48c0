//! z = L^-T D L^-1 r: two triangular solves, one after the other, in a single parallel region.
//!
//! A row can be solved after the rows that it depends on. Instead of a barrier after every level of rows,
//! each thread works through a strand of tasks and publishes how many it has done; another thread waits only
//! before a task that depends on one of them. No barrier is needed before the backward solve either: an
//! unknown that still needs L^-1 r of a row is itself a dependency of that row in the backward solve.
//! `schedule.rs` describes how the rows are cut, and `strands.rs` which thread runs which strand. Neither
//! changes a bit of the result.
//!
//! If nodes have several unknowns, rows are solved in square blocks with one column index for each block.

mod kernel;
mod pace;
mod pack;
mod schedule;
mod strands;

use super::chunked::check_shapes;
use crate::backend::SharedOperator;
use crate::device::cpu::{Cpu, CpuVector};
use crate::device::{Device, Operand, Sweep, Term, Update};
use crate::error::Result;
use crate::format::{Bsr, Csr};
use crate::operator::{Cost, LinearOperator};
use crate::parallel::lock;
use crate::scalar::Scalar;
use pace::Pace;
use pack::{Packed, Triangle};
use rayon::prelude::*;
use schedule::{Direction, Schedule};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use strands::{Strands, Vectors};

/// The block sizes that have compiled code.
const BLOCKS: Range<usize> = 1..7;
/// Builds the operator z = L^-T D L^-1 r. `factor` holds L below its diagonal and D on it; L has a unit
/// diagonal, and every row ends with its diagonal entry.
pub(in crate::backend) fn build<T: Scalar>(device: &Cpu, factor: Csr) -> Result<SharedOperator<Cpu, T>> {
    let (rows, entries, block) = (factor.rows(), factor.nnz(), best_block::<T>(&factor));
    let blocks = Bsr::from_csr(&factor, (block, block))?;
    // The blocks hold the same values.
    drop(factor);
    let triangle = Triangle::new(&blocks)?;
    let weight = block * block * size_of::<T>() + size_of::<u32>();
    // More strands than cores would only be cut into smaller pieces.
    let schedule =
        Schedule::new(&triangle.dependencies(Direction::Forward), device.threads_at_once(), weight)?;
    let threads = schedule.strands.len();
    log::info!(
        "triangular solves: blocks of {block} x {block}, {} on {threads} of {} threads",
        schedule.name,
        device.threads()
    );
    let packed: Vec<Packed<T>> =
        (0..threads).into_par_iter().map(|thread| triangle.pack(&schedule, thread)).collect::<Result<_>>()?;
    Ok(Arc::new(Triangles {
        rows,
        entries,
        strands: Strands::new(device, block, packed),
        scratch: Mutex::new(Scratch {
            vector: device.vector(rows, 1)?,
            slots: device.slots(1, 1)?,
            column: None,
            pace: Pace::default(),
        }),
    }))
}

/// Returns the block size that moves the fewest bytes, estimated from strips of rows; it
/// divides the number of rows.
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

/// Both triangles, cut into strands for the threads of a device.
struct Triangles<T> {
    rows: usize,
    entries: usize,
    strands: Strands<T>,
    /// Locked for a whole application, because the strands serve one application at a time.
    scratch: Mutex<Scratch<T>>,
}

/// What changes during an application.
struct Scratch<T> {
    /// For applications with beta other than 0, and to several columns.
    vector: CpuVector<T>,
    slots: <Cpu as Device>::Slots,
    /// A column of a vector with several, from the first application to such a vector on.
    column: Option<CpuVector<T>>,
    pace: Pace,
}

impl<T: Scalar> Triangles<T> {
    /// Computes z = L^-T D L^-1 x. The caller holds the lock of `scratch`.
    fn solve(&self, device: &Cpu, x: &CpuVector<T>, z: &mut CpuVector<T>, pace: &mut Pace) {
        let vectors = Vectors { x: x.data().as_ptr(), z: z.data_mut().as_mut_ptr() };
        self.strands.run(device, &vectors, pace);
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
        let Scratch { vector: scratch, slots, column, pace } = &mut *lock(&self.scratch);
        if k > 1 {
            let column = match column {
                Some(column) => column,
                None => column.insert(device.vector(self.rows, 1)?),
            };
            let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
            for index in 0..k {
                let own = x.data().iter().skip(index).step_by(k);
                column.data_mut().iter_mut().zip(own).for_each(|(to, x)| *to = *x);
                self.solve(device, column, scratch, pace);
                let z = z.data_mut().iter_mut().skip(index).step_by(k).zip(scratch.data());
                match beta == T::default() {
                    true => z.for_each(|(z, solved)| *z = alpha * *solved),
                    false => z.for_each(|(z, solved)| *z = alpha * *solved + beta * *z),
                }
            }
            return Ok(());
        }
        if (alpha, beta) == (1.0, 0.0) {
            self.solve(device, x, z, pace);
            return Ok(());
        }
        self.solve(device, x, scratch, pace);
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
        self.strands.bytes()
    }
}
