//! Lists of entries that may be counted from 0 or from 1.

use std::fmt;
use std::path::PathBuf;

/// The indices of a list of entries or edges that may be counted from 1: no line has the index 0, and
/// [`Options::first_index`] does not tell. The list is read as counted from 0.
///
/// [`Options::first_index`]: super::Options::first_index
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsaidIndex {
    /// The file.
    pub path: PathBuf,
    /// The smallest index.
    pub smallest: u32,
    /// The largest index.
    pub largest: u32,
}

/// Writes the question for a note or an error.
impl fmt::Display for UnsaidIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnsaidIndex { smallest, largest, .. } = self;
        let indices = if smallest == largest {
            format!("all indices are {smallest}")
        } else {
            format!("indices go from {smallest} to {largest}")
        };
        write!(
            f,
            "{indices}, and a list is read as counted from 0: is this counted from 1? Then set first index 1, otherwise first index 0"
        )
    }
}
