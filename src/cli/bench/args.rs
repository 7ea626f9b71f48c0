//! The arguments of `solver bench`.

use clap::Args;
use std::path::PathBuf;

/// Returns the examples, the names of the studies, and what a run does.
fn more_help() -> String {
    let names: Vec<&str> = crate::bench::studies().collect();
    format!(
        "{BENCH_EXAMPLES}\n\nStudies of the project, which are part of the program: {}.\n\n{RUNS}",
        names.join(", ")
    )
}

const BENCH_EXAMPLES: &str = "\
Examples:
  solver bench four-kernels
  solver bench block-band --device cpu --only threads
  solver bench cg --dry-run
  solver bench my-study.toml
  solver bench --from bench/cg.json -o again
  solver bench --compare old/cg.json bench/cg.json";

const RUNS: &str = "\
A study without a [[table]] has tables of the times by matrix and backend. Its files are in the working folder or in that of \
SOLVER_REAL_DATA. A run that was interrupted continues with the same command. Cases for a GPU are left out, and named, on a machine without \
one. Cases that the study measures in another way now, or of another matrix than the record has, are measured again. auto is the \
choice of its model; choices that solver tune keeps do not count. Every result is verified before it is timed. With --from, or with a record \
(.json) instead of a study, tables and figures are made again without measuring. Rivals of the project's studies are run by \
scripts/rival.py, so run these studies in the project's folder, or their cases fail.

--compare matches the cases of two records by sweep, device and threads. If one record has no cases of a sweep on a device, as on \
another machine, the case of the same matrix by the same method counts.

The exit code is 1 if nothing was measured or the run was interrupted; with --compare, if a case became slower beyond noise, if one fails now, or if \
no case is in both. A change is beyond noise if the minima differ by more than 3 percent and the median of the faster run is below the minimum \
of the slower one. Two runs on a GPU may differ by more, because arrays lie at other addresses.";

/// The formats of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FigureFormat {
    /// For web pages.
    Svg,
    /// For screens.
    Png,
    /// For print.
    Pdf,
}

impl FigureFormat {
    /// Returns the ending of files.
    pub(crate) fn ending(self) -> &'static str {
        match self {
            FigureFormat::Svg => "svg",
            FigureFormat::Png => "png",
            FigureFormat::Pdf => "pdf",
        }
    }
}

/// Options of `solver bench`.
#[derive(Args, Debug)]
#[command(after_help = more_help())]
pub(crate) struct BenchArgs {
    /// The study: a name such as cg, a TOML file as in configs/bench, or the JSON record of an earlier run
    #[arg(value_name = "STUDY", required_unless_present_any = ["compare", "from"])]
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
    /// Measure nothing: make tables and figures from this record; with STUDY, those of that study
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["afresh", "retry", "only", "dry_run"])]
    pub from: Option<PathBuf>,
    /// Measure failed cases again
    #[arg(long)]
    pub retry: bool,
    /// Print what would be measured with an estimate of time and memory, and exit
    #[arg(long)]
    pub dry_run: bool,
    /// Give the tables and figures this title instead of that of the study
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Call a backend, a matrix or another value of the tables and figures by this text; may
    /// be given several times
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
