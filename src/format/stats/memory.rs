//! Bytes of a matrix in each format: values of 8 or 4 bytes, 4-byte indices, row offsets as
//! wide as those of CSR.

use super::super::Csr;
use super::blocks::Block;
use rayon::prelude::*;

/// Rows in a slice of SELL.
pub(crate) const SELL_SLICE: usize = 32;
/// Rows of a sorting window of SELL.
pub(crate) const SELL_SIGMA: usize = 1024;

/// Bytes in one format.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FormatBytes {
    /// The format, with its parameters.
    pub format: String,
    /// Bytes with values in double precision.
    pub f64: u128,
    /// Bytes with values in single precision.
    pub f32: u128,
}

impl FormatBytes {
    /// Returns the bytes in blocks.
    pub(crate) fn of_block(block: &Block) -> FormatBytes {
        let [height, width] = block.size;
        let elements = u128::from(block.blocks) * (height * width) as u128;
        FormatBytes {
            format: format!("bsr {height}x{width}"),
            f64: block.bytes,
            f32: block.bytes - 4 * elements,
        }
    }
}

/// The storage of a format.
struct Storage {
    /// Number of stored values.
    values: u128,
    /// Bytes of indices and offsets.
    index_bytes: u128,
}

/// Returns the bytes in each format without blocks, not sorted by bytes.
pub(super) fn in_each_format(matrix: &Csr, empty: usize, longest: usize) -> Vec<FormatBytes> {
    let (rows, nnz) = (matrix.rows() as u128, matrix.nnz() as u128);
    let offset = matrix.row_offsets().width() as u128;
    let filled = rows - empty as u128;
    let slots = sell_slots(matrix);
    let slices = rows.div_ceil(SELL_SLICE as u128);
    let cells = rows * longest as u128;
    let formats = vec![
        ("csr".to_owned(), Storage { values: nnz, index_bytes: 4 * nnz + offset * (rows + 1) }),
        ("coo".to_owned(), Storage { values: nnz, index_bytes: 8 * nnz }),
        (
            "dcsr".to_owned(),
            Storage { values: nnz, index_bytes: 4 * nnz + 4 * filled + offset * (filled + 1) },
        ),
        ("ell".to_owned(), Storage { values: cells, index_bytes: 4 * cells }),
        (
            format!("sell-{SELL_SLICE}-{SELL_SIGMA}"),
            // Column indices, slice offsets and the permutation.
            Storage { values: slots, index_bytes: 4 * slots + offset * (slices + 1) + 4 * rows },
        ),
        ("dense".to_owned(), Storage { values: rows * matrix.cols() as u128, index_bytes: 0 }),
    ];
    let bytes = |(format, storage): (String, Storage)| {
        let with_width = |width: u128| width * storage.values + storage.index_bytes;
        FormatBytes { format, f64: with_width(8), f32: with_width(4) }
    };
    formats.into_iter().map(bytes).collect()
}

/// Counts the slots of SELL: each slice is as wide as its longest row, and rows are sorted by
/// length within windows.
fn sell_slots(matrix: &Csr) -> u128 {
    let rows = matrix.rows();
    let window = |window: usize| {
        let rows = window * SELL_SIGMA..((window + 1) * SELL_SIGMA).min(rows);
        let mut lengths: Vec<usize> = rows.map(|row| matrix.row_range(row).len()).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.chunks(SELL_SLICE).map(|slice| (slice[0] * SELL_SLICE) as u128).sum::<u128>()
    };
    (0..rows.div_ceil(SELL_SIGMA)).into_par_iter().with_min_len(16).map(window).sum()
}
