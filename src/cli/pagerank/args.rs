//! What the user typed of `solver pagerank`.

use crate::cli::running::RunArgs;
use crate::cli::what::What;
use crate::engine::pagerank::{Dangling, RankMethod, Repeated, SelfLoops};
use crate::source::Columns;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  solver pagerank rmat:scale=20,edges=16000000 --top 20 --plot plots/rmat.svg
  solver pagerank rmat:scale=12,factor=16 --tol 1e-12 --output ranks.csv
  solver pagerank rmat:scale=12,factor=17 --x0 ranks.csv --output newer.csv
  solver pagerank rmat:scale=12,factor=16 --personalise 12,17
  printf 'alice bob\\nbob carol\\n' | solver pagerank - --personalise alice

An edge i j of the graph is a link from i to j, and is followed by its weight where there is a third column. Vertices that \
have names are in the order in which these first come. Row i of a matrix holds the links of vertex i, counted from 0. Ids of a \
graph stay what its file calls them (METIS counts from 1), and those that no edge of a list names are no vertices.
What is printed is certified: no vector of exact ranks lies farther from the one that was computed than the bound says, by \
the sum of all differences.
Exit codes: 0 the bound meets --tol, 1 it does not, 2 could not run.";

/// Options of `solver pagerank`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct PagerankArgs {
    /// The graph.
    #[command(flatten)]
    pub graph: What,
    /// What the columns of a table of edges are, in their order, separated by commas: source, target, weight, time, or - for
    /// any other; time and - are not read [default: by the header, or source, target, weight]
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<Columns>,
    /// The labels of the vertices: a file with one a line in the order of the vertices, also .gz, such as the .urls of a crawl
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// The probability that the surfer follows a link instead of jumping
    #[arg(long, value_name = "D", default_value_t = 0.85)]
    pub damping: f64,
    /// What becomes of the surfer at a vertex without links
    #[arg(long, value_enum, default_value = "uniform")]
    pub dangling: Dangling,
    /// Where the surfer jumps to: vertices by id or label, separated by commas, each as likely as the other, or a file with
    /// numbers, that are divided by their sum: .npy, .mtx or .txt (also .gz) with one for each vertex in order, or .csv with
    /// lines id,number or label,number [default: every vertex]
    #[arg(long, value_name = "FILE|VERTICES")]
    pub personalise: Option<OsString>,
    /// Begin at the ranks in this file: .npy, .mtx or .txt (also .gz) of the same vertices, or .csv or .json as --output writes
    /// them, of an older graph too: new vertices begin at an equal share
    #[arg(long, value_name = "FILE")]
    pub x0: Option<PathBuf>,
    /// How the ranks are found: extrapolated takes fewer iterations than power, and gauss-seidel, on one thread, about half
    /// on crawls of the web
    #[arg(long, value_enum, default_value = "power")]
    pub method: RankMethod,
    /// Where and how long it runs.
    #[command(flatten)]
    pub run: RunArgs,
    /// Stop when the error of all ranks together is certainly at most this
    #[arg(long, value_name = "ERROR", default_value = "1e-10")]
    pub tol: f64,
    /// Stop after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_iters: usize,
    /// How many of the highest ranks are printed
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub top: usize,
    /// Links from a vertex to itself
    #[arg(long, value_enum, default_value = "keep")]
    pub self_loops: SelfLoops,
    /// Links that the graph names several times
    #[arg(long, value_enum, default_value = "keep")]
    pub duplicates: Repeated,
    /// Write the ranks here: .npy (in the order of the vertices), .csv (id,rank by falling rank, or label,rank), or .json (the
    /// same)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

// Not derived, as the help names a flag.
impl ValueEnum for Dangling {
    fn value_variants<'a>() -> &'a [Dangling] {
        &Dangling::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Dangling::Uniform => "It goes to any vertex",
            Dangling::Personalised => "It jumps as --personalise says",
            Dangling::SelfLoop => "It stays",
            Dangling::Drop => "It is gone, and the ranks sum to less than 1, as in the GAP benchmark",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}
