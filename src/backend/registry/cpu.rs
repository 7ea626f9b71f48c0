//! The strategies on the CPU.

use super::ALL_PRECISIONS;
use crate::backend::cpu::studies::bsr_tasks;
use crate::backend::{Build, Builder, Entry, Param, blocks, cpu};

const TASK_BLOCK: Param = Param {
    name: "block",
    values: blocks::TASK_SIZES,
    summary: "rows x columns of a block; auto finds the size that moves the fewest bytes",
    others: Some(blocks::ANY_SIZE),
};
/// Parameters of the strategies that hand out rows of blocks.
const BLOCK_ROWS: &[Param] = &[TASK_BLOCK];
/// Parameters of those that cut work into pieces.
const BLOCK_TASKS: &[Param] = &[
    TASK_BLOCK,
    Param {
        name: "chunks",
        values: bsr_tasks::CHUNKS,
        summary: "pieces of work for each thread",
        others: None,
    },
];

/// The row of a strategy for tasks of blocks.
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
        summary: "one thread, one row after the other: the reference for all others",
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
        summary: "rows shared among the threads by their number of entries; AVX2 where there is any",
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
        summary: "dense blocks of 2x2 to 8x8, each size its own AVX2 code; zeros that fill blocks are multiplied",
        params: &[Param {
            name: "block",
            values: cpu::bsr::SIZES,
            summary: "rows x columns of a block; auto finds the size that moves the fewest bytes",
            others: None,
        }],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    tasks::<bsr_tasks::Serial>(
        "one thread, block row after block row: where the study of task strategies begins",
        BLOCK_ROWS,
        true,
    ),
    tasks::<bsr_tasks::WholeRows>("block rows, one at a time to whichever thread is free", BLOCK_ROWS, true),
    tasks::<bsr_tasks::SplitNaive>(
        "all threads share the blocks of each row, and wait for each other in every row",
        BLOCK_ROWS,
        false,
    ),
    tasks::<bsr_tasks::Split>(
        "the same without the wait; threads without work add nothing",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::MaxTasks>(
        "rows are cut into tasks of at most so many blocks, which any thread runs",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::FixedTasks>(
        "tasks of exactly so many blocks across rows, made by one thread",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::FixedTasksPre>(
        "the same tasks, made once beforehand: the fastest of the study",
        BLOCK_TASKS,
        false,
    ),
    tasks::<bsr_tasks::Flat>(
        "the same with one loop over values, as a GPU needs it: rows and columns by division",
        BLOCK_TASKS,
        false,
    ),
    Entry {
        name: "sbsr",
        builder: Builder::Cpu(Build::of::<cpu::sbsr::SbsrFamily>()),
        family: "bsr",
        format: "bsr of one triangle",
        from: "textbook",
        summary: "square blocks; of two that mirror each other in a symmetric matrix one is stored, and read twice",
        params: &[Param {
            name: "block",
            values: blocks::SQUARES,
            summary: "rows and columns of a block; auto finds the size that moves the fewest bytes",
            others: None,
        }],
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
        summary: "eight rows at a time, sorted in chunks; columns in 16 bits or fewer where they lie near each other",
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
        summary: "equal shares of rows and entries together, however long a row is; parts of rows added in order",
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
        summary: "graphs without weights: 4 bytes an edge, several sums a row; refuses matrices with values",
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
        summary: "every place stored, for matrices of at most 2^24 places; zeros are multiplied",
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
        summary: "that crate's product on one thread: a yardstick",
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
        summary: "that crate's product on one thread: a yardstick",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: &[crate::scalar::Precision::F64],
    },
];
