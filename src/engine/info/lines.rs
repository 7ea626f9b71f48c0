//! The statistics as a table of text.

use super::Info;
use crate::engine::advice::{Naming, as_method};
use crate::engine::matrix::pairs_differ;
use crate::text::{exact, thousands};
use std::fmt;

/// A label and its text.
type Line = (&'static str, String);

/// Width of the longest bar of the histogram.
const BAR: f64 = 40.0;

fn count(n: usize) -> String {
    thousands(n as u64)
}

/// Formats a number of bytes with a decimal unit.
fn bytes(n: u128) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = units[0];
    for &next in &units[1..] {
        if value < 999.95 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    format!("{value:.1} {unit}")
}

/// Formats a number with at most six significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-4..1e9).contains(&size) {
        let text = format!("{value:.5e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", shortest(digits));
    }
    let decimals = (5.0 - size.log10().floor()).max(0.0) as usize;
    shortest(&format!("{value:.decimals$}")).to_owned()
}

/// Removes the trailing zeros of a fraction.
fn shortest(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

impl Info {
    /// Returns a line for each fact, without the hints. A continuation line has no label. `naming` names the
    /// settings.
    pub(crate) fn lines_naming(&self, naming: Naming<'_>) -> Vec<(&'static str, String)> {
        let mut lines = vec![("matrix", self.matrix.clone())];
        if let Some(real) = self.stand_in {
            lines.push(("stand-in", format!("generated to resemble {real}; not the real matrix")));
        }
        if let Some(kind) = self.kind {
            lines.push(("kind", kind.to_owned()));
        }
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines.extend(self.labels.map(|labels| ("labels", count(labels))));
        lines.push(("size", format!("{} x {}", count(self.rows), count(self.cols))));
        lines.extend(self.vertices.map(|vertices| {
            let without = match self.rows - vertices {
                0 => String::new(),
                1 => "; 1 row has no edge and is no vertex".to_owned(),
                rows => format!("; {} rows have no edge and are no vertices", count(rows)),
            };
            ("vertices", format!("{}, which pagerank ranks{without}", count(vertices)))
        }));
        let as_stored = if self.as_stored { ", read as stored" } else { "" };
        let stored = thousands(self.nnz_stored);
        lines.push(("entries", format!("{} ({stored} stored in the source{as_stored})", count(self.nnz))));
        for attached in &self.attached {
            lines.push((
                "vectors",
                format!("{}, {} x {}", attached.name, count(attached.rows), count(attached.cols)),
            ));
        }
        let unread = self.attached_unread.join(", ");
        if !self.attached_faults.is_empty() {
            lines.push(("vectors", format!("{unread}: invalid, skipped")));
        } else if !unread.is_empty() {
            lines
                .push(("vectors", format!("{unread}: not read; use {} to read them", naming("vectors", ""))));
        }
        lines.extend(about_rows(self));
        lines.extend(about_structure(self));
        lines.extend(about_values(self));
        lines.extend(about_storage(self));
        lines
    }

    /// Returns the lines and the hints as a table, with settings named by `naming`. The hints keep the names
    /// that `Info::of` has given them.
    pub fn text_naming(&self, naming: Naming<'_>) -> String {
        let hints = self.hints.iter().enumerate();
        let hints = hints.map(|(i, hint)| (if i == 0 { "hints" } else { "" }, format!("- {hint}")));
        let lines = self.lines_naming(naming).into_iter().chain(hints);
        let lines: Vec<String> = lines.map(|(label, text)| format!("{label:<12} {text}")).collect();
        lines.join("\n")
    }
}

/// Formats the facts and the hints as a table.
impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_naming(&as_method))
    }
}

fn about_rows(info: &Info) -> Vec<Line> {
    let length = info.row_length;
    let longest = info.longest_row.map_or(String::new(), |row| format!(" (row {row})"));
    let mut lines = vec![(
        "row length",
        format!(
            "{} to {}{longest}, mean {:.2}, deviation {:.2}",
            count(length.min),
            count(length.max),
            length.mean,
            length.deviation
        ),
    )];
    let first = info.first_empty_row.map_or(String::new(), |row| format!(", the first is row {row}"));
    lines.push(("empty rows", format!("{}{first}", count(info.empty_rows))));
    let label = |from: usize, to: usize| {
        if from == to { count(from) } else { format!("{}-{}", count(from), count(to)) }
    };
    let filled = info.row_histogram.iter().skip_while(|bin| bin.rows == 0);
    let bins: Vec<(String, usize)> = filled.map(|bin| (label(bin.from, bin.to), bin.rows)).collect();
    let widest = bins.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let rows_width = bins.iter().map(|(_, rows)| count(*rows).len()).max().unwrap_or(0);
    let most = bins.iter().map(|(_, rows)| *rows).max().unwrap_or(1) as f64;
    for (i, (label, rows)) in bins.iter().enumerate() {
        let bar = "#".repeat((*rows as f64 / most * BAR).ceil() as usize);
        let line = format!("{label:>widest$}  {:>rows_width$}  {bar}", count(*rows));
        lines.push((if i == 0 { "histogram" } else { "" }, line.trim_end().to_owned()));
    }
    lines
}

fn about_structure(info: &Info) -> Vec<Line> {
    let mut lines = Vec::new();
    let verdict = match (&info.symmetric_to_rounding, &info.first_asymmetry, info.symmetric) {
        (Some(rounding), ..) => {
            let differ = pairs_differ(rounding, (rounding.first.row, rounding.first.col));
            format!("to rounding: {differ} (counted from 1)")
        }
        (None, Some(a), _) => format!(
            "no: a({},{}) = {} but a({},{}) {} (counted from 1)",
            a.row,
            a.col,
            exact(a.value),
            a.col,
            a.row,
            a.mirrored.map_or("is not stored".to_owned(), |v| format!("= {}", exact(v)))
        ),
        (None, None, true) => "yes".to_owned(),
        (None, None, false) => "no: not square".to_owned(),
    };
    lines.push(("symmetric", verdict));
    if let Some(s) = info.symmetry.filter(|s| !info.symmetric || s.equal < s.off_diagonal) {
        let shares = format!("pattern {:.2} %, values {:.2} %", 100.0 * s.pattern, 100.0 * s.value);
        lines.push(("", format!("{shares} of {} off-diagonal entries", count(s.off_diagonal))));
    }
    if let Some(band) = info.bandwidth {
        let (lower, upper) = (count(band.lower), count(band.upper));
        lines.push((
            "bandwidth",
            format!("lower {lower}, upper {upper}; profile {}", thousands(band.profile)),
        ));
    }
    if let Some(c) = info.components {
        let sizes = match c.count {
            0 | 1 => String::new(),
            _ => format!(
                ", the largest with {} rows, {} with a single row",
                count(c.largest),
                count(c.isolated)
            ),
        };
        lines.push(("components", format!("{}{sizes}", count(c.count))));
    }
    lines
}

fn about_values(info: &Info) -> Vec<Line> {
    let mut lines = Vec::new();
    let v = info.values;
    let distinct = format!("{}{}", if v.distinct_is_exact { "" } else { "at least " }, count(v.distinct));
    if info.nnz > 0 && info.value_type == "ones" {
        lines.push(("values", "none stored: all are 1".to_owned()));
    } else if info.nnz > 0 {
        let (min, max) = (number(v.min), number(v.max));
        let (negative, zero) = (count(v.negative), count(v.zero));
        lines.push((
            "values",
            format!("{min} to {max}; negative {negative}, zero {zero}; distinct {distinct}"),
        ));
    }
    if info.nnz > 0 {
        lines.push(("row sums", format!("{} to {}", number(info.row_sums.min), number(info.row_sums.max))));
    }
    if let Some(d) = info.diagonal {
        lines.push((
            "diagonal",
            format!(
                "positive {}, negative {}, zero {}, missing {}; dominant in {} rows, strictly in {}",
                count(d.positive),
                count(d.negative),
                count(d.zero),
                count(d.missing),
                count(d.dominant_rows),
                count(d.strictly_dominant_rows)
            ),
        ));
    }
    lines
}

fn about_storage(info: &Info) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(block) = &info.block {
        let [r, c] = block.size;
        let (moved, change) = match block.saving >= 0.0 {
            true => ("fewer", block.saving),
            false => ("more", -block.saving),
        };
        lines.push((
            "best block",
            format!(
                "{r}x{c} (least estimated time on the CPU): {} blocks, {:.1} % filled, {:.1} % {moved} bytes than CSR",
                thousands(block.blocks),
                100.0 * block.fill,
                100.0 * change
            ),
        ));
    }
    if let (Some(backend), Some(why)) = (&info.backend, &info.backend_because) {
        lines.push(("auto on cpu", format!("{backend}: {why}")));
    }
    lines.push(("memory", format!("{} as loaded", bytes(u128::from(info.memory_bytes)))));
    let widest = info.memory.iter().map(|m| m.format.len()).max().unwrap_or(0);
    for (i, m) in info.memory.iter().enumerate() {
        let line = format!("{:<widest$}  {:>9}  {:>9}", m.format, bytes(m.f64), bytes(m.f32));
        lines.push((if i == 0 { "  f64, f32" } else { "" }, line));
    }
    lines
}
