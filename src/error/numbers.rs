//! Numbers in the messages of errors: rows and columns, and exact values.

use std::fmt;
#[cfg(feature = "cli")]
use std::sync::OnceLock;

/// Set if messages count rows and columns from 1.
#[cfg(feature = "cli")]
static FROM_ONE: OnceLock<()> = OnceLock::new();

/// Lets the messages of this process count rows and columns from 1, as users of the program do. The messages
/// of the library count from 0, as its indices do.
#[cfg(feature = "cli")]
pub(crate) fn count_from_one() {
    let _ = FROM_ONE.set(());
}

/// Returns the number that messages give to the first row.
pub(crate) fn first_index() -> usize {
    #[cfg(feature = "cli")]
    let first = usize::from(FROM_ONE.get().is_some());
    #[cfg(not(feature = "cli"))]
    let first = 0;
    first
}

/// A row or column, counted from 0, that is displayed as messages count. A message with one
/// also has [`COUNTED`].
pub(crate) struct Index(pub usize);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 as u128 + first_index() as u128)
    }
}

/// Displays how messages count rows and columns: `counted from 0`.
pub(crate) struct Counted;

/// How messages count rows and columns.
pub(crate) const COUNTED: Counted = Counted;

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counted from {}", first_index())
    }
}

/// Formats a number in its shortest exact form, with an exponent if it is very small or large.
pub(crate) fn exact(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
