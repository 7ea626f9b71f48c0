//! Blocks of R x C: a warp, or a part of one, takes a row of blocks.
//!
//! A block costs one column index where CSR has R C of them, and a lane's entry of x serves R rows. Within a row of blocks the
//! values stand row by row, as in CSR: so lanes read neighbouring values whatever the size of a block, and each size is the
//! same kernel, compiled for it when it is first asked for. What bounds it is the bytes: on an H200 blocks of 3 x 3 of a mesh
//! pass at 93 % of what a stream reads, and of 5 x 5 in a band at 95 %.
//!
//! Block columns take 16 bits where 65,536 are all; values that single precision holds exactly take 4 bytes, which changes
//! no bit of the result. Where a row of blocks is far longer than a warp's share of the work, rows are cut into pieces, whose
//! sums are added in their order. The bits then depend on how many multiprocessors the GPU has.
//!
//! Fill is multiplied like any other zero: where x is not finite there, the row becomes NaN. With `zeros=skipped` no zero is
//! multiplied, those of the matrix among them.

use super::owner::{Arrays, Owner};
use super::passes::{Form, Grid};
use super::{Columns, NARROW_COLUMN, in_16_bits, number};
use crate::backend::blocks::{ANY_SIZE, TASK_SIZES, named_or_found};
use crate::backend::{Family, Made, Param, Params};
use crate::device::Cuda;
use crate::error::{Error, Result};
use crate::format::blocked::blocked;
use crate::format::bsr::BsrParts;
use crate::format::narrow::value_bytes;
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{run_all, split_front, zeros};
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::ops::Range;
use std::sync::Arc;

/// Threads of a block: few, so that one that is done makes room for the next early.
const BLOCK: u32 = 128;
/// Lanes that may share a row of blocks.
const THREADS: [u32; 5] = [2, 4, 8, 16, 32];
/// Places of a row of blocks that a lane loads at once.
const UNROLL: u32 = 3;
/// Places of the shortest piece of a row of blocks.
const SHORTEST_PIECE: usize = 512;
/// Warps on a multiprocessor, by which shares of the work are reckoned.
const WARPS: usize = 32;

/// The parameters.
pub const PARAMS: &[Param] = &[
    Param {
        name: "block",
        values: TASK_SIZES,
        summary: "rows x columns of a block; auto finds the size that moves the fewest bytes",
        others: Some(ANY_SIZE),
    },
    Param {
        name: "threads",
        values: &["auto", "2", "4", "8", "16", "32"],
        summary: "threads that share a row of blocks; 32 where long rows are cut into pieces",
        others: None,
    },
    Param {
        name: "zeros",
        values: &["multiplied", "skipped"],
        summary: "what becomes of zeros, those that fill blocks among them, where x is not finite: NaN, or nothing",
        others: None,
    },
];

/// The family of one.
pub struct BsrFamily;

/// What a kernel is compiled for.
#[derive(Clone, Copy)]
struct Shape {
    block: (usize, usize),
    threads: u32,
    /// Whether block columns reach over the end of x.
    cut: bool,
    pieces: bool,
    skip_zeros: bool,
}

fn form(shape: Shape) -> Form {
    let Shape { block: (height, width), threads, cut, pieces, skip_zeros } = shape;
    let text = include_str!("../../../kernels/bsr.cu");
    let form = Form { name: "spmv_bsr", text, defines: Vec::new(), block: BLOCK, owns_all_rows: true };
    let flags = [("CUT", cut), ("PIECES", pieces), ("SKIP_ZEROS", skip_zeros)];
    let numbers = [("R", height as u32), ("C", width as u32), ("THREADS", threads), ("UNROLL", UNROLL)];
    let set = flags.into_iter().filter(|&(_, on)| on).map(|(name, _)| (name, 1));
    numbers.into_iter().chain(set).fold(form, |form, (name, value)| form.with(name, value))
}

/// Forms that together have all there is: every kind of round, flag and share.
pub(super) fn forms() -> Vec<Form> {
    let plain = Shape { block: (3, 3), threads: 32, cut: false, pieces: false, skip_zeros: false };
    [
        plain,
        Shape { block: (5, 5), pieces: true, ..plain },
        Shape { block: (8, 8), cut: true, ..plain },
        Shape { block: (2, 7), threads: 2, cut: true, skip_zeros: true, ..plain },
        Shape { block: (64, 1), pieces: true, skip_zeros: true, ..plain },
        Shape { block: (9, 10), threads: 8, cut: true, ..plain },
        Shape { block: (4, 4), threads: 4, ..plain },
        Shape { block: (6, 6), threads: 16, ..plain },
    ]
    .map(form)
    .to_vec()
}

/// Values of a row of blocks row by row, instead of block by block.
fn row_by_row<V: Copy + Zeroable + Send + Sync>(parts: &BsrParts, values: &[V]) -> Result<Vec<V>> {
    /// Rows of blocks that are copied together.
    const BAND: usize = 256;
    let (height, width) = parts.block;
    let block_rows = parts.block_offsets.len() - 1;
    let mut all = zeros::<V>(values.len())?;
    let mut left = &mut all[..];
    let mut bands = Vec::new();
    for first in (0..block_rows).step_by(BAND) {
        let rows = first..(first + BAND).min(block_rows);
        let blocks = parts.block_offsets.get(rows.end) - parts.block_offsets.get(rows.start);
        bands.push((rows, split_front(&mut left, blocks * height * width)));
    }
    run_all(bands, |(rows, mut target): (Range<usize>, &mut [V])| {
        for row in rows {
            let blocks = parts.block_offsets.get(row)..parts.block_offsets.get(row + 1);
            let target = split_front(&mut target, blocks.len() * height * width);
            let places = blocks.len() * width;
            for (number, block) in blocks.enumerate() {
                let block = &values[block * height * width..][..height * width];
                for (r, row) in block.chunks_exact(width).enumerate() {
                    target[r * places + number * width..][..width].copy_from_slice(row);
                }
            }
        }
    });
    Ok(all)
}

/// The pieces of all rows of blocks, for the kernel, and the numbers in `scratch`.
fn cut(offsets: &Offsets, blocks_of_piece: usize, height: usize) -> (Vec<[u32; 4]>, usize) {
    let (mut pieces, mut scratch) = (Vec::new(), 1);
    for row in 0..offsets.len() - 1 {
        let count = (offsets.get(row + 1) - offsets.get(row)).div_ceil(blocks_of_piece).max(1);
        let place = if count > 1 { scratch as u32 } else { 0 };
        pieces.extend((0..count).map(|piece| [row as u32, piece as u32, place, 0]));
        scratch += if count > 1 { 1 + count * height } else { 0 };
    }
    (pieces, scratch)
}

/// Blocks of a piece where rows are cut: where the longest is more than twice a warp's share of the work.
fn blocks_of_piece(parts: &BsrParts, multiprocessors: usize) -> Option<usize> {
    let width = parts.block.1;
    let rows = parts.block_offsets.len() - 1;
    let longest =
        (0..rows).map(|row| parts.block_offsets.get(row + 1) - parts.block_offsets.get(row)).max()?;
    let share = (parts.block_columns.len() * width / (multiprocessors * WARPS)).max(SHORTEST_PIECE);
    (longest * width > 2 * share).then_some(share / width)
}

/// Rows or columns that the 32-bit numbers of the kernel can count, with those that blocks reach beyond them.
pub(super) const MOST: usize = 1 << 31;

fn check_size(matrix: &Csr) -> Result<()> {
    for (what, value) in [("the number of rows", matrix.rows()), ("the number of columns", matrix.cols())] {
        if value > MOST {
            let (value, limit) = (value as u128, MOST as u128);
            return Err(Error::TooLarge { what, value, limit, place: "the 32-bit numbers of backend bsr" });
        }
    }
    Ok(())
}

impl Family<Cuda> for BsrFamily {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<Made<Cuda, T>> {
        check_size(matrix)?;
        let block = named_or_found(matrix, params, value_bytes(matrix));
        let shape = (matrix.rows(), matrix.cols());
        let mut parts = blocked(matrix, block)?.into_parts();
        parts.values = match &parts.values {
            Values::F32(values) => Values::F32(row_by_row(&parts, values)?),
            Values::F64(values) => Values::F64(row_by_row(&parts, values)?),
            Values::Ones => Values::Ones,
        };
        let blocks = parts.block_columns.len();
        let block_rows = parts.block_offsets.len() - 1;
        let piece = blocks_of_piece(&parts, device.multiprocessors() as usize);
        let mean = (blocks * block.1).div_ceil(block_rows.max(1));
        // As few as cover a mean row of blocks in one round.
        let wanted = mean.div_ceil(UNROLL as usize) as u32;
        let covering = || THREADS.into_iter().find(|&threads| threads >= wanted).unwrap_or(32);
        let threads = match params.get("threads") {
            _ if piece.is_some() => 32,
            None | Some("auto") => covering(),
            Some(_) => number(params, "threads", &["32"]),
        };
        let shape_of_kernel = Shape {
            block,
            threads,
            cut: !shape.1.is_multiple_of(block.1),
            pieces: piece.is_some(),
            skip_zeros: params.get("zeros") == Some("skipped"),
        };
        let mut arrays = Arrays::new().add_offsets(&parts.block_offsets);
        arrays = match shape.1.div_ceil(block.1) <= Columns::NARROW {
            true => arrays.add(in_16_bits(&parts.block_columns)).with_columns(NARROW_COLUMN),
            false => arrays.add(&parts.block_columns),
        };
        arrays = arrays.add_values(&parts.values);
        let mut count = block_rows;
        if let Some(piece) = piece {
            let (pieces, scratch) = cut(&parts.block_offsets, piece, block.0);
            count = pieces.len();
            arrays = arrays.add(pieces.as_flattened().to_vec()).add(zeros::<f64>(scratch)?);
        }
        let arrays = arrays.upload(device, reserve)?;
        let kernel = (form(shape_of_kernel), Grid::Resident(count as u64 * u64::from(threads)));
        // `check_size` has refused larger ones.
        let numbers = vec![shape.0 as u32, shape.1 as u32, count as u32, piece.unwrap_or(0) as u32];
        let places = blocks * block.0 * block.1;
        Ok(Arc::new(Owner::new::<T>("bsr", shape, places, kernel, arrays, numbers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_row_of_blocks_stand_row_by_row() {
        // Two rows of blocks of 2 x 3: of two blocks, and of one.
        let parts = BsrParts {
            rows: 4,
            cols: 6,
            block: (2, 3),
            entries: 18,
            block_offsets: Offsets::narrowest(vec![0, 2, 3]),
            block_columns: vec![0, 1, 1],
            values: Values::Ones,
        };
        let values: Vec<f64> = (0..18).map(f64::from).collect();
        let want = [0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17].map(f64::from);
        assert_eq!(row_by_row(&parts, &values).unwrap(), want);
    }

    #[test]
    fn long_rows_of_blocks_are_cut_into_pieces_and_others_are_one() {
        let offsets = Offsets::narrowest(vec![0, 2, 2, 9, 12]);
        let (pieces, scratch) = cut(&offsets, 3, 5);
        let want = [[0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 1, 0], [2, 1, 1, 0], [2, 2, 1, 0], [3, 0, 0, 0]];
        assert_eq!(pieces, want);
        assert_eq!(scratch, 1 + 1 + 3 * 5);
    }

    #[test]
    fn rows_are_cut_where_the_longest_is_beyond_two_shares_of_a_warp() {
        let parts = |lengths: &[u64]| {
            let mut offsets = vec![0];
            offsets.extend(lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            }));
            let blocks = offsets.last().copied().unwrap_or(0);
            BsrParts {
                rows: lengths.len() * 2,
                cols: 1 << 20,
                block: (2, 2),
                entries: 0,
                block_offsets: Offsets::narrowest(offsets),
                block_columns: vec![0; blocks as usize],
                values: Values::Ones,
            }
        };
        assert_eq!(blocks_of_piece(&parts(&[]), 132), None);
        assert_eq!(blocks_of_piece(&parts(&[512, 3]), 132), None, "two of the shortest pieces");
        assert_eq!(blocks_of_piece(&parts(&[513, 3]), 132), Some(256));
        assert_eq!(blocks_of_piece(&parts(&vec![513; 8192]), 132), None, "a warp has as much anyway");
    }
}
