//! The catalog of matrices that a name selects instead of a path, such as `F1`.
//!
//! `data/catalog.toml` holds the entries and is compiled into the program. An entry names the source of its
//! matrix and the matrix's properties, so that a download can be verified. Unknown properties are left out.

use crate::error::{Error, Result};
use crate::files;
use crate::spelling::{did_you_mean, nearest};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../data/catalog.toml");
/// The subfolder of the cache folder that holds downloads.
pub(super) const FOLDER: &str = "matrices";
/// The address of the collection, unless a mirror is given.
const COLLECTION: &str = "https://sparse.tamu.edu";

/// One matrix of the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The matrix's name.
    pub name: String,
    /// The matrix's group in the collection.
    pub group: String,
    /// The matrix's number in the collection.
    pub id: Option<u32>,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Entries that the file stores: one triangle of a symmetric matrix.
    pub stored: u64,
    /// Entries with the other triangle filled in, stored zeros included.
    pub entries: u64,
    /// The type of the values.
    pub field: Field,
    /// Whether the file stores one triangle.
    pub symmetric: bool,
    /// Whether the matrix is positive definite.
    #[serde(default)]
    pub definite: Definite,
    /// The application that the matrix comes from.
    pub kind: String,
    /// The generator that imitates the matrix.
    pub stand_in: Option<String>,
    /// SHA-256 of the archive.
    pub sha256: Option<String>,
    /// SHA-256 of the matrix file in the archive.
    pub mtx_sha256: Option<String>,
    /// A remark for the reader.
    pub note: Option<String>,
}

/// The type of the values of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// Floating-point numbers.
    Real,
    /// Whole numbers.
    Integer,
    /// No values: every entry is 1.
    Pattern,
}

/// Whether a matrix is positive definite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Definite {
    /// The matrix is positive definite.
    Yes,
    /// The matrix is not positive definite.
    No,
    /// The catalog does not record it.
    #[default]
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    matrix: Vec<Entry>,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| match parse(TEXT) {
    Ok(entries) => entries,
    // A test parses the text, so this branch is never taken in a tested build.
    Err(e) => {
        log::error!("the catalog cannot be parsed: {e}");
        Vec::new()
    }
});

/// Parses entries from a text in the format of `data/catalog.toml`.
pub fn parse(text: &str) -> Result<Vec<Entry>> {
    let document: Document = toml::from_str(text)
        .map_err(|e| Error::Config { path: PathBuf::from("catalog.toml"), message: e.to_string() })?;
    Ok(document.matrix)
}

/// Returns the text that is compiled into the program.
pub fn text() -> &'static str {
    TEXT
}

/// Returns all entries.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// Finds the entry with the name `name`, which may be `NAME` or `GROUP/NAME`.
pub fn find(name: &str) -> Option<&'static Entry> {
    let (group, name) = name.rsplit_once('/').map_or((None, name), |(group, name)| (Some(group), name));
    ENTRIES.iter().find(|e| e.name == name && group.is_none_or(|group| e.group == group))
}

/// Returns `text` as a static string if it is the `GROUP/NAME` of an entry.
pub(super) fn full_name(text: &str) -> Option<&'static str> {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| ENTRIES.iter().map(|e| format!("{}/{}", e.group, e.name)).collect());
    NAMES.iter().find(|name| *name == text).map(String::as_str)
}

/// Finds the entry with the name `name`, or returns an error that lists similar names.
pub(crate) fn get(name: &str) -> Result<&'static Entry> {
    find(name).ok_or_else(|| {
        let near = nearest(name, ENTRIES.iter().map(|e| e.name.as_str()));
        Error::NotInCatalog { name: name.to_owned(), near: did_you_mean(&near) }
    })
}

impl Entry {
    /// Returns the URL of the archive in the collection, or on a mirror with the same layout.
    pub fn url(&self, mirror: Option<&str>) -> String {
        let base = mirror.unwrap_or(COLLECTION).trim_end_matches('/');
        format!("{base}/MM/{}/{}.tar.gz", self.group, self.name)
    }

    /// Returns the URL of the page that describes the matrix.
    pub(crate) fn page(&self) -> String {
        format!("{COLLECTION}/{}/{}", self.group, self.name)
    }

    /// Returns the path of the archive, relative to the cache folder.
    pub(crate) fn file(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{}.tar.gz", self.name))
    }

    /// Estimates the minimum size of the download in bytes: the compressed entries, without
    /// the archive's other files.
    pub fn download_estimate(&self) -> u64 {
        let bytes_per_entry = match self.field {
            Field::Real => 6,
            Field::Integer => 4,
            Field::Pattern => 3,
        };
        self.stored.saturating_mul(bytes_per_entry)
    }

    /// Returns the maximum size of the download in bytes: the uncompressed text of the matrix
    /// and of a few vectors.
    pub fn download_limit(&self) -> u64 {
        const BYTES_PER_LINE: u64 = 64;
        const FREE: u64 = 64 << 20;
        self.stored.saturating_add(self.rows).saturating_mul(BYTES_PER_LINE).saturating_add(FREE)
    }

    /// Returns the path of the archive, if the user's cache folder holds it.
    pub(crate) fn fetched(&self) -> Option<PathBuf> {
        self.archive_path().filter(|path| path.is_file())
    }

    /// Returns the path of the archive in the user's cache folder, whether or not the archive exists; `None`
    /// if there is no cache folder or other users can write to it.
    pub(crate) fn archive_path(&self) -> Option<PathBuf> {
        files::cache_folder(FOLDER).ok().map(|folder| folder.join(self.file()))
    }
}
