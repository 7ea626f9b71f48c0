//! Slices of 32 rows in their order, for solves whose vectors stay in the registers of the GPU.
//!
//! A thread takes a row, and a warp reads the entries of 32 rows with coalesced loads, as in `sell`; rows are
//! not sorted or packed, because a system of this size fits in caches. The format serves a recorded solver
//! step that runs many times in one launch (see `device::cuda::burst`), without launches or memory traffic
//! between products and sweeps. Outside such a step, a product is an ordinary launch.

use super::arrays::Arrays;
use super::compressed::check_size;
use super::form::{AnyForm, Form, Format, Grid, Types};
use super::product::{Pass, Product};
use super::{check_dot, check_shapes};
use crate::backend::{Family, SharedOperator};
use crate::device::cuda::burst::{MatrixPointers, Slices, most_rows};
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::sweep::dot_sweep;
use crate::device::{Cuda, Device, Op};
use crate::error::{Error, Result};
use crate::format::narrow::narrowest;
use crate::format::{Csr, Values};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::{run_all, split_front, zeros};
use crate::params::Params;
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a slice.
const LANES: usize = 32;

/// The family of the backend `burst`.
pub(crate) struct BurstFamily;

/// Most rows that the kernel can stride over in 32 bits.
const MOST: usize = 1 << 31;

/// A matrix in slices.
struct Sliced {
    shape: (usize, usize),
    lengths: Vec<u32>,
    offsets: Vec<u32>,
    columns: Vec<u32>,
    values: Values,
}

impl Sliced {
    fn of(matrix: &Csr) -> Result<Sliced> {
        let (lengths, offsets) = slices(matrix)?;
        let columns = spread(matrix, &offsets, matrix.col_indices())?;
        let values = match matrix.values() {
            Values::Ones => Values::Ones,
            Values::F32(values) => Values::F32(spread(matrix, &offsets, values)?),
            Values::F64(values) => Values::F64(spread(matrix, &offsets, values)?),
        };
        Ok(Sliced { shape: (matrix.rows(), matrix.cols()), lengths, offsets, columns, values })
    }
}

impl Format for Sliced {
    fn empty(types: Types) -> Sliced {
        let values = types.values();
        Sliced { shape: (0, 0), lengths: Vec::new(), offsets: vec![0], columns: Vec::new(), values }
    }

    fn shape(&self) -> (usize, usize) {
        self.shape
    }

    fn padded_entries(&self) -> usize {
        self.columns.len()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new()
            .add("lengths", &self.lengths)
            .add("offsets", &self.offsets)
            .add("columns", &self.columns)
            .add_values("values", &self.values)
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        // `build` refuses more rows.
        vec![("rows_of_y", self.shape.0 as u32)]
    }
}

fn form() -> Form<Sliced> {
    Form::new("spmv_slices", include_str!("../../../kernels/burst.cu")).with("UNROLL", 4)
}

pub(super) fn forms() -> Vec<AnyForm> {
    vec![form().any()]
}

impl Family<Cuda> for BurstFamily {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        check_size(matrix)?;
        let (rows, most) = (matrix.rows(), most_rows(device));
        if rows > MOST {
            let (value, limit) = (rows as u128, MOST as u128);
            let what = "the number of rows";
            return Err(Error::TooLarge {
                what,
                value,
                limit,
                container: "the 32-bit indices of backend burst",
            });
        }
        if rows > most {
            log::warn!(
                "burst: the registers of this GPU hold the vectors of {most} rows, not of {rows}: steps are recorded as \
                 graphs, for which sell and csr are faster"
            );
        }
        let sliced = Sliced::of(&narrowest(matrix))?;
        let pass = Pass::new(device, form(), Grid::Resident(rows as u64), &())?;
        let product = Product::<T>::new("burst", device, &sliced, [pass], reserve)?;
        let value = match sliced.values {
            Values::Ones => None,
            Values::F32(_) => Some((f32::CUDA_NAME, size_of::<f32>())),
            Values::F64(_) => Some((f64::CUDA_NAME, size_of::<f64>())),
        };
        let slices = Slices { offsets: sliced.offsets, value };
        if rows <= most {
            device.enable_step_tracing();
        }
        Ok(Arc::new(Burst { product, slices }))
    }
}

/// Returns the length of each row and the start of each slice; a slice is as wide as its longest row.
fn slices(matrix: &Csr) -> Result<(Vec<u32>, Vec<u32>)> {
    let lengths = matrix.map_rows(|row| matrix.row_range(row).len() as u32);
    let (mut offsets, mut end) = (vec![0_u32], 0_u64);
    for slice in lengths.chunks(LANES) {
        end += LANES as u64 * u64::from(slice.iter().copied().max().unwrap_or(0));
        offsets.push(u32::try_from(end).map_err(|_| Error::Unsupported {
            backend: "burst",
            device: "cuda",
            what: format!("more than 2^32 stored values, padding included, in slices of {LANES} rows"),
            hint: "use csr, which does not pad".to_owned(),
        })?);
    }
    Ok((lengths, offsets))
}

/// Returns an array in the order of the slices: the element of each entry at the entry's position, and
/// zeros as padding. `elements` has one element per entry of `matrix`; `offsets` has the first position of
/// each slice, then the length.
fn spread<E: Copy + Zeroable + Send + Sync>(matrix: &Csr, offsets: &[u32], elements: &[E]) -> Result<Vec<E>> {
    /// Slices that a thread fills as one task.
    const TASK: usize = 128;
    let slices = offsets.len() - 1;
    let mut all = zeros::<E>(offsets[slices] as usize)?;
    let mut rest = &mut all[..];
    let tasks = (0..slices).step_by(TASK).map(|begin| {
        let end = (begin + TASK).min(slices);
        (begin..end, split_front(&mut rest, (offsets[end] - offsets[begin]) as usize))
    });
    run_all(tasks.collect(), |(slices, part): (Range<usize>, &mut [E])| {
        for row in slices.start * LANES..matrix.rows().min(slices.end * LANES) {
            let first = (offsets[row / LANES] - offsets[slices.start]) as usize + row % LANES;
            let targets = part.iter_mut().skip(first).step_by(LANES);
            targets.zip(&elements[matrix.row_range(row)]).for_each(|(target, element)| *target = *element);
        }
    });
    Ok(all)
}

struct Burst<T> {
    product: Product<T>,
    slices: Slices,
}

impl<T: Scalar> Burst<T> {
    /// Adds y = A x to the step that is being recorded; returns whether one is.
    fn trace(&self, device: &Cuda, x: &CudaVector<T>, y: &CudaVector<T>) -> bool {
        device.trace_with(|trace| {
            // In the order of `Sliced::arrays`.
            let pointers = MatrixPointers(std::array::from_fn(|index| self.product.matrix().address(index)));
            trace.product(&self.slices, pointers, x, y);
        })
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for Burst<T> {
    fn shape(&self) -> (usize, usize) {
        self.product.shape()
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        check_shapes(device, self.shape(), "burst", x, y)?;
        if (alpha, beta) == (1.0, 0.0) && self.trace(device, x, y) {
            return Ok(());
        }
        self.product.apply(device, alpha, x, beta, y)
    }

    fn apply_dot(
        &self,
        device: &Cuda,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        slots: &mut CudaSlots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        let shape = self.shape();
        check_shapes(device, shape, "burst", x, y)?;
        check_dot(shape, slots, dot, then)?;
        if self.trace(device, x, y) {
            return device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then));
        }
        self.product.apply_dot(device, x, y, slots, dot, then)
    }

    fn cost(&self) -> Cost {
        self.product.cost()
    }

    fn storage(&self) -> u64 {
        self.product.storage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entries_of_a_row_lie_in_one_lane_of_its_slice_and_the_rest_is_padding() {
        // The second matrix has slices of several tasks.
        for what in ["rmat:scale=7,edges=900", "poisson2d:83x91"] {
            let matrix = crate::source::load(what).unwrap().matrix;
            let sliced = Sliced::of(&matrix).unwrap();
            let mut padding = sliced.columns.len();
            for row in 0..matrix.rows() {
                let first = sliced.offsets[row / LANES] as usize + row % LANES;
                for (at, entry) in matrix.row_range(row).enumerate() {
                    let place = first + at * LANES;
                    assert_eq!(sliced.columns[place], matrix.col_indices()[entry], "{what}: row {row}");
                    assert_eq!(sliced.values.get(place), matrix.values().get(entry), "{what}: row {row}");
                    padding -= 1;
                }
            }
            let zeros = sliced.columns.iter().filter(|&&column| column == 0).count();
            let of_entries = matrix.col_indices().iter().filter(|&&column| column == 0).count();
            assert_eq!(zeros, padding + of_entries, "{what}");
        }
    }
}
