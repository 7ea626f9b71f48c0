//! The threads of a sweep over vectors of several columns.
//!
//! A thread has one column and strides over rows, so that the threads of a block take elements that follow
//! each other; see kernels/columns.cuh. Up to 512 columns are one tile. More columns are divided into tiles
//! of equal width, with separate blocks.
//!
//! Each block stores one sum for each dot product and column of its tile, so that the memory for these sums
//! is at most `MAX_DOTS` numbers for each thread that the GPU holds at once, whatever the number of columns.

use super::modules::Kernel;
use crate::device::sweep::MAX_DOTS;

/// The most threads in a block. Large blocks leave few partial sums for the last block to add.
const BLOCK: u32 = 512;
/// The most threads that a multiprocessor of any GPU holds at once.
const RESIDENT: u32 = 2048;
/// Threads in a warp.
const WARP: u32 = 32;
/// Rows that a thread loads together.
pub(super) const UNROLL: u32 = 2;

/// How the threads of a block are divided among columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// Columns of a tile.
    pub width: u32,
    /// Rows that a block takes at once.
    pub rows: u32,
    /// Tiles of columns.
    pub tiles: u32,
    /// Threads in a block.
    pub block: u32,
}

impl Arrangement {
    /// Returns the arrangement for `k` columns.
    pub(crate) fn of(k: usize) -> Arrangement {
        let k = u32::try_from(k).unwrap_or(u32::MAX);
        let tiles = k.div_ceil(BLOCK);
        let width = if tiles == 1 { k } else { k.div_ceil(tiles).next_multiple_of(WARP) };
        let rows = BLOCK / width;
        Arrangement { width, rows, tiles, block: (width * rows).next_multiple_of(WARP) }
    }

    /// Returns the most blocks of a tile, on a GPU with this number of multiprocessors that
    /// each hold `resident` blocks.
    fn most_parts(self, multiprocessors: u32, resident: u32) -> u32 {
        let fits = (RESIDENT / self.block).max(1);
        (multiprocessors * resident.clamp(1, fits) / self.tiles).max(1)
    }

    /// Returns the number of partial sums of a kernel, for `k` columns.
    pub(crate) fn sums(self, multiprocessors: u32, k: usize) -> usize {
        self.most_parts(multiprocessors, RESIDENT) as usize * MAX_DOTS * k
    }

    /// Returns the number of blocks of a kernel over `n` rows.
    pub(crate) fn blocks(self, multiprocessors: u32, kernel: &Kernel, n: u64) -> u32 {
        let most = self.most_parts(multiprocessors, kernel.blocks_resident);
        let parts = n.div_ceil(u64::from(self.rows * UNROLL)).clamp(1, u64::from(most));
        parts as u32 * self.tiles
    }

    /// Returns the macros that kernels/columns.cuh requires.
    pub(crate) fn defines(self) -> [(&'static str, String); 4] {
        let Arrangement { width, rows, tiles, .. } = self;
        [("WIDTH", width), ("ROWS", rows), ("TILES", tiles), ("UNROLL", UNROLL)]
            .map(|(name, value)| (name, value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The multiprocessors of an H200.
    const MULTIPROCESSORS: u32 = 132;

    #[test]
    fn every_column_belongs_to_one_tile_and_every_tile_has_a_column() {
        for k in 2..5000_usize {
            let Arrangement { width, rows, tiles, block } = Arrangement::of(k);
            assert!((width * tiles) as usize >= k && ((tiles - 1) * width) < k as u32, "{k}");
            assert!(rows >= 1 && width * rows <= block && block <= BLOCK && block % WARP == 0, "{k}");
            assert!(2 * width * rows > block, "{k}: most threads have work");
            assert!(tiles == 1 || width % WARP == 0, "{k}: tiles begin at whole sectors");
        }
    }

    #[test]
    fn partial_sums_take_at_most_nine_megabytes_for_up_to_4096_columns() {
        for k in 2..=4096 {
            let bytes = 8 * Arrangement::of(k).sums(MULTIPROCESSORS, k);
            assert!(bytes <= 9 << 20, "{k}: {bytes}");
        }
        assert_eq!(8 * Arrangement::of(32).sums(MULTIPROCESSORS, 32), 4 * 132 * 4 * 32 * 8);
    }

    #[test]
    fn rows_of_32_columns_take_whole_blocks() {
        assert_eq!(Arrangement::of(32), Arrangement { width: 32, rows: 16, tiles: 1, block: 512 });
        assert_eq!(Arrangement::of(4096), Arrangement { width: 512, rows: 1, tiles: 8, block: 512 });
        assert_eq!(Arrangement::of(1000), Arrangement { width: 512, rows: 1, tiles: 2, block: 512 });
        assert_eq!(Arrangement::of(3), Arrangement { width: 3, rows: 170, tiles: 1, block: 512 });
    }
}
