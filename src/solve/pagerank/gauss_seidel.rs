//! Gauss-Seidel: updates the rank of each vertex in turn from the newest ranks of the other vertices.
//!
//! With a_ij the weights of the links into i from other vertices, l_i the weight of the link from i to itself, c_j = x_j / out_j, m the
//! sum of x over sinks, also the newest, and m_i the part of it that the policy gives to i:
//!
//! ```text
//! x_i = (d (sum of a_ij c_j) + d m_i + (1 - d) v_i) / (1 - d l_i / out_i)
//! ```
//!
//! This is a splitting of an M-matrix, so it converges from any start: on web crawls in about half the iterations of the power method,
//! and on graphs with many sinks in more, because updates of sinks reach the other vertices late.
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
use crate::parallel::{copied, room, run_all, split_front, tabulate};
use std::ops::Range;

/// Number of vectors that a pass accesses, including x.
pub(super) const VECTORS: usize = 5;
/// Parts of a large graph. On the crawl cnr-2000, 4 parts take as many passes as one part, and 8 parts take a third more.
const PARTS: usize = 4;
/// Links of a part at most, about: 32 bits count them.
const MOST_LINKS: usize = 1 << 31;
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
}

/// The links into the vertices of a part, except those from a vertex to itself.
struct Part {
    rows: Range<usize>,
    /// For each vertex: where its links from vertices of the part end, and where its links from other vertices, which follow, end.
    ends: Vec<[u32; 2]>,
    /// The vertices that links come from; those of the part are counted from the first of the part. Links of a kind are in the order of
    /// the graph.
    sources: Vec<u32>,
    /// Empty if each link weighs 1.
    weights: Vec<f64>,
}

/// Returns the sum of the contributions of sources, in four partial sums, because a single one would wait for each of its additions.
#[inline(always)]
fn sum<const WEIGHTED: bool>(sources: &[u32], weights: &[f64], contributions: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    if WEIGHTED {
        let (fours, rest) = sources.as_chunks::<4>();
        let (fours_of_weights, rest_of_weights) = weights.as_chunks::<4>();
        for (four, weights) in fours.iter().zip(fours_of_weights) {
            (0..4).for_each(|part| sums[part] += weights[part] * contributions[four[part] as usize]);
        }
        let rest = rest.iter().zip(rest_of_weights);
        sums.iter_mut().zip(rest).for_each(|(sum, (&j, weight))| *sum += weight * contributions[j as usize]);
    } else {
        let (fours, rest) = sources.as_chunks::<4>();
        for four in fours {
            (0..4).for_each(|part| sums[part] += contributions[four[part] as usize]);
        }
        sums.iter_mut().zip(rest).for_each(|(sum, &j)| *sum += contributions[j as usize]);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

impl Part {
    fn of(links: &Csr, rows: Range<usize>) -> Result<Part> {
        let weighted = !matches!(links.values(), Values::Ones);
        let most = rows.clone().map(|i| links.row_range(i).len()).sum();
        let (mut ends, mut sources) = (room(rows.len())?, room(most)?);
        let mut weights = room(if weighted { most } else { 0 })?;
        for i in rows.clone() {
            let mut end = [0; 2];
            for (kind, first) in [rows.start, 0].into_iter().enumerate() {
                let of_kind = |j: usize| rows.contains(&j) == (kind == 0) && j != i;
                for (j, weight) in links.row(i).filter(|(j, _)| of_kind(*j)) {
                    sources.push((j - first) as u32);
                    weights.extend(weighted.then_some(weight));
                }
                end[kind] = sources.len() as u32;
            }
            ends.push(end);
        }
        Ok(Part { rows, ends, sources, weights })
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.ends[..]) + size_of_val(&self.sources[..]) + size_of_val(&self.weights[..])
    }

    /// Updates the vertices of the part. Returns the l1 norm of the change.
    fn pass<const WEIGHTED: bool>(
        &self,
        (x, newest): (&mut [f64], &mut [f64]),
        (last, inverse, diagonal, out): (&[f64], &[f64], &[f64], &[f64]),
        damping: f64,
        mut stranded: f64,
        rest: impl Fn(usize, f64) -> f64,
    ) -> f64 {
        let (mut step, mut begin) = (0.0, 0);
        let own = inverse[self.rows.clone()].iter().zip(&diagonal[self.rows.clone()]);
        for (at, ((x, &[middle, end]), (inverse, diagonal))) in
            x.iter_mut().zip(&self.ends).zip(own).enumerate()
        {
            let (middle, end) = (middle as usize, end as usize);
            let of = |range: Range<usize>| {
                (&self.sources[range.clone()], if WEIGHTED { &self.weights[range] } else { &[] })
            };
            let (sources, weights) = of(begin..middle);
            let mut inflow = sum::<WEIGHTED>(sources, weights, newest);
            if middle < end {
                let (sources, weights) = of(middle..end);
                inflow += sum::<WEIGHTED>(sources, weights, last);
            }
            let next = (damping * inflow + rest(self.rows.start + at, stranded)) * diagonal;
            let change = next - *x;
            step += change.abs();
            *x = next;
            if out[self.rows.start + at] == 0.0 {
                stranded += change;
            }
            newest[at] = next * inverse;
            begin = end;
        }
        step
    }
}

impl State {
    /// Prepares the iteration from x.
    pub fn new(problem: &RankProblem<'_>, x: &[f64]) -> Result<State> {
        let (into, out, d) = (problem.links.incoming(), problem.links.out(), problem.damping);
        let count = if into.nnz() <= SMALL { 1 } else { PARTS.max(into.nnz() / MOST_LINKS) };
        let starts = partition::by_entries(into, count, 1);
        let parts =
            run_all(starts.windows(2).map(|ends| ends[0]..ends[1]).collect(), |rows| Part::of(into, rows));
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        let inverse = tabulate(x.len(), |i| if out[i] > 0.0 { 1.0 / out[i] } else { 1.0 })?;
        let newest = tabulate(x.len(), |i| x[i] * inverse[i])?;
        let diagonal = tabulate(x.len(), |i| {
            let kept = problem.dangling == Dangling::SelfLoop && out[i] == 0.0;
            let to_itself: f64 = into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum();
            // Divided, so that it is at most 1.
            let share = if out[i] > 0.0 { to_itself / out[i] } else { f64::from(u8::from(kept)) };
            1.0 / (1.0 - d * share)
        })?;
        Ok(State { parts, last: copied(&newest)?, newest, inverse, diagonal })
    }

    /// Returns the bytes of the links.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes() as u64).sum()
    }

    /// Performs one pass over all vertices. Returns the l1 norm of the change.
    pub fn pass(&mut self, device: &Cpu, problem: &RankProblem<'_>, x: &mut [f64]) -> f64 {
        let (n, d) = (x.len() as f64, problem.damping);
        // Recomputed in every pass, so that rounding errors do not accumulate.
        let stranded: f64 = problem.links.sinks().map(|vertex| x[vertex]).sum();
        let rest = |i: usize, stranded: f64| {
            let spread = match problem.dangling {
                Dangling::Uniform => stranded / n,
                Dangling::Personalised => stranded * problem.teleport(i),
                Dangling::SelfLoop | Dangling::Drop => 0.0,
            };
            d * spread + (1.0 - d) * problem.teleport(i)
        };
        let weighted = !matches!(problem.links.incoming().values(), Values::Ones);
        let State { parts, newest, last, inverse, diagonal, .. } = self;
        let (mut x_left, mut newest_left) = (&mut *x, &mut newest[..]);
        let mut tasks: Vec<_> = (parts.iter())
            .map(|part| {
                let rows = part.rows.len();
                (part, split_front(&mut x_left, rows), split_front(&mut newest_left, rows))
            })
            .collect();
        let (read, mut done) =
            ((&last[..], &inverse[..], &diagonal[..], problem.links.out()), vec![0.0; parts.len()]);
        device.each_chunk(&mut tasks, 1, &mut done, |_, task, step| {
            for (part, x, newest) in task {
                *step = match weighted {
                    true => part.pass::<true>((x, newest), read, d, stranded, rest),
                    false => part.pass::<false>((x, newest), read, d, stranded, rest),
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
        done.into_iter().sum()
    }
}
