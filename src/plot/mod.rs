//! Pictures of solves (the residual over iterations and over time), of matrices (the sparsity pattern), of
//! tables as lines, and of the times of competing programs as marks. A [`Figure`] is a picture of any data:
//! bars, curves, rooflines and heat maps.
//!
//! A picture is first laid out as a list of shapes, then coloured for a light or dark background, and
//! then painted as SVG, PNG or PDF, so that all formats show the same. The typeface is built in: no
//! font of the system is used.

mod axis;
mod captions;
mod cells;
mod chart;
mod convergence;
mod curve;
mod figure;
mod letters;
mod marks;
mod output;
mod panel;
mod pdf;
mod ramp;
mod render;
mod saved;
mod scene;
mod speeds;
mod spy;
mod style;
mod times;

pub use captions::Captions;
pub use chart::{Chart, chart};
pub use convergence::{captioned, convergence};
pub use figure::{
    Axis, BarSeries, Bars, Ceiling, Content, CurveSeries, Curves, Figure, HeatMap, Panel, Roof, RoofPoint,
    Roofline,
};
pub(crate) use output::Format;
pub use saved::Saved;
pub use speeds::speeds;
pub use spy::{CELLS, spy};
pub use style::Style;
pub use times::Speeds;
