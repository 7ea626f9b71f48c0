//! Places labels next to points so that they cover each other, points and lines as little as possible.

use crate::plot::letters::text_width;
use crate::plot::scene::{Lettering, Point};

/// Height of a label.
const HEIGHT: f64 = 13.0;

/// A rectangle: top left and bottom right corner.
pub(super) type Rectangle = (Point, Point);

/// The labels placed so far, and what they should not cover.
#[derive(Clone, Debug, Default)]
pub(super) struct Placer {
    taken: Vec<Rectangle>,
    lines: Vec<[Point; 2]>,
}

impl Placer {
    /// Reserves the room of a point.
    pub fn point(&mut self, (x, y): Point, reach: f64) {
        self.taken.push(((x - reach, y - reach), (x + reach, y + reach)));
    }

    /// Reserves the course of a line.
    pub fn line(&mut self, from: Point, to: Point) {
        self.lines.push([from, to]);
    }

    /// Chooses the best of the rectangles for a label whose left ends and middles are given, within bounds.
    pub fn place(
        &mut self,
        text: &str,
        lettering: Lettering,
        candidates: &[Point],
        bounds: Rectangle,
    ) -> Option<Point> {
        let width = text_width(text, lettering);
        let rectangle = |(x, y): Point| ((x - 1.0, y - HEIGHT / 2.0), (x + width + 1.0, y + HEIGHT / 2.0));
        let within = |&&at: &&Point| {
            let (a, b) = rectangle(at);
            a.0 >= bounds.0.0 && a.1 >= bounds.0.1 && b.0 <= bounds.1.0 && b.1 <= bounds.1.1
        };
        let cost = |&&at: &&Point| {
            let own = rectangle(at);
            let covered = self.taken.iter().filter(|other| overlap(own, **other)).count();
            let crossed = self.lines.iter().filter(|line| crosses(**line, own)).count();
            10 * covered + 3 * crossed
        };
        // The first of equal candidates wins.
        let best = *candidates.iter().filter(within).min_by_key(cost)?;
        self.taken.push(rectangle(best));
        Some(best)
    }
}

/// Returns the places around a point for a label of this width, the nearest first.
pub(super) fn around((x, y): Point, width: f64) -> Vec<Point> {
    let mut places = Vec::new();
    for distance in [0.0, 8.0, 18.0, 30.0, 44.0] {
        let (side, up) = (9.0 + distance, 13.0 + distance);
        places.extend([(x + side, y), (x - side - width, y)]);
        places.extend([(x - width / 2.0, y - up), (x - width / 2.0, y + up)]);
        for dy in [-up * 0.75, up * 0.75] {
            places.extend([(x + side * 0.8, y + dy), (x - side * 0.8 - width, y + dy)]);
        }
    }
    places
}

fn overlap((a, b): Rectangle, (c, d): Rectangle) -> bool {
    a.0 < d.0 && c.0 < b.0 && a.1 < d.1 && c.1 < b.1
}

/// Checks in small steps whether a line runs through a rectangle.
fn crosses([from, to]: [Point; 2], (a, b): Rectangle) -> bool {
    let steps = ((to.0 - from.0).hypot(to.1 - from.1) / 4.0).ceil().max(1.0) as usize;
    (0..=steps).any(|i| {
        let share = i as f64 / steps as f64;
        let (x, y) = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
        x > a.0 && x < b.0 && y > a.1 && y < b.1
    })
}

/// Moves heights apart by at least `gap`, in their order and within limits if there is room.
pub(super) fn spread(heights: &mut [f64], gap: f64, (top, bottom): (f64, f64)) {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let mut last = top - gap;
    for &i in &order {
        heights[i] = heights[i].max(last + gap);
        last = heights[i];
    }
    let mut next = bottom + gap;
    for &i in order.iter().rev() {
        heights[i] = heights[i].min(next - gap);
        next = heights[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scene::INK;

    #[test]
    fn labels_of_near_points_do_not_cover_each_other() {
        let lettering = Lettering { size: 11.0, bold: false, colour: INK };
        let mut placer = Placer::default();
        let points: Vec<Point> =
            (0..8).map(|i| (200.0 + 4.0 * f64::from(i), 150.0 + 3.0 * f64::from(i % 3))).collect();
        points.iter().for_each(|&point| placer.point(point, 5.0));
        let width = text_width("matrix", lettering);
        for &point in &points {
            placer.place("matrix", lettering, &around(point, width), ((0.0, 0.0), (400.0, 300.0))).unwrap();
        }
        let labels = &placer.taken[8..];
        assert!((0..8).all(|i| !labels[..i].iter().any(|other| overlap(*other, labels[i]))));
    }

    #[test]
    fn heights_are_moved_apart_in_their_order() {
        let mut heights = [50.0, 51.0, 49.0, 99.0];
        spread(&mut heights, 10.0, (0.0, 100.0));
        assert!(heights[2] < heights[0] && heights[0] < heights[1] && heights[3] <= 100.0);
        assert!(heights[0] - heights[2] >= 10.0 && heights[1] - heights[0] >= 10.0);
    }
}
