//! Matrices in GPU memory as the host has them, in compressed sparse rows: what formats are built from on the
//! device, and what residuals are computed with.
//!
//! A matrix is copied once for all its users: the copy lives as long as one of them. Matrices with
//! one pattern share its copy.

use super::arrays::{Arrays, DeviceArrays};
use super::columns::Columns;
use super::form::{Real, Types};
use crate::device::Cuda;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::{InKernels, Parameter};
use crate::error::{Error, GpuError, Result};
use crate::format::narrow::may_narrow;
use crate::format::{Csr, Pattern, Values};
use crate::parallel::lock;
use crate::params::{Param, Params};
use bytemuck::Pod;
use std::sync::{Arc, Mutex, Weak};

/// The label of the copy in out-of-memory errors.
const WHAT: &str = "the matrix in compressed sparse rows";

const NARROW: &str = "the columns in 16 bits";

/// A matrix in GPU memory.
pub(super) struct Resident {
    device: Cuda,
    matrix: Arc<Csr>,
    pattern: Arc<DeviceArrays>,
    values: Arc<DeviceArrays>,
}

/// The copies of parts of matrices that are in use, each with the part on the host.
struct Copies<H>(Mutex<Vec<(Weak<H>, Weak<DeviceArrays>)>>);

static PATTERNS: Copies<Pattern> = Copies(Mutex::new(Vec::new()));
static VALUES: Copies<Csr> = Copies(Mutex::new(Vec::new()));

impl<H> Copies<H> {
    /// Returns the copy on a device, or else makes one.
    fn get(
        &self,
        device: &Cuda,
        host: &Arc<H>,
        make: impl FnOnce() -> Result<DeviceArrays>,
    ) -> Result<Arc<DeviceArrays>> {
        if let Some(copy) = self.existing(device, host) {
            return Ok(copy);
        }
        let copy = Arc::new(make()?);
        self.add(host, &copy);
        Ok(copy)
    }

    /// Returns the copy on a device, if there is one.
    fn existing(&self, device: &Cuda, host: &Arc<H>) -> Option<Arc<DeviceArrays>> {
        let mut copies = lock(&self.0);
        copies.retain(|(_, copy)| copy.strong_count() > 0);
        let of_host = copies.iter().filter(|(other, _)| Weak::as_ptr(other) == Arc::as_ptr(host));
        of_host.filter_map(|(_, copy)| copy.upgrade()).find(|copy| copy.is_on(device))
    }

    fn add(&self, host: &Arc<H>, copy: &Arc<DeviceArrays>) {
        lock(&self.0).push((Arc::downgrade(host), Arc::downgrade(copy)));
    }
}

fn pattern_arrays(pattern: &Pattern) -> Arrays<'_> {
    // Columns that the host computes later are read only if they are copied.
    let columns = || Ok(pattern.col_indices().into());
    Arrays::of(WHAT).add_offsets("offsets", pattern.row_offsets()).add_lazy::<u32>(
        "columns",
        pattern.entries(),
        columns,
    )
}

fn value_arrays(values: &Values) -> Arrays<'_> {
    Arrays::of(WHAT).add_values("values", values)
}

/// Wraps a pattern that kernels have written.
pub(super) fn written_pattern<O: InKernels + Pod>(
    offsets: CudaArray<O>,
    columns: CudaArray<u32>,
) -> Arc<DeviceArrays> {
    let arrays = DeviceArrays::written().with_typed("offsets", "OFFSET", offsets);
    Arc::new(arrays.with("columns", columns))
}

/// Makes the copy of a pattern known to later users of the pattern.
pub(super) fn register(pattern: &Arc<Pattern>, copy: &Arc<DeviceArrays>) {
    PATTERNS.add(pattern, copy);
}

/// Wraps values that are on the device already.
pub(super) fn written_values<V: InKernels + Pod>(values: CudaArray<V>) -> Arc<DeviceArrays> {
    Arc::new(DeviceArrays::written().with_typed("values", "VALUE", values))
}

/// Makes the copy of the values of a matrix known to later users of the matrix.
pub(super) fn register_values(matrix: &Arc<Csr>, copy: &Arc<DeviceArrays>) {
    VALUES.add(matrix, copy);
}

/// A kernel that reads a matrix in compressed sparse rows.
pub(super) struct Reader {
    pub name: &'static str,
    pub text: &'static str,
    /// The parameters after the arrays of the matrix.
    pub parameters: Vec<Parameter>,
    pub defines: Vec<(&'static str, String)>,
}

impl Reader {
    /// Returns the kernel for the types of the arrays of a matrix.
    pub(crate) fn source(self, matrix: &Csr) -> KernelSource {
        let (pattern, values) = (pattern_arrays(matrix.pattern()), value_arrays(matrix.values()));
        let (pattern, values) = (pattern.signature(), values.signature());
        let parameters = [pattern.parameters, values.parameters, self.parameters].concat();
        let defines = [pattern.defines, values.defines, self.defines].concat();
        let (name, body) = (self.name.to_owned(), self.text.to_owned());
        KernelSource { name, body, parameters, defines, k: 1, block: BLOCK }
    }
}

/// Returns the kernel that finds values that single precision cannot represent exactly.
fn values_fit() -> Reader {
    Reader {
        name: "values_fit",
        text: include_str!("../../../kernels/resident.cu"),
        parameters: vec![Parameter::scratch::<u32>("flag"), Parameter::value::<u64>("entries")],
        defines: vec![("STEP", "0".to_owned())],
    }
}

/// Returns the kernel that finds entries that differ from their mirrored entries.
fn mirrored_entries() -> Reader {
    Reader {
        name: "mirrored_entries",
        text: include_str!("../../../kernels/resident.cu"),
        parameters: vec![Parameter::scratch::<u32>("flag"), Parameter::value::<u64>("rows")],
        defines: vec![("STEP", "1".to_owned())],
    }
}

/// Returns the kernel that writes columns in 16 bits: distances from their rows if `from_row` is
/// set, as numbers of type `E`.
fn narrow_columns<E: InKernels>(from_row: bool) -> Reader {
    Reader {
        name: "narrow_columns",
        text: include_str!("../../../kernels/resident.cu"),
        parameters: vec![Parameter::scratch::<E>("narrow"), Parameter::value::<u64>("rows")],
        defines: vec![("STEP", "2".to_owned()), ("FROM_ROW", u8::from(from_row).to_string())],
    }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    let mut all = Vec::new();
    for wide in [false, true] {
        let types = |value| Types::new(Real::F64, value, wide).csr();
        all.push(narrow_columns::<u16>(false).source(&types(None)));
        all.push(narrow_columns::<i16>(true).source(&types(Some(Real::F64))));
        all.push(values_fit().source(&types(Some(Real::F64))));
        let values = [None, Some(Real::F32), Some(Real::F64)];
        all.extend(values.map(|value| mirrored_entries().source(&types(value))));
    }
    all
}

/// The most blocks that stride over values or rows.
const MOST_BLOCKS: usize = 4096;

impl Resident {
    /// Returns the copy of a matrix on a device, and makes it at the first call. Fails if
    /// `reserve` bytes do not stay free.
    pub(crate) fn of(device: &Cuda, matrix: &Arc<Csr>, reserve: u64) -> Result<Resident> {
        let pattern = PATTERNS.get(device, matrix.pattern(), || {
            let values = value_arrays(matrix.values()).bytes();
            pattern_arrays(matrix.pattern()).upload(device, reserve.saturating_add(values))
        })?;
        let values = VALUES.get(device, matrix, || value_arrays(matrix.values()).upload(device, reserve))?;
        Ok(Resident { device: device.clone(), matrix: Arc::clone(matrix), pattern, values })
    }

    /// Returns the copy of a matrix, if there is one on the device.
    pub(crate) fn existing(device: &Cuda, matrix: &Arc<Csr>) -> Option<Resident> {
        let pattern = PATTERNS.existing(device, matrix.pattern())?;
        let values = match matrix.values() {
            Values::Ones => Arc::new(DeviceArrays::written().without_values("values")),
            _ => VALUES.existing(device, matrix)?,
        };
        Some(Resident { device: device.clone(), matrix: Arc::clone(matrix), pattern, values })
    }

    /// Returns an array of the pattern: 0 for the offsets, 1 for the columns; none if its
    /// elements are of another type.
    pub(crate) fn array<E: InKernels>(&self, index: usize) -> Option<CudaArray<E>> {
        self.pattern.array(index)
    }

    /// Returns the values; none if they are of another type, or all ones.
    pub(crate) fn values<E: InKernels>(&self) -> Option<CudaArray<E>> {
        self.values.array(0)
    }

    /// Returns the arrays under the names that the kernels of `csr` have for them. They are shared, not
    /// copied, except for narrow columns. Fails if `reserve` bytes do not stay free.
    pub(crate) fn compressed(&self, columns: Columns, reserve: u64) -> Result<DeviceArrays> {
        let arrays = DeviceArrays::written().with_shared(&self.pattern, 0, "row_offsets", "OFFSET");
        let (name, define) = ("col_indices", "COLUMN");
        let arrays = match columns {
            Columns::Full => arrays.with_shared(&self.pattern, 1, name, define),
            Columns::Narrow => arrays.with_typed(name, define, self.narrow::<u16>(false, reserve)?),
            Columns::Near => {
                arrays.with_typed(name, define, self.narrow::<i16>(true, reserve)?).marked("NEAR")
            }
        };
        Ok(arrays.with_shared(&self.values, 0, "values", "VALUE"))
    }

    /// Returns the columns in 16 bits, or their distances from their rows.
    fn narrow<E: InKernels + Pod>(&self, from_row: bool, reserve: u64) -> Result<CudaArray<E>> {
        let (rows, entries) = (self.matrix.rows(), self.matrix.nnz());
        self.device.require_room(NARROW, (entries * size_of::<E>()) as u64, reserve)?;
        let narrow = self.device.allocate::<E>(NARROW, entries)?;
        let blocks = rows.div_ceil(BLOCK as usize / 32).clamp(1, MOST_BLOCKS);
        self.launch(narrow_columns::<E>(from_row), blocks, |arguments| {
            arguments.scratch("narrow", &narrow);
            arguments.value("rows", rows as u64);
        })?;
        Ok(narrow)
    }

    /// Enqueues a kernel in `blocks` blocks; `add` adds the arguments after the arrays of the matrix.
    pub(crate) fn launch<'a>(
        &'a self,
        kernel: Reader,
        blocks: usize,
        add: impl FnOnce(&mut Arguments<'a>),
    ) -> Result<()> {
        let kernel = self.device.kernel(&kernel.source(&self.matrix))?;
        let mut arguments = Arguments::on(&self.device);
        self.pattern.add_to(&mut arguments);
        self.values.add_to(&mut arguments);
        add(&mut arguments);
        let blocks = u32::try_from(blocks).unwrap_or_else(|_| unreachable!("builders refuse so many rows"));
        arguments.launch(&kernel, blocks)
    }

    /// Returns whether the matrix, which is square and has no repeated entries, equals its transpose exactly.
    pub(crate) fn is_symmetric(&self) -> Result<bool> {
        let rows = self.matrix.rows();
        let flag = self.device.allocate::<u32>(WHAT, 1)?;
        self.launch(mirrored_entries(), rows.div_ceil(BLOCK as usize / 32).min(MOST_BLOCKS), |arguments| {
            arguments.scratch("flag", &flag);
            arguments.value("rows", rows as u64);
        })?;
        Ok(flag.to_host()?[0] == 0)
    }

    /// Returns the precision in which formats store the values: single if this is exact for all of
    /// them. None if all are ones.
    pub(crate) fn narrowest(&self) -> Result<Option<Real>> {
        match self.matrix.values() {
            Values::Ones => Ok(None),
            Values::F32(_) => Ok(Some(Real::F32)),
            Values::F64(values) if !may_narrow(values) => Ok(Some(Real::F64)),
            Values::F64(values) => {
                let flag = self.device.allocate::<u32>(WHAT, 1)?;
                let blocks = values.len().div_ceil(BLOCK as usize).min(MOST_BLOCKS);
                self.launch(values_fit(), blocks, |arguments| {
                    arguments.scratch("flag", &flag);
                    arguments.value("entries", values.len() as u64);
                })?;
                Ok(Some(if flag.to_host()?[0] == 0 { Real::F32 } else { Real::F64 }))
            }
        }
    }
}

/// The parameter of a backend that says where its format is made.
pub(crate) const MADE: Param = Param::word(
    "made",
    &["auto", "device", "host"],
    "where the format is made from compressed sparse rows: auto takes the device for large matrices if its \
     memory suffices",
);

/// Entries below which the host makes a format in less time than the launches take.
const FEW: usize = 1 << 16;

/// Makes a format on the device with `make` if the parameter [`MADE`] says so; `None` if the host makes it:
/// by the parameter, because the matrix is small, or because the memory of the device does not suffice.
pub(super) fn made_there<R>(
    matrix: &Csr,
    params: &Params,
    make: impl FnOnce() -> Result<R>,
) -> Result<Option<R>> {
    match params.word(MADE.name) {
        Some("device") if matrix.nnz() > 0 => make().map(Some),
        Some("host") | Some("device") => Ok(None),
        _ if matrix.nnz() < FEW => Ok(None),
        _ => match make() {
            Err(error @ Error::Gpu(GpuError::DeviceMemory { .. })) => {
                log::warn!("the host converts the matrix, which takes longer: {error}");
                Ok(None)
            }
            made => made.map(Some),
        },
    }
}
