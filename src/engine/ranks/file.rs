//! Matrices and graphs in files of which each rank reads its own rows, or gets them from the first rank while
//! it reads, so that no rank has the whole.

use super::text::GraphRows;
use super::{
    Made, Purpose, RankGraph, RankMatrix, RankSource, common_multiple, symmetry, text, unknowns_of_a_node,
};
use crate::device::Ranks;
use crate::engine::matrix::judged;
use crate::engine::range::check_values;
use crate::error::{Error, Result};
use crate::format::{Csr, Duplicates};
use crate::precond::Preconditioner;
use crate::source::{RowFile, webgraph_part};
use std::ffi::OsStr;

/// Rows from which the block size of a preconditioner follows.
const SAMPLE: usize = 16_384;

/// Returns the starts of the parts if each rank knows its own.
fn starts_of(ranks: &Ranks, first: usize, rows: usize) -> Vec<usize> {
    let starts = ranks.all_of(first as u64).into_iter().map(|start| start as usize);
    starts.chain([rows]).collect()
}

impl RankMatrix {
    /// Makes or reads the rows of each rank, so that no rank has the whole matrix; `None` for a matrix that
    /// the first rank must read and [`distribute`](RankMatrix::distribute). All ranks call this together.
    pub fn open<'a>(
        ranks: &Ranks,
        what: impl Into<RankSource<'a>>,
        purpose: &Purpose,
    ) -> Result<Option<RankMatrix>> {
        let source = what.into();
        match RankMatrix::generate(ranks, source.what, purpose)? {
            Some(matrix) => Ok(Some(matrix)),
            None => RankMatrix::read(ranks, source, purpose),
        }
    }

    /// Reads the rows of each rank from a binary matrix file, or from a Matrix Market file in the coordinate
    /// format, which the first rank reads for all; `None` for any other matrix. All ranks call this together.
    pub fn read<'a>(
        ranks: &Ranks,
        what: impl Into<RankSource<'a>>,
        purpose: &Purpose,
    ) -> Result<Option<RankMatrix>> {
        let source = what.into();
        let file = ranks.agreed(RowFile::open(source.what))?;
        match found_by_all(ranks, source.what, file) {
            Some(file) => RankMatrix::read_rows(ranks, &source, &file, purpose).map(Some),
            None => RankMatrix::read_text(ranks, &source, purpose),
        }
    }

    /// Reads the rows of each rank from a binary matrix file.
    fn read_rows(
        ranks: &Ranks,
        source: &RankSource<'_>,
        file: &RowFile,
        purpose: &Purpose,
    ) -> Result<RankMatrix> {
        let rows = agreed_rows(ranks, source.what, file, purpose.method.name())?;
        let sample = ranks.agreed(file.read(0..rows.min(SAMPLE)))?;
        let precond = purpose.precond.settle_for(&sample, purpose.method.needs().linear_m);
        let together = common_multiple(precond.together().max(1), unknowns_of_a_node(&sample));
        drop(sample);
        let starts = ranks.agreed(file.cut(ranks.size(), together))?;
        let own = file.read(starts[ranks.rank()]..starts[ranks.rank() + 1]);
        let own = ranks.agreed(purpose.checked(own))?;
        let verdict = || symmetry::symmetry(ranks, &starts, &own);
        let note =
            judged(purpose.method, file.symmetric, purpose.assume_symmetric, &purpose.precond, verdict)?;
        let (nnz, stand_in) = (file.entries as u64, file.stand_in);
        let made = Made { starts, together, rows: own, nnz, stand_in, note, precond };
        made.divide(ranks, source, purpose)
    }

    /// Reads the rows of each rank from a text file; `None` if the first rank must read it alone.
    fn read_text(ranks: &Ranks, source: &RankSource<'_>, purpose: &Purpose) -> Result<Option<RankMatrix>> {
        let order = (purpose.method.name(), Duplicates::Sum);
        let Some(text) = text::read(ranks, source, order)? else { return Ok(None) };
        let verdict = || symmetry::symmetry(ranks, &text.starts, &text.rows);
        let note =
            judged(purpose.method, text.symmetric, purpose.assume_symmetric, &purpose.precond, verdict)?;
        ranks.agreed(check_values(purpose.precision, &text.rows))?;
        let sample = text.head(ranks, SAMPLE)?;
        let linear = purpose.method.needs().linear_m;
        let precond = sample.as_ref().map(|sample| purpose.precond.settle_for(sample, linear).to_string());
        let precond: Preconditioner = ranks.text_from_first(&precond.unwrap_or_default())?.parse()?;
        let unknowns = sample.map(|sample| unknowns_of_a_node(&sample) as u64);
        let unknowns = ranks.list_of_first(unknowns.into_iter().collect())?[0] as usize;
        let together = common_multiple(precond.together().max(1), unknowns);
        let text = text.cut(ranks, together)?;
        let nnz = ranks.total(text.rows.nnz() as u64);
        let made =
            Made { starts: text.starts, together, rows: text.rows, nnz, stand_in: None, note, precond };
        made.divide(ranks, source, purpose).map(Some)
    }
}

impl RankGraph {
    /// Makes or reads the links of each rank, so that no rank has the whole graph; `None` for a graph that
    /// the first rank must read and [`distribute`](RankGraph::distribute). All ranks call this together.
    pub fn open<'a>(ranks: &Ranks, what: impl Into<RankSource<'a>>) -> Result<Option<RankGraph>> {
        let source = what.into();
        match RankGraph::generate(ranks, source.what)? {
            Some(graph) => Ok(Some(graph)),
            None => RankGraph::read(ranks, source),
        }
    }

    /// Reads the links of each rank from a binary matrix file or a graph in the format of WebGraph, or from a
    /// Matrix Market file in the coordinate format or a list of edges between ids, which the first rank reads
    /// for all; `None` for any other graph. All ranks call this together.
    pub fn read<'a>(ranks: &Ranks, what: impl Into<RankSource<'a>>) -> Result<Option<RankGraph>> {
        let source = what.into();
        let found = read_graph(ranks, &source, ("pagerank", Duplicates::Keep))?;
        Ok(found.map(|found| found.named(ranks, &source, true)))
    }
}

/// Reads the rows of each rank of a graph from a binary matrix file or a graph in the format of WebGraph, or
/// from a text file, which the first rank reads for all; `None` for any other graph. All ranks call this
/// together.
pub(super) fn read_graph(
    ranks: &Ranks,
    source: &RankSource<'_>,
    order: (&'static str, Duplicates),
) -> Result<Option<GraphRows>> {
    let file = ranks.agreed(RowFile::open(source.what))?;
    let found = match found_by_all(ranks, source.what, file) {
        Some(file) => {
            let rows = GraphRows::of(rows_of(ranks, source.what, &file, order.0)?);
            return Ok(Some(GraphRows { stand_in: file.stand_in, ..rows }));
        }
        None => links_of(ranks, source.what)?,
    };
    match found {
        Some(links) => Ok(Some(GraphRows { is_list: true, ..GraphRows::of(links) })),
        None => text::read_graph(ranks, source, order),
    }
}

/// Returns what this rank has found of a file that each rank reads a part of; none if a rank has not found
/// it, and the first rank must read the whole. All ranks call this together.
fn found_by_all<T>(ranks: &Ranks, what: &OsStr, found: Option<T>) -> Option<T> {
    let (some, missing) = (ranks.any(found.is_some()), ranks.any(found.is_none()));
    if some && missing && ranks.is_first() {
        let what = what.display();
        log::warn!(
            "some processes do not find {what}: the first one reads the whole, and sends the others their rows"
        );
    }
    found.filter(|_| !missing)
}

/// Returns the number of rows of a square matrix in a binary file, if all ranks have found the same file.
fn agreed_rows(ranks: &Ranks, what: &OsStr, file: &RowFile, solver: &'static str) -> Result<usize> {
    let (rows, cols) = file.shape;
    ranks.agree_on([rows as u64, file.fingerprint], || Error::different_files("matrix", what.display()))?;
    if rows == cols { Ok(rows) } else { Err(Error::NotSquare { rows, cols, solver }) }
}

/// Reads the rows of this rank of a binary matrix file. `solver` names the method that needs a square matrix.
fn rows_of(ranks: &Ranks, what: &OsStr, file: &RowFile, solver: &'static str) -> Result<(Vec<usize>, Csr)> {
    agreed_rows(ranks, what, file, solver)?;
    let starts = ranks.agreed(file.cut(ranks.size(), 1))?;
    let links = ranks.agreed(file.read(starts[ranks.rank()]..starts[ranks.rank() + 1]))?;
    Ok((starts, links))
}

/// Decodes the links of this rank of a graph in the format of WebGraph.
fn links_of(ranks: &Ranks, what: &OsStr) -> Result<Option<(Vec<usize>, Csr)>> {
    let part = ranks.agreed(webgraph_part(what, ranks.rank(), ranks.size()))?;
    let Some(part) = found_by_all(ranks, what, part) else { return Ok(None) };
    let starts = starts_of(ranks, part.first, part.vertices);
    let end = part.first + part.links.rows();
    let fits = starts[ranks.rank() + 1] == end;
    ranks.agree_on([part.vertices as u64, u64::from(fits)], || {
        Error::different_files("matrix", what.display())
    })?;
    Ok(Some((starts, part.links)))
}
