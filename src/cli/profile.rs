//! The time since the start, and `--profile`: wall time by phase.

use super::print;
use super::summary::LABELS;
use crate::error::Result;
use crate::observe::Profile;
use crate::observe::profile::{Active, Times};
use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Instant;

/// When the program started.
static STARTED: OnceLock<Instant> = OnceLock::new();

/// Starts the clock of the total time.
pub(super) fn start_clock() {
    STARTED.get_or_init(Instant::now);
}

/// Returns the seconds since the program started.
pub(super) fn seconds_total() -> f64 {
    STARTED.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// The measurement that `--profile` requests, if it does.
pub(super) struct Profiling(Option<(Profile, Active)>);

impl Profiling {
    /// Starts measuring this thread if `wanted`.
    pub(crate) fn start(wanted: bool) -> Profiling {
        Profiling(wanted.then(|| {
            let profile = Profile::since(*STARTED.get_or_init(Instant::now));
            let active = profile.activate();
            (profile, active)
        }))
    }

    /// Returns the times up to now.
    pub(crate) fn times(&self) -> Option<Times> {
        self.0.as_ref().map(|(profile, _)| profile.times())
    }

    /// Prints the table.
    pub(crate) fn print(&self) -> Result<()> {
        self.times().map_or(Ok(()), |times| print(&table(&times)))
    }
}

/// Formats the times as a table, without the phases that took no time.
fn table(times: &Times) -> String {
    let mut text = String::new();
    let rows = times.rows().into_iter().filter(|(_, seconds)| *seconds > 0.0);
    for (index, (phase, seconds)) in rows.chain([("total", times.total)]).enumerate() {
        let label = if index == 0 { "profile" } else { "" };
        let percent = 100.0 * seconds / times.total;
        let _ = writeln!(text, "{label:<LABELS$} {phase:<8} {seconds:>10.4} s {percent:>6.1} %");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_seconds_and_percent_and_no_phase_without_time() {
        let mut times = Times::default();
        (times.read, times.iterate, times.other, times.total) = (0.25, 0.5, 0.25, 1.0);
        let expected = "\
profile   read         0.2500 s   25.0 %
          iterate      0.5000 s   50.0 %
          other        0.2500 s   25.0 %
          total        1.0000 s  100.0 %
";
        assert_eq!(table(&times), expected);
    }
}
