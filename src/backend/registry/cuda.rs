//! The strategies on NVIDIA GPUs.

use super::ALL_PRECISIONS;
use crate::backend::{Build, Builder, Entry, Param, blocks, cuda};
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

const SQUARES: &[Param] = &[Param {
    name: "block",
    values: blocks::SQUARES,
    summary: "rows and columns of a block; auto finds the size that moves the fewest bytes",
    others: None,
}];

pub(super) const UNROLL: Param = Param {
    name: "unroll",
    values: &[],
    summary: "entries that a thread loads before it uses the first",
    others: None,
};
pub(super) const BLOCK: Param =
    Param { name: "block", values: &[], summary: "threads in a block", others: None };
pub(super) const ENTRIES: &[Entry] = &[
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
];
