//! Solves over ranks whose rows are divided by coordinates or by the graph of the matrix.

use super::launcher::{messages, over, solve};
use crate::common::jobs::Command;
use crate::common::places::{Place, check};
use crate::common::process::{cg, errors, run, word};
use solver::source::write_vectors;
use std::fs;
use std::path::Path;

const MESH: &str = "hex27:9x8x7,dof=3";

/// The partitions of this build that need no file.
fn partitions() -> &'static [&'static str] {
    if cfg!(feature = "metis") { &["coordinates", "graph"] } else { &["coordinates"] }
}

/// Writes a right-hand side or a start of the mesh.
fn vector(path: &Path, columns: usize) {
    let values: Vec<f64> = (0..1512 * columns).map(|i| (i as f64 * 0.37).sin()).collect();
    write_vectors(path, &values, columns).unwrap();
}

#[test]
fn files_are_in_the_order_of_the_matrix_over_two_to_four_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let [b, x0, many] = ["b.npy", "x0.npy", "many.npy"].map(|name| folder.path().join(name));
    vector(&b, 1);
    vector(&x0, 1);
    let args = ["cg", "--matrix", MESH, "--rhs", word(&b), "--x0", word(&x0), "--precond", "block-jacobi"];
    vector(&many, 3);
    let columns = ["cg", "--matrix", MESH, "--rhs", word(&many)];
    for partition in partitions() {
        let (over, within) = (&["--partition", *partition][..], Some(1e-6));
        check(&Command { over, within, ..Command::new(&args) }, (2..=4).map(Place::Processes));
        check(&Command { over, within, ..Command::new(&columns) }, [Place::Processes(3)]);
    }
}

#[test]
fn each_rank_reads_its_rows_and_moves_them_by_the_coordinates_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let points = folder.path().join("points.npy");
    let values: Vec<f64> =
        (0..504).flat_map(|node| [node % 9, node / 9 % 8, node / 72].map(f64::from)).collect();
    write_vectors(&points, &values, 3).unwrap();
    let by_file = format!("coordinates:{}", word(&points));
    let output = folder.path().join("x.npy");
    let solved = |matrix: &str, partition: &str| {
        let args =
            ["--matrix", matrix, "--partition", partition, "--rhs", "random:5", "--output", word(&output)];
        let (code, report) = solve(3, &[&["minres", "--precond", "jacobi"], &args[..]].concat());
        assert_eq!(code, 0, "{report}");
        (fs::read(&output).unwrap(), report["iterations"].clone())
    };
    let expected = solved(MESH, "coordinates");
    // The same bits in every run.
    assert_eq!(solved(MESH, "coordinates"), expected);
    for name in ["mesh.slv", "mesh.mtx"] {
        let file = folder.path().join(name);
        let done = run(&["convert", MESH, word(&file)]);
        assert!(done.status.success(), "{}", errors(&done));
        assert_eq!(solved(word(&file), &by_file), expected, "{name}");
    }
}

#[test]
fn a_checkpoint_is_resumed_by_one_process_and_over_other_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let [checkpoint, kept] = ["p.ckpt", "kept.ckpt"].map(|name| folder.path().join(name));
    let matrix = ["--matrix", "poisson2d:120x110", "--precond", "jacobi"];
    let (code, whole) = cg(&matrix);
    assert_eq!(code, 0);
    let close = |report: &serde_json::Value| {
        let [got, wanted] = [report, &whole].map(|report| report["iterations"].as_f64().unwrap());
        assert!((got - wanted).abs() <= 0.01 * wanted, "{got} for {wanted}");
    };
    for partition in partitions() {
        let first = ["--partition", partition, "--checkpoint", word(&checkpoint), "--max-iters", "60"];
        let (code, report) = solve(3, &[&["cg"], &matrix[..], &first].concat());
        assert_eq!((code, &report["iterations"]), (1, &60.into()));
        fs::copy(&checkpoint, &kept).unwrap();
        let (code, report) = cg(&[&matrix[..], &["--resume", word(&kept)]].concat());
        assert_eq!(code, 0);
        close(&report);
        for other in ["entries", "coordinates"] {
            let more = ["--partition", other, "--resume", word(&kept)];
            let (code, report) = solve(2, &[&["cg"], &matrix[..], &more].concat());
            assert_eq!(code, 0, "{report}");
            close(&report);
        }
    }
    // The factors of other parts are another preconditioner.
    let ic0 = ["--matrix", "poisson2d:60x60", "--precond", "ic0"];
    let first = ["--partition", "coordinates", "--checkpoint", word(&checkpoint), "--max-iters", "5"];
    let (code, _) = solve(2, &[&["cg"], &ic0[..], &first].concat());
    assert_eq!(code, 1);
    let done = over(2, &[&["cg"], &ic0[..], &["--resume", word(&checkpoint)]].concat()).output().unwrap();
    assert!(done.status.code() == Some(2) && errors(&done).contains("another run"), "{}", errors(&done));
}

#[test]
fn wrong_partitions_are_refused_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_vectors(path("few.npy"), &[0.5; 20], 2).unwrap();
    let mut points = vec![0.5; 3024];
    points[7] = f64::INFINITY;
    write_vectors(path("infinite.npy"), &points, 2).unwrap();
    let file = |name: &str| format!("coordinates:{}", word(&path(name)));
    let slv = path("mesh.slv");
    let done = run(&["convert", MESH, word(&slv)]);
    assert!(done.status.success(), "{}", errors(&done));
    let mut all = vec![
        (MESH, file("missing.npy"), "no such file of coordinates"),
        (MESH, file("few.npy"), "it is 10 x 2, but the matrix has 1,512 rows"),
        (MESH, file("infinite.npy"), "row 4, column 2 (counted from 1) is inf"),
        (MESH, "boxes".to_owned(), "the partitions are entries, coordinates, coordinates:FILE and graph"),
        (word(&slv), "coordinates".to_owned(), "name a file with them, coordinates:FILE"),
    ];
    if !cfg!(feature = "metis") {
        all.push((MESH, "graph".to_owned(), "with the cargo feature metis"));
    }
    for (matrix, partition, expected) in all {
        let done = over(3, &["cg", "--matrix", matrix, "--partition", &partition]).output().unwrap();
        let all = messages(&done);
        assert_eq!((done.status.code(), all.len()), (Some(2), 1), "{partition}: {}", errors(&done));
        assert!(errors(&done).contains(expected), "{partition}: {}", errors(&done));
    }
    // One process has all rows, with or without a launcher.
    let args = ["cg", MESH, "--partition", "coordinates"];
    for done in [over(1, &args).output().unwrap(), run(&args)] {
        assert_eq!(done.status.code(), Some(2));
        assert!(errors(&done).contains("the solve has one device"), "{}", errors(&done));
    }
}

/// Writes the matrix of a grid whose rows and columns are in no good order.
#[cfg(feature = "metis")]
fn shuffled(path: &Path) {
    let side = 60_usize;
    let number = |row: usize| row * 1009 % (side * side) + 1;
    let mut entries = Vec::new();
    for row in 0..side * side {
        entries.push((row, row, 4));
        entries.extend((row % side > 0).then(|| (row, row - 1, -1)));
        entries.extend((row >= side).then(|| (row, row - side, -1)));
    }
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n3600 3600 {}\n", entries.len());
    for (row, column, value) in entries {
        let [row, column] = [number(row), number(column)];
        text.push_str(&format!("{} {} {value}\n", row.max(column), row.min(column)));
    }
    fs::write(path, text).unwrap();
}

#[cfg(feature = "metis")]
#[test]
fn the_graph_of_a_shuffled_grid_has_parts_that_exchange_few_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = folder.path().join("shuffled.mtx");
    shuffled(&matrix);
    let received = |partition: &str| {
        let done = run(&["info", word(&matrix), "--ranks", "4", "--partition", partition, "--json"]);
        let prediction: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(prediction["partition"], partition);
        let parts = prediction["parts"].as_array().unwrap();
        parts.iter().map(|part| part["received"].as_u64().unwrap()).sum::<u64>()
    };
    let [entries, by_graph] = ["entries", "graph"].map(received);
    // Two lines of 60 points cut a grid into four squares.
    assert!(entries > 5000 && by_graph < 320, "{entries}, {by_graph}");
    let args = ["cg", "--matrix", word(&matrix), "--rhs", "random:2", "--rtol", "1e-10"];
    let (over, within) = (&["--partition", "graph"][..], Some(1e-8));
    check(&Command { over, within, ..Command::new(&args) }, [Place::Processes(4)]);
}

#[test]
fn the_exchange_of_boxes_is_predicted_and_named_by_the_report() {
    let done = run(&["info", "poisson3d:16x16x16", "--ranks", "8", "--partition", "coordinates", "--json"]);
    let prediction: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    for part in prediction["parts"].as_array().unwrap() {
        assert_eq!((&part["received"], &part["neighbours"]), (&192.into(), &3.into()));
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cg.toml");
    fs::write(&config, "partition = \"coordinates\"\n").unwrap();
    let (code, report) = solve(4, &["cg", "--matrix", "poisson3d:16x16x16", "--config", word(&config)]);
    let device = report["device"].as_str().unwrap();
    assert!(code == 0 && device.starts_with("4 ranks by coordinates, each cpu"), "{device}");
    let parts = &report["parts"];
    let found = ["ranks", "partition", "rows_most", "neighbours_most", "halo_bytes_most", "halo_bytes"];
    let expected = serde_json::json!([4, "coordinates", 1024, 2, 2048, 8192]);
    assert_eq!(serde_json::json!(found.map(|field| &parts[field])), expected, "{parts}");
}
