//! `solver plot`: saved histories in one picture, or a table of measurements as lines.

use super::args::PlotArgs;
use crate::error::Result;
use crate::observe::History;
use crate::plot::Chart;

pub(super) fn run(args: &PlotArgs) -> Result<bool> {
    match table(args)? {
        Some(table) => crate::plot::chart(&table, &args.output)?,
        None => {
            let histories =
                args.histories.iter().map(|path| History::load(path)).collect::<Result<Vec<_>>>()?;
            crate::plot::convergence(&histories, &args.output)?;
        }
    }
    super::print(&format!("{}\n", args.output.display()));
    Ok(true)
}

/// The table that a single file holds, if it does.
fn table(args: &PlotArgs) -> Result<Option<Chart>> {
    let [path] = &args.histories[..] else { return Ok(None) };
    // What cannot be read is told where histories are.
    std::fs::read_to_string(path).map_or(Ok(None), |text| Chart::of(&text, path))
}
