//! `solver plot`: saved histories in one picture.

use super::args::PlotArgs;
use crate::error::Result;
use crate::observe::History;

pub(super) fn run(args: &PlotArgs) -> Result<bool> {
    let histories = args.histories.iter().map(|path| History::load(path)).collect::<Result<Vec<_>>>()?;
    crate::plot::convergence(&histories, &args.output)?;
    super::print(&format!("{}\n", args.output.display()));
    Ok(true)
}
