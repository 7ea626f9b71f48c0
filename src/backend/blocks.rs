//! Sizes of blocks as parameters of backends.

use super::{Others, Params};
use crate::format::Csr;
use crate::format::blocked::cheapest;

/// The values of the parameter `block` where blocks are square.
pub const SQUARES: &[&str] = &["auto", "2", "3", "4", "5", "6", "7", "8"];

/// The values of the parameter `block` of the strategies over tasks that have a product compiled for their size.
pub const TASK_SIZES: &[&str] = &["auto", "5x5", "2x2", "3x3", "4x4", "6x6", "8x8"];

/// All other sizes; they share one product.
pub const ANY_SIZE: Others = Others {
    what: "RxC with R and C from 1 to 64",
    has: any_size,
    examples: &["1x1", "1x7", "4x1", "7x3", "2x16", "9x10", "64x5", "17x64"],
};

/// The most rows and columns of a block.
pub const MOST: usize = 64;

fn any_size(typed: &str) -> bool {
    // As it would be printed: 05x5 is no second name of 5x5.
    size(typed).is_some_and(|(height, width)| {
        (1..=MOST).contains(&height) && (1..=MOST).contains(&width) && format!("{height}x{width}") == typed
    })
}

/// Where a matrix has no entries to judge by.
const WITHOUT_ENTRIES: (usize, usize) = (2, 2);

/// Rows and columns of a block, as they are typed.
pub fn size(typed: &str) -> Option<(usize, usize)> {
    let (height, width) = typed.split_once('x')?;
    Some((height.parse().ok()?, width.parse().ok()?))
}

/// The size that the user has named, or the one that moves the fewest bytes in a sample of the rows, where a value takes `value`
/// bytes.
pub fn named_or_found(matrix: &Csr, params: &Params, value: f64) -> (usize, usize) {
    let found = || cheapest(matrix, value).map_or(WITHOUT_ENTRIES, |(best, _)| (best.size[0], best.size[1]));
    params.get("block").and_then(size).unwrap_or_else(found)
}
