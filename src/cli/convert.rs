//! `solver convert`: writes any matrix in the format that the ending of the output selects.

use super::args::ConvertArgs;
use super::flags::bad;
use super::layout::wrapped;
use super::load::load_matrix;
use super::progress::{bytes, metered};
use super::{fetch, print, thousands};
use crate::engine::Matrix;
use crate::error::{Error, Result};
use crate::observe::Meter;
use crate::source::Options;
use crate::source::save::Destination;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn run(args: &ConvertArgs) -> Result<bool> {
    let destination = Destination::of(&args.output).map_err(|error| match error {
        Error::Unwritable { path, reason } => bad("OUT", path.display(), reason),
        other => other,
    })?;
    fetch::on_first_use(fetch::missing(&args.input)?)?;
    let options = Options {
        as_stored: args.as_stored,
        attached: true,
        columns: args.columns.clone(),
        first_index: args.first_index,
        ..Options::default()
    };
    let matrix = load_matrix(&args.input, options)?;
    let meter = Arc::new(Meter::default());
    let name = args.output.display().to_string();
    let written = metered("writing", &name, &meter, || matrix.save_metered(&destination, &meter))?;
    print(&report(&matrix, &written))?;
    Ok(true)
}

fn report(matrix: &Matrix, written: &[PathBuf]) -> String {
    let count = |n: usize| thousands(n as u64);
    let stand_in = matrix.stand_in().map_or(String::new(), |real| format!(", a stand-in for {real}"));
    let (rows, cols, nnz) = (count(matrix.rows()), count(matrix.cols()), count(matrix.nnz()));
    let mut text = format!("{rows} x {cols}, {nnz} entries{stand_in}\n");
    matrix.notes().iter().for_each(|note| text.push_str(&wrapped("note: ", note)));
    if !matrix.attached_faults().is_empty() {
        text.push_str(&format!("skipped as invalid: {}\n", matrix.attached_unread().join(", ")));
    }
    for path in written {
        let size = std::fs::metadata(path).map_or(0, |file| file.len());
        text.push_str(&format!("wrote {} ({})\n", path.display(), bytes(size)));
    }
    text
}
