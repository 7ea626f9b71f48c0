//! Blocks of R x C: a warp, or a part of one, takes a block row.
//!
//! A block costs one column index where CSR has R C of them, and a lane's entry of x serves R rows. Within
//! a block row the values are stored row by row, as in CSR: so lanes read neighbouring values for any
//! block size, and each size is the same kernel, compiled for that size on first use. The kernel is
//! memory-bound: on an H200 blocks of 3 x 3 of a mesh reach 93 % of the bandwidth of a stream read, and
//! blocks of 5 x 5 in a band 95 %.
//!
//! Block columns take 16 bits if there are at most 65,536 of them. Values that single precision represents
//! exactly take 4 bytes, which changes no bit of the result. If a block row is far longer than a warp's share
//! of the work, block rows are cut into pieces, whose sums are added in order. The bits then depend on the
//! number of multiprocessors of the GPU.
//!
//! Fill is multiplied like any other zero: if x is not finite there, the row becomes NaN. With
//! `zeros=skipped` no zero is multiplied, neither fill nor the zeros that the matrix stores.

mod build;

use super::arrays::Arrays;
use super::columns::{Columns, in_16_bits};
use super::form::{AnyForm, Form, Format, Grid, Share, Types};
use super::number;
use super::product::{Pass, Product};
use super::resident::{MADE, made_there};
use crate::backend::blocks::{TASK_SIZES, any_block, named_or_found};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::device::cuda::modules::KernelSource;
use crate::error::{Error, Result};
use crate::format::blocked::blocked;
use crate::format::bsr::BsrParts;
use crate::format::narrow::value_bytes;
use crate::format::{Csr, Offsets, Values};
use crate::parallel::{run_all, split_front, zeros};
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use build::Built;
use bytemuck::Zeroable;
use std::ops::Range;
use std::sync::Arc;

/// Threads of a block: few, so that a finished block makes room for the next one early.
const BLOCK: u32 = 128;
/// Numbers of lanes that may share a block row.
const THREADS: [u32; 5] = [2, 4, 8, 16, 32];
/// Values of a block row's row that a lane loads at once.
pub(super) const UNROLL: u32 = 3;
/// Values per row of the shortest piece of a block row.
const SHORTEST_PIECE: usize = 512;
/// Assumed warps of a multiprocessor, for the share of work of a warp.
const WARPS: usize = 32;

/// The parameters of the backend.
pub(crate) const PARAMS: &[Param] = &[
    MADE,
    any_block(TASK_SIZES),
    Param::word(
        "threads",
        &["auto", "2", "4", "8", "16", "32"],
        "threads that share a block row; always 32 if long rows are cut into pieces",
    ),
    Param::word(
        "zeros",
        &["multiplied", "skipped"],
        "a zero, fill included, times an x that is not finite: NaN if multiplied, no effect if skipped",
    ),
];

/// The family of the backend `bsr`.
pub(crate) struct BsrFamily;

/// The compile-time parameters of a kernel.
#[derive(Clone, Copy)]
struct Shape {
    block: (usize, usize),
    threads: u32,
    /// Whether the last block column reaches past the end of x.
    cut: bool,
    skip_zeros: bool,
}

fn form<S>(shape: Shape) -> Form<BlockRows, S> {
    let Shape { block: (height, width), threads, cut, skip_zeros } = shape;
    let form = Form::new("spmv_bsr", include_str!("../../../kernels/bsr.cu")).in_blocks_of(BLOCK);
    let numbers = [("R", height as u32), ("C", width as u32), ("THREADS", threads), ("UNROLL", UNROLL)];
    let set = [("CUT", cut), ("SKIP_ZEROS", skip_zeros)].into_iter().filter(|&(_, on)| on);
    let numbers = numbers.into_iter().chain(set.map(|(name, _)| (name, 1)));
    numbers.fold(form, |form, (name, value)| form.with(name, value))
}

/// Returns the kernel over whole block rows.
fn whole_rows(shape: Shape) -> Form<BlockRows> {
    form(shape)
}

/// Returns the kernel over pieces of block rows.
fn in_pieces(shape: Shape) -> Form<BlockRows, Pieces> {
    form(shape).with("PIECES", 1)
}

/// Returns forms that together cover every kind of round, flag and share.
pub(super) fn forms() -> Vec<AnyForm> {
    let plain = Shape { block: (3, 3), threads: 32, cut: false, skip_zeros: false };
    vec![
        whole_rows(plain).any(),
        in_pieces(Shape { block: (5, 5), ..plain }).any(),
        whole_rows(Shape { block: (8, 8), cut: true, ..plain }).any(),
        whole_rows(Shape { block: (2, 7), threads: 2, cut: true, skip_zeros: true }).any(),
        in_pieces(Shape { block: (64, 1), skip_zeros: true, ..plain }).any(),
        whole_rows(Shape { block: (9, 10), threads: 8, cut: true, ..plain }).any(),
        whole_rows(Shape { block: (4, 4), threads: 4, ..plain }).any(),
        whole_rows(Shape { block: (6, 6), threads: 16, ..plain }).any(),
    ]
}

/// Returns the kernels that make blocks, for ahead-of-time compilation.
pub(super) fn packing_sources() -> Vec<KernelSource> {
    build::sources()
}

/// A matrix in blocks whose values are stored row by row within a block row.
struct BlockRows {
    parts: BsrParts,
    columns: BlockColumns,
    /// Number of block rows, or of pieces of block rows.
    count: usize,
    blocks_of_piece: usize,
}

enum BlockColumns {
    Full(Vec<u32>),
    Narrow(Vec<u16>),
}

impl BlockRows {
    /// Builds the matrix for a plan, with the pieces of its block rows if these are cut.
    fn of(mut parts: BsrParts, plan: &Plan, pieces: Option<&Pieces>) -> Result<BlockRows> {
        parts.values = match &parts.values {
            Values::F32(values) => Values::F32(row_by_row(&parts, values)?),
            Values::F64(values) => Values::F64(row_by_row(&parts, values)?),
            Values::Ones => Values::Ones,
        };
        let columns = match parts.cols.div_ceil(parts.block.1) <= Columns::NARROW {
            true => BlockColumns::Narrow(in_16_bits(&parts.block_columns)),
            false => BlockColumns::Full(std::mem::take(&mut parts.block_columns)),
        };
        let count = Plan::count(&parts.block_offsets, pieces);
        Ok(BlockRows { parts, columns, count, blocks_of_piece: plan.piece.unwrap_or(0) })
    }
}

impl Format for BlockRows {
    fn empty(types: Types) -> BlockRows {
        let (block_offsets, values) = (types.offsets(), types.values());
        let columns = match types.columns {
            Columns::Full => BlockColumns::Full(Vec::new()),
            Columns::Narrow | Columns::Near => BlockColumns::Narrow(Vec::new()),
        };
        let (rows, cols, block, entries, block_columns) = (0, 0, (1, 1), 0, Vec::new());
        let parts = BsrParts { rows, cols, block, entries, block_offsets, block_columns, values };
        BlockRows { parts, columns, count: 0, blocks_of_piece: 0 }
    }

    fn shape(&self) -> (usize, usize) {
        (self.parts.rows, self.parts.cols)
    }

    fn padded_entries(&self) -> usize {
        let (height, width) = self.parts.block;
        self.parts.block_offsets.get(self.parts.block_offsets.len() - 1) * height * width
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let arrays = Arrays::new().add_offsets("block_offsets", &self.parts.block_offsets);
        let arrays = match &self.columns {
            BlockColumns::Full(columns) => arrays.add("block_columns", columns),
            BlockColumns::Narrow(columns) => arrays.add("block_columns", columns),
        };
        arrays.typed("COLUMN").add_values("values", &self.parts.values)
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        numbers(self.shape(), self.count, self.blocks_of_piece)
    }
}

/// Block rows cut into pieces.
struct Pieces {
    list: Vec<[u32; 4]>,
    scratch: Vec<f64>,
}

impl Share for Pieces {
    fn none() -> Pieces {
        Pieces { list: Vec::new(), scratch: Vec::new() }
    }

    fn arrays(&self) -> Arrays<'_> {
        Arrays::new().add("pieces", &self.list).add_scratch("scratch", self.scratch.clone())
    }

    fn count(&self) -> Option<u32> {
        None
    }
}

/// Rearranges the values of each block row row by row instead of block by block.
fn row_by_row<V: Copy + Zeroable + Send + Sync>(parts: &BsrParts, values: &[V]) -> Result<Vec<V>> {
    /// Block rows that are copied together.
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
            let row_width = blocks.len() * width;
            for (number, block) in blocks.enumerate() {
                let block = &values[block * height * width..][..height * width];
                for (r, row) in block.chunks_exact(width).enumerate() {
                    target[r * row_width + number * width..][..width].copy_from_slice(row);
                }
            }
        }
    });
    Ok(all)
}

/// Cuts all block rows into pieces, for the kernel; returns them and the length of `scratch`.
fn cut(offsets: &Offsets, blocks_of_piece: usize, height: usize) -> (Vec<[u32; 4]>, usize) {
    let (mut pieces, mut scratch) = (Vec::new(), 1);
    for row in 0..offsets.len() - 1 {
        let count = (offsets.get(row + 1) - offsets.get(row)).div_ceil(blocks_of_piece).max(1);
        let start = if count > 1 { scratch as u32 } else { 0 };
        pieces.extend((0..count).map(|piece| [row as u32, piece as u32, start, 0]));
        scratch += if count > 1 { 1 + count * height } else { 0 };
    }
    (pieces, scratch)
}

/// Returns the blocks of a piece if block rows must be cut: if the longest exceeds twice a
/// warp's share of the work.
fn blocks_of_piece(offsets: &Offsets, width: usize, multiprocessors: usize) -> Option<usize> {
    let rows = offsets.len() - 1;
    let longest = (0..rows).map(|row| offsets.get(row + 1) - offsets.get(row)).max()?;
    piece(offsets.get(rows) * width, longest * width, multiprocessors).map(|piece| piece / width)
}

/// Returns the values per row of a piece if block rows must be cut: for all block rows together, and the
/// longest of them, in values per row.
pub(super) fn piece(all: usize, longest: usize, multiprocessors: usize) -> Option<usize> {
    let share = (all / (multiprocessors * WARPS)).max(SHORTEST_PIECE);
    (longest > 2 * share).then_some(share)
}

/// Most rows or columns, including those of the last blocks, that the kernel's 32-bit indices can count.
pub(super) const MOST: usize = 1 << 31;

fn check_size(matrix: &Csr) -> Result<()> {
    for (what, value) in [("the number of rows", matrix.rows()), ("the number of columns", matrix.cols())] {
        if value > MOST {
            let (value, limit) = (value as u128, MOST as u128);
            return Err(Error::TooLarge {
                what,
                value,
                limit,
                container: "the 32-bit indices of backend bsr",
            });
        }
    }
    Ok(())
}

/// Returns the threads that share a block row: as few as cover `mean` values of a row in one round.
pub(super) fn threads(mean: usize) -> u32 {
    let wanted = mean.div_ceil(UNROLL as usize) as u32;
    THREADS.into_iter().find(|&threads| threads >= wanted).unwrap_or(32)
}

impl Family<Cuda> for BsrFamily {
    const ADDS_REPEATS: bool = false;

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        check_size(matrix)?;
        let block = named_or_found(matrix, params, value_bytes(matrix));
        if block.0 <= build::HIGHEST {
            let build = || build::build(device, matrix, block, reserve);
            if let Some(Built { stored, offsets }) = made_there(matrix, params, build)? {
                let plan = Plan::of(device, matrix.cols(), params, block, &offsets);
                let pieces = plan.pieces(&offsets)?;
                let count = Plan::count(&offsets, pieces.as_ref());
                let numbers = numbers((matrix.rows(), matrix.cols()), count, plan.piece.unwrap_or(0));
                let pass = plan.pass(device, &offsets, pieces.as_ref())?;
                return Ok(Arc::new(Product::<T>::of("bsr", stored, numbers, [pass])));
            }
        }
        let parts = blocked(matrix, block)?.into_parts();
        let plan = Plan::of(device, matrix.cols(), params, block, &parts.block_offsets);
        let pieces = plan.pieces(&parts.block_offsets)?;
        let pass = plan.pass(device, &parts.block_offsets, pieces.as_ref())?;
        let matrix = BlockRows::of(parts, &plan, pieces.as_ref())?;
        Ok(Arc::new(Product::<T>::new("bsr", device, &matrix, [pass], reserve)?))
    }
}

/// How the block rows of a matrix are multiplied.
struct Plan {
    shape: Shape,
    /// The blocks of a piece, if block rows are cut into pieces.
    piece: Option<usize>,
}

impl Plan {
    fn of(device: &Cuda, cols: usize, params: &Params, block: (usize, usize), offsets: &Offsets) -> Plan {
        let piece = blocks_of_piece(offsets, block.1, device.multiprocessors() as usize);
        let (block_rows, blocks) = (offsets.len() - 1, offsets.get(offsets.len() - 1));
        let mean = (blocks * block.1).div_ceil(block_rows.max(1));
        let threads = match params.word("threads") {
            _ if piece.is_some() => 32,
            None | Some("auto") => self::threads(mean),
            Some(_) => number(params, "threads", &["32"]),
        };
        let skip_zeros = params.word("zeros") == Some("skipped");
        Plan { shape: Shape { block, threads, cut: !cols.is_multiple_of(block.1), skip_zeros }, piece }
    }

    /// Returns the pieces of the block rows, if these are cut.
    fn pieces(&self, offsets: &Offsets) -> Result<Option<Pieces>> {
        let Some(blocks) = self.piece else { return Ok(None) };
        let (list, scratch) = cut(offsets, blocks, self.shape.block.0);
        Ok(Some(Pieces { list, scratch: zeros(scratch)? }))
    }

    /// Returns the number of block rows, or of pieces of block rows.
    fn count(offsets: &Offsets, pieces: Option<&Pieces>) -> usize {
        pieces.map_or(offsets.len() - 1, |pieces| pieces.list.len())
    }

    fn pass(&self, device: &Cuda, offsets: &Offsets, pieces: Option<&Pieces>) -> Result<Pass<BlockRows>> {
        let threads = Plan::count(offsets, pieces) as u64 * u64::from(self.shape.threads);
        match pieces {
            Some(pieces) => Pass::new(device, in_pieces(self.shape), Grid::Resident(threads), pieces),
            None => Pass::new(device, whole_rows(self.shape), Grid::Resident(threads), &()),
        }
    }
}

/// Returns the numbers that the kernel takes. `check_size` refuses more rows or columns than 32 bits count.
fn numbers((rows, cols): (usize, usize), count: usize, blocks_of_piece: usize) -> Vec<(&'static str, u32)> {
    vec![
        ("rows_of_y", rows as u32),
        ("columns_of_x", cols as u32),
        ("count", count as u32),
        ("blocks_of_piece", blocks_of_piece as u32),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_block_row_are_stored_row_by_row() {
        // Two block rows of 2 x 3 blocks: one of two blocks, one of a single block.
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
    fn long_block_rows_are_cut_into_pieces_and_other_block_rows_are_one_piece() {
        let offsets = Offsets::narrowest(vec![0, 2, 2, 9, 12]);
        let (pieces, scratch) = cut(&offsets, 3, 5);
        let want = [[0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 1, 0], [2, 1, 1, 0], [2, 2, 1, 0], [3, 0, 0, 0]];
        assert_eq!(pieces, want);
        assert_eq!(scratch, 1 + 1 + 3 * 5);
    }

    #[test]
    fn block_rows_are_cut_if_the_longest_exceeds_two_shares_of_a_warp() {
        let of = |lengths: &[u64]| {
            let mut offsets = vec![0];
            offsets.extend(lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            }));
            blocks_of_piece(&Offsets::narrowest(offsets), 2, 132)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[512, 3]), None, "two of the shortest pieces");
        assert_eq!(of(&[513, 3]), Some(256));
        assert_eq!(of(&vec![513; 8192]), None, "a warp's share is as large");
    }
}
