//! The studies of the project, which are part of the program, so that an installed program has them
//! without the project's folder.

use super::study::Study;
use crate::error::Result;
use std::path::Path;

/// Makes a list of names and texts of the files in `configs/bench`.
macro_rules! studies {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../configs/bench/", $name, ".toml")))),+]
    };
}

const STUDIES: &[(&str, &str)] = studies![
    "auto",
    "block-band",
    "block-band-solves",
    "cg",
    "end-to-end",
    "four-kernels",
    "markov",
    "multigrid",
    "pagerank",
    "real",
    "serial-vs-cuda",
    "seven-strategies",
    "spmm",
    "spmm-plans",
    "spmv",
];

/// Returns the names of the studies of the project, in the order of the alphabet.
pub fn studies() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

impl Study {
    /// Returns the study of the project that has this name; none if there is no such study.
    pub fn named(name: &str) -> Option<Result<Study>> {
        let (name, text) = STUDIES.iter().find(|(known, _)| *known == name)?;
        Some(Study::of(text, Path::new(&format!("configs/bench/{name}.toml"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_of_the_project_is_part_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/bench");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> =
            files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        assert_eq!(studies().collect::<Vec<_>>(), names);
        for name in names {
            assert_eq!(Study::named(&name).unwrap().unwrap().name, name);
        }
        assert!(Study::named("cgg").is_none());
    }
}
