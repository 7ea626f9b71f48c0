//! Adds flags to errors, notes and hints. The library names settings in words; this module appends
//! the flags that set them.

use crate::backend::REGISTRY;
use crate::error::{ChainError, Error, FetchError, GpuError};
use crate::precond::Preconditioner;
use crate::scalar::Precision;
use crate::source::ChosenColumns;
use clap::ValueEnum;

/// Creates the error for an invalid value of a flag or operand.
pub(super) fn bad(flag: &'static str, value: impl ToString, reason: impl Into<String>) -> Error {
    Error::BadSetting {
        setting: flag.trim_start_matches("--"),
        value: value.to_string(),
        reason: reason.into(),
    }
}

/// Returns the message of an error, with the flags that fix it.
pub(super) fn message(error: &Error) -> String {
    match error {
        Error::BadSetting { setting, .. } if is_flag(setting) => format!("--{error}{}", advice(error)),
        Error::OnDevice { device, source } => format!("{device}: {}", message(source)),
        Error::InFile { path, fault } => format!("{}: {}", path.display(), message(fault)),
        _ => format!("{error}{}", advice(error)),
    }
}

/// Returns a note about a matrix, with flags for the settings that it names.
pub(super) fn note(note: &str) -> String {
    format!("{note}{}", named(note))
}

/// Formats a setting of the library and its value as a flag.
pub(super) fn as_flag(setting: &str, value: &str) -> String {
    format!("--{setting} {value}").trim_end().to_owned()
}

/// Returns whether a setting is a flag: flags are in lower case, operands and environment
/// variables in upper case.
fn is_flag(setting: &str) -> bool {
    setting.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns the text to append to an error message: the flag or command to use.
fn advice(error: &Error) -> String {
    let fixed = match error {
        Error::BadSetting { reason, .. } => return named(reason),
        Error::NoDevice { near, .. } => {
            return format!(": --backend {} --device cpu", near.first().unwrap_or(&"auto"));
        }
        Error::UnsupportedFile { hint, .. } | Error::Breakdown { hint, .. } => return named(hint),
        Error::Parse { expected, .. } => return named(expected),
        Error::History { message, .. } => return named(message),
        Error::Unsupported { hint, .. } => match named(hint) {
            none if none.is_empty() => " (--backend NAME)",
            flags => return flags,
        },
        Error::Gpu(error) => return for_gpu(error),
        Error::Fetch(error) => return for_fetch(error),
        Error::UnknownMatrix { near, .. } => {
            return after(near, "solver matrices lists names and generators");
        }
        Error::NotInCatalog { near, .. } => return after(near, "solver matrices lists all of them"),
        Error::Binary { .. } => " with solver convert",
        Error::Checkpoint { .. } => " without --resume",
        Error::NotSymmetric { .. } => " (--assume-symmetric)",
        Error::BadDiagonal { .. } | Error::BadBlock { .. } => " (--precond none)",
        Error::CpuOnly { .. } => " (--device cpu)",
        Error::Threads { .. } => " with --threads",
        Error::Chain(ChainError::RowSum { .. } | ChainError::NamedSum { .. }) => " (--normalize)",
        Error::Chain(ChainError::Reducible { .. }) => " (--classes each)",
        _ => "",
    };
    fixed.to_owned()
}

fn for_gpu(error: &GpuError) -> String {
    match error {
        GpuError::LibraryMissing { hint, .. } | GpuError::FunctionMissing { hint, .. } => named(hint),
        GpuError::LibraryUnusable { reason, .. } => named(reason),
        GpuError::DeviceMemory { hint: Some(hint), .. } => named(hint),
        GpuError::DeviceMemory { hint: None, .. } => " (--device cpu)".to_owned(),
        _ => String::new(),
    }
}

fn for_fetch(error: &FetchError) -> String {
    match error {
        FetchError::NotFetched { name, .. } => format!(". Download it with: solver fetch {name}"),
        FetchError::Offline { source } => format!(" by --offline or SOLVER_OFFLINE{}", advice(source)),
        FetchError::Unavailable { source, .. } => advice(source),
        FetchError::Unreadable { name, .. } | FetchError::DownloadStopped { name, .. } => {
            format!(" (solver fetch {name})")
        }
        FetchError::NoCacheFolder | FetchError::UnsafeCacheFolder { .. } | FetchError::DiskFull { .. } => {
            " or --cache".to_owned()
        }
        FetchError::HttpStatus { .. } | FetchError::TooLong { .. } => {
            " (--mirror URL or SOLVER_MIRROR)".to_owned()
        }
        _ => String::new(),
    }
}

/// Joins a sentence to the suggested names, or to the message if there are none.
fn after(near: &str, sentence: &'static str) -> String {
    format!("{}{sentence}", if near.is_empty() { "; " } else { " " })
}

/// Returns the flags for the settings that a hint of the library names, in parentheses.
fn named(hint: &str) -> String {
    let edges = [',', ';', '.', ':', '(', ')'];
    let words: Vec<&str> = hint.split_whitespace().map(|word| word.trim_matches(edges)).collect();
    let mut flags: Vec<String> = Vec::new();
    for at in 0..words.len() {
        let flag = match words[at..] {
            ["backend", name, ..] if REGISTRY.iter().any(|entry| entry.name == name) => {
                format!("--backend {name}")
            }
            ["another", "backend", ..] => "--backend NAME".to_owned(),
            ["precision", name, ..] if Precision::value_variants().iter().any(|p| p.name() == name) => {
                format!("--precision {name}")
            }
            ["preconditioner", name, ..] if name.parse::<Preconditioner>().is_ok() => {
                format!("--precond {name}")
            }
            ["columns", list, ..] if list.parse::<ChosenColumns>().is_ok() => format!("--columns {list}"),
            ["name", "the", "columns", ..] => "--columns LIST".to_owned(),
            ["first", "index", index @ ("0" | "1"), ..] => format!("--first-index {index}"),
            ["symmetry", "is", "assumed", ..] => "--assume-symmetric".to_owned(),
            ["use", "the", "CPU", ..] | ["the", "CPU", "uses", ..] => "--device cpu".to_owned(),
            ["history", "in", "JSON", ..] => "--history FILE.json".to_owned(),
            _ => continue,
        };
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    if flags.is_empty() { String::new() } else { format!(" ({})", flags.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_named_in_a_hint_become_flags() {
        for (hint, flags) in [
            ("use precision f64 or f32, or backend csr", " (--precision f64, --backend csr)"),
            ("backend csr with precision mixed needs 5.9 MB", " (--backend csr, --precision mixed)"),
            ("use preconditioner jacobi, or check the matrix", " (--precond jacobi)"),
            ("install the driver, or use the CPU", " (--device cpu)"),
            ("not even that fits; the CPU uses main memory", " (--device cpu)"),
            ("write a header, or name the columns", " (--columns LIST)"),
            ("choose the columns source=A,target=B by name", " (--columns source=A,target=B)"),
            ("set first index 1, otherwise first index 0", " (--first-index 1, --first-index 0)"),
            ("a vertex; naming the columns source,target reads names", " (--columns source,target)"),
            ("use precision f64, or another backend", " (--precision f64, --backend NAME)"),
            ("scale the system", ""),
            ("the backend unknown, precision f16 and preconditioner magic", ""),
        ] {
            assert_eq!(named(hint), flags, "{hint}");
        }
    }

    #[test]
    fn errors_end_with_the_flag_or_command_that_helps() {
        let name = || "F1".to_owned();
        let not_fetched = || FetchError::NotFetched {
            name: name(),
            rows: 9,
            entries: 9,
            bytes: 9,
            stand_in: Some("F1-like".to_owned()),
            ignored: None,
        };
        let file = || std::path::PathBuf::from("file");
        let unsupported = |hint: &str| Error::Unsupported {
            backend: "ell",
            device: "cuda",
            what: name(),
            hint: hint.into(),
        };
        let memory = |hint: Option<&str>| GpuError::DeviceMemory {
            what: "x",
            needed: 9,
            reserved: 0,
            free: 0,
            hint: hint.map(str::to_owned),
        };
        let full = std::io::Error::other("no space left on device");
        let fetch = "Download it with: solver fetch F1";
        let errors: Vec<(Error, &str)> = vec![
            (unsupported("use backend csr"), "; use backend csr (--backend csr)"),
            (unsupported("it takes one vector at a time"), " (--backend NAME)"),
            (Error::CpuOnly { precond: "ic0" }, "or the CPU (--device cpu)"),
            (Error::Threads { threads: 9, reason: name() }, "use fewer with --threads"),
            (Error::Binary { path: file(), reason: name() }, "convert the matrix again with solver convert"),
            (Error::Checkpoint { path: file(), reason: name() }, "start again without --resume"),
            (Error::BadDiagonal { precond: "jacobi", row: 0, value: Some(0.0) }, " (--precond none)"),
            (
                Error::UnknownMatrix { what: name(), near: String::new() },
                "not a generator; solver matrices lists names and generators",
            ),
            (
                Error::NotInCatalog { name: name(), near: "did you mean F2? ".into() },
                "; did you mean F2? solver matrices lists all of them",
            ),
            (ChainError::RowSum { row: 0, sum: 0.5 }.into(), "can be divided by it (--normalize)"),
            (ChainError::NamedSum { vertex: name(), sum: 2.0 }.into(), "can be divided by it (--normalize)"),
            (ChainError::Reducible { classes: 2 }.into(), "each class (--classes each)"),
            (memory(None).into(), "; the CPU uses main memory (--device cpu)"),
            (memory(Some("preconditioner jacobi takes less")).into(), " (--precond jacobi)"),
            (not_fetched().into(), fetch),
            (FetchError::Offline { source: Box::new(not_fetched().into()) }.into(), fetch),
            (
                FetchError::Unavailable { source: Box::new(not_fetched().into()), stand_in: name() }.into(),
                fetch,
            ),
            (
                FetchError::DownloadStopped { name: name(), kept: 0, path: file() }.into(),
                "again continues from there (solver fetch F1)",
            ),
            (FetchError::NoCacheFolder.into(), "with SOLVER_CACHE or --cache"),
            (FetchError::UnsafeCacheFolder { reason: name() }.into(), "with SOLVER_CACHE or --cache"),
            (
                FetchError::DiskFull { path: file(), written: 0, source: full }.into(),
                "with SOLVER_CACHE or --cache",
            ),
            (
                FetchError::TooLong { url: name(), most: 9, total: None }.into(),
                "(--mirror URL or SOLVER_MIRROR)",
            ),
        ];
        for (error, end) in &errors {
            let plain = error.to_string();
            assert!(message(error).ends_with(end), "{}", message(error));
            assert!(!plain.contains("--") && !plain.contains("solver "), "{plain}");
        }
        let inner = Error::History { path: file(), message: "draw a history in JSON".into() };
        let outer = Error::InFile { path: file(), fault: Box::new(inner) };
        assert!(message(&outer).ends_with(" (--history FILE.json)"), "{}", message(&outer));
    }

    #[test]
    fn only_settings_that_are_flags_get_dashes() {
        let typed = message(&bad("--damping", 2, "it must be less than 1"));
        assert_eq!(typed, "--damping 2: it must be less than 1");
        let setting = |setting| Error::BadSetting { setting, value: "8G".into(), reason: "no number".into() };
        assert_eq!(message(&setting("threads")), "--threads 8G: no number");
        assert_eq!(message(&setting("SOLVER_GPU_MEMORY_LIMIT")), "SOLVER_GPU_MEMORY_LIMIT 8G: no number");
        assert_eq!(message(&setting("NAME")), "NAME 8G: no number");
    }
}
