//! Where the order in a table differs from the order in the publication.

use super::cells::{Cell, Pivot};
use super::study::{Show, Table, Value};
use std::collections::BTreeMap;

/// Fields whose values a study ranks; it varies other fields, such as threads or sizes.
const RANKED: [&str; 4] = ["backend", "family", "label", "program"];

/// Values that differ by a smaller factor count as equal.
const MARGIN: f64 = 1.05;

/// Says where a panel and the publication differ in what is faster.
pub(super) fn remarks(pivot: &Pivot, table: &Table, labels: &BTreeMap<String, String>) -> Vec<String> {
    // What differs, the field by whose values places are named, and the places.
    let mut said: Vec<(String, &str, Vec<String>)> = Vec::new();
    let mut say = |what: String, field, place: Option<&str>| {
        let place = place.map(str::to_owned);
        match said.iter_mut().find(|(other, ..)| *other == what) {
            Some((_, _, places)) => places.extend(place),
            None => said.push((what, field, place.into_iter().collect())),
        }
    };
    if table.over.is_empty() || !table.values.is_empty() {
        for (field, place, ranked) in slices(pivot, table) {
            orders(&ranked).into_iter().for_each(|what| say(what, field, place));
        }
    } else {
        for (name, cells) in pivot.rows.iter().zip(&pivot.cells) {
            for (column, cell) in pivot.columns.iter().zip(cells) {
                if let Some(what) = against(cell, table, labels) {
                    let by_column = (&table.columns, column, &table.rows, name);
                    let by_row = (&table.rows, name, &table.columns, column);
                    let (field, subject, other, place) =
                        if is_ranked(&table.rows) { by_row } else { by_column };
                    say(format!("{} is {what}", field_before(field, subject)), other, Some(place));
                }
            }
        }
    }
    let panel =
        table.panels.as_ref().zip(pivot.panel.as_ref()).map(|(field, panel)| field_before(field, panel));
    let whole = |(what, field, mut places): (String, &str, Vec<String>)| {
        if let Some(first) = places.first_mut() {
            *first = field_before(field, first);
        }
        let places: Vec<String> = panel.clone().into_iter().chain(places).collect();
        if places.is_empty() { what } else { format!("{}: {what}", places.join(", ")) }
    };
    said.into_iter().map(whole).collect()
}

/// What is ranked, with its speed here and in the study.
type Ranked<'a> = Vec<(&'a str, f64, f64)>;

fn is_ranked(field: &str) -> bool {
    RANKED.contains(&field)
}

/// A field, its value if not all of the panel is compared, and what is compared there.
type Slice<'a> = (&'a str, Option<&'a str>, Ranked<'a>);

/// Returns what the study ranks against each other: the cells of each row or column, or the
/// rows by their first speed.
fn slices<'a>(pivot: &'a Pivot, table: &'a Table) -> Vec<Slice<'a>> {
    let down = |index: usize, value: &Value| -> Ranked<'a> {
        let of = |(name, row): (&'a String, &'a Vec<Cell>)| ranked(name, &row[index], value);
        pivot.rows.iter().zip(&pivot.cells).filter_map(of).collect()
    };
    if !table.values.is_empty() {
        let is_speed = |value: &Value| larger_is_faster(value).is_some();
        let index = table.values.iter().position(is_speed).filter(|_| is_ranked(&table.rows));
        return index.map(|index| ("", None, down(index, &table.values[index]))).into_iter().collect();
    }
    if is_ranked(&table.columns) {
        let across = |(name, cells): (&'a String, &'a Vec<Cell>)| {
            let of = |(column, cell): (&'a String, &'a Cell)| ranked(column, cell, &table.value);
            let cells = pivot.columns.iter().zip(cells);
            (table.rows.as_str(), Some(name.as_str()), cells.filter_map(of).collect())
        };
        return pivot.rows.iter().zip(&pivot.cells).map(across).collect();
    }
    if is_ranked(&table.rows) {
        let of = |(index, name): (usize, &'a String)| {
            (table.columns.as_str(), Some(name.as_str()), down(index, &table.value))
        };
        return pivot.columns.iter().enumerate().map(of).collect();
    }
    Vec::new()
}

/// Returns whether larger values are faster; none for a quantity that is no speed.
fn larger_is_faster(value: &Value) -> Option<bool> {
    use Value::{Bandwidth, Build, Cold, Dot, Gflops, PercentOfPeak, PercentOfStream, Speedup, Time, Total};
    match value {
        Time | Cold | Dot | Build | Total => Some(false),
        Gflops | Bandwidth | PercentOfPeak | PercentOfStream | Speedup => Some(true),
        _ => None,
    }
}

/// Returns the speeds of a cell, if it has a value and one of the study.
fn ranked<'a>(name: &'a str, cell: &Cell, value: &Value) -> Option<(&'a str, f64, f64)> {
    let speed = |value: f64, larger: bool| if larger { value } else { 1.0 / value };
    let larger = larger_is_faster(value)?;
    Some((name, speed(cell.value?, larger), speed(cell.study?, larger)))
}

/// Says which is faster than which, if the study has it the other way round.
fn orders(ranked: &Ranked) -> Vec<String> {
    let of = |&(name, here, there): &(&str, f64, f64)| {
        let passed = |other: &&(&str, f64, f64)| here > MARGIN * other.1 && other.2 > MARGIN * there;
        let slower: Vec<&str> = ranked.iter().filter(passed).map(|other| other.0).collect();
        let all = match slower.split_last()? {
            (last, []) => (*last).to_owned(),
            (last, rest) => format!("{} and {last}", rest.join(", ")),
        };
        Some(format!("{name} is faster than {all}, in the study slower"))
    };
    ranked.iter().filter_map(of).collect()
}

/// Says whether a case is faster than the case that it is compared with, if the study has it
/// the other way round.
fn against(cell: &Cell, table: &Table, labels: &BTreeMap<String, String>) -> Option<String> {
    let ratio = |value: f64| match (table.show, &table.value) {
        (Show::Speedup, _) => value,
        (Show::Percent | Show::Efficiency, _) => value / 100.0,
        (Show::Gain, Value::Bandwidth) => 1.0 + value / 100.0,
        (Show::Gain, _) => 1.0 / (1.0 - value / 100.0),
    };
    let (here, there) = (ratio(cell.value?), ratio(cell.study?));
    if table.over.is_empty() {
        return None;
    }
    let other = others(&table.over, labels);
    match () {
        () if here > MARGIN && there * MARGIN < 1.0 => {
            Some(format!("faster than {other}, in the study slower"))
        }
        () if there > MARGIN && here * MARGIN < 1.0 => {
            Some(format!("slower than {other}, in the study faster"))
        }
        () => None,
    }
}

/// Writes the field before a number.
pub(super) fn field_before(field: &str, value: &str) -> String {
    if value.parse::<f64>().is_ok() { format!("{field} {value}") } else { value.to_owned() }
}

/// Names the cases that others are compared with, as the labels of the study call them.
pub(super) fn others(over: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> String {
    let kept = over.iter().find(|(field, pattern)| **pattern == format!("{{{field}}}"));
    let Some((field, pattern)) = over.iter().find(|other| Some(*other) != kept) else { return String::new() };
    if kept.is_some() {
        return format!("the same kernel with {field}={pattern}");
    }
    let label = |name: &str| labels.get(name).map_or(name, String::as_str).to_owned();
    let names: Vec<String> =
        pattern.split('|').map(|name| label(name.trim().trim_end_matches('*'))).collect();
    if !["backend", "family"].contains(&field.as_str()) {
        return format!("{field} {}", names.join(", "));
    }
    match &names[..] {
        [name] if name.starts_with("{backend}") => {
            format!("its variant {}", name.trim_start_matches("{backend}").trim_start_matches('-'))
        }
        [name] if pattern.contains('*') => format!("the fastest {name}"),
        [name] => name.clone(),
        names => format!("the fastest of {}", names.join(", ")),
    }
}
