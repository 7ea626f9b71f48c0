//! The arguments of `solver bench`.

use clap::Args;
use std::path::PathBuf;

const BENCH_EXAMPLES: &str = "\
Examples:
  solver bench configs/bench/four-kernels.toml
  solver bench configs/bench/block-band.toml --device cpu --only threads
  solver bench configs/bench/cg.toml --dry-run
  solver bench bench/cg.json -o again
  solver bench --compare old/cg.json bench/cg.json

A run that was interrupted continues with the same command. Cases for a GPU are left out, and named, on a machine without \
one. Cases that the study measures in another way now, or of another matrix than the record has, are measured again. auto is the \
choice of its model; choices that solver tune keeps do not count. Every result is verified before it is timed. With a record \
(.json) instead of a study, tables and figures are made again without measuring.

The exit code is 1 if nothing was measured or the run was interrupted; with --compare, if a case became slower beyond noise, or \
fails now. A change is beyond noise if the minima differ by more than 3 percent and the median of the faster run is below the minimum \
of the slower one. Two runs on a GPU may differ by more, because arrays lie at other addresses.";

/// The formats of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FigureFormat {
    /// For web pages.
    Svg,
    /// For screens.
    Png,
    /// For print.
    Pdf,
}

impl FigureFormat {
    /// Returns the ending of files.
    pub fn ending(self) -> &'static str {
        match self {
            FigureFormat::Svg => "svg",
            FigureFormat::Png => "png",
            FigureFormat::Pdf => "pdf",
        }
    }
}

/// Options of `solver bench`.
#[derive(Args, Debug)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct BenchArgs {
    /// The study: a TOML file as in configs/bench, or the JSON record of an earlier run
    #[arg(value_name = "STUDY", required_unless_present = "compare")]
    pub studies: Vec<PathBuf>,
    /// Write NAME.json, NAME.csv, NAME.md and figures into this folder
    #[arg(short, long, value_name = "FOLDER", default_value = "bench")]
    pub output: PathBuf,
    /// Run only the cases of this device: cpu, cuda or all
    #[arg(long, value_name = "DEVICE", default_value = "all")]
    pub device: String,
    /// Run only these sweeps of the study
    #[arg(long, value_name = "SWEEP,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Measure everything again, instead of continuing
    #[arg(long)]
    pub afresh: bool,
    /// Measure nothing: make the tables of the study from this record
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["afresh", "retry", "only", "dry_run"])]
    pub from: Option<PathBuf>,
    /// Measure failed cases again
    #[arg(long)]
    pub retry: bool,
    /// Print what would be measured, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Give the tables and figures this title instead of that of the study
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Call a backend, a matrix or another value of the tables and figures by this text; may be given several times
    #[arg(long, value_name = "NAME=TEXT")]
    pub label: Vec<String>,
    /// Draw figures in this format
    #[arg(long, value_enum, default_value = "svg")]
    pub format: FigureFormat,
    /// Draw figures on a dark background
    #[arg(long)]
    pub dark: bool,
    /// Draw figures this wide, with type of at least 7 points: 89 for one column of a journal, 183 for two
    #[arg(long, value_name = "MM")]
    pub width: Option<f64>,
    /// Do not print the tables, only the names of the files
    #[arg(long)]
    pub no_tables: bool,
    /// Print which cases of two records differ beyond noise, and exit
    #[arg(long, value_names = ["BEFORE", "AFTER"], num_args = 2, conflicts_with = "studies")]
    pub compare: Vec<PathBuf>,
}
