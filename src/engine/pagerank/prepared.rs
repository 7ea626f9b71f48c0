//! A ranking made ready: links, device and operator stay where they are from one solve to the next.

use super::ranks::{Facts, Graph, Ranks};
use super::{Pagerank, RankMethod, Repeated, SelfLoops};
use crate::backend::{Choice, Pick};
use crate::engine::device::{DeviceHandle, Opened, on_device};
use crate::engine::graph::Names;
use crate::engine::running::{Chosen, Watch, operator};
use crate::engine::shared::{Kept, Shared};
use crate::engine::weights::{Others, Weights};
use crate::error::{ChainError, Error, Result};
use crate::format::Csr;
use crate::observe::Observer;
use crate::scalar::Scalar;
use crate::solve::pagerank::links::Links;
use crate::solve::pagerank::power::vectors;
use crate::solve::pagerank::{RankProblem, Ranking, gauss_seidel, power};
use crate::stop::StoppingRule;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A method with its operator on a device.
type Iterate =
    Box<dyn Fn(&RankProblem<'_>, &StoppingRule, &mut [&mut dyn Observer]) -> Result<Ranking> + Send>;

/// A ranking ready for solves: of one graph, on one device. It can be moved to another thread.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let graph = Matrix::open_graph("rmat:scale=8,factor=8")?;
/// let mut prepared = Pagerank::new(&graph).prepare()?;
/// for vertex in ["3", "17"] {
///     prepared.personalise(Some(Weights::of_vertices([vertex])));
///     assert!(prepared.solve()?.converged());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Prepared {
    links: Links,
    device: DeviceHandle,
    iterate: Iterate,
    personalise: Option<Weights>,
    x0: Option<Weights>,
    watch: Watch,
    facts: Arc<Facts>,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Prepared>();
};

/// Power iteration with an operator of a backend.
fn by_power<D: Pick<T>, T: Scalar>(
    device: &Arc<Shared<D>>,
    backend: &Choice,
    matrix: &Arc<Csr>,
    (vectors, extrapolate): (usize, bool),
    phase: &mut dyn FnMut(&str),
) -> Result<(Iterate, Chosen)> {
    let (operator, chosen) = operator::<D, T>(device, backend, matrix, vectors, phase)?;
    let kept = Kept::new(device, operator);
    let iterate: Iterate = Box::new(move |problem, rule, observers| {
        let device = kept.turn()?;
        device.enter()?;
        let Some(operator) = kept.value() else { unreachable!("it is never taken out") };
        power::<D, T>(operator.clone(), problem, extrapolate, rule, observers)
    });
    Ok((iterate, chosen))
}

/// An error that names vertices by their labels or ids.
fn named(names: &Names, error: Error) -> Error {
    match error {
        Error::Chain(ChainError::LinkWeights { vertex, to, reason }) => {
            let (vertex, to) = (names.name(vertex as usize), to.map(|to| names.name(to as usize)));
            ChainError::NamedWeights { vertex, to, reason }.into()
        }
        other => other,
    }
}

impl Prepared {
    pub(super) fn new(pagerank: Pagerank) -> Result<Prepared> {
        let Pagerank { graph, settings, personalise, x0, mut running } = pagerank;
        settings.check()?;
        let (device, backend) = running.open(settings.serial())?;
        let began = Instant::now();
        let known = Graph::of(&graph);
        (running.phase)("sorting the links");
        let (loops, repeats) =
            (settings.self_loops == SelfLoops::Keep, settings.duplicates == Repeated::Keep);
        let kept = if loops && repeats { graph.csr } else { Arc::new(graph.csr.simplified(loops, repeats)?) };
        // On a GPU, iterations take no time to speak of.
        let pays = matches!(device.0, Opened::Cpu(_)) || settings.may_take_long();
        let links = if pays { Links::in_best_order(kept) } else { Links::new(&kept) };
        let links = links.map_err(|error| named(&known.names, error))?;
        let precision = running.request.precision;
        let extrapolate = settings.method == RankMethod::Extrapolated;
        // A later solve may be personalised.
        let vectors = vectors(settings.dangling, true, extrapolate);
        let (iterate, chosen): (Iterate, Chosen) = match settings.method {
            RankMethod::GaussSeidel => (Box::new(gauss_seidel), Chosen::none()),
            RankMethod::Power | RankMethod::Extrapolated => {
                let exact = links.incoming();
                let matrix =
                    if precision.narrow_values() { Arc::new(exact.to_f32()) } else { Arc::clone(exact) };
                let phase = &mut *running.phase;
                on_device!(device, precision, |held, D, T| {
                    by_power::<D, T>(held, &backend, &matrix, (vectors, extrapolate), phase)
                })?
            }
        };
        let facts = Arc::new(Facts {
            graph: known,
            settings,
            links: links.incoming().nnz() as u64,
            sinks: links.count_sinks() as u64,
            reordered: links.are_reordered(),
            device: device.describe().to_owned(),
            chosen,
            precision,
            seconds_setup: began.elapsed().as_secs_f64(),
        });
        Ok(Prepared { links, device, iterate, personalise, x0, watch: running.watch, facts })
    }

    /// Where the surfer jumps to from now on; to any vertex where it is none.
    pub fn personalise(&mut self, weights: Option<Weights>) {
        self.personalise = weights;
    }

    /// Where iteration begins from now on.
    pub fn x0(&mut self, ranks: Option<Weights>) {
        self.x0 = ranks;
    }

    /// Solves from now on end once this flag is set.
    pub fn cancel_by(&mut self, flag: &Arc<AtomicBool>) {
        self.watch.cancel = Some(Arc::clone(flag));
    }

    /// The device.
    pub fn device(&self) -> &DeviceHandle {
        &self.device
    }

    /// The backend of the products, with its parameters.
    pub fn backend(&self) -> &str {
        &self.facts.chosen.backend
    }

    /// Ranks the vertices.
    pub fn solve(&mut self) -> Result<Ranks> {
        self.solve_watched(&mut [])
    }

    /// Ranks the vertices under the eyes of more observers.
    pub fn solve_watched(&mut self, observers: &mut [&mut dyn Observer]) -> Result<Ranks> {
        let Prepared { links, facts, iterate, watch, personalise, x0, .. } = self;
        let (settings, vertices) = (&facts.settings, (&facts.graph.names, "vertex"));
        let jumps = |weights: &Weights| weights.over("personalise", vertices, Others::Nothing, false);
        let begins =
            |ranks: &Weights| ranks.over("x0", vertices, Others::Share, !settings.dangling.conserves());
        let teleport = personalise.as_ref().map(jumps).transpose()?;
        let start = x0.as_ref().map(begins).transpose()?;
        let problem = RankProblem {
            links,
            damping: settings.damping,
            dangling: settings.dangling,
            teleport: teleport.as_deref(),
            start: start.as_deref(),
        };
        let limits = (settings.tol, settings.max_iters, settings.stagnation());
        watch.begin();
        let solve =
            |rule: &StoppingRule, observers: &mut [&mut dyn Observer]| iterate(&problem, rule, observers);
        let (ranking, recorder) = watch.run(limits, observers, solve)?;
        Ok(Ranks::new(ranking, recorder, Arc::clone(facts)))
    }

    /// Lets links and operator go, and keeps the device.
    pub fn into_device(self) -> DeviceHandle {
        self.device
    }
}
