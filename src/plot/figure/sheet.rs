//! Lays out a figure: title, note and legend on top, below them the panels in rows.

use super::bars::Rows;
use super::grid::{AXIS, AXIS_TITLE, Area, below_axis, horizontal, label_room, vertical};
use super::heat::Colours;
use super::key::Key;
use super::scale::Scale;
use super::{Content, Figure, Panel, bars, curves, ends, heat, roofline};
use crate::plot::captions::{fit, wrap};
use crate::plot::scene::{Anchor, GREY, INK, Lettering, Scene};
use crate::plot::style::Style;

/// Widths in pixels: of a picture with one column of panels, and with several.
const SINGLE: f64 = 820.0;
const SEVERAL: f64 = 920.0;
/// Margins of the picture and gaps between panels.
const EDGE: f64 = 14.0;
const GAP: f64 = 26.0;
const TITLE: Lettering = Lettering { size: 16.0, bold: true, colour: INK };
const NOTE: Lettering = Lettering { size: 12.0, bold: false, colour: GREY };
const PANEL: Lettering = Lettering { size: 12.5, bold: true, colour: INK };
const TITLE_LINE: f64 = 21.0;
const NOTE_LINE: f64 = 16.5;
const MOST_LINES: usize = 8;
/// Space of the title of a panel.
const PANEL_TITLE: f64 = 22.0;
/// Height of a panel as a share of its width, and its limits.
const LOWEST: f64 = 170.0;
const HIGHEST: f64 = 380.0;
/// Room for half of the last label of a horizontal axis.
const END_LABEL: f64 = 10.0;
/// Room that the labels of an axis take at most, for choosing the number of columns.
const LABELS: f64 = 60.0;

/// The horizontal quantity of a roofline.
const INTENSITY: &str = "operational intensity (FLOP/byte)";

/// The ranges of a panel.
#[derive(Clone, Copy, Debug)]
struct Ranges {
    x: Option<Scale>,
    y: Scale,
}

/// The places of all panels.
struct Layout {
    columns: usize,
    /// Width of a panel with its labels.
    cell: f64,
    /// Space for the titles of the vertical axes left of each panel, or left of the first column only.
    titles: (f64, f64),
    /// Space for the labels left and right of a panel.
    left: f64,
    right: f64,
    width: f64,
    /// Space above a panel.
    above: f64,
}

/// Lays out the figure.
pub(super) fn lay_out(figure: &Figure, style: Style) -> Scene {
    let ranges: Vec<Ranges> = figure.panels.iter().map(|panel| ranges(figure, panel)).collect();
    let natural = if columns(figure, SEVERAL) == 1 && !wants_width(figure) { SINGLE } else { SEVERAL };
    let full = style.pixels(natural);
    let key = Key::of(figure, full / columns(figure, full) as f64);
    let room = full - 2.0 * EDGE;
    let titles = wrap(&figure.title, TITLE, room, 3);
    let notes = wrap(&figure.note, NOTE, room, MOST_LINES);
    let layout = Layout::new(figure, &ranges, &key, full);
    let bars = colour_bars(figure, &ranges);
    let key_top = 12.0 + TITLE_LINE * titles.len() as f64 + NOTE_LINE * notes.len() as f64;
    let bars_top = key_top + key.height(room);
    let bar_heights: Vec<f64> = bars.iter().map(|(_, quantity)| heat::bar_height(quantity, full)).collect();
    let (rows, bottom) = layout.rows(figure, bars_top + bar_heights.iter().sum::<f64>() + 8.0);

    let mut scene = Scene::new(full, (bottom + 6.0).ceil());
    let mut y = 8.0;
    for (lines, lettering, height) in [(titles, TITLE, TITLE_LINE), (notes, NOTE, NOTE_LINE)] {
        for line in lines {
            scene.text((full / 2.0, y + height / 2.0), line, lettering, Anchor::Middle);
            y += height;
        }
    }
    key.draw(&mut scene, key_top, room);
    let mut bar_top = bars_top;
    for ((colours, quantity), height) in bars.iter().zip(bar_heights) {
        heat::bar(&mut scene, *colours, quantity, bar_top);
        bar_top += height;
    }
    for (i, (panel, ranges)) in figure.panels.iter().zip(&ranges).enumerate() {
        let (top, tall) = rows[i / layout.columns];
        let left = layout.left_of(i % layout.columns);
        // Heat maps and bars keep the height of their cells and lanes; other panels fill their row.
        let keeps = matches!(panel.content, Content::HeatMap(_) | Content::Bars(_));
        let tall = if keeps { height(panel, layout.width, layout.cell) } else { tall };
        let area = Area { from: (left, top), to: (left + layout.width, top + tall) };
        draw(&mut scene, panel, area, *ranges, &key, layout.cell);
        let titled = i % layout.columns == 0 || layout.titles.1 > 0.0;
        if let Some(quantity) = vertical_quantity(&panel.content).filter(|_| titled) {
            let at = (left - layout.left - AXIS_TITLE / 2.0 + 2.0, (area.from.1 + area.to.1) / 2.0);
            scene.text_upwards(at, fit(quantity, AXIS, area.height() + layout.above), AXIS);
        }
    }
    scene
}

impl Layout {
    fn new(figure: &Figure, ranges: &[Ranges], key: &Key, full: f64) -> Layout {
        let columns = columns(figure, full);
        let quantities: Vec<_> =
            figure.panels.iter().map(|panel| vertical_quantity(&panel.content)).collect();
        let titles = match quantities.iter().flatten().next() {
            None => (0.0, 0.0),
            Some(_) if quantities.windows(2).all(|pair| pair[0] == pair[1]) => (AXIS_TITLE, 0.0),
            Some(_) => (0.0, AXIS_TITLE),
        };
        let room = full - 2.0 * EDGE - titles.0 - GAP * (columns - 1) as f64;
        let cell = room / columns as f64;
        let left = figure.panels.iter().zip(ranges).map(|(panel, ranges)| match &panel.content {
            Content::HeatMap(map) => heat::names(map, cell).1,
            Content::Bars(content) => Rows::of(content, cell).left.unwrap_or(END_LABEL),
            _ => label_room(ranges.y, LOWEST),
        });
        let left = left.fold(0.0, f64::max);
        let right = figure.panels.iter().map(|panel| match &panel.content {
            Content::Curves(content) if key.at_ends => ends::room_of_names(content),
            _ => END_LABEL,
        });
        let right = right.fold(0.0, f64::max);
        let width = (cell - titles.1 - left - right).max(40.0);
        let titled = figure.panels.iter().any(|panel| !panel.title.is_empty());
        let above = if titled { PANEL_TITLE } else { 8.0 };
        Layout { columns, cell, titles, left, right, width, above }
    }

    /// Returns the top and the height of the axes in each row, and the end of the last row.
    fn rows(&self, figure: &Figure, top: f64) -> (Vec<(f64, f64)>, f64) {
        let mut bottom = top;
        let mut rows = Vec::new();
        for row in figure.panels.chunks(self.columns) {
            let most = |size: &dyn Fn(&Panel) -> f64| row.iter().map(size).fold(0.0, f64::max);
            let height = |panel: &Panel| height(panel, self.width, self.cell);
            let tallest = most(&height);
            rows.push((bottom + self.above, tallest));
            bottom += self.above + tallest + most(&|panel| below(panel, self.width)) + 8.0;
        }
        (rows, bottom)
    }

    /// Returns the left side of the axes of a column.
    fn left_of(&self, column: usize) -> f64 {
        let before = self.titles.1 + self.left;
        EDGE + self.titles.0 + before + (before + self.width + self.right + GAP) * column as f64
    }
}

/// Returns the number of panels side by side: the wish, or a number that suits their count and their content.
fn columns(figure: &Figure, full: f64) -> usize {
    let count = figure.panels.len();
    let wanted = figure.columns.unwrap_or(match count {
        0..=3 => count,
        4 => 2,
        5 | 6 | 9 => 3,
        _ => 4,
    });
    let least = figure.panels.iter().map(|panel| least_width(&panel.content)).fold(0.0, f64::max);
    let fits = ((full - 2.0 * EDGE + GAP) / (least + GAP)) as usize;
    let fits = if figure.columns.is_some() { fits.max((full / 150.0) as usize) } else { fits };
    let most = wanted.min(fits).clamp(1, count.max(1));
    // Uses the fewest columns that give the same number of rows.
    if figure.columns.is_some() { most } else { count.div_ceil(count.div_ceil(most)) }
}

/// Returns the least width of a panel with its labels.
fn least_width(content: &Content) -> f64 {
    match content {
        Content::Bars(_) => LABELS + 300.0,
        Content::Curves(_) => LABELS + 150.0,
        Content::Roofline(_) => LABELS + 280.0,
        Content::HeatMap(map) => LABELS + (30 * map.columns.len()) as f64,
    }
}

/// Checks whether a single panel needs the width of several.
fn wants_width(figure: &Figure) -> bool {
    figure.panels.iter().any(|panel| match &panel.content {
        Content::HeatMap(map) => map.columns.len() > 10,
        _ => false,
    })
}

/// Returns the ranges of a panel: of its own values, or of those of all panels of the same quantities.
fn ranges(figure: &Figure, panel: &Panel) -> Ranges {
    let alike = |other: &&Panel| match figure.own_ranges {
        true => std::ptr::eq(*other, panel),
        false => is_alike(&other.content, &panel.content),
    };
    let (mut across, mut down) = (Vec::new(), Vec::new());
    for other in figure.panels.iter().filter(alike) {
        match &other.content {
            Content::Bars(content) => down.extend(bars::values(content)),
            Content::Curves(content) => {
                across.extend(curves::values(content, 0));
                down.extend(curves::values(content, 1));
            }
            Content::Roofline(content) => {
                let (x, y) = roofline::values(content);
                across.extend(x);
                down.extend(y);
            }
            Content::HeatMap(content) => down.extend(heat::values(content)),
        }
    }
    match &panel.content {
        Content::Bars(content) => {
            let scale = bars::scale(&down, content.logarithmic);
            Ranges { x: Some(scale), y: scale }
        }
        Content::Curves(content) => Ranges {
            x: Some(curves::scale(&across, content.x.logarithmic, false)),
            y: curves::scale(&down, content.y.logarithmic, true),
        },
        Content::Roofline(_) => Ranges { x: Some(roofline::scale(&across)), y: roofline::scale(&down) },
        Content::HeatMap(content) => Ranges { x: None, y: Scale::around(&down, content.logarithmic) },
    }
}

/// Checks whether two panels show the same quantities.
fn is_alike(a: &Content, b: &Content) -> bool {
    match (a, b) {
        (Content::Bars(a), Content::Bars(b)) => (&a.quantity, a.logarithmic) == (&b.quantity, b.logarithmic),
        (Content::Curves(a), Content::Curves(b)) => (&a.x, &a.y) == (&b.x, &b.y),
        (Content::Roofline(_), Content::Roofline(_)) => true,
        (Content::HeatMap(a), Content::HeatMap(b)) => {
            (&a.quantity, a.logarithmic, a.centre) == (&b.quantity, b.logarithmic, b.centre)
        }
        _ => false,
    }
}

/// Returns the title of the vertical axis.
fn vertical_quantity(content: &Content) -> Option<&str> {
    match content {
        Content::Curves(curves) => Some(&curves.y.quantity),
        Content::Roofline(_) => Some("performance (GFLOP/s)"),
        Content::HeatMap(map) => Some(map.row_quantity.as_str()).filter(|name| !name.is_empty()),
        Content::Bars(_) => None,
    }
}

/// Returns the different colour scales with their quantities.
fn colour_bars<'a>(figure: &'a Figure, ranges: &[Ranges]) -> Vec<(Colours, &'a str)> {
    let mut bars: Vec<(Colours, &str)> = Vec::new();
    for (panel, ranges) in figure.panels.iter().zip(ranges) {
        let Content::HeatMap(map) = &panel.content else { continue };
        let bar = (Colours { scale: ranges.y, centre: map.centre }, map.quantity.as_str());
        if !bars.contains(&bar) {
            bars.push(bar);
        }
    }
    bars
}

/// Returns the height of a panel's axes.
fn height(panel: &Panel, width: f64, cell: f64) -> f64 {
    match &panel.content {
        Content::Bars(content) => Rows::of(content, cell).height(content, width),
        Content::Curves(_) => (0.78 * width).clamp(LOWEST, HIGHEST),
        Content::Roofline(_) => (0.62 * width).clamp(1.2 * LOWEST, 1.2 * HIGHEST),
        Content::HeatMap(map) => heat::height(map, width),
    }
}

/// Returns the space below a panel's axes.
fn below(panel: &Panel, width: f64) -> f64 {
    match &panel.content {
        Content::HeatMap(map) => heat::below(map, width),
        Content::Bars(bars) => below_axis(&bars.quantity, width),
        Content::Curves(curves) => below_axis(&curves.x.quantity, width),
        Content::Roofline(_) => below_axis(INTENSITY, width),
    }
}

/// Draws a panel with its title.
fn draw(scene: &mut Scene, panel: &Panel, area: Area, ranges: Ranges, key: &Key, cell: f64) {
    let title = fit(&panel.title, PANEL, cell);
    scene.text(((area.from.0 + area.to.0) / 2.0, area.from.1 - 11.0), title, PANEL, Anchor::Middle);
    if let Content::HeatMap(map) = &panel.content {
        let colours = Colours { scale: ranges.y, centre: map.centre };
        heat::draw(scene, map, area, colours, &heat::names(map, cell).0);
        return;
    }
    let x = ranges.x.unwrap_or(ranges.y);
    let both = (x, ranges.y);
    match &panel.content {
        Content::Bars(content) => {
            horizontal(scene, area, x, &content.quantity, &[]);
            bars::draw(scene, content, area, x, key, &Rows::of(content, cell));
        }
        Content::Curves(content) => {
            vertical(scene, area, ranges.y);
            horizontal(scene, area, x, &content.x.quantity, &curves::values(content, 0));
            curves::draw(scene, content, area, both, key);
        }
        Content::Roofline(content) => {
            vertical(scene, area, ranges.y);
            horizontal(scene, area, x, INTENSITY, &[]);
            roofline::draw(scene, content, area, both, key);
        }
        Content::HeatMap(_) => {}
    }
    scene.frame(area.from, area.to, GREY);
}
