//! The parts that the reports of all solves have in common. A report has a line for each thing that a user needs to know
//! of every solve.

use crate::text::{duration, thousands};

/// Width of the labels of a report.
pub(crate) const LABELS: usize = 9;

/// A line of a report: its label and its text.
pub(crate) type Line = (&'static str, String);

/// How many there are of something with a regular plural.
pub(crate) fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", thousands(n), if n == 1 { "" } else { "s" })
}

/// How a solve ended, and after how many iterations of which method; a message about the iteration limit names the number.
pub(crate) fn ended(message: &str, reason: &str, iterations: u64, method: &str) -> String {
    match reason {
        "iteration_limit" => format!("{message} of {method}"),
        _ => format!("{message}; {} of {method}", count(iterations, "iteration")),
    }
}

/// How long the iterations took, and where they ran. Methods without a backend name it `none`.
pub(crate) fn time(seconds: f64, device: &str, backend: &str, precision: &str) -> Line {
    let backend = if backend == "none" { String::new() } else { format!(", backend {backend}") };
    ("time", format!("{} on {device}{backend}, {precision}", duration(seconds)))
}

/// How fast they were, and how near to the limit of the machine.
pub(crate) fn speed(gigabytes_per_second: f64, percent_of_limit: Option<f64>, rate: &str) -> Line {
    let share = percent_of_limit.map_or(String::new(), |p| format!(" ({p:.0} % of the machine's limit)"));
    ("speed", format!("{gigabytes_per_second:.1} GB/s{share}, {rate}"))
}

/// The times outside of the iterations.
pub(crate) fn around(setup: f64, load: f64) -> Line {
    ("setup", format!("{}, reading {}", duration(setup), duration(load)))
}

/// A number in three digits after the point at most, such as 1e-8 or 1.234e-8.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => {
            format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Lines under each other, their texts in one column; the last has no line break.
pub(crate) fn labelled(lines: &[Line]) -> String {
    let line = |(label, text): &Line| format!("{label:<LABELS$} {text}");
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_without_zeros_at_their_end() {
        assert_eq!(
            ["1e-8", "1.5e-8", "1.235e-8", "0e0", "NaN"],
            [1e-8, 1.5e-8, 1.2346e-8, 0.0, f64::NAN].map(short)[..]
        );
    }
}
