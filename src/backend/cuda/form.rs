//! Forms of kernels: the source file, its macros, and the types of its data.
//!
//! A [`Form`] names the format whose arrays its kernel takes, and the share of the rows that a launch
//! covers. The kernel's parameter list is derived from these, so that a form can only be launched
//! with matching arguments.

use super::arrays::{Arrays, Signature};
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

/// A format in the layout of kernels, built from a validated matrix: kernels stay within its arrays, and its
/// columns are columns of the matrix.
pub(super) trait Format: Sized {
    /// Returns a matrix without rows in these types; its parameters are those of any matrix in these types.
    fn empty(types: Types) -> Self;
    /// Returns the numbers of rows and columns.
    fn shape(&self) -> (usize, usize);
    /// Returns the number of entries that a product multiplies, padding included.
    fn padded_entries(&self) -> usize;
    /// Returns the arrays, for vectors of `T`.
    fn arrays<T: Scalar>(&self) -> Arrays<'_>;
    /// Returns the numbers that kernels take after x and y.
    fn numbers(&self) -> Vec<(&'static str, u32)> {
        Vec::new()
    }
}

/// The share of the rows that a launch covers, built from the matrix.
pub(super) trait Share {
    /// Returns a share without rows; its parameters are those of any share.
    fn none() -> Self;
    /// Returns the arrays of the share.
    fn arrays(&self) -> Arrays<'_>;
    /// Returns the pieces of work, which kernels take as `count`; none for kernels that derive
    /// it from the format.
    fn count(&self) -> Option<u32>;
}

/// All rows, for a kernel that derives their number from the format.
impl Share for () {
    fn none() {}
    fn arrays(&self) -> Arrays<'_> {
        Arrays::new()
    }
    fn count(&self) -> Option<u32> {
        None
    }
}

/// The types of a kernel's data.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub scalar: Real,
    /// The type of stored values, if values are stored.
    pub value: Option<Real>,
    /// Whether offsets have 64 bits.
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
    /// Returns the type that equals `T`.
    pub(crate) fn of<T: Scalar>() -> Real {
        if size_of::<T>() == size_of::<f32>() { Real::F32 } else { Real::F64 }
    }

    /// Returns the name of the type in CUDA C++.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Real::F32 => f32::CUDA_NAME,
            Real::F64 => f64::CUDA_NAME,
        }
    }

    /// Returns the bytes of a number.
    pub(crate) fn width(self) -> usize {
        match self {
            Real::F32 => 4,
            Real::F64 => 8,
        }
    }

    /// Returns the parameter for an array that kernels write.
    pub(crate) fn scratch(self, name: &'static str) -> Parameter {
        match self {
            Real::F32 => Parameter::scratch::<f32>(name),
            Real::F64 => Parameter::scratch::<f64>(name),
        }
    }
}

impl Types {
    pub(crate) const fn new(scalar: Real, value: Option<Real>, wide: bool) -> Types {
        Types { scalar, value, wide, columns: Columns::Full }
    }

    /// Returns empty values of this type.
    pub(crate) fn values(self) -> Values {
        match self.value {
            None => Values::Ones,
            Some(Real::F32) => Values::F32(Vec::new()),
            Some(Real::F64) => Values::F64(Vec::new()),
        }
    }

    /// Returns a matrix without rows.
    pub(crate) fn csr(self) -> Arc<Csr> {
        let matrix = Csr::new(0, 0, self.offsets(), Vec::new(), self.values());
        Arc::new(matrix.unwrap_or_else(|_| unreachable!("an empty matrix is valid")))
    }

    /// Returns the offsets of a matrix without rows, of this type.
    pub(crate) fn offsets(self) -> Offsets {
        if self.wide { Offsets::U64(vec![0]) } else { Offsets::U32(vec![0]) }
    }
}

/// A kernel without the types of its data and its ending.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// The name of the function.
    pub name: &'static str,
    /// The source text of its file.
    pub text: &'static str,
    /// The macros that the file requires.
    pub defines: Vec<(&'static str, String)>,
    /// Threads in a block.
    pub block: u32,
    /// Whether the kernel owns all rows of y, so that the dot product can be fused.
    pub owns_all_rows: bool,
}

/// A kernel over a format and a share of its rows, with its macros.
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
    /// Creates a form of a kernel that owns all rows, in blocks of the default size.
    pub(crate) fn new(name: &'static str, text: &'static str) -> Form<F, S> {
        let kind = Kind { name, text, defines: Vec::new(), block: BLOCK, owns_all_rows: true };
        Form { kind, over: PhantomData }
    }

    /// Defines one more macro.
    pub(crate) fn with(mut self, name: &'static str, value: u32) -> Form<F, S> {
        self.kind.defines.push((name, value.to_string()));
        self
    }

    /// Sets the number of threads in a block.
    pub(crate) fn in_blocks_of(mut self, block: u32) -> Form<F, S> {
        self.kind.block = block;
        self
    }

    /// Limits registers so that `threads` threads fit on a multiprocessor at once; 0 if it does not matter.
    pub(crate) fn fitting(self, threads: u32) -> Form<F, S> {
        /// The most blocks that a multiprocessor holds.
        const MOST: u32 = 32;
        let blocks = (threads / self.kind.block).clamp(1, MOST);
        self.with("MIN_BLOCKS", blocks)
    }

    /// Leaves dot products to a separate pass.
    pub(crate) fn without_dots(mut self) -> Form<F, S> {
        self.kind.owns_all_rows = false;
        self
    }
}

/// What a kernel does with the rows of a product.
#[derive(Clone, Copy)]
pub(super) enum Ending<'a> {
    /// Writes y = alpha A x + beta y.
    Plain,
    /// The same, and stores sums of `<x, y>` over the rows of each block.
    Partials,
    /// Writes y = A x, then computes a dot product and runs a program.
    Dot(&'a DotInto, &'a [Op]),
    /// Runs a sweep after y = A x.
    Sweep(&'a Sweep<'a>),
}

impl Ending<'_> {
    /// Returns the source text that rows.cuh uses.
    fn text(self) -> String {
        match self {
            Ending::Plain => String::new(),
            Ending::Partials => "#define PARTIALS\n".to_owned(),
            Ending::Dot(dot, then) => generate::conclude(dot, then),
            Ending::Sweep(sweep) => generate::row_sweep(sweep),
        }
    }

    fn parameters<T: Scalar>(self) -> Vec<Parameter> {
        match self {
            Ending::Plain => vec![Parameter::scalar::<T>("alpha"), Parameter::scalar::<T>("beta")],
            Ending::Partials => {
                let partials = Parameter::written::<f64>("partials");
                [Ending::Plain.parameters::<T>(), vec![partials]].concat()
            }
            Ending::Dot(..) => vec![Parameter::value::<SlotPointers>("slots")],
            Ending::Sweep(sweep) => generate::row_sweep_parameters::<T>(sweep),
        }
    }
}

impl Kind {
    /// Returns the source of the kernel over vectors of `T`, with the parameters of a format and of a share
    /// of the rows. The launch in `product` adds arguments in the same order.
    pub(crate) fn source<T: Scalar>(
        &self,
        matrix: Signature,
        numbers: &[(&'static str, u32)],
        (share, counts): (Signature, bool),
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

/// A form of any format, which can be compiled without a matrix.
pub(super) struct AnyForm {
    pub kind: Kind,
    compile: fn(&Kind, Types, Ending<'_>) -> KernelSource,
}

impl<F: Format, S: Share> Form<F, S> {
    /// Returns the source of the kernel for these types.
    pub(crate) fn source(&self, types: Types, ending: Ending<'_>) -> KernelSource {
        source::<F, S>(&self.kind, types, ending)
    }

    /// Returns the form without its format and share types.
    pub(crate) fn any(self) -> AnyForm {
        AnyForm { kind: self.kind, compile: source::<F, S> }
    }
}

impl AnyForm {
    /// Returns the source of the kernel for these types.
    pub(crate) fn source(&self, types: Types, ending: Ending<'_>) -> KernelSource {
        (self.compile)(&self.kind, types, ending)
    }
}

fn source<F: Format, S: Share>(kind: &Kind, types: Types, ending: Ending<'_>) -> KernelSource {
    fn of<F: Format, S: Share, T: Scalar>(kind: &Kind, types: Types, ending: Ending<'_>) -> KernelSource {
        let (matrix, share) = (F::empty(types), S::none());
        let shared = (share.arrays().signature(), share.count().is_some());
        kind.source::<T>(matrix.arrays::<T>().signature(), &matrix.numbers(), shared, ending)
    }
    match types.scalar {
        Real::F32 => of::<F, S, f32>(kind, types, ending),
        Real::F64 => of::<F, S, f64>(kind, types, ending),
    }
}

/// Returns the types of scalars, values and offsets that a kernel may be compiled for, in two halves that
/// differ in their offsets. The first two of a half differ in all three types.
fn all_types() -> [Vec<Types>; 2] {
    use Real::{F32, F64};
    let half = |wide: [bool; 2]| {
        let types = [(F64, Some(F64)), (F32, None), (F64, Some(F32)), (F64, None), (F32, Some(F32))];
        let types = types.into_iter().zip(wide.into_iter().cycle());
        types.map(|((scalar, value), wide)| Types::new(scalar, value, wide)).collect()
    };
    [half([false, true]), half([true, false])]
}

/// Returns the sources of the forms, plain and with these fused dot products. The first form of a kernel
/// is compiled for all combinations of types, but for the dot products only with the first half, because
/// these do not depend on offsets. The macros of the other forms hardly depend on types, so two
/// combinations represent all.
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

/// The number of blocks of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grid {
    /// As many as the GPU holds at once, or fewer if this many threads need fewer: the kernel strides.
    Resident(u64),
    /// Exactly this many.
    Blocks(u32),
}

impl Grid {
    pub(crate) fn blocks(self, device: &Cuda, kernel: &Kernel) -> u32 {
        match self {
            Grid::Resident(threads) => device.blocks_for(kernel, threads),
            Grid::Blocks(blocks) => blocks,
        }
    }
}
