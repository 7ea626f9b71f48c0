//! The strategies on NVIDIA GPUs.

use super::ALL_PRECISIONS;
use crate::backend::{Build, Builder, Entry, Family, Param, blocks, cuda};
use crate::device::Cuda;
use crate::scalar::Precision;

/// What an algorithm of cuSPARSE does, with what all of them refuse.
macro_rules! library {
    ($does:literal) => {
        concat!($does, "; refuses empty matrices and 2^31 entries")
    };
}

/// The row of an algorithm of cuSPARSE.
const fn cusparse<A: cuda::cusparse::Algorithm>(
    format: &'static str,
    summary: &'static str,
    deterministic: bool,
) -> Entry {
    Entry {
        name: A::NAME,
        builder: Builder::Cuda(Build::of::<cuda::cusparse::Cusparse<A>>()),
        family: "cusparse",
        format,
        from: "NVIDIA cuSPARSE",
        summary,
        params: &[],
        deterministic,
        columns: false,
        values: true,
        precisions: &[Precision::F64, Precision::F32],
    }
}

/// The row of a CUDA kernel over CSR that is deterministic and has no parameters.
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

/// The row of one of the block-band study's kernels.
const fn bsr_tasks<V: cuda::bsr_tasks::Variant>(summary: &'static str) -> Entry {
    Entry {
        name: V::NAME,
        builder: Builder::Cuda(Build::of::<cuda::bsr_tasks::Tasks<V>>()),
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

const SQUARES: &[Param] = &[Param {
    name: "block",
    values: blocks::SQUARES,
    summary: "rows and columns of a block; auto finds the size that moves the fewest bytes",
    others: None,
}];

const UNROLL: Param = Param {
    name: "unroll",
    values: &[],
    summary: "entries that a thread loads before it uses the first",
    others: None,
};
const BLOCK: Param = Param { name: "block", values: &[], summary: "threads in a block", others: None };
const LISTS: &str = "csr and lists of rows";
const HYBRID_SHORT: Param = Param {
    name: "short",
    values: cuda::four_kernels::SHORT,
    summary: "entries of the longest row that a thread takes",
    others: None,
};

pub(super) const ENTRIES: [Entry; 32] = [
    Entry {
        name: "csr",
        builder: Builder::Cuda(Build::of::<cuda::csr::CsrFamily>()),
        family: "csr",
        format: "csr in windows",
        from: "after Greathouse and Daga 2014",
        summary: "equally many entries a block, rows of all lengths; giant rows split; dot products and sweeps fused",
        params: &[cuda::csr::CUT],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "pull",
        builder: Builder::Cuda(Build::of::<cuda::csr::Pull>()),
        family: "csr",
        format: "csr in windows, without values",
        from: "after Greathouse and Daga 2014",
        summary: "graphs without weights: 4 bytes an edge or 2, twice the entries a block; refuses matrices with values",
        params: &[cuda::csr::CUT],
        deterministic: true,
        columns: false,
        values: false,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "bsr",
        builder: Builder::Cuda(Build::of::<cuda::bsr::BsrFamily>()),
        family: "bsr",
        format: "bsr, row by row within a row of blocks",
        from: "ours",
        summary: "dense blocks: a warp or a part of one a row of blocks, x loaded once for all rows of a block",
        params: cuda::bsr::PARAMS,
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "vector",
        builder: Builder::Cuda(Build::of::<cuda::vector::Vector>()),
        family: "vector",
        format: "csr",
        from: "Bell and Garland 2008; seven-strategies",
        summary: "1 to 32 threads a row, by the mean row length; dot products fused",
        params: &[
            Param {
                name: "threads",
                values: &["auto", "1", "2", "4", "8", "16", "32"],
                summary: "threads that share a row; seven-strategies has a warp, 32",
                others: None,
            },
            Param { values: cuda::vector::UNROLLS, ..UNROLL },
            Param { values: cuda::vector::BLOCKS, ..BLOCK },
        ],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "sell",
        builder: Builder::Cuda(Build::of::<cuda::sell::Sell>()),
        family: "sell",
        format: "sell",
        from: "Kreutzer, Hager, Wellein, Fehske and Bishop 2014",
        summary: "a thread a row, 32 rows side by side, sorted by length; columns in 16 bits or fewer where they lie near",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "burst",
        builder: Builder::Cuda(Build::of::<cuda::burst::BurstFamily>()),
        family: "burst",
        format: "sell, unsorted",
        from: "ours",
        summary: "small systems: many iterations in one launch, with the vectors in registers; a thread a row",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "ell",
        builder: Builder::Cuda(Build::of::<cuda::ell::EllFamily>()),
        family: "sell",
        format: "ell",
        from: "Bell and Garland 2008",
        summary: "a thread a row, all rows as long as the longest; refuses more than 3 places for each entry",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "dcsr",
        builder: Builder::Cuda(Build::of::<cuda::dcsr::DcsrFamily>()),
        family: "dcsr",
        format: "dcsr",
        from: "textbook",
        summary: "only rows that hold entries are visited; a bit a row for the others",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "merge",
        builder: Builder::Cuda(Build::of::<cuda::merge::Merge>()),
        family: "merge",
        format: "csr and cuts",
        from: "Merrill and Garland 2016",
        summary: "equal shares of rows and entries together for every block, however long a row is; dot products fused",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "dense",
        builder: Builder::Cuda(Build::of::<cuda::dense::DenseFamily>()),
        family: "dense",
        format: "dense",
        from: "NVIDIA cuBLAS",
        summary: "every place stored, for matrices of 1 to 2^24 places; zeros are multiplied by the vendor's library",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: &[Precision::F64, Precision::F32],
    },
    cusparse::<cuda::cusparse::Default>(
        "csr",
        library!("the vendor's library, preprocessed: the yardstick"),
        false,
    ),
    cusparse::<cuda::cusparse::First>(
        "csr",
        library!("the library's first algorithm over CSR, preprocessed"),
        false,
    ),
    cusparse::<cuda::cusparse::Second>(
        "csr",
        library!("the library's second algorithm over CSR, preprocessed: the same bits on every run"),
        true,
    ),
    cusparse::<cuda::cusparse::Sliced>(
        "sell",
        library!("the library's product over slices of 32 rows, unsorted"),
        false,
    ),
    Entry {
        params: SQUARES,
        ..cusparse::<cuda::cusparse::Blocked>(
            "bsr",
            library!("the library's product over square blocks, which must divide the matrix"),
            false,
        )
    },
    Entry {
        builder: Builder::Cuda(Build::of::<cuda::cusparse::Legacy>()),
        params: SQUARES,
        ..cusparse::<cuda::cusparse::Legacy>(
            "bsr",
            library!(
                "the library's product from before over square blocks, which must divide the matrix, where it still has one"
            ),
            false,
        )
    },
    bsr_tasks::<cuda::bsr_tasks::RowMajor>(
        "a thread a value in the order of memory, each product added to shared memory atomically",
    ),
    bsr_tasks::<cuda::bsr_tasks::Private>(
        "a thread a value with a sum for each row of a block, in local memory",
    ),
    bsr_tasks::<cuda::bsr_tasks::Team>(
        "as many threads as a block has values, each with one place of it; refuses blocks of more",
    ),
    bsr_tasks::<cuda::bsr_tasks::Unrolled>(
        "a thread a column of a block, several rows at once in registers: the fastest of the study",
    ),
    Entry {
        params: &[Param {
            name: "block",
            values: cuda::four_kernels::BLOCKS,
            summary: "threads in a block; serial-vs-cuda goes through them",
            others: None,
        }],
        ..cuda_csr::<cuda::four_kernels::Thread>(
            ("thread", "thread"),
            "four-kernels; serial-vs-cuda",
            "a thread a row, unrolled by 4; blocks that shall fit at once by the mean row length",
        )
    },
    cuda_csr::<cuda::four_kernels::ThreadFirst>(
        ("thread-v1", "thread"),
        "four-kernels, first version; serial-vs-cuda",
        "a thread a row, one entry after the other by plain loads, a grid as large as the matrix",
    ),
    Entry {
        params: &[Param { values: cuda::four_kernels::WARP_UNROLLS, ..UNROLL }],
        ..cuda_csr::<cuda::four_kernels::Warp>(
            ("warp", "warp"),
            "four-kernels",
            "a warp a row, several entries a lane at once: for rows of many entries",
        )
    },
    cuda_csr::<cuda::four_kernels::WarpFirst>(
        ("warp-v1", "warp"),
        "four-kernels, first version",
        "a warp a row, plain loads, a grid as large as the matrix",
    ),
    Entry {
        format: "csr and bounds of bins",
        params: &[Param {
            name: "entries",
            values: cuda::four_kernels::BIN_ENTRIES,
            summary: "entries that fill a bin; a row counts as one more",
            others: None,
        }],
        ..cuda_csr::<cuda::four_kernels::Bins>(
            ("bins", "bins"),
            "four-kernels",
            "consecutive rows in bins of about as many entries; a warp goes through the rows of its bin",
        )
    },
    Entry {
        deterministic: false,
        ..cuda_csr::<cuda::four_kernels::BinsFirst>(
            ("bins-v1", "bins"),
            "four-kernels, first version",
            "a thread an entry, which searches its row and adds to it atomically; y is scaled before",
        )
    },
    Entry {
        format: LISTS,
        params: &[
            HYBRID_SHORT,
            Param {
                name: "long",
                values: cuda::four_kernels::LONG,
                summary: "entries of the longest row that a warp takes",
                others: None,
            },
            Param {
                name: "fit",
                values: cuda::four_kernels::FIT,
                summary: "threads that shall fit on a multiprocessor, which share its registers; auto goes by the mean row",
                others: None,
            },
        ],
        ..cuda_csr::<cuda::four_kernels::Hybrid>(
            ("hybrid", "hybrid"),
            "four-kernels",
            "short rows by threads, medium ones by warps, long ones by blocks, in one launch",
        )
    },
    Entry {
        format: LISTS,
        params: &[HYBRID_SHORT],
        ..cuda_csr::<cuda::four_kernels::HybridFirst>(
            ("hybrid-v1", "hybrid"),
            "four-kernels, first version",
            "short rows by threads, all others by warps, plain loads, a grid as large as the matrix",
        )
    },
    cuda_csr::<cuda::seven_strategies::ScalarRows>(
        ("scalar", "thread"),
        "seven-strategies",
        "a thread a row, one entry after the other, read-only loads, dot products fused",
    ),
    Entry {
        format: "csr and bounds of pieces",
        params: &[
            Param {
                name: "short",
                values: cuda::seven_strategies::SHORT,
                summary: "entries of the longest row that a thread takes",
                others: None,
            },
            Param { values: cuda::seven_strategies::BLOCKS, ..BLOCK },
            Param { values: cuda::seven_strategies::UNROLLS, ..UNROLL },
            Param {
                name: "set",
                values: cuda::seven_strategies::SETS,
                summary: "the study's named sets; it does not say what is in them, so this is our reading: combined \
                          is block=512,unroll=4, p100 a grid of the 114688 threads that a P100 holds at once",
                others: None,
            },
        ],
        ..cuda_csr::<cuda::seven_strategies::Adaptive>(
            ("adaptive", "adaptive"),
            "seven-strategies",
            "each block by threads where its rows are short, by warps where they are not",
        )
    },
    Entry {
        params: &[Param {
            name: "scan",
            values: cuda::seven_strategies::SCANS,
            summary: "entries looked at in each segment: all of the row, as in the study, or onwards from the last",
            others: None,
        }],
        ..cuda_csr::<cuda::seven_strategies::VectorSmem>(
            ("vector-smem", "vector-smem"),
            "seven-strategies",
            "a warp a row, x from segments of 1024 in shared memory: slow unless rows lie in few segments",
        )
    },
    Entry {
        format: LISTS,
        params: &[
            Param {
                name: "short",
                values: cuda::seven_strategies::FIRST_CLASS,
                summary: "entries of the longest row that a thread takes",
                others: None,
            },
            Param {
                name: "long",
                values: cuda::seven_strategies::SECOND_CLASS,
                summary: "entries of the longest row that eight threads share",
                others: None,
            },
        ],
        ..cuda_csr::<cuda::seven_strategies::Binned>(
            ("binned", "vector"),
            "seven-strategies",
            "a launch of vector for each class of rows: 1, 8 or 32 threads for short, medium and long ones",
        )
    },
];
