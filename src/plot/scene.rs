//! A picture as a list of shapes in plain pixels, before any file format is chosen.

/// A point in the picture: x to the right, y down.
pub(super) type Point = (f64, f64);

/// Red, green and blue.
pub(super) type Colour = (u8, u8, u8);

/// Text and frames.
pub(super) const INK: Colour = (34, 34, 34);
/// Secondary text.
pub(super) const GREY: Colour = (95, 95, 95);
/// Lines of the grid.
pub(super) const GRID: Colour = (225, 225, 225);
/// Lines of the grid between decades.
pub(super) const FAINT: Colour = (241, 241, 241);
/// Background.
pub(super) const PAPER: Colour = (255, 255, 255);
/// Okabe and Ito's colours, which colour-blind readers can distinguish, without the yellow, which
/// is hard to see on paper.
pub(super) const PALETTE: [Colour; 7] =
    [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233), (0, 0, 0)];

/// The point of a text that is aligned with its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Anchor {
    /// The left end.
    Start,
    /// The middle.
    Middle,
    /// The right end.
    End,
}

/// The type of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lettering {
    /// Height of the type in pixels.
    pub size: f64,
    /// Whether the type is bold.
    pub bold: bool,
    /// The colour.
    pub colour: Colour,
}

/// A grid of cells.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// Top left corner.
    pub from: Point,
    /// Bottom right corner; cells are clipped there.
    pub to: Point,
    /// Width and height of a cell.
    pub size: Point,
    /// Cells in a row.
    pub across: usize,
    /// The cells row after row: 0 for paper, else one more than an index into the palette.
    pub levels: Vec<u8>,
    /// The colours of cells.
    pub palette: Vec<Colour>,
}

/// One shape.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// A line through points.
    Line {
        /// The points.
        points: Vec<Point>,
        /// The colour.
        colour: Colour,
        /// The width.
        width: f64,
    },
    /// A filled circle.
    Disc {
        /// The centre.
        centre: Point,
        /// The radius.
        radius: f64,
        /// The colour.
        colour: Colour,
    },
    /// A filled rectangle.
    Area {
        /// Top left corner.
        from: Point,
        /// Bottom right corner.
        to: Point,
        /// The colour.
        colour: Colour,
    },
    /// A grid of small coloured cells. In an SVG it is an image below all other shapes.
    Cells(Cells),
    /// A line of text, centred vertically on its position.
    Text {
        /// The position.
        at: Point,
        /// The text.
        text: String,
        /// The type.
        lettering: Lettering,
        /// The point of the text at the position.
        anchor: Anchor,
        /// Whether the text runs upwards.
        upwards: bool,
        /// The colour of the shape under the text, if the text has the ink or paper that is clearest on it.
        under: Option<Colour>,
    },
}

/// A list of shapes in the order of painting.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The width in pixels.
    pub width: f64,
    /// The height in pixels.
    pub height: f64,
    /// The background.
    pub paper: Colour,
    /// The width on paper in points, if it is given.
    pub width_in_points: Option<f64>,
    /// The shapes.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// Returns an empty scene.
    pub(crate) fn new(width: f64, height: f64) -> Scene {
        Scene { width, height, paper: PAPER, width_in_points: None, shapes: Vec::new() }
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line { points, colour, width });
        }
    }

    /// Draws a dashed line along points, with dashes of `on` pixels and gaps of `off` pixels.
    pub(crate) fn dashed(&mut self, points: &[Point], colour: Colour, width: f64, (on, off): (f64, f64)) {
        let mut dash: Vec<Point> = points.first().copied().into_iter().collect();
        let (mut drawing, mut left) = (true, on);
        for pair in points.windows(2) {
            let (mut at, to) = (pair[0], pair[1]);
            loop {
                let rest = (to.0 - at.0).hypot(to.1 - at.1);
                if rest < left {
                    left -= rest;
                    dash.push(to);
                    break;
                }
                at = (at.0 + (to.0 - at.0) * left / rest, at.1 + (to.1 - at.1) * left / rest);
                dash.push(at);
                if drawing {
                    self.line(std::mem::take(&mut dash), colour, width);
                }
                drawing = !drawing;
                left = if drawing { on } else { off };
                dash = vec![at];
            }
        }
        if drawing {
            self.line(dash, colour, width);
        }
    }

    /// Draws a filled circle.
    pub(crate) fn disc(&mut self, centre: Point, radius: f64, colour: Colour) {
        self.shapes.push(Shape::Disc { centre, radius: radius + 1.2, colour: PAPER });
        self.shapes.push(Shape::Disc { centre, radius, colour });
    }

    /// Draws the outline of a circle.
    pub(crate) fn ring(&mut self, (x, y): Point, radius: f64, colour: Colour) {
        let corner = |i: i32| {
            let (sin, cos) = (f64::from(i) * std::f64::consts::PI / 12.0).sin_cos();
            (x + radius * cos, y + radius * sin)
        };
        let corners: Vec<Point> = (0..=24).map(corner).collect();
        self.line(corners.clone(), PAPER, 4.5);
        self.line(corners, colour, 2.0);
    }

    /// Draws two crossed diagonal strokes.
    pub(crate) fn cross(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        let (left, right, top, bottom) = (x - reach, x + reach, y - reach, y + reach);
        self.strokes([[(left, top), (right, bottom)], [(left, bottom), (right, top)]], colour);
    }

    /// Draws a horizontal and a vertical stroke that cross.
    pub(crate) fn plus(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        self.strokes([[(x - reach, y), (x + reach, y)], [(x, y - reach), (x, y + reach)]], colour);
    }

    fn strokes(&mut self, strokes: [[Point; 2]; 2], colour: Colour) {
        // A background border keeps each mark visible on a dense curve.
        for (colour, width) in [(PAPER, 5.0), (colour, 2.2)] {
            strokes.iter().for_each(|stroke| self.line(stroke.to_vec(), colour, width));
        }
    }

    /// Draws the outline of a triangle on its base.
    pub(crate) fn triangle(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        let base = y + 0.8 * reach;
        let corners =
            vec![(x, y - reach), (x + reach, base), (x - reach, base), (x, y - reach), (x + reach, base)];
        self.line(corners.clone(), PAPER, 3.5);
        self.line(corners, colour, 1.5);
    }

    /// Draws the outline of a square standing on a corner.
    pub(crate) fn diamond(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        let corners = vec![(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y), (x, y - reach)];
        self.line(corners.clone(), PAPER, 3.5);
        self.line(corners, colour, 1.5);
    }

    /// Draws the outline of a rectangle.
    pub(crate) fn frame(&mut self, from: Point, to: Point, colour: Colour) {
        self.line(vec![from, (to.0, from.1), to, (from.0, to.1), from, (to.0, from.1)], colour, 1.0);
    }

    /// Draws a filled rectangle.
    pub(crate) fn area(&mut self, from: Point, to: Point, colour: Colour) {
        self.shapes.push(Shape::Area { from, to, colour });
    }

    /// Draws a grid of coloured cells.
    pub(crate) fn cells(&mut self, cells: Cells) {
        self.shapes.push(Shape::Cells(cells));
    }

    /// Draws a line of text.
    pub(crate) fn text(&mut self, at: Point, text: impl Into<String>, lettering: Lettering, anchor: Anchor) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            lettering,
            anchor,
            upwards: false,
            under: None,
        });
    }

    /// Draws a line of text that runs upwards, with its middle at `at`.
    pub(crate) fn text_upwards(&mut self, at: Point, text: impl Into<String>, lettering: Lettering) {
        self.text_up(at, text, lettering, Anchor::Middle);
    }

    /// Draws a line of text on a shape of this colour, level or upwards, with its middle at `at`.
    pub(crate) fn text_on(
        &mut self,
        under: Colour,
        at: Point,
        text: impl Into<String>,
        mut lettering: Lettering,
        upwards: bool,
    ) {
        lettering.colour = clearest(under, [INK, PAPER]);
        let (text, anchor) = (text.into(), Anchor::Middle);
        self.shapes.push(Shape::Text { at, text, lettering, anchor, upwards, under: Some(under) });
    }

    /// Draws a line of text that runs upwards.
    pub(crate) fn text_up(
        &mut self,
        at: Point,
        text: impl Into<String>,
        lettering: Lettering,
        anchor: Anchor,
    ) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            lettering,
            anchor,
            upwards: true,
            under: None,
        });
    }
}

/// Returns the contrast ratio of two colours as WCAG defines it, from 1 to 21.
pub(super) fn contrast(a: Colour, b: Colour) -> f64 {
    let luminance = |(r, g, b): Colour| {
        let linear = |channel: u8| (f64::from(channel) / 255.0).powf(2.2);
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Returns the colour with the most contrast to the colour under it.
pub(super) fn clearest(under: Colour, inks: [Colour; 2]) -> Colour {
    if contrast(under, inks[0]) >= contrast(under, inks[1]) { inks[0] } else { inks[1] }
}
