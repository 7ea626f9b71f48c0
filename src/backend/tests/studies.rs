//! Checks that the strategies of studies are kept in separate folders, outside the code of the product.

use crate::backend::{Entry, REGISTRY, auto, cuda};
use crate::common::harness::present;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The first word of `from` in the registry for each study.
const STUDIES: [&str; 4] = ["four-kernels", "seven-strategies", "block-band", "spmm"];

fn is_of_a_study(entry: &Entry) -> bool {
    STUDIES.iter().any(|study| entry.from.starts_with(study))
}

/// Returns a folder of the project.
fn folder(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    present("SOLVER_REQUIRE_SOURCES", fs::metadata(root.join("src")));
    root.join(path)
}

/// Returns the stems and paths of the files of a folder with this extension, without subfolders.
fn files(folder: &Path, ending: &str) -> Vec<(String, PathBuf)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.is_file() && path.extension().is_some_and(|found| found == ending));
    files.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

#[test]
fn every_kernel_has_a_launcher_with_its_stem_in_the_matching_folder() {
    for (kernels, launchers, least) in [
        ("kernels", "src/backend/cuda", 6),
        ("kernels/studies", "src/backend/cuda/studies", 6),
        ("kernels/sell", "src/backend/cuda/sell", 1),
        ("kernels/bsr", "src/backend/cuda/bsr", 1),
    ] {
        let (kernels, launchers) = (files(&folder(kernels), "cu"), folder(launchers));
        assert!(kernels.len() >= least, "{} in {}", kernels.len(), launchers.display());
        for (stem, kernel) in kernels {
            let launcher = [launchers.join(format!("{stem}.rs")), launchers.join(&stem).join("mod.rs")]
                .into_iter()
                .find(|path| path.exists())
                .unwrap_or_else(|| panic!("{} has no launcher", kernel.display()));
            let text = fs::read_to_string(launcher).unwrap();
            assert!(text.contains(&format!("{stem}.cu\"")), "{stem}.rs does not include {stem}.cu");
        }
    }
}

#[test]
fn files_outside_the_studies_use_none_of_their_kernels_and_modules() {
    for device in ["src/backend/cpu", "src/backend/cuda"] {
        for (stem, path) in files(&folder(device), "rs") {
            let text = fs::read_to_string(&path).unwrap();
            // `mod.rs` declares the folder and lists all kernels.
            let needs_studies = text.contains("studies::") || text.contains("kernels/studies/");
            assert!(stem == "mod" || !needs_studies, "{}", path.display());
        }
    }
}

#[test]
fn auto_chooses_hybrid_and_no_other_strategy_of_a_study() {
    let of_studies = |device: &str| -> BTreeSet<&str> {
        let entries = REGISTRY.iter().filter(|entry| entry.device() == device && is_of_a_study(entry));
        entries.map(|entry| entry.name).collect()
    };
    let chosen = |device, choices: &[&'static str]| -> Vec<&str> {
        let studies = of_studies(device);
        assert!(studies.len() > 5, "{studies:?}");
        choices.iter().copied().filter(|choice| studies.contains(choice)).collect()
    };
    assert_eq!(chosen("cpu", auto::CHOICES), [""; 0]);
    assert_eq!(chosen("cuda", cuda::auto::CHOICES), ["hybrid"]);
}

#[test]
fn registry_rows_of_studies_on_gpus_come_last() {
    let on_gpus: Vec<bool> =
        REGISTRY.iter().filter(|entry| entry.device() == "cuda").map(is_of_a_study).collect();
    assert!(on_gpus.is_sorted(), "{on_gpus:?}");
}
