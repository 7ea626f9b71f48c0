//! The arguments as typed, on top of the values of a configuration file. Nothing is opened or resolved here.

use super::backends::BackendsArgs;
use super::bench::args::BenchArgs;
use super::groups::{GENERAL, arranged, switch};
use super::info::args::InfoArgs;
use super::interval::Interval;
use super::markov::args::MarkovArgs;
use super::matrix_arg::{self, MatrixArg};
use super::pagerank::args::PagerankArgs;
use super::precond::{PreconditionerParser, PreconditionersArgs, listed_below};
use super::running::RunArgs;
use super::spmv::args::{SpmmArgs, SpmvArgs};
use super::tune::args::TuneArgs;
use crate::engine::Partition;
use crate::precond::Preconditioner;
use crate::source::ChosenColumns;
use clap::{ArgAction, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Solves symmetric sparse linear systems and ranks graphs, on CPUs and NVIDIA GPUs, and verifies the answer.
#[derive(Parser, Debug)]
#[command(name = "solver", version, max_term_width = 100, disable_help_flag = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The sub-command.
    #[command(subcommand)]
    pub command: Command,
    /// Download nothing; a matrix of the catalog that is not on this machine is an error.
    /// SOLVER_OFFLINE=1 does the same
    #[arg(long, global = true, help_heading = GENERAL)]
    pub offline: bool,
    /// Print more: -v the complete report and the reasons for each choice, -vv also every kernel.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = GENERAL)]
    pub verbose: u8,
    /// Print only results, errors and the lines of --monitor; show no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GENERAL)]
    pub quiet: bool,
    /// Keep downloaded matrices, compiled kernels and measured choices in this folder [default:
    /// $SOLVER_CACHE, or solver in the user's cache folder]
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
pub(crate) enum Command {
    /// Solve A x = b by conjugate gradients, for symmetric positive definite A.
    #[command(mut_args(switch), mut_args(arranged))]
    Cg(CgArgs),
    /// Solve A x = b by minimal residuals, for symmetric A that is indefinite or singular.
    #[command(after_help = listed_below(MINRES_EXAMPLES), mut_arg("variant", |arg| arg.hide(true)), mut_args(switch), mut_args(arranged))]
    Minres(CgArgs),
    /// Rank the vertices of a graph by PageRank, with a certified bound on the error.
    #[command(mut_args(matrix_arg::graph), mut_args(switch), mut_args(arranged))]
    Pagerank(PagerankArgs),
    /// Find the stationary distribution of a Markov chain.
    #[command(mut_args(switch), mut_args(arranged))]
    Markov(MarkovArgs),
    /// Describe a matrix: size, row lengths, symmetry, diagonal.
    Info(InfoArgs),
    /// Measure y = A x with several backends, verified, compared with the machine's bandwidth.
    #[command(mut_args(switch))]
    Spmv(SpmvArgs),
    /// Measure C = A B, where B has several columns, with several backends, verified, compared with
    /// the machine's bandwidth.
    #[command(mut_args(switch))]
    Spmm(SpmmArgs),
    /// Measure a study: its tables and figures on this machine.
    Bench(BenchArgs),
    /// List the matrices that have a name: the catalog and the generators.
    Matrices(MatricesArgs),
    /// Download matrices of the catalog, resuming interrupted downloads.
    Fetch(FetchArgs),
    /// List the SpMV backends with their parameters.
    Backends(BackendsArgs),
    /// List the preconditioners with their parameters.
    Preconditioners(PreconditionersArgs),
    /// Choose the backend for a matrix by measurement, and keep the choice for later solves.
    Tune(TuneArgs),
    /// Check this machine: CPU, GPU, libraries, memory bandwidth, and every backend.
    Doctor(DoctorArgs),
    /// Plot saved histories, figures or measurements.
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
  solver cg elasticity3d:20x20x20 --rhs included --precond ic0
  solver cg elasticity3d:20x20x20 --rhs-count 32 --plot plots/columns.svg
  solver cg poisson2d:90x90 --rhs-count 4 --output four.npy
  solver cg poisson2d:90x90 --rhs four.npy
  solver cg poisson3d:60x60x60 --checkpoint p.ckpt --checkpoint-every 5m
  solver cg poisson3d:60x60x60 --checkpoint p.ckpt --resume p.ckpt --rtol 1e-10
  solver cg hex27:48x48x50,dof=3 --device cuda --backend vector:threads=16
  solver cg F1 --backend hybrid --plot plots/f1.svg

A matrix of the catalog that is not on this machine, such as F1, is downloaded on first use.

Over several processes or GPUs, --partition divides the rows: mpirun -n 8 solver cg poisson3d:100x100x100 --partition \
coordinates.

Several right-hand sides share each product of the matrix; each one has its own scalars, end and verdict. A column of a .npy \
file that contains NaN or infinity is not solved, and the other ones are. The exit code is 0 if every column converged. In \
JSON, columns holds one record a column.

Ctrl-C or SIGTERM stops the solve at the next check; the answer, history, plot and checkpoint of the iterations so far are \
still written. Before the first iteration it ends the program at once.
--resume continues with the same bits as an uninterrupted solve, and continues the counts of iterations and seconds. \
Tolerances, limits and --threads may change; matrix, right-hand side, start, method, precision and preconditioner may not. On \
another device, backend or GPU model, or on a CPU that differs in AVX2 and FMA, the solve continues with different rounding, \
and warns of it. The checkpoint of a finished solve is kept; resuming from it reports the same result again.";

const MINRES_EXAMPLES: &str = "\
Examples:
  solver minres poisson2d:60x60,boundary=neumann
  solver minres poisson2d:300x300,boundary=neumann --plot plots/minres.svg

The options are those of solver cg. The preconditioner must be positive definite. If the system has no solution, the \
answer is a least-squares solution, and the exit code is 1.";

/// Options of `solver cg` and `solver minres`.
#[derive(Args, Debug)]
#[command(after_help = listed_below(CG_EXAMPLES), args_override_self = true)]
pub(crate) struct CgArgs {
    /// The matrix.
    #[command(flatten)]
    pub matrix: MatrixArg,
    /// Set the right-hand side: a file (.txt, .mtx or .npy, also .gz), ones, random:SEED, A*ones (the
    /// solution is known, so the error is reported), or included (the one stored with the matrix); a file of
    /// several columns is several right-hand sides [default: A*ones]
    #[arg(long, value_name = "FILE|WORD")]
    pub rhs: Option<OsString>,
    /// Solve for K random right-hand sides at once: random:SEED, random:SEED+1 and so on, with the seed of
    /// --rhs [default: the columns of --rhs; the seed is 1 without --rhs]
    #[arg(long, value_name = "K")]
    pub rhs_count: Option<usize>,
    /// Start from the vector in this file, or from one for each right-hand side: .txt, .mtx or .npy,
    /// also .gz [default: x = 0]
    #[arg(long, value_name = "FILE")]
    pub x0: Option<PathBuf>,
    /// Read only the stored triangle of a symmetric file, as some papers measured it
    #[arg(long)]
    pub as_stored: bool,
    /// Read the entries of a list as counted from this index, 0 or 1; other kinds of files
    /// define it [default: 0]
    #[arg(long, value_name = "INDEX", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub first_index: Option<u32>,
    /// Use this preconditioner, with parameters after a colon, as in block-jacobi:block=3; see the list below
    #[arg(long, value_name = "PRECOND", value_parser = PreconditionerParser, hide_possible_values = true, default_value = "none")]
    pub precond: Preconditioner,
    /// Take the coordinates of the nodes from this file, two or three numbers for each node: for elasticity,
    /// amg keeps the rigid-body modes on all levels [default: those stored with the matrix]
    #[arg(long, value_name = "FILE")]
    pub coords: Option<PathBuf>,
    /// Keep the vectors in this file on all levels of amg, a column for each: those that the matrix maps to
    /// almost nothing
    #[arg(long, value_name = "FILE")]
    pub near_null: Option<PathBuf>,
    /// Use this form of conjugate gradients: pipelined synchronises once per iteration, and moves more
    /// data; block searches in one common space for all right-hand sides, and takes fewer but longer
    /// iterations [default: classic]
    #[arg(long, value_enum)]
    pub variant: Option<Variant>,
    /// Divide the rows among the ranks of mpirun, or among several GPUs: entries (ranges of the rows),
    /// coordinates (boxes of a generated mesh), coordinates:FILE (a point for each row, or for each node of
    /// the same number of rows: .npy, .mtx or .txt), or graph (parts of the graph of the matrix, by METIS;
    /// needs the cargo feature metis)
    #[arg(long, value_name = "PARTITION", default_value = "entries")]
    pub partition: Partition,
    /// The options of every solve.
    #[command(flatten)]
    pub run: RunArgs,
    /// Stop when ||b - A x|| is at most this times ||b|| [default: 1e-8, with f32 1e-5; with
    /// --rtol-initial or --atol none]
    #[arg(long, visible_alias = "tol", value_name = "TOLERANCE")]
    pub rtol: Option<f64>,
    /// Stop when ||b - A x|| is at most this times its initial value; the first of several
    /// tolerances that is met counts
    #[arg(long, value_name = "TOLERANCE")]
    pub rtol_initial: Option<f64>,
    /// Stop when ||b - A x|| is at most this
    #[arg(long, value_name = "NORM")]
    pub atol: Option<f64>,
    /// Stop after N iterations [default: 10 per row, at least 1000 and at most 100000]
    #[arg(long, value_name = "N")]
    pub max_iters: Option<usize>,
    /// Skip the symmetry check, which rejects pairs a(i,j) and a(j,i) that differ by more than 1e-12
    /// of their size. The method may fail on an unsymmetric matrix; the reported residual is always
    /// that of the matrix as given
    #[arg(long)]
    pub assume_symmetric: bool,
    /// If the matrix is singular, remove the parts of b and x in its null space, so that the system has a
    /// solution. Constants, rigid-body modes and the vectors of --near-null are tried
    #[arg(long)]
    pub project: bool,
    /// Save the solve to this file at intervals and at its end, for --resume; each save
    /// replaces the whole file
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Save a checkpoint after each interval of this length: 60s, 5m, 1h, 500ms, or seconds [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub checkpoint_every: Option<Interval>,
    /// Continue from this checkpoint of the same solve
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Write the solution to this file: .mtx or .mtx.gz (Matrix Market), .npy (NumPy), .txt or .txt.gz (one
    /// row a line); several solutions are its columns
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The forms of conjugate gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Variant {
    /// The method of Hestenes and Stiefel.
    Classic,
    /// The method of Ghysels and Vanroose.
    Pipelined,
    /// The method of O'Leary and Dubrulle.
    Block,
}

impl Variant {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Variant::Classic => "classic",
            Variant::Pipelined => "pipelined",
            Variant::Block => "block",
        }
    }
}

/// Options of `solver matrices`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver matrices\n  solver matrices structural --json")]
pub(crate) struct MatricesArgs {
    /// List only matrices with this text in their name, group or kind
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

A matrix downloaded with --cache DIR is found later with --cache DIR or SOLVER_CACHE=DIR. SOLVER_MIRROR=URL has the effect of \
--mirror URL.";

/// Options of `solver fetch`.
#[derive(Args, Debug)]
#[command(after_help = FETCH_HELP)]
pub(crate) struct FetchArgs {
    /// Names of matrices of the catalog (see solver matrices)
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    /// Download from this server, laid out as URL/MM/GROUP/NAME.tar.gz [default: https://sparse.tamu.edu]
    #[arg(long, value_name = "URL")]
    pub mirror: Option<String>,
}

/// Options of `solver doctor`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver doctor\n  solver doctor --threads 2 --json")]
pub(crate) struct DoctorArgs {
    /// Use N threads on the CPU, 1 to 1024 [default: the cores this process may use]
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
  solver plot a.json b.json --width 183 -o plots/paper.pdf

The time axis starts with the setup, so that preconditioners are compared at their full cost. If one run is twenty times as \
long as another, the axis is logarithmic.";

/// Options of `solver plot`.
#[derive(Args, Debug)]
#[command(after_help = PLOT_EXAMPLES)]
pub(crate) struct PlotArgs {
    /// Histories written by --history FILE.json, or one file: a figure (an object with the key panels), or
    /// measurements such as results/h200/studies.json
    #[arg(required = true, value_name = "HISTORY|FIGURE")]
    pub histories: Vec<PathBuf>,
    /// Write the plot to this file: .svg, .png or .pdf
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Set the title [default: what all runs have in common]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Name a run or a series in the legend; give one for each, in their order [default: what differs between
    /// the runs, or the names in the file]
    #[arg(long, value_name = "TEXT")]
    pub label: Vec<String>,
    /// Draw light ink on a dark background
    #[arg(long)]
    pub dark: bool,
    /// Make the plot this wide on paper, in millimetres, with type of at least 7 points: 89 is a column of a
    /// journal, 183 a page [default: a size for screens]
    #[arg(long, value_name = "MM")]
    pub width: Option<f64>,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  solver convert elasticity3d:20x20x20 elastic.npz
  solver convert elastic.npz elastic.mtx.gz
  zcat elastic.mtx.gz | solver convert - elastic.slv

The ending of OUT selects the format: .mtx, .mtx.gz (Matrix Market), .npz (SciPy) or .slv (solver's own format, read at memory \
bandwidth).
Vectors stored with the matrix are written to OUT_b.mtx, OUT_coord.mtx and so on (.npy next to .npz); a .slv file contains \
them. The labels of a graph are written to OUT_labels.txt, one a line, which solver pagerank --labels reads. Existing files \
of these names are replaced, each once the new file is complete. Invalid vectors are skipped with a warning. Matrix Market \
files of symmetric matrices contain the lower triangle.";

/// Options of `solver convert`.
#[derive(Args, Debug)]
#[command(after_help = CONVERT_EXAMPLES)]
pub(crate) struct ConvertArgs {
    /// The matrix: a file of any supported kind, a name, a generator, or - for standard input
    #[arg(value_name = "IN")]
    pub input: OsString,
    /// The file to write
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Choose the columns of an edge table by name or position, as in solver pagerank
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub columns: Option<ChosenColumns>,
    /// Read only the stored triangle of a symmetric file
    #[arg(long)]
    pub as_stored: bool,
    /// Read the entries of a list as counted from this index, 0 or 1; other kinds of files
    /// define it [default: 0]
    #[arg(long, value_name = "INDEX", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub first_index: Option<u32>,
}

/// Options of `solver completions`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  solver completions bash > ~/.local/share/bash-completion/completions/solver"
)]
pub(crate) struct CompletionsArgs {
    /// The shell to write the script for
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Options of `solver man`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  solver man | man -l -\n  solver man --output ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write solver.1, solver-cg.1 and so on into this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}
