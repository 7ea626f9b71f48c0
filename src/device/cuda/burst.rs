//! Many steps of a solver in one launch, for systems whose vectors fit into the registers of a GPU.
//!
//! A step on a small system is bound by kernel launches and by the memory latency of its vectors. So if a
//! step consists only of sweeps, and of products with one matrix whose operator supports this, it is recorded
//! as a [`Trace`], and one kernel is generated from the trace, on top of kernels/burst.cuh. Every thread
//! keeps its rows from step to step, the blocks synchronise when a sum or a gathered vector needs it, and
//! scalars never leave the multiprocessor. To a solver, recording and replaying such a step is the same as
//! for any other step. All other steps are recorded as graphs.

mod run;
mod text;

use super::modules::KernelSource;
use super::parameters::{InKernels, Parameter};
use super::{Cuda, CudaVector, SlotPointers, generate};
use crate::device::{Op, Sweep, TRACKS};
use crate::scalar::Scalar;
pub(super) use run::Burst;
use std::collections::BTreeSet;

/// The last parameters of the kernel: the words by which blocks exchange sums, the scalars, and the
/// numbers of rows and steps.
const WORDS: &str = "words";
const LAST_ROUND: &str = "last_round";
const HOME: &str = "home";
const ROWS: &str = "rows";
const TIMES: &str = "times";

const TEXT: &str = include_str!("../../../kernels/burst.cuh");

/// Threads in a block. A multiprocessor has one block.
const BLOCKS: [u32; 2] = [512, 1024];
/// The most blocks of the smaller size. Blocks wait for each other: on an H200 an iteration on 65,536 rows
/// took 7.2 us with 128 of these blocks, and 6.2 us with 64 of the larger ones.
const MOST_SMALL: u32 = 32;
/// The most rows that a thread of the largest block keeps.
const MOST_ROWS: u32 = 4;
/// The most entries of a row that are loaded at once.
const UNROLL: u32 = 8;
/// Bytes of a block's shared memory that are reserved for scalars and sums; these take less.
const RESERVED: u64 = 16 << 10;

/// The host's data of a matrix in slices of 32 rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slices {
    /// The first column and value of each slice.
    pub offsets: Vec<u32>,
    /// The type of the values in CUDA C++ and its width in bytes, if values are stored.
    pub value: Option<(&'static str, usize)>,
}

/// `struct Matrix` of burst.cuh: the addresses of the lengths of rows, the offsets, the
/// columns and the values.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MatrixPointers(pub [u64; 4]);

// SAFETY: `repr(C)` with the fields of `struct Matrix`, four pointers.
unsafe impl InKernels for MatrixPointers {
    const NAME: &'static str = "Matrix";
}

/// A sweep as CUDA C++ text over `w0`, `r0` and so on.
#[derive(Clone, Debug, PartialEq)]
struct Pass {
    name: &'static str,
    writes: Vec<usize>,
    reads: Vec<usize>,
    coefficients: Vec<(String, String)>,
    assignments: Vec<String>,
    /// The vectors among `writes` that the sweep changes.
    targets: BTreeSet<usize>,
    summands: Vec<String>,
    /// The program, if there is any, and whether it can end the run.
    program: Option<(String, bool)>,
    /// The number of iterations that the sweep counts.
    counts: usize,
}

/// One operation of a step. Vectors are indices into the vectors of the trace.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Product { x: usize, y: usize },
    Sweep(Pass),
}

/// A vector of a trace: its address, its rows and the type of its elements in CUDA C++.
#[cfg(test)]
pub(crate) type TracedVector = (u64, usize, &'static str);

/// The operations of a step, recorded while the step ran without launches.
#[derive(Default)]
pub(crate) struct Trace {
    vectors: Vec<u64>,
    rows: Option<usize>,
    scalar: Option<&'static str>,
    slots: Option<(SlotPointers, usize)>,
    matrix: Option<(Slices, MatrixPointers)>,
    actions: Vec<Action>,
    /// The numbers of all sweeps.
    numbers: Vec<f64>,
    /// Why the step cannot run in one launch.
    obstacle: Option<&'static str>,
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    block: u32,
    rows_each: u32,
    blocks: u32,
}

impl Layout {
    /// Returns the layout with the fewest rows for each thread, and then the fewest threads in a block.
    fn of(rows: usize, multiprocessors: u32) -> Option<Layout> {
        let rows = u32::try_from(rows).ok()?.max(1);
        let fits = |&(block, rows_each): &(u32, u32)| {
            let blocks = rows.div_ceil(block * rows_each);
            blocks <= if block == BLOCKS[0] { MOST_SMALL.min(multiprocessors) } else { multiprocessors }
        };
        let all = [(BLOCKS[0], 1)].into_iter().chain((1..=MOST_ROWS).map(|each| (BLOCKS[1], each)));
        let (block, rows_each) = { all }.find(fits)?;
        Some(Layout { block, rows_each, blocks: rows.div_ceil(block * rows_each) })
    }
}

/// Returns the most rows of a matrix that one launch can iterate with.
pub(crate) fn most_rows(device: &Cuda) -> usize {
    (device.multiprocessors() * BLOCKS[1] * MOST_ROWS) as usize
}

impl Trace {
    /// Marks the step as unsuitable for one launch; the first reason is kept.
    pub(crate) fn mark_unsuitable(&mut self, why: &'static str) {
        self.obstacle.get_or_insert(why);
    }

    fn vector<T: Scalar>(&mut self, vector: &CudaVector<T>) -> usize {
        self.index(vector.address(), vector.n(), vector.k(), T::CUDA_NAME)
    }

    fn index(&mut self, address: u64, rows: usize, columns: usize, scalar: &'static str) -> usize {
        if *self.rows.get_or_insert(rows) != rows || columns != 1 {
            self.mark_unsuitable("vectors of several shapes");
        }
        if *self.scalar.get_or_insert(scalar) != scalar {
            self.mark_unsuitable("vectors in several precisions");
        }
        self.vectors.iter().position(|a| *a == address).unwrap_or_else(|| {
            self.vectors.push(address);
            self.vectors.len() - 1
        })
    }

    /// Adds y = A x, with the arrays of A at these addresses.
    pub(crate) fn product<T: Scalar>(
        &mut self,
        matrix: &Slices,
        pointers: MatrixPointers,
        x: &CudaVector<T>,
        y: &CudaVector<T>,
    ) {
        let (x, y) = (self.vector(x), self.vector(y));
        self.multiply(matrix, pointers, x, y);
    }

    /// Returns the most iterations that a step counts.
    fn counted(&self) -> usize {
        let counts = self.actions.iter().map(|action| match action {
            Action::Product { .. } => 0,
            Action::Sweep(pass) => pass.counts,
        });
        counts.sum::<usize>().max(1)
    }

    fn multiply(&mut self, matrix: &Slices, pointers: MatrixPointers, x: usize, y: usize) {
        let (first, at) = self.matrix.get_or_insert_with(|| (matrix.clone(), pointers));
        if (&*first, *at) != (matrix, pointers) {
            self.mark_unsuitable("products with several matrices");
        }
        self.actions.push(Action::Product { x, y });
    }

    /// Adds a sweep.
    pub(crate) fn sweep<T: Scalar>(
        &mut self,
        writes: &[&mut CudaVector<T>],
        reads: &[&CudaVector<T>],
        slots: (SlotPointers, usize),
        sweep: &Sweep<'_>,
    ) {
        let writes = writes.iter().map(|v| self.vector(v)).collect();
        let reads = reads.iter().map(|v| self.vector(v)).collect();
        let coefficients = self.coefficients(sweep);
        let scalars = coefficients.iter().any(|(_, value)| value.contains("s.values"));
        if (scalars || !sweep.dots.is_empty() || !sweep.then.is_empty())
            && *self.slots.get_or_insert(slots) != slots
        {
            self.mark_unsuitable("several banks of scalars");
        }
        self.pass(writes, reads, coefficients, sweep);
    }

    /// Returns the coefficients of a sweep. Its numbers follow the numbers of the earlier sweeps.
    fn coefficients(&mut self, sweep: &Sweep<'_>) -> Vec<(String, String)> {
        let first = self.numbers.len();
        self.numbers.extend_from_slice(sweep.numbers);
        generate::coefficients(sweep, first)
    }

    fn pass(
        &mut self,
        writes: Vec<usize>,
        reads: Vec<usize>,
        coefficients: Vec<(String, String)>,
        sweep: &Sweep<'_>,
    ) {
        let program = || (generate::program_of(sweep.dots, sweep.then), generate::may_stop(sweep.then));
        self.actions.push(Action::Sweep(Pass {
            name: sweep.name,
            targets: sweep.updates.iter().map(|u| writes[u.target as usize]).collect(),
            writes,
            reads,
            coefficients,
            assignments: sweep.updates.iter().enumerate().map(|(i, u)| generate::assignment(i, u)).collect(),
            summands: sweep.dots.iter().map(generate::summand).collect(),
            counts: sweep.then.iter().filter(|op| matches!(op, Op::Count(_))).count(),
            program: (!sweep.dots.is_empty() || !sweep.then.is_empty()).then(program),
        }));
    }

    /// Adds y = A x with vectors that need not exist, to compile a step without a GPU.
    #[cfg(test)]
    pub(crate) fn product_of(&mut self, matrix: &Slices, [x, y]: [TracedVector; 2]) {
        let (x, y) = (self.index(x.0, x.1, 1, x.2), self.index(y.0, y.1, 1, y.2));
        self.multiply(matrix, MatrixPointers([0; 4]), x, y);
    }

    /// Adds a sweep over vectors that need not exist, to compile a step without a GPU.
    #[cfg(test)]
    pub(crate) fn sweep_of(&mut self, writes: &[TracedVector], reads: &[TracedVector], sweep: &Sweep<'_>) {
        let mut indices = |all: &[TracedVector]| all.iter().map(|v| self.index(v.0, v.1, 1, v.2)).collect();
        let (writes, reads) = (indices(writes), indices(reads));
        let coefficients = self.coefficients(sweep);
        self.pass(writes, reads, coefficients, sweep);
    }

    /// Returns the vectors that products gather from.
    fn gathered(&self) -> BTreeSet<usize> {
        let x = |action: &Action| match action {
            Action::Product { x, .. } => Some(*x),
            Action::Sweep(_) => None,
        };
        self.actions.iter().filter_map(x).collect()
    }

    /// Returns the vectors that the step writes.
    fn written(&self) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for action in &self.actions {
            match action {
                Action::Product { y, .. } => all.extend([*y]),
                Action::Sweep(pass) => all.extend(&pass.targets),
            }
        }
        all
    }

    /// Returns the parameter for a vector.
    fn parameter(&self, letter: &'static str, vector: usize) -> Parameter {
        match self.scalar {
            Some(f32::CUDA_NAME) => Parameter::written::<f32>((letter, vector)),
            _ => Parameter::written::<f64>((letter, vector)),
        }
    }

    fn vector_parameters(&self) -> impl Iterator<Item = Parameter> {
        (0..self.vectors.len()).map(|vector| self.parameter("p", vector))
    }

    /// Returns the parameters for the second buffers of gathered vectors.
    fn gathered_parameters(&self) -> impl Iterator<Item = Parameter> {
        self.gathered().into_iter().map(|vector| self.parameter("q", vector))
    }

    /// Returns the parameters of the kernel.
    fn parameters(&self) -> Vec<Parameter> {
        let mut all = vec![Parameter::value::<MatrixPointers>("matrix")];
        all.extend(self.vector_parameters().chain(self.gathered_parameters()));
        all.extend([Parameter::scratch::<[u64; 2]>(WORDS), Parameter::scratch::<u32>(LAST_ROUND)]);
        all.extend((!self.numbers.is_empty()).then(|| Parameter::numbers(self.numbers.len())));
        all.extend([
            Parameter::value::<SlotPointers>(HOME),
            Parameter::value::<u32>(ROWS),
            Parameter::value::<u32>(TIMES),
        ]);
        all
    }

    /// Returns the kernel, the number of its blocks, and the bytes of shared memory that each block takes for
    /// the matrix, for a GPU with this number of multiprocessors and bytes of shared memory for a block.
    pub(crate) fn kernel(
        &self,
        slots: usize,
        multiprocessors: u32,
        shared_memory: u64,
    ) -> Option<(KernelSource, u32, u32)> {
        let (matrix, _) = self.matrix.as_ref()?;
        let layout = Layout::of(self.rows?, multiprocessors)?;
        let each = (layout.rows_each * layout.block / 32) as usize;
        let stored = |slices: &[u32]| u64::from(slices[slices.len() - 1] - slices[0]);
        let starts = (0..matrix.offsets.len()).step_by(each);
        let most = starts.map(|s| stored(&matrix.offsets[s..(s + each + 1).min(matrix.offsets.len())])).max();
        let rows = self.rows?.max(1) as u64;
        let unroll = stored(&matrix.offsets).div_ceil(rows).clamp(1, UNROLL.into());
        let shared = most.unwrap_or(0) * (4 + matrix.value.map_or(0, |(_, width)| width) as u64);
        let shared = if shared + RESERVED <= shared_memory { shared as u32 } else { 0 };
        let mut defines = vec![
            ("SCALAR", self.scalar?.to_owned()),
            ("ROWS", layout.rows_each.to_string()),
            ("SLOTS", slots.to_string()),
            ("TRACKS", TRACKS.to_string()),
            ("UNROLL", unroll.to_string()),
            ("AT_ONCE", layout.blocks.div_ceil(32).to_string()),
        ];
        defines.extend(matrix.value.map(|(name, _)| ("VALUE", name.to_owned())));
        if shared > 0 {
            defines.push(("SHARED_MATRIX", "1".to_owned()));
        }
        let body = format!("{TEXT}{}", self.text());
        let name = "burst".to_owned();
        let source =
            KernelSource { name, body, parameters: self.parameters(), defines, k: 1, block: layout.block };
        Some((source, layout.blocks, shared))
    }
}
