//! Gauss-Seidel: updates the rank of each vertex in turn from the newest ranks of the other vertices.
//!
//! # The system
//! Surfers at sinks often jump like the others. With m the sum of x over sinks, x = d P x + (d m + 1 - d) v then holds, and x is
//! a multiple of the solution of a system without m: y = d P y + (1 - d) v is x times (1 - d) / (1 - d + d m). Otherwise y is x
//! itself, and m, if the policy needs it, is that of the last pass. With a_ij the weights of the links into i from other vertices,
//! l_i the weight of the link from i to itself, and c_j = y_j / out_j:
//!
//! ```text
//! y_i = (d (sum of a_ij c_j) + (1 - d) v_i [+ d m / n]) / (1 - d l_i / out_i)
//! ```
//!
//! This is a splitting of an M-matrix, so it converges from any start: on web crawls in about half the iterations of the power method.
//! The estimate is that of the power method; it is no bound here, so the certificate decides.
//!
//! # Parts
//! The vertices of a large graph are cut into [`PARTS`] parts, which threads update at the same time. A part reads the newest c of its
//! own vertices, and the c of the last pass of the others. So the order of updates is fixed, and the result depends neither on the
//! number of threads nor on their speed. If most links stay within a part, as in crawls, about as many passes are needed as with one
//! part.

use super::{Dangling, RankProblem};
use crate::device::{Cpu, Device};
use crate::error::Result;
use crate::format::{Csr, Values, partition};
use crate::parallel::{copied, run_all, split_front, tabulate};
use std::ops::Range;

/// Number of vectors that a pass accesses, including x.
pub(super) const VECTORS: usize = 5;
/// Parts of a large graph. On the crawl cnr-2000, 4 parts take 64 passes, as one part does, and 8 parts take 85.
const PARTS: usize = 4;
/// Elements that a thread copies at once.
const COPIED: usize = 1 << 14;
/// Links up to which a graph has one part, because passes are too short to share.
const SMALL: usize = 1 << 17;

/// The vectors of the iteration, and the links in parts.
pub(super) struct State {
    parts: Vec<Part>,
    /// The contribution of each vertex along a link: the newest, and that of the last pass.
    newest: Vec<f64>,
    last: Vec<f64>,
    /// 1 over the weight of the links out of each vertex; 1 for a sink.
    inverse: Vec<f64>,
    /// 1 over the diagonal of the system.
    diagonal: Vec<f64>,
    /// Whether y is the solution without sinks.
    without_sinks: bool,
}

/// The links into the vertices of a part, except those from a vertex to itself.
struct Part {
    rows: Range<usize>,
    /// Where the links into each vertex begin: those from vertices of the part, counted from the first of the part, and those from
    /// other vertices. The links of each kind are in the order of the graph.
    inside: Rows,
    outside: Rows,
}

#[derive(Default)]
struct Rows {
    starts: Vec<usize>,
    sources: Vec<u32>,
    /// Empty if each link weighs 1.
    weights: Vec<f64>,
}

impl Rows {
    fn push(&mut self, source: usize, weight: Option<f64>) {
        self.sources.push(source as u32);
        self.weights.extend(weight);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.sources[..]) + size_of_val(&self.weights[..])
    }

    /// Returns the sum of the contributions of the sources of a vertex, in four partial sums, because a single one would wait for each
    /// of its additions.
    #[inline(always)]
    fn sum<const WEIGHTED: bool>(&self, vertex: usize, contributions: &[f64]) -> f64 {
        let range = self.starts[vertex]..self.starts[vertex + 1];
        let sources = &self.sources[range.clone()];
        let weights = if WEIGHTED { &self.weights[range] } else { &[][..] };
        let term = |at: usize| {
            let contribution = contributions[sources[at] as usize];
            if WEIGHTED { weights[at] * contribution } else { contribution }
        };
        let mut sums = [0.0; 4];
        let whole = sources.len() - sources.len() % sums.len();
        for at in (0..whole).step_by(sums.len()) {
            (0..sums.len()).for_each(|part| sums[part] += term(at + part));
        }
        (whole..sources.len()).for_each(|at| sums[at - whole] += term(at));
        (sums[0] + sums[2]) + (sums[1] + sums[3])
    }
}

impl Part {
    fn of(links: &Csr, rows: Range<usize>) -> Part {
        let (mut inside, mut outside) = (Rows::default(), Rows::default());
        let weighted = !matches!(links.values(), Values::Ones);
        for i in rows.clone() {
            inside.starts.push(inside.sources.len());
            outside.starts.push(outside.sources.len());
            for (j, weight) in links.row(i).filter(|(j, _)| *j != i) {
                let weight = weighted.then_some(weight);
                match rows.contains(&j) {
                    true => inside.push(j - rows.start, weight),
                    false => outside.push(j, weight),
                }
            }
        }
        inside.starts.push(inside.sources.len());
        outside.starts.push(outside.sources.len());
        Part { rows, inside, outside }
    }

    /// Updates the vertices of the part. Returns the l1 norm of the change, and the sum of the new y.
    fn pass<const WEIGHTED: bool>(
        &self,
        (y, newest): (&mut [f64], &mut [f64]),
        (last, inverse, diagonal): (&[f64], &[f64], &[f64]),
        damping: f64,
        rest: impl Fn(usize) -> f64,
    ) -> [f64; 2] {
        let (mut step, mut sum) = (0.0, 0.0);
        for at in 0..y.len() {
            let i = self.rows.start + at;
            let inflow = self.inside.sum::<WEIGHTED>(at, newest) + self.outside.sum::<WEIGHTED>(at, last);
            let next = (damping * inflow + rest(i)) * diagonal[i];
            step += (next - y[at]).abs();
            sum += next;
            y[at] = next;
            newest[at] = next * inverse[i];
        }
        [step, sum]
    }
}

impl State {
    /// Prepares the iteration from x, and replaces x by y.
    pub fn new(problem: &RankProblem<'_>, x: &mut [f64]) -> Result<State> {
        let (into, out, d) = (problem.links.incoming(), problem.links.out(), problem.damping);
        let count = if into.nnz() <= SMALL { 1 } else { PARTS };
        let starts = partition::by_entries(into, count, 1);
        let parts =
            run_all(starts.windows(2).map(|ends| ends[0]..ends[1]).collect(), |rows| Part::of(into, rows));
        let without_sinks = match problem.dangling {
            Dangling::Uniform => problem.teleport.is_none(),
            Dangling::Personalised => true,
            Dangling::SelfLoop | Dangling::Drop => false,
        };
        if without_sinks {
            let stranded: f64 = problem.links.sinks().map(|vertex| x[vertex]).sum();
            let share = (1.0 - d) / (1.0 - d + d * stranded);
            x.iter_mut().for_each(|x| *x *= share);
        }
        let inverse = tabulate(x.len(), |i| if out[i] > 0.0 { 1.0 / out[i] } else { 1.0 })?;
        let newest = tabulate(x.len(), |i| x[i] * inverse[i])?;
        let diagonal = tabulate(x.len(), |i| {
            let kept = problem.dangling == Dangling::SelfLoop && out[i] == 0.0;
            let to_itself: f64 = into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum();
            let share = if kept { 1.0 } else { to_itself * inverse[i] };
            1.0 / (1.0 - d * share)
        })?;
        Ok(State { parts, last: copied(&newest)?, newest, inverse, diagonal, without_sinks })
    }

    /// Returns the bytes of the links.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| (part.inside.bytes() + part.outside.bytes()) as u64).sum()
    }

    /// Performs one pass over all vertices. Returns the l1 norm of the change, as a part of the sum of y if y is a multiple of the
    /// ranks.
    pub fn pass(&mut self, device: &Cpu, problem: &RankProblem<'_>, y: &mut [f64]) -> f64 {
        let (n, d) = (y.len() as f64, problem.damping);
        let spread = match problem.dangling {
            // Recomputed in every pass, so that rounding errors do not accumulate.
            Dangling::Uniform if !self.without_sinks => {
                d / n * problem.links.sinks().map(|vertex| y[vertex]).sum::<f64>()
            }
            _ => 0.0,
        };
        let rest = |i: usize| (1.0 - d) * problem.teleport(i) + spread;
        let weighted = !matches!(problem.links.incoming().values(), Values::Ones);
        let State { parts, newest, last, inverse, diagonal, .. } = self;
        let (mut y_left, mut newest_left) = (&mut *y, &mut newest[..]);
        let mut tasks: Vec<_> = (parts.iter())
            .map(|part| {
                let rows = part.rows.len();
                (part, split_front(&mut y_left, rows), split_front(&mut newest_left, rows))
            })
            .collect();
        let (read, mut done) = ((&last[..], &inverse[..], &diagonal[..]), [[0.0; 2]; PARTS]);
        device.each_chunk(&mut tasks, 1, &mut done, |_, task, sums| {
            for (part, y, newest) in task {
                *sums = match weighted {
                    true => part.pass::<true>((y, newest), read, d, rest),
                    false => part.pass::<false>((y, newest), read, d, rest),
                };
            }
        });
        if parts.len() > 1 {
            device.each_chunk(
                last,
                COPIED,
                &mut vec![(); newest.len().div_ceil(COPIED)],
                |number, to, ()| {
                    to.copy_from_slice(&newest[number * COPIED..][..to.len()]);
                },
            );
        }
        let [step, sum] = done.into_iter().fold([0.0, 0.0], |all, part| [all[0] + part[0], all[1] + part[1]]);
        if self.without_sinks { step / sum } else { step }
    }
}
