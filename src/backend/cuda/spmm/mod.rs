//! C = alpha A B + beta C for B and C with several columns, by the plan that suits the matrix
//! and the number of columns.
//!
//! | plan | format | where an element of B comes from |
//! |---|---|---|
//! | `rows` | CSR, four entries together | L1 or L2, for each entry |
//! | `staged` | entries by tile of rows and chunk of B | shared memory, copied once for each tile |
//! | `blocks` | blocks of R x C | L1 or L2, once for R rows |
//! | `tensor` | fragments of 8 x 4 (double precision) | L1 or L2, once for 16 rows; multiplied by tensor cores |
//! | `tf32x3` | all elements (single precision) | shared memory, in parts of 11 bits, multiplied by tensor cores; zeros as in `dense` |
//! | `dense` | all elements | cuBLAS; an element that is not stored is multiplied as a zero |
//!
//! `plan=auto` estimates the time of each (`plan.rs`) and takes the least. A plan stores the matrix in its
//! format when a number of columns first needs it. Results do not depend on the run, but the order of a sum
//! depends on the plan and on the number of columns: a column alone and among others may differ in rounding.

mod elements;
mod fragments;
mod items;
mod plan;
pub(in crate::backend::cuda) mod product;
mod quads;
mod schedule;
mod staged;
mod tiles;

use crate::backend::cuda::check_columns;
use crate::backend::cuda::dense;
use crate::backend::cuda::form::{Ending, Real, Types};
use crate::backend::cuda::new_values::Places;
use crate::backend::{Family, Host, Refusal, SharedOperator};
use crate::device::cuda::modules::KernelSource;
use crate::device::cuda::nvrtc::Nvrtc;
use crate::device::cuda::{CudaSlots, CudaVector};
use crate::device::{Cuda, Op};
use crate::error::{Error, GpuError, Result};
use crate::format::Csr;
use crate::format::blocked::blocked;
use crate::format::narrow::narrowest;
use crate::operator::{Cost, DotInto, LinearOperator};
use crate::parallel::lock;
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use elements::Elements;
use fragments::Fragments;
use plan::{Estimate, Machine, Plan, Traits, best_stage, estimates};
use product::{SeveralColumns, source_ending, source_of};
use quads::Quads;
use schedule::{ByBlocks, ByFragments, ByItems, BySplit, ByTiles, Pieces, Slice, Stage};
use staged::{Cut, Staged};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tiles::Tiles;

/// Parameters of the backend.
pub(crate) const PARAMS: &[Param] = &[Param::word(
    "plan",
    &["auto", "rows", "staged", "blocks", "tensor", "tf32x3", "dense"],
    "rows: B from the caches; staged: B in shared memory; blocks: dense blocks; tensor: 8 x 4 for tensor cores, \
     f64; tf32x3: all elements, f32; dense: cuBLAS; auto estimates",
)];

/// The family of the backend `spmm`.
pub(crate) struct SpmmFamily;

/// A matrix with the forms that its plans have needed so far.
struct Spmm<T: Scalar> {
    device: Cuda,
    matrix: Arc<Csr>,
    traits: Traits,
    machine: Machine,
    /// The plan that the user named.
    named: Option<String>,
    built: Mutex<Vec<(Plan, SharedOperator<Cuda, T>)>>,
    /// Bytes that must stay free when the first plan is stored.
    reserve: AtomicU64,
    /// Whether memory did not suffice for the plan `tf32x3`, which stores all elements.
    lacks_memory: AtomicBool,
}

impl Family<Cuda> for SpmmFamily {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, params: &Params, width: usize) -> std::result::Result<(), Refusal> {
        match params.word("plan") {
            Some("dense") => dense::DenseFamily::check(matrix, &Params::default(), width),
            Some("tf32x3") if width != size_of::<f32>() => {
                Err(Refusal::new("double precision by plan tf32x3", "use plan auto, or precision f32"))
            }
            Some("tf32x3") if !Elements::fit(matrix) => Err(Refusal::new(
                format!("a matrix of {} x {} by plan tf32x3", matrix.rows(), matrix.cols()),
                format!(
                    "it stores all values of rows in multiples of 128 and columns in multiples of 32, at least one and at most {}; entries must not repeat, and single precision must represent each exactly. Use plan auto",
                    dense::MOST
                ),
            )),
            Some("tensor") if width != size_of::<f64>() => {
                Err(Refusal::new("single precision by plan tensor", "use plan auto, or precision f64"))
            }
            _ => Ok(()),
        }
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        let named = params.word("plan").filter(|&plan| plan != "auto").map(str::to_owned);
        let fits = dense::DenseFamily::check(matrix, &Params::default(), size_of::<T>()).is_ok();
        let traits = Traits::of(matrix, fits && dense::require_library().is_ok());
        // Other GPUs have few tensor cores for double precision, or none.
        let tensor = matches!(device.arch(), 80 | 90 | 100);
        let (shared, tf32) = (device.shared_memory()? as usize, has_tf32(device));
        if params.word("plan") == Some("tf32x3") && !tf32 {
            return Err(Error::Unsupported {
                backend: "spmm",
                device: "cuda",
                what: "plan tf32x3 on another GPU than an H100, H200 or GH200, or with an NVRTC older than CUDA 12".to_owned(),
                hint: "use plan auto".to_owned(),
            });
        }
        let machine = Machine { size: device.gpu_size(), shared, tensor, tf32 };
        // Values that single precision represents exactly take half the bytes.
        let matrix = narrowest(matrix);
        let (device, built, lacks_memory) = (device.clone(), Mutex::default(), AtomicBool::new(false));
        let reserve = reserve.into();
        Ok(Arc::new(Spmm::<T> { device, matrix, traits, machine, named, built, reserve, lacks_memory }))
    }
}

impl<T: Scalar> Spmm<T> {
    /// Returns the estimates of all plans for k columns, the fastest first.
    fn estimates(&self, k: usize) -> Vec<Estimate> {
        let tf32 = self.machine.tf32 && !self.lacks_memory.load(Ordering::Relaxed);
        estimates(&self.traits, &Machine { tf32, ..self.machine }, k, size_of::<T>())
    }

    /// Returns the plan for k columns.
    fn plan(&self, k: usize) -> Result<Plan> {
        let best = || self.estimates(k)[0].plan;
        let stage = || {
            best_stage(&self.traits, &self.machine, k, size_of::<T>()).ok_or_else(|| Error::Unsupported {
                backend: "spmm",
                device: "cuda",
                what: format!("plan staged with {} bytes of shared memory", self.machine.shared),
                hint: "use plan rows".to_owned(),
            })
        };
        Ok(match self.named.as_deref() {
            Some("rows") => Plan::Rows,
            Some("staged") => Plan::Staged(stage()?),
            Some("blocks") => Plan::Blocks,
            Some("tensor") => Plan::Tensor,
            Some("tf32x3") => Plan::Tf32x3,
            Some("dense") => Plan::Dense,
            _ => best(),
        })
    }

    /// Returns the operator of the plan for k columns; builds it on the first call.
    fn operator(&self, k: usize) -> Result<SharedOperator<Cuda, T>> {
        let plan = self.plan(k)?;
        let mut built = lock(&self.built);
        if let Some((_, operator)) = built.iter().find(|(of, _)| *of == plan) {
            return Ok(Arc::clone(operator));
        }
        // When later plans are stored, the vectors are allocated already.
        let operator = self.build(plan, k, self.reserve.swap(0, Ordering::Relaxed))?;
        built.push((plan, Arc::clone(&operator)));
        Ok(operator)
    }

    fn build(&self, plan: Plan, k: usize, reserve: u64) -> Result<SharedOperator<Cuda, T>> {
        let (device, matrix) = (&self.device, &self.matrix);
        let shape = (matrix.rows(), matrix.cols());
        Ok(match plan {
            Plan::Rows => {
                let quads = Quads::of(matrix)?;
                let pieces = Pieces::of(&quads.items);
                let (items, mean) = (quads.items.list.len(), quads.items.mean);
                let schedule = ByItems { items, mean, pieces, scattered: self.traits.scattered() };
                let product = SeveralColumns::<T, _>::new(device, &quads, schedule, k, reserve)?;
                let of = Arc::clone(matrix);
                let places = Places::new(move || Quads::places(&of));
                Arc::new(product.with_places(matrix.nnz(), places))
            }
            Plan::Staged(stage) => {
                let staged = Staged::of(matrix, Cut { tile: stage.tile(), chunk: stage.chunk })?;
                let schedule = ByTiles { stage, shape };
                Arc::new(SeveralColumns::<T, _>::new(device, &staged, schedule, k, reserve)?)
            }
            Plan::Blocks => {
                let block = self.traits.block.map_or((2, 2), |block| (block.size[0], block.size[1]));
                let tiles = Tiles::of(blocked(matrix, block)?)?;
                let pieces = Pieces::of(&tiles.items);
                let (items, mean) = (tiles.items.list.len(), tiles.items.mean);
                let schedule = ByBlocks { items, mean, pieces, block, shape };
                Arc::new(SeveralColumns::<T, _>::new(device, &tiles, schedule, k, reserve)?)
            }
            Plan::Tensor => {
                let fragments = Fragments::of(matrix)?;
                let (items, pieces) = (fragments.items.list.len(), Pieces::of(&fragments.items));
                let schedule = ByFragments { items, pieces, rows: shape.0 };
                Arc::new(SeveralColumns::<T, _>::new(device, &fragments, schedule, k, reserve)?)
            }
            Plan::Tf32x3 => {
                let schedule = BySplit { shape, multiprocessors: self.machine.size.multiprocessors };
                Arc::new(SeveralColumns::<T, _>::new(device, &Elements::of(matrix)?, schedule, k, reserve)?)
            }
            Plan::Dense => dense::DenseFamily::build::<T>(device, matrix, &Params::default(), reserve)?,
        })
    }
}

impl<T: Scalar> LinearOperator<Cuda, T> for Spmm<T> {
    fn shape(&self) -> (usize, usize) {
        (self.matrix.rows(), self.matrix.cols())
    }

    fn prepare(&self, device: &Cuda, k: usize) -> Result<()> {
        let prepared = self.operator(k).and_then(|operator| operator.prepare(device, k));
        let lacking = matches!(prepared, Err(Error::Gpu(GpuError::DeviceMemory { .. })));
        if !lacking || self.named.is_some() || self.plan(k)? != Plan::Tf32x3 {
            return prepared;
        }
        log::info!("memory does not suffice for plan tf32x3, which is the fastest by estimate");
        self.lacks_memory.store(true, Ordering::Relaxed);
        lock(&self.built).retain(|(plan, _)| *plan != Plan::Tf32x3);
        self.operator(k)?.prepare(device, k)
    }

    fn set_values(&self, device: &Cuda, values: &CudaVector<T>) -> Result<bool> {
        if self.named.as_deref() != Some("rows") {
            // A plan that is built later would have the old values.
            return Ok(false);
        }
        let built = lock(&self.built);
        let mut set = built.iter().map(|(_, operator)| operator.set_values(device, values));
        set.try_fold(!built.is_empty(), |all, set| Ok(all && set?))
    }

    fn plan_of(&self, k: usize) -> Option<String> {
        let plan = self.plan(k).ok()?;
        let all = self.estimates(k);
        let times = all.iter().map(|one| format!("{} {:.1} us", one.plan.name(), 1e6 * one.seconds));
        let (times, density) = (times.collect::<Vec<_>>().join(", "), self.traits.density());
        Some(format!("{} (density {density:.2e}; estimated: {times})", plan.name()))
    }

    fn apply(
        &self,
        device: &Cuda,
        alpha: f64,
        x: &CudaVector<T>,
        beta: f64,
        y: &mut CudaVector<T>,
    ) -> Result<()> {
        let k = check_columns(device, LinearOperator::<Cuda, T>::shape(self), x, y)?;
        self.operator(k)?.apply(device, alpha, x, beta, y)
    }

    fn apply_dot(
        &self,
        device: &Cuda,
        x: &CudaVector<T>,
        y: &mut CudaVector<T>,
        slots: &mut CudaSlots,
        dot: &DotInto,
        then: &[Op],
    ) -> Result<()> {
        let k = check_columns(device, LinearOperator::<Cuda, T>::shape(self), x, y)?;
        self.operator(k)?.apply_dot(device, x, y, slots, dot, then)
    }

    fn cost(&self) -> Cost {
        self.cost_of(1)
    }

    /// Counts the arrays of the plan for k columns, or, before the operator is prepared for
    /// them, of the first plan.
    fn cost_of(&self, k: usize) -> Cost {
        let plan = self.plan(k).ok();
        let built = lock(&self.built);
        let of_plan = built.iter().find(|(of, _)| Some(*of) == plan).or(built.first());
        of_plan.map_or(Cost::default(), |(_, operator)| operator.cost_of(k))
    }

    fn storage(&self) -> u64 {
        lock(&self.built).iter().map(|(_, operator)| operator.storage()).sum()
    }
}

/// Returns whether the kernel of `tf32x3` runs: its instructions are those of one architecture,
/// and NVRTC must know them.
fn has_tf32(device: &Cuda) -> bool {
    device.arch() == 90 && Nvrtc::get().is_ok_and(|nvrtc| nvrtc.version() >= (12, 0))
}

/// Returns the kernels in forms that together cover every kind of lanes, packs, parts and types.
pub(super) fn sources() -> Vec<KernelSource> {
    use Real::{F32, F64};
    let types = [(F64, Some(F64)), (F32, Some(F32)), (F64, Some(F32)), (F32, None)];
    let types = types.map(|(scalar, value)| Types::new(scalar, value, false));
    let slice = |lanes, packs, aligned| Slice { lanes, packs, aligned };
    let mut all = Vec::new();
    for (slice, parts) in [
        (slice(1, 1, false), 1),
        (slice(2, 1, true), 8),
        (slice(8, 1, true), 4),
        (slice(16, 1, false), 16),
        (slice(16, 2, true), 2),
        (slice(32, 2, true), 8),
        (slice(32, 1, false), 1),
    ] {
        let kind = schedule::rows_kind(slice, parts);
        all.extend(types.map(|types| source_of::<Quads, Pieces>(&kind, types, &schedule::ROWS_NUMBERS)));
    }
    for (pairs, aligned, ending) in
        [(1, true, Ending::Plain), (2, true, Ending::Partials), (4, false, Ending::Partials)]
    {
        let kind = schedule::fragments_kind(pairs, aligned);
        let of = |types: &Types| {
            source_ending::<Fragments, Pieces>(&kind, *types, &schedule::FRAGMENTS_NUMBERS, ending)
        };
        all.extend([&types[0], &types[2]].map(of));
    }
    let split = [
        schedule::split_kind(),
        schedule::tf32x3_kind(true),
        schedule::tf32x3_kind(false),
        schedule::pieces_kind(),
    ];
    for (kind, numbers) in
        split.iter().zip([&schedule::SPLIT_NUMBERS[..]; 3].into_iter().chain([&schedule::PIECES_NUMBERS[..]]))
    {
        all.push(source_of::<Elements, BySplit>(kind, types[1], numbers));
    }
    for types in &types[..2] {
        all.push(source_of::<Quads, Pieces>(&schedule::pieces_kind(), *types, &schedule::PIECES_NUMBERS));
        all.push(source_of::<Tiles, Pieces>(&schedule::pieces_kind(), *types, &schedule::PIECES_NUMBERS));
    }
    for (slice, height, parts, buffers) in [
        (slice(8, 1, true), 4, 1, 2),
        (slice(8, 2, true), 2, 1, 2),
        (slice(8, 1, false), 1, 4, 1),
        (slice(1, 1, false), 1, 4, 2),
    ] {
        let stage = Stage { slice, height, parts, chunk: 64, buffers };
        all.extend(
            types.map(|types| source_of::<Staged, ()>(&stage.kind(), types, &schedule::STAGED_NUMBERS)),
        );
    }
    for (slice, parts, block, cut) in [
        (slice(1, 1, false), 32, (3, 3), false),
        (slice(8, 1, true), 1, (4, 4), false),
        (slice(32, 4, true), 1, (4, 4), true),
        (slice(32, 2, true), 1, (8, 8), false),
        (slice(32, 2, false), 1, (6, 5), true),
        (slice(16, 1, true), 2, (7, 7), false),
    ] {
        let kind = schedule::blocks_kind(slice, parts, block, cut);
        let stored = &types[..3];
        all.extend(
            stored.iter().map(|types| source_of::<Tiles, Pieces>(&kind, *types, &schedule::BLOCKS_NUMBERS)),
        );
    }
    all
}
