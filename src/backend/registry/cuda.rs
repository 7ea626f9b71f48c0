//! Registry rows of the backends on NVIDIA GPUs.

use super::ALL_PRECISIONS;
use crate::backend::{Build, Builder, Entry, blocks, cuda};
use crate::params::Param;
use crate::scalar::Precision;

/// Appends to the summary of a cuSPARSE algorithm what all of them refuse.
macro_rules! library {
    ($does:literal) => {
        concat!($does, "; refuses empty matrices and 2^31 or more entries")
    };
}

/// Returns the row of an algorithm of cuSPARSE.
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

/// Returns the row of a product of cuSPARSE with several columns.
const fn cusparse_spmm<F: cuda::cusparse::spmm::Format>(
    format: &'static str,
    summary: &'static str,
    params: &'static [Param],
) -> Entry {
    Entry {
        name: F::NAME,
        builder: Builder::Cuda(Build::of::<cuda::cusparse::spmm::CusparseSpmm<F>>()),
        family: "cusparse",
        format,
        from: "NVIDIA cuSPARSE",
        summary,
        params,
        deterministic: false,
        columns: true,
        values: true,
        precisions: &[Precision::F64, Precision::F32],
    }
}

const SQUARES: &[Param] = &[Param::word(
    "block",
    blocks::SQUARES,
    "rows and columns of a block; auto takes the size that moves the fewest bytes",
)];

pub(super) const fn unroll(values: &'static [&'static str]) -> Param {
    Param::word("unroll", values, "entries that a thread loads before it uses the first")
}

pub(super) const fn block(values: &'static [&'static str]) -> Param {
    Param::word("block", values, "threads in a block")
}

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "csr",
        builder: Builder::Cuda(Build::of::<cuda::csr::CsrFamily>()),
        family: "csr",
        format: "csr in windows",
        from: "after Greathouse and Daga 2014",
        summary: "for rows of all lengths: equally many entries per block, giant rows split; dot products and sweeps fused",
        params: &[cuda::csr::CUT, cuda::csr::MADE_OF_COPY],
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
        summary: "for graphs without weights: 4 bytes per edge or 2, twice the entries per block; refuses matrices with values",
        params: &[cuda::csr::CUT, cuda::csr::MADE_OF_COPY],
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
        summary: "for dense blocks: a warp or a part of one per block row, x loaded once for all rows of a block",
        params: cuda::bsr::PARAMS,
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "spmm",
        builder: Builder::Cuda(Build::of::<cuda::spmm::SpmmFamily>()),
        family: "spmm",
        format: "by plan",
        from: "ours",
        summary: "for several columns: rows, tiles with columns in shared memory, blocks, tensor cores, or cuBLAS, by estimated time",
        params: cuda::spmm::PARAMS,
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "vector",
        builder: Builder::Cuda(Build::of::<cuda::vector::Vector>()),
        family: "vector",
        format: "csr",
        from: "Bell and Garland 2008; seven-strategies",
        summary: "for rows of similar length: 1 to 32 threads per row, by the mean row length; dot products fused",
        params: &[
            Param::word(
                "threads",
                &["auto", "1", "2", "4", "8", "16", "32"],
                "threads that share a row; seven-strategies uses a warp, 32",
            ),
            unroll(cuda::vector::UNROLLS),
            block(cuda::vector::BLOCKS),
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
        summary: "for many rows of similar length: one thread per row, sorted by length; columns in 16 bits or fewer if near",
        params: &[cuda::MADE],
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
        summary: "for small systems of short rows: many iterations in one launch, with the vectors in registers",
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
        summary: "for rows of nearly equal length: all padded to the longest; refuses more than 3 stored values per entry",
        params: &[cuda::MADE],
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
        summary: "for matrices with mostly empty rows: visits only rows with entries; one bit per row marks them",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "spmm-dcsr",
        builder: Builder::Cuda(Build::of::<cuda::dcsr::SpmmDcsr>()),
        family: "dcsr",
        format: "dcsr",
        from: "textbook",
        summary: "several columns: a warp per row with entries, for matrices with mostly empty rows",
        params: &[],
        deterministic: true,
        columns: true,
        values: true,
        precisions: ALL_PRECISIONS,
    },
    Entry {
        name: "merge",
        builder: Builder::Cuda(Build::of::<cuda::merge::Merge>()),
        family: "merge",
        format: "csr and cuts",
        from: "Merrill and Garland 2016",
        summary: "for rows of very different lengths: equal shares of rows and entries for every block; dot products fused",
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
        summary: "for small dense matrices, 1 to 2^26 values; cuBLAS multiplies all of them, zeros included",
        params: &[cuda::dense::MATH],
        deterministic: true,
        columns: true,
        values: true,
        precisions: &[Precision::F64, Precision::F32],
    },
    cusparse::<cuda::cusparse::Default>(
        "csr",
        library!("the default algorithm of cuSPARSE, preprocessed, for comparison"),
        false,
    ),
    cusparse::<cuda::cusparse::First>(
        "csr",
        library!("the first algorithm of cuSPARSE over CSR, preprocessed"),
        false,
    ),
    cusparse::<cuda::cusparse::Second>(
        "csr",
        library!("the second algorithm of cuSPARSE over CSR, preprocessed: the same bits on every run"),
        true,
    ),
    cusparse::<cuda::cusparse::Sliced>(
        "sell",
        library!("the product of cuSPARSE over slices of 32 rows, unsorted"),
        false,
    ),
    Entry {
        params: SQUARES,
        ..cusparse::<cuda::cusparse::Blocked>(
            "bsr",
            library!("the product of cuSPARSE over square blocks, which must divide the matrix"),
            false,
        )
    },
    Entry {
        builder: Builder::Cuda(Build::of::<cuda::cusparse::Legacy>()),
        params: SQUARES,
        ..cusparse::<cuda::cusparse::Legacy>(
            "bsr",
            library!(
                "the legacy product of cuSPARSE over square blocks, which must divide the matrix; later versions lack it"
            ),
            false,
        )
    },
    cusparse_spmm::<cuda::cusparse::spmm::Rows>(
        "csr",
        library!("the product of cuSPARSE with several columns, row-major, preprocessed"),
        &[cuda::cusparse::spmm::ALGORITHM],
    ),
    cusparse_spmm::<cuda::cusparse::spmm::Squares>(
        "bsr",
        library!(
            "the product of cuSPARSE with several columns over square blocks, which must divide the matrix"
        ),
        SQUARES,
    ),
    // The example of the book.
    #[cfg(test)]
    Entry {
        name: "pairs",
        builder: Builder::Cuda(Build::of::<cuda::pairs::Pairs>()),
        family: "pairs",
        format: "csr",
        from: "ours",
        summary: "for rows of a few entries: two threads per row; dot products fused",
        params: &[],
        deterministic: true,
        columns: false,
        values: true,
        precisions: ALL_PRECISIONS,
    },
];
