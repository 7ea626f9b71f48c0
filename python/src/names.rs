//! The names that settings and methods of the library have in Python.

/// The settings that have other names in Python.
const NAMES: [(&str, &str); 8] = [
    ("damping", "alpha"),
    ("max-iters", "maxiter"),
    ("personalise", "personalization"),
    ("personalise-each", "personalizations"),
    ("precond", "M"),
    ("rhs", "b"),
    ("time-limit", "time_limit"),
    ("variant", "method"),
];

/// Returns the name of a setting.
pub fn name_of(setting: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == setting).map_or(setting, |(_, name)| name)
}

/// Formats a setting and its value as an argument, `maxiter=1300`, and a method as a call. The package has no
/// checkpoints: their settings have no name.
pub fn as_argument(setting: &str, value: &str) -> String {
    match (setting, value) {
        ("method", method @ ("pagerank" | "markov")) => format!("solver.{method}(A)"),
        ("method", method) => format!("solver.{method}(A, b)"),
        ("variant", "classic") => "method=\"cg\"".to_owned(),
        ("precond", "none") => "M=None".to_owned(),
        ("coords", _) => "coordinates=".to_owned(),
        ("project", _) => "project=True".to_owned(),
        ("vectors", _) => "python -m solver info --vectors".to_owned(),
        ("checkpoint" | "resume", _) => String::new(),
        (setting, "") => name_of(setting).to_owned(),
        (setting, number) if number.parse::<f64>().is_ok() => format!("{}={number}", name_of(setting)),
        (setting, text) => format!("{}={text:?}", name_of(setting)),
    }
}
