//! Messages of the library name settings; only the command line names flags and commands.

use crate::common::harness::skip;
use crate::common::process::project;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of other programs: NVRTC and pip.
const FOREIGN: [&str; 3] = ["std", "gpu-architecture", "force-reinstall"];

const COMMANDS: [&str; 12] = [
    "cg", "minres", "pagerank", "markov", "info", "matrices", "fetch", "backends", "doctor", "plot",
    "convert", "tune",
];

/// Returns the lines of code of the library without comments, each with its location.
fn lines_of_the_library() -> Vec<(String, String)> {
    let mut folders: Vec<PathBuf> = vec![project("src")];
    if !folders[0].is_dir() {
        skip("the sources are not on this machine");
    }
    let mut lines = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let cli = path.ends_with("src/cli");
            // Unit tests and their helpers.
            if path.file_stem().is_some_and(|name| name == "tests") || path.ends_with("src/common") {
                continue;
            }
            if path.is_dir() && !cli {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                lines.extend(lines_of(&path));
            }
        }
    }
    assert!(lines.len() > 10_000, "{} lines", lines.len());
    lines
}

fn lines_of(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap();
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.map(|(at, line)| (format!("{}:{}", path.display(), at + 1), line.to_owned())).collect()
}

/// Returns the first flag in a line of code.
fn flag(line: &str) -> Option<&str> {
    line.match_indices("--").find_map(|(at, _)| {
        let before = line[..at].chars().next_back()?;
        let name = &line[at + 2..];
        let end = name.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(name.len());
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        let flag = begins && !before.is_alphanumeric() && before != '-';
        (flag && !FOREIGN.contains(&&name[..end])).then_some(&name[..end])
    })
}

#[test]
fn no_message_of_the_library_names_a_flag_of_the_command_line() {
    assert_eq!(flag("    hint: \"use --device cpu\","), Some("device"));
    let named: Vec<_> = lines_of_the_library().into_iter().filter(|(_, line)| flag(line).is_some()).collect();
    assert!(named.is_empty(), "{named:#?}");
}

#[test]
fn no_message_of_the_library_names_a_command() {
    let typed = COMMANDS.map(|command| format!("solver {command}"));
    let names = |line: &str| line.contains('"') && typed.iter().any(|typed| line.contains(typed));
    let named: Vec<_> = lines_of_the_library().into_iter().filter(|(_, line)| names(line)).collect();
    assert!(named.is_empty(), "{named:#?}");
}

#[test]
fn errors_do_not_import_from_the_crate() {
    let lines = lines_of_the_library().into_iter().filter(|(place, _)| place.contains("src/error/"));
    let imports: Vec<_> = lines.filter(|(_, line)| line.contains("crate::")).collect();
    assert!(imports.is_empty(), "{imports:#?}");
}
