//! Doubly compressed rows: only rows with entries are visited, for matrices with mostly empty rows.
//!
//! A bitmap with one bit per row marks the rows with entries; the same kernel writes the empty
//! rows with a sum of zero.

use super::arrays::Arrays;
use super::compressed::check_size;
use super::form::{AnyForm, Form, Format, Grid, Kind, Real, Types};
use super::product::{Pass, Product};
use super::spmm::product::{Launch, Schedule, SeveralColumns, grid, source_of};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::error::Result;
use crate::format::{Csr, Dcsr};
use crate::params::Params;
use crate::scalar::Scalar;
use std::sync::Arc;

/// The family of the backend `dcsr`.
pub(crate) struct DcsrFamily;

/// The family of the backend `spmm-dcsr`, for several columns.
pub(crate) struct SpmmDcsr;

/// Entries that each thread of a row loads at once.
const UNROLL: u32 = 3;
/// Threads per row.
const THREADS: [u32; 3] = [2, 8, 32];

/// A matrix in doubly compressed rows, with a bitmap of the rows that are stored.
struct Stored {
    dcsr: Dcsr,
    filled: Vec<u32>,
}

impl Stored {
    /// Compresses a matrix; refuses matrices that kernels cannot count in 32 bits.
    fn of(matrix: &Arc<Csr>) -> Result<Stored> {
        check_size(matrix)?;
        let dcsr = Dcsr::from_csr(Csr::clone(matrix))?;
        let mut filled = vec![0_u32; matrix.rows().div_ceil(32)];
        dcsr.row_indices().iter().for_each(|&row| filled[row as usize / 32] |= 1 << (row % 32));
        Ok(Stored { dcsr, filled })
    }

    /// Returns the number of rows with entries.
    fn count(&self) -> u32 {
        // `check_size` refuses more rows.
        self.dcsr.row_indices().len() as u32
    }
}

impl Format for Stored {
    fn empty(types: Types) -> Stored {
        let dcsr = Dcsr::new(0, Vec::new(), Csr::clone(&types.csr()));
        let dcsr = dcsr.unwrap_or_else(|_| unreachable!("an empty matrix is valid"));
        Stored { dcsr, filled: Vec::new() }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dcsr.rows(), self.dcsr.cols())
    }

    fn padded_entries(&self) -> usize {
        self.dcsr.nnz()
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        let stored = self.dcsr.stored_rows();
        Arrays::new()
            .add_offsets("row_offsets", stored.row_offsets())
            .add("col_indices", stored.col_indices())
            .add_values("values", stored.values())
            .add("row_indices", self.dcsr.row_indices())
            .add("filled", &self.filled)
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        vec![("count", self.count()), ("rows_of_y", self.dcsr.rows() as u32)]
    }
}

fn form(threads: u32) -> Form<Stored> {
    Form::new("spmv_dcsr", include_str!("../../../kernels/dcsr.cu"))
        .with("THREADS", threads)
        .with("UNROLL", UNROLL)
        .with("RESIDENT", 5)
}

pub(super) fn forms() -> Vec<AnyForm> {
    THREADS.map(|threads| form(threads).any()).into()
}

impl Family<Cuda> for DcsrFamily {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let stored = Stored::of(matrix)?;
        let mean = matrix.nnz().div_ceil((stored.count() as usize).max(1));
        // As few as cover a row of mean length in about one round.
        let wanted = mean.div_ceil(UNROLL as usize) as u32;
        let threads = THREADS.into_iter().find(|&threads| threads >= wanted).unwrap_or(32);
        let most = (u64::from(stored.count()) * u64::from(threads)).max(matrix.rows() as u64);
        let pass = Pass::new(device, form(threads), Grid::Resident(most), &())?;
        Ok(Arc::new(Product::<T>::new("dcsr", device, &stored, [pass], reserve)?))
    }
}

/// The numbers that the kernel for several columns takes.
const NUMBERS: [&str; 3] = ["count", "rows", "columns"];

fn several_kind() -> Kind {
    let text = include_str!("../../../kernels/spmm/dcsr.cu");
    Kind { name: "spmm_dcsr", text, defines: Vec::new(), block: BLOCK, owns_all_rows: false }
}

/// A warp for each row with entries.
struct ByStoredRows {
    count: u32,
    rows: u32,
}

impl Schedule for ByStoredRows {
    fn launches(&self, _: &Cuda, k: usize, _: usize) -> Result<Vec<Launch>> {
        let ByStoredRows { count, rows } = *self;
        let columns = k as u32;
        // A thread for each element of C clears the empty rows.
        let threads = (u64::from(count) * 32).max(u64::from(rows) * u64::from(columns));
        let numbers = NUMBERS.into_iter().zip([count, rows, columns]).collect();
        Ok(vec![Launch::new(several_kind(), numbers, grid(threads.div_ceil(u64::from(BLOCK))))])
    }
}

impl Family<Cuda> for SpmmDcsr {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        _: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let stored = Stored::of(matrix)?;
        let schedule = ByStoredRows { count: stored.count(), rows: matrix.rows() as u32 };
        Ok(Arc::new(SeveralColumns::<T, _>::new(device, &stored, schedule, 1, reserve)?))
    }
}

/// Returns the kernel for several columns in every form.
pub(super) fn sources() -> Vec<KernelSource> {
    use Real::{F32, F64};
    let types = [(F64, Some(F64), false), (F32, None, true), (F64, Some(F32), true), (F32, Some(F32), false)];
    let types = types.map(|(scalar, value, wide)| Types::new(scalar, value, wide));
    types.map(|types| source_of::<Stored, ()>(&several_kind(), types, &NUMBERS)).into()
}
