//! The texts of a picture: the title lists the fields that all runs share, the legend those in
//! which they differ.

use super::axis::duration;
use super::letters::text_width;
use super::scene::Lettering;
use crate::observe::report::Measure;
use crate::observe::{Common, History, Report};

/// The index of the preconditioner among the fields.
const PRECOND: usize = 2;
/// Longest field of a title or legend, in characters.
const LONGEST_FIELD: usize = 44;

/// User-defined title and names of runs, in place of those derived from the histories.
#[derive(Clone, Debug, Default)]
pub struct Captions {
    /// The title.
    pub title: Option<String>,
    /// A name for each history, or empty.
    pub labels: Vec<String>,
}

/// Returns the fields that describe a run, in the order of printing. The preconditioner `none`
/// gives an empty field.
fn fields(report: &Report, matrix: String) -> [String; 6] {
    let Common { solver, device, backend, precision, .. } = &report.common;
    let precond = if report.preconditioner == "none" { "" } else { &report.preconditioner };
    let [solver, precond, backend, precision, device] =
        [solver, precond, backend, precision, device].map(shorten);
    [solver, matrix, precond, backend, precision, device]
}

/// Returns the fields of all runs.
fn all_fields(histories: &[History]) -> Vec<[String; 6]> {
    let matrices: Vec<&str> = histories.iter().map(|history| history.report.matrix.as_str()).collect();
    let fields_of = |history: &History| {
        let report = &history.report;
        let name =
            shorten(shortest_unique(&report.matrix, &matrices)) + &imitated(report.stand_in.as_deref());
        fields(report, name)
    };
    histories.iter().map(fields_of).collect()
}

/// Returns the name of a file without folders, except for those that distinguish it from other
/// files of the same name.
fn shortest_unique<'a>(path: &'a str, all: &[&str]) -> &'a str {
    let parts = path.matches('/').count() + 1;
    let unique = |&parts: &usize| {
        let own = last_parts(path, parts);
        !own.is_empty() && all.iter().all(|other| *other == path || last_parts(other, parts) != own)
    };
    (1..parts).find(unique).map_or(path, |parts| last_parts(path, parts))
}

/// Returns the last components of a path.
fn last_parts(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

/// Formats a matrix as its name without folders, and the real matrix that it imitates.
pub(super) fn named(matrix: &str, stand_in: Option<&str>) -> String {
    shorten(shortest_unique(matrix, &[])) + &imitated(stand_in)
}

fn imitated(stand_in: Option<&str>) -> String {
    stand_in.map_or(String::new(), |real| format!(" (a stand-in for {})", shorten(real)))
}

/// Returns fields that titles omit, used to distinguish runs that agree in all other fields.
fn further_fields(report: &Report) -> [String; 3] {
    let start = report.start.as_ref().map_or(String::new(), |file| format!("from x = {}", shorten(file)));
    let b = match report.right_hand_side.as_str() {
        "" => String::new(),
        b => format!("b = {}", shorten(b)),
    };
    [b, start, format!("{} {:e}", named_tolerance(report.measure), report.rtol)]
}

/// Shortens a long path by its leading folders and any other long field in the middle, and
/// replaces unprintable characters.
pub(super) fn shorten(field: &str) -> String {
    let clean = printable(field);
    if clean.chars().count() <= LONGEST_FIELD {
        return clean;
    }
    let tails = clean.match_indices('/').map(|(at, _)| &clean[at..]);
    if let Some(tail) = tails.into_iter().find(|tail| tail.chars().count() < LONGEST_FIELD) {
        return format!("…{tail}");
    }
    let letters: Vec<char> = clean.chars().collect();
    let half = LONGEST_FIELD / 2;
    let (begin, end) = (&letters[..half], &letters[letters.len() + half + 1 - LONGEST_FIELD..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn join<'a>(fields: impl IntoIterator<Item = &'a String>) -> String {
    let fields: Vec<&str> = fields.into_iter().map(String::as_str).filter(|f| !f.trim().is_empty()).collect();
    fields.join(" · ")
}

/// Returns the user's title, else all fields of a single run, or the fields that all runs share.
pub(super) fn title(histories: &[History], captions: &Captions) -> String {
    if let Some(title) = &captions.title {
        return printable(title);
    }
    let all = all_fields(histories);
    let Some(first) = all.first() else { return String::new() };
    let shared = first.iter().enumerate().filter(|&(i, field)| all.iter().all(|run| run[i] == *field));
    let title = join(shared.map(|(_, field)| field));
    if title.is_empty() { "convergence".into() } else { title }
}

/// Returns the line under the title: how a single run ended, or how many of several runs ended in each way.
pub(super) fn verdict(histories: &[History]) -> String {
    if let [history] = histories {
        return verdict_of_one(&history.report);
    }
    let mut ends: Vec<(String, usize)> = Vec::new();
    for history in histories {
        let end = end(&history.report);
        match ends.iter_mut().find(|(known, _)| *known == end) {
            Some((_, count)) => *count += 1,
            None => ends.push((end, 1)),
        }
    }
    let runs = format!("{} runs", histories.len());
    if histories.iter().all(|history| history.report.converged) {
        return format!("{runs}, all converged");
    }
    let ends: Vec<String> = ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
    format!("{runs}: {}", ends.join(", "))
}

/// Describes how a run ended, with the reason.
fn end(report: &Report) -> String {
    match (report.reason.as_str(), report.converged) {
        ("converged" | "", true) => "converged".to_owned(),
        ("", false) => "not converged".to_owned(),
        (reason, true) => reason.replace('_', " "),
        (reason, false) => format!("not converged ({})", reason.replace('_', " ")),
    }
}

fn verdict_of_one(report: &Report) -> String {
    if !report.columns.is_empty() {
        return format!(
            "{}; the slowest column, drawn bold, took {} iterations and {}",
            report.message,
            report.iterations,
            duration(report.seconds_of_all_runs())
        );
    }
    if report.converged && matches!(report.reason.as_str(), "converged" | "") {
        let plural = if report.iterations == 1 { "" } else { "s" };
        return format!(
            "converged in {} iteration{plural}, {}{}, {} {:.1e}",
            report.iterations,
            duration(report.seconds_of_all_runs()),
            if report.seconds_setup > 0.0 {
                format!(" and {} of setup", duration(report.seconds_setup))
            } else {
                String::new()
            },
            recomputed(report),
            report.residual_true
        );
    }
    let message =
        if report.message.is_empty() { report.reason.replace('_', " ") } else { report.message.clone() };
    let message: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match (report.converged || message.starts_with("not converged"), message.is_empty()) {
        (true, _) => message,
        (false, true) => "not converged".into(),
        (false, false) => format!("not converged: {message}"),
    }
}

/// Names the quantity that was recomputed at the end.
fn recomputed(report: &Report) -> &'static str {
    match report.measure {
        Measure::Residual => "true residual",
        Measure::ErrorBound => "certified error",
        Measure::Balance => "true residual",
    }
}

/// Names the recomputed quantity for the legend.
pub(super) fn recomputed_mark(histories: &[History]) -> &'static str {
    match measure(histories) {
        Some(Measure::ErrorBound) => "certified bound",
        Some(Measure::Balance) => "recomputed πP − π",
        _ => "recomputed b − Ax",
    }
}

/// Returns the title of the y axis: the measure of convergence.
pub(super) fn y_title(histories: &[History]) -> &'static str {
    match measure(histories) {
        Some(Measure::Residual) => "relative residual ‖r‖ / ‖b‖",
        Some(Measure::ErrorBound) => "bound on the error ‖x − x*‖₁",
        Some(Measure::Balance) => "residual ‖πP − π‖₁",
        None => "residual, or bound on the error",
    }
}

/// Names the tolerance of a measure: that of residuals is relative to the right-hand side.
fn named_tolerance(measure: Measure) -> &'static str {
    if measure == Measure::Residual { "rtol" } else { "tol" }
}

/// Names the tolerances of all histories.
pub(super) fn tolerance_name(histories: &[History]) -> &'static str {
    measure(histories).map_or("tolerance", named_tolerance)
}

/// Returns the measure that all histories share.
fn measure(histories: &[History]) -> Option<Measure> {
    let first = histories.first()?.report.measure;
    histories.iter().all(|history| history.report.measure == first).then_some(first)
}

/// Returns a name for each run: the user's, or one derived from the fields that differ between runs. Further
/// fields are added if runs have the same name otherwise. A single run has no name, and runs without any
/// difference are numbered.
pub(super) fn names(histories: &[History], captions: &Captions) -> Vec<String> {
    if histories.len() == captions.labels.len() {
        return captions.labels.iter().map(|label| printable(label)).collect();
    }
    if histories.len() < 2 {
        return Vec::new();
    }
    let distinguishing = |all: &[Vec<String>]| -> Vec<String> {
        let differs = |i: usize| all.iter().any(|run| run[i] != all[0][i]);
        let name = |run: &Vec<String>| match join((0..run.len()).filter(|&i| differs(i)).map(|i| &run[i])) {
            // The remaining runs have preconditioners.
            name if name.is_empty() && differs(PRECOND) => "no preconditioner".to_owned(),
            name => name,
        };
        all.iter().map(name).collect()
    };
    let mut all: Vec<Vec<String>> = all_fields(histories).into_iter().map(Vec::from).collect();
    let mut named = distinguishing(&all);
    if (0..named.len()).any(|i| named[..i].contains(&named[i])) {
        all.iter_mut().zip(histories).for_each(|(run, h)| run.extend(further_fields(&h.report)));
        named = distinguishing(&all);
    }
    let number = |(i, name): (usize, &String)| {
        let same_name = named.iter().filter(|other| *other == name).count();
        let nth = 1 + named[..i].iter().filter(|other| *other == name).count();
        match (name.is_empty(), same_name) {
            (true, _) => format!("run {nth}"),
            (false, 1) => name.clone(),
            (false, _) => format!("{name} (run {nth})"),
        }
    };
    named.iter().enumerate().map(number).collect()
}

/// Shortens a text that is wider than `room` by an ellipsis in its middle: names often differ
/// at their end only.
pub(super) fn fit(text: &str, lettering: Lettering, room: f64) -> String {
    cut(text, lettering, room, 0.5)
}

/// Shortens a text that is wider than `room` by an ellipsis; of the letters that remain, this
/// share stands before it.
fn cut(text: &str, lettering: Lettering, room: f64, share: f64) -> String {
    if text_width(text, lettering) <= room {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| {
        let before = (kept as f64 * share).ceil() as usize;
        let part = |part: &[char]| part.iter().collect::<String>();
        let (begin, end) = (part(&letters[..before]), part(&letters[letters.len() - (kept - before)..]));
        format!("{}…{}", begin.trim_end(), end.trim_start())
    };
    // The width grows with the number of letters, except for kerning.
    let (mut fits, mut wide) = (0, letters.len());
    while fits + 1 < wide {
        let middle = (fits + wide) / 2;
        match text_width(&shortened(middle), lettering) <= room {
            true => fits = middle,
            false => wide = middle,
        }
    }
    shortened(fits)
}

/// Shortens all names to `room` so that different names stay different: by an ellipsis in the middle, nearer
/// to the beginning or to the end, or else by a number after the ellipsis.
pub(super) fn fit_names(names: &[impl AsRef<str>], lettering: Lettering, room: f64) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let repeats = |all: &[String], i: usize| (0..i).any(|j| names[j] != names[i] && all[j] == all[i]);
    let shorter = |share: f64| names.iter().map(|name| cut(name, lettering, room, share)).collect::<Vec<_>>();
    let shares = [0.5, 0.3, 0.7, 0.0, 0.15, 0.85, 1.0];
    let distinct = |all: &Vec<String>| !(0..all.len()).any(|i| repeats(all, i));
    if let Some(all) = shares.into_iter().map(shorter).find(distinct) {
        return all;
    }
    let mut all = shorter(0.5);
    for i in 0..all.len() {
        if repeats(&all, i) {
            let number = format!(" #{}", i + 1);
            all[i] = cut(names[i], lettering, room - text_width(&number, lettering), 1.0) + &number;
        }
    }
    all
}

/// Breaks a text between words into at most `most` lines as wide as `room`; the lines are
/// truncated if necessary.
pub(super) fn wrap(text: &str, lettering: Lettering, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match (longer, lines.last_mut()) {
            (Some(longer), Some(line)) if text_width(&longer, lettering) <= room => *line = longer,
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| fit(line, lettering, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scene::INK;

    const TYPE: Lettering = Lettering { size: 12.0, bold: false, colour: INK };

    #[test]
    fn a_wide_text_keeps_its_beginning_and_its_end() {
        let text = "hex27:48x48x50,dof=3,block=8,threads=16";
        let short = fit(text, TYPE, 120.0);
        assert!(
            text_width(&short, TYPE) <= 120.0 && short.starts_with("hex27") && short.ends_with("=16"),
            "{short}"
        );
        assert_eq!(fit(text, TYPE, 1000.0), text);
        assert_eq!(fit(text, TYPE, 1.0), "…");
        let field = "a".repeat(40) + &"b".repeat(40);
        assert_eq!(shorten(&field), "a".repeat(22) + "…" + &"b".repeat(21));
    }

    #[test]
    fn names_that_differ_anywhere_stay_different_when_shortened() {
        let padded =
            |before: usize, after: usize, i: usize| "x".repeat(before) + &i.to_string() + &"y".repeat(after);
        for (before, after) in [(60, 0), (0, 60), (30, 30), (20, 40), (6, 54)] {
            let names: Vec<String> = (0..9).map(|i| padded(before, after, i)).collect();
            let short = fit_names(&names, TYPE, 110.0);
            assert!(short.iter().all(|name| text_width(name, TYPE) <= 112.0), "{short:?}");
            assert!((0..9).all(|i| !short[..i].contains(&short[i])), "{short:?}");
        }
        assert_eq!(fit_names(&["same", "same"], TYPE, 300.0), ["same", "same"]);
    }
}
