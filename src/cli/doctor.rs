//! `solver doctor`: lists hardware and libraries found and missing, measures the memory bandwidth, and tests
//! every backend that can run on this machine.

use super::args::DoctorArgs;
use super::layout::wrapped;
use super::{flags, print_found};
use crate::engine::doctor::{Finding, State, examine};
use crate::error::Result;

pub(super) fn run(args: &DoctorArgs) -> Result<bool> {
    let mut findings = examine(args.threads)?;
    for finding in &mut findings {
        if let Some(error) = &finding.error {
            finding.details = flags::message(error);
        }
    }
    let healthy = findings.iter().all(|f| f.state != State::Failed);
    print_found(args.json, &findings, |findings| in_words(findings))?;
    Ok(healthy)
}

/// Formats a line for each finding. The backends of a device that pass their test share one line.
fn in_words(findings: &[Finding]) -> String {
    let passed = |f: &Finding| f.state == State::Ok && f.backend.is_some();
    let groups = findings.chunk_by(|a, b| passed(a) && passed(b));
    let lines = groups.map(|group| match group {
        [alone] => (alone.state.name(), alone.what.clone(), alone.details.clone()),
        several => {
            let names: Vec<_> = several.iter().filter_map(|f| f.backend).collect();
            let device = several[0].what.split(' ').next().unwrap_or_default();
            let details =
                format!("{} passed, each with a verified small solve: {}", names.len(), names.join(", "));
            ("ok", format!("{device} backends"), details)
        }
    });
    let lines: Vec<_> = lines.collect();
    let widest = lines.iter().map(|(_, what, _)| what.len()).max().unwrap_or(0);
    let line = |(state, what, details): &(&str, String, String)| {
        wrapped(&format!("{state:<8} {what:<widest$}  "), details)
    };
    lines.iter().map(line).collect()
}
