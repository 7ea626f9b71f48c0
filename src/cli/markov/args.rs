//! What the user typed of `solver markov`.

use crate::cli::running::RunArgs;
use crate::cli::what::What;
use crate::engine::markov::{ChainMethod, Classes};
use crate::source::Columns;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  solver markov blockband:n=2000,block=5,density=0.05
  solver convert blockband:n=500 chain.mtx
  solver markov chain.mtx --normalize --method aggregation --output pi.npy
  solver markov chain.mtx --classes each --output pi.csv --json

Row i of the matrix holds the probabilities of the steps out of state i, and must sum to 1. States of a matrix count \
from 1; those of a graph are called by their ids, and ids that no edge of a list names are no states. A chain that \
returns with a period is solved by its lazy twin where power iteration is asked for. A small residual is no bound on the \
error: where groups of states are seldom left, it may be large all the same. History and plot are those of the class with \
the largest residual. Exit codes: 0 the residual meets --tol, 1 it does not, 2 could not run.";

/// Options of `solver markov`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct MarkovArgs {
    /// The chain.
    #[command(flatten)]
    pub matrix: What,
    /// What the columns of a table of edges are, in their order, separated by commas: source, target, weight, time, or - for
    /// any other; time and - are not read [default: by the header, or source, target, weight]
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<Columns>,
    /// The labels of the vertices: a file with one a line in the order of the vertices, also .gz, such as the .urls of a crawl
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// How the distribution is found: all but power take one thread
    #[arg(long, value_enum, default_value = "power")]
    pub method: ChainMethod,
    /// Divide each row by its sum, instead of refusing rows that do not sum to 1
    #[arg(long)]
    pub normalize: bool,
    /// What to do where there are several classes of states that are never left
    #[arg(long, value_enum, default_value = "refuse")]
    pub classes: Classes,
    /// Begin at the distribution in this file, .npy or .mtx, also .gz
    #[arg(long, value_name = "FILE")]
    pub x0: Option<PathBuf>,
    /// Where and how long it runs.
    #[command(flatten)]
    pub run: RunArgs,
    /// Stop when the sum of all differences between a distribution and the next is at most this
    #[arg(long, value_name = "RESIDUAL", default_value = "1e-10")]
    pub tol: f64,
    /// Stop after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_iters: usize,
    /// How many of the likeliest states are printed, of each class
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Write the distribution here: .npy (a column for each class, states in rising order), .csv (state,probability[,...])
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
