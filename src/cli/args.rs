//! What the user typed, exactly, over what a configuration file says. Nothing is opened or resolved here.

use super::backends::BackendsArgs;
use super::every::Every;
use super::groups::{GENERAL, arranged, switch};
use super::markov::args::MarkovArgs;
use super::pagerank::args::PagerankArgs;
use super::precond::{PreconditionersArgs, Typed, listed_below};
use super::running::RunArgs;
use super::what::{self, What};
use crate::precond::Preconditioner;
use crate::source::Columns;
use clap::{ArgAction, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Solves symmetric sparse linear systems and ranks graphs, on CPUs and NVIDIA GPUs, and tells the truth about the answer.
#[derive(Parser, Debug)]
#[command(name = "solver", version, max_term_width = 100, disable_help_flag = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Fetch nothing: a matrix of the catalog that is not on this machine is an error. SOLVER_OFFLINE=1 does the same
    #[arg(long, global = true, help_heading = GENERAL)]
    pub offline: bool,
    /// Say more: -v a complete report, and what was chosen and why, -vv every kernel.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = GENERAL)]
    pub verbose: u8,
    /// Show no progress, and nothing but results, errors, and what --monitor prints.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GENERAL)]
    pub quiet: bool,
    /// Where fetched matrices and compiled kernels are kept [default: $SOLVER_CACHE, or solver in the user's cache
    /// folder]
    #[arg(long, global = true, value_name = "DIR", help_heading = GENERAL)]
    pub cache: Option<PathBuf>,
    /// Print help; -h prints a summary
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = GENERAL)]
    pub help: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  solver cg poisson2d:1000x1000 --plot plots/cg.svg
  solver cg poisson3d:40x40x40 --precond jacobi --json
  solver pagerank rmat:scale=16,factor=16 --top 5
  solver info poisson2d:300x300
  solver doctor

Exit codes: 0 converged, 1 not converged, 2 could not run.";

/// The sub-commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Solve A x = b by conjugate gradients, for symmetric positive definite A.
    #[command(mut_args(switch), mut_args(arranged))]
    Cg(CgArgs),
    /// Solve A x = b by minimal residuals, for symmetric A that is indefinite or singular.
    #[command(after_help = listed_below(MINRES_EXAMPLES), mut_arg("variant", |arg| arg.hide(true)), mut_args(switch), mut_args(arranged))]
    Minres(CgArgs),
    /// Rank the vertices of a graph by PageRank, with a certified bound on the error.
    #[command(mut_args(what::graph), mut_args(switch), mut_args(arranged))]
    Pagerank(PagerankArgs),
    /// Find the stationary distribution of a Markov chain.
    #[command(mut_args(switch), mut_args(arranged))]
    Markov(MarkovArgs),
    /// Describe a matrix: size, row lengths, symmetry, diagonal.
    Info(InfoArgs),
    /// List the matrices that have a name: the catalog, and the generators.
    Matrices(MatricesArgs),
    /// Download matrices of the catalog; one that was interrupted goes on where it stopped.
    Fetch(FetchArgs),
    /// List the SpMV backends with their parameters.
    Backends(BackendsArgs),
    /// List the preconditioners with their parameters.
    Preconditioners(PreconditionersArgs),
    /// Look at this machine: what is there, what is missing, how to get it, how fast it is.
    Doctor(DoctorArgs),
    /// Draw one or several saved histories.
    Plot(PlotArgs),
    /// Write a matrix in another format.
    Convert(ConvertArgs),
    /// Print a script that completes commands and options in a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder.
    Man(ManArgs),
}

const CG_EXAMPLES: &str = "\
Examples:
  solver cg poisson2d:1000x1000 --plot plots/cg.svg
  solver cg poisson2d:90x90 --precond jacobi --history a.json --output x.npy
  solver cg poisson2d:90x90 --x0 x.npy --rtol 1e-12 --history more.csv
  solver cg elasticity3d:20x20x20 --rhs beside --precond ic0
  solver cg poisson3d:60x60x60 --checkpoint p.ckpt --every 5m
  solver cg poisson3d:60x60x60 --checkpoint p.ckpt --resume p.ckpt --rtol 1e-10
  solver cg hex27:48x48x50,dof=3 --device cuda --backend vector:threads=16
  solver cg F1 --backend hybrid --plot plots/f1.svg

A matrix of the catalog that is not on this machine, such as F1, is fetched on first use.

Ctrl-C or SIGTERM stops at the next check: answer, history and plot of what was reached are still written, and a last checkpoint.
Before the first iteration it ends the program at once.
--resume goes on with the same bits as if nothing had happened; iterations and seconds count on. Tolerances, limits and \
--threads may change; matrix, right-hand side, start, method, precision and preconditioner may not. On another device, by \
another backend, on another model of GPU, or on a CPU that differs in having AVX2 and FMA, it goes on with other roundings, \
and warns of that. The checkpoint of a solve that has ended stays, and gives the same verdict again.";

const MINRES_EXAMPLES: &str = "\
Examples:
  solver minres poisson2d:60x60,boundary=neumann
  solver minres poisson2d:300x300,boundary=neumann --plot plots/minres.svg

The options are those of solver cg. The preconditioner must be positive definite. Where the system has no solution, the \
answer is a least-squares solution, and the exit code 1.";

/// Options of `solver cg` and `solver minres`.
#[derive(Args, Debug)]
#[command(after_help = listed_below(CG_EXAMPLES), args_override_self = true)]
pub struct CgArgs {
    /// The matrix.
    #[command(flatten)]
    pub matrix: What,
    /// The right-hand side: a file (.txt, .mtx or .npy of one column, also .gz), ones, random:SEED, A*ones (the error is then
    /// told too), or beside: what came with the matrix [default: A*ones]
    #[arg(long, value_name = "FILE|WORD")]
    pub rhs: Option<OsString>,
    /// Start from the vector in this file, .txt, .mtx or .npy, also .gz [default: x = 0]
    #[arg(long, value_name = "FILE")]
    pub x0: Option<PathBuf>,
    /// Read a symmetric file as the triangle that it stores, as some papers measured it
    #[arg(long)]
    pub as_stored: bool,
    /// The preconditioner, with parameters after a colon, as in block-jacobi:block=3; listed below
    #[arg(long, value_name = "PRECOND", value_parser = Typed, hide_possible_values = true, default_value = "none")]
    pub precond: Preconditioner,
    /// The form of conjugate gradients: pipelined has one synchronisation an iteration, and moves more [default:
    /// classic]
    #[arg(long, value_enum)]
    pub variant: Option<Variant>,
    /// Where and how long it runs.
    #[command(flatten)]
    pub run: RunArgs,
    /// Stop when ||b - A x|| is at most this times ||b|| [default: 1e-8, with f32 1e-5; none beside --rtol-initial or
    /// --atol]
    #[arg(long, visible_alias = "tol", value_name = "TOLERANCE")]
    pub rtol: Option<f64>,
    /// Stop when ||b - A x|| is at most this times what it was at the start; of several tolerances the first met counts
    #[arg(long, value_name = "TOLERANCE")]
    pub rtol_initial: Option<f64>,
    /// Stop when ||b - A x|| is at most this
    #[arg(long, value_name = "NORM")]
    pub atol: Option<f64>,
    /// Stop after N iterations [default: 10 a row, at least 1000 and at most 100000]
    #[arg(long, value_name = "N")]
    pub max_iters: Option<usize>,
    /// Skip the comparison of each a(i,j) with a(j,i), which refuses pairs that differ by more than 1e-12 of their size. For
    /// an unsymmetric matrix the method may fail; the residual is that of the matrix as it is all the same
    #[arg(long)]
    pub assume_symmetric: bool,
    /// Save the solve here on the way and at its end, so that --resume can go on; the file is replaced whole
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Time between two checkpoints: 60s, 5m, 1h, 500ms, or seconds [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub every: Option<Every>,
    /// Go on from this checkpoint of the same solve
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Write the solution here: .mtx or .mtx.gz (Matrix Market), .npy (NumPy), or .txt or .txt.gz (a column of text)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The forms of conjugate gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Variant {
    /// Hestenes and Stiefel's.
    Classic,
    /// Ghysels and Vanroose's.
    Pipelined,
}

const INFO_EXAMPLES: &str = "\
Examples:
  solver info poisson2d:1000x1000 --spy plots/poisson.png
  solver info elasticity3d:12x12x12 --json
  solver info F1";

/// Options of `solver info`.
#[derive(Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
pub struct InfoArgs {
    /// The matrix.
    #[command(flatten)]
    pub matrix: What,
    /// What the columns of a table of edges are, as in solver pagerank --columns source,target,time
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<Columns>,
    /// Draw where the entries stand, by density: .svg or .png
    #[arg(long, value_name = "FILE")]
    pub spy: Option<PathBuf>,
    /// Read a symmetric file as the triangle that it stores
    #[arg(long)]
    pub as_stored: bool,
    /// Also read the vectors stored with the matrix, such as right-hand sides in an archive
    #[arg(long = "vectors", alias = "beside")]
    pub attached: bool,
    /// Kept for scripts: a matrix of the catalog is fetched without it
    #[arg(long, hide = true)]
    pub fetch: bool,
    /// Print JSON; rows and columns in it are counted from 1
    #[arg(long)]
    pub json: bool,
}

/// Options of `solver matrices`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver matrices\n  solver matrices structural --json")]
pub struct MatricesArgs {
    /// Only those with this in their name, group or kind
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const FETCH_HELP: &str = "\
Examples:
  solver fetch F1
  solver fetch thermal2 G3_circuit --cache /scratch/solver

A matrix fetched with --cache DIR is found again with --cache DIR or SOLVER_CACHE=DIR. SOLVER_MIRROR does what --mirror does.";

/// Options of `solver fetch`.
#[derive(Args, Debug)]
#[command(after_help = FETCH_HELP)]
pub struct FetchArgs {
    /// Names of the catalog, as solver matrices lists them
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// A server laid out like the collection: URL/MM/GROUP/NAME.tar.gz [default: https://sparse.tamu.edu]
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
}

/// Options of `solver doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver doctor\n  solver doctor --threads 2 --json")]
pub struct DoctorArgs {
    /// Threads on the CPU, 1 to 1024 [default: the cores this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const PLOT_EXAMPLES: &str = "\
Examples:
  solver cg poisson2d:90x90 --history a.json
  solver cg poisson2d:90x90 --precond ic0 --history b.json
  solver plot a.json b.json -o plots/both.svg
  solver plot a.json b.json --label plain --label ic0 -o plots/labelled.svg

The axis of time begins with the setup, so that preconditioners are compared with what they cost. Where one run is twenty \
times as long as another, the axis is logarithmic.";

/// Options of `solver plot`.
#[derive(Args, Debug)]
#[command(after_help = PLOT_EXAMPLES)]
pub struct PlotArgs {
    /// Histories that solves have written with --history FILE.json, or one file of measurements: of scripts/bench.py,
    /// scripts/bench_blocks.py, or benches/spmv --json
    #[arg(required = true, value_name = "HISTORY")]
    pub histories: Vec<PathBuf>,
    /// The picture: .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The title, instead of what all runs share
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The name of a run, instead of what tells it from the others; once for each history, in their order
    #[arg(long, value_name = "TEXT")]
    pub label: Vec<String>,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  solver convert elasticity3d:20x20x20 elastic.npz
  solver convert elastic.npz elastic.mtx.gz
  zcat elastic.mtx.gz | solver convert - elastic.slv

The ending of OUT decides: .mtx, .mtx.gz (Matrix Market), .npz (SciPy), .slv (solver's own, read at the speed of memory).
Vectors that came with the matrix are written beside it: OUT_b.mtx, OUT_coord.mtx, or .npy beside .npz; a .slv \
holds them itself. The labels of a graph are written beside it, one a line, as OUT_labels.txt, which --labels of solver \
pagerank reads. Files of these names are replaced, OUT and those beside it alike, each when the new one is complete.
What is faulty among the vectors is left out with a warning. A symmetric matrix is written as its lower triangle in Matrix \
Market.";

/// Options of `solver convert`.
#[derive(Args, Debug)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertArgs {
    /// The matrix: a file of any kind that is read, a generator, or - for standard input
    #[arg(value_name = "IN")]
    pub input: OsString,
    /// The file to write
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// What the columns of a table of edges are, as in solver pagerank --columns source,target,time
    #[arg(long, value_name = "COLUMNS")]
    pub columns: Option<Columns>,
    /// Read a symmetric file as the triangle that it stores
    #[arg(long)]
    pub as_stored: bool,
    /// Kept for scripts: a matrix of the catalog is fetched without it
    #[arg(long, hide = true)]
    pub fetch: bool,
}

/// Options of `solver completions`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  solver completions bash > ~/.local/share/bash-completion/completions/solver"
)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Options of `solver man`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver man | man -l -\n  solver man --output ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write solver.1, solver-cg.1 and so on into this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}
