//! What a solve is told before it begins: configuration files and dry runs.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::process::{cg, errors, file, refused, run, solver, word};

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
fn the_configuration_of_ecology1_fetches_it_and_names_its_stand_in() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/configs/cg-ecology1.toml");
    let folder = tempfile::tempdir().unwrap();
    let nowhere = solver()
        .args(["cg", "--device", "cpu", "--config", path])
        .env("SOLVER_CACHE", folder.path())
        .env("SOLVER_MIRROR", "http://127.0.0.1:9")
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(errors(&nowhere).contains("--matrix ecology1-like"), "{}", errors(&nowhere));
    let (code, report) = cg(&["--config", path, "--matrix", "ecology1-like:scale=0.01"]);
    assert_eq!((code, &report["preconditioner"]), (0, &"jacobi".into()));
}

#[test]
fn a_dry_run_estimates_the_memory_where_sizes_are_known() {
    let memory = |args: &[&str]| {
        let done = run(&[&["cg", "--device", "cpu", "--dry-run", "--matrix"], args].concat());
        assert_eq!(done.status.code(), Some(0), "{}", errors(&done));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("memory ")).unwrap().trim().to_owned()
    };
    // 4,996,000 entries of 12 bytes and 1,000,001 offsets of 4; 6 vectors on the host and 4 of the method.
    let matrix = "about 207.9 MB (matrix 64.0 MB, operator 64.0 MB or less, vectors 80.0 MB)";
    assert_eq!(memory(&["poisson2d:1000x1000"]), matrix);
    let narrow = "about 215.9 MB (matrix 107.9 MB, operator 44.0 MB or less, vectors 64.0 MB)";
    assert_eq!(memory(&["poisson2d:1000x1000", "--precision", "f32"]), narrow);
    // The matrix of 100 rows has 460 entries; cg has a vector more with a preconditioner.
    let with = |precond: &str| memory(&["poisson2d:10x10", "--precond", precond]);
    for (precond, named) in [
        ("jacobi", "preconditioner jacobi 800 bytes"),
        ("block-jacobi:block=5", "preconditioner block-jacobi 6.4 kB"),
        ("chebyshev", "preconditioner chebyshev 2.4 kB"),
        ("ic0", "preconditioner ic0 5.9 kB"),
        ("ssor", "preconditioner ssor 5.9 kB"),
    ] {
        let told = with(precond);
        assert!(told.contains(&format!(" or less, {named}, vectors 8.8 kB)")), "{told}");
    }
    assert!(with("none").starts_with("about 19.8 kB (") && with("jacobi").starts_with("about 21.4 kB ("));
    assert!(memory(&["ecology1", "--fetch"]).starts_with("about 207.9 MB"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/data/grid3x3.mtx");
    for unknown in [file, "rmat:scale=5,edges=20"] {
        assert_eq!(memory(&[unknown]), "known after the matrix is read");
    }
    let message = refused(&["cg", "--device", "cpu", "--dry-run", "--matrix", "poisson2d:0x5"]);
    assert!(message.contains("'0' is not a positive number"), "{message}");
}

#[test]
fn sizes_that_are_told_before_a_matrix_is_made_are_those_that_it_has() {
    for what in [
        "poisson2d:7x5",
        "poisson2d:1x9,boundary=neumann",
        "poisson3d:3x1x4",
        "poisson3d:3x4x2,points=27",
        "hex27:2x3x4,dof=3",
        "elasticity3d:3x2x4",
        "F1-like:scale=0.02",
        "ecology1-like:scale=0.02",
    ] {
        let (rows, entries) = solver::source::size(what).unwrap().unwrap();
        let matrix = solver::source::load(what).unwrap().matrix;
        // Small ones have more surface for their volume.
        let near = |told: u64, has: usize| (told as f64 - has as f64).abs() <= 0.25 * has as f64;
        let like = what.contains("-like");
        let holds = |told: u64, has: usize| if like { near(told, has) } else { told == has as u64 };
        let has = (matrix.rows(), matrix.nnz());
        assert!(holds(rows, has.0) && holds(entries, has.1), "{what}: {rows}, {entries}, not {has:?}");
    }
    assert_eq!(solver::source::size("rmat:scale=5,edges=20").unwrap(), None);
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
