//! Output of distributions to files.

use super::distribution::Distribution;
use crate::engine::graph::Names;
use crate::engine::running::by_rank;
use crate::error::{Error, Result};
use crate::files::{Content, HEADER, by_ending};
use crate::format::Dense;
use crate::observe::write_file_with;
use crate::parallel::zeros;
use crate::source::fields::quoted;
use crate::source::npy;
use std::io::Write;
use std::path::Path;

type Writer = fn(&Path, &Names, &[Distribution]) -> Result<()>;
/// Returns the most bytes of a file.
type Size = fn(&Names, usize) -> u64;

/// The file extensions of distributions, with their writers and sizes.
const WRITERS: &[(&str, (Writer, Size))] =
    &[(".npy", (write_columns, bytes_of_columns)), (".csv", (write_table, bytes_of_table))];

fn writer(path: &Path) -> Result<(Writer, Size)> {
    by_ending(path, WRITERS).map_err(|reason| Error::setting("output", path.display(), reason))
}

fn bytes_of_columns(names: &Names, classes: usize) -> u64 {
    (names.rows() as u64).saturating_mul((classes * size_of::<f64>()) as u64).saturating_add(HEADER)
}

/// A row has a probability of up to 23 characters, three commas, a line end, and the number of the class.
fn bytes_of_table(names: &Names, classes: usize) -> u64 {
    let each = 27 + classes.to_string().len() as u64;
    (names.rows() as u64).saturating_mul(each).saturating_add(names.most_bytes()).saturating_add(HEADER)
}

/// Returns the most bytes that a file of this extension takes for this number of classes.
pub(super) fn most_bytes(path: &Path, names: &Names, classes: usize) -> Result<u64> {
    Ok(writer(path)?.1(names, classes))
}

/// Checks that distributions can be written to a file of this extension.
pub(crate) fn check_output(path: &Path) -> Result<()> {
    writer(path).map(drop)
}

/// Writes the distributions in the format of the file extension.
pub(super) fn write(path: &Path, names: &Names, found: &[Distribution]) -> Result<()> {
    writer(path)?.0(path, names, found)
}

/// Returns a probability for every state, 0 outside the class.
fn spread(states: usize, class: &Distribution) -> Result<Vec<f64>> {
    let mut all = zeros(states)?;
    class.states().iter().zip(class.probabilities()).for_each(|(&state, &p)| all[state as usize] = p);
    Ok(all)
}

fn write_columns(path: &Path, names: &Names, found: &[Distribution]) -> Result<()> {
    let states = names.rows();
    let columns: Vec<Vec<f64>> = found.iter().map(|class| spread(states, class)).collect::<Result<_>>()?;
    npy::write(path, &Dense::from_columns(states, &columns)?)
}

/// Writes the recurrent states, by class and decreasing probability.
fn write_table(path: &Path, names: &Names, found: &[Distribution]) -> Result<()> {
    write_file_with(path, Content::Answer, |out| {
        let (labels, numbers) = (names.has_labels(), names.has_ids());
        let first = if numbers { "state" } else { "label" };
        writeln!(out, "{first},probability,class{}", if labels && numbers { ",label" } else { "" })?;
        for (number, class) in found.iter().enumerate() {
            for index in by_rank(class.probabilities()) {
                let (state, p) = (class.states()[index] as usize, class.probabilities()[index]);
                let label = quoted(names.label(state).unwrap_or_default());
                match names.id(state) {
                    None => write!(out, "{label},{p:e},{}", number + 1)?,
                    Some(id) => write!(out, "{id},{p:e},{}", number + 1)?,
                }
                writeln!(out, "{}", if labels && numbers { format!(",{label}") } else { String::new() })?;
            }
        }
        Ok(())
    })
}
