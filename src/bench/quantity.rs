//! What the values of a table are: the quantity with its unit, as an axis of a figure names it.

use super::remarks::others;
use super::study::{Show, Table, Value, What};
use std::collections::BTreeMap;

/// Returns the quantity of a table with its unit, and the factor from seconds to that unit. The unit suits
/// the median of the times.
pub(super) fn quantity(
    table: &Table,
    what: What,
    times: Vec<f64>,
    labels: &BTreeMap<String, String>,
) -> (String, f64) {
    if !table.over.is_empty() {
        return (comparison(table, &others(&table.over, labels)), 1.0);
    }
    let each = if what == What::Product { "product" } else { "iteration" };
    let time = match &table.value {
        Value::Gflops => return ("performance (GFLOP/s)".to_owned(), 1.0),
        Value::Bandwidth => return ("bandwidth (GB/s)".to_owned(), 1.0),
        Value::PercentOfStream => return ("share of the measured stream (%)".to_owned(), 1.0),
        Value::PercentOfPeak => return ("share of the peak bandwidth (%)".to_owned(), 1.0),
        Value::Intensity => return ("flops per byte".to_owned(), 1.0),
        Value::Iterations => return ("iterations".to_owned(), 1.0),
        Value::Bytes => return (format!("bytes per {each} (MB)"), 1.0),
        Value::Registers => return ("registers per thread".to_owned(), 1.0),
        Value::Resident => return ("blocks that fit a multiprocessor".to_owned(), 1.0),
        Value::Blocks => return ("blocks launched".to_owned(), 1.0),
        Value::BlocksPerMultiprocessor => return ("blocks launched per multiprocessor".to_owned(), 1.0),
        Value::Occupancy => return ("occupancy (%)".to_owned(), 1.0),
        Value::Workers => return ("threads with work".to_owned(), 1.0),
        Value::WorkerShare => return ("threads with work (%)".to_owned(), 1.0),
        Value::WorkersPerMultiprocessor => return ("threads with work per multiprocessor".to_owned(), 1.0),
        Value::Contention => return ("threads that add to one sum".to_owned(), 1.0),
        Value::Speedup => return ("speed-up".to_owned(), 1.0),
        Value::Best(field) => return (format!("{field} of the fastest"), 1.0),
        Value::Cold => format!("time per {each} with cold caches"),
        Value::Dot => format!("time per {each} with a dot product"),
        Value::Build => "time to build the operator".to_owned(),
        Value::Total => "time of the whole solve".to_owned(),
        Value::Time if table.products > 1 => format!("time for {} {each}s", table.products),
        Value::Time => format!("time per {each}"),
    };
    let (unit, factor) = unit(table, times);
    (format!("{time} ({unit})"), factor * table.products as f64)
}

/// Names a comparison with other cases.
fn comparison(table: &Table, other: &str) -> String {
    match (table.show, &table.value) {
        (Show::Speedup, Value::Bandwidth) => format!("bandwidth relative to {other}"),
        (Show::Percent, Value::Bandwidth) => format!("bandwidth relative to {other} (%)"),
        (Show::Gain, Value::Bandwidth) => format!("bandwidth gained over {other} (%)"),
        (Show::Efficiency, _) => format!("speed of a thread relative to {other} (%)"),
        (Show::Speedup, _) => format!("speed-up over {other}"),
        (Show::Percent, _) => format!("speed relative to {other} (%)"),
        (Show::Gain, _) => format!("time saved relative to {other} (%)"),
    }
}

/// Returns a unit of time, and its number in a second.
fn unit(table: &Table, mut times: Vec<f64>) -> (&'static str, f64) {
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2).copied().unwrap_or(1.0) * table.products as f64;
    // The study's values are in the unit that they have in its tables.
    match middle {
        _ if !table.study.is_empty() && table.products > 1 => ("s", 1.0),
        _ if !table.study.is_empty() => ("ms", 1e3),
        time if time < 1e-3 => ("µs", 1e6),
        time if time < 1.0 => ("ms", 1e3),
        _ => ("s", 1.0),
    }
}
