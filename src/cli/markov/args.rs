//! The arguments of `solver markov`.

use crate::cli::matrix_arg::MatrixArg;
use crate::cli::running::RunArgs;
use crate::engine::markov::{ChainMethod, Classes};
use crate::source::ChosenColumns;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  solver markov blockband:n=2000,block=5,density=0.05
  solver convert blockband:n=500 chain.mtx
  solver markov chain.mtx --normalize --method aggregation --output pi.npy
  solver markov chain.mtx --classes each --output pi.csv --json

Row i of the matrix holds the probabilities of the steps from state i, and must sum to 1. The states of a matrix count \
from 1. The states of a graph keep the ids of its file; ids without an edge in a list are not states. Power iteration solves \
a periodic chain P as the lazy chain (P + I) / 2. A small residual is no bound on the error, which may be large if steps \
between groups of states are rare. History and plot show the class with the largest residual. Exit codes: 0 the residual meets --tol, 1 it does not, 2 could not run.";

/// Options of `solver markov`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MarkovArgs {
    /// The chain.
    #[command(flatten)]
    pub matrix: MatrixArg,
    /// Choose the columns of an edge table by their names on its first line, as in
    /// source=Follower,target=Followed,weight=W, or by a role for each column: source, target,
    /// weight, time, or - for any other column; time and - are not read [default: from the header,
    /// or source, target, weight]
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub columns: Option<ChosenColumns>,
    /// Read the labels of the vertices from this file, one a line in vertex order, also .gz,
    /// such as the .urls of a crawl
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Use this method; all but power run on one thread
    #[arg(long, value_enum, default_value = "power")]
    pub method: ChainMethod,
    /// Divide each row by its sum, instead of rejecting rows that do not sum to 1
    #[arg(long)]
    pub normalize: bool,
    /// Choose what to do if the chain has several closed classes of states
    #[arg(long, value_enum, default_value = "refuse")]
    pub classes: Classes,
    /// Start from the distribution in this file: .npy, .mtx or .txt, also .gz
    #[arg(long, value_name = "FILE")]
    pub x0: Option<PathBuf>,
    /// The options of every solve.
    #[command(flatten)]
    pub run: RunArgs,
    /// Stop when ||pi P - pi||, in the l1 norm, is at most this
    #[arg(long, value_name = "RESIDUAL", default_value = "1e-10")]
    pub tol: f64,
    /// Stop after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_iters: usize,
    /// Print the K most probable states of each class
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Write the distribution to this file: .npy (a column for each class, states in ascending order) or .csv
    /// (state,probability[,...])
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
