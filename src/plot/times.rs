//! The times of competing programs on several matrices, read from files of measurements.

use super::axis::drawable;
use crate::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;

/// Prefixes of backends that run external code.
const YARDSTICKS: [&str; 4] = ["cusparse", "dense", "sprs", "nalgebra"];

/// Times to plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    /// The title.
    pub title: String,
    pub(super) rows: Vec<Row>,
}

/// The times on one matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The matrix.
    pub name: String,
    /// The times of all programs.
    pub times: Vec<Time>,
    /// Seconds for the fewest bytes of these programs at the measured speed of a stream over
    /// the same number of bytes.
    pub limit: f64,
}

/// The time of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Time {
    /// The name.
    pub program: String,
    /// Whether the code is external.
    pub external: bool,
    /// The seconds.
    pub seconds: f64,
}

/// A line of `spmv --json`, with the speed of a stream over the bytes of CSR.
#[derive(Deserialize)]
struct Line {
    matrix: String,
    backends: Vec<Measured>,
    stream_gigabytes_per_second: f64,
}

#[derive(Deserialize)]
struct Measured {
    backend: String,
    bytes: f64,
    median_ms: f64,
    /// Speed of a stream over the same number of bytes, if that was measured.
    stream_gigabytes_per_second: Option<f64>,
}

/// A table of times with a row for each system and program.
#[derive(Deserialize)]
struct Table {
    rows: Vec<Peer>,
}

#[derive(Deserialize)]
struct Peer {
    system: String,
    peer: String,
    ms: Option<Spread>,
    us_per_iteration: Option<Spread>,
    bytes: Option<f64>,
    stream_gigabytes_per_second: Option<f64>,
    limit_seconds_per_iteration: Option<f64>,
}

#[derive(Deserialize)]
struct Spread {
    median: f64,
}

impl Row {
    /// Checks whether a program is faster than the limit.
    pub(crate) fn has_times_beyond_limit(&self) -> bool {
        drawable(self.limit) && self.times.iter().any(|time| time.seconds < self.limit)
    }
}

impl Time {
    /// Makes a time. The choice made by `auto` is dropped from the name, so that `auto` has
    /// one name on all matrices.
    pub(crate) fn of(backend: &str, seconds: f64) -> Time {
        let program = backend.split(" = ").next().unwrap_or(backend).to_owned();
        Time { external: YARDSTICKS.iter().any(|name| program.starts_with(name)), program, seconds }
    }
}

impl Line {
    fn row(self) -> Row {
        let seconds = |b: &Measured| {
            b.bytes / (1e9 * b.stream_gigabytes_per_second.unwrap_or(self.stream_gigabytes_per_second))
        };
        let limit = self.backends.iter().map(seconds).fold(f64::INFINITY, f64::min);
        let times = self.backends.iter().map(|b| Time::of(&b.backend, b.median_ms * 1e-3)).collect();
        Row { name: self.matrix, times, limit }
    }
}

impl Peer {
    fn seconds(&self) -> Option<f64> {
        let iteration = self.us_per_iteration.as_ref().map(|us| us.median * 1e-6);
        iteration.or(self.ms.as_ref().map(|ms| ms.median * 1e-3))
    }

    fn limit(&self) -> Option<f64> {
        let read = |bytes: f64| Some(bytes / (1e9 * self.stream_gigabytes_per_second?));
        self.limit_seconds_per_iteration.or(self.bytes.and_then(read))
    }
}

impl Speeds {
    /// Parses times, if the text is one: a JSON object for each matrix with its `backends`, or
    /// one object with `rows`.
    pub fn of(text: &str, path: &Path) -> Result<Option<Speeds>> {
        let fault = |e: serde_json::Error| Error::History { path: path.to_owned(), message: e.to_string() };
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        let Some(Ok(first)) = objects.next() else { return Ok(None) };
        if first.get("backends").is_some_and(serde_json::Value::is_array) {
            let lines = serde_json::Deserializer::from_str(text).into_iter::<Line>();
            let rows = lines.map(|line| line.map(Line::row)).collect::<serde_json::Result<_>>();
            return Ok(Some(Speeds { title: "y = A x, one product".to_owned(), rows: rows.map_err(fault)? }));
        }
        if !first.get("rows").is_some_and(serde_json::Value::is_array) {
            return Ok(None);
        }
        Ok(Some(Speeds::of_table(serde_json::from_value(first).map_err(fault)?)))
    }

    /// Returns the names of the programs in the order of the legend.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for time in self.rows.iter().flat_map(|row| &row.times) {
            if !names.contains(&time.program.as_str()) {
                names.push(&time.program);
            }
        }
        names
    }

    /// Renames the programs in the order of the legend.
    pub(crate) fn rename(&mut self, labels: &[String]) {
        let names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        for time in self.rows.iter_mut().flat_map(|row| &mut row.times) {
            let label = names.iter().zip(labels).find(|(name, _)| **name == time.program);
            if let Some((_, label)) = label {
                time.program.clone_from(label);
            }
        }
    }

    fn of_table(table: Table) -> Speeds {
        let iterations = table.rows.iter().any(|peer| peer.us_per_iteration.is_some());
        let mut rows: Vec<Row> = Vec::new();
        for peer in table.rows {
            let Some(seconds) = peer.seconds() else { continue };
            let limit = peer.limit().unwrap_or(f64::INFINITY);
            let time = match peer.peer.strip_prefix("solver ") {
                Some(backend) => Time::of(backend, seconds),
                None => Time { program: peer.peer, external: true, seconds },
            };
            match rows.iter_mut().find(|row| row.name == peer.system) {
                Some(row) => {
                    row.times.push(time);
                    row.limit = row.limit.min(limit);
                }
                None => rows.push(Row { name: peer.system, times: vec![time], limit }),
            }
        }
        let title = if iterations { "Conjugate gradients, one iteration" } else { "y = A x, one product" };
        Speeds { title: title.to_owned(), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"
        {"matrix": "a", "stream_gigabytes_per_second": 4000.0, "backends": [
            {"backend": "auto = sell", "bytes": 40000000, "median_ms": 0.011},
            {"backend": "cusparse", "bytes": 80000000, "median_ms": 0.03}]}
        {"matrix": "b", "stream_gigabytes_per_second": 4000.0, "backends": [
            {"backend": "csr", "bytes": 40000000, "median_ms": 0.011, "stream_gigabytes_per_second": 5000.0}]}"#;

    fn of(text: &str) -> Result<Option<Speeds>> {
        Speeds::of(text, Path::new("t.json"))
    }

    #[test]
    fn only_lines_of_products_and_tables_of_iterations_are_recognised() {
        let products = of(LINES).unwrap().unwrap();
        assert_eq!(products.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        // The limit uses the stream speed of the backend's own bytes if present, else that of CSR's bytes.
        assert_eq!(products.rows.iter().map(|row| row.limit).collect::<Vec<_>>(), [1e-5, 8e-6]);
        let table = r#"{"rows": [
            {"system": "a", "peer": "solver auto", "us_per_iteration": {"median": 8.0}, "limit_seconds_per_iteration": 2e-6},
            {"system": "a", "peer": "CuPy cg", "us_per_iteration": {"median": 200.0}}]}"#;
        let iterations = of(table).unwrap().unwrap();
        let times: Vec<_> =
            iterations.rows[0].times.iter().map(|t| (t.program.as_str(), t.external)).collect();
        assert_eq!((times, iterations.rows[0].limit), (vec![("auto", false), ("CuPy cg", true)], 2e-6));
        assert!(of("{\"series\": []}").unwrap().is_none() && of("[]").unwrap().is_none());
        assert!(of("# csv").unwrap().is_none());
        // A truncated line is a fault, not the end.
        assert!(of(&LINES[..LINES.len() - 3]).is_err());
    }

    #[test]
    fn programs_are_renamed_in_the_order_of_the_legend() {
        let mut times = of(LINES).unwrap().unwrap();
        assert_eq!(times.names(), ["auto", "cusparse", "csr"]);
        times.rename(&["cusparse", "b", "c"].map(String::from));
        assert_eq!(times.names(), ["cusparse", "b", "c"]);
    }
}
