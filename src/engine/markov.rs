//! Stationary distributions of a Markov chain, one for each class of states that it cannot leave.

mod distribution;
mod distributions;
mod files;
mod prepared;
mod report;

pub use crate::solve::markov::ChainMethod;
pub use distribution::Distribution;
pub use distributions::Distributions;
pub use files::check_output;
pub use prepared::Prepared;
pub use report::{ClassReport, MarkovReport, State};

use super::device::{DeviceHandle, Request, Settled};
use super::matrix::Matrix;
use super::running::{Running, check_tolerance, running_settings};
use super::watch::{Closure, Progress};
use super::weights::Weights;
use crate::error::Result;
use crate::observe::Observer;
use crate::scalar::Precision;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What to do with several classes that are never left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Classes {
    /// Say how many there are, and stop
    Refuse,
    /// Find the distribution of each
    #[default]
    Each,
}

/// What is computed, how precisely, and how much of it a report lists.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the distribution is found.
    pub method: ChainMethod,
    /// Whether each row is divided by its sum; rows that do not sum to 1 are refused otherwise.
    pub normalize: bool,
    /// What to do with several classes that are never left.
    pub classes: Classes,
    /// The solve ends once the sum of all differences between a distribution and the next is at most this.
    pub tol: f64,
    /// The most iterations for each class.
    pub max_iters: usize,
    /// The number of the likeliest states that a report lists of each class.
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
    /// Refuses settings out of their range.
    pub fn check(&self) -> Result<()> {
        check_tolerance(self.tol, "the largest residual there is")
    }

    /// The name of a method that runs in f64 on one thread of the CPU and needs no backend.
    pub fn serial(&self) -> Option<&'static str> {
        (self.method != ChainMethod::Power).then_some(self.method.name())
    }
}

/// Stationary distributions of a chain: entry (i, j) of the matrix is the probability of the step from state i to state j.
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
    chain: Matrix,
    settings: Settings,
    x0: Option<Weights>,
    running: Running,
}

impl Markov {
    /// Settings of a solve with this chain.
    pub fn new(chain: &Matrix) -> Markov {
        let (settings, running) = (Settings::default(), Running::default());
        Markov { chain: chain.clone(), settings, x0: None, running }
    }

    /// How the distribution is found. By default by power iteration.
    pub fn method(mut self, method: ChainMethod) -> Self {
        self.settings.method = method;
        self
    }

    /// Divides each row by its sum. By default rows that do not sum to 1 are refused.
    pub fn normalize(mut self, normalize: bool) -> Self {
        self.settings.normalize = normalize;
        self
    }

    /// What to do with several classes of states that are never left. By default the distribution of each is found.
    pub fn of_classes(mut self, classes: Classes) -> Self {
        self.settings.classes = classes;
        self
    }

    /// Stops once the sum of all differences between a distribution and the next is at most this. By default 1e-10.
    pub fn tol(mut self, tolerance: f64) -> Self {
        self.settings.tol = tolerance;
        self
    }

    /// Iteration limit of each class. By default 10,000.
    pub fn max_iters(mut self, iterations: usize) -> Self {
        self.settings.max_iters = iterations;
        self
    }

    /// All of method, classes, tolerance and number of iterations.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Where iteration begins: a number for each state. By default all states of a class are alike.
    pub fn x0(mut self, weights: impl Into<Weights>) -> Self {
        self.x0 = Some(weights.into());
        self
    }

    running_settings!();

    /// Finds the classes, chooses the device, and for a chain of one class the backend, and keeps them for solve after solve.
    pub fn prepare(self) -> Result<Prepared> {
        Prepared::new(self)
    }

    /// Finds the distribution of each class.
    pub fn solve(self) -> Result<Distributions> {
        self.prepare()?.solve()
    }
}
