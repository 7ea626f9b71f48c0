//! The four kernels of the block-band study: tasks of equally many blocks, made beforehand,
//! each for one thread block.
//!
//! | backend | how a thread block sums a block row |
//! |---|---|
//! | `bsr-row-major` | a thread per value; each product is added to shared memory atomically |
//! | `bsr-private` | a thread per value; R sums per thread, in local memory |
//! | `bsr-team` | R C threads per block, each with one position of the block and one sum |
//! | `bsr-unrolled` | a thread per column of a block, several rows at once in registers: the study's fastest |
//!
//! A separate kernel scales y, and tasks add to it atomically, so bits may differ from run to run. The
//! kernels are implemented as the study describes them, costs included. The launch has as many thread blocks
//! as the GPU holds at once (from the registers of the compiled kernel) times `over`; each gets `chunks`
//! tasks. The study limits a thread to 32 registers, except in the last kernel. Its kernels take the size of
//! a block as numbers, which is `size=runtime`; by default the size is compiled. Indices within a block row
//! have 32 bits, as in the study.

use crate::backend::blocks::{SIZE, any_block, is_compiled, named_or_found};
use crate::backend::cuda::arrays::Arrays;
use crate::backend::cuda::compressed::check_size;
use crate::backend::cuda::form::{AnyForm, Ending, Form, Format, Grid, Real, Types};
use crate::backend::cuda::product::{Pass, Product};
use crate::backend::cuda::{number, numbers};
use crate::backend::{Family, Refusal, SharedOperator};
use crate::device::Cuda;
use crate::error::{Error, Result};
use crate::format::blocked::stored_bytes;
use crate::format::bsr::BsrParts;
use crate::format::{Bsr, Csr, Offsets, Values};
use crate::params::{Param, Params};
use crate::scalar::Scalar;
use std::marker::PhantomData;
use std::sync::Arc;

const BLOCK: Param = any_block(&["auto", "5x5", "3x3", "8x8"]);
const fn threads(values: &'static [&'static str]) -> Param {
    Param::word("threads", values, "threads in a thread block")
}
const fn over(values: &'static [&'static str]) -> Param {
    let summary = "thread blocks launched, relative to those that the GPU holds at once";
    Param::word("over", values, summary)
}
const CHUNKS: Param = Param::word("chunks", &["1", "2", "8"], "tasks for each thread block");
const fn registers(values: &'static [&'static str]) -> Param {
    Param::word("registers", values, "the most registers of a thread; any: no limit")
}

/// A variant of the kernel.
pub(crate) trait Variant: 'static {
    /// The backend's name.
    const NAME: &'static str;
    /// The macro that selects the variant.
    const DEFINE: &'static str;
    /// The variant's parameters; the defaults are the study's best configuration.
    const PARAMS: &'static [Param];
    /// Returns the least number of threads in a thread block for blocks of `_values` values.
    fn least_threads(_values: usize) -> usize {
        1
    }
}

/// Threads go through the values in memory order and add to shared memory.
pub(crate) struct RowMajor;
/// Threads go through the values in memory order with private sums.
pub(crate) struct Private;
/// As many threads as a block has values.
pub(crate) struct Team;
/// One thread per column of a block.
pub(crate) struct Unrolled;

impl Variant for RowMajor {
    const NAME: &'static str = "bsr-row-major";
    const DEFINE: &'static str = "ROW_MAJOR";
    const PARAMS: &'static [Param] = &[
        BLOCK,
        threads(&["32", "64", "128", "256", "512", "1024"]),
        over(&["1", "2", "4", "8", "16", "1/2", "1/4"]),
        CHUNKS,
        SIZE,
        registers(&["32", "64", "any"]),
    ];
}

impl Variant for Private {
    const NAME: &'static str = "bsr-private";
    const DEFINE: &'static str = "PRIVATE";
    const PARAMS: &'static [Param] = &[
        BLOCK,
        threads(&["32", "64", "128", "256", "512", "1024"]),
        over(&["1/2", "1/4", "1", "2", "4", "8", "16"]),
        CHUNKS,
        SIZE,
        registers(&["32", "64", "any"]),
    ];
}

impl Variant for Team {
    const NAME: &'static str = "bsr-team";
    const DEFINE: &'static str = "TEAM";
    const PARAMS: &'static [Param] = &[
        BLOCK,
        threads(&["128", "32", "64", "256", "512", "1024"]),
        over(&["1", "2", "4", "8", "16", "1/2", "1/4"]),
        CHUNKS,
        SIZE,
        registers(&["32", "64", "any"]),
    ];
    fn least_threads(values: usize) -> usize {
        values
    }
}

impl Variant for Unrolled {
    const NAME: &'static str = "bsr-unrolled";
    const DEFINE: &'static str = "UNROLLED";
    const PARAMS: &'static [Param] = &[
        BLOCK,
        threads(&["128", "32", "64", "256", "512", "1024"]),
        over(&["8", "1", "2", "4", "16", "1/2", "1/4"]),
        CHUNKS,
        SIZE,
        registers(&["any", "32", "64"]),
        Param::word("rows", ROWS_AT_ONCE, "rows of a block that a thread sums at once"),
    ];
}

const ROWS_AT_ONCE: &[&str] = &["8", "1", "2", "4", "5", "16"];

/// A variant as a family of the registry.
pub(crate) struct Tasks<V>(PhantomData<V>);

/// Returns the value of a parameter that the user set, or its default.
fn value_or_default<'a, V: Variant>(params: &'a Params, name: &str) -> &'a str {
    let default = || V::PARAMS.iter().find(|param| param.name == name).map_or("", |param| param.words()[0]);
    params.word(name).unwrap_or_else(default)
}

/// Parses `a/b` into numbers.
fn ratio(typed: &str) -> (u32, u32) {
    let (above, below) = typed.split_once('/').unwrap_or((typed, "1"));
    (above.parse().unwrap_or(1), below.parse().unwrap_or(1))
}

fn form(name: &'static str, variant: &'static str, block: (usize, usize), threads: u32) -> Form<BlockTasks> {
    Form::new(name, include_str!("../../../../kernels/studies/bsr_tasks.cu"))
        .in_blocks_of(threads)
        .without_dots()
        .with("HEIGHT", block.0 as u32)
        .with("WIDTH", block.1 as u32)
        .with(variant, 1)
}

/// Returns the kernel of a variant; with `registers` 0 registers are not limited.
fn products(
    variant: &'static str,
    block: (usize, usize),
    compiled: bool,
    threads: u32,
    registers: u32,
    rows: u32,
) -> Form<BlockTasks> {
    let form = form("spmv_bsr_tasks", variant, block, threads).with("ROWS_AT_ONCE", rows);
    let form = if compiled { form } else { form.with("RUN_TIME_SIZE", 1) };
    if registers == 0 { form } else { form.with("REGISTERS", registers) }
}

/// Returns the kernel that scales y, with the parameters of any variant.
fn scale(threads: u32) -> Form<BlockTasks> {
    form("spmv_bsr_scale", Unrolled::DEFINE, (1, 1), threads).with("ROWS_AT_ONCE", 1)
}

/// Returns every variant with a block size that the study describes and with a size that needs the general
/// code, and with sizes that are compiled and that are not.
pub(super) fn forms() -> Vec<(&'static str, AnyForm)> {
    let both = |name, variant, threads, registers, rows| {
        [((5, 5), true), ((13, 3), true), ((5, 5), false)].map(|(block, compiled)| {
            (name, products(variant, block, compiled, threads, registers, rows).any())
        })
    };
    let forms = [
        both(RowMajor::NAME, RowMajor::DEFINE, 32, 32, 8),
        both(Private::NAME, Private::DEFINE, 32, 32, 8),
        both(Team::NAME, Team::DEFINE, 128, 32, 8),
    ];
    let mut forms: Vec<_> = forms.into_iter().flatten().collect();
    forms.extend(numbers(ROWS_AT_ONCE).flat_map(|rows| both(Unrolled::NAME, Unrolled::DEFINE, 128, 0, rows)));
    forms
}

/// Cuts the blocks into tasks: returns the first block of each task and the end of the last,
/// and the block row of each.
fn cut(offsets: &Offsets, tasks: usize) -> (Vec<u64>, Vec<u32>) {
    let rows = offsets.len() - 1;
    let blocks = offsets.get(rows);
    let (mut starts, mut first_rows, mut row) = (Vec::new(), Vec::new(), 0);
    for task in 0..=tasks {
        let start = (blocks as u128 * task as u128 / tasks as u128) as usize;
        while row + 1 < rows && offsets.get(row + 1) <= start {
            row += 1;
        }
        starts.push(start as u64);
        // `build` refuses matrices with more rows.
        first_rows.push(row as u32);
    }
    (starts, first_rows)
}

/// A matrix in blocks, cut into tasks.
struct BlockTasks {
    parts: BsrParts,
    /// The first block of each task, and the end of the last.
    task_blocks: Vec<u64>,
    /// The block row that each task begins in.
    task_rows: Vec<u32>,
}

impl BlockTasks {
    fn of(bsr: Bsr, tasks: usize) -> BlockTasks {
        let (task_blocks, task_rows) = cut(bsr.block_offsets(), tasks);
        BlockTasks { parts: bsr.into_parts(), task_blocks, task_rows }
    }
}

impl Format for BlockTasks {
    fn empty(types: Types) -> BlockTasks {
        let (block_offsets, values) = (types.offsets(), types.values());
        let (rows, cols, block, entries, block_columns) = (0, 0, (1, 1), 0, Vec::new());
        let parts = BsrParts { rows, cols, block, entries, block_offsets, block_columns, values };
        BlockTasks { parts, task_blocks: vec![0], task_rows: vec![0] }
    }

    fn shape(&self) -> (usize, usize) {
        (self.parts.rows, self.parts.cols)
    }

    fn padded_entries(&self) -> usize {
        self.parts.block_columns.len() * self.parts.block.0 * self.parts.block.1
    }

    fn arrays<T: Scalar>(&self) -> Arrays<'_> {
        Arrays::new()
            .add_offsets("block_offsets", &self.parts.block_offsets)
            .add("block_columns", &self.parts.block_columns)
            .add_values("values", &self.parts.values)
            .add("task_blocks", &self.task_blocks)
            .add("task_rows", &self.task_rows)
    }

    fn numbers(&self) -> Vec<(&'static str, u32)> {
        // `build` refuses matrices with more rows; there are few tasks for each thread block of the GPU.
        let tasks = self.task_blocks.len() - 1;
        let (height, width) = self.parts.block;
        let shape = [
            ("rows_of_y", self.parts.rows),
            ("columns_of_x", self.parts.cols),
            ("tasks", tasks),
            ("height", height),
            ("width", width),
        ];
        shape.map(|(name, number)| (name, number as u32)).into()
    }
}

/// Returns the threads in a thread block.
fn threads_of<V: Variant>(params: &Params) -> u32 {
    value_or_default::<V>(params, "threads").parse().unwrap_or(128)
}

/// The parameters that the user requested of a variant.
struct Request {
    products: Form<BlockTasks>,
    block: (usize, usize),
    over: (u32, u32),
    chunks: usize,
}

impl Request {
    fn read<V: Variant>(matrix: &Csr, params: &Params) -> Result<Request> {
        let block = named_or_found(matrix, params, stored_bytes(matrix));
        let threads = threads_of::<V>(params);
        let registers = value_or_default::<V>(params, "registers").parse().unwrap_or(0);
        let rows = number(params, "rows", ROWS_AT_ONCE);
        Ok(Request {
            products: products(V::DEFINE, block, is_compiled(params), threads, registers, rows),
            block,
            over: ratio(value_or_default::<V>(params, "over")),
            chunks: ratio(value_or_default::<V>(params, "chunks")).0 as usize,
        })
    }

    /// Returns the number of thread blocks to launch.
    fn blocks(&self, device: &Cuda, types: Types) -> Result<u32> {
        let kernel = device.kernel(&self.products.source(types, Ending::Plain))?;
        let (above, below) = self.over;
        Ok((device.blocks_for(&kernel, u64::MAX) * above / below).max(1))
    }
}

impl<V: Variant> Family<Cuda> for Tasks<V> {
    const ADDS_REPEATS: bool = false;

    fn check(matrix: &Csr, params: &Params, _: usize) -> std::result::Result<(), Refusal> {
        let threads = threads_of::<V>(params);
        let fits = |(height, width): (usize, usize)| V::least_threads(height * width) <= threads as usize;
        // Without a size from the user, the search is skipped if even its largest size fits.
        if !params.has("block") && fits((8, 8)) {
            return Ok(());
        }
        let block @ (height, width) = named_or_found(matrix, params, stored_bytes(matrix));
        if fits(block) {
            return Ok(());
        }
        Err(Refusal::new(
            format!("blocks of {height} x {width} by {threads} threads"),
            format!(
                "it needs a thread for each of {} values; set threads= to more, up to 1024, or use bsr-unrolled",
                height * width
            ),
        ))
    }

    fn build<T: Scalar>(
        device: &Cuda,
        matrix: &Arc<Csr>,
        params: &Params,
        reserve: u64,
    ) -> Result<SharedOperator<Cuda, T>> {
        check_size(matrix)?;
        let request = Request::read::<V>(matrix, params)?;
        check_row(matrix, request.block)?;
        let bsr = Bsr::from_csr(matrix, request.block)?;
        let value = match bsr.values() {
            Values::Ones => None,
            Values::F32(_) => Some(Real::F32),
            Values::F64(_) => Some(Real::F64),
        };
        let wide = matches!(bsr.block_offsets(), Offsets::U64(_));
        let blocks = request.blocks(device, Types::new(Real::of::<T>(), value, wide))?;
        let tasks = BlockTasks::of(bsr, blocks as usize * request.chunks);
        let scale = scale(request.products.kind.block);
        let scale = Pass::new(device, scale, Grid::Resident(matrix.rows() as u64), &())?;
        let products = Pass::new(device, request.products, Grid::Blocks(blocks), &())?;
        Ok(Arc::new(Product::<T>::new(V::NAME, device, &tasks, [scale, products], reserve)?))
    }
}

/// Refuses blocks so high that the kernels could not count the values of a block row.
fn check_row(matrix: &Csr, (height, width): (usize, usize)) -> Result<()> {
    // A thread adds the number of threads of its block to the last index.
    const MOST: u64 = u32::MAX as u64 - 1024;
    let values = height as u64 * (matrix.cols() + width) as u64;
    if values <= MOST {
        return Ok(());
    }
    Err(Error::TooLarge {
        what: "the number of values of a block row",
        value: u128::from(values),
        limit: u128::from(MOST),
        container: "the 32-bit indices of kernels over tasks",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_equally_many_blocks_and_the_row_of_their_first_block() {
        let offsets = Offsets::narrowest(vec![0, 0, 4, 4, 5, 12, 12]);
        let (starts, rows) = cut(&offsets, 4);
        assert_eq!(starts, [0, 3, 6, 9, 12]);
        assert_eq!(rows, [1, 1, 4, 4, 5]);
        let (starts, rows) = cut(&Offsets::narrowest(vec![0, 1]), 3);
        assert_eq!((starts, rows), (vec![0, 0, 0, 1], vec![0; 4]), "more tasks than blocks");
    }
}
