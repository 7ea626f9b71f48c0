//! The ranks for each of several personalisations, and their report.

use super::files::{self, Writer};
use super::ranks::{RankingFacts, Ranks};
use super::report::{ColumnRanks, RankReport};
use crate::device::stream::Limit;
use crate::engine::advice::Naming;
use crate::engine::device::DeviceHandle;
use crate::engine::graph::Names;
use crate::engine::limit;
use crate::engine::report::{Found, reports};
use crate::engine::weights::Weights;
use crate::error::Result;
use crate::observe::phrases::ends_of_columns;
use crate::observe::{History, Phase, Recorder, largest, profile, slowest};
use crate::solve::pagerank::Ranking;
use crate::solve::pagerank::links::Links;
use crate::source::npy;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The ranks for each of several personalisations, each with a bound on its error.
#[derive(Clone, Debug)]
pub struct RanksEach {
    columns: Vec<Ranks>,
    /// The personalisations as reports name them.
    names: Vec<String>,
    /// The personalisations as tables of ranks name them.
    seeds: Vec<String>,
    limit: Option<Limit>,
}

impl RanksEach {
    pub(super) fn new(
        found: Vec<Ranking>,
        recorders: Vec<Recorder>,
        each: &[Weights],
        of: (&Links, &Arc<RankingFacts>),
    ) -> Result<RanksEach> {
        let column = |(ranking, recorder)| Ranks::new(ranking, recorder, of);
        let columns = found.into_iter().zip(recorders).map(column).collect::<Result<_>>()?;
        let names = each.iter().map(ToString::to_string).collect();
        let seeds = each.iter().map(Weights::seed).collect();
        Ok(RanksEach { columns, names, seeds, limit: None })
    }

    /// Joins the ranks of all vertices, of which there is a part from each rank.
    pub(super) fn joined(parts: Vec<RanksEach>) -> Result<RanksEach> {
        let names = |of: fn(&RanksEach) -> &Vec<String>| {
            parts.first().map_or_else(Vec::new, |first| of(first).clone())
        };
        let (names, seeds) = (names(|part| &part.names), names(|part| &part.seeds));
        let mut of_ranks: Vec<_> = parts.into_iter().map(|part| part.columns.into_iter()).collect();
        let column = |_| Ranks::joined(of_ranks.iter_mut().filter_map(Iterator::next).collect());
        let columns = (0..names.len()).map(column).collect::<Result<_>>()?;
        Ok(RanksEach { columns, names, seeds, limit: None })
    }

    /// Returns the ranks for each personalisation.
    pub fn columns(&self) -> &[Ranks] {
        &self.columns
    }

    /// Returns whether the error bound of every personalisation meets the tolerance.
    pub fn converged(&self) -> bool {
        self.columns.iter().all(Ranks::converged)
    }

    fn slowest(&self) -> usize {
        slowest(self.columns.iter().map(|ranks| ranks.outcome().iterations))
    }

    /// Writes all ranks: .npy as an array with a row for each vertex and a column for each personalisation;
    /// .csv and .json in long form, with the personalisation (`seed`), the vertex and the rank on each line,
    /// the ranks of a personalisation in decreasing order. A seed is the vertex that a personalisation names,
    /// or the line of its file. Over ranks, all ranks call this together, and the first writes the file. It
    /// collects all ranks for .csv and .json.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let _span = profile::begin(Phase::Write);
        let path = path.as_ref();
        let writer = files::writer(path)?;
        let Some(first) = self.columns.first() else {
            return match writer {
                Writer::Array => npy::write_passed(path, &[0, 0], &mut |_, next| next(&[])),
                Writer::ByRank(write, _) => write(path, &[], &Names::on_first_rank(0)),
            };
        };
        match writer {
            Writer::Array => self.write_array(path, first),
            Writer::ByRank(write, _) => {
                // Every rank takes part in collecting every column.
                let all = self.columns.iter().map(Ranks::of_all).collect::<Result<Vec<_>>>()?;
                let all: Option<Vec<_>> = all.into_iter().collect();
                first.agreed(all.map_or(Ok(()), |all| {
                    files::check_finite(
                        path,
                        all.iter().all(|ranks| ranks.iter().all(|rank| rank.is_finite())),
                    )?;
                    let seeds = self.seeds.iter().map(|seed| Some(seed.as_str()));
                    let columns = seeds.zip(&all).map(|(seed, ranks)| files::Column { seed, ranks });
                    write(path, &columns.collect::<Vec<_>>(), first.names())
                }))
            }
        }
    }

    fn write_array(&self, path: &Path, first: &Ranks) -> Result<()> {
        let (k, n) = (self.columns.len(), first.rows().len());
        let mut rows = crate::parallel::zeros(n * k)?;
        for (column, ranks) in self.columns.iter().enumerate() {
            rows.iter_mut().skip(column).step_by(k).zip(ranks.ranks()).for_each(|(to, rank)| *to = *rank);
        }
        first.write_array(path, &rows, k, &[first.vertices(), k])
    }
}

impl Found for RanksEach {
    type Report = RankReport;

    fn measure_limit(&mut self, device: &DeviceHandle, cancel: Option<&AtomicBool>) {
        let slow = self.columns.get(self.slowest()).filter(|slow| !slow.is_shared());
        let Some(slow) = slow.map(Ranks::outcome) else { return };
        self.limit = limit::measure_on(device, slow, cancel);
    }

    fn report_naming(&self, naming: Naming<'_>) -> RankReport {
        let failed = self.columns.iter().position(|ranks| !ranks.converged());
        let slow = self.columns[self.slowest()].outcome();
        let decisive = &self.columns[failed.unwrap_or_else(|| self.slowest())];
        let base = decisive.report_naming(naming);
        let columns: Vec<ColumnRanks> = self
            .names
            .iter()
            .zip(&self.columns)
            .zip(1..)
            .map(|((name, ranks), number)| ColumnRanks::of(number, name, ranks.report_naming(naming)))
            .collect();
        let largest = |value: &dyn Fn(&ColumnRanks) -> f64| largest(columns.iter().map(value));
        let reasons = columns.iter().map(|column| (!column.converged).then_some(column.message.as_str()));
        let message = ends_of_columns("personalisations", reasons);
        RankReport {
            common: decisive.common(slow, self.limit),
            message,
            error_bound: largest(&|column| column.error_bound),
            error_estimate: largest(&|column| column.error_estimate),
            seconds_certify: columns.iter().map(|column| column.seconds_certify).sum(),
            links_per_second: slow.per_second(base.links) * self.columns.len() as f64,
            stream_gigabytes_per_second: self.limit.map(|limit| limit.stream),
            top: Vec::new(),
            columns,
            ..base
        }
    }

    fn history_of(&self, report: &RankReport) -> History {
        let recorders = self.columns.iter().map(|ranks| ranks.recorder().clone()).collect();
        History::of_columns(report.clone().for_history(), recorders)
    }
}

reports!(
    ///
    /// It has a record for each personalisation, and its other fields describe all of them together:
    /// `converged` is true if every one converged, iterations and times are those of the slowest, and the
    /// error bound is the largest.
    RanksEach,
    RankReport
);
