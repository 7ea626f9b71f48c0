//! Strategies on NVIDIA GPUs, one file each, with its kernel in a file of the same stem; those of studies are in `studies`.

pub mod auto;
pub mod bsr;
pub mod burst;
pub mod csr;
pub mod cusparse;
pub mod dcsr;
pub mod dense;
pub mod ell;
pub mod merge;
mod owner;
mod passes;
pub mod sell;
pub mod studies;
pub mod vector;

use super::Params;
use crate::device::cuda::memory::{CudaArray, address};
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::{Cuda, Op, Sweep};
use crate::error::{Error, Result};
use crate::format::{Csr, Offset, Offsets, Values};
use crate::operator::DotInto;
use crate::parallel::{run_all, split_front, zeros};
use crate::scalar::Scalar;
use passes::{Form, Types};
use rayon::prelude::*;
use std::any::Any;

/// Every embedded kernel in every form that a backend may ask for, for whoever compiles them ahead; `endings` are the
/// fused dot products and programs of the solvers, `sweeps` those that follow a product.
pub fn kernel_sources(endings: &[(DotInto, &[Op])], sweeps: &[Sweep<'_>]) -> Vec<KernelSource> {
    let mut forms: Vec<Form> = named_forms().into_iter().map(|(_, form)| form).collect();
    forms.extend(
        [bsr::forms(), merge::forms(), sell::forms(), ell::forms(), burst::forms(), dcsr::forms()].concat(),
    );
    let mut all = passes::sources(&forms, endings);
    all.extend(csr::sources(endings, sweeps));
    all
}

/// The forms of the kernels of the studies, each with the name of the backend that launches it.
fn named_forms() -> Vec<(&'static str, Form)> {
    let vectors = vector::forms().into_iter().map(|form| ("vector", form));
    vectors.chain(studies::forms()).collect()
}

/// What each name of the studies runs, for whoever looks whether two of them are the same: in f64, without an ending.
pub fn named_kernels() -> Vec<(&'static str, KernelSource)> {
    let (scalar, offset, column) = (f64::CUDA_NAME, u32::CUDA_NAME, u32::CUDA_NAME);
    let types = Types { scalar, value: Some(f64::CUDA_NAME), offset, column };
    named_forms().into_iter().map(|(name, form)| (name, form.source(types, ""))).collect()
}

/// A parameter whose values are numbers; the first of them where the user set none.
fn number(params: &Params, name: &str, values: &[&'static str]) -> u32 {
    let typed = params.get(name).unwrap_or(values[0]);
    typed.parse().unwrap_or_else(|_| unreachable!("{name} takes numbers"))
}

/// The values of a parameter that are numbers.
fn numbers(values: &[&str]) -> impl Iterator<Item = u32> {
    values.iter().filter_map(|value| value.parse().ok())
}

/// Entries of a mean row, rounded up.
fn mean_row(matrix: &Csr) -> usize {
    matrix.nnz().div_ceil(matrix.rows().max(1))
}

/// Device memory that an operator owns, whatever its type.
type Held = Box<dyn Any + Send + Sync>;

/// What is copied, for whoever has no memory for it.
const MATRIX: &str = "the matrix";

/// The type of columns in 16 bits in CUDA C++, and of those that are kept by how far they are from their row.
const NARROW_COLUMN: &str = "unsigned short";
const NEAR_COLUMN: &str = "short";

/// How columns of CSR are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// In 32 bits.
    Full,
    /// In 16 bits.
    Narrow,
    /// In 16 bits, by how far they are from their row.
    Near,
}

impl Columns {
    /// Columns up to which 16 bits are enough.
    const NARROW: usize = 1 << 16;

    /// What moves the fewest bytes, for kernels that need not know the row of an entry.
    fn for_any_kernel(matrix: &Csr) -> Columns {
        if matrix.cols() <= Self::NARROW { Columns::Narrow } else { Columns::Full }
    }

    /// What moves the fewest bytes, for kernels that know the row.
    fn for_rows(matrix: &Csr) -> Columns {
        // The first and the last of a row are the furthest from it.
        let near = |row| {
            let columns = matrix.row_columns(row);
            [columns.first(), columns.last()].into_iter().flatten().all(|&column| is_near(column, row))
        };
        match Columns::for_any_kernel(matrix) {
            Columns::Full if (0..matrix.rows()).into_par_iter().with_min_len(4096).all(near) => Columns::Near,
            columns => columns,
        }
    }

    /// Bytes of each.
    fn width(self) -> usize {
        if self == Columns::Full { size_of::<u32>() } else { size_of::<u16>() }
    }
}

/// Whether 16 bits say how far a column is from a row.
fn is_near(column: u32, row: usize) -> bool {
    i16::try_from(i64::from(column) - row as i64).is_ok()
}

/// Columns in 16 bits, where that is enough.
fn in_16_bits(columns: &[u32]) -> Vec<u16> {
    columns.par_iter().map(|&column| column as u16).collect()
}

/// How far each column is from its row, for a matrix of which [`Columns::Near`] is true.
fn distances(matrix: &Csr) -> Result<Vec<i16>> {
    /// Rows of a task.
    const ROWS: usize = 4096;
    let mut distances = zeros::<i16>(matrix.nnz())?;
    let mut rest = &mut distances[..];
    let tasks = (0..matrix.rows()).step_by(ROWS).map(|first| {
        let rows = first..matrix.rows().min(first + ROWS);
        let entries = matrix.row_range(rows.end - 1).end - matrix.row_range(first).start;
        (rows, split_front(&mut rest, entries))
    });
    run_all(tasks.collect(), |(rows, mut places)| {
        for row in rows {
            let columns = matrix.row_columns(row);
            for (place, &column) in split_front(&mut places, columns.len()).iter_mut().zip(columns) {
                debug_assert!(is_near(column, row), "column {column} of row {row}");
                *place = column.wrapping_sub(row as u32) as i16;
            }
        }
    });
    Ok(distances)
}

/// The arrays of a CSR matrix in GPU memory.
struct DeviceCsr {
    rows: usize,
    cols: usize,
    nnz: usize,
    offsets: DeviceOffsets,
    columns: DeviceColumns,
    values: DeviceValues,
    bytes: u64,
}

enum DeviceOffsets {
    U32(CudaArray<u32>),
    U64(CudaArray<u64>),
}

enum DeviceColumns {
    U32(CudaArray<u32>),
    Narrow(CudaArray<u16>),
    Near(CudaArray<i16>),
}

enum DeviceValues {
    Ones,
    F32(CudaArray<f32>),
    F64(CudaArray<f64>),
}

impl DeviceCsr {
    /// The bytes of the arrays.
    fn bytes(matrix: &Csr, columns: Columns) -> u64 {
        matrix.storage_bytes() - ((size_of::<u32>() - columns.width()) * matrix.nnz()) as u64
    }

    /// The bytes of the arrays; fails where they and `reserve` bytes more are not free.
    fn require_room(device: &Cuda, matrix: &Csr, columns: Columns, reserve: u64) -> Result<u64> {
        let bytes = DeviceCsr::bytes(matrix, columns);
        device.require_room(MATRIX, bytes, reserve)?;
        Ok(bytes)
    }

    /// Copies the arrays, where all of them and `reserve` bytes more are free.
    fn upload(device: &Cuda, matrix: &Csr, columns: Columns, reserve: u64) -> Result<DeviceCsr> {
        use crate::device::Device;
        let what = MATRIX;
        let bytes = DeviceCsr::require_room(device, matrix, columns, reserve)?;
        let csr = DeviceCsr {
            rows: matrix.rows(),
            cols: matrix.cols(),
            nnz: matrix.nnz(),
            offsets: match matrix.row_offsets() {
                Offsets::U32(o) => DeviceOffsets::U32(device.allocate_from(what, o)?),
                Offsets::U64(o) => DeviceOffsets::U64(device.allocate_from(what, o)?),
            },
            columns: match columns {
                Columns::Full => DeviceColumns::U32(device.allocate_from(what, matrix.col_indices())?),
                Columns::Narrow => {
                    DeviceColumns::Narrow(device.allocate_from(what, &in_16_bits(matrix.col_indices()))?)
                }
                Columns::Near => DeviceColumns::Near(device.allocate_from(what, &distances(matrix)?)?),
            },
            values: match matrix.values() {
                Values::Ones => DeviceValues::Ones,
                Values::F32(v) => DeviceValues::F32(device.allocate_from(what, v)?),
                Values::F64(v) => DeviceValues::F64(device.allocate_from(what, v)?),
            },
            bytes,
        };
        device.synchronize()?;
        Ok(csr)
    }

    fn offsets_address(&self) -> u64 {
        match &self.offsets {
            DeviceOffsets::U32(o) => address(o),
            DeviceOffsets::U64(o) => address(o),
        }
    }

    fn columns_address(&self) -> u64 {
        match &self.columns {
            DeviceColumns::U32(c) => address(c),
            DeviceColumns::Narrow(c) => address(c),
            DeviceColumns::Near(c) => address(c),
        }
    }

    fn values_address(&self) -> Option<u64> {
        match &self.values {
            DeviceValues::Ones => None,
            DeviceValues::F32(v) => Some(address(v)),
            DeviceValues::F64(v) => Some(address(v)),
        }
    }

    /// The name of the offsets' type in CUDA C++.
    fn offset_type(&self) -> &'static str {
        match self.offsets {
            DeviceOffsets::U32(_) => u32::CUDA_NAME,
            DeviceOffsets::U64(_) => u64::CUDA_NAME,
        }
    }

    /// The name of the columns' type in CUDA C++.
    fn column_type(&self) -> &'static str {
        match self.columns {
            DeviceColumns::U32(_) => u32::CUDA_NAME,
            DeviceColumns::Narrow(_) => NARROW_COLUMN,
            DeviceColumns::Near(_) => NEAR_COLUMN,
        }
    }

    /// The name of the values' type in CUDA C++, where there are values.
    fn value_type(&self) -> Option<&'static str> {
        match self.values {
            DeviceValues::Ones => None,
            DeviceValues::F32(_) => Some(f32::CUDA_NAME),
            DeviceValues::F64(_) => Some(f64::CUDA_NAME),
        }
    }

    /// Checks that x and y fit the matrix and have one column.
    fn check_shapes<T: Scalar>(
        &self,
        backend: &'static str,
        x: &CudaVector<T>,
        y: &CudaVector<T>,
    ) -> Result<()> {
        check_shapes((self.rows, self.cols), backend, x, y)
    }
}

/// Checks that a matrix has a product with a dot product fused, and that the slots are of one column.
fn check_dot((expected, got): (usize, usize), slots: &CudaSlots) -> Result<()> {
    if expected != got {
        return Err(Error::Dimension { what: "columns of a matrix in a dot product", expected, got });
    }
    if slots.k() != 1 {
        return Err(Error::Dimension { what: "columns of the slots", expected: 1, got: slots.k() });
    }
    Ok(())
}

/// Checks that x and y fit a matrix and have one column.
fn check_shapes<T: Scalar>(
    (rows, cols): (usize, usize),
    backend: &'static str,
    x: &CudaVector<T>,
    y: &CudaVector<T>,
) -> Result<()> {
    let fits = |what, expected, got| match expected == got {
        true => Ok(()),
        false => Err(Error::Dimension { what, expected, got }),
    };
    fits("rows of x", cols, x.n())?;
    fits("rows of y", rows, y.n())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph with these columns in some rows of so many, which are all of them.
    fn graph(n: usize, columns: impl Fn(u32) -> Vec<u32>) -> Csr {
        let rows: Vec<Vec<u32>> = (0..n as u32).map(columns).collect();
        let mut offsets = vec![0];
        offsets.extend(rows.iter().scan(0, |end, row| {
            *end += row.len() as u64;
            Some(*end)
        }));
        Csr::new(n, n, Offsets::narrowest(offsets), rows.concat(), Values::Ones).unwrap()
    }

    #[test]
    fn columns_take_16_bits_where_there_are_few_or_none_is_far_from_its_row() {
        let spread = |least: u32, most: u32, n: u32| {
            move |i: u32| -> Vec<u32> {
                let columns = [i.checked_sub(least), Some(i), Some(i + most)];
                columns.into_iter().flatten().filter(|&j| j < n).collect()
            }
        };
        for (n, least, most, want) in [
            (65_536, 40_000, 40_000, Columns::Narrow),
            (65_537, 32_768, 32_767, Columns::Near),
            (65_537, 32_769, 32_767, Columns::Full),
            (65_537, 32_768, 32_768, Columns::Full),
        ] {
            assert_eq!(
                Columns::for_rows(&graph(n as usize, spread(least, most, n))),
                want,
                "{least} and {most} of {n}"
            );
        }
    }

    #[test]
    fn distances_bring_back_the_columns_in_their_order() {
        // More rows than a task has, empty where tasks begin and end.
        let matrix = graph(70_001, |i| {
            if (i + 1) % 4096 < 2 { vec![] } else { (i / 2 + 20_000..i / 2 + 20_000 + i % 5).collect() }
        });
        let found = distances(&matrix).unwrap();
        let rows = (0..matrix.rows()).flat_map(|row| std::iter::repeat_n(row, matrix.row_range(row).len()));
        let columns: Vec<u32> = rows.zip(found).map(|(row, d)| (row as i64 + i64::from(d)) as u32).collect();
        assert!(columns == matrix.col_indices());
        assert!(distances(&graph(0, |_| vec![])).unwrap().is_empty());
    }
}
