//! Draws groups of bars with their values, spreads and limits.

use super::grid::{Area, LABEL, Names};
use super::key::{Key, Sample, bar, bar_colour, ceiling, missing};
use super::scale::{Scale, short};
use super::{BarSeries, Bars};
use crate::plot::letters::text_width;
use crate::plot::scene::{Anchor, Colour, GREY, GRID, INK, Lettering, PAPER, Scene};
use crate::plot::style::contrast;

/// Share of a group's width that its bars use, and the width of the widest bar.
const USED: f64 = 0.86;
const WIDEST: f64 = 56.0;
/// Least width of a bar with a value that runs upwards.
const UPRIGHT: f64 = 11.5;
/// Distance between a bar and its value.
const SPACE: f64 = 4.0;
const VALUE: Lettering = LABEL;
const MISSING: &str = "n/a";

/// Returns all values that the axis must contain.
pub(super) fn values(bars: &Bars) -> Vec<f64> {
    let ends =
        bars.series.iter().flat_map(|series| series.values.iter().chain(&series.low).chain(&series.high));
    let limits = bars.ceiling.iter().flat_map(|ceiling| &ceiling.values);
    let zero = (!bars.logarithmic).then_some(0.0);
    ends.chain(limits).flatten().copied().chain(bars.line_at).chain(zero).collect()
}

/// Returns the axis: bars start at zero, or below the least value of a logarithmic axis.
pub(super) fn scale(values: &[f64], logarithmic: bool) -> Scale {
    let scale = Scale::around(values, logarithmic);
    if logarithmic {
        let low = 10f64.powf((scale.low * 0.8).log10().floor());
        return Scale { low, ..scale }.extended(0.0, 0.12);
    }
    let room = |end: f64| if end == 0.0 { 0.0 } else { 0.13 };
    scale.extended(room(scale.low), room(scale.high))
}

/// The way in which a panel prints values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Print {
    Level,
    Upwards,
    Not,
}

/// What all bars of a panel share.
struct Look {
    area: Area,
    scale: Scale,
    width: f64,
    base: f64,
    print: Print,
}

/// Draws the panel inside its axes, and the names of the groups below it.
pub(super) fn draw(scene: &mut Scene, bars: &Bars, area: Area, scale: Scale, key: &Key) {
    let step = area.width() / bars.groups.len() as f64;
    let width = (step * USED / bars.series.len() as f64).min(WIDEST);
    let base = if scale.logarithmic { scale.low } else { 0.0 };
    let look = Look { area, scale, width, base: area.down(scale, base), print: print(bars, width) };
    for i in 1..bars.groups.len() {
        let x = area.from.0 + step * i as f64;
        scene.line(vec![(x, area.from.1), (x, area.to.1)], GRID, 1.0);
    }
    let used = width * bars.series.len() as f64;
    let limits = bars.ceiling.as_ref().map(|ceiling| &ceiling.values);
    for group in 0..bars.groups.len() {
        let left = area.from.0 + step * group as f64 + (step - used) / 2.0;
        let limit = limits.and_then(|limits| limits[group]).map(|value| area.down(scale, value));
        for (i, series) in bars.series.iter().enumerate() {
            let nth = key.number(&series.name, Sample::Bar);
            look.bar(scene, series, group, left + width * i as f64, nth, limit);
        }
        if let Some(y) = limit {
            let reach = (step - used).min(8.0) / 2.0;
            ceiling(scene, vec![(left - reach, y), (left + used + reach, y)]);
        }
    }
    scene.line(vec![(area.from.0, look.base), (area.to.0, look.base)], INK, 1.0);
    if let Some(value) = bars.line_at {
        let y = area.down(scale, value);
        scene.dashed(&[(area.from.0, y), (area.to.0, y)], INK, 1.3, (6.0, 4.0));
    }
    Names::below(&bars.groups, area.width()).draw(scene, area);
}

/// Chooses how to print values: level if all fit, else upwards, else not at all.
fn print(bars: &Bars, width: f64) -> Print {
    let texts =
        bars.series.iter().flat_map(|series| series.values.iter().flatten()).map(|&value| short(value));
    let widest = texts.map(|text| text_width(&text, VALUE)).fold(0.0, f64::max);
    match width {
        width if widest + 3.0 <= width => Print::Level,
        width if width >= UPRIGHT => Print::Upwards,
        _ => Print::Not,
    }
}

impl Look {
    /// Draws the bar of a series in a group, with its spread and its value.
    fn bar(
        &self,
        scene: &mut Scene,
        series: &BarSeries,
        group: usize,
        left: f64,
        nth: usize,
        limit: Option<f64>,
    ) {
        let gap = if self.width > 6.0 { 0.75 } else { 0.25 };
        let middle = left + self.width / 2.0;
        let Some(value) = series.values[group] else {
            match self.width >= UPRIGHT {
                true => scene.text_up(
                    (middle, self.base - SPACE),
                    MISSING,
                    Lettering { colour: GREY, ..VALUE },
                    Anchor::Start,
                ),
                false => missing(scene, (middle, self.base - 6.0)),
            }
            return;
        };
        let end = self.area.down(self.scale, value);
        let (top, bottom) = (end.min(self.base), end.max(self.base));
        bar(scene, (left + gap, top), (left + self.width - gap, bottom), nth);
        let spread = |ends: &[Option<f64>]| ends.get(group).copied().flatten();
        let ends = [spread(&series.low), spread(&series.high)]
            .map(|end| end.map(|end| self.area.down(self.scale, end)));
        let outer = ends.iter().flatten().copied();
        if let [Some(low), Some(high)] = ends {
            let cap = (self.width * 0.22).min(5.0);
            for (colour, width) in [(PAPER, 3.0), (INK, 1.2)] {
                scene.line(vec![(middle, low), (middle, high)], colour, width);
            }
            for y in [low, high] {
                scene.line(vec![(middle - cap, y), (middle + cap, y)], INK, 1.2);
            }
        }
        // The value stands beyond the bar and its spread.
        let (top, bottom) = outer.fold((top, bottom), |(top, bottom), y| (top.min(y), bottom.max(y)));
        let inside = ends == [None, None];
        self.value(scene, value, (middle, top, bottom), inside.then(|| bar_colour(nth)), limit);
    }

    /// Prints a value inside its bar if it is long enough and `inside` is its colour, else beyond its end and beyond the limit
    /// of the group.
    fn value(
        &self,
        scene: &mut Scene,
        value: f64,
        place: (f64, f64, f64),
        inside: Option<Colour>,
        limit: Option<f64>,
    ) {
        let (middle, mut top, mut bottom) = place;
        let text = short(value);
        let wide = text_width(&text, VALUE);
        let (half, length) = match self.print {
            Print::Level => (wide / 2.0, VALUE.size + 1.0),
            Print::Upwards => (VALUE.size / 2.0, wide),
            Print::Not => return,
        };
        let crosses = |from: f64, to: f64| limit.is_some_and(|y| y > from - 3.0 && y < to + 3.0);
        let upwards = self.print == Print::Upwards;
        let within = if upwards { SPACE } else { 2.0 };
        let fits = bottom - top >= length + 2.0 * within;
        let inner = match value < 0.0 {
            true => (bottom - within - length, bottom - within),
            false => (top + within, top + within + length),
        };
        if let Some(colour) = inside
            .filter(|_| fits && (upwards || crosses(top - length - SPACE, top)) && !crosses(inner.0, inner.1))
        {
            let ink = if contrast(PAPER, colour) >= contrast(INK, colour) { PAPER } else { INK };
            self.text(scene, text, (middle, inner.0, inner.1), ink);
            return;
        }
        if value < 0.0 {
            if crosses(bottom + SPACE, bottom + SPACE + length) {
                bottom = limit.unwrap_or(bottom);
            }
            if bottom + SPACE + length <= self.area.to.1 {
                self.text(scene, text, (middle, bottom + SPACE, bottom + SPACE + length), INK);
            }
            return;
        }
        if crosses(top - SPACE - length, top - SPACE) {
            top = limit.unwrap_or(top);
        }
        if top - SPACE - length >= self.area.from.1 {
            let from = top - SPACE - length;
            scene.area((middle - half, from), (middle + half, top - 1.5), PAPER);
            self.text(scene, text, (middle, from, top - SPACE), INK);
        }
    }

    /// Prints a value between two heights.
    fn text(&self, scene: &mut Scene, text: String, (x, top, bottom): (f64, f64, f64), colour: Colour) {
        let lettering = Lettering { colour, ..VALUE };
        match self.print {
            Print::Upwards => scene.text_up((x, bottom), text, lettering, Anchor::Start),
            _ => scene.text((x, (top + bottom) / 2.0), text, lettering, Anchor::Middle),
        }
    }
}
