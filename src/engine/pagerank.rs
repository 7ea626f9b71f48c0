//! PageRank, from a graph to ranks with a guaranteed bound on their error.

mod by_target;
mod each;
mod files;
mod given;
mod iterate;
mod prepared;
mod ranks;
mod report;
mod seat;

pub use crate::solve::pagerank::{Dangling, RankMethod};
pub use each::RanksEach;
pub(crate) use files::check_output;
pub use prepared::Prepared;
pub use ranks::Ranks;
pub(crate) use report::RankReport;
pub use report::Top;

use super::device::HostMethod;
use super::matrix::Matrix;
use super::ranks::RankGraph;
use super::run_settings::{DeviceSettings, RunSettings};
use super::running::{Run, check_tolerance};
use super::weights::Weights;
use crate::device;
use crate::error::{ChainError, Error, Result};
use given::Given;

/// The treatment of links from a vertex to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelfLoops {
    /// Self-loops count like all other links.
    #[default]
    Keep,
    /// Self-loops are removed.
    Remove,
}

/// The treatment of repeated links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeated {
    /// Each repetition counts; weights add up.
    #[default]
    Keep,
    /// Each link counts once, with the weight of the first.
    Once,
}

/// Damping, treatment of the links, method, tolerance, limits and length of the report.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The probability that the surfer follows a link instead of jumping: at least 0, less than 1.
    pub damping: f64,
    /// The treatment of vertices without links.
    pub dangling: Dangling,
    /// The method of the solve.
    pub method: RankMethod,
    /// The treatment of links from a vertex to itself.
    pub self_loops: SelfLoops,
    /// The treatment of repeated links.
    pub duplicates: Repeated,
    /// The solve ends once the bound on the l1 error of the ranks is at most this.
    pub tol: f64,
    /// The iteration limit.
    pub max_iters: usize,
    /// The number of highest ranks that a report lists.
    pub top: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            damping: 0.85,
            dangling: Dangling::Uniform,
            method: RankMethod::Power,
            self_loops: SelfLoops::Keep,
            duplicates: Repeated::Keep,
            tol: 1e-10,
            max_iters: 10_000,
            top: 10,
        }
    }
}

impl Settings {
    /// Checks that the settings are within their ranges.
    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.damping) {
            return Err(Error::setting("damping", self.damping, "it must be at least 0 and less than 1"));
        }
        check_tolerance(self.tol, "the largest possible error")
    }

    /// Refuses a method that runs in one process only.
    fn check_over_ranks(&self) -> Result<()> {
        match self.method {
            RankMethod::Power | RankMethod::Extrapolated => Ok(()),
            RankMethod::GaussSeidel => {
                let reason = "it runs in one process; over ranks use method power or extrapolated";
                Err(Error::setting("method", self.method.name(), reason))
            }
        }
    }

    /// Returns the method if it runs on the CPU and needs no backend.
    pub(crate) fn host_method(&self) -> Option<HostMethod> {
        let method = HostMethod { name: self.method.name(), one_thread: false };
        (self.method == RankMethod::GaussSeidel).then_some(method)
    }

    /// Returns the window of iterations without progress that counts as stagnation: 20 times the iterations
    /// in which the damping reduces the error by the factor e, plus 20.
    fn stagnation(&self) -> usize {
        let each = -1.0 / self.damping.max(0.5).ln();
        (20.0 * each) as usize + 20
    }

    /// Returns whether the damping allows more than `MANY` iterations before the tolerance is met. Then
    /// reordering the vertices may pay even on a device with very fast iterations.
    fn may_take_long(&self) -> bool {
        const MANY: f64 = 300.0;
        self.tol.ln() / self.damping.ln() > MANY
    }
}

/// The graph of a solve: all of it, or the part of a rank.
enum Graph {
    Whole(Matrix),
    OfRank(RankGraph),
}

impl Graph {
    /// Returns the ranks, if they share the graph.
    fn ranks(&self) -> Option<&device::Ranks> {
        match self {
            Graph::Whole(_) => None,
            Graph::OfRank(graph) => Some(&graph.ranks),
        }
    }

    /// Refuses a graph without vertices.
    fn check(&self) -> Result<()> {
        let (vertices, origin) = match self {
            Graph::Whole(graph) => (graph.rows().max(graph.cols()), &graph.origin),
            Graph::OfRank(graph) => (graph.total_vertices(), &graph.names.origin),
        };
        if vertices == 0 {
            Err(ChainError::NoVertices { graph: origin.title().to_owned() }.into())
        } else {
            Ok(())
        }
    }
}

/// Settings of a solve for the PageRank of a graph. Entry (i, j) of the matrix is the weight
/// of the link from i to j.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let graph = Matrix::from_edges([(0, 1), (1, 2), (2, 0), (3, 0)])?;
/// let ranks = Pagerank::new(&graph).damping(0.9).tol(1e-12).solve()?;
/// assert!(ranks.converged() && ranks.error_bound() <= 1e-12);
/// println!("{}", ranks.report());
/// # Ok(())
/// # }
/// ```
pub struct Pagerank {
    graph: Graph,
    settings: Settings,
    given: Given,
    run: Run,
}

impl DeviceSettings for Pagerank {
    fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

impl RunSettings for Pagerank {}

impl Pagerank {
    /// Creates the settings of a solve with this graph. The graph is freed once the links are sorted,
    /// unless it has other clones.
    pub fn new(graph: &Matrix) -> Pagerank {
        Pagerank::of(Graph::Whole(graph.clone()), Run::default())
    }

    /// Creates the settings of a solve over ranks. All ranks call the same functions in the same order. Each
    /// rank gets the ranks of a range of vertices; [`Ranks::rows`] returns the range.
    pub fn over_ranks(graph: &RankGraph) -> Pagerank {
        Pagerank::of(Graph::OfRank(graph.clone()), Run::separate())
    }

    fn of(graph: Graph, run: Run) -> Pagerank {
        Pagerank { graph, settings: Settings::default(), given: Given::default(), run }
    }

    /// Sets the probability that the surfer follows a link instead of jumping. By default 0.85.
    pub fn damping(mut self, damping: f64) -> Self {
        self.settings.damping = damping;
        self
    }

    /// Sets the treatment of vertices without links. By default the surfer jumps to a
    /// uniformly random vertex.
    pub fn dangling(mut self, dangling: Dangling) -> Self {
        self.settings.dangling = dangling;
        self
    }

    /// Sets the method. By default power iteration.
    pub fn method(mut self, method: RankMethod) -> Self {
        self.settings.method = method;
        self
    }

    /// Sets the treatment of links from a vertex to itself. By default they are kept.
    pub fn self_loops(mut self, self_loops: SelfLoops) -> Self {
        self.settings.self_loops = self_loops;
        self
    }

    /// Sets the treatment of repeated links. By default each counts.
    pub fn duplicates(mut self, duplicates: Repeated) -> Self {
        self.settings.duplicates = duplicates;
        self
    }

    /// Stops once the bound on the l1 error of the ranks is at most `tolerance`. By default 1e-10.
    pub fn tol(mut self, tolerance: f64) -> Self {
        self.settings.tol = tolerance;
        self
    }

    /// Sets the iteration limit. By default 10,000.
    pub fn max_iters(mut self, iterations: usize) -> Self {
        self.settings.max_iters = iterations;
        self
    }

    /// Sets damping, treatment of links, method, tolerance and iteration limit at once.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the distribution of the surfer's jumps: a number for each vertex, or vertices by
    /// name. By default uniform.
    pub fn personalise(mut self, weights: impl Into<Weights>) -> Self {
        self.given.personalise = Some(weights.into());
        self
    }

    /// Sets several distributions of the surfer's jumps, for which [`solve_each`](Self::solve_each) computes
    /// the ranks in one run. Backend `auto` then chooses among the backends that multiply several columns.
    ///
    /// ```
    /// # fn main() -> solver::Result<()> {
    /// use solver::prelude::*;
    /// let graph = Matrix::open_graph("rmat:scale=8,factor=8")?;
    /// let each = ["3", "17", "40"].map(|vertex| Weights::from_vertices([vertex]));
    /// let ranks = Pagerank::new(&graph).personalise_each(each).solve_each()?;
    /// assert!(ranks.converged() && ranks.columns().len() == 3);
    /// println!("{}", ranks.report());
    /// # Ok(())
    /// # }
    /// ```
    pub fn personalise_each(mut self, weights: impl IntoIterator<Item = Weights>) -> Self {
        self.given.each = weights.into_iter().collect();
        self.run.request.columns = self.given.each.len().max(1);
        self
    }

    /// Sets the number of personalisations that [`Prepared::solve_each`] will rank at once, which backend
    /// `auto` then considers. By default that of [`personalise_each`](Self::personalise_each). If `auto` must
    /// choose again for more of them, the links are stored twice; without memory for that, a ranking on
    /// several devices must be prepared again.
    pub fn columns(mut self, k: usize) -> Self {
        self.run.request.columns = k.max(1);
        self
    }

    /// Sets the initial ranks, which may be those of an earlier version of the graph. By default the
    /// distribution of the jumps.
    pub fn x0(mut self, ranks: impl Into<Weights>) -> Self {
        self.given.x0 = Some(ranks.into());
        self
    }

    /// Sorts the links, chooses device and backend, and builds the operator for repeated solves.
    pub fn prepare(self) -> Result<Prepared> {
        Prepared::new(self)
    }

    /// Computes the ranks.
    pub fn solve(self) -> Result<Ranks> {
        self.timed_from_here().prepare()?.solve()
    }

    /// Computes the ranks for each distribution of [`personalise_each`](Self::personalise_each).
    pub fn solve_each(self) -> Result<RanksEach> {
        self.timed_from_here().prepare()?.solve_each()
    }
}
