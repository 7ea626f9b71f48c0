//! Ranks, and their report.

use super::report::{RankReport, Top};
use super::{Settings, files};
use crate::device;
use crate::device::RowNumbers;
use crate::device::distributed::Halo;
use crate::device::stream::Limit;
use crate::engine::advice::{self, Ended, Naming};
use crate::engine::device::DeviceHandle;
use crate::engine::graph::Names;
use crate::engine::limit;
use crate::engine::matrix::Matrix;
use crate::engine::ranks::{agreed, write_on_first};
use crate::engine::report::{Found, reports};
use crate::engine::running::{Chosen, highest, message};
use crate::error::Result;
use crate::format::Csr;
use crate::observe::report::Common;
use crate::observe::{History, Phase, Profile, Recorder, profile};
use crate::parallel::{split_front, zeros};
use crate::scalar::Precision;
use crate::solve::Effort;
use crate::solve::pagerank::Ranking;
use crate::solve::pagerank::links::Links;
use crate::source::npy;
use crate::stop::StopReason;
use rayon::prelude::*;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Facts about a graph, collected before it is prepared.
#[derive(Clone, Debug)]
pub(super) struct GraphFacts {
    pub names: Names,
    pub self_loops: u64,
    /// Links beyond the first between the same two vertices.
    pub duplicates: u64,
}

impl GraphFacts {
    /// Collects the facts. `loops` is the number of links from a vertex to itself, if it is known.
    pub(crate) fn of(graph: &Matrix, loops: Option<u64>) -> GraphFacts {
        let (self_loops, duplicates) = match loops {
            Some(loops) if !graph.csr.pattern().has_repeats() => (loops, 0),
            _ => loops_and_repeats(&graph.csr, 0),
        };
        GraphFacts { names: graph.names(), self_loops, duplicates }
    }
}

/// Counts the links from a vertex to itself, and the links beyond the first between the same two vertices.
/// The first row is vertex `first`.
pub(super) fn loops_and_repeats(graph: &Csr, first: usize) -> (u64, u64) {
    /// Comparing all links of a shorter row takes less time than a bisection.
    const SHORT: usize = 128;
    let repeats = graph.pattern().has_repeats();
    let of_row = |i: usize| {
        let (row, own) = (graph.row_columns(i), (first + i) as u32);
        let loops = if row.len() < SHORT {
            row.iter().filter(|&&j| j == own).count()
        } else {
            let before = row.partition_point(|&j| j < own);
            row[before..].iter().take_while(|&&j| j == own).count()
        };
        let repeated = if repeats { row.windows(2).filter(|w| w[0] == w[1]).count() } else { 0 };
        (loops as u64, repeated as u64)
    };
    let rows = (0..graph.rows()).into_par_iter().with_min_len(4096).map(of_row);
    rows.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// Facts that all ranks of a prepared solve share.
#[derive(Clone, Debug)]
pub(super) struct RankingFacts {
    pub graph: GraphFacts,
    pub settings: Settings,
    pub vertices: u64,
    pub links: u64,
    pub sinks: u64,
    pub reordered: bool,
    /// What the report has before a solve.
    pub common: Common,
    pub chosen: Chosen,
    pub precision: Precision,
}

/// What a rank of a solve over ranks knows about the vertices of the other ranks.
#[derive(Clone)]
struct OtherVertices {
    ranks: device::Ranks,
    /// The vertices of this rank.
    rows: Range<usize>,
    /// The vertices with the highest ranks of all, and their ranks.
    highest: Vec<(usize, f64)>,
}

impl fmt::Debug for OtherVertices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vertices {:?}", self.rows)
    }
}

impl OtherVertices {
    /// Finds the `count` highest ranks of all. All ranks call this together.
    fn new(halo: &Halo, own: &[f64], count: usize) -> Result<OtherVertices> {
        let (ranks, rows) = (halo.ranks().clone(), halo.rows());
        let mine = with_ranks(own, count, rows.start);
        let vertices: Vec<u64> = mine.iter().map(|(vertex, _)| *vertex as u64).collect();
        let values: Vec<f64> = mine.iter().map(|(_, rank)| *rank).collect();
        let vertices = ranks.collect(&vertices)?.unwrap_or_default();
        let values = ranks.collect(&values)?.unwrap_or_default();
        let order = highest(&values, count);
        let vertices = ranks.list_of_first(order.iter().map(|&at| vertices[at]).collect())?;
        let values = ranks.list_of_first(order.iter().map(|&at| values[at]).collect())?;
        let highest = vertices.into_iter().map(|vertex| vertex as usize).zip(values).collect();
        Ok(OtherVertices { ranks, rows, highest })
    }
}

/// Returns the vertices with the `count` highest ranks, and these ranks; the first vertex is `first`.
fn with_ranks(ranks: &[f64], count: usize, first: usize) -> Vec<(usize, f64)> {
    highest(ranks, count).into_iter().map(|vertex| (first + vertex, ranks[vertex])).collect()
}

/// The rank of each vertex, with a bound on the l1 error and the history of the solve.
#[derive(Clone, Debug)]
pub struct Ranks {
    ranking: Ranking,
    recorder: Recorder,
    facts: Arc<RankingFacts>,
    of_rank: Option<OtherVertices>,
    /// Whether several devices of this process have shared the solve: one of them does not set its limit.
    shared: bool,
    limit: Option<Limit>,
    profile: Option<Profile>,
}

impl Ranks {
    pub(super) fn new(
        ranking: Ranking,
        recorder: Recorder,
        (links, facts): (&Links, &Arc<RankingFacts>),
    ) -> Result<Ranks> {
        // The last one is compared with the next.
        let count = facts.settings.top.saturating_add(1);
        let of_rank = links.halo().map(|halo| OtherVertices::new(halo, &ranking.ranks, count)).transpose()?;
        let facts = Arc::clone(facts);
        let (limit, profile) = (None, profile::active());
        Ok(Ranks { ranking, recorder, facts, of_rank, shared: false, limit, profile })
    }

    /// Joins the ranks of all vertices, of which there is a part from each rank. The rest is
    /// that of the first rank.
    pub(super) fn joined(mut parts: Vec<Ranks>) -> Result<Ranks> {
        let mut all = zeros(parts.iter().map(|part| part.ranking.ranks.len()).sum())?;
        let mut rest = &mut all[..];
        for Ranks { ranking, .. } in &parts {
            split_front(&mut rest, ranking.ranks.len()).copy_from_slice(&ranking.ranks);
        }
        let first = parts.swap_remove(0);
        let ranking = Ranking { ranks: all, ..first.ranking };
        Ok(Ranks { ranking, of_rank: None, shared: true, ..first })
    }

    /// Returns whether several devices of this process have shared the solve.
    pub(super) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns the vertices whose ranks these are: all of them, or those of this rank of a solve over ranks.
    pub fn rows(&self) -> Range<usize> {
        self.of_rank.as_ref().map_or(0..self.ranking.ranks.len(), |of_rank| of_rank.rows.clone())
    }

    /// Writes rows of `k` columns, one for each vertex of [`rows`](Ranks::rows), as an array (.npy). Over
    /// ranks, the first rank writes those of all ranks.
    pub(super) fn write_array(&self, path: &Path, rows: &[f64], k: usize, shape: &[usize]) -> Result<()> {
        match &self.of_rank {
            None => npy::write_passed(path, shape, &mut |_, next| next(rows)),
            Some(OtherVertices { ranks, rows: own, .. }) => {
                let numbers = RowNumbers::From(own.start);
                write_on_first(ranks, &numbers, (rows, k), |pass| npy::write_passed(path, shape, pass))
            }
        }
    }

    /// Returns the number of vertices of the graph.
    pub(super) fn vertices(&self) -> usize {
        self.facts.vertices as usize
    }

    /// Returns the ranks in the order of the vertices; over ranks, those of [`rows`](Ranks::rows).
    pub fn ranks(&self) -> &[f64] {
        &self.ranking.ranks
    }

    /// Returns the ranks, and drops the rest.
    pub fn into_ranks(self) -> Vec<f64> {
        self.ranking.ranks
    }

    /// Returns whether the error bound meets the tolerance.
    pub fn converged(&self) -> bool {
        self.ranking.reason.is_success()
    }

    /// Returns why the solve ended.
    pub fn reason(&self) -> StopReason {
        self.ranking.reason
    }

    /// Returns the number of iterations.
    pub fn iterations(&self) -> usize {
        self.ranking.iterations
    }

    /// Returns the seconds from the first iteration to the last.
    pub fn seconds(&self) -> f64 {
        self.ranking.seconds_solve
    }

    /// Returns a bound on the l1 norm of the difference from the exact ranks.
    pub fn error_bound(&self) -> f64 {
        self.ranking.certificate.error_bound
    }

    /// Returns the numerical outcome of the solve.
    pub fn outcome(&self) -> &Ranking {
        &self.ranking
    }

    /// Returns the error bound derived from each step, before the first iteration and after each iteration.
    pub fn residuals(&self) -> &[f64] {
        self.recorder.residuals()
    }

    /// Returns the error bounds with their times.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the names of the vertices.
    pub fn names(&self) -> &Names {
        &self.facts.graph.names
    }

    /// Returns the `count` highest ranks. The bound covers the sum of all errors, and so the errors of any
    /// two ranks together: the order of two ranks is certain if they differ by more than the bound. Over
    /// ranks, at most as many are known as the settings of the solve list in a report.
    pub fn top(&self, count: usize) -> Vec<Top> {
        let names = self.names();
        // The last one is compared with the next.
        let order = match &self.of_rank {
            Some(of_rank) => of_rank.highest.clone(),
            None => with_ranks(&self.ranking.ranks, count.saturating_add(1), 0),
        };
        let certain = |position: usize| {
            let next = order.get(position + 1);
            next.is_none_or(|next| order[position].1 - next.1 > self.error_bound())
        };
        let count = if self.of_rank.is_some() { count.min(self.facts.settings.top) } else { count };
        let all = order.iter().take(count).enumerate();
        all.map(|(position, &(vertex, rank))| Top {
            row: vertex,
            id: names.id(vertex),
            label: names.label(vertex).map(str::to_owned),
            rank,
            above_next_is_certain: certain(position),
        })
        .collect()
    }

    /// Writes the ranks: .npy in the order of the vertices, .csv and .json by decreasing rank, with ids or
    /// labels. Over ranks, all ranks call this together, and the first writes the file. It collects all ranks
    /// for .csv and .json, whose order depends on them.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let _span = profile::begin(Phase::Write);
        let path = path.as_ref();
        match files::writer(path)? {
            files::Writer::Array => {
                let finite = self.ranks().iter().all(|rank| rank.is_finite());
                let finite = self.of_rank.as_ref().map_or(finite, |of_rank| !of_rank.ranks.any(!finite));
                files::check_finite(path, finite)?;
                self.write_array(path, self.ranks(), 1, &[self.vertices()])
            }
            files::Writer::ByRank(write, _) => {
                let all = self.of_all()?;
                self.agreed(all.map_or(Ok(()), |ranks| {
                    files::check_finite(path, ranks.iter().all(|rank| rank.is_finite()))?;
                    write(path, &[files::Column { seed: None, ranks: &ranks }], self.names())
                }))
            }
        }
    }

    /// Returns the ranks of all vertices; over ranks, only the first rank has them. All ranks
    /// call this together.
    pub(super) fn of_all(&self) -> Result<Option<Cow<'_, [f64]>>> {
        match &self.of_rank {
            None => Ok(Some(Cow::Borrowed(self.ranks()))),
            Some(of_rank) => Ok(of_rank.ranks.collect(self.ranks())?.map(Cow::Owned)),
        }
    }

    /// Returns the outcome of this rank if no rank has failed. All ranks call this together.
    pub(super) fn agreed(&self, outcome: Result<()>) -> Result<()> {
        agreed(self.of_rank.as_ref().map(|of_rank| &of_rank.ranks), outcome)
    }

    /// Returns the common part of the report, with this effort.
    pub(super) fn common(&self, effort: &Effort, limit: Option<Limit>) -> Common {
        let origin = &self.facts.graph.names.origin;
        self.facts.common.after(origin, effort, &self.ranking.reason, limit, self.profile.as_ref())
    }

    /// Returns advice for a solve that did not converge, from the recorded error bounds.
    fn hint(&self, naming: Naming<'_>) -> Option<String> {
        let ended = Ended {
            reason: &self.ranking.reason,
            residuals: self.recorder.residuals(),
            goal: self.facts.settings.tol,
            seconds_each: self.ranking.seconds_each,
            precision: self.facts.precision,
            restarts: false,
            tolerance: "tol",
            precond: None,
            resume: None,
        };
        advice::hint(&ended, naming)
    }
}

impl Found for Ranks {
    type Report = RankReport;

    fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        if !self.shared {
            self.limit = limit::measure_on(device, &self.ranking, cancel);
        }
    }

    fn report_naming(&self, naming: Naming<'_>) -> RankReport {
        let (RankingFacts { graph, settings, .. }, ranking) = (&*self.facts, &self.ranking);
        let origin = &*graph.names.origin;
        RankReport {
            common: self.common(ranking, self.limit),
            method: settings.method.name(),
            graph: origin.title().to_owned(),
            stand_in: origin.stand_in,
            vertices: self.facts.vertices,
            links: self.facts.links,
            self_loops: graph.self_loops,
            duplicates: graph.duplicates,
            sinks: self.facts.sinks,
            reordered: self.facts.reordered,
            damping: settings.damping,
            dangling: settings.dangling.name(),
            formula: settings.dangling.formula(),
            tolerance: settings.tol,
            message: message(&ranking.reason),
            hint: self.hint(naming),
            extrapolations: ranking.extrapolations as u64,
            error_bound: self.error_bound(),
            error_estimate: ranking.estimate,
            sum: ranking.certificate.sum,
            seconds_certify: ranking.seconds_certify,
            links_per_second: ranking.per_second(self.facts.links),
            stream_gigabytes_per_second: self.limit.map(|limit| limit.stream),
            notes: origin.notes.clone(),
            top: self.top(settings.top),
            columns: Vec::new(),
        }
    }

    fn history_of(&self, report: &RankReport) -> History {
        History::new(report.clone().for_history(), self.recorder.clone())
    }
}

reports!(Ranks, RankReport);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Coo, Duplicates};

    #[test]
    fn links_to_oneself_and_repeated_links_are_counted() {
        let count = |n: usize, links: &[(usize, usize)], duplicates: Duplicates| {
            let mut coo = Coo::with_capacity(n, n, links.len()).unwrap();
            links.iter().for_each(|&(i, j)| coo.push(i, j, 1.0).unwrap());
            loops_and_repeats(&coo.into_csr_with(duplicates).unwrap(), 0)
        };
        let links = [(0, 0), (0, 0), (0, 0), (0, 2), (2, 1), (2, 1), (3, 3), (3, 0)];
        assert_eq!(count(5, &links, Duplicates::Keep), (4, 3));
        assert_eq!(count(5, &links, Duplicates::Sum), (2, 0));
        assert_eq!(count(0, &[], Duplicates::Keep), (0, 0));
        assert_eq!(count(1, &[(0, 0)], Duplicates::Keep), (1, 0));
        // Rows of many links: from one vertex to all, itself included twice, and to all but itself.
        let hub = |own: usize| (0..300).map(move |j| (own, j));
        let links: Vec<(usize, usize)> =
            hub(7).chain([(7, 7)]).chain(hub(9).filter(|&(i, j)| i != j)).collect();
        assert_eq!(count(300, &links, Duplicates::Keep), (2, 1));
    }
}
