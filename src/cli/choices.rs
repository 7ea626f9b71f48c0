//! Tables of the backends that a choice compared: estimated by the model, or measured.

use super::layout::columns;
use super::progress::bytes;
use super::summary::{Line, verbose};
use crate::backend::Candidate;
use crate::engine::tune::{Explanation, Measured, Tuning};
use crate::error::Result;
use crate::observe::report::Parts;
use crate::text::duration;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::ops::Range;

/// Makes an aligned table; all columns but the first and the last hold numbers.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let last = header.len().saturating_sub(1);
    table_with(header, rows, 1..last)
}

/// Formats a table whose columns in the range `right` are aligned on the right.
pub(super) fn table_with(header: &[&str], rows: Vec<Vec<String>>, right: Range<usize>) -> String {
    let mut table = Table::new();
    let width = u16::try_from(columns()).unwrap_or(u16::MAX);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.load_preset(presets::NOTHING).set_header(header.iter().copied());
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    for column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n", table.trim_fmt())
}

/// Formats the estimates of the model.
pub(super) fn estimates(candidates: &[Candidate]) -> String {
    let row = |candidate: &Candidate| {
        let chosen = if candidate.chosen { "chosen; " } else { "" };
        vec![
            candidate.backend.clone(),
            candidate.seconds.map_or("-".to_owned(), duration),
            candidate.bytes.map_or("-".to_owned(), |moved| bytes(moved as u64)),
            format!("{chosen}{}", candidate.note),
        ]
    };
    table(&["backend", "estimated", "bytes", "why"], candidates.iter().map(row).collect())
}

/// Formats a measurement.
pub(super) fn measurement(tuning: &Tuning) -> String {
    let row = |measured: &Measured| {
        let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), duration);
        let speed = measured.seconds.map(|seconds| format!("{:.1}", measured.bytes as f64 / seconds / 1e9));
        let known = measured.seconds.is_some();
        vec![
            measured.backend.clone(),
            time(measured.seconds),
            time(measured.seconds_median),
            if known { duration(measured.seconds_build) } else { "-".to_owned() },
            if known { bytes(measured.bytes) } else { "-".to_owned() },
            speed.unwrap_or("-".to_owned()),
            note(measured, tuning),
        ]
    };
    let header = ["backend", "min", "median", "build", "bytes", "GB/s", ""];
    table(&header, tuning.measured.iter().map(row).collect())
}

/// Describes the part of a candidate in the measurement.
fn note(measured: &Measured, tuning: &Tuning) -> String {
    let mut notes = Vec::new();
    if measured.backend == tuning.winner {
        notes.push("winner".to_owned());
    }
    if measured.backend == tuning.model {
        notes.push("the model's choice".to_owned());
    }
    if measured.dropped {
        notes.push("dropped: too slow".to_owned());
    }
    notes.extend(measured.error.clone());
    notes.join(", ")
}

/// Formats the reasons of a choice. If several ranks share the solve, they are those of the first one.
pub(super) fn explained(explanation: &Explanation, parts: Option<&Parts>) -> String {
    let whose = parts.map_or(String::new(), |parts| {
        format!("Each rank chooses for its own rows; rank 0 of {}:\n", parts.ranks)
    });
    match &explanation.kept {
        Some(kept) => {
            let Tuning { product, date, device, precision, .. } = &kept.tuning;
            format!("Measured on {date}: {product} on {device} in {precision}\n{}", measurement(&kept.tuning))
        }
        None if explanation.candidates.is_empty() => "The backend was not chosen by auto.\n".to_owned(),
        None => whose + &estimates(&explanation.candidates),
    }
}

/// Returns the report's line of a backend that a measurement chose; the complete report has a
/// line for every choice.
pub(super) fn line(explanation: &Explanation, because: Option<&str>) -> Option<Line> {
    let kept = explanation.kept.as_ref().filter(|_| !verbose())?;
    Some(("backend", format!("{}, {}", kept.tuning.winner, because.unwrap_or_default())))
}

/// Adds the reasons to a report in JSON.
pub(super) fn with_explanation(
    report: &impl serde::Serialize,
    explanation: Option<&Explanation>,
    parts: Option<&Parts>,
) -> Result<serde_json::Value> {
    let value = |error: serde_json::Error| serde_json::json!({ "error": error.to_string() });
    let mut json = serde_json::to_value(report).unwrap_or_else(value);
    if let (Some(explanation), Some(fields)) = (explanation, json.as_object_mut()) {
        let mut explanation = serde_json::to_value(explanation).unwrap_or_else(value);
        if let (Some(_), Some(fields)) = (parts, explanation.as_object_mut()) {
            fields.insert("rank".to_owned(), 0.into());
        }
        fields.insert("explanation".to_owned(), explanation);
    }
    Ok(json)
}
