//! The transpose of a graph without weights, on the GPU: a stable radix sort of the links by target.
//!
//! The offsets of the transpose come to the host, the columns stay on the device, for the operators and certificates that use
//! them there. If the host needs them after all, it transposes the graph itself.

use super::resident::{self, Resident};
use crate::backend::Transposed;
use crate::device::Cuda;
use crate::device::cuda::launch::Arguments;
use crate::device::cuda::memory::CudaArray;
use crate::device::cuda::modules::{BLOCK, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::error::Result;
use crate::format::{Csr, Offsets, Pattern, Values};
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
    Count,
    AddUp,
    Shift,
    Move,
    Offsets,
}

impl Step {
    const ALL: [Step; 6] = [Step::Sources, Step::Count, Step::AddUp, Step::Shift, Step::Move, Step::Offsets];

    fn source(self) -> KernelSource {
        let array = |name| Parameter::scratch::<u32>(name);
        let count = |name| Parameter::value::<u64>(name);
        let shift = Parameter::value::<u32>("shift");
        let (name, parameters) = match self {
            Step::Sources => ("link_sources", {
                let of_graph = [array("offsets"), array("targets"), array("sources"), array("loops")];
                [&of_graph[..], &[count("rows")]].concat()
            }),
            Step::Count => ("link_digits", vec![array("targets"), array("numbers"), count("entries"), shift]),
            Step::AddUp => ("sums_of_tiles", vec![array("numbers"), array("sums"), count("count")]),
            Step::Shift => ("sums_before_tiles", vec![array("numbers"), array("sums"), count("count")]),
            Step::Move => {
                let before = [array("targets"), array("sources"), array("numbers")];
                let after = [array("targets_after"), array("sources_after"), count("entries"), shift];
                ("move_links", [&before[..], &after[..]].concat())
            }
            Step::Offsets => {
                let parameters = [array("targets"), array("offsets_after"), count("entries"), count("rows")];
                ("link_offsets", parameters.to_vec())
            }
        };
        let body = include_str!("../../../kernels/transpose.cu").to_owned();
        let defines = vec![("STEP", (self as u32).to_string()), ("ITEMS", ITEMS.to_string())];
        KernelSource { name: name.to_owned(), body, parameters, defines, k: 1, block: BLOCK }
    }
}

/// Returns the kernels of this module, for ahead-of-time compilation.
pub(super) fn sources() -> Vec<KernelSource> {
    Step::ALL.map(Step::source).into()
}

fn launch<'a>(
    device: &'a Cuda,
    step: Step,
    blocks: usize,
    add: impl FnOnce(&mut Arguments<'a>),
) -> Result<()> {
    let kernel = device.kernel(&step.source())?;
    let mut arguments = Arguments::on(device);
    add(&mut arguments);
    arguments.launch(&kernel, blocks as u32)
}

/// Returns whether the device can transpose the graph.
pub(super) fn can_transpose(graph: &Csr) -> bool {
    let narrow = matches!(graph.row_offsets(), Offsets::U32(_));
    matches!(graph.values(), Values::Ones) && narrow && graph.nnz() > 0
}

/// Links by their targets and sources.
struct Links {
    targets: CudaArray<u32>,
    sources: CudaArray<u32>,
}

impl Links {
    fn new(device: &Cuda, entries: usize) -> Result<Links> {
        let array = || device.allocate::<u32>(WHAT, entries);
        Ok(Links { targets: array()?, sources: array()? })
    }
}

/// Returns the transpose of a graph that [`can_transpose`] accepts; its columns are on the device. Fails if `reserve` bytes do not
/// stay free. Calls `meanwhile` before it waits for the device.
pub(super) fn transposed(
    device: &Cuda,
    graph: &Arc<Csr>,
    reserve: u64,
    meanwhile: &mut dyn FnMut(),
) -> Result<Transposed> {
    let (rows, cols, entries) = (graph.rows(), graph.cols(), graph.nnz());
    let tiles = entries.div_ceil(TILE);
    let bytes = 4 * (4 * entries + DIGITS * (tiles + tiles.div_ceil(TILE)) + cols) as u64;
    let resident = Resident::of(device, graph, reserve.saturating_add(bytes))?;
    let numbers = device.allocate::<u32>(WHAT, DIGITS * tiles)?;
    let (mut links, mut sorted) = (Links::new(device, entries)?, Links::new(device, entries)?);
    let (Some(offsets), Some(columns)) = (resident.array::<u32>(0), resident.array::<u32>(1)) else {
        unreachable!("`can_transpose` accepts 32-bit offsets only");
    };
    let blocks = rows.div_ceil(BLOCK as usize / 32).min(MOST_BLOCKS);
    let loops = device.allocate::<u32>(WHAT, 1)?;
    launch(device, Step::Sources, blocks, |arguments| {
        arguments.scratch("offsets", &offsets);
        arguments.scratch("targets", &columns);
        arguments.scratch("sources", &links.sources);
        arguments.scratch("loops", &loops);
        arguments.value("rows", rows as u64);
    })?;
    let bits = usize::BITS as usize - cols.saturating_sub(1).leading_zeros() as usize;
    for pass in 0..bits.div_ceil(DIGIT).max(1) {
        // The columns of the graph are the targets of its links.
        let targets = if pass == 0 { &columns } else { &links.targets };
        let sizes = (entries, (pass * DIGIT) as u32);
        sort(device, (targets, &links.sources), &sorted, &numbers, sizes)?;
        std::mem::swap(&mut links, &mut sorted);
    }
    let transposed_offsets = device.allocate::<u32>(WHAT, cols + 1)?;
    let blocks = (cols + 1).div_ceil(BLOCK as usize).min(MOST_BLOCKS);
    launch(device, Step::Offsets, blocks, |arguments| {
        arguments.scratch("targets", &links.targets);
        arguments.scratch("offsets_after", &transposed_offsets);
        arguments.value("entries", entries as u64);
        arguments.value("rows", cols as u64);
    })?;
    meanwhile();
    let offsets = Offsets::U32(transposed_offsets.to_host()?);
    let copy = resident::written_pattern(transposed_offsets, links.sources);
    let kept = Arc::clone(&copy);
    let (graph, repeats) = (Arc::clone(graph), graph.pattern().has_repeats());
    let later = move || {
        // The copy on the device lives until the host has the columns, too.
        drop(kept);
        columns_of_transpose(&graph)
    };
    let pattern = Arc::new(Pattern::with_columns_later((cols, rows), offsets, entries, repeats, later));
    resident::register(&pattern, &copy);
    let loops = u64::from(loops.to_host()?[0]);
    Ok(Transposed { matrix: Csr::with_pattern(pattern, Values::Ones)?, loops })
}

/// Returns the columns of the transpose of a graph. It runs on one thread: other threads may wait for the columns, and could not do
/// a part of the work.
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
    (targets, sources): (&CudaArray<u32>, &CudaArray<u32>),
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
        arguments.scratch("sources", sources);
        arguments.scratch("numbers", numbers);
        arguments.scratch("targets_after", &sorted.targets);
        arguments.scratch("sources_after", &sorted.sources);
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
