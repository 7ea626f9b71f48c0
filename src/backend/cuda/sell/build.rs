//! Packs slices on the GPU, from the matrix in compressed sparse rows. The arrays are those that
//! [`Packed`](super::pack::Packed) has on the host, bit for bit.

use super::LANES;
use super::pack::{Layout, Shape, WINDOW, check_rows};
use crate::backend::cuda::arrays::DeviceArrays;
use crate::backend::cuda::form::{Real, Types};
use crate::backend::cuda::product::Stored;
use crate::backend::cuda::resident::{Reader, Resident};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::{InKernels, Parameter};
use crate::device::{Cuda, Device};
use crate::error::Result;
use crate::format::Csr;
use bytemuck::Pod;
use std::sync::Arc;

const WHAT: &str = "the matrix in slices";

/// Packed slices in GPU memory, and their number.
pub(super) struct Built {
    pub stored: Stored,
    pub slices: usize,
}

/// The kernels of kernels/sell/build.cu.
#[derive(Clone, Copy)]
enum Step {
    Order,
    Shape,
    /// Writes values in this precision; none if all are ones.
    Write(Option<Real>),
}

impl Step {
    fn kernel(self) -> Reader {
        let number = |name| Parameter::value::<u32>(name);
        let numbers = |name| Parameter::scratch::<u32>(name);
        let in_fours = |name| Parameter::scratch::<[u32; 4]>(name);
        let (name, step, parameters) = match self {
            Step::Order => ("sell_order", 0, vec![numbers("order"), number("rows")]),
            Step::Shape => {
                let parameters = vec![numbers("order"), in_fours("shapes"), number("rows"), number("count")];
                ("sell_shape", 1, parameters)
            }
            Step::Write(stored) => {
                let mut parameters = vec![numbers("order"), in_fours("slices"), numbers("all_words")];
                parameters.extend(stored.map(|stored| stored.scratch("all_values")));
                parameters.extend([number("rows"), number("count")]);
                ("sell_write", 2, parameters)
            }
        };
        let mut defines = vec![("STEP", step.to_string()), ("WINDOW", WINDOW.to_string())];
        if let Step::Write(Some(stored)) = self {
            defines.push(("PACKED", stored.name().to_owned()));
        }
        Reader { name, text: include_str!("../../../../kernels/sell/build.cu"), parameters, defines }
    }
}

/// Returns the kernels of this module in all types, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    let (narrow, wide) = (Some(Real::F32), Some(Real::F64));
    let of = |(value, stored, offsets): (Option<Real>, Option<Real>, bool)| {
        let matrix = Types::new(Real::F64, value, offsets).csr();
        [Step::Order, Step::Shape, Step::Write(stored)].map(|step| step.kernel().source(&matrix))
    };
    let all = [(None, None), (narrow, narrow), (wide, wide), (wide, narrow)];
    let all = all.into_iter().flat_map(|(value, stored)| [false, true].map(|wide| (value, stored, wide)));
    all.flat_map(of).collect()
}

/// The arrays that the last kernel takes, apart from values, and the number of slices.
struct Parts {
    order: CudaArray<u32>,
    slices: CudaArray<[u32; 4]>,
    words: CudaArray<u32>,
    count: usize,
}

/// Packs a matrix on the device. Fails if `reserve` bytes do not stay free.
pub(super) fn build(device: &Cuda, matrix: &Arc<Csr>, reserve: u64) -> Result<Built> {
    let rows = matrix.rows();
    check_rows(rows)?;
    let resident = Resident::of(device, matrix, reserve)?;
    let order = order(device, &resident, rows)?;
    let count = rows.div_ceil(LANES);
    let shapes = shapes(device, &resident, &order, rows)?;
    let stored = resident.narrowest()?;
    let Layout { slices, words, entries } = Layout::of(shapes.into_iter(), rows)?;
    let bytes = 16 * count + 4 * words + stored.map_or(0, Real::width) * entries;
    device.require_room(WHAT, bytes as u64, reserve)?;
    let slices = device.allocate_from(WHAT, &slices)?;
    let parts = Parts { order, slices, words: device.allocate(WHAT, words)?, count };
    let arrays = match stored {
        None => {
            write(&resident, None, &parts, rows, None::<&CudaArray<f32>>)?;
            parts.arrays().without_values("all_values")
        }
        Some(Real::F32) => with_values::<f32>(device, &resident, Real::F32, parts, (rows, entries))?,
        Some(Real::F64) => with_values::<f64>(device, &resident, Real::F64, parts, (rows, entries))?,
    };
    // The copy of the matrix may be dropped now.
    device.synchronize()?;
    let stored = Stored { shape: (rows, matrix.cols()), padded_entries: entries, arrays };
    Ok(Built { stored, slices: count })
}

/// Returns the blocks that have a warp for each slice.
fn blocks_for_slices(count: usize) -> usize {
    count.div_ceil(BLOCK as usize / LANES)
}

/// Returns the rows in the order of their lanes.
fn order(device: &Cuda, resident: &Resident, rows: usize) -> Result<CudaArray<u32>> {
    let order = device.allocate::<u32>(WHAT, rows)?;
    resident.launch(Step::Order.kernel(), rows.div_ceil(WINDOW), |arguments| {
        arguments.scratch("order", &order);
        arguments.value("rows", rows as u32);
    })?;
    Ok(order)
}

/// Returns the shapes of the slices.
fn shapes(device: &Cuda, resident: &Resident, order: &CudaArray<u32>, rows: usize) -> Result<Vec<Shape>> {
    let count = rows.div_ceil(LANES);
    let shapes = device.allocate::<[u32; 4]>(WHAT, count)?;
    resident.launch(Step::Shape.kernel(), blocks_for_slices(count), |arguments| {
        arguments.scratch("order", order);
        arguments.scratch("shapes", &shapes);
        arguments.value("rows", rows as u32);
        arguments.value("count", count as u32);
    })?;
    let shape = |[width, flags, low, _]: [u32; 4]| Shape { width: width as usize, flags, low };
    Ok(shapes.to_host()?.into_iter().map(shape).collect())
}

/// Writes words and, if there are any, values.
fn write<V: InKernels>(
    resident: &Resident,
    stored: Option<Real>,
    parts: &Parts,
    rows: usize,
    values: Option<&CudaArray<V>>,
) -> Result<()> {
    resident.launch(Step::Write(stored).kernel(), blocks_for_slices(parts.count), |arguments| {
        arguments.scratch("order", &parts.order);
        arguments.scratch("slices", &parts.slices);
        arguments.scratch("all_words", &parts.words);
        values.into_iter().for_each(|values| arguments.scratch("all_values", values));
        arguments.value("rows", rows as u32);
        arguments.value("count", parts.count as u32);
    })
}

/// Writes words and values, and returns the arrays of the slices.
fn with_values<V: InKernels + Pod>(
    device: &Cuda,
    resident: &Resident,
    stored: Real,
    parts: Parts,
    (rows, entries): (usize, usize),
) -> Result<DeviceArrays> {
    let values = device.allocate::<V>(WHAT, entries)?;
    write(resident, Some(stored), &parts, rows, Some(&values))?;
    Ok(parts.arrays().with_typed("all_values", "VALUE", values))
}

impl Parts {
    fn arrays(self) -> DeviceArrays {
        DeviceArrays::written().with("slices", self.slices).with("all_words", self.words)
    }
}
