//! The legend that all panels of a figure share: a sample of each series, limit and reference.

use super::ends;
use super::{Bars, Content, CurveSeries, Figure};
use crate::plot::captions::fit_names;
use crate::plot::letters::text_width;
use crate::plot::marks::Mark;
use crate::plot::panel::{MARK, Stroke};
use crate::plot::scene::{Anchor, Colour, GREY, INK, Lettering, PALETTE, PAPER, Point, Scene};

const TEXT: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
const LINE: f64 = 20.0;
const SAMPLE: f64 = 26.0;
const GAP: f64 = 22.0;
/// Rooflines with more points have their names next to them instead of in the legend, as does
/// a panel with more curves.
const MOST_NAMED: usize = 7;
/// Least width of a panel with names next to points.
const ROOMY: f64 = 480.0;
/// The dashes of references: of one that belongs to a series, and of others in turn.
const PARTNER: (f64, f64) = (6.0, 3.5);
const DASHES: [(f64, f64); 4] = [(2.0, 3.0), (11.0, 3.5), (9.0, 6.0), (3.5, 2.0)];
/// Size of the marks of curves and of references.
const MARKS: (f64, f64) = (MARK, 3.4);
/// Curves with more points have dashes instead of marks.
const MOST_MARKS: usize = 40;
/// Distance between the strokes of a hatch.
const HATCH: f64 = 6.0;

/// The sample of an entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::plot) enum Sample {
    /// The bar of a series.
    Bar(usize),
    /// The dot of a series on a logarithmic axis.
    Dot(usize),
    /// The curve of a series or a reference.
    Curve(Look),
    /// The point of a roofline.
    Point(usize),
    /// The limit of a group of bars.
    Ceiling,
    /// A bar without value.
    Missing,
}

/// How a curve is drawn: by its colour, and by marks or a dash, so that a print without
/// colours can be read, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::plot) struct Look {
    pub stroke: Stroke,
    /// The number and the size of its marks.
    mark: Option<(usize, f64)>,
}

impl Look {
    /// Draws a line.
    pub(crate) fn draw(self, scene: &mut Scene, points: Vec<Point>) {
        self.stroke.draw(scene, points);
    }

    /// Draws the marks at points.
    pub(crate) fn marks(self, scene: &mut Scene, points: &[Point]) {
        if let Some((nth, size)) = self.mark {
            points.iter().for_each(|&point| Mark::nth(nth).sized(scene, point, size));
        }
    }
}

/// Returns the look of each curve of a figure. A reference that belongs to a series has its
/// colour and its marks.
fn looks(figure: &Figure) -> Vec<(&str, Look)> {
    let all: Vec<&CurveSeries> = figure
        .panels
        .iter()
        .flat_map(|panel| match &panel.content {
            Content::Curves(curves) => &curves.series[..],
            _ => &[],
        })
        .collect();
    let mut own: Vec<&str> = Vec::new();
    for series in all.iter().filter(|series| !series.reference) {
        if !own.contains(&series.name.as_str()) {
            own.push(&series.name);
        }
    }
    let has_marks = all.iter().all(|series| series.points.len() <= MOST_MARKS);
    let mark = |nth, size| has_marks.then_some((nth, size));
    let mut others = 0;
    let mut looks: Vec<(&str, Look)> = Vec::new();
    for series in all {
        if looks.iter().any(|(name, _)| *name == series.name) {
            continue;
        }
        let place = |name: &str| own.iter().position(|other| *other == name);
        let look = match (series.reference, series.of.as_deref().and_then(place)) {
            (false, _) => {
                let nth = place(&series.name).unwrap_or(0);
                let stroke = Stroke::nth(nth, &PALETTE, 1.7);
                let dash = if has_marks { None } else { stroke.dash };
                Look { stroke: Stroke { dash, ..stroke }, mark: mark(nth, MARKS.0) }
            }
            (true, Some(nth)) => {
                let colour = PALETTE[nth % PALETTE.len()];
                Look { stroke: Stroke { colour, width: 1.4, dash: Some(PARTNER) }, mark: mark(nth, MARKS.1) }
            }
            (true, None) => {
                let colour = PALETTE[(own.len() + others) % PALETTE.len()];
                let dash = Some(DASHES[others % DASHES.len()]);
                others += 1;
                Look { stroke: Stroke { colour, width: 1.4, dash }, mark: None }
            }
        };
        looks.push((&series.name, look));
    }
    looks
}

/// The entries of the legend, which give each series its number in the whole figure.
#[derive(Clone, Debug, Default)]
pub(in crate::plot) struct Key {
    entries: Vec<(String, Sample)>,
    /// Whether the names of curves stand at their ends.
    pub at_ends: bool,
    /// Whether the names of the points of rooflines stand next to them.
    pub at_points: bool,
}

impl Key {
    /// Collects the entries of all panels, which have this width.
    pub(crate) fn of(figure: &Figure, width: f64) -> Key {
        let mut key = Key::default();
        let looks = looks(figure);
        for panel in &figure.panels {
            match &panel.content {
                Content::Bars(bars) => {
                    bars.series.iter().for_each(|series| key.add(&series.name, sample(bars)));
                    bars.ceiling.iter().for_each(|ceiling| key.add(&ceiling.name, |_| Sample::Ceiling));
                    if bars.series.iter().any(|series| series.values.contains(&None)) {
                        key.add("no value", |_| Sample::Missing);
                    }
                }
                Content::Curves(curves) => {
                    for series in &curves.series {
                        let look = looks.iter().find(|(name, _)| *name == series.name);
                        look.iter().for_each(|(name, look)| key.add(name, |_| Sample::Curve(*look)));
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
        key.at_ends = match &figure.panels[..] {
            [panel] if key.entries.len() > MOST_NAMED => match &panel.content {
                Content::Curves(curves) => ends::names_fit(curves, width),
                _ => false,
            },
            _ => false,
        };
        key
    }

    /// Returns the entries of lines with marks, which have these names.
    pub(crate) fn of_lines(names: &[&str], width: f64) -> Key {
        let look = |nth| Look {
            stroke: Stroke { dash: None, ..Stroke::nth(nth, &PALETTE, width) },
            mark: Some((nth, MARKS.0)),
        };
        let mut key = Key::default();
        let entry = |(nth, name): (usize, &&str)| ((*name).to_owned(), Sample::Curve(look(nth)));
        key.entries = names.iter().enumerate().map(entry).collect();
        key
    }

    /// Adds an entry unless it exists or has no name. Samples of the same kind are numbered.
    fn add(&mut self, name: &str, sample: impl Fn(usize) -> Sample) {
        let kind = |sample: Sample| std::mem::discriminant(&sample);
        let same = self.entries.iter().filter(|(_, known)| kind(*known) == kind(sample(0)));
        let (mut count, mut known) = (0, false);
        for (other, _) in same {
            count += 1;
            known |= other == name;
        }
        if !known && !name.is_empty() {
            self.entries.push((name.to_owned(), sample(count)));
        }
    }

    /// Returns the number of a series among the samples of its kind.
    pub(crate) fn number(&self, name: &str, sample: impl Fn(usize) -> Sample) -> usize {
        let kind = std::mem::discriminant(&sample(0));
        let same = self.entries.iter().filter(|(_, known)| std::mem::discriminant(known) == kind);
        same.map(|(name, _)| name).position(|known| known == name).unwrap_or(0)
    }

    /// Returns the look of a curve.
    pub(crate) fn look(&self, name: &str) -> Option<Look> {
        self.entries.iter().find_map(|(known, sample)| match sample {
            Sample::Curve(look) if known == name => Some(*look),
            _ => None,
        })
    }

    /// Lays out the entries in rows no wider than `room`.
    fn rows(&self, room: f64) -> Vec<Vec<(String, Sample)>> {
        let shown = self.entries.iter().filter(|(_, sample)| match sample {
            Sample::Point(_) => !self.at_points,
            Sample::Curve(_) => !self.at_ends,
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
    pub(crate) fn height(&self, room: f64) -> f64 {
        self.rows(room).len() as f64 * LINE
    }

    /// Draws the legend around the middle of the picture.
    pub(crate) fn draw(&self, scene: &mut Scene, top: f64, room: f64) {
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
            Sample::Dot(nth) => Mark::nth(nth).draw(scene, middle),
            Sample::Curve(look) => {
                look.draw(scene, line);
                look.marks(scene, &[middle]);
            }
            Sample::Point(nth) => Mark::nth(nth).draw(scene, middle),
            Sample::Ceiling => ceiling(scene, line),
            Sample::Missing => missing(scene, middle),
        }
    }
}

/// Returns the sample of the series of a panel of bars.
pub(super) fn sample(bars: &Bars) -> impl Fn(usize) -> Sample + use<> {
    if bars.logarithmic { Sample::Dot } else { Sample::Bar }
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
