//! Blocks of R x C, each stored column by column: the format of `plan=blocks`.

use super::items::{Items, item_list};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::{Format, Types};
use crate::error::{Error, Result};
use crate::format::bsr::BsrParts;
use crate::format::{Bsr, Values};
use crate::parallel::{run_all, zeros};
use crate::scalar::Scalar;
use bytemuck::Zeroable;

/// A matrix in blocks.
pub(super) struct Tiles {
    shape: (usize, usize),
    pub block: (usize, usize),
    columns: Vec<u32>,
    values: Values,
    pub items: Items,
}

impl Tiles {
    /// Takes a matrix in blocks, whose values are stored.
    pub(crate) fn of(matrix: Bsr) -> Result<Tiles> {
        let BsrParts { rows, cols, block, block_offsets, block_columns, values, .. } = matrix.into_parts();
        let blocks = block_columns.len();
        if blocks > u32::MAX as usize || rows > u32::MAX as usize - block.0 || cols > u32::MAX as usize {
            return Err(Error::TooLarge {
                what: "the number of blocks, rows or columns",
                value: blocks.max(rows).max(cols) as u128,
                limit: u32::MAX.into(),
                container: "the 32-bit indices of backend spmm",
            });
        }
        let offsets: Vec<u32> = (0..block_offsets.len()).map(|row| block_offsets.get(row) as u32).collect();
        let values = match &values {
            Values::F32(values) => Values::F32(by_columns(values, block)?),
            Values::F64(values) => Values::F64(by_columns(values, block)?),
            Values::Ones => Values::Ones,
        };
        let items = item_list(&offsets, block.0, rows);
        Ok(Tiles { shape: (rows, cols), block, columns: block_columns, values, items })
    }
}

/// Transposes each block.
fn by_columns<V: Copy + Zeroable + Send + Sync>(
    values: &[V],
    (height, width): (usize, usize),
) -> Result<Vec<V>> {
    /// Blocks that are transposed together.
    const BAND: usize = 4096;
    let size = height * width;
    let mut all = zeros::<V>(values.len())?;
    let bands = all.chunks_mut(BAND * size).zip(values.chunks(BAND * size)).collect();
    run_all(bands, |(to, from): (&mut [V], &[V])| {
        for (to, from) in to.chunks_exact_mut(size).zip(from.chunks_exact(size)) {
            for (i, to) in to.iter_mut().enumerate() {
                *to = from[i % height * width + i / height];
            }
        }
    });
    Ok(all)
}

impl Format for Tiles {
    fn empty(types: Types) -> Tiles {
        let (columns, items) = (Vec::new(), item_list(&[0], 1, 0));
        Tiles { shape: (0, 0), block: (1, 1), columns, values: types.values(), items }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.columns.len() * self.block.0 * self.block.1
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let arrays = Arrays::new().add("block_columns", &self.columns);
        arrays.add_values("values", &self.values).add("items", &self.items.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_stored_column_by_column() {
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let want = [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11].map(f64::from);
        assert_eq!(by_columns(&values, (2, 3)).unwrap(), want);
    }
}
