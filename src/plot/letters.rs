//! The built-in typeface: the width of a text, its letters, and the pixels that it covers in a bitmap. The
//! bitmap text of plotters ignores the left side bearing of letters, which makes their spacing uneven.

use super::scene::{Lettering, Point};
use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use std::sync::OnceLock;

/// Distance from the middle of a line of text down to its baseline, as a multiple of the type
/// size: half the x-height.
pub(super) const DROP: f32 = 0.27;

const UNREADABLE: &str = "cannot read the built-in typeface";

/// Returns the file of the typeface.
pub(super) fn typeface_file(bold: bool) -> &'static [u8] {
    if bold { dejavu::sans::bold() } else { dejavu::sans::regular() }
}

/// Returns the typeface, parsed once.
fn typeface(bold: bool) -> Option<&'static FontRef<'static>> {
    static REGULAR: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    static BOLD: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    let font = if bold { &BOLD } else { &REGULAR };
    font.get_or_init(|| FontRef::try_from_slice(typeface_file(bold)).ok()).as_ref()
}

/// Returns the scale for a type size: the crate measures the height from the lowest to the highest letter.
fn scale(font: &FontRef<'_>, size: f32) -> PxScale {
    PxScale::from(size * font.height_unscaled() / font.units_per_em().unwrap_or(1000.0))
}

/// Returns each character with the x coordinate where it begins, and the end of the last one.
fn advances(font: &FontRef<'static>, text: &str, size: f32) -> (Vec<(char, f32)>, f32) {
    let scaled = font.as_scaled(scale(font, size));
    let (mut x, mut last) = (0.0, None);
    let mut starts = Vec::new();
    for character in text.chars() {
        let glyph = font.glyph_id(character);
        x += last.map_or(0.0, |last| scaled.kern(last, glyph));
        starts.push((character, x));
        x += scaled.h_advance(glyph);
        last = Some(glyph);
    }
    (starts, x)
}

/// Returns the width of a line of text in pixels; an estimate if the typeface is unavailable.
pub(super) fn text_width(text: &str, lettering: Lettering) -> f64 {
    let Some(font) = typeface(lettering.bold) else {
        return text.chars().count() as f64 * 0.6 * lettering.size;
    };
    f64::from(advances(font, text, lettering.size as f32).1)
}

/// Height of the highest and depth of the lowest letter, in thousandths of the type size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metrics {
    pub ascent: f32,
    pub descent: f32,
}

/// Returns the metrics of a typeface.
pub(super) fn metrics(bold: bool) -> Result<Metrics, String> {
    let font = typeface(bold).ok_or(UNREADABLE)?;
    let thousandths = 1000.0 / font.units_per_em().unwrap_or(1000.0);
    Ok(Metrics {
        ascent: font.ascent_unscaled() * thousandths,
        descent: font.descent_unscaled() * thousandths,
    })
}

/// A letter of a line of text; start and width are in thousandths of the type size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    pub character: char,
    pub glyph: u16,
    pub start: f32,
    pub width: f32,
}

/// Returns the letters of a line of text.
pub(super) fn letters(text: &str, bold: bool) -> Result<Vec<Letter>, String> {
    let font = typeface(bold).ok_or(UNREADABLE)?;
    let thousandths = 1000.0 / font.units_per_em().unwrap_or(1000.0);
    let letter = |(character, start)| {
        let glyph = font.glyph_id(character);
        Letter { character, glyph: glyph.0, start, width: font.h_advance_unscaled(glyph) * thousandths }
    };
    Ok(advances(font, text, 1000.0).0.into_iter().map(letter).collect())
}

/// Calls `dot` for every dot that a text touches, with the covered share of the dot. The text begins at `at`
/// and is centred vertically, or it runs upwards from there.
pub(super) fn dots(
    text: &str,
    (size, bold): (f64, bool),
    at: Point,
    upwards: bool,
    mut dot: impl FnMut((i32, i32), f64) -> Result<(), String>,
) -> Result<(), String> {
    let font = typeface(bold).ok_or(UNREADABLE)?;
    let size = size as f32;
    let mut result = Ok(());
    for (character, x) in advances(font, text, size).0 {
        let glyph =
            font.glyph_id(character).with_scale_and_position(scale(font, size), point(x, DROP * size));
        let Some(outline) = font.outline_glyph(glyph) else { continue };
        let corner = outline.px_bounds().min;
        outline.draw(|dx, dy, cover| {
            let (along, across) = (corner.x as i32 + dx as i32, corner.y as i32 + dy as i32);
            let (x, y) = (at.0.round() as i32, at.1.round() as i32);
            let position = if upwards { (x + across, y - along) } else { (x + along, y + across) };
            if result.is_ok() && cover > 0.0 {
                result = dot(position, f64::from(cover.min(1.0)));
            }
        });
    }
    result
}
