//! The binary format: what goes in comes out, and nothing else does.

use proptest::prelude::*;
use solver::Error;
use solver::format::{Coo, Csr, Dense, Offsets, Values};
use solver::source::binary::{is_binary, read, read_bytes, write};
use solver::source::{Attached, Loaded, Options, load, load_with};
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

    /// The file of a matrix.
    fn bytes(&self, loaded: &Loaded) -> Vec<u8> {
        write(&self.file(), loaded).unwrap();
        fs::read(self.file()).unwrap()
    }
}

fn everything() -> Loaded {
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
fn every_kind_of_value_and_offset_comes_back_with_all_that_lies_beside() {
    let folder = Folder::new();
    let whole = everything();
    let with = |matrix: Csr| Loaded { symmetric: matrix.is_square(), matrix, ..whole.clone() };
    let ones = Csr::with_pattern(whole.matrix.pattern().clone(), Values::Ones).unwrap();
    let empty = Csr::new(0, 7, Offsets::U32(vec![0]), Vec::new(), Values::Ones).unwrap();
    let matrices =
        [whole.matrix.clone(), whole.matrix.to_f32(), whole.matrix.with_wide_offsets(), ones, empty];
    for matrix in matrices {
        let loaded = with(matrix);
        let bytes = folder.bytes(&loaded);
        assert!(is_binary(&bytes));
        assert_same(&read(&folder.file()).unwrap(), &loaded);
    }
}

#[test]
fn a_matrix_of_many_blocks_comes_back() {
    let folder = Folder::new();
    let loaded = load("poisson2d:400x300").unwrap();
    assert!(folder.bytes(&loaded).len() > 3 << 20);
    assert_same(&read(&folder.file()).unwrap(), &loaded);
}

#[test]
fn the_kind_of_file_is_known_by_its_content() {
    let folder = Folder::new();
    let loaded = everything();
    let path = folder.0.path().join("named.mtx");
    write(&path, &loaded).unwrap();
    let asked = Options { attached: true, ..Options::default() };
    assert_same(&load_with(path.to_str().unwrap(), &asked).unwrap(), &loaded);
}

#[test]
fn what_lies_beside_the_matrix_is_read_where_it_is_asked_for() {
    let folder = Folder::new();
    let whole = everything();
    folder.bytes(&whole);
    let path = folder.file();
    let alone = load(path.to_str().unwrap()).unwrap();
    assert!(alone.matrix == whole.matrix && alone.attached.is_empty());
    assert_eq!(alone.attached_unread, ["b", ""]);
    let asked = Options { attached: true, ..Options::default() };
    let asked = load_with(path.to_str().unwrap(), &asked).unwrap();
    assert_eq!((asked.attached, asked.attached_unread.len()), (whole.attached, 0));
    assert_eq!((alone.kind, asked.kind), (Some("solver binary"), Some("solver binary")));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = Folder::new().bytes(&everything());
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
fn every_changed_byte_is_found_unless_it_stands_between_arrays() {
    let loaded = everything();
    let bytes = Folder::new().bytes(&loaded);
    let mut found = 0;
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        match read_bytes(Path::new("x.slv"), &changed) {
            Ok(rest) if !rest.attached_faults.is_empty() => {
                // Beside the matrix, which stands.
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
fn files_of_other_kinds_and_versions_say_so() {
    assert!(reason(b"%%MatrixMarket matrix").contains("not a matrix in the binary format"));
    let mut bytes = Folder::new().bytes(&everything());
    bytes[8] = 77;
    assert!(reason(&bytes).contains("version 77"));
}

/// The header of a file with its checksum made right, as no accident would.
fn resealed(mut bytes: Vec<u8>, change: impl Fn(&mut [u8])) -> Vec<u8> {
    const BODY: usize = 8 + 4 + 8;
    let length = u64::from_le_bytes(bytes[12..20].try_into().unwrap()) as usize;
    change(&mut bytes[BODY..BODY + length]);
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..BODY + length]);
    bytes[BODY + length..BODY + length + 8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn sizes_that_the_file_does_not_bear_out_are_refused_before_anything_is_allocated() {
    // Not said to be symmetric, so that it may be wider than high.
    let general = Loaded { symmetric: false, ..load("poisson2d:5x4").unwrap() };
    let bytes = Folder::new().bytes(&general);
    for place in [0, 8, 16] {
        for size in [u64::MAX, 1 << 62, 1 << 50, 1 << 40, 1000, 21] {
            let forged = resealed(bytes.clone(), |body| {
                body[place..place + 8].copy_from_slice(&size.to_le_bytes());
            });
            // Columns take no room in the file, so any number is possible that 32-bit indices allow.
            if place == 8 && size <= u64::from(u32::MAX) {
                assert_eq!(read_bytes(Path::new("x"), &forged).unwrap().matrix.cols() as u64, size);
            } else {
                reason(&forged);
            }
        }
    }
}

#[test]
fn arrays_that_are_no_matrix_are_refused() {
    let bytes = Folder::new().bytes(&load("poisson2d:5x4").unwrap());
    let forged = resealed(bytes, |body| body[8..16].copy_from_slice(&3_u64.to_le_bytes()));
    assert!(reason(&forged).contains("there are 3 columns"));
}

#[test]
fn a_file_is_replaced_at_once_and_a_device_is_not_replaced() {
    let folder = Folder::new();
    fs::write(folder.file(), "old").unwrap();
    folder.bytes(&everything());
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1);
    let below = folder.file().join("a/file.slv");
    assert!(matches!(write(&below, &everything()), Err(Error::Io { action: "write", .. })));
    let null = Path::new("/dev/null");
    write(null, &everything()).unwrap();
    assert!(!null.is_file());
}

proptest! {
    #[test]
    fn any_matrix_comes_back(
        rows in 0_usize..20,
        cols in 1_usize..20,
        entries in prop::collection::vec((0_u32..400, any::<f64>().prop_filter("finite", |v| v.is_finite())), 0..60),
        pattern: bool,
    ) {
        let entries: Vec<_> = entries.iter().filter(|_| rows > 0).collect();
        let at = |of: usize| entries.iter().map(move |e| e.0 % of.max(1) as u32).collect::<Vec<_>>();
        let values = if pattern { Vec::new() } else { entries.iter().map(|e| e.1 / 64.0).collect() };
        let matrix = Coo::new(rows, cols, at(rows), at(cols), values).unwrap().into_csr().unwrap();
        let loaded = Loaded::new(matrix, 5, false);
        let folder = Folder::new();
        folder.bytes(&loaded);
        assert_same(&read(&folder.file()).unwrap(), &loaded);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), place in 0_usize..400) {
        let whole = Folder::new().bytes(&everything());
        let _ = read_bytes(Path::new("x"), &bytes);
        let forged = resealed(whole, |body| {
            let place = place % body.len();
            let count = bytes.len().min(body.len() - place).min(8);
            body[place..place + count].copy_from_slice(&bytes[..count]);
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
        let whole = fs::read(folder.file()).unwrap();
        let began = Instant::now();
        std::hint::black_box(xxhash_rust::xxh3::xxh3_128(&whole));
        best[2] = best[2].min(began.elapsed().as_secs_f64());
    }
    println!("reading: {}", speed(best[0]));
    println!("of that checking the arrays of the matrix: {}", speed(best[1]));
    println!("a fingerprint of as many bytes, one thread: {}", speed(best[2]));
}

#[test]
fn a_matrix_that_is_falsely_said_to_be_symmetric_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.slv");
    let matrix = solver::source::load("uniform:n=20,row=3").unwrap().matrix;
    let stored = matrix.nnz() as u64;
    let lie = solver::source::Loaded::new(matrix, stored, true);
    let refused = solver::source::binary::write(&path, &lie).unwrap_err();
    assert!(refused.to_string().contains("not"), "{refused}");
    assert!(!path.exists());
}
