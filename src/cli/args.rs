//! What the user typed, exactly, over what a configuration file says. Nothing is opened or resolved here.

use super::every::Every;
use super::markov::MarkovArgs;
use super::pagerank::args::PagerankArgs;
use super::precond::{Typed, listed_below};
use super::running::RunArgs;
use crate::precond::Preconditioner;
use clap::{Arg, ArgAction, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Solves sparse linear systems on CPUs and NVIDIA GPUs, and tells the truth about the answer.
#[derive(Parser, Debug)]
#[command(name = "solver", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Say more on stderr: -v what was chosen and why, -vv every kernel.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Show no progress, and nothing but results and errors.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Where fetched matrices and compiled kernels are kept [default: $SOLVER_CACHE, or solver in the user's cache
    /// folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  solver cg --matrix poisson2d:1000x1000 --plot plots/cg.svg
  solver cg --matrix bcsstk16.mtx --precond jacobi --json
  solver info --matrix bcsstk16.mtx
  solver doctor

Exit codes: 0 converged, 1 not converged, 2 could not run.";

/// The sub-commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Solve A x = b by conjugate gradients, for symmetric positive definite A.
    #[command(mut_args(switch))]
    Cg(CgArgs),
    /// Solve A x = b by minimal residuals, for symmetric A that is indefinite or singular.
    #[command(after_help = listed_below(MINRES_EXAMPLES), mut_arg("variant", |arg| arg.hide(true)), mut_args(switch))]
    Minres(CgArgs),
    /// Rank the vertices of a graph by PageRank, with a certified bound on the error.
    #[command(mut_args(switch))]
    Pagerank(PagerankArgs),
    /// Find the stationary distribution of a Markov chain.
    #[command(mut_args(switch))]
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

/// Lets whoever types take back a switch that a configuration file sets: `--json` is `--json=true`, and there is
/// `--json=false`.
fn switch(arg: Arg) -> Arg {
    match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .hide_default_value(true)
            .default_missing_value("true"),
        _ => arg,
    }
}

const CG_EXAMPLES: &str = "\
Examples:
  solver cg --matrix poisson2d:1000x1000 --plot plots/cg.svg
  solver cg --matrix A.mtx --precond jacobi --rtol 1e-10 --history a.json --output x.mtx
  solver cg --matrix hex27:48x48x50,dof=3 --device cuda --backend vector:threads=16
  solver cg --config configs/cg-poisson.toml --precision mixed
  solver cg --matrix A.mtx --rhs b.mtx --output x.npy
  solver cg --matrix A.mtx --rhs b.mtx --x0 x.npy --rtol 1e-12 --history more.csv
  solver cg --matrix elasticity3d:20x20x20 --rhs beside
  solver cg --matrix F1 --checkpoint f1.ckpt --every 5m
  solver cg --matrix F1 --checkpoint f1.ckpt --resume f1.ckpt --max-iters 200000

Ctrl-C or SIGTERM stops at the next check: answer, history and plot of what was reached are still written, and a last checkpoint.
Before the first iteration it ends the program at once.
--resume goes on with the same bits as if nothing had happened; iterations and seconds count on. Tolerances, limits and \
--threads may change; matrix, right-hand side, start, method, precision and preconditioner may not. On another device, by \
another backend, on another model of GPU, or on a CPU that differs in having AVX2 and FMA, it goes on with other roundings, \
and warns of that. The checkpoint of a solve that has ended stays, and gives the same verdict again.";

const MINRES_EXAMPLES: &str = "\
Examples:
  solver minres --matrix SiH4.mtx.gz
  solver minres --matrix poisson2d:300x300,boundary=neumann --plot plots/minres.svg

The options are those of solver cg. The preconditioner must be positive definite. Where the system has no solution, the \
answer is a least-squares solution, and the exit code 1.";

/// Options of `solver cg` and `solver minres`.
#[derive(Args, Debug)]
#[command(after_help = listed_below(CG_EXAMPLES), args_override_self = true)]
pub struct CgArgs {
    /// A file (Matrix Market, Harwell-Boeing, SciPy .npz, a graph, an archive, .slv; also .gz), - for standard input,
    /// a name such as F1 (see solver matrices), or a generator such as poisson2d:1000x1000 or hex27:48x48x50,dof=3
    #[arg(long, value_name = "WHAT")]
    pub matrix: Option<OsString>,
    /// The right-hand side: a file (.mtx or .npy of one column, also .gz), ones, random:SEED, A*ones (the error is then
    /// told too), or beside: what came with the matrix [default: A*ones]
    #[arg(long, value_name = "FILE|WORD")]
    pub rhs: Option<OsString>,
    /// Start from the vector in this file, .mtx or .npy, also .gz [default: x = 0]
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
    /// Stop when ||b - A x|| is at most this times ||b|| [default: 1e-8, with f32 1e-5; none beside --rtol-initial or
    /// --atol]
    #[arg(long, value_name = "TOLERANCE")]
    pub rtol: Option<f64>,
    /// Stop when ||b - A x|| is at most this times what it was at the start; of several tolerances the first met counts
    #[arg(long, value_name = "TOLERANCE")]
    pub rtol_initial: Option<f64>,
    /// Stop when ||b - A x|| is at most this
    #[arg(long, value_name = "NORM")]
    pub atol: Option<f64>,
    /// Stop after so many iterations [default: 10 a row, at least 1000 and at most 100000]
    #[arg(long, value_name = "N")]
    pub max_iters: Option<usize>,
    /// Do not check that the matrix is symmetric
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
    /// Write the solution here: .mtx or .mtx.gz (Matrix Market), or .npy (NumPy)
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where and how long it runs.
    #[command(flatten)]
    pub run: RunArgs,
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
  solver info --matrix bcsstk16.mtx
  solver info --matrix poisson2d:1000x1000 --spy plots/poisson.png
  solver info --matrix bcsstk16.mtx --as-stored --json";

/// Options of `solver info`.
#[derive(Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
pub struct InfoArgs {
    /// A file (Matrix Market, Harwell-Boeing, SciPy .npz, a graph, an archive, .slv; also .gz), - for standard input,
    /// a name such as F1 (see solver matrices), or a generator
    #[arg(long, value_name = "WHAT")]
    pub matrix: OsString,
    /// Draw where the entries stand, by density: .svg or .png
    #[arg(long, value_name = "FILE")]
    pub spy: Option<PathBuf>,
    /// Read a symmetric file as the triangle that it stores
    #[arg(long)]
    pub as_stored: bool,
    /// Read the vectors beside the matrix too, such as right-hand sides in an archive
    #[arg(long)]
    pub beside: bool,
    /// Download the matrix first if it is one of the catalog and not here yet
    #[arg(long)]
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

/// Options of `solver backends`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver backends\n  solver backends --json")]
pub struct BackendsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `solver preconditioners`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver preconditioners\n  solver preconditioners --json")]
pub struct PreconditionersArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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

/// Options of `solver plot`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  solver plot cpu.json gpu.json -o plots/both.svg")]
pub struct PlotArgs {
    /// Histories that solves have written with --history FILE.json, or one file of measurements: of scripts/bench.py,
    /// scripts/bench_blocks.py, or benches/spmv --json
    #[arg(required = true, value_name = "HISTORY")]
    pub histories: Vec<PathBuf>,
    /// The picture: .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  solver convert F1.tar.gz F1.mtx
  solver convert elasticity3d:32x32x32 elastic.npz
  zcat A.mtx.gz | solver convert - A.slv

The ending of OUT decides: .mtx, .mtx.gz (Matrix Market), .npz (SciPy), .slv (solver's own, read at the speed of memory).
Vectors that came with the matrix are written beside it: OUT_b.mtx, OUT_coord.mtx, or .npy beside .npz; a .slv \
holds them itself. Files of these names are replaced, OUT and those beside it alike, each when the new one is complete.
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
    /// Read a symmetric file as the triangle that it stores
    #[arg(long)]
    pub as_stored: bool,
    /// Download the matrix first if it is one of the catalog and not here yet
    #[arg(long)]
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
