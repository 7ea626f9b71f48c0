//! PageRank, from a graph to ranks with a bound on their error that is certain.

mod files;
mod prepared;
mod ranks;
mod report;

pub use crate::solve::pagerank::{Dangling, RankMethod};
pub use files::check_output;
pub use prepared::Prepared;
pub use ranks::Ranks;
pub use report::{RankReport, Top};

use super::device::{DeviceHandle, Request, Settled};
use super::matrix::Matrix;
use super::running::{Running, check_tolerance, running_settings};
use super::watch::{Closure, Progress};
use super::weights::Weights;
use crate::error::{Error, Result};
use crate::observe::Observer;
use crate::scalar::Precision;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is done with links from a vertex to itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum SelfLoops {
    /// They count like all others
    #[default]
    Keep,
    /// They are left out
    Remove,
}

/// What is done with links that the graph names several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Repeated {
    /// Each counts; weights add up
    #[default]
    Keep,
    /// Each link counts once, with the weight of the first
    Once,
}

/// What is computed, how precisely, and how much of it a report lists.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The probability that the surfer follows a link instead of jumping: at least 0, less than 1.
    pub damping: f64,
    /// What becomes of the surfer at a vertex without links.
    pub dangling: Dangling,
    /// How the ranks are found.
    pub method: RankMethod,
    /// Links from a vertex to itself.
    pub self_loops: SelfLoops,
    /// Links that the graph names several times.
    pub duplicates: Repeated,
    /// The solve ends once the error of all ranks together is certainly at most this.
    pub tol: f64,
    /// The most iterations.
    pub max_iters: usize,
    /// The number of the highest ranks that a report lists.
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
    /// Refuses settings out of their range.
    pub fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.damping) {
            return Err(Error::setting("damping", self.damping, "it must be at least 0 and less than 1"));
        }
        check_tolerance(self.tol, "the largest error there is")
    }

    /// The name of a method that runs in f64 on one thread of the CPU and needs no backend.
    pub fn serial(&self) -> Option<&'static str> {
        (self.method == RankMethod::GaussSeidel).then_some(self.method.name())
    }

    /// Iterations in which the error must have fallen by 1 %, several times over.
    fn stagnation(&self) -> usize {
        let each = -1.0 / self.damping.max(0.5).ln();
        (20.0 * each) as usize + 20
    }

    /// Whether an order of vertices that makes iterations faster may be worth the time that it takes to find, where they
    /// take no time to speak of: by the most iterations that the damping lets a tolerance take.
    fn may_take_long(&self) -> bool {
        const MANY: f64 = 300.0;
        self.tol.ln() / self.damping.ln() > MANY
    }
}

/// Ranks of the vertices of a graph: entry (i, j) of the matrix is a link from i to j, with its weight.
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
    graph: Matrix,
    settings: Settings,
    personalise: Option<Weights>,
    x0: Option<Weights>,
    running: Running,
}

impl Pagerank {
    /// Settings of a solve with this graph. Where no other clone of it is left, it is given up when the links are sorted.
    pub fn new(graph: &Matrix) -> Pagerank {
        let (settings, running) = (Settings::default(), Running::default());
        Pagerank { graph: graph.clone(), settings, personalise: None, x0: None, running }
    }

    /// The probability that the surfer follows a link instead of jumping. By default 0.85.
    pub fn damping(mut self, damping: f64) -> Self {
        self.settings.damping = damping;
        self
    }

    /// What becomes of the surfer at a vertex without links. By default it goes to any vertex.
    pub fn dangling(mut self, dangling: Dangling) -> Self {
        self.settings.dangling = dangling;
        self
    }

    /// How the ranks are found. By default by power iteration.
    pub fn method(mut self, method: RankMethod) -> Self {
        self.settings.method = method;
        self
    }

    /// What is done with links from a vertex to itself. By default they are kept.
    pub fn self_loops(mut self, self_loops: SelfLoops) -> Self {
        self.settings.self_loops = self_loops;
        self
    }

    /// What is done with links that the graph names several times. By default each counts.
    pub fn duplicates(mut self, duplicates: Repeated) -> Self {
        self.settings.duplicates = duplicates;
        self
    }

    /// Stops once the error of all ranks together is certainly at most this. By default 1e-10.
    pub fn tol(mut self, tolerance: f64) -> Self {
        self.settings.tol = tolerance;
        self
    }

    /// Iteration limit. By default 10,000.
    pub fn max_iters(mut self, iterations: usize) -> Self {
        self.settings.max_iters = iterations;
        self
    }

    /// All of damping, policies, method, tolerance and number of iterations.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Where the surfer jumps to: a number for each vertex, or vertices by name. By default any vertex.
    pub fn personalise(mut self, weights: impl Into<Weights>) -> Self {
        self.personalise = Some(weights.into());
        self
    }

    /// Where iteration begins: ranks of an earlier solve, also of an older graph. By default where the surfer jumps to.
    pub fn x0(mut self, ranks: impl Into<Weights>) -> Self {
        self.x0 = Some(ranks.into());
        self
    }

    running_settings!();

    /// Sorts the links, chooses device and backend, and keeps them for solve after solve.
    pub fn prepare(self) -> Result<Prepared> {
        Prepared::new(self)
    }

    /// Ranks the vertices.
    pub fn solve(self) -> Result<Ranks> {
        self.prepare()?.solve()
    }
}
