//! Where matrices come from: Matrix Market files and generators.
//!
//! `--matrix WHAT` is a path where such a file exists, and a generator otherwise. The kind of a file is found from
//! its content.

pub mod generate;
mod gzip;
pub mod market;
mod mmap;

use crate::error::{Error, Result};
use crate::format::Csr;
use std::path::Path;

/// A matrix in memory, and what its source knows of it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The matrix, symmetric halves expanded and duplicates summed.
    pub matrix: Csr,
    /// Entries as the source stored them: one triangle of a symmetric file.
    pub stored: u64,
    /// Symmetric by construction, so that no check is needed.
    pub symmetric: bool,
}

/// Reads the file or runs the generator that `what` names.
pub fn load(what: &str) -> Result<Loaded> {
    check(what)?;
    let path = Path::new(what);
    if path.exists() {
        return market::read(path);
    }
    generate::generate(what).unwrap_or_else(|| Err(unknown(what)))
}

/// Whether there is such a file or generator; opens and makes nothing.
pub fn check(what: &str) -> Result<()> {
    if Path::new(what).exists() || generate::exists(what) { Ok(()) } else { Err(unknown(what)) }
}

fn unknown(what: &str) -> Error {
    let path = Path::new(what);
    let looks_like_a_file = what.contains(['/', '.']) && !what.contains(':');
    if looks_like_a_file {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Error::Io { action: "read", path: path.to_owned(), source };
    }
    Error::UnknownMatrix { what: what.to_owned(), known: generate::known() }
}
