//! Draws the sparsity pattern of a matrix: a grid of cells, each coloured by the share of its
//! positions that have an entry.
//!
//! Colours follow the logarithm of that share, from light for the emptiest cell with an entry to dark for
//! the fullest. Cells without entries stay white, so that a single entry is visible. Lightness decreases
//! evenly along the colours. If each cell is one position of the matrix, all entries have the same
//! colour. Row 1 is at the top.

use super::axis::{power_of_ten, ticks};
use super::captions::{fit, named};
use super::letters::text_width;
use super::output::write;
use super::ramp::{SEQUENTIAL, shade};
use super::scene::{Anchor, Cells, Colour, GREY, INK, Lettering, Point, Scene};
use super::style::Style;
use crate::error::Result;
use crate::format::stats::Density;
use std::path::Path;

/// The most cells along the longer side; grids for pictures should be made with this number.
pub const CELLS: usize = 512;

/// Pixels along the longer side of the matrix.
const SIDE: f64 = 600.0;
/// Space above and below the matrix.
const TOP: f64 = 72.0;
const BELOW: f64 = 58.0;
/// Space left of the matrix in addition to its labels, and right of the matrix.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 30.0;
/// Least width of the picture, so that titles fit.
const NARROWEST: f64 = 560.0;
/// Up to this number of rows or columns, each is numbered if there is room.
const MOST_NUMBERED: usize = 20;
/// Pixels that a number needs.
const NUMBER: f64 = 22.0;
/// Cells of this width or more are drawn as separate shapes.
const WIDE: f64 = 12.0;
/// The colour bar: its distance from the matrix, its width, its least height, and the space for its labels.
const BAR_GAP: f64 = 26.0;
const BAR: f64 = 15.0;
const LOWEST_BAR: f64 = 170.0;
const BAR_LABELS: f64 = 84.0;

const TITLE: Lettering = Lettering { size: 17.0, bold: true, colour: INK };
const FACTS: Lettering = Lettering { size: 13.5, bold: false, colour: GREY };
const LABEL: Lettering = Lettering { size: 12.0, bold: false, colour: INK };
const AXIS: Lettering = Lettering { size: 13.0, bold: false, colour: INK };
const FRAME: Colour = (150, 150, 150);

/// Number of shades.
const LEVELS: usize = 64;

/// Draws a grid, as SVG, PNG or PDF by the ending of the path, with the matrix' name and that of the real
/// matrix that it imitates. The file is written completely or not at all.
pub fn spy(density: &Density, name: &str, stand_in: Option<&str>, path: &Path) -> Result<()> {
    write(Style::default(), path, || lay_out(density, &named(name, stand_in)))
}

/// The range of shares that the colours represent.
#[derive(Clone, Copy, Debug)]
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns the range of all cells with entries; `None` if each cell is one position or the
    /// matrix has no entries.
    fn of(density: &Density) -> Option<Scale> {
        if density.is_exact() {
            return None;
        }
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for share in shares(density).filter(|&share| share > 0.0) {
            low = low.min(share);
            high = high.max(share);
        }
        (high > 0.0).then_some(Scale { low, high })
    }

    /// Maps a share to the range from 0 to 1.
    fn position(self, share: f64) -> f64 {
        let range = (self.high / self.low).ln();
        if range > 1e-9 { (share / self.low).ln() / range } else { 1.0 }
    }

    /// Returns the shares that get a label: round ones, or the ends if fewer than two round
    /// ones lie between them.
    fn labels(self) -> Vec<(f64, String)> {
        let decades = (self.high / self.low).log10();
        let factors: &[f64] = if decades < 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (from, to) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let within = |share: &f64| (self.low * 0.999..=self.high * 1.001).contains(share);
        let round: Vec<f64> = (from..=to)
            .flat_map(|exponent| factors.iter().map(move |factor| factor * 10f64.powi(exponent)))
            .filter(within)
            .collect();
        let shares = match round.len() {
            0 | 1 if decades < 1e-9 => vec![self.high],
            0 | 1 => vec![self.low, self.high],
            _ => round,
        };
        let percent = self.low >= 1e-5;
        shares.into_iter().map(|share| (share, label(share, percent))).collect()
    }
}

/// Formats a share in percent, or in powers of ten if percents would be long.
fn label(share: f64, percent: bool) -> String {
    if percent {
        return format!("{} %", digits(share * 100.0));
    }
    let exponent = (share.log10() + 1e-9).floor() as i32;
    match share / 10f64.powi(exponent) {
        factor if (factor - 1.0).abs() < 1e-6 => power_of_ten(exponent),
        factor => format!("{}·{}", digits(factor), power_of_ten(exponent)),
    }
}

/// Formats a number with two significant digits.
fn digits(value: f64) -> String {
    let decimals = (1.0 - value.log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn shares(density: &Density) -> impl Iterator<Item = f64> + '_ {
    (0..density.down).flat_map(move |down| (0..density.across).map(move |across| density.share(down, across)))
}

/// The rectangle of the matrix in the picture.
#[derive(Clone, Copy, Debug)]
struct Plot {
    from: Point,
    to: Point,
}

fn lay_out(density: &Density, name: &str) -> Scene {
    let (height, width) = Density::sides(density.rows, density.cols);
    let (height, width) = (height * SIDE, width * SIDE);
    let scale = Scale::of(density);
    let row_ticks = tick_positions(density.rows, height);
    let widest = row_ticks.iter().map(|(_, label)| text_width(label, LABEL)).fold(0.0, f64::max);
    let (left, right) = match scale {
        Some(_) => (LEFT + widest, BAR_GAP + BAR + BAR_LABELS),
        None => (LEFT + widest, RIGHT),
    };
    let full_width = (left + width + right).max(NARROWEST);
    let tall = if scale.is_some() { height.max(LOWEST_BAR) } else { height };
    let mut scene = Scene::new(full_width.ceil(), (TOP + tall + BELOW).ceil());
    let from = (left + (full_width - left - width - right) / 2.0, TOP + (tall - height) / 2.0);
    let plot = Plot { from, to: (from.0 + width, from.1 + height) };
    title(&mut scene, density, name);
    cells(&mut scene, density, scale, plot);
    scene.frame(plot.from, plot.to, FRAME);
    for (at, label) in row_ticks {
        let y = plot.from.1 + at;
        scene.line(vec![(plot.from.0 - 5.0, y), (plot.from.0, y)], FRAME, 1.0);
        scene.text((plot.from.0 - 9.0, y), label, LABEL, Anchor::End);
    }
    for (at, label) in tick_positions(density.cols, width) {
        let x = plot.from.0 + at;
        scene.line(vec![(x, plot.to.1), (x, plot.to.1 + 5.0)], FRAME, 1.0);
        scene.text((x, plot.to.1 + 16.0), label, LABEL, Anchor::Middle);
    }
    let middle = ((plot.from.0 + plot.to.0) / 2.0, (plot.from.1 + plot.to.1) / 2.0);
    scene.text((middle.0, plot.to.1 + 38.0), "column", AXIS, Anchor::Middle);
    scene.text_upwards((plot.from.0 - widest - 28.0, middle.1), "row", AXIS);
    if let Some(scale) = scale {
        bar(&mut scene, scale, plot);
    }
    scene
}

/// Writes name, size and density of the matrix.
fn title(scene: &mut Scene, density: &Density, name: &str) {
    let (room, middle) = (scene.width - 2.0 * RIGHT, scene.width / 2.0);
    scene.text((middle, 26.0), fit(name, TITLE, room), TITLE, Anchor::Middle);
    let (rows, cols, nnz) = (density.rows, density.cols, density.nnz());
    let mut facts = format!("{} × {} · {} entries", grouped(rows as u64), grouped(cols as u64), grouped(nnz));
    if nnz > 0 {
        let share = nnz as f64 / (rows as f64 * cols as f64);
        facts += &format!(" · {} filled", label(share, share >= 1e-5));
    }
    if !density.is_exact() {
        let (down, across) = (grouped(density.rows_per_cell as u64), grouped(density.cols_per_cell as u64));
        facts += &format!(" · {down} × {across} a cell");
    }
    scene.text((middle, 50.0), fit(&facts, FACTS, room), FACTS, Anchor::Middle);
}

/// Formats a number with thousands separators.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Returns the rows or columns that get a number, counted from 1, with the middle of each in pixels.
fn tick_positions(extent: usize, pixels: f64) -> Vec<(f64, String)> {
    let at = |number: f64| (number - 0.5) / extent as f64 * pixels;
    if extent == 0 {
        return Vec::new();
    }
    if extent <= MOST_NUMBERED && pixels / extent as f64 >= NUMBER {
        return (1..=extent).map(|number| (at(number as f64), number.to_string())).collect();
    }
    // A narrow side has room for fewer numbers.
    let most = ((pixels / 45.0) as usize).max(1);
    let mut ticks: Vec<(f64, String)> = ticks(extent as f64, true)
        .into_iter()
        .map(|(number, label)| if number == 0.0 { (1.0, "1".to_owned()) } else { (number, label) })
        .collect();
    // With steps of 1, the tick at 0 has become a second tick at 1.
    ticks.dedup_by(|a, b| a.0 == b.0);
    let step = ticks.len().div_ceil(most).max(1);
    ticks.into_iter().step_by(step).map(|(number, label)| (at(number), label)).collect()
}

/// Draws the cells: as shapes if they are wide enough, otherwise as one image.
fn cells(scene: &mut Scene, density: &Density, scale: Option<Scale>, plot: Plot) {
    let (down, across) = (density.down, density.across);
    if down == 0 || across == 0 {
        return;
    }
    // The last cells cover fewer rows or columns of the matrix and extend beyond its edge.
    let size = (
        (plot.to.0 - plot.from.0) * density.cols_per_cell as f64 / density.cols as f64,
        (plot.to.1 - plot.from.1) * density.rows_per_cell as f64 / density.rows as f64,
    );
    let level = |share: f64| match scale {
        _ if share == 0.0 => 0,
        None => 1 + (LEVELS * 3 / 4) as u8,
        Some(scale) => 1 + (scale.position(share) * (LEVELS - 1) as f64).round() as u8,
    };
    let colour = |level: u8| shade(&SEQUENTIAL, f64::from(level - 1) / (LEVELS - 1) as f64);
    let levels: Vec<u8> = shares(density).map(level).collect();
    if size.0.min(size.1) < WIDE {
        let palette = (1..=LEVELS as u8).map(colour).collect();
        scene.cells(Cells { from: plot.from, to: plot.to, size, across, levels, palette });
        return;
    }
    let gap = (size.0.min(size.1) * 0.03).min(1.5);
    for (i, &level) in levels.iter().enumerate().filter(|&(_, &level)| level > 0) {
        let corner = (plot.from.0 + (i % across) as f64 * size.0, plot.from.1 + (i / across) as f64 * size.1);
        let end = ((corner.0 + size.0).min(plot.to.0), (corner.1 + size.1).min(plot.to.1));
        scene.area((corner.0 + gap, corner.1 + gap), (end.0 - gap, end.1 - gap), colour(level));
    }
}

/// Draws the colour bar to the right of the matrix.
fn bar(scene: &mut Scene, scale: Scale, plot: Plot) {
    let middle = (plot.from.1 + plot.to.1) / 2.0;
    let half = (plot.to.1 - plot.from.1).max(LOWEST_BAR) / 2.0;
    let (left, top, bottom) = (plot.to.0 + BAR_GAP, middle - half, middle + half);
    for step in 0..LEVELS {
        let at = |step: usize| bottom - (bottom - top) * step as f64 / LEVELS as f64;
        let colour = shade(&SEQUENTIAL, step as f64 / (LEVELS - 1) as f64);
        scene.area((left, at(step + 1)), (left + BAR, at(step)), colour);
    }
    scene.frame((left, top), (left + BAR, bottom), FRAME);
    let labels = scale.labels();
    let widest = labels.iter().map(|(_, label)| text_width(label, LABEL)).fold(0.0, f64::max);
    for (share, label) in labels {
        let y = bottom - (bottom - top) * scale.position(share).clamp(0.0, 1.0);
        scene.line(vec![(left + BAR, y), (left + BAR + 4.0, y)], FRAME, 1.0);
        scene.text((left + BAR + 8.0, y), label, LABEL, Anchor::Start);
    }
    scene.text_upwards((left + BAR + 8.0 + widest + 13.0, middle), "filled", AXIS);
}
