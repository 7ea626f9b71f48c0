//! Draws groups of measurements, a lane for each series: bars from zero on a linear axis, dots on a
//! logarithmic one, which has no zero for bars to begin at. Spreads are lines with caps, and limits
//! are strokes across a group.

use super::grid::{Area, LABEL, names_beside};
use super::key::{Key, bar, bar_colour, ceiling, missing, sample};
use super::scale::{Scale, short, uniform};
use super::{BarSeries, Bars};
use crate::plot::captions::fit;
use crate::plot::letters::text_width;
use crate::plot::marks::Mark;
use crate::plot::panel::MARK;
use crate::plot::scene::{Anchor, GRID, INK, PAPER, Scene};

/// Heights of a lane, and the least height that has room for a value.
const LANES: (f64, f64) = (4.0, 15.0);
const ROOM_FOR_VALUE: f64 = 10.0;
/// The least size of a dot.
const SMALLEST_MARK: f64 = 2.8;
/// Share of a lane that its bar uses.
const USED: f64 = 0.84;
/// Space between groups of several lanes, and the line of a name above its group.
const GAP: f64 = 9.0;
const NAME_LINE: f64 = 15.0;
/// The most room for names left of the panel, as a share of the width.
const WIDEST_NAME: f64 = 0.36;
/// Heights of all lanes as a share of the width, in a narrow picture and in others, and the
/// width of a narrow one.
const TALL: (f64, f64) = (1.3, 0.9);
const NARROW: f64 = 480.0;
/// The fewest values beside an outlier.
const FEWEST: usize = 8;
/// Distance between the edge and the dot of an outlier: its arrow is between them.
const ARROW: f64 = 22.0;
/// Distance between a bar or dot and its value.
const SPACE: f64 = 4.0;

/// Returns all values that the axis must contain: all but those of one measurement that is so far from the
/// others that they would have less than half of a logarithmic axis. An arrow at the edge shows such a
/// measurement.
pub(super) fn values(bars: &Bars) -> Vec<f64> {
    let mut measured: Vec<Vec<f64>> = bars.series.iter().flat_map(of_groups).collect();
    let limits = bars.ceiling.iter().flat_map(|ceiling| ceiling.values.iter().flatten());
    let zero = (!bars.logarithmic).then_some(0.0);
    let fixed: Vec<f64> = limits.copied().chain(bars.line_at).chain(zero).collect();
    if bars.logarithmic && measured.len() > FEWEST {
        let length = |measured: &[Vec<f64>]| {
            let all = || measured.iter().flatten().chain(&fixed).copied();
            (all().fold(0.0, f64::max) / all().fold(f64::INFINITY, f64::min)).ln()
        };
        measured.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let half = length(&measured) / 2.0;
        if length(&measured[1..]) < half {
            measured.remove(0);
        } else if length(&measured[..measured.len() - 1]) < half {
            measured.pop();
        }
    }
    measured.into_iter().flatten().chain(fixed).collect()
}

/// Returns, for each group that a series has a value for, the value and the ends of its spread.
fn of_groups(series: &BarSeries) -> impl Iterator<Item = Vec<f64>> {
    let ends = [&series.values, &series.low, &series.high];
    (0..series.values.len())
        .map(move |group| ends.iter().filter_map(|list| list.get(group).copied().flatten()).collect())
        .filter(|values: &Vec<f64>| !values.is_empty())
}

/// Returns the axis, with room for values beyond bars and dots.
pub(super) fn scale(values: &[f64], logarithmic: bool) -> Scale {
    let scale = Scale::around(values, logarithmic);
    if logarithmic {
        return scale.extended(0.05, 0.12);
    }
    let room = |end: f64| if end == 0.0 { 0.0 } else { 0.14 };
    scale.extended(room(scale.low), room(scale.high))
}

/// Where the names of groups stand, and how high the lanes are.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    names: Vec<String>,
    /// The room left of the panel, if all names fit there; otherwise they are above their groups.
    pub left: Option<f64>,
}

impl Rows {
    /// Lays out the names for a panel of this width with its labels.
    pub(crate) fn of(bars: &Bars, cell: f64) -> Rows {
        let (names, room) = names_beside(&bars.groups, WIDEST_NAME * cell);
        if names == bars.groups {
            return Rows { names, left: Some(room) };
        }
        let names = bars.groups.iter().map(|name| fit(name, LABEL, cell - 20.0)).collect();
        Rows { names, left: None }
    }

    fn above(&self) -> f64 {
        if self.left.is_some() { 0.0 } else { NAME_LINE }
    }

    /// Returns the space between groups: those of one lane have none.
    fn gap(bars: &Bars) -> f64 {
        if bars.series.len() > 1 { GAP } else { 0.0 }
    }

    /// Returns the height of a lane in axes of this width.
    fn lane(&self, bars: &Bars, width: f64) -> f64 {
        let (groups, series) = (bars.groups.len() as f64, bars.series.len() as f64);
        let tall = if width < NARROW { TALL.0 } else { TALL.1 };
        let room = tall * width - groups * (Rows::gap(bars) + self.above());
        (room / (groups * series)).clamp(LANES.0, LANES.1)
    }

    /// Returns the height of a group.
    fn band(&self, bars: &Bars, width: f64) -> f64 {
        Rows::gap(bars) + self.above() + self.lane(bars, width) * bars.series.len() as f64
    }

    /// Returns the height of the axes.
    pub(crate) fn height(&self, bars: &Bars, width: f64) -> f64 {
        self.band(bars, width) * bars.groups.len() as f64
    }
}

/// What all lanes of a panel share.
struct Look {
    area: Area,
    scale: Scale,
    lane: f64,
    base: f64,
    text: Box<dyn Fn(f64) -> String>,
}

/// The measurement of a series in a group.
#[derive(Clone, Copy)]
struct One<'a> {
    value: f64,
    /// The ends of its spread.
    ends: [Option<f64>; 2],
    /// The middle of its lane.
    y: f64,
    nth: usize,
    /// Positions of lines that values should not cover.
    limits: &'a [f64],
}

/// Draws the panel inside its axes, and the names of the groups.
pub(super) fn draw(scene: &mut Scene, bars: &Bars, area: Area, scale: Scale, key: &Key, rows: &Rows) {
    let (lane, band) = (rows.lane(bars, area.width()), rows.band(bars, area.width()));
    let base = area.across(scale, if scale.logarithmic { scale.low } else { 0.0 });
    let look = Look { area, scale, lane, base, text: texts(bars) };
    if let Some(value) = bars.line_at {
        let x = area.across(scale, value);
        scene.dashed(&[(x, area.from.1), (x, area.to.1)], INK, 1.3, (6.0, 4.0));
    }
    for (group, name) in rows.names.iter().enumerate() {
        let top = area.from.1 + band * group as f64;
        if group > 0 && bars.series.len() > 1 {
            scene.line(vec![(area.from.0, top), (area.to.0, top)], GRID, 1.0);
        }
        let lanes = top + Rows::gap(bars) / 2.0 + rows.above();
        match rows.left {
            Some(_) => scene.text((area.from.0 - 7.0, top + band / 2.0), name.as_str(), LABEL, Anchor::End),
            None => {
                let middle = top + 2.0 + NAME_LINE / 2.0;
                let to = area.from.0 + 10.0 + text_width(name, LABEL);
                scene.area((area.from.0 + 1.0, middle - 6.5), (to, middle + 6.5), PAPER);
                scene.text((area.from.0 + 6.0, middle), name.as_str(), LABEL, Anchor::Start);
            }
        }
        let limit = bars.ceiling.as_ref().and_then(|ceiling| ceiling.values[group]);
        let limit = limit.map(|value| area.across(scale, value));
        if let Some(x) = limit {
            ceiling(scene, vec![(x, lanes - 2.0), (x, lanes + lane * bars.series.len() as f64 + 2.0)]);
        }
        let limits: Vec<f64> =
            limit.into_iter().chain(bars.line_at.map(|at| area.across(scale, at))).collect();
        for (i, series) in bars.series.iter().enumerate() {
            let (y, nth) = (lanes + lane * (i as f64 + 0.5), key.number(&series.name, sample(bars)));
            let end = |ends: &[Option<f64>]| ends.get(group).copied().flatten();
            match series.values[group] {
                None => missing(scene, (look.base + 7.0, y)),
                Some(value) => {
                    let ends = [end(&series.low), end(&series.high)];
                    look.draw(scene, One { value, ends, y, nth, limits: &limits });
                }
            }
        }
    }
    if !scale.logarithmic {
        scene.line(vec![(base, area.from.1), (base, area.to.1)], INK, 1.0);
    }
}

/// Returns the format of values.
fn texts(bars: &Bars) -> Box<dyn Fn(f64) -> String> {
    let values: Vec<f64> =
        bars.series.iter().flat_map(|series| series.values.iter().flatten()).copied().collect();
    match bars.logarithmic {
        true => Box::new(short),
        false => Box::new(uniform(&values)),
    }
}

impl Look {
    /// Draws a bar or a dot with its spread and its value.
    fn draw(&self, scene: &mut Scene, one: One) {
        if !(self.scale.low..=self.scale.high).contains(&one.value) {
            return self.outlier(scene, one);
        }
        let at = self.area.across(self.scale, one.value);
        let (mut left, mut right) = (at.min(self.base), at.max(self.base));
        if self.scale.logarithmic {
            // Marks of narrow lanes may overlap.
            let reach = (0.45 * self.lane).clamp(SMALLEST_MARK, MARK - 0.5);
            (left, right) = (at - reach, at + reach);
            self.spread(scene, one);
            Mark::nth(one.nth).sized(scene, (at, one.y), reach);
        } else {
            let half = self.lane * USED / 2.0;
            bar(scene, (left, one.y - half), (right, one.y + half), one.nth);
            self.spread(scene, one);
        }
        if self.lane < ROOM_FOR_VALUE {
            return;
        }
        let ends = one.ends.iter().flatten().map(|&end| self.area.across(self.scale, end));
        let (left, right) = ends.fold((left, right), |(left, right), x| (left.min(x), right.max(x)));
        self.value(scene, one, (left, right));
    }

    /// Draws a dot near the edge with an arrow to its value beyond the axis, and prints the value.
    fn outlier(&self, scene: &mut Scene, one: One) {
        let (low, y) = (one.value < self.scale.low, one.y);
        let (edge, inwards) = if low { (self.area.from.0, 1.0) } else { (self.area.to.0, -1.0) };
        let at = |distance: f64| edge + inwards * distance;
        let colour = bar_colour(one.nth);
        scene.line(vec![(at(3.0), y), (at(ARROW - 6.0), y)], colour, 1.2);
        scene.line(vec![(at(7.0), y - 3.0), (at(3.0), y), (at(7.0), y + 3.0)], colour, 1.2);
        Mark::nth(one.nth).sized(scene, (at(ARROW), y), SMALLEST_MARK);
        let (text, anchor) = ((self.text)(one.value), if low { Anchor::Start } else { Anchor::End });
        scene.text((at(ARROW + 7.0), y), text, LABEL, anchor);
    }

    /// Draws the line from the low to the high end of a spread.
    fn spread(&self, scene: &mut Scene, one: One) {
        let [Some(low), Some(high)] = one.ends.map(|end| end.map(|end| self.area.across(self.scale, end)))
        else {
            return;
        };
        let cap = (self.lane * 0.3).min(4.0);
        let colour = if self.scale.logarithmic { bar_colour(one.nth) } else { INK };
        for (colour, width) in [(PAPER, 3.0), (colour, 1.2)] {
            scene.line(vec![(low, one.y), (high, one.y)], colour, width);
        }
        for x in [low, high] {
            scene.line(vec![(x, one.y - cap), (x, one.y + cap)], colour, 1.2);
        }
    }

    /// Prints a value beyond the end of its bar, dot or spread and beyond the lines there, or else before it.
    fn value(&self, scene: &mut Scene, one: One, (left, right): (f64, f64)) {
        let text = (self.text)(one.value);
        let wide = text_width(&text, LABEL);
        let crossed =
            |from: f64| one.limits.iter().copied().find(|&x| x > from - 2.0 && x < from + wide + 2.0);
        let negative = one.value < 0.0 && !self.scale.logarithmic;
        let beyond = |end: f64| if negative { end - SPACE - wide } else { end + SPACE };
        let mut from = beyond(if negative { left } else { right });
        for _ in one.limits {
            from = crossed(from).map_or(from, beyond);
        }
        let within = |from: f64| from >= self.area.from.0 + 1.0 && from + wide <= self.area.to.0 - 1.0;
        if !within(from) && self.scale.logarithmic {
            from = left - SPACE - wide;
        }
        let half = LABEL.size / 2.0;
        if within(from) {
            scene.area((from - 1.0, one.y - half), (from + wide + 1.0, one.y + half), PAPER);
            scene.text((from, one.y), text, LABEL, Anchor::Start);
        } else if !self.scale.logarithmic && right - left > wide + 2.0 * SPACE {
            let (colour, inner) =
                (bar_colour(one.nth), if negative { left + SPACE } else { right - SPACE - wide });
            // Covers the hatch.
            scene.area((inner - 1.0, one.y - half), (inner + wide + 1.0, one.y + half), colour);
            scene.text_on(colour, (inner + wide / 2.0, one.y), text, LABEL, false);
        }
    }
}
