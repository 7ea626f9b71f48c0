//! The typeface that is built in: how wide a text is, and which dots of a bitmap it covers. Plotters' own lettering
//! of bitmaps leaves out the room that a letter keeps on its left, so that words look uneven.

use super::scene::{Lettering, Point};
use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use std::sync::OnceLock;

/// From the middle of a line of text down to its baseline, in sizes of the type: half the height of an x.
const DROP: f32 = 0.27;

/// The typeface, read once.
fn typeface(bold: bool) -> Option<&'static FontRef<'static>> {
    static REGULAR: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    static BOLD: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    let font = if bold {
        BOLD.get_or_init(|| FontRef::try_from_slice(dejavu::sans::bold()).ok())
    } else {
        REGULAR.get_or_init(|| FontRef::try_from_slice(dejavu::sans::regular()).ok())
    };
    font.as_ref()
}

/// The scale that gives type of a size: the crate measures from the lowest to the highest letter.
fn scale(font: &FontRef<'_>, size: f32) -> PxScale {
    PxScale::from(size * font.height_unscaled() / font.units_per_em().unwrap_or(1000.0))
}

/// Each character with the place where it begins, and where the last one ends.
fn places(font: &FontRef<'static>, text: &str, size: f32) -> (Vec<(char, f32)>, f32) {
    let scaled = font.as_scaled(scale(font, size));
    let (mut x, mut last) = (0.0, None);
    let mut places = Vec::new();
    for character in text.chars() {
        let glyph = font.glyph_id(character);
        x += last.map_or(0.0, |last| scaled.kern(last, glyph));
        places.push((character, x));
        x += scaled.h_advance(glyph);
        last = Some(glyph);
    }
    (places, x)
}

/// How many pixels a line of text takes. Without a typeface it is a guess.
pub(super) fn text_width(text: &str, lettering: Lettering) -> f64 {
    let Some(font) = typeface(lettering.bold) else {
        return text.chars().count() as f64 * 0.6 * lettering.size;
    };
    f64::from(places(font, text, lettering.size as f32).1)
}

/// Calls back for every dot that a text touches, with the share of it that is covered. The text begins at the
/// place, centred on it in height, or runs upwards from there.
pub(super) fn dots(
    text: &str,
    (size, bold): (f64, bool),
    at: Point,
    upwards: bool,
    mut dot: impl FnMut((i32, i32), f64) -> Result<(), String>,
) -> Result<(), String> {
    let font = typeface(bold).ok_or("the built-in typeface cannot be read")?;
    let size = size as f32;
    let mut result = Ok(());
    for (character, x) in places(font, text, size).0 {
        let glyph =
            font.glyph_id(character).with_scale_and_position(scale(font, size), point(x, DROP * size));
        let Some(outline) = font.outline_glyph(glyph) else { continue };
        let corner = outline.px_bounds().min;
        outline.draw(|dx, dy, cover| {
            let (along, across) = (corner.x as i32 + dx as i32, corner.y as i32 + dy as i32);
            let (x, y) = (at.0.round() as i32, at.1.round() as i32);
            let place = if upwards { (x + across, y - along) } else { (x + along, y + across) };
            if result.is_ok() && cover > 0.0 {
                result = dot(place, f64::from(cover.min(1.0)));
            }
        });
    }
    result
}
