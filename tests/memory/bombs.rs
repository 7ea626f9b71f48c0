//! A small file that claims far more than it can contain, or unpacks to it, is refused before
//! the memory is allocated.

use crate::common::archives::gzip;
use crate::common::memory;
use solver::Error;
use solver::device::distributed::in_threads;
use solver::engine::{Partition, Purpose, RankMatrix};
use solver::precond::Preconditioner;
use solver::scalar::Precision;
use solver::solve::Method;
use solver::source::{Options, parse, parse_dense};
use std::io::Write;
use std::path::Path;

/// Unpacked size of a bomb, and largest memory for refusing it, in bytes.
const BOMB: usize = 64 << 20;
const MOST: usize = 8 << 20;

/// Checks that `read` fails with little memory, and returns the error message.
fn refused<T>(what: &str, read: impl FnOnce() -> Result<T, Error>) -> String {
    let (outcome, peak) = memory::peak_of(read);
    let Err(error) = outcome else { panic!("{what} must be refused") };
    assert!(peak < MOST, "{what}: {peak} bytes for: {error}");
    error.to_string()
}

fn matrix(what: &str, bytes: &[u8]) -> String {
    refused(what, || parse(Path::new("bomb"), bytes, &Options::default()))
}

fn header(descr: &str, shape: &str) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat()
}

fn ints(shape: &str, numbers: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    [header("<i8", shape), bytes].concat()
}

/// Returns an array whose header is followed by zeros.
fn zeros(descr: &str, shape: &str, bytes: usize) -> Vec<u8> {
    [header(descr, shape), vec![0; bytes]].concat()
}

/// Returns a compressed archive of a 3 x 3 matrix in a SciPy format.
fn npz(format: &str, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let name = [header(&format!("|S{}", format.len()), "()"), format.as_bytes().to_vec()].concat();
    let fixed = [("format", name), ("shape", ints("(2,)", &[3, 3]))];
    for (name, bytes) in fixed.iter().filter(|(name, _)| members.iter().all(|m| m.0 != *name)).chain(members)
    {
        zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_packed_file_of_unknown_kind_is_refused_after_its_first_bytes() {
    let zeros = gzip(&vec![0; BOMB]);
    assert!(matrix("zeros", &zeros).contains("it begins with the bytes 00 00"));
    assert!(matrix("letters", &gzip(&vec![b'x'; BOMB])).contains("it begins with 'xxxx"));
    let packed = gzip(&gzip(&vec![0; BOMB]));
    assert!(matrix("packed twice", &packed).contains("a gzip file within a gzip file"));
    let vector = |bytes: &[u8]| refused("a vector", || parse_dense(Path::new("bomb"), bytes));
    assert!(vector(&zeros).contains("where a vector is needed"));
    let longer = gzip(&zeros_of_an_array());
    assert!(vector(&longer).contains("24 bytes of numbers for the shape (3), found more"));
    assert!(matrix("an array", &longer).contains("24 bytes of numbers for the shape (3), found more"));
}

#[test]
fn a_packed_matrix_with_data_after_its_entries_is_refused_early() {
    const HEAD: usize = 40 << 20;
    let matrix = b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 1\n3 3 1\n";
    for rest in ["\n", "\0"] {
        let bytes = gzip(&[&matrix[..], rest.repeat(BOMB).as_bytes()].concat());
        let (outcome, peak) = memory::peak_of(|| parse(Path::new("m.mtx.gz"), &bytes, &Options::default()));
        let message = outcome.map(|_| ()).unwrap_err().to_string();
        assert!(message.contains("far more than its size line announces"), "{message}");
        assert!(peak < HEAD, "{peak} bytes");
    }
}

#[test]
fn a_packed_matrix_that_is_read_for_ranks_is_refused_early_if_a_line_is_too_long() {
    const HEAD: usize = 40 << 20;
    let purpose = Purpose {
        method: Method::Cg,
        precond: Preconditioner::NONE,
        precision: Precision::F64,
        assume_symmetric: false,
        partition: Partition::Entries,
    };
    let matrix = b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 2 1\n3 3 1\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mtx.gz");
    std::fs::write(&path, gzip(&[&matrix[..], " ".repeat(BOMB).as_bytes()].concat())).unwrap();
    let (outcomes, peak) = memory::peak_of(|| {
        in_threads(1, |ranks| RankMatrix::read(ranks, path.as_os_str(), &purpose).map(|_| ()))
    });
    let message = outcomes.into_iter().next().unwrap().unwrap_err().to_string();
    assert!(message.contains("far more than its size line announces"), "{message}");
    assert!(peak < HEAD, "{peak} bytes");
}

fn zeros_of_an_array() -> Vec<u8> {
    zeros("<f8", "(3,)", BOMB)
}

#[test]
fn a_file_that_begins_with_too_many_blank_lines_or_comments_is_refused() {
    const HEAD: usize = 40 << 20;
    for (what, line) in [("line ends", "\n"), ("blanks", " \t\r\n"), ("comments", "# nothing\n")] {
        let text = [line.repeat(BOMB / line.len()).as_bytes(), b"0 1\n1 2\n2 0\n"].concat();
        for bytes in [text.clone(), gzip(&text)] {
            let (outcome, peak) =
                memory::peak_of(|| parse(Path::new("blank"), &bytes, &Options::default()).unwrap_err());
            assert!(
                outcome.to_string().contains("its first 16 MiB are blank lines and comments"),
                "{outcome}"
            );
            assert!(peak < HEAD, "{what}: {peak}");
        }
        let few = [line.repeat((1 << 20) / line.len()).as_bytes(), b"0 1\n1 2\n2 0\n"].concat();
        for bytes in [few.clone(), gzip(&few)] {
            let loaded = parse(Path::new("few"), &bytes, &Options::default()).unwrap();
            assert_eq!((loaded.kind, loaded.matrix.nnz()), (Some("edge list"), 3), "{what}");
        }
    }
}

#[test]
fn archives_with_inconsistent_arrays_are_refused_by_their_headers() {
    let many = BOMB / 8;
    let long = |descr: &str| zeros(descr, &format!("({many},)"), BOMB);
    let indptr = || ints("(4,)", &[0, 1, 2, 3]);
    let indices = || ints("(3,)", &[0, 1, 2]);
    let data = || zeros("<f8", "(3,)", 24);
    let three =
        |a: (&'static str, Vec<u8>), b: (&'static str, Vec<u8>), c: (&'static str, Vec<u8>)| [a, b, c];
    for format in ["csr", "csc"] {
        for (members, reason) in [
            (
                three(("indptr", long("<i8")), ("indices", indices()), ("data", data())),
                "4 offsets, found 8388608",
            ),
            (three(("indptr", indptr()), ("indices", long("<i8")), ("data", data())), "8388608 values"),
            (three(("indptr", indptr()), ("indices", indices()), ("data", long("<f8"))), "3 values"),
            (
                three(("indptr", indptr()), ("indices", long("<i8")), ("data", long("<f8"))),
                "8388608 as the last",
            ),
            // The data is longer than the shape in the header.
            (
                three(("indptr", indptr()), ("indices", indices()), ("data", zeros_of_an_array())),
                "24 bytes of numbers for the shape (3), found 67108864",
            ),
        ] {
            let message = matrix(format, &npz(format, &members));
            assert!(message.contains(reason), "{message}");
        }
    }
    let coo = npz("coo", &three(("row", indices()), ("col", long("<i8")), ("data", data())));
    assert!(matrix("coo", &coo).contains("3 values for 3 rows and 8388608 columns"));
    let coords = ("coords", zeros("<i8", &format!("(2, {})", many / 2), BOMB));
    assert!(matrix("coords", &npz("coo", &[coords, ("data", data())])).contains("as many values"));
    let blocks = ("data", zeros("<f8", &format!("({many}, 1, 1)"), BOMB));
    let bsr = npz("bsr", &three(("indptr", indptr()), ("indices", indices()), blocks));
    assert!(matrix("bsr", &bsr).contains("3 blocks, one for each index"));
    let diagonals = ("data", zeros("<f8", &format!("({}, 2)", many / 2), BOMB));
    let dia = npz("dia", &[("offsets", indices()), diagonals]);
    assert!(matrix("dia", &dia).contains("3 diagonals, one for each offset"));
    let name = ("format", zeros(&format!("|S{BOMB}"), "()", BOMB));
    assert!(matrix("name", &npz("csr", &[name])).contains("at most 4096 bytes"));
}

#[test]
fn more_entries_than_a_matrix_of_that_size_may_have_are_refused() {
    // In the smallest type, so that the test takes little memory itself.
    let many = (1 << 24) + 64 * 9 + 1;
    let members = [
        ("indptr", ints("(4,)", &[0, many, many, many])),
        ("indices", zeros("|u1", &format!("({many},)"), many as usize)),
        ("data", zeros("|u1", &format!("({many},)"), many as usize)),
    ];
    let message = matrix("duplicates", &npz("csr", &members));
    assert!(message.contains("at most 16777792 numbers in a matrix of 3 x 3, found 16777793"), "{message}");
}
