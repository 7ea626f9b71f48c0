//! The bytes of a file, mapped into memory where the file allows it.

use super::inflate::{Metered, read_all};
use crate::error::{Error, Result};
use crate::observe::Meter;
use memmap2::Mmap;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file for as long as this lives.
pub(super) enum Bytes {
    /// The page cache itself: nothing is copied, and threads fault in the pages they read.
    Mapped(Mmap),
    /// A copy, for what cannot be mapped: empty files, pipes, `/dev/stdin`.
    Owned(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

/// Opens the file at `path` for reading as one slice.
pub(super) fn open(path: &Path) -> Result<Bytes> {
    open_metered(path, None)
}

/// Likewise, telling a meter of what comes where it is no plain file.
pub(super) fn open_metered(path: &Path, meter: Option<&Meter>) -> Result<Bytes> {
    let fail = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let about = file.metadata().map_err(fail)?;
    if about.is_file() && about.len() > 0 {
        return map(&file).map(Bytes::Mapped).map_err(fail);
    }
    collect(path, file, meter)
}

/// All that comes from standard input; `path` stands for it in messages.
pub(super) fn stdin(path: &Path, meter: Option<&Meter>) -> Result<Bytes> {
    collect(path, std::io::stdin().lock(), meter)
}

/// All that comes, of which nobody knows how much it will be.
fn collect(path: &Path, from: impl std::io::Read, meter: Option<&Meter>) -> Result<Bytes> {
    if let Some(meter) = meter {
        meter.begin("reading", 0);
    }
    read_all(path, "read", Metered { from, meter }, 0).map(Bytes::Owned)
}

fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only and lives as long as the slice made of it, and nothing in this process writes to
    // the file. What no program can rule out is another one that writes to it meanwhile: one that shortens the file
    // makes the system end this process with SIGBUS, one that rewrites it in place changes bytes under the slice. The
    // parser holds up in that second case: it checks every index on the very pass that stores it and every slice
    // access is bounds-checked, so such a file gives an error or other numbers, never an access out of bounds.
    unsafe { Mmap::map(file) }
}
