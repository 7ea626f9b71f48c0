//! A ranking over ranks: each rank has the links into a range of vertices, and the ranks of these vertices.

use super::iterate::{Each, Iterate, named};
use super::ranks::{GraphFacts, RankingFacts, loops_and_repeats};
use super::{RankMethod, Repeated, SelfLoops, Settings};
use crate::backend::{Choice, Operator, Pick};
use crate::device::Distributed;
use crate::device::distributed::Local;
use crate::engine::device::{DeviceHandle, Opened, on_device};
use crate::engine::memory;
use crate::engine::ranks::{Partition, RankGraph, RankOrder, of_rows, parts_of};
use crate::engine::running::{Chosen, Run, Watch};
use crate::engine::shared::Shared;
use crate::engine::watch::Phases;
use crate::error::{Error, Result};
use crate::format::{Values, partition};
use crate::observe::{Observer, Phase};
use crate::scalar::Scalar;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::power::vectors;
use crate::solve::pagerank::{RankProblem, Ranking, power, power_each};
use crate::stop::StoppingRule;
use std::sync::Arc;
use std::time::Instant;

/// Links, device and iteration, what watches them, and `auto` if it has chosen the backend.
type Ready = (Links, DeviceHandle, Iterate, (Watch, Arc<RankingFacts>), Option<Choice>);

/// Prepares the solve. All ranks call this together.
pub(super) fn prepare(graph: RankGraph, settings: Settings, mut run: Run) -> Result<Ready> {
    if settings.method == RankMethod::GaussSeidel {
        let reason = "it runs in one process; over ranks use method power or extrapolated";
        return Err(Error::setting("method", settings.method.name(), reason));
    }
    let ranks = graph.ranks.clone();
    let (device, backend) = ranks.agreed(run.open(None))?;
    let began = Instant::now();
    let sorting = run.phases.begin(Phase::Build, "sorting the links");
    let first = graph.vertices().start;
    let (self_loops, duplicates) = loops_and_repeats(&graph.links, first);
    let [self_loops, duplicates] = [self_loops, duplicates].map(|mine| ranks.total(mine));
    let RankGraph { starts, links, whole, names, .. } = graph;
    // As in one process, iterations of links that all weigh 1 move fewer bytes without weights.
    // All ranks then store none.
    let weighted = ranks.any(!links.values().are_ones());
    let links = if weighted { links } else { Arc::new(links.without_values()) };
    let (loops, repeats) = (settings.self_loops == SelfLoops::Keep, settings.duplicates == Repeated::Keep);
    // The whole graph has the links that the settings leave out, and its values.
    let whole = whole.filter(|whole| loops && repeats && weighted != matches!(whole.values(), Values::Ones));
    let outgoing = match loops && repeats {
        true => links,
        false => Arc::new(ranks.agreed(links.simplified(first, loops, repeats))?),
    };
    let work = ranks.fold(row_work(&device) as f64, f64::max) as usize;
    // As in one process, iterations of GPUs are too fast for reordering to pay, unless there are many.
    let reorder = ranks.any(matches!(device.0, Opened::Cpu(_))) || settings.may_take_long();
    let graph = (&*outgoing, whole.as_deref());
    let links = Links::of_ranks(&ranks, &starts, graph, work, reorder);
    let mut links = links.map_err(|error| named(&names, error))?;
    drop((outgoing, whole, sorting));
    let (columns, precision) = (run.request.columns, run.request.precision);
    let extrapolate = settings.method == RankMethod::Extrapolated;
    let vectors = vectors(settings.dangling, true, extrapolate) * columns;
    let order = RankOrder { backend: &backend, precision, columns, vectors };
    let (iterate, chosen) = on_device!(device, precision, |held, D, T| {
        let prepared = by_power::<D, T>(held, &links, order, extrapolate, &mut run.phases)?;
        certify_there::<D, T>(held, &mut links, vectors).map(|()| prepared)
    })?;
    let facts = RankingFacts {
        graph: GraphFacts { names, self_loops, duplicates },
        settings,
        vertices: links.vertices() as u64,
        links: ranks.total(links.incoming().nnz() as u64),
        sinks: ranks.total(links.count_sinks() as u64),
        reordered: links.are_reordered(),
        device: device.describe_over(&ranks),
        chosen,
        precision,
        parts: links.rank_rows().map(|rows| parts_of(rows, Partition::default().to_string(), precision)),
        seconds_setup: began.elapsed().as_secs_f64(),
    };
    let auto = backend.is_auto().then_some(backend);
    Ok((links, device, iterate, (run.watch, Arc::new(facts)), auto))
}

/// Lets `auto` choose again, for `k` columns. All ranks call this together.
pub(super) fn for_columns(
    device: &DeviceHandle,
    links: &Links,
    backend: &Choice,
    facts: &RankingFacts,
    k: usize,
) -> Result<(Iterate, Chosen)> {
    let precision = facts.precision;
    let vectors = vectors(facts.settings.dangling, true, false) * k;
    let order = RankOrder { backend, precision, columns: k, vectors };
    on_device!(device, precision, |held, D, T| {
        by_power::<D, T>(held, links, order, false, &mut Phases::default())
    })
}

/// Returns the links that a vertex counts as when the vertices are cut into parts: a GPU takes about 7.5 ps
/// for a link, and 17 ps for the 72 bytes of a vertex.
fn row_work(device: &DeviceHandle) -> usize {
    match &device.0 {
        Opened::Cpu(_) => partition::ROW,
        Opened::Cuda(_) => 2,
    }
}

/// Lets a GPU compute the sums of certificates, if it has memory for them and for `vectors` vectors.
fn certify_there<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    links: &mut Links,
    vectors: usize,
) -> Result<()> {
    let Some(rows) = links.rank_rows() else { unreachable!("the links are distributed") };
    let reserve = memory::vectors(vectors, rows.rows(), size_of::<T>());
    let inflow = held.acquire()?.inflow(rows.matrix(), reserve).unwrap_or_else(|error| {
        log::warn!("the host computes the certificate, which takes longer: {error}");
        None
    });
    if let Some(inflow) = inflow {
        links.compute_on_device(inflow);
    }
    Ok(())
}

/// Prepares power iteration.
fn by_power<D: Local + Pick<T>, T: Scalar>(
    held: &Arc<Shared<D>>,
    links: &Links,
    order: RankOrder<'_>,
    extrapolate: bool,
    phases: &mut Phases,
) -> Result<(Iterate, Chosen)> {
    let Some(rows) = links.rank_rows() else { unreachable!("the links are distributed") };
    let (retained, chosen) = of_rows::<D, T>(held, rows, order, phases)?;
    let iterate: Iterate = Box::new(move |problem, each, rule, observers| {
        let (_device, operator) = retained.enter()?;
        iterate(operator.clone(), problem, (each, extrapolate), rule, observers)
    });
    Ok((iterate, chosen))
}

fn iterate<D: Local, T: Scalar>(
    operator: Operator<Distributed<D>, T>,
    problem: &RankProblem<'_>,
    (each, extrapolate): (Option<Each<'_>>, bool),
    rule: &StoppingRule,
    observers: &mut [&mut dyn Observer],
) -> Result<Vec<Ranking>> {
    match each {
        None => power(operator, problem, extrapolate, rule, observers).map(|one| vec![one]),
        Some((k, teleport)) => power_each(operator, problem, k, teleport, rule, observers),
    }
}

/// Returns the part of a vector over all vertices that this process has. Over ranks, the first rank makes the
/// vector, because it has the names of the vertices.
pub(super) fn part_of(links: &Links, make: impl FnOnce() -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    let Some(halo) = links.halo() else { return make() };
    let ranks = halo.ranks();
    let whole = ranks.agreed(ranks.is_first().then(make).transpose())?;
    ranks.scatter(whole.as_deref(), halo.rows().len())
}

/// The vertices that a distribution names, with their probabilities; none if it has a number
/// for every vertex.
type Entries = Option<Vec<(usize, f64)>>;

/// Returns the entries of a distribution. Over ranks, the first rank finds them, because it has
/// the names of the vertices.
pub(super) fn entries_of(links: &Links, find: impl FnOnce() -> Result<Entries>) -> Result<Entries> {
    let Some(halo) = links.halo() else { return find() };
    let ranks = halo.ranks();
    let found = ranks.agreed(ranks.is_first().then(find).transpose())?.flatten();
    let named = ranks.list_of_first(vec![u64::from(found.is_some())])?[0] > 0;
    let found = found.unwrap_or_default();
    let vertices = ranks.list_of_first(found.iter().map(|(vertex, _)| *vertex as u64).collect())?;
    let values = ranks.list_of_first(found.iter().map(|(_, value)| *value).collect())?;
    let entries = vertices.into_iter().map(|vertex| vertex as usize).zip(values).collect();
    Ok(named.then_some(entries))
}
