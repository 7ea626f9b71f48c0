//! The options of `solver info`.

use crate::cli::matrix_arg::MatrixArg;
use crate::cli::precond::PreconditionerParser;
use crate::engine::Partition;
use crate::precond::Preconditioner;
use crate::source::ChosenColumns;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  solver info poisson2d:1000x1000 --spy plots/poisson.png
  solver info elasticity3d:12x12x12 --json
  solver info poisson3d:40x40x40 --precond amg
  solver info elasticity3d:12x12x12 --precond amg:strength=0.04 --json
  solver info poisson3d:100x100x100 --ranks 64 --latency 1.5 --network 25
  solver info poisson3d:100x100x100 --ranks 64 --partition coordinates
  solver info F1";

/// Options of `solver info`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InfoArgs {
    /// The matrix.
    #[command(flatten)]
    pub matrix: MatrixArg,
    /// Choose the columns of an edge table by name or position, as in solver pagerank
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub columns: Option<ChosenColumns>,
    /// Draw the sparsity pattern, coloured by density: .svg, .png or .pdf
    #[arg(long, value_name = "FILE")]
    pub spy: Option<PathBuf>,
    /// Read only the stored triangle of a symmetric file
    #[arg(long)]
    pub as_stored: bool,
    /// Read the entries of a list as counted from this index, 0 or 1; other kinds of files
    /// define it [default: 0]
    #[arg(long, value_name = "INDEX", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub first_index: Option<u32>,
    /// Also read the vectors stored with the matrix, such as right-hand sides in an archive
    #[arg(long = "vectors")]
    pub attached: bool,
    /// Build the levels of this preconditioner on the CPU, print them, and predict the iterations and the
    /// time of a solve by cg, instead of describing the matrix: amg, with parameters as in solver cg
    #[arg(long, value_name = "PRECOND", value_parser = PreconditionerParser, hide_possible_values = true,
          conflicts_with_all = ["spy", "attached", "ranks"])]
    pub precond: Option<Preconditioner>,
    /// With --precond: take the coordinates of the nodes from this file, as in solver cg
    #[arg(long, value_name = "FILE", requires = "precond")]
    pub coords: Option<PathBuf>,
    /// With --precond: keep the vectors in this file on all levels, as in solver cg
    #[arg(long, value_name = "FILE", requires = "precond")]
    pub near_null: Option<PathBuf>,
    /// Predict the parts of the matrix over N ranks, and the time of an iteration, instead of
    /// describing the matrix
    #[arg(long, value_name = "N", conflicts_with_all = ["spy", "attached"])]
    pub ranks: Option<usize>,
    /// With --ranks: R ranks share the memory bandwidth of a machine like this one
    #[arg(long, value_name = "R", default_value_t = 1, requires = "ranks")]
    pub ranks_per_machine: usize,
    /// With --ranks: divide the rows in this way, as in solver cg --partition: entries, coordinates,
    /// coordinates:FILE or graph
    #[arg(long, value_name = "PARTITION", default_value = "entries", requires = "ranks")]
    pub partition: Partition,
    /// With --ranks: a message takes this long, in microseconds [default: measured under a launcher, or 2]
    #[arg(long, value_name = "MICROSECONDS", requires = "ranks")]
    pub latency: Option<f64>,
    /// With --ranks: the network moves this many GB/s [default: measured under a launcher, or 10]
    #[arg(long, value_name = "GB/S", requires = "ranks")]
    pub network: Option<f64>,
    /// Print JSON, in which rows and columns count from 1
    #[arg(long)]
    pub json: bool,
}
