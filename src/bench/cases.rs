//! The cases of a sweep: all combinations of its values.

use super::located::located;
use super::record::Row;
use super::study::{Study, Sweep, Text};
use crate::source::{self, catalog};
use std::collections::BTreeMap;

/// One case to measure: a row without results, and the index of its sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The index of the sweep in the study.
    pub sweep: usize,
    /// The index of the rival in the sweep; none for a case of this program.
    pub rival: Option<usize>,
    /// The fields that identify the case.
    pub row: Row,
}

/// Replaces the variables in a text.
pub(super) fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Returns the combinations of the values of those variables that occur in `texts`.
pub(super) fn combinations(vary: &BTreeMap<String, Vec<Text>>, text: &str) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![BTreeMap::new()];
    for (name, values) in vary.iter().filter(|(name, _)| text.contains(&format!("{{{name}}}"))) {
        let with = |old: &BTreeMap<String, String>| {
            let old = old.clone();
            values.iter().map(move |value| {
                let mut new = old.clone();
                new.insert(name.clone(), value.0.clone());
                new
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// Returns the matrix as the study names it, and the first of its alternatives that is on this machine;
/// the last one if none is.
fn choose(alternatives: &str) -> (String, String) {
    let names: Vec<&str> = alternatives.split('|').map(str::trim).collect();
    let here = |name: &&&str| match catalog::find(name) {
        Some(entry) => entry.fetched().is_some(),
        None => source::check(&located(name)).is_ok(),
    };
    let last = names.last().copied().unwrap_or_default();
    (names[0].to_owned(), names.iter().find(here).copied().unwrap_or(last).to_owned())
}

impl Sweep {
    /// Returns the cases of one matrix, whose variables have these values.
    fn of_matrix(&self, index: usize, matrix: &str, values: &BTreeMap<String, String>) -> Vec<Case> {
        let (named, measured) = choose(&fill(matrix, values));
        let mut cases = Vec::new();
        let threads: Vec<Option<usize>> = match self.threads.is_empty() {
            true => vec![None],
            false => self.threads.iter().copied().map(Some).collect(),
        };
        let columns: Vec<Option<usize>> = match self.columns.is_empty() {
            true => vec![None],
            false => self.columns.iter().copied().map(Some).collect(),
        };
        for &as_stored in &self.as_stored {
            for precision in &self.precision {
                for device in &self.device {
                    // Only the CPU has several numbers of threads.
                    let threads = if device == "cpu" { &threads[..] } else { &[None] };
                    for (&threads, &columns) in
                        threads.iter().flat_map(|t| columns.iter().map(move |k| (t, k)))
                    {
                        let row = Row {
                            sweep: self.name.clone(),
                            what: self.what,
                            program: "solver".to_owned(),
                            matrix: named.clone(),
                            measured: measured.clone(),
                            vary: values.clone(),
                            device: device.clone(),
                            threads,
                            columns,
                            precision: precision.clone(),
                            as_stored,
                            ..Row::default()
                        };
                        cases.extend(self.of_backends(index, &row));
                    }
                }
            }
        }
        cases
    }

    /// Returns the cases of all backends, preconditioners and rivals for one matrix, device, precision and
    /// number of threads.
    fn of_backends(&self, sweep: usize, row: &Row) -> Vec<Case> {
        let mut cases = Vec::new();
        for backend in &self.backend {
            let texts = format!("{backend} {}", self.precond.as_deref().unwrap_or_default());
            for more in combinations(&self.vary, &texts) {
                // A variable that the matrix has, too, has one value in both.
                if more.iter().any(|(name, value)| row.vary.get(name).is_some_and(|old| old != value)) {
                    continue;
                }
                let backend = fill(backend, &more);
                let vary = row.vary.clone().into_iter().chain(more).collect();
                cases.push(Case { sweep, rival: None, row: Row { backend, vary, ..row.clone() } });
            }
        }
        for (index, rival) in self.rival.iter().enumerate().filter(|(_, rival)| rival.device == row.device) {
            let row = Row { program: rival.name.clone(), label: rival.name.clone(), ..row.clone() };
            cases.push(Case { sweep, rival: Some(index), row });
        }
        cases
    }
}

impl Study {
    /// Returns the cases of the named sweeps, or of all, in the order of measuring: the cases of one
    /// matrix follow each other.
    pub fn cases(&self, sweeps: &[String]) -> Vec<Case> {
        let wanted = |sweep: &&Sweep| sweeps.is_empty() || sweeps.contains(&sweep.name);
        let mut cases = Vec::new();
        for sweep in self.sweeps.iter().filter(wanted) {
            let index = self.sweeps.iter().position(|other| other.name == sweep.name).unwrap_or(0);
            for matrix in &sweep.matrix {
                for values in combinations(&sweep.vary, matrix) {
                    cases.extend(sweep.of_matrix(index, matrix, &values));
                }
            }
        }
        cases
    }
}
