//! Registry rows of the CPU backends.

use super::ALL_PRECISIONS;
use crate::backend::cpu::studies::bsr_tasks;
use crate::backend::{Build, Builder, Entry, blocks, cpu};
use crate::params::Param;

const TASK_BLOCK: Param = blocks::any_block(blocks::TASK_SIZES);
const CHUNKS: Param = Param::word("chunks", bsr_tasks::CHUNKS, "pieces of work for each thread");
/// Parameters of the strategies that distribute whole block rows.
const BLOCK_ROWS: &[Param] = &[TASK_BLOCK, blocks::SIZE];
/// Parameters of the strategies that cut work into pieces.
const BLOCK_TASKS: &[Param] = &[TASK_BLOCK, CHUNKS, blocks::SIZE];
/// Parameters of the strategy whose product takes every size as numbers.
const FLAT_TASKS: &[Param] = &[TASK_BLOCK, CHUNKS];

/// Returns the row of a strategy for tasks of blocks.
const fn tasks<S: bsr_tasks::Strategy>(
    summary: &'static str,
    params: &'static [Param],
    deterministic: bool,
) -> Entry {
    Entry {
        name: S::NAME,
        builder: Builder::Cpu(Build::of::<bsr_tasks::Shared<S>>()),
        family: "bsr-tasks",
        format: "bsr",
        from: "block-band",
        summary,
        params,
        deterministic,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "serial",
        builder: Builder::Cpu(Build::of::<cpu::serial::Serial>()),
        family: "serial",
        format: "csr",
        from: "textbook",
        summary: "one thread, row by row: the reference for all other backends",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "rows",
        builder: Builder::Cpu(Build::of::<cpu::rows::Rows>()),
        family: "rows",
        format: "csr",
        from: "textbook",
        summary: "for most matrices: rows shared among threads by number of entries; AVX2 if available",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr",
        builder: Builder::Cpu(Build::of::<cpu::bsr::BsrFamily>()),
        family: "bsr",
        format: "bsr",
        from: "textbook",
        summary: "for dense blocks of 2x2 to 8x8: compiled AVX2 code for each size; zeros that fill blocks are multiplied",
        params: &[Param::word(
            "block",
            cpu::bsr::SIZES,
            "rows x columns of a block; auto takes the size that moves the fewest bytes",
        )],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    tasks::<bsr_tasks::Serial>(
        "one thread, block row after block row: the baseline of the study of task strategies",
        BLOCK_ROWS,
        true,
    ),
    tasks::<bsr_tasks::WholeRows>("block rows, one at a time to the next free thread", BLOCK_ROWS, true),
    tasks::<bsr_tasks::SplitNaive>(
        "all threads share the blocks of each row, and wait for each other after every row",
        BLOCK_ROWS,
        false,
    ),
    tasks::<bsr_tasks::Split>(
        "like bsr-split-naive without the wait; threads without work add nothing",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::MaxTasks>(
        "rows are cut into tasks with a maximum number of blocks, which any thread runs",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::FixedTasks>(
        "tasks with a fixed number of blocks, across rows, made by one thread during the product",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::FixedTasksPre>(
        "the tasks of bsr-fixed-tasks, made once beforehand: the fastest of the study",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::Flat>(
        "like bsr-fixed-tasks-pre with one loop over values, as on a GPU: rows and columns by division",
        FLAT_TASKS,
        false,
    ),
    Entry {
        name: "sbsr",
        builder: Builder::Cpu(Build::of::<cpu::sbsr::SbsrFamily>()),
        family: "bsr",
        format: "bsr of one triangle",
        from: "textbook",
        summary: "for symmetric matrices of square blocks: of two mirrored blocks one is stored, and read twice",
        params: &[Param::word(
            "block",
            blocks::SQUARES,
            "rows and columns of a block; auto takes the size that moves the fewest bytes",
        )],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "sell",
        builder: Builder::Cpu(Build::of::<cpu::sell::SellFamily>()),
        family: "sell",
        format: "sell",
        from: "Kreutzer, Hager, Wellein, Fehske and Bishop 2014",
        summary: "for stencils, bands and meshes: eight rows at a time, sorted in chunks; columns in 16 bits or fewer if near",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "merge",
        builder: Builder::Cpu(Build::of::<cpu::merge::Merge>()),
        family: "merge",
        format: "csr",
        from: "Merrill and Garland 2016",
        summary: "for rows of very different lengths: equal shares of rows and entries together; parts of rows added in order",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "pull",
        builder: Builder::Cpu(Build::of::<cpu::pull::Pull>()),
        family: "rows",
        format: "csr without values",
        from: "textbook",
        summary: "for graphs without weights: 4 bytes per edge, several sums per row; refuses matrices with values",
        params: &[],
        deterministic: true,
        columns: true,
        values: false,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "dense",
        builder: Builder::Cpu(Build::of::<cpu::dense::DenseFamily>()),
        family: "dense",
        format: "dense",
        from: "textbook",
        summary: "for small dense matrices, at most 2^24 values; zeros are stored and multiplied",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    #[cfg(feature = "sprs")]
    Entry {
        name: "sprs",
        builder: Builder::Cpu(Build::of::<cpu::sprs::Sprs>()),
        family: "sprs",
        format: "csr of sprs",
        from: "crate sprs",
        summary: "the product of the crate sprs on one thread, for comparison",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: &[crate::scalar::Precision::F64],
    },
    #[cfg(feature = "nalgebra")]
    Entry {
        name: "nalgebra",
        builder: Builder::Cpu(Build::of::<cpu::nalgebra::Nalgebra>()),
        family: "nalgebra",
        format: "csr of nalgebra-sparse",
        from: "crate nalgebra-sparse",
        summary: "the product of the crate nalgebra-sparse on one thread, for comparison",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: &[crate::scalar::Precision::F64],
    },
];
