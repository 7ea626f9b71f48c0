//! Draws a table of coloured cells with their values, and the bar that explains the colours.

use super::HeatMap;
use super::grid::{AXIS, Area, LABEL, Names, names_beside, title_below, title_height};
use super::scale::{Scale, digits, short};
use crate::plot::captions::wrap;
use crate::plot::letters::text_width;
use crate::plot::ramp::{DIVERGING, SEQUENTIAL, shade};
use crate::plot::scene::{Anchor, Colour, FAINT, GREY, Lettering, Point, Scene};

/// Heights of cells.
const LOWEST: f64 = 22.0;
const HIGHEST: f64 = 38.0;
/// The colour bar: width, height and steps, the height of all of it with its labels, and that of a line
/// of its quantity above it.
const BAR: f64 = 240.0;
const BAR_HEIGHT: f64 = 11.0;
const STEPS: usize = 60;
const BAR_LINE: f64 = 38.0;
const QUANTITY_LINE: f64 = 16.0;
const MISSING: &str = "n/a";
/// The most room for the names of rows, as a share of the width.
const WIDEST_NAME: f64 = 0.44;

/// The meaning of colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Colours {
    pub scale: Scale,
    pub centre: Option<f64>,
}

impl Colours {
    /// Returns the colour of a value. Colours that diverge from a centre have the same
    /// strength at the same distance.
    fn of(self, value: f64) -> Colour {
        let Some(centre) = self.centre else {
            return shade(&SEQUENTIAL, self.scale.share(value));
        };
        let place = |value: f64| if self.scale.logarithmic { value.ln() } else { value };
        let reach = [self.scale.low, self.scale.high].map(|end| (place(end) - place(centre)).abs());
        let reach = reach[0].max(reach[1]);
        let from = if reach > 0.0 { (place(value) - place(centre)) / reach } else { 0.0 };
        shade(&DIVERGING, 0.5 + from / 2.0)
    }
}

/// Returns all values.
pub(super) fn values(map: &HeatMap) -> Vec<f64> {
    map.values.iter().flatten().flatten().copied().collect()
}

/// Returns the names of the rows in a panel of this width with its names, and their room.
pub(super) fn names(map: &HeatMap, cell: f64) -> (Vec<String>, f64) {
    names_beside(&map.rows, WIDEST_NAME * cell)
}

/// Returns the height of a panel of this width.
pub(super) fn height(map: &HeatMap, width: f64) -> f64 {
    let cell = (0.6 * width / map.columns.len() as f64).clamp(LOWEST, HIGHEST);
    cell * map.rows.len() as f64
}

/// Draws the cells with the names of rows and columns.
pub(super) fn draw(scene: &mut Scene, map: &HeatMap, area: Area, colours: Colours, rows: &[String]) {
    let whole = values(map).iter().all(|value| value.fract() == 0.0);
    let format = |value: f64, count: i32| if whole { short(value) } else { digits(value, count) };
    let step = (area.width() / map.columns.len() as f64, area.height() / map.rows.len() as f64);
    for (i, (row, name)) in map.values.iter().zip(rows).enumerate() {
        let top = area.from.1 + step.1 * i as f64;
        let middle = top + step.1 / 2.0;
        for (j, value) in row.iter().enumerate() {
            let left = area.from.0 + step.0 * j as f64;
            let colour = value.map_or(FAINT, |value| colours.of(value));
            scene.area((left + 0.75, top + 0.75), (left + step.0 - 0.75, top + step.1 - 0.75), colour);
            let fits = |text: &String| text_width(text, LABEL) <= step.0 - 3.0;
            let text = match *value {
                None => Some(MISSING.to_owned()).filter(fits),
                Some(value) => [3, 2, 1].into_iter().map(|count| format(value, count)).find(fits),
            };
            if let Some(text) = text.filter(|_| step.1 > LABEL.size) {
                let at = (left + step.0 / 2.0, middle);
                match value {
                    Some(_) => scene.text_on(colour, at, text, LABEL, false),
                    None => scene.text(at, text, Lettering { colour: GREY, ..LABEL }, Anchor::Middle),
                }
            }
        }
        scene.text((area.from.0 - 7.0, middle), name.as_str(), LABEL, Anchor::End);
    }
    let names = Names::below(&map.columns, area.width());
    names.draw(scene, area);
    title_below(scene, area, names.room + 6.0, &map.column_quantity);
}

/// Returns the space below the cells.
pub(super) fn below(map: &HeatMap, width: f64) -> f64 {
    Names::below(&map.columns, width).room + title_height(&map.column_quantity, width)
}

/// Returns the lines of the quantity of the colour bar, and whether they are above the bar
/// instead of left of it.
fn quantity_lines(quantity: &str, width: f64) -> (Vec<String>, bool) {
    let is_above = text_width(quantity, AXIS) > width - long(width) - 40.0;
    (wrap(quantity, AXIS, width - 30.0, 3), is_above)
}

fn long(width: f64) -> f64 {
    BAR.min(0.45 * width)
}

/// Returns the height of the colour bar with its labels and its quantity.
pub(super) fn bar_height(quantity: &str, width: f64) -> f64 {
    let (lines, is_above) = quantity_lines(quantity, width);
    if is_above { BAR_LINE + QUANTITY_LINE * lines.len() as f64 } else { BAR_LINE }
}

/// Draws the colour bar with its quantity, centred in the picture.
pub(super) fn bar(scene: &mut Scene, colours: Colours, quantity: &str, top: f64) {
    let (long, (lines, is_above)) = (long(scene.width), quantity_lines(quantity, scene.width));
    let wide = if is_above { 0.0 } else { text_width(quantity, AXIS) + 10.0 };
    let left = (scene.width - long - wide) / 2.0 + wide;
    let top = top + bar_height(quantity, scene.width) - BAR_LINE;
    let (from, to): (Point, Point) = ((left, top + 5.0), (left + long, top + 5.0 + BAR_HEIGHT));
    for (i, line) in lines.iter().rev().enumerate() {
        match is_above {
            true => {
                let at = (scene.width / 2.0, top - QUANTITY_LINE * (i as f64 + 0.5) + 1.0);
                scene.text(at, line.as_str(), AXIS, Anchor::Middle);
            }
            false => scene.text((left - 10.0, (from.1 + to.1) / 2.0), line.as_str(), AXIS, Anchor::End),
        }
    }
    let scale = colours.scale;
    for step in 0..STEPS {
        let at = |step: usize| left + long * step as f64 / STEPS as f64;
        let share = (step as f64 + 0.5) / STEPS as f64;
        let value = match scale.logarithmic {
            true => scale.low * (scale.high / scale.low).powf(share),
            false => scale.low + (scale.high - scale.low) * share,
        };
        scene.area((at(step), from.1), (at(step + 1), to.1), colours.of(value));
    }
    scene.frame(from, to, GREY);
    let mut last = f64::NEG_INFINITY;
    for (value, label) in scale.ticks(6) {
        let (x, half) = (left + long * scale.share(value), text_width(&label, LABEL) / 2.0);
        if x - half > last + 6.0 {
            scene.line(vec![(x, to.1), (x, to.1 + 3.0)], GREY, 1.0);
            scene.text((x, to.1 + 11.0), label, LABEL, Anchor::Middle);
            last = x + half;
        }
    }
}
