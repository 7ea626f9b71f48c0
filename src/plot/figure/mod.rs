//! Figures: plain data from which one picture of several panels is drawn. Bars, curves, rooflines and heat
//! maps share a legend, and panels of the same quantity share their axes.

mod bars;
mod check;
mod curves;
mod ends;
mod grid;
mod heat;
mod key;
mod labels;
mod roofline;
mod scale;
mod sheet;

pub(super) use key::Key;

use super::output::write;
use super::style::Style;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A picture of several panels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The title.
    #[serde(default)]
    pub title: String,
    /// Further information: device, precision, caveats.
    #[serde(default)]
    pub note: String,
    /// The panels, row after row.
    pub panels: Vec<Panel>,
    /// Number of panels side by side; `None` chooses it from their count and the width.
    #[serde(default)]
    pub columns: Option<usize>,
    /// Whether each panel has the range of its own values, instead of that of all panels of
    /// the same quantity.
    #[serde(default)]
    pub own_ranges: bool,
}

/// One panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The title.
    #[serde(default)]
    pub title: String,
    /// What the panel shows.
    pub content: Content,
}

/// The content of a panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Groups of bars, or of dots on a logarithmic axis.
    Bars(Bars),
    /// Curves over a quantity.
    Curves(Curves),
    /// Speeds against operational intensity, below the limits of a machine.
    Roofline(Roofline),
    /// A table of coloured cells.
    HeatMap(HeatMap),
}

/// Groups of bars, one bar of each series in each group. A logarithmic axis has dots instead,
/// because it has no zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bars {
    /// The names of the groups, such as matrices.
    pub groups: Vec<String>,
    /// The series, such as backends.
    pub series: Vec<BarSeries>,
    /// The quantity with its unit.
    pub quantity: String,
    /// A limit, drawn as a line over each group.
    #[serde(default)]
    pub ceiling: Option<Ceiling>,
    /// A value to compare with, drawn as a dashed line over all groups, such as 1 or 100 %.
    #[serde(default)]
    pub line_at: Option<f64>,
    /// Whether the axis is logarithmic.
    #[serde(default)]
    pub logarithmic: bool,
}

/// One bar of each group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarSeries {
    /// The name in the legend.
    pub name: String,
    /// A value for each group; `None` if there is none.
    pub values: Vec<Option<f64>>,
    /// The low end of the spread for each group, or empty.
    #[serde(default)]
    pub low: Vec<Option<f64>>,
    /// The high end of the spread for each group, or empty.
    #[serde(default)]
    pub high: Vec<Option<f64>>,
}

/// A limit of each group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// The name in the legend.
    pub name: String,
    /// A value for each group.
    pub values: Vec<Option<f64>>,
}

/// Curves over a quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<CurveSeries>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The quantity with its unit.
    pub quantity: String,
    /// Whether the axis is logarithmic.
    #[serde(default)]
    pub logarithmic: bool,
}

/// One curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSeries {
    /// The name in the legend.
    pub name: String,
    /// The points, x before y, in the order in which lines connect them.
    pub points: Vec<[f64; 2]>,
    /// Whether the curve is only for comparison, such as figures of a publication; it is drawn dashed.
    #[serde(default)]
    pub reference: bool,
    /// The name of the series that a reference belongs to, whose colour and marks it has.
    #[serde(default)]
    pub of: Option<String>,
}

/// Speeds against operational intensity, below the limits of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roofline {
    /// The bandwidths of the machine, such as those of memory and of a cache.
    pub bandwidth: Vec<Roof>,
    /// The most operations per second, in GFLOP/s.
    #[serde(default)]
    pub peak_gflops: Option<f64>,
    /// The measurements.
    #[serde(default)]
    pub points: Vec<RoofPoint>,
}

/// A bandwidth of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roof {
    /// The name.
    pub name: String,
    /// The bandwidth.
    pub gigabytes_per_second: f64,
}

/// A measurement in a roofline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoofPoint {
    /// The name.
    pub name: String,
    /// The operational intensity.
    pub flops_per_byte: f64,
    /// The speed.
    pub gflops: f64,
}

/// A table of coloured cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeatMap {
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The values, row after row; `None` if there is none.
    pub values: Vec<Vec<Option<f64>>>,
    /// The quantity with its unit.
    pub quantity: String,
    /// The quantity of the rows, if their names are values of one.
    #[serde(default)]
    pub row_quantity: String,
    /// The quantity of the columns, if their names are values of one.
    #[serde(default)]
    pub column_quantity: String,
    /// Whether colours follow the logarithm of the values.
    #[serde(default)]
    pub logarithmic: bool,
    /// A value from which colours diverge, such as 1 for speed-ups.
    #[serde(default)]
    pub centre: Option<f64>,
}

impl Figure {
    /// Parses and checks a figure if the text is one: an object with the key `panels`. `path`
    /// is for error messages.
    pub fn of(text: &str, path: &Path) -> Result<Option<Figure>> {
        let Ok(object) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) else {
            return Ok(None);
        };
        if !object.contains_key("panels") {
            return Ok(None);
        }
        let fault = |message: String| Error::Plot { path: path.to_owned(), message };
        let figure: Figure = serde_json::from_value(object.into()).map_err(|e| fault(e.to_string()))?;
        figure.check().map_err(fault)?;
        Ok(Some(figure))
    }

    /// Checks that the figure can be drawn: lengths agree, and values are numbers that the axes can show.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        check::figure(self)
    }

    /// Returns the different names of series, and of the points of rooflines, in their order.
    /// Labels replace them.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.panels.iter().flat_map(|panel| panel.content.names()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Renames the series in the order of `names`, in all panels.
    pub(crate) fn rename(&mut self, labels: &[String]) {
        let old: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        for name in self.panels.iter_mut().flat_map(|panel| panel.content.names_mut()) {
            if let Some((_, label)) = old.iter().zip(labels).find(|(old, _)| *old == name) {
                name.clone_from(label);
            }
        }
    }

    /// Draws the figure, as SVG, PNG or PDF by the ending of the path. The file is written
    /// completely or not at all.
    pub fn draw(&self, style: Style, path: &Path) -> Result<()> {
        self.check().map_err(|message| Error::Plot { path: path.to_owned(), message })?;
        write(style, path, || sheet::lay_out(self, style))
    }
}

impl Content {
    /// Returns the names of the series or points.
    fn names(&self) -> Vec<&str> {
        match self {
            Content::Bars(bars) => bars.series.iter().map(|series| series.name.as_str()).collect(),
            Content::Curves(curves) => curves.series.iter().map(|series| series.name.as_str()).collect(),
            Content::Roofline(roofline) => roofline.points.iter().map(|point| point.name.as_str()).collect(),
            Content::HeatMap(_) => Vec::new(),
        }
    }

    fn names_mut(&mut self) -> Vec<&mut String> {
        match self {
            Content::Bars(bars) => bars.series.iter_mut().map(|series| &mut series.name).collect(),
            Content::Curves(curves) => {
                curves.series.iter_mut().flat_map(|s| std::iter::once(&mut s.name).chain(&mut s.of)).collect()
            }
            Content::Roofline(roofline) => roofline.points.iter_mut().map(|point| &mut point.name).collect(),
            Content::HeatMap(_) => Vec::new(),
        }
    }
}
