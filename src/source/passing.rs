//! Functions that pass the numbers of vectors on in portions.

use std::io;

/// Receives numbers, with the index of the first one in a row-major array.
pub(crate) type Take<'a> = &'a mut dyn FnMut(usize, &[f64]);

/// Receives the next numbers of a file.
pub(crate) type Next<'a> = &'a mut dyn FnMut(&[f64]) -> io::Result<()>;

/// Passes the numbers of vectors on in portions and in order: all of them row by row, or those of one column.
pub(crate) type Pass<'a> = dyn FnMut(Option<usize>, Next<'_>) -> io::Result<()> + 'a;
