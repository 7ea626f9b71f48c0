//! Fragments of 8 x 4 entries for the tensor cores of double precision: the format of `plan=tensor`.
//!
//! Sixteen rows are a group of two tiles. The columns in which a group has entries are sorted by the
//! tiles that have them (the first only, both, the second only) and taken four by four. So all columns
//! of almost every quad belong to the same tiles, and few fragments are partly empty. A quad has a
//! fragment for each tile that has entries in its columns, stored row by row. The last quad of a group
//! is filled with its last column.

use super::items::{Items, item_list};
use super::quads::QUAD;
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::form::{Format, Types};
use crate::backend::cuda::locality::spread;
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{run_all, split_front, zeros};
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::ops::{AddAssign, Range};

/// Rows of a tile.
const TILE: usize = 8;
/// Tiles of a group.
pub(super) const TILES: usize = 2;
/// Rows of a group.
pub(super) const GROUP: usize = TILE * TILES;
/// Values of a fragment.
pub(super) const FRAGMENT: usize = TILE * QUAD;
/// Groups that are converted together.
const BAND: usize = 64;
/// The combinations of tiles, in the order of their columns: neighbours share a tile.
const ORDER: [u8; 3] = [0b01, 0b11, 0b10];

/// A matrix in fragments.
pub(super) struct Fragments {
    shape: (usize, usize),
    columns: Vec<[u32; QUAD]>,
    /// Of each quad, the number of its first fragment, and in the lowest bits the tiles that have one.
    places: Vec<u32>,
    values: Values,
    pub items: Items,
}

/// The quads of one group.
#[derive(Default)]
struct Layout {
    /// Every column with its tiles, by column.
    columns: Vec<(u32, u8)>,
    /// The place of each column among those of the quads.
    places: Vec<u32>,
    /// The tiles of each quad.
    tiles: Vec<u8>,
    /// The column and the tile of every entry, in order.
    keys: Vec<u64>,
}

impl Layout {
    /// Finds the quads of a group.
    fn find(&mut self, matrix: &Csr, rows: Range<usize>) {
        self.keys.clear();
        for (row, local) in rows.zip(0..) {
            let tile = local / TILE as u64;
            self.keys.extend(matrix.row_columns(row).iter().map(|&column| u64::from(column) << 1 | tile));
        }
        self.keys.sort_unstable();
        self.columns.clear();
        for &key in &self.keys {
            let (column, tile) = ((key >> 1) as u32, 1 << (key & 1));
            match self.columns.last_mut() {
                Some((last, tiles)) if *last == column => *tiles |= tile,
                _ => self.columns.push((column, tile)),
            }
        }
        let count = |of: u8| self.columns.iter().filter(|(_, tiles)| *tiles == of).count() as u32;
        let mut next = [0; 1 << TILES];
        let mut begin = 0;
        for tiles in ORDER {
            next[tiles as usize] = begin;
            begin += count(tiles);
        }
        self.places.clear();
        self.tiles.clear();
        self.tiles.resize(self.columns.len().div_ceil(QUAD), 0);
        for &(_, tiles) in &self.columns {
            let place = &mut next[tiles as usize];
            self.places.push(*place);
            self.tiles[*place as usize / QUAD] |= tiles;
            *place += 1;
        }
    }

    /// Returns the number of fragments.
    fn fragments(&self) -> usize {
        self.tiles.iter().map(|tiles| tiles.count_ones() as usize).sum()
    }
}

fn rows_of(group: usize, rows: usize) -> Range<usize> {
    group * GROUP..((group + 1) * GROUP).min(rows)
}

/// Consecutive groups, with the parts of the arrays that belong to them.
struct Band<'a, V> {
    groups: Range<usize>,
    /// The number of the first fragment.
    first: u32,
    columns: &'a mut [[u32; QUAD]],
    places: &'a mut [u32],
    values: &'a mut [V],
}

impl<V: Copy + AddAssign> Band<'_, V> {
    /// Converts the groups.
    fn fill(mut self, matrix: &Csr, of: impl Fn(usize) -> V) {
        let mut layout = Layout::default();
        for group in self.groups {
            let rows = rows_of(group, matrix.rows());
            layout.find(matrix, rows.clone());
            let quads = layout.tiles.len();
            let columns = split_front(&mut self.columns, quads);
            let places = split_front(&mut self.places, quads);
            let values = split_front(&mut self.values, layout.fragments() * FRAGMENT);
            columns.fill([layout.columns.last().map_or(0, |(column, _)| *column); QUAD]);
            for (&(column, _), &place) in layout.columns.iter().zip(&layout.places) {
                columns[place as usize / QUAD][place as usize % QUAD] = column;
            }
            let begin = self.first;
            for (place, &tiles) in places.iter_mut().zip(&layout.tiles) {
                *place = self.first << TILES | u32::from(tiles);
                self.first += tiles.count_ones();
            }
            for (row, local) in rows.zip(0..) {
                let (tile, r) = (local / TILE, local % TILE);
                for entry in matrix.row_range(row) {
                    let column = matrix.col_indices()[entry];
                    let index = layout.columns.partition_point(|&(other, _)| other < column);
                    let (quad, k) =
                        (layout.places[index] as usize / QUAD, layout.places[index] as usize % QUAD);
                    let before = (layout.tiles[quad] & ((1 << tile) - 1)).count_ones();
                    let fragment = ((places[quad] >> TILES) - begin + before) as usize;
                    values[fragment * FRAGMENT + r * QUAD + k] += of(entry);
                }
            }
        }
    }
}

/// The offsets of the quads of each group, the columns and the place of each quad, and all values.
type Arrangement<V> = (Vec<u32>, Vec<[u32; QUAD]>, Vec<u32>, V);

/// Converts all groups.
fn convert<V: Copy + Zeroable + AddAssign + Send + Sync>(
    matrix: &Csr,
    of: impl Fn(usize) -> V + Sync,
) -> Result<Arrangement<Vec<V>>> {
    let groups = matrix.rows().div_ceil(GROUP);
    let bands: Vec<Range<usize>> =
        (0..groups).step_by(BAND).map(|first| first..(first + BAND).min(groups)).collect();
    // The quads of each group, and the fragments of all groups.
    let sizes = run_all(bands.clone(), |groups| {
        let (mut layout, mut fragments) = (Layout::default(), 0);
        let quads = groups.map(|group| {
            layout.find(matrix, rows_of(group, matrix.rows()));
            fragments += layout.fragments();
            layout.tiles.len()
        });
        (quads.collect::<Vec<_>>(), fragments)
    });
    let quads: usize = sizes.iter().flat_map(|(quads, _)| quads).sum();
    let fragments: usize = sizes.iter().map(|(_, fragments)| fragments).sum();
    let limit = u32::MAX >> TILES;
    if quads.max(fragments) > limit as usize {
        return Err(Error::TooLarge {
            what: "the number of fragments of 8 x 4 entries",
            value: quads.max(fragments) as u128,
            limit: limit.into(),
            container: "the 32-bit indices of backend spmm",
        });
    }
    let (mut columns, mut places) = (zeros::<[u32; QUAD]>(quads)?, zeros::<u32>(quads)?);
    let mut values = zeros::<V>(fragments * FRAGMENT)?;
    let mut offsets = zeros::<u32>(groups + 1)?;
    let mut left = (&mut columns[..], &mut places[..], &mut values[..]);
    let mut first = 0;
    let bands = bands.into_iter().zip(sizes).map(|(groups, (of_groups, fragments))| {
        for (group, count) in groups.clone().zip(&of_groups) {
            offsets[group + 1] = offsets[group] + *count as u32;
        }
        let quads = of_groups.iter().sum();
        let band = Band {
            groups,
            first,
            columns: split_front(&mut left.0, quads),
            places: split_front(&mut left.1, quads),
            values: split_front(&mut left.2, fragments * FRAGMENT),
        };
        first += fragments as u32;
        band
    });
    run_all(bands.collect(), |band: Band<'_, V>| band.fill(matrix, &of));
    Ok((offsets, columns, places, values))
}

impl Fragments {
    /// Converts a matrix. Ones are stored in single precision.
    pub(crate) fn of(matrix: &Csr) -> Result<Fragments> {
        fn with<V>(
            (offsets, columns, places, v): Arrangement<Vec<V>>,
            wrap: fn(Vec<V>) -> Values,
        ) -> Arrangement<Values> {
            (offsets, columns, places, wrap(v))
        }
        let (offsets, columns, places, values) = match matrix.values() {
            Values::Ones => with(convert(matrix, |_| 1.0)?, Values::F32),
            Values::F32(values) => with(convert(matrix, |entry| values[entry])?, Values::F32),
            Values::F64(values) => with(convert(matrix, |entry| values[entry])?, Values::F64),
        };
        let shape = (matrix.rows(), matrix.cols());
        Ok(Fragments { shape, columns, places, values, items: item_list(&offsets, GROUP, shape.0) })
    }
}

/// How many quads and fragments a matrix has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub quads: f64,
    pub fragments: f64,
}

/// Estimates the quads and fragments of a matrix from a sample of its groups.
pub(super) fn counts(matrix: &Csr) -> Counts {
    const SAMPLED: usize = 64;
    let groups = matrix.rows().div_ceil(GROUP);
    let (mut layout, mut quads, mut fragments) = (Layout::default(), 0, 0);
    let sample = spread(groups, SAMPLED);
    sample.clone().for_each(|group| {
        layout.find(matrix, rows_of(group, matrix.rows()));
        quads += layout.tiles.len();
        fragments += layout.fragments();
    });
    let scale = groups as f64 / sample.count().max(1) as f64;
    Counts { quads: quads as f64 * scale, fragments: fragments as f64 * scale }
}

impl Format for Fragments {
    fn empty(types: Types) -> Fragments {
        let (columns, places, items) = (Vec::new(), Vec::new(), item_list(&[0], 1, 0));
        Fragments { shape: (0, 0), columns, places, values: types.values(), items }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.places.iter().map(|place| (place & ((1 << TILES) - 1)).count_ones() as usize * FRAGMENT).sum()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let columns: &[u32] = bytemuck::cast_slice(&self.columns);
        let arrays = Arrays::new().add("quad_columns", columns).add("places", &self.places);
        arrays.add_values("values", &self.values).add("items", &self.items.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_hold_every_entry_once_and_zeros_elsewhere() {
        for what in ["uniform:n=37,row=9", "hex27:3x4x5,dof=3", "banded:n=50,half=3", "poisson2d:3x2"] {
            let matrix = crate::source::load(what).unwrap().matrix;
            let fragments = Fragments::of(&matrix).unwrap();
            let value = |at: usize| match &fragments.values {
                Values::F64(values) => values[at],
                Values::F32(values) => f64::from(values[at]),
                Values::Ones => panic!("values are stored"),
            };
            let rows = matrix.rows().div_ceil(GROUP) * GROUP;
            let mut found = vec![0.0; rows * matrix.cols()];
            let mut all = 0.0;
            for [group, begin, end, _] in &fragments.items.list {
                for quad in *begin as usize..*end as usize {
                    let (mut fragment, tiles) = (fragments.places[quad] >> TILES, fragments.places[quad] & 3);
                    assert_ne!(tiles, 0, "{what}");
                    for tile in (0..TILES).filter(|tile| tiles >> tile & 1 == 1) {
                        for (r, k) in (0..TILE).flat_map(|r| (0..QUAD).map(move |k| (r, k))) {
                            let row = *group as usize * GROUP + tile * TILE + r;
                            let column = fragments.columns[quad][k] as usize;
                            let value = value(fragment as usize * FRAGMENT + r * QUAD + k);
                            found[row * matrix.cols() + column] += value;
                            all += value.abs();
                        }
                        fragment += 1;
                    }
                }
            }
            for row in 0..matrix.rows() {
                for (column, value) in matrix.row(row) {
                    assert_eq!(found[row * matrix.cols() + column], value, "{what}: {row}, {column}");
                    all -= value.abs();
                }
            }
            assert!(all.abs() < 1e-9, "{what}: values beyond those of the matrix");
        }
    }

    #[test]
    fn columns_of_the_same_tiles_share_quads() {
        let matrix = crate::source::load("hex27:20x20x20,dof=3").unwrap().matrix;
        let fragments = Fragments::of(&matrix).unwrap();
        let fill = matrix.nnz() as f64 / fragments.padded_entries() as f64;
        assert!((0.5..0.6).contains(&fill), "{fill}");
        let Counts { quads, fragments: estimate } = counts(&matrix);
        let near = |estimate: f64, count: usize| (estimate / count as f64 - 1.0).abs() < 0.05;
        assert!(near(quads, fragments.places.len()), "{quads}");
        assert!(near(estimate, fragments.padded_entries() / FRAGMENT), "{estimate}");
    }
}
