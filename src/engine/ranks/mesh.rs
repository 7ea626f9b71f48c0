//! Matrices of meshes of which each rank makes its own rows, so that no rank has the whole matrix.

use super::{Made, Purpose, RankMatrix, RankSource, common_multiple};
use crate::device::Ranks;
use crate::error::{Error, Result};
use crate::format::partition;
use crate::source::{self, generate::Mesh};
use std::ffi::OsStr;

/// Rows between two counts of entries.
const STEP: usize = 4096;
/// Rows from which the block size of a preconditioner follows.
const SAMPLE: usize = 16_384;

/// Returns the number of entries before every [`STEP`] rows, and that of all rows. Each rank counts a part.
fn entries_before_steps(ranks: &Ranks, mesh: &Mesh) -> Result<Vec<u64>> {
    let steps = mesh.rows().div_ceil(STEP);
    let part = |rank: usize| steps * rank / ranks.size();
    let rows = |step: usize| step * STEP..((step + 1) * STEP).min(mesh.rows());
    let count = |step: usize| rows(step).map(|row| mesh.entries(row) as u64).sum();
    let mine: Vec<u64> = (part(ranks.rank())..part(ranks.rank() + 1)).map(count).collect();
    let all = ranks.lists_of_all(&mine)?;
    let mut before = vec![0];
    all.iter().for_each(|entries| before.push(before[before.len() - 1] + entries));
    Ok(before)
}

impl RankMatrix {
    /// Makes the rows of this rank of a generated mesh; `None` for any other matrix. All ranks
    /// call this together.
    pub fn generate(ranks: &Ranks, what: &OsStr, purpose: &Purpose) -> Result<Option<RankMatrix>> {
        let named = RankSource::from(what);
        let mesh = ranks.agreed(source::mesh(what))?;
        if !ranks.any(mesh.is_some()) {
            return Ok(None);
        }
        let mesh = ranks.agreed(mesh.ok_or_else(|| {
            let reason = "this process finds a file of this name, and other processes generate the mesh; rename the file, or copy it to \
                          the folders of all processes";
            Error::setting("matrix", what.display(), reason)
        }))?;
        let sample = mesh.make(0..mesh.rows().min(SAMPLE))?;
        let precond = purpose.precond.settle_for(&sample, purpose.method.needs().linear_m);
        drop(sample);
        let together = common_multiple(precond.together().max(1), mesh.unknowns());
        let before = entries_before_steps(ranks, &mesh)?;
        let entries = |row: usize| {
            let step = row / STEP;
            let rest: usize = (step * STEP..row).map(|row| mesh.entries(row)).sum();
            before[step] as usize + rest
        };
        let starts = partition::cut((mesh.rows(), partition::ROW), entries, ranks.size(), together);
        let rows = mesh.make(starts[ranks.rank()]..starts[ranks.rank() + 1]);
        let rows = ranks.agreed(purpose.checked(rows))?;
        let nnz = before[before.len() - 1];
        let made = Made { starts, together, rows, nnz, stand_in: None, note: None, precond };
        made.divide(ranks, &named, purpose).map(Some)
    }
}
