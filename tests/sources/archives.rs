//! Tar archives: the choice of the matrix, attached vectors, and faulty archives.

use solver::Error;
use solver::source::{Loaded, Options, parse};
use std::io::Write;
use std::path::Path;

const MATRIX: &str = "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 4\n2 2 4\n3 3 4\n2 1 -1\n";
const OTHER: &str = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n";
const COLUMN: &str = "%%MatrixMarket matrix array real general\n% b\n3 1\n1\n2.5\n3\n";
const COORDINATES: &str = "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\n6\n";
const SPARSE: &str = "%%MatrixMarket matrix coordinate real general\n3 1 1\n2 1 7\n";

fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        // The name is set directly, because the crate refuses names that lead out of the folder.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn read(bytes: &[u8]) -> Result<Loaded, Error> {
    parse(Path::new("a.tar"), bytes, &Options { attached: true, ..Options::default() })
}

#[test]
fn the_file_with_its_folders_name_is_the_matrix_and_files_with_a_suffix_are_its_vectors() {
    let files = [
        ("grid/README.txt", "what this is"),
        ("grid/grid_b.mtx", COLUMN),
        ("grid/grid.mtx", MATRIX),
        ("grid/grid_x.mtx", SPARSE),
        ("grid/grid_coord.mtx", COORDINATES),
        ("grid/grid_z.mtx", "%%MatrixMarket matrix array complex general\n1 1\n1 2\n"),
        ("grid/other.mtx", OTHER),
    ];
    let plain = tar(&files);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&plain).unwrap();
    for bytes in [plain, packer.finish().unwrap()] {
        let loaded = read(&bytes).unwrap();
        assert_eq!((loaded.matrix.rows(), loaded.matrix.nnz(), loaded.symmetric), (3, 5, true));
        assert_eq!(loaded.kind, Some("Matrix Market"));
        let names: Vec<_> = loaded.attached.iter().map(|attached| attached.name.as_str()).collect();
        assert_eq!(names, ["b", "x"]);
        assert_eq!(loaded.attached("b").unwrap().values(), [1.0, 2.5, 3.0]);
        assert_eq!(loaded.attached("x").unwrap().values(), [0.0, 7.0, 0.0]);
        assert_eq!(loaded.attached("coord").unwrap().values(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(loaded.coordinates.as_ref().unwrap().node(2), [3.0, 6.0]);
        assert!(loaded.attached_unread.is_empty() && loaded.attached_faults.is_empty());
        let alone = parse(Path::new("a.tar"), &bytes, &Options::default()).unwrap();
        assert_eq!(alone.matrix, loaded.matrix);
        assert!(alone.attached.is_empty() && alone.attached_faults.is_empty());
        assert_eq!(alone.attached_unread, ["b", "x", "coord"]);
    }
}

#[test]
fn vectors_that_are_not_requested_are_not_read() {
    // The file is faulty from its third line on, and no fault is reported.
    let wrong = "%%MatrixMarket matrix array real general\n3 1\nfaulty\n";
    let bytes = tar(&[("m/m.mtx", MATRIX), ("m/m_b.mtx", wrong)]);
    let loaded = parse(Path::new("a.tar"), &bytes, &Options::default()).unwrap();
    assert_eq!((loaded.matrix.nnz(), loaded.attached_faults.len()), (5, 0));
    assert_eq!(loaded.attached_unread, ["b"]);
}

#[test]
fn the_only_matrix_is_read_whatever_its_name() {
    let loaded =
        read(&tar(&[("notes", "some words"), ("x/edges.txt", "# edges\n0 1\n"), ("v.mtx", COLUMN)])).unwrap();
    assert_eq!((loaded.matrix.rows(), loaded.kind, loaded.attached.len()), (2, Some("edge list"), 0));
}

#[test]
fn an_archive_with_no_matrix_or_several_is_an_error_that_lists_the_files() {
    for (files, reason) in [
        (vec![("a.mtx", MATRIX), ("b.mtx", OTHER)], "there are several matrices"),
        (vec![("a/a.mtx", MATRIX), ("b/b.mtx", OTHER)], "there are several matrices"),
        (vec![("a/readme", "words"), ("a/b.mtx", COLUMN)], "there is no matrix"),
    ] {
        match read(&tar(&files)) {
            Err(error @ Error::Archive { .. }) => {
                let message = error.to_string();
                assert!(message.contains(reason) && message.contains("Unpack it"), "{message}");
                assert!(files.iter().all(|(name, _)| message.contains(name)), "{message}");
            }
            other => panic!("{files:?}: {other:?}"),
        }
    }
}

#[test]
fn a_fault_is_reported_with_the_member_and_its_line() {
    let broken = MATRIX.replace("2 1 -1", "2 x -1");
    let message = read(&tar(&[("m/m.mtx", &broken)])).unwrap_err().to_string();
    assert_eq!(message, "a.tar:m/m.mtx:6:3: expected a column index from 1 to 3, found x");
}

#[test]
fn a_faulty_vector_is_skipped_and_reported_while_the_matrix_and_valid_vectors_are_read() {
    let short = COLUMN.replace("3\n", "");
    let files = [("m/m.mtx", MATRIX), ("m/m_b.mtx", &short), ("m/m_x.mtx", SPARSE)];
    let loaded = read(&tar(&files)).unwrap();
    assert_eq!((loaded.matrix.nnz(), loaded.attached("b"), loaded.attached.len()), (5, None, 1));
    assert_eq!(loaded.attached("x").unwrap().values(), [0.0, 7.0, 0.0]);
    assert_eq!(loaded.attached_unread, ["b"]);
    let [fault] = &loaded.attached_faults[..] else { panic!("{:?}", loaded.attached_faults) };
    assert!(fault.starts_with("a.tar:m/m_b.mtx:") && fault.contains("expected 3 entries"), "{fault}");
}

#[test]
fn truncated_archives_are_errors_and_member_names_are_never_written_to() {
    let archive = tar(&[("m/m.mtx", MATRIX)]);
    for length in 1..512 + MATRIX.len() {
        assert!(read(&archive[..length]).is_err(), "cut to {length} bytes");
    }
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside.mtx");
    let name = format!("../../../../../..{}", outside.display());
    assert_eq!(read(&tar(&[(&name, MATRIX)])).unwrap().matrix.nnz(), 5);
    assert!(!outside.exists());
}
