//! Block sizes as parameters of backends.

use super::{Param, Params, UnlistedValues};
use crate::format::Csr;
use crate::format::blocked::cheapest;

/// Values of the parameter `block` of backends with square blocks.
pub const SQUARES: &[&str] = &["auto", "2", "3", "4", "5", "6", "7", "8"];

/// Listed values of the parameter `block` of the task strategies: sizes that have a specialised product.
pub const TASK_SIZES: &[&str] = &["auto", "5x5", "2x2", "3x3", "4x4", "6x6", "8x8"];

/// All other sizes; they share one generic product.
pub const ANY_SIZE: UnlistedValues = UnlistedValues {
    what: "RxC with R and C from 1 to 64",
    has: any_size,
    examples: &["1x1", "1x7", "4x1", "7x3", "2x16", "9x10", "64x5", "17x64"],
};

/// The parameter `size` of the task strategies.
pub const SIZE: Param = Param {
    name: "size",
    values: &["compiled", "runtime"],
    summary: "whether the product is compiled for the size of a block, or takes it as numbers, as the study's products do",
    unlisted: None,
};

/// Returns whether the product of a task strategy is compiled for the size of a block.
pub fn is_compiled(params: &Params) -> bool {
    params.get(SIZE.name) != Some("runtime")
}

/// The largest height and width of a block.
pub const MOST: usize = 64;

fn any_size(typed: &str) -> bool {
    // Only the printed form is accepted, so that 05x5 is no second name of 5x5.
    size(typed).is_some_and(|(height, width)| {
        (1..=MOST).contains(&height) && (1..=MOST).contains(&width) && format!("{height}x{width}") == typed
    })
}

/// The size for a matrix without entries.
const WITHOUT_ENTRIES: (usize, usize) = (2, 2);

/// Parses the rows and columns of a block, such as `5x3`.
pub fn size(typed: &str) -> Option<(usize, usize)> {
    let (height, width) = typed.split_once('x')?;
    Some((height.parse().ok()?, width.parse().ok()?))
}

/// Returns the size that the user typed, or else the one that moves the fewest bytes in a sample of the rows, for values of
/// `value` bytes.
pub fn named_or_found(matrix: &Csr, params: &Params, value: f64) -> (usize, usize) {
    let found = || cheapest(matrix, value).map_or(WITHOUT_ENTRIES, |(best, _)| (best.size[0], best.size[1]));
    params.get("block").and_then(size).unwrap_or_else(found)
}
