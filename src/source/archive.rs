//! Tar archives, as the SuiteSparse collection packs its matrices. The reader chooses the matrix among the
//! files and, if requested, also reads the vectors in the matrix's folder. No file is unpacked to disk:
//! members are slices of the archive.
//!
//! A file with the name of its folder, `NAME/NAME.mtx`, is the matrix. If there is no such file, the only
//! matrix of the archive is read. `NAME_b.mtx` holds a right-hand side, `NAME_x.mtx` a solution and
//! `NAME_coord.mtx` the coordinates of the nodes: the part after the underscore names the vectors.

use super::text::Text;
use super::{Loaded, Options, attached};
use crate::error::{Error, Result};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use tar::{Archive, EntryType, Header};

/// Bytes of a member's header.
const BLOCK: usize = 512;
/// Maximum number of names that an error message lists.
const MOST_NAMES: usize = 20;

/// A regular file in the archive.
struct Member<'a> {
    name: PathBuf,
    /// The archive's path and the name, for error messages.
    path: PathBuf,
    bytes: &'a [u8],
}

impl Member<'_> {
    fn text(&self) -> Text<'_> {
        Text { path: &self.path, bytes: self.bytes, meter: None, lines: 0 }
    }

    /// Checks whether the file has the name of its folder.
    fn is_named_like_folder(&self) -> bool {
        let folder = self.name.parent().and_then(Path::file_name);
        folder.is_some() && folder == self.name.file_stem()
    }

    /// Returns the name of the vectors in this file: `b` for `NAME_b.mtx`, if the matrix is `NAME.mtx`.
    fn vector_name(&self, matrix: &Member) -> Option<String> {
        if self.name.parent() != matrix.name.parent() || self.name.extension()? != "mtx" {
            return None;
        }
        let name = self.name.file_stem()?.to_str()?;
        let name = name.strip_prefix(matrix.name.file_stem()?.to_str()?)?.strip_prefix('_')?;
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// Checks whether the first block is a tar header with a correct checksum.
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

/// Reads the matrix and its valid vectors. `is_matrix` decides which files are matrices; `parse`
/// reads a file of any kind.
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
        let Some(name) = member.vector_name(matrix) else { continue };
        if !options.attached {
            // A file with a faulty header counts as unread vectors.
            if attached::is_vectors(member.text()).unwrap_or(true) {
                loaded.attached_unread.push(name);
            }
            continue;
        }
        let vectors = attached::read(Text { meter: options.meter.as_deref(), ..member.text() });
        if let Err(error) =
            vectors.and_then(|vectors| vectors.map_or(Ok(()), |values| loaded.attach(name.clone(), values)))
        {
            loaded.skip_attached(&member.path, vec![name], error);
        }
    }
    Ok(loaded)
}

/// Lists the regular files of the archive.
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
                part: shown,
                expected: format!("{size} bytes, as the archive says"),
                found: "the end of the archive first".to_owned(),
            })?;
        members.push(Member { name: PathBuf::from(name), path, bytes });
    }
    Ok(members)
}

/// Chooses the matrix to read: the one with its folder's name, or else the only one.
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
