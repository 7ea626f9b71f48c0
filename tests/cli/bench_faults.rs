//! Mistakes in studies and in the arguments of `solver bench`, `spmv` and `spmm` end with exit code 2
//! before anything is measured.

use crate::bench::{STUDY, write};
use crate::common::process::{errors, refused, run, word};
use std::fs;

#[test]
fn faults_of_a_study_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let first = "[[sweep]]\nname = \"gpu\"";
    for (from, to, line, expected) in [
        ("[20, 30]", "[]", 10, "variable n has no values"),
        ("matrix = [\"poisson2d:{n}x{n}\"]", "matrix = [\"poisson2d:{m}x{n}\"]", 7, "variable m"),
        ("matrix = [\"poisson2d:{n}x{n}\"]", "matrix = []", 7, "matrix is empty"),
        ("backend = [\"rows\", \"sell\"]", "backend = []", 8, "backend is empty"),
        ("\"rows\", \"sell\"", "\"rows\", \"sell\", \"rows\"", 8, "backend has rows twice"),
        ("\"rows\", \"sell\"", "\"rows\", \"sel\"", 8, "no backend 'sel' on cpu"),
        ("\"rows\", \"sell\"", "\"rows\", \"bsr:blok=2\"", 8, "no parameter 'blok'"),
        ("threads = [1]", "threads = [0]", 9, "threads are at least 1"),
        ("samples = 3", "samples = 0", 11, "at least 1"),
        ("samples = 3", "samples = 3, dot = true, scaling = [1.0, 0.5]", 11, "use the scaling [1, 0]"),
        ("device = [\"cuda\"]", "device = [\"tpu\"]", 15, "the devices are cpu and cuda"),
        (first, "[[sweep]]\nname = \"sizes\"", 14, "another sweep has this name"),
        (
            "sweep = [\"sizes\"]\nwhere",
            "sweep = [\"size\"]\nwhere",
            30,
            "refers to sweep size, which is not there; did you mean sizes?",
        ),
        (
            "threads = [1]",
            "threads = [1]\nwhat = \"pagerank\"\nmethod = \"newton\"",
            11,
            "power, extrapolated, gauss-seidel",
        ),
        ("threads = [1]", "threads = [1]\nprecond = \"jacobi\"", 10, "only cg and minres have"),
        ("threads = [1]", "threads = [1]\nwhat = \"cg\"\nprecond = \"jacbi\"", 11, "did you mean jacobi?"),
        ("threads = [1]", "threads = [1]\nmax_iters = 9", 10, "only solves have iterations"),
        ("threads = [1]", "threads = [1]\nwhat = \"minres\"\nmax_iters = 0", 11, "max_iters is at least 1"),
        (
            "rows = \"n\"\ncolumns = \"backend\"\nplot",
            "rows = \"n\"\ncolums = \"backend\"\nplot",
            22,
            "colums",
        ),
        (
            "rows = \"n\"\ncolumns = \"backend\"\nplot",
            "rows = \"matix\"\ncolumns = \"backend\"\nplot",
            21,
            "did you mean matrix?",
        ),
        ("columns = \"backend\"\nplot", "columns = \"backnd\"\nplot", 22, "columns names \"backnd\""),
        ("columns = \"backend\"\nplot", "plot", 21, "columns is missing"),
        (
            "columns = \"backend\"\nplot",
            "columns = \"backend\"\npanels = \"k\"\nplot",
            23,
            "panels names \"k\"",
        ),
        ("where = { backend =", "where = { bakend =", 31, "did you mean backend?"),
        ("over = { backend =", "over = { blackend =", 34, "over names \"blackend\""),
        ("{ backend = \"sell\" }", "{ backend = \"sel\" }", 31, "which no case has; did you mean sell?"),
        ("over = { backend = \"rows\" }", "over = { backend = \"cols*\" }", 34, "over asks for backend"),
    ] {
        let text = STUDY.replacen(from, to, 1);
        assert_ne!(text, STUDY, "{from}");
        let study = write(folder.path(), "small.toml", &text);
        let out = folder.path().join("out");
        let message = refused(&["bench", &study, "-o", word(&out), "--device", "cpu"]);
        assert!(message.contains(expected), "{to}: {message}");
        assert!(message.contains(&format!("small.toml:{line}: ")), "{to} in line {line}: {message}");
        assert!(!out.exists(), "{to}");
    }
    for (text, expected) in [
        (STUDY.replacen("title = \"A small study\"", "", 1), "missing field `title`"),
        ("title = \"Nothing\"\nsweep = []\n".to_owned(), "sweep is empty"),
        (
            "title = \"Nothing\"\nsweep = [{ name = \"a\", matrix = [] }]\n".to_owned(),
            "in sweep a: matrix is empty",
        ),
    ] {
        let study = write(folder.path(), "small.toml", &text);
        let message = refused(&["bench", &study, "-o", word(&folder.path().join("out"))]);
        assert!(message.contains(expected) && message.contains("small.toml: "), "{message}");
    }
}

#[test]
fn faults_of_rivals_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (rival, expected) in [
        ("{ name = \"A\", command = [] }", "the command of rival A is empty"),
        ("{ name = \"solver\", command = [\"a\"] }", "another program has the name"),
        (
            "{ name = \"A\", device = \"cuda\", command = [\"a\"] }",
            "runs on cuda, but the devices of the sweep are cpu",
        ),
    ] {
        let text = STUDY.replacen("threads = [1]", &format!("threads = [1]\nrival = [{rival}]"), 1);
        let message = refused(&["bench", &write(folder.path(), "small.toml", &text)]);
        assert!(message.contains(expected) && message.contains("small.toml:10: "), "{message}");
    }
}

#[test]
fn what_is_wrong_with_an_option_is_named() {
    for (arguments, expected) in [
        (&["spmv", "poisson2d:9x9", "--device", "cpu", "--backend", "nonsense"][..], "no backend 'nonsense'"),
        (&["spmv", "poisson2d:9x9", "--device", "cpu", "--backend", "rows,sel"], "no backend 'sel'"),
        (
            &["spmm", "poisson2d:9x9", "--device", "cpu", "--backend", "rows,bsr:blok=2"],
            "no parameter 'blok'",
        ),
        (
            &["spmv", "poisson2d:9x9", "--device", "cpu", "--backend", ","],
            "a name is missing before or after a comma",
        ),
        (&["spmv", "poisson2d:9x9", "--precision", "mixed"], "f64 or f32"),
        (&["spmv", "poisson2d:9x9", "--rounds", "0"], "whole number from 1"),
        (&["spmv"], "no matrix is named"),
        (&["spmm", "poisson2d:9x9", "--columns", "0"], "whole number from 1 to 4096"),
        (&["spmm", "poisson2d:9x9", "--columns", "5000"], "whole number from 1 to 4096"),
        (&["bench"], "STUDY"),
        (&["bench", "cg", "--only", "gpuu"], "did you mean gpu? the sweeps of cg are cpu, gpu"),
        (
            &["bench", "nofile.toml"],
            "name a study (.toml), a record (.json), or one of auto, block-band, block-band-solves,",
        ),
        (&["bench", "serial-cuda"], "did you mean serial-vs-cuda?"),
        (&["bench", "Cargo.toml"], "Cargo.toml"),
        (&["bench", "--compare", "Cargo.toml", "Cargo.toml"], "Cargo.toml"),
    ] {
        let message = refused(arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn a_matrix_that_cannot_be_read_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let header = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n";
    let broken = write(folder.path(), "broken.mtx", &format!("{header}2 2 nan\n"));
    let missing = folder.path().join("missing.mtx");
    for matrix in [broken.as_str(), word(&missing), "poisson2d:0x0"] {
        for command in ["spmv", "spmm"] {
            let done = run(&[command, matrix, "--device", "cpu"]);
            assert_eq!(done.status.code(), Some(2), "{matrix}: {}", errors(&done));
            assert!(
                done.stdout.is_empty() && errors(&done).matches("error").count() == 1,
                "{}",
                errors(&done)
            );
        }
    }
    assert!(errors(&run(&["spmv", &broken, "--device", "cpu"])).contains("broken.mtx:4:"));
    // In a study, a matrix that is not on this machine is a failed case.
    let study = STUDY.replacen("poisson2d:{n}x{n}", "missing{n}.mtx", 1);
    let study = write(folder.path(), "small.toml", &study);
    let done = run(&["bench", &study, "-o", word(&folder.path().join("out")), "--device", "cpu"]);
    assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
    assert!(fs::read_to_string(folder.path().join("out/small.md")).unwrap().contains("missing20.mtx"));
}
