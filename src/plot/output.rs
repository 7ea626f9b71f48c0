//! Writes a scene in the format that the ending of the file selects.

use super::pdf::pdf;
use super::render::{png, svg};
use super::scene::Scene;
use super::style::Style;
use crate::error::{Error, Result};
use crate::observe::write_file;
use std::path::Path;

/// The format of a picture, given by the ending of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Vector graphics.
    Svg,
    /// A bitmap.
    Png,
    /// Vector graphics with embedded fonts.
    Pdf,
}

impl Format {
    /// Returns the format for the ending of a path.
    pub(crate) fn of(path: &Path) -> Result<Format> {
        let fault = |message: String| Err(Error::Plot { path: path.to_owned(), message });
        match path.extension().unwrap_or_default().to_string_lossy().to_lowercase().as_str() {
            "svg" => Ok(Format::Svg),
            "png" => Ok(Format::Png),
            "pdf" => Ok(Format::Pdf),
            "" => fault("the file needs an ending, .svg, .png or .pdf".into()),
            other => fault(format!("unknown format .{other}; use .svg, .png or .pdf")),
        }
    }
}

/// Lays out a picture in a style and writes it. The format and the style are checked first. The file is
/// written completely or not at all.
pub(super) fn write(style: Style, path: &Path, lay_out: impl FnOnce() -> Scene) -> Result<()> {
    let fault = |message: String| Error::Plot { path: path.to_owned(), message };
    let format = Format::of(path)?;
    style.check().map_err(fault)?;
    let mut scene = lay_out();
    style.apply(&mut scene);
    let bytes = match format {
        Format::Svg => svg(&scene).map(String::into_bytes),
        Format::Png => png(&scene),
        Format::Pdf => pdf(&scene),
    };
    write_file(path, &bytes.map_err(fault)?)
}
