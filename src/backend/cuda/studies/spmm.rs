//! The five kernels of the study of SpMM (A. Tran, A. Agarwal and R. Ramana, Optimized CUDA kernels for CSR
//! sparse matrix multiplication, 2025): C = alpha A B + beta C, with B and C row-major.
//!
//! `spmm-naive` has a thread for each element of C, and `spmm-warp` a warp for each row, whose lanes
//! stride over the columns. The other three stage the entries of A in shared memory, load and store four
//! columns at once, or both. The study lists dynamic scheduling of warps and tiles of columns as future
//! work; here they are parameters.
//!
//! A row of columns that is no multiple of four is not aligned for packed loads; its columns
//! are then loaded one by one.

use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::columns::Columns;
use crate::backend::cuda::compressed::Compressed;
use crate::backend::cuda::form::{Kind, Real, Types};
use crate::backend::cuda::spmm::product::{ExtraArrays, Launch, Schedule, SeveralColumns, grid, source_of};
use crate::backend::{Family, SharedOperator};
use crate::device::Cuda;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::error::Result;
use crate::format::Csr;
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::sync::Arc;

/// A kernel of the study.
pub(crate) trait Variant: Send + Sync + 'static {
    /// The backend's name.
    const NAME: &'static str;
    /// Whether a warp takes a row; otherwise a thread takes an element of C.
    const WARP: bool = true;
    /// Whether warps stage entries of A in shared memory.
    const STAGES: bool = false;
    /// Whether a lane takes four columns at once.
    const PACKS: bool = false;
}

/// `spmm-naive`.
pub(crate) struct Naive;
/// `spmm-warp`.
pub(crate) struct Warp;
/// `spmm-warp-smem`.
pub(crate) struct WarpSmem;
/// `spmm-warp-vec4`.
pub(crate) struct WarpVec4;
/// `spmm-warp-smem-vec4`.
pub(crate) struct WarpSmemVec4;

impl Variant for Naive {
    const NAME: &'static str = "spmm-naive";
    const WARP: bool = false;
}
impl Variant for Warp {
    const NAME: &'static str = "spmm-warp";
}
impl Variant for WarpSmem {
    const NAME: &'static str = "spmm-warp-smem";
    const STAGES: bool = true;
}
impl Variant for WarpVec4 {
    const NAME: &'static str = "spmm-warp-vec4";
    const PACKS: bool = true;
}
impl Variant for WarpSmemVec4 {
    const NAME: &'static str = "spmm-warp-smem-vec4";
    const STAGES: bool = true;
    const PACKS: bool = true;
}

/// Parameters of the kernels with a warp for each row.
pub(crate) const PARAMS: &[Param] = &[
    Param::word(
        "schedule",
        &["static", "dynamic"],
        "static: warps stride over the rows; dynamic: a warp takes the next row when it is free",
    ),
    Param::word(
        "tile",
        &["all", "32", "64", "128", "256"],
        "columns of B that a warp takes at once; all of them, as in the study, or a tile",
    ),
];

/// The family of a kernel of the study.
pub(crate) struct Spmm<V>(PhantomData<V>);

/// The numbers that the kernels take.
const NUMBERS: [&str; 4] = ["rows", "columns", "tiles", "tile"];

/// Rows with a warp, or elements with a thread, in the order of the matrix.
struct ByRows<V> {
    rows: u32,
    /// Columns of a tile; none for all columns.
    tile: Option<u32>,
    dynamic: bool,
    variant: PhantomData<fn(V)>,
}

/// The counter of dynamic scheduling: the next item, and the number of blocks that have finished.
struct Counter;

impl ExtraArrays for Counter {
    fn arrays<T: Scalar>() -> Arrays<'static> {
        Arrays::new().add_scratch("counter", vec![0_u64; 2])
    }
}

fn kind<V: Variant>(dynamic: bool) -> Kind {
    let number = |on: bool| u32::from(on).to_string();
    let mut defines = vec![("VARIANT", number(V::WARP))];
    let set = [("SMEM", V::STAGES), ("VEC4", V::PACKS), ("DYNAMIC", dynamic)];
    defines.extend(set.into_iter().filter(|&(_, on)| on).map(|(name, on)| (name, number(on))));
    let text = include_str!("../../../../kernels/studies/spmm.cu");
    Kind { name: "spmm_study", text, defines, block: BLOCK, owns_all_rows: false }
}

impl<V: Variant> Schedule for ByRows<V> {
    fn launches(&self, device: &Cuda, k: usize, _: usize) -> Result<Vec<Launch>> {
        /// Blocks that a multiprocessor holds at once, for warps that take one item after the other.
        const RESIDENT: u64 = 8;
        let columns = k as u32;
        let tile = self.tile.unwrap_or(columns).min(columns);
        let tiles = columns.div_ceil(tile);
        let threads = match V::WARP {
            true => u64::from(self.rows) * u64::from(tiles) * 32,
            false => u64::from(self.rows) * u64::from(columns),
        };
        let resident = u64::from(device.multiprocessors()) * RESIDENT;
        let blocks = threads.div_ceil(u64::from(BLOCK));
        let blocks = grid(if self.dynamic { blocks.min(resident) } else { blocks });
        let numbers = NUMBERS.into_iter().zip([self.rows, columns, tiles, tile]).collect();
        Ok(vec![Launch::new(kind::<V>(self.dynamic), numbers, blocks)])
    }

    fn arrays<T: Scalar>(&self, _: usize) -> Arrays<'static> {
        if self.dynamic { Counter::arrays::<T>() } else { Arrays::new() }
    }
}

impl<V: Variant> Family<Cuda> for Spmm<V> {
    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let compressed = Compressed::of(matrix, Columns::Full)?;
        let schedule = ByRows::<V> {
            // `Compressed::of` refuses matrices with more rows.
            rows: matrix.rows() as u32,
            tile: params.word("tile").and_then(|tile| tile.parse().ok()),
            dynamic: params.word("schedule") == Some("dynamic"),
            variant: PhantomData,
        };
        Ok(Arc::new(SeveralColumns::<T, _>::new(device, &compressed, schedule, 1, reserve)?))
    }
}

fn sources_of<V: Variant>(all_types: &[Types]) -> Vec<(&'static str, KernelSource)> {
    let mut all = Vec::new();
    for (i, types) in all_types.iter().enumerate() {
        all.push((V::NAME, source_of::<Compressed, ()>(&kind::<V>(false), *types, &NUMBERS)));
        // The schedule does not depend on types.
        if V::WARP && i == 0 {
            all.push((V::NAME, source_of::<Compressed, Counter>(&kind::<V>(true), *types, &NUMBERS)));
        }
    }
    all
}

fn of_all_variants(types: &[Types]) -> Vec<(&'static str, KernelSource)> {
    let all = [
        sources_of::<Naive>(types),
        sources_of::<Warp>(types),
        sources_of::<WarpSmem>(types),
        sources_of::<WarpVec4>(types),
        sources_of::<WarpSmemVec4>(types),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the kernels in every form, each with the name of the backend that launches it.
pub(in crate::backend::cuda) fn sources() -> Vec<(&'static str, KernelSource)> {
    use Real::{F32, F64};
    let types = [(F64, Some(F64), false), (F32, None, true), (F64, Some(F32), true), (F32, Some(F32), false)];
    of_all_variants(&types.map(|(scalar, value, wide)| Types::new(scalar, value, wide)))
}

/// Returns the kernels in double precision, to compare them with those of the other studies.
pub(in crate::backend::cuda) fn compared() -> Vec<(&'static str, KernelSource)> {
    of_all_variants(&[Types::new(Real::F64, Some(Real::F64), false)])
}
