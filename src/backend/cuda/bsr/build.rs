//! Makes blocks on the GPU, from the matrix in compressed sparse rows. The arrays are those that the
//! host makes, bit for bit.

use super::check_size;
use crate::backend::cuda::arrays::DeviceArrays;
use crate::backend::cuda::columns::Columns;
use crate::backend::cuda::form::{Real, Types};
use crate::backend::cuda::product::Stored;
use crate::backend::cuda::resident::{Reader, Resident};
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::{InKernels, Parameter};
use crate::device::{Cuda, Device};
use crate::error::{Error, Result};
use crate::format::{Csr, Offsets, offsets_of};
use bytemuck::Pod;
use std::sync::Arc;

const WHAT: &str = "the matrix in blocks";

/// The highest blocks that threads make: each row of a block takes registers.
pub(super) const HIGHEST: usize = 16;

/// A matrix in blocks in GPU memory, and the offsets of its block rows.
pub(super) struct Built {
    pub stored: Stored,
    pub offsets: Offsets,
}

/// The kernels of kernels/bsr/build.cu, with the types of the arrays that they write.
#[derive(Clone, Copy)]
struct Kernels {
    block: (usize, usize),
    wide_offsets: bool,
    narrow_columns: bool,
    value: Real,
}

impl Kernels {
    fn kernel(self, step: usize) -> Reader {
        let Kernels { block: (height, width), wide_offsets, narrow_columns, value } = self;
        let number = |name| Parameter::value::<u32>(name);
        let offsets = match wide_offsets {
            true => Parameter::scratch::<u64>("block_offsets"),
            false => Parameter::scratch::<u32>("block_offsets"),
        };
        let columns = match narrow_columns {
            true => Parameter::scratch::<u16>("block_columns"),
            false => Parameter::scratch::<u32>("block_columns"),
        };
        let (name, mut parameters) = match step {
            0 => ("bsr_count", vec![Parameter::scratch::<u32>("lengths"), number("block_rows")]),
            1 => ("bsr_columns", vec![offsets, columns, number("block_rows")]),
            _ => ("bsr_values", vec![offsets, columns, value.scratch("packed")]),
        };
        parameters.push(number("rows"));
        let mut defines =
            vec![("STEP", step.to_string()), ("R", height.to_string()), ("C", width.to_string())];
        if step > 0 {
            defines.push(("COLUMN", columns.type_name().to_owned()));
        }
        if step > 1 {
            defines.push(("PACKED", value.name().to_owned()));
        }
        Reader { name, text: include_str!("../../../../kernels/bsr/build.cu"), parameters, defines }
    }
}

/// Returns the kernels of this module for some sizes of blocks, in all types, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    let mut all = Vec::new();
    let values = [(None, Real::F32), (Some(Real::F32), Real::F32), (Some(Real::F64), Real::F64)];
    for (value, stored) in values.into_iter().chain([(Some(Real::F64), Real::F32)]) {
        for (wide, block) in [(false, (3, 3)), (true, (HIGHEST, 5))] {
            let matrix = Types::new(Real::F64, value, wide).csr();
            let kernels = Kernels { block, wide_offsets: wide, narrow_columns: wide, value: stored };
            all.extend([0, 1, 2].map(|step| kernels.kernel(step).source(&matrix)));
        }
    }
    all
}

/// The matrix to convert.
struct Builder<'a> {
    device: &'a Cuda,
    resident: &'a Resident,
    kernels: Kernels,
    rows: usize,
    cols: usize,
    /// Number of blocks.
    blocks: usize,
}

/// Makes blocks on the device. Fails if `reserve` bytes do not stay free.
pub(super) fn build(device: &Cuda, matrix: &Arc<Csr>, block: (usize, usize), reserve: u64) -> Result<Built> {
    check_size(matrix)?;
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let resident = Resident::of(device, matrix, reserve)?;
    let value = resident.narrowest()?.unwrap_or(Real::F32);
    let narrow_columns = cols.div_ceil(block.1) <= Columns::NARROW;
    let kernels = Kernels { block, wide_offsets: false, narrow_columns, value };
    let mut builder = Builder { device, resident: &resident, kernels, rows, cols, blocks: 0 };
    let offsets = offsets_of(&builder.lengths()?, 1)?;
    builder.blocks = offsets.get(offsets.len() - 1);
    let stored = match &offsets {
        Offsets::U32(offsets) => builder.with_offsets(&offsets[..], reserve)?,
        Offsets::U64(offsets) => {
            builder.kernels.wide_offsets = true;
            builder.with_offsets(&offsets[..], reserve)?
        }
    };
    // The copy of the matrix may be dropped now.
    device.synchronize()?;
    Ok(Built { stored, offsets })
}

impl Builder<'_> {
    fn block_rows(&self) -> usize {
        self.rows.div_ceil(self.kernels.block.0)
    }

    /// Returns the number of blocks of each block row.
    fn lengths(&self) -> Result<Vec<u32>> {
        let lengths = self.device.allocate::<u32>(WHAT, self.block_rows())?;
        self.resident.launch(
            self.kernels.kernel(0),
            self.block_rows().div_ceil(BLOCK as usize),
            |arguments| {
                arguments.scratch("lengths", &lengths);
                arguments.value("block_rows", self.block_rows() as u32);
                arguments.value("rows", self.rows as u32);
            },
        )?;
        lengths.to_host()
    }

    fn with_offsets<O: InKernels + Pod>(&self, offsets: &[O], reserve: u64) -> Result<Stored> {
        let Kernels { block: (height, width), narrow_columns, value, .. } = self.kernels;
        let elements = self.blocks as u128 * (height * width) as u128;
        let column = if narrow_columns { 2 } else { 4 };
        let bytes = elements * value.width() as u128 + (self.blocks * column + size_of_val(offsets)) as u128;
        let elements = usize::try_from(elements).map_err(|_| Error::OutOfMemory { bytes })?;
        self.device.require_room(WHAT, u64::try_from(bytes).unwrap_or(u64::MAX), reserve)?;
        let offsets = self.device.allocate_from(WHAT, offsets)?;
        let arrays = match narrow_columns {
            true => self.with_columns::<O, u16>(offsets, elements)?,
            false => self.with_columns::<O, u32>(offsets, elements)?,
        };
        Ok(Stored { shape: (self.rows, self.cols), padded_entries: elements, arrays })
    }

    fn with_columns<O: InKernels + Pod, C: InKernels + Pod>(
        &self,
        offsets: CudaArray<O>,
        elements: usize,
    ) -> Result<DeviceArrays> {
        let columns = self.device.allocate::<C>(WHAT, self.blocks)?;
        let blocks = self.block_rows().div_ceil(BLOCK as usize);
        self.resident.launch(self.kernels.kernel(1), blocks, |arguments| {
            arguments.scratch("block_offsets", &offsets);
            arguments.scratch("block_columns", &columns);
            arguments.value("block_rows", self.block_rows() as u32);
            arguments.value("rows", self.rows as u32);
        })?;
        match self.kernels.value {
            Real::F32 => self.with_values::<O, C, f32>(offsets, columns, elements),
            Real::F64 => self.with_values::<O, C, f64>(offsets, columns, elements),
        }
    }

    fn with_values<O: InKernels + Pod, C: InKernels + Pod, V: InKernels + Pod>(
        &self,
        offsets: CudaArray<O>,
        columns: CudaArray<C>,
        elements: usize,
    ) -> Result<DeviceArrays> {
        let packed = self.device.allocate::<V>(WHAT, elements)?;
        let warps = BLOCK as usize / 32;
        self.resident.launch(self.kernels.kernel(2), self.rows.div_ceil(warps), |arguments| {
            arguments.scratch("block_offsets", &offsets);
            arguments.scratch("block_columns", &columns);
            arguments.scratch("packed", &packed);
            arguments.value("rows", self.rows as u32);
        })?;
        let arrays = DeviceArrays::written().with_typed("block_offsets", "OFFSET", offsets);
        let arrays = arrays.with_typed("block_columns", "COLUMN", columns);
        Ok(arrays.with_typed("values", "VALUE", packed))
    }
}
