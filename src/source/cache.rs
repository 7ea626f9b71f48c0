//! The cache of parsed downloads: a binary file next to each archive, so that the archive is
//! parsed only once.
//!
//! A binary file records its source: fingerprint (XXH3, 128 bits) and length of the archive, and the options
//! that the archive was read with. Every read computes the fingerprint of the archive, which is cheap
//! compared with reading the matrix, so a changed archive never yields the old matrix. The cache never makes
//! a read fail: a damaged binary file is rebuilt, and one that cannot be written is skipped. If the caller
//! requests vectors that the binary file lacks, the file is rebuilt with them; faulty vectors are parsed
//! again on every read. A binary file holds no duplicate entries, and its key records whether the archive has
//! any: if it has, a caller that keeps duplicates reads the archive.

use super::binary::{self, Key};
use super::{Loaded, Options, detect, mmap};
use crate::error::{Error, Result};
use crate::files;
use crate::format::Duplicates;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// Reads the matrix in the archive at `path`, from its binary file if the binary file is current. `check`
/// verifies an archive before it is parsed; a binary file comes from an archive that was verified.
pub(super) fn load(
    path: &Path,
    options: &Options,
    check: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<Loaded> {
    let cached = binary_path(path, options);
    let (loaded, key) = mmap::with(path, |archive| load_from(path, archive, &cached, options, check))?;
    // Only now is it certain that the whole archive was read: the mapping detects a file that was
    // modified or became shorter.
    if let Some(key) = key {
        write(path, &cached, &loaded, &key, options);
    }
    Ok(loaded)
}

/// Reads the matrix and returns it with the key to cache it under; no key if it is already
/// cached or cannot be cached.
fn load_from(
    path: &Path,
    archive: &[u8],
    cached: &Path,
    options: &Options,
    check: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<(Loaded, Option<Key>)> {
    let keys = [Entries::Distinct, Entries::Summed].map(|entries| key(archive, options.as_stored, entries));
    if let Some(loaded) = read(cached, &keys, options) {
        return Ok((loaded, None));
    }
    check(archive)?;
    let keep = Options { duplicates: Duplicates::Keep, ..options.clone() };
    let loaded = detect::parse(path, archive, &keep)?;
    let [distinct, summed] = keys;
    if !loaded.matrix.pattern().has_repeats() {
        return Ok((loaded, Some(distinct)));
    }
    if options.duplicates == Duplicates::Keep {
        return Ok((loaded, None));
    }
    drop(loaded);
    Ok((detect::parse(path, archive, options)?, Some(summed)))
}

/// Writes the matrix to the cache; a failure is only logged.
fn write(path: &Path, cached: &Path, loaded: &Loaded, key: &Key, options: &Options) {
    // No other code removes the temporary files of a killed process.
    files::remove_leftovers(cached);
    if let Err(error) = binary::write_keyed(cached, loaded, key, options.meter.as_deref()) {
        let message = format!(
            "{path} is parsed again on every read, because {cached} cannot be written: {error}",
            path = path.display(),
            cached = cached.display()
        );
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => log::info!("{message}"),
            _ => log::warn!("{message}"),
        }
    }
}

/// Parser version; increment it when a parser's result changes, to invalidate cached files.
const READERS: u32 = 1;

/// Whether the archive has duplicate entries. A binary file holds one entry for each position.
#[derive(Clone, Copy)]
enum Entries {
    /// The archive has no duplicates.
    Distinct,
    /// The archive has duplicates, and the binary file holds their sums.
    Summed,
}

/// Returns the key of a binary file: the archive's fingerprint and length, the options, and
/// the program's version.
fn key(archive: &[u8], as_stored: bool, entries: Entries) -> Key {
    let how = match entries {
        Entries::Distinct => " distinct",
        Entries::Summed => "",
    };
    let program = xxh3_128(format!("{} {READERS}{how}", env!("CARGO_PKG_VERSION")).as_bytes());
    Key { content: xxh3_128(archive) ^ program, length: archive.len() as u64, as_stored }
}

/// Returns the path of an archive's binary file.
fn binary_path(path: &Path, options: &Options) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".tar.gz").unwrap_or(&name);
    let how = if options.as_stored { "-as-stored" } else { "" };
    path.with_file_name(format!("{stem}{how}.slv"))
}

/// Reads the binary file, if its key is one of the two and it holds all that the options request.
fn read(cached: &Path, [distinct, summed]: &[Key; 2], options: &Options) -> Option<Loaded> {
    // A folder or a pipe with that name is not a cache file.
    if !cached.is_file() {
        return None;
    }
    let loaded = mmap::with(cached, |bytes| {
        let was_summed = binary::is_made_from(bytes, summed);
        let enough = (!options.attached || binary::is_complete(bytes))
            && !(was_summed && options.duplicates == Duplicates::Keep);
        let key = if was_summed { summed } else { distinct };
        enough.then(|| binary::read_keyed(cached, bytes, Some(key), options)).transpose()
    });
    match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let reason = match error {
                Error::Binary { reason, .. } => reason,
                other => other.to_string(),
            };
            log::warn!("{} is rebuilt from the download: {reason}", cached.display());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn load(path: &Path, options: &Options) -> Result<Loaded> {
        super::load(path, options, |_| Ok(()))
    }

    const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 1\n";
    const OTHER: &str = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 5\n2 1 1\n";

    /// A folder with one archive.
    struct CacheFolder(tempfile::TempDir);

    impl CacheFolder {
        fn new(text: &str) -> CacheFolder {
            let folder = CacheFolder(tempfile::tempdir().unwrap());
            fs::write(folder.archive(), text).unwrap();
            folder
        }

        fn archive(&self) -> PathBuf {
            self.0.path().join("M.tar.gz")
        }

        fn cached(&self) -> PathBuf {
            self.0.path().join("M.slv")
        }

        fn first(&self) -> f64 {
            load(&self.archive(), &Options::default()).unwrap().matrix.get(0, 0).unwrap()
        }

        /// Writes a binary file whose count of stored entries differs from the archive's.
        fn mark(&self) {
            let bytes = fs::read(self.archive()).unwrap();
            let key = key(&bytes, false, Entries::Distinct);
            let mut marked = load(&self.archive(), &Options::default()).unwrap();
            marked.stored = 99;
            binary::write_keyed(&self.cached(), &marked, &key, None).unwrap();
        }

        fn stored(&self) -> u64 {
            load(&self.archive(), &Options::default()).unwrap().stored
        }
    }

    #[test]
    fn the_second_read_uses_the_binary_file() {
        let folder = CacheFolder::new(SYMMETRIC);
        assert_eq!(folder.first(), 4.0);
        assert!(folder.cached().is_file());
        folder.mark();
        assert_eq!(folder.stored(), 99);
    }

    #[test]
    fn a_changed_download_never_yields_the_old_matrix() {
        let folder = CacheFolder::new(SYMMETRIC);
        assert_eq!(folder.first(), 4.0);
        fs::write(folder.archive(), OTHER).unwrap();
        assert_eq!(folder.first(), 5.0);
        assert_eq!(folder.first(), 5.0);
    }

    #[test]
    fn a_damaged_truncated_or_foreign_file_is_rebuilt() {
        let folder = CacheFolder::new(SYMMETRIC);
        folder.first();
        let good = fs::read(folder.cached()).unwrap();
        let mut damaged = good.clone();
        damaged[good.len() - 1] ^= 1;
        for bad in [&damaged[..], &good[..good.len() / 2], b"", b"something else"] {
            folder.mark();
            fs::write(folder.cached(), bad).unwrap();
            assert_eq!(folder.stored(), 2);
            assert_eq!(fs::read(folder.cached()).unwrap(), good);
        }
    }

    /// A matrix with one column, and a right-hand side.
    const WITH_VECTOR: &str = concat!(
        "t\n 4 1 1 1 1\nRUA 1 1 1 0\n(2I3)           (1I3)           (1F5.1)             (1F5.1)\n",
        "F    1 0\n  1  2\n  1\n  4.0\n"
    );

    #[test]
    fn vectors_are_added_to_the_binary_file_on_their_first_request() {
        let folder = CacheFolder::new(&format!("{WITH_VECTOR}  7.0\n"));
        let with_vectors = Options { attached: true, ..Options::default() };
        assert_eq!(load(&folder.archive(), &Options::default()).unwrap().attached_unread, ["b"]);
        folder.mark();
        assert_eq!(folder.stored(), 99);
        for _ in 0..2 {
            let loaded = load(&folder.archive(), &with_vectors).unwrap();
            assert_eq!(
                (loaded.attached("b").unwrap().values(), loaded.attached_unread.len()),
                (&[7.0][..], 0)
            );
        }
        // The binary file now holds the vectors; a read that does not request them returns the matrix alone.
        let cached = fs::read(folder.cached()).unwrap();
        assert!(binary::is_complete(&cached));
        let alone = load(&folder.archive(), &Options::default()).unwrap();
        assert_eq!((alone.attached.len(), alone.attached_unread), (0, vec!["b".to_owned()]));
        assert_eq!(alone.kind, Some("Harwell-Boeing"));
        assert_eq!(fs::read(folder.cached()).unwrap(), cached);
    }

    #[test]
    fn faulty_vectors_are_reported_on_every_read() {
        let folder = CacheFolder::new(WITH_VECTOR);
        let with_vectors = Options { attached: true, ..Options::default() };
        for _ in 0..2 {
            let loaded = load(&folder.archive(), &with_vectors).unwrap();
            assert_eq!((loaded.attached.len(), loaded.attached_faults.len()), (0, 1));
        }
        folder.mark();
        assert_eq!(folder.stored(), 99);
    }

    #[test]
    fn a_matrix_read_as_stored_has_a_separate_binary_file() {
        let folder = CacheFolder::new(SYMMETRIC);
        let as_stored = Options { as_stored: true, ..Options::default() };
        for _ in 0..2 {
            assert_eq!(load(&folder.archive(), &as_stored).unwrap().matrix.nnz(), 2);
            assert_eq!(load(&folder.archive(), &Options::default()).unwrap().matrix.nnz(), 3);
        }
        // A copy under the name of the other binary file has the wrong key.
        fs::copy(folder.0.path().join("M-as-stored.slv"), folder.cached()).unwrap();
        assert_eq!(load(&folder.archive(), &Options::default()).unwrap().matrix.nnz(), 3);
    }

    fn kept(folder: &CacheFolder) -> Loaded {
        let keep = Options { duplicates: Duplicates::Keep, ..Options::default() };
        load(&folder.archive(), &keep).unwrap()
    }

    #[test]
    fn a_read_that_keeps_duplicates_uses_the_binary_file_if_there_are_none() {
        let folder = CacheFolder::new(SYMMETRIC);
        assert_eq!(kept(&folder).matrix.nnz(), 3);
        folder.mark();
        assert_eq!((kept(&folder).stored, folder.stored()), (99, 99));
        // A read that keeps duplicates rebuilds a file whose key does not exclude duplicates.
        let mut marked = kept(&folder);
        marked.stored = 98;
        let unknown = key(SYMMETRIC.as_bytes(), false, Entries::Summed);
        binary::write_keyed(&folder.cached(), &marked, &unknown, None).unwrap();
        assert_eq!([folder.stored(), kept(&folder).stored, folder.stored()], [98, 2, 2]);
        folder.mark();
        assert_eq!(kept(&folder).stored, 99);
    }

    #[test]
    fn duplicates_are_kept_or_summed_as_requested_in_any_order_of_reads() {
        let banner = "%%MatrixMarket matrix coordinate real general";
        let folder = CacheFolder::new(&format!("{banner}\n1 1 2\n1 1 4\n1 1 1\n"));
        for _ in 0..2 {
            assert_eq!(kept(&folder).matrix.nnz(), 2);
            assert_eq!(folder.first(), 5.0);
        }
        assert!(folder.cached().is_file());
    }

    #[test]
    fn temporary_files_of_a_killed_process_are_removed() {
        let folder = CacheFolder::new(SYMMETRIC);
        let left = folder.0.path().join(".1a2b-17c0ffee-0.tmp");
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
        fs::File::create(&left).unwrap().set_modified(then).unwrap();
        folder.first();
        assert!(!left.exists());
    }

    #[test]
    fn the_matrix_is_read_even_if_the_binary_file_cannot_be_written() {
        let folder = CacheFolder::new(SYMMETRIC);
        fs::create_dir(folder.cached()).unwrap();
        assert_eq!(folder.first(), 4.0);
    }
}
