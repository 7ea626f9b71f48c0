//! The report of a chain as text.

use super::{ClassReport, MarkovReport};
use crate::observe::phrases::{count, ended, labelled, named, ranked, short};
use crate::text::thousands;
use std::fmt;

/// Maximum number of classes in the text.
const SHOWN: usize = 20;

impl MarkovReport {
    /// Returns the main lines of the report, each a label and a text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let classes = self.classes.len() as u64;
        let transient = match self.transient {
            0 => String::new(),
            n => format!(", {}", count(n, "transient state")),
        };
        let classes = format!("{} closed class{}", thousands(classes), if classes == 1 { "" } else { "es" });
        let states = count(self.states, "state");
        let mut lines = vec![("chain", format!("{}: {states}, {classes}{transient}", self.matrix))];
        let shown = self.classes.iter().take(SHOWN).enumerate();
        for (index, class) in shown {
            lines.push(("result", self.class_result(index, class)));
            lines.extend(class.hint.clone().map(|hint| ("hint", hint)));
        }
        if let Some(rest) = self.classes.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let failed = rest.iter().filter(|class| !class.converged).count();
            let text = format!(
                "{} more classes, {failed} of them not converged; the JSON report lists all classes",
                rest.len()
            );
            lines.push(("result", text));
        }
        let relation = if self.classes.len() > 1 { "<=" } else { "=" };
        lines.push((
            "residual",
            format!(
                "||pi P - pi|| {relation} {:.3e} (recomputed in f64; tolerance {})",
                self.residual,
                short(self.tolerance)
            ),
        ));
        lines.push(self.time(None));
        lines.extend(self.speed(self.rate()));
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines
    }

    /// Returns the most probable states of each class, a line for each state.
    pub(crate) fn table(&self) -> String {
        let of_class = |class: &ClassReport| {
            let rows = class
                .top
                .iter()
                .map(|top| (named(top.state, top.label.as_deref()), format!("{:.12e}", top.probability)));
            ranked(rows.collect())
        };
        self.classes.iter().take(SHOWN).map(of_class).collect()
    }

    /// Returns the detailed lines of the report.
    pub(crate) fn details(&self) -> Vec<(&'static str, String)> {
        let residuals = |class: &ClassReport| {
            let (residual, recursive) = (class.residual, class.residual_recursive);
            ("residuals", format!("recomputed {residual:.3e}, by the iteration {recursive:.3e}"))
        };
        let mut lines: Vec<_> = self.classes.iter().take(SHOWN).map(residuals).collect();
        lines.push(("matrix", format!("{} entries", thousands(self.nnz))));
        lines.extend(self.chosen());
        lines.push(self.around());
        lines.push(self.traffic(""));
        lines
    }

    /// Describes how the solve of the class with this index ended.
    fn class_result(&self, index: usize, class: &ClassReport) -> String {
        let name = match self.classes.len() {
            1 => String::new(),
            _ => format!("class {}, {}: ", index + 1, count(class.states, "state")),
        };
        let period = match class.lazy {
            true => format!("; period {}, solved as the lazy chain (P + I) / 2", class.period),
            false if class.period > 1 => format!("; period {}", class.period),
            false => String::new(),
        };
        let groups = match (class.groups, class.seldom) {
            (Some(groups), Some(seldom)) => {
                format!("; {groups} groups, with step probabilities below {seldom:e} between them")
            }
            _ => String::new(),
        };
        let ended = ended(&class.message, class.reason, class.iterations, self.method);
        format!("{name}{ended}{period}{groups}")
    }
}

/// Formats the main lines of the report and the most probable states.
impl fmt::Display for MarkovReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", labelled(&self.lines()), self.table().trim_end())
    }
}
