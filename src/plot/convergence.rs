//! Lays out the residual over iterations and over time, for one run or several, as one picture.

use super::axis::{Decades, Range, TimeUnit, drawable, duration, time_unit};
use super::captions::{
    Captions, fit_names, names, recomputed_mark, title, tolerance_name, verdict, wrap, y_title,
};
use super::curve::{self, Against, points, setup};
use super::letters::text_width;
use super::output::write;
use super::panel::{BELOW, MARK, Panel, Stroke, TITLE_LINE, Trace};
use super::ramp::{SEQUENTIAL, shade};
use super::scene::{Anchor, Colour, GREY, INK, Lettering, PALETTE, Scene};
use super::style::Style;
use crate::error::{Error, Result};
use crate::observe::History;
use crate::observe::profile::{self, Phase};
use std::path::Path;

/// The picture's size in pixels; a long legend increases the height.
const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 460.0;
/// Least height of the panels.
const LOWEST_PANEL: f64 = 250.0;
/// Margins left and right of the panels, and the gap between them.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 26.0;
const GAP: f64 = 64.0;
/// Pictures narrower than this have one panel above the other, with this gap between them.
const NARROW: f64 = 640.0;
const STACK_GAP: f64 = 14.0;
/// Type of the title, and its smallest size.
const TITLE: Lettering = Lettering { size: 17.0, bold: true, colour: INK };
const SMALL_TITLE: f64 = 13.0;
/// Type of the verdict, of the legend, and of the y axis' title.
const VERDICT: Lettering = Lettering { size: 13.5, bold: false, colour: GREY };
const LEGEND: Lettering = Lettering { size: 12.5, bold: false, colour: INK };
const AXIS: Lettering = Lettering { size: 13.0, bold: false, colour: INK };
/// Room beyond the width of a panel that the title of its x axis may use.
const TITLE_ROOM: f64 = 30.0;
/// Height of a line of the legend, length of its stroke, gap between its columns.
const LEGEND_LINE: f64 = 19.0;
const SWATCH: f64 = 28.0;
const COLUMN_GAP: f64 = 28.0;
/// The most runs that the legend names.
const MOST_NAMES: usize = 40;
/// The most tolerances that are drawn: more would hide the curves.
const MOST_TOLERANCES: usize = 4;
/// Ratio of the lengths of runs from which their axis is logarithmic.
const FAR_APART: f64 = 20.0;
/// The time axis omits a setup that takes more than this many times as long as the iterations
/// of the longest run.
const LONG_SETUP: f64 = 4.0;
/// Share of the shortest run at which a logarithmic axis begins, at most.
const BEGINNING: f64 = 0.01;

/// Draws the convergence of the runs, as SVG, PNG or PDF by the ending of the path. The file is written
/// completely or not at all.
pub fn convergence(histories: &[History], path: &Path) -> Result<()> {
    captioned(histories, &Captions::default(), Style::default(), path)
}

/// Draws the convergence of the runs with the user's title and names.
pub fn captioned(histories: &[History], captions: &Captions, style: Style, path: &Path) -> Result<()> {
    let _span = profile::begin(Phase::Write);
    let fault = |message: String| Error::Plot { path: path.to_owned(), message };
    if histories.is_empty() {
        return Err(fault("there is no history to draw".into()));
    }
    let (labels, runs) = (captions.labels.len(), histories.len());
    if labels != 0 && labels != runs {
        return Err(fault(format!("{labels} labels for {runs} histories")));
    }
    write(style, path, || lay_out(histories, captions, style))
}

/// Lays out title, panels and legend, from top to bottom. The panels are side by side, or one above the
/// other in a narrow picture.
fn lay_out(histories: &[History], captions: &Captions, style: Style) -> Scene {
    let full = style.pixels(WIDTH);
    let stacked = full < NARROW;
    let legend = Legend::new(histories, captions, full);
    let room = full - 2.0 * RIGHT;
    let mut heading = TITLE;
    let name = title(histories, captions);
    heading.size = (TITLE.size * room / text_width(&name, TITLE)).clamp(SMALL_TITLE, TITLE.size);
    let title_lines = wrap(&name, heading, room, 3);
    let verdict_lines = wrap(&verdict(histories), VERDICT, room, if stacked { 4 } else { 2 });
    let across = if stacked { 1.0 } else { 2.0 };
    let width = (full - LEFT - RIGHT - GAP * (across - 1.0)) / across;
    let axes = [Against::Iterations, seconds(histories)].map(|against| {
        let (range, unit) = range(histories, against);
        let title = wrap(&x_title(histories, against, unit), AXIS, width + TITLE_ROOM, 3);
        (against, range, unit, title)
    });
    let longest = axes.iter().map(|(.., title)| title.len()).max().unwrap_or(1);
    let beneath = BELOW + TITLE_LINE * longest.saturating_sub(1) as f64;
    let more = 18.0 * title_lines.len().saturating_sub(1) as f64;
    let top = 44.0 + more + 18.0 * verdict_lines.len() as f64;
    let below = beneath + legend.height() + 12.0;
    let panels = if stacked { 2.0 * LOWEST_PANEL + beneath + STACK_GAP } else { LOWEST_PANEL };
    let mut scene = Scene::new(full, HEIGHT.max(top + panels + below).ceil());
    let bottom = scene.height - below;
    for (i, line) in title_lines.into_iter().enumerate() {
        scene.text((full / 2.0, 24.0 + 18.0 * i as f64), line, heading, Anchor::Middle);
    }
    for (i, line) in verdict_lines.into_iter().enumerate() {
        scene.text((full / 2.0, 47.0 + more + 18.0 * i as f64), line, VERDICT, Anchor::Middle);
    }

    let tolerances = tolerances(histories);
    let decades = decades(histories, &tolerances);
    let height = if stacked { (bottom - top - beneath - STACK_GAP) / 2.0 } else { bottom - top };
    for (i, (against, range, unit, x_title)) in axes.into_iter().enumerate() {
        let at = i as f64;
        let (left, top) = match stacked {
            true => (LEFT, top + (height + beneath + STACK_GAP) * at),
            false => (LEFT + (width + GAP) * at, top),
        };
        let panel = Panel {
            from: (left, top),
            to: (left + width, top + height),
            range,
            integer_ticks: against == Against::Iterations,
            x_title,
            tolerance: tolerance_name(histories),
            decades,
        };
        panel.draw(&mut scene, &traces(histories, against, unit.per_second), &tolerances);
    }
    scene.text_upwards((22.0, (top + bottom) / 2.0), y_title(histories), AXIS);
    legend.draw(&mut scene, bottom + beneath + 12.0);
    scene
}

/// Chooses seconds including the setup, unless the setup would leave no room for the curves.
fn seconds(histories: &[History]) -> Against {
    let longest = |seconds: &dyn Fn(&History) -> f64| histories.iter().map(seconds).fold(0.0, f64::max);
    let iterations = longest(&|history| furthest(history, Against::SecondsOfIterations));
    match longest(&setup) <= LONG_SETUP * iterations {
        true => Against::Seconds,
        false => Against::SecondsOfIterations,
    }
}

/// Returns the range of an axis and its unit: even steps if the runs have similar lengths,
/// else powers of ten.
fn range(histories: &[History], against: Against) -> (Range, TimeUnit) {
    let ends: Vec<f64> = histories.iter().map(|history| furthest(history, against)).collect();
    let limit = ends.iter().copied().fold(0.0, f64::max);
    let unit = match against {
        Against::Iterations => TimeUnit { per_second: 1.0, symbol: "" },
        _ => time_unit(limit),
    };
    let shortest = ends.into_iter().filter(|end| *end > 0.0).fold(f64::INFINITY, f64::min);
    if limit < FAR_APART * shortest {
        let limit = limit * unit.per_second;
        return (Range::Even(if limit.is_normal() { limit } else { 1.0 }), unit);
    }
    let begins =
        histories.iter().filter_map(|h| points(h, against).into_iter().map(|(x, _)| x).find(|x| *x > 0.0));
    let low = begins.fold(shortest, f64::min).max(BEGINNING * shortest);
    (Range::Powers(low * unit.per_second, limit * unit.per_second), unit)
}

/// Returns the end of a run on an axis.
fn furthest(history: &History, against: Against) -> f64 {
    let points = points(history, against);
    points.into_iter().map(|(x, _)| x).fold(against.end(history), f64::max)
}

/// Returns the title of an x axis: the quantity with its unit, and what it includes.
fn x_title(histories: &[History], against: Against, unit: TimeUnit) -> String {
    if against == Against::Iterations {
        return "iteration".to_owned();
    }
    let mut title = format!("time ({})", unit.symbol);
    let setups = histories.iter().map(setup);
    let (least, most) = setups.fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), s| (a.min(s), b.max(s)));
    if most > 0.0 && against == Against::Seconds {
        title.push_str(", setup included");
    }
    if most > 0.0 && against == Against::SecondsOfIterations {
        let (least, most) = (duration(least), duration(most));
        let span = if least == most { most } else { format!("{least} to {most}") };
        title.push_str(&format!(", setup of {span} not shown"));
    }
    if histories.iter().any(|h| h.seconds_interpolated) {
        title.push_str(", interpolated within batches");
    }
    title
}

/// Returns the different tolerances of the runs.
fn tolerances(histories: &[History]) -> Vec<f64> {
    let mut all: Vec<f64> = histories.iter().map(|h| h.report.rtol).filter(|&rtol| drawable(rtol)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all.truncate(MOST_TOLERANCES);
    all
}

fn decades(histories: &[History], tolerances: &[f64]) -> Decades {
    let own = histories.iter().flat_map(|h| h.residuals.iter().take(h.seconds.len()));
    let residuals = own.chain(histories.iter().flat_map(|h| &h.columns).flat_map(|curve| &curve.residuals));
    let recomputed = histories.iter().map(|h| &h.report.residual_true);
    Decades::around(residuals.chain(recomputed).chain(tolerances).copied())
}

fn traces(histories: &[History], against: Against, per_unit: f64) -> Vec<Trace> {
    let trace = |(i, history): (usize, &History)| Trace {
        points: points(history, against).into_iter().map(|(x, residual)| (x * per_unit, residual)).collect(),
        prepared: against.before(history) > 0.0,
        stroke: stroke(i, histories.len()),
        converged: history.report.converged,
        recomputed: (against.end(history) * per_unit, history.report.residual_true),
        columns: columns(history, against, per_unit),
    };
    histories.iter().enumerate().map(trace).collect()
}

/// The share of the colour scale that columns use: its light end would be hard to see.
const COLUMN_SHADES: (f64, f64) = (0.15, 0.75);

/// Returns the curves of the columns of a run, from the fewest iterations to the most, in the
/// order of a colour scale.
fn columns(history: &History, against: Against, per_unit: f64) -> Vec<(Vec<(f64, f64)>, Colour)> {
    let mut order: Vec<(usize, Vec<(f64, f64)>)> = history
        .columns
        .iter()
        .map(|curve| curve.residuals.len())
        .zip(curve::columns(history, against))
        .collect();
    order.sort_by_key(|(length, _)| *length);
    let last = order.len().saturating_sub(1).max(1) as f64;
    let (light, dark) = COLUMN_SHADES;
    let coloured = |(index, (_, points)): (usize, (usize, Vec<(f64, f64)>))| {
        let points = points.into_iter().map(|(x, residual)| (x * per_unit, residual)).collect();
        (points, shade(&SEQUENTIAL, light + (dark - light) * index as f64 / last))
    };
    order.into_iter().enumerate().map(coloured).collect()
}

fn stroke(run: usize, runs: usize) -> Stroke {
    Stroke::nth(run, &PALETTE, if runs > 1 { 1.9 } else { 1.6 })
}

/// The meaning of a mark.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Converged,
    NotConverged,
    Recomputed,
}

/// The names of the runs in columns, and below them the meaning of the marks.
#[derive(Debug)]
struct Legend {
    width: f64,
    names: Vec<String>,
    columns: usize,
    column: f64,
    strokes: Vec<Stroke>,
    marks: Vec<(Mark, &'static str)>,
}

impl Legend {
    /// Lays out the legend. A single run has no name here, as the title describes it.
    fn new(histories: &[History], captions: &Captions, width: f64) -> Legend {
        let room = width - LEFT - RIGHT;
        let mut names = names(histories, captions);
        let mut strokes: Vec<Stroke> = (0..names.len()).map(|run| stroke(run, histories.len())).collect();
        if names.len() > MOST_NAMES {
            strokes.truncate(MOST_NAMES);
            names.truncate(MOST_NAMES);
            names.push(format!("and {} more", histories.len() - MOST_NAMES));
        }
        let names = fit_names(&names, LEGEND, room - SWATCH - 8.0);
        let widest = names.iter().map(|name| text_width(name, LEGEND)).fold(0.0, f64::max);
        let column = widest + SWATCH + 8.0 + COLUMN_GAP;
        let columns = (((room + COLUMN_GAP) / column) as usize).clamp(1, names.len().max(1));
        // Uses the fewest columns that give the same number of rows.
        let columns = names.len().div_ceil(names.len().div_ceil(columns).max(1)).max(1);
        let mut marks = Vec::new();
        if histories.iter().any(|h| h.report.converged) {
            marks.push((Mark::Converged, "converged"));
        }
        if histories.iter().any(|h| !h.report.converged) {
            marks.push((Mark::NotConverged, "not converged"));
        }
        if histories.iter().any(|h| drawable(h.report.residual_true)) {
            marks.push((Mark::Recomputed, recomputed_mark(histories)));
        }
        Legend { width, names, columns, column, strokes, marks }
    }

    fn height(&self) -> f64 {
        self.marks_at() + if self.marks.is_empty() { 0.0 } else { LEGEND_LINE }
    }

    /// Returns the distance of the marks from the top.
    fn marks_at(&self) -> f64 {
        let rows = self.names.len().div_ceil(self.columns);
        if rows == 0 { 0.0 } else { rows as f64 * LEGEND_LINE + 5.0 }
    }

    fn draw(&self, scene: &mut Scene, top: f64) {
        let centre = (LEFT + self.width - RIGHT) / 2.0;
        let rows = self.names.len().div_ceil(self.columns);
        let left = centre - (self.column * self.columns as f64 - COLUMN_GAP) / 2.0;
        for (i, name) in self.names.iter().enumerate() {
            let (x, y) = (left + self.column * (i / rows) as f64, top + LEGEND_LINE * (i % rows) as f64);
            if let Some(stroke) = self.strokes.get(i) {
                stroke.draw(scene, vec![(x, y), (x + SWATCH, y)]);
            }
            scene.text((x + SWATCH + 8.0, y), name.as_str(), LEGEND, Anchor::Start);
        }
        let widths: Vec<f64> = self.marks.iter().map(|(_, text)| 16.0 + text_width(text, LEGEND)).collect();
        let gaps = COLUMN_GAP * widths.len().saturating_sub(1) as f64;
        let mut x = centre - (widths.iter().sum::<f64>() + gaps) / 2.0;
        let y = top + self.marks_at();
        for ((mark, text), width) in self.marks.iter().zip(widths) {
            let at = (x + 4.0, y);
            match mark {
                Mark::Converged => scene.disc(at, MARK, GREY),
                Mark::NotConverged => scene.cross(at, MARK, GREY),
                Mark::Recomputed => scene.diamond(at, MARK + 2.0, GREY),
            }
            scene.text((x + 16.0, y), *text, LEGEND, Anchor::Start);
            x += width + COLUMN_GAP;
        }
    }
}
