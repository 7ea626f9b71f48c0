//! What a solve is told before it begins: configuration files and dry runs.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::process::{cg, errors, file, refused, run, word};

#[test]
fn a_configuration_file_gives_options_and_what_is_typed_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "c.toml", "matrix = \"poisson2d:12x12\"\nmax-iters = 3\nprecond = \"jacobi\"\n");
    let (code, report) = cg(&["--config", word(&path)]);
    assert_eq!((code, report["iterations"].as_u64()), (1, Some(3)));
    assert_eq!(report["preconditioner"], "jacobi");
    let (_, report) = cg(&["--config", word(&path), "--max-iters", "2"]);
    assert_eq!(report["iterations"], 2);
    let path = file(&folder, "json.toml", "matrix = \"poisson2d:12x12\"\njson = true\n");
    let done = run(&["cg", "--device", "cpu", "--config", word(&path), "--json=false"]);
    assert!(
        String::from_utf8_lossy(&done.stdout).starts_with("matrix "),
        "what is typed wins for switches too"
    );
    let path = file(&folder, "wrong.toml", "matrix = \"poisson2d:12x12\"\nbakend = \"rows\"\n");
    let message = refused(&["cg", "--config", word(&path)]);
    assert!(message.contains("bakend") && message.contains("backend"), "{message}");
}

#[test]
fn the_configurations_that_we_ship_are_valid() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/configs")).unwrap() {
        let path = entry.unwrap().path();
        let done = run(&["cg", "--device", "cpu", "--dry-run", "--config", word(&path)]);
        assert_eq!(done.status.code(), Some(0), "{}: {}", path.display(), errors(&done));
    }
}

#[test]
fn a_dry_run_prints_the_plan_and_refuses_what_the_run_would() {
    let message = refused(&["cg", "--device", "cpu", "--matrix", "nonsense", "--dry-run"]);
    assert!(message.contains("no matrix 'nonsense'"), "{message}");
    let done =
        run(&["cg", "--device", "cpu", "--matrix", "poisson2d:9x9", "--precision", "f32", "--dry-run"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
    for part in ["poisson2d:9x9", "auto", "f32", "1e-5"] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
}
