//! Studies as data: the sweeps to measure, and the tables and figures to make of them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A study, as a file in `configs/bench/` describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// The name, from which output files get theirs.
    #[serde(default)]
    pub name: String,
    /// The title.
    pub title: String,
    /// A few sentences about the publication: what it measured, on which machine, and how this file differs.
    #[serde(default)]
    pub about: String,
    /// The sweeps.
    #[serde(rename = "sweep")]
    pub sweeps: Vec<Sweep>,
    /// The tables.
    #[serde(rename = "table", default)]
    pub tables: Vec<Table>,
    /// What tables and figures call a backend, a matrix or another value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What a case measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// The product y = A x, also with several columns.
    #[default]
    Product,
    /// Conjugate gradients.
    Cg,
    /// Minimal residuals.
    Minres,
    /// PageRank.
    Pagerank,
    /// A stationary distribution.
    Markov,
}

/// Cases for all combinations of the listed values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The name, which tables refer to.
    pub name: String,
    /// What is measured.
    #[serde(default)]
    pub what: What,
    /// Matrices: files, names or generators. `F1 | F1-like` is the first that is on this machine. `{n}` is a
    /// variable. A file is in the working folder or in that of `SOLVER_REAL_DATA`.
    pub matrix: Vec<String>,
    /// Kinds of devices: `cpu`, `cuda`.
    #[serde(default = "on_the_cpu")]
    pub device: Vec<String>,
    /// Backends with their parameters, possibly with variables.
    #[serde(default = "automatic")]
    pub backend: Vec<String>,
    /// Precisions: `f64`, `f32`.
    #[serde(default = "double")]
    pub precision: Vec<String>,
    /// Numbers of CPU threads; by default one per core.
    #[serde(default)]
    pub threads: Vec<usize>,
    /// Numbers of columns of x and y in products of matrices; by default x and y are vectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<usize>,
    /// Whether only the stored triangle of a symmetric matrix is measured.
    #[serde(default = "whole")]
    pub as_stored: Vec<bool>,
    /// Variables and their values.
    #[serde(default)]
    pub vary: BTreeMap<String, Vec<Text>>,
    /// The preconditioner of a solve by CG or MINRES, possibly with variables: `{precond}`.
    #[serde(default)]
    pub precond: Option<String>,
    /// The method of PageRank or of a chain; by default power iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tolerance of a solve.
    #[serde(default)]
    pub tolerance: Option<f64>,
    /// The iteration limit of a solve; by default that of the method. A solve that ends there has the time of
    /// an iteration, and none of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iters: Option<usize>,
    /// Programs outside of `solver`: see `Rival`.
    #[serde(default)]
    pub rival: Vec<Rival>,
    /// How to measure.
    #[serde(default)]
    pub protocol: Protocol,
}

/// A value of a variable: a number or a word, kept as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "toml::Value")]
pub struct Text(pub String);

impl From<toml::Value> for Text {
    fn from(value: toml::Value) -> Text {
        Text(match value {
            toml::Value::String(text) => text,
            other => other.to_string(),
        })
    }
}

/// An external program that measures the same case. It gets the matrix as a file, prints one line of JSON
/// with its times, and writes its answer to a file, which is verified like the answers of this program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rival {
    /// The name in tables.
    pub name: String,
    /// The device that it runs on; it is measured only with cases of that device.
    #[serde(default = "cpu")]
    pub device: String,
    /// Program and arguments. `{matrix}`, `{vector}`, `{answer}`, `{what}`, `{threads}`, `{precision}` and
    /// `{tolerance}` are replaced.
    pub command: Vec<String>,
    /// The largest l1 distance of its distribution from a certified one, if it is less accurate than others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
}

/// How a case is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocol {
    /// Products before the first sample.
    pub warm_up: usize,
    /// Samples; by default as many as fit into the time of a round.
    pub samples: Option<usize>,
    /// Products of a sample; by default as many as make the sample long enough for the clock.
    pub products: Option<usize>,
    /// Rounds in which the backends of a matrix take turns.
    pub rounds: usize,
    /// Longest time of a sample in seconds: a longer one has fewer products.
    pub seconds: Option<f64>,
    /// The statistic that tables show.
    pub statistic: Statistic,
    /// Whether the product with a dot product is measured as well.
    pub dot: bool,
    /// Whether the product with cold caches is measured as well, on a GPU.
    pub cold: bool,
    /// Whether x, and y before the first product, are probability vectors, as in Markov chains, instead of
    /// numbers of both signs.
    pub stochastic: bool,
    /// The factors of y = alpha A x + beta y. A product with beta reads the y that the product
    /// before it wrote.
    pub scaling: [f64; 2],
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol {
            warm_up: 2,
            samples: None,
            products: None,
            rounds: 3,
            seconds: None,
            statistic: Statistic::Median,
            dot: false,
            cold: false,
            stochastic: false,
            scaling: [1.0, 0.0],
        }
    }
}

/// A statistic of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The shortest time.
    Min,
    /// The median.
    #[default]
    Median,
    /// The mean.
    Mean,
}

/// A table of one value for each combination of two fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The sweeps that it takes rows from; by default all.
    #[serde(default)]
    pub sweep: Vec<String>,
    /// Values that fields must have, as patterns: `hybrid*`, `csr | sell`.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, String>,
    /// The field with a row for each value: `matrix`, `backend`, `threads`, or a variable.
    pub rows: String,
    /// The field with a column for each value; with `values` there is a column for each of these instead.
    #[serde(default)]
    pub columns: String,
    /// The values of the columns, if columns differ in what they show.
    #[serde(default)]
    pub values: Vec<Value>,
    /// The field with a table for each value.
    #[serde(default)]
    pub panels: Option<String>,
    /// The value of a cell. Of several cases for a cell the fastest counts.
    #[serde(default)]
    pub value: Value,
    /// The cases that a cell is compared with: values of fields as patterns, where `{backend}` and `{family}`
    /// are the values of the cell's case. Of several cases the fastest counts.
    #[serde(default)]
    pub over: BTreeMap<String, String>,
    /// The form of the comparison.
    #[serde(default)]
    pub show: Show,
    /// Products that a time stands for.
    #[serde(default = "one")]
    pub products: usize,
    /// The values of the publication, by row and column, or by panel, row and column with slashes between.
    #[serde(default)]
    pub study: BTreeMap<String, BTreeMap<String, f64>>,
    /// The machine of the publication.
    #[serde(default)]
    pub study_machine: String,
    /// The kind of the figure that shows the table.
    #[serde(default)]
    pub plot: Option<Plot>,
    /// An explanation below the table.
    #[serde(default)]
    pub note: String,
}

/// The value of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The time of a product or iteration.
    #[default]
    Time,
    /// The time of a product with cold caches.
    Cold,
    /// The time of a product with a dot product.
    Dot,
    /// Seconds to build the operator.
    Build,
    /// Seconds of a whole solve.
    Total,
    /// GFLOP/s.
    Gflops,
    /// GB/s.
    Bandwidth,
    /// Percent of the bandwidth of a stream.
    PercentOfStream,
    /// Percent of the bandwidth of the GPU's memory by its clock and its width.
    PercentOfPeak,
    /// Additions and multiplications for each byte: the operational intensity.
    Intensity,
    /// Iterations of a solve that met its tolerance.
    Iterations,
    /// Megabytes that a product or an iteration moves.
    Bytes,
    /// Registers of a thread.
    Registers,
    /// Blocks that a multiprocessor holds.
    Resident,
    /// Blocks launched.
    Blocks,
    /// Blocks launched for each multiprocessor, from the parameter `over`.
    BlocksPerMultiprocessor,
    /// Percent of the threads of a multiprocessor that run at once.
    Occupancy,
    /// Threads of a block that have a position in one of its 5 x 5 blocks of the matrix.
    Workers,
    /// The same in percent of the threads of a block.
    WorkerShare,
    /// The same on a multiprocessor, for the blocks that run there at once.
    WorkersPerMultiprocessor,
    /// Threads that add to one sum in shared memory, if every thread has a position in a 5 x 5 block.
    Contention,
    /// How many times as fast as the case of `over`.
    Speedup,
    /// The value that a field or parameter has in the fastest case.
    Best(String),
}

/// The form of a comparison with another case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Show {
    /// How many times as fast.
    #[default]
    Speedup,
    /// The speed in percent of the other's.
    Percent,
    /// The time saved, in percent of the other's time.
    Gain,
    /// The speed divided by the number of threads, in percent of the other's.
    Efficiency,
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plot {
    /// Bars, with the limit as a line where there is one.
    Bars,
    /// Curves over the rows, which are numbers.
    Curves,
    /// A grid of coloured cells.
    Heat,
    /// GFLOP/s over flops per byte.
    Roofline,
}

fn cpu() -> String {
    "cpu".to_owned()
}

fn on_the_cpu() -> Vec<String> {
    vec![cpu()]
}

fn automatic() -> Vec<String> {
    vec!["auto".to_owned()]
}

fn double() -> Vec<String> {
    vec!["f64".to_owned()]
}

fn whole() -> Vec<bool> {
    vec![false]
}

fn one() -> usize {
    1
}

impl Study {
    /// Makes a study of one sweep, without tables.
    pub(crate) fn of_sweep(title: String, sweep: Sweep) -> Study {
        Study {
            name: sweep.name.clone(),
            title,
            about: String::new(),
            sweeps: vec![sweep],
            tables: Vec::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Returns the sweep of that name.
    pub(crate) fn sweep(&self, name: &str) -> Option<&Sweep> {
        self.sweeps.iter().find(|sweep| sweep.name == name)
    }
}

impl Sweep {
    /// Makes a sweep of products with several backends on one matrix.
    pub(crate) fn products(
        matrix: String,
        device: &str,
        backend: Vec<String>,
        precision: &str,
        protocol: Protocol,
    ) -> Sweep {
        Sweep {
            name: "spmv".to_owned(),
            what: What::Product,
            matrix: vec![matrix],
            device: vec![device.to_owned()],
            backend,
            precision: vec![precision.to_owned()],
            threads: Vec::new(),
            columns: Vec::new(),
            as_stored: whole(),
            vary: BTreeMap::new(),
            precond: None,
            method: None,
            tolerance: None,
            max_iters: None,
            rival: Vec::new(),
            protocol,
        }
    }
}
