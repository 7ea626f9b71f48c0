//! The text of sweeps over vectors of several columns, on top of kernels/columns.cuh.

use super::{Access, assignment_in, coefficients, loads, numbers, program_in, slots_read, stores, summand};
use crate::device::sweep::{Dot, MAX_NUMBERS, Op, Slot, Sweep};
use std::fmt::Write;

pub(in crate::device::cuda) const COLUMNS: &str = include_str!("../../../../kernels/columns.cuh");

/// A thread has one column: its scalars, coefficients and sums are not arrays over columns.
const OWN: Access = Access { of_column: "", sum: |dot| format!("sums[{dot}]") };

/// Returns `Scalars`, and `fetch`, which loads them for a column.
fn fetch(fetched: &[Slot]) -> String {
    let members: String = fetched.iter().map(|s| format!(" double v{};", s.0)).collect();
    let loads: String = fetched.iter().map(|s| format!(", s.values[{} * K + c]", s.0)).collect();
    format!(
        "struct Scalars {{ u32 done, counts;{members} }};\n\
         __device__ __forceinline__ Scalars fetch(const Slots& s, const u32 c) {{\n    \
         return {{s.done[c], s.counts[c]{loads}}};\n}}\n"
    )
}

/// Returns `fetch` and `conclude` for one column.
pub(super) fn program(dots: &[Dot], then: &[Op]) -> String {
    format!("{}{}", fetch(&slots_read(dots, then)), program_in(dots, then, OWN))
}

/// Returns the whole kernel of a sweep over vectors of several columns: `extern "C"` with the name
/// `sweep_<name>`. Bit `i` of `narrow` is set if vector `i` of those that are only read has one column, which
/// is used for every column.
///
/// A thread whose column is done reads and writes no vector. The blocks of a tile whose columns are all done
/// end at once: `done` changes only after all of them have read it.
pub(in crate::device::cuda) fn sweep(sweep: &Sweep<'_>, narrow: u8) -> String {
    let mut text = String::new();
    if !sweep.numbers.is_empty() {
        text.push_str(&numbers(MAX_NUMBERS));
    }
    if !sweep.dots.is_empty() {
        let _ = writeln!(text, "#define DOTS {}", sweep.dots.len());
    }
    text.push_str(COLUMNS);
    if !sweep.dots.is_empty() || !sweep.then.is_empty() {
        text.push_str(&program(sweep.dots, sweep.then));
    }
    let _ = writeln!(
        text,
        "extern \"C\" __global__ void __launch_bounds__(BLOCK) sweep_{}(PARAMETERS) {{\n    in_order();\n    \
         const OwnColumn own;\n    const u32 c = own.column;\n    \
         const bool runs = own.exists && s.done[c] == 0;\n    if (!__syncthreads_or(runs)) return;",
        sweep.name
    );
    for (name, value) in coefficients(sweep, 0) {
        let _ = writeln!(text, "    const SCALAR {name} = {value};");
    }
    if !sweep.dots.is_empty() {
        text.push_str("    double sums[DOTS] = {};\n");
    }
    text.push_str(&body(sweep, narrow));
    match (sweep.dots.is_empty(), sweep.then.is_empty()) {
        (false, _) => text.push_str(
            "    column_sum(s, own, sums, [&] { return fetch(s, c); },\n               \
             [&](const double* total, const Scalars& z) { conclude(s, c, total, z); });\n",
        ),
        // A program without vectors is launched as one block for each tile, over no rows.
        (true, false) => {
            text.push_str("    if (own.part == 0 && own.leads()) conclude(s, c, nullptr, fetch(s, c));\n");
        }
        (true, true) => {}
    }
    text.push_str("}\n");
    text
}

/// Returns the loop over rows.
fn body(sweep: &Sweep<'_>, narrow: u8) -> String {
    if sweep.writes + sweep.reads == 0 {
        return String::new();
    }
    let mut text = String::from(
        "    const u64 rows = runs ? n : 0;\n    \
         for (u64 base = own.first(); base < rows; base += own.stride()) {\n",
    );
    (0..sweep.writes).for_each(|i| text.push_str(&format!("        SCALAR w{i}[UNROLL];\n")));
    (0..sweep.reads).for_each(|i| text.push_str(&format!("        SCALAR r{i}[UNROLL];\n")));
    let per_row = |lines: Vec<String>| {
        let inner: String = lines.iter().map(|line| format!("                {line};\n")).collect();
        format!(
            "#pragma unroll\n        for (int e = 0; e < UNROLL; ++e) {{\n            \
             const u64 row = base + u64(e) * ROWS, i = row * K + c;\n            \
             if (row < rows) {{\n{inner}            }}\n        }}\n"
        )
    };
    text.push_str(&per_row(loads(sweep, |i| if narrow >> i & 1 == 1 { "row" } else { "i" })));
    let updates = sweep.updates.iter().enumerate();
    let mut compute: Vec<String> = updates.map(|(u, update)| assignment_in(u, update, OWN)).collect();
    compute.extend(stores(sweep));
    let sums = sweep.dots.iter().enumerate();
    compute.extend(sums.map(|(d, dot)| format!("sums[{d}] += {}", summand(dot))));
    text.push_str(&per_row(compute));
    text.push_str("    }\n");
    text
}
