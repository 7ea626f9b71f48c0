//! Plots the times of competing programs on several matrices: a row for each matrix, a mark for each program on a logarithmic
//! axis of time.

use super::axis::{drawable, duration};
use super::captions::{fit, fit_names, wrap};
use super::chart::Scale;
use super::letters::text_width;
use super::marks::Mark;
use super::output::write;
use super::panel::{BELOW, MARK};
use super::scene::{Anchor, FAINT, GREY, GRID, INK, Lettering, PALETTE, Point, Scene};
use super::style::Style;
use crate::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;

/// The picture's width in pixels, and the margins around the panel.
const WIDTH: f64 = 1240.0;
const LEFT: f64 = 290.0;
const TOP: f64 = 66.0;
const EDGE: f64 = 20.0;
/// Least height of a row, and of the lanes in it: marks that would hide each other use different lanes.
const ROW: f64 = 52.0;
const LANE: f64 = 10.0;
const LANES: [f64; 5] = [0.0, -1.0, 1.0, -2.0, 2.0];
const TITLE: Lettering = Lettering { size: 16.0, bold: true, colour: INK };
const NOTE: Lettering = Lettering { size: 12.5, bold: false, colour: GREY };
const NAME: Lettering = Lettering { size: 12.5, bold: false, colour: INK };
const BEST: Lettering = Lettering { size: 11.0, bold: false, colour: GREY };
const LABEL: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
const LEGEND_LINE: f64 = 21.0;
const NOTE_LINE: f64 = 17.0;
const NOTE_TEXT: &str =
    "to the left is faster; marks that would hide each other are drawn one above the other";
/// In a picture narrower than this, the legend is below the panel.
const NARROW: f64 = 640.0;
/// Legend of the stroke drawn by [`limit`], and the explanation of marks to its left.
const LIMIT: &str = "fewest bytes at stream speed";
const BEYOND: &str = "left of the grey line: faster than the stream that was measured over as many bytes, as caches may keep part of the matrix between products, and streams vary from run to run";
/// Limit for the legend's width.
const LEGEND_MOST: f64 = 270.0;

/// Prefixes of backends that run external code.
const YARDSTICKS: [&str; 4] = ["cusparse", "dense", "sprs", "nalgebra"];

/// Times to plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    /// The title.
    pub title: String,
    rows: Vec<Row>,
}

/// The times on one matrix.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    times: Vec<Time>,
    /// Seconds for the fewest bytes of these programs at the measured speed of a stream over the same number of bytes.
    limit: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Time {
    program: String,
    /// Whether the code is external.
    external: bool,
    seconds: f64,
}

/// A line of `spmv --json`, with the speed of a stream over the bytes of CSR.
#[derive(Deserialize)]
struct Line {
    matrix: String,
    backends: Vec<Measured>,
    stream_gigabytes_per_second: f64,
}

#[derive(Deserialize)]
struct Measured {
    backend: String,
    bytes: f64,
    median_ms: f64,
    /// Speed of a stream over the same number of bytes, if that was measured.
    stream_gigabytes_per_second: Option<f64>,
}

/// A table of `scripts/bench.py`.
#[derive(Deserialize)]
struct Table {
    rows: Vec<Peer>,
}

#[derive(Deserialize)]
struct Peer {
    system: String,
    peer: String,
    ms: Option<Spread>,
    us_per_iteration: Option<Spread>,
    bytes: Option<f64>,
    stream_gigabytes_per_second: Option<f64>,
    limit_seconds_per_iteration: Option<f64>,
}

#[derive(Deserialize)]
struct Spread {
    median: f64,
}

impl Row {
    fn has_times_beyond_limit(&self) -> bool {
        drawable(self.limit) && self.times.iter().any(|time| time.seconds < self.limit)
    }
}

impl Time {
    /// Makes a time. The choice made by `auto` is dropped from the name, so that `auto` has one name on all matrices.
    fn of(backend: &str, seconds: f64) -> Time {
        let program = backend.split(" = ").next().unwrap_or(backend).to_owned();
        Time { external: YARDSTICKS.iter().any(|name| program.starts_with(name)), program, seconds }
    }
}

impl Line {
    fn row(self) -> Row {
        let seconds = |b: &Measured| {
            b.bytes / (1e9 * b.stream_gigabytes_per_second.unwrap_or(self.stream_gigabytes_per_second))
        };
        let limit = self.backends.iter().map(seconds).fold(f64::INFINITY, f64::min);
        let times = self.backends.iter().map(|b| Time::of(&b.backend, b.median_ms * 1e-3)).collect();
        Row { name: self.matrix, times, limit }
    }
}

impl Peer {
    fn seconds(&self) -> Option<f64> {
        let iteration = self.us_per_iteration.as_ref().map(|us| us.median * 1e-6);
        iteration.or(self.ms.as_ref().map(|ms| ms.median * 1e-3))
    }

    fn limit(&self) -> Option<f64> {
        let read = |bytes: f64| Some(bytes / (1e9 * self.stream_gigabytes_per_second?));
        self.limit_seconds_per_iteration.or(self.bytes.and_then(read))
    }
}

impl Speeds {
    /// Parses times, if the text is the output of `spmv --json` or `scripts/bench.py`.
    pub fn of(text: &str, path: &Path) -> Result<Option<Speeds>> {
        let fault = |e: serde_json::Error| Error::History { path: path.to_owned(), message: e.to_string() };
        let mut objects = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
        let Some(Ok(first)) = objects.next() else { return Ok(None) };
        if first.get("backends").is_some_and(serde_json::Value::is_array) {
            let lines = serde_json::Deserializer::from_str(text).into_iter::<Line>();
            let rows = lines.map(|line| line.map(Line::row)).collect::<serde_json::Result<_>>();
            return Ok(Some(Speeds { title: "y = A x, one product".to_owned(), rows: rows.map_err(fault)? }));
        }
        if !first.get("rows").is_some_and(serde_json::Value::is_array) {
            return Ok(None);
        }
        Ok(Some(Speeds::of_table(serde_json::from_value(first).map_err(fault)?)))
    }

    /// Returns the names of the programs in the order of the legend.
    pub fn names(&self) -> Vec<&str> {
        marks(&self.rows).into_iter().map(|(program, _)| program).collect()
    }

    /// Renames the programs in the order of the legend.
    pub fn rename(&mut self, labels: &[String]) {
        let names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        for time in self.rows.iter_mut().flat_map(|row| &mut row.times) {
            let label = names.iter().zip(labels).find(|(name, _)| **name == time.program);
            if let Some((_, label)) = label {
                time.program.clone_from(label);
            }
        }
    }

    fn of_table(table: Table) -> Speeds {
        let iterations = table.rows.iter().any(|peer| peer.us_per_iteration.is_some());
        let mut rows: Vec<Row> = Vec::new();
        for peer in table.rows {
            let Some(seconds) = peer.seconds() else { continue };
            let limit = peer.limit().unwrap_or(f64::INFINITY);
            let time = match peer.peer.strip_prefix("solver ") {
                Some(backend) => Time::of(backend, seconds),
                None => Time { program: peer.peer, external: true, seconds },
            };
            match rows.iter_mut().find(|row| row.name == peer.system) {
                Some(row) => {
                    row.times.push(time);
                    row.limit = row.limit.min(limit);
                }
                None => rows.push(Row { name: peer.system, times: vec![time], limit }),
            }
        }
        let title = if iterations { "Conjugate gradients, one iteration" } else { "y = A x, one product" };
        Speeds { title: title.to_owned(), rows }
    }
}

/// Plots times, as SVG, PNG or PDF by the ending of the path. The file is written completely or not at all.
pub fn speeds(speeds: &Speeds, style: Style, path: &Path) -> Result<()> {
    write(style, path, || lay_out(speeds, style))
}

/// Returns each program once, in the order of the rows, with its mark: `auto` is a ring, external programs are diamonds.
fn marks(rows: &[Row]) -> Vec<(&str, Mark)> {
    let mut marks: Vec<(&str, Mark)> = Vec::new();
    let (mut ours, mut external) = (0, 0);
    for time in rows.iter().flat_map(|row| &row.times) {
        if marks.iter().any(|(program, _)| *program == time.program) {
            continue;
        }
        let count = if time.external { &mut external } else { &mut ours };
        let colour = PALETTE[*count % PALETTE.len()];
        let mark = match (time.external, *count / PALETTE.len() % 5) {
            (true, _) => Mark::Diamond(PALETTE[PALETTE.len() - 1 - *count % PALETTE.len()]),
            (false, _) if time.program == "auto" => Mark::Ring,
            (false, 0) => Mark::Disc(colour),
            (false, 1) => Mark::Cross(colour),
            (false, 2) => Mark::Circle(colour),
            (false, 3) => Mark::Triangle(colour),
            (false, _) => Mark::Plus(colour),
        };
        if mark != Mark::Ring {
            *count += 1;
        }
        marks.push((&time.program, mark));
    }
    marks
}

/// The places of the panel and of the legend, which is below the panel in a narrow picture.
struct Places {
    full: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    narrow: bool,
}

fn lay_out(speeds: &Speeds, style: Style) -> Scene {
    let marks = marks(&speeds.rows);
    let names: Vec<&str> = marks.iter().map(|(program, _)| *program).chain([LIMIT]).collect();
    let full = style.pixels(WIDTH);
    let narrow = full < NARROW;
    let widest = names.iter().map(|name| text_width(name, NAME)).fold(0.0, f64::max);
    let legend = (widest + 30.0).clamp(175.0, LEGEND_MOST);
    let notes = wrap(NOTE_TEXT, NOTE, full - 2.0 * EDGE, 3);
    let top = TOP + NOTE_LINE * notes.len().saturating_sub(1) as f64;
    let lines = names.len() as f64 * LEGEND_LINE;
    let bottom = top + (speeds.rows.len() as f64 * ROW).max(if narrow { 0.0 } else { lines });
    let right = if narrow { full - EDGE } else { full - EDGE - legend - 18.0 };
    let left = if full < WIDTH { LEFT.min(0.33 * full) } else { LEFT };
    let places = Places { full, left, right, top, bottom, narrow };
    let beyond = match speeds.rows.iter().any(Row::has_times_beyond_limit) {
        true => wrap(BEYOND, NOTE, full - 2.0 * EDGE, 6),
        false => Vec::new(),
    };
    let foot = bottom + BELOW + 12.0;
    let room = if beyond.is_empty() { 0.0 } else { 5.5 + NOTE_LINE * beyond.len() as f64 };
    let mut scene = Scene::new(full, foot + room + if narrow { lines } else { 0.0 });
    let title = fit(&speeds.title, TITLE, full - 2.0 * EDGE);
    scene.text((full / 2.0, 24.0), title, TITLE, Anchor::Middle);
    for (i, note) in notes.into_iter().enumerate() {
        scene.text((full / 2.0, 46.0 + NOTE_LINE * i as f64), note, NOTE, Anchor::Middle);
    }
    panel(&mut scene, speeds, &marks, &places);
    for (i, line) in beyond.into_iter().enumerate() {
        scene.text((EDGE, foot + 2.0 + NOTE_LINE * i as f64), line, NOTE, Anchor::Start);
    }
    let (x, y) = if narrow { (EDGE + 8.0, foot + room) } else { (right + 26.0, top + 10.0) };
    let most = if narrow { full - 2.0 * EDGE - 24.0 } else { legend - 24.0 };
    for (i, name) in fit_names(&names, NAME, most).into_iter().enumerate() {
        let y = y + i as f64 * LEGEND_LINE;
        match marks.get(i) {
            Some((_, mark)) => mark.draw(&mut scene, (x, y)),
            None => limit(&mut scene, (x, y), 8.0),
        }
        scene.text((x + 14.0, y), name, NAME, Anchor::Start);
    }
    scene
}

/// Draws the rows with their names, and the axis of time.
fn panel(scene: &mut Scene, speeds: &Speeds, marks: &[(&str, Mark)], places: &Places) {
    let Places { full, left, right, top, bottom, narrow } = *places;
    let all = || speeds.rows.iter().flat_map(|row| row.times.iter().map(|t| t.seconds).chain([row.limit]));
    let scale = Scale::around(all());
    let across = |seconds: f64| right - (right - left) * scale.share(seconds);
    let mut last = f64::NEG_INFINITY;
    for seconds in scale.marks() {
        let (x, label) = (across(seconds), duration(seconds));
        scene.line(vec![(x, top), (x, bottom)], GRID, 1.0);
        let half = text_width(&label, LABEL) / 2.0;
        // Only narrow pictures have no room for each label.
        if x - half > last + 4.0 && (!narrow || x + half < full) {
            scene.text((x, bottom + 14.0), label, LABEL, Anchor::Middle);
            last = x + half;
        }
    }
    let row_height = (bottom - top) / speeds.rows.len().max(1) as f64;
    let room = left - 14.0 - EDGE;
    let names: Vec<&str> = speeds.rows.iter().map(|row| row.name.as_str()).collect();
    for (i, (row, name)) in speeds.rows.iter().zip(fit_names(&names, NAME, room)).enumerate() {
        let middle = top + (i as f64 + 0.5) * row_height;
        let end = middle + row_height / 2.0;
        scene.line(vec![(EDGE, end), (right, end)], FAINT, 1.0);
        scene.text((left - 14.0, middle - 8.0), name, NAME, Anchor::End);
        scene.text((left - 14.0, middle + 8.0), fit(&best(row), BEST, room), BEST, Anchor::End);
        if drawable(row.limit) {
            limit(scene, (across(row.limit), middle), ROW / 2.0 - 4.0);
        }
        for (time, lane) in lanes(row, across) {
            let at = (across(time.seconds), middle + lane * LANE);
            let own = marks.iter().filter(|(program, _)| *program == time.program);
            own.for_each(|(_, mark)| mark.draw(scene, at));
        }
    }
    scene.text(((left + right) / 2.0, bottom + 36.0), "time", LABEL, Anchor::Middle);
    scene.frame((left, top), (right, bottom), GREY);
}

/// Draws the stroke at the time that the memory traffic alone takes.
fn limit(scene: &mut Scene, (x, y): Point, reach: f64) {
    scene.line(vec![(x, y - reach), (x, y + reach)], GREY, 2.0);
}

/// Describes the fastest of our backends and the fastest external program.
fn best(row: &Row) -> String {
    let fastest = |external| {
        let times = row.times.iter().filter(|time| time.external == external && drawable(time.seconds));
        let first = times.min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
        Some(format!("{} {}", first.program, duration(first.seconds)))
    };
    [fastest(false), fastest(true)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Returns the drawable times in ascending order, each in the first lane that is free there, else in the one with most space.
fn lanes(row: &Row, across: impl Fn(f64) -> f64) -> Vec<(&Time, f64)> {
    let mut times: Vec<&Time> = row.times.iter().filter(|time| drawable(time.seconds)).collect();
    times.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut ends = [f64::NEG_INFINITY; LANES.len()];
    let lane = |time: &Time| {
        let x = across(time.seconds);
        let least = (0..LANES.len()).min_by(|&a, &b| ends[a].total_cmp(&ends[b])).unwrap_or(0);
        let lane = ends.iter().position(|&end| end + 2.0 * MARK + 3.0 <= x).unwrap_or(least);
        ends[lane] = x;
        LANES[lane]
    };
    let lanes: Vec<f64> = times.iter().copied().map(lane).collect();
    times.into_iter().zip(lanes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"
        {"matrix": "a", "stream_gigabytes_per_second": 4000.0, "backends": [
            {"backend": "auto = sell", "bytes": 40000000, "median_ms": 0.011},
            {"backend": "cusparse", "bytes": 80000000, "median_ms": 0.03}]}
        {"matrix": "b", "stream_gigabytes_per_second": 4000.0, "backends": [
            {"backend": "csr", "bytes": 40000000, "median_ms": 0.011, "stream_gigabytes_per_second": 5000.0}]}"#;

    fn of(text: &str) -> Result<Option<Speeds>> {
        Speeds::of(text, Path::new("t.json"))
    }

    #[test]
    fn only_lines_of_products_and_tables_of_iterations_are_recognised() {
        let products = of(LINES).unwrap().unwrap();
        assert_eq!(products.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        // The limit uses the stream speed of the backend's own bytes if present, else that of CSR's bytes.
        assert_eq!(products.rows.iter().map(|row| row.limit).collect::<Vec<_>>(), [1e-5, 8e-6]);
        let table = r#"{"rows": [
            {"system": "a", "peer": "solver auto", "us_per_iteration": {"median": 8.0}, "limit_seconds_per_iteration": 2e-6},
            {"system": "a", "peer": "CuPy cg", "us_per_iteration": {"median": 200.0}}]}"#;
        let iterations = of(table).unwrap().unwrap();
        let times: Vec<_> =
            iterations.rows[0].times.iter().map(|t| (t.program.as_str(), t.external)).collect();
        assert_eq!((times, iterations.rows[0].limit), (vec![("auto", false), ("CuPy cg", true)], 2e-6));
        assert!(of("{\"series\": []}").unwrap().is_none() && of("[]").unwrap().is_none());
        assert!(of("# csv").unwrap().is_none());
        // A truncated line is a fault, not the end.
        assert!(of(&LINES[..LINES.len() - 3]).is_err());
    }

    #[test]
    fn only_marks_left_of_the_limit_are_explained() {
        let drawn = |milliseconds: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("speeds.svg");
            speeds(&of(&LINES.replace("0.011", milliseconds)).unwrap().unwrap(), &path).unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        assert!(drawn("0.009").contains(BEYOND) && drawn("0.009").contains(LIMIT));
        assert!(!drawn("0.011").contains(BEYOND) && drawn("0.011").contains(LIMIT));
    }

    #[test]
    fn marks_that_would_hide_each_other_use_different_lanes() {
        let time = |seconds| Time { program: "csr".into(), external: false, seconds };
        let times = vec![time(3.0), time(1.0), time(1.1), time(f64::NAN)];
        let row = Row { name: String::new(), times, limit: 1.0 };
        let placed: Vec<_> =
            lanes(&row, |s| 20.0 * s).into_iter().map(|(t, lane)| (t.seconds, lane)).collect();
        assert_eq!(placed, [(1.0, 0.0), (1.1, -1.0), (3.0, 0.0)]);
    }

    #[test]
    fn every_program_has_a_unique_mark_and_external_programs_have_diamonds() {
        let row = |names: &[&str]| Row {
            name: String::new(),
            times: names.iter().map(|name| Time::of(name, 1.0)).collect(),
            limit: 1.0,
        };
        let rows = [row(&["auto = csr", "csr", "sell", "cusparse"]), row(&["cusparse-alg1", "ell", "csr"])];
        let marks = marks(&rows);
        assert_eq!(marks.len(), 6);
        assert!(marks.iter().enumerate().all(|(i, (_, mark))| marks[..i].iter().all(|(_, m)| m != mark)));
        let diamonds = marks.iter().filter(|(_, mark)| matches!(mark, Mark::Diamond(_)));
        assert_eq!(diamonds.map(|(program, _)| *program).collect::<Vec<_>>(), ["cusparse", "cusparse-alg1"]);
        let names: Vec<String> = (0..30).map(|i| format!("thread:block={i}")).collect();
        let many = [row(&names.iter().map(String::as_str).collect::<Vec<_>>())];
        let marks = super::marks(&many);
        assert!(marks.iter().enumerate().all(|(i, (_, mark))| marks[..i].iter().all(|(_, m)| m != mark)));
    }
}
