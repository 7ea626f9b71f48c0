//! Writes a scene as a PDF of one page. The used letters of the built-in typeface are embedded, so the text
//! can be searched and copied, and the picture looks the same everywhere. The file has no date: the same
//! scene gives the same bytes.

use super::cells;
use super::letters::{DROP, Letter, letters, metrics, text_width, typeface_file};
use super::scene::{Anchor, Cells, Colour, Lettering, Point, Scene, Shape};
use super::style::POINTS;
use flate2::{Compression, write::ZlibEncoder};
use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::collections::BTreeMap;
use std::io::Write;
use subsetter::GlyphRemapper;

/// Pixels of an inch, for pictures without a width on paper.
const PIXELS: f64 = 96.0;
/// Length of a handle of the four curves that form a circle, as a share of the radius.
const HANDLE: f64 = 0.552_284_75;
/// Objects of the file: catalog, pages, page and content. Fonts and images follow.
const OBJECTS: [Ref; 4] = [Ref::new(1), Ref::new(2), Ref::new(3), Ref::new(4)];
/// Number of objects of a font.
const FONT_OBJECTS: i32 = 5;
const SYSTEM: SystemInfo<'_> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Renders the scene as the bytes of a PDF file.
pub(super) fn pdf(scene: &Scene) -> Result<Vec<u8>, String> {
    let points = scene.width_in_points.unwrap_or(scene.width * POINTS / PIXELS) / scene.width;
    let mut page =
        Page { content: Content::new(), fonts: [Used::default(), Used::default()], images: Vec::new() };
    page.paint(scene, points)?;
    let [catalog, pages, first, content] = OBJECTS;
    let mut file = Pdf::new();
    file.catalog(catalog).pages(pages);
    file.pages(pages).kids([first]).count(1);
    let image_at = |i: usize| Ref::new(OBJECTS.len() as i32 + 1 + 2 * FONT_OBJECTS + i as i32);
    let font_at = |i: usize| Ref::new(OBJECTS.len() as i32 + 1 + FONT_OBJECTS * i as i32);
    let mut dict = file.page(first);
    let (width, height) = ((scene.width * points) as f32, (scene.height * points) as f32);
    dict.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(content);
    let mut resources = dict.resources();
    let mut fonts = resources.fonts();
    for (i, _) in page.fonts.iter().enumerate().filter(|(_, used)| !used.letters.is_empty()) {
        fonts.pair(Name(FONTS[i]), font_at(i));
    }
    fonts.finish();
    let mut images = resources.x_objects();
    for i in 0..page.images.len() {
        images.pair(Name(format!("I{i}").as_bytes()), image_at(i));
    }
    images.finish();
    resources.finish();
    dict.finish();
    file.stream(content, &deflate(&page.content.finish())?).filter(Filter::FlateDecode);
    for (i, used) in page.fonts.iter().enumerate().filter(|(_, used)| !used.letters.is_empty()) {
        font(&mut file, used, i == 1, font_at(i).get())?;
    }
    for (i, cells) in page.images.iter().enumerate() {
        image(&mut file, cells, scene.paper, image_at(i))?;
    }
    Ok(file.finish())
}

fn deflate(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|e| e.to_string())
}

/// Names of the regular and of the bold typeface on the page and in the file. The prefix marks a subset.
const FONTS: [&[u8]; 2] = [b"R", b"B"];
const NAMES: [&[u8]; 2] = [b"SOLVER+DejaVuSans", b"SOLVER+DejaVuSans-Bold"];

/// The letters of a typeface that a page uses.
#[derive(Default)]
struct Used {
    remapper: GlyphRemapper,
    /// The character and the width in thousandths of the type size, by the number of the
    /// letter in the embedded font.
    letters: BTreeMap<u16, (char, f32)>,
}

/// The content of the page.
struct Page<'a> {
    content: Content,
    fonts: [Used; 2],
    images: Vec<&'a Cells>,
}

fn rgb((r, g, b): Colour) -> [f32; 3] {
    [r, g, b].map(|channel| f32::from(channel) / 255.0)
}

impl<'a> Page<'a> {
    fn paint(&mut self, scene: &'a Scene, points: f64) -> Result<(), String> {
        // Turns the axes so that y runs down, in pixels of the scene.
        let turned = [points, 0.0, 0.0, -points, 0.0, scene.height * points].map(|x| x as f32);
        self.content.transform(turned).set_line_join(LineJoinStyle::RoundJoin);
        self.area((0.0, 0.0), (scene.width, scene.height), scene.paper);
        for shape in &scene.shapes {
            match shape {
                Shape::Line { points, colour, width } => self.line(points, *colour, *width),
                Shape::Disc { centre, radius, colour } => self.disc(*centre, *radius, *colour),
                Shape::Area { from, to, colour } => self.area(*from, *to, *colour),
                Shape::Cells(cells) => self.cells(cells),
                Shape::Text { at, text, lettering, anchor, upwards, .. } => {
                    self.text(*at, text, *lettering, *anchor, *upwards)?;
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, points: &[Point], colour: Colour, width: f64) {
        let [r, g, b] = rgb(colour);
        self.content.set_stroke_rgb(r, g, b).set_line_width(width as f32);
        for (i, &(x, y)) in points.iter().enumerate() {
            match i {
                0 => self.content.move_to(x as f32, y as f32),
                _ => self.content.line_to(x as f32, y as f32),
            };
        }
        self.content.stroke();
    }

    fn disc(&mut self, (x, y): Point, radius: f64, colour: Colour) {
        let at = |dx: f64, dy: f64| ((x + radius * dx) as f32, (y + radius * dy) as f32);
        let [r, g, b] = rgb(colour);
        let start = at(1.0, 0.0);
        self.content.set_fill_rgb(r, g, b).move_to(start.0, start.1);
        for (cos, sin) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
            let (first, second) =
                (at(cos - HANDLE * sin, sin + HANDLE * cos), at(-sin + HANDLE * cos, cos + HANDLE * sin));
            let end = at(-sin, cos);
            self.content.cubic_to(first.0, first.1, second.0, second.1, end.0, end.1);
        }
        self.content.fill_nonzero();
    }

    fn area(&mut self, from: Point, to: Point, colour: Colour) {
        let [r, g, b] = rgb(colour);
        let [x, y, width, height] = [from.0, from.1, to.0 - from.0, to.1 - from.1].map(|x| x as f32);
        self.content.set_fill_rgb(r, g, b).rect(x, y, width, height).fill_nonzero();
    }

    /// Shows an image of the cells, clipped as the last cells may extend beyond the grid.
    fn cells(&mut self, cells: &'a Cells) {
        let down = cells.levels.len() / cells.across.max(1);
        if down == 0 {
            return;
        }
        let (width, height) = (cells.size.0 * cells.across as f64, cells.size.1 * down as f64);
        let [x, y, across, tall] =
            [cells.from.0, cells.from.1, cells.to.0 - cells.from.0, cells.to.1 - cells.from.1]
                .map(|x| x as f32);
        let name = format!("I{}", self.images.len());
        self.images.push(cells);
        self.content.save_state().rect(x, y, across, tall).clip_nonzero().end_path();
        // An image fills the unit square, with its first row at the top.
        let square = [width, 0.0, 0.0, -height, cells.from.0, cells.from.1 + height].map(|x| x as f32);
        self.content.transform(square).x_object(Name(name.as_bytes())).restore_state();
    }

    fn text(
        &mut self,
        at: Point,
        text: &str,
        type_: Lettering,
        anchor: Anchor,
        upwards: bool,
    ) -> Result<(), String> {
        let back = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => text_width(text, type_) / 2.0,
            Anchor::End => text_width(text, type_),
        };
        let drop = f64::from(DROP) * type_.size;
        // The axes are turned back for the letters.
        let matrix = match upwards {
            false => [1.0, 0.0, 0.0, -1.0, at.0 - back, at.1 + drop],
            true => [0.0, -1.0, -1.0, 0.0, at.0 + drop, at.1 + back],
        };
        let [r, g, b] = rgb(type_.colour);
        let nth = usize::from(type_.bold);
        self.content.set_fill_rgb(r, g, b).begin_text();
        self.content.set_font(Name(FONTS[nth]), type_.size as f32).set_text_matrix(matrix.map(|x| x as f32));
        let mut shown = self.content.show_positioned();
        let mut items = shown.items();
        // The end of the previous letter, in thousandths of the type size.
        let mut end = 0.0f32;
        for Letter { character, glyph, start, width } in letters(text, type_.bold)? {
            if (start - end).abs() > 0.5 {
                items.adjust(end - start);
            }
            end = start + width;
            let number = self.fonts[nth].remapper.remap(glyph);
            self.fonts[nth].letters.entry(number).or_insert((character, width));
            items.show(Str(&number.to_be_bytes()));
        }
        items.finish();
        shown.finish();
        self.content.end_text();
        Ok(())
    }
}

/// Embeds the used letters of a typeface.
fn font(file: &mut Pdf, used: &Used, bold: bool, first: i32) -> Result<(), String> {
    let [font, letters, descriptor, map, data] = [0, 1, 2, 3, 4].map(|i| Ref::new(first + i));
    let name = Name(NAMES[usize::from(bold)]);
    file.type0_font(font)
        .base_font(name)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(letters)
        .to_unicode(map);
    let mut cid = file.cid_font(letters);
    cid.subtype(CidFontType::Type2).base_font(name).system_info(SYSTEM).font_descriptor(descriptor);
    cid.default_width(0.0).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for (&number, &(_, width)) in &used.letters {
        widths.same(number, number, width);
    }
    widths.finish();
    cid.finish();
    let metrics = metrics(bold)?;
    let bbox = Rect::new(-1100.0, metrics.descent, 2000.0, metrics.ascent);
    file.font_descriptor(descriptor)
        .name(name)
        .flags(FontFlags::SYMBOLIC)
        .bbox(bbox)
        .italic_angle(0.0)
        .ascent(metrics.ascent)
        .descent(metrics.descent)
        .cap_height(729.0)
        .stem_v(if bold { 140.0 } else { 80.0 })
        .font_file2(data);
    let mut unicode = UnicodeCmap::new(Name(b"Custom"), SYSTEM);
    for (&number, &(character, _)) in &used.letters {
        unicode.pair(number, character);
    }
    file.cmap(map, &unicode.finish());
    let subset = subsetter::subset(typeface_file(bold), 0, &used.remapper).map_err(|e| e.to_string())?;
    let mut stream = Vec::new();
    stream.extend(deflate(&subset)?);
    file.stream(data, &stream).filter(Filter::FlateDecode).pair(Name(b"Length1"), subset.len() as i32);
    Ok(())
}

/// Embeds a grid of cells as an image with a palette.
fn image(file: &mut Pdf, cells: &Cells, paper: Colour, at: Ref) -> Result<(), String> {
    let (pixels, width, height) = cells::pixels(cells);
    let data = deflate(&pixels)?;
    let mut image = file.image_xobject(at, &data);
    image.filter(Filter::FlateDecode);
    image.width(width as i32).height(height as i32).bits_per_component(8);
    let palette = cells::palette(cells, paper);
    image.color_space().indexed(Name(b"DeviceRGB"), cells.palette.len() as i32, &palette);
    image.interpolate(false);
    image.finish();
    Ok(())
}
