//! All elements of a matrix, in the order in which the tensor cores take them: the format of `plan=tf32x3`.

use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::dense::MOST;
use crate::backend::cuda::form::{Format, Types};
use crate::error::Result;
use crate::format::{Csr, Values};
use crate::parallel::{run_all, zeros};
use crate::scalar::Scalar;

/// Rows of a tile.
pub(super) const TILE: usize = 128;
/// Columns of a chunk.
pub(super) const DEPTH: usize = 32;
/// Rows of a warp, and columns of a step: an instruction of a warp multiplies these elements,
/// four of each lane.
const ROWS: usize = 16;
const STEP: usize = 8;
/// The largest value: rounding a larger one to 11 bits could make it infinite.
const LARGEST: f64 = 3.4e38;

/// A matrix with all its elements, by tile and chunk.
pub(super) struct Elements {
    shape: (usize, usize),
    values: Vec<f32>,
}

/// Returns the place of an element within the tile of its row and the chunk of its column.
fn place(row: usize, column: usize) -> usize {
    let (row, column) = (row % TILE, column % DEPTH);
    let (warp, row) = (row / ROWS, row % ROWS);
    let (step, column) = (column / STEP, column % STEP);
    let lane = row % (ROWS / 2) * 4 + column % 4;
    let of_lane = row / (ROWS / 2) + column / 4 * 2;
    ((warp * (DEPTH / STEP) + step) * 32 + lane) * 4 + of_lane
}

impl Elements {
    /// Returns whether the elements of a matrix fit: there are not too many, no entry is repeated, and single
    /// precision represents each exactly.
    pub(crate) fn fit(matrix: &Csr) -> bool {
        let padded =
            matrix.rows().next_multiple_of(TILE) as u128 * matrix.cols().next_multiple_of(DEPTH) as u128;
        let small = |value: &f32| f64::from(*value).abs() <= LARGEST;
        (1..=MOST).contains(&padded)
            && !matrix.pattern().has_repeats()
            && match matrix.values() {
                Values::Ones => true,
                Values::F32(values) => values.iter().all(small),
                Values::F64(values) => {
                    values.iter().all(|&value| f64::from(value as f32) == value && value.abs() <= LARGEST)
                }
            }
    }

    /// Converts a matrix whose elements [`fit`](Elements::fit).
    pub(crate) fn of(matrix: &Csr) -> Result<Elements> {
        let shape = (matrix.rows(), matrix.cols());
        let of_tile = shape.1.next_multiple_of(DEPTH) * TILE;
        let mut values = zeros::<f32>(shape.0.div_ceil(TILE) * of_tile)?;
        run_all(
            values.chunks_mut(of_tile.max(1)).enumerate().collect(),
            |(tile, values): (usize, &mut [f32])| {
                for row in tile * TILE..((tile + 1) * TILE).min(shape.0) {
                    for (column, value) in matrix.row(row) {
                        values[column / DEPTH * (TILE * DEPTH) + place(row, column)] += value as f32;
                    }
                }
            },
        );
        Ok(Elements { shape, values })
    }
}

impl Format for Elements {
    fn empty(_: Types) -> Elements {
        Elements { shape: (0, 0), values: Vec::new() }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.values.len()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new().add("elements", &self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_element_of_a_tile_and_chunk_has_a_place_of_its_own() {
        let all: HashSet<usize> =
            (0..TILE).flat_map(|row| (0..DEPTH).map(move |column| place(row, column))).collect();
        assert_eq!((all.len(), all.iter().max()), (TILE * DEPTH, Some(&(TILE * DEPTH - 1))));
        // The third row of the second warp and the sixth column of the second step: lane 2 * 4
        // + 1, third element.
        assert_eq!(place(18, 13), ((4 + 1) * 32 + 9) * 4 + 2);
    }

    #[test]
    fn values_that_single_precision_does_not_have_are_refused() {
        let with = |value: f64| {
            Csr::new(1, 1, crate::format::Offsets::U32(vec![0, 1]), vec![0], Values::F64(vec![value]))
                .unwrap()
        };
        let fits =
            [1.5, 0.1, 1e39, f64::INFINITY, f64::from(f32::MAX)].map(|value| Elements::fit(&with(value)));
        assert_eq!(fits, [true, false, false, false, false]);
    }
}
