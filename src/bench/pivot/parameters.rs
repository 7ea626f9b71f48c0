//! Numbers that follow from the parameters in the name of a backend.

use crate::bench::record::Row;
use crate::params;

/// Returns whether the backend runs on no more threads than there are cores, whatever was asked for.
pub(super) fn ran_on_cores(row: &Row) -> bool {
    row.backend.split(':').next() == Some("bsr-split-naive")
}

/// Values of a block in the block-band study.
pub(super) const VALUES: f64 = 25.0;

/// Returns the threads of a block of the kernel, from the name of the backend.
pub(super) fn threads(row: &Row) -> Option<f64> {
    parameter(row, "threads")?.parse().ok()
}

/// Returns the value of `a/b` or of a number.
pub(super) fn ratio(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    Some(above.parse::<f64>().ok()? / below.parse::<f64>().ok()?)
}

/// Returns the threads of a block that have a position in a block of the matrix: those of whole teams.
pub(super) fn workers(row: &Row) -> Option<f64> {
    threads(row).map(|threads| threads - threads % VALUES)
}

/// Returns a field of a row, or a parameter in the name of its backend.
pub(super) fn parameter(row: &Row, name: &str) -> Option<String> {
    let parameters = params::split_name(&row.backend).1.unwrap_or_default();
    let found =
        params::items(parameters).filter_map(|item| item.split_once('=')).find(|(key, _)| *key == name);
    found.map(|(_, value)| value.to_owned()).or_else(|| row.field(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_work_are_those_of_whole_teams() {
        let of = |backend: &str| workers(&Row { backend: backend.to_owned(), ..Row::default() });
        assert_eq!(of("bsr-team:threads=64,over=1"), Some(50.0));
        assert_eq!(of("bsr-team:over=1,threads=1024"), Some(1000.0));
        assert_eq!(of("bsr-team"), None);
    }

    #[test]
    fn launches_relative_to_what_fits_are_numbers_or_fractions() {
        assert_eq!([ratio("16"), ratio("1/4"), ratio("all")], [Some(16.0), Some(0.25), None]);
    }
}
