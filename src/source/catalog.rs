//! Matrices with a name: `F1` instead of a path.
//!
//! The entries stand in `data/catalog.toml`, which is part of the program. An entry says where its matrix comes from
//! and what it must look like, so that a download can be checked against it. A fact that is not known is left out.

use crate::error::{Error, Result};
use crate::files;
use crate::spelling::{did_you_mean, nearest};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../data/catalog.toml");
/// The folder of downloads in a cache folder.
pub(super) const FOLDER: &str = "matrices";
/// Where the collection is, unless a mirror is named.
const COLLECTION: &str = "https://sparse.tamu.edu";

/// One matrix of the catalog.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What it is called.
    pub name: String,
    /// The group of the collection that it belongs to.
    pub group: String,
    /// Its number in the collection.
    pub id: Option<u32>,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Entries that the file stores: one triangle of a symmetric matrix.
    pub stored: u64,
    /// Entries with the other triangle filled in, stored zeros included.
    pub entries: u64,
    /// What the values are.
    pub field: Field,
    /// Whether the file stores one triangle.
    pub symmetric: bool,
    /// Whether it is positive definite.
    #[serde(default)]
    pub definite: Definite,
    /// What it comes from.
    pub kind: String,
    /// The generator that imitates it.
    pub stand_in: Option<String>,
    /// SHA-256 of the archive.
    pub sha256: Option<String>,
    /// SHA-256 of the matrix file in the archive.
    pub mtx_sha256: Option<String>,
    /// What else one should know.
    pub note: Option<String>,
}

/// What the values of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    /// Floating-point numbers.
    Real,
    /// Whole numbers.
    Integer,
    /// None: every entry is 1.
    Pattern,
}

/// Whether a matrix is positive definite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Definite {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// Nobody has told.
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
    // A test reads every entry of the text, so no program is built that comes here.
    Err(e) => {
        log::error!("the catalog is not readable: {e}");
        Vec::new()
    }
});

/// Reads entries from a text of the form of `data/catalog.toml`.
pub fn parse(text: &str) -> Result<Vec<Entry>> {
    let document: Document = toml::from_str(text)
        .map_err(|e| Error::Config { path: PathBuf::from("catalog.toml"), message: e.to_string() })?;
    Ok(document.matrix)
}

/// The text that the program was built with.
pub fn text() -> &'static str {
    TEXT
}

/// All entries.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The entry called `name`, or `GROUP/NAME`.
pub fn find(name: &str) -> Option<&'static Entry> {
    let (group, name) = name.rsplit_once('/').map_or((None, name), |(group, name)| (Some(group), name));
    ENTRIES.iter().find(|e| e.name == name && group.is_none_or(|group| e.group == group))
}

/// `GROUP/NAME` where there is such an entry.
pub(super) fn full_name(text: &str) -> Option<&'static str> {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| ENTRIES.iter().map(|e| format!("{}/{}", e.group, e.name)).collect());
    NAMES.iter().find(|name| *name == text).map(String::as_str)
}

/// The entry called `name`, or an error that lists the names near it.
pub fn get(name: &str) -> Result<&'static Entry> {
    find(name).ok_or_else(|| {
        let near = nearest(name, ENTRIES.iter().map(|e| e.name.as_str()));
        Error::NotInCatalog { name: name.to_owned(), near: did_you_mean(&near) }
    })
}

impl Entry {
    /// Where the archive is: in the collection, or on a mirror that is laid out like it.
    pub fn url(&self, mirror: Option<&str>) -> String {
        let base = mirror.unwrap_or(COLLECTION).trim_end_matches('/');
        format!("{base}/MM/{}/{}.tar.gz", self.group, self.name)
    }

    /// The page that describes it.
    pub fn page(&self) -> String {
        format!("{COLLECTION}/{}/{}", self.group, self.name)
    }

    /// What the archive is called in a cache folder, with its path below that.
    pub fn file(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{}.tar.gz", self.name))
    }

    /// About how many bytes the download has at least: compressed entries, without what an archive may hold beside
    /// them.
    pub fn download_estimate(&self) -> u64 {
        let bytes_per_entry = match self.field {
            Field::Real => 6,
            Field::Integer => 4,
            Field::Pattern => 3,
        };
        self.stored.saturating_mul(bytes_per_entry)
    }

    /// The most bytes that the download may have: those of the text of the matrix and of a few vectors, uncompressed.
    pub fn download_limit(&self) -> u64 {
        const BYTES_PER_LINE: u64 = 64;
        const FREE: u64 = 64 << 20;
        self.stored.saturating_add(self.rows).saturating_mul(BYTES_PER_LINE).saturating_add(FREE)
    }

    /// The archive, where it has been fetched into the cache folder of this user.
    pub fn fetched(&self) -> Option<PathBuf> {
        self.place().filter(|path| path.is_file())
    }

    /// The place of the archive in the cache folder of this user; none where there is no such folder, or other users can
    /// write to it.
    pub fn place(&self) -> Option<PathBuf> {
        files::cache_folder(FOLDER).ok().map(|folder| folder.join(self.file()))
    }
}
