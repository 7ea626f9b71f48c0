//! The text that the reports of all solves have in common.

use crate::text::thousands;

/// Width of the labels of a report.
pub(crate) const LABELS: usize = 9;

/// A line of a report: its label and its text.
pub(crate) type Line = (&'static str, String);

/// Formats a count of a noun with a regular plural.
pub(crate) fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// Describes how a solve ended, with the method and its iterations; the message about the iteration
/// limit contains their number.
pub(crate) fn ended(message: &str, reason: &str, iterations: u64, method: &str) -> String {
    match reason {
        "iteration_limit" => format!("{message} of {method}"),
        _ => format!("{message}; {} of {method}", count(iterations, "iteration")),
    }
}

/// Describes how several columns ended: `what` are the columns, and each that did not converge
/// has its reason.
pub(crate) fn ends_of_columns<'a>(what: &str, reasons: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let reasons: Vec<_> = reasons.into_iter().collect();
    let mut failed = reasons.iter().enumerate().filter_map(|(column, reason)| Some((column, (*reason)?)));
    let Some((first, why)) = failed.next() else {
        return format!("all {} {what} converged", thousands(reasons.len() as u64));
    };
    let rest = failed.count();
    let more = if rest == 0 { String::new() } else { format!("; {rest} more") };
    let (good, k) = (reasons.len() - 1 - rest, reasons.len());
    format!("{good} of {k} {what} converged; column {}: {why}{more}", first + 1)
}

/// Formats a number with at most three decimals, such as 1e-8 or 1.234e-8.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => {
            format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Joins lines, with their texts in one column; the last line has no line break.
pub(crate) fn labelled(lines: &[Line]) -> String {
    let line = |(label, text): &Line| format!("{label:<LABELS$} {text}");
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Names a vertex by its label, its id, or both.
pub(crate) fn named(id: Option<u64>, label: Option<&str>) -> String {
    match (id, label) {
        (Some(id), Some(label)) => format!("{id}  {label}"),
        (Some(id), None) => id.to_string(),
        (None, label) => label.unwrap_or_default().to_owned(),
    }
}

/// Formats the highest-ranked rows, each a name and its text. Ids are right-aligned, other
/// names left-aligned.
pub(crate) fn ranked(rows: Vec<(String, String)>) -> String {
    /// Maximum width of the column of names.
    const WIDEST: usize = 60;
    let ids = rows.iter().all(|(name, _)| name.bytes().all(|byte| byte.is_ascii_digit()));
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = widest.clamp(12, WIDEST);
    let line = |(index, (name, text)): (usize, &(String, String))| {
        let first = if index == 0 { "top" } else { "" };
        match ids {
            true => format!("{first:<LABELS$} {name:>width$}  {text}\n"),
            false => format!("{first:<LABELS$} {name:<width$}  {text}\n"),
        }
    };
    rows.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_trailing_zeros() {
        assert_eq!(
            ["1e-8", "1.5e-8", "1.235e-8", "0e0", "NaN"],
            [1e-8, 1.5e-8, 1.2346e-8, 0.0, f64::NAN].map(short)[..]
        );
    }

    #[test]
    fn the_first_column_that_did_not_converge_is_named_with_its_reason() {
        let ends = |reasons: &[Option<&str>]| ends_of_columns("columns", reasons.iter().copied());
        assert_eq!(ends(&[None; 3]), "all 3 columns converged");
        assert_eq!(ends(&[None, Some("slow")]), "1 of 2 columns converged; column 2: slow");
        let end = "1 of 4 columns converged; column 1: nan; 2 more";
        assert_eq!(ends(&[Some("nan"), None, Some("slow"), Some("slow")]), end);
    }
}
