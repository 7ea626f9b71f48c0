//! The arguments of `solver spmv` and `solver spmm`.

use crate::cli::matrix_arg::MatrixArg;
use clap::Args;
use std::path::PathBuf;

const SPMV_EXAMPLES: &str = "\
Examples:
  solver spmv poisson2d:300x300
  solver spmv F1-like --backend auto,hybrid,cusparse --device cuda
  solver spmv poisson2d:300x300 --device cpu --backend sell,rows --explain
  solver spmv poisson2d:300x300 --backend all --json

Every product is verified before it is timed. auto is the choice of its model; choices that solver tune keeps do not count. Exit \
codes: 0 measured, 1 nothing was measured, a product was wrong or the run was interrupted, 2 could not run.";

/// Options of `solver spmv`.
#[derive(Args, Debug)]
#[command(after_help = SPMV_EXAMPLES)]
pub(crate) struct SpmvArgs {
    /// The matrix.
    #[command(flatten)]
    pub matrix: MatrixArg,
    /// Measure these backends, with parameters after a colon, or all [default: auto and those
    /// that solver backends lists]
    #[arg(long, value_name = "A,B,...")]
    pub backend: Option<String>,
    /// Run on this device: auto, cpu, cuda or cuda:0
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,
    /// Use N threads on the CPU, 1 to 1024 [default: the cores this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Use this precision for matrix and vectors: f64 or f32
    #[arg(long, value_name = "PRECISION", default_value = "f64")]
    pub precision: crate::scalar::Precision,
    /// Measure only the stored triangle of a symmetric matrix, as some papers did
    #[arg(long)]
    pub as_stored: bool,
    /// Read the entries of a list as counted from this index, 0 or 1; other kinds of files
    /// define it [default: 0]
    #[arg(long, value_name = "INDEX", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub first_index: Option<u32>,
    /// Measure in N rounds, in which the backends take turns
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub rounds: usize,
    /// Explain the columns of the table
    #[arg(long)]
    pub explain: bool,
    /// Also save the measurements to this file, for solver bench --compare
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn at_least_one(typed: &str) -> Result<usize, String> {
    typed.parse().ok().filter(|&n| n > 0).ok_or_else(|| "it must be a whole number from 1".to_owned())
}

const SPMM_EXAMPLES: &str = "\
Examples:
  solver spmm poisson2d:300x300 --columns 32
  solver spmm hex27:31x37x29,dof=4 --device cuda --backend auto,cusparse-spmm
  solver spmm density:n=4096,sparsity=0.9 --columns 128 --precision f32 --json

B and C are stored row by row. Backends that multiply one vector at a time are left out. Exit codes: 0 measured, 1 nothing was \
measured or a product was wrong, 2 could not run.";

/// Options of `solver spmm`.
#[derive(Args, Debug)]
#[command(after_help = SPMM_EXAMPLES)]
pub(crate) struct SpmmArgs {
    /// The options that it shares with `solver spmv`.
    #[command(flatten)]
    pub product: SpmvArgs,
    /// Give B and C this many columns
    #[arg(long, value_name = "K", default_value_t = 32, value_parser = columns)]
    pub columns: usize,
}

/// The most columns of a product.
const MOST_COLUMNS: usize = 4096;

fn columns(typed: &str) -> Result<usize, String> {
    let fits = |n: &usize| (1..=MOST_COLUMNS).contains(n);
    typed
        .parse()
        .ok()
        .filter(fits)
        .ok_or_else(|| format!("it must be a whole number from 1 to {MOST_COLUMNS}"))
}
