//! A picture as a list of shapes in plain pixels, before any file format is chosen.

/// A place in the picture: to the right, and down.
pub(super) type Point = (f64, f64);

/// Red, green and blue.
pub(super) type Colour = (u8, u8, u8);

/// Text and frames.
pub(super) const INK: Colour = (34, 34, 34);
/// Text that explains.
pub(super) const GREY: Colour = (95, 95, 95);
/// Lines of the grid.
pub(super) const GRID: Colour = (225, 225, 225);
/// Lines of the grid between decades.
pub(super) const FAINT: Colour = (241, 241, 241);
/// The paper.
pub(super) const PAPER: Colour = (255, 255, 255);

/// Which point of a text is put at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lettering {
    /// Height of the type in pixels.
    pub size: f64,
    /// Whether in bold type.
    pub bold: bool,
    /// Its colour.
    pub colour: Colour,
}

/// A grid of cells.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// Top left.
    pub from: Point,
    /// Bottom right; cells end there.
    pub to: Point,
    /// Width and height of a cell.
    pub size: Point,
    /// Cells in a row.
    pub across: usize,
    /// Row after row, 0 for paper or one more than a place in the palette.
    pub levels: Vec<u8>,
    /// Colours.
    pub palette: Vec<Colour>,
}

/// One shape.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// A line through points.
    Line {
        /// The points.
        points: Vec<Point>,
        /// Its colour.
        colour: Colour,
        /// Its width.
        width: f64,
    },
    /// A filled circle.
    Disc {
        /// Its centre.
        centre: Point,
        /// Its radius.
        radius: f64,
        /// Its colour.
        colour: Colour,
    },
    /// A filled rectangle.
    Area {
        /// Top left.
        from: Point,
        /// Bottom right.
        to: Point,
        /// Its colour.
        colour: Colour,
    },
    /// A grid of small coloured cells. In an SVG it is an image below all other shapes.
    Cells(Cells),
    /// A line of text, centred on its place in height.
    Text {
        /// Where.
        at: Point,
        /// What.
        text: String,
        /// How.
        lettering: Lettering,
        /// Which end of it stands there.
        anchor: Anchor,
        /// Whether it runs upwards.
        upwards: bool,
    },
}

/// The shapes in the order of painting.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// Pixels across.
    pub width: f64,
    /// Pixels down.
    pub height: f64,
    /// The shapes.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// An empty sheet.
    pub fn new(width: f64, height: f64) -> Scene {
        Scene { width, height, shapes: Vec::new() }
    }

    /// A line through points.
    pub fn line(&mut self, points: Vec<Point>, colour: Colour, width: f64) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line { points, colour, width });
        }
    }

    /// A broken line along points: `on` pixels drawn, `off` pixels left out.
    pub fn dashed(&mut self, points: &[Point], colour: Colour, width: f64, (on, off): (f64, f64)) {
        let mut piece: Vec<Point> = points.first().copied().into_iter().collect();
        let (mut drawing, mut left) = (true, on);
        for pair in points.windows(2) {
            let (mut at, to) = (pair[0], pair[1]);
            loop {
                let rest = (to.0 - at.0).hypot(to.1 - at.1);
                if rest < left {
                    left -= rest;
                    piece.push(to);
                    break;
                }
                at = (at.0 + (to.0 - at.0) * left / rest, at.1 + (to.1 - at.1) * left / rest);
                piece.push(at);
                if drawing {
                    self.line(std::mem::take(&mut piece), colour, width);
                }
                drawing = !drawing;
                left = if drawing { on } else { off };
                piece = vec![at];
            }
        }
        if drawing {
            self.line(piece, colour, width);
        }
    }

    /// A filled circle.
    pub fn disc(&mut self, centre: Point, radius: f64, colour: Colour) {
        self.shapes.push(Shape::Disc { centre, radius: radius + 1.2, colour: PAPER });
        self.shapes.push(Shape::Disc { centre, radius, colour });
    }

    /// The outline of a circle.
    pub fn ring(&mut self, (x, y): Point, radius: f64, colour: Colour) {
        let corner = |i: i32| {
            let (sin, cos) = (f64::from(i) * std::f64::consts::PI / 12.0).sin_cos();
            (x + radius * cos, y + radius * sin)
        };
        let corners: Vec<Point> = (0..=24).map(corner).collect();
        self.line(corners.clone(), PAPER, 4.5);
        self.line(corners, colour, 2.0);
    }

    /// Two crossed strokes, aslant.
    pub fn cross(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        let (left, right, top, bottom) = (x - reach, x + reach, y - reach, y + reach);
        self.strokes([[(left, top), (right, bottom)], [(left, bottom), (right, top)]], colour);
    }

    /// Two crossed strokes, upright.
    pub fn plus(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        self.strokes([[(x - reach, y), (x + reach, y)], [(x, y - reach), (x, y + reach)]], colour);
    }

    fn strokes(&mut self, strokes: [[Point; 2]; 2], colour: Colour) {
        // The paper shows around each mark, or a dense curve below it would swallow it.
        for (colour, width) in [(PAPER, 5.0), (colour, 2.2)] {
            strokes.iter().for_each(|stroke| self.line(stroke.to_vec(), colour, width));
        }
    }

    /// The outline of a triangle on its base.
    pub fn triangle(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        let base = y + 0.8 * reach;
        let corners =
            vec![(x, y - reach), (x + reach, base), (x - reach, base), (x, y - reach), (x + reach, base)];
        self.line(corners.clone(), PAPER, 3.5);
        self.line(corners, colour, 1.5);
    }

    /// The outline of a square on its corner.
    pub fn diamond(&mut self, (x, y): Point, reach: f64, colour: Colour) {
        let corners = vec![(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y), (x, y - reach)];
        self.line(corners.clone(), PAPER, 3.5);
        self.line(corners, colour, 1.5);
    }

    /// The outline of a rectangle.
    pub fn frame(&mut self, from: Point, to: Point, colour: Colour) {
        self.line(vec![from, (to.0, from.1), to, (from.0, to.1), from, (to.0, from.1)], colour, 1.0);
    }

    /// A filled rectangle.
    pub fn area(&mut self, from: Point, to: Point, colour: Colour) {
        self.shapes.push(Shape::Area { from, to, colour });
    }

    /// A grid of coloured cells.
    pub fn cells(&mut self, cells: Cells) {
        self.shapes.push(Shape::Cells(cells));
    }

    /// A line of text.
    pub fn text(&mut self, at: Point, text: impl Into<String>, lettering: Lettering, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text: text.into(), lettering, anchor, upwards: false });
    }

    /// A line of text that runs upwards, its middle at the place given.
    pub fn text_upwards(&mut self, at: Point, text: impl Into<String>, lettering: Lettering) {
        let (text, anchor) = (text.into(), Anchor::Middle);
        self.shapes.push(Shape::Text { at, text, lettering, anchor, upwards: true });
    }
}
