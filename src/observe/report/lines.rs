//! The report in words.

use super::Report;
use crate::observe::phrases::{Line, around, count, ended, labelled, short, speed, time};
use crate::text::{duration, thousands};
use std::fmt;

impl Report {
    /// Lines of a label and a text: what a user needs to know of every solve.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let r = self;
        let mut lines = vec![("result", result(r))];
        lines.extend(r.caution.clone().map(|caution| ("caution", caution)));
        lines.extend(r.hint.clone().map(|hint| ("hint", hint)));
        lines.extend(r.note.clone().map(|note| ("note", note)));
        let (residual, tolerance) = (r.residual_true, short(r.rtol));
        lines.push((
            "residual",
            format!("relative residual {residual:.3e}, recomputed as b - A x; tolerance {tolerance}"),
        ));
        if let Some(error) = r.error_max {
            lines.push(("error", format!("max error {error:.3e} (against the known solution)")));
        }
        lines.push(time(r.seconds_solve, &r.device, &r.backend, &r.precision));
        if r.iterations > 0 {
            let rate = format!("{} an iteration", duration(r.seconds_per_iteration));
            // What the product of a caller moves is not known.
            lines.push(match r.bytes_per_iteration {
                0 => ("speed", rate),
                _ => speed(r.gigabytes_per_second, r.percent_of_limit, &rate),
            });
        }
        lines
    }

    /// More lines: all else that there is to know.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        details(self)
    }
}

/// The lines that a user needs to know of every solve.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&labelled(&self.lines()))
    }
}

fn result(r: &Report) -> String {
    let stands = r.stand_in.as_ref().map_or(String::new(), |real| format!(", a stand-in for {real}"));
    let precond = match r.preconditioner.as_str() {
        "none" => String::new(),
        precond => format!(" with {precond}"),
    };
    let restarts = match r.restarts {
        0 => String::new(),
        1 => "; restarted once from b - A x".to_owned(),
        n => format!("; restarted {n} times from b - A x"),
    };
    let ended = ended(&r.message, &r.reason, r.iterations, &r.solver);
    format!("{ended}{precond} on {}{stands}{restarts}", r.matrix)
}

fn details(r: &Report) -> Vec<Line> {
    let start = r.start.as_ref().map_or(String::new(), |file| format!(", from x = {file}"));
    let mut lines = vec![
        ("matrix", format!("{}, {}", count(r.rows, "row"), entries(r.nnz))),
        ("system", format!("b = {}{start}; preconditioner {}", r.right_hand_side, r.preconditioner)),
    ];
    lines.extend(r.backend_because.clone().map(|why| ("because", why)));
    lines.push((
        "residuals",
        format!(
            "{:.3e} by the recursion, {:.3e} recomputed, {:.3e} at most with its rounding; backward error {:.1e}",
            r.residual_recursive, r.residual_true, r.residual_at_most, r.backward_error
        ),
    ));
    // The iteration has seen all that matters of the spectrum only where it has found the answer.
    let known = r.converged && r.caution.is_none();
    if let (true, Some(smallest), Some(largest)) = (known, r.eigenvalue_smallest, r.eigenvalue_largest) {
        let of = if r.preconditioner == "none" { "A" } else { "M A" };
        let condition =
            r.condition_number.map_or(String::new(), |c| format!("; condition number at least {c:.2e}"));
        lines.push((
            "spectrum",
            format!("estimated eigenvalues of {of} from {smallest:.3e} to {largest:.3e}{condition}"),
        ));
    }
    if let Some(bound) = r.iterations_predicted.filter(|_| known) {
        lines.push((
            "bound",
            format!(
                "if the condition number is that, {} at most reduce the energy norm of the error by {} in exact arithmetic",
                count(bound, "iteration"),
                short(r.rtol)
            ),
        ));
    }
    lines.push(around(r.seconds_setup, r.seconds_load));
    let limit = r.limit_seconds_per_iteration;
    let limit = limit.map_or(String::new(), |limit| format!("; the machine's limit is {}", duration(limit)));
    lines.push((
        "traffic",
        format!(
            "{:.1} MB an iteration in {}{limit}",
            r.bytes_per_iteration as f64 / 1e6,
            duration(r.seconds_per_iteration)
        ),
    ));
    lines
}

fn entries(n: u64) -> String {
    format!("{} {}", thousands(n), if n == 1 { "entry" } else { "entries" })
}
