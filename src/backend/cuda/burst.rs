//! Slices of 32 rows in their order, for solves whose vectors stay in the registers of the GPU.
//!
//! A thread takes a row, and a warp reads the entries of 32 rows side by side, as in `sell`; nothing is sorted or packed,
//! since a system of this size stands in caches. What it is for: a solver's step, recorded, runs many times in one launch
//! (see `device::cuda::burst`), without launches or memory between products and sweeps. By itself, a product is a plain
//! one.

use super::owner::{Arrays, Owner};
use super::passes::{Form, Grid, check_size};
use super::{check_dot, check_shapes};
use crate::backend::{Family, Made, Params};
use crate::device::cuda::burst::{Slices, most_rows};
use crate::device::cuda::modules::BLOCK;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::sweep::dot_sweep;
use crate::device::{Cuda, Device, Op};
use crate::error::{Error, Result};
use crate::format::narrow::narrowest;
use crate::format::{Csr, Values};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::zeros;
use crate::scalar::Scalar;
use bytemuck::Zeroable;
use std::sync::Arc;

/// Rows of a slice.
const LANES: usize = 32;

/// The family of one.
pub struct BurstFamily;

/// Rows that its kernel can stride over in 32 bits.
const MOST: usize = 1 << 31;

fn form() -> Form {
    Form {
        name: "spmv_slices",
        text: include_str!("../../../kernels/burst.cu"),
        defines: vec![("UNROLL", "4".to_owned())],
        block: BLOCK,
        owns_all_rows: true,
    }
}

pub(super) fn forms() -> Vec<Form> {
    vec![form()]
}

impl Family<Cuda> for BurstFamily {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params, reserve: u64) -> Result<Made<Cuda, T>> {
        check_size(matrix)?;
        let (rows, most) = (matrix.rows(), most_rows(device));
        if rows > MOST {
            let (value, limit) = (rows as u128, MOST as u128);
            let what = "the number of rows";
            return Err(Error::TooLarge { what, value, limit, place: "the 32-bit numbers of backend burst" });
        }
        if rows > most {
            log::warn!(
                "burst: the registers of this GPU hold the vectors of {most} rows, not of {rows}: steps are recorded as \
                 graphs, which sell and csr do faster"
            );
        }
        let matrix = narrowest(matrix);
        let (lengths, offsets) = slices(&matrix)?;
        let places = offsets[offsets.len() - 1] as usize;
        let columns = spread(&matrix, &offsets, matrix.col_indices())?;
        let values = match matrix.values() {
            Values::Ones => Values::Ones,
            Values::F32(values) => Values::F32(spread(&matrix, &offsets, values)?),
            Values::F64(values) => Values::F64(spread(&matrix, &offsets, values)?),
        };
        let arrays = Arrays::new()
            .add(&lengths)
            .add(&offsets)
            .add(&columns)
            .add_values(&values)
            .upload(device, reserve)?;
        let value = match values {
            Values::Ones => None,
            Values::F32(_) => Some((f32::CUDA_NAME, size_of::<f32>())),
            Values::F64(_) => Some((f64::CUDA_NAME, size_of::<f64>())),
        };
        let addresses = std::array::from_fn(|i| arrays.addresses[i]);
        let slices = Slices { offsets, arrays: addresses, value };
        let kernel = (form(), Grid::Resident(rows as u64));
        let owner =
            Owner::new::<T>("burst", (rows, matrix.cols()), places, kernel, arrays, vec![rows as u32]);
        if rows <= most {
            device.expect_bursts();
        }
        Ok(Arc::new(Burst { owner, slices }))
    }
}

/// The length of each row, and where each slice begins: as wide as its longest row.
fn slices(matrix: &Csr) -> Result<(Vec<u32>, Vec<u32>)> {
    let lengths = matrix.map_rows(|row| matrix.row_range(row).len() as u32);
    let (mut offsets, mut end) = (vec![0_u32], 0_u64);
    for slice in lengths.chunks(LANES) {
        end += LANES as u64 * u64::from(slice.iter().copied().max().unwrap_or(0));
        offsets.push(u32::try_from(end).map_err(|_| Error::Unsupported {
            backend: "burst",
            device: "cuda",
            what: format!("more than 2^32 places in slices of {LANES} rows"),
            hint: "use csr, where rows of all lengths stand together".to_owned(),
        })?);
    }
    Ok((lengths, offsets))
}

/// What belongs to each entry, at the entry's place in the slices.
fn spread<E: Copy + Zeroable>(matrix: &Csr, offsets: &[u32], of_entries: &[E]) -> Result<Vec<E>> {
    let mut all = zeros::<E>(offsets[offsets.len() - 1] as usize)?;
    for row in 0..matrix.rows() {
        let first = offsets[row / LANES] as usize + row % LANES;
        let places = all.iter_mut().skip(first).step_by(LANES);
        places.zip(&of_entries[matrix.row_range(row)]).for_each(|(place, of_entry)| *place = *of_entry);
    }
    Ok(all)
}

struct Burst {
    owner: Owner,
    slices: Slices,
}

impl<T: Scalar> LinearOperator<Cuda, T> for Burst {
    fn shape(&self) -> (usize, usize) {
        LinearOperator::<Cuda, T>::shape(&self.owner)
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        check_shapes(LinearOperator::<Cuda, T>::shape(self), "burst", x, y)?;
        if (alpha, beta) == (1.0, 0.0) && device.trace_with(|trace| trace.product(&self.slices, x, y)) {
            return Ok(());
        }
        self.owner.apply(device, alpha, x, beta, y)
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
        let shape = LinearOperator::<Cuda, T>::shape(self);
        check_shapes(shape, "burst", x, y)?;
        check_dot(shape, slots)?;
        if device.trace_with(|trace| trace.product(&self.slices, x, y)) {
            return device.sweep(&mut [], &[x, y], slots, &dot_sweep(dot, then));
        }
        self.owner.apply_dot(device, x, y, slots, dot, then)
    }

    fn cost(&self) -> Cost {
        LinearOperator::<Cuda, T>::cost(&self.owner)
    }

    fn storage(&self) -> u64 {
        LinearOperator::<Cuda, T>::storage(&self.owner)
    }
}
