//! The strategies of the study.

use super::blocks::{Arrays, Sums};
use super::team::{Barrier, Queue, guided};
use super::{Product, Strategy};
use crate::backend::blocks::MOST;
use crate::device::Cpu;
use crate::scalar::Scalar;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

const ZERO_SUMS: Sums = [0.0; MOST];

/// Runs `work(thread)` on each thread after all threads have scaled their share of y.
fn after_scaling<T: Scalar>(device: &Cpu, product: &Product<'_, T>, work: impl Fn(usize) + Sync) {
    let threads = device.threads();
    let scaled = Barrier::new(threads);
    device.team(|thread| {
        product.y.scale(product.beta, thread, threads);
        scaled.wait();
        work(thread);
    });
}

/// Multiplies some blocks of one block row and adds the sums to y.
fn piece<T: Scalar>(
    arrays: &Arrays,
    block_row: usize,
    blocks: Range<usize>,
    product: &Product<'_, T>,
    shared: bool,
    flat: bool,
) {
    let mut sums = ZERO_SUMS;
    if flat {
        arrays.add_flat(blocks, product.x, &mut sums);
    } else {
        arrays.add(blocks, product.x, &mut sums);
    }
    arrays.finish(block_row, &sums, product, shared);
}

/// Multiplies blocks that may span several block rows, row by row.
fn across<T: Scalar>(arrays: &Arrays, task: &Across, product: &Product<'_, T>, flat: bool) {
    for block_row in task.first_row..=task.last_row {
        let row = arrays.row(block_row);
        let blocks = row.start.max(task.blocks.start)..row.end.min(task.blocks.end);
        if !blocks.is_empty() {
            piece(arrays, block_row, blocks, product, true, flat);
        }
    }
}

/// A task of [`across`].
#[derive(Clone, Debug)]
pub(crate) struct Across {
    first_row: usize,
    last_row: usize,
    blocks: Range<usize>,
}

/// Cuts all blocks into `count` tasks of equal size, in order.
fn equal_tasks(arrays: &Arrays, count: usize) -> impl Iterator<Item = Across> + '_ {
    let mut row = 0;
    (0..count).filter_map(move |task| {
        let cut = |task: usize| (arrays.blocks() as u128 * task as u128 / count as u128) as usize;
        let blocks = cut(task)..cut(task + 1);
        if blocks.is_empty() {
            return None;
        }
        let first_row = row;
        while arrays.begin(row + 1) < blocks.end {
            row += 1;
        }
        Some(Across { first_row, last_row: row, blocks })
    })
}

/// Returns the least size of a piece that gives each thread about `chunks` pieces.
fn least_piece(arrays: &Arrays, threads: usize, chunks: usize) -> usize {
    (arrays.blocks() / (threads * chunks)).max(1)
}

/// One thread, row after row.
pub(crate) struct Serial;

impl Strategy for Serial {
    const NAME: &'static str = "bsr-serial";
    type State = ();

    fn prepare(_: &Arrays, _: usize, _: usize) {}

    fn multiply<T: Scalar>((): &(), arrays: &Arrays, _: &Cpu, product: &Product<'_, T>) {
        product.y.scale(product.beta, 0, 1);
        (0..arrays.block_rows()).for_each(|row| piece(arrays, row, arrays.row(row), product, false, false));
    }
}

/// Whole block rows, one at a time to the next free thread.
pub(crate) struct WholeRows;

impl Strategy for WholeRows {
    const NAME: &'static str = "bsr-rows";
    type State = ();

    fn prepare(_: &Arrays, _: usize, _: usize) {}

    fn multiply<T: Scalar>((): &(), arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        let next = AtomicUsize::new(0);
        after_scaling(device, product, |_| {
            loop {
                let row = next.fetch_add(1, Ordering::Relaxed);
                if row >= arrays.block_rows() {
                    return;
                }
                piece(arrays, row, arrays.row(row), product, false, false);
            }
        });
    }
}

/// All threads share the blocks of each row and wait at the row's end. Threads beyond the number of cores
/// take no part: every row would wait until each of them has had a core.
pub(crate) struct SplitNaive;

impl Strategy for SplitNaive {
    const NAME: &'static str = "bsr-split-naive";
    /// The next block to hand out in each row.
    type State = Vec<AtomicUsize>;

    fn prepare(arrays: &Arrays, _: usize, _: usize) -> Vec<AtomicUsize> {
        (0..arrays.block_rows()).map(|_| AtomicUsize::new(0)).collect()
    }

    fn multiply<T: Scalar>(next: &Self::State, arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        begin_rows(next, arrays);
        let threads = device.threads_at_once();
        let row_over = Barrier::new(threads);
        after_scaling(device, product, |thread| {
            if thread >= threads {
                return;
            }
            for (row, next) in next.iter().enumerate() {
                let mut sums = ZERO_SUMS;
                while let Some(blocks) = guided(next, arrays.begin(row + 1), threads, 1) {
                    arrays.add(blocks, product.x, &mut sums);
                }
                row_over.wait();
                arrays.finish(row, &sums, product, true);
            }
        });
    }
}

fn begin_rows(next: &[AtomicUsize], arrays: &Arrays) {
    next.iter().enumerate().for_each(|(row, next)| next.store(arrays.begin(row), Ordering::Relaxed));
}

/// Like [`SplitNaive`] without the wait, in pieces of a least size; threads that had no work add nothing.
pub(crate) struct Split;

impl Strategy for Split {
    const NAME: &'static str = "bsr-split";
    /// The next block to hand out in each row, and the least size of a piece.
    type State = (Vec<AtomicUsize>, usize);

    fn prepare(arrays: &Arrays, threads: usize, chunks: usize) -> Self::State {
        (SplitNaive::prepare(arrays, threads, chunks), least_piece(arrays, threads, chunks))
    }

    fn multiply<T: Scalar>(state: &Self::State, arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        let (next, least) = state;
        begin_rows(next, arrays);
        let threads = device.threads();
        after_scaling(device, product, |_| {
            for (row, next) in next.iter().enumerate() {
                let (mut sums, mut worked) = (ZERO_SUMS, false);
                while let Some(blocks) = guided(next, arrays.begin(row + 1), threads, *least) {
                    worked = true;
                    arrays.add(blocks, product.x, &mut sums);
                }
                if worked {
                    arrays.finish(row, &sums, product, true);
                }
            }
        });
    }
}

/// The thread that takes a row cuts it into tasks with a maximum number of blocks, and any thread runs them.
pub(crate) struct MaxTasks;

impl Strategy for MaxTasks {
    const NAME: &'static str = "bsr-max-tasks";
    /// The maximum number of blocks of a task.
    type State = usize;

    fn prepare(arrays: &Arrays, threads: usize, chunks: usize) -> usize {
        least_piece(arrays, threads, chunks)
    }

    fn multiply<T: Scalar>(most: &usize, arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        let threads = device.threads();
        let queue = Queue::new(threads, threads);
        let next = AtomicUsize::new(0);
        let run = |(row, blocks): (usize, Range<usize>)| piece(arrays, row, blocks, product, true, false);
        after_scaling(device, product, |_| {
            loop {
                let row = next.fetch_add(1, Ordering::Relaxed);
                if row >= arrays.block_rows() {
                    break;
                }
                let blocks = arrays.row(row);
                for start in blocks.clone().step_by(*most) {
                    let task = (row, start..(start + most).min(blocks.end));
                    queue.push(task).into_iter().for_each(run);
                }
            }
            queue.stop_making();
            queue.run(run);
        });
    }
}

/// One thread makes tasks with a fixed number of blocks while the other threads run them.
pub(crate) struct FixedTasks;

impl Strategy for FixedTasks {
    const NAME: &'static str = "bsr-fixed-tasks";
    /// The number of tasks.
    type State = usize;

    fn prepare(_: &Arrays, threads: usize, chunks: usize) -> usize {
        threads * chunks
    }

    fn multiply<T: Scalar>(count: &usize, arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        let queue = Queue::new(device.threads(), 1);
        let run = |task: Across| across(arrays, &task, product, false);
        after_scaling(device, product, |thread| {
            if thread == 0 {
                for task in equal_tasks(arrays, *count) {
                    queue.push(task).into_iter().for_each(run);
                }
                queue.stop_making();
            }
            queue.run(run);
        });
    }
}

/// The tasks of [`FixedTasks`], made once beforehand.
pub(crate) struct FixedTasksPre;

impl Strategy for FixedTasksPre {
    const NAME: &'static str = "bsr-fixed-tasks-pre";
    type State = Vec<Across>;

    fn prepare(arrays: &Arrays, threads: usize, chunks: usize) -> Vec<Across> {
        equal_tasks(arrays, threads * chunks).collect()
    }

    fn multiply<T: Scalar>(tasks: &Self::State, arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        hand_out(tasks, arrays, device, product, false);
    }
}

/// The tasks of [`FixedTasksPre`], with the product that a GPU needs.
pub(crate) struct Flat;

impl Strategy for Flat {
    const NAME: &'static str = "bsr-flat";
    type State = Vec<Across>;

    fn prepare(arrays: &Arrays, threads: usize, chunks: usize) -> Vec<Across> {
        FixedTasksPre::prepare(arrays, threads, chunks)
    }

    fn multiply<T: Scalar>(tasks: &Self::State, arrays: &Arrays, device: &Cpu, product: &Product<'_, T>) {
        hand_out(tasks, arrays, device, product, true);
    }
}

/// Runs tasks, one at a time on the next free thread.
fn hand_out<T: Scalar>(
    tasks: &[Across],
    arrays: &Arrays,
    device: &Cpu,
    product: &Product<'_, T>,
    flat: bool,
) {
    let next = AtomicUsize::new(0);
    after_scaling(device, product, |_| {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            across(arrays, task, product, flat);
        }
    });
}
