//! The report of a ranking as text.

use super::{ColumnRanks, RankReport, Top};
use crate::observe::phrases::{Line, count, ended, labelled, named, ranked, short};
use crate::text::{duration, thousands};
use std::fmt;

impl RankReport {
    /// Returns the main lines of the report, each a label and a text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let stand_in = self.stand_in.map_or(String::new(), |real| format!(", a stand-in for {real}"));
        let reason = if self.columns.is_empty() { &self.reason } else { "" };
        let ended = ended(&self.message, reason, self.iterations, self.method);
        let mut lines = vec![("result", format!("{ended} on {}{stand_in}", self.graph))];
        lines.extend(self.hint.iter().map(|hint| ("hint", hint.clone())));
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines.push(("graph", self.counts()));
        lines.push((
            "error",
            match self.error_bound.is_finite() {
                true => format!(
                    "{}certified bound {:.3e} on the l1 error of the ranks (tolerance {})",
                    if self.columns.is_empty() { "" } else { "largest " },
                    self.error_bound,
                    short(self.tolerance)
                ),
                false => "no bound on the error of the ranks could be certified".to_owned(),
            },
        ));
        lines.push(self.time(Some(("error bound", self.seconds_certify))));
        lines.extend(self.speed(format!("{:.0} million links/s", self.links_per_second / 1e6)));
        lines
    }

    /// Returns the highest ranks, a line for each.
    pub(crate) fn table(&self) -> String {
        self.columns.iter().map(column).collect::<String>() + &highest(&self.top)
    }

    /// Returns the detailed lines of the report.
    pub(crate) fn details(&self) -> Vec<(&'static str, String)> {
        details(self)
    }

    /// Describes the counts of the graph: vertices, links and their kinds.
    fn counts(&self) -> String {
        let all = [
            (self.vertices, "vertex", "vertices"),
            (self.links, "link", "links"),
            (self.sinks, "sink", "sinks"),
            (self.self_loops, "self-loop", "self-loops"),
            (self.duplicates, "duplicate", "duplicates"),
        ];
        let shown = all.iter().enumerate().filter(|(index, (n, ..))| *index < 2 || *n > 0);
        let words = |(_, &(n, one, many)): (usize, &(u64, &str, &str))| {
            format!("{} {}", thousands(n), if n == 1 { one } else { many })
        };
        shown.map(words).collect::<Vec<_>>().join(", ")
    }
}

/// Formats the main lines of the report and the highest ranks.
impl fmt::Display for RankReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", labelled(&self.lines()), self.table().trim_end())
    }
}

/// Formats one of several personalisations: how it ended, and its highest ranks.
fn column(column: &ColumnRanks) -> String {
    let ColumnRanks { column: number, personalise, error_bound, iterations, message, .. } = column;
    let iterations = count(*iterations, "iteration");
    format!("\ncolumn {number}: {personalise}; {message}, {iterations}, error bound {error_bound:.3e}\n")
        + &highest(&column.top)
}

fn highest(top: &[Top]) -> String {
    let rows = top.iter().map(|top| {
        let note = if top.above_next_is_certain { "" } else { "  (order with the next not certified)" };
        (named(top.id, top.label.as_deref()), format!("{:.12e}{note}", top.rank))
    });
    ranked(rows.collect())
}

fn details(r: &RankReport) -> Vec<Line> {
    let extrapolations = match r.extrapolations {
        0 => String::new(),
        times => format!(", {}", count(times, "extrapolation")),
    };
    let mut lines = vec![(
        "method",
        format!("{}{extrapolations}, damping {}, dangling {}", r.method, r.damping, r.dangling),
    )];
    lines.extend(r.chosen());
    lines.push((
        "estimate",
        format!("error {:.3e} estimated from the last step; sum of ranks {:.15}", r.error_estimate, r.sum),
    ));
    lines.push(("bound", format!("certified in {}", duration(r.seconds_certify))));
    lines.push(r.around());
    lines.push(r.traffic(&format!(" in {}", duration(r.seconds_per_iteration))));
    lines
}
