//! Gauss-Seidel: updates the rank of each vertex in turn from the newest ranks of the other vertices.
//!
//! # The system
//! Let a_ij be the weight of the links into i from another vertex j, l_i that of the links from i to itself, out_i that of all links
//! out of i, and c_i = x_i / out_i. A pass replaces each c_i by
//!
//! ```text
//! c_i = (d (sum of a_ij c_j) + d u + (1 - d) v_i) / (out_i - d l_i)
//! ```
//!
//! If the surfer jumps from sinks as from other vertices, these jumps only scale x: u is 0, and x is scaled to the sum 1 in the end.
//! If it jumps from sinks to any vertex, but from others by a distribution v that is not uniform, u is the sum of x over the sinks
//! after the last pass, divided by the number of vertices.
//!
//! This is a splitting of an M-matrix, so passes converge from any start. The estimate is that of the power method; it is no bound
//! here, so the certificate decides.
//!
//! # The tail
//! A sink has no influence on the other vertices, and neither has a vertex that links only to such vertices. These vertices are the
//! tail of the graph. They are computed once, after the last pass. The others are its core.
//!
//! # Scaling
//! The sum of the equations of the core gives the sum of (out_j - d h_j) c_j, where h_j is the weight of the links from j that stay in
//! the core. After each pass, c is scaled to have this sum. Without scaling, c approaches its size as slowly as probability leaves the
//! core: R-MAT graphs of scale 16 and 18 took 7 times as many passes. On the crawl cnr-2000, scaling changes little.
//!
//! # Parts
//! The core of a large graph is cut into [`PARTS`] parts, which threads update at the same time. A part reads the newest c of its own
//! vertices, and the c of the last pass of the others. So the order of updates is fixed, and the result depends neither on the number
//! of threads nor on their speed.

use super::{Dangling, RankProblem};
use crate::device::{Cpu, Device};
use crate::error::Result;
use crate::format::{Csr, Values, partition};
use crate::parallel::{room, run_all, split_front, tabulate, zeros};
use std::ops::Range;

/// Parts of a large graph. On the crawl cnr-2000, 8 parts take 30 % more passes than 4.
const PARTS: usize = 4;
/// Links and rows of a part at most, about: 32 bits count its links in fours.
const MOST_WORK: usize = 1 << 31;
/// Links up to which a graph has one part, because passes are too short to share.
const SMALL: usize = 1 << 17;
/// Most rows in a series that share one sum of links; the sum is changed in each row, so rounding errors accumulate.
const SERIES: usize = 64;
/// Rows that are summed before their sum is added to that of the part, so that rounding errors stay small.
const SUMMED: usize = 128;
/// Scaling ends when a factor differs from 1 by less than this, divided by 1 - d.
const ROUNDING: f64 = 1e-13;
/// The number of a vertex of the tail in the core.
const NONE: u32 = u32::MAX;

/// The iteration: the vectors, and the links in parts.
pub(super) struct State {
    /// The vertices of the core, in increasing order.
    core: Vec<u32>,
    /// The vertices of the tail. A link within the tail leads from a later vertex to an earlier one.
    tail: Vec<u32>,
    parts: Vec<Part>,
    /// c of each vertex of the core after the last pass.
    c: Vec<f64>,
    /// The sum of (1 - d) v over the core.
    jumps: f64,
    /// Whether the next pass is followed by scaling.
    scaling: bool,
    /// The sum of x over the sinks, if the passes need it, and room for x.
    stranded: Option<(f64, Vec<f64>)>,
}

/// The links into some vertices of the core.
struct Part {
    rows: Vec<Row>,
    /// The places in `c` of the vertices that links come from, of each row in the order of the graph. The last four of a row are filled
    /// up with places of the 0: so a row takes one loop, whose end a processor can often predict.
    sources: Vec<u32>,
    /// Empty if each link weighs 1.
    weights: Vec<f64>,
    /// The vertices of other parts that links come from.
    outside: Vec<u32>,
    /// The newest c of the vertices of the part, then c of the vertices outside after the last pass, and a 0.
    c: Vec<f64>,
}

/// A vertex of the core.
struct Row {
    /// The end of its links in `sources`, in fours; or [`REPEATS`], if it has the links of the row before, which are stored once.
    end: u32,
    /// d / (out - d l)
    factor: f64,
    /// (1 - d) v / (out - d l)
    jump: f64,
    out: f64,
    /// l, the weight of the links from the vertex to itself.
    own: f64,
    /// out - d h, what a unit of c adds to the sum that scaling restores.
    leaves: f64,
}

/// The end of a row that has the links of the row before.
const REPEATS: u32 = u32::MAX;

/// What a pass over a part returns.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// The l1 norm of the change of x.
    step: f64,
    /// The sum of x.
    x: f64,
    /// The sum of (out - d h) c.
    leaves: f64,
}

/// What the core and the tail are made from.
struct Layout {
    core: Vec<u32>,
    tail: Vec<u32>,
    /// The number of each vertex in the core, or [`NONE`].
    numbers: Vec<u32>,
    /// The weight of the links from each vertex to itself.
    own: Vec<f64>,
    /// The weight of the links from each vertex to the tail.
    lost: Vec<f64>,
}

impl Layout {
    fn new(problem: &RankProblem<'_>) -> Result<Layout> {
        let (into, out) = (problem.links.incoming(), problem.links.out());
        let n = into.rows();
        let own =
            tabulate(n, |i| into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum::<f64>())?;
        // The number of links from each vertex to others that are not known to be of the tail.
        let mut left: Vec<u64> = match into.values() {
            Values::Ones => tabulate(n, |i| (out[i] - own[i]) as u64)?,
            _ => zeros(n)?,
        };
        if !matches!(into.values(), Values::Ones) {
            for i in 0..n {
                links_into(into, i).filter(|(j, _)| *j != i).for_each(|(j, _)| left[j] += 1);
            }
        }
        let mut lost = zeros(n)?;
        let mut tail: Vec<u32> = room(n)?;
        tail.extend((0..n).filter(|&i| left[i] == 0).map(|i| i as u32));
        let mut next = 0;
        while let Some(&vertex) = tail.get(next) {
            next += 1;
            let i = vertex as usize;
            for (j, weight) in links_into(into, i).filter(|(j, _)| *j != i) {
                lost[j] += weight;
                left[j] -= 1;
                if left[j] == 0 {
                    tail.push(j as u32);
                }
            }
        }
        let mut core = room(n - tail.len())?;
        let mut numbers = room(n)?;
        for (i, &left) in left.iter().enumerate() {
            numbers.push(if left == 0 { NONE } else { core.len() as u32 });
            core.extend((left > 0).then_some(i as u32));
        }
        Ok(Layout { core, tail, numbers, own, lost })
    }

    /// Returns the part of a range of the core.
    fn part(&self, problem: &RankProblem<'_>, range: Range<usize>) -> Result<Part> {
        let (links, out, d) = (problem.links.incoming(), problem.links.out(), problem.damping);
        let weighted = !matches!(links.values(), Values::Ones);
        let length = |i: &u32| links.row_range(*i as usize).len().next_multiple_of(4);
        let most = self.core[range.clone()].iter().map(length).sum();
        let mut rows = room::<Row>(range.len())?;
        let (mut sources, mut weights) = (room(most)?, room(if weighted { most } else { 0 })?);
        let (outside, places) = self.outside(links, &range)?;
        let zero = (range.len() + outside.len()) as u32;
        let (mut before, mut series) = (0..0, 0);
        for &i in &self.core[range.clone()] {
            let i = i as usize;
            let begin = sources.len();
            for (j, weight) in links_into(links, i) {
                let number = self.numbers[j] as usize;
                let inside = range.contains(&number);
                sources.push(if inside { (number - range.start) as u32 } else { places[number] });
                weights.extend(weighted.then_some(weight));
            }
            let end = begin + (sources.len() - begin).next_multiple_of(4);
            sources.resize(end, zero);
            weights.resize(if weighted { end } else { 0 }, 0.0);
            let repeats = series > 0
                && series < SERIES
                && sources[before.clone()] == sources[begin..end]
                && (!weighted || weights[before.clone()] == weights[begin..end]);
            if repeats {
                sources.truncate(begin);
                weights.truncate(begin);
                series += 1;
            } else {
                (before, series) = (begin..end, 1);
            }
            let divisor = out[i] - d * self.own[i];
            rows.push(Row {
                end: if repeats { REPEATS } else { (end / 4) as u32 },
                factor: d / divisor,
                jump: (1.0 - d) * problem.teleport(i) / divisor,
                out: out[i],
                own: self.own[i],
                leaves: (1.0 - d) * out[i] + d * self.lost[i],
            });
        }
        let c = zeros(range.len() + outside.len() + 1)?;
        Ok(Part { rows, sources, weights, outside, c })
    }

    /// Returns the vertices that have links into a range of the core from outside of it, and the place of each of them in `c` of the
    /// part, by its number.
    fn outside(&self, links: &Csr, range: &Range<usize>) -> Result<(Vec<u32>, Vec<u32>)> {
        let mut places = zeros::<u32>(self.core.len())?;
        for &i in &self.core[range.clone()] {
            for (j, _) in links_into(links, i as usize) {
                places[self.numbers[j] as usize] = 1;
            }
        }
        places[range.clone()].fill(0);
        let mut outside = room(places.iter().filter(|needed| **needed == 1).count())?;
        for (number, place) in places.iter_mut().enumerate().filter(|(_, needed)| **needed == 1) {
            *place = (range.len() + outside.len()) as u32;
            outside.push(number as u32);
        }
        Ok((outside, places))
    }
}

/// Returns the links into a vertex, without those of weight 0.
fn links_into(links: &Csr, vertex: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
    links.row(vertex).filter(|(_, weight)| *weight > 0.0)
}

impl Part {
    fn bytes(&self) -> usize {
        size_of_val(&self.rows[..])
            + size_of_val(&self.sources[..])
            + size_of_val(&self.weights[..])
            + size_of_val(&self.outside[..])
    }

    /// Returns the sum of c over some links, in four partial sums, because a single one would wait for each of its additions.
    #[inline(always)]
    fn sum<const WEIGHTED: bool>(&self, fours: Range<usize>) -> f64 {
        let mut sums = [0.0; 4];
        let (sources, _) = self.sources.as_chunks::<4>();
        let (weights, _) = self.weights.as_chunks::<4>();
        if WEIGHTED {
            for (sources, weights) in sources[fours.clone()].iter().zip(&weights[fours]) {
                (0..4).for_each(|lane| sums[lane] += weights[lane] * self.at(sources[lane]));
            }
        } else {
            for sources in &sources[fours] {
                (0..4).for_each(|lane| sums[lane] += self.at(sources[lane]));
            }
        }
        (sums[0] + sums[2]) + (sums[1] + sums[3])
    }

    #[inline(always)]
    fn at(&self, place: u32) -> f64 {
        debug_assert!((place as usize) < self.c.len());
        // SAFETY: `Layout::part` makes `c` with a place for each vertex that it writes to `sources`, and for the 0. The length of `c`
        // never changes.
        unsafe { *self.c.get_unchecked(place as usize) }
    }

    /// Copies c of the vertices outside from that of the core.
    fn fetch(&mut self, core: &[f64]) {
        let rows = self.rows.len();
        self.c[rows..].iter_mut().zip(&self.outside).for_each(|(c, &number)| *c = core[number as usize]);
    }

    /// Updates the vertices of the part. `from_sinks` is u.
    fn pass<const WEIGHTED: bool>(&mut self, from_sinks: f64) -> Sums {
        let mut sums = Sums::default();
        let (mut begin, mut inflow) = (0, 0.0);
        for first in (0..self.rows.len()).step_by(SUMMED) {
            let mut few = Sums::default();
            for at in first..self.rows.len().min(first + SUMMED) {
                let row = &self.rows[at];
                if row.end != REPEATS {
                    let end = row.end as usize;
                    inflow = self.sum::<WEIGHTED>(begin..end);
                    begin = end;
                }
                let before = self.c[at];
                let others = inflow - row.own * before;
                // Rounding must not make a rank negative.
                let others = if others < 0.0 { 0.0 } else { others };
                let next = row.factor * (others + from_sinks) + row.jump;
                let change = next - before;
                // The rows that repeat this one read its newest c.
                inflow += row.own * change;
                few.step += change.abs() * row.out;
                few.x += next * row.out;
                few.leaves += next * row.leaves;
                self.c[at] = next;
            }
            sums.add(few);
        }
        sums
    }
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.step += other.step;
        self.x += other.x;
        self.leaves += other.leaves;
    }
}

/// Returns the factor that gives the core the right sum.
fn scale(jumps: f64, leaves: f64) -> f64 {
    if leaves > 0.0 { jumps / leaves } else { 1.0 }
}

impl State {
    /// Prepares the iteration from the start of the problem.
    pub fn new(problem: &RankProblem<'_>) -> Result<State> {
        let (into, out) = (problem.links.incoming(), problem.links.out());
        let layout = Layout::new(problem)?;
        let work = into.nnz() + partition::ROW * into.rows();
        let count = if into.nnz() <= SMALL { 1 } else { PARTS.max(work.div_ceil(MOST_WORK)) };
        let core = &layout.core;
        let starts: Vec<usize> = (partition::by_entries(into, count, 1).into_iter())
            .map(|start| core.partition_point(|&i| (i as usize) < start))
            .collect();
        let parts = run_all(starts.windows(2).map(|ends| ends[0]..ends[1]).collect(), |range| {
            layout.part(problem, range)
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        let mut c =
            tabulate(core.len(), |number| problem.start(core[number] as usize) / out[core[number] as usize])?;
        let jumps = core.iter().map(|&i| (1.0 - problem.damping) * problem.teleport(i as usize)).sum::<f64>();
        let jumps_from_sinks = problem.dangling == Dangling::Uniform && problem.teleport.is_some();
        let stranded = match jumps_from_sinks {
            true => Some((problem.links.sinks().map(|i| problem.start(i)).sum(), zeros(into.rows())?)),
            false => None,
        };
        let rows = parts.iter().flat_map(|part| &part.rows);
        let leaves = rows.zip(&c).map(|(row, c)| row.leaves * c).sum();
        let Layout { core, tail, .. } = layout;
        let mut state = State { core, tail, parts, c: Vec::new(), jumps, scaling: true, stranded };
        let scale = scale(state.all_jumps(problem), leaves);
        c.iter_mut().for_each(|c| *c *= scale);
        for (part, start) in state.parts.iter_mut().zip(starts) {
            let rows = part.rows.len();
            part.c[..rows].copy_from_slice(&c[start..start + rows]);
            part.fetch(&c);
        }
        Ok(State { c, ..state })
    }

    /// Returns the bytes of the links, with the numbers of each vertex that a pass reads beside them.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes() as u64).sum()
    }

    /// Returns the bytes of the vectors.
    pub fn vector_bytes(&self) -> u64 {
        let x = self.stranded.as_ref().map_or(0, |(_, x)| size_of_val(&x[..]));
        let of_parts: usize = self.parts.iter().map(|part| size_of_val(&part.c[..])).sum();
        (size_of_val(&self.c[..]) + of_parts + x) as u64
    }

    /// Returns what a vertex gets from sinks by their jumps to any vertex, divided by d.
    fn share_of_sinks(&self, problem: &RankProblem<'_>) -> f64 {
        self.stranded.as_ref().map_or(0.0, |(sum, _)| sum / problem.links.vertices() as f64)
    }

    /// Returns whether x is scaled to the sum 1 in the end, because jumps from sinks are left out.
    fn is_scaled(&self, problem: &RankProblem<'_>) -> bool {
        let jumps = matches!(problem.dangling, Dangling::Uniform | Dangling::Personalised);
        jumps && self.stranded.is_none()
    }

    /// Returns what all vertices of the core get by jumps.
    fn all_jumps(&self, problem: &RankProblem<'_>) -> f64 {
        self.jumps + problem.damping * self.share_of_sinks(problem) * self.core.len() as f64
    }

    /// Performs one pass over the core. Returns the l1 norm of the change.
    pub fn pass(&mut self, device: &Cpu, problem: &RankProblem<'_>) -> f64 {
        let (from_sinks, jumps, d) = (self.share_of_sinks(problem), self.all_jumps(problem), problem.damping);
        let weighted = !matches!(problem.links.incoming().values(), Values::Ones);
        let parts = &mut self.parts;
        let mut done = vec![Sums::default(); parts.len()];
        device.each_chunk(parts, 1, &mut done, |_, part, sums| {
            *sums = match weighted {
                true => part[0].pass::<true>(from_sinks),
                false => part[0].pass::<false>(from_sinks),
            };
        });
        let mut sums = Sums::default();
        done.into_iter().for_each(|part| sums.add(part));
        let scale = if self.scaling { scale(jumps, sums.leaves) } else { 1.0 };
        // Rounding errors of the sum must not keep c from converging.
        self.scaling &= (scale - 1.0).abs() > ROUNDING / (1.0 - d);
        let mut left = &mut self.c[..];
        let mut pieces: Vec<_> = parts.iter().map(|part| split_front(&mut left, part.rows.len())).collect();
        device.each_chunk(parts, 1, &mut pieces, |_, part, piece| {
            for (own, c) in part[0].c.iter_mut().zip(piece.iter_mut()) {
                *own *= scale;
                *c = *own;
            }
        });
        let c = &self.c;
        let mut nothing = vec![(); parts.len()];
        device.each_chunk(parts, 1, &mut nothing, |_, part, ()| part[0].fetch(c));
        // The sum of x over all vertices is at least this, as vertices of the core send d x along their links.
        let whole = if self.is_scaled(problem) { (1.0 - d) + d * sums.x * scale } else { 1.0 };
        let step = sums.step / whole;
        let Some((before, mut x)) = self.stranded.take() else { return step };
        self.compute(problem, before / x.len() as f64, &mut x);
        let after: f64 = problem.links.sinks().map(|i| x[i]).sum();
        self.stranded = Some((after, x));
        step + (after - before).abs()
    }

    /// Returns the ranks, before they are scaled to the sum 1.
    pub fn ranks(&self, problem: &RankProblem<'_>) -> Result<Vec<f64>> {
        let mut x = zeros(problem.links.vertices())?;
        self.compute(problem, self.share_of_sinks(problem), &mut x);
        Ok(x)
    }

    /// Computes the ranks of all vertices from c of the core. `from_sinks` is u.
    fn compute(&self, problem: &RankProblem<'_>, from_sinks: f64, x: &mut [f64]) {
        let (into, out, d) = (problem.links.incoming(), problem.links.out(), problem.damping);
        let kept = if problem.dangling == Dangling::SelfLoop { 1.0 } else { 0.0 };
        // First x is c.
        self.core.iter().zip(&self.c).for_each(|(&i, c)| x[i as usize] = *c);
        for &i in self.tail.iter().rev() {
            let i = i as usize;
            let (mut inflow, mut own) = (from_sinks, 0.0);
            for (j, weight) in links_into(into, i) {
                if j == i { own += weight } else { inflow += weight * x[j] }
            }
            let (out, own) = if out[i] > 0.0 { (out[i], own) } else { (1.0, kept) };
            x[i] = (d * inflow + (1.0 - d) * problem.teleport(i)) / (out - d * own);
        }
        x.iter_mut().zip(out).filter(|(_, out)| **out > 0.0).for_each(|(x, out)| *x *= out);
    }
}
