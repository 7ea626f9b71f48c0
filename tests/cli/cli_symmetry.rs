//! Matrices that are symmetric, symmetric to rounding, or not symmetric.

use crate::common::process::{cg, errors, file, refused, run, solve, word};

/// A tridiagonal matrix with two pairs that differ in the last digit, and a tiny entry without a partner.
const ROUNDED: &str = "%%MatrixMarket matrix coordinate real general\n4 4 11\n1 1 2\n2 2 2\n3 3 2\n4 4 2\n\
    1 2 -0.9999999999999999\n2 1 -0.9999999999999994\n2 3 -1\n3 2 -1\n3 4 -1.0000000000000002\n4 3 -1\n1 4 1e-15\n";
const UNSYMMETRIC: &str =
    "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n2 2 4\n3 3 4\n1 2 1\n2 1 1.00000001\n";

#[test]
fn a_matrix_that_is_symmetric_to_rounding_is_solved_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "rounded.mtx", ROUNDED);
    for method in ["cg", "minres"] {
        let (code, report) = solve(method, &["--matrix", word(&path)]);
        assert_eq!(code, 0, "{report}");
        assert_eq!(
            report["note"],
            "A is symmetric to rounding: 3 pairs differ, by at most 5e-16 of their size, first a(1,2) (counted from 1)"
        );
    }
    let text = String::from_utf8(run(&["cg", "--device", "cpu", "--matrix", word(&path)]).stdout).unwrap();
    assert!(text.contains("\nnote      A is symmetric to rounding: 3 pairs"), "{text}");
    assert!(cg(&["--matrix", "poisson2d:9x9"]).1["note"].is_null());
}

#[test]
fn the_note_names_a_preconditioner_that_uses_one_triangle() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "rounded.mtx", ROUNDED);
    for (precond, lower) in [
        ("none", false),
        ("jacobi", false),
        ("chebyshev", false),
        ("block-jacobi:block=2", true),
        ("ic0", true),
        ("ssor", true),
    ] {
        let (code, report) = cg(&["--matrix", word(&path), "--precond", precond]);
        let note = report["note"].as_str().unwrap();
        let name = precond.split(':').next().unwrap();
        assert_eq!(code, 0, "{report}");
        let has_note = note
            .contains(&format!("{name} uses the lower triangle, and the residual is of the whole matrix"));
        assert_eq!(has_note, lower, "{note}");
    }
}

#[test]
fn an_unsymmetric_matrix_is_rejected_with_suitable_methods() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "not.mtx", UNSYMMETRIC);
    for method in ["cg", "minres"] {
        let message = refused(&[method, "--matrix", word(&path)]);
        assert!(message.contains("a(1,2) = 1 but a(2,1) is 1.00000001 (counted from 1)"), "{message}");
        assert!(message.contains("GMRES or BiCGSTAB: scipy.sparse.linalg.gmres"), "{message}");
    }
    let (_, report) = cg(&["--matrix", word(&path), "--assume-symmetric"]);
    assert!(report["note"].as_str().unwrap().contains("was not checked for symmetry"), "{report}");
    let flat = file(&folder, "flat.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n");
    let message = refused(&["cg", "--matrix", word(&flat)]);
    assert!(message.contains("2 x 3") && message.contains("LSQR or LSMR"), "{message}");
    let message = refused(&["markov", "--matrix", word(&flat)]);
    assert!(message.contains("2 x 3") && !message.contains("LSQR"), "{message}");
}

#[test]
fn info_distinguishes_exact_symmetry_from_symmetry_to_rounding() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "rounded.mtx", ROUNDED);
    let done = run(&["info", "--matrix", word(&path), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["symmetric"], false, "{}", errors(&done));
    let rounding = &json["symmetric_to_rounding"];
    assert_eq!((&rounding["pairs"], &rounding["row"], &rounding["col"]), (&3.into(), &1.into(), &4.into()));
    assert_eq!((&json["first_asymmetry"]["row"], &json["first_asymmetry"]["col"]), (&1.into(), &2.into()));
    let text = String::from_utf8(run(&["info", "--matrix", word(&path)]).stdout).unwrap();
    assert!(
        text.contains("symmetric    to rounding: 3 pairs differ, by at most 5e-16 of their size"),
        "{text}"
    );
    assert!(text.contains("cg and minres take it as it is") && text.contains("try solver cg"), "{text}");
    let not = file(&folder, "not.mtx", UNSYMMETRIC);
    let text = String::from_utf8(run(&["info", "--matrix", word(&not)]).stdout).unwrap();
    assert!(
        text.contains("Not for cg or minres. Use a method for unsymmetric systems, such as GMRES"),
        "{text}"
    );
}
