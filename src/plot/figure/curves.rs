//! Draws curves with marks, and their names at their ends if the legend would be long.

use super::Curves;
use super::grid::{Area, LABEL};
use super::key::Key;
use super::labels::spread;
use super::scale::Scale;
use crate::plot::scene::{Anchor, Point, Scene};

/// Height of a name at the end of a curve.
const NAME_LINE: f64 = 13.0;

/// Returns all x coordinates, or all y coordinates.
pub(super) fn values(curves: &Curves, axis: usize) -> Vec<f64> {
    curves.series.iter().flat_map(|series| &series.points).map(|point| point[axis]).collect()
}

/// Returns the range of an axis; a linear vertical axis of values far above zero starts at zero.
pub(super) fn scale(values: &[f64], logarithmic: bool, vertical: bool) -> Scale {
    let scale = Scale::around(values, logarithmic);
    let from_zero = vertical && !logarithmic && scale.low > 0.0 && scale.low < 0.6 * scale.high;
    match from_zero {
        true => Scale { low: 0.0, ..scale }.extended(0.0, 0.06),
        false => scale.extended(0.05, 0.06),
    }
}

/// Draws the curves, references first.
pub(super) fn draw(scene: &mut Scene, curves: &Curves, area: Area, (x, y): (Scale, Scale), key: &Key) {
    let at = |&[px, py]: &[f64; 2]| (area.across(x, px), area.down(y, py));
    let mut order: Vec<_> = curves.series.iter().collect();
    order.sort_by_key(|series| !series.reference);
    for series in order {
        let points: Vec<Point> = series.points.iter().map(at).collect();
        if let Some(look) = key.look(&series.name) {
            look.draw(scene, points.clone());
            look.marks(scene, &points);
        }
    }
    if key.at_ends {
        let ends: Vec<Option<Point>> =
            curves.series.iter().map(|series| series.points.last().map(at)).collect();
        let mut heights: Vec<f64> = ends.iter().map(|end| end.map_or(area.to.1, |end| end.1)).collect();
        spread(&mut heights, NAME_LINE, (area.from.1, area.to.1));
        for (series, (end, height)) in curves.series.iter().zip(ends.into_iter().zip(heights)) {
            let (Some(end), Some(look)) = (end, key.look(&series.name)) else { continue };
            let colour = look.stroke.colour;
            let x = area.to.0 + 14.0;
            scene.line(vec![(end.0 + 6.0, end.1), (area.to.0 + 3.0, height), (x - 3.0, height)], colour, 0.8);
            scene.text((x, height), series.name.as_str(), LABEL, Anchor::Start);
        }
    }
}
