//! A prepared ranking of one seat: links, device and operator are kept from one solve to the next.

use super::by_target::ByTarget;
use super::each::RanksEach;
use super::given::Given;
use super::iterate::{GaussSeidel, Iterate, inflow_there, power_iteration};
use super::ranks::{RankingFacts, Ranks};
use super::{Graph, RankMethod, Settings};
use crate::engine::device::{DeviceHandle, Opened, on_device};
use crate::engine::ranks::{Partition, agreed, chosen_again, parts_of};
use crate::engine::running::{BackendOrder, Chosen, Run, Watch};
use crate::engine::transpose::with_copy;
use crate::error::Result;
use crate::observe::report::Common;
use crate::observe::{Observer, Phase};
use crate::operator;
use crate::solve::pagerank::RankProblem;
use crate::solve::pagerank::gauss_seidel::Parts;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::power::vectors;
use std::sync::Arc;
use std::time::Instant;

/// The ranking of a process, or of one of several devices of a process. If ranks share the links, all of them
/// call the same functions in the same order.
pub(super) struct Seat {
    links: Links,
    pub device: DeviceHandle,
    iterate: Box<dyn Iterate>,
    facts: Arc<RankingFacts>,
    /// Whether the user named no backend.
    is_auto: bool,
    pub watch: Watch,
}

impl Seat {
    /// Sorts the links, chooses a backend and builds the operator.
    pub(crate) fn new(graph: Graph, settings: Settings, given: &Given, mut run: Run) -> Result<Seat> {
        let ranks = graph.ranks().cloned();
        let ranks = ranks.as_ref();
        if let Some(ranks) = ranks {
            given.check_count(ranks)?;
            settings.check_over_ranks()?;
        }
        let (device, backend) = agreed(ranks, run.open(settings.host_method()))?;
        let began = Instant::now();
        let sorting = run.phases.begin(Phase::Build, "sorting the links");
        let (columns, precision, choosing) = (run.request.columns, run.request.precision, run.choosing);
        let extrapolate = settings.method == RankMethod::Extrapolated;
        // Includes a teleport vector, as a later solve may be personalised.
        let vectors = vectors(settings.dangling, true, extrapolate) * columns;
        let pulls = (backend.is_auto() && columns == 1) || backend.entry.name == "pull";
        let ByTarget { mut links, graph_facts, kept } = match graph {
            Graph::Whole(graph) => ByTarget::of(graph, &settings, &device, (vectors, pulls))?,
            Graph::OfRank(graph) => ByTarget::over_ranks(graph, &settings, &device)?,
        };
        let (iterate, chosen) = match settings.method {
            RankMethod::GaussSeidel => (by_gauss_seidel(&device, &links)?, Chosen::none()),
            RankMethod::Power | RankMethod::Extrapolated => {
                drop(sorting);
                let order =
                    BackendOrder { backend: &backend, precision, choosing, columns, one_by_one: false };
                let phases = &mut run.phases;
                let (iterate, chosen, inflow) = on_device!(device, precision, |held, D, T| {
                    with_copy(kept, || {
                        let sizes = (vectors, extrapolate);
                        let (iterate, chosen) = power_iteration::<D, T>(held, &links, &order, sizes, phases)?;
                        Ok((iterate, chosen, inflow_there::<D, T>(held, &links, vectors)?))
                    })
                })?;
                if let Some(inflow) = inflow {
                    links.compute_on_device(inflow);
                }
                (iterate, chosen)
            }
        };
        let total = |mine: usize| ranks.map_or(mine as u64, |ranks| ranks.total(mine as u64));
        let facts = Arc::new(RankingFacts {
            graph: graph_facts,
            settings,
            vertices: links.vertices() as u64,
            links: total(links.incoming().nnz()),
            sinks: total(links.count_sinks()),
            reordered: links.are_reordered(),
            common: Common {
                solver: "pagerank".to_owned(),
                device: device.describe_over(ranks),
                backend: chosen.backend.clone(),
                backend_because: chosen.because.clone(),
                precision: precision.name().to_owned(),
                parts: links
                    .rank_rows()
                    .map(|rows| parts_of(rows, Partition::default().to_string(), precision)),
                seconds_setup: began.elapsed().as_secs_f64(),
                ..Common::default()
            },
            chosen,
            precision,
        });
        Ok(Seat { links, device, iterate, facts, is_auto: backend.is_auto(), watch: run.watch })
    }

    /// Returns the facts for the report.
    pub(crate) fn facts(&self) -> &Arc<RankingFacts> {
        &self.facts
    }

    /// Computes the ranks with additional observers.
    pub(crate) fn solve(&mut self, given: &Given, observers: &mut [&mut dyn Observer]) -> Result<Ranks> {
        let [teleport, start] = given.vectors(self.links.halo(), &self.facts)?;
        let problem = RankProblem {
            teleport: teleport.as_deref(),
            start: start.as_deref(),
            ..unpersonalised(&self.links, &self.facts.settings)
        };
        let limits = limits(&self.facts.settings);
        self.watch.begin();
        let (mut found, recorder) = self
            .watch
            .run(limits, observers, |rule, observers| self.iterate.run(&problem, None, rule, observers))?;
        Ranks::new(found.swap_remove(0), recorder, (&self.links, &self.facts))
    }

    /// Computes the ranks for each of several distributions with additional observers.
    pub(crate) fn solve_each(
        &mut self,
        given: &Given,
        observers: &mut [&mut dyn Observer],
    ) -> Result<RanksEach> {
        let k = given.each.len();
        if let Some(ranks) = self.links.ranks() {
            given.check_count(ranks)?;
        }
        given.check(&self.facts.settings)?;
        given.require_each()?;
        let facts = self.prepare_columns(k)?;
        // All lines are checked before the first iteration.
        let columns = given.columns(self.links.halo(), &facts)?;
        let problem = unpersonalised(&self.links, &facts.settings);
        let teleport = |column: usize| columns.jumps(column);
        self.watch.begin();
        let (found, recorders) =
            self.watch.run_columns(limits(&facts.settings), k, observers, |rule, observers| {
                self.iterate.run(&problem, Some((k, &teleport)), rule, observers)
            })?;
        RanksEach::new(found, recorders, &given.each, (&self.links, &facts))
    }

    /// Fails if the user named a backend that multiplies one vector at a time, and `k` is larger.
    pub(crate) fn check_columns(&self, k: usize) -> Result<()> {
        if self.is_auto { Ok(()) } else { self.facts.chosen.check_columns(k) }
    }

    /// Prepares products with `k` columns. Returns the facts, in which the backend is that for these columns.
    fn prepare_columns(&self, k: usize) -> Result<Arc<RankingFacts>> {
        let ranks = self.links.ranks();
        agreed(ranks, self.check_columns(k))?;
        let RankingFacts { chosen, .. } = &*self.facts;
        let again = chosen_again(ranks, self.iterate.prepare(k)?, || operator::OwnBackend {
            backend: chosen.backend.clone(),
            because: chosen.because.clone(),
        })?;
        Ok(again.map_or_else(
            || Arc::clone(&self.facts),
            |again| {
                let mut facts = RankingFacts::clone(&self.facts);
                facts.common.rechosen(again);
                Arc::new(facts)
            },
        ))
    }
}

/// Returns the tolerance, the iteration limit and the iterations without progress that count as stagnation.
fn limits(settings: &Settings) -> (f64, usize, usize) {
    (settings.tol, settings.max_iters, settings.stagnation())
}

/// Returns the problem with uniform jumps that begins at their distribution.
fn unpersonalised<'a>(links: &'a Links, settings: &Settings) -> RankProblem<'a> {
    let (damping, dangling) = (settings.damping, settings.dangling);
    RankProblem { links, damping, dangling, teleport: None, start: None }
}

/// Prepares the method of Gauss and Seidel.
fn by_gauss_seidel(device: &DeviceHandle, links: &Links) -> Result<Box<dyn Iterate>> {
    let Opened::Cpu(cpu) = &device.0 else { unreachable!("the method runs on the CPU") };
    Ok(Box::new(GaussSeidel { cpu: Arc::clone(cpu), parts: Parts::new(links)? }))
}
