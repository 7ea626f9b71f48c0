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
    points: Vec<Point>,
    taken: Vec<Rectangle>,
    lines: Vec<[Point; 2]>,
    leaders: Vec<[Point; 2]>,
}

impl Placer {
    /// Reserves the room of a point.
    pub(crate) fn point(&mut self, (x, y): Point, reach: f64) {
        self.points.push((x, y));
        self.taken.push(((x - reach, y - reach), (x + reach, y + reach)));
    }

    /// Reserves the course of a line.
    pub(crate) fn line(&mut self, from: Point, to: Point) {
        self.lines.push([from, to]);
    }

    /// Chooses the best place near a point for its label; the line from the point to a distant label avoids
    /// other labels and points, too.
    pub(crate) fn place_near(
        &mut self,
        text: &str,
        lettering: Lettering,
        point: Point,
        bounds: Rectangle,
    ) -> Option<Point> {
        let width = text_width(text, lettering);
        let others = |other: &&Rectangle| !inside(point, **other);
        let cost = |place: Point| {
            let (a, b) = (point, nearest(place, width, point));
            let distance = (b.0 - a.0).hypot(b.1 - a.1);
            let crossed = self.taken.iter().filter(others).filter(|other| crosses([a, b], **other)).count();
            let leaders = self.leaders.iter().filter(|&&leader| meet([a, b], leader)).count();
            // A label nearer to another point would seem to be that point's.
            let gap = |other: Point| {
                let at = nearest(place, width, other);
                (at.0 - other.0).hypot(at.1 - other.1)
            };
            let misleads = self.points.iter().any(|&other| other != point && gap(other) < distance + 3.0);
            (12 * crossed + 12 * leaders + 9 * usize::from(misleads)) as f64 + distance / 8.0
        };
        let candidates: Vec<(Point, f64)> =
            around(point, width).into_iter().map(|at| (at, cost(at))).collect();
        let best = self.best(width, &candidates, bounds)?;
        self.leaders.push([point, nearest(best, width, point)]);
        Some(best)
    }

    /// Chooses the best of the rectangles for a label whose left ends and middles are given, within bounds.
    pub(crate) fn place(
        &mut self,
        text: &str,
        lettering: Lettering,
        candidates: &[Point],
        bounds: Rectangle,
    ) -> Option<Point> {
        let candidates: Vec<(Point, f64)> = candidates.iter().map(|&at| (at, 0.0)).collect();
        self.best(text_width(text, lettering), &candidates, bounds)
    }

    /// Chooses the candidate of the least cost, to which covered labels, points and lines add.
    fn best(&mut self, width: f64, candidates: &[(Point, f64)], bounds: Rectangle) -> Option<Point> {
        let rectangle = |(x, y): Point| ((x - 1.0, y - HEIGHT / 2.0), (x + width + 1.0, y + HEIGHT / 2.0));
        let within = |(at, _): &&(Point, f64)| {
            let (a, b) = rectangle(*at);
            a.0 >= bounds.0.0 && a.1 >= bounds.0.1 && b.0 <= bounds.1.0 && b.1 <= bounds.1.1
        };
        let cost = |&(at, own): &(Point, f64)| {
            let room = rectangle(at);
            let covered = self.taken.iter().filter(|other| overlap(room, **other)).count();
            let crossed = self.lines.iter().chain(&self.leaders).filter(|line| crosses(**line, room)).count();
            own + (30 * covered + 8 * crossed) as f64
        };
        // The first of equal candidates wins.
        let best = candidates.iter().filter(within).min_by(|a, b| cost(a).total_cmp(&cost(b)))?.0;
        self.taken.push(rectangle(best));
        Some(best)
    }
}

/// Returns the point of a label that is nearest to its point; a label is given by its left end
/// and its middle.
pub(super) fn nearest(place: Point, width: f64, point: Point) -> Point {
    let half = HEIGHT / 2.0;
    (point.0.clamp(place.0, place.0 + width), point.1.clamp(place.1 - half, place.1 + half))
}

fn inside((x, y): Point, (a, b): Rectangle) -> bool {
    x > a.0 && x < b.0 && y > a.1 && y < b.1
}

/// Checks whether two lines cross.
fn meet([a, b]: [Point; 2], [c, d]: [Point; 2]) -> bool {
    let side = |p: Point, q: Point, r: Point| (q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0);
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
}

/// Returns the places around a point for a label of this width, the nearest first.
pub(super) fn around((x, y): Point, width: f64) -> Vec<Point> {
    let mut places =
        vec![(x + 9.0, y), (x - 9.0 - width, y), (x - width / 2.0, y - 13.0), (x - width / 2.0, y + 13.0)];
    for distance in [12.0, 20.0, 30.0, 42.0, 56.0, 72.0, 90.0] {
        for step in 0..24 {
            let (sin, cos) = (f64::from(step) * std::f64::consts::PI / 12.0).sin_cos();
            // The label lies outwards from the end of a line in this direction.
            let left = x
                + cos * distance
                + if cos > 0.05 {
                    0.0
                } else if cos < -0.05 {
                    -width
                } else {
                    -width / 2.0
                };
            places.push((left, y + sin * (distance + HEIGHT / 2.0)));
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
        inside((x, y), (a, b))
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
        for &point in &points {
            placer.place_near("matrix", lettering, point, ((0.0, 0.0), (400.0, 300.0))).unwrap();
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
