//! Tar archives, as the SuiteSparse collection packs its matrices: the matrix is chosen among the files, and vectors in
//! the same folder come beside it where they are asked for. Nothing is unpacked to disk, and members are read where
//! they lie.
//!
//! In `NAME/NAME.mtx` the file is called like its folder: such a file is the matrix. Where there is none, the only
//! matrix of the archive is. Its right-hand side is in `NAME_b.mtx`, a solution in `NAME_x.mtx`, the places of its
//! nodes in `NAME_coord.mtx`; every such file of vectors is named by what follows the underscore.

use super::text::Text;
use super::{Attached, Loaded, Options, attached};
use crate::error::{Error, Result};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use tar::{Archive, EntryType, Header};

/// Bytes of a header.
const BLOCK: usize = 512;
/// Names that an error message lists.
const MOST_NAMES: usize = 20;

/// A file of the archive.
struct Member<'a> {
    name: PathBuf,
    /// The archive and the name, for messages.
    path: PathBuf,
    bytes: &'a [u8],
}

impl Member<'_> {
    fn text(&self) -> Text<'_> {
        Text { path: &self.path, bytes: self.bytes, meter: None }
    }

    /// Whether it is called like its folder.
    fn is_named_like_folder(&self) -> bool {
        let folder = self.name.parent().and_then(Path::file_name);
        folder.is_some() && folder == self.name.file_stem()
    }

    /// What it is called beside the matrix: `b` for `NAME_b.mtx`.
    fn name_beside(&self, matrix: &Member) -> Option<String> {
        if self.name.parent() != matrix.name.parent() || self.name.extension()? != "mtx" {
            return None;
        }
        let name = self.name.file_stem()?.to_str()?;
        let name = name.strip_prefix(matrix.name.file_stem()?.to_str()?)?.strip_prefix('_')?;
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// Whether the first block is a header whose checksum fits.
pub(super) fn recognises(text: Text) -> bool {
    let Some(block) = text.bytes.get(..BLOCK) else { return false };
    let header = Header::from_byte_slice(block);
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(at, &byte)| {
            let checksum = (148..156).contains(&at);
            u32::from(if checksum { b' ' } else { byte })
        })
        .sum();
    header.cksum().is_ok_and(|written| written == sum) && block[0] != 0
}

/// Reads the matrix, and the vectors beside it that are well. `is_matrix` tells which files are matrices, and `parse` reads a
/// file of any kind.
pub(super) fn read(
    text: Text,
    options: &Options,
    is_matrix: fn(Text) -> bool,
    parse: fn(&Path, &[u8], &Options) -> Result<Loaded>,
) -> Result<Loaded> {
    let members = list(text)?;
    let matrix = choose(text.path, &members, is_matrix)?;
    let mut loaded = parse(&matrix.path, matrix.bytes, options)?;
    for member in &members {
        let Some(name) = member.name_beside(matrix) else { continue };
        if !options.attached {
            // A header that is faulty is that of something.
            if attached::is_vectors(member.text()).unwrap_or(true) {
                loaded.attached_unread.push(name);
            }
            continue;
        }
        match attached::read(Text { meter: options.meter.as_deref(), ..member.text() }) {
            Ok(Some(values)) => loaded.attached.push(Attached { name, values }),
            Ok(None) => {}
            Err(error) => loaded.skip_beside(&member.path, vec![name], error),
        }
    }
    Ok(loaded)
}

/// The plain files of the archive.
fn list(text: Text<'_>) -> Result<Vec<Member<'_>>> {
    let fail = |source| Error::Io { action: "unpack", path: text.path.to_owned(), source };
    let mut archive = Archive::new(Cursor::new(text.bytes));
    let mut members = Vec::new();
    for entry in archive.entries_with_seek().map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if !matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous) {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let shown: String = name.chars().flat_map(char::escape_debug).collect();
        let path = PathBuf::from(format!("{}:{shown}", text.path.display()));
        let (start, size) = (entry.raw_file_position(), entry.size());
        let range =
            usize::try_from(start).ok().zip(start.checked_add(size).and_then(|end| end.try_into().ok()));
        let bytes =
            range.and_then(|(start, end)| text.bytes.get(start..end)).ok_or_else(|| Error::Malformed {
                path: text.path.to_owned(),
                place: shown,
                expected: format!("{size} bytes, as the archive says"),
                found: "the end of the archive before".to_owned(),
            })?;
        members.push(Member { name: PathBuf::from(name), path, bytes });
    }
    Ok(members)
}

/// The matrix that is meant.
fn choose<'a, 'b>(
    path: &Path,
    members: &'b [Member<'a>],
    is_matrix: fn(Text) -> bool,
) -> Result<&'b Member<'a>> {
    let matrices: Vec<_> = members.iter().filter(|member| is_matrix(member.text())).collect();
    let named: Vec<_> = matrices.iter().copied().filter(|member| member.is_named_like_folder()).collect();
    match (named.as_slice(), matrices.as_slice()) {
        ([matrix], _) | ([], [matrix]) => return Ok(matrix),
        _ => {}
    }
    let reason = if matrices.is_empty() { "there is no matrix" } else { "there are several matrices" };
    let mut names: Vec<String> =
        members.iter().take(MOST_NAMES).map(|member| member.name.display().to_string()).collect();
    if members.len() > MOST_NAMES {
        names.push(format!("and {} more", members.len() - MOST_NAMES));
    }
    let members =
        if names.is_empty() { "no files".to_owned() } else { names.join(", ").escape_debug().to_string() };
    Err(Error::Archive { path: path.to_owned(), reason: reason.to_owned(), members })
}
