//! Draws a roofline: measured speeds below the limits set by bandwidths and by the most
//! operations per second.

use super::Roofline;
use super::grid::{Area, LABEL};
use super::key::{Key, Sample};
use super::labels::{Placer, nearest};
use super::scale::{Scale, short};
use crate::plot::letters::text_width;
use crate::plot::marks::Mark;
use crate::plot::scene::{Anchor, GREY, INK, Lettering, PAPER, Point, Scene};

const ROOF: Lettering = Lettering { colour: GREY, ..LABEL };
/// A label farther from its point than this has a line to it.
const FAR: f64 = 9.0;
/// The axis contains the ridge up to this multiple of the greatest intensity.
const FAR_RIGHT: f64 = 300.0;

/// Returns the intensities, and the speeds, that the axes must contain.
pub(super) fn values(roofline: &Roofline) -> (Vec<f64>, Vec<f64>) {
    let mut x: Vec<f64> = roofline.points.iter().map(|point| point.flops_per_byte).collect();
    let bandwidths = || roofline.bandwidth.iter().map(|roof| roof.gigabytes_per_second);
    let slowest = bandwidths().fold(f64::INFINITY, f64::min);
    if x.is_empty() {
        x.push(0.1);
    }
    // The ridge, where the peak begins, is in view unless it is far to the right.
    let right = x.iter().copied().fold(0.0, f64::max);
    if let Some(ridge) = roofline.peak_gflops.map(|peak| 1.3 * peak / slowest) {
        x.push(if ridge < FAR_RIGHT * right { ridge.max(right) } else { 2.0 * right });
    }
    let (left, right) = x.iter().fold((f64::INFINITY, 0.0f64), |(l, r), &v| (l.min(v), r.max(v)));
    let mut y: Vec<f64> = roofline.points.iter().map(|point| point.gflops).collect();
    let top = |speed: f64| roofline.peak_gflops.map_or(speed * right, |peak| peak.min(speed * right));
    y.extend(bandwidths().map(top));
    y.push(slowest * left);
    (x, y)
}

/// Returns the range of an axis.
pub(super) fn scale(values: &[f64]) -> Scale {
    Scale::around(values, true).extended(0.06, 0.08)
}

/// Draws the limits, the points and the names of both.
pub(super) fn draw(scene: &mut Scene, roofline: &Roofline, area: Area, (x, y): (Scale, Scale), key: &Key) {
    let mut placer = Placer::default();
    let at = |intensity: f64, speed: f64| (area.across(x, intensity), area.down(y, speed));
    let points: Vec<Point> =
        roofline.points.iter().map(|point| at(point.flops_per_byte, point.gflops)).collect();
    points.iter().for_each(|&point| placer.point(point, 6.0));
    let peak = roofline.peak_gflops.unwrap_or(f64::INFINITY);
    let mut courses = Vec::new();
    for roof in &roofline.bandwidth {
        let speed = roof.gigabytes_per_second;
        // The part of the line inside the axes: from the left or lower side to the peak or the
        // right or upper side.
        let (from, to) = (x.low.max(y.low / speed), x.high.min(y.high / speed).min(peak / speed));
        if from < to {
            let (a, b) = (at(from, speed * from), at(to, speed * to));
            scene.line(vec![a, b], INK, 1.6);
            placer.line(a, b);
            courses.push((format!("{}: {} GB/s", roof.name, short(speed)), a, b));
        }
    }
    let fastest = roofline.bandwidth.iter().map(|roof| roof.gigabytes_per_second).fold(0.0, f64::max);
    let (in_view, outside): (Vec<f64>, Vec<f64>) =
        roofline.peak_gflops.into_iter().partition(|&peak| peak <= y.high && peak / fastest < x.high);
    for peak in in_view {
        let (a, b) = (at((peak / fastest).max(x.low), peak), at(x.high, peak));
        scene.line(vec![a, b], INK, 1.6);
        placer.line(a, b);
        let ridge = match roofline.bandwidth.len() {
            1 => format!(", ridge: {} flops/byte", short(peak / fastest)),
            _ => String::new(),
        };
        courses.push((format!("peak: {} GFLOP/s{ridge}", short(peak)), a, b));
    }
    let bounds = ((area.from.0 + 3.0, area.from.1 + 2.0), (area.to.0 - 3.0, area.to.1 - 2.0));
    for peak in outside {
        let text = format!("peak: {} GFLOP/s, beyond the axes", short(peak));
        let (left, top) = (area.from.0 + 8.0, area.from.1 + 11.0);
        let right = area.to.0 - 8.0 - text_width(&text, ROOF);
        if let Some(place) = placer.place(&text, ROOF, &[(left, top), (right, area.to.1 - 11.0)], bounds) {
            scene.text(place, text, ROOF, Anchor::Start);
        }
    }
    for (text, a, b) in courses {
        let places = along(a, b, text_width(&text, ROOF));
        if let Some(place) = placer.place(&text, ROOF, &places, bounds) {
            label(scene, &text, ROOF, place);
        }
    }
    for (point, &place) in roofline.points.iter().zip(&points) {
        Mark::nth(key.number(&point.name, Sample::Point)).draw(scene, place);
    }
    if key.at_points {
        let mut named: Vec<_> = roofline.points.iter().map(|point| point.name.as_str()).zip(points).collect();
        // From left to right, so that lines to names do not cross.
        named.sort_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
        named.into_iter().for_each(|(name, point)| name_point(scene, &mut placer, name, point, bounds));
    }
}

/// Returns places for the name of a limit next to its line.
fn along(a: Point, b: Point, width: f64) -> Vec<Point> {
    let level = (a.1 - b.1).abs() < 1.0;
    let shares = [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    let at = |share: f64| (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share);
    match level {
        true => {
            vec![(b.0 - width - 6.0, b.1 - 10.0), (a.0 + 6.0, a.1 - 10.0), (b.0 - width - 6.0, b.1 + 10.0)]
        }
        false => shares
            .into_iter()
            .map(at)
            .flat_map(|(x, y)| [(x - width - 6.0, y - 8.0), (x + 8.0, y + 9.0)])
            .collect(),
    }
}

fn label(scene: &mut Scene, text: &str, lettering: Lettering, (x, y): Point) {
    scene.area((x - 1.0, y - 6.0), (x + text_width(text, lettering) + 1.0, y + 6.5), PAPER);
    scene.text((x, y), text, lettering, Anchor::Start);
}

/// Writes the name of a point next to it, with a line if it is not near.
fn name_point(scene: &mut Scene, placer: &mut Placer, name: &str, point: Point, bounds: (Point, Point)) {
    let width = text_width(name, LABEL);
    let Some(place) = placer.place_near(name, LABEL, point, bounds) else { return };
    let nearest = nearest(place, width, point);
    let distance = (nearest.0 - point.0).hypot(nearest.1 - point.1);
    if distance > FAR {
        let share = 6.0 / distance;
        let from = (point.0 + (nearest.0 - point.0) * share, point.1 + (nearest.1 - point.1) * share);
        scene.line(vec![from, nearest], GREY, 0.9);
    }
    label(scene, name, LABEL, place);
}
