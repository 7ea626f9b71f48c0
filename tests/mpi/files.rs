//! Vectors, answers and checkpoints in files: each rank keeps its own rows only.

use super::launcher::{messages, over};
use crate::common::jobs::Command as Solve;
use crate::common::places::{Place, check};
use crate::common::process::{errors, mpirun, program, run, word};
use solver::source::{read_vectors, write_vectors};
use std::fs;
use std::process::Command;

/// A grid of 12 x 11 nodes.
const GRID: [&str; 2] = ["--matrix", "poisson2d:12x11"];
/// Its nodes.
const NODES: usize = 132;

/// Checks that the same solve writes the same numbers in one process and over ranks, to within
/// a share of the largest.
fn check_like_one_process(args: &[&str], most: f64) {
    let args = [&["cg"], args].concat();
    for file in ["npy", "txt", "mtx", "txt.gz", "mtx.gz"] {
        for partition in ["entries", "coordinates"] {
            let over = &["--partition", partition];
            check(&Solve { args: &args, over, file, within: Some(most) }, [Place::Processes(3)]);
        }
    }
}

#[test]
fn files_of_vectors_over_ranks_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let values = |k: usize| (0..NODES * k).map(|i| (i as f64).sin()).collect::<Vec<_>>();
    for name in ["b.npy", "b.txt", "b.mtx", "b.txt.gz"] {
        for k in [1, 3] {
            let file = folder.path().join(name);
            write_vectors(&file, &values(k), k).unwrap();
            let args = [&GRID[..], &["--rhs", word(&file), "--rtol", "1e-12"]].concat();
            check_like_one_process(&args, 1e-9);
        }
    }
}

#[test]
fn an_array_in_fortran_order_is_read_by_rows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.npy");
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': True, 'shape': ({NODES}, 2), }}").into_bytes();
    header.resize(117, b' ');
    header.push(b'\n');
    let mut bytes = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], &header].concat();
    (0..2 * NODES).for_each(|i| bytes.extend(((i as f64) - 7.5).to_le_bytes()));
    fs::write(&file, bytes).unwrap();
    let args = [&GRID[..], &["--rhs", word(&file), "--rtol", "1e-12"]].concat();
    check_like_one_process(&args, 5e-10);
}

#[test]
fn a_faulty_vector_has_the_error_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.txt");
    for text in
        ["1\n".repeat(NODES - 1), "1\n".repeat(NODES - 1) + "nan\n", "1 2\n3\n".to_owned(), String::new()]
    {
        fs::write(&file, text).unwrap();
        for option in ["--rhs", "--x0"] {
            let args = [&["cg"], &GRID[..], &[option, word(&file)]].concat();
            let [single, several] = [run(&args), over(3, &args).output().unwrap()]
                .map(|done| (done.status.code(), messages(&done)));
            assert_eq!(single, several);
            assert_eq!((single.0, single.1.len()), (Some(2), 1), "{single:?}");
        }
    }
}

/// Kilobytes of data that a rank of the solve below may have: about 150 MB are its own rows.
const KILOBYTES: u32 = 260_000;

#[test]
fn no_rank_has_a_whole_vector() {
    let folder = tempfile::tempdir().unwrap();
    let [b, x, saved] = ["b.npy", "x.npy", "saved"].map(|name| folder.path().join(name));
    // 90,000 rows of 128 columns are 92 MB. No two columns and no two neighbouring rows are equal.
    let numbers: Vec<f64> = (0..90_000 * 128).map(|i| 1.0 + (i % 7919) as f64 / 7919.0).collect();
    write_vectors(&b, &numbers, 128).unwrap();
    let files = ["--rhs", word(&b), "--output", word(&x), "--checkpoint", word(&saved)];
    let limit = format!("ulimit -d {KILOBYTES}; exec \"$0\" \"$@\"");
    let resume = ["--resume", word(&saved)];
    let solve = ["cg", "--matrix", "poisson2d:300x300", "--threads", "1", "--max-iters"];
    for (iterations, resume) in [("2", &[][..]), ("4", &resume)] {
        let mut command = mpirun();
        command.args(["-n", "6", "sh", "-c", &limit]).arg(program()).args(solve).arg(iterations);
        let done = command.args(files).args(resume).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{}", errors(&done));
        assert!(saved.is_file());
        let alone = folder.path().join("alone.npy");
        let mut command = Command::new(program());
        command.args(solve).args([iterations, "--rhs", word(&b), "--output", word(&alone)]);
        assert_eq!(command.output().unwrap().status.code(), Some(1));
        let [expected, got] = [&alone, &x].map(|path| read_vectors(path).unwrap().values().to_vec());
        let far = |(expected, got): (&f64, &f64)| (expected - got).abs() > 1e-9 * expected.abs();
        assert_eq!(expected.len(), got.len());
        assert_eq!(expected.iter().zip(&got).position(far), None, "after {iterations} iterations");
    }
}
