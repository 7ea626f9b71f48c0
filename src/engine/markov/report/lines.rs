//! The report of a chain in words.

use super::{ClassReport, MarkovReport};
use crate::observe::phrases::{around, count, ended, labelled, named, ranked, short, speed, time};
use crate::text::{duration, thousands};
use std::fmt;

/// Classes that are told in words.
const SHOWN: usize = 20;

impl MarkovReport {
    /// Lines of a label and a text: what a user needs to know of every solve.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let classes = self.classes.len() as u64;
        let transient = match self.transient {
            0 => String::new(),
            n => format!(", {} outside", count(n, "state")),
        };
        let classes = format!("{} closed class{}", thousands(classes), if classes == 1 { "" } else { "es" });
        let states = count(self.states, "state");
        let mut lines = vec![("chain", format!("{}: {states}, {classes}{transient}", self.matrix))];
        let shown = self.classes.iter().take(SHOWN).enumerate();
        for (place, class) in shown {
            lines.push(("result", self.of_class(place, class)));
            lines.extend(class.hint.clone().map(|hint| ("hint", hint)));
        }
        if let Some(others) = self.classes.get(SHOWN..).filter(|others| !others.is_empty()) {
            let failed = others.iter().filter(|class| !class.converged).count();
            let text = format!(
                "{} more classes, {failed} of them not converged; the report as JSON lists them",
                others.len()
            );
            lines.push(("result", text));
        }
        let any = if self.classes.len() > 1 { " at most" } else { " =" };
        lines.push((
            "residual",
            format!(
                "||pi P - pi||{any} {:.3e}, recomputed in f64; tolerance {}",
                self.residual,
                short(self.tolerance)
            ),
        ));
        lines.push(time(self.seconds_solve, &self.device, &self.backend, self.precision));
        if self.iterations > 0 {
            let rate = format!("{} an iteration", duration(self.seconds_per_iteration));
            lines.push(speed(self.gigabytes_per_second, self.percent_of_limit, &rate));
        }
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines
    }

    /// The likeliest states of each class, a line for each.
    pub fn table(&self) -> String {
        let of_class = |class: &ClassReport| {
            let rows = class
                .top
                .iter()
                .map(|top| (named(top.state, top.label.as_deref()), format!("{:.12e}", top.probability)));
            ranked(rows.collect())
        };
        self.classes.iter().take(SHOWN).map(of_class).collect()
    }

    /// More lines: all else that there is to know.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        let residuals = |class: &ClassReport| {
            let (residual, recursive) = (class.residual, class.residual_recursive);
            ("residuals", format!("{residual:.3e} recomputed, {recursive:.3e} by the iteration"))
        };
        let mut lines: Vec<_> = self.classes.iter().take(SHOWN).map(residuals).collect();
        lines.push(("matrix", format!("{} entries", thousands(self.nnz))));
        lines.extend(self.backend_because.clone().map(|why| ("because", why)));
        lines.push(around(self.seconds_setup, self.seconds_load));
        lines.push(("traffic", format!("{:.1} MB an iteration", self.bytes_per_iteration as f64 / 1e6)));
        lines
    }

    /// How the solve of the class at this place ended.
    fn of_class(&self, place: usize, class: &ClassReport) -> String {
        let name = match self.classes.len() {
            1 => String::new(),
            _ => format!("class {}, {}: ", place + 1, count(class.states, "state")),
        };
        let period = match class.lazy {
            true => format!("; period {}, so by the lazy chain", class.period),
            false if class.period > 1 => format!("; period {}", class.period),
            false => String::new(),
        };
        let groups = match (class.groups, class.seldom) {
            (Some(groups), Some(seldom)) => {
                format!("; {groups} groups, between which steps are less likely than {seldom:e}")
            }
            _ => String::new(),
        };
        let ended = ended(&class.message, class.reason, class.iterations, self.method);
        format!("{name}{ended}{period}{groups}")
    }
}

/// The lines that a user needs to know of every solve, and the likeliest states.
impl fmt::Display for MarkovReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", labelled(&self.lines()), self.table().trim_end())
    }
}
