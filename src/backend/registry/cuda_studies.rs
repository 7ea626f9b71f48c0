//! Registry rows of the studies' backends on NVIDIA GPUs.

use super::ALL_PRECISIONS;
use super::cuda::{block, unroll};
use crate::backend::cuda::studies::{
    self, adaptive, binned, bins, bsr_tasks, entries, hybrid, spmm, thread, vector_smem, warp,
};
use crate::backend::{Build, Builder, Entry, Family};
use crate::device::Cuda;
use crate::params::Param;

/// Returns the row of a deterministic CUDA kernel over CSR without parameters.
const fn cuda_csr<F: Family<Cuda>>(
    (name, family): (&'static str, &'static str),
    from: &'static str,
    summary: &'static str,
) -> Entry {
    Entry {
        name,
        builder: Builder::Cuda(Build::of::<F>()),
        family,
        format: "csr",
        from,
        summary,
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    }
}

/// Returns the row of a kernel of the block-band study.
const fn bsr_tasks<V: bsr_tasks::Variant>(summary: &'static str) -> Entry {
    Entry {
        name: V::NAME,
        builder: Builder::Cuda(Build::of::<bsr_tasks::Tasks<V>>()),
        family: "bsr-tasks",
        format: "bsr and tasks",
        from: "block-band",
        summary,
        params: V::PARAMS,
        deterministic: false,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    }
}

/// Returns the row of a kernel of the study of SpMM.
const fn spmm<V: spmm::Variant>(summary: &'static str, params: &'static [Param]) -> Entry {
    let row = cuda_csr::<spmm::Spmm<V>>((V::NAME, "spmm-study"), "spmm", summary);
    Entry { columns: true, params, ..row }
}

const THREADS: Param =
    Param::word("block", thread::BLOCKS, "threads in a block; serial-vs-cuda compares these sizes");
const SUMS: Param = Param::word(
    "sums",
    studies::SUMS,
    "where a thread keeps its part of a row's sum; four-kernels tried shared memory and found it slower",
);
const FIT: Param = Param::word(
    "fit",
    studies::FIT,
    "threads that must fit on a multiprocessor and share its registers; auto decides by the lengths of rows",
);
const LISTS: &str = "csr and lists of rows";
const HYBRID_SHORT: Param =
    Param::word("short", hybrid::SHORT, "longest row, in entries, that one thread takes");

pub(super) const ENTRIES: &[Entry] = &[
    bsr_tasks::<bsr_tasks::RowMajor>(
        "a thread per value in memory order, each product added to shared memory atomically",
    ),
    bsr_tasks::<bsr_tasks::Private>(
        "a thread per value with a private sum for each row of a block, in local memory",
    ),
    bsr_tasks::<bsr_tasks::Team>(
        "as many threads as a block has values, each with one position of the block; refuses larger blocks",
    ),
    bsr_tasks::<bsr_tasks::Unrolled>(
        "a thread per column of a block, several rows at once in registers: the fastest of the study",
    ),
    Entry {
        params: &[THREADS, FIT, SUMS],
        ..cuda_csr::<thread::Thread>(
            ("thread", "thread"),
            "four-kernels; serial-vs-cuda",
            "one thread per row, unrolled by 4; the mean row length decides how many blocks fit at once",
        )
    },
    Entry {
        params: &[THREADS],
        ..cuda_csr::<thread::ThreadFirst>(
            ("thread-v1", "thread"),
            "four-kernels, first version; serial-vs-cuda",
            "one thread per row, one entry after the other with plain loads, a grid as large as the matrix",
        )
    },
    Entry {
        params: &[unroll(warp::UNROLLS), SUMS],
        ..cuda_csr::<warp::Warp>(
            ("warp", "warp"),
            "four-kernels",
            "one warp per row, several entries per lane at once: for rows of many entries",
        )
    },
    cuda_csr::<warp::WarpFirst>(
        ("warp-v1", "warp"),
        "four-kernels, first version",
        "one warp per row, plain loads, a grid as large as the matrix",
    ),
    Entry {
        format: "csr and bounds of bins",
        params: &[
            Param::word("entries", bins::ENTRIES, "entries that fill a bin; a row counts as one more entry"),
            SUMS,
        ],
        ..cuda_csr::<bins::Bins>(
            ("bins", "bins"),
            "four-kernels",
            "consecutive rows in bins of about equally many entries; a warp goes through the rows of its bin",
        )
    },
    Entry {
        deterministic: false,
        ..cuda_csr::<entries::BinsFirst>(
            ("bins-v1", "bins"),
            "four-kernels, first version",
            "one thread per entry, which searches its row and adds to it atomically; a separate kernel scales y",
        )
    },
    Entry {
        format: LISTS,
        params: &[
            HYBRID_SHORT,
            Param::word("long", hybrid::LONG, "longest row, in entries, that one warp takes"),
            FIT,
            SUMS,
        ],
        ..cuda_csr::<hybrid::Hybrid>(
            ("hybrid", "hybrid"),
            "four-kernels",
            "for long uneven rows: short rows by threads, medium ones by warps, long ones by blocks, in one launch",
        )
    },
    Entry {
        format: LISTS,
        params: &[HYBRID_SHORT],
        ..cuda_csr::<hybrid::HybridFirst>(
            ("hybrid-v1", "hybrid"),
            "four-kernels, first version",
            "short rows by threads, all other rows by warps, plain loads, a grid as large as the matrix",
        )
    },
    cuda_csr::<thread::ScalarRows>(
        ("scalar", "thread"),
        "seven-strategies",
        "one thread per row, one entry after the other, read-only loads, dot products fused",
    ),
    Entry {
        format: "csr and bounds of pieces",
        params: &[
            Param::word("short", adaptive::SHORT, "longest row, in entries, that one thread takes"),
            block(adaptive::BLOCKS),
            unroll(adaptive::UNROLLS),
            Param::word(
                "set",
                adaptive::SETS,
                "the study's named sets; it does not give their contents, so this is our interpretation: \
                          combined is block=512,unroll=4, p100 a grid of the 114688 threads that a P100 holds at once",
            ),
        ],
        ..cuda_csr::<adaptive::Adaptive>(
            ("adaptive", "adaptive"),
            "seven-strategies",
            "each block by threads if its rows are short, by warps otherwise",
        )
    },
    Entry {
        params: &[Param::word(
            "scan",
            vector_smem::SCANS,
            "entries scanned in each segment: all of the row, as in the study, or onwards from the last",
        )],
        ..cuda_csr::<vector_smem::VectorSmem>(
            ("vector-smem", "vector-smem"),
            "seven-strategies",
            "one warp per row, x from segments of 1024 in shared memory: slow unless each row lies in few segments",
        )
    },
    Entry {
        format: LISTS,
        params: &[
            Param::word("short", binned::FIRST_CLASS, "longest row, in entries, that one thread takes"),
            Param::word("long", binned::SECOND_CLASS, "longest row, in entries, that eight threads share"),
        ],
        ..cuda_csr::<binned::Binned>(
            ("binned", "vector"),
            "seven-strategies",
            "a launch of vector for each class of rows: 1, 8 or 32 threads for short, medium and long rows",
        )
    },
    spmm::<spmm::Naive>("several columns: a thread per element of the result", &[]),
    spmm::<spmm::Warp>("several columns: a warp per row, whose lanes stride over the columns", spmm::PARAMS),
    spmm::<spmm::WarpSmem>(
        "several columns: like spmm-warp, with the entries of the matrix staged in shared memory",
        spmm::PARAMS,
    ),
    spmm::<spmm::WarpVec4>(
        "several columns: like spmm-warp, four columns per lane in packed loads, which the study found fastest",
        spmm::PARAMS,
    ),
    spmm::<spmm::WarpSmemVec4>(
        "several columns: like spmm-warp-vec4, with the entries of the matrix staged in shared memory",
        spmm::PARAMS,
    ),
];
