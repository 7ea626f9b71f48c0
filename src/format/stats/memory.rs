//! What the matrix takes in each format: values of 8 or 4 bytes, 4-byte indices, row offsets as wide as CSR's.

use super::super::Csr;
use super::blocks::Block;
use rayon::prelude::*;

/// Rows in a slice of SELL.
pub const SELL_SLICE: usize = 32;
/// Rows among which SELL sorts by length.
pub const SELL_SIGMA: usize = 1024;

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
    /// Bytes in blocks.
    pub fn of_block(block: &Block) -> FormatBytes {
        let [height, width] = block.size;
        let places = u128::from(block.blocks) * (height * width) as u128;
        FormatBytes {
            format: format!("bsr {height}x{width}"),
            f64: block.bytes,
            f32: block.bytes - 4 * places,
        }
    }
}

/// Values and bytes beside them.
struct Need {
    values: u128,
    /// Bytes of indices and offsets.
    others: u128,
}

/// Bytes in each format without blocks, from cheap to dear in no order: the reader compares.
pub(super) fn in_each_format(matrix: &Csr, empty: usize, longest: usize) -> Vec<FormatBytes> {
    let (rows, nnz) = (matrix.rows() as u128, matrix.nnz() as u128);
    let offset = matrix.row_offsets().width() as u128;
    let filled = rows - empty as u128;
    let slots = sell_slots(matrix);
    let slices = rows.div_ceil(SELL_SLICE as u128);
    let cells = rows * longest as u128;
    let needs = vec![
        ("csr".to_owned(), Need { values: nnz, others: 4 * nnz + offset * (rows + 1) }),
        ("coo".to_owned(), Need { values: nnz, others: 8 * nnz }),
        ("dcsr".to_owned(), Need { values: nnz, others: 4 * nnz + 4 * filled + offset * (filled + 1) }),
        ("ell".to_owned(), Need { values: cells, others: 4 * cells }),
        (
            format!("sell-{SELL_SLICE}-{SELL_SIGMA}"),
            // Slices begin at offsets, and rows remember where they stood.
            Need { values: slots, others: 4 * slots + offset * (slices + 1) + 4 * rows },
        ),
        ("dense".to_owned(), Need { values: rows * matrix.cols() as u128, others: 0 }),
    ];
    let bytes = |(format, need): (String, Need)| {
        let of = |width: u128| width * need.values + need.others;
        FormatBytes { format, f64: of(8), f32: of(4) }
    };
    needs.into_iter().map(bytes).collect()
}

/// Slots of SELL: each slice is as wide as its longest row, and rows are sorted by length within windows.
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
