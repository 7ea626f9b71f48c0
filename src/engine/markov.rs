//! Stationary distributions of a Markov chain, one for each closed class of states.

mod analysis;
mod class;
mod distribution;
mod distributions;
mod files;
mod prepared;
mod report;
mod seat;

pub use crate::solve::markov::ChainMethod;
pub use distribution::Distribution;
pub use distributions::Distributions;
pub(crate) use files::check_output;
pub use prepared::Prepared;
pub(crate) use report::MarkovReport;
pub use report::State;

use super::device::HostMethod;
use super::matrix::Matrix;
use super::ranks::RankChain;
use super::run_settings::{DeviceSettings, RunSettings};
use super::running::{Run, check_tolerance};
use super::weights::Weights;
use crate::device::Ranks;
use crate::error::{Error, Result};

/// The treatment of a chain with several closed classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classes {
    /// Refuse the chain, with the number of classes.
    Refuse,
    /// Compute the distribution of each class.
    #[default]
    Each,
}

/// Method, treatment of the chain, tolerance, limits and length of the report.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The method of the solve.
    pub method: ChainMethod,
    /// Whether each row is divided by its sum. If false, a row that does not sum to 1 is refused.
    pub normalize: bool,
    /// The treatment of a chain with several closed classes.
    pub classes: Classes,
    /// The solve ends once the l1 norm of the difference between a distribution and the next is at most this.
    pub tol: f64,
    /// The iteration limit of each class.
    pub max_iters: usize,
    /// The number of most probable states that a report lists for each class.
    pub top: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            method: ChainMethod::Power,
            normalize: false,
            classes: Classes::Each,
            tol: 1e-10,
            max_iters: 10_000,
            top: 10,
        }
    }
}

impl Settings {
    /// Checks that the settings are within their ranges.
    pub(crate) fn check(&self) -> Result<()> {
        check_tolerance(self.tol, "the largest possible residual")
    }

    /// Refuses a method that runs in one process only.
    fn check_over_ranks(&self) -> Result<()> {
        match self.method {
            ChainMethod::Power => Ok(()),
            ChainMethod::GaussSeidel | ChainMethod::Aggregation => {
                let reason = "it runs in one process; over ranks use method power";
                Err(Error::setting("method", self.method.name(), reason))
            }
        }
    }

    /// Returns the method if it runs on the CPU and needs no backend.
    pub(crate) fn host_method(&self) -> Option<HostMethod> {
        let method = HostMethod { name: self.method.name(), one_thread: true };
        (self.method != ChainMethod::Power).then_some(method)
    }
}

/// The chain of a solve: all of it, or that of ranks.
enum GivenChain {
    Whole(Matrix),
    OfRanks(RankChain),
}

impl GivenChain {
    /// Returns the ranks, if they share the chain.
    fn ranks(&self) -> Option<&Ranks> {
        match self {
            GivenChain::Whole(_) => None,
            GivenChain::OfRanks(chain) => Some(&chain.ranks),
        }
    }
}

/// Settings of a solve for the stationary distributions of a chain. Entry (i, j) of the matrix is the
/// probability of the step from state i to state j.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::prelude::*;
/// let p = Matrix::from_triplets(2, 2, [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 3.0)])?;
/// let found = Markov::new(&p).normalize(true).method(markov::ChainMethod::GaussSeidel).solve()?;
/// assert!(found.converged() && found.classes().len() == 1);
/// println!("{}", found.report());
/// # Ok(())
/// # }
/// ```
pub struct Markov {
    chain: GivenChain,
    settings: Settings,
    x0: Option<Weights>,
    run: Run,
}

impl DeviceSettings for Markov {
    fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

impl RunSettings for Markov {}

impl Markov {
    /// Creates the settings of a solve with this chain.
    pub fn new(chain: &Matrix) -> Markov {
        Markov::of(GivenChain::Whole(chain.clone()), Run::default())
    }

    /// Creates the settings of a solve over ranks. The first rank gets the distributions. All ranks call the
    /// same functions in the same order.
    pub fn over_ranks(chain: &RankChain) -> Markov {
        Markov::of(GivenChain::OfRanks(chain.clone()), Run::separate())
    }

    fn of(chain: GivenChain, run: Run) -> Markov {
        Markov { chain, settings: Settings::default(), x0: None, run }
    }

    /// Sets the method. By default power iteration.
    pub fn method(mut self, method: ChainMethod) -> Self {
        self.settings.method = method;
        self
    }

    /// Sets whether each row is divided by its sum. By default rows that do not sum to 1 are refused.
    pub fn normalize(mut self, normalize: bool) -> Self {
        self.settings.normalize = normalize;
        self
    }

    /// Sets the treatment of a chain with several closed classes. By default the distribution
    /// of each class is computed.
    pub fn of_classes(mut self, classes: Classes) -> Self {
        self.settings.classes = classes;
        self
    }

    /// Stops once the l1 norm of the difference between a distribution and the next is at most
    /// `tolerance`. By default 1e-10.
    pub fn tol(mut self, tolerance: f64) -> Self {
        self.settings.tol = tolerance;
        self
    }

    /// Sets the iteration limit of each class. By default 10,000.
    pub fn max_iters(mut self, iterations: usize) -> Self {
        self.settings.max_iters = iterations;
        self
    }

    /// Sets method, classes, tolerance and iteration limit at once.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the initial distribution: a number for each state. By default all states of a class
    /// have the same probability.
    pub fn x0(mut self, weights: impl Into<Weights>) -> Self {
        self.x0 = Some(weights.into());
        self
    }

    /// Finds the closed classes and chooses the device for repeated solves. For a chain with one closed
    /// class, also chooses the backend and builds the operator.
    pub fn prepare(self) -> Result<Prepared> {
        Prepared::new(self)
    }

    /// Computes the distribution of each closed class.
    pub fn solve(self) -> Result<Distributions> {
        self.timed_from_here().prepare()?.solve()
    }
}
