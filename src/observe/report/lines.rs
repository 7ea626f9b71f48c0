//! The report as text.

use super::Report;
use crate::observe::phrases::{Line, count, ended, labelled, short};
use crate::observe::slowest;
use crate::text::{duration, thousands};
use std::fmt;

impl Report {
    /// Returns the main lines of the report, each a label and a text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let r = self;
        let mut lines = vec![("result", result(r))];
        lines.extend(r.caution.clone().map(|caution| ("caution", caution)));
        lines.extend(r.hint.clone().map(|hint| ("hint", hint)));
        lines.extend(r.note.clone().map(|note| ("note", note)));
        let (residual, tolerance) = (r.residual_true, short(r.rtol));
        lines.extend(columns(r));
        let largest = if r.columns.is_empty() { "" } else { "largest " };
        // A caller's product that has ended the solve is not called to recompute the residual.
        let (residual, how) = match residual.is_nan() && r.residual_recursive.is_finite() {
            true => (r.residual_recursive, "of the recurrence; not recomputed"),
            false => (residual, "recomputed"),
        };
        lines.push((
            "residual",
            format!("{largest}relative residual {residual:.3e} ({how}; tolerance {tolerance})"),
        ));
        if let Some(error) = r.error_max {
            lines.push(("error", format!("max error {error:.3e} (against the known solution)")));
        }
        let here = r.iterations.saturating_sub(r.iterations_earlier.unwrap_or(0));
        lines.extend(r.multigrid.as_ref().map(|levels| levels.line(here, r.convergence_factor)));
        lines.push(r.time(None));
        lines.extend(resumed(r));
        lines.extend(r.speed(r.rate()));
        lines
    }

    /// Returns the seconds of the iterations of this run and of the runs before it, which it has resumed.
    pub(crate) fn seconds_of_all_runs(&self) -> f64 {
        self.seconds_solve + self.seconds_earlier.unwrap_or(0.0)
    }

    /// Returns the detailed lines of the report.
    pub(crate) fn details(&self) -> Vec<(&'static str, String)> {
        details(self)
    }
}

/// Formats the main lines of the report.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&labelled(&self.lines()))
    }
}

/// Tells the iterations of this run and of all runs apart, after a resume.
fn resumed(r: &Report) -> Option<Line> {
    let (before, seconds) = (r.iterations_earlier?, r.seconds_earlier?);
    let here = r.iterations.saturating_sub(before);
    let text = format!(
        "from iteration {}: {} in {} before it, {} in {} in this run, {} in all",
        thousands(before),
        count(before, "iteration"),
        duration(seconds),
        thousands(here),
        duration(r.seconds_solve),
        duration(r.seconds_of_all_runs()),
    );
    Some(("resumed", text))
}

/// Describes the iterations of several columns, and the first columns that did not converge.
fn columns(r: &Report) -> Vec<Line> {
    /// The most columns that are named.
    const NAMED: usize = 5;
    let mut counts: Vec<u64> = r.columns.iter().map(|column| column.iterations).collect();
    counts.sort_unstable();
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return Vec::new() };
    let slowest = r.columns[slowest(r.columns.iter().map(|column| column.iterations as usize))].column;
    let middle = counts[counts.len() / 2];
    let mut lines = vec![(
        "columns",
        format!(
            "{}: iterations {} at least, {} in the middle, {} at most (column {slowest})",
            counts.len(),
            thousands(*least),
            thousands(middle),
            thousands(*most)
        ),
    )];
    if let Some(rank) = r.block_rank {
        let all = r.columns.len();
        lines.push(("block", format!("rank {rank}: the linearly independent residuals of {all} columns")));
    }
    let failed: Vec<_> = r.columns.iter().filter(|column| !column.converged).collect();
    for column in failed.iter().take(NAMED) {
        lines.push(("failed", format!("column {}: {}", column.column, column.message)));
    }
    if failed.len() > NAMED {
        lines.push((
            "failed",
            format!("{} more; the complete report lists all columns", failed.len() - NAMED),
        ));
    }
    lines
}

fn result(r: &Report) -> String {
    let stand_in = r.stand_in.as_ref().map_or(String::new(), |real| format!(", a stand-in for {real}"));
    let precond = match r.preconditioner.as_str() {
        "none" => String::new(),
        precond => format!(" with {precond}"),
    };
    let restarts = match r.restarts {
        0 => String::new(),
        1 => "; restarted once from b - A x".to_owned(),
        n => format!("; restarted {n} times from b - A x"),
    };
    let reason = if r.columns.is_empty() { &r.reason } else { "" };
    let ended = ended(&r.message, reason, r.iterations, &r.solver);
    format!("{ended}{precond} on {}{stand_in}{restarts}", r.matrix)
}

fn details(r: &Report) -> Vec<Line> {
    let start = r.start.as_ref().map_or(String::new(), |file| format!("; start vector {file}"));
    let mut lines = vec![
        ("matrix", format!("{}, {}", count(r.rows, "row"), entries(r.nnz))),
        (
            "system",
            format!("right-hand side {}{start}; preconditioner {}", r.right_hand_side, r.preconditioner),
        ),
    ];
    lines.extend(r.chosen());
    lines.push((
        "residuals",
        format!(
            "recurrence {:.3e}, recomputed {:.3e}, upper bound with rounding {:.3e}; backward error {:.1e}",
            r.residual_recursive, r.residual_true, r.residual_at_most, r.backward_error
        ),
    ));
    // The estimated spectrum is complete enough only if the solve has found the answer.
    let reliable = r.converged && r.caution.is_none();
    if let (true, Some(smallest), Some(largest)) = (reliable, r.eigenvalue_smallest, r.eigenvalue_largest) {
        let operator = if r.preconditioner == "none" { "A" } else { "M A (M: preconditioner)" };
        let condition =
            r.condition_number.map_or(String::new(), |c| format!("; condition number at least {c:.2e}"));
        lines.push((
            "spectrum",
            format!("estimated spectrum of {operator}: {smallest:.3e} to {largest:.3e}{condition}"),
        ));
    }
    if let Some(bound) = r.iterations_predicted.filter(|_| reliable) {
        lines.push((
            "bound",
            format!(
                "if this condition number is exact, at most {} reduce the energy norm of the error by {} in exact arithmetic",
                count(bound, "iteration"),
                short(r.rtol)
            ),
        ));
    }
    lines.push(r.around());
    let limit = r.limit_seconds_per_iteration;
    let limit = limit
        .map_or(String::new(), |limit| format!("; {} at the measured stream bandwidth", duration(limit)));
    lines.push(r.traffic(&format!(" in {}{limit}", duration(r.seconds_per_iteration))));
    lines
}

fn entries(n: u64) -> String {
    format!("{} {}", thousands(n), if n == 1 { "entry" } else { "entries" })
}
