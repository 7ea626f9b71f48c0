//! The day, for kept measurements.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the day in UTC: `2026-11-24`.
pub(super) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    of_day(seconds / 86_400)
}

/// Returns the date of a day counted from 1970-01-01, in the Gregorian calendar.
fn of_day(day: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut left) = (1970, day);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= lengths[month] {
        left -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::of_day;

    #[test]
    fn days_since_1970_are_dates() {
        for (day, date) in [
            (0, "1970-01-01"),
            (31 + 28, "1970-03-01"),
            (10_957, "2000-01-01"),
            (11_016, "2000-02-29"),
            (11_322, "2000-12-31"),
            (20_781, "2026-11-24"),
        ] {
            assert_eq!(of_day(day), date);
        }
    }
}
