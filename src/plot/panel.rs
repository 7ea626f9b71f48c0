//! A panel of a convergence plot: grid, axes, curves, tolerances and the marks at the end of each run.

use super::axis::{Decades, MARGIN, Range, drawable, power_of_ten};
use super::curve::stripes;
use super::letters::text_width;
use super::scene::{Anchor, Colour, FAINT, GREY, GRID, INK, Lettering, PAPER, Point, Scene};

/// Space for the labels and the title below a panel.
pub(super) const BELOW: f64 = 50.0;
/// Height of a further line of that title.
pub(super) const TITLE_LINE: f64 = 16.0;
/// Type of tick labels.
const LABEL: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
/// Type of axis titles.
const AXIS: Lettering = Lettering { size: 13.0, bold: false, colour: INK };
/// Type of a tolerance's label.
const TOLERANCE: Lettering = Lettering { size: 12.0, bold: false, colour: GREY };
/// Share of the panel's width that curves use.
const USED: f64 = 0.97;
/// Half the size of the marks.
pub(super) const MARK: f64 = 4.5;

/// The line style of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke {
    /// The colour.
    pub colour: Colour,
    /// The width of the curve.
    pub width: f64,
    /// Length of dashes and of gaps; `None` for a solid line.
    pub dash: Option<(f64, f64)>,
}

/// Dashes of runs in turn. Their number and that of the colours have no common factor, so that many
/// runs differ in one of them.
const DASHES: [Option<(f64, f64)>; 4] = [None, Some((9.0, 4.0)), Some((2.5, 3.0)), Some((18.0, 4.0))];
/// The width of the curves of columns.
const THIN: f64 = 0.7;
/// The line from the beginning of a setup to its end: width, dash and gap.
const SETUP: (f64, (f64, f64)) = (1.2, (1.5, 3.5));

impl Stroke {
    /// Returns the style of a run by its number, cycling through `colours` and dashes: runs differ in their
    /// dash, too, for prints without colours.
    pub(crate) fn nth(run: usize, colours: &[Colour], width: f64) -> Stroke {
        Stroke { colour: colours[run % colours.len()], width, dash: DASHES[run % DASHES.len()] }
    }

    /// Draws a line in this style.
    pub(crate) fn draw(self, scene: &mut Scene, points: Vec<Point>) {
        match self.dash {
            Some(dash) => scene.dashed(&points, self.colour, self.width, dash),
            None => scene.line(points, self.colour, self.width),
        }
    }
}

/// One run in one panel, in the units of the axes.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    /// The points of the curve.
    pub points: Vec<(f64, f64)>,
    /// Whether a setup came before the curve.
    pub prepared: bool,
    /// The line style.
    pub stroke: Stroke,
    /// Whether the run converged.
    pub converged: bool,
    /// The end of the run, and the residual recomputed there.
    pub recomputed: (f64, f64),
    /// The curves of all columns of the run, drawn thin below its own curve, with their colours.
    pub columns: Vec<(Vec<(f64, f64)>, Colour)>,
}

/// A rectangle with two axes.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// Top left corner.
    pub from: Point,
    /// Bottom right corner.
    pub to: Point,
    /// The x axis.
    pub range: Range,
    /// Whether the ticks of the x axis are integers.
    pub integer_ticks: bool,
    /// The lines of the title of the x axis.
    pub x_title: Vec<String>,
    /// The name of tolerances.
    pub tolerance: &'static str,
    /// The range of the y axis.
    pub decades: Decades,
}

impl Panel {
    /// Draws the panel with its runs. Later runs are drawn above earlier ones, and all marks
    /// above all curves.
    pub(crate) fn draw(&self, scene: &mut Scene, traces: &[Trace], tolerances: &[f64]) {
        self.grid(scene);
        scene.frame(self.from, self.to, GREY);
        let curves: Vec<Vec<Point>> = traces.iter().map(|trace| self.curve(&trace.points)).collect();
        for (points, colour) in traces.iter().flat_map(|trace| &trace.columns) {
            scene.line(self.curve(points), *colour, THIN);
        }
        for &rtol in tolerances {
            let y = self.down(rtol);
            scene.dashed(&[(self.from.0, y), (self.to.0, y)], GREY, 1.3, (6.0, 4.0));
        }
        for (trace, curve) in traces.iter().zip(&curves) {
            if let Some(&first) = curve.first().filter(|_| trace.prepared) {
                scene.dashed(&[(self.from.0, first.1), first], GREY, SETUP.0, SETUP.1);
            }
        }
        // Dashes are above solid lines, which are visible in their gaps if runs coincide.
        let of_kind = |solid: bool| {
            traces.iter().zip(&curves).filter(move |(trace, _)| trace.stroke.dash.is_none() == solid)
        };
        of_kind(true).for_each(|(trace, curve)| trace.stroke.draw(scene, curve.clone()));
        let solid = of_kind(true).count();
        for (i, (trace, curve)) in of_kind(true).enumerate().filter(|_| solid > 1) {
            for stripe in stripes(curve, i, solid) {
                scene.line(stripe, trace.stroke.colour, trace.stroke.width);
            }
        }
        of_kind(false).for_each(|(trace, curve)| trace.stroke.draw(scene, curve.clone()));
        let marks: Vec<Point> = traces.iter().filter_map(|trace| self.diamond(trace)).collect();
        self.tolerance_labels(scene, tolerances, &curves, &marks);
        for (trace, curve) in traces.iter().zip(&curves) {
            match curve.last() {
                Some(&end) if trace.converged => scene.disc(end, MARK, trace.stroke.colour),
                Some(&end) => scene.cross(end, MARK, trace.stroke.colour),
                None => {}
            }
            if let Some(position) = self.diamond(trace) {
                scene.diamond(position, MARK + 3.5, trace.stroke.colour);
            }
        }
        if curves.iter().all(Vec::is_empty) {
            let middle = ((self.from.0 + self.to.0) / 2.0, (self.from.1 + self.to.1) / 2.0);
            scene.text(middle, "no residual to draw", TOLERANCE, Anchor::Middle);
        }
    }

    fn curve(&self, points: &[(f64, f64)]) -> Vec<Point> {
        // Points left of the axis are omitted, except for the end of a run.
        let visible = points.iter().position(|&(x, _)| !self.range.is_before(x));
        let from = visible.unwrap_or(points.len().saturating_sub(1));
        points[from..].iter().map(|&(x, residual)| (self.across(x), self.down(residual))).collect()
    }

    fn diamond(&self, trace: &Trace) -> Option<Point> {
        let (x, residual) = trace.recomputed;
        drawable(residual).then(|| (self.across(x), self.down(residual)))
    }

    /// Returns the x coordinate; a margin on the right keeps marks at the end complete.
    fn across(&self, x: f64) -> f64 {
        self.from.0 + (self.to.0 - self.from.0) * self.range.share(x).clamp(0.0, 1.0 / USED) * USED
    }

    fn down(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.decades.low), f64::from(self.decades.high));
        let free = (high - low) * MARGIN;
        let share = (high + free - value.log10()) / (high - low + 2.0 * free);
        self.from.1 + (self.to.1 - self.from.1) * share.clamp(0.0, 1.0)
    }

    fn grid(&self, scene: &mut Scene) {
        let (left, right, bottom) = (self.from.0, self.to.0, self.to.1);
        if self.decades.high - self.decades.low <= 4 {
            for exponent in self.decades.low..self.decades.high {
                for digit in 2..10 {
                    let y = self.down(f64::from(digit) * 10f64.powi(exponent));
                    scene.line(vec![(left, y), (right, y)], FAINT, 1.0);
                }
            }
        }
        for exponent in self.decades.labels() {
            let y = self.down(10f64.powi(exponent));
            scene.line(vec![(left, y), (right, y)], GRID, 1.0);
            scene.line(vec![(left - 5.0, y), (left, y)], GREY, 1.0);
            scene.text((left - 11.0, y), power_of_ten(exponent), LABEL, Anchor::End);
        }
        for (at, label) in self.range.ticks(self.integer_ticks, 1.0 / USED) {
            let x = self.across(at);
            let Some(label) = label else {
                scene.line(vec![(x, self.from.1), (x, bottom)], FAINT, 1.0);
                continue;
            };
            scene.line(vec![(x, self.from.1), (x, bottom)], GRID, 1.0);
            scene.line(vec![(x, bottom), (x, bottom + 4.0)], GREY, 1.0);
            // Keeps a long label at the right end within the picture.
            let middle = x.min(right + 22.0 - text_width(&label, LABEL) / 2.0);
            scene.text((middle, bottom + 14.0), label, LABEL, Anchor::Middle);
        }
        for (i, line) in self.x_title.iter().enumerate() {
            let y = bottom + 35.0 + TITLE_LINE * i as f64;
            scene.text(((left + right) / 2.0, y), line.as_str(), AXIS, Anchor::Middle);
        }
    }

    /// Puts each label next to its line, where it covers the fewest curves, marks, labels and lines.
    fn tolerance_labels(&self, scene: &mut Scene, rtols: &[f64], curves: &[Vec<Point>], marks: &[Point]) {
        let mut occupied: Vec<(Point, Point)> = Vec::new();
        for &rtol in rtols {
            let text = format!("{} {rtol:e}", self.tolerance);
            let (width, y) = (text_width(&text, TOLERANCE) + 8.0, self.down(rtol));
            let room = self.to.0 - self.from.0 - width - 12.0;
            let shares = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].into_iter();
            let positions =
                shares.flat_map(|share| [y - 10.0, y + 10.0].map(|middle| (share * room, middle)));
            let boxes = positions.map(|(along, middle)| {
                let left = self.from.0 + 6.0 + along;
                ((left, middle - 8.0), (left + width, middle + 8.0))
            });
            let cost = |&(from, to): &(Point, Point)| {
                let crossed: usize = curves.iter().map(|curve| crossings(curve, from, to)).sum();
                let marked = marks.iter().filter(|&&mark| inside(mark, from, to, 9.0)).count();
                let covered = occupied.iter().filter(|&&(a, b)| overlap((a, b), (from, to))).count();
                let lines =
                    rtols.iter().map(|&other| self.down(other)).filter(|&at| at > from.1 && at < to.1);
                crossed + 50 * (marked + covered) + 20 * lines.count()
            };
            let within = |&(from, to): &(Point, Point)| from.1 >= self.from.1 && to.1 <= self.to.1;
            // The first of equal candidates wins: on the left, where curves are still high.
            if let Some((from, to)) = boxes.filter(within).min_by_key(cost) {
                scene.area(from, to, PAPER);
                scene.text((from.0 + 4.0, (from.1 + to.1) / 2.0), text, TOLERANCE, Anchor::Start);
                occupied.push((from, to));
            }
        }
    }
}

fn overlap((a, b): (Point, Point), (c, d): (Point, Point)) -> bool {
    a.0 < d.0 && c.0 < b.0 && a.1 < d.1 && c.1 < b.1
}

fn inside((x, y): Point, from: Point, to: Point, around: f64) -> bool {
    x > from.0 - around && x < to.0 + around && y > from.1 - around && y < to.1 + around
}

/// Measures how much of a curve runs through a box, in steps of a few pixels.
fn crossings(curve: &[Point], from: Point, to: Point) -> usize {
    let along = |pair: &[Point]| {
        let (a, b) = (pair[0], pair[1]);
        let steps = ((b.0 - a.0).hypot(b.1 - a.1) / 4.0).ceil().max(1.0) as usize;
        let at = |i: usize| i as f64 / steps as f64;
        (0..=steps)
            .filter(|&i| inside((a.0 + (b.0 - a.0) * at(i), a.1 + (b.1 - a.1) * at(i)), from, to, 3.0))
            .count()
    };
    curve.windows(2).map(along).sum()
}
