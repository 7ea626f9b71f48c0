//! Kernels in their forms: the file, its macros, and the types of what it works on.
//!
//! A [`Form`] names the format whose arrays its kernel takes, and the share of the rows that a launch of it goes over. The parameter
//! list of the kernel is made of these, so that a form can only be launched with them.

use super::arrays::{Arrays, Taken};
use super::columns::Columns;
use crate::device::cuda::modules::{BLOCK, Kernel, KernelSource};
use crate::device::cuda::parameters::Parameter;
use crate::device::cuda::{SlotPointers, generate};
use crate::device::{Cuda, Op, Sweep};
use crate::format::{Csr, Offsets, Values};
use crate::operator::DotInto;
use crate::scalar::Scalar;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::sync::Arc;

const ROWS: &str = include_str!("../../../kernels/rows.cuh");

/// A format as kernels take it, made of a validated matrix: kernels read within its arrays, and its columns are columns of the matrix.
pub(super) trait Format: Sized {
    /// A matrix without rows in these types, whose parameters are those of any.
    fn empty(types: Types) -> Self;
    /// Rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Places that a product multiplies.
    fn places(&self) -> usize;
    /// The arrays, for vectors of `T`.
    fn arrays<T: Scalar>(&self) -> Arrays<'_>;
    /// Numbers that kernels take after x and y.
    fn numbers(&self) -> Vec<(&'static str, u32)> {
        Vec::new()
    }
}

/// What of the rows a launch goes over, made of the matrix.
pub(super) trait Share {
    /// No rows; the parameters are those of any.
    fn none() -> Self;
    /// The arrays.
    fn arrays(&self) -> Arrays<'_>;
    /// Pieces of work, which kernels take as `count`; none for kernels that know it from the format.
    fn count(&self) -> Option<u32>;
}

/// All rows, of a kernel that knows from the format how many these are.
impl Share for () {
    fn none() {}
    fn arrays(&self) -> Arrays<'_> {
        Arrays::new()
    }
    fn count(&self) -> Option<u32> {
        None
    }
}

/// Types of what a kernel works on.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub scalar: Real,
    /// Of stored values, where there are any.
    pub value: Option<Real>,
    /// Whether offsets are of 64 bits.
    pub wide: bool,
    pub columns: Columns,
}

/// A floating-point type.
#[derive(Clone, Copy)]
pub(super) enum Real {
    F32,
    F64,
}

impl Real {
    /// The one that is `T`.
    pub fn of<T: Scalar>() -> Real {
        if size_of::<T>() == size_of::<f32>() { Real::F32 } else { Real::F64 }
    }
}

impl Types {
    pub const fn new(scalar: Real, value: Option<Real>, wide: bool) -> Types {
        Types { scalar, value, wide, columns: Columns::Full }
    }

    /// No values, of this type.
    pub fn values(self) -> Values {
        match self.value {
            None => Values::Ones,
            Some(Real::F32) => Values::F32(Vec::new()),
            Some(Real::F64) => Values::F64(Vec::new()),
        }
    }

    /// A matrix without rows.
    pub fn csr(self) -> Arc<Csr> {
        let matrix = Csr::new(0, 0, self.offsets(), Vec::new(), self.values());
        Arc::new(matrix.unwrap_or_else(|_| unreachable!("a matrix without rows has no fault")))
    }

    /// The offsets of no rows, of this type.
    pub fn offsets(self) -> Offsets {
        if self.wide { Offsets::U64(vec![0]) } else { Offsets::U32(vec![0]) }
    }
}

/// A kernel, but for the types and what becomes of its rows.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// The function.
    pub name: &'static str,
    /// The file that holds it.
    pub text: &'static str,
    /// What the file wants defined.
    pub defines: Vec<(&'static str, String)>,
    /// Threads in a block.
    pub block: u32,
    /// Whether it owns all rows of y, so that the dot product can be fused.
    pub owns_all_rows: bool,
}

/// A kernel over a format and a share of its rows, in one of its forms.
pub(super) struct Form<F, S = ()> {
    pub kind: Kind,
    over: PhantomData<fn(F, S)>,
}

impl<F, S> Clone for Form<F, S> {
    fn clone(&self) -> Self {
        Form { kind: self.kind.clone(), over: PhantomData }
    }
}

impl<F, S> Form<F, S> {
    /// A form of a kernel that owns all rows, in blocks of the usual size.
    pub fn new(name: &'static str, text: &'static str) -> Form<F, S> {
        let kind = Kind { name, text, defines: Vec::new(), block: BLOCK, owns_all_rows: true };
        Form { kind, over: PhantomData }
    }

    /// The same with something more defined.
    pub fn with(mut self, name: &'static str, value: u32) -> Form<F, S> {
        self.kind.defines.push((name, value.to_string()));
        self
    }

    /// The same in blocks of another size.
    pub fn in_blocks_of(mut self, block: u32) -> Form<F, S> {
        self.kind.block = block;
        self
    }

    /// The same with registers for so many threads on a multiprocessor at once, or 0 where it does not matter.
    pub fn fitting(self, threads: u32) -> Form<F, S> {
        /// The most blocks that a multiprocessor holds.
        const MOST: u32 = 32;
        let blocks = (threads / self.kind.block).clamp(1, MOST);
        self.with("MIN_BLOCKS", blocks)
    }

    /// The same, leaving dot products to a pass of their own.
    pub fn without_dots(mut self) -> Form<F, S> {
        self.kind.owns_all_rows = false;
        self
    }
}

/// What becomes of the rows of a product.
#[derive(Clone, Copy)]
pub(super) enum Ending<'a> {
    /// y = alpha A x + beta y.
    Plain,
    /// y = A x, with a dot product and a program.
    Dot(&'a DotInto, &'a [Op]),
    /// A sweep follows y = A x.
    Sweep(&'a Sweep<'a>),
}

impl Ending<'_> {
    /// The text that rows.cuh builds on.
    fn text(self) -> String {
        match self {
            Ending::Plain => String::new(),
            Ending::Dot(dot, then) => generate::conclude(dot, then),
            Ending::Sweep(sweep) => generate::row_sweep(sweep),
        }
    }

    fn parameters<T: Scalar>(self) -> Vec<Parameter> {
        match self {
            Ending::Plain => vec![Parameter::scalar::<T>("alpha"), Parameter::scalar::<T>("beta")],
            Ending::Dot(..) => vec![Parameter::value::<SlotPointers>("slots")],
            Ending::Sweep(sweep) => generate::row_sweep_parameters::<T>(sweep),
        }
    }
}

impl Kind {
    /// The kernel over vectors of `T`, with what it takes of a format and of a share of the rows. The launch in `product` adds
    /// arguments in the same order.
    pub fn source<T: Scalar>(
        &self,
        matrix: Taken,
        numbers: &[(&'static str, u32)],
        (share, counts): (Taken, bool),
        ending: Ending<'_>,
    ) -> KernelSource {
        let mut parameters = matrix.parameters;
        parameters.extend([Parameter::read::<T>("x"), Parameter::written::<T>("y")]);
        parameters.extend(share.parameters);
        parameters.extend(numbers.iter().map(|&(name, _)| Parameter::value::<u32>(name)));
        parameters.extend(counts.then(|| Parameter::value::<u32>("count")));
        parameters.extend(ending.parameters::<T>());
        let mut defines = vec![("SCALAR", T::CUDA_NAME.to_owned())];
        defines.extend(matrix.defines.into_iter().chain(share.defines).chain(self.defines.iter().cloned()));
        let body = format!("{}{ROWS}{}", ending.text(), self.text);
        KernelSource { name: self.name.to_owned(), body, parameters, defines, k: 1, block: self.block }
    }
}

/// A form of any format, to be compiled without a matrix.
pub(super) struct AnyForm {
    pub kind: Kind,
    compile: fn(&Kind, Types, Ending<'_>) -> KernelSource,
}

impl<F: Format, S: Share> Form<F, S> {
    /// The kernel for these types.
    pub fn source(&self, types: Types, ending: Ending<'_>) -> KernelSource {
        source::<F, S>(&self.kind, types, ending)
    }

    /// The form without its types.
    pub fn any(self) -> AnyForm {
        AnyForm { kind: self.kind, compile: source::<F, S> }
    }
}

impl AnyForm {
    /// The kernel for these types.
    pub fn source(&self, types: Types, ending: Ending<'_>) -> KernelSource {
        (self.compile)(&self.kind, types, ending)
    }
}

fn source<F: Format, S: Share>(kind: &Kind, types: Types, ending: Ending<'_>) -> KernelSource {
    fn of<F: Format, S: Share, T: Scalar>(kind: &Kind, types: Types, ending: Ending<'_>) -> KernelSource {
        let (matrix, share) = (F::empty(types), S::none());
        let shared = (share.arrays().taken(), share.count().is_some());
        kind.source::<T>(matrix.arrays::<T>().taken(), &matrix.numbers(), shared, ending)
    }
    match types.scalar {
        Real::F32 => of::<F, S, f32>(kind, types, ending),
        Real::F64 => of::<F, S, f64>(kind, types, ending),
    }
}

/// The types of scalars, values and offsets that a kernel may be asked for, in two halves that differ by their offsets. The
/// first two differ in all three.
fn all_types() -> [Vec<Types>; 2] {
    use Real::{F32, F64};
    let half = |wide: [bool; 2]| {
        let types = [(F64, Some(F64)), (F32, None), (F64, Some(F32)), (F64, None), (F32, Some(F32))];
        let types = types.into_iter().zip(wide.into_iter().cycle());
        types.map(|((scalar, value), wide)| Types::new(scalar, value, wide)).collect()
    };
    [half([false, true]), half([true, false])]
}

/// The forms, plain and with these fused dot products. The first form of a kernel comes in all combinations of types, of which
/// every other one meets the dot products: these have nothing to do with offsets. What other forms define hardly meets the
/// types, so that two combinations stand for all.
pub(super) fn sources(forms: &[AnyForm], endings: &[(DotInto, &[Op])]) -> Vec<KernelSource> {
    let [types, others] = all_types();
    let (mut all, mut met) = (Vec::new(), HashSet::new());
    for form in forms {
        let first = met.insert(form.kind.name);
        let types = if first { &types[..] } else { &types[..2] };
        let fused = endings.iter().filter(|_| form.kind.owns_all_rows);
        let fused = fused.map(|(dot, then)| Ending::Dot(dot, then));
        for ending in std::iter::once(Ending::Plain).chain(fused) {
            all.extend(types.iter().map(|types| form.source(*types, ending)));
        }
        let plain = others.iter().filter(|_| first);
        all.extend(plain.map(|types| form.source(*types, Ending::Plain)));
    }
    all
}

/// How many blocks are launched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grid {
    /// As many as the GPU holds at once, or fewer if so many threads need fewer: the kernel strides.
    Resident(u64),
    /// This many.
    Blocks(u32),
}

impl Grid {
    pub fn blocks(self, device: &Cuda, kernel: &Kernel) -> u32 {
        match self {
            Grid::Resident(threads) => device.blocks_for(kernel, threads),
            Grid::Blocks(blocks) => blocks,
        }
    }
}
