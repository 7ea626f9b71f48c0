//! The names at the ends of curves.

use super::Curves;
use super::grid::LABEL;
use crate::plot::letters::text_width;

/// The most room for names at the ends, as a share of the width.
const WIDEST_NAME: f64 = 0.3;

/// Returns the room for the names at the ends of the curves.
pub(super) fn room_of_names(curves: &Curves) -> f64 {
    let widths = curves.series.iter().map(|series| text_width(&series.name, LABEL));
    widths.fold(0.0, f64::max) + 16.0
}

/// Checks whether a panel of this width has room for the names at the ends of the curves.
pub(super) fn names_fit(curves: &Curves, width: f64) -> bool {
    room_of_names(curves) <= WIDEST_NAME * width
}
