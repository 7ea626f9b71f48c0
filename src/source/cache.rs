//! Downloaded matrices as binary files beside their archives, so that only the first reading parses them.
//!
//! A binary file names the content that it was made from: fingerprint (XXH3, 128 bits) and length of the archive, and
//! how it was read. The archive is fingerprinted on every use, which costs little beside reading the matrix, so an
//! archive that was changed is never answered with an old matrix. The cache never makes reading fail: what is damaged
//! is made again, and what cannot be written is not kept. Where vectors beside the matrix are asked for that a binary
//! file was made without, it is made again with them; vectors that are faulty are looked at anew each time. A binary
//! file holds no duplicates, and its key says whether there were any: if so, who wants them kept reads the archive.

use super::binary::{self, Key};
use super::{Loaded, Options, detect, mmap};
use crate::error::{Error, Result};
use crate::files;
use crate::format::Duplicates;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// Reads the matrix in the archive at `path`, from its binary file where that is fresh. An archive that is parsed is
/// checked before; a binary file was made from one that was.
pub(super) fn load(
    path: &Path,
    options: &Options,
    check: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<Loaded> {
    let cached = place(path, options);
    let (loaded, key) = mmap::with(path, |archive| load_from(path, archive, &cached, options, check))?;
    // Only now it is certain that the archive was read as a whole.
    if let Some(key) = key {
        write(path, &cached, &loaded, &key, options);
    }
    Ok(loaded)
}

/// Reads the matrix, and returns it with the key under which it is to be cached, unless it is or cannot be.
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

/// Keeps the matrix for the next time, if that can be done.
fn write(path: &Path, cached: &Path, loaded: &Loaded, key: &Key, options: &Options) {
    // What a killed reading left of its file would stay for good.
    files::remove_leftovers(cached);
    if let Err(error) = binary::write_keyed(cached, loaded, key, options.meter.as_deref()) {
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
}

/// Raised by every change to what a reader makes of a file: what older ones made is made again.
const READERS: u32 = 1;

/// What is known of the entries of an archive, of which a binary file holds one for each place.
#[derive(Clone, Copy)]
enum Entries {
    /// No two were at one place.
    Distinct,
    /// Some were, and have been summed.
    Summed,
}

/// What a binary file is made from, how, and by which program.
fn key(archive: &[u8], as_stored: bool, entries: Entries) -> Key {
    let how = match entries {
        Entries::Distinct => " distinct",
        Entries::Summed => "",
    };
    let program = xxh3_128(format!("{} {READERS}{how}", env!("CARGO_PKG_VERSION")).as_bytes());
    Key { content: xxh3_128(archive) ^ program, length: archive.len() as u64, as_stored }
}

/// The binary file of an archive.
fn place(path: &Path, options: &Options) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".tar.gz").unwrap_or(&name);
    let how = if options.as_stored { "-as-stored" } else { "" };
    path.with_file_name(format!("{stem}{how}.slv"))
}

/// Reads the binary file, if it was made from one of these and holds what is asked for.
fn read(cached: &Path, [distinct, summed]: &[Key; 2], options: &Options) -> Option<Loaded> {
    // A folder or a pipe of that name is no cache.
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
            log::warn!("{} is made again from the download: {reason}", cached.display());
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
        let asked = Options { attached: true, ..Options::default() };
        assert_eq!(load(&place.archive(), &Options::default()).unwrap().attached_unread, ["b"]);
        place.mark();
        assert_eq!(place.stored(), 99);
        for _ in 0..2 {
            let whole = load(&place.archive(), &asked).unwrap();
            assert_eq!((whole.attached("b").unwrap().values(), whole.attached_unread.len()), (&[7.0][..], 0));
        }
        // From then on whoever asks gets them from there, and who does not gets the matrix alone.
        let cached = fs::read(place.cached()).unwrap();
        assert!(binary::is_complete(&cached));
        let alone = load(&place.archive(), &Options::default()).unwrap();
        assert_eq!((alone.attached.len(), alone.attached_unread), (0, vec!["b".to_owned()]));
        assert_eq!(alone.kind, Some("Harwell-Boeing"));
        assert_eq!(fs::read(place.cached()).unwrap(), cached);
    }

    #[test]
    fn vectors_that_are_faulty_are_said_to_be_each_time() {
        let place = Place::new(WITH_VECTOR);
        let asked = Options { attached: true, ..Options::default() };
        for _ in 0..2 {
            let loaded = load(&place.archive(), &asked).unwrap();
            assert_eq!((loaded.attached.len(), loaded.attached_faults.len()), (0, 1));
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

    fn kept(place: &Place) -> Loaded {
        let keep = Options { duplicates: Duplicates::Keep, ..Options::default() };
        load(&place.archive(), &keep).unwrap()
    }

    #[test]
    fn whoever_keeps_duplicates_is_served_from_the_binary_file_where_there_are_none() {
        let place = Place::new(SYMMETRIC);
        assert_eq!(kept(&place).matrix.nnz(), 3);
        place.mark();
        assert_eq!((kept(&place).stored, place.stored()), (99, 99));
        // A file that does not say that there were none is made again by whoever must know.
        let mut marked = kept(&place);
        marked.stored = 98;
        let unknown = key(SYMMETRIC.as_bytes(), false, Entries::Summed);
        binary::write_keyed(&place.cached(), &marked, &unknown, None).unwrap();
        assert_eq!([place.stored(), kept(&place).stored, place.stored()], [98, 2, 2]);
        place.mark();
        assert_eq!(kept(&place).stored, 99);
    }

    #[test]
    fn duplicates_are_kept_and_summed_as_asked_in_any_order() {
        let banner = "%%MatrixMarket matrix coordinate real general";
        let place = Place::new(&format!("{banner}\n1 1 2\n1 1 4\n1 1 1\n"));
        for _ in 0..2 {
            assert_eq!(kept(&place).matrix.nnz(), 2);
            assert_eq!(place.first(), 5.0);
        }
        assert!(place.cached().is_file());
    }

    #[test]
    fn what_a_killed_reading_left_is_removed() {
        let place = Place::new(SYMMETRIC);
        let left = place.0.path().join(".1a2b-17c0ffee-0.tmp");
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
        fs::File::create(&left).unwrap().set_modified(then).unwrap();
        place.first();
        assert!(!left.exists());
    }

    #[test]
    fn where_nothing_can_be_written_the_matrix_is_read_all_the_same() {
        let place = Place::new(SYMMETRIC);
        fs::create_dir(place.cached()).unwrap();
        assert_eq!(place.first(), 4.0);
    }
}
