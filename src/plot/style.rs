//! The style of pictures: light or dark, and the width on paper.

use super::scene::{Colour, FAINT, GREY, GRID, INK, PALETTE, PAPER, Scene, Shape, clearest};

/// Millimetres of an inch, points of an inch.
const INCH: f64 = 25.4;
pub(super) const POINTS: f64 = 72.0;
/// Pixels of the layout per point on paper, so that the smallest type of 11 pixels has 7 points.
const PIXELS_PER_POINT: f64 = 11.0 / 7.0;
/// The widths in millimetres that leave room for a picture.
const WIDTHS: std::ops::RangeInclusive<f64> = 80.0..=1000.0;

/// The style of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Style {
    /// Whether the background is dark.
    pub dark: bool,
    /// The width on paper in millimetres, at which the smallest type has 7 points: a column of a journal is
    /// often 89 wide, and a page of two columns 183. `None` leaves each picture its own width in pixels.
    pub width: Option<f64>,
}

impl Style {
    /// Checks that a picture fits into the width.
    pub(crate) fn check(self) -> Result<(), String> {
        match self.width {
            Some(width) if !WIDTHS.contains(&width) => {
                let (least, most) = (WIDTHS.start(), WIDTHS.end());
                Err(format!("a picture cannot be {width} mm wide; use {least} to {most}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the width of the layout in pixels, with the default of a picture without width.
    pub(super) fn pixels(self, default: f64) -> f64 {
        self.width.map_or(default, |width| (width / INCH * POINTS * PIXELS_PER_POINT).round())
    }

    /// Gives the scene its colours and its size on paper.
    pub(super) fn apply(self, scene: &mut Scene) {
        scene.width_in_points = self.width.map(|width| width / INCH * POINTS);
        if !self.dark {
            return;
        }
        scene.paper = dark(PAPER);
        for shape in &mut scene.shapes {
            match shape {
                Shape::Line { colour, .. } | Shape::Disc { colour, .. } | Shape::Area { colour, .. } => {
                    *colour = dark(*colour);
                }
                Shape::Text { lettering, under: None, .. } => lettering.colour = dark(lettering.colour),
                Shape::Text { lettering, under: Some(under), .. } => {
                    lettering.colour = clearest(dark(*under), [dark(INK), dark(PAPER)]);
                }
                Shape::Cells(cells) => cells.palette.iter_mut().for_each(|colour| *colour = dark(*colour)),
            }
        }
    }
}

/// Background and ink on it, for the colours that have a meaning.
const DARK: [(Colour, Colour); 5] = [
    (PAPER, (24, 27, 31)),
    (INK, (232, 232, 232)),
    (GREY, (168, 172, 178)),
    (GRID, (62, 66, 72)),
    (FAINT, (41, 45, 50)),
];
/// The palette on a dark background, in the order of [`PALETTE`].
const DARK_PALETTE: [Colour; PALETTE.len()] = [
    (51, 141, 214),
    (236, 117, 40),
    (22, 180, 135),
    (219, 142, 186),
    (240, 180, 41),
    (131, 205, 245),
    (240, 240, 240),
];
/// Lightness of the darkest colour on a dark background.
const DARKEST: f64 = 0.22;

/// Returns the colour with the same meaning on a dark background. Shades of colour scales keep their hue and
/// reverse their lightness, so that shades near the background stay near it.
fn dark(colour: Colour) -> Colour {
    if let Some((_, dark)) = DARK.iter().find(|(light, _)| *light == colour) {
        return *dark;
    }
    if let Some(nth) = PALETTE.iter().position(|light| *light == colour) {
        return DARK_PALETTE[nth];
    }
    let (lightness, a, b) = to_oklab(colour);
    from_oklab((DARKEST + (1.0 - DARKEST) * (1.0 - lightness), a, b))
}

/// Converts a colour to Ottosson's Oklab (2020): lightness, from green to red, from blue to yellow.
fn to_oklab((r, g, b): Colour) -> (f64, f64, f64) {
    let linear = |channel: u8| match f64::from(channel) / 255.0 {
        c if c <= 0.04045 => c / 12.92,
        c => ((c + 0.055) / 1.055).powf(2.4),
    };
    let (r, g, b) = (linear(r), linear(g), linear(b));
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    (
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    )
}

/// Converts from Oklab; channels outside the displayable range are clamped.
fn from_oklab((lightness, a, b): (f64, f64, f64)) -> Colour {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let encoded = |linear: f64| {
        let c = linear.clamp(0.0, 1.0);
        let c = if c <= 0.003_130_8 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 };
        (c * 255.0).round() as u8
    };
    (
        encoded(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        encoded(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        encoded(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::scene::contrast;

    #[test]
    fn the_palette_has_contrast_with_the_background_in_both_modes() {
        for colour in PALETTE {
            assert!(contrast(colour, PAPER) > 2.0, "{colour:?}");
            assert!(contrast(dark(colour), dark(PAPER)) > 4.5, "{colour:?}");
        }
        assert!(contrast(dark(INK), dark(PAPER)) > 12.0 && contrast(dark(GREY), dark(PAPER)) > 6.0);
    }

    #[test]
    fn values_inside_bars_are_readable_in_both_modes() {
        for colour in PALETTE {
            assert!(contrast(colour, clearest(colour, [INK, PAPER])) > 3.9, "{colour:?}");
            let under = dark(colour);
            assert!(contrast(under, clearest(under, [dark(INK), dark(PAPER)])) > 4.5, "{colour:?}");
        }
    }

    #[test]
    fn shades_reverse_their_lightness_on_a_dark_background() {
        for colour in [(12, 200, 90), (0, 0, 0), (255, 255, 255), (203, 17, 240)] {
            assert_eq!(from_oklab(to_oklab(colour)), colour);
        }
        let lightness = |colour: Colour| to_oklab(dark(colour)).0;
        assert!(lightness((189, 227, 150)) < lightness((41, 10, 74)));
    }

    #[test]
    fn two_columns_have_type_of_7_points() {
        let pixels = Style { width: Some(183.0), ..Style::default() }.pixels(1200.0);
        let points_per_pixel = 183.0 / INCH * POINTS / pixels;
        assert!((11.0 * points_per_pixel - 7.0).abs() < 0.01);
        let narrow = |width| Style { width: Some(width), ..Style::default() }.check();
        assert!(narrow(89.0).is_ok() && narrow(f64::NAN).is_err());
        assert!(narrow(10.0).unwrap_err().contains("10 mm wide; use 80 to 1000"));
    }
}
