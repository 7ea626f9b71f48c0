//! The text of the kernel that runs a step many times.

use super::{Action, Pass, Trace};
use crate::device::cuda::generate;
use std::collections::BTreeSet;
use std::fmt::Write;

impl Trace {
    /// Returns the kernel's text, over the parameters of the trace.
    pub(super) fn text(&self) -> String {
        let (gathered, written) = (self.gathered(), self.written());
        let mut text = String::new();
        if !self.numbers.is_empty() {
            text.push_str(&generate::numbers(self.numbers.len()));
        }
        for (i, action) in self.actions.iter().enumerate() {
            if let Action::Sweep(Pass { program: Some((program, _)), .. }) = action {
                let _ = writeln!(text, "namespace at_{i} {{\n{program}}}");
            }
        }
        text.push_str(
            "extern \"C\" __global__ void __launch_bounds__(BLOCK, 1) burst(PARAMETERS) {\n    \
             __shared__ OwnScalars scalars;\n    in_order();\n    const Slots s = scalars.fetch(home);\n    \
             if (s.done[0] != 0) return;\n    const OwnRows own(matrix, rows);\n    \
             Meeting all = {words, *last_round};\n",
        );
        for v in 0..self.vectors.len() {
            let _ = writeln!(
                text,
                "    SCALAR v{v}[ROWS];\n#pragma unroll\n    for (int e = 0; e < ROWS; ++e) \
                 v{v}[e] = own.row[e] < rows ? p{v}[own.row[e]] : SCALAR(0);"
            );
        }
        gathered.iter().for_each(|v| text.push_str(&format!("    Gathered g{v} = {{p{v}, q{v}}};\n")));
        text.push_str("    for (u32 step = 0; step < times; ++step) {\n");
        // A step begins with the vectors that the previous step has published since the blocks last met. So
        // the text of the first call is dropped: it only finds these vectors.
        let mut unsynced = BTreeSet::new();
        self.steps(&gathered, &mut unsynced);
        text.push_str(&self.steps(&gathered, &mut unsynced));
        // Other blocks may still gather from the memory that receives the last versions.
        text.push_str("    }\n    meet(all);\n");
        for v in written {
            let _ = writeln!(
                text,
                "#pragma unroll\n    for (int e = 0; e < ROWS; ++e)\n        \
                 if (own.row[e] < rows) p{v}[own.row[e]] = v{v}[e];"
            );
        }
        text.push_str(
            "    if (blockIdx.x != 0) return;\n    scalars.leave(home);\n    \
             if (threadIdx.x == 0) *last_round = all.round;\n}\n",
        );
        text
    }

    /// Returns the text of one step; `unsynced` are the vectors that were published since the
    /// blocks last met.
    fn steps(&self, gathered: &BTreeSet<usize>, unsynced: &mut BTreeSet<usize>) -> String {
        let mut text = String::new();
        let publish = |text: &mut String, unsynced: &mut BTreeSet<usize>, v: usize| {
            if !gathered.contains(&v) {
                return;
            }
            if !unsynced.insert(v) {
                // Another block may still gather from the version before the last.
                text.push_str("        meet(all);\n");
                unsynced.retain(|other| *other == v);
            }
            let _ = writeln!(text, "        g{v}.publish(own, rows, v{v});");
        };
        for (i, action) in self.actions.iter().enumerate() {
            match action {
                Action::Product { x, y } => {
                    if unsynced.contains(x) {
                        text.push_str("        meet(all);\n");
                        unsynced.clear();
                    }
                    let _ = writeln!(
                        text,
                        "#pragma unroll\n        for (int e = 0; e < ROWS; ++e) v{y}[e] = own.product(e, g{x}.now);"
                    );
                    publish(&mut text, unsynced, *y);
                }
                Action::Sweep(pass) => {
                    text.push_str(&pass.before_sums());
                    pass.targets.iter().for_each(|v| publish(&mut text, unsynced, *v));
                    if !pass.summands.is_empty() {
                        unsynced.clear();
                    }
                    text.push_str(&pass.after_sums(i));
                }
            }
        }
        text
    }
}

impl Pass {
    /// Returns the updates, and each thread's summands.
    fn before_sums(&self) -> String {
        let mut text = format!("        {{  // {}\n            const int c = 0;\n", self.name);
        for (role, vectors) in [("w", &self.writes), ("r", &self.reads)] {
            for (i, v) in vectors.iter().enumerate() {
                let _ = writeln!(text, "            SCALAR (&{role}{i})[ROWS] = v{v};");
            }
        }
        for (name, value) in &self.coefficients {
            let _ = writeln!(text, "            const SCALAR {name}[1] = {{{value}}};");
        }
        if !self.summands.is_empty() {
            let _ = writeln!(text, "            double sums[{}] = {{}};", self.summands.len());
        }
        text.push_str("#pragma unroll\n            for (int e = 0; e < ROWS; ++e) {\n");
        self.assignments.iter().for_each(|a| text.push_str(&format!("                {a};\n")));
        for (d, summand) in self.summands.iter().enumerate() {
            let _ = writeln!(text, "                if (own.row[e] < rows) sums[{d}] += {summand};");
        }
        text.push_str("            }\n");
        text
    }

    /// Returns the sums of all blocks, and the program.
    fn after_sums(&self, index: usize) -> String {
        let mut text = String::new();
        if let Some((_, may_stop)) = &self.program {
            let conclude = |sums| format!("at_{index}::conclude(s, {sums}, at_{index}::fetch(s));");
            if self.summands.is_empty() {
                let alone = conclude("nullptr");
                let _ = writeln!(
                    text,
                    "            __syncthreads();\n            if (threadIdx.x == 0) {alone}\n            \
                     __syncthreads();"
                );
            } else {
                let then = conclude("total");
                let _ = writeln!(text, "            meet(all, sums, [&](const double* total) {{ {then} }});");
            }
            text.push_str(if *may_stop { "            if (s.done[0] != 0) break;\n" } else { "" });
        }
        text.push_str("        }\n");
        text
    }
}
