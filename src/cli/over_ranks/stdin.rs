//! The names of standard input.

use crate::source::STDIN;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that need not be links.
const NAMES: [&str; 3] = [STDIN, "/dev/stdin", "/dev/fd/0"];
/// Limit for the links followed from one path; Linux has the same limit.
const MOST_LINKS: usize = 40;

/// Returns whether a path names standard input: itself, or by links.
pub(super) fn is_named_by(path: &Path) -> bool {
    let process = Path::new("/proc").join(std::process::id().to_string());
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if NAMES.iter().any(|name| path == Path::new(name)) {
            return true;
        }
        let Some(full) = with_real_folder(&path) else { return false };
        if full.starts_with(&process) && full.ends_with("fd/0") {
            return true;
        }
        let Ok(target) = fs::read_link(&full) else { return false };
        path = full.with_file_name(target);
    }
    false
}

/// Returns the path with all links of its folder resolved.
fn with_real_folder(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn names_and_links_of_standard_input_are_recognised_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("/proc/self/fd/0", path("link")).unwrap();
        std::os::unix::fs::symlink("link", path("twice")).unwrap();
        std::os::unix::fs::symlink("round", path("round")).unwrap();
        std::os::unix::fs::symlink("/dev", path("devices")).unwrap();
        fs::write(path("0"), "1").unwrap();
        for name in
            ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/thread-self/fd/0", "/dev/../dev/fd/0"]
        {
            assert!(is_named_by(Path::new(name)), "{name}");
        }
        for name in ["link", "twice", "devices/stdin"] {
            assert!(is_named_by(&path(name)), "{name}");
        }
        for name in ["0", "round", "missing", "missing/0"] {
            assert!(!is_named_by(&path(name)), "{name}");
        }
        for name in ["/dev/fd/1", "/proc/1/fd/0", "b.npy", "/"] {
            assert!(!is_named_by(Path::new(name)), "{name}");
        }
    }
}
