//! The record of a study: one row for each case, on one machine.

use super::machine::Machine;
use super::study::{Statistic, Study, What};
use crate::error::{Error, Result};
use crate::files::Content;
use crate::observe::write_file_with;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The version of the schema of records.
pub(crate) const SCHEMA: u32 = 1;

/// A measured study.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The version of this schema.
    #[serde(default = "first_schema")]
    pub schema: u32,
    /// The study.
    pub study: Study,
    /// The version of the program, and the commit that it was built from if known.
    pub program: String,
    /// The command that measured the study.
    pub command: String,
    /// The time at which the measurement began, in UTC.
    pub started: String,
    /// The machine.
    pub machine: Machine,
    /// The measured cases.
    pub rows: Vec<Row>,
    /// The cases that were not run, with the reason.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Cases that were asked for and are not measured yet, because the run was interrupted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unfinished: usize,
}

fn first_schema() -> u32 {
    1
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Cases that were not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    /// The name of the sweep.
    pub sweep: String,
    /// The cases: a device, and how many if it is not all of them.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// Times of several samples, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The shortest time.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// The longest time.
    pub max: f64,
    /// The number of samples.
    pub samples: usize,
    /// The number of products or iterations of a sample.
    pub each: usize,
}

impl Spread {
    /// Returns the statistics of samples; none without samples.
    pub(crate) fn of(samples: &[f64], each: usize) -> Option<Spread> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Some(Spread { min, median, mean, max, samples: sorted.len(), each })
    }

    /// Returns one of the statistics.
    pub(crate) fn get(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Min => self.min,
            Statistic::Median => self.median,
            Statistic::Mean => self.mean,
        }
    }
}

/// One measured case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The name of the sweep.
    pub sweep: String,
    /// What was measured.
    pub what: What,
    /// `solver`, or the name of a rival.
    pub program: String,
    /// The matrix as the study names it.
    pub matrix: String,
    /// The matrix that was measured: another one if a stand-in was taken.
    pub measured: String,
    /// The values of the sweep's variables.
    pub vary: BTreeMap<String, String>,
    /// The kind of device.
    pub device: String,
    /// The number of CPU threads.
    pub threads: Option<usize>,
    /// The number of columns of x and y; none for vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
    /// The precision.
    pub precision: String,
    /// Whether only the stored triangle was measured.
    pub as_stored: bool,
    /// The backend as the study names it.
    pub backend: String,
    /// The backend that ran: the choice of `auto`.
    pub label: String,
    /// How the backend multiplies, if it chooses between several ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns of the matrix.
    pub cols: u64,
    /// Entries of the matrix.
    pub entries: u64,
    /// Length of the longest row.
    pub longest: u64,
    /// The error that ended the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Seconds of one product or iteration; repeated products find their data in caches where it fits.
    pub seconds: Option<Spread>,
    /// Seconds of a product with a dot product in the same pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dot_seconds: Option<Spread>,
    /// Seconds of a product with cold caches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_seconds: Option<Spread>,
    /// Seconds to convert the matrix, build its operator and upload it; for a whole solve once the device is
    /// open and kernels are compiled.
    pub build_seconds: Option<f64>,
    /// Seconds of the first product: it compiles or loads kernels.
    pub first_seconds: Option<f64>,
    /// Seconds to copy x to the device and y back.
    pub transfer_seconds: Option<f64>,
    /// Bytes of one product or iteration.
    pub bytes: u64,
    /// Additions and multiplications of one product, those with zeros that fill blocks or slices included.
    pub flops: u64,
    /// Bytes that the operator holds.
    pub storage: u64,
    /// GB/s of a stream over as many bytes, measured in the same run.
    pub stream: Option<f64>,
    /// The largest error of a row of y as a multiple of the bound on rounding errors, or the
    /// relative residual of a solve.
    pub checked: Option<f64>,
    /// Whether the answer of a solve met the tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// Iterations of a solve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Seconds of the whole solve: setup, iterations and verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_seconds: Option<f64>,
    /// Registers of a thread of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Blocks of the kernel that a multiprocessor holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident: Option<u32>,
    /// Blocks that were launched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// Percent of the threads that a multiprocessor can hold which run there at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<f64>,
}

/// The fields by which rows are grouped, besides the variables of a sweep.
pub(super) const FIELDS: [&str; 12] = [
    "matrix",
    "backend",
    "family",
    "device",
    "threads",
    "columns",
    "precision",
    "as_stored",
    "sweep",
    "program",
    "measured",
    "label",
];

impl Row {
    /// Returns the value of a field by which rows are grouped, as text: a field of the case, or
    /// a variable of the sweep.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        if let Some(value) = self.vary.get(name) {
            return Some(value.clone());
        }
        Some(match name {
            "sweep" => self.sweep.clone(),
            "program" => self.program.clone(),
            "matrix" => self.matrix.clone(),
            "measured" => self.measured.clone(),
            "device" => self.device.clone(),
            "threads" => self.threads?.to_string(),
            "columns" => self.columns?.to_string(),
            "precision" => self.precision.clone(),
            "as_stored" => self.as_stored.to_string(),
            "backend" if self.program != "solver" => self.program.clone(),
            "backend" => self.backend.clone(),
            "family" if self.program != "solver" => self.program.clone(),
            "family" => self.backend.split(':').next().unwrap_or_default().to_owned(),
            "label" => self.label.clone(),
            _ => return None,
        })
    }

    /// Returns the additions and multiplications of a product by the entries of the matrix: zeros that fill
    /// blocks or slices do not count. 0 for solves.
    pub(crate) fn useful_flops(&self) -> u64 {
        if self.flops == 0 { 0 } else { 2 * self.entries * self.columns.unwrap_or(1) as u64 }
    }

    /// Returns the useful additions and multiplications for each byte; none for solves.
    pub(crate) fn flops_per_byte(&self) -> Option<f64> {
        let flops = self.useful_flops();
        (flops > 0 && self.bytes > 0).then(|| flops as f64 / self.bytes as f64)
    }

    /// Returns the GB/s of a time.
    pub(crate) fn gigabytes_per_second(&self, seconds: f64) -> f64 {
        self.bytes as f64 / seconds / 1e9
    }

    /// Returns whether two rows are the same case of the same matrix.
    pub(crate) fn is_same_case(&self, other: &Row) -> bool {
        self.measured == other.measured && self.is_same_but_measured(other)
    }

    /// Returns whether two rows are the same case, possibly of a matrix and its stand-in.
    pub(super) fn is_same_but_measured(&self, other: &Row) -> bool {
        let Row { sweep, what, program, matrix, vary, device, threads, columns, precision, .. } = self;
        self.backend == other.backend
            && *matrix == other.matrix
            && *sweep == other.sweep
            && (program, device, precision) == (&other.program, &other.device, &other.precision)
            && (what, threads, columns) == (&other.what, &other.threads, &other.columns)
            && self.as_stored == other.as_stored
            && *vary == other.vary
    }
}

impl Record {
    /// Reads a record.
    pub(crate) fn read(path: &Path) -> Result<Record> {
        let fault = |source| Error::Io { action: "read", path: path.to_owned(), source };
        Record::of(&std::fs::read_to_string(path).map_err(fault)?, path)
    }

    /// Parses the text of a record.
    pub(crate) fn of(text: &str, path: &Path) -> Result<Record> {
        let malformed = |found: String| Error::Malformed {
            path: path.to_owned(),
            part: "the record of a study".to_owned(),
            expected: format!("JSON of schema {SCHEMA}, as solver bench writes it"),
            found,
        };
        let record: Record = serde_json::from_str(text).map_err(|e| malformed(e.to_string()))?;
        match record.schema {
            SCHEMA => Ok(record),
            other => Err(malformed(format!("schema {other}"))),
        }
    }

    /// Writes the record as JSON, completely or not at all.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        write(path, &self.to_json())
    }

    /// Returns the record as JSON, with a line for each row.
    fn to_json(&self) -> String {
        const ROWS: &str = "\"rows\": []";
        let frame =
            serde_json::to_string_pretty(&Record { rows: Vec::new(), ..self.clone() }).unwrap_or_default();
        let line = |row: &Row| serde_json::to_string(row).unwrap_or_default();
        let rows: Vec<String> = self.rows.iter().map(line).collect();
        frame.replacen(ROWS, &format!("\"rows\": [\n{}\n  ]", rows.join(",\n")), 1)
    }

    /// Returns the row of the same case.
    pub(crate) fn find(&self, case: &Row) -> Option<&Row> {
        self.rows.iter().find(|row| row.is_same_case(case))
    }

    /// Replaces the row of the same case, or adds the row.
    pub(crate) fn put(&mut self, row: Row) {
        match self.rows.iter_mut().find(|other| other.is_same_case(&row)) {
            Some(other) => *other = row,
            None => self.rows.push(row),
        }
    }
}

/// Writes a text file, completely or not at all.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    write_file_with(path, Content::Answer, |file| {
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n"))
    })
}
