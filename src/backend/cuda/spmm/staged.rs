//! Entries by tile of rows, chunk of B and row, four by four: the format of `plan=staged`.

use super::quads::QUAD;
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::{Format, Types};
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{run_all, split_front, zeros};
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::ops::Range;

/// How a matrix is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    /// Rows of a tile.
    pub tile: usize,
    /// Rows of B in a chunk; at most [`Cut::MOST`].
    pub chunk: usize,
}

impl Cut {
    /// The most rows of a chunk: the kernel counts them in 16 bits, with one more for zeros.
    pub(crate) const MOST: usize = u16::MAX as usize;

    pub(crate) fn tiles(self, rows: usize) -> usize {
        rows.div_ceil(self.tile)
    }

    pub(crate) fn chunks(self, cols: usize) -> usize {
        cols.div_ceil(self.chunk).max(1)
    }
}

/// A matrix by tiles and chunks.
pub(super) struct Staged {
    shape: (usize, usize),
    /// The first quad of each row of each chunk of each tile, and the number of quads.
    offsets: Vec<u32>,
    /// The row of B in its chunk, of each entry.
    places: Vec<[u16; 4]>,
    values: Values,
    entries: usize,
}

impl Staged {
    /// Converts a matrix.
    pub(crate) fn of(matrix: &Csr, cut: Cut) -> Result<Staged> {
        let shape = (matrix.rows(), matrix.cols());
        let (tiles, chunks) = (cut.tiles(shape.0), cut.chunks(shape.1));
        let counts = count(matrix, cut)?;
        let mut offsets = zeros::<u32>(counts.len() + 1)?;
        let mut quads = 0_u64;
        for (offset, &count) in offsets[1..].iter_mut().zip(&counts) {
            quads += u64::from(count);
            *offset = u32::try_from(quads).map_err(|_| Error::TooLarge {
                what: "the number of entries, four by four",
                value: quads.into(),
                limit: u32::MAX.into(),
                container: "the 32-bit indices of backend spmm",
            })?;
        }
        debug_assert_eq!(counts.len(), tiles * chunks * cut.tile);
        let place = |entry: usize| (matrix.col_indices()[entry] as usize % cut.chunk) as u16;
        let places = filled(matrix, cut, &offsets, place, cut.chunk as u16)?;
        let places = places.chunks_exact(QUAD).map(|quad| [quad[0], quad[1], quad[2], quad[3]]).collect();
        let values = match matrix.values() {
            Values::Ones => Values::Ones,
            Values::F32(values) => Values::F32(filled(matrix, cut, &offsets, |entry| values[entry], 0.0)?),
            Values::F64(values) => Values::F64(filled(matrix, cut, &offsets, |entry| values[entry], 0.0)?),
        };
        Ok(Staged { shape, offsets, places, values, entries: matrix.nnz() })
    }
}

/// Calls `each` with every chunk of a row in which it has entries, and these entries.
fn by_chunk(matrix: &Csr, row: usize, chunk: usize, mut each: impl FnMut(usize, Range<usize>)) {
    let mut entries = matrix.row_range(row);
    while let Some(first) = entries.clone().next() {
        let number = matrix.col_indices()[first] as usize / chunk;
        let end = ((number + 1) * chunk).min(matrix.cols());
        let rest = &matrix.col_indices()[entries.clone()];
        let length = rest.partition_point(|&column| (column as usize) < end);
        each(number, first..first + length);
        entries.start += length;
    }
}

/// Returns the rows of a tile.
fn rows_of(cut: Cut, tile: usize, rows: usize) -> Range<usize> {
    tile * cut.tile..((tile + 1) * cut.tile).min(rows)
}

/// Counts the quads of each row of each chunk of each tile.
fn count(matrix: &Csr, cut: Cut) -> Result<Vec<u32>> {
    let (tiles, chunks) = (cut.tiles(matrix.rows()), cut.chunks(matrix.cols()));
    let mut counts = zeros::<u32>(tiles * chunks * cut.tile)?;
    let work = counts.chunks_exact_mut(chunks * cut.tile).enumerate().collect();
    run_all(work, |(tile, counts): (usize, &mut [u32])| {
        let rows = rows_of(cut, tile, matrix.rows());
        let first = rows.start;
        for row in rows {
            by_chunk(matrix, row, cut.chunk, |number, entries| {
                counts[number * cut.tile + row - first] = entries.len().div_ceil(QUAD) as u32;
            });
        }
    });
    Ok(counts)
}

/// Copies the entries to their quads, and fills the last quad of each row of a chunk.
fn filled<V: Copy + Zeroable + Send + Sync>(
    matrix: &Csr,
    cut: Cut,
    offsets: &[u32],
    of: impl Fn(usize) -> V + Sync,
    fill: V,
) -> Result<Vec<V>> {
    let quads = offsets[offsets.len() - 1] as usize;
    let mut all = zeros::<V>(quads * QUAD)?;
    let mut left = &mut all[..];
    let in_tile = cut.chunks(matrix.cols()) * cut.tile;
    let tiles = offsets[..offsets.len() - 1].chunks_exact(in_tile).enumerate().map(|(tile, of_tile)| {
        let end = offsets[(tile + 1) * in_tile];
        (tile, of_tile, split_front(&mut left, (end - of_tile[0]) as usize * QUAD))
    });
    run_all(tiles.collect(), |(tile, offsets, target): (usize, &[u32], &mut [V])| {
        let rows = rows_of(cut, tile, matrix.rows());
        let first = rows.start;
        target.fill(fill);
        for row in rows {
            by_chunk(matrix, row, cut.chunk, |number, entries| {
                let at = (offsets[number * cut.tile + row - first] - offsets[0]) as usize * QUAD;
                target[at..].iter_mut().zip(entries).for_each(|(target, entry)| *target = of(entry));
            });
        }
    });
    Ok(all)
}

impl Format for Staged {
    fn empty(types: Types) -> Staged {
        Staged { shape: (0, 0), offsets: vec![0], places: Vec::new(), values: types.values(), entries: 0 }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.entries
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let places: &[u16] = bytemuck::cast_slice(&self.places);
        Arrays::new()
            .add("quad_offsets", &self.offsets)
            .add("places", places)
            .add_values("values", &self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_stored_by_tile_chunk_and_row() {
        let matrix = crate::source::load("uniform:n=37,row=9").unwrap().matrix;
        for cut in [Cut { tile: 8, chunk: 10 }, Cut { tile: 64, chunk: 37 }, Cut { tile: 5, chunk: 1 }] {
            let staged = Staged::of(&matrix, cut).unwrap();
            let Values::F64(values) = &staged.values else { panic!("values in double precision") };
            let mut found = vec![vec![]; 37];
            for (index, range) in staged.offsets.windows(2).enumerate() {
                let (tile, row) = (index / (cut.chunks(37) * cut.tile), index % cut.tile);
                let chunk = index / cut.tile % cut.chunks(37);
                for quad in range[0]..range[1] {
                    for (i, &place) in staged.places[quad as usize].iter().enumerate() {
                        let value = values[quad as usize * QUAD + i];
                        if place as usize == cut.chunk {
                            assert_eq!(value, 0.0, "fill");
                        } else {
                            let column = chunk * cut.chunk + place as usize;
                            found[tile * cut.tile + row].push((column, value));
                        }
                    }
                }
            }
            for (row, found) in found.iter().enumerate() {
                assert_eq!(*found, matrix.row(row).collect::<Vec<_>>(), "{cut:?}, row {row}");
            }
        }
    }
}
