//! The presentation of options: the groups of help texts, and switches with values.

use clap::{Arg, ArgAction};

/// The group of options that all commands have.
pub(super) const GENERAL: &str = "General";

/// The groups of options in help texts and the options of each group, both in display order.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Input",
        &[
            "matrix",
            "rhs",
            "rhs_count",
            "x0",
            "coords",
            "near_null",
            "as_stored",
            "first_index",
            "assume_symmetric",
            "project",
            "columns",
            "labels",
            "normalize",
            "self_loops",
            "duplicates",
            "resume",
            "config",
        ],
    ),
    (
        "Method",
        &[
            "method",
            "precond",
            "variant",
            "damping",
            "dangling",
            "personalise",
            "personalise_each",
            "classes",
        ],
    ),
    ("Device", &["device", "partition", "backend", "tune", "precision", "threads"]),
    ("Stopping", &["rtol", "tol", "rtol_initial", "atol", "max_iters", "time_limit"]),
    (
        "Output",
        &[
            "output",
            "history",
            "plot",
            "title",
            "checkpoint",
            "checkpoint_every",
            "top",
            "json",
            "explain",
            "profile",
            "monitor",
            "dry_run",
        ],
    ),
];

/// Assigns an option to its group.
pub(super) fn arranged(arg: Arg) -> Arg {
    let id = arg.get_id().as_str().to_owned();
    let position = GROUPS.iter().find_map(|(name, ids)| Some((*name, ids.iter().position(|i| *i == id)?)));
    match position {
        Some((group, order)) => arg.help_heading(group).display_order(order),
        None => arg,
    }
}

/// Gives a switch an optional value, so that the command line can turn off a switch that a configuration file
/// turns on: `--json` means `--json=true`, and `--json=false` is accepted.
pub(super) fn switch(arg: Arg) -> Arg {
    match arg.get_action() {
        ArgAction::SetTrue => arg
            .action(ArgAction::Set)
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_value("false")
            .hide_default_value(true)
            .hide_possible_values(true)
            .default_missing_value("true"),
        _ => arg,
    }
}
