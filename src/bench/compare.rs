//! Compares two records, and tells changes from noise. Cases are the same, or of the same matrix and
//! method on other devices.

use super::cases::fill;
use super::record::{Record, Row, Spread};
use super::resume::differing;
use super::study::What;
use std::cmp::Ordering;

/// A change of the minimum below this share is noise on any machine.
const LEAST: f64 = 0.03;

/// A case of two records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moved {
    /// The case.
    pub case: String,
    /// Seconds of the median before and after.
    pub seconds: [f64; 2],
    /// The ratio of the medians, after to before.
    pub ratio: f64,
}

/// Cases that only one of the records has, and why the other one has no such case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alone {
    /// The number of cases.
    pub cases: usize,
    /// What the other record lacks.
    pub why: String,
}

/// The comparison of two records.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// Cases in both.
    pub common: usize,
    /// Those of them that ran on another device, or in a sweep of another name: the same
    /// matrix by the same method.
    pub by_method: usize,
    /// Cases that take less time beyond noise, the largest change first.
    pub faster: Vec<Moved>,
    /// Cases that take more time beyond noise, the largest change first.
    pub slower: Vec<Moved>,
    /// Cases that fail now and did not before, with the error.
    pub broken: Vec<(String, String)>,
    /// Cases that failed before and do not now.
    pub mended: Vec<String>,
    /// Cases that are only in the first record.
    pub only_before: Vec<Alone>,
    /// Cases that are only in the second record.
    pub only_after: Vec<Alone>,
    /// Sweeps that the two records measured in different ways.
    pub otherwise: Vec<String>,
    /// The machines, if they differ.
    pub machines: Option<[String; 2]>,
}

/// Compares the times of the cases that two records have in common. See `direction` for what is beyond noise.
///
/// The same case has the same sweep, device and number of threads. If one of the records has no cases of
/// that sweep on that device, as records of two machines often do, the case of the same matrix by the
/// same method counts instead.
pub(crate) fn compare(before: &Record, after: &Record) -> Comparison {
    let mut found = Comparison::default();
    let partners = partners(before, after);
    for (old, new) in before.rows.iter().zip(&partners) {
        let Some(new) = new.map(|index| &after.rows[index]) else { continue };
        found.common += 1;
        let case = describe(old, new);
        if !new.is_same_case(old) {
            found.by_method += 1;
        }
        match (&old.error, &new.error) {
            (None, Some(error)) => found.broken.push((case, error.clone())),
            (Some(_), None) => found.mended.push(case),
            (None, None) => {
                if let (Some(a), Some(b)) = (old.seconds, new.seconds) {
                    let moved = Moved { case, seconds: [a.median, b.median], ratio: b.median / a.median };
                    match direction(&a, &b) {
                        Ordering::Less => found.faster.push(moved),
                        Ordering::Greater => found.slower.push(moved),
                        Ordering::Equal => {}
                    }
                }
            }
            _ => {}
        }
    }
    let alone = |own: &Record, other: &Record, paired: &dyn Fn(usize) -> bool| {
        let rows = own.rows.iter().enumerate().filter(|(index, _)| !paired(*index));
        grouped(rows.map(|(_, row)| why(row, own, other)))
    };
    found.only_before = alone(before, after, &|index| partners[index].is_some());
    found.only_after = alone(after, before, &|index| partners.contains(&Some(index)));
    found.faster.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    found.slower.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    found.otherwise = differing(&before.rows, &before.study, &after.study);
    let machines = [before, after].map(|record| record.machine.in_words());
    found.machines = (machines[0] != machines[1]).then_some(machines);
    found
}

/// Returns the index of the row of the second record for each row of the first.
fn partners(before: &Record, after: &Record) -> Vec<Option<usize>> {
    let same = |old: &Row| after.rows.iter().position(|new| new.is_same_case(old));
    let mut partners: Vec<Option<usize>> = before.rows.iter().map(same).collect();
    for (index, old) in before.rows.iter().enumerate() {
        if partners[index].is_some() || has_sweep(after, old) {
            continue;
        }
        let fits = |(at, new): &(usize, &Row)| {
            !partners.contains(&Some(*at))
                && !has_sweep(before, new)
                && first_difference(old, new, before, after).is_none()
        };
        let candidates = after.rows.iter().enumerate().filter(fits);
        let best = candidates.min_by_key(|(_, new)| (new.device != old.device, new.threads != old.threads));
        partners[index] = best.map(|(at, _)| at);
    }
    partners
}

/// Returns whether a record has cases of the sweep of a row on its device.
fn has_sweep(record: &Record, row: &Row) -> bool {
    record.rows.iter().any(|other| other.sweep == row.sweep && other.device == row.device)
}

/// What distinguishes a case from all those of another record, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    What,
    Matrix,
    Precision,
    Columns,
    Stored,
    Settings,
    Method,
    Threads,
}

/// Returns the most important difference between two cases; none if they are of the same
/// matrix by the same method.
fn first_difference(a: &Row, b: &Row, of_a: &Record, of_b: &Record) -> Option<Difference> {
    let settings = |row: &Row, record: &Record| {
        let sweep = record.study.sweep(&row.sweep);
        sweep.map(|sweep| {
            let precond = sweep.precond.as_ref().map(|precond| fill(precond, &row.vary));
            (precond, sweep.method.clone(), sweep.tolerance.map(f64::to_bits))
        })
    };
    // One device has no numbers of threads.
    let threads = matches!((a.threads, b.threads), (Some(a), Some(b)) if a != b);
    [
        (Difference::What, a.what != b.what),
        (Difference::Matrix, a.measured != b.measured),
        (Difference::Precision, a.precision != b.precision),
        (Difference::Columns, a.columns != b.columns),
        (Difference::Stored, a.as_stored != b.as_stored),
        (Difference::Settings, a.what != What::Product && settings(a, of_a) != settings(b, of_b)),
        (Difference::Method, method(a) != method(b)),
        (Difference::Threads, threads),
    ]
    .into_iter()
    .find_map(|(difference, is_there)| is_there.then_some(difference))
}

/// Says why no case of another record is the same as a case.
fn why(row: &Row, own: &Record, other: &Record) -> String {
    let differences = other.rows.iter().map(|new| first_difference(row, new, own, other));
    // Of several cases the most similar one counts: none is the least difference, then the last of the list.
    let nearest = differences
        .min_by_key(|found| found.map_or(0, |found| 1 + Difference::Threads as usize - found as usize));
    let stand_in = other.rows.iter().find(|new| new.matrix == row.matrix && new.measured != row.measured);
    let Some(nearest) = nearest else { return "the other record has no cases".to_owned() };
    if let (None | Some(Difference::Matrix), Some(new)) = (nearest, stand_in) {
        return format!("the other record has {} instead of {}", new.measured, row.measured);
    }
    match nearest {
        Some(Difference::What) => format!("the other record has no {}", measured(row.what)),
        Some(Difference::Matrix) => format!("the other record does not have {}", row.measured),
        Some(Difference::Precision) => {
            format!("the other record does not have {} in {}", row.measured, row.precision)
        }
        Some(Difference::Columns) => match row.columns {
            Some(columns) => format!("the other record does not have {columns} columns"),
            None => "the other record has no products with one vector".to_owned(),
        },
        Some(Difference::Stored) => "only one of the records has the triangle that files store".to_owned(),
        Some(Difference::Settings) => {
            format!(
                "the other record has another tolerance, preconditioner or method than sweep {}",
                row.sweep
            )
        }
        Some(Difference::Method) => {
            // Parameters matter only if the other record has the method with others.
            let family = |row: &Row| row.field("family");
            let known = other.rows.iter().any(|new| family(new) == family(row));
            let name = if known { method(row).to_owned() } else { family(row).unwrap_or_default() };
            format!("the other record does not have the method {name}")
        }
        Some(Difference::Threads) => {
            format!("the other record does not have {} threads", row.threads.unwrap_or(0))
        }
        None => format!("the other record measures it only in other sweeps than {}", row.sweep),
    }
}

/// Counts equal reasons, in the order of their first appearance.
fn grouped(reasons: impl Iterator<Item = String>) -> Vec<Alone> {
    let mut all: Vec<Alone> = Vec::new();
    for why in reasons {
        match all.iter_mut().find(|known| known.why == why) {
            Some(known) => known.cases += 1,
            None => all.push(Alone { cases: 1, why }),
        }
    }
    all
}

/// Returns whether the second spread is shorter, longer, or the same within noise: the median of each lies
/// outside of the range from minimum to median of the other, and the minima differ by more than [`LEAST`].
fn direction(a: &Spread, b: &Spread) -> Ordering {
    let apart = (b.min / a.min - 1.0).abs() > LEAST;
    if apart && b.median < a.min {
        Ordering::Less
    } else if apart && b.min > a.median {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// Names the program or the backend of a case.
fn method(row: &Row) -> &str {
    if row.program == "solver" { &row.backend } else { &row.program }
}

/// Names what a case measures, in the plural.
fn measured(what: What) -> &'static str {
    match what {
        What::Product => "products",
        What::Cg => "solves by CG",
        What::Minres => "solves by MINRES",
        What::Pagerank => "rankings by PageRank",
        What::Markov => "Markov chains",
    }
}

/// Describes a case, and how it differs in the second record.
fn describe(old: &Row, new: &Row) -> String {
    let columns = old.columns.map_or_else(String::new, |k| format!(", {k} columns"));
    let stored = if old.as_stored { ", as stored" } else { "" };
    let place = |row: &Row| {
        let threads = row.threads.map_or_else(String::new, |threads| format!(", threads {threads}"));
        format!("on {} ({}{threads}{columns}{stored})", row.device, row.precision)
    };
    let (Row { sweep, measured, .. }, name) = (old, method(old));
    let case = format!("{sweep}: {measured} {name} {}", place(old));
    if new.is_same_case(old) { case } else { format!("{case}, then {}: {}", new.sweep, place(new)) }
}
