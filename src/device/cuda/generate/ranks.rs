//! The text of the kernel that adds scalars over ranks.

use super::columns;
use crate::device::sweep::{Dot, Op, Operand, Slot, Summand};
use std::fmt::Write;

/// The text of direct messages.
pub(in crate::device::cuda) const DIRECT: &str = include_str!("../../../../kernels/direct.cuh");

/// The exchange of direct messages, which leaves the scalars of all ranks in `gathered`.
const EXCHANGE: &str = "
    const u32 round = rounds[0] + 1, numbers = WIDTH * K;
    for (u32 i = threadIdx.x; i < ranks * numbers; i += BLOCK) {
        const u32 to = i / numbers, number = i - to * numbers;
        Flagged<double>* place = reinterpret_cast<Flagged<double>*>(places[to]) + u64(round & 1) * half + rank * numbers + number;
        place->put(s.values[FIRST * K + number], round);
    }
    const Flagged<double>* own = reinterpret_cast<const Flagged<double>*>(places[rank]) + u64(round & 1) * half;
    for (u32 i = threadIdx.x; i < ranks * numbers; i += BLOCK) gathered[i] = take(own + i, round, stop);
    __syncthreads();
    if (threadIdx.x == 0) rounds[0] = round;
";

/// Returns the whole kernel, for one block: `extern "C"` with the name `sum_ranks`. It adds `slots` over
/// ranks, in the order of ranks, and runs a program. Of each rank, `gathered` has WIDTH slots from FIRST on;
/// with `direct` the kernel collects them first.
pub(in crate::device::cuda) fn sum(slots: &[Slot], first: usize, program: &[Op], direct: bool) -> String {
    // The programs of sweeps begin with sums, too: it does not matter of what.
    let of = Summand::Product(Operand::Ones, Operand::Ones);
    let dots: Vec<Dot> = slots.iter().map(|&out| Dot { of, out }).collect();
    let mut text = if direct { DIRECT.to_owned() } else { String::new() };
    text.push_str(&columns::program(&dots, program));
    text.push_str(
        "extern \"C\" __global__ void __launch_bounds__(BLOCK) sum_ranks(PARAMETERS) {\n    in_order();\n",
    );
    if direct {
        text.push_str(EXCHANGE);
    }
    let _ = writeln!(
        text,
        "    for (u32 c = threadIdx.x; c < K; c += BLOCK) {{\n        double sums[{}] = {{}};",
        slots.len()
    );
    for (i, slot) in slots.iter().enumerate() {
        let at = slot.0 as usize - first;
        let _ = writeln!(
            text,
            "        for (u32 r = 0; r < ranks; ++r) sums[{i}] += gathered[(r * WIDTH + {at}) * K + c];"
        );
    }
    text.push_str("        conclude(s, c, sums, fetch(s, c));\n    }\n}\n");
    text
}
