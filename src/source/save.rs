//! Writes a matrix with its vectors and labels, in the format that the extension of the path selects.

use super::{Content, binary, market, npy, npz};
use crate::error::{Error, Result};
use crate::files::{check_writable, remove_leftovers};
use crate::observe::Meter;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A format that can be written.
struct Format {
    /// The extension of the format's files.
    extension: &'static str,
    /// Writes the matrix.
    write: fn(&Path, &Content<'_>, &Meter) -> Result<()>,
    /// The extension of the files of attached vectors; none if the matrix file holds them.
    attached: Option<&'static str>,
}

const FORMATS: &[Format] = &[
    Format { extension: ".mtx", write: write_market, attached: Some(".mtx") },
    Format { extension: ".mtx.gz", write: write_market, attached: Some(".mtx.gz") },
    Format {
        extension: ".npz",
        write: |path, content, meter| npz::write_metered(path, content.matrix, Some(meter)),
        attached: Some(".npy"),
    },
    Format {
        extension: ".slv",
        write: |path, content, meter| binary::write_content(path, content, Some(meter)),
        attached: None,
    },
];

/// Writes a Matrix Market file, one triangle if the matrix is symmetric. Symmetry is determined from the
/// entries, so no unsymmetric matrix can lose a half.
fn write_market(path: &Path, content: &Content<'_>, meter: &Meter) -> Result<()> {
    let note = content.stand_in.map(|real| format!("a stand-in for {real}"));
    market::write_as_found(path, content.matrix, note.as_deref(), Some(meter))
}

fn unwritable(path: &Path, reason: String) -> Error {
    Error::Unwritable { path: path.to_owned(), reason }
}

/// A checked path for writing a matrix, with its format.
pub(crate) struct Destination {
    path: PathBuf,
    format: &'static Format,
    /// The file name without the extension.
    stem: OsString,
}

impl Destination {
    /// Chooses the format by the extension; refuses an unknown extension and a path where no
    /// file can be written.
    pub(crate) fn of(path: &Path) -> Result<Destination> {
        let name = path.file_name().unwrap_or_default();
        let lower = name.to_string_lossy().to_lowercase();
        let fits = |format: &&Format| lower.ends_with(format.extension);
        let best = FORMATS.iter().filter(fits).max_by_key(|format| format.extension.len());
        let format = best.ok_or_else(|| {
            let extensions: Vec<_> = FORMATS.iter().map(|format| format.extension).collect();
            let extensions = extensions.join(", ");
            unwritable(path, format!("its extension names no format for writing; use one of {extensions}"))
        })?;
        check_writable(path).map_err(|reason| unwritable(path, reason))?;
        let without_extension =
            |name: OsString, _| Path::new(&name).file_stem().unwrap_or_default().to_owned();
        let stem = format.extension.matches('.').fold(name.to_owned(), without_extension);
        Ok(Destination { path: path.to_owned(), format, stem })
    }

    /// Writes the matrix, and into separate files the vectors and labels that the format cannot hold. Returns
    /// the paths of the files. An existing file is replaced only when the new one is complete.
    pub(crate) fn write(&self, content: &Content<'_>, meter: &Meter) -> Result<Vec<PathBuf>> {
        let vectors = match self.format.attached {
            Some(extension) => content.attached.iter().map(|vector| (extension, vector)).collect(),
            None => Vec::new(),
        };
        let vectors = vectors
            .into_iter()
            .map(|(extension, vector)| self.vector(&vector.name, extension).map(|path| (path, vector)))
            .collect::<Result<Vec<_>>>()?;
        let labels = content.labels.map(|labels| (self.sibling("_labels.txt".as_ref()), labels));
        // All paths are checked before the first file is written.
        let paths = vectors.iter().map(|(path, _)| path).chain(labels.iter().map(|(path, _)| path));
        paths
            .into_iter()
            .try_for_each(|path| check_writable(path).map_err(|reason| unwritable(path, reason)))?;
        // No other code removes the temporary files of a killed process.
        remove_leftovers(&self.path);
        (self.format.write)(&self.path, content, meter)?;
        let mut written = vec![self.path.clone()];
        for (path, vector) in vectors {
            match self.format.attached {
                Some(".npy") => npy::write_metered(&path, &vector.values, Some(meter))?,
                _ => market::write_columns(&path, &vector.values, Some(meter))?,
            }
            written.push(path);
        }
        if let Some((path, labels)) = labels {
            labels.write(&path)?;
            written.push(path);
        }
        Ok(written)
    }

    /// Returns the path in the matrix's folder with this suffix instead of the extension.
    fn sibling(&self, end: &OsStr) -> PathBuf {
        let mut name = self.stem.clone();
        name.push(end);
        self.path.with_file_name(name)
    }

    /// Returns the path for a vector. Names come from files, and must not lead to another folder.
    fn vector(&self, name: &str, extension: &str) -> Result<PathBuf> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !name.is_empty() && name.chars().all(plain) {
            return Ok(self.sibling(format!("_{name}{extension}").as_ref()));
        }
        let name = name.escape_debug();
        let reason =
            format!("the matrix has an attached vector '{name}', whose name cannot be part of a file name");
        Err(unwritable(&self.path, reason))
    }
}
