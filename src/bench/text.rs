//! A record as text: tables in Markdown, and all rows as CSV.

use super::cells::{Cell, Pivot};
use super::pivot::pivot;
use super::record::{Record, Row};
use super::study::Table;
use crate::source::catalog;

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if !value.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        // Counts and parameters.
        _ if size < 1e6 && value.fract() == 0.0 => format!("{value}"),
        _ if size >= 100.0 => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, crate::text::thousands(size.round() as u64))
        }
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ if size >= 0.1 => format!("{value:.3}"),
        _ if size >= 0.01 => format!("{value:.4}"),
        _ if size >= 1e-3 => format!("{value:.5}"),
        _ => format!("{value:.2e}"),
    }
}

fn cell(cell: &Cell) -> String {
    let own = match (&cell.word, cell.value, &cell.error) {
        (Some(word), ..) => word.clone(),
        (_, Some(value), _) => number(value),
        (_, _, Some(_)) => "failed".to_owned(),
        _ => "-".to_owned(),
    };
    match cell.study {
        Some(study) => format!("{own} ({})", number(study)),
        None => own,
    }
}

/// Formats one panel as a Markdown table.
fn panel(pivot: &Pivot, table: &Table) -> String {
    let mut text = String::new();
    if let Some(panel) = &pivot.panel {
        let field = table.panels.as_deref().unwrap_or_default();
        text.push_str(&format!("**{field} {panel}**\n\n"));
    }
    let header: Vec<String> = pivot.columns.iter().map(|name| escaped(name)).collect();
    text.push_str(&format!(
        "| {} | {} |\n|---|{}\n",
        table.rows,
        header.join(" | "),
        "--:|".repeat(header.len())
    ));
    for (name, cells) in pivot.rows.iter().zip(&pivot.cells) {
        let cells: Vec<String> = cells.iter().map(cell).collect();
        text.push_str(&format!("| {} | {} |\n", escaped(name), cells.join(" | ")));
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Formats a table with its title, quantity, and remarks.
fn one(record: &Record, table: &Table) -> String {
    let panels = pivot(record, table);
    let mut text = format!("## {}\n\n", table.title);
    let Some(first) = panels.first() else {
        text.push_str(&format!("Not measured in this record{}.\n", reasons(record, table)));
        return text;
    };
    let in_brackets = panels.iter().flat_map(|p| p.cells.iter().flatten()).any(|cell| cell.study.is_some());
    let machine = if table.study_machine.is_empty() {
        "the study's machine".to_owned()
    } else {
        table.study_machine.clone()
    };
    let study = if in_brackets { format!(" In brackets: the study, on {machine}.") } else { String::new() };
    let caveat = first.caveat.map_or_else(String::new, |caveat| format!("; {caveat}"));
    text.push_str(&format!("Values: {}{caveat}.{study}\n\n", first.quantity));
    let bodies: Vec<String> = panels.iter().map(|p| panel(p, table)).collect();
    text.push_str(&bodies.join("\n"));
    if !table.note.is_empty() {
        text.push_str(&format!("\n{}\n", table.note.trim()));
    }
    let remarks: Vec<&String> = panels.iter().flat_map(|p| &p.remarks).collect();
    if !remarks.is_empty() {
        text.push_str("\nWhere the order differs from the study's:\n\n");
        remarks.iter().for_each(|remark| text.push_str(&format!("- {remark}\n")));
    }
    let mut failed: Vec<String> =
        panels.iter().flat_map(|p| p.cells.iter().flatten().filter_map(|cell| cell.error.clone())).collect();
    failed.dedup();
    if !failed.is_empty() {
        text.push_str("\nFailed cases:\n\n");
        failed.iter().for_each(|error| text.push_str(&format!("- {error}\n")));
    }
    text
}

/// Returns the reasons for which the sweeps of a table were left out.
fn reasons(record: &Record, table: &Table) -> String {
    let of_table =
        record.left_out.iter().filter(|left| table.sweep.is_empty() || table.sweep.contains(&left.sweep));
    let mut reasons: Vec<&str> = Vec::new();
    for left in of_table {
        if !reasons.contains(&left.why.as_str()) {
            reasons.push(&left.why);
        }
    }
    if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) }
}

/// Formats a record as Markdown: the machine, the stand-ins for real matrices, every table, and what was
/// left out.
pub(crate) fn markdown(record: &Record) -> String {
    let study = &record.study;
    let mut text = format!("# {}\n\n{}\n\n", study.title, study.about.trim());
    text.push_str(&format!(
        "Measured on {}, with {}, {}.\n\n",
        record.machine.in_words(),
        record.program,
        record.started.split('T').next().unwrap_or_default()
    ));
    if record.unfinished > 0 {
        text.push_str(&format!(
            "**These tables are partial:** the run was interrupted, and {} cases are not measured yet.\n\n",
            record.unfinished
        ));
    }
    let mut stand_ins: Vec<String> = Vec::new();
    for row in
        record.rows.iter().filter(|row| row.measured != row.matrix && catalog::find(&row.matrix).is_some())
    {
        let says = format!("{} for {}", row.measured, row.matrix);
        if !stand_ins.contains(&says) {
            stand_ins.push(says);
        }
    }
    if !stand_ins.is_empty() {
        text.push_str(&format!(
            "Generated stand-ins, of the same size and row lengths, were measured instead of the real matrices: {}.\n\n",
            stand_ins.join(", ")
        ));
    }
    let tables: Vec<String> = record.tables().iter().map(|table| one(record, table)).collect();
    text.push_str(&tables.join("\n"));
    if !record.left_out.is_empty() {
        text.push_str("\n## Left out\n\n");
        for left in &record.left_out {
            text.push_str(&format!("- {} of sweep {}: {}\n", left.what, left.sweep, left.why));
        }
    }
    text
}

/// Formats all rows as CSV, with times in seconds. Each row names the machine, the version of
/// this program and the day.
pub(crate) fn csv(record: &Record) -> String {
    let mut text = "sweep,program,matrix,measured,as_stored,device,threads,columns,precision,backend,label,rows,cols,entries,longest,\
                    min,median,mean,max,samples,each,dot_median,cold_median,build,first,transfer,total,bytes,flops,storage,stream_gbs,\
                    checked,iterations,error,variables,machine,version,started\n"
        .to_owned();
    for row in &record.rows {
        text.push_str(&line(record, row));
        text.push('\n');
    }
    text
}

fn line(record: &Record, row: &Row) -> String {
    let quoted = |text: &str| match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let real = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:e}"));
    let spread = row.seconds;
    let mut fields: Vec<String> =
        [&row.sweep, &row.program, &row.matrix, &row.measured].iter().map(|text| quoted(text)).collect();
    fields.push(row.as_stored.to_string());
    fields.push(quoted(&row.device));
    fields.extend([row.threads, row.columns].map(|n| n.map_or_else(String::new, |n| n.to_string())));
    fields.extend([&row.precision, &row.backend, &row.label].iter().map(|text| quoted(text)));
    fields.extend([row.rows, row.cols, row.entries, row.longest].map(|n| n.to_string()));
    fields.extend(
        [spread.map(|s| s.min), spread.map(|s| s.median), spread.map(|s| s.mean), spread.map(|s| s.max)]
            .map(real),
    );
    fields.extend(
        [spread.map(|s| s.samples), spread.map(|s| s.each)]
            .map(|n| n.map_or_else(String::new, |n| n.to_string())),
    );
    fields.extend([row.dot_seconds.map(|s| s.median), row.cold_seconds.map(|s| s.median)].map(real));
    fields.extend([row.build_seconds, row.first_seconds, row.transfer_seconds, row.total_seconds].map(real));
    fields.extend([row.bytes, row.flops, row.storage].map(|n| n.to_string()));
    fields.extend([row.stream, row.checked].map(real));
    fields.push(row.iterations.map_or_else(String::new, |n| n.to_string()));
    fields.push(quoted(row.error.as_deref().unwrap_or_default()));
    let variables: Vec<String> = row.vary.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let started = record.started.split('T').next().unwrap_or_default();
    let of_record = [&variables.join(";"), &record.machine.in_words(), &record.program];
    fields.extend(of_record.map(|text| quoted(text)));
    fields.push(started.to_owned());
    fields.join(",")
}
