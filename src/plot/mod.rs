//! Pictures of solves (the residual over iterations and over time), of matrices (the sparsity pattern), of tables as lines, and
//! of the times of competing programs as marks.
//!
//! A picture is first laid out as a list of shapes and then painted by plotters as SVG or as PNG, so that both formats show the
//! same. The typeface is built in: no font of the system is used.

mod axis;
mod captions;
mod cells;
mod chart;
mod convergence;
mod curve;
mod letters;
mod marks;
mod output;
mod panel;
mod pdf;
mod render;
mod saved;
mod scene;
mod speeds;
mod spy;
mod style;

pub use captions::Captions;
pub use chart::{Chart, Places, Series, chart};
pub use convergence::{captioned, convergence};
pub use output::Format;
pub use saved::Saved;
pub use speeds::{Speeds, speeds};
pub use spy::{CELLS, spy};
pub use style::Style;
