//! The effect of each Cargo feature, in builds with and without it. This binary needs no feature and not the
//! program, and uses the test harness of the standard library.

#![allow(clippy::unwrap_used)] // Tests fail by panics.

use solver::backend::{REGISTRY, backend_names};
use solver::source::{load, parse};
use std::path::PathBuf;
use std::sync::OnceLock;

/// A test server, and archives for it.
#[cfg(feature = "fetch")]
#[allow(dead_code)] // Other test binaries use the remaining items.
#[path = "../common"]
mod common {
    pub mod archives;
    pub mod server;
    pub mod vectors;
}

/// Creates the cache folder of this process once, and returns it.
fn cache() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap().keep());
    solver::set_cache_folder(folder.clone());
    folder.clone()
}

#[test]
fn a_matrix_is_generated_and_parsed_by_every_build() {
    let made = load("poisson2d:20x10").unwrap();
    assert_eq!((made.matrix.rows(), made.symmetric), (200, true));
    let text = b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 -0.5\n";
    let parsed = parse("matrix.mtx".as_ref(), text, &Default::default()).unwrap();
    assert_eq!(parsed.matrix.get(1, 1), Some(-0.5));
}

#[test]
fn backends_of_other_crates_need_their_feature() {
    for (name, built) in [("sprs", cfg!(feature = "sprs")), ("nalgebra", cfg!(feature = "nalgebra"))] {
        assert_eq!(backend_names().any(|known| known == name), built, "{name}");
    }
    assert!(REGISTRY.iter().any(|entry| entry.name == "cusparse"), "a missing driver is found at run time");
}

#[test]
fn a_missing_catalog_matrix_is_an_error_that_names_its_imitation() {
    cache();
    let error = load("F1").unwrap_err().to_string();
    assert!(error.contains("is not on this machine") && error.contains("the stand-in F1-like"), "{error}");
    assert_eq!(error.contains("feature fetch is off"), !cfg!(feature = "fetch"), "{error}");
}

#[cfg(feature = "fetch")]
#[test]
fn one_call_fetches_a_catalog_matrix_at_its_first_use_and_opens_it() {
    use common::{archives, server};
    use solver::engine::Matrix;
    use solver::source::{Options, fetch::Settings};
    use std::sync::atomic::Ordering;
    let archive = archives::tar_gz("1138_bus", &archives::bus(8.0, 3000));
    let server = server::Server::new(move |request| server::file(request, &archive, "\"one\""));
    let folder = cache();
    let mut settings = Settings::new(None).unwrap();
    settings.mirror = Some(server.url.clone());
    let mut bytes = 0;
    let options = Options::default();
    let a = Matrix::fetch_with("1138_bus", &options, &settings, &mut |have, _| bytes = have).unwrap();
    assert_eq!((a.rows(), a.nnz(), a.name()), (1138, 4054, "1138_bus"));
    let requests = server.requests().len();
    assert!(bytes > 0 && requests > 0);
    assert_eq!(Matrix::fetch("1138_bus").unwrap().csr(), a.csr());
    assert_eq!(Matrix::fetch("poisson2d:3x3").unwrap().rows(), 9);
    assert_eq!(server.requests().len(), requests, "the matrix is on this machine already");
    settings.stop.store(true, Ordering::Relaxed);
    let error = Matrix::fetch_with("F1", &options, &settings, &mut |_, _| ()).unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
    assert!(Matrix::fetch("nonesuch").unwrap_err().to_string().contains("no matrix 'nonesuch'"));
    std::fs::remove_dir_all(folder.join("matrices")).unwrap();
}
