//! Downloaded matrices as binary files beside their archives, so that only the first reading parses them.
//!
//! A binary file names the content that it was made from: fingerprint (XXH3, 128 bits) and length of the archive, and
//! how it was read. The archive is fingerprinted on every use, which costs little beside reading the matrix, so an
//! archive that was changed is never answered with an old matrix. The cache never makes reading fail: what is damaged
//! is made again, and what cannot be written is not kept. Where vectors beside the matrix are asked for that a binary
//! file was made without, it is made again with them; vectors that are faulty are looked at anew each time.

use super::binary::{self, Key};
use super::{Loaded, Options, detect, mmap};
use crate::error::{Error, Result};
use crate::format::Duplicates;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// Reads the matrix in the archive at `path`, from its binary file where that is fresh.
pub(super) fn load(path: &Path, options: &Options) -> Result<Loaded> {
    let archive = mmap::open(path)?;
    // A binary file holds no duplicates.
    if options.duplicates == Duplicates::Keep {
        return detect::parse(path, &archive, options);
    }
    let key = key(&archive, options.as_stored);
    let cached = place(path, options);
    if let Some(loaded) = read(&cached, &key, options) {
        return Ok(loaded);
    }
    let loaded = detect::parse(path, &archive, options)?;
    if let Err(error) = binary::write_keyed(&cached, &loaded, &key, options.meter.as_deref()) {
        let message = format!(
            "{path} is parsed anew each time: {cached} cannot be written: {error}",
            path = path.display(),
            cached = cached.display()
        );
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => log::info!("{message}"),
            _ => log::warn!("{message}"),
        }
    }
    Ok(loaded)
}

/// Raised by every change to what a reader makes of a file: what older ones made is made again.
const READERS: u32 = 1;

/// What a binary file is made from, and by which program.
fn key(archive: &[u8], as_stored: bool) -> Key {
    let program = xxh3_128(format!("{} {READERS}", env!("CARGO_PKG_VERSION")).as_bytes());
    Key { content: xxh3_128(archive) ^ program, length: archive.len() as u64, as_stored }
}

/// The binary file of an archive.
fn place(path: &Path, options: &Options) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".tar.gz").unwrap_or(&name);
    let how = if options.as_stored { "-as-stored" } else { "" };
    path.with_file_name(format!("{stem}{how}.slv"))
}

fn read(cached: &Path, key: &Key, options: &Options) -> Option<Loaded> {
    // A folder or a pipe of that name is no cache.
    if !cached.is_file() {
        return None;
    }
    let loaded = mmap::open(cached).and_then(|bytes| {
        let enough = !options.beside || binary::is_complete(&bytes);
        enough.then(|| binary::read_keyed(cached, &bytes, Some(key), options)).transpose()
    });
    match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let reason = match error {
                Error::Binary { reason, .. } => reason,
                other => other.to_string(),
            };
            log::warn!("{} is made again from the download: {reason}", cached.display());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 1 1\n";
    const OTHER: &str = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 5\n2 1 1\n";

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(text: &str) -> Place {
            let place = Place(tempfile::tempdir().unwrap());
            fs::write(place.archive(), text).unwrap();
            place
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

        /// Puts a matrix in the cache that only the cache can have.
        fn mark(&self) {
            let bytes = fs::read(self.archive()).unwrap();
            let key = key(&bytes, false);
            let mut marked = load(&self.archive(), &Options::default()).unwrap();
            marked.stored = 99;
            binary::write_keyed(&self.cached(), &marked, &key, None).unwrap();
        }

        fn stored(&self) -> u64 {
            load(&self.archive(), &Options::default()).unwrap().stored
        }
    }

    #[test]
    fn the_second_reading_comes_from_the_binary_file() {
        let place = Place::new(SYMMETRIC);
        assert_eq!(place.first(), 4.0);
        assert!(place.cached().is_file());
        place.mark();
        assert_eq!(place.stored(), 99);
    }

    #[test]
    fn a_changed_download_is_never_answered_with_the_old_matrix() {
        let place = Place::new(SYMMETRIC);
        assert_eq!(place.first(), 4.0);
        fs::write(place.archive(), OTHER).unwrap();
        assert_eq!(place.first(), 5.0);
        assert_eq!(place.first(), 5.0);
    }

    #[test]
    fn a_damaged_cut_or_foreign_file_is_made_again() {
        let place = Place::new(SYMMETRIC);
        place.first();
        let good = fs::read(place.cached()).unwrap();
        let mut damaged = good.clone();
        damaged[good.len() - 1] ^= 1;
        for bad in [&damaged[..], &good[..good.len() / 2], b"", b"something else"] {
            place.mark();
            fs::write(place.cached(), bad).unwrap();
            assert_eq!(place.stored(), 2);
            assert_eq!(fs::read(place.cached()).unwrap(), good);
        }
    }

    /// A right-hand side after a matrix of one column.
    const WITH_VECTOR: &str = concat!(
        "t\n 4 1 1 1 1\nRUA 1 1 1 0\n(2I3)           (1I3)           (1F5.1)             (1F5.1)\n",
        "F    1 0\n  1  2\n  1\n  4.0\n"
    );

    #[test]
    fn vectors_are_added_to_the_binary_file_when_they_are_first_asked_for() {
        let place = Place::new(&format!("{WITH_VECTOR}  7.0\n"));
        let asked = Options { beside: true, ..Options::default() };
        assert_eq!(load(&place.archive(), &Options::default()).unwrap().beside_unread, ["b"]);
        place.mark();
        assert_eq!(place.stored(), 99);
        for _ in 0..2 {
            let whole = load(&place.archive(), &asked).unwrap();
            assert_eq!((whole.beside("b").unwrap().values(), whole.beside_unread.len()), (&[7.0][..], 0));
        }
        // From then on whoever asks gets them from there, and who does not gets the matrix alone.
        let cached = fs::read(place.cached()).unwrap();
        assert!(binary::is_complete(&cached));
        let alone = load(&place.archive(), &Options::default()).unwrap();
        assert_eq!((alone.beside.len(), alone.beside_unread), (0, vec!["b".to_owned()]));
        assert_eq!(alone.kind, Some("Harwell-Boeing"));
        assert_eq!(fs::read(place.cached()).unwrap(), cached);
    }

    #[test]
    fn vectors_that_are_faulty_are_said_to_be_each_time() {
        let place = Place::new(WITH_VECTOR);
        let asked = Options { beside: true, ..Options::default() };
        for _ in 0..2 {
            let loaded = load(&place.archive(), &asked).unwrap();
            assert_eq!((loaded.beside.len(), loaded.beside_faults.len()), (0, 1));
        }
        place.mark();
        assert_eq!(place.stored(), 99);
    }

    #[test]
    fn a_matrix_as_stored_has_a_file_of_its_own() {
        let place = Place::new(SYMMETRIC);
        let as_stored = Options { as_stored: true, ..Options::default() };
        for _ in 0..2 {
            assert_eq!(load(&place.archive(), &as_stored).unwrap().matrix.nnz(), 2);
            assert_eq!(load(&place.archive(), &Options::default()).unwrap().matrix.nnz(), 3);
        }
        // Even under the other one's name it is not taken for it.
        fs::copy(place.0.path().join("M-as-stored.slv"), place.cached()).unwrap();
        assert_eq!(load(&place.archive(), &Options::default()).unwrap().matrix.nnz(), 3);
    }

    #[test]
    fn where_nothing_can_be_written_the_matrix_is_read_all_the_same() {
        let place = Place::new(SYMMETRIC);
        fs::create_dir(place.cached()).unwrap();
        assert_eq!(place.first(), 4.0);
    }
}
