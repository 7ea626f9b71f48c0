//! Launches of the product by tensor cores in single precision, whose numbers are split into parts.

use super::super::elements::{DEPTH, TILE};
use super::super::product::{ExtraArrays, Launch, Schedule, grid};
use super::{Pieces, SPLIT_NUMBERS};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::Kind;
use crate::device::Cuda;
use crate::device::cuda::modules::BLOCK;
use crate::error::Result;
use crate::scalar::Scalar;

/// The shape of a product by tensor cores in single precision, and its launches.
pub(in crate::backend::cuda::spmm) struct BySplit {
    pub shape: (usize, usize),
    pub multiprocessors: usize,
}

/// Columns of B that a block multiplies.
const SPAN: usize = 128;
/// Threads of a block that multiplies: two groups that multiply, and one that copies.
const SPLIT_BLOCK: u32 = 384;
/// Chunks in shared memory: those of 48 KiB each that fit.
const STAGES: usize = 4;
/// The most ranges of chunks whose sums are added.
const MOST_RANGES: usize = 32;
/// Seconds of a chunk of a tile, of the first and last steps of a block, and of a launch that
/// adds sums or splits B.
const CHUNK: f64 = 0.92e-6;
const ENDS_OF_BLOCK: f64 = 4.5e-6;
const SHORT_LAUNCH: f64 = 1.4e-6;
/// Bytes per second of these launches, which mostly reach L2.
const SHORT: f64 = 6e12;
/// Bytes per second of storing sums one by one, if the number of columns is odd.
const ONE_BY_ONE: f64 = 0.9e12;

/// Returns the kernel that splits B.
pub(in crate::backend::cuda::spmm) fn split_kind() -> Kind {
    const TEXT: &str = concat!(
        include_str!("../../../../../kernels/spmm/tf32.cuh"),
        include_str!("../../../../../kernels/spmm/split.cu")
    );
    Kind { name: "spmm_split", text: TEXT, defines: Vec::new(), block: BLOCK, owns_all_rows: false }
}

/// Returns the kernel that multiplies the parts of numbers; `aligned` if the number of columns is even.
pub(in crate::backend::cuda::spmm) fn tf32x3_kind(aligned: bool) -> Kind {
    const TEXT: &str = concat!(
        include_str!("../../../../../kernels/spmm/tf32.cuh"),
        include_str!("../../../../../kernels/spmm/tf32x3.cu")
    );
    let mut defines = vec![("STAGES", STAGES.to_string())];
    defines.extend(aligned.then(|| ("ALIGNED", "1".to_owned())));
    Kind { name: "spmm_tf32x3", text: TEXT, defines, block: SPLIT_BLOCK, owns_all_rows: false }
}

impl BySplit {
    fn tiles(&self) -> usize {
        self.shape.0.div_ceil(TILE)
    }

    fn chunks(&self) -> usize {
        self.shape.1.div_ceil(DEPTH)
    }

    fn slices(k: usize) -> usize {
        k.div_ceil(SPAN)
    }

    /// Returns the number of ranges of chunks for which k columns take the least time, and this time.
    pub(crate) fn ranges(&self, k: usize) -> (usize, f64) {
        let (chunks, rows) = (self.chunks().max(1), self.shape.0);
        let seconds = |ranges: usize| {
            let blocks = self.tiles() * BySplit::slices(k) * ranges;
            let waves = blocks.div_ceil(self.multiprocessors) as f64;
            let multiplying = waves * (ENDS_OF_BLOCK + CHUNK * chunks.div_ceil(ranges) as f64);
            let splitting = SHORT_LAUNCH + (3 * size_of::<f32>() * self.shape.1 * k) as f64 / SHORT;
            let added = ((ranges + 1) * size_of::<f32>() * rows * k) as f64;
            let stored = (ranges * size_of::<f32>() * rows * k) as f64;
            let storing = if k.is_multiple_of(2) { 0.0 } else { stored / ONE_BY_ONE };
            let adding = if ranges > 1 { SHORT_LAUNCH + added / SHORT } else { 0.0 };
            splitting + multiplying + storing + adding
        };
        let all = (1..=chunks.min(MOST_RANGES)).map(|ranges| (ranges, seconds(ranges)));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1, seconds(1)))
    }

    /// Returns the sums of ranges that are added for k columns.
    fn pieces(&self, k: usize) -> Pieces {
        let (rows, ranges) = (self.shape.0 as u32, self.ranges(k).0 as u32);
        let cut_rows =
            if ranges > 1 { (0..rows).map(|row| [row, row, ranges, rows]).collect() } else { Vec::new() };
        Pieces { slots: cut_rows.len() * ranges as usize, cut_rows }
    }
}

impl Schedule for BySplit {
    fn launches(&self, _: &Cuda, k: usize, _: usize) -> Result<Vec<Launch>> {
        let ((rows, cols), slices, ranges) = (self.shape, BySplit::slices(k), self.ranges(k).0);
        let (tiles, chunks) = (self.tiles(), self.chunks());
        let numbers = [k, tiles, chunks, ranges, rows, cols].map(|number| number as u32);
        let numbers: Vec<_> = SPLIT_NUMBERS.into_iter().zip(numbers).collect();
        let fours = (slices * chunks * SPAN * DEPTH / 4) as u64;
        let split = Launch::new(split_kind(), numbers.clone(), grid(fours.div_ceil(u64::from(BLOCK))));
        let blocks = grid((tiles * slices * ranges) as u64);
        let multiply = Launch::new(tf32x3_kind(k.is_multiple_of(2)), numbers, blocks);
        let shared = (STAGES * (TILE + 2 * SPAN) * DEPTH * size_of::<f32>()) as u32;
        let multiply = Launch { shared, ..multiply };
        Ok([split, multiply].into_iter().chain(self.pieces(k).launch(k)).collect())
    }

    fn arrays<T: Scalar>(&self, k: usize) -> Arrays<'static> {
        let parts = 2 * BySplit::slices(k) * self.chunks() * SPAN * DEPTH;
        self.pieces(k).arrays_for::<T>(k).add_scalars::<T>("parts", parts)
    }
}

impl ExtraArrays for BySplit {
    fn arrays<T: Scalar>() -> Arrays<'static> {
        <Pieces as ExtraArrays>::arrays::<T>().add_scalars::<T>("parts", 0)
    }
}
