//! `solver convert`: a matrix from anywhere, written in the format that the ending of the output names.

use super::args::ConvertArgs;
use super::flags::bad;
use super::layout::wrapped;
use super::load::load;
use super::progress::{bytes, metered};
use super::{fetch, print, thousands};
use crate::error::{Error, Result};
use crate::files;
use crate::observe::Meter;
use crate::source::{Beside, Loaded, Options, binary, market, npy, npz};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A format that can be written.
struct Target {
    /// The ending of its files.
    ending: &'static str,
    /// Writes the matrix.
    write: fn(&Path, &Loaded, &Meter) -> Result<()>,
    /// Where vectors go that came with the matrix: files with this ending, or into the same file.
    beside: Option<&'static str>,
}

const TARGETS: &[Target] = &[
    Target { ending: ".mtx", write: write_market, beside: Some(".mtx") },
    Target { ending: ".mtx.gz", write: write_market, beside: Some(".mtx.gz") },
    Target {
        ending: ".npz",
        write: |path, loaded, meter| npz::write_metered(path, &loaded.matrix, Some(meter)),
        beside: Some(".npy"),
    },
    Target {
        ending: ".slv",
        write: |path, loaded, meter| binary::write_metered(path, loaded, Some(meter)),
        beside: None,
    },
];

pub(super) fn run(args: &ConvertArgs) -> Result<bool> {
    let (target, stem) = target(&args.output)?;
    super::places::check_writable(("OUT", &args.output))?;
    fetch::on_first_use(fetch::missing(&args.input)?)?;
    let loaded = load(
        &args.input,
        Options { as_stored: args.as_stored, beside: true, columns: args.columns, ..Options::default() },
    )?;
    // What a killed run left of its output would stay for good.
    files::remove_leftovers(&args.output);
    let meter = Arc::new(Meter::default());
    let name = args.output.display().to_string();
    let written = metered("writing", &name, &meter, || write(args, target, &stem, &loaded, &meter))?;
    print(&report(&loaded, &written))?;
    Ok(true)
}

/// Writes the matrix and what lies beside it; returns the files.
fn write(
    args: &ConvertArgs,
    target: &Target,
    stem: &OsStr,
    loaded: &Loaded,
    meter: &Meter,
) -> Result<Vec<PathBuf>> {
    let ending = target.beside.unwrap_or_default();
    let own_files = || loaded.beside.iter().filter(|_| target.beside.is_some());
    let path_of = |beside: &Beside| {
        let mut name = stem.to_owned();
        name.push(format!("_{}{ending}", beside.name));
        args.output.with_file_name(name)
    };
    let mut labels = stem.to_owned();
    labels.push("_labels.txt");
    let labels = loaded.labels.as_ref().map(|of_rows| (args.output.with_file_name(labels), of_rows));
    // Nothing is written where not all can be.
    labels.iter().try_for_each(|(path, _)| super::places::check_writable(("OUT", path)))?;
    own_files().try_for_each(|beside| {
        check_name(&args.output, &beside.name)?;
        super::places::check_writable(("OUT", &path_of(beside)))
    })?;
    (target.write)(&args.output, loaded, meter)?;
    let mut written = vec![args.output.clone()];
    for beside in own_files() {
        let path = path_of(beside);
        if ending == ".npy" {
            npy::write_metered(&path, &beside.values, Some(meter))?;
        } else {
            market::write_columns(&path, &beside.values, Some(meter))?;
        }
        written.push(path);
    }
    if let Some((path, of_rows)) = labels {
        of_rows.write(&path)?;
        written.push(path);
    }
    Ok(written)
}

/// Names come from files, and must not lead to another folder.
fn check_name(output: &Path, name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(());
    }
    let reason =
        format!("what lies beside the matrix is called '{}', which makes no file name", name.escape_debug());
    Err(Error::Unwritable { path: output.to_owned(), reason })
}

/// That a symmetric matrix is written as a triangle is found from the matrix itself, so that no half is ever left out.
fn write_market(path: &Path, loaded: &Loaded, meter: &Meter) -> Result<()> {
    let note = loaded.stand_in.map(|real| format!("a stand-in for {real}"));
    market::write_as_found(path, &loaded.matrix, note.as_deref(), Some(meter))
}

fn report(loaded: &Loaded, written: &[PathBuf]) -> String {
    let (rows, cols, nnz) = (loaded.matrix.rows(), loaded.matrix.cols(), loaded.matrix.nnz());
    let count = |n: usize| thousands(n as u64);
    let stands = loaded.stand_in.map_or(String::new(), |real| format!(", a stand-in for {real}"));
    let mut text = format!("{} x {}, {} entries{stands}\n", count(rows), count(cols), count(nnz));
    loaded.notes.iter().for_each(|note| text.push_str(&wrapped("note: ", note)));
    if !loaded.beside_faults.is_empty() {
        text.push_str(&format!("left out as faulty: {}\n", loaded.beside_unread.join(", ")));
    }
    for path in written {
        let size = std::fs::metadata(path).map_or(0, |file| file.len());
        text.push_str(&format!("wrote {} ({})\n", path.display(), bytes(size)));
    }
    text
}

/// The format of the output and its name without the ending: the longest ending that fits.
fn target(output: &Path) -> Result<(&'static Target, OsString)> {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let fits = |target: &&Target| name.to_lowercase().ends_with(target.ending);
    let best = TARGETS.iter().filter(fits).max_by_key(|target| target.ending.len());
    let endings = || TARGETS.iter().map(|target| target.ending).collect::<Vec<_>>().join(", ");
    let target = best.ok_or_else(|| {
        let reason = format!("its ending names no format that is written; there are {}", endings());
        bad("OUT", output.display(), reason)
    })?;
    let without_ending = |name: OsString, _| Path::new(&name).file_stem().unwrap_or_default().to_owned();
    let dots = target.ending.matches('.');
    Ok((target, dots.fold(output.file_name().unwrap_or_default().to_owned(), without_ending)))
}
