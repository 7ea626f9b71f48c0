//! Block sizes as parameters of backends.

use crate::format::Csr;
use crate::format::blocked::cheapest;
use crate::params::{Kind, Param, Params};

/// Values of the parameter `block` of backends with square blocks.
pub(crate) const SQUARES: &[&str] = &["auto", "2", "3", "4", "5", "6", "7", "8"];

/// Listed values of the parameter `block` of the task strategies: sizes that have a specialised product.
pub(crate) const TASK_SIZES: &[&str] = &["auto", "5x5", "2x2", "3x3", "4x4", "6x6", "8x8"];

/// All other sizes; they share one generic product.
const ANY_SIZE: Kind = Kind::Extents("RxC", 1, MOST as u64);

/// Returns the parameter `block` of the task strategies; `sizes` are the listed values.
pub(crate) const fn any_block(sizes: &'static [&'static str]) -> Param {
    let summary = "rows x columns of a block; auto takes the size that moves the fewest bytes";
    Param::new("block", Kind::WordOr(sizes, &ANY_SIZE), summary).or("auto")
}

/// The parameter `size` of the task strategies.
pub(crate) const SIZE: Param = Param::word(
    "size",
    &["compiled", "runtime"],
    "whether the product is compiled for the size of a block, or takes it as numbers, as the study's products do",
);

/// Returns whether the product of a task strategy is compiled for the size of a block.
pub(crate) fn is_compiled(params: &Params) -> bool {
    params.word(SIZE.name) != Some("runtime")
}

/// The largest height and width of a block.
pub(crate) const MOST: usize = 64;

/// The size for a matrix without entries.
const WITHOUT_ENTRIES: (usize, usize) = (2, 2);

/// Parses the rows and columns of a block, such as `5x3`.
pub(crate) fn size(typed: &str) -> Option<(usize, usize)> {
    let (height, width) = typed.split_once('x')?;
    Some((height.parse().ok()?, width.parse().ok()?))
}

/// Returns the size that the user typed, or else the one that moves the fewest bytes in a sample of the rows,
/// for values of `value` bytes.
pub(crate) fn named_or_found(matrix: &Csr, params: &Params, value: f64) -> (usize, usize) {
    let found = || cheapest(matrix, value).map_or(WITHOUT_ENTRIES, |(best, _)| (best.size[0], best.size[1]));
    params.find("block").and_then(|typed| size(&typed.to_string())).unwrap_or_else(found)
}
