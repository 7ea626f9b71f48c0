//! The legend that all panels of a figure share: a sample of each series, limit and reference.

use super::{Content, Figure};
use crate::plot::captions::fit_names;
use crate::plot::letters::text_width;
use crate::plot::marks::Mark;
use crate::plot::panel::Stroke;
use crate::plot::scene::{Anchor, Colour, GREY, INK, Lettering, PALETTE, PAPER, Point, Scene};

const TEXT: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
const LINE: f64 = 20.0;
const SAMPLE: f64 = 26.0;
const GAP: f64 = 22.0;
/// Rooflines with more points have their names next to them instead of in the legend, as does a panel with more curves.
const MOST_NAMED: usize = 7;
/// Least width of a panel with names next to points.
const ROOMY: f64 = 480.0;
/// Dashes of references in turn.
const DASHES: [(f64, f64); 4] = [(6.0, 3.5), (2.0, 3.0), (11.0, 3.5), (9.0, 6.0)];
/// Distance between the strokes of a hatch.
const HATCH: f64 = 6.0;

/// The sample of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sample {
    /// The bar of a series.
    Bar(usize),
    /// The curve of a series.
    Curve(usize),
    /// The curve of a reference.
    Reference(usize),
    /// The point of a roofline.
    Point(usize),
    /// The limit of a group of bars.
    Ceiling,
    /// A bar without value.
    Missing,
}

/// The entries of the legend, which give each series its number in the whole figure.
#[derive(Clone, Debug, Default)]
pub(super) struct Key {
    entries: Vec<(String, Sample)>,
    /// Whether the names of curves stand at their ends.
    pub at_ends: bool,
    /// Whether the names of the points of rooflines stand next to them.
    pub at_points: bool,
}

impl Key {
    /// Collects the entries of all panels, which have this width.
    pub fn of(figure: &Figure, width: f64) -> Key {
        let mut key = Key::default();
        for panel in &figure.panels {
            match &panel.content {
                Content::Bars(bars) => {
                    bars.series.iter().for_each(|series| key.add(&series.name, Sample::Bar));
                    bars.ceiling.iter().for_each(|ceiling| key.add(&ceiling.name, |_| Sample::Ceiling));
                    if bars.series.iter().any(|series| series.values.contains(&None)) {
                        key.add("or n/a: no value", |_| Sample::Missing);
                    }
                }
                Content::Curves(curves) => {
                    for series in &curves.series {
                        let sample = if series.reference { Sample::Reference } else { Sample::Curve };
                        key.add(&series.name, sample);
                    }
                }
                Content::Roofline(roofline) => {
                    roofline.points.iter().for_each(|point| key.add(&point.name, Sample::Point));
                }
                Content::HeatMap(_) => {}
            }
        }
        let points = key.entries.iter().filter(|(_, sample)| matches!(sample, Sample::Point(_))).count();
        key.at_points = points > MOST_NAMED && width >= ROOMY;
        key.at_ends = figure.panels.len() == 1
            && key.entries.len() > MOST_NAMED
            && matches!(figure.panels[0].content, Content::Curves(_));
        key
    }

    /// Adds an entry unless it exists. Samples of the same kind are numbered.
    fn add(&mut self, name: &str, sample: impl Fn(usize) -> Sample) {
        let kind = |sample: Sample| std::mem::discriminant(&sample);
        let same = self.entries.iter().filter(|(_, known)| kind(*known) == kind(sample(0)));
        let (mut count, mut known) = (0, false);
        for (other, _) in same {
            count += 1;
            known |= other == name;
        }
        if !known {
            self.entries.push((name.to_owned(), sample(count)));
        }
    }

    /// Returns the number of a series among the samples of its kind.
    pub fn number(&self, name: &str, sample: impl Fn(usize) -> Sample) -> usize {
        let kind = std::mem::discriminant(&sample(0));
        let same = self.entries.iter().filter(|(_, known)| std::mem::discriminant(known) == kind);
        same.map(|(name, _)| name).position(|known| known == name).unwrap_or(0)
    }

    /// Lays out the entries in rows no wider than `room`.
    fn rows(&self, room: f64) -> Vec<Vec<(String, Sample)>> {
        let shown = self.entries.iter().filter(|(_, sample)| match sample {
            Sample::Point(_) => !self.at_points,
            Sample::Curve(_) | Sample::Reference(_) => !self.at_ends,
            _ => true,
        });
        let (names, samples): (Vec<&String>, Vec<Sample>) =
            shown.map(|(name, sample)| (name, *sample)).unzip();
        let names = fit_names(&names, TEXT, room - SAMPLE - 8.0);
        let mut rows: Vec<Vec<(String, Sample)>> = Vec::new();
        let mut used = f64::INFINITY;
        for entry in names.into_iter().zip(samples) {
            let width = entry_width(&entry.0);
            match rows.last_mut() {
                Some(row) if used + GAP + width <= room => {
                    used += GAP + width;
                    row.push(entry);
                }
                _ => {
                    used = width;
                    rows.push(vec![entry]);
                }
            }
        }
        rows
    }

    /// Returns the height of the legend.
    pub fn height(&self, room: f64) -> f64 {
        self.rows(room).len() as f64 * LINE
    }

    /// Draws the legend around the middle of the picture.
    pub fn draw(&self, scene: &mut Scene, top: f64, room: f64) {
        for (i, row) in self.rows(room).into_iter().enumerate() {
            let width = row.iter().map(|(name, _)| entry_width(name) + GAP).sum::<f64>() - GAP;
            let (mut x, y) = ((scene.width - width) / 2.0, top + LINE * (i as f64 + 0.5));
            for (name, sample) in row {
                sample.draw(scene, (x, y));
                scene.text((x + SAMPLE + 7.0, y), name.as_str(), TEXT, Anchor::Start);
                x += entry_width(&name) + GAP;
            }
        }
    }
}

fn entry_width(name: &str) -> f64 {
    SAMPLE + 7.0 + text_width(name, TEXT)
}

impl Sample {
    fn draw(self, scene: &mut Scene, (x, y): Point) {
        let line = vec![(x, y), (x + SAMPLE, y)];
        let middle = (x + SAMPLE / 2.0, y);
        match self {
            Sample::Bar(nth) => bar(scene, (x + 7.0, y - 6.5), (x + SAMPLE, y + 6.5), nth),
            Sample::Curve(nth) => {
                stroke(nth).draw(scene, line);
                Mark::nth(nth).draw(scene, middle);
            }
            Sample::Reference(nth) => reference(nth).draw(scene, line),
            Sample::Point(nth) => Mark::nth(nth).draw(scene, middle),
            Sample::Ceiling => ceiling(scene, line),
            Sample::Missing => missing(scene, middle),
        }
    }
}

/// Returns the style of the curve of a series.
pub(super) fn stroke(nth: usize) -> Stroke {
    Stroke::nth(nth, &PALETTE, 1.7)
}

/// Returns the style of the curve of a reference.
pub(super) fn reference(nth: usize) -> Stroke {
    Stroke { colour: GREY, width: 1.5, dash: Some(DASHES[nth % DASHES.len()]) }
}

/// Draws the line of a limit.
pub(super) fn ceiling(scene: &mut Scene, line: Vec<Point>) {
    scene.line(line.clone(), PAPER, 4.0);
    scene.line(line, INK, 2.0);
}

/// Draws the small cross of a missing bar that has no room for `n/a`.
pub(super) fn missing(scene: &mut Scene, (x, y): Point) {
    scene.line(vec![(x - 2.5, y - 2.5), (x + 2.5, y + 2.5)], GREY, 1.2);
    scene.line(vec![(x - 2.5, y + 2.5), (x + 2.5, y - 2.5)], GREY, 1.2);
}

/// Returns the colour of a series of bars.
pub(super) fn bar_colour(nth: usize) -> Colour {
    PALETTE[nth % PALETTE.len()]
}

/// Draws a bar. Series of the same colour differ in their hatch.
pub(super) fn bar(scene: &mut Scene, from: Point, to: Point, nth: usize) {
    scene.area(from, to, bar_colour(nth));
    let turn = nth / PALETTE.len() % 4;
    if turn == 1 || turn == 3 {
        hatch(scene, from, to, false);
    }
    if turn == 2 || turn == 3 {
        hatch(scene, from, to, true);
    }
}

/// Draws diagonal strokes over a rectangle.
fn hatch(scene: &mut Scene, from: Point, to: Point, falling: bool) {
    let (width, height) = (to.0 - from.0, to.1 - from.1);
    let mut sum = HATCH / 2.0;
    while sum < width + height {
        // The stroke of all points whose distances from the left and from the bottom have this sum.
        let (start, end) = ((sum - height).max(0.0), sum.min(width));
        let x = |along: f64| if falling { to.0 - along } else { from.0 + along };
        let y = |along: f64| from.1 + (sum - along);
        scene.line(vec![(x(start), y(start)), (x(end), y(end))], PAPER, 1.3);
        sum += HATCH;
    }
}
