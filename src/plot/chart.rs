//! Draws a table as lines: the values of several series on a logarithmic axis, over evenly spaced positions.
//! The legend is above the panel.

use super::axis::drawable;
use super::captions::wrap;
use super::figure::Key;
use super::letters::text_width;
use super::output::write;
use super::panel::BELOW;
use super::scene::{Anchor, FAINT, GREY, GRID, INK, Lettering, Point, Scene};
use super::style::Style;
use crate::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;

/// The picture's width in pixels, the height of the panel as a share of its width with its limits, and the
/// margins around the panel.
const WIDTH: f64 = 820.0;
const TALL: f64 = 0.55;
const HEIGHTS: std::ops::RangeInclusive<f64> = 230.0..=420.0;
const LEFT: f64 = 84.0;
const TOP: f64 = 14.0;
const EDGE: f64 = 20.0;
const TITLE: Lettering = Lettering { size: 16.0, bold: true, colour: INK };
const NOTE: Lettering = Lettering { size: 12.5, bold: false, colour: GREY };
const LABEL: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
const AXIS: Lettering = Lettering { size: 13.0, bold: false, colour: INK };
/// Width of the lines, and heights of the lines of title and note.
const LINE: f64 = 1.7;
const TITLE_LINE: f64 = 21.0;
const NOTE_LINE: f64 = 17.0;
/// Distance between lines of position names, which take several lines if one is too narrow.
const NAME_LINE: f64 = 16.0;

/// A table to draw.
#[derive(Clone, Debug, Deserialize)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// Further information: the system measured, the method, and caveats.
    #[serde(default)]
    pub note: String,
    /// The positions on the x axis.
    pub x: Places,
    /// The quantity on the y axis, with its unit.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

/// The positions on the x axis.
#[derive(Clone, Debug, Deserialize)]
pub struct Places {
    /// The quantity on the x axis.
    pub name: String,
    /// The value of each position, printed as given.
    pub values: Vec<serde_json::Value>,
    /// Whether the positions are separate things rather than steps of a quantity, so that no
    /// lines connect them.
    #[serde(default)]
    pub apart: bool,
}

/// One line.
#[derive(Clone, Debug, Deserialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// A value for each position; `None` if not measured.
    pub values: Vec<Option<f64>>,
}

impl Chart {
    /// Returns the names of the lines.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.series.iter().map(|series| series.name.as_str()).collect()
    }

    /// Renames the lines in their order.
    pub(crate) fn rename(&mut self, labels: &[String]) {
        self.series.iter_mut().zip(labels).for_each(|(series, label)| series.name.clone_from(label));
    }

    /// Parses a table if the text is one: an object with the key `series`.
    pub fn of(text: &str, path: &Path) -> Result<Option<Chart>> {
        let Ok(object) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) else {
            return Ok(None);
        };
        let fault = |message: String| Error::History { path: path.to_owned(), message };
        if object.contains_key("study") && object.contains_key("rows") {
            return Err(fault(
                "it is a record of measurements; solver bench FILE draws its figures".to_owned(),
            ));
        }
        if !object.contains_key("series") {
            return Ok(None);
        }
        let chart: Chart = serde_json::from_value(object.into()).map_err(|e| fault(e.to_string()))?;
        let positions = chart.x.values.len();
        if let Some(other) = chart.series.iter().find(|series| series.values.len() != positions) {
            let (name, values) = (&other.name, other.values.len());
            return Err(fault(format!("'{name}' has {values} values for {positions} places")));
        }
        Ok(Some(chart))
    }
}

/// Draws a table, as SVG, PNG or PDF by the ending of the path. The file is written completely or not at all.
pub fn chart(chart: &Chart, style: Style, path: &Path) -> Result<()> {
    write(style, path, || lay_out(chart, style))
}

fn lay_out(chart: &Chart, style: Style) -> Scene {
    let full = style.pixels(WIDTH);
    let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
    let key = Key::of_lines(&names, LINE);
    let room = full - 2.0 * EDGE;
    let (titles, notes) = (wrap(&chart.title, TITLE, room, 3), wrap(&chart.note, NOTE, room, 4));
    let key_top = TOP + TITLE_LINE * titles.len() as f64 + NOTE_LINE * notes.len() as f64;
    let top = key_top + key.height(room) + 12.0;
    let right = full - EDGE;
    let bottom = top + (TALL * (right - LEFT)).clamp(*HEIGHTS.start(), *HEIGHTS.end());
    let step = (right - LEFT) / chart.x.values.len().max(1) as f64;
    let name = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let names: Vec<String> = chart.x.values.iter().map(name).collect();
    let widest = names.iter().map(|name| text_width(name, LABEL) + 8.0).fold(1.0, f64::max);
    let lines = (widest / step).ceil() as usize;
    let below = NAME_LINE * lines.saturating_sub(1) as f64;
    let mut scene = Scene::new(full, (bottom + BELOW + below).ceil());
    let mut y = TOP - 4.0;
    for (lines, lettering, height) in [(titles, TITLE, TITLE_LINE), (notes, NOTE, NOTE_LINE)] {
        for line in lines {
            scene.text((full / 2.0, y + height / 2.0), line, lettering, Anchor::Middle);
            y += height;
        }
    }
    key.draw(&mut scene, key_top, room);
    for (position, name) in names.into_iter().enumerate() {
        let (x, line) = (LEFT + step * (position as f64 + 0.5), (position % lines) as f64);
        scene.line(vec![(x, top), (x, bottom)], FAINT, 1.0);
        // Keeps a long name within the picture.
        let half = text_width(&name, LABEL) / 2.0;
        let x = x.min(full - 4.0 - half).max(4.0 + half);
        scene.text((x, bottom + 14.0 + NAME_LINE * line), name, LABEL, Anchor::Middle);
    }
    scene.text(((LEFT + right) / 2.0, bottom + 35.0 + below), chart.x.name.as_str(), AXIS, Anchor::Middle);
    scene.text_upwards((22.0, (top + bottom) / 2.0), chart.y.as_str(), AXIS);
    lines_of(&mut scene, chart, &key, (LEFT, top), (right, bottom));
    scene
}

/// Draws the panel: the scale of the y axis, and the lines with a mark for each value.
fn lines_of(scene: &mut Scene, chart: &Chart, key: &Key, from: Point, to: Point) {
    let step = (to.0 - from.0) / chart.x.values.len().max(1) as f64;
    let across = |position: usize| from.0 + step * (position as f64 + 0.5);
    let values = chart.series.iter().flat_map(|series| series.values.iter().flatten());
    let scale = Scale::around(values.copied());
    let down = |value: f64| from.1 + (to.1 - from.1) * scale.share(value);
    for value in scale.marks() {
        let y = down(value);
        scene.line(vec![(from.0, y), (to.0, y)], GRID, 1.0);
        let plain = (1e-4..1e6).contains(&value);
        let text = if plain { format!("{value}") } else { format!("{value:e}") };
        scene.text((from.0 - 9.0, y), text, LABEL, Anchor::End);
    }
    scene.frame(from, to, GREY);
    for series in &chart.series {
        let Some(look) = key.look(&series.name) else { continue };
        let values: Vec<_> = series.values.iter().map(|value| value.filter(|&v| drawable(v))).collect();
        let point = |position: usize| values[position].map(|value| (across(position), down(value)));
        let points: Vec<_> = (0..values.len()).map(point).collect();
        // Missing measurements interrupt the line.
        for line in points.split(|point| chart.x.apart || point.is_none()) {
            look.draw(scene, line.iter().flatten().copied().collect());
        }
        look.marks(scene, &points.into_iter().flatten().collect::<Vec<_>>());
    }
}

/// A logarithmic axis, given by the logarithms of its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns the axis that contains all values that it can show, with a small margin.
    pub(crate) fn around(values: impl Iterator<Item = f64>) -> Scale {
        let logarithms = values.filter(|&v| drawable(v)).map(f64::log10);
        let (low, high) =
            logarithms.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return Scale { low: 0.0, high: 1.0 };
        }
        let room = (0.06 * (high - low)).max(0.05);
        Scale { low: low - room, high: high + room }
    }

    /// Returns the distance of a value from the upper end, as a share of the axis.
    pub(crate) fn share(self, value: f64) -> f64 {
        (self.high - value.log10()) / (self.high - self.low)
    }

    /// Returns round values between the ends: several per decade if there is room.
    pub(crate) fn marks(self) -> Vec<f64> {
        let digits: &[i32] = match self.high - self.low {
            span if span < 0.7 => &[10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90],
            span if span < 3.0 => &[10, 20, 50],
            _ => &[10],
        };
        // Labels at most about a dozen decades.
        let interval = ((self.high - self.low) / 12.0).ceil().max(1.0) as i32;
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        // Whole numbers divided by powers of ten are printed without rounding noise.
        let value = |digit: i32, decade: i32| match decade - 1 {
            power if power >= 0 => f64::from(digit) * 10f64.powi(power),
            power => f64::from(digit) / 10f64.powi(-power),
        };
        let labelled = decades.filter(|decade| decade.rem_euclid(interval) == 0);
        let all = labelled.flat_map(|decade| digits.iter().map(move |&digit| value(digit, decade)));
        all.filter(|mark| (0.0..=1.0).contains(&self.share(*mark))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_a_few_round_marks_and_contains_every_value() {
        for values in [
            vec![5.4, 6.5],
            vec![2.9, 51.77],
            vec![0.8, 139.97],
            vec![1e-7, 3e4],
            vec![1e-290, 1e290],
            vec![2.0],
            vec![],
        ] {
            let (scale, count) = (Scale::around(values.iter().copied()), values.len());
            assert!(values.iter().all(|&v| (0.0..=1.0).contains(&scale.share(v))), "{values:?}");
            let marks = scale.marks();
            assert!(marks.len() <= 14 && (count == 1 || marks.len() >= 2), "{values:?}: {marks:?}");
        }
        assert_eq!(Scale { low: -0.5, high: 1.5 }.marks(), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
    }

    #[test]
    fn a_series_of_the_wrong_length_is_refused() {
        let text = |values: &str| {
            format!(
                r#"{{"title": "t", "x": {{"name": "threads", "values": [1, 2]}}, "y": "s",
                    "series": [{{"name": "a", "values": {values}}}]}}"#
            )
        };
        let of = |text: &str| Chart::of(text, Path::new("t.json"));
        assert_eq!(of(&text("[1.5, null]")).unwrap().unwrap().series[0].values, [Some(1.5), None]);
        let error = of(&text("[1.5]")).unwrap_err().to_string();
        assert!(error.contains("'a' has 1 values for 2 places"), "{error}");
        assert!(of(&text("[true, 1]")).is_err());
        assert!(of("[]").unwrap().is_none() && of("{\"schema\": 1}").unwrap().is_none());
    }
}
