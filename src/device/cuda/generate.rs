//! CUDA C++ generated from sweeps and scalar programs: one kernel for each, compiled once.
//!
//! This file has the kernels over vectors of one column, and the parts that these share with kernels
//! over several (`columns.rs`).

pub(super) mod columns;
pub(super) mod ranks;

use super::SlotPointers;
use super::parameters::Parameter;
use crate::device::sweep::{
    Coefficient, Dot, Factor, MAX_NUMBERS, Op, Operand, Slot, Summand, Sweep, Term, Test, Update,
};
use crate::scalar::Scalar;
use std::fmt::Write;

/// How the text of a kernel refers to the scalars of column `c`.
#[derive(Clone, Copy)]
struct Access {
    /// The index of the column in arrays over columns, if a thread has such arrays.
    of_column: &'static str,
    /// Returns the sum of a dot product.
    sum: fn(usize) -> String,
}

/// Scalars, coefficients and sums are arrays over columns.
const ARRAYS: Access = Access { of_column: "[c]", sum: |dot| format!("sums[{dot} * K + c]") };

/// Returns the name of a vector's element in registers.
fn element(operand: Operand) -> String {
    match operand {
        Operand::Write(i) => format!("w{i}[e]"),
        Operand::Read(i) => format!("r{i}[e]"),
        Operand::Ones => "SCALAR(1)".to_owned(),
    }
}

/// Returns the slots that a program reads before the program or a dot product has computed them.
fn slots_read(dots: &[Dot], program: &[Op]) -> Vec<Slot> {
    let mut available: Vec<Slot> = dots.iter().map(|d| d.out).collect();
    let mut fetched = Vec::new();
    for op in program {
        let (reads, written) = match *op {
            Op::Copy(to, from) | Op::Root(to, from) => (vec![from], Some(to)),
            Op::Add(to, a, b) | Op::Subtract(to, a, b) | Op::Multiply(to, a, b) | Op::Divide(to, a, b) => {
                (vec![a, b], Some(to))
            }
            Op::Count(value) | Op::Note(_, value) => (vec![value], None),
            Op::StopIf(Test::NotFinite(a) | Test::NotPositive(a) | Test::Negative(a), _) => (vec![a], None),
            Op::StopIf(Test::AtMost(a, b), _) => (vec![a, b], None),
        };
        for slot in reads {
            if !available.contains(&slot) {
                available.push(slot);
                fetched.push(slot);
            }
        }
        available.extend(written);
    }
    fetched
}

/// Returns `Scalars`, and `fetch`, which loads them.
fn fetch(fetched: &[Slot]) -> String {
    let members: String = fetched.iter().map(|s| format!(" double v{}[K];", s.0)).collect();
    let loads: String =
        fetched.iter().map(|s| format!("        z.v{0}[c] = s.values[{0} * K + c];\n", s.0)).collect();
    format!(
        "struct Scalars {{ u32 done[K], counts[K];{members} }};\n\
         __device__ __forceinline__ Scalars fetch(const Slots& s) {{\n    Scalars z;\n#pragma unroll\n    \
         for (int c = 0; c < K; ++c) {{\n        z.done[c] = s.done[c];\n        z.counts[c] = s.counts[c];\n\
         {loads}    }}\n    return z;\n}}\n"
    )
}

/// Returns `DOTS`, `Scalars`, `fetch` and `conclude` (see common.cuh): the end of a kernel with
/// dot products and a program.
///
/// Scalars that the program reads are fetched while the sums of the blocks are being combined. Scalars that
/// it computes stay in registers and are stored as soon as they are computed.
pub(crate) fn conclude(dots: &[Dot], program: &[Op]) -> String {
    format!("#define DOTS {}\n{}", dots.len(), program_of(dots, program))
}

/// Returns the same text without `DOTS`.
pub(super) fn program_of(dots: &[Dot], program: &[Op]) -> String {
    let mut text = fetch(&slots_read(dots, program));
    text.push_str(&program_in(dots, program, ARRAYS));
    text.push_str(
        "__device__ __forceinline__ void conclude(const Slots& s, const double* sums, const Scalars& z) {\n\
         #pragma unroll\n    for (int c = 0; c < K; ++c) conclude(s, c, sums, z);\n}\n",
    );
    text
}

/// Returns `conclude` for a column.
fn program_in(dots: &[Dot], program: &[Op], access: Access) -> String {
    let (mut declared, of_column) = (slots_read(dots, program), access.of_column);
    let mut text = format!(
        "__device__ __forceinline__ void conclude(const Slots& s, const int c, const double* sums, \
         const Scalars& z) {{\n    if (z.done{of_column} != 0) return;\n",
    );
    if program.iter().any(|op| matches!(op, Op::Count(_) | Op::Note(..))) {
        let _ = writeln!(text, "    u32 count = z.counts{of_column};");
    }
    declared.iter().for_each(|s| text.push_str(&format!("    double v{0} = z.v{0}{of_column};\n", s.0)));
    let mut assign = |text: &mut String, to: Slot, value: String| {
        let double = if declared.contains(&to) { "" } else { "double " };
        declared.push(to);
        let _ = writeln!(text, "    {double}v{0} = {value};\n    s.values[{0} * K + c] = v{0};", to.0);
    };
    for (i, dot) in dots.iter().enumerate() {
        assign(&mut text, dot.out, (access.sum)(i));
    }
    for op in program {
        match *op {
            Op::Copy(to, from) => assign(&mut text, to, format!("v{}", from.0)),
            Op::Add(to, a, b) => assign(&mut text, to, format!("v{} + v{}", a.0, b.0)),
            Op::Subtract(to, a, b) => assign(&mut text, to, format!("v{} - v{}", a.0, b.0)),
            Op::Multiply(to, a, b) => assign(&mut text, to, format!("v{} * v{}", a.0, b.0)),
            Op::Divide(to, a, b) => assign(&mut text, to, format!("v{} / v{}", a.0, b.0)),
            Op::Root(to, a) => assign(&mut text, to, format!("sqrt(v{})", a.0)),
            Op::Count(value) => {
                let _ = writeln!(
                    text,
                    "    s.ring[u64(count % RING) * K + c] = v{};\n    s.counts[c] = ++count;",
                    value.0
                );
            }
            Op::Note(track, value) => {
                let _ = writeln!(
                    text,
                    "    s.ring[({} * u64(RING) + count % RING) * K + c] = v{};",
                    track.0, value.0
                );
            }
            Op::StopIf(test, code) => {
                let condition = match test {
                    Test::NotFinite(a) => format!("not_finite(v{})", a.0),
                    Test::NotPositive(a) => format!("!(v{} > 0.0)", a.0),
                    Test::Negative(a) => format!("!(v{} >= 0.0)", a.0),
                    Test::AtMost(a, b) => format!("v{} <= v{}", a.0, b.0),
                };
                let _ = writeln!(text, "    if ({condition}) {{ s.done[c] = {}; return; }}", code as u32);
            }
        }
    }
    text.push_str("}\n");
    text
}

/// Returns whether a program can end the run of a column.
pub(super) fn may_stop(program: &[Op]) -> bool {
    program.iter().any(|op| matches!(op, Op::StopIf(..)))
}

/// Returns the type of the argument that holds the numbers of sweeps.
pub(super) fn numbers(count: usize) -> String {
    format!("struct Numbers {{ double at[{count}]; }};\n")
}

/// Returns the parameters of the kernel of a sweep over vectors of `T`.
pub(super) fn parameters<T: Scalar>(sweep: &Sweep<'_>) -> Vec<Parameter> {
    let written = (0..sweep.writes as usize).map(|i| Parameter::written::<T>(("p", i)));
    let mut all: Vec<Parameter> = written.chain(read::<T>(sweep)).collect();
    all.extend([Parameter::value::<u64>("n"), Parameter::value::<SlotPointers>("s")]);
    all
}

/// Returns the parameters for the vectors that a sweep reads, and for its numbers if there are any.
fn read<T: Scalar>(sweep: &Sweep<'_>) -> impl Iterator<Item = Parameter> {
    let numbers = (!sweep.numbers.is_empty()).then(|| Parameter::numbers(MAX_NUMBERS));
    (0..sweep.reads as usize).map(|i| Parameter::read::<T>(("q", i))).chain(numbers)
}

/// Returns the whole kernel of a sweep over vectors of one column: `extern "C"` with the name `sweep_<name>`.
///
/// Each thread takes `UNROLL` rows at a distance of `BLOCK`, so that several loads are in flight before the
/// first use. The vectors are not declared read-only or disjoint: the previous kernel may still write them
/// until `in_order` returns.
pub(crate) fn sweep(sweep: &Sweep<'_>) -> String {
    let mut text = String::new();
    if !sweep.numbers.is_empty() {
        text.push_str(&numbers(MAX_NUMBERS));
    }
    let reduces = !sweep.dots.is_empty() || !sweep.then.is_empty();
    if reduces {
        text.push_str(&conclude(sweep.dots, sweep.then));
    }
    let _ = writeln!(
        text,
        "extern \"C\" __global__ void __launch_bounds__(BLOCK) sweep_{}(PARAMETERS) {{\n    in_order();\n    \
         if (all_done(s)) return;",
        sweep.name
    );
    for (name, value) in coefficients(sweep, 0) {
        let _ = writeln!(
            text,
            "    SCALAR {name}[K];\n#pragma unroll\n    for (int c = 0; c < K; ++c) {name}[c] = {value};"
        );
    }
    if !sweep.dots.is_empty() {
        text.push_str("    double sums[DOTS * K] = {};\n");
    }
    text.push_str(&body(sweep));
    match (sweep.dots.is_empty(), sweep.then.is_empty()) {
        (false, _) => text.push_str(
            "    grid_sum(s, sums, [&] { return fetch(s); },\n             \
             [&](const double* total, const Scalars& z) { conclude(s, total, z); });\n",
        ),
        // A program without vectors is launched as one block over no rows.
        (true, false) => {
            text.push_str("    if (blockIdx.x == 0 && threadIdx.x == 0) conclude(s, nullptr, fetch(s));\n");
        }
        (true, true) => {}
    }
    text.push_str("}\n");
    text
}

/// Returns the name and the value of each coefficient but 1 and -1, in the precision of the vectors. The
/// numbers of the sweep are those of the kernel from `first` on.
pub(super) fn coefficients(sweep: &Sweep<'_>, first: usize) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (u, update) in sweep.updates.iter().enumerate() {
        for (t, term) in update.terms.iter().enumerate() {
            let value = match term.by {
                Coefficient::One | Coefficient::MinusOne => continue,
                Coefficient::Number(i) => format!("SCALAR(numbers.at[{}])", first + i as usize),
                Coefficient::Slot(s) => format!("SCALAR(s.values[{} * K + c])", s.0),
                Coefficient::MinusSlot(s) => format!("SCALAR(-s.values[{} * K + c])", s.0),
            };
            all.push((format!("c{u}_{t}"), value));
        }
    }
    all
}

/// Returns the loop over rows: it loads the vectors that are read, computes, and stores the
/// vectors that are written.
fn body(sweep: &Sweep<'_>) -> String {
    let mut text = String::from(
        "    const u64 stride = u64(gridDim.x) * BLOCK * UNROLL;\n    \
         for (u64 base = u64(blockIdx.x) * BLOCK * UNROLL + threadIdx.x; base < n; base += stride) {\n",
    );
    (0..sweep.writes).for_each(|i| text.push_str(&format!("        SCALAR w{i}[UNROLL * K];\n")));
    (0..sweep.reads).for_each(|i| text.push_str(&format!("        SCALAR r{i}[UNROLL * K];\n")));
    let per_element = |inner: &str| {
        format!(
            "#pragma unroll\n        for (int u = 0; u < UNROLL; ++u)\n#pragma unroll\n            \
             for (int c = 0; c < K; ++c) {{\n                \
             const u64 row = base + u64(u) * BLOCK, i = row * K + c;\n                \
             const int e = u * K + c;\n                if (row < n) {{\n{inner}                }}\n            }}\n"
        )
    };
    let line = |line: String| format!("                    {line};\n");
    text.push_str(&per_element(&loads(sweep, |_| "i").into_iter().map(line).collect::<String>()));
    let mut compute = String::new();
    for (u, update) in sweep.updates.iter().enumerate() {
        compute.push_str(&line(assignment(u, update)));
    }
    for store in stores(sweep) {
        // The vectors of a column that is done do not change.
        compute.push_str(&line(format!("if (K == 1 || s.done[c] == 0) {store}")));
    }
    for (d, dot) in sweep.dots.iter().enumerate() {
        compute.push_str(&line(format!("sums[{d} * K + c] += {}", summand(dot))));
    }
    text.push_str(&per_element(&compute));
    text.push_str("    }\n");
    text
}

/// Returns the statements that load element `e` of the vectors that are read; `index` is the index of the
/// element in a vector that is only read.
fn loads(sweep: &Sweep<'_>, index: impl Fn(u8) -> &'static str) -> Vec<String> {
    let old = (0..sweep.writes).filter(|&i| reads_before_write(sweep, i));
    let old = old.map(|i| match only_accumulates(sweep, i) {
        true => format!("w{i}[e] = __ldcs(p{i} + i)"),
        false => format!("w{i}[e] = p{i}[i]"),
    });
    old.chain((0..sweep.reads).map(|i| format!("r{i}[e] = q{i}[{}]", index(i)))).collect()
}

/// Returns the statements that store element `e` of the vectors that are written.
fn stores(sweep: &Sweep<'_>) -> Vec<String> {
    let store = |i| match only_accumulates(sweep, i) {
        true => format!("__stcs(p{i} + i, w{i}[e])"),
        false => format!("p{i}[i] = w{i}[e]"),
    };
    sweep.updates.iter().map(|update| store(update.target)).collect()
}

/// Returns the parameters that [`row_sweep`] takes after those of the product.
pub(crate) fn row_sweep_parameters<T: Scalar>(sweep: &Sweep<'_>) -> Vec<Parameter> {
    let last = [Parameter::value::<u64>("n"), Parameter::value::<SlotPointers>("slots")];
    read::<T>(sweep).chain(last).collect()
}

/// Returns `struct Rows` of kernels/rows.cuh for a product that is followed by a sweep of one column over y =
/// A x and x: it takes each row with its sum. y is not stored in memory, and the new x is stored in `p1`.
///
/// Vectors that are read or written once are marked for early eviction from the cache, so that the old x,
/// which is gathered, stays in it.
pub(crate) fn row_sweep(sweep: &Sweep<'_>) -> String {
    let mut text = if sweep.dots.is_empty() { String::new() } else { conclude(sweep.dots, sweep.then) };
    let reads = |each: &dyn Fn(u8) -> String| (0..sweep.reads).map(each).collect::<String>();
    let mut typed = reads(&|i| format!("const SCALAR *q{i}, "));
    let mut names = reads(&|i| format!("q{i}, "));
    if !sweep.numbers.is_empty() {
        text.push_str(&numbers(MAX_NUMBERS));
        typed.push_str("const Numbers& numbers, ");
        names.push_str("numbers, ");
    }
    let _ = writeln!(text, "#define SWEPT\n#define SWEPT_NAMES {names}");
    text.push_str("struct Rows {\n    const SCALAR *x;\n    SCALAR *p1;\n");
    text.push_str(&reads(&|i| format!("    const SCALAR *q{i};\n")));
    let coefficients = coefficients(sweep, 0);
    coefficients.iter().for_each(|(name, _)| text.push_str(&format!("    SCALAR {name}[K];\n")));
    if !sweep.dots.is_empty() {
        text.push_str("    double sums[DOTS * K];\n");
    }
    let taken = reads(&|i| format!(", q{i}(q{i})"));
    let _ = writeln!(
        text,
        "    __device__ __forceinline__ Rows({typed}const SCALAR* x, SCALAR* p1, const Slots& s)\n        \
         : x(x), p1(p1){taken} {{\n        const int c = 0;",
    );
    coefficients.iter().for_each(|(name, value)| text.push_str(&format!("        {name}[c] = {value};\n")));
    (0..sweep.dots.len()).for_each(|d| text.push_str(&format!("        sums[{d}] = 0.0;\n")));
    text.push_str("    }\n    __device__ __forceinline__ void emit(const u64 i, const SCALAR sum) {\n");
    text.push_str("        const int c = 0, e = 0;\n        SCALAR w0[1] = {sum}, w1[1] = {x[i]};\n");
    (0..sweep.reads)
        .for_each(|i| text.push_str(&format!("        const SCALAR r{i}[1] = {{__ldcs(q{i} + i)}};\n")));
    for (u, update) in sweep.updates.iter().enumerate() {
        let _ = writeln!(text, "        {};", assignment(u, update));
    }
    text.push_str("        __stcs(p1 + i, w1[e]);\n");
    for (d, dot) in sweep.dots.iter().enumerate() {
        let _ = writeln!(text, "        sums[{d} * K + c] += {};", summand(dot));
    }
    text.push_str("    }\n};\n");
    text
}

/// Returns `w<target>[e] = the sum of the terms`.
pub(super) fn assignment(index: usize, update: &Update<'_>) -> String {
    assignment_in(index, update, ARRAYS)
}

fn assignment_in(index: usize, update: &Update<'_>, access: Access) -> String {
    let terms = update.terms.iter().enumerate();
    let sum: Vec<_> = terms.map(|(t, term)| self::term(index, t, term, access)).collect();
    format!("{} = {}", element(Operand::Write(update.target)), sum.join(" + "))
}

/// Returns the summand of an element.
pub(super) fn summand(dot: &Dot) -> String {
    match dot.of {
        Summand::Product(a, b) => format!("double({}) * double({})", element(a), element(b)),
        Summand::Magnitude(a, w) => format!("fabs(double({}) * double({}))", element(a), element(w)),
        Summand::Marked(a, mark) => {
            format!("({} < SCALAR(0) ? double({}) : 0.0)", element(mark), element(a))
        }
    }
}

fn term(update: usize, index: usize, term: &Term, access: Access) -> String {
    let factor = match term.factor {
        None => String::new(),
        Some(Factor::Times(w)) => format!(" * {}", element(w)),
        Some(Factor::Over(w)) => format!(" / {}", element(w)),
    };
    match term.by {
        Coefficient::One => format!("{}{factor}", element(term.v)),
        Coefficient::MinusOne => format!("-({}{factor})", element(term.v)),
        _ => format!("c{update}_{index}{} * ({}{factor})", access.of_column, element(term.v)),
    }
}

/// Returns whether the old value of a written vector is needed.
fn reads_before_write(sweep: &Sweep<'_>, i: u8) -> bool {
    let own = Operand::Write(i);
    for update in sweep.updates {
        if update.terms.iter().flat_map(Term::operands).any(|o| o == own) {
            return true;
        }
        if update.target == i {
            return false;
        }
    }
    sums(sweep, own)
}

/// Returns whether a sum over elements reads the vector.
fn sums(sweep: &Sweep<'_>, vector: Operand) -> bool {
    sweep.dots.iter().any(|dot| dot.of.operands().any(|operand| operand == vector))
}

/// Returns whether a written vector is only added to and not read by any other part of the sweep. An example
/// is a solution, which is next used a whole iteration later. It is marked for early eviction from the cache.
fn only_accumulates(sweep: &Sweep<'_>, i: u8) -> bool {
    let own = Operand::Write(i);
    let terms = sweep.updates.iter().flat_map(|u| u.terms.iter().map(move |t| (u.target, t)));
    let mut uses = terms.filter(|(_, t)| t.operands().any(|o| o == own));
    let accumulates = uses.next().is_some_and(|(target, _)| target == i) && uses.next().is_none();
    accumulates && !sums(sweep, own)
}
