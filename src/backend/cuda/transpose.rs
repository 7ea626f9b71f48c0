//! The transpose of a graph on the GPU: a stable radix sort of the links by target.
//!
//! The offsets of the transpose come to the host, and for a graph with weights also its columns and weights.
//! The columns of a graph without weights stay on the device if only operators and certificates there read
//! them. If the host needs them after all, it transposes the graph itself.

use super::arrays::DeviceArrays;
use super::resident::{self, Resident};
use crate::backend::Transposed;
use crate::device::Cuda;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::{InKernels, Parameter};
use crate::error::Result;
use crate::format::{Csr, Offsets, Pattern, Values};
use bytemuck::Pod;
use std::sync::Arc;

const WHAT: &str = "the transpose of the graph";

/// Entries of a thread in a tile.
const ITEMS: usize = 16;
const TILE: usize = BLOCK as usize * ITEMS;
/// Bits of a digit.
const DIGIT: usize = 8;
const DIGITS: usize = 1 << DIGIT;
/// The most blocks that stride over rows or entries.
const MOST_BLOCKS: usize = 4096;

/// The kernels of kernels/transpose.cu.
#[derive(Clone, Copy)]
enum Step {
    Sources,
    Number,
    Count,
    AddUp,
    Shift,
    Move,
    Offsets,
    Weights,
}

impl Step {
    /// The steps for a graph without weights.
    const USUAL: [Step; 6] =
        [Step::Sources, Step::Count, Step::AddUp, Step::Shift, Step::Move, Step::Offsets];

    /// Returns the kernel, for a graph with weights in double precision if it takes weights.
    fn source(self) -> KernelSource {
        self.source_for::<f64>()
    }

    /// Returns the kernel, for a graph with weights of type `V`.
    fn source_for<V: InKernels>(self) -> KernelSource {
        let array = |name| Parameter::scratch::<u32>(name);
        let count = |name| Parameter::value::<u64>(name);
        let shift = Parameter::value::<u32>("shift");
        let (name, parameters) = match self {
            Step::Sources => ("link_sources", {
                let of_graph = [array("offsets"), array("targets"), array("sources"), array("loops")];
                [&of_graph[..], &[count("rows")]].concat()
            }),
            Step::Number => ("link_numbers", vec![array("origins"), count("entries")]),
            Step::Count => ("link_digits", vec![array("targets"), array("numbers"), count("entries"), shift]),
            Step::AddUp => ("sums_of_tiles", vec![array("numbers"), array("sums"), count("count")]),
            Step::Shift => ("sums_before_tiles", vec![array("numbers"), array("sums"), count("count")]),
            Step::Move => {
                let before = [array("targets"), array("origins"), array("numbers")];
                let after = [array("targets_after"), array("origins_after"), count("entries"), shift];
                ("move_links", [&before[..], &after[..]].concat())
            }
            Step::Offsets => {
                let parameters = [array("targets"), array("offsets_after"), count("entries"), count("rows")];
                ("link_offsets", parameters.to_vec())
            }
            Step::Weights => {
                let weights = |name| Parameter::scratch::<V>(name);
                let before = [array("origins"), array("sources"), weights("weights")];
                let after = [array("sources_after"), weights("weights_after"), count("entries")];
                ("link_weights", [before, after].concat())
            }
        };
        let body = include_str!("../../../kernels/transpose.cu").to_owned();
        let defines = vec![("STEP", (self as u32).to_string()), ("ITEMS", ITEMS.to_string())];
        KernelSource { name: name.to_owned(), body, parameters, defines, k: 1, block: BLOCK }
    }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    let single = Step::Weights.source_for::<f32>();
    [usual_sources(), sources_of_weights(), vec![single]].concat()
}

/// Returns the kernels for a graph without weights.
pub(super) fn usual_sources() -> Vec<KernelSource> {
    Step::USUAL.map(Step::source).into()
}

/// Returns the further kernels for a graph with weights in double precision.
pub(super) fn sources_of_weights() -> Vec<KernelSource> {
    vec![Step::Number.source(), Step::Weights.source()]
}

fn launch<'a>(
    device: &'a Cuda,
    step: Step,
    blocks: usize,
    add: impl FnOnce(&mut Arguments<'a>),
) -> Result<()> {
    launch_source(device, &step.source(), blocks, add)
}

fn launch_source<'a>(
    device: &'a Cuda,
    source: &KernelSource,
    blocks: usize,
    add: impl FnOnce(&mut Arguments<'a>),
) -> Result<()> {
    let kernel = device.kernel(source)?;
    let mut arguments = Arguments::on(device);
    add(&mut arguments);
    arguments.launch(&kernel, blocks as u32)
}

/// Returns whether the device can transpose the graph.
pub(super) fn can_transpose(graph: &Csr) -> bool {
    matches!(graph.row_offsets(), Offsets::U32(_)) && graph.nnz() > 0
}

/// Returns the number of blocks that stride over `count` entries.
fn striding(count: usize) -> usize {
    count.div_ceil(BLOCK as usize).min(MOST_BLOCKS)
}

/// Links by their targets, with their origins: their sources, or their numbers in the graph if
/// they have weights.
struct Links {
    targets: CudaArray<u32>,
    origins: CudaArray<u32>,
}

impl Links {
    fn new(device: &Cuda, entries: usize) -> Result<Links> {
        let array = || device.allocate::<u32>(WHAT, entries);
        Ok(Links { targets: array()?, origins: array()? })
    }
}

/// The links of a graph in the order of the transpose.
struct Sorted {
    /// The offset of each row of the transpose.
    offsets: CudaArray<u32>,
    /// The origin of each link.
    origins: CudaArray<u32>,
    /// The source of each link in the order of the graph, if it has weights.
    sources: Option<CudaArray<u32>>,
    /// The number of links from a vertex to itself.
    loops: CudaArray<u32>,
}

/// Returns the transpose of a graph that [`can_transpose`] accepts. Unless the host reads the columns of a
/// graph without weights, they are on the device only. Fails if `reserve` bytes do not stay free. Calls
/// `meanwhile` before it waits for the device.
pub(super) fn transposed(
    device: &Cuda,
    graph: &Arc<Csr>,
    (reserve, host_reads): (u64, bool),
    meanwhile: &mut dyn FnMut(),
) -> Result<Transposed> {
    let (rows, cols, entries) = (graph.rows(), graph.cols(), graph.nnz());
    let tiles = entries.div_ceil(TILE);
    let of_weights = match graph.values() {
        Values::Ones => 0,
        weights => (8 + weights.width()) * entries,
    };
    // More than all arrays need at once: the operator will need memory beside the copy of the transpose.
    let bytes = 4 * (4 * entries + DIGITS * (tiles + tiles.div_ceil(TILE)) + cols) + of_weights;
    let resident = Resident::of(device, graph, reserve.saturating_add(bytes as u64))?;
    device.require_room(WHAT, bytes as u64, reserve)?;
    let mut sorted = Sorted::of(device, graph, &resident)?;
    let (columns, values, of_values) = match graph.values() {
        Values::Ones => {
            meanwhile();
            (sorted.origins, Values::Ones, None)
        }
        Values::F32(_) => sorted.weights::<f32>(device, &resident, meanwhile)?,
        Values::F64(_) => sorted.weights::<f64>(device, &resident, meanwhile)?,
    };
    let offsets = Offsets::U32(sorted.offsets.to_host()?);
    let repeats = graph.pattern().has_repeats();
    let host_reads = host_reads || of_values.is_some();
    let host_columns = host_reads.then(|| columns.to_host()).transpose()?;
    let copy = resident::written_pattern(sorted.offsets, columns);
    let pattern = match host_columns {
        Some(columns) => Pattern::checked_elsewhere((cols, rows), offsets, columns, repeats),
        None => {
            let (kept, graph) = (Arc::clone(&copy), Arc::clone(graph));
            let later = move || {
                // The copy on the device lives until the host has the columns, too.
                drop(kept);
                columns_of_transpose(&graph)
            };
            Pattern::with_columns_later((cols, rows), offsets, entries, repeats, later)
        }
    };
    let pattern = Arc::new(pattern);
    resident::register(&pattern, &copy);
    let matrix = Arc::new(Csr::with_pattern(pattern, values)?);
    if let Some(of_values) = &of_values {
        resident::register_values(&matrix, of_values);
    }
    let loops = u64::from(sorted.loops.to_host()?[0]);
    Ok(Transposed { matrix, loops, kept: Arc::new((copy, of_values)) })
}

impl Sorted {
    /// Sorts the links of a graph.
    fn of(device: &Cuda, graph: &Csr, resident: &Resident) -> Result<Sorted> {
        let (rows, cols, entries) = (graph.rows(), graph.cols(), graph.nnz());
        let tiles = entries.div_ceil(TILE);
        let numbers = device.allocate::<u32>(WHAT, DIGITS * tiles)?;
        let (mut links, mut sorted) = (Links::new(device, entries)?, Links::new(device, entries)?);
        let (Some(offsets), Some(columns)) = (resident.array::<u32>(0), resident.array::<u32>(1)) else {
            unreachable!("`can_transpose` accepts 32-bit offsets only");
        };
        let sources = match graph.values() {
            Values::Ones => None,
            _ => Some(device.allocate::<u32>(WHAT, entries)?),
        };
        let loops = device.allocate::<u32>(WHAT, 1)?;
        let blocks = rows.div_ceil(BLOCK as usize / 32).min(MOST_BLOCKS);
        launch(device, Step::Sources, blocks, |arguments| {
            arguments.scratch("offsets", &offsets);
            arguments.scratch("targets", &columns);
            arguments.scratch("sources", sources.as_ref().unwrap_or(&links.origins));
            arguments.scratch("loops", &loops);
            arguments.value("rows", rows as u64);
        })?;
        if sources.is_some() {
            launch(device, Step::Number, striding(entries), |arguments| {
                arguments.scratch("origins", &links.origins);
                arguments.value("entries", entries as u64);
            })?;
        }
        let bits = usize::BITS as usize - cols.saturating_sub(1).leading_zeros() as usize;
        for pass in 0..bits.div_ceil(DIGIT).max(1) {
            // The columns of the graph are the targets of its links.
            let targets = if pass == 0 { &columns } else { &links.targets };
            let sizes = (entries, (pass * DIGIT) as u32);
            sort(device, (targets, &links.origins), &sorted, &numbers, sizes)?;
            std::mem::swap(&mut links, &mut sorted);
        }
        let of_transpose = device.allocate::<u32>(WHAT, cols + 1)?;
        launch(device, Step::Offsets, striding(cols + 1), |arguments| {
            arguments.scratch("targets", &links.targets);
            arguments.scratch("offsets_after", &of_transpose);
            arguments.value("entries", entries as u64);
            arguments.value("rows", cols as u64);
        })?;
        Ok(Sorted { offsets: of_transpose, origins: links.origins, sources, loops })
    }

    /// Returns the source of each link and its weight: the latter on the host and on the device. Calls
    /// `meanwhile` before it waits for the device.
    fn weights<V: InKernels + Pod>(
        &mut self,
        device: &Cuda,
        resident: &Resident,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(CudaArray<u32>, Values, Option<Arc<DeviceArrays>>)>
    where
        Values: From<Vec<V>>,
    {
        let entries = self.origins.len();
        let (Some(sources), Some(weights)) = (self.sources.take(), resident.values::<V>()) else {
            unreachable!("the graph has weights of this type");
        };
        let sources_after = device.allocate::<u32>(WHAT, entries)?;
        let weights_after = device.allocate::<V>(WHAT, entries)?;
        launch_source(device, &Step::Weights.source_for::<V>(), striding(entries), |arguments| {
            arguments.scratch("origins", &self.origins);
            arguments.scratch("sources", &sources);
            arguments.scratch("weights", &weights);
            arguments.scratch("sources_after", &sources_after);
            arguments.scratch("weights_after", &weights_after);
            arguments.value("entries", entries as u64);
        })?;
        meanwhile();
        let on_host = Values::from(weights_after.to_host()?);
        Ok((sources_after, on_host, Some(resident::written_values(weights_after))))
    }
}

/// Returns the columns of the transpose of a graph. It runs on one thread: other threads may wait for the
/// columns, and could not do a part of the work.
fn columns_of_transpose(graph: &Csr) -> Vec<u32> {
    let mut places = vec![0; graph.cols() + 1];
    graph.col_indices().iter().for_each(|&target| places[target as usize + 1] += 1);
    (0..graph.cols()).for_each(|target| places[target + 1] += places[target]);
    let mut columns = vec![0; graph.nnz()];
    for row in 0..graph.rows() {
        for &target in graph.row_columns(row) {
            let place: &mut usize = &mut places[target as usize];
            columns[*place] = row as u32;
            *place += 1;
        }
    }
    columns
}

/// Sorts links by a digit of their targets; those with one digit keep their order.
fn sort(
    device: &Cuda,
    (targets, origins): (&CudaArray<u32>, &CudaArray<u32>),
    sorted: &Links,
    numbers: &CudaArray<u32>,
    (entries, shift): (usize, u32),
) -> Result<()> {
    let tiles = entries.div_ceil(TILE);
    launch(device, Step::Count, tiles, |arguments| {
        arguments.scratch("targets", targets);
        arguments.scratch("numbers", numbers);
        arguments.value("entries", entries as u64);
        arguments.value("shift", shift);
    })?;
    add_up(device, numbers, DIGITS * tiles)?;
    launch(device, Step::Move, tiles, |arguments| {
        arguments.scratch("targets", targets);
        arguments.scratch("origins", origins);
        arguments.scratch("numbers", numbers);
        arguments.scratch("targets_after", &sorted.targets);
        arguments.scratch("origins_after", &sorted.origins);
        arguments.value("entries", entries as u64);
        arguments.value("shift", shift);
    })
}

/// Replaces each of `count` numbers by the sum of those before it.
fn add_up(device: &Cuda, numbers: &CudaArray<u32>, count: usize) -> Result<()> {
    let tiles = count.div_ceil(TILE);
    let sums = device.allocate::<u32>(WHAT, tiles)?;
    launch(device, Step::AddUp, tiles, |arguments| {
        arguments.scratch("numbers", numbers);
        arguments.scratch("sums", &sums);
        arguments.value("count", count as u64);
    })?;
    if tiles == 1 {
        return Ok(());
    }
    add_up(device, &sums, tiles)?;
    launch(device, Step::Shift, tiles, |arguments| {
        arguments.scratch("numbers", numbers);
        arguments.scratch("sums", &sums);
        arguments.value("count", count as u64);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_computes_the_columns_of_a_transpose_on_one_thread() {
        for what in ["rmat:scale=9,edges=4000", "uniform:n=300,row=5", "poisson2d:11x13"] {
            let graph = crate::source::load(what).unwrap().matrix;
            assert_eq!(columns_of_transpose(&graph), graph.transposed().unwrap().col_indices(), "{what}");
        }
    }
}
