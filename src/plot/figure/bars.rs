//! Draws groups of bars with their values, spreads and limits.

use super::grid::{Area, LABEL, Names};
use super::key::{Key, Sample, bar, bar_colour, ceiling, missing};
use super::scale::{Scale, short, uniform};
use super::{BarSeries, Bars};
use crate::plot::letters::text_width;
use crate::plot::scene::{Anchor, Colour, GREY, GRID, INK, Lettering, PAPER, Scene};

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
    // Room for values beyond the bars; those above may also stand inside.
    let room = |end: f64, share: f64| if end == 0.0 { 0.0 } else { share };
    scale.extended(room(scale.low, 0.2), room(scale.high, 0.14))
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
    text: Box<dyn Fn(f64) -> String>,
}

/// One bar: that of a series in a group.
struct Bar<'a> {
    series: &'a BarSeries,
    group: usize,
    left: f64,
    nth: usize,
    /// Heights of lines that values should not cover.
    limits: &'a [f64],
}

/// Draws the panel inside its axes, and the names of the groups below it.
pub(super) fn draw(scene: &mut Scene, bars: &Bars, area: Area, scale: Scale, key: &Key) {
    let step = area.width() / bars.groups.len() as f64;
    let width = (step * USED / bars.series.len() as f64).min(WIDEST);
    let base = area.down(scale, if scale.logarithmic { scale.low } else { 0.0 });
    let text = texts(bars);
    let look = Look { area, scale, width, base, print: print(bars, &text, width), text };
    for i in 1..bars.groups.len() {
        let x = area.from.0 + step * i as f64;
        scene.line(vec![(x, area.from.1), (x, area.to.1)], GRID, 1.0);
    }
    let used = width * bars.series.len() as f64;
    let ceilings = bars.ceiling.as_ref().map(|ceiling| &ceiling.values);
    for group in 0..bars.groups.len() {
        let first = area.from.0 + step * group as f64 + (step - used) / 2.0;
        let limit = ceilings.and_then(|values| values[group]).map(|value| area.down(scale, value));
        let line_at = bars.line_at.map(|value| area.down(scale, value));
        let limits: Vec<f64> = limit.into_iter().chain(line_at).collect();
        for (i, series) in bars.series.iter().enumerate() {
            let (left, nth) = (first + width * i as f64, key.number(&series.name, Sample::Bar));
            look.draw(scene, &Bar { series, group, left, nth, limits: &limits });
        }
        if let Some(y) = limit {
            let reach = (step - used).min(8.0) / 2.0;
            ceiling(scene, vec![(first - reach, y), (first + used + reach, y)]);
        }
    }
    scene.line(vec![(area.from.0, base), (area.to.0, base)], INK, 1.0);
    if let Some(value) = bars.line_at {
        let y = area.down(scale, value);
        scene.dashed(&[(area.from.0, y), (area.to.0, y)], INK, 1.3, (6.0, 4.0));
    }
    Names::below(&bars.groups, area.width()).draw(scene, area);
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

/// Chooses how to print values: level if all fit, else upwards, else not at all.
fn print(bars: &Bars, text: &dyn Fn(f64) -> String, width: f64) -> Print {
    let texts =
        bars.series.iter().flat_map(|series| series.values.iter().flatten()).map(|&value| text(value));
    let widest = texts.map(|text| text_width(&text, VALUE)).fold(0.0, f64::max);
    match width {
        width if widest + 3.0 <= width => Print::Level,
        width if width >= UPRIGHT => Print::Upwards,
        _ => Print::Not,
    }
}

impl Look {
    /// Draws a bar with its spread and its value.
    fn draw(&self, scene: &mut Scene, of: &Bar) {
        let gap = if self.width > 6.0 { 0.75 } else { 0.25 };
        let middle = of.left + self.width / 2.0;
        let Some(value) = of.series.values[of.group] else {
            let grey = Lettering { colour: GREY, ..VALUE };
            match self.width >= UPRIGHT {
                true => scene.text_up((middle, self.base - SPACE), MISSING, grey, Anchor::Start),
                false => missing(scene, (middle, self.base - 6.0)),
            }
            return;
        };
        let end = self.area.down(self.scale, value);
        let (top, bottom) = (end.min(self.base), end.max(self.base));
        bar(scene, (of.left + gap, top), (of.left + self.width - gap, bottom), of.nth);
        let spread = |ends: &[Option<f64>]| ends.get(of.group).copied().flatten();
        let ends = [spread(&of.series.low), spread(&of.series.high)];
        let ends = ends.map(|end| end.map(|end| self.area.down(self.scale, end)));
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
        let outer = ends.iter().flatten().copied();
        let (top, bottom) = outer.fold((top, bottom), |(top, bottom), y| (top.min(y), bottom.max(y)));
        let inside = (ends == [None, None]).then(|| bar_colour(of.nth));
        self.value(scene, value, (middle, top, bottom), inside, of.limits);
    }

    /// Prints a value inside its bar if it runs upwards or a line is above, if the bar is long enough, and if `inside` is its
    /// colour. Otherwise prints it beyond the end of the bar and beyond the lines there.
    fn value(
        &self,
        scene: &mut Scene,
        value: f64,
        (middle, top, bottom): (f64, f64, f64),
        inside: Option<Colour>,
        limits: &[f64],
    ) {
        let text = (self.text)(value);
        let wide = text_width(&text, VALUE);
        let (half, length) = match self.print {
            Print::Level => (wide / 2.0, VALUE.size),
            Print::Upwards => (VALUE.size / 2.0, wide),
            Print::Not => return,
        };
        let crossed = |from: f64| limits.iter().copied().find(|&y| y > from - 2.0 && y < from + length + 2.0);
        let (negative, upwards) = (value < 0.0, self.print == Print::Upwards);
        let within = if upwards { SPACE } else { 2.0 };
        let inner = if negative { bottom - within - length } else { top + within };
        let beyond = |end: f64| if negative { end + SPACE } else { end - SPACE - length };
        let mut outer = beyond(if negative { bottom } else { top });
        let fits = bottom - top >= length + 2.0 * within && crossed(inner).is_none();
        if let Some(colour) = inside.filter(|_| fits && (upwards || crossed(outer).is_some())) {
            let (reach, middle_of) = (self.width / 2.0 - 1.0, (middle, inner + length / 2.0));
            // Covers the hatch.
            scene.area((middle - reach, inner - 2.0), (middle + reach, inner + length + 2.0), colour);
            scene.text_on(colour, middle_of, text, VALUE, upwards);
            return;
        }
        for _ in limits {
            outer = crossed(outer).map_or(outer, beyond);
        }
        if outer >= self.area.from.1 && outer + length <= self.area.to.1 {
            scene.area((middle - half, outer), (middle + half, outer + length), PAPER);
            let at = (middle, outer + length / 2.0);
            match upwards {
                true => scene.text_upwards(at, text, VALUE),
                false => scene.text(at, text, VALUE, Anchor::Middle),
            }
        }
    }
}
