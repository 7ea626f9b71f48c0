//! The marks of programs and series in several shapes.

use super::panel::MARK;
use super::scene::{Colour, INK, PALETTE, PAPER, Point, Scene, Shape};

/// The mark of a program or of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    /// A large circle of ink.
    Ring,
    /// A filled circle.
    Disc(Colour),
    /// Two crossed diagonal strokes.
    Cross(Colour),
    /// A small circle.
    Circle(Colour),
    /// A triangle on its base.
    Triangle(Colour),
    /// A vertical and a horizontal stroke.
    Plus(Colour),
    /// A square on a corner.
    Diamond(Colour),
}

impl Mark {
    /// Returns the mark of a series by its number: marks differ in colour and shape, and no
    /// two of 42 are the same.
    pub(crate) fn nth(series: usize) -> Mark {
        let colour = PALETTE[series % PALETTE.len()];
        match series % 6 {
            0 => Mark::Disc(colour),
            1 => Mark::Diamond(colour),
            2 => Mark::Triangle(colour),
            3 => Mark::Circle(colour),
            4 => Mark::Cross(colour),
            _ => Mark::Plus(colour),
        }
    }

    /// Draws the mark around a point.
    pub(crate) fn draw(self, scene: &mut Scene, at: Point) {
        self.sized(scene, at, MARK);
    }

    /// Draws the mark around a point, which it exceeds by `reach` in each direction.
    pub(crate) fn sized(self, scene: &mut Scene, at: Point, reach: f64) {
        match self {
            Mark::Ring => scene.ring(at, reach, INK),
            Mark::Circle(colour) => {
                scene.shapes.push(Shape::Disc { centre: at, radius: reach - 1.0, colour: PAPER });
                scene.ring(at, reach - 1.0, colour);
            }
            Mark::Disc(colour) => scene.disc(at, reach, colour),
            Mark::Cross(colour) => scene.cross(at, reach - 0.5, colour),
            Mark::Triangle(colour) => scene.triangle(at, reach + 0.5, colour),
            Mark::Plus(colour) => scene.plus(at, reach, colour),
            Mark::Diamond(colour) => scene.diamond(at, reach + 1.0, colour),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_42_series_have_the_same_mark() {
        let marks: Vec<Mark> = (0..42).map(Mark::nth).collect();
        assert!(marks.iter().enumerate().all(|(i, mark)| !marks[..i].contains(mark)));
    }
}
