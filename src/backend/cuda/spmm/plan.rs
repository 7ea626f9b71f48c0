//! The choice of a plan for k columns, from statistics of the matrix and the size of the GPU.
//!
//! Every plan multiplies `nnz k` pairs. What differs is where the elements of B come from: `rows` loads each
//! from L1 or L2, `staged` copies B once for each tile of rows and loads from shared memory, `blocks` loads
//! an element once for all rows of a block, `tensor` loads a row of B once for sixteen rows of A and
//! multiplies fragments, zeros included, by tensor cores, and `dense` multiplies all elements of A at the
//! speed of cuBLAS. `tf32x3` multiplies all elements in single precision by tensor cores. The estimates add
//! up the bytes at each level and divide by its bandwidth; the constants are those of an H200.

use super::elements::Elements;
use super::fragments::{Counts, FRAGMENT, GROUP, counts};
use super::quads::QUAD;
use super::schedule::{BySplit, PAIR, Slice, Stage, blocks_slice, packs, pairs};
use super::staged::Cut;
use crate::backend::cuda::locality::spread;
use crate::backend::decision::GpuSize;
use crate::format::Csr;
use crate::format::narrow::value_bytes;
use crate::format::stats::{Block, Blocks};

/// Multiprocessors of the GPU for which the constants hold.
const MEASURED: f64 = 132.0;
/// Bytes per second at which `rows` loads B from L1, and from L2 in addition.
const ROWS_L1: f64 = 20e12;
const ROWS_L2: f64 = 24e12;
/// Bytes per second at which `blocks` loads from L1 and from L2.
const BLOCKS_L1: f64 = 18e12;
const BLOCKS_L2: f64 = 12e12;
/// Bytes per second of all shared memories.
const SHARED: f64 = 24e12;
/// Bytes per second at which blocks copy B to shared memory.
const STAGING: f64 = 6e12;
/// Operations per second of plain code and of cuBLAS, in single and double precision.
const PLAIN: [f64; 2] = [45e12, 24e12];
const DENSE: [f64; 2] = [48e12, 60e12];
/// Bytes per second of L2 for fragments and their rows of B; few loads are served by L1.
const TO_FRAGMENTS: f64 = 7.8e12;
/// Seconds that a multiprocessor spends on the first and last steps of a warp that multiplies fragments.
const WARP_OF_FRAGMENTS: f64 = 1e-7;
/// Seconds between two quads of fragments of one warp, of which two are in flight.
const NEXT_FRAGMENTS: f64 = 2.9e-7;
/// Operations per second of the tensor cores in double precision, from registers.
const TENSOR: f64 = 55e12;
/// Seconds before and after the work of a kernel, and of cuBLAS.
const LAUNCH: f64 = 1.8e-6;
const DENSE_LAUNCH: f64 = 6e-6;
/// Bytes in shared memory that cost as much as loading an entry of A.
const ENTRY: f64 = 32.0;
/// Bytes in shared memory that cost as much as looking up which entries a row has in a chunk.
const LOOK: f64 = 512.0;
/// Entries in the time of which a row begins and ends a chunk.
const ENDS: f64 = 4.0;
/// Least share of a block that entries fill.
const FULL: f64 = 0.6;

/// A way to multiply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    Rows,
    Staged(Stage),
    Blocks,
    Tensor,
    Tf32x3,
    Dense,
}

impl Plan {
    /// Returns the name as users type it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Plan::Rows => "rows",
            Plan::Staged(_) => "staged",
            Plan::Blocks => "blocks",
            Plan::Tensor => "tensor",
            Plan::Tf32x3 => "tf32x3",
            Plan::Dense => "dense",
        }
    }
}

/// The properties of a matrix that decide.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend::cuda) struct Traits {
    pub rows: usize,
    pub cols: usize,
    pub nnz: usize,
    /// Bytes of the arrays of CSR.
    pub bytes: u64,
    /// Columns that neighbouring rows do not share, for each entry.
    pub fresh: f64,
    /// The size of blocks that fit best, if the matrix consists of blocks.
    pub block: Option<Block>,
    /// The fragments of the matrix.
    pub fragments: Counts,
    /// Bytes of a stored value.
    pub value: f64,
    /// Whether cuBLAS may multiply: it is found, and the matrix is small enough.
    pub dense: bool,
    /// Whether `tf32x3` may multiply: the matrix is small enough, and its values are numbers
    /// of single precision.
    pub elements: bool,
}

/// The GPU, with the bytes of shared memory that a block may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    pub size: GpuSize,
    pub shared: usize,
    /// Whether tensor cores multiply in double precision, faster than plain code.
    pub tensor: bool,
    /// Whether tensor cores multiply in TF32 as the kernel of `tf32x3` has it.
    pub tf32: bool,
}

/// Returns the columns that a window of rows does not share, for each entry, from a sample.
fn fresh(matrix: &Csr) -> f64 {
    /// Rows that a multiprocessor multiplies at about the same time.
    const ROWS: usize = 64;
    const WINDOWS: usize = 32;
    let (mut entries, mut different) = (0, 0);
    let mut columns: Vec<u32> = Vec::new();
    for window in spread(matrix.rows().div_ceil(ROWS), WINDOWS) {
        let rows = window * ROWS..((window + 1) * ROWS).min(matrix.rows());
        columns.clear();
        rows.for_each(|row| columns.extend(matrix.row_columns(row)));
        entries += columns.len();
        columns.sort_unstable();
        columns.dedup();
        different += columns.len();
    }
    different as f64 / (entries as f64).max(1.0)
}

impl Traits {
    /// Returns the properties of a matrix; `dense` if cuBLAS may multiply it.
    pub(crate) fn of(matrix: &Csr, dense: bool) -> Traits {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let value = value_bytes(matrix);
        let block = best_block(matrix, value);
        Traits {
            rows,
            cols,
            nnz: matrix.nnz(),
            bytes: matrix.storage_bytes(),
            fresh: fresh(matrix),
            block: block.filter(|block| block.fill >= FULL),
            fragments: counts(matrix),
            value,
            dense,
            elements: Elements::fit(matrix),
        }
    }

    /// Returns whether rows gather from all of B: neighbours share few columns.
    pub(crate) fn scattered(&self) -> bool {
        self.fresh > 0.4
    }

    /// Returns the share of elements that are stored.
    pub(crate) fn density(&self) -> f64 {
        self.nnz as f64 / (self.rows as f64 * self.cols as f64).max(1.0)
    }
}

/// Returns the block size for which lanes load the fewest bytes, for values of `value` bytes.
fn best_block(matrix: &Csr, value: f64) -> Option<Block> {
    if matrix.pattern().has_repeats() || matrix.nnz() == 0 {
        return None;
    }
    // For each element of a block, a lane loads its value, and a pack of B once for `height` rows.
    let cost = |block: &Block| (16.0 / block.size[0] as f64 + value) / block.fill;
    Blocks::sampled(matrix).all.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

/// An estimate of one plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub plan: Plan,
    pub seconds: f64,
}

/// The work of a product with `k` columns of `width` bytes.
struct Work<'a> {
    traits: &'a Traits,
    machine: &'a Machine,
    k: usize,
    width: usize,
}

impl Work<'_> {
    fn scale(&self) -> f64 {
        self.machine.size.multiprocessors as f64 / MEASURED
    }

    /// Returns the bytes of B that all entries take, whole packs included.
    fn gathered(&self) -> f64 {
        self.traits.nnz as f64 * (packs(self.k, self.width) * 16) as f64
    }

    /// Returns the seconds of moving A, B and C once.
    fn moving(&self) -> f64 {
        let Traits { rows, cols, bytes, .. } = *self.traits;
        let all = bytes as f64 + ((rows + cols) * self.k * self.width) as f64;
        all / self.machine.size.bandwidth
    }

    /// Returns the seconds of moving `matrix` bytes of A, and B and C, that are not in L2 from
    /// the product before.
    fn streamed(&self, matrix: f64) -> f64 {
        let Traits { rows, cols, .. } = *self.traits;
        let GpuSize { bandwidth, cache, .. } = self.machine.size;
        let all = matrix + ((rows + cols) * self.k * self.width) as f64;
        all / bandwidth * (2.0 * all / cache - 1.0).clamp(0.0, 1.0)
    }

    /// Returns the seconds of loading the rows of B that are not in L2, if neighbouring rows
    /// of A share few of them.
    fn missed(&self) -> f64 {
        let of_b = (self.traits.cols * self.k * self.width) as f64;
        let share = (1.0 - self.machine.size.cache / of_b.max(1.0)).clamp(0.0, 0.5);
        if self.traits.scattered() {
            share * self.traits.fresh * self.gathered() / self.machine.size.bandwidth
        } else {
            0.0
        }
    }

    /// Returns the operations per second of a table.
    fn flops(&self, of: [f64; 2]) -> f64 {
        of[usize::from(self.width == 8)] * self.scale()
    }

    fn rows(&self) -> Estimate {
        let (fresh, gathered) = (self.traits.fresh * self.gathered(), self.gathered());
        let loads = (fresh / ROWS_L2 + gathered / ROWS_L1) / self.scale() + self.missed();
        Estimate { plan: Plan::Rows, seconds: LAUNCH + loads + self.streamed(self.traits.bytes as f64) }
    }

    fn blocks(&self) -> Option<Estimate> {
        let block = self.traits.block?;
        let [height, width] = block.size;
        let slice = blocks_slice(height, self.k, self.width);
        let padded = block.blocks as f64 * (height * width) as f64;
        // Every lane loads the values of a block, and its packs of B for each column.
        let lanes = (slice.lanes * slice.count(self.k, self.width)) as f64;
        let loaded = lanes * padded * (self.traits.value + (16 * slice.packs) as f64 / height as f64);
        let fetched = self.traits.fresh * padded / height as f64 * (packs(self.k, self.width) * 16) as f64;
        let loads = (fetched / BLOCKS_L2).max(loaded / BLOCKS_L1) / self.scale();
        let work = 2.0 * padded * self.k as f64 / self.flops(PLAIN);
        let seconds = LAUNCH + loads.max(work) + self.streamed(block.bytes as f64);
        Some(Estimate { plan: Plan::Blocks, seconds })
    }

    /// Returns the estimate of fragments, in double precision.
    fn tensor(&self) -> Option<Estimate> {
        let Traits { rows, cols, fragments: Counts { quads, fragments }, value, .. } = *self.traits;
        let wide = pairs(self.k) * PAIR;
        let slices = self.k.div_ceil(wide) as f64;
        let fragment = FRAGMENT as f64 * value;
        let of_quad = (QUAD * wide * self.width) as f64;
        let fetched = slices * (quads * of_quad + fragments * fragment) / (TO_FRAGMENTS * self.scale());
        let warps = slices * (rows as f64 / GROUP as f64);
        let ends = warps * WARP_OF_FRAGMENTS / self.machine.size.multiprocessors as f64;
        let work = slices * fragments * (2 * FRAGMENT * wide) as f64 / (TENSOR * self.scale());
        // A quad has its columns and its place.
        let bytes = fragments * fragment + quads * ((QUAD + 1) * size_of::<u32>()) as f64;
        let vectors = ((rows + cols) * self.k * self.width) as f64;
        let moving = (bytes + vectors) / self.machine.size.bandwidth;
        // A warp multiplies the quads of its rows one after the other.
        let alone = quads * GROUP as f64 / rows.max(1) as f64 * NEXT_FRAGMENTS;
        let seconds = LAUNCH + (fetched + ends).max(work).max(moving).max(alone) + self.missed();
        (self.machine.tensor && self.width == 8).then_some(Estimate { plan: Plan::Tensor, seconds })
    }

    /// Returns the estimate of all elements in parts of 11 bits, in single precision.
    fn tf32x3(&self) -> Option<Estimate> {
        let Traits { rows, cols, elements, .. } = *self.traits;
        if !(self.machine.tf32 && elements && self.width == 4) {
            return None;
        }
        let split = BySplit { shape: (rows, cols), multiprocessors: self.machine.size.multiprocessors };
        let moved = (self.width * rows * cols) as f64 / self.machine.size.bandwidth;
        let seconds = split.ranges(self.k).1.max(moved);
        Some(Estimate { plan: Plan::Tf32x3, seconds })
    }

    fn dense(&self) -> Option<Estimate> {
        let Traits { rows, cols, dense, .. } = *self.traits;
        let work = 2.0 * (rows * cols) as f64 * self.k as f64 / self.flops(DENSE);
        let moved = ((rows * cols + (rows + cols) * self.k) * self.width) as f64;
        let seconds = DENSE_LAUNCH + work.max(moved / self.machine.size.bandwidth);
        dense.then_some(Estimate { plan: Plan::Dense, seconds })
    }

    /// Returns a shape of the plan `staged`; none if a buffer does not fit.
    fn stage(&self, wide: usize, height: usize, parts: usize) -> Option<Stage> {
        const LANES: usize = 8;
        let lanes = packs(self.k, self.width).next_power_of_two().min(LANES);
        let slice = Slice { lanes, packs: wide, aligned: (self.k * self.width).is_multiple_of(16) };
        let row = lanes * wide * 16;
        let room = |buffers: usize| (self.machine.shared / buffers / row).saturating_sub(1).min(Cut::MOST);
        let cols = self.traits.cols.max(1);
        if room(2) == 0 || lanes * parts > 32 {
            return None;
        }
        let buffers = if cols <= room(1) { 1 } else { 2 };
        // Chunks of equal sizes.
        let chunk = cols.div_ceil(cols.div_ceil(room(buffers)));
        Some(Stage { slice, height, parts, chunk, buffers })
    }

    fn of_stage(&self, stage: Stage) -> Estimate {
        let Traits { rows, cols, nnz, .. } = *self.traits;
        let multiprocessors = self.machine.size.multiprocessors as f64;
        let row = (stage.slice.lanes * stage.slice.packs * 16) as f64;
        let tiles = rows.div_ceil(stage.tile()) as f64;
        let blocks = tiles * stage.slice.count(self.k, self.width) as f64;
        let chunks = cols.div_ceil(stage.chunk) as f64;
        let in_chunk = (nnz as f64 / (rows as f64 * chunks).max(1.0)).max(0.01);
        let padded = 1.0 + ENDS / in_chunk.max(1.0);
        let loads = nnz as f64 / tiles * padded * (row + ENTRY) / (SHARED / MEASURED);
        let looks = (stage.tile() as f64 * chunks) * LOOK / (SHARED / MEASURED);
        let copies = cols as f64 * row / (STAGING / MEASURED);
        let first = copies / chunks;
        let of_block = match stage.buffers {
            1 => copies + loads + looks,
            _ => first + (copies - first).max(loads + looks),
        };
        let seconds = LAUNCH + ((blocks / multiprocessors).ceil() * of_block).max(self.moving());
        Estimate { plan: Plan::Staged(stage), seconds }
    }

    fn staged(&self) -> Option<Estimate> {
        let mut best: Option<Estimate> = None;
        for wide in [1, 2] {
            for height in [1, 2, 4] {
                for parts in [1, 2, 4] {
                    let one = self.stage(wide, height, parts).map(|stage| self.of_stage(stage));
                    let better = |one: &Estimate| best.is_none_or(|best| one.seconds < best.seconds);
                    best = one.filter(better).or(best);
                }
            }
        }
        best
    }
}

/// Returns the estimates of all plans that can multiply, the fastest first, for k columns of `width` bytes.
pub(super) fn estimates(traits: &Traits, machine: &Machine, k: usize, width: usize) -> Vec<Estimate> {
    let work = Work { traits, machine, k, width };
    let mut all = vec![work.rows()];
    all.extend(work.blocks());
    all.extend(work.tensor());
    all.extend(work.tf32x3());
    all.extend(work.staged());
    // Packs of fewer than eight lanes of different rows meet in the same banks of shared memory.
    all.retain(|one| !matches!(one.plan, Plan::Staged(stage) if stage.slice.lanes < 8));
    // A single vector is bound by the bytes of the matrix, which zeros multiply.
    all.extend(work.dense().filter(|_| k > 1));
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    all
}

/// Returns the best shape of the plan `staged` for k columns; none if shared memory does not suffice.
pub(super) fn best_stage(traits: &Traits, machine: &Machine, k: usize, width: usize) -> Option<Stage> {
    match (Work { traits, machine, k, width }).staged()?.plan {
        Plan::Staged(stage) => Some(stage),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine { size: GpuSize::H200, shared: 227 << 10, tensor: true, tf32: true };

    fn plan(what: &str, k: usize, width: usize) -> &'static str {
        let matrix = crate::source::load(what).unwrap().matrix;
        let traits = Traits::of(&if width == 4 { matrix.to_f32() } else { matrix }, true);
        let all = estimates(&traits, &H200, k, width);
        assert!(all.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
        all[0].plan.name()
    }

    #[test]
    fn dense_matrices_are_multiplied_by_cublas_and_blocks_by_block_rows() {
        assert_eq!(plan("density:n=1024,sparsity=0.5", 256, 8), "dense");
        assert_eq!(plan("hex27:8x8x8,dof=4", 64, 4), "blocks");
        assert_eq!(plan("banded:n=20001,half=9", 32, 4), "blocks");
        assert_eq!(plan("uniform:n=20000,row=16", 32, 8), "rows");
    }

    #[test]
    fn matrices_with_many_entries_are_multiplied_in_parts_of_11_bits_in_single_precision() {
        assert_eq!(plan("density:n=1024,sparsity=0.5", 256, 4), "tf32x3");
        assert_eq!(plan("density:n=2048,sparsity=0.9", 256, 4), "tf32x3");
        assert_eq!(plan("density:n=2048,sparsity=0.99", 256, 4), "rows");
        let matrix = crate::source::load("density:n=1024,sparsity=0.5").unwrap().matrix.to_f32();
        let traits = Traits::of(&matrix, true);
        let others = Machine { tf32: false, ..H200 };
        assert_eq!(estimates(&traits, &others, 256, 4)[0].plan.name(), "dense");
    }

    #[test]
    fn rows_that_share_columns_are_multiplied_by_tensor_cores_in_double_precision() {
        assert_eq!(plan("hex27:24x24x24,dof=3", 32, 8), "tensor");
        assert_eq!(plan("hex27:24x24x24,dof=3", 32, 4), "blocks");
    }

    #[test]
    fn buffers_fit_into_shared_memory_and_grids_fill_the_gpu() {
        for (rows, cols, density, k) in
            [(1024, 2048, 0.1, 128), (4096, 4096, 0.1, 128), (8192, 4096, 0.05, 256)]
        {
            let nnz = (density * (rows * cols) as f64) as usize;
            let bytes = 8 * nnz as u64;
            let fragments = Counts { quads: 0.0, fragments: 0.0 };
            let traits = Traits {
                rows,
                cols,
                nnz,
                bytes,
                fresh: 0.2,
                block: None,
                fragments,
                value: 4.0,
                dense: true,
                elements: true,
            };
            let stage = best_stage(&traits, &H200, k, 4).unwrap();
            assert!(stage.shared() <= H200.shared, "{stage:?}");
            let blocks = rows.div_ceil(stage.tile()) * stage.slice.count(k, 4);
            assert!((96..=264).contains(&blocks), "{blocks} blocks: {stage:?}");
        }
    }
}
