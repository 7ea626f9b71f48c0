//! Matrices and graphs in files of which each rank reads its own rows, or gets them from the first rank while it reads, so that no rank
//! has the whole.

use super::text::GraphRows;
use super::{
    Held, Plan, Purpose, RankFacts, RankGraph, RankMatrix, common_multiple, symmetry, text,
    unknowns_of_a_node,
};
use crate::device::Ranks;
use crate::engine::graph::Names;
use crate::engine::matrix::judged;
use crate::error::{Error, Result};
use crate::format::{Csr, Duplicates};
use crate::observe::Meter;
use crate::precond::Preconditioner;
use crate::source::{RowFile, webgraph_part};
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Instant;

/// Rows from which the block size of a preconditioner follows.
const SAMPLE: usize = 16_384;

/// Returns the starts of the parts if each rank knows its own.
fn starts_of(ranks: &Ranks, first: usize, rows: usize) -> Vec<usize> {
    let starts = ranks.all_of(first as u64).into_iter().map(|start| start as usize);
    starts.chain([rows]).collect()
}

impl RankMatrix {
    /// Makes or reads the rows of each rank, so that no rank has the whole matrix; `None` for a matrix that the first rank must read
    /// and [`distribute`](RankMatrix::distribute). All ranks call this together.
    pub fn open(ranks: &Ranks, what: &OsStr, purpose: &Purpose) -> Result<Option<RankMatrix>> {
        RankMatrix::open_metered(ranks, what, purpose, &Meter::default())
    }

    /// Does the same; the meter of the first rank counts the bytes of a text file.
    pub fn open_metered(
        ranks: &Ranks,
        what: &OsStr,
        purpose: &Purpose,
        meter: &Meter,
    ) -> Result<Option<RankMatrix>> {
        match RankMatrix::generate(ranks, what, purpose)? {
            Some(matrix) => Ok(Some(matrix)),
            None => RankMatrix::read_metered(ranks, what, purpose, meter),
        }
    }

    /// Reads the rows of each rank from a binary matrix file, or from a Matrix Market file in the coordinate format, which the first rank
    /// reads for all; `None` for any other matrix. All ranks call this together.
    pub fn read(ranks: &Ranks, what: &OsStr, purpose: &Purpose) -> Result<Option<RankMatrix>> {
        RankMatrix::read_metered(ranks, what, purpose, &Meter::default())
    }

    fn read_metered(
        ranks: &Ranks,
        what: &OsStr,
        purpose: &Purpose,
        meter: &Meter,
    ) -> Result<Option<RankMatrix>> {
        let file = ranks.agreed(RowFile::open(what))?;
        let file = found_by_all(ranks, what, file);
        match file {
            Some(file) => RankMatrix::read_rows(ranks, what, &file, purpose).map(Some),
            None => RankMatrix::read_text(ranks, what, purpose, meter),
        }
    }

    /// Reads the rows of each rank from a binary matrix file.
    fn read_rows(ranks: &Ranks, what: &OsStr, file: &RowFile, purpose: &Purpose) -> Result<RankMatrix> {
        let began = Instant::now();
        let (rows, cols) = file.shape;
        ranks
            .agree_on([rows as u64, file.fingerprint], || Error::different_files("matrix", what.display()))?;
        if rows != cols {
            return Err(Error::NotSquare { rows, cols, solver: purpose.method.name() });
        }
        let sample = ranks.agreed(file.read(0..rows.min(SAMPLE)))?;
        let precond = purpose.precond.settle(&sample);
        let together = common_multiple(precond.together().max(1), unknowns_of_a_node(&sample));
        drop(sample);
        let starts = ranks.agreed(file.cut(ranks.size(), together))?;
        let own = file.read(starts[ranks.rank()]..starts[ranks.rank() + 1]);
        let own = ranks.agreed(own.and_then(|rows| Plan::check_values(&rows, purpose).map(|()| rows)))?;
        let verdict = || symmetry::symmetry(ranks, &starts, &own);
        let note = judged(file.symmetric, purpose.assume_symmetric, &purpose.precond, verdict)?;
        let name = what.to_string_lossy().into_owned();
        let held = Held { starts: &starts, together, name: &name, shared: None };
        let rows = Arc::new(held.divide(ranks, own, &purpose.partition)?);
        let facts = RankFacts {
            name,
            stand_in: file.stand_in,
            nnz: file.entries as u64,
            notes: Vec::new(),
            seconds_load: began.elapsed().as_secs_f64(),
            note,
            precond,
            partition: purpose.partition.clone(),
        };
        Ok(RankMatrix { rows, facts: Arc::new(facts) })
    }

    /// Reads the rows of each rank from a text file; `None` if the first rank must read it alone.
    fn read_text(
        ranks: &Ranks,
        what: &OsStr,
        purpose: &Purpose,
        meter: &Meter,
    ) -> Result<Option<RankMatrix>> {
        let began = Instant::now();
        let solver = purpose.method.name();
        let Some(text) = text::read(ranks, what, solver, Duplicates::Sum, meter)? else { return Ok(None) };
        let verdict = || symmetry::symmetry(ranks, &text.starts, &text.rows);
        let note = judged(text.symmetric, purpose.assume_symmetric, &purpose.precond, verdict)?;
        ranks.agreed(Plan::check_values(&text.rows, purpose))?;
        let sample = text.head(ranks, SAMPLE)?;
        let precond = sample.as_ref().map(|sample| purpose.precond.settle(sample).to_string());
        let precond: Preconditioner = ranks.text_from_first(&precond.unwrap_or_default())?.parse()?;
        let unknowns = sample.map(|sample| unknowns_of_a_node(&sample) as u64);
        let unknowns = ranks.from_first(unknowns.into_iter().collect())?[0] as usize;
        let together = common_multiple(precond.together().max(1), unknowns);
        let text = text.cut(ranks, together)?;
        let (name, nnz) = (what.to_string_lossy().into_owned(), ranks.total(text.rows.nnz() as u64));
        let held = Held { starts: &text.starts, together, name: &name, shared: None };
        let rows = Arc::new(held.divide(ranks, text.rows, &purpose.partition)?);
        let facts = RankFacts {
            name,
            stand_in: None,
            nnz,
            notes: Vec::new(),
            seconds_load: began.elapsed().as_secs_f64(),
            note,
            precond,
            partition: purpose.partition.clone(),
        };
        Ok(Some(RankMatrix { rows, facts: Arc::new(facts) }))
    }
}

impl RankGraph {
    /// Makes or reads the links of each rank, so that no rank has the whole graph; `None` for a graph that the first rank must read and
    /// [`distribute`](RankGraph::distribute). All ranks call this together.
    pub fn open(ranks: &Ranks, what: &OsStr) -> Result<Option<RankGraph>> {
        RankGraph::open_metered(ranks, what, &Meter::default())
    }

    /// Does the same; the meter of the first rank counts the bytes of a text file.
    pub fn open_metered(ranks: &Ranks, what: &OsStr, meter: &Meter) -> Result<Option<RankGraph>> {
        match RankGraph::generate(ranks, what)? {
            Some(graph) => Ok(Some(graph)),
            None => RankGraph::read_metered(ranks, what, meter),
        }
    }

    /// Reads the links of each rank from a binary matrix file or a graph in the format of WebGraph, or from a Matrix Market file in the
    /// coordinate format or a list of edges between ids, which the first rank reads for all; `None` for any other graph. All ranks call
    /// this together.
    pub fn read(ranks: &Ranks, what: &OsStr) -> Result<Option<RankGraph>> {
        RankGraph::read_metered(ranks, what, &Meter::default())
    }

    fn read_metered(ranks: &Ranks, what: &OsStr, meter: &Meter) -> Result<Option<RankGraph>> {
        let began = Instant::now();
        let file = ranks.agreed(RowFile::open(what))?;
        let file = found_by_all(ranks, what, file);
        let whole = |(starts, rows)| GraphRows { starts, rows, is_list: false, ids: None, notes: Vec::new() };
        let found = match &file {
            Some(file) => Some(whole(rows_of(ranks, what, file, "pagerank")?)),
            None => match links_of(ranks, what)? {
                Some(links) => Some(whole(links)),
                None => text::read_graph(ranks, what, "pagerank", Duplicates::Keep, meter)?,
            },
        };
        Ok(found.map(|GraphRows { starts, rows, ids, notes, .. }| RankGraph {
            ranks: ranks.clone(),
            names: Names::of_ids(ids, starts[ranks.size()]),
            starts,
            links: Arc::new(rows),
            whole: None,
            name: what.to_string_lossy().into_owned(),
            stand_in: file.as_ref().and_then(|file| file.stand_in),
            notes,
            seconds_load: began.elapsed().as_secs_f64(),
        }))
    }
}

/// Returns what this rank has found of a file that each rank reads a part of; none if a rank has not found it, and the first rank must read
/// the whole. All ranks call this together.
pub(super) fn found_by_all<T>(ranks: &Ranks, what: &OsStr, found: Option<T>) -> Option<T> {
    let (some, missing) = (ranks.any(found.is_some()), ranks.any(found.is_none()));
    if some && missing && ranks.is_first() {
        let what = what.display();
        log::warn!(
            "some processes do not find {what}: the first one reads the whole, and sends the others their rows"
        );
    }
    found.filter(|_| !missing)
}

/// Reads the rows of this rank of a binary matrix file. `solver` names the method that needs a square matrix.
pub(super) fn rows_of(
    ranks: &Ranks,
    what: &OsStr,
    file: &RowFile,
    solver: &'static str,
) -> Result<(Vec<usize>, Csr)> {
    let (rows, cols) = file.shape;
    ranks.agree_on([rows as u64, file.fingerprint], || Error::different_files("matrix", what.display()))?;
    if rows != cols {
        return Err(Error::NotSquare { rows, cols, solver });
    }
    let starts = ranks.agreed(file.cut(ranks.size(), 1))?;
    let links = ranks.agreed(file.read(starts[ranks.rank()]..starts[ranks.rank() + 1]))?;
    Ok((starts, links))
}

/// Decodes the links of this rank of a graph in the format of WebGraph.
pub(super) fn links_of(ranks: &Ranks, what: &OsStr) -> Result<Option<(Vec<usize>, Csr)>> {
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
