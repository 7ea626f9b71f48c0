//! Tables of a record: one value for each combination of two fields.

mod parameters;

use super::cells::{Cell, Pivot};
use super::quantity::quantity;
use super::record::{Record, Row};
use super::remarks::remarks;
use super::study::{Show, Statistic, Table, Value, What};
use parameters::{VALUES, parameter, ran_on_cores, ratio, threads, workers};
use std::collections::BTreeMap;

/// Returns whether a pattern matches: alternatives separated by `|`, each possibly with `*` at its end.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    pattern.split('|').map(str::trim).any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    })
}

/// Returns the different values of a field: numbers by size, others as the condition on the field names them,
/// or in the order of their first appearance.
fn values(rows: &[&Row], field: &str, table: &Table) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in rows.iter().filter_map(|row| row.field(field)) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    // Numbers are steps of a quantity.
    if found.iter().all(|value| value.parse::<f64>().is_ok()) {
        found.sort_by(|a, b| a.parse::<f64>().unwrap_or(0.0).total_cmp(&b.parse().unwrap_or(0.0)));
    } else if let Some(pattern) = table.only.get(field) {
        let place = |value: &String| pattern.split('|').position(|one| matches(one, value));
        found.sort_by_key(place);
    }
    found
}

/// Returns the rows of a table: those of its sweeps that its conditions select.
pub(super) fn rows_of<'a>(record: &'a Record, table: &Table) -> Vec<&'a Row> {
    let of_sweep = |row: &&Row| table.sweep.is_empty() || table.sweep.contains(&row.sweep);
    let wanted = |row: &&Row| {
        let fits =
            |(field, pattern): (&String, &String)| row.field(field).is_some_and(|v| matches(pattern, &v));
        table.only.iter().all(fits)
    };
    record.rows.iter().filter(of_sweep).filter(wanted).collect()
}

/// Makes a table; one pivot for each value of its panel field.
pub(crate) fn pivot(record: &Record, table: &Table) -> Vec<Pivot> {
    let of_sweep = |row: &&Row| table.sweep.is_empty() || table.sweep.contains(&row.sweep);
    let pool: Vec<&Row> = record.rows.iter().filter(of_sweep).collect();
    let rows = rows_of(record, table);
    let panels: Vec<Option<String>> = match &table.panels {
        Some(field) => values(&rows, field, table).into_iter().map(Some).collect(),
        None => vec![None],
    };
    let maker = Maker { record, table, pool: &pool, rows: &rows };
    let caveat = maker.few().map(|count| match count {
        1 => "some cases were timed once",
        _ => "some cases were timed twice",
    });
    panels
        .into_iter()
        .map(|panel| {
            let within = |row: &&&Row| match (&table.panels, &panel) {
                (Some(field), Some(value)) => row.field(field).as_ref() == Some(value),
                _ => true,
            };
            let pivot = maker.panel(&rows.iter().filter(within).copied().collect::<Vec<_>>(), panel.clone());
            let pivot = Pivot { remarks: remarks(&pivot, table, &record.study.labels), caveat, ..pivot };
            labelled(pivot, &record.study.labels)
        })
        .filter(|pivot| !pivot.rows.is_empty() && !pivot.columns.is_empty())
        .collect()
}

/// Replaces names by what the study calls them.
fn labelled(mut pivot: Pivot, labels: &BTreeMap<String, String>) -> Pivot {
    for name in pivot.rows.iter_mut().chain(&mut pivot.columns).chain(&mut pivot.panel) {
        if let Some(label) = labels.get(name) {
            name.clone_from(label);
        }
    }
    pivot
}

struct Maker<'a> {
    record: &'a Record,
    table: &'a Table,
    pool: &'a [&'a Row],
    rows: &'a [&'a Row],
}

impl Maker<'_> {
    /// Makes a panel whose columns show different values.
    fn mixed(&self, rows: &[&Row], panel: Option<String>) -> Pivot {
        let table = self.table;
        let with = |value: &Value| {
            let over = match value {
                Value::Speedup => table.over.clone(),
                _ => BTreeMap::new(),
            };
            let value = if *value == Value::Speedup { Value::Time } else { value.clone() };
            Table { value, over, values: Vec::new(), columns: "sweep".to_owned(), ..table.clone() }
        };
        let mut found: Option<Pivot> = None;
        for value in &table.values {
            let one = with(value);
            let maker = Maker { table: &one, ..*self };
            let down = values(rows, &table.rows, table);
            let unit = maker.unit();
            let cell = |name: &String| {
                let here = |r: &&&Row| r.field(&table.rows).as_ref() == Some(name);
                let cases: Vec<&Row> = rows.iter().filter(here).copied().collect();
                maker.cell(&cases, unit.1, &[panel.as_deref(), Some(name), Some(&key(value))])
            };
            let column: Vec<Cell> = down.iter().map(cell).collect();
            let pivot = found.get_or_insert_with(|| Pivot {
                panel: panel.clone(),
                quantity: "named in the columns".to_owned(),
                caveat: None,
                ceilings: vec![None; down.len()],
                cells: vec![Vec::new(); down.len()],
                rows: down.clone(),
                columns: Vec::new(),
                remarks: Vec::new(),
                larger_is_better: false,
            });
            pivot.columns.push(unit.0);
            pivot.cells.iter_mut().zip(column).for_each(|(row, cell)| row.push(cell));
        }
        found.unwrap_or_default()
    }

    fn panel(&self, rows: &[&Row], panel: Option<String>) -> Pivot {
        if !self.table.values.is_empty() {
            return self.mixed(rows, panel);
        }
        let (down, across) =
            (values(rows, &self.table.rows, self.table), values(rows, &self.table.columns, self.table));
        let unit = self.unit();
        let at = |row: &String, column: &String| {
            let here = |r: &&&Row| {
                r.field(&self.table.rows).as_ref() == Some(row)
                    && r.field(&self.table.columns).as_ref() == Some(column)
            };
            let cases: Vec<&Row> = rows.iter().filter(here).copied().collect();
            self.cell(&cases, unit.1, &[panel.as_deref(), Some(row), Some(column)])
        };
        let cells: Vec<Vec<Cell>> =
            down.iter().map(|row| across.iter().map(|column| at(row, column)).collect()).collect();
        let of_row = |row: &String| -> Vec<&Row> {
            let here = |r: &&&Row| r.field(&self.table.rows).as_ref() == Some(row);
            rows.iter().filter(here).copied().collect()
        };
        let ceilings = down.iter().map(|row| self.ceiling(of_row(row).into_iter())).collect();
        let named = |row: &String| {
            let measured =
                of_row(row).into_iter().map(|r| r.measured.as_str()).find(|name| *name != row.as_str());
            match measured.filter(|_| self.table.rows == "matrix") {
                Some(measured) => measured.to_owned(),
                None => row.clone(),
            }
        };
        let larger_is_better = self.is_larger_better();
        let rows = down.iter().map(named).collect();
        let remarks = Vec::new();
        let (quantity, caveat) = (unit.0, None);
        Pivot { panel, quantity, caveat, rows, columns: across, cells, ceilings, remarks, larger_is_better }
    }

    fn is_larger_better(&self) -> bool {
        !self.table.over.is_empty()
            || matches!(
                self.table.value,
                Value::Gflops | Value::Bandwidth | Value::PercentOfPeak | Value::PercentOfStream
            )
    }

    /// Returns the time of a row that the table shows.
    fn time(&self, row: &Row) -> Option<f64> {
        let sweep = self.record.study.sweep(&row.sweep);
        let statistic = sweep.map_or(Statistic::Median, |sweep| sweep.protocol.statistic);
        if row.threads.is_some_and(|threads| threads > self.record.machine.cores) && ran_on_cores(row) {
            return None;
        }
        let spread = match self.table.value {
            Value::Cold => row.cold_seconds,
            Value::Dot => row.dot_seconds,
            Value::Build => return row.build_seconds,
            Value::Total => return row.total_seconds,
            _ => row.seconds,
        };
        spread.filter(|_| row.error.is_none()).map(|spread| spread.get(statistic))
    }

    /// Returns the quantity with its unit, and the factor from seconds; the same for all panels.
    fn unit(&self) -> (String, f64) {
        let what = self.rows.first().map_or(What::Product, |row| row.what);
        let times = self.rows.iter().filter_map(|row| self.time(row)).collect();
        quantity(self.table, what, times, &self.record.study.labels)
    }

    /// Makes a cell of its cases, of which the fastest counts.
    fn cell(&self, cases: &[&Row], factor: f64, names: &[Option<&str>; 3]) -> Cell {
        let [panel, row, column] = names.map(Option::unwrap_or_default);
        let key = if panel.is_empty() { row.to_owned() } else { format!("{panel}/{row}") };
        let study = self.table.study.get(&key).and_then(|row| row.get(column)).copied();
        let timed = cases.iter().filter_map(|row| self.time(row).map(|time| (*row, time)));
        let Some((fastest, time)) = timed.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            let error = cases.iter().find_map(|row| row.error.clone());
            return Cell { study, error, ..Cell::default() };
        };
        if let Value::Best(field) = &self.table.value {
            return Cell { word: parameter(fastest, field), study, ..Cell::default() };
        }
        let value = self.value(fastest, time, factor, |_, base| base);
        Cell { value, spread: self.spread(fastest, factor), study, ..Cell::default() }
    }

    /// Returns the value of a case for one of its times. `base` chooses the time of the case that it is
    /// compared with, given that case and its time.
    fn value(&self, row: &Row, time: f64, factor: f64, base: impl Fn(&Row, f64) -> f64) -> Option<f64> {
        match &self.table.value {
            _ if self.is_compared() => self.compared(row, time, base),
            Value::Gflops => Some(row.useful_flops() as f64 / time / 1e9).filter(|&v| v > 0.0),
            Value::Bandwidth => Some(row.gigabytes_per_second(time)).filter(|&v| v > 0.0),
            Value::PercentOfStream => row.stream.map(|s| 100.0 * row.gigabytes_per_second(time) / s),
            // A solve that ended at its limit says nothing about the iterations that the tolerance needs.
            Value::Iterations => row.iterations.filter(|_| row.converged != Some(false)).map(|n| n as f64),
            Value::Bytes => Some(row.bytes as f64 / 1e6).filter(|&megabytes| megabytes > 0.0),
            Value::PercentOfPeak => {
                let peaks = self.record.machine.peaks.filter(|_| row.device == "cuda")?;
                Some(100.0 * row.gigabytes_per_second(time) / peaks.bandwidth as f64)
            }
            Value::Intensity => row.flops_per_byte(),
            Value::Registers => row.registers.map(f64::from),
            Value::Resident => row.resident.map(f64::from),
            Value::Blocks => row.blocks.map(f64::from),
            Value::BlocksPerMultiprocessor => {
                Some(f64::from(row.resident?) * ratio(&parameter(row, "over")?)?)
            }
            Value::Occupancy => row.occupancy,
            Value::Workers => workers(row),
            Value::WorkerShare => Some(100.0 * workers(row)? / threads(row)?),
            Value::WorkersPerMultiprocessor => Some(workers(row)? * f64::from(row.resident?)),
            Value::Contention => threads(row).map(|threads| (threads / VALUES).floor() * VALUES.sqrt()),
            _ => Some(time * factor),
        }
    }

    /// Returns the values of the shortest and the longest sample, the smaller one first; for a comparison the
    /// least and the greatest that the samples of both cases allow.
    fn spread(&self, row: &Row, factor: f64) -> Option<[f64; 2]> {
        let [min, max] = self.ends(row)?;
        let other =
            |pick: usize| move |other: &Row, base: f64| self.ends(other).map_or(base, |ends| ends[pick]);
        let (a, b) = (self.value(row, min, factor, other(1))?, self.value(row, max, factor, other(0))?);
        Some([a.min(b), a.max(b)]).filter(|[low, high]| low < high)
    }

    /// Returns the shortest and the longest sample of the times that the table shows; none if
    /// there are no two samples.
    fn ends(&self, row: &Row) -> Option<[f64; 2]> {
        let spread = match self.table.value {
            Value::Cold => row.cold_seconds,
            Value::Dot => row.dot_seconds,
            Value::Build | Value::Total => None,
            _ => row.seconds,
        };
        spread.filter(|spread| spread.samples > 1).map(|spread| [spread.min, spread.max])
    }

    /// Returns the fastest of the cases that a case is compared with, and its time; none if
    /// none of them was measured.
    fn other(&self, row: &Row) -> Option<(&Row, f64)> {
        let over: BTreeMap<&String, String> = self
            .table
            .over
            .iter()
            .map(|(field, pattern)| {
                let family = row.field("family").unwrap_or_default();
                (field, pattern.replace("{backend}", &row.backend).replace("{family}", &family))
            })
            .collect();
        let named = |field: &str| over.keys().any(|name| *name == field);
        let is_other = |other: &&&Row| {
            let same = |field: &str| named(field) || row.field(field) == other.field(field);
            ["measured", "as_stored", "precision", "columns"].iter().all(|field| same(field))
                && (named("device") || row.device == other.device)
                && (named("threads") || named("device") || row.threads == other.threads)
                && over
                    .iter()
                    .all(|(field, pattern)| other.field(field).is_some_and(|v| matches(pattern, &v)))
        };
        let others = self.pool.iter().filter(is_other);
        others.filter_map(|other| Some((*other, self.time(other)?))).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the comparison of a case with the case that it refers to: of bandwidths if the table is of
    /// bandwidths, else of times.
    fn compared(&self, row: &Row, time: f64, base: impl Fn(&Row, f64) -> f64) -> Option<f64> {
        let (other, own) = self.other(row)?;
        let base = base(other, own);
        let of_bandwidth = self.table.value == Value::Bandwidth;
        let ratio = match of_bandwidth {
            true => row.gigabytes_per_second(time) / other.gigabytes_per_second(base),
            false => base / time,
        };
        Some(match self.table.show {
            Show::Speedup => ratio,
            Show::Percent => 100.0 * ratio,
            Show::Efficiency => 100.0 * ratio * other.threads? as f64 / row.threads? as f64,
            Show::Gain if of_bandwidth => 100.0 * (ratio - 1.0),
            Show::Gain => 100.0 * (1.0 - 1.0 / ratio),
        })
    }

    /// Returns the fewest products or iterations that were timed for a value, if they are too
    /// few to average noise out.
    fn few(&self) -> Option<usize> {
        use Value::{Bandwidth, Gflops, PercentOfPeak, PercentOfStream, Time};
        if !matches!(self.table.value, Time | Gflops | Bandwidth | PercentOfPeak | PercentOfStream) {
            return None;
        }
        let timed = |row: &Row| row.seconds.map(|spread| spread.samples * spread.each);
        let shown = || self.rows.iter().filter(|row| self.time(row).is_some());
        let of_others = shown().filter(|_| self.is_compared()).filter_map(|row| timed(self.other(row)?.0));
        shown().filter_map(|row| timed(row)).chain(of_others).min().filter(|&count| count < ENOUGH)
    }

    fn is_compared(&self) -> bool {
        !self.table.over.is_empty()
    }

    /// Returns the limit of a row of a table of bandwidths: the fastest stream.
    fn ceiling<'b>(&self, rows: impl Iterator<Item = &'b Row>) -> Option<f64> {
        match self.table.value {
            Value::Bandwidth if self.table.over.is_empty() => {
                rows.filter_map(|row| row.stream).max_by(f64::total_cmp)
            }
            _ => None,
        }
    }
}

/// Fewer timed products have no median that excludes an outlier: the table says so.
const ENOUGH: usize = 3;

/// Returns the name of a value in the tables of a publication's values.
fn key(value: &Value) -> String {
    match value {
        Value::Best(field) => field.clone(),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::{matches, pivot};
    use crate::bench::machine::{Machine, Peaks};
    use crate::bench::{Record, Row, Spread, Study};
    use std::path::Path;

    #[test]
    fn the_share_of_the_peak_and_the_intensity_follow_from_bytes_entries_and_time() {
        let text = r#"
            title = "t"
            [[sweep]]
            name = "gpu"
            device = ["cuda"]
            matrix = ["poisson2d:3x3"]
            backend = ["csr"]
            [[table]]
            title = "t"
            rows = "backend"
            values = ["percent_of_peak", "intensity"]"#;
        let study = Study::of(text, Path::new("study.toml")).unwrap();
        let row = Row {
            // 4 GB/s.
            bytes: 4_000_000_000,
            seconds: Spread::of(&[1.0], 1),
            // Twice the entries are useful; other operations are of zeros that fill blocks.
            entries: 250_000_000,
            flops: 800_000_000,
            ..study.cases(&[])[0].row.clone()
        };
        let machine = |peaks| Machine { peaks, ..Machine::default() };
        let record = |machine| Record {
            schema: 1,
            study: study.clone(),
            program: String::new(),
            command: String::new(),
            started: String::new(),
            machine,
            rows: vec![row.clone()],
            left_out: Vec::new(),
            unfinished: 0,
        };
        let cells = |machine| {
            let record = record(machine);
            let pivots = pivot(&record, &record.study.tables[0]);
            pivots[0].cells[0].iter().map(|cell| cell.value).collect::<Vec<_>>()
        };
        let peaks = Peaks { bandwidth: 8, single: 2, double: 1 };
        assert_eq!(cells(machine(Some(peaks))), [Some(50.0), Some(0.125)]);
        assert_eq!(cells(machine(None)), [None, Some(0.125)]);
    }

    #[test]
    fn patterns_have_alternatives_and_open_ends() {
        assert!(matches("cusparse*", "cusparse-alg1"));
        assert!(matches("csr | sell", "sell"));
        assert!(!matches("csr", "csr:rows=2"));
    }
}
