//! The two triangles as each thread reads them: values and columns in the order of the thread's tasks,
//! forward and then backward.

use super::schedule::{Dependencies, Direction, Schedule, Wait};
use crate::error::Result;
use crate::format::{Bsr, Values};
use crate::parallel::{grow, room, zeros};
use crate::scalar::Scalar;

/// Lanes for the column of a block: loads may read this many numbers past the last value.
pub(super) const LANES: usize = 8;

/// Units that are consecutive in memory and have equally many blocks.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// The unit that is solved first: the lowest forward, the highest backward.
    pub first: u32,
    pub units: u32,
    /// Blocks of each unit, without the block of a chain.
    pub width: u32,
    /// Whether each unit depends on the unit solved just before it. The coefficient of that dependency then
    /// comes last. Only for blocks of 1 x 1.
    pub chained: bool,
}

/// The end of a task's segments and of its waits.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub segments_end: u32,
    pub waits_end: u32,
}

/// The data of one thread for one application: tasks forward, then as many backward.
///
/// The values of a unit, forward: its blocks negated, column by column; then, for blocks larger than 1 x 1,
/// the part of its diagonal block below the diagonal, also negated, column by column. Backward the inverse
/// pivots come first, and blocks are transposed.
pub(super) struct Packed<T> {
    pub segments: Vec<Segment>,
    pub tasks: Vec<Task>,
    pub waits: Vec<Wait>,
    pub columns: Vec<u32>,
    pub values: Vec<T>,
}

impl<T> Packed<T> {
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&self.segments[..])
            + size_of_val(&self.tasks[..])
            + size_of_val(&self.waits[..])
            + size_of_val(&self.columns[..])
            + size_of_val(&self.values[..])) as u64
    }
}

/// A lower triangle in blocks, with the pattern of its transpose.
pub(super) struct Triangle<'a> {
    pub block: usize,
    values: &'a [f64],
    /// The diagonal block of each unit.
    diagonals: Vec<usize>,
    below: Side,
    above: Side,
    /// The matrix block of each block of `above`.
    mirrored: Vec<usize>,
}

/// The off-diagonal blocks of one triangle, row by row.
struct Side {
    offsets: Vec<usize>,
    units: Vec<u32>,
}

impl Side {
    fn dependencies(&self) -> Dependencies<'_> {
        Dependencies { offsets: &self.offsets, units: &self.units }
    }
}

impl<'a> Triangle<'a> {
    /// Builds both triangles; the rows of `matrix` end with their diagonal block.
    pub(crate) fn new(matrix: &'a Bsr) -> Result<Triangle<'a>> {
        let Values::F64(values) = matrix.values() else { unreachable!("factors are in double precision") };
        let n = matrix.block_rows();
        let count = matrix.blocks() - n;
        let mut below = Side { offsets: room(n + 1)?, units: room(count)? };
        below.offsets.push(0);
        let mut diagonals = room(n)?;
        let mut offsets = zeros(n + 1)?;
        for row in 0..n {
            let diagonal = matrix.block_offsets().get(row + 1) - 1;
            for block in matrix.block_offsets().get(row)..diagonal {
                below.units.push(matrix.block_columns()[block]);
                offsets[matrix.block_columns()[block] as usize + 1] += 1;
            }
            below.offsets.push(below.units.len());
            diagonals.push(diagonal);
        }
        let (above, mirrored) = transposed(&below, offsets)?;
        Ok(Triangle { block: matrix.block().0, values, diagonals, below, above, mirrored })
    }

    pub(crate) fn dependencies(&self, direction: Direction) -> Dependencies<'_> {
        self.side(direction).dependencies()
    }

    fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Forward => &self.below,
            Direction::Backward => &self.above,
        }
    }

    /// Returns the blocks of a unit, and the block of the unit solved just before, if that is one of them: it
    /// is then excluded from the range.
    fn blocks(&self, direction: Direction, unit: usize) -> (std::ops::Range<usize>, Option<usize>) {
        let side = self.side(direction);
        let range = side.offsets[unit]..side.offsets[unit + 1];
        if self.block > 1 || range.is_empty() {
            return (range, None);
        }
        match direction {
            Direction::Forward if side.units[range.end - 1] as usize + 1 == unit => {
                (range.start..range.end - 1, Some(range.end - 1))
            }
            Direction::Backward if side.units[range.start] as usize == unit + 1 => {
                (range.start + 1..range.end, Some(range.start))
            }
            _ => (range, None),
        }
    }

    /// Returns the matrix block at an index of the unit's triangle.
    fn block_at(&self, direction: Direction, unit: u32, index: usize) -> usize {
        match direction {
            // Each earlier row has one more block in the matrix, its diagonal block.
            Direction::Forward => index + unit as usize,
            Direction::Backward => self.mirrored[index],
        }
    }

    /// Packs the data of thread `thread` for its strand.
    pub(crate) fn pack<T: Scalar>(&self, schedule: &Schedule, thread: usize) -> Result<Packed<T>> {
        let strand = &schedule.strands[thread];
        let of = |side: &Side, unit: &u32| side.offsets[*unit as usize + 1] - side.offsets[*unit as usize];
        let blocks: usize =
            strand.units.iter().map(|unit| of(&self.below, unit) + of(&self.above, unit)).sum();
        let (b, inner) = (self.block, if self.block > 1 { 2 * self.block * self.block } else { 0 });
        let packed = Packed {
            segments: Vec::new(),
            tasks: room(2 * strand.tasks())?,
            waits: Vec::new(),
            columns: zeros(blocks)?,
            values: zeros(blocks * b * b + strand.units.len() * (inner + b) + LANES)?,
        };
        let mut packer = Packer { triangle: self, packed, columns: 0, values: 0 };
        let mut waited_for = vec![0; schedule.strands.len()];
        for direction in [Direction::Forward, Direction::Backward] {
            for step in 0..strand.tasks() {
                let task = if direction == Direction::Forward { step } else { strand.tasks() - 1 - step };
                let dependencies = self.dependencies(direction);
                schedule.waits(
                    (thread, task),
                    direction,
                    &dependencies,
                    &mut waited_for,
                    &mut packer.packed.waits,
                );
                match direction {
                    Direction::Forward => packer.task(direction, strand.task(task).iter())?,
                    Direction::Backward => packer.task(direction, strand.task(task).iter().rev())?,
                }
            }
        }
        packer.packed.columns.truncate(packer.columns);
        Ok(packer.packed)
    }
}

/// Returns the transpose of the lower triangle, and the matrix block of each of its blocks. `offsets[i + 1]`
/// counts the blocks of row i.
fn transposed(below: &Side, mut offsets: Vec<usize>) -> Result<(Side, Vec<usize>)> {
    let n = offsets.len() - 1;
    (0..n).for_each(|unit| offsets[unit + 1] += offsets[unit]);
    let mut next = room(offsets.len())?;
    next.extend_from_slice(&offsets);
    let count = below.units.len();
    let mut above = Side { offsets, units: zeros(count)? };
    let mut mirrored = zeros(count)?;
    for row in 0..n {
        for index in below.offsets[row]..below.offsets[row + 1] {
            let to = &mut next[below.units[index] as usize];
            above.units[*to] = row as u32;
            mirrored[*to] = index + row;
            *to += 1;
        }
    }
    Ok((above, mirrored))
}

/// Writes the arrays of a thread in order.
struct Packer<'a, T> {
    triangle: &'a Triangle<'a>,
    packed: Packed<T>,
    columns: usize,
    values: usize,
}

impl<T: Scalar> Packer<'_, T> {
    fn task<'u>(
        &mut self,
        direction: Direction,
        units: impl ExactSizeIterator<Item = &'u u32>,
    ) -> Result<()> {
        let first = self.packed.segments.len();
        grow(&mut self.packed.segments, units.len())?;
        for &unit in units {
            self.unit(direction, unit, first);
        }
        self.packed.tasks.push(Task {
            segments_end: self.packed.segments.len() as u32,
            waits_end: self.packed.waits.len() as u32,
        });
        Ok(())
    }

    /// Extends the last segment by a unit if that segment began in this task and the unit continues it;
    /// else begins a new segment.
    fn unit(&mut self, direction: Direction, unit: u32, first: usize) {
        let (blocks, chain) = self.triangle.blocks(direction, unit as usize);
        let (width, chained) = (blocks.len() as u32, chain.is_some());
        let continues = |segment: &&mut Segment| {
            let next = match direction {
                Direction::Forward => segment.first.checked_add(segment.units),
                Direction::Backward => segment.first.checked_sub(segment.units),
            };
            (segment.width, segment.chained, next) == (width, chained, Some(unit))
        };
        match self.packed.segments[first..].last_mut().filter(continues) {
            Some(segment) => segment.units += 1,
            None => self.packed.segments.push(Segment { first: unit, units: 1, width, chained }),
        }
        let side = self.triangle.side(direction);
        self.packed.columns[self.columns..][..blocks.len()].copy_from_slice(&side.units[blocks.clone()]);
        self.columns += blocks.len();
        let diagonal = self.triangle.diagonals[unit as usize];
        if direction == Direction::Backward {
            (0..self.triangle.block).for_each(|r| self.push(self.element(diagonal, r, r)));
        }
        for index in blocks.chain(chain) {
            self.block(direction, self.triangle.block_at(direction, unit, index), |_, _| true);
        }
        if self.triangle.block > 1 {
            match direction {
                Direction::Forward => self.block(direction, diagonal, |r, c| r > c),
                Direction::Backward => self.block(direction, diagonal, |r, c| r < c),
            }
        }
    }

    fn element(&self, block: usize, r: usize, c: usize) -> f64 {
        self.triangle.values[(block * self.triangle.block + r) * self.triangle.block + c]
    }

    fn push(&mut self, value: f64) {
        self.packed.values[self.values] = T::from_f64(value);
        self.values += 1;
    }

    /// Appends a block negated, column by column, transposed in the backward solve; elements that
    /// are not `kept` become 0.
    fn block(&mut self, direction: Direction, block: usize, kept: impl Fn(usize, usize) -> bool) {
        let b = self.triangle.block;
        for (c, r) in (0..b).flat_map(|c| (0..b).map(move |r| (c, r))) {
            let value = match direction {
                Direction::Forward => self.element(block, r, c),
                Direction::Backward => self.element(block, c, r),
            };
            self.push(if kept(r, c) { -value } else { 0.0 });
        }
    }
}
