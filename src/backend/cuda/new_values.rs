//! New values for a matrix on the device, whose pattern stays.

use super::arrays::DeviceArrays;
use super::{MATRIX, fits};
use crate::device::Cuda;
use crate::device::cuda::CudaVector;
use crate::device::cuda::launch::{Arguments, Stored};
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::error::Result;
use crate::scalar::Scalar;
use std::sync::OnceLock;

/// The most blocks that stride over values.
const MOST_BLOCKS: usize = 4096;

/// A place without an entry, whose value is zero.
pub(super) const FILL: u32 = u32::MAX;

/// The entry of each place where a format stores values, uploaded when values first change.
pub(super) struct Places {
    make: Box<dyn Fn() -> Result<Vec<u32>> + Send + Sync>,
    there: OnceLock<(Stored, usize)>,
}

impl Places {
    /// Wraps a function that returns the entry of each place, or [`FILL`].
    pub(crate) fn new(make: impl Fn() -> Result<Vec<u32>> + Send + Sync + 'static) -> Places {
        Places { make: Box::new(make), there: OnceLock::new() }
    }

    /// Returns the array on the device, and its length.
    fn there(&self, device: &Cuda) -> Result<&(Stored, usize)> {
        if let Some(there) = self.there.get() {
            return Ok(there);
        }
        let host = (self.make)()?;
        let array = Stored::array("places", device.allocate_from(MATRIX, &host)?);
        Ok(self.there.get_or_init(|| (array, host.len())))
    }
}

/// Returns the kernel for values of `T`.
fn source<T: Scalar>(with_places: bool) -> KernelSource {
    let (read, written) = (Parameter::read::<T>("values"), Parameter::written::<T>("stored"));
    let mut parameters = vec![read, written, Parameter::value::<u64>("count")];
    let mut defines = vec![("SCALAR", T::CUDA_NAME.to_owned())];
    if with_places {
        parameters.push(Parameter::array::<u32>("places"));
        defines.push(("PLACES", "1".to_owned()));
    }
    let body = include_str!("../../../kernels/new_values.cu").to_owned();
    KernelSource { name: "placed_values".to_owned(), body, parameters, defines, k: 1, block: BLOCK }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    vec![source::<f32>(false), source::<f64>(false), source::<f32>(true), source::<f64>(true)]
}

/// Replaces the stored values of a matrix of `entries` entries by `values`, in the order of the
/// stream; false if the array has values of another type. Without `places`, the values are stored in
/// the order of the entries.
pub(super) fn place<T: Scalar>(
    device: &Cuda,
    arrays: &DeviceArrays,
    places: Option<&Places>,
    (values, entries): (&CudaVector<T>, usize),
) -> Result<bool> {
    device.check_vector(values)?;
    fits("columns of the values", 1, values.k())?;
    fits("values of the matrix", entries, values.n())?;
    let Some(stored) = arrays.written_as::<T>("values", "stored") else { return Ok(false) };
    let places = places.map(|places| places.there(device)).transpose()?;
    let count = places.map_or(entries, |(_, count)| *count);
    fits(
        "stored values of the matrix",
        (stored.bytes().unwrap_or(0) / size_of::<T>() as u64) as usize,
        count,
    )?;
    if count == 0 {
        return Ok(true);
    }
    let kernel = device.kernel(&source::<T>(places.is_some()))?;
    let mut arguments = Arguments::on(device);
    arguments.read("values", values)?;
    arguments.stored(&stored);
    arguments.value("count", count as u64);
    if let Some((places, _)) = places {
        arguments.stored(places);
    }
    arguments.launch(&kernel, count.div_ceil(BLOCK as usize).min(MOST_BLOCKS) as u32)?;
    Ok(true)
}
