//! ELLPACK: one thread per row, with entry j of all rows stored contiguously, so that every
//! load is coalesced.
//!
//! All rows are padded to the longest one, which limits the matrices that it supports. Threads stop at the
//! end of their row all the same, so padding is never multiplied.
//!
//! Nathan Bell, Michael Garland: Efficient sparse matrix-vector multiplication on CUDA, 2008.

use super::arrays::{Arrays, DeviceArrays};
use super::compressed::check_size;
use super::csr::longest_row;
use super::form::{AnyForm, Form, Format, Grid, Real, Types};
use super::product::{Pass, Product, Stored};
use super::resident::{Reader, Resident, made_there};
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::device::{Cuda, Device};
use crate::error::Result;
use crate::format::{Csr, Ell, Values};
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// Stored values per entry, padding included, above which a matrix is refused.
pub(crate) const MAX_SLOTS_PER_ENTRY: usize = 3;

/// The family of the backend `ell`.
pub(crate) struct EllFamily;

fn form() -> Form<Ell> {
    /// Loads in flight, including at the end of a row, and blocks of a multiprocessor, as in
    /// `sell` for short rows.
    const ROUND: u32 = 5;
    Form::new("spmv_ell", include_str!("../../../kernels/sell.cu"))
        .with("UNROLL", ROUND)
        .with("ELL", 1)
        .with("REST", ROUND)
        .with("RESIDENT", 5)
}

pub(super) fn forms() -> Vec<AnyForm> {
    vec![form().any()]
}

impl Format for Ell {
    fn empty(types: Types) -> Ell {
        let ell = Ell::new(0, 0, Vec::new(), Vec::new(), types.values());
        ell.unwrap_or_else(|_| unreachable!("an empty matrix is valid"))
    }

    fn shape(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }

    fn padded_entries(&self) -> usize {
        self.col_indices().len()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new()
            .add("row_lengths", self.row_lengths())
            .add("col_indices", self.col_indices())
            .add_values("values", self.values())
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        numbers(self.rows())
    }
}

/// Returns the numbers that the kernel takes. `check_size` refuses more rows.
fn numbers(rows: usize) -> Vec<(&'static str, u32)> {
    vec![("rows_of_y", rows as u32)]
}

impl Family<Cuda> for EllFamily {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, _: &Params, _: usize) -> std::result::Result<(), Refusal> {
        let entries = matrix.nnz();
        let width = longest_row(matrix);
        let padded_entries = matrix.rows() as u128 * width as u128;
        if padded_entries > entries as u128 * MAX_SLOTS_PER_ENTRY as u128 {
            return Err(Refusal::new(
                format!(
                    "{entries} entries padded to {padded_entries} values, with all rows as long as the longest ({width} entries)"
                ),
                format!(
                    "it stores at most {MAX_SLOTS_PER_ENTRY} values per entry, padding included; sell pads 32 rows at a time"
                ),
            ));
        }
        Ok(())
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        check_size(matrix)?;
        matrix.pattern().refuse_repeats()?;
        let pass = Pass::new(device, form(), Grid::Resident(matrix.rows() as u64), &())?;
        let product = match made_there(matrix, params, || fill(device, matrix, reserve))? {
            Some(stored) => Product::<T>::of("ell", stored, numbers(matrix.rows()), [pass]),
            None => {
                let ell = Ell::with_limit(matrix, MAX_SLOTS_PER_ENTRY)?;
                Product::new("ell", device, &ell, [pass], reserve)?
            }
        };
        Ok(Arc::new(product))
    }
}

const WHAT: &str = "the padded rows";

/// Returns the kernel of kernels/ell.cu.
fn kernel(values: Option<Real>) -> Reader {
    let numbers = |name| Parameter::scratch::<u32>(name);
    let mut parameters = vec![numbers("lengths"), numbers("places")];
    parameters.extend(values.map(|values| values.scratch("padded")));
    parameters.extend(["rows", "width"].map(Parameter::value::<u64>));
    let text = include_str!("../../../kernels/ell.cu");
    Reader { name: "ell_fill", text, parameters, defines: Vec::new() }
}

/// Returns the kernels of this module in all types, for ahead-of-time compilation.
pub(super) fn filling_sources() -> Vec<KernelSource> {
    let values = [None, Some(Real::F32), Some(Real::F64)].into_iter();
    let types = values.flat_map(|value| [false, true].map(|wide| Types::new(Real::F64, value, wide)));
    types.map(|types| kernel(types.value).source(&types.csr())).collect()
}

/// Fills the arrays of [`Ell`] on the device, bit for bit those of the host, for a matrix that [`EllFamily`]
/// does not refuse. Fails if `reserve` bytes do not stay free.
fn fill(device: &Cuda, matrix: &Arc<Csr>, reserve: u64) -> Result<Stored> {
    let resident = Resident::of(device, matrix, reserve)?;
    let (rows, width) = (matrix.rows(), longest_row(matrix));
    let places = rows * width;
    let bytes = 4 * rows + places * (4 + matrix.values().width());
    device.require_room(WHAT, bytes as u64, reserve)?;
    let lengths = device.allocate::<u32>(WHAT, rows)?;
    let columns = device.allocate::<u32>(WHAT, places)?;
    let (f32s, f64s): (Option<CudaArray<f32>>, Option<CudaArray<f64>>) = match matrix.values() {
        Values::Ones => (None, None),
        Values::F32(_) => (Some(device.allocate(WHAT, places)?), None),
        Values::F64(_) => (None, Some(device.allocate(WHAT, places)?)),
    };
    let values = f32s.as_ref().map(|_| Real::F32).or(f64s.as_ref().map(|_| Real::F64));
    resident.launch(kernel(values), rows.div_ceil(BLOCK as usize), |arguments| {
        arguments.scratch("lengths", &lengths);
        arguments.scratch("places", &columns);
        f32s.iter().for_each(|values| arguments.scratch("padded", values));
        f64s.iter().for_each(|values| arguments.scratch("padded", values));
        arguments.value("rows", rows as u64);
        arguments.value("width", width as u64);
    })?;
    // The copy of the matrix may be dropped now.
    device.synchronize()?;
    let arrays = DeviceArrays::written().with("row_lengths", lengths).with("col_indices", columns);
    let arrays = match (f32s, f64s) {
        (Some(values), _) => arrays.with_typed("values", "VALUE", values),
        (_, Some(values)) => arrays.with_typed("values", "VALUE", values),
        _ => arrays.without_values("values"),
    };
    Ok(Stored { shape: (rows, matrix.cols()), padded_entries: places, arrays })
}
