//! Paints a scene as SVG or as PNG, with the built-in typeface.

use super::cells;
use super::letters::{dots, text_width};
use super::scene::{Anchor, Cells, Colour, Lettering, Point, Scene, Shape};
use plotters::prelude::{BitMapBackend, DrawingBackend, RGBColor, SVGBackend, ShapeStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, FontTransform, TextStyle};

/// The font list of an SVG, in order of preference. Bitmaps use the first, which is built in.
const TYPEFACE: &str = "DejaVu Sans, Verdana, sans-serif";
/// Coordinate units per pixel in an SVG: plotters' coordinates are integers, and whole pixels
/// are too coarse for a curve.
const SVG_UNITS: f64 = 20.0;
/// Pixels of a PNG per pixel of the scene, on a screen and on paper, where these are about 340 per inch.
const PNG_PIXELS: usize = 2;
const PRINTED_PIXELS: usize = 3;
/// Points of a metre.
const METRE: f64 = 72.0 / 0.0254;
/// Dots per direction that are averaged into a pixel of a PNG: plotters does not smooth edges.
const DOTS: usize = 2;
/// Factor on the font size that makes plotters write type of the given size in an SVG.
const SIZE: f64 = 1.24;

fn fault(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Renders the scene as the text of an SVG file.
pub(super) fn svg(scene: &Scene) -> Result<String, String> {
    let mut text = String::new();
    let (width, height) = ((scene.width * SVG_UNITS) as u32, (scene.height * SVG_UNITS) as u32);
    {
        let mut backend = SVGBackend::with_string(&mut text, (width, height));
        Painter { backend: &mut backend, scale: SVG_UNITS, bitmap: false }.paint(scene)?;
        backend.present().map_err(fault)?;
    }
    // The viewBox keeps the fine units; width and height are in pixels, or in points on paper.
    let outer = format!("<svg width=\"{width}\" height=\"{height}\"");
    let (width, height) = match scene.width_in_points {
        Some(points) => (format!("{points:.2}pt"), format!("{:.2}pt", points * scene.height / scene.width)),
        None => (scene.width.to_string(), scene.height.to_string()),
    };
    let wanted = format!("<svg width=\"{width}\" height=\"{height}\" stroke-linejoin=\"round\"");
    text = text.replacen(&outer, &wanted, 1);
    for shape in &scene.shapes {
        let Shape::Cells(cells) = shape else { continue };
        // Inserts the image after the first shape, which is the paper.
        let paper_ends = text.find("/>").map_or(text.len(), |at| at + 2);
        text.insert_str(paper_ends, &cells::image(cells, scene.paper, SVG_UNITS)?);
    }
    Ok(text)
}

/// Renders the scene as the bytes of a PNG file.
pub(super) fn png(scene: &Scene) -> Result<Vec<u8>, String> {
    let finer = if scene.width_in_points.is_some() { PRINTED_PIXELS } else { PNG_PIXELS };
    let (width, height) = (scene.width as usize * finer, scene.height as usize * finer);
    let (across, down) = (width * DOTS, height * DOTS);
    let mut dots = vec![255u8; across * down * 3];
    {
        let size = (across as u32, down as u32);
        let mut backend =
            BitMapBackend::<plotters::backend::RGBPixel>::with_buffer_and_format(&mut dots, size)
                .map_err(fault)?;
        Painter { backend: &mut backend, scale: (finer * DOTS) as f64, bitmap: true }.paint(scene)?;
        backend.present().map_err(fault)?;
    }
    let pixels = average(&dots, width, height);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    if let Some(points) = scene.width_in_points {
        let per_metre = (width as f64 / points * METRE).round() as u32;
        let dims = png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter };
        encoder.set_pixel_dims(Some(dims));
    }
    // The faster default gives files five times as large.
    encoder.set_compression(png::Compression::Default);
    let mut writer = encoder.write_header().map_err(fault)?;
    writer.write_image_data(&pixels).map_err(fault)?;
    writer.finish().map_err(fault)?;
    Ok(file)
}

/// Averages squares of dots into pixels.
fn average(dots: &[u8], width: usize, height: usize) -> Vec<u8> {
    let stride = width * DOTS * 3;
    let mut pixels = Vec::with_capacity(width * height * 3);
    for rows in dots.chunks_exact(stride * DOTS) {
        for x in 0..width {
            for channel in 0..3 {
                let mut sum = 0;
                for dy in 0..DOTS {
                    for dx in 0..DOTS {
                        sum += usize::from(rows[dy * stride + (x * DOTS + dx) * 3 + channel]);
                    }
                }
                pixels.push((sum / (DOTS * DOTS)) as u8);
            }
        }
    }
    pixels
}

/// Draws shapes with one of plotters' backends.
struct Painter<'a, B: DrawingBackend> {
    backend: &'a mut B,
    scale: f64,
    bitmap: bool,
}

impl<B: DrawingBackend> Painter<'_, B> {
    fn to_backend(&self, (x, y): Point) -> (i32, i32) {
        ((x * self.scale).round() as i32, (y * self.scale).round() as i32)
    }

    fn style(&self, (r, g, b): Colour, width: f64) -> ShapeStyle {
        let stroke_width = (width * self.scale).round().max(1.0) as u32;
        ShapeStyle { color: RGBColor(r, g, b).into(), filled: true, stroke_width }
    }

    fn paint(&mut self, scene: &Scene) -> Result<(), String> {
        let corner = self.to_backend((scene.width, scene.height));
        let paper = self.style(scene.paper, 1.0);
        self.backend.draw_rect((0, 0), corner, &paper, true).map_err(fault)?;
        for shape in &scene.shapes {
            match shape {
                Shape::Line { points, colour, width } => self.line(points, *colour, *width),
                Shape::Disc { centre, radius, colour } => {
                    let (at, style) = (self.to_backend(*centre), self.style(*colour, 1.0));
                    let radius = (radius * self.scale).round() as u32;
                    self.backend.draw_circle(at, radius, &style, true).map_err(fault)
                }
                Shape::Area { from, to, colour } => {
                    let (from, to, style) =
                        (self.to_backend(*from), self.to_backend(*to), self.style(*colour, 1.0));
                    self.backend.draw_rect(from, to, &style, true).map_err(fault)
                }
                Shape::Cells(cells) => {
                    if self.bitmap {
                        self.cells(cells)
                    } else {
                        Ok(())
                    }
                }
                Shape::Text { at, text, lettering, anchor, upwards, .. } => {
                    self.text(*at, text, *lettering, *anchor, *upwards)
                }
            }?;
        }
        Ok(())
    }

    /// Draws cells; each covers at least one dot and ends where the next begins.
    fn cells(&mut self, cells: &Cells) -> Result<(), String> {
        for (i, &level) in cells.levels.iter().enumerate().filter(|&(_, &level)| level > 0) {
            let (across, down) = ((i % cells.across) as f64, (i / cells.across) as f64);
            let corner = |across: f64, down: f64| {
                let at = (cells.from.0 + across * cells.size.0, cells.from.1 + down * cells.size.1);
                self.to_backend((at.0.min(cells.to.0), at.1.min(cells.to.1)))
            };
            let (from, to) = (corner(across, down), corner(across + 1.0, down + 1.0));
            let style = self.style(cells.palette[usize::from(level) - 1], 1.0);
            let end = (to.0.max(from.0 + 1), to.1.max(from.1 + 1));
            self.backend.draw_rect(from, end, &style, true).map_err(fault)?;
        }
        Ok(())
    }

    /// Draws a line. In a bitmap, each segment is drawn separately with a round joint: plotters mitres its
    /// paths, and the mitre of a sharp spike of the residual would extend far beyond its peak.
    fn line(&mut self, points: &[Point], colour: Colour, width: f64) -> Result<(), String> {
        let style = self.style(colour, width);
        let corners: Vec<(i32, i32)> = points.iter().map(|&p| self.to_backend(p)).collect();
        if !self.bitmap {
            return self.backend.draw_path(corners, &style).map_err(fault);
        }
        for pair in corners.windows(2) {
            self.backend.draw_line(pair[0], pair[1], &style).map_err(fault)?;
        }
        if corners.len() > 2 && style.stroke_width > 4 {
            let dot = self.style(colour, 1.0);
            for &joint in &corners[1..corners.len() - 1] {
                self.backend.draw_circle(joint, style.stroke_width / 2, &dot, true).map_err(fault)?;
            }
        }
        Ok(())
    }

    fn text(
        &mut self,
        at: Point,
        text: &str,
        lettering: Lettering,
        anchor: Anchor,
        upwards: bool,
    ) -> Result<(), String> {
        let Lettering { size, bold, colour: (r, g, b) } = lettering;
        let colour = RGBColor(r, g, b);
        if self.bitmap {
            let back = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => text_width(text, lettering) / 2.0,
                Anchor::End => text_width(text, lettering),
            };
            let start = if upwards { (at.0, at.1 + back) } else { (at.0 - back, at.1) };
            let (start, size) = ((start.0 * self.scale, start.1 * self.scale), size * self.scale);
            return dots(text, (size, bold), start, upwards, |position, cover| {
                self.backend.draw_pixel(position, colour.mix(cover).to_backend_color()).map_err(fault)
            });
        }
        let weight = if bold { FontStyle::Bold } else { FontStyle::Normal };
        let mut font = FontDesc::new(FontFamily::Name(TYPEFACE), size * self.scale * SIZE, weight);
        if upwards {
            font = font.transform(FontTransform::Rotate270);
        }
        let h_pos = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(h_pos, VPos::Center));
        let position = self.to_backend(at);
        self.backend.draw_text(text, &style, position).map_err(fault)
    }
}
