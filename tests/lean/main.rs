//! What each Cargo feature adds, in builds with it and without it. This binary needs no feature and no program, and has the
//! harness of the standard library.

#![allow(clippy::unwrap_used)] // Tests fail by panics.

use solver::backend::{REGISTRY, backend_names};
use solver::source::{load, parse};

#[test]
fn a_matrix_is_generated_and_parsed_by_every_build() {
    let made = load("poisson2d:20x10").unwrap();
    assert_eq!((made.matrix.rows(), made.symmetric), (200, true));
    let text = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 -0.5\n";
    let parsed = parse("matrix.mtx".as_ref(), text, &Default::default()).unwrap();
    assert_eq!(parsed.matrix.get(1, 1), Some(-0.5));
}

#[test]
fn backends_that_measure_another_crate_need_its_feature() {
    for (name, built) in [("sprs", cfg!(feature = "sprs")), ("nalgebra", cfg!(feature = "nalgebra"))] {
        assert_eq!(backend_names().any(|known| known == name), built, "{name}");
    }
    assert!(REGISTRY.iter().any(|entry| entry.name == "cusparse"), "a missing driver is found at run time");
}

#[test]
fn a_matrix_that_is_not_here_is_an_error_that_says_how_to_get_it() {
    let folder = std::env::temp_dir().join(format!("solver-lean-{}", std::process::id()));
    solver::set_cache_folder(folder);
    let error = load("F1").unwrap_err().to_string();
    assert!(error.contains("has not been fetched") && error.contains("solver fetch F1"), "{error}");
    assert_eq!(error.contains("feature fetch is off"), !cfg!(feature = "fetch"), "{error}");
}
