//! Slices of 32 rows in their order, for solves whose vectors stay in the registers of the GPU.
//!
//! A thread takes a row, and a warp reads the entries of 32 rows side by side, as in `sell`; nothing is sorted or packed,
//! since a system of this size stands in caches. What it is for: a solver's step, recorded, runs many times in one launch
//! (see `device::cuda::burst`), without launches or memory between products and sweeps. By itself, a product is a plain
//! one.

use super::owner::{Arrays, Owner};
use super::passes::{Form, Grid, check_size};
use crate::backend::cpu::narrow::narrowest;
use crate::backend::{Family, Operator, Params};
use crate::device::cuda::burst::{Slices, most_rows};
use crate::device::cuda::modules::BLOCK;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::sweep::dot_sweep;
use crate::device::{Cuda, Device, Op};
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets, Sell, Values};
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::scalar::Scalar;
use std::rc::Rc;
use std::sync::Arc;

/// Rows of a slice.
const LANES: usize = 32;

/// The family of one.
pub struct BurstFamily;

fn form() -> Form {
    Form {
        name: "spmv_slices",
        text: include_str!("../../../kernels/slices.cu"),
        defines: vec![("UNROLL", "4".to_owned())],
        block: BLOCK,
        owns_all_rows: true,
    }
}

pub(super) fn forms() -> Vec<Form> {
    vec![form()]
}

impl Family<Cuda> for BurstFamily {
    fn build<T: Scalar>(device: &Cuda, matrix: &Arc<Csr>, _: &Params) -> Result<Operator<Cuda, T>> {
        check_size(matrix)?;
        let (rows, most) = (matrix.rows(), most_rows(device));
        if rows > most {
            log::warn!(
                "burst: the registers of this GPU hold the vectors of {most} rows, not of {rows}: steps are recorded as \
                 graphs, which sell and csr do faster"
            );
        }
        let sell = Sell::from_csr(&narrowest(matrix), LANES, 1)?;
        let Offsets::U32(offsets) = sell.slice_offsets() else {
            return Err(Error::Unsupported {
                backend: "burst",
                device: "cuda",
                what: format!("{} places in slices of {LANES} rows", sell.col_indices().len()),
                hint: "their number must fit 32 bits; use csr, where rows of all lengths stand together"
                    .to_owned(),
            });
        };
        let arrays = Arrays::on(device)
            .add(sell.row_lengths())?
            .add(offsets)?
            .add(sell.col_indices())?
            .add_values(sell.values())?;
        let value = match sell.values() {
            Values::Ones => None,
            Values::F32(_) => Some((f32::CUDA_NAME, size_of::<f32>())),
            Values::F64(_) => Some((f64::CUDA_NAME, size_of::<f64>())),
        };
        let addresses = std::array::from_fn(|i| arrays.addresses()[i]);
        let slices = Slices { offsets: offsets.clone(), arrays: addresses, value };
        let kernel = (form(), Grid::Resident(rows as u64));
        let places = sell.col_indices().len();
        let owner =
            Owner::new::<T>("burst", (rows, matrix.cols()), places, kernel, arrays, vec![rows as u32]);
        if rows <= most {
            device.expect_bursts();
        }
        Ok(Rc::new(Burst { owner, slices }))
    }
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
