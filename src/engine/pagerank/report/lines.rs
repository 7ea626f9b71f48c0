//! The report of a ranking in words.

use super::RankReport;
use crate::observe::phrases::{Line, around, count, ended, labelled, named, ranked, short, speed, time};
use crate::text::{duration, thousands};
use std::fmt;

impl RankReport {
    /// Lines of a label and a text: what a user needs to know of every solve.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let stands = self.stand_in.map_or(String::new(), |real| format!(", a stand-in for {real}"));
        let ended = ended(&self.message, self.reason, self.iterations, self.method);
        let mut lines = vec![("result", format!("{ended} on {}{stands}", self.graph))];
        lines.extend(self.hint.iter().map(|hint| ("hint", hint.clone())));
        lines.extend(self.notes.iter().map(|note| ("note", note.clone())));
        lines.push(("graph", self.counts()));
        lines.push((
            "error",
            match self.error_bound.is_finite() {
                true => format!(
                    "at most {:.3e} in all ranks together, certified; tolerance {}",
                    self.error_bound,
                    short(self.tolerance)
                ),
                false => "nothing is certain of these ranks".to_owned(),
            },
        ));
        lines.push(time(self.seconds_solve, &self.device, &self.backend, self.precision));
        if self.iterations > 0 {
            let rate = format!("{:.0} million links a second", self.links_per_second / 1e6);
            lines.push(speed(self.gigabytes_per_second, self.percent_of_limit, &rate));
        }
        lines
    }

    /// The highest ranks, a line for each.
    pub fn table(&self) -> String {
        let rows = self.top.iter().map(|top| {
            let doubt = if top.above_next_is_certain { "" } else { "  (order with the next uncertain)" };
            (named(top.id, top.label.as_deref()), format!("{:.12e}{doubt}", top.rank))
        });
        ranked(rows.collect())
    }

    /// More lines: all else that there is to know.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        details(self)
    }

    /// What was counted in the graph.
    fn counts(&self) -> String {
        let all = [
            (self.vertices, "vertex", "vertices"),
            (self.links, "link", "links"),
            (self.sinks, "sink", "sinks"),
            (self.self_loops, "self-loop", "self-loops"),
            (self.duplicates, "duplicate", "duplicates"),
        ];
        let told = all.iter().enumerate().filter(|(place, (n, ..))| *place < 2 || *n > 0);
        let words = |(_, &(n, one, many)): (usize, &(u64, &str, &str))| {
            format!("{} {}", thousands(n), if n == 1 { one } else { many })
        };
        told.map(words).collect::<Vec<_>>().join(", ")
    }
}

/// The lines that a user needs to know of every solve, and the highest ranks.
impl fmt::Display for RankReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", labelled(&self.lines()), self.table().trim_end())
    }
}

fn details(r: &RankReport) -> Vec<Line> {
    let ahead = match r.extrapolations {
        0 => String::new(),
        times => format!(", {}", count(times, "extrapolation")),
    };
    let mut lines =
        vec![("method", format!("{}{ahead}, damping {}, dangling {}", r.method, r.damping, r.dangling))];
    lines.extend(r.backend_because.clone().map(|why| ("because", why)));
    lines.push((
        "estimate",
        format!("error {:.3e} by the last step; sum of ranks {:.15}", r.error_estimate, r.sum),
    ));
    lines.push(("certified", format!("in {}", duration(r.seconds_certify))));
    lines.push(around(r.seconds_setup, r.seconds_load));
    lines.push((
        "traffic",
        format!(
            "{:.1} MB an iteration in {}",
            r.bytes_per_iteration as f64 / 1e6,
            duration(r.seconds_per_iteration)
        ),
    ));
    lines
}
