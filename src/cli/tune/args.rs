//! The arguments of `solver tune`.

use crate::scalar::Precision;
use clap::Args;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  solver tune poisson2d:300x300
  solver tune poisson2d:90x90 --device cpu --backend auto,sprs --json
  solver tune poisson2d:90x90 --device cpu --backend rows,bsr:block=2x2,sell
  solver tune poisson2d:90x90 --explain
  solver tune --forget

The choice is kept in the cache folder. Solves with --backend auto use it for matrices with the same pattern, also with other \
values, on the same device with the same number of threads and in the same precision. Ranks and chains multiply with another \
matrix than the one named here: for them use solver pagerank --tune and solver markov --tune.
Exit codes: 0 a backend was chosen, 2 could not run.";

/// Options of `solver tune`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    /// A file, a name such as F1, or a generator such as poisson2d:1000x1000 (see solver matrices)
    #[arg(value_name = "MATRIX", required_unless_present_any = ["matrix", "forget"])]
    pub what: Option<OsString>,
    /// Same as the argument MATRIX
    #[arg(long, value_name = "MATRIX", conflicts_with = "what")]
    pub matrix: Option<OsString>,
    /// Measure these backends, separated by commas; auto stands for the default candidates [default: auto]
    #[arg(long, value_name = "A,B,...")]
    pub backend: Option<String>,
    /// Run on this device: auto, cpu, cuda or cuda:N [default: auto, a GPU if there is one]
    #[arg(long, value_name = "DEVICE", default_value = "auto", hide_default_value = true)]
    pub device: String,
    /// Store matrix and vectors in this precision
    #[arg(long, value_enum, default_value = "f64")]
    pub precision: Precision,
    /// Use N threads on the CPU, 1 to 1024 [default: the cores this process may use]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Measure for about this many seconds, after a first look at each backend
    #[arg(long, value_name = "SECONDS", default_value = "3")]
    pub time_limit: f64,
    /// Read only the stored triangle of a symmetric file
    #[arg(long)]
    pub as_stored: bool,
    /// Read the entries of a list as counted from this index, 0 or 1; other kinds of files
    /// define it [default: 0]
    #[arg(long, value_name = "INDEX", value_parser = clap::value_parser!(u32).range(0..=1))]
    pub first_index: Option<u32>,
    /// Measure nothing: print what auto chooses, and the candidates with their estimates
    #[arg(long, conflicts_with = "forget")]
    pub explain: bool,
    /// Remove the kept choices of the matrix, or without a matrix all of them
    #[arg(long)]
    pub forget: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
