//! Matrices that a caller has in GPU memory: copied there in the library's types, checked there, and known as
//! the copies of the host's matrix, so that nothing is uploaded.

use super::arrays::DeviceArrays;
use super::resident;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::{InKernels, Parameter};
use crate::device::{Cuda, Device, Kept, LentIndices, LentNumbers, LentRows};
use crate::error::Result;
use crate::format::{Csr, Offset, Offsets, Pattern, Values};
use bytemuck::Pod;
use std::sync::Arc;

/// The label of the copy in out-of-memory errors.
const WHAT: &str = "a copy of the caller's matrix";
/// The most blocks that stride over offsets or entries.
const MOST_BLOCKS: usize = 4096;
/// The findings of the kernels: whether an index is out of range, and two counts, which are equal
/// if the columns increase.
const FINDINGS: usize = 3;

/// A matrix of a caller: the host's, and its copies on the device.
pub struct Taken {
    /// The matrix.
    pub matrix: Arc<Csr>,
    /// Keeps the offsets and the columns on the device.
    pub pattern: Kept,
    /// Keeps the values on the device; none if all are ones.
    pub values: Option<Kept>,
}

/// The kernels of kernels/caller_matrix.cu.
#[derive(Clone, Copy)]
enum Step {
    Columns,
    Offsets,
}

impl Step {
    /// Returns the kernel for given indices of type `G` and offsets of type `O`.
    fn source<G: InKernels, O: InKernels>(self) -> KernelSource {
        let count = |name| Parameter::value::<u64>(name);
        let (columns, found) = (Parameter::scratch::<u32>("columns"), Parameter::scratch::<u64>("found"));
        let given = Parameter::scratch::<G>("given");
        let (name, parameters) = match self {
            Step::Columns => ("taken_columns", vec![given, columns, found, count("entries"), count("cols")]),
            Step::Offsets => {
                let offsets = Parameter::scratch::<O>("offsets");
                ("taken_offsets", vec![given, offsets, columns, found, count("entries"), count("rows")])
            }
        };
        let body = include_str!("../../../kernels/caller_matrix.cu").to_owned();
        let defines = vec![("STEP", (self as u32).to_string()), ("OFFSET", O::NAME.to_owned())];
        KernelSource { name: name.to_owned(), body, parameters, defines, k: 1, block: BLOCK }
    }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    vec![
        Step::Columns.source::<i32, u32>(),
        Step::Columns.source::<i64, u32>(),
        Step::Offsets.source::<i32, u32>(),
        Step::Offsets.source::<i64, u32>(),
        Step::Offsets.source::<i64, u64>(),
    ]
}

/// Enqueues a kernel that strides over `work` elements.
fn launch<'a>(
    device: &'a Cuda,
    source: &KernelSource,
    work: usize,
    add: impl FnOnce(&mut Arguments<'a>),
) -> Result<()> {
    let kernel = device.kernel(source)?;
    let mut arguments = Arguments::on(device);
    add(&mut arguments);
    arguments.launch(&kernel, work.div_ceil(BLOCK as usize).clamp(1, MOST_BLOCKS) as u32)
}

/// Takes over a matrix; none if an index is out of range or the columns of a row do not increase: the host
/// finds the place, or sorts. Fails if the device lacks memory for the copies and for a format of the matrix.
///
/// # Safety
/// The arrays are in memory of the device, in the order of `given.stream`, a stream of the device.
pub(in crate::backend) unsafe fn taken(device: &Cuda, given: &LentRows) -> Result<Option<Taken>> {
    let narrow = given.entries as u64 <= Offsets::MOST_NARROW;
    if given.entries == 0 || given.cols > u32::MAX as usize || given.rows >= u32::MAX as usize {
        return Ok(None);
    }
    let (offset, value) = (if narrow { 4 } else { 8 }, width(given.values));
    let bytes = (offset * (given.rows + 1) + (4 + value) * given.entries) as u64;
    device.require_room(WHAT, bytes, bytes)?;
    // SAFETY: as the caller promises. All work on the arrays lies between two positions of the stream.
    unsafe {
        device.wait_for(given.stream)?;
        let outcome = if narrow { rows::<u32>(device, given) } else { rows::<u64>(device, given) };
        device.let_wait(given.stream)?;
        outcome
    }
}

/// Returns the bytes of a value.
fn width(values: LentNumbers) -> usize {
    match values {
        LentNumbers::F32(_) => 4,
        LentNumbers::F64(_) => 8,
        LentNumbers::Ones => 0,
    }
}

/// Takes over a matrix with offsets of type `O`.
///
/// # Safety
/// See [`taken`]. The device waits for the stream.
unsafe fn rows<O: Offset + InKernels>(device: &Cuda, given: &LentRows) -> Result<Option<Taken>> {
    let (entries, rows) = (given.entries, given.rows);
    let columns = device.allocate::<u32>(WHAT, entries)?;
    let offsets = device.allocate::<O>(WHAT, rows + 1)?;
    let found = device.allocate::<u64>(WHAT, FINDINGS)?;
    // SAFETY: as the caller promises.
    unsafe {
        match given.columns {
            LentIndices::I32(at) => take_columns::<i32>(device, (at, given.cols), &columns, &found)?,
            LentIndices::I64(at) => take_columns::<i64>(device, (at, given.cols), &columns, &found)?,
        }
        match given.offsets {
            LentIndices::I32(at) => take_offsets::<i32, O>(device, at, &offsets, &columns, &found)?,
            LentIndices::I64(at) => take_offsets::<i64, O>(device, at, &offsets, &columns, &found)?,
        }
    }
    let found = found.to_host()?;
    if found[0] != 0 || found[1] != found[2] {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let (values, copy_of_values) = unsafe {
        match given.values {
            LentNumbers::F32(at) => take_values::<f32>(device, at, entries)?,
            LentNumbers::F64(at) => take_values::<f64>(device, at, entries)?,
            LentNumbers::Ones => (Values::Ones, None),
        }
    };
    let (host_offsets, host_columns) = (O::wrap(offsets.to_host()?), columns.to_host()?);
    let pattern = Arc::new(Pattern::checked_elsewhere((rows, given.cols), host_offsets, host_columns, false));
    let copy = resident::written_pattern(offsets, columns);
    resident::register(&pattern, &copy);
    let matrix = Arc::new(Csr::with_pattern(pattern, values)?);
    if let Some(copy) = &copy_of_values {
        resident::register_values(&matrix, copy);
    }
    Ok(Some(Taken { matrix, pattern: copy, values: copy_of_values.map(|copy| copy as Kept) }))
}

/// Writes and checks the columns.
///
/// # Safety
/// See [`taken`]; at `at` are as many indices of type `G` as there are `columns`.
unsafe fn take_columns<G: InKernels + Pod>(
    device: &Cuda,
    (at, cols): (u64, usize),
    columns: &CudaArray<u32>,
    found: &CudaArray<u64>,
) -> Result<()> {
    // SAFETY: as the caller promises; the array is dropped before the stream of the caller goes on.
    let given = unsafe { device.lent::<G>(at, columns.len())? };
    launch(device, &Step::Columns.source::<G, u32>(), columns.len(), |arguments| {
        arguments.scratch("given", &given);
        arguments.scratch("columns", columns);
        arguments.scratch("found", found);
        arguments.value("entries", columns.len() as u64);
        arguments.value("cols", cols as u64);
    })
}

/// Writes and checks the offsets, once the columns are written.
///
/// # Safety
/// See [`taken`]; at `at` are as many indices of type `G` as there are `offsets`.
unsafe fn take_offsets<G: InKernels + Pod, O: InKernels + Pod>(
    device: &Cuda,
    at: u64,
    offsets: &CudaArray<O>,
    columns: &CudaArray<u32>,
    found: &CudaArray<u64>,
) -> Result<()> {
    // SAFETY: as the caller promises; the array is dropped before the stream of the caller goes on.
    let given = unsafe { device.lent::<G>(at, offsets.len())? };
    launch(device, &Step::Offsets.source::<G, O>(), offsets.len(), |arguments| {
        arguments.scratch("given", &given);
        arguments.scratch("offsets", offsets);
        arguments.scratch("columns", columns);
        arguments.scratch("found", found);
        arguments.value("entries", columns.len() as u64);
        arguments.value("rows", offsets.len() as u64 - 1);
    })
}

/// Copies the values to new device memory and to the host.
///
/// # Safety
/// See [`taken`]; at `at` are `entries` values of type `V`.
unsafe fn take_values<V: InKernels + Pod>(
    device: &Cuda,
    at: u64,
    entries: usize,
) -> Result<(Values, Option<Arc<DeviceArrays>>)>
where
    Values: From<Vec<V>>,
{
    // SAFETY: as the caller promises.
    let copy = unsafe { device.copy_of_lent::<V>(WHAT, at, entries)? };
    let host = Values::from(copy.to_host()?);
    Ok((host, Some(resident::written_values(copy))))
}
