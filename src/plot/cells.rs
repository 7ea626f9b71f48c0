//! Draws a grid of cells as an image inside an SVG: a quarter of a million rectangles would take
//! a file of many megabytes.
//!
//! The image is a PNG with a palette, embedded in base 64. A style attribute disables smoothing in viewers.
//! Each cell is several pixels wide, so viewers that smooth anyway only soften the edges.

use super::scene::{Cells, Colour};
use std::fmt::Write;

/// Least number of pixels along the longer side of the image.
const PIXELS: usize = 1024;

/// Returns the SVG element, with `units` coordinate units to a pixel.
pub(super) fn image(cells: &Cells, paper: Colour, units: f64) -> Result<String, String> {
    let down = cells.levels.len() / cells.across.max(1);
    if down == 0 {
        return Ok(String::new());
    }
    let (width, height) = (cells.size.0 * cells.across as f64, cells.size.1 * down as f64);
    // A nested viewport clips the last cells, which may extend beyond the matrix.
    let (x, y) = (cells.from.0 * units, cells.from.1 * units);
    let (visible_width, visible_height) = (cells.to.0 - cells.from.0, cells.to.1 - cells.from.1);
    let mut text = String::new();
    let _ = write!(
        text,
        "\n<svg x=\"{x:.0}\" y=\"{y:.0}\" width=\"{:.0}\" height=\"{:.0}\"><image width=\"{:.1}\" height=\"{:.1}\" \
         preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/></svg>",
        visible_width * units,
        visible_height * units,
        width * units,
        height * units,
        base64(&png(cells, paper)?)
    );
    Ok(text)
}

fn fault(error: png::EncodingError) -> String {
    error.to_string()
}

/// Returns the levels of the cells as pixels, each cell several pixels wide so that the image has at least
/// `PIXELS` pixels, and the width and height of the image.
pub(super) fn pixels(cells: &Cells) -> (Vec<u8>, usize, usize) {
    let down = cells.levels.len() / cells.across.max(1);
    let times = PIXELS.div_ceil(cells.across.max(down).max(1));
    let mut pixels = Vec::with_capacity(cells.levels.len() * times * times);
    for row in cells.levels.chunks_exact(cells.across.max(1)) {
        let wide: Vec<u8> = row.iter().flat_map(|&level| std::iter::repeat_n(level, times)).collect();
        (0..times).for_each(|_| pixels.extend_from_slice(&wide));
    }
    (pixels, cells.across * times, down * times)
}

/// Returns red, green and blue for each level, of which the first is the background.
pub(super) fn palette(cells: &Cells, paper: Colour) -> Vec<u8> {
    std::iter::once(&paper).chain(&cells.palette).flat_map(|&(r, g, b)| [r, g, b]).collect()
}

/// Encodes the cells as a PNG.
fn png(cells: &Cells, paper: Colour) -> Result<Vec<u8>, String> {
    let (pixels, width, height) = pixels(cells);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette(cells, paper));
    encoder.set_compression(png::Compression::Best);
    let mut writer = encoder.write_header().map_err(fault)?;
    writer.write_image_data(&pixels).map_err(fault)?;
    writer.finish().map_err(fault)?;
    Ok(file)
}

/// Encodes bytes in base 64.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base_64_is_padded() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
