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
    let path = Path::new(what);
    if path.exists() {
        return market::read(path);
    }
    if let Some(loaded) = generate::generate(what) {
        return loaded;
    }
    let looks_like_a_file = what.contains(['/', '.']) && !what.contains(':');
    if looks_like_a_file {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::Io { action: "read", path: path.to_owned(), source });
    }
    Err(Error::UnknownMatrix { what: what.to_owned(), known: generate::known() })
}
