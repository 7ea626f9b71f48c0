//! The arguments of `solver pagerank`.

use crate::cli::matrix_arg::MatrixArg;
use crate::cli::running::RunArgs;
use crate::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use crate::source::ChosenColumns;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  solver pagerank rmat:scale=20,edges=16000000 --top 20 --plot plots/rmat.svg
  solver pagerank rmat:scale=12,factor=16 --tol 1e-12 --output ranks.csv
  solver pagerank rmat:scale=12,factor=17 --x0 ranks.csv --output newer.csv
  solver pagerank rmat:scale=12,factor=16 --personalise 12,17
  echo 3 | solver pagerank rmat:scale=9,factor=8 --personalise-each /dev/stdin
  printf 'alice bob\\nbob carol\\n' | solver pagerank - --personalise alice
  printf 'by,to\\na,b\\nb,c\\n' | solver pagerank - --columns source=by,target=to

An edge i j of the graph is a link from i to j; a third column is its weight. Named vertices are numbered in the order in \
which the names first occur. Row i of a matrix holds the links of vertex i, counted from 0. The vertices of a graph keep the \
ids of its file (METIS counts from 1); ids without an edge in a list are not vertices.
The printed error bound is certified: the l1 distance between the computed and the exact ranks is at most this bound, \
rounding included.
Exit codes: 0 the bound meets --tol, 1 it does not, 2 could not run.";

/// Options of `solver pagerank`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PagerankArgs {
    /// The graph.
    #[command(flatten)]
    pub graph: MatrixArg,
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
    /// Set the probability that the surfer follows a link instead of jumping
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    pub damping: f64,
    /// Choose where the surfer goes from a vertex without links
    #[arg(long, value_enum, default_value = "uniform")]
    pub dangling: Dangling,
    /// Set where the surfer jumps to: vertices by id or label, separated by commas, with equal
    /// probabilities, or a file of weights, which are divided by their sum: .npy, .mtx or .txt (also .gz)
    /// with one for each vertex in order, .csv with lines id,weight or label,weight, or a .csv or .json file
    /// of --output [default: every vertex]
    #[arg(long, value_name = "FILE|VERTICES")]
    pub personalise: Option<OsString>,
    /// Rank once for each line of this file, all in one run: a line is a personalisation, vertices by id or
    /// label separated by commas, each with its weight after a blank, as in 3,17 or alice 0.5,bob 2
    #[arg(long, value_name = "FILE", conflicts_with_all = ["personalise", "x0"])]
    pub personalise_each: Option<PathBuf>,
    /// Start from the ranks in this file: .npy, .mtx or .txt (also .gz) of the same vertices, or a .csv or
    /// .json file of --output, also of an older graph: new vertices start with an equal share
    #[arg(long, value_name = "FILE")]
    pub x0: Option<PathBuf>,
    /// Use this method: extrapolated takes fewer iterations than power; gauss-seidel runs on the CPU and
    /// takes half to two thirds as many
    #[arg(long, value_enum, default_value = "power")]
    pub method: RankMethod,
    /// The options of every solve.
    #[command(flatten)]
    pub run: RunArgs,
    /// Stop when the certified bound on the l1 error of the ranks is at most this
    #[arg(long, value_name = "ERROR", default_value = "1e-10")]
    pub tol: f64,
    /// Stop after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_iters: usize,
    /// Print the K highest ranks
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Keep or remove links from a vertex to itself
    #[arg(long, value_enum, default_value = "keep")]
    pub self_loops: SelfLoops,
    /// Count each of several equal links, or only one of them
    #[arg(long, value_enum, default_value = "keep")]
    pub duplicates: Repeated,
    /// Write the ranks to this file: .npy (in vertex order), or .csv or .json (id or label and rank, in
    /// descending order); with --personalise-each .npy has a row for each vertex and a column for each line,
    /// and .csv and .json have seed, vertex and rank
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
