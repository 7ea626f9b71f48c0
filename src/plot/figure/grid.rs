//! The rectangle of a panel, its axes with ticks and grid, and the names along its sides.

use super::scale::{Scale, short};
use crate::plot::axis::power_of_ten;
use crate::plot::captions::{fit_names, wrap};
use crate::plot::letters::text_width;
use crate::plot::scene::{Anchor, GREY, GRID, INK, Lettering, Point, Scene};

/// Type of tick labels and of axis titles.
pub(super) const LABEL: Lettering = Lettering { size: 11.0, bold: false, colour: INK };
pub(super) const AXIS: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
/// Space of an axis title.
pub(super) const AXIS_TITLE: f64 = 20.0;
/// Height of a line of an axis title.
const AXIS_LINE: f64 = 16.0;
/// Least distances between ticks of a vertical axis, and between labels of a horizontal axis.
const TICK_HEIGHT: f64 = 30.0;
const TICK_GAP: f64 = 10.0;
/// The most room for names that run upwards.
const TALLEST_NAME: f64 = 200.0;
/// Lines of a level name.
const NAME_LINE: f64 = 14.0;
const MOST_LINES: usize = 3;

/// The rectangle inside the axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub from: Point,
    pub to: Point,
}

impl Area {
    pub(crate) fn width(self) -> f64 {
        self.to.0 - self.from.0
    }

    pub(crate) fn height(self) -> f64 {
        self.to.1 - self.from.1
    }

    /// Returns the x coordinate of a value.
    pub(crate) fn across(self, scale: Scale, value: f64) -> f64 {
        self.from.0 + self.width() * scale.share(value)
    }

    /// Returns the y coordinate of a value.
    pub(crate) fn down(self, scale: Scale, value: f64) -> f64 {
        self.to.1 - self.height() * scale.share(value)
    }
}

/// Returns the ticks of a vertical axis of this height.
pub(super) fn vertical_ticks(scale: Scale, height: f64) -> Vec<(f64, String)> {
    scale.ticks(((height / TICK_HEIGHT) as usize).clamp(3, 10))
}

/// Returns the room for the labels of a vertical axis.
pub(super) fn label_room(scale: Scale, height: f64) -> f64 {
    let ticks = vertical_ticks(scale, height);
    ticks.iter().map(|(_, label)| text_width(label, LABEL)).fold(0.0, f64::max) + 10.0
}

/// Draws the grid and the labels of a vertical axis.
pub(super) fn vertical(scene: &mut Scene, area: Area, scale: Scale) {
    for (value, label) in vertical_ticks(scale, area.height()) {
        let y = area.down(scale, value);
        scene.line(vec![(area.from.0, y), (area.to.0, y)], GRID, 1.0);
        scene.line(vec![(area.from.0 - 4.0, y), (area.from.0, y)], GREY, 1.0);
        scene.text((area.from.0 - 7.0, y), label, LABEL, Anchor::End);
    }
}

/// Draws the grid, the labels and the title of a horizontal axis. The ticks are the values of
/// the data if these are few.
pub(super) fn horizontal(scene: &mut Scene, area: Area, scale: Scale, title: &str, values: &[f64]) {
    for (value, label) in horizontal_ticks(scale, area.width(), values) {
        let x = area.across(scale, value);
        scene.line(vec![(x, area.from.1), (x, area.to.1)], GRID, 1.0);
        scene.line(vec![(x, area.to.1), (x, area.to.1 + 4.0)], GREY, 1.0);
        scene.text((x, area.to.1 + 13.0), label, LABEL, Anchor::Middle);
    }
    title_below(scene, area, 31.0, title);
}

/// Writes the title of a horizontal axis, this far below it.
pub(super) fn title_below(scene: &mut Scene, area: Area, distance: f64, title: &str) {
    let middle = (area.from.0 + area.to.0) / 2.0;
    for (i, line) in axis_title(title, area.width()).into_iter().enumerate() {
        scene.text((middle, area.to.1 + distance + AXIS_LINE * i as f64), line, AXIS, Anchor::Middle);
    }
}

/// Returns the lines of the title of a horizontal axis.
fn axis_title(title: &str, width: f64) -> Vec<String> {
    wrap(title, AXIS, width + 20.0, MOST_LINES)
}

/// Returns the height of the title of a horizontal axis.
pub(super) fn title_height(title: &str, width: f64) -> f64 {
    AXIS_LINE * axis_title(title, width).len() as f64
}

/// Returns the space below the axes for the labels and the title of a horizontal axis.
pub(super) fn below_axis(title: &str, width: f64) -> f64 {
    28.0 + title_height(title, width)
}

fn horizontal_ticks(scale: Scale, width: f64, values: &[f64]) -> Vec<(f64, String)> {
    let fits = |ticks: &[(f64, String)]| {
        ticks.windows(2).all(|pair| {
            let widths = text_width(&pair[0].1, LABEL) + text_width(&pair[1].1, LABEL);
            (scale.share(pair[1].0) - scale.share(pair[0].0)) * width >= widths / 2.0 + TICK_GAP
        })
    };
    let mut own = values.to_vec();
    own.sort_by(f64::total_cmp);
    own.dedup();
    if (1..=12).contains(&own.len()) {
        let plain = !scale.logarithmic || scale.is_plain();
        let label = |value: f64| if plain { short(value) } else { power(value) };
        let own: Vec<_> = own.into_iter().map(|value| (value, label(value))).collect();
        if fits(&own) {
            return own;
        }
    }
    let choices = (2..=10).rev().map(|most| scale.ticks(most));
    choices.into_iter().find(|ticks| !ticks.is_empty() && fits(ticks)).unwrap_or_default()
}

/// Formats a value with a power of ten.
fn power(value: f64) -> String {
    let exponent = (value.log10() + 1e-9).floor() as i32;
    match short((value / 10f64.powi(exponent) * 1e9).round() / 1e9).as_str() {
        "1" => power_of_ten(exponent),
        mantissa => format!("{mantissa}·{}", power_of_ten(exponent)),
    }
}

/// Names below a panel, at evenly spaced places: level and on several lines if they fit, else upwards.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The lines of each name.
    names: Vec<Vec<String>>,
    upwards: bool,
    /// The room below the panel.
    pub room: f64,
}

impl Names {
    /// Lays out the names for a panel of this width.
    pub(crate) fn below(names: &[String], width: f64) -> Names {
        let step = width / names.len().max(1) as f64 - 6.0;
        if let Some(lines) = names.iter().map(|name| broken(name, step)).collect::<Option<Vec<_>>>() {
            let most = lines.iter().map(Vec::len).max().unwrap_or(1);
            return Names { names: lines, upwards: false, room: 8.0 + NAME_LINE * most as f64 };
        }
        let names = fit_names(names, LABEL, TALLEST_NAME);
        let widest = names.iter().map(|name| text_width(name, LABEL)).fold(0.0, f64::max);
        Names {
            names: names.into_iter().map(|name| vec![name]).collect(),
            upwards: true,
            room: widest + 12.0,
        }
    }

    /// Draws the names.
    pub(crate) fn draw(&self, scene: &mut Scene, area: Area) {
        let step = area.width() / self.names.len().max(1) as f64;
        for (i, lines) in self.names.iter().enumerate() {
            let x = area.from.0 + step * (i as f64 + 0.5);
            for (i, line) in lines.iter().enumerate() {
                match self.upwards {
                    true => scene.text_up((x, area.to.1 + 7.0), line.as_str(), LABEL, Anchor::End),
                    false => {
                        let y = area.to.1 + 13.0 + NAME_LINE * i as f64;
                        scene.text((x, y), line.as_str(), LABEL, Anchor::Middle);
                    }
                }
            }
        }
    }
}

/// Breaks a name after punctuation into lines no wider than `room`; `None` if it needs too many.
fn broken(name: &str, room: f64) -> Option<Vec<String>> {
    let mut lines: Vec<String> = Vec::new();
    for part in name.split_inclusive([' ', ':', ',', '=', '_', '-', '/']) {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line}{part}"), LABEL) <= room => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    let fits = lines.len() <= MOST_LINES && lines.iter().all(|line| text_width(line, LABEL) <= room);
    fits.then_some(lines)
}

/// Returns names that fit into the room left of a panel, and the room that they take.
pub(super) fn names_beside(names: &[String], room: f64) -> (Vec<String>, f64) {
    let names = fit_names(names, LABEL, room);
    let widest = names.iter().map(|name| text_width(name, LABEL)).fold(0.0, f64::max);
    (names, widest + 10.0)
}
