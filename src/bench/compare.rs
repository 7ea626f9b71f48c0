//! Compares two records of the same cases, and tells changes from noise.

use super::record::{Record, Row, Spread};
use super::resume::differing;

/// A change of the minimum below this share is noise on any machine.
const LEAST: f64 = 0.03;

/// A case of two records.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The case.
    pub case: String,
    /// Seconds of the median before and after.
    pub seconds: [f64; 2],
    /// The ratio of the medians, after to before.
    pub ratio: f64,
}

/// The comparison of two records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Cases in both.
    pub common: usize,
    /// Cases that take less time beyond noise, the largest change first.
    pub faster: Vec<Moved>,
    /// Cases that take more time beyond noise, the largest change first.
    pub slower: Vec<Moved>,
    /// Cases that fail now and did not before, with the error.
    pub broken: Vec<(String, String)>,
    /// Cases that failed before and do not now.
    pub mended: Vec<String>,
    /// Cases that are only in the first record.
    pub only_before: Vec<String>,
    /// Cases that are only in the second record.
    pub only_after: Vec<String>,
    /// Sweeps that the two records measured in different ways.
    pub otherwise: Vec<String>,
    /// The machines, if they differ.
    pub machines: Option<[String; 2]>,
}

/// Compares the times of the cases that two records have in common. See `direction` for
/// what is beyond noise.
pub fn compare(before: &Record, after: &Record) -> Comparison {
    let mut found = Comparison::default();
    for old in &before.rows {
        let case = describe(old);
        let Some(new) = after.find(old) else {
            found.only_before.push(case);
            continue;
        };
        found.common += 1;
        match (&old.error, &new.error) {
            (None, Some(error)) => found.broken.push((case, error.clone())),
            (Some(_), None) => found.mended.push(case),
            (None, None) => {
                if let (Some(a), Some(b)) = (old.seconds, new.seconds) {
                    let moved = Moved { case, seconds: [a.median, b.median], ratio: b.median / a.median };
                    match direction(&a, &b) {
                        std::cmp::Ordering::Less => found.faster.push(moved),
                        std::cmp::Ordering::Greater => found.slower.push(moved),
                        std::cmp::Ordering::Equal => {}
                    }
                }
            }
            _ => {}
        }
    }
    found.only_after = after.rows.iter().filter(|row| before.find(row).is_none()).map(describe).collect();
    found.faster.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    found.slower.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    found.otherwise = differing(&before.rows, &before.study, &after.study);
    let machines = [before, after].map(|record| record.machine.in_words());
    found.machines = (machines[0] != machines[1]).then_some(machines);
    found
}

/// Returns whether the second spread is shorter, longer, or the same within noise: the median of each lies outside of the range
/// from minimum to median of the other, and the minima differ by more than [`LEAST`].
fn direction(a: &Spread, b: &Spread) -> std::cmp::Ordering {
    let apart = (b.min / a.min - 1.0).abs() > LEAST;
    if apart && b.median < a.min {
        std::cmp::Ordering::Less
    } else if apart && b.min > a.median {
        std::cmp::Ordering::Greater
    } else {
        std::cmp::Ordering::Equal
    }
}

fn describe(row: &Row) -> String {
    let name = if row.program == "solver" { &row.backend } else { &row.program };
    let threads = row.threads.map_or_else(String::new, |threads| format!(", threads {threads}"));
    let columns = row.columns.map_or_else(String::new, |k| format!(", {k} columns"));
    let stored = if row.as_stored { ", as stored" } else { "" };
    let Row { sweep, measured, device, precision, .. } = row;
    format!("{sweep}: {measured} {name} on {device} ({precision}{threads}{columns}{stored})")
}
