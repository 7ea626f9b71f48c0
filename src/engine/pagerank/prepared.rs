//! A prepared ranking: links, device and operator are kept from one solve to the next.

use super::each::RanksEach;
use super::iterate::{Iterate, named};
use super::ranks::{GraphFacts, RankingFacts, Ranks};
use super::{Graph, Pagerank, RankMethod, Repeated, SelfLoops, Settings, over_ranks};
use crate::backend::{Choice, Pick};
use crate::device::{self, Kept};
use crate::engine::device::{DeviceHandle, Opened, on_device};
use crate::engine::matrix::Matrix;
use crate::engine::memory;
use crate::engine::running::{BackendOrder, Chosen, Run, Watch, operator};
use crate::engine::shared::{DeviceValue, Shared};
use crate::engine::transpose::{transposed_there, with_copy};
use crate::engine::tune::Choosing;
use crate::engine::watch::Phases;
use crate::engine::weights::{Unmatched, Weights};
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::observe::{Observer, Phase};
use crate::operator::Inflow;
use crate::scalar::Scalar;
use crate::solve::pagerank::gauss_seidel::Parts;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::power::vectors;
use crate::solve::pagerank::{Jumps, RankProblem, gauss_seidel, power, power_each};
use crate::stop::StoppingRule;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A prepared ranking of this process or rank.
pub(super) struct LocalRanking {
    links: Links,
    device: DeviceHandle,
    iterate: Iterate,
    personalise: Option<Weights>,
    each: Vec<Weights>,
    x0: Option<Weights>,
    watch: Watch,
    facts: Arc<RankingFacts>,
    /// How `auto` chooses a backend, if it has chosen that of `iterate`.
    auto: Option<(Choice, Choosing)>,
    /// A second choice of `auto`, for several columns, if the first one multiplies one vector at a time.
    several: Option<(Iterate, Arc<RankingFacts>)>,
}

/// Prepares power iteration with an operator of a backend, for links in double precision.
fn by_power<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    order: &BackendOrder<'_>,
    links: &Arc<Csr>,
    (vectors, extrapolate): (usize, bool),
    phases: &mut Phases,
) -> Result<(Iterate, Chosen)> {
    let matrix = if order.precision.narrow_values() { Arc::new(links.to_f32()) } else { Arc::clone(links) };
    let (operator, chosen) = operator::<D, T>(device, order, &matrix, vectors, phases)?;
    let retained = DeviceValue::new(device, operator);
    let iterate: Iterate = Box::new(move |problem, each, rule, observers| {
        let device = retained.acquire()?;
        device.enter()?;
        let Some(operator) = retained.value() else { unreachable!("the operator is never removed") };
        match each {
            None => {
                power::<D, T>(operator.clone(), problem, extrapolate, rule, observers).map(|one| vec![one])
            }
            Some((k, teleport)) => {
                power_each::<D, T>(operator.clone(), problem, k, teleport, rule, observers)
            }
        }
    });
    Ok((iterate, chosen))
}

/// Returns what computes the sums of certificates on the device, if it has memory for it and for `vectors`
/// vectors; none if the host does it.
fn certified_there<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    links: &Arc<Csr>,
    vectors: usize,
) -> Result<Option<Box<dyn Inflow>>> {
    let reserve = memory::vectors(vectors, links.rows(), size_of::<T>());
    Ok(device.acquire()?.inflow(links, reserve).unwrap_or_else(|error| {
        log::warn!("the host computes the certificate, which takes longer: {error}");
        None
    }))
}

/// Refuses settings that several personalisations do not support.
pub(super) fn check_each(settings: &Settings, count: usize, start: bool, personalised: bool) -> Result<()> {
    if count > 0 && settings.method != RankMethod::Power {
        let reason = "several personalisations are ranked by power iteration; use method power";
        return Err(Error::setting("method", settings.method.name(), reason));
    }
    if count > 0 && start {
        let reason = "several personalisations start at their own distributions; leave out the start";
        return Err(Error::setting("x0", "", reason));
    }
    if count > 0 && personalised {
        let reason = "there is one for each column; leave out the other";
        return Err(Error::setting("personalise", "", reason));
    }
    Ok(())
}

/// Refuses numbers of personalisations that differ between ranks. All ranks call this together.
fn check_each_of_ranks(ranks: &device::Ranks, count: usize) -> Result<()> {
    let first = ranks.list_of_first(vec![count as u64])?[0];
    ranks.agreed(match first == count as u64 {
        true => Ok(()),
        false => {
            let reason = format!("this rank has {count} personalisations, and the first rank has {first}; give all ranks the same");
            Err(Error::setting("personalise-each", count, reason))
        }
    })
}

pub(super) fn no_personalisation() -> Error {
    Error::setting("personalise-each", 0, "there must be at least one personalisation")
}

pub(super) fn several_personalisations() -> Error {
    Error::setting("personalise-each", "", "call solve_each for several personalisations")
}

/// The links of a graph by target, and facts about the graph.
struct ByTarget {
    links: Links,
    graph_facts: GraphFacts,
    /// Keeps a copy of the links on the device until the operator and the certificate use it.
    kept: Option<Kept>,
}

impl ByTarget {
    /// Sorts the links, on the device if it is faster. Leaves memory for `vectors` vectors there. `pulls` is
    /// whether the backend will be `pull`, if the graph has no weights.
    fn of(
        graph: Matrix,
        settings: &Settings,
        device: &DeviceHandle,
        (vectors, pulls): (usize, bool),
    ) -> Result<ByTarget> {
        let graph = graph.without_ones();
        let (loops, repeats) =
            (settings.self_loops == SelfLoops::Keep, settings.duplicates == Repeated::Keep);
        let csr = if loops && repeats {
            Arc::clone(&graph.csr)
        } else {
            Arc::new(graph.csr.simplified(0, loops, repeats)?)
        };
        // On a GPU, iterations are too fast for reordering to pay, unless there are many.
        let reorder = matches!(device.0, Opened::Cpu(_)) || settings.may_take_long();
        // Backends other than `pull` read the transpose on the host, and `pull` does so for columns near the
        // diagonal. With weights, the host has the transpose in any case.
        let host_reads = !(pulls && Links::are_scattered(&csr));
        // A GPU counts the loops of the graph that it transposes. The host does the rest meanwhile, but not
        // during the copy of the graph, whose bandwidth it would take.
        let counts_there = Arc::ptr_eq(&csr, &graph.csr) && !csr.pattern().has_repeats();
        let (mut out, mut graph_facts) = (None, None);
        let mut meanwhile = || {
            out = Some(Links::weights_out(&csr));
            graph_facts = (!counts_there).then(|| GraphFacts::of(&graph, None));
        };
        let there = match reorder {
            true => None,
            false => transposed_there(device, &csr, (vectors, host_reads), &mut meanwhile)?,
        };
        let loops = there.as_ref().filter(|_| counts_there).map(|there| there.loops);
        let graph_facts = graph_facts.unwrap_or_else(|| GraphFacts::of(&graph, loops));
        drop(graph);
        let kept = there.as_ref().map(|there| Arc::clone(&there.kept));
        let links = match there {
            Some(there) => {
                let out = out.unwrap_or_else(|| Links::weights_out(&csr));
                out.map(|out| Links::with_transpose(there.matrix, out))
            }
            None if reorder => Links::in_best_order(csr),
            None => Links::new(&csr),
        };
        let links = links.map_err(|error| named(&graph_facts.names, error))?;
        Ok(ByTarget { links, graph_facts, kept })
    }
}

impl LocalRanking {
    pub(super) fn new(pagerank: Pagerank) -> Result<LocalRanking> {
        let Pagerank { graph, settings, personalise, each, x0, run } = pagerank;
        settings.check()?;
        check_each(&settings, each.len(), x0.is_some(), personalise.is_some())?;
        graph.check()?;
        let ready = match graph {
            Graph::Whole(graph) => LocalRanking::of_graph(graph, settings, run)?,
            Graph::OfRank(graph) => {
                check_each_of_ranks(&graph.ranks, each.len())?;
                let (links, device, iterate, watched, auto) = over_ranks::prepare(graph, settings, run)?;
                let auto = auto.map(|backend| (backend, Choosing::Model));
                LocalRanking { auto, ..LocalRanking::ready(links, device, iterate, watched) }
            }
        };
        Ok(LocalRanking { personalise, each, x0, ..ready })
    }

    /// Prepares the solve of a graph that this process has.
    fn of_graph(graph: Matrix, settings: Settings, mut run: Run) -> Result<LocalRanking> {
        let (device, backend) = run.open(settings.host_method())?;
        let began = Instant::now();
        let sorting = run.phases.begin(Phase::Build, "sorting the links");
        let extrapolate = settings.method == RankMethod::Extrapolated;
        // Includes a teleport vector, as a later solve may be personalised.
        let vectors = vectors(settings.dangling, true, extrapolate) * run.request.columns;
        let pulls = (backend.is_auto() && run.request.columns == 1) || backend.entry.name == "pull";
        let ByTarget { mut links, graph_facts, kept } =
            ByTarget::of(graph, &settings, &device, (vectors, pulls))?;
        let precision = run.request.precision;
        let (iterate, chosen): (Iterate, Chosen) = match settings.method {
            RankMethod::GaussSeidel => {
                let Opened::Cpu(cpu) = &device.0 else { unreachable!("the method runs on the CPU") };
                let (cpu, parts) = (Arc::clone(cpu), Parts::new(&links)?);
                let iterate: Iterate = Box::new(move |problem, _, rule, observers| {
                    gauss_seidel(&*cpu.acquire()?, &parts, problem, rule, observers).map(|one| vec![one])
                });
                (iterate, Chosen::none())
            }
            RankMethod::Power | RankMethod::Extrapolated => {
                let exact = links.incoming();
                drop(sorting);
                let (choosing, columns) = (run.choosing, run.request.columns);
                let order =
                    BackendOrder { backend: &backend, precision, choosing, columns, one_by_one: false };
                let phases = &mut run.phases;
                let (iterate, chosen, inflow) = on_device!(device, precision, |held, D, T| {
                    with_copy(kept, || {
                        let sizes = (vectors, extrapolate);
                        let (iterate, chosen) = by_power::<D, T>(held, &order, exact, sizes, phases)?;
                        Ok((iterate, chosen, certified_there::<D, T>(held, exact, vectors)?))
                    })
                })?;
                if let Some(inflow) = inflow {
                    links.compute_on_device(inflow);
                }
                (iterate, chosen)
            }
        };
        let facts = Arc::new(RankingFacts {
            graph: graph_facts,
            settings,
            links: links.incoming().nnz() as u64,
            vertices: links.vertices() as u64,
            sinks: links.count_sinks() as u64,
            reordered: links.are_reordered(),
            device: device.describe().to_owned(),
            chosen,
            precision,
            parts: None,
            seconds_setup: began.elapsed().as_secs_f64(),
        });
        let auto = backend.is_auto().then_some((backend, run.choosing));
        Ok(LocalRanking { auto, ..LocalRanking::ready(links, device, iterate, (run.watch, facts)) })
    }

    /// Fails if the user named a backend that multiplies one vector at a time, and `k` is larger.
    pub(crate) fn check_columns(&self, k: usize) -> Result<()> {
        self.facts
            .chosen
            .check_columns(k)
            .or_else(|error| if self.auto.is_some() { Ok(()) } else { Err(error) })
    }

    /// Makes sure that a backend for `k` columns has the links: the one that has, or another
    /// choice of `auto`.
    fn prepare_columns(&mut self, k: usize) -> Result<()> {
        let checked = self.check_columns(k);
        match self.links.halo() {
            Some(halo) => halo.ranks().agreed(checked)?,
            None => checked?,
        }
        let refused = self.facts.chosen.check_columns(k).is_err();
        // If the backend of one rank multiplies one vector at a time, all ranks choose again.
        let refused = self.links.halo().map_or(refused, |halo| halo.ranks().any(refused));
        let Some((backend, choosing)) = self.auto.as_ref().filter(|_| refused && self.several.is_none())
        else {
            return Ok(());
        };
        if self.links.halo().is_some() {
            let (iterate, chosen) =
                over_ranks::for_columns(&self.device, &self.links, backend, &self.facts, k)?;
            self.several =
                Some((iterate, Arc::new(RankingFacts { chosen, ..RankingFacts::clone(&self.facts) })));
            return Ok(());
        }
        let RankingFacts { settings, precision, .. } = &*self.facts;
        let exact = self.links.incoming();
        let (precision, choosing) = (*precision, *choosing);
        let order = BackendOrder { backend, precision, choosing, columns: k, one_by_one: false };
        let vectors = vectors(settings.dangling, true, false) * k;
        let phases = &mut Phases::default();
        let (iterate, chosen) = on_device!(self.device, precision, |held, D, T| {
            by_power::<D, T>(held, &order, exact, (vectors, false), phases)
        })?;
        self.several = Some((iterate, Arc::new(RankingFacts { chosen, ..RankingFacts::clone(&self.facts) })));
        Ok(())
    }

    fn ready(
        links: Links,
        device: DeviceHandle,
        iterate: Iterate,
        (watch, facts): (Watch, Arc<RankingFacts>),
    ) -> LocalRanking {
        let (personalise, each, x0) = (None, Vec::new(), None);
        LocalRanking {
            links,
            device,
            iterate,
            personalise,
            each,
            x0,
            watch,
            facts,
            auto: None,
            several: None,
        }
    }

    /// Sets the distribution of the surfer's jumps for later solves; none for a uniform one.
    pub(crate) fn personalise(&mut self, weights: Option<Weights>) {
        self.personalise = weights;
    }

    /// Sets the distributions for which later calls of [`solve_each`](Self::solve_each) compute the ranks.
    pub(crate) fn personalise_each(&mut self, weights: impl IntoIterator<Item = Weights>) {
        self.each = weights.into_iter().collect();
    }

    /// Computes the ranks for each distribution with additional observers, which receive the
    /// batches of each column.
    pub(crate) fn solve_each_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<RanksEach> {
        let k = self.each.len();
        if let Some(halo) = self.links.halo() {
            check_each_of_ranks(halo.ranks(), k)?;
        }
        check_each(&self.facts.settings, k, self.x0.is_some(), self.personalise.is_some())?;
        if k == 0 {
            return Err(no_personalisation());
        }
        self.prepare_columns(k)?;
        let LocalRanking { links, facts, iterate, watch, each, several, .. } = self;
        let (iterate, facts) = match several {
            Some((iterate, facts)) if k > 1 => (iterate, facts),
            _ => (iterate, facts),
        };
        let (settings, vertices) = (&facts.settings, (&facts.graph.names, "vertex"));
        // All lines are checked before the first iteration.
        const SETTING: &str = "personalise-each";
        let search = vertices.0.search();
        let search = match links.rank_rows() {
            Some(rows) => rows.halo().ranks().agreed(search)?,
            None => search?,
        };
        let of_line = |weights: &Weights| over_ranks::entries_of(links, || weights.entries(SETTING, &search));
        let entries: Vec<_> = each.iter().map(of_line).collect::<Result<_>>()?;
        let of_all = |weights: &Weights| weights.over(SETTING, vertices, Unmatched::Refuse, false);
        let teleport = |column: usize| match &entries[column] {
            Some(entries) => Ok(Jumps::Few(entries.clone())),
            None => over_ranks::part_of(links, || of_all(&each[column])).map(Jumps::All),
        };
        for column in (0..k).filter(|&column| entries[column].is_none()) {
            teleport(column)?;
        }
        let (damping, dangling) = (settings.damping, settings.dangling);
        let problem = RankProblem { links, damping, dangling, teleport: None, start: None };
        let limits = (settings.tol, settings.max_iters, settings.stagnation());
        watch.begin();
        let solve = |rule: &StoppingRule, observers: &mut [&mut dyn Observer]| {
            iterate(&problem, Some((k, &teleport)), rule, observers)
        };
        let (found, recorders) = watch.run_columns(limits, k, observers, solve)?;
        RanksEach::new(found, recorders, each, (links, facts))
    }

    /// Sets the initial ranks of later solves.
    pub(crate) fn x0(&mut self, ranks: Option<Weights>) {
        self.x0 = ranks;
    }

    /// Sets a flag that ends later solves once it is true.
    pub(crate) fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        self.watch.cancel = Some(Arc::clone(flag));
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &DeviceHandle {
        &self.device
    }

    /// Returns the facts for the report.
    pub(crate) fn facts(&self) -> &RankingFacts {
        &self.facts
    }

    /// Returns the personalisations, if there are several.
    pub(crate) fn each(&self) -> &[Weights] {
        &self.each
    }

    /// Computes the ranks with additional observers.
    pub(crate) fn solve_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<Ranks> {
        if !self.each.is_empty() {
            return Err(several_personalisations());
        }
        let LocalRanking { links, facts, iterate, watch, personalise, x0, .. } = self;
        let (settings, vertices) = (&facts.settings, (&facts.graph.names, "vertex"));
        let teleport = |weights: &Weights| {
            let make = || weights.over("personalise", vertices, Unmatched::Refuse, false);
            over_ranks::part_of(links, make)
        };
        let lossy = !settings.dangling.conserves();
        let start = |ranks: &Weights| {
            over_ranks::part_of(links, || ranks.over("x0", vertices, Unmatched::Fill, lossy))
        };
        let teleport = personalise.as_ref().map(teleport).transpose()?;
        let start = x0.as_ref().map(start).transpose()?;
        let problem = RankProblem {
            links,
            damping: settings.damping,
            dangling: settings.dangling,
            teleport: teleport.as_deref(),
            start: start.as_deref(),
        };
        let limits = (settings.tol, settings.max_iters, settings.stagnation());
        watch.begin();
        let solve = |rule: &StoppingRule, observers: &mut [&mut dyn Observer]| {
            iterate(&problem, None, rule, observers)
        };
        let (mut ranking, recorder) = watch.run(limits, observers, solve)?;
        let ranking = ranking.swap_remove(0);
        Ranks::new(ranking, recorder, (links, facts))
    }

    /// Drops links and operator, and returns the device.
    pub(crate) fn into_device(self) -> DeviceHandle {
        self.device
    }
}
