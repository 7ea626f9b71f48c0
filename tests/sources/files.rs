//! Detection of the kind of a file, standard input, compression, and files that are no matrix.

use solver::Error;
use solver::source::{Options, kinds, load, load_with, parse, parse_as};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MATRIX: &str = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 4\n3 2 -1\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn refused(bytes: &[u8]) -> Error {
    parse(Path::new("some.file"), bytes, &Options::default()).expect_err("must be refused")
}

/// Runs `solver info` with these bytes on standard input.
fn info(matrix: &str, bytes: &[u8]) -> Output {
    let mut child = crate::common::process::solver()
        .args(["info", "--json", "--matrix", matrix])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its input early closes the pipe, so writing may fail.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_is_read_under_both_of_its_names() {
    for name in ["-", "/dev/stdin"] {
        for bytes in [MATRIX.as_bytes().to_vec(), gzip(MATRIX.as_bytes())] {
            let done = info(name, &bytes);
            let errors = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(0), "{name}: {errors}");
            let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
            assert_eq!((&report["rows"], &report["nnz"]), (&3.into(), &2.into()), "{name}");
        }
    }
    let done = info("-", MATRIX.replace("3 2 -1", "3 x -1").as_bytes());
    assert_eq!(done.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(errors.contains("<stdin>:4:3: expected a column index from 1 to 3, found x"), "{errors}");
}

#[test]
fn the_kind_of_a_file_does_not_depend_on_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, kind) in [
        ("a.npz", MATRIX, "Matrix Market"),
        ("b.mtx", "0 1\n1 2\n0 2\n2 0\n", "edge list"),
        ("c", "2\n1\n0\n", "ASCIIGraph"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert_eq!(load(path.to_str().unwrap()).unwrap().kind, Some(kind), "{name}");
    }
    assert_eq!(load("poisson2d:3x3").unwrap().kind, None);
}

#[test]
fn all_members_of_a_gzip_file_are_read_in_order() {
    let (head, tail) = MATRIX.as_bytes().split_at(60);
    let packed = [gzip(head), gzip(b""), gzip(tail)].concat();
    let loaded = parse(Path::new("a.gz"), &packed, &Options::default()).unwrap();
    assert_eq!((loaded.matrix.nnz(), loaded.kind), (2, Some("Matrix Market")));
}

#[test]
fn a_damaged_gzip_file_is_an_error_with_its_path() {
    let packed = gzip(MATRIX.as_bytes());
    for length in 2..packed.len() {
        match refused(&packed[..length]) {
            Error::Io { action: "decompress", path, .. } => assert_eq!(path, Path::new("some.file")),
            other => panic!("cut to {length} bytes: {other}"),
        }
    }
    let mut changed = packed.clone();
    let checksum = packed.len() - 6;
    changed[checksum] ^= 1;
    assert!(matches!(refused(&changed), Error::Io { action: "decompress", .. }));
    // The size in the trailer is a hint for the first allocation: a wrong size is an error and
    // allocates no such memory.
    let mut huge = packed;
    let size = huge.len() - 4;
    huge[size..].copy_from_slice(&[0xff; 4]);
    assert!(matches!(refused(&huge), Error::Io { action: "decompress", .. }));
}

#[test]
fn a_gzip_file_within_another_is_refused() {
    let error = refused(&gzip(&gzip(MATRIX.as_bytes()))).to_string();
    assert!(error.contains("gzip file within a gzip file") && error.contains("gunzip"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_gzip_bomb_larger_than_memory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.gz");
    // 4 GB of blanks in 4 MB, for a process limited to 2 GB. A Matrix Market file is decompressed up to the
    // size that its size line implies. A long edge list is parsed while it is decompressed, and needs
    // memory for its longest line.
    let blanks = gzip(&vec![b' '; 64 << 20]).repeat(64);
    let edges = "0 1\n".repeat(200_000);
    for (head, message) in
        [(MATRIX, "far more than its size line announces"), (&edges, "not enough memory for")]
    {
        std::fs::write(&path, [&gzip(head.as_bytes()), &blanks[..]].concat()).unwrap();
        let done = Command::new("sh")
            .args(["-c", "ulimit -v 2000000; exec \"$0\" info --matrix \"$1\""])
            .arg(crate::common::process::program())
            .arg(&path)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{errors}");
        assert!(errors.contains(message), "{errors}");
    }
}

#[test]
fn an_unknown_kind_of_file_is_refused_with_its_first_bytes_and_the_supported_kinds() {
    for (bytes, start) in [
        (&b""[..], "it is empty"),
        (b"<!DOCTYPE html>\n<html>", "it begins with '<!DOCTYPE html>'"),
        (b"hello 'world'", "it begins with 'hello \\'world\\''"),
        (b"\x00\x01\xffabc", "it begins with the bytes 00 01 ff 61 62 63"),
        (b"\n\n\n", "it begins with ''"),
    ] {
        let error = refused(bytes);
        assert!(matches!(error, Error::UnknownKind { .. }), "{error}");
        let message = error.to_string();
        assert!(message.starts_with("some.file: ") && message.contains(start), "{message}");
        assert!(kinds().all(|kind| message.contains(kind)), "{message}");
    }
    for (bytes, name) in
        [(&b"BZh91AY"[..], "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"MATLAB 5.0 MAT-file", "MATLAB")]
    {
        match refused(bytes) {
            Error::UnsupportedFile { what, .. } => assert!(what.contains(name), "{what}"),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_file_with_a_faulty_matrix_market_banner_is_refused_with_the_expected_banner() {
    for text in [
        "MatrixMarket matrix coordinate real general\n1 1 0\n",
        "%%% MatrixMarket matrix coordinate real general\n1 1 0\n",
        "% a comment\nand no banner\n",
    ] {
        match refused(text.as_bytes()) {
            Error::Parse { line: 1, expected, .. } => {
                assert!(expected.contains("%%MatrixMarket"), "{expected}")
            }
            other => panic!("{text:?}: {other}"),
        }
    }
}

#[test]
fn a_file_can_be_parsed_as_a_named_kind() {
    let read = |kind| parse_as(kind, Path::new("a"), b"2 1\n1 0\n", &Options::default());
    assert!(read("edge list").unwrap_err().to_string().contains("sizes"));
    assert!(matches!(read("Matrix Market"), Err(Error::Parse { .. })));
    match read("nothing") {
        Err(Error::BadSetting { reason, .. }) => assert!(reason.contains("METIS graph"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_files_of_every_kind_are_read_or_refused_without_a_panic() {
    let corpus = crate::common::process::project("fuzz/corpus");
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for (folder, kind) in [
        ("harwell", "Harwell-Boeing"),
        ("npz", "SciPy sparse matrix"),
        ("npy", "NumPy array"),
        ("archive", "tar archive"),
        ("metis", "METIS graph"),
        ("edges", "edge list"),
        ("named", "edge list with names"),
        ("ascii", "ASCIIGraph"),
    ] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let seed = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(parse_as(kind, Path::new("seed"), &seed, &Options::default()).is_ok(), "{folder}");
            for _ in 0..500 {
                let mut bytes = seed.clone();
                for _ in 0..=next(3) {
                    let at = next(bytes.len());
                    match next(4) {
                        0 => bytes[at] = next(256) as u8,
                        1 => bytes[at] = b"0123456789 \n(-.,%"[next(17)],
                        2 => drop(bytes.remove(at)),
                        _ => bytes.insert(at, b"0987 \n"[next(6)]),
                    }
                }
                let _ = parse_as(kind, Path::new("damaged"), &bytes, &Options::default());
                let _ = parse(Path::new("damaged"), &bytes, &Options::default());
            }
        }
    }
}

#[test]
fn as_stored_reads_one_triangle_of_a_symmetric_generator_or_binary_file() {
    let folder = tempfile::tempdir().unwrap();
    let slv = folder.path().join("p.slv");
    solver::source::binary::write(&slv, &load("poisson2d:3x3").unwrap()).unwrap();
    for what in ["poisson2d:3x3", slv.to_str().unwrap()] {
        let loaded = load_with(what, &Options { as_stored: true, ..Options::default() }).unwrap();
        assert_eq!((loaded.matrix.nnz(), loaded.stored, loaded.symmetric), (21, 21, false), "{what}");
        assert_eq!(load(what).unwrap().matrix.nnz(), 33);
    }
}

#[test]
fn a_folder_does_not_hide_a_generator_of_the_same_name_and_is_refused_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = |what: &str| {
        let mut solver = crate::common::process::solver();
        solver.args(["info", "--matrix", what]).current_dir(folder.path()).output().unwrap()
    };
    std::fs::create_dir(folder.path().join("ecology1-like:scale=0.001")).unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    assert_eq!(run("ecology1-like:scale=0.001").status.code(), Some(0));
    let refused = run("mine");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("folder"));
}
