//! Writing a matrix, with the vectors and labels that came with it, in the format that the ending of a path names.

use super::{Content, binary, market, npy, npz};
use crate::error::{Error, Result};
use crate::files::{check_writable, remove_leftovers};
use crate::observe::Meter;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A format that can be written.
struct Format {
    /// The ending of its files.
    ending: &'static str,
    /// Writes the matrix.
    write: fn(&Path, &Content<'_>, &Meter) -> Result<()>,
    /// The ending of files for vectors that came with the matrix; none where the file of the matrix holds them.
    attached: Option<&'static str>,
}

const FORMATS: &[Format] = &[
    Format { ending: ".mtx", write: write_market, attached: Some(".mtx") },
    Format { ending: ".mtx.gz", write: write_market, attached: Some(".mtx.gz") },
    Format {
        ending: ".npz",
        write: |path, content, meter| npz::write_metered(path, content.matrix, Some(meter)),
        attached: Some(".npy"),
    },
    Format {
        ending: ".slv",
        write: |path, content, meter| binary::write_content(path, content, Some(meter)),
        attached: None,
    },
];

/// A symmetric matrix becomes a triangle. Symmetry is found from the entries, so that no half is ever left out.
fn write_market(path: &Path, content: &Content<'_>, meter: &Meter) -> Result<()> {
    let note = content.stand_in.map(|real| format!("a stand-in for {real}"));
    market::write_as_found(path, content.matrix, note.as_deref(), Some(meter))
}

fn unwritable(path: &Path, reason: String) -> Error {
    Error::Unwritable { path: path.to_owned(), reason }
}

/// Where a matrix can be written.
pub struct Destination {
    path: PathBuf,
    format: &'static Format,
    /// The name of the file without the ending.
    stem: OsString,
}

impl Destination {
    /// Refuses a path whose ending names no format, and one where no file could be written.
    pub fn of(path: &Path) -> Result<Destination> {
        let name = path.file_name().unwrap_or_default();
        let lower = name.to_string_lossy().to_lowercase();
        let fits = |format: &&Format| lower.ends_with(format.ending);
        let best = FORMATS.iter().filter(fits).max_by_key(|format| format.ending.len());
        let format = best.ok_or_else(|| {
            let endings: Vec<_> = FORMATS.iter().map(|format| format.ending).collect();
            let endings = endings.join(", ");
            unwritable(path, format!("its ending names no format that is written; there are {endings}"))
        })?;
        check_writable(path).map_err(|reason| unwritable(path, reason))?;
        let without_ending = |name: OsString, _| Path::new(&name).file_stem().unwrap_or_default().to_owned();
        let stem = format.ending.matches('.').fold(name.to_owned(), without_ending);
        Ok(Destination { path: path.to_owned(), format, stem })
    }

    /// Writes the matrix, and what came with it into files of their own where the format has no place for that. Returns
    /// the files. Each is replaced when the new one is complete.
    pub fn write(&self, content: &Content<'_>, meter: &Meter) -> Result<Vec<PathBuf>> {
        let vectors = match self.format.attached {
            Some(ending) => content.attached.iter().map(|vector| (ending, vector)).collect(),
            None => Vec::new(),
        };
        let vectors = vectors
            .into_iter()
            .map(|(ending, vector)| self.vector(&vector.name, ending).map(|path| (path, vector)))
            .collect::<Result<Vec<_>>>()?;
        let labels = content.labels.map(|labels| (self.sibling("_labels.txt".as_ref()), labels));
        // Nothing is written where not all can be.
        let paths = vectors.iter().map(|(path, _)| path).chain(labels.iter().map(|(path, _)| path));
        paths
            .into_iter()
            .try_for_each(|path| check_writable(path).map_err(|reason| unwritable(path, reason)))?;
        // Temporary files of a killed process would stay for good.
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

    /// The file with this end of its name, in the folder of the matrix.
    fn sibling(&self, end: &OsStr) -> PathBuf {
        let mut name = self.stem.clone();
        name.push(end);
        self.path.with_file_name(name)
    }

    /// The file of a vector. Names come from files, and must not lead to another folder.
    fn vector(&self, name: &str, ending: &str) -> Result<PathBuf> {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !name.is_empty() && name.chars().all(plain) {
            return Ok(self.sibling(format!("_{name}{ending}").as_ref()));
        }
        let name = name.escape_debug();
        let reason =
            format!("a vector that came with the matrix is called '{name}', which makes no file name");
        Err(unwritable(&self.path, reason))
    }
}
