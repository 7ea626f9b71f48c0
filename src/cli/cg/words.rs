//! The report for people.

use crate::cli::layout::labelled;
use crate::cli::{duration, thousands};
use crate::observe::Report;

/// How many, and how they were come by.
fn iterations(r: &Report) -> String {
    let restarts = match r.restarts {
        0 => String::new(),
        1 => ", started again once from b - A x".to_owned(),
        n => format!(", started again {n} times from b - A x"),
    };
    format!("{} iterations{restarts}", thousands(r.iterations))
}

/// The caution of the report, as the end of a line.
fn caution(r: &Report) -> String {
    r.caution.as_ref().map_or(String::new(), |caution| format!("; caution: {caution}"))
}

pub(super) fn in_words(r: &Report) -> String {
    let stands = r.stand_in.as_ref().map_or(String::new(), |real| format!(", a stand-in for {real}"));
    let size = format!("{} rows, {} entries", thousands(r.rows), thousands(r.nnz));
    let start = r.start.as_ref().map_or(String::new(), |file| format!(", from x = {file}"));
    let mut lines = vec![
        ("matrix", format!("{}{stands}: {size}", r.matrix)),
        ("ran on", format!("{}, backend {}, {}", r.device, r.backend, r.precision)),
        (
            "method",
            format!("{}, preconditioner {}, b = {}{start}", r.solver, r.preconditioner, r.right_hand_side),
        ),
        ("result", format!("{}; {}{}", r.message, iterations(r), caution(r))),
        (
            "residual",
            format!(
                "{:.3e} by b - A x in f64, {:.3e} by the recursion; asked for {:.3e}; backward error {:.1e}",
                r.residual_true, r.residual_recursive, r.rtol, r.backward_error
            ),
        ),
    ];
    if let (Some(smallest), Some(largest)) = (r.eigenvalue_smallest, r.eigenvalue_largest) {
        let of = if r.preconditioner == "none" { "A" } else { "M A" };
        let condition = r.condition_number.map_or(String::new(), |c| format!(", condition {c:.2e}"));
        let predicted = r.iterations_predicted.map_or(String::new(), |p| {
            format!(
                "; with that condition {} iterations take the energy norm of the error to {:.1e} of what it was, but for rounding",
                thousands(p),
                r.rtol
            )
        });
        lines.push((
            "spectrum",
            format!("{of} from {smallest:.3e} to {largest:.3e}, as seen{condition}{predicted}"),
        ));
    }
    if let Some(why) = &r.backend_because {
        lines.insert(2, ("because", why.clone()));
    }
    if let Some(note) = &r.note {
        lines.push(("note", note.clone()));
    }
    if let Some(error) = r.error_max {
        lines.push(("error", format!("{error:.3e} at most in any entry of x")));
    }
    lines.push((
        "time",
        format!(
            "solve {} ({} an iteration), setup {}, reading {}",
            duration(r.seconds_solve),
            duration(r.seconds_per_iteration),
            duration(r.seconds_setup),
            duration(r.seconds_load)
        ),
    ));
    if r.iterations > 0 {
        let share = match (r.limit_seconds_per_iteration, r.percent_of_limit) {
            (Some(limit), Some(percent)) => {
                format!("; {percent:.0} % of the machine's limit, {} an iteration", duration(limit))
            }
            _ => String::new(),
        };
        let megabytes = r.bytes_per_iteration as f64 / 1e6;
        lines.push((
            "speed",
            format!("{:.1} GB/s at {megabytes:.1} MB an iteration{share}", r.gigabytes_per_second),
        ));
    }
    labelled(9, &lines)
}
