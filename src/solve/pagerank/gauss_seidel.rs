//! Gauss-Seidel: updates the rank of each vertex in turn from the newest ranks of the other vertices.
//!
//! # The system
//! Let a_ij be the weight of the links into i from another vertex j, l_i that of the links from i to itself,
//! out_i that of all links out of i, and c_i = x_i / out_i. A pass replaces each c_i by
//!
//! ```text
//! c_i = (d (sum of a_ij c_j) + d u + (1 - d) v_i) / (out_i - d l_i)
//! ```
//!
//! If the surfer jumps from sinks as from other vertices, these jumps only scale x: u is 0, and x is scaled
//! to the sum 1 in the end. If it jumps from sinks to any vertex, but from others by a distribution v that is
//! not uniform, u is the sum of x over the sinks after the last pass, divided by the number of vertices.
//!
//! This is a splitting of an M-matrix, so passes converge from any start. The estimate is that of the power
//! method; it is no bound here, so the certificate decides.
//!
//! # The tail
//! A sink has no links to other vertices, and some vertices lead to sinks alone. These vertices are
//! the tail of the graph, the others its core. Links from the core into the tail do not lead back, so
//! the passes update the core alone. The tail is computed from it when the answer is needed, and
//! after each pass if u is.
//!
//! # Scaling
//! The sum of the equations of the core gives the sum of (out_j - d h_j) c_j, where h_j is the weight of the
//! links from j that stay in the core. After each pass, c is scaled to have this sum. If u is needed, c and u
//! are then scaled so that x, the tail included, has the sum 1. Without scaling, c approaches its size as
//! slowly as probability leaves the core: R-MAT graphs of scale 16 and 18 took 72 and 75 passes, and take 15
//! and 17. On the crawl cnr-2000, scaling changes little.
//!
//! For a fixed u, a pass with scaling is a step of power iteration with a matrix whose largest eigenvalue is
//! 1, and all others are at most d in magnitude. So scaling does not keep passes from converging.
//!
//! # Parts
//! The core of a large graph is cut into parts, which threads update at the same time. A part reads the
//! newest c of its own vertices, and the c of the last pass of the others. So the order of updates is fixed,
//! and the result depends neither on the number of threads nor on their speed.

mod parts;

use super::{Dangling, RankProblem};
use crate::device::{Cpu, Device};
use crate::error::{Error, Result};
use crate::format::{Csr, Values};
use crate::parallel::{run_all, split_front, tabulate, zeros};
use crate::solve::rounding::{Total, sum, sum_in_chunks};
pub(crate) use parts::Parts;
use parts::{Part, REPEATS};

/// Rows that are summed before their sum is added to that of the part, so that rounding errors stay small.
const SUMMED: usize = 128;
/// Scaling of c ends when a factor differs from 1 by less than this.
const ROUNDING: f64 = 1e-13;

/// The iteration.
pub(super) struct State<'a> {
    problem: &'a RankProblem<'a>,
    /// The core in parts, and the tail.
    graph: &'a Parts,
    parts: Vec<PartState<'a>>,
    /// c of each vertex of the core after the last pass.
    c: Vec<f64>,
    /// The sum of (1 - d) v over the core.
    jumps: f64,
    /// Whether the next pass is followed by scaling.
    scaling: bool,
    /// The sum of x over the sinks, if the passes need it, and room for x.
    stranded: Option<(f64, Vec<f64>)>,
}

/// The numbers of a part.
struct PartState<'a> {
    part: &'a Part,
    /// c by place: the newest c of the vertices of the part, then c after the last pass of the
    /// vertices outside, then a 0.
    c: Vec<f64>,
    /// 1 / (out - d l) for each row.
    units: Vec<f64>,
    /// (1 - d) v for each row; empty if it is the same for all.
    jumps: Vec<f64>,
}

/// What all rows of a pass share.
#[derive(Clone, Copy)]
struct Terms {
    damping: f64,
    /// u
    from_sinks: f64,
    /// (1 - d) v, if it is the same for all rows.
    jump: f64,
}

/// Sums over some vertices of the core.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// The l1 norm of the change of x by a pass.
    step: f64,
    /// The sum of x.
    x: f64,
    /// The sum of what leaves the core for the tail: the weight of the links times c.
    lost: f64,
}

/// Sums of [`Sums`] that are rounded about once.
#[derive(Default)]
struct Totals {
    step: Total,
    x: Total,
    lost: Total,
}

/// Returns the links into a vertex, without those of weight 0.
fn links_into(links: &Csr, vertex: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
    links.row(vertex).filter(|(_, weight)| *weight > 0.0)
}

impl<'a> PartState<'a> {
    fn new(part: &'a Part, core: &[u32], problem: &RankProblem<'_>) -> Result<PartState<'a>> {
        let (d, rows) = (problem.damping, part.rows().len());
        let own = &core[part.start..part.start + rows];
        let units = tabulate(rows, |at| 1.0 / (part.rows()[at].out - d * part.rows()[at].own))?;
        let varied = if problem.teleport.is_some() { rows } else { 0 };
        let jumps = tabulate(varied, |at| (1.0 - d) * problem.teleport(own[at] as usize))?;
        Ok(PartState { part, c: zeros(part.places())?, units, jumps })
    }

    /// Returns the bytes of the vectors that a pass only reads.
    fn constants(&self) -> usize {
        size_of_val(&self.units[..]) + size_of_val(&self.jumps[..])
    }

    /// Copies c from that of the core.
    fn fetch(&mut self, core: &[f64]) {
        let PartState { part, c, .. } = self;
        let (own, outside) = c.split_at_mut(part.rows().len());
        own.copy_from_slice(&core[part.start..part.start + own.len()]);
        outside.iter_mut().zip(part.outside()).for_each(|(c, &number)| *c = core[number as usize]);
    }

    /// Updates the vertices of the part.
    fn pass<const WEIGHTED: bool, const VARIED: bool>(&mut self, terms: Terms) -> Sums {
        let PartState { part, c, units, jumps } = self;
        let rows = part.rows();
        assert!(c.len() == part.places() && units.len() == rows.len());
        let mut totals = Totals::default();
        let (mut begin, mut inflow) = (0, 0.0);
        for first in (0..rows.len()).step_by(SUMMED) {
            let mut few = Sums::default();
            for at in first..rows.len().min(first + SUMMED) {
                let row = &rows[at];
                if row.end != REPEATS {
                    let end = row.end as usize;
                    // SAFETY: the length of `c` has been checked above.
                    inflow = unsafe { part.sum::<WEIGHTED>(c, begin..end) };
                    begin = end;
                }
                let before = c[at];
                let others = inflow - row.own * before;
                // Rounding must not make a rank negative.
                let others = if others < 0.0 { 0.0 } else { others };
                let jump = if VARIED { jumps[at] } else { terms.jump };
                let next = units[at] * (terms.damping * (others + terms.from_sinks) + jump);
                let change = next - before;
                // The rows that repeat this one read its newest c.
                inflow += row.own * change;
                few.step += change.abs() * row.out;
                few.x += next * row.out;
                few.lost += next * row.lost;
                c[at] = next;
            }
            totals.add(few);
        }
        totals.sums()
    }
}

impl Sums {
    /// Returns the factor that gives the core the right sum; none if the core has nothing. `jumps` is what
    /// all of its vertices get by jumps.
    fn scale(&self, jumps: f64, damping: f64) -> Option<f64> {
        let leaves = (1.0 - damping) * self.x + damping * self.lost;
        (leaves > 0.0).then(|| jumps / leaves)
    }
}

impl Totals {
    fn add(&mut self, sums: Sums) {
        self.step.add(sums.step);
        self.x.add(sums.x);
        self.lost.add(sums.lost);
    }

    fn sums(&self) -> Sums {
        Sums { step: self.step.value(), x: self.x.value(), lost: self.lost.value() }
    }
}

impl<'a> State<'a> {
    /// Prepares the iteration from the start of the problem, whose links `graph` was made from.
    pub(crate) fn new(graph: &'a Parts, problem: &'a RankProblem<'a>) -> Result<State<'a>> {
        let (links, out, core) = (problem.links, problem.links.out(), &graph.core);
        if !graph.are_of(links) {
            let reason = "the parts were made from the links of another graph; make them from the links of the problem";
            return Err(Error::setting("parts", "", reason));
        }
        let parts = run_all(graph.parts.iter().collect(), |part: &Part| PartState::new(part, core, problem));
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        let mut c =
            tabulate(core.len(), |number| problem.start(core[number] as usize) / out[core[number] as usize])?;
        let jumps = sum(core.iter().map(|&i| (1.0 - problem.damping) * problem.teleport(i as usize)));
        let jumps_from_sinks = problem.dangling == Dangling::Uniform && problem.teleport.is_some();
        let stranded = match jumps_from_sinks {
            true => Some((sum(links.sinks().map(|i| problem.start(i))), zeros(links.vertices())?)),
            false => None,
        };
        let mut totals = Totals::default();
        for (row, c) in graph.parts.iter().flat_map(Part::rows).zip(&c) {
            totals.add(Sums { step: 0.0, x: row.out * c, lost: row.lost * c });
        }
        let mut state = State { problem, graph, parts, c: Vec::new(), jumps, scaling: true, stranded };
        let scale = totals.sums().scale(state.all_jumps(), problem.damping).unwrap_or(1.0);
        c.iter_mut().for_each(|c| *c *= scale);
        state.parts.iter_mut().for_each(|part| part.fetch(&c));
        Ok(State { c, ..state })
    }

    /// Returns the bytes of the vectors.
    pub(crate) fn vector_bytes(&self) -> u64 {
        self.constants() + self.changing()
    }

    /// Returns the bytes that a pass moves: it reads the links, and reads and writes the
    /// vectors that it changes.
    pub(crate) fn bytes_of_pass(&self) -> u64 {
        let tail = if self.stranded.is_some() { self.graph.bytes_of_tail() } else { 0 };
        self.graph.bytes() + tail + self.constants() + 2 * self.changing()
    }

    fn constants(&self) -> u64 {
        self.parts.iter().map(|part| part.constants() as u64).sum()
    }

    fn changing(&self) -> u64 {
        let x = self.stranded.as_ref().map_or(0, |(_, x)| size_of_val(&x[..]));
        let of_parts: usize = self.parts.iter().map(|part| size_of_val(&part.c[..])).sum();
        (size_of_val(&self.c[..]) + of_parts + x) as u64
    }

    /// Returns what a vertex gets from sinks by their jumps to any vertex, divided by d.
    fn share_of_sinks(&self) -> f64 {
        self.stranded.as_ref().map_or(0.0, |(sum, x)| sum / x.len() as f64)
    }

    /// Returns whether x is scaled to the sum 1 in the end, because jumps from sinks are left out.
    fn is_scaled(&self) -> bool {
        let jumps = matches!(self.problem.dangling, Dangling::Uniform | Dangling::Personalised);
        jumps && self.stranded.is_none()
    }

    /// Returns what all vertices of the core get by jumps.
    fn all_jumps(&self) -> f64 {
        self.jumps + self.problem.damping * self.share_of_sinks() * self.graph.core.len() as f64
    }

    /// Performs one pass over the core. Returns the l1 norm of the change by the updates, without scaling.
    pub(crate) fn pass(&mut self, device: &Cpu) -> f64 {
        let (d, from_sinks, jumps) = (self.problem.damping, self.share_of_sinks(), self.all_jumps());
        let jump = (1.0 - d) / self.problem.links.vertices() as f64;
        let terms = Terms { damping: d, from_sinks, jump };
        let weighted = !matches!(self.problem.links.incoming().values(), Values::Ones);
        let pass = match (weighted, self.problem.teleport.is_some()) {
            (false, false) => PartState::pass::<false, false>,
            (false, true) => PartState::pass::<false, true>,
            (true, false) => PartState::pass::<true, false>,
            (true, true) => PartState::pass::<true, true>,
        };
        let mut done = vec![Sums::default(); self.parts.len()];
        device.each_chunk(&mut self.parts, 1, &mut done, |_, part, sums| *sums = pass(&mut part[0], terms));
        let mut totals = Totals::default();
        done.into_iter().for_each(|part| totals.add(part));
        let sums = totals.sums();
        let scale = sums.scale(jumps, d).filter(|_| self.scaling);
        // Rounding errors of the sums must not keep c from converging.
        self.scaling &= scale.is_none_or(|scale| (scale - 1.0).abs() > ROUNDING);
        let scale = scale.unwrap_or(1.0);
        let mut left = &mut self.c[..];
        let mut newest: Vec<_> =
            self.parts.iter().map(|state| split_front(&mut left, state.part.rows().len())).collect();
        device.each_chunk(&mut self.parts, 1, &mut newest, |_, part, rows| {
            rows.iter_mut().zip(&part[0].c).for_each(|(c, newest)| *c = newest * scale);
        });
        // The sum of x over all vertices is at least this, as vertices of the core send d x
        // along their links.
        let whole = if self.is_scaled() { (1.0 - d) + d * sums.x * scale } else { 1.0 };
        let step = sums.step / whole + self.update_sinks();
        let c = &self.c;
        let mut nothing = vec![(); self.parts.len()];
        device.each_chunk(&mut self.parts, 1, &mut nothing, |_, part, ()| part[0].fetch(c));
        step
    }

    /// Computes u from c, if the passes need it, and scales both so that x has the sum 1. Returns the change
    /// of the sum of x over the sinks.
    fn update_sinks(&mut self) -> f64 {
        let Some((before, mut x)) = self.stranded.take() else { return 0.0 };
        self.compute(before / x.len() as f64, &mut x);
        let whole: f64 = sum_in_chunks(x.len(), |i| x[i]).iter().sum();
        let scale = if whole > 0.0 { 1.0 / whole } else { 1.0 };
        self.c.iter_mut().for_each(|c| *c *= scale);
        let after = scale * sum(self.problem.links.sinks().map(|i| x[i]));
        self.stranded = Some((after, x));
        (after - before).abs()
    }

    /// Returns the ranks, before they are scaled to the sum 1.
    pub(crate) fn ranks(&self) -> Result<Vec<f64>> {
        let mut x = zeros(self.problem.links.vertices())?;
        self.compute(self.share_of_sinks(), &mut x);
        Ok(x)
    }

    /// Computes the ranks of all vertices from c of the core. `from_sinks` is u.
    fn compute(&self, from_sinks: f64, x: &mut [f64]) {
        let (problem, d) = (self.problem, self.problem.damping);
        let (into, out) = (problem.links.incoming(), problem.links.out());
        let kept = if problem.dangling == Dangling::SelfLoop { 1.0 } else { 0.0 };
        // First x is c.
        self.graph.core.iter().zip(&self.c).for_each(|(&i, c)| x[i as usize] = *c);
        for &i in self.graph.tail.iter().rev() {
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
