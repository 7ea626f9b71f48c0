//! Dense products of tall vectors on a GPU: X'Y, and Y B + X C with small matrices from the
//! host; and copies of columns.
//!
//! `kernels/gram.cuh` adds the products of groups of rows, `kernels/gram_sums.cuh` adds the groups in a fixed
//! order, and `kernels/combine.cuh` combines rows. The number of groups depends only on the GPU and on the
//! shape of the vectors, so that the sums have the same bits in every run. The host waits for X'Y and passes
//! the small matrices with each call; a recorded step therefore cannot contain these operations.

use super::launch::Arguments;
use super::memory::{CudaArray, address};
use super::modules::{BLOCK, KernelSource};
use super::parameters::Parameter;
use super::{Cuda, CudaVector};
use crate::device::{Addend, Device, check_combined, check_copied};
use crate::error::Result;
use crate::scalar::Scalar;

/// The fewest and the most rows that a block of `combine` loads at once, and the elements that these rows
/// may have in each vector.
const ROWS: (usize, usize) = (8, 1024);
const ELEMENTS: usize = 2048;
/// Sums that a block of `gram_sums` computes.
const SUMS: usize = 32;
/// Blocks of `gram` for each multiprocessor.
const BLOCKS: usize = 4;
/// Rows that a block of `gram` loads at once.
const GRAM_ROWS: usize = 32;

/// Memory for dense products of vectors of one shape.
pub struct CudaScratch {
    /// X'Y of each group of rows.
    sums: CudaArray<f64>,
    groups: usize,
    /// X'Y, or B and C.
    small: CudaArray<f64>,
}

/// Returns the width of the square tiles of X'Y, of which each block adds one.
fn tile(k: usize) -> usize {
    if k <= 16 { 16 } else { 32 }
}

fn tiles(k: usize) -> usize {
    k.div_ceil(tile(k)).pow(2)
}

impl CudaScratch {
    /// Allocates the memory and loads the kernels.
    pub(super) fn new<T: Scalar>(device: &Cuda, n: usize, k: usize) -> Result<CudaScratch> {
        check_combined((n, k), (n, k), std::iter::empty())?;
        for source in kernels::<T>(k) {
            device.kernel(&source)?;
        }
        let most = (BLOCKS * device.multiprocessors() as usize).div_ceil(tiles(k));
        let groups = n.div_ceil(GRAM_ROWS).clamp(1, most);
        let what = "the sums of dense products";
        Ok(CudaScratch {
            sums: device.allocate(what, groups * k * k)?,
            groups,
            small: device.allocate(what, 2 * k * k)?,
        })
    }
}

/// Returns all kernels for vectors of `T` in `k` columns.
pub fn kernels<T: Scalar>(k: usize) -> Vec<KernelSource> {
    let added = [None, Some(false), Some(true)];
    let forms = added.into_iter().flat_map(|added| [false, true].map(|scaled| (scaled, added)));
    let combine = forms.skip(1).map(|(scaled, added)| combine_kernel::<T>(k, scaled, added));
    [gram_kernel::<T>(k), sums_kernel(k)].into_iter().chain(combine).collect()
}

fn gram_kernel<T: Scalar>(k: usize) -> KernelSource {
    KernelSource {
        name: "gram".to_owned(),
        body: include_str!("../../../kernels/gram.cuh").to_owned(),
        parameters: vec![
            Parameter::read::<T>("x"),
            Parameter::read::<T>("y"),
            Parameter::scratch::<f64>("sums"),
            Parameter::value::<u64>("n"),
        ],
        defines: vec![
            ("SCALAR", T::CUDA_NAME.to_owned()),
            ("TILE", tile(k).to_string()),
            ("ROWS", GRAM_ROWS.to_string()),
        ],
        k,
        block: BLOCK,
    }
}

fn sums_kernel(k: usize) -> KernelSource {
    KernelSource {
        name: "gram_sums".to_owned(),
        body: include_str!("../../../kernels/gram_sums.cuh").to_owned(),
        parameters: vec![
            Parameter::scratch::<f64>("sums"),
            Parameter::scratch::<f64>("small"),
            Parameter::value::<u32>("groups"),
        ],
        defines: vec![("SUMS", SUMS.to_string())],
        k,
        block: BLOCK,
    }
}

/// Returns the rows that a block of `combine` loads at once, a multiple of four.
fn combine_rows(k: usize) -> usize {
    (ELEMENTS / k / 4 * 4).clamp(ROWS.0, ROWS.1)
}

/// Returns the kernel of Y B + X C: `scaled` if there is B, and `added` if there is X, with
/// whether there is C.
fn combine_kernel<T: Scalar>(k: usize, scaled: bool, added: Option<bool>) -> KernelSource {
    let mut parameters = vec![Parameter::written::<T>("y")];
    let mut defines = vec![("SCALAR", T::CUDA_NAME.to_owned()), ("ROWS", combine_rows(k).to_string())];
    if let Some(multiplied) = added {
        parameters.push(Parameter::read::<T>("x"));
        defines.push((if multiplied { "MULTIPLIED" } else { "ADDED" }, "1".to_owned()));
    }
    if scaled {
        defines.push(("SCALED", "1".to_owned()));
    }
    parameters.extend([Parameter::scratch::<f64>("small"), Parameter::value::<u64>("n")]);
    let body = include_str!("../../../kernels/combine.cuh").to_owned();
    KernelSource { name: "combine".to_owned(), body, parameters, defines, k, block: BLOCK }
}

/// Returns the kernel that copies columns to a vector of `T` in `k` columns.
pub(crate) fn copy_kernel<T: Scalar>(k: usize) -> KernelSource {
    KernelSource {
        name: "copy_columns".to_owned(),
        body: include_str!("../../../kernels/copy_columns.cuh").to_owned(),
        parameters: vec![
            Parameter::written::<T>("y"),
            Parameter::read::<T>("x"),
            Parameter::scratch::<u32>("pairs"),
            Parameter::value::<u64>("n"),
            Parameter::value::<u32>("from_columns"),
            Parameter::value::<u32>("count"),
        ],
        defines: vec![("SCALAR", T::CUDA_NAME.to_owned())],
        k,
        block: BLOCK,
    }
}

impl Cuda {
    /// Copies columns; see [`Device::copy_columns`].
    pub(super) fn copy_columns_of<T: Scalar>(
        &self,
        from: &CudaVector<T>,
        to: &mut CudaVector<T>,
        pairs: &[[u32; 2]],
    ) -> Result<()> {
        check_copied((from.n(), from.k()), (to.n(), to.k()), pairs)?;
        self.check_not_recording()?;
        let (n, k, wide) = (to.n(), to.k(), from.k());
        if n == 0 || pairs.is_empty() {
            return Ok(());
        }
        let _turn = self.turn();
        let list = self.allocate_from("the numbers of columns", pairs.as_flattened())?;
        let kernel = self.kernel(&copy_kernel::<T>(k))?;
        let mut arguments = Arguments::on(self);
        arguments.written("y", to)?;
        arguments.read("x", from)?;
        arguments.scratch("pairs", &list);
        arguments.value("n", n as u64);
        arguments.value("from_columns", wide as u32);
        arguments.value("count", pairs.len() as u32);
        arguments.launch(&kernel, self.blocks_for(&kernel, (n * pairs.len()) as u64))?;
        // The list is freed when the call returns.
        self.synchronize()
    }

    /// Computes X'Y; see [`Device::gram`].
    pub(super) fn gram_of<T: Scalar>(
        &self,
        x: &CudaVector<T>,
        y: &CudaVector<T>,
        scratch: &mut CudaScratch,
        into: &mut [f64],
    ) -> Result<()> {
        check_combined((x.n(), x.k()), (y.n(), y.k()), [into.len()].into_iter())?;
        self.check_not_recording()?;
        let _turn = self.turn();
        let k = x.k();
        let CudaScratch { sums, groups, small } = scratch;
        let mut arguments = Arguments::on(self);
        arguments.read("x", x)?;
        arguments.read("y", y)?;
        arguments.scratch("sums", sums);
        arguments.value("n", x.n() as u64);
        arguments.launch(&self.kernel(&gram_kernel::<T>(k))?, (*groups * tiles(k)) as u32)?;
        let mut arguments = Arguments::on(self);
        arguments.scratch("sums", sums);
        arguments.scratch("small", small);
        arguments.value("groups", *groups as u32);
        arguments.launch(&self.kernel(&sums_kernel(k))?, (k * k).div_ceil(SUMS) as u32)?;
        small.copy_to_host(into)?;
        self.synchronize()
    }

    /// Computes Y B + X C; see [`Device::combine`].
    pub(super) fn combine_in<T: Scalar>(
        &self,
        y: &mut CudaVector<T>,
        b: Option<&[f64]>,
        xc: Option<Addend<'_, CudaVector<T>>>,
        scratch: &mut CudaScratch,
    ) -> Result<()> {
        let (n, k) = (y.n(), y.k());
        let lengths = b.into_iter().chain(xc.and_then(|(_, c)| c)).map(<[f64]>::len);
        check_combined((n, k), xc.map_or((n, k), |(x, _)| (x.n(), x.k())), lengths)?;
        self.check_not_recording()?;
        if b.is_none() && xc.is_none() {
            return Ok(());
        }
        let _turn = self.turn();
        let small = &scratch.small;
        let matrices = [b, xc.and_then(|(_, c)| c)];
        for (place, matrix) in (0_u64..).zip(matrices) {
            let Some(matrix) = matrix else { continue };
            let at = address(small) + place * (8 * k * k) as u64;
            // SAFETY: the array has room for two matrices, and the length of each is checked.
            unsafe { self.copy_to(bytemuck::cast_slice(matrix), at)? };
        }
        let kernel = self.kernel(&combine_kernel::<T>(k, b.is_some(), xc.map(|(_, c)| c.is_some())))?;
        let mut arguments = Arguments::on(self);
        arguments.written("y", y)?;
        if let Some((x, _)) = xc {
            arguments.read("x", x)?;
        }
        arguments.scratch("small", small);
        arguments.value("n", n as u64);
        let threads = (n.div_ceil(combine_rows(k)) * BLOCK as usize) as u64;
        arguments.launch(&kernel, self.blocks_for(&kernel, threads))
    }
}
