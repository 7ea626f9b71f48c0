//! The launches of each plan for k columns: lanes, packs and parts by k and the size of the matrix.

mod split;

use super::fragments::TILES;
use super::items::Items;
use super::product::{ExtraArrays, Launch, Schedule, grid};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::Kind;
use crate::device::Cuda;
use crate::device::cuda::modules::BLOCK;
use crate::error::Result;
use crate::scalar::Scalar;
pub(super) use split::{BySplit, split_kind, tf32x3_kind};

/// Bytes of a pack.
const PACK: usize = 16;
/// Threads of a warp.
const WARP: usize = 32;
/// The most packs of a lane: more take registers without more reuse.
const MOST_PACKS: usize = 4;
/// Threads that a multiprocessor should have before groups of lanes share rows.
const THREADS: usize = 1024;
/// Threads of a block that adds pieces, and pieces that are loaded at once.
const ADDING: u32 = 128;
const PIECES_AT_ONCE: u32 = 8;

pub(super) const ROWS_NUMBERS: [&str; 3] = ["columns", "tiles", "items_count"];
pub(super) const PIECES_NUMBERS: [&str; 2] = ["columns", "tiles"];
pub(super) const BLOCKS_NUMBERS: [&str; 5] = ["columns", "tiles", "items_count", "rows_of_y", "rows_of_x"];
pub(super) const FRAGMENTS_NUMBERS: [&str; 4] = ["columns", "tiles", "items_count", "rows_of_y"];
pub(super) const SPLIT_NUMBERS: [&str; 6] =
    ["columns", "tiles", "chunks", "splits", "rows_of_y", "rows_of_x"];
pub(super) const STAGED_NUMBERS: [&str; 6] =
    ["columns", "tiles", "chunks", "chunk", "rows_of_y", "rows_of_x"];

/// Returns the number of packs of k columns.
pub(super) fn packs(k: usize, width: usize) -> usize {
    (k * width).div_ceil(PACK)
}

/// The lanes of a slice of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slice {
    /// Neighbouring lanes that share a row of B.
    pub lanes: usize,
    /// Packs of each lane.
    pub packs: usize,
    /// Whether a row of B is a whole number of packs.
    pub aligned: bool,
}

impl Slice {
    /// Returns the lanes for k columns of `width` bytes: all columns in one slice if registers suffice.
    pub(crate) fn of(k: usize, width: usize) -> Slice {
        let all = packs(k, width).max(1);
        let lanes = all.next_power_of_two().min(WARP);
        let packs = all.div_ceil(lanes).min(MOST_PACKS);
        Slice { lanes, packs, aligned: (k * width).is_multiple_of(PACK) }
    }

    /// Returns the number of slices.
    pub(crate) fn count(self, k: usize, width: usize) -> usize {
        packs(k, width).div_ceil(self.lanes * self.packs)
    }

    fn defines(self) -> Vec<(&'static str, String)> {
        let mut defines = vec![("LANES", self.lanes.to_string()), ("PACKS", self.packs.to_string())];
        defines.extend(self.aligned.then(|| ("ALIGNED", "1".to_owned())));
        defines
    }
}

/// Returns a kernel of this file of kernels/spmm with its macros.
macro_rules! kind {
    ($name:literal, $file:literal, $slice:expr, $block:expr, [$($define:literal = $value:expr),*]) => {{
        const TEXT: &str = concat!(
            include_str!("../../../../kernels/spmm/packs.cuh"),
            include_str!(concat!("../../../../kernels/spmm/", $file))
        );
        let mut defines = $slice.defines();
        $(defines.push(($define, $value.to_string()));)*
        Kind { name: $name, text: TEXT, defines, block: $block, owns_all_rows: false }
    }};
}

/// Returns the kernel over rows in quads.
pub(super) fn rows_kind(slice: Slice, parts: usize) -> Kind {
    kind!("spmm_rows", "rows.cu", slice, BLOCK, ["PARTS" = parts, "UNROLL" = 2])
}

/// Returns the kernel over blocks.
pub(super) fn blocks_kind(slice: Slice, parts: usize, (height, width): (usize, usize), cut: bool) -> Kind {
    // Registers for more columns of a block are not worth it.
    let step = (1..=4).rev().find(|step| width.is_multiple_of(*step)).unwrap_or(1);
    let mut kind = kind!(
        "spmm_blocks",
        "blocks.cu",
        slice,
        BLOCK,
        ["PARTS" = parts, "R" = height, "C" = width, "STEP" = step]
    );
    kind.defines.extend(cut.then(|| ("CUT", "1".to_owned())));
    kind
}

/// Threads of a block that multiplies fragments.
const MULTIPLYING: u32 = 128;

/// Returns the kernel over fragments, for slices of `pairs` pairs of columns; `aligned` if the
/// number of columns is even.
pub(super) fn fragments_kind(pairs: usize, aligned: bool) -> Kind {
    let text = include_str!("../../../../kernels/spmm/fragments.cu");
    let mut defines =
        vec![("PAIRS", pairs.to_string()), ("TILES", TILES.to_string()), ("UNROLL", "2".to_owned())];
    defines.extend(aligned.then(|| ("ALIGNED", "1".to_owned())));
    Kind { name: "spmm_fragments", text, defines, block: MULTIPLYING, owns_all_rows: false }
}

/// Columns of a pair of products of the tensor cores.
pub(super) const PAIR: usize = 16;

/// Returns the pairs in a slice of k columns: a warp loads a fragment once for all of them.
pub(super) fn pairs(k: usize) -> usize {
    match k.div_ceil(PAIR) {
        0 | 1 => 1,
        // Slices of 32 columns, if half or less of the last slice of 64 would be used.
        all if all == 2 || all.next_multiple_of(4) > all.next_multiple_of(2) => 2,
        _ => 4,
    }
}

/// Returns the kernel that adds pieces of rows.
pub(super) fn pieces_kind() -> Kind {
    let text = include_str!("../../../../kernels/spmm/pieces.cu");
    let defines = vec![("UNROLL", PIECES_AT_ONCE.to_string())];
    Kind { name: "spmm_pieces", text, defines, block: ADDING, owns_all_rows: false }
}

/// The lists and sums of rows in pieces.
pub(super) struct Pieces {
    cut_rows: Vec<[u32; 4]>,
    slots: usize,
}

impl Pieces {
    pub(crate) fn of(items: &Items) -> Pieces {
        Pieces { cut_rows: items.cut_rows.clone(), slots: items.slots }
    }

    fn arrays_for<T: Scalar>(&self, k: usize) -> Arrays<'static> {
        Arrays::new().add("list", self.cut_rows.clone()).add_scalars::<T>("scratch", self.slots * k)
    }

    /// Returns the launch that adds pieces, if there are rows in pieces.
    fn launch(&self, k: usize) -> Option<Launch> {
        let tiles = (k as u32).div_ceil(ADDING);
        let numbers = PIECES_NUMBERS.into_iter().zip([k as u32, tiles]).collect();
        let blocks = grid(self.cut_rows.len() as u64 * u64::from(tiles));
        (!self.cut_rows.is_empty()).then(|| Launch::new(pieces_kind(), numbers, blocks))
    }
}

impl ExtraArrays for Pieces {
    fn arrays<T: Scalar>() -> Arrays<'static> {
        Pieces { cut_rows: Vec::new(), slots: 0 }.arrays_for::<T>(1)
    }
}

/// Returns the groups of lanes that share an item: as many as fill the GPU, if each has `round` units to
/// do, within `most` lanes.
pub(super) fn parts(
    groups: usize,
    lanes: usize,
    mean: usize,
    round: usize,
    multiprocessors: usize,
    most: usize,
) -> usize {
    let useful = (mean / round).max(1);
    let needed = (multiprocessors * THREADS / (groups * lanes).max(1)).max(1);
    needed.min(useful).next_power_of_two().min(most / lanes).max(1)
}

/// Rows in quads, by items.
pub(super) struct ByItems {
    pub items: usize,
    pub mean: usize,
    pub pieces: Pieces,
    /// Whether rows gather from all of B, because neighbours share few columns.
    pub scattered: bool,
}

/// Returns the lanes for k columns. With two packs a lane loads A half as often. Packs that are not aligned
/// need more registers, which suffice for one. If rows gather from all of B, a slice has at most 32 packs, so
/// that more of its part of B stays in the caches.
fn rows_slice(k: usize, width: usize, scattered: bool) -> Slice {
    const NARROW: usize = 32;
    let aligned = (k * width).is_multiple_of(PACK);
    let all = packs(k, width).min(if scattered { NARROW } else { usize::MAX }).max(1);
    let of_lane = if aligned && all > WARP / 2 { 2 } else { 1 };
    let lanes = all.div_ceil(of_lane).next_power_of_two().min(WARP);
    Slice { lanes, packs: of_lane, aligned }
}

impl Schedule for ByItems {
    fn launches(&self, device: &Cuda, k: usize, width: usize) -> Result<Vec<Launch>> {
        let slice = rows_slice(k, width, self.scattered);
        let slices = slice.count(k, width);
        let multiprocessors = device.multiprocessors() as usize;
        let parts = parts(self.items * slices, slice.lanes, self.mean, 1, multiprocessors, BLOCK as usize);
        let tiles = self.items.div_ceil(BLOCK as usize / (slice.lanes * parts)) as u32;
        let numbers = ROWS_NUMBERS.into_iter().zip([k as u32, tiles, self.items as u32]).collect();
        let blocks = grid(u64::from(tiles) * slices as u64);
        let first = Launch::new(rows_kind(slice, parts), numbers, blocks);
        Ok(std::iter::once(first).chain(self.pieces.launch(k)).collect())
    }

    fn arrays<T: Scalar>(&self, k: usize) -> Arrays<'static> {
        self.pieces.arrays_for::<T>(k)
    }
}

/// Block rows, by items.
pub(super) struct ByBlocks {
    pub items: usize,
    pub mean: usize,
    pub pieces: Pieces,
    pub block: (usize, usize),
    pub shape: (usize, usize),
}

/// Returns the lanes for k columns and blocks of `height` rows: a lane has `height` sums for each of its
/// packs, and registers for 16 of them.
pub(super) fn blocks_slice(height: usize, k: usize, width: usize) -> Slice {
    const SUMS: usize = 16;
    let whole = Slice::of(k, width);
    let most = (SUMS / height).clamp(1, MOST_PACKS);
    Slice { packs: whole.packs.min(most), ..whole }
}

impl Schedule for ByBlocks {
    fn launches(&self, device: &Cuda, k: usize, width: usize) -> Result<Vec<Launch>> {
        let slice = blocks_slice(self.block.0, k, width);
        let slices = slice.count(k, width);
        let multiprocessors = device.multiprocessors() as usize;
        let parts = parts(self.items * slices, slice.lanes, self.mean, 2, multiprocessors, WARP);
        let tiles = self.items.div_ceil(BLOCK as usize / (slice.lanes * parts)) as u32;
        let cut = !self.shape.1.is_multiple_of(self.block.1);
        // `Tiles::of` refuses more rows or columns.
        let (rows, cols) = (self.shape.0 as u32, self.shape.1 as u32);
        let numbers =
            BLOCKS_NUMBERS.into_iter().zip([k as u32, tiles, self.items as u32, rows, cols]).collect();
        let blocks = grid(u64::from(tiles) * slices as u64);
        let first = Launch::new(blocks_kind(slice, parts, self.block, cut), numbers, blocks);
        Ok(std::iter::once(first).chain(self.pieces.launch(k)).collect())
    }

    fn arrays<T: Scalar>(&self, k: usize) -> Arrays<'static> {
        self.pieces.arrays_for::<T>(k)
    }
}

/// The compile-time parameters of the kernel with chunks of B in shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stage {
    pub slice: Slice,
    /// Rows of a group of lanes.
    pub height: usize,
    /// Groups of lanes that share a row.
    pub parts: usize,
    /// Rows of B in a chunk.
    pub chunk: usize,
    /// Buffers for chunks: 1 or 2.
    pub buffers: usize,
}

impl Stage {
    /// Threads of a block: as many as a block may have, as its shared memory leaves room for no other block.
    pub(crate) const BLOCK: usize = 1024;

    /// Returns the rows of a tile.
    pub(crate) fn tile(self) -> usize {
        Stage::BLOCK / (self.slice.lanes * self.parts) * self.height
    }

    /// Returns the bytes of the buffers, each with a row of zeros.
    pub(crate) fn shared(self) -> usize {
        self.buffers * (self.chunk + 1) * self.slice.lanes * self.slice.packs * PACK
    }

    pub(crate) fn kind(self) -> Kind {
        let Stage { slice, height, parts, buffers, .. } = self;
        kind!(
            "spmm_staged",
            "staged.cu",
            slice,
            Stage::BLOCK as u32,
            ["HEIGHT" = height, "PARTS" = parts, "BUFFERS" = buffers]
        )
    }
}

/// Tiles of rows and chunks of B.
pub(super) struct ByTiles {
    pub stage: Stage,
    pub shape: (usize, usize),
}

impl Schedule for ByTiles {
    fn launches(&self, _: &Cuda, k: usize, width: usize) -> Result<Vec<Launch>> {
        let ByTiles { stage, shape: (rows, cols) } = *self;
        let slices = stage.slice.count(k, width);
        let (tiles, chunks) = (rows.div_ceil(stage.tile()), cols.div_ceil(stage.chunk).max(1));
        let numbers = [k, tiles, chunks, stage.chunk, rows, cols].map(|number| number as u32);
        let numbers = STAGED_NUMBERS.into_iter().zip(numbers).collect();
        let (blocks, shared) = (grid((tiles * slices) as u64), stage.shared() as u32);
        Ok(vec![Launch { shared, ..Launch::new(stage.kind(), numbers, blocks) }])
    }
}

/// Groups of rows in fragments, by items.
pub(super) struct ByFragments {
    pub items: usize,
    pub pieces: Pieces,
    pub rows: usize,
}

impl Schedule for ByFragments {
    fn launches(&self, _: &Cuda, k: usize, _: usize) -> Result<Vec<Launch>> {
        let pairs = pairs(k);
        let tiles = self.items.div_ceil(MULTIPLYING as usize / WARP) as u32;
        let numbers = [k, tiles as usize, self.items, self.rows].map(|number| number as u32);
        let numbers = FRAGMENTS_NUMBERS.into_iter().zip(numbers).collect();
        let blocks = grid(u64::from(tiles) * k.div_ceil(pairs * PAIR) as u64);
        let kind = fragments_kind(pairs, k.is_multiple_of(2));
        let first = Launch { partials: Some(tiles), ..Launch::new(kind, numbers, blocks) };
        Ok(std::iter::once(first).chain(self.pieces.launch(k)).collect())
    }

    fn arrays<T: Scalar>(&self, k: usize) -> Arrays<'static> {
        self.pieces.arrays_for::<T>(k)
    }
}
