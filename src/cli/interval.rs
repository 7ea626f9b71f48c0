//! Time intervals as typed: `60s`, `5m`, `1h`, `500ms`, or plain seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The suffixes of units, with their seconds.
const UNITS: &[(&str, f64)] = &[("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];

/// The time between two checkpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval(pub Duration);

impl Default for Interval {
    fn default() -> Interval {
        Interval(Duration::from_secs(60))
    }
}

impl FromStr for Interval {
    type Err = String;

    fn from_str(typed: &str) -> Result<Interval, String> {
        let split = typed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(typed.len());
        let (number, unit) = typed.split_at(split);
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| seconds);
        let seconds = number.parse::<f64>().ok().zip(unit).map(|(number, unit)| number * unit);
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let form = "a time is a number with a unit, such as 60s, 5m, 1h or 500ms, or a number of seconds";
        time.map(Interval).ok_or_else(|| form.to_owned())
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_unit_are_seconds() {
        for (typed, milliseconds) in
            [("60s", 60_000), ("5m", 300_000), ("1h", 3_600_000), ("500ms", 500), ("2", 2000), ("0.5", 500)]
        {
            assert_eq!(typed.parse::<Interval>().unwrap().0, Duration::from_millis(milliseconds), "{typed}");
        }
        for typed in ["", "s", "5 minutes", "-1s", "1d", "nan", "1e300h"] {
            assert!(typed.parse::<Interval>().is_err(), "{typed}");
        }
    }
}
