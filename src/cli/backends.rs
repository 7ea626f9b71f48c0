//! `solver backends`: the registry as a table.

use super::args::BackendsArgs;
use super::{print, print_json};
use crate::backend::{Entry, REGISTRY};
use crate::error::Result;

#[derive(serde::Serialize)]
struct Row {
    name: &'static str,
    device: &'static str,
    format: &'static str,
    deterministic: bool,
    summary: &'static str,
    family: &'static str,
    from: &'static str,
    columns: bool,
    precisions: Vec<&'static str>,
    parameters: Vec<Parameter>,
}

#[derive(serde::Serialize)]
struct Parameter {
    name: &'static str,
    values: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<&'static str>,
    summary: &'static str,
}

fn row(entry: &Entry) -> Row {
    let parameter = |p: &crate::backend::Param| Parameter {
        name: p.name,
        values: p.values,
        others: p.others.as_ref().map(|others| others.what),
        summary: p.summary,
    };
    Row {
        name: entry.name,
        device: entry.device(),
        format: entry.format,
        deterministic: entry.deterministic,
        summary: entry.summary,
        family: entry.family,
        from: entry.from,
        columns: entry.columns,
        precisions: entry.precisions.iter().map(|p| p.name()).collect(),
        parameters: entry.params.iter().map(parameter).collect(),
    }
}

pub(super) fn run(args: &BackendsArgs) -> Result<bool> {
    let rows: Vec<Row> = REGISTRY.iter().map(row).collect();
    if args.json {
        print_json(&rows)?;
        return Ok(true);
    }
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING).set_header([
        "name",
        "device",
        "format",
        "same bits",
        "columns",
        "precisions",
        "summary",
        "from",
    ]);
    for row in &rows {
        let yes = |holds: bool| if holds { "yes" } else { "no" };
        table.add_row([
            row.name,
            row.device,
            row.format,
            yes(row.deterministic),
            if row.columns { "any" } else { "one" },
            &row.precisions.join(" "),
            row.summary,
            row.from,
        ]);
    }
    let mut text = format!("{table}\n\nparameters:\n");
    for row in &rows {
        for p in &row.parameters {
            let allowed: Vec<_> = p.values.iter().copied().chain(p.others).collect();
            text.push_str(&format!("  {}:{}={}  {}\n", row.name, p.name, allowed.join("|"), p.summary));
        }
    }
    print(&text)?;
    Ok(true)
}
