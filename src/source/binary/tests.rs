//! The binary format: round trips, and refusal of damaged files.

use crate::Error;
use crate::format::{Coo, Csr, Dense, Offsets, Values};
use crate::source::binary::{is_binary, read, read_bytes, write};
use crate::source::{Attached, Loaded, Options, RowFile, load, load_with};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn assert_same(a: &Loaded, b: &Loaded) {
    assert!(a.matrix == b.matrix, "another matrix");
    assert_eq!((a.stored, a.symmetric, a.stand_in), (b.stored, b.symmetric, b.stand_in));
    assert_eq!(a.attached, b.attached);
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("a.slv")
    }

    /// Writes the binary file and returns its bytes.
    fn bytes(&self, loaded: &Loaded) -> Vec<u8> {
        write(&self.file(), loaded).unwrap();
        fs::read(self.file()).unwrap()
    }
}

fn with_vectors() -> Loaded {
    let mut loaded = load("poisson2d:5x4").unwrap();
    loaded.stand_in = Some("Koutsovasilis/F1");
    let values = (0..40).map(f64::from).collect();
    loaded.attached = vec![
        Attached { name: "b".to_owned(), values: Dense::new(20, 2, values).unwrap() },
        Attached { name: String::new(), values: Dense::new(0, 3, Vec::new()).unwrap() },
    ];
    loaded
}

fn reason(bytes: &[u8]) -> String {
    match read_bytes(Path::new("x.slv"), bytes) {
        Err(Error::Binary { path, reason }) => {
            assert_eq!(path, Path::new("x.slv"));
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_type_of_values_and_offsets_is_read_back_with_the_attached_vectors() {
    let folder = Folder::new();
    let base = with_vectors();
    let with = |matrix: Csr| Loaded { symmetric: matrix.is_square(), matrix, ..base.clone() };
    let ones = Csr::with_pattern(base.matrix.pattern().clone(), Values::Ones).unwrap();
    let empty = Csr::new(0, 7, Offsets::U32(vec![0]), Vec::new(), Values::Ones).unwrap();
    let matrices = [base.matrix.clone(), base.matrix.to_f32(), base.matrix.with_wide_offsets(), ones, empty];
    for matrix in matrices {
        let loaded = with(matrix);
        let bytes = folder.bytes(&loaded);
        assert!(is_binary(&bytes));
        assert_same(&read(&folder.file()).unwrap(), &loaded);
    }
}

#[test]
fn a_matrix_of_many_blocks_is_read_back() {
    let folder = Folder::new();
    let loaded = load("poisson2d:400x300").unwrap();
    assert!(folder.bytes(&loaded).len() > 3 << 20);
    assert_same(&read(&folder.file()).unwrap(), &loaded);
}

#[test]
fn a_binary_file_is_recognised_by_its_content() {
    let folder = Folder::new();
    let loaded = with_vectors();
    let path = folder.0.path().join("named.mtx");
    write(&path, &loaded).unwrap();
    let options = Options { attached: true, ..Options::default() };
    assert_same(&load_with(path.to_str().unwrap(), &options).unwrap(), &loaded);
}

#[test]
fn attached_vectors_are_read_only_on_request() {
    let folder = Folder::new();
    let written = with_vectors();
    folder.bytes(&written);
    let path = folder.file();
    let alone = load(path.to_str().unwrap()).unwrap();
    assert!(alone.matrix == written.matrix && alone.attached.is_empty());
    assert_eq!(alone.attached_unread, ["b", ""]);
    let options = Options { attached: true, ..Options::default() };
    let complete = load_with(path.to_str().unwrap(), &options).unwrap();
    assert_eq!((complete.attached, complete.attached_unread.len()), (written.attached, 0));
    assert_eq!((alone.kind, complete.kind), (Some("solver binary"), Some("solver binary")));
}

#[test]
fn a_file_truncated_anywhere_is_refused() {
    let bytes = Folder::new().bytes(&with_vectors());
    for length in 0..bytes.len() {
        let reason = reason(&bytes[..length]);
        assert!(
            reason.contains("truncated") || reason.contains("bytes, and should have"),
            "{length}: {reason}"
        );
    }
    reason(&[&bytes[..], &[0]].concat());
}

#[test]
fn every_changed_byte_is_detected_except_in_the_padding_between_arrays() {
    let loaded = with_vectors();
    let bytes = Folder::new().bytes(&loaded);
    let mut found = 0;
    for offset in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[offset] ^= 0x10;
        match read_bytes(Path::new("x.slv"), &changed) {
            Ok(rest) if !rest.attached_faults.is_empty() => {
                // The fault is in a vector; the matrix is intact.
                assert!(rest.matrix == loaded.matrix && rest.attached_faults[0].contains("block 0 of its b"));
                found += 1;
            }
            Ok(same) => assert_same(&same, &loaded),
            Err(Error::Binary { .. }) => found += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(found > bytes.len() - 6 * 64, "{found} of {}", bytes.len());
}

#[test]
fn files_of_other_kinds_and_versions_are_refused() {
    assert!(reason(b"%%MatrixMarket matrix").contains("not a matrix in the binary format"));
    let mut bytes = Folder::new().bytes(&with_vectors());
    bytes[8] = 77;
    assert!(reason(&bytes).contains("version 77"));
}

/// Changes the header of a file and corrects its checksum.
fn resealed(mut bytes: Vec<u8>, change: impl Fn(&mut [u8])) -> Vec<u8> {
    const BODY: usize = 8 + 4 + 8;
    let length = u64::from_le_bytes(bytes[12..20].try_into().unwrap()) as usize;
    change(&mut bytes[BODY..BODY + length]);
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..BODY + length]);
    bytes[BODY + length..BODY + length + 8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn sizes_that_contradict_the_length_of_the_file_are_refused() {
    // Not declared symmetric, so that it may have more columns than rows.
    let general = Loaded { symmetric: false, ..load("poisson2d:5x4").unwrap() };
    let bytes = Folder::new().bytes(&general);
    for offset in [0, 8, 16] {
        for size in [u64::MAX, 1 << 62, 1 << 50, 1 << 40, 1000, 21] {
            let forged = resealed(bytes.clone(), |body| {
                body[offset..offset + 8].copy_from_slice(&size.to_le_bytes());
            });
            // The number of columns does not affect the length of the file, so every number of
            // 32 bits is valid.
            if offset == 8 && size <= u64::from(u32::MAX) {
                assert_eq!(read_bytes(Path::new("x"), &forged).unwrap().matrix.cols() as u64, size);
            } else {
                reason(&forged);
            }
        }
    }
}

#[test]
fn a_column_index_beyond_the_number_of_columns_is_refused() {
    let bytes = Folder::new().bytes(&load("poisson2d:5x4").unwrap());
    let forged = resealed(bytes, |body| body[8..16].copy_from_slice(&3_u64.to_le_bytes()));
    assert!(reason(&forged).contains("there are 3 columns"));
}

#[test]
fn writing_replaces_a_regular_file_and_keeps_a_device() {
    let folder = Folder::new();
    fs::write(folder.file(), "old").unwrap();
    folder.bytes(&with_vectors());
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1);
    let below = folder.file().join("a/file.slv");
    assert!(matches!(write(&below, &with_vectors()), Err(Error::Io { action: "write", .. })));
    let null = Path::new("/dev/null");
    write(null, &with_vectors()).unwrap();
    assert!(!null.is_file());
}

proptest! {
    #[test]
    fn any_matrix_is_read_back(
        rows in 0_usize..20,
        cols in 1_usize..20,
        entries in prop::collection::vec((0_u32..400, any::<f64>().prop_filter("finite", |v| v.is_finite())), 0..60),
        pattern: bool,
    ) {
        let entries: Vec<_> = entries.iter().filter(|_| rows > 0).collect();
        let at = |size: usize| entries.iter().map(move |e| e.0 % size.max(1) as u32).collect::<Vec<_>>();
        let values = if pattern { Vec::new() } else { entries.iter().map(|e| e.1 / 64.0).collect() };
        let matrix = Coo::new(rows, cols, at(rows), at(cols), values).unwrap().into_csr().unwrap();
        let loaded = Loaded::new(matrix, 5, false);
        let folder = Folder::new();
        folder.bytes(&loaded);
        assert_same(&read(&folder.file()).unwrap(), &loaded);
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), offset in 0_usize..400) {
        let valid = Folder::new().bytes(&with_vectors());
        let _ = read_bytes(Path::new("x"), &bytes);
        let forged = resealed(valid, |body| {
            let offset = offset % body.len();
            let count = bytes.len().min(body.len() - offset).min(8);
            body[offset..offset + count].copy_from_slice(&bytes[..count]);
        });
        let _ = read_bytes(Path::new("x"), &forged);
    }
}

/// `cargo test --release --test sources binary:: -- --ignored`
#[test]
#[ignore = "a measurement"]
fn reading_speed() {
    let folder = Folder::new();
    let loaded = load("hex27:48x48x50,dof=3").unwrap();
    let began = Instant::now();
    let bytes = folder.bytes(&loaded).len();
    println!("{bytes} bytes, {} entries, written in {:?}", loaded.matrix.nnz(), began.elapsed());
    let speed = |seconds: f64| format!("{:.1} ms, {:.2} GB/s", seconds * 1e3, bytes as f64 / seconds / 1e9);
    let mut best = [f64::MAX; 3];
    for _ in 0..10 {
        let began = Instant::now();
        let read = read(&folder.file()).unwrap();
        best[0] = best[0].min(began.elapsed().as_secs_f64());
        let (offsets, columns) = (read.matrix.row_offsets().clone(), read.matrix.col_indices().to_vec());
        let began = Instant::now();
        let matrix =
            Csr::new(read.matrix.rows(), read.matrix.cols(), offsets, columns, Values::Ones).unwrap();
        best[1] = best[1].min(began.elapsed().as_secs_f64());
        assert_eq!(matrix.nnz(), read.matrix.nnz());
        let content = fs::read(folder.file()).unwrap();
        let began = Instant::now();
        std::hint::black_box(xxhash_rust::xxh3::xxh3_128(&content));
        best[2] = best[2].min(began.elapsed().as_secs_f64());
    }
    println!("reading: {}", speed(best[0]));
    println!("of that, checking the arrays of the matrix: {}", speed(best[1]));
    println!("fingerprint of the file, one thread: {}", speed(best[2]));
}

#[test]
fn a_matrix_falsely_declared_symmetric_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.slv");
    let matrix = crate::source::load("uniform:n=20,row=3").unwrap().matrix;
    let stored = matrix.nnz() as u64;
    let declared = crate::source::Loaded::new(matrix, stored, true);
    let refused = crate::source::binary::write(&path, &declared).unwrap_err();
    assert!(refused.to_string().contains("not"), "{refused}");
    assert!(!path.exists());
}

/// Returns some rows of a matrix; their columns are those of the whole matrix.
fn rows_of(matrix: &Csr, rows: std::ops::Range<usize>) -> Vec<Vec<(usize, u64)>> {
    rows.map(|row| matrix.row(row).map(|(column, value)| (column, value.to_bits())).collect()).collect()
}

#[test]
fn rows_are_read_separately_for_every_type_of_values_and_offsets() {
    let folder = Folder::new();
    let base = with_vectors();
    // The arrays of the larger matrix have several blocks.
    for matrix in [base.matrix.clone(), load("poisson2d:300x290").unwrap().matrix] {
        let n = matrix.rows();
        let ones = Csr::with_pattern(matrix.pattern().clone(), Values::Ones).unwrap();
        for matrix in [matrix.clone(), matrix.to_f32(), matrix.with_wide_offsets(), ones] {
            let loaded = Loaded { matrix, ..base.clone() };
            folder.bytes(&loaded);
            let file = RowFile::open(folder.file().as_os_str()).unwrap().unwrap();
            assert_eq!((file.shape, file.entries), ((n, n), loaded.matrix.nnz()));
            assert_eq!((file.symmetric, file.stand_in), (true, Some("Koutsovasilis/F1")));
            for rows in [0..n, 0..0, n..n, 0..1, n - 1..n, n / 3..n / 2, 7..n - 3] {
                let read = file.read(rows.clone()).unwrap();
                assert_eq!((read.rows(), read.cols()), (rows.len(), n));
                assert_eq!(rows_of(&read, 0..rows.len()), rows_of(&loaded.matrix, rows));
            }
            for (parts, together) in [(1, 1), (3, 1), (4, 5), (30, 1)] {
                let expected = crate::format::partition::by_entries(&loaded.matrix, parts, together);
                assert_eq!(file.cut(parts, together).unwrap(), expected);
            }
        }
    }
    assert!(RowFile::open("poisson2d:5x4".as_ref()).unwrap().is_none());
    fs::write(folder.file(), "1 2\n").unwrap();
    assert!(RowFile::open(folder.file().as_os_str()).unwrap().is_none());
}

#[test]
fn rows_in_damaged_blocks_are_refused_and_other_rows_are_read() {
    let folder = Folder::new();
    let matrix = load("poisson2d:300x290").unwrap().matrix;
    let n = matrix.rows();
    let intact = folder.bytes(&Loaded::new(matrix, 0, false));
    let refused = |at: usize, rows: std::ops::Range<usize>| {
        let mut bytes = intact.clone();
        bytes[at] ^= 1;
        fs::write(folder.file(), &bytes).unwrap();
        let file = RowFile::open(folder.file().as_os_str()).unwrap().unwrap();
        file.read(rows).err().map(|error| error.to_string())
    };
    // The values are the last array, and the last byte is of the last row.
    let last = intact.len() - 1;
    let error = refused(last, n - 10..n).unwrap();
    assert!(error.contains("checksum") && error.contains("values") && error.contains("a.slv"), "{error}");
    assert_eq!(refused(last, 0..10), None);
    let error = refused(intact.len() - 8 * 400_000, 0..n).unwrap();
    assert!(error.contains("checksum"), "{error}");
    let mut header = intact.clone();
    header[30] ^= 1;
    fs::write(folder.file(), &header).unwrap();
    let error = RowFile::open(folder.file().as_os_str()).err().unwrap().to_string();
    assert!(error.contains("header"), "{error}");
    fs::write(folder.file(), &intact[..last]).unwrap();
    assert!(RowFile::open(folder.file().as_os_str()).is_err());
}
