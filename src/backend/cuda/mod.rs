//! Strategies on NVIDIA GPUs, one file each, with the kernel in a file of the same stem; the strategies of
//! studies are in `studies`.

mod arrays;
pub mod auto;
pub(crate) mod bsr;
pub(crate) mod burst;
mod certificate;
mod columns;
mod compressed;
pub(crate) mod csr;
pub mod cusparse;
pub(crate) mod dcsr;
pub mod dense;
pub(crate) mod ell;
mod form;
mod locality;
pub(crate) mod merge;
mod model;
// The example of the book (docs/src/adding.md): tests compile it, and the program does not contain it.
mod caller_matrix;
mod new_values;
#[cfg(test)]
pub(crate) mod pairs;
mod product;
mod resident;
mod residual;
pub(crate) mod sell;
pub(crate) mod spmm;
pub(crate) mod studies;
mod transpose;
pub(crate) mod vector;

use super::Transposed;
use crate::device::Cuda;
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::sweep::dot_sweep;
use crate::device::{Op, Sweep};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::operator::{DotInto, Inflow, Residuals};
use crate::params::Params;
use crate::scalar::Scalar;
pub(crate) use caller_matrix::Taken;
pub(super) use caller_matrix::taken;
use form::{AnyForm, Ending, Real, Types};
pub(crate) use resident::MADE;
use resident::Resident;
use std::sync::Arc;

/// Returns every embedded kernel in every form that a backend may request, for ahead-of-time
/// compilation; `endings` are the fused dot products and programs of the solvers, `sweeps` the
/// sweeps that follow a product.
pub fn kernel_sources(endings: &[(DotInto, &[Op])], sweeps: &[Sweep<'_>]) -> Vec<KernelSource> {
    let mut forms: Vec<AnyForm> = named_forms().into_iter().map(|(_, form)| form).collect();
    forms.extend(bsr::forms());
    forms.extend(merge::forms());
    forms.extend(sell::forms());
    forms.extend(ell::forms());
    forms.extend(burst::forms());
    forms.extend(dcsr::forms());
    #[cfg(test)]
    forms.extend(pairs::forms());
    let mut all = form::sources(&forms, endings);
    all.extend(sell::packing_sources());
    all.extend(bsr::packing_sources());
    all.extend(ell::filling_sources());
    all.extend(resident::sources());
    all.extend(residual::sources());
    all.extend(transpose::sources());
    all.extend(caller_matrix::sources());
    all.extend(new_values::sources());
    all.extend(certificate::sources());
    all.extend(csr::sources(endings, sweeps));
    all.extend(spmm::sources());
    all.extend(dcsr::sources());
    all.extend(studies::spmm::sources().into_iter().map(|(_, source)| source));
    all
}

/// Returns the kernels that verify linear solves with values in double precision, whatever the backend.
pub(crate) fn kernels_of_verdicts() -> Vec<KernelSource> {
    residual::usual_sources()
}

/// Returns the kernels that transpose a graph without weights, and certify its ranks.
pub(crate) fn kernels_of_graphs() -> Vec<KernelSource> {
    [transpose::usual_sources(), certificate::usual_sources()].concat()
}

/// Returns the further kernels that a graph with weights needs.
pub(crate) fn kernels_of_weights() -> Vec<KernelSource> {
    [transpose::sources_of_weights(), certificate::sources_of_weights()].concat()
}

/// Returns the kernels that transpose a chain.
pub(crate) fn kernels_of_chains() -> Vec<KernelSource> {
    [transpose::usual_sources(), transpose::sources_of_weights()].concat()
}

/// Returns the forms of the studies' kernels, each with the name of the backend that launches it.
fn named_forms() -> Vec<(&'static str, AnyForm)> {
    let vectors = vector::forms().into_iter().map(|form| ("vector", form));
    vectors.chain(studies::forms()).collect()
}

/// Returns the kernel of each backend of the studies, to compare them: in f64, without an ending.
pub fn named_kernels() -> Vec<(&'static str, KernelSource)> {
    let types = Types::new(Real::F64, Some(Real::F64), false);
    let all = named_forms().into_iter().map(|(name, form)| (name, form.source(types, Ending::Plain)));
    all.chain(studies::spmm::compared()).collect()
}

/// Entries below which the host takes less time than the copies and launches do.
const FEW: usize = 1 << 16;
/// A row that one thread of the device sums in less than a millisecond, and the share of all entries up to
/// which it takes less time than the host takes for all rows: an entry takes about 10 ns on that thread, and
/// 0.2 ns on all threads of the host.
const SHORT: usize = 1 << 14;
const SHARE: usize = 50;

/// Returns whether the device computes sums over the rows of a matrix, in order, in less time than the host.
fn sums_rows_fast(matrix: &Csr) -> bool {
    let longest = csr::longest_row(matrix);
    matrix.nnz() >= FEW && (longest <= SHORT || SHARE * longest <= matrix.nnz())
}

/// Returns whether a matrix that the device has a copy of equals its transpose exactly; none
/// if the device cannot tell.
pub(super) fn is_symmetric(device: &Cuda, matrix: &Arc<Csr>) -> Result<Option<bool>> {
    if !matrix.is_square() || matrix.pattern().has_repeats() {
        return Ok(None);
    }
    Resident::existing(device, matrix).map(|resident| resident.is_symmetric()).transpose()
}

/// Returns the transpose of a graph, computed on the device; none if the host transposes it in less time.
/// Unless `host_reads`, the columns of a graph without weights may stay there. Calls `meanwhile` at most
/// once, while the device works.
pub(super) fn transposed(
    device: &Cuda,
    graph: &Arc<Csr>,
    (reserve, host_reads): (u64, bool),
    meanwhile: &mut dyn FnMut(),
) -> Result<Option<Transposed>> {
    match graph.nnz() >= FEW && transpose::can_transpose(graph) {
        true => transpose::transposed(device, graph, (reserve, host_reads), meanwhile).map(Some),
        false => Ok(None),
    }
}

/// Returns what computes the sums of certificates on the device; none for links that the host is faster with.
pub(super) fn inflow(device: &Cuda, incoming: &Arc<Csr>, reserve: u64) -> Result<Option<Box<dyn Inflow>>> {
    if !sums_rows_fast(incoming) {
        return Ok(None);
    }
    Ok(Some(Box::new(certificate::OnDevice::new(device, incoming, reserve)?)))
}

/// Returns what computes residuals on the device; none for a matrix that the host is faster with. The
/// diagonal of the matrix begins in column `below`.
pub(super) fn residuals(
    device: &Cuda,
    matrix: &Arc<Csr>,
    below: usize,
    reserve: u64,
) -> Result<Option<Box<dyn Residuals>>> {
    if !sums_rows_fast(matrix) {
        return Ok(None);
    }
    Ok(Some(Box::new(residual::OnDevice::new(device, matrix, below, reserve)?)))
}

/// Returns the value of a numeric parameter; the first of `values` if the user set none.
fn number(params: &Params, name: &str, values: &[&'static str]) -> u32 {
    let typed = params.word(name).unwrap_or(values[0]);
    typed.parse().unwrap_or_else(|_| unreachable!("{name} takes numbers"))
}

/// Returns those values of a parameter that are numbers.
fn numbers(values: &[&str]) -> impl Iterator<Item = u32> {
    values.iter().filter_map(|value| value.parse().ok())
}

/// Returns the mean row length, rounded up.
fn mean_row(matrix: &Csr) -> usize {
    matrix.nnz().div_ceil(matrix.rows().max(1))
}

/// Label of uploaded arrays in out-of-memory errors.
const MATRIX: &str = "the matrix";

/// Checks that a matrix is square, so that a dot product can be fused, and that the slots have one column and
/// hold the slots of the program.
fn check_dot((expected, got): (usize, usize), slots: &CudaSlots, dot: &DotInto, then: &[Op]) -> Result<()> {
    dot_sweep(dot, then).validate(slots.len());
    if expected != got {
        return Err(Error::Dimension { what: "columns of a matrix in a dot product", expected, got });
    }
    if slots.k() != 1 {
        return Err(Error::Dimension { what: "columns of the slots", expected: 1, got: slots.k() });
    }
    Ok(())
}

/// Checks that x and y are vectors of the device, fit the matrix and have one column.
fn check_shapes<T: Scalar>(
    device: &Cuda,
    shape: (usize, usize),
    backend: &'static str,
    x: &CudaVector<T>,
    y: &CudaVector<T>,
) -> Result<()> {
    check_rows(device, shape, x, y)?;
    if x.k() != 1 || y.k() != 1 {
        return Err(Error::Unsupported {
            backend,
            device: "cuda",
            what: format!("{} columns", x.k()),
            hint: "it takes one vector at a time".to_owned(),
        });
    }
    Ok(())
}

/// Checks that x and y are vectors of the device, fit the matrix and have equally many
/// columns; returns their number.
fn check_columns<T: Scalar>(
    device: &Cuda,
    shape: (usize, usize),
    x: &CudaVector<T>,
    y: &CudaVector<T>,
) -> Result<usize> {
    check_rows(device, shape, x, y)?;
    fits("columns of y", x.k(), y.k())?;
    Ok(x.k())
}

/// Checks that x and y are vectors of the device and fit the matrix.
fn check_rows<T: Scalar>(
    device: &Cuda,
    (rows, cols): (usize, usize),
    x: &CudaVector<T>,
    y: &CudaVector<T>,
) -> Result<()> {
    device.check_vector(x)?;
    device.check_vector(y)?;
    fits("rows of x", cols, x.n())?;
    fits("rows of y", rows, y.n())
}

fn fits(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Dimension { what, expected, got }) }
}
