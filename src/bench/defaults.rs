//! The tables of a study that names none: for each sweep the times by matrix and backend.

use super::record::{Record, Row};
use super::study::{Show, Table, Value, What};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Fields whose values divide the cases of a matrix and a backend.
const DIVIDING: [&str; 5] = ["device", "precision", "as_stored", "threads", "columns"];

impl Record {
    /// Returns the tables of the study, or those of its measured sweeps if it names none.
    pub(crate) fn tables(&self) -> Cow<'_, [Table]> {
        if !self.study.tables.is_empty() {
            return Cow::Borrowed(&self.study.tables);
        }
        Cow::Owned(
            self.study.sweeps.iter().flat_map(|sweep| self.tables_of(&sweep.name, sweep.what)).collect(),
        )
    }

    /// Returns the tables of a sweep: for solves also the iterations and the time of the whole.
    fn tables_of(&self, sweep: &str, what: What) -> Vec<Table> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.sweep == sweep).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let several = |field: &&str| different(&rows, field).len() > 1;
        let mut dividing: Vec<&str> = DIVIDING.into_iter().filter(several).collect();
        // Cases on a GPU have no number of threads: such a field is neither that of the rows
        // nor that of the panels.
        let complete = |field: &str| rows.iter().all(|row| row.field(field).is_some());
        let is_one_matrix = different(&rows, "matrix").len() == 1;
        let is_down =
            |field: &str| is_one_matrix && ["threads", "columns"].contains(&field) && complete(field);
        // Of one matrix, the numbers of threads or columns are the rows.
        let down = dividing.pop_if(|field| is_down(field)).unwrap_or("matrix");
        let panels = dividing.pop_if(|field| complete(field));
        let values: &[(Value, &str)] = match what {
            What::Product => &[(Value::Time, "time per product")],
            _ => &[
                (Value::Time, "time per iteration"),
                (Value::Iterations, "iterations"),
                (Value::Total, "time of the whole solve"),
            ],
        };
        let mut tables = Vec::new();
        for only in combinations(&rows, &dividing) {
            for (value, name) in values {
                let fixed: Vec<String> =
                    only.iter().map(|(field, value)| format!(", {field} {value}")).collect();
                tables.push(Table {
                    title: format!("{sweep}: {name}{}", fixed.concat()),
                    sweep: vec![sweep.to_owned()],
                    only: only.clone(),
                    rows: down.to_owned(),
                    columns: "backend".to_owned(),
                    values: Vec::new(),
                    panels: panels.map(str::to_owned),
                    value: value.clone(),
                    over: BTreeMap::new(),
                    show: Show::default(),
                    products: 1,
                    study: BTreeMap::new(),
                    study_machine: String::new(),
                    plot: None,
                    note: String::new(),
                });
            }
        }
        tables
    }
}

/// Returns the different values of a field.
fn different(rows: &[&Row], field: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in rows.iter().filter_map(|row| row.field(field)) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Returns the combinations of the values of some fields that occur.
fn combinations(rows: &[&Row], fields: &[&str]) -> Vec<BTreeMap<String, String>> {
    let mut all: Vec<BTreeMap<String, String>> = Vec::new();
    for row in rows {
        let own = fields.iter().filter_map(|field| Some(((*field).to_owned(), row.field(field)?))).collect();
        if !all.contains(&own) {
            all.push(own);
        }
    }
    all
}
