//! Multigrid on the command line: coordinates of nodes and near-null vectors from files, and its levels in
//! reports and in `solver info`.

use crate::common::process::{cg, errors, file, refused, run, word};
use serde_json::Value;
use solver::precond::NearNull;
use solver::source::{load, npy};

const BODY: &str = "delaunay3d:n=800,unknowns=3";

/// Writes the matrix of [`BODY`] with its coordinates as files; returns the path of the matrix.
fn written(folder: &std::path::Path) -> String {
    let path = folder.join("body.mtx");
    let out = run(&["convert", BODY, word(&path)]);
    assert!(out.status.success(), "{out:?}");
    word(&path).to_owned()
}

#[test]
fn coordinates_next_to_the_matrix_or_named_and_their_modes_as_vectors_give_the_same_solve() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = written(folder.path());
    let solved = |args: &[&str]| {
        let (code, report) = cg(&[&["--matrix", matrix.as_str(), "--precond", "amg"], args].concat());
        assert_eq!(code, 0, "{report}");
        (report["iterations"].clone(), report["preconditioner"].as_str().unwrap().to_owned())
    };
    let next_to_it = solved(&[]);
    assert!(next_to_it.1.contains("amg:block=3 with 6 rigid-body modes"), "{}", next_to_it.1);
    let moved = folder.path().join("nodes.mtx");
    std::fs::rename(folder.path().join("body_coord.mtx"), &moved).unwrap();
    assert_eq!(solved(&["--coords", word(&moved)]), next_to_it);
    assert!(!solved(&[]).1.contains("rigid"));
    let modes = NearNull::rigid_body_modes(&load(BODY).unwrap().coordinates.unwrap()).unwrap();
    let vectors = folder.path().join("modes.npy");
    npy::write(&vectors, modes.vectors()).unwrap();
    let given = solved(&["--near-null", word(&vectors)]);
    assert_eq!(given.0, next_to_it.0);
    assert!(given.1.contains("6 given vectors"), "{}", given.1);
}

#[test]
fn coordinates_and_near_null_vectors_that_do_not_fit_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refused_with = |precond: &str, option: &str, text: &str| {
        let path = file(&folder, "numbers.txt", text);
        let typed = ["cg", "poisson2d:2x2", "--device", "cpu", "--precond", precond, option, word(&path)];
        refused(&typed)
    };
    for (option, text, told) in [
        ("--coords", "0 0\n1 0\n0 1\n", "3 nodes, which do not divide the 4 rows"),
        ("--coords", "0 0\n1 0\n0 1\n1 nan\n", "a finite number, found nan"),
        ("--coords", "0\n1\n2\n3\n", "a node has 1 coordinates; it must have 2 or 3"),
        ("--near-null", "1\n1\n1\n", "3 rows and the matrix 4"),
        ("--near-null", "1 0\n1 0\n1 0\n1 0\n", "column 2 (counted from 1) is zero"),
        ("--near-null", "1 2\n1 2\n1 2\n1 2\n", "column 2 (counted from 1) is a combination"),
    ] {
        let error = refused_with("amg", option, text);
        assert!(error.contains(told), "{option}: {error}");
    }
    let other = refused_with("jacobi", "--coords", "0 0\n1 0\n0 1\n1 1\n");
    assert!(other.contains("--coords") && other.contains("--precond amg"), "{other}");
}

#[test]
fn a_system_without_a_solution_is_named_and_projected_on_request() {
    let system = ["--matrix", "poisson2d:20x15,boundary=neumann", "--rhs", "random:3", "--precond", "amg"];
    let (code, report) = cg(&system);
    assert_eq!(code, 1, "{report}");
    let hint = report["hint"].as_str().unwrap();
    assert!(hint.contains("the constant vector") && hint.contains("--project"), "{hint}");
    let (code, report) = cg(&[&system[..], &["--project"]].concat());
    assert_eq!(code, 0, "{report}");
    assert!(report["note"].as_str().unwrap().contains("was removed"), "{report}");
}

/// Returns the numbers of a field of all levels that have it.
fn of_levels(multigrid: &Value, field: &str) -> Vec<f64> {
    multigrid["levels"].as_array().unwrap().iter().filter_map(|level| level[field].as_f64()).collect()
}

/// Runs a command that succeeds; returns what it prints, with single spaces between words.
fn printed(args: &[&str]) -> String {
    let out = run(args);
    assert!(out.status.success(), "{}", errors(&out));
    String::from_utf8(out.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_report_of_a_solve_has_the_levels_and_the_convergence_factor() {
    let args = ["--matrix", "poisson2d:60x50", "--precond", "amg:coarse=50", "--device", "cpu"];
    let (code, report) = cg(&args);
    assert_eq!(code, 0, "{report}");
    let multigrid = &report["multigrid"];
    let [rows, entries] = ["rows", "entries"].map(|field| of_levels(multigrid, field));
    assert_eq!((rows[0], entries[0]), (3000.0, report["nnz"].as_f64().unwrap()));
    assert!(rows.len() >= 3 && rows.is_sorted_by(|a, b| a > b) && *rows.last().unwrap() <= 50.0, "{rows:?}");
    // One unknown for each aggregate.
    assert_eq!(of_levels(multigrid, "aggregates"), rows[1..]);
    let last = rows.len() - 1;
    for field in ["aggregate_mean", "aggregate_largest", "eigenvalue_largest"] {
        assert_eq!(of_levels(multigrid, field).len(), last, "{field}");
    }
    assert!(of_levels(multigrid, "eigenvalue_largest").iter().all(|value| (1.0..3.0).contains(value)));
    assert!(of_levels(multigrid, "bytes").iter().all(|bytes| *bytes > 0.0));
    assert!(multigrid["levels"].as_array().unwrap().iter().all(|level| level["backend"] != ""));
    for (field, sizes) in [("operator_complexity", &entries), ("grid_complexity", &rows)] {
        let expected = sizes.iter().sum::<f64>() / sizes[0];
        assert!((multigrid[field].as_f64().unwrap() - expected).abs() < 1e-12, "{field}");
    }
    assert_eq!(multigrid["near_null"], "the constant vector");
    assert_eq!((&multigrid["constants"], &multigrid["unknowns"]), (&true.into(), &1.into()));
    // The residual before the first iteration is that of x = 0.
    let number = |field: &str| report[field].as_f64().unwrap();
    let reached = number("convergence_factor").powf(number("iterations"));
    assert!((reached / number("residual_recursive") - 1.0).abs() < 1e-6, "{report}");
    let text = printed(&[&["cg"], &args[..]].concat());
    let line = format!(
        "levels {}, operator complexity {:.2}, grid complexity {:.2}; {} iterations, convergence factor {:.2}",
        rows.len(),
        multigrid["operator_complexity"].as_f64().unwrap(),
        multigrid["grid_complexity"].as_f64().unwrap(),
        report["iterations"],
        number("convergence_factor")
    );
    assert!(text.contains(&line), "{line}: {text}");
}

#[test]
fn several_right_hand_sides_have_no_convergence_factor_and_other_preconditioners_no_levels() {
    let solved = |more: &[&str]| cg(&[&["--matrix", "poisson2d:30x30"], more].concat()).1;
    let several = solved(&["--precond", "amg", "--rhs-count", "2"]);
    assert!(several["multigrid"].is_object() && several.get("convergence_factor").is_none(), "{several}");
    let other = solved(&["--precond", "jacobi"]);
    assert!(other.get("multigrid").is_none() && other.get("convergence_factor").is_none(), "{other}");
    let text = printed(&["cg", "poisson2d:30x30", "--precond", "amg", "--rhs-count", "2"]);
    assert!(text.contains("grid complexity") && !text.contains("convergence factor"), "{text}");
}

#[test]
fn many_iterations_with_constants_have_the_hint_to_coordinates_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("beam.mtx");
    printed(&["convert", "delaunay3d:n=800,unknowns=3,shape=beam", word(&path)]);
    let hint = |more: &[&str]| {
        let (_, report) = cg(&[&["--precond", "amg"], more].concat());
        report["hint"].as_str().unwrap_or_default().to_owned()
    };
    assert!(!hint(&["--matrix", word(&path)]).contains("--coords"), "the coordinates are next to the matrix");
    let nodes = folder.path().join("nodes.mtx");
    std::fs::rename(folder.path().join("beam_coord.mtx"), &nodes).unwrap();
    let alone = hint(&["--matrix", word(&path)]);
    assert!(alone.contains("coordinates of the nodes") && alone.ends_with("--coords FILE"), "{alone}");
    let limited = hint(&["--matrix", word(&path), "--max-iters", "70"]);
    assert!(limited.contains("; if this is elasticity") && limited.ends_with("--coords FILE"), "{limited}");
    assert_eq!(hint(&["--matrix", word(&path), "--max-iters", "30"]).find("--coords"), None);
    assert_eq!(hint(&["--matrix", word(&path), "--coords", word(&nodes)]), "");
    // With one unknown per node, coordinates do not help.
    let plain = ["--matrix", "poisson2d:200x200", "--precond", "amg:levels=1"];
    let (_, report) = cg(&plain);
    assert!(report["iterations"].as_u64().unwrap() > 60 && report["hint"].is_null(), "{report}");
    let predicted = |more: &[&str]| {
        let out = printed(&[&["info", word(&path), "--precond", "amg", "--json"], more].concat());
        serde_json::from_str::<Value>(&out).unwrap()["hint"].clone()
    };
    assert!(predicted(&[]).as_str().unwrap().ends_with("--coords FILE"));
    assert!(predicted(&["--coords", word(&nodes)]).is_null());
}

#[test]
fn info_prints_the_levels_of_a_solve_and_predicts_its_iterations() {
    for (matrix, precond) in [
        ("poisson2d:60x50", "amg:coarse=50"),
        ("poisson2d:60x50,boundary=neumann", "amg"),
        ("delaunay2d:n=900,unknowns=2", "amg:coarse=100"),
    ] {
        let info: Value =
            serde_json::from_str(&printed(&["info", matrix, "--precond", precond, "--json"])).unwrap();
        let (_, report) =
            cg(&["--matrix", matrix, "--precond", precond, "--device", "cpu", "--rhs", "A*ones"]);
        assert_eq!(info["multigrid"], report["multigrid"], "{matrix}");
        assert_eq!(info["preconditioner"], report["preconditioner"]);
        assert_eq!((&info["rows"], &info["nnz"]), (&report["rows"], &report["nnz"]));
        let iterations = |value: &Value| value.as_f64().unwrap();
        let ratio = iterations(&info["iterations_predicted"]) / iterations(&report["iterations"]);
        assert!((0.5..2.0).contains(&ratio), "{matrix}: {} and {}", info["iterations_predicted"], report);
        let bytes: f64 = of_levels(&info["multigrid"], "bytes").iter().sum();
        assert_eq!(info["bytes"].as_f64(), Some(bytes));
        let seconds = |field: &str| info[field].as_f64().unwrap();
        let expected = seconds("seconds_setup")
            + iterations(&info["iterations_predicted"]) * seconds("seconds_per_iteration");
        assert!((seconds("seconds_predicted") / expected - 1.0).abs() < 1e-12);
        assert_eq!(info["rtol"], 1e-8);
    }
}

#[test]
fn info_prints_the_levels_as_a_table() {
    let text = printed(&["info", "poisson2d:60x50", "--precond", "amg:coarse=50"]);
    for told in [
        "near-null the constant vector",
        "prediction cg takes about",
        "level rows entries per row aggregates mean largest eigenvalue memory backend",
        "0 3,000 14,780 4.9 ",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let slow = printed(&["info", "poisson2d:60x50", "--precond", "amg:levels=1,degree=1"]);
    assert!(slow.contains("levels 1, operator complexity 1.00"), "{slow}");
    // A matrix with positive diagonal entries that is indefinite.
    let folder = tempfile::tempdir().unwrap();
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 1\n2 2 1\n2 1 5\n";
    let path = file(&folder, "indefinite.mtx", text);
    let failed = printed(&["info", word(&path), "--precond", "amg:coarse=1"]);
    assert!(failed.contains("prediction none: ") && failed.contains("positive definite"), "{failed}");
}

#[test]
fn info_refuses_what_has_no_levels_with_the_errors_of_cg() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = |diagonal: &str| {
        let text = format!(
            "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 2\n2 2 {diagonal}\n3 3 2\n1 2 1\n2 1 1\n"
        );
        file(&folder, &format!("{diagonal}.mtx"), &text)
    };
    let (negative, zero) = (matrix("-2"), matrix("0"));
    let skewed = file(
        &folder,
        "skewed.mtx",
        "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n2 2 2\n1 2 1\n",
    );
    for path in [&negative, &zero, &skewed] {
        let precond = ["--precond", "amg"];
        let by_cg = refused(&[&["cg", word(path), "--device", "cpu"], &precond[..]].concat());
        assert_eq!(refused(&[&["info", word(path)], &precond[..]].concat()), by_cg);
    }
    let other = refused(&["info", "poisson2d:9x9", "--precond", "jacobi"]);
    assert!(other.contains("--precond jacobi: it has no levels; use amg"), "{other}");
    let other = refused(&["info", "poisson2d:9x9", "--precond", "jacobi", "--coords", word(&negative)]);
    assert!(other.contains("--coords") && other.contains("--precond amg"), "{other}");
    let alone = refused(&["info", "poisson2d:9x9", "--coords", "nodes.mtx"]);
    assert!(alone.contains("--precond"), "{alone}");
    let both = refused(&["info", "poisson2d:9x9", "--precond", "amg", "--ranks", "2"]);
    assert!(both.contains("--ranks"), "{both}");
    let unknown = refused(&["info", "poisson2d:9x9", "--precond", "amg:corse=9"]);
    assert!(unknown.contains("coarse"), "{unknown}");
}
