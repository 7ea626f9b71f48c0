//! Plots the times of competing programs on several matrices: a row for each matrix, a mark for each program
//! on a logarithmic axis of time.

use super::axis::{drawable, duration};
use super::captions::{fit, fit_names, wrap};
use super::chart::Scale;
use super::letters::text_width;
use super::marks::Mark;
use super::output::write;
use super::panel::{BELOW, MARK};
use super::scene::{Anchor, FAINT, GREY, GRID, INK, Lettering, PALETTE, Point, Scene};
use super::style::Style;
use super::times::{Row, Speeds, Time};
use crate::error::Result;
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

/// Plots times, as SVG, PNG or PDF by the ending of the path. The file is written completely or not at all.
pub fn speeds(speeds: &Speeds, style: Style, path: &Path) -> Result<()> {
    write(style, path, || lay_out(speeds, style))
}

/// Returns each program once, in the order of the rows, with its mark: `auto` is a ring,
/// external programs are diamonds.
fn marks(rows: &[Row]) -> Vec<(&str, Mark)> {
    let mut marks: Vec<(&str, Mark)> = Vec::new();
    let (mut ours, mut external) = (0, 0);
    for time in rows.iter().flat_map(|row| &row.times) {
        if marks.iter().any(|(program, _)| *program == time.program) {
            continue;
        }
        let count = if time.external { &mut external } else { &mut ours };
        let colour = PALETTE[*count % PALETTE.len()];
        // Shapes and colours take turns: their numbers have no common factor.
        let mark = match (time.external, *count % 5) {
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

/// Returns the drawable times in ascending order, each in the first lane that is free there, else in
/// the one with most space.
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
    fn only_marks_left_of_the_limit_are_explained() {
        let drawn = |milliseconds: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("speeds.svg");
            speeds(&of(&LINES.replace("0.011", milliseconds)).unwrap().unwrap(), Style::default(), &path)
                .unwrap();
            std::fs::read_to_string(path).unwrap()
        };
        assert!(drawn("0.009").contains(&BEYOND[..60]) && drawn("0.009").contains(LIMIT));
        assert!(!drawn("0.011").contains(&BEYOND[..60]) && drawn("0.011").contains(LIMIT));
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
